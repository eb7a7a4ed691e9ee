#!/usr/bin/env bash
# Sees to what the tests need beyond Go: a C compiler for the race detector,
# PostgreSQL's own programs, Chromium for what stands in pages, Python for
# Schemathesis, and npm for the linters of the document. Installs what is missing
# with the machine's package manager, and says so.
set -euo pipefail

missing=()
command -v cc >/dev/null || command -v gcc >/dev/null || missing+=(compiler)
if [ -z "${INLET_TEST_DATABASE_URL:-}" ] && [ -z "${INLET_PG_BIN:-}" ] && ! command -v initdb >/dev/null &&
	! compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null && ! compgen -G '/usr/pgsql-*/bin/initdb' >/dev/null &&
	! compgen -G '/opt/homebrew/opt/postgresql*/bin/initdb' >/dev/null; then
	missing+=(postgresql)
fi
if [ -z "${INLET_CHROME:-}" ] &&
	! command -v chromium chromium-browser google-chrome google-chrome-stable chrome headless-shell >/dev/null &&
	! compgen -G '/Applications/Chromium.app' >/dev/null && ! compgen -G '/Applications/Google Chrome.app' >/dev/null; then
	missing+=(chromium)
fi
python3 -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || missing+=(python3)
command -v npm >/dev/null || missing+=(npm)
[ ${#missing[@]} -eq 0 ] && exit 0

sudo=()
[ "$(id -u)" -eq 0 ] || sudo=(sudo)
install() {
	local packages=("$1")
	if command -v apt-get >/dev/null; then
		case $1 in compiler) packages=(gcc libc6-dev) ;; python3) packages=(python3 python3-venv) ;; esac
		"${sudo[@]}" apt-get update -qq &&
			DEBIAN_FRONTEND=noninteractive "${sudo[@]}" apt-get install -y -qq "${packages[@]}"
	elif command -v dnf >/dev/null; then
		case $1 in compiler) packages=(gcc glibc-devel) ;; postgresql) packages=(postgresql-server) ;; esac
		"${sudo[@]}" dnf install -y -q "${packages[@]}"
	elif command -v apk >/dev/null; then
		case $1 in compiler) packages=(gcc musl-dev) ;; postgresql) packages=(postgresql16) ;; python3) packages=(python3 py3-pip) ;; esac
		"${sudo[@]}" apk add -q "${packages[@]}"
	elif command -v brew >/dev/null; then
		case $1 in compiler) packages=(gcc) ;; postgresql) packages=(postgresql@16) ;; chromium) packages=(--cask chromium) ;; npm) packages=(node) ;; esac
		brew install -q "${packages[@]}"
	else
		echo "no known package manager found: install a C compiler, PostgreSQL 14 or newer, Python 3.11 or newer with venv, npm and Chromium by hand" >&2
		return 1
	fi
}
for what in "${missing[@]}"; do
	echo "==> installing a missing prerequisite: $what"
	install "$what" && continue
	[ "$what" = chromium ] || exit 1
	# Some distributions have it elsewhere only.
	echo "==> no Chromium: tests that open pages will be skipped; INLET_CHROME may name another" >&2
done
