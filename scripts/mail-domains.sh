#!/usr/bin/env bash
# Writes the lists of free and disposable mail domains in impl/company/mail/ from
# the latest releases of their npm packages. Needs npm; afterwards, put the
# versions it prints into the folder's README.
set -euo pipefail
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export LC_ALL=C
for package in free-email-domains disposable-email-domains; do
	mkdir "$work/$package"
	(cd "$work/$package" && npm pack --silent "$package" && tar xzf ./*.tgz)
done
# Host names in lower-case ASCII only: look-ups ask for nothing else.
names() { cat "$@" | tr -d '[:space:]"[]' | tr ',' '\n' | tr 'A-Z' 'a-z' | grep -E '^[a-z0-9-]+(\.[a-z0-9-]+)+$' | sort -u; }
names "$work/free-email-domains/package/domains.json" >impl/company/mail/free.txt
for file in "$work"/disposable-email-domains/package/{index,wildcard}.json; do names "$file"; done |
	sort -u | comm -23 - impl/company/mail/free.txt >impl/company/mail/disposable.txt
