#!/usr/bin/env bash
# Serves the demo workspace until Ctrl-C: starts the server (and its private
# PostgreSQL, unless DATABASE_URL is set), loads scripts/demo.yaml, makes a key,
# and prints the request that records a first event.
set -euo pipefail
cd "$(dirname "$0")/.."

started=$(mktemp)
bin/inlet serve 2> >(tee "$started" >&2) &
server=$!
# Ctrl-C reaches the server too; wait for it either way.
stop() {
	trap '' INT TERM
	kill -TERM "$server" 2>/dev/null || true
	wait "$server" || exit $?
	exit 0
}
trap stop INT TERM
trap 'rm -f "$started"' EXIT

until address=$(sed -n 's/.*"msg":"serving".*"addr":"\([^"]*\)".*/\1/p' "$started" | head -n 1) && [ -n "$address" ]; do
	kill -0 "$server" 2>/dev/null || { wait "$server" || exit $?; exit 1; }
	sleep 0.1
done

bin/inlet seed scripts/demo.yaml >/dev/null
key=$(bin/inlet key create --workspace demo --name "make run" --owner ada@brightwater.example \
	--scopes leads.manage,motions.start,events.send 2>/dev/null)

cat <<END

Inlet serves the workspace "demo" at http://$address
API key, for this machine only:  $key
Documentation, with a quickstart: http://$address/docs

Record a first event, in another terminal:

export BASE=http://$address
export KEY=$key
curl -i "\$BASE/api/v1/events" \\
  -H "Authorization: Bearer \$KEY" \\
  -H 'Content-Type: application/json' \\
  -d '{"id": "first-'\$(date +%s)'", "name": "trial_started", "company": {"domain": "northlight.example"}, "properties": {"plan": "pro"}}'

Ctrl-C stops the server.
END
wait "$server"
