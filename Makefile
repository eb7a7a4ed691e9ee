# Everything a person does with this checkout. `make` alone explains itself.

.DEFAULT_GOAL := help
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
# Race detection needs a C compiler, which scripts/tools.sh sees to.
export CGO_ENABLED ?= 1
LINT := go tool -modfile=scripts/lint/go.mod golangci-lint

.PHONY: help
help: ## Show this list
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# The same source built with the same Go gives the same bytes, wherever it stands.
REVISION ?= $(shell git describe --always --abbrev=40 --dirty 2>/dev/null || echo unknown)

.PHONY: build
build: ## Build bin/inlet
	CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags '-X github.com/inletdev/inlet/impl.source=$(REVISION)' -o bin/inlet ./cmd/inlet

.PHONY: run
run: build ## Serve a demo workspace on a private PostgreSQL and print a key and a curl line
	@scripts/run.sh

.PHONY: test
test: tools verify lint audit document contract ## Everything CI runs: generated files, lint, the document, fuzzing, clients, and all tests
	@echo "==> clients that generators make of the document, against the server"
	@scripts/clients/run.sh oapi-codegen openapi-python-client openapi-typescript
	@echo "==> tests, with the race detector, on a real PostgreSQL"
	@# -count=1: black-box tests depend on a binary that the test cache knows nothing of
	go tool gotestsum --format pkgname-and-test-fails -- -race -count=1 -timeout 30m ./...

.PHONY: lint
lint: ## Check style and common mistakes
	@echo "==> lint"
	$(LINT) run ./...

.PHONY: audit
audit: build ## Look for known vulnerabilities, licenses that do not fit, and builds that differ
	@scripts/audit.sh

.PHONY: sbom
sbom: build ## Write bin/inlet.cdx.json, the bill of materials of bin/inlet (CycloneDX)
	go -C scripts/audit run . "$(CURDIR)" sbom bin/inlet >bin/inlet.cdx.json

.PHONY: licenses
licenses: ## Write what inlet licenses prints from the licenses of all that is in the binary
	go -C scripts/audit run . "$(CURDIR)" licenses cmd/inlet/licenses.txt

.PHONY: document
document: tools ## Hold the document to linters and to the version published last
	@scripts/document.sh

.PHONY: contract
contract: tools build ## Fuzz the running server: the same requests every time, for half a minute
	@echo "==> contract fuzzing"
	@scripts/contract.sh

.PHONY: contract-long
contract-long: tools build ## Fuzz it for hours, with other requests each time; SEED and EXAMPLES choose
	@scripts/contract.sh long

.PHONY: fuzz
fuzz: ## Fuzz every parser, FUZZTIME (10m) each; what is found is kept as a test
	@scripts/fuzz.sh

.PHONY: alerts
alerts: ## Hold alerts and dashboard to Prometheus's own parser, and try each alert; builds promtool where there is none
	@scripts/monitoring.sh

.PHONY: generate
generate: ## Write gen/ from the document and the golden files from the code
	scripts/generate.sh
	go test ./db -run Golden -update

.PHONY: verify
verify: ## Fail when a generated or golden file is stale
	@echo "==> generated files are what the document says"
	scripts/generate.sh
	@git diff --exit-code --stat -- 'gen/*.gen.go' || { echo 'gen/ is stale: run make generate and commit the result'; exit 1; }
	@echo "==> golden files are what the code makes"
	go test ./db -run Golden

.PHONY: clients
clients: build ## Generate clients with every generator, type-check them, and run them against the server
	@scripts/clients/run.sh

.PHONY: chaos
chaos: ## Kill, stop, fill and cut off what the server stands on, and see that no answer was a lie; ten minutes
	go test -race -count=1 -timeout 40m ./impl/chaos -v -chaos.rounds 1

.PHONY: bench
bench: build ## Measure the running server against what the same PostgreSQL can do; a quarter of an hour
	go run ./scripts/bench

.PHONY: scale
scale: ## Run the suites on a Citus cluster, where the machine has the extension
	@scripts/scale.sh

.PHONY: tools
tools: ## Install what building and testing need beyond Go
	@scripts/tools.sh
