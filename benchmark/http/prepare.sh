# shellcheck shell=bash
# Sourced by bin/bench: the load generator, what the peers' gems compile with, and nginx. Uses $root.

if command -v apt-get >/dev/null; then
  install_packages "bin/bench http" wrk libssl-dev libpcre2-8-0 || :
  unpack_server "bin/bench http" nginx
fi
