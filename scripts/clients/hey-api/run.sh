#!/usr/bin/env bash
# TypeScript: @hey-api/openapi-ts with its fetch client, on Node 22 from npm.
set -euo pipefail
command -v npm >/dev/null || { echo "it needs npm"; exit 77; }
if ! cmp -s "$SOURCE/package-lock.json" node_modules/installed.json; then
	cp "$SOURCE"/package*.json .
	npm ci --no-audit --no-fund --silent || { echo "npm cannot install it"; exit "$CANNOT_INSTALL"; }
	node_modules/.bin/node --version || { echo "npm has no Node 22 for this machine"; exit 77; }
	cp "$SOURCE/package-lock.json" node_modules/installed.json
fi
export PATH=$PWD/node_modules/.bin:$PATH
cp "$SOURCE"/{package,tsconfig}.json "$SOURCE/program.ts" "$SOURCE/../checks.ts" .
rm -rf inlet
openapi-ts -i "$DOCUMENT" -o inlet -c @hey-api/client-fetch
tsc -p .
node out/program.js
