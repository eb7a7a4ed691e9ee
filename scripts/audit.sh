#!/usr/bin/env bash
# Looks at what bin/inlet is made of: modules are what go.sum says, none has a
# known vulnerability that the binary reaches, licenses fit and are passed on, the
# bill of materials is whole, and building again gives the same bytes.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

echo "==> modules are what go.sum says"
go mod verify
go -C scripts/audit mod verify

echo "==> known vulnerabilities that bin/inlet reaches"
go -C scripts/audit build -o "$work/" golang.org/x/vuln/cmd/govulncheck .
vulnerabilities() { "$work/govulncheck" -mode=binary "$@" bin/inlet >"$work/found" 2>&1; }

# A vulnerability that is planted has to be found, or the answer says nothing.
mkdir -p "$work/planted/index" "$work/planted/ID"
echo '{"modified": "2026-01-01T00:00:00Z"}' >"$work/planted/index/db.json"
echo '[{"path": "github.com/lib/pq", "vulns": [{"id": "GO-0000-0001", "modified": "2026-01-01T00:00:00Z"}]}]' >"$work/planted/index/modules.json"
cat >"$work/planted/ID/GO-0000-0001.json" <<-'END'
	{"schema_version": "1.3.1", "id": "GO-0000-0001", "modified": "2026-01-01T00:00:00Z", "published": "2026-01-01T00:00:00Z",
	 "summary": "planted", "details": "planted", "database_specific": {"url": "https://vuln.example/"}, "affected": [{
	  "package": {"name": "github.com/lib/pq", "ecosystem": "Go"}, "ranges": [{"type": "SEMVER", "events": [{"introduced": "0"}]}],
	  "ecosystem_specific": {"imports": [{"path": "github.com/lib/pq", "symbols": ["NewConfig"]}]}}]}
END
status=0
vulnerabilities -db "file://$work/planted" || status=$?
if [ "$status" -ne 3 ] || ! grep -q GO-0000-0001 "$work/found"; then
	cat "$work/found"
	echo "a planted vulnerability is not found" >&2
	exit 1
fi
echo "planted and found"
status=0
vulnerabilities ${GOVULNDB:+-db "$GOVULNDB"} || status=$?
if [ "$status" -ne 0 ]; then
	# Exit status 3 are findings. A machine without a way to the database, and
	# only that, goes on.
	if [ "$status" -ne 3 ] && grep -qiE 'fetching vulnerabilit|vuln\.go\.dev.*(no such host|dial|lookup|timeout|refused|Forbidden)' "$work/found"; then
		echo "vulnerability database unreachable: nothing was checked against it" >&2
	else
		cat "$work/found"
		exit 1
	fi
else
	cat "$work/found"
fi

echo "==> licenses"
"$work/audit" "$root" licenses "$work/licenses.txt"
cmp -s "$work/licenses.txt" cmd/inlet/licenses.txt || { echo 'cmd/inlet/licenses.txt is stale: run make licenses and commit the result' >&2; exit 1; }

echo "==> bill of materials"
"$work/audit" "$root" sbom bin/inlet >"$work/inlet.cdx.json"
go version -m bin/inlet | awk '$1 == "dep" {print "pkg:golang/" $2 "@" $3}' | sort >"$work/linked"
sed -n 's/.*"purl": "\(pkg:golang\/.*@v.*\)".*/\1/p' "$work/inlet.cdx.json" | sort >"$work/listed"
[ -s "$work/linked" ] && diff "$work/linked" "$work/listed" || { echo "the bill of materials is not what is linked" >&2; exit 1; }
echo "$(wc -l <"$work/listed") modules"

echo "==> building in two other folders gives the same bytes"
for folder in one another/and/deeper; do
	mkdir -p "$work/$folder"
	git ls-files -z -co --exclude-standard | tar --null --ignore-failed-read -cf - -T - 2>/dev/null | tar -xmf - -C "$work/$folder"
	make -s -C "$work/$folder" build REVISION=same
done
sha256sum "$work/one/bin/inlet" "$work/another/and/deeper/bin/inlet" | cut -d' ' -f1 | uniq -c | grep '^ *2 ' ||
	{ echo "the bytes differ" >&2; exit 1; }
