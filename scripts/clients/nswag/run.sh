#!/usr/bin/env bash
# NSwag from npm, where .NET is there to run it. Nothing uses what it makes.
set -euo pipefail
command -v npm >/dev/null && command -v dotnet >/dev/null || { echo "it needs npm and .NET 8 or newer"; exit 77; }
[ -d node_modules/nswag ] || npm install --silent --no-save --no-audit --no-fund nswag@14.7.1 || { echo "npm cannot install it"; exit "$CANNOT_INSTALL"; }
node_modules/.bin/nswag openapi2csclient "/input:$DOCUMENT" /output:Inlet.cs /namespace:Inlet
test -s Inlet.cs
echo "generated, not compiled"
