#!/usr/bin/env bash
# Kiota, where it is installed: it is published as a .NET tool and as programs on
# GitHub, and its npm package fetches one of those. Nothing uses what it makes.
set -euo pipefail
kiota=$(command -v kiota || true)
[ -n "$kiota" ] || { echo "it needs kiota on PATH"; exit 77; }
rm -rf inlet
"$kiota" generate --openapi "$DOCUMENT" --language typescript --output inlet --class-name Inlet --clean-output --log-level Warning
test -s inlet/inlet.ts
echo "generated, not compiled"
