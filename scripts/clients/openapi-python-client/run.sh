#!/usr/bin/env bash
# Python: openapi-python-client (httpx, attrs), checked by mypy --strict.
set -euo pipefail
python3 -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' ||
	{ echo "it needs Python 3.11 or newer, with venv"; exit 77; }
if ! cmp -s "$SOURCE/requirements.txt" venv/installed.txt; then
	rm -rf venv
	python3 -m venv venv
	venv/bin/pip install -q --disable-pip-version-check --no-compile --no-deps -r "$SOURCE/requirements.txt" ||
		{ echo "pip cannot install it"; exit "$CANNOT_INSTALL"; }
	cp "$SOURCE/requirements.txt" venv/installed.txt
fi
rm -rf inlet_api
# ruff, which would format what is generated, is not needed.
venv/bin/openapi-python-client generate --path "$DOCUMENT" --meta none --output-path inlet_api --config "$SOURCE/config.yaml"
if grep -nE '^    [a-z_]+: .*\bAny\b' inlet_api/models/*.py | grep -v ': additional_properties:\|:    additional_properties:'; then
	echo "these fields have no type"
	exit 1
fi
cp "$SOURCE/program.py" .
venv/bin/mypy --strict --no-error-summary --follow-imports=silent program.py
venv/bin/python program.py
