# shellcheck shell=bash
# Sourced by bin/bench: the load generator and the peers. Uses $root.
heddle_log=$root/tmp/setup
support=$root/bin/support
mkdir -p "$heddle_log" || exit 1
# shellcheck source=bin/support/say.sh
. "$support/say.sh"
# shellcheck source=bin/support/packages.sh
. "$support/packages.sh"

# Debian's packages start a name server when they are installed; unpacked it does nothing until it is asked to.
unpack_name_server() {
  local folder
  folder=$(mktemp -d) || return 1
  (cd "$folder" && { apt-get download "$1" || { as_root apt-get update && apt-get download "$1"; }; }) &&
    mkdir -p "$root/vendor/$1" && dpkg-deb -x "$folder"/"$1"_*.deb "$root/vendor/$1"
  set -- $?
  rm -rf -- "$folder"
  return "$1"
}

if command -v apt-get >/dev/null; then
  install_packages "bin/bench dns" dnsperf dnsmasq-base libevent-2.1-7 || :
  for server in unbound nsd; do
    PATH=$PATH:/usr/sbin:$root/vendor/$server/usr/sbin command -v "$server" >/dev/null ||
      unpack_name_server "$server" >"$heddle_log/$server.log" 2>&1 ||
      complain "bin/bench dns: $server could not be unpacked"
  done
fi
