#!/usr/bin/env bash
# Java: openapi-generator with its default library, OkHttp and Gson, compiled by
# javac. (Its library "native" does not do: it takes a number for a text too, and
# so cannot read the properties of an event.)
set -euo pipefail
command -v javac >/dev/null && command -v mvn >/dev/null || { echo "it needs a JDK, 17 or newer, and Maven"; exit 77; }
version=7.25.0
generator=$PWD/openapi-generator-cli-$version.jar
[ -f "$generator" ] || mvn -q -B dependency:copy "-Dartifact=org.openapitools:openapi-generator-cli:$version" -DoutputDirectory="$PWD" ||
	{ echo "Maven cannot install it"; exit "$CANNOT_INSTALL"; }
rm -rf inlet out
# New values and fields of a later server must stop nobody.
java -jar "$generator" generate -i "$DOCUMENT" -g java --library okhttp-gson -o inlet \
	--additional-properties=invokerPackage=inlet,apiPackage=inlet.api,modelPackage=inlet.model,enumUnknownDefaultCase=true,disallowAdditionalPropertiesIfNotPresent=false,useJakartaEe=true,hideGenerationTimestamp=true \
	--global-property=apiTests=false,modelTests=false,apiDocs=false,modelDocs=false > generate.log 2>&1 || { cat generate.log; exit 1; }
if ! cmp -s inlet/pom.xml pom.xml; then
	mvn -q -B -f inlet/pom.xml dependency:build-classpath -Dmdep.outputFile="$PWD/classpath"
	cp inlet/pom.xml pom.xml
fi
find inlet/src/main/java -name '*.java' > sources
javac -nowarn -Xlint:none -d out -cp "$(cat classpath)" @sources "$SOURCE/Program.java"
java -cp "out:$(cat classpath)" Program
