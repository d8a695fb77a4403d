# shellcheck shell=bash
# Sourced by bin/bench: the databases, what the drivers' gems compile with, and the load generator. Uses $root.

if command -v apt-get >/dev/null; then
  install_packages "bin/bench databases" postgresql libpq-dev mariadb-server-core libmariadb-dev wrk || :
fi
