#!/bin/sh
# Tries an installed or frozen program from outside its sources: sh packaging/smoke.sh PROGRAM
set -eu
case ${1:?usage: smoke.sh PROGRAM} in
    */*) program=$(cd "$(dirname "$1")" && pwd)/$(basename "$1") ;;
    *) program=$1 ;;
esac
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

fail() { printf 'smoke test: %s\n' "$*" >&2; exit 1; }

"$program" --version | grep -q '^decoderscope [0-9]' || fail "--version does not name the program"
"$program" run --prompt 'The animal' --steps 2 --temperature 0 --json </dev/null >run.json || fail "run failed"
grep -q '"steps"' run.json || fail "run printed no steps"
if "$program" run --model /nonexistent --prompt x </dev/null 2>error.txt; then fail "a missing model is not an error"; fi
grep -q '^error: ' error.txt || fail "a missing model has no error line"
QT_QPA_PLATFORM=offscreen "$program" tour --out out </dev/null || fail "the tour failed"
[ -n "$(find out -name '*.png')" ] || fail "the tour left no picture"
echo "smoke test: $program works"
