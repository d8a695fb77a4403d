# shellcheck shell=bash
# Sourced by bin/bench: Node.js with its package ws, Redis and PostgreSQL, and what the peers' gems compile with. Uses $root.

if command -v apt-get >/dev/null; then
  install_packages "bin/bench realtime" libssl-dev redis-server postgresql libpq-dev || :
  command -v npm >/dev/null || install_packages "bin/bench realtime" nodejs npm || :
fi
if command -v npm >/dev/null && [ ! -d "$root/tmp/bench/node/node_modules/ws" ]; then
  mkdir -p "$root/tmp/bench/node"
  npm install --no-audit --no-fund --prefix "$root/tmp/bench/node" ws@8.23.0 >"$heddle_log/npm-ws.log" 2>&1 ||
    printf 'bin/bench realtime: no package ws, so Node.js is left out (%s)\n' "$heddle_log/npm-ws.log" >&2
fi
