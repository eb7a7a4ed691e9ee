#!/usr/bin/env bash
# Runs the suites of the API on a Citus cluster: a coordinator and two workers of its
# own, which go when the run ends. Every database of the tests is distributed over them
# by `inlet distribute`.
#
# It wants PostgreSQL's programs with the extension citus. Where the machine has none it
# says so, runs nothing and succeeds. INLET_PG_BIN names the programs' folder outright;
# INLET_SCALE_DATABASE_URL and INLET_SCALE_WORKERS (host:port, blanks between them) name
# a cluster that runs already, whose user may create databases. What follows goes to
# `go test` as it stands.
set -euo pipefail
cd "$(dirname "$0")/.."

# What the suites of the API promise; not those that kill, hold up or look into the one
# PostgreSQL that they start.
suites='Event|Batch|Total|List|Page|Ledger|Lead|Idempotency|Profile|Contact|Form|Slot|Book|Token|Link|Visitor|Secret|Start|Decision|Step|Signal|Score|Minute|Narrow|Credential|Scope|Service|Model|OneServer|Balancer|OverCitus'
# TestLeadsThatComeDuringASeed looks for sessions that wait where the rows are not. The
# motions of TestMotions and their model are killed and timed, and TestTheScore waits for
# a moment that has passed on a slow machine.
skipped='DuringASeed|Kill|Away|Hangs|Example|TestMotions|TestTheScore'

has_citus() {
	local bin=$1 lib
	for lib in "$bin/../lib" "$bin/../lib/postgresql" "$("$bin/pg_config" --pkglibdir 2>/dev/null || true)"; do
		[ -n "$lib" ] && [ -e "$lib/citus.so" ] && return 0
	done
	return 1
}

find_programs() {
	local bin
	for bin in ${INLET_PG_BIN:-} /usr/lib/postgresql/*/bin /usr/pgsql-*/bin /usr/libexec/postgresql* /usr/local/pgsql/bin; do
		if [ -x "$bin/initdb" ] && has_citus "$bin"; then
			echo "$bin"
			return 0
		fi
	done
	return 1
}

if [ -n "${INLET_SCALE_DATABASE_URL:-}" ]; then
	export INLET_TEST_DATABASE_URL=$INLET_SCALE_DATABASE_URL INLET_TEST_CITUS_WORKERS=${INLET_SCALE_WORKERS:?the workers of the cluster, as host:port}
elif bin=$(find_programs); then
	work=$(mktemp -d /tmp/inlet-scale.XXXXXX)
	chmod 755 "$work"
	as=()
	if [ "$(id -u)" -eq 0 ]; then # PostgreSQL does not run as root
		user=postgres
		id postgres >/dev/null 2>&1 || user=nobody
		chown "$user" "$work"
		as=(setpriv "--reuid=$user" --clear-groups env "HOME=$work")
	fi
	stop() {
		for node in "$work"/node*; do
			"${as[@]}" "$bin/pg_ctl" -D "$node" -m immediate stop >/dev/null 2>&1 || true
		done
		rm -rf "$work"
	}
	trap stop EXIT
	trap 'exit 130' INT TERM
	# Three free ports, below those that the system gives to whoever connects.
	taken() { (: <"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }
	first=$((15000 + RANDOM % 15000))
	while taken "$first" || taken $((first + 1)) || taken $((first + 2)); do
		first=$((15000 + RANDOM % 15000))
	done
	echo "==> a coordinator and two workers of $("$bin/postgres" --version), on ports $first to $((first + 2))"
	for n in 0 1 2; do
		node=$work/node$n
		"${as[@]}" "$bin/initdb" -D "$node" -A trust -U postgres --no-sync --locale=C -E UTF8 >/dev/null
		cat >>"$node/postgresql.conf" <<-END
			shared_preload_libraries = 'citus'
			listen_addresses = '127.0.0.1'
			unix_socket_directories = '$work'
			port = $((first + n))
			fsync = off # the tests on it do not outlive a crash
			max_connections = 300
			max_prepared_transactions = 300
			max_locks_per_transaction = 512
			citus.shard_count = 8
			citus.node_conninfo = 'sslmode=prefer'
			citus.enable_statistics_collection = off
		END
		"${as[@]}" "$bin/pg_ctl" -D "$node" -l "$node.log" -w start >/dev/null || { cat "$node.log" >&2; exit 1; }
	done
	export INLET_TEST_DATABASE_URL="postgres://postgres@127.0.0.1:$first/postgres?sslmode=disable"
	export INLET_TEST_CITUS_WORKERS="127.0.0.1:$((first + 1)) 127.0.0.1:$((first + 2))"
else
	cat >&2 <<-END
		scale: NOT RUN. No PostgreSQL of this machine has the extension citus.
		Install the package of Citus for your PostgreSQL, such as postgresql-17-citus-13.2, from Citus's
		repository (docs.citusdata.com/en/stable/installation/multi_node.html), and name the folder of the
		programs in INLET_PG_BIN if they are not found; or name a cluster that runs already in
		INLET_SCALE_DATABASE_URL and its workers in INLET_SCALE_WORKERS.
	END
	exit 0
fi
go test -count=1 -timeout 60m -run "$suites" -skip "$skipped" ./impl/contract "$@"
