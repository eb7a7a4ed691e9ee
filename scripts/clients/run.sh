#!/usr/bin/env bash
# Tries clients that generators make of the published document: starts the
# server on a private PostgreSQL, takes the document from it, and runs each
# folder beside this script, or those that are named:
#
#   scripts/clients/run.sh [-v] [openapi-typescript hey-api …]
#
# A folder's run.sh installs its generator at a pinned version, generates,
# type-checks a program that uses every operation, and lets that program talk to
# the server. It runs in a work folder of its own below the cache, with
#
#   SOURCE             its own folder
#   DOCUMENT           the document, as the server publishes it
#   INLET_URL          the server, which has a workspace for this client alone
#   INLET_KEY          a key of that workspace with every scope
#   INLET_NARROW_KEY   one with leads.manage only
#   INLET_MOTION       a motion that can be started
#   INLET_SITE, INLET_FORM, INLET_MEETING_FORM   public keys for embeds
#
#   CANNOT_INSTALL     what to exit with when a registry does not give it
#
# and exits 0 when all of it worked, 77 with a reason as its last line when its
# generator cannot be had on this machine, and otherwise when the client is bad.
set -euo pipefail
cd "$(dirname "$0")/../.."
repository=$PWD
verbose=
if [ "${1:-}" = -v ]; then
	verbose=1
	shift
fi
clients=("$@")
[ $# -gt 0 ] || for script in scripts/clients/*/run.sh; do clients+=("$(basename "$(dirname "$script")")"); done
# CI would not notice that a version is gone.
export CANNOT_INSTALL=77
[ -z "${CI:-}" ] || CANNOT_INSTALL=1
cache=${INLET_CLIENTS_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/inlet/clients}
mkdir -p "$cache"

# What a client wrote in an earlier run is of no use to this one.
run=$(mktemp -d)
export INLET_DATA_DIR=$run/data
: > "$run/server.log"
bin/inlet serve --listen 127.0.0.1:0 2> "$run/server.log" &
server=$!
stop() {
	kill -TERM "$server" 2>/dev/null || true
	wait "$server" 2>/dev/null || true
	rm -rf "$run"
}
trap stop EXIT
trap 'exit 130' INT TERM
until address=$(sed -n 's/.*"msg":"serving".*"addr":"\([^"]*\)".*/\1/p' "$run/server.log" | head -n 1) && [ -n "$address" ]; do
	kill -0 "$server" 2>/dev/null || { cat "$run/server.log" >&2; exit 1; }
	sleep 0.1
done
export INLET_URL=http://$address

export DOCUMENT=$run/openapi.json
curl -sSf -o "$DOCUMENT" "$INLET_URL/docs/openapi/v1.json"

key() { # workspace scopes
	bin/inlet key create --workspace "$1" --name "$2" --owner "ada@$1.example" --scopes "$2" --requests-per-minute 600 2>/dev/null
}

last() { # the last line of a log, without the colours that Maven writes anyhow
	tail -n 1 "$1" | sed $'s/\x1b\\[[0-9;]*m//g'
}

passed=0 failed=0 skipped=0
for client in "${clients[@]}"; do
	export SOURCE=$repository/scripts/clients/$client
	[ -x "$SOURCE/run.sh" ] || { echo "there is no client $client" >&2; exit 2; }
	sed "s/SLUG/$client/g" "$repository/scripts/clients/seed.yaml" > "$run/seed.yaml"
	bin/inlet seed "$run/seed.yaml" > /dev/null 2>> "$run/seed.log"
	INLET_KEY=$(key "$client" leads.manage,motions.start,events.send)
	INLET_NARROW_KEY=$(key "$client" leads.manage)
	INLET_MOTION=$(bin/inlet motion list --workspace "$client" --json 2>/dev/null | sed -n 's/.*"id": *\([0-9]*\).*/\1/p' | head -n 1)
	export INLET_KEY INLET_NARROW_KEY INLET_MOTION
	export INLET_SITE=site_$client INLET_FORM=form_$client INLET_MEETING_FORM=meet_$client
	work=$cache/$client
	mkdir -p "$work"
	log=$run/$client.log
	code=0
	SECONDS=0
	if [ -n "$verbose" ]; then
		(cd "$work" && "$SOURCE/run.sh") 2>&1 | tee "$log" || code=$?
	else
		(cd "$work" && "$SOURCE/run.sh") > "$log" 2>&1 || code=$?
	fi
	case $code in
	0)
		passed=$((passed + 1))
		echo "ok       $client (${SECONDS}s): $(last "$log")"
		;;
	77)
		skipped=$((skipped + 1))
		echo "not here $client: $(last "$log")"
		;;
	*)
		failed=$((failed + 1))
		echo "FAILED   $client (${SECONDS}s)"
		tail -n 60 "$log" | sed 's/^/    /'
		;;
	esac
done
echo "clients: $passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
