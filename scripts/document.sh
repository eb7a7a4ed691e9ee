#!/usr/bin/env bash
# Holds openapi/openapi.yaml to what linters know of good documents, and to the
# version that was published last: within v1 there are only additions.
set -euo pipefail
cd "$(dirname "$0")/.."

linters=scripts/document
installed=$linters/node_modules/.package-lock.json
if [ ! -e "$installed" ] || [ $linters/package-lock.json -nt "$installed" ]; then
	echo "==> installing the linters of the document"
	npm --prefix $linters ci --prefer-offline --no-progress --loglevel=error
	touch "$installed"
fi
# The Node that came with them, where there is one for this machine.
for node in "$PWD/$linters"/node_modules/node-*/bin; do
	[ ! -x "$node/node" ] || PATH=$node:$PATH
done
export PATH REDOCLY_TELEMETRY=off REDOCLY_SUPPRESS_UPDATE_NOTICE=true

echo "==> Redocly, recommended-strict"
$linters/node_modules/.bin/redocly lint --config $linters/redocly.yaml openapi/openapi.yaml
echo "==> Spectral, OpenAPI and OWASP"
$linters/node_modules/.bin/spectral lint --ruleset $linters/spectral.yaml --fail-severity hint openapi/openapi.yaml

# Codes, extensible values, scopes and caps, of which oasdiff knows nothing, are
# compared by a test beside the document.
echo "==> oasdiff, since the last published version"
go tool -modfile=$linters/go.mod oasdiff breaking --fail-on WARN --severity-levels $linters/oasdiff-levels.txt \
	openapi/published.yaml openapi/openapi.yaml
