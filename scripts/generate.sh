#!/usr/bin/env bash
# Writes gen/ from the document.
set -euo pipefail
cd "$(dirname "$0")/.."
go tool oapi-codegen -config oapi-codegen.yaml openapi/openapi.yaml
go tool oapi-codegen -config openapi/client.yaml openapi/openapi.yaml
go run ./scripts/operations > gen/api/operations.gen.go.new
mv gen/api/operations.gen.go.new gen/api/operations.gen.go
