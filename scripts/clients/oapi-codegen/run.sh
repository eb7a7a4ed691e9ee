#!/usr/bin/env bash
# Go: the client that this repository publishes, made of the published document.
set -euo pipefail
work=$PWD
cd "$SOURCE/../../.."
# At its version in go.mod. What the server publishes makes what is committed.
sed "s|gen/client/client.gen.go|$work/client.gen.go|" openapi/client.yaml > "$work/client.yaml"
go tool oapi-codegen -config "$work/client.yaml" "$DOCUMENT"
cmp "$work/client.gen.go" gen/client/client.gen.go
go run ./scripts/clients/oapi-codegen
