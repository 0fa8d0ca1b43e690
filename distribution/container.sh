#!/bin/sh
# The entry point of the container: `serve` sets up and serves /vault, `health` checks the daemon, other words run a memex command.
set -eu
secret=/run/secrets/memex_key
if [ -f "$secret" ]; then
    KB_MCP_API_KEY=$(cat "$secret")
    KB_API_KEY=$KB_MCP_API_KEY
    export KB_MCP_API_KEY KB_API_KEY
fi
case "${1:-serve}" in
health)
    exec python -c "import urllib.request; urllib.request.urlopen('http://127.0.0.1:${MEMEX_SERVER__PORT:-8765}/healthz', timeout=4).read()"
    ;;
serve)
    memex init --yes /vault > /dev/null
    exec memex "$@"
    ;;
*)
    exec memex "$@"
    ;;
esac
