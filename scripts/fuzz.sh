#!/usr/bin/env bash
# Fuzzes every parser of what clients, browsers and operators send: each target for
# FUZZTIME, one after the other, and says how long it ran, how often, how many inputs
# it met that run code which none before them ran, and what it found.
#
#   scripts/fuzz.sh              all targets
#   scripts/fuzz.sh 'Parse|Open' those whose package and name match
#
# FUZZTIME is a time or a number of executions, as go test has it: 10m, 30s, 5000x.
# FUZZPROCS is how many processors a target gets. What a run learned stays in Go's
# build cache, so the next one goes on from there; what it found stands in the
# package's testdata/fuzz, as a test that fails until it is mended.
set -euo pipefail
cd "$(dirname "$0")/.."

time=${FUZZTIME:-10m} procs=${FUZZPROCS:-1} only=${1:-.}
log=$(mktemp)
trap 'rm -f "$log"' EXIT

# go test prints the targets of a package, then its name.
targets=$(go test -list '^Fuzz' ./... | awk '/^Fuzz/ {names[n++] = $1} /^ok/ {for (i = 0; i < n; i++) print $2, names[i]; n = 0}')
row='%-16s %-22s %8s %12s %8s  %s\n'
# shellcheck disable=SC2059 # the row is the format
printf "$row" PACKAGE TARGET TIME EXECUTIONS "NEW" FOUND
failed=0
while read -r package target; do
	found=nothing
	go test -run '^$' -fuzz "^$target\$" -fuzztime "$time" -fuzzminimizetime 2s -parallel "$procs" -timeout 0 "$package" >"$log" 2>&1 || {
		failed=1
		found=$(sed -n 's/^ *Failing input written to //p' "$log" | tail -1)
		found=${found:-"it ended before it could say what"}
	}
	ran=$(sed -n 's/^fuzz: elapsed: \([^,]*\), execs: \([0-9]*\) .*new interesting: \([0-9]*\) .*/\1 \2 \3/p' "$log" | tail -1)
	read -r elapsed executions new <<<"${ran:-- 0 0}"
	# shellcheck disable=SC2059
	printf "$row" "${package#github.com/inletdev/inlet/}" "$target" "$elapsed" "$executions" "$new" "$found"
	[ "$found" = nothing ] || sed 's/^/    /' "$log" | grep -v 'fuzz: elapsed' | head -40
done < <(grep -E "$only" <<<"$targets")
exit $failed
