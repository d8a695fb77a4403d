# shellcheck shell=bash
# Sourced by bin/bench: the databases, and what the drivers' gems compile with. Uses $root.
heddle_log=$root/tmp/setup
mkdir -p "$heddle_log" || exit 1
# shellcheck source=bin/support/say.sh
. "$root/bin/support/say.sh"
# shellcheck source=bin/support/packages.sh
. "$root/bin/support/packages.sh"

if command -v apt-get >/dev/null; then
  install_packages "bin/bench databases" postgresql libpq-dev mariadb-server-core libmariadb-dev || :
fi
