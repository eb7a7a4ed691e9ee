#!/usr/bin/env bash
# Fuzzes the running server with Schemathesis: requests made from the document,
# valid and invalid ones, each answer held to the document. The server is the
# built binary on a PostgreSQL of its own, which goes when the run ends.
#
#   scripts/contract.sh          what CI runs: the same bounded run every time
#   scripts/contract.sh long     for a night: much longer, another seed each time
#
# EXAMPLES and SEED override how many cases an operation and phase get, and where
# the random numbers begin. What follows goes to Schemathesis as it stands.
set -euo pipefail
cd "$(dirname "$0")/.."

examples=${EXAMPLES:-30} seed=${SEED:-1}
if [ "${1:-}" = long ]; then
	shift
	examples=${EXAMPLES:-2000} seed=${SEED:-$RANDOM}
fi
version=$(sed -n 's/^schemathesis==//p' scripts/contract/requirements.txt)

work=$(mktemp -d)
chmod 755 "$work" # PostgreSQL runs as another user when this one is root
: >"$work/log"
server=
stop() {
	if [ -n "$server" ]; then
		kill -TERM "$server" 2>/dev/null || true
		wait "$server" || true
	fi
	rm -rf "$work"
}
trap stop EXIT
trap 'exit 130' INT TERM

# Schemathesis comes as an image where there is an engine to run it, and from pip
# elsewhere. The image sees the host's network, which only Linux gives it.
if [ "$(uname)" = Linux ] && command -v docker >/dev/null && docker info >/dev/null 2>&1; then
	schemathesis() {
		docker run --rm --network host --user "$(id -u):$(id -g)" -v "$PWD:$PWD:ro" -w "$PWD" \
			-e INLET_CONTRACT_ADDRESS -e INLET_CONTRACT_KEY -e INLET_CONTRACT_NOW -e INLET_CONTRACT_PLANT -e SCHEMATHESIS_HOOKS= \
			"ghcr.io/schemathesis/schemathesis:v$version" "$@"
	}
else
	tools=${XDG_CACHE_HOME:-$HOME/.cache}/inlet/schemathesis-$(cksum <scripts/contract/requirements.txt | cut -d' ' -f1)
	if [ ! -x "$tools/bin/st" ]; then
		echo "==> installing Schemathesis $version into $tools"
		rm -rf "$tools"
		python3 -m venv "$tools"
		"$tools/bin/pip" install -q --disable-pip-version-check --no-deps -r scripts/contract/requirements.txt
	fi
	schemathesis() { "$tools/bin/st" "$@"; }
fi

unset DATABASE_URL INLET_METRICS_LISTEN INLET_PUBLIC_URL
export INLET_DATA_DIR=$work/data INLET_LISTEN=127.0.0.1:0
export INLET_TRUSTED_PROXIES=127.0.0.0/8 # scripts/contract/hooks.py sends from many addresses
bin/inlet serve 2>"$work/log" &
server=$!
until address=$(sed -n 's/.*"msg":"serving".*"addr":"\([^"]*\)".*/\1/p' "$work/log") && [ -n "$address" ]; do
	kill -0 "$server" 2>/dev/null || { cat "$work/log" >&2; exit 1; }
	sleep 0.1
done
token=$(bin/inlet seed scripts/contract/seed.yaml --json | grep -o 'amp_[0-9A-Za-z]*')
bin/inlet workspace set contract --events-per-minute 10000000 --events-per-day 100000000 --events-backlog 10000000

export INLET_CONTRACT_ADDRESS=$address INLET_CONTRACT_KEY=$token
INLET_CONTRACT_NOW=$(date -u +%Y-%m-%dT%H:%M:%SZ)
export INLET_CONTRACT_NOW

status=0
schemathesis run openapi/openapi.yaml --seed "$seed" --max-examples "$examples" "$@" || status=$?

# Answers that are made to deviate on their way have to be caught, each by its
# check, or the run above says nothing.
while read -r plant caught; do
	if INLET_CONTRACT_PLANT=$plant schemathesis run openapi/openapi.yaml --seed "$seed" --max-examples 1 \
		--phases examples,fuzzing --include-operation-id createLead >"$work/planted" 2>&1 || ! grep -q "$caught" "$work/planted"; then
		cat "$work/planted"
		echo "a planted deviation is not caught: $plant" >&2
		status=1
	else
		echo "planted and caught: $plant"
	fi
done <<-END
	status Undocumented status code
	header Missing required response headers
	field Response violates schema
	type Undocumented Content-Type
	code code_is_declared
END

# What the server thinks went wrong counts too, although a client may have seen
# nothing of it.
if grep '"level":"ERROR"' "$work/log"; then
	echo "the server logged errors" >&2
	status=1
fi
exit "$status"
