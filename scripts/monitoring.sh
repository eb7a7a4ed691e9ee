#!/usr/bin/env bash
# Holds alerts and dashboard to Prometheus's own parser, and tries each alert.
# promtool is the machine's, or built: that takes minutes the first time, so that
# make test does without; what the expressions ask for is looked up there.
set -euo pipefail
cd "$(dirname "$0")/.."

promtool() {
	if command -v promtool >/dev/null; then command promtool "$@"; else go -C scripts/monitoring tool promtool "$@"; fi
}
here=$PWD
promtool check rules "$here/impl/docs/monitoring/alerts.yml"
promtool test rules "$here/scripts/monitoring/alerts_test.yml"
rules=$(mktemp)
trap 'rm -f "$rules"' EXIT
go -C scripts/monitoring run . "$here/impl/docs/monitoring/dashboard.json" >"$rules"
promtool check rules "$rules"
