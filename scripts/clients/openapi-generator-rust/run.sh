#!/usr/bin/env bash
# Rust: openapi-generator with reqwest, one enum an operation for its answers.
set -euo pipefail
command -v cargo >/dev/null && command -v java >/dev/null && command -v mvn >/dev/null || { echo "it needs cargo, and a JDK with Maven for the generator"; exit 77; }
version=7.25.0
generator=$PWD/openapi-generator-cli-$version.jar
[ -f "$generator" ] || mvn -q -B dependency:copy "-Dartifact=org.openapitools:openapi-generator-cli:$version" -DoutputDirectory="$PWD" ||
	{ echo "Maven cannot install it"; exit "$CANNOT_INSTALL"; }
rm -rf new
java -jar "$generator" generate -i "$DOCUMENT" -g rust -o new \
	--additional-properties=packageName=inlet,packageVersion=0.0.0,supportMultipleResponses=true,supportAsync=false,hideGenerationTimestamp=true \
	--global-property=apiDocs=false,modelDocs=false > generate.log 2>&1 || { cat generate.log; exit 1; }
# Cargo compiles again what is newer, even where it says the same.
diff -rq new inlet >/dev/null 2>&1 || { rm -rf inlet; cp -r new inlet; }
cp "$SOURCE"/Cargo.* .
cp "$SOURCE/main.rs" .
cargo run -q --locked
