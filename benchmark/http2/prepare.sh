# shellcheck shell=bash
# Sourced by bin/bench: the load generator, what the peers' gems compile with, curl, Node.js and nginx. Uses $root.

if command -v apt-get >/dev/null; then
  install_packages "bin/bench http2" nghttp2-client curl nodejs libssl-dev || :
  unpack_server "bin/bench http2" nginx
fi
