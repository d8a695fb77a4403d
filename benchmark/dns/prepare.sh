# shellcheck shell=bash
# Sourced by bin/bench: the load generator and the peers. Uses $root.

if command -v apt-get >/dev/null; then
  install_packages "bin/bench dns" dnsperf dnsmasq-base libevent-2.1-7 || :
  for server in unbound nsd; do unpack_server "bin/bench dns" "$server"; done
fi
