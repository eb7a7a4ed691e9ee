#!/usr/bin/env bash
# TypeScript: openapi-typescript with openapi-fetch, run by Node 20 or newer.
set -euo pipefail
command -v npm >/dev/null || { echo "it needs Node 20 or newer, with npm"; exit 77; }
if ! cmp -s "$SOURCE/package-lock.json" node_modules/installed.json; then
	cp "$SOURCE"/package*.json .
	npm ci --no-audit --no-fund --silent || { echo "npm cannot install it"; exit "$CANNOT_INSTALL"; }
	cp "$SOURCE/package-lock.json" node_modules/installed.json
fi
cp "$SOURCE"/{package,tsconfig}.json "$SOURCE/program.ts" "$SOURCE/../checks.ts" .
# A parameter with a default may be left out, so a caller need not give it.
node_modules/.bin/openapi-typescript "$DOCUMENT" -o inlet.d.ts --default-non-nullable false
node_modules/.bin/tsc -p .
node out/program.js
