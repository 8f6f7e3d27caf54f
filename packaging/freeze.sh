#!/bin/sh
# Builds the frozen application, dist/decoderscope/, and tries it: sh packaging/freeze.sh
# It runs without Python, pip or this clone; only the default model is fetched by `make` beforehand.
set -eu
cd "$(dirname "$0")/.."
sh packaging/setup.sh run

python=.venv/bin/python
site=$PWD/build/frozen/site
rm -rf build/frozen dist/decoderscope
"$python" -m pip install --quiet --disable-pip-version-check --constraint packaging/constraints.txt pyinstaller
"$python" -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --target "$site" .
DECODERSCOPE_SITE=$site "$python" -P -m PyInstaller --noconfirm --log-level WARN \
    --workpath build/frozen/work --distpath dist packaging/decoderscope.spec
sh packaging/smoke.sh dist/decoderscope/decoderscope
