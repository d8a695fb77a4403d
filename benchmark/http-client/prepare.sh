# shellcheck shell=bash
# Sourced by bin/bench: the server of the HTTP/2 rows, and the library that Typhoeus calls.

if command -v apt-get >/dev/null; then
  install_packages "bin/bench http-client" nghttp2-server libcurl4 || :
fi
