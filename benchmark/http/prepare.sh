# shellcheck shell=bash
# Sourced by bin/bench: the load generator, what the peers' gems compile with, and nginx. Uses $root.
heddle_log=$root/tmp/setup
support=$root/bin/support
mkdir -p "$heddle_log" || exit 1
# shellcheck source=bin/support/say.sh
. "$support/say.sh"
# shellcheck source=bin/support/packages.sh
. "$support/packages.sh"

# Debian's package starts a server on port 80 when it is installed; unpacked it does nothing until it is asked to.
unpack_nginx() {
  local folder
  folder=$(mktemp -d) || return 1
  (cd "$folder" && { apt-get download nginx || { as_root apt-get update && apt-get download nginx; }; }) &&
    mkdir -p "$root/vendor/nginx" && dpkg-deb -x "$folder"/nginx_*.deb "$root/vendor/nginx"
  set -- $?
  rm -rf -- "$folder"
  return "$1"
}

has_nginx() { PATH=$PATH:/usr/sbin:/usr/local/sbin:$root/vendor/nginx/usr/sbin command -v nginx >/dev/null; }

if command -v apt-get >/dev/null; then
  install_packages "bin/bench http" wrk libssl-dev libpcre2-8-0 || :
  has_nginx || unpack_nginx >"$heddle_log/nginx.log" 2>&1 || complain "bin/bench http: nginx could not be unpacked"
fi
