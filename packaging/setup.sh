#!/bin/sh
# Makes this clone ready: sh packaging/setup.sh run|dev|long
#   run  what the program needs: .venv, pinned packages, system libraries, the default model
#   dev  the same, and what the tests and `make check` need
#   long the same, and what only `make test-long` needs
# Everything is looked at before anything is done; with nothing missing it takes well under a second.
set -eu
cd "$(dirname "$0")/.."

level=${1:?usage: setup.sh run|dev|long}
system=$level
[ "$level" != long ] || level=dev
venv=.venv
python=$venv/bin/python
constraints=packaging/constraints.txt

say() { printf 'set-up: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

# --- system packages -------------------------------------------------------------------------------------------------

loader_cache() { PATH="$PATH:/sbin:/usr/sbin" ldconfig -p 2>/dev/null || true; }

is_there() { # PROBE, as in system-packages.txt
    case $1 in
        lib:*) case $libraries in *"${1#lib:} "*) return 0 ;; *) return 1 ;; esac ;;
        cmd:*) command -v "${1#cmd:}" >/dev/null 2>&1 ;;
        file:*) [ -e "${1#file:}" ] ;;
        *) die "packaging/system-packages.txt: unknown probe $1" ;;
    esac
}

missing_packages() {
    while read -r when package probe; do
        case $when in
            run) ;;
            test) [ "$level" = dev ] || continue ;;
            long) [ "$system" = long ] || continue ;;
            *) continue ;;
        esac
        is_there "$probe" || printf '%s ' "$package"
    done <packaging/system-packages.txt
}

install_packages() { # PACKAGE...; true when apt-get could be used and succeeded
    [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1 || return 1
    say "installing system packages: $*"
    log=$(mktemp)
    if { apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$@"; } \
        >"$log" 2>&1 </dev/null; then
        rm -f "$log"
        return 0
    fi
    tail -n 3 "$log" >&2
    rm -f "$log"
    return 1
}

system_packages() {
    [ "$(uname -s)" = Linux ] || return 0
    libraries=$(loader_cache)
    # Without a loader cache (musl, Nix) libraries can't be asked for; Qt itself names the one it misses.
    [ -n "$libraries" ] || return 0
    missing=$(missing_packages)
    [ -n "$missing" ] || return 0
    # shellcheck disable=SC2086  # a list of names, split on purpose
    install_packages $missing || say "going on without these system packages; install them with: sudo apt-get install $missing"
}

# --- Python ----------------------------------------------------------------------------------------------------------

is_python() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; }

find_python() {
    for name in "${PYTHON:-python3}" python3.13 python3.12 python3.11 python3.14; do
        if is_python "$name"; then
            echo "$name"
            return 0
        fi
    done
    found=$("${PYTHON:-python3}" --version 2>/dev/null || echo 'no Python 3')
    die "Python 3.11 or newer is needed and ${found} was found; install one, or name it: make PYTHON=/path/to/python3"
}

virtual_environment() {
    if [ -x "$python" ] && is_python "$python"; then return 0; fi
    base=$(find_python)
    if ! "$base" -c 'import ensurepip, venv' >/dev/null 2>&1; then
        version=$("$base" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
        install_packages "python$version-venv" ||
            die "$base has no venv or ensurepip module; install them with: sudo apt-get install python$version-venv"
    fi
    say "making $venv with $("$base" --version)"
    rm -rf "$venv"
    "$base" -m venv "$venv"
}

wanted() { # what an installation depends on: the pins and the project's own table
    { cat "$constraints"; sed '/^\[tool\.ruff/,$d' pyproject.toml; } | cksum
}

pip_install() {
    # Called through the interpreter, so that a clone that has been moved still works.
    "$python" -m pip install --disable-pip-version-check --constraint "$constraints" "$@"
}

quietly() { # COMMAND...; a terminal sees it at work, a log only sees what went wrong
    if [ -t 2 ]; then "$@" >&2; return; fi
    log=$venv/pip.log
    "$@" >"$log" 2>&1 </dev/null || { tail -n 20 "$log" >&2; return 1; }
}

python_packages() {
    now=$(wanted)
    for stamp in "$venv/.ready-dev" "$venv/.ready-$level"; do
        if [ "$(cat "$stamp" 2>/dev/null)" = "$now" ]; then return 0; fi
    done
    target=.
    [ "$level" = run ] || target=.[dev]
    if [ -e "$venv/.ready-run" ] || [ -e "$venv/.ready-dev" ]; then
        say "bringing the packages in $venv up to date"
    else
        say "installing the pinned packages into $venv (about 1.5 GB, once; minutes on a slow line)"
    fi
    quietly pip_install setuptools || die "pip could not install the pinned packages (see above)"
    quietly pip_install --no-build-isolation --editable "$target" ||
        die "pip could not install the pinned packages (see above)"
    printf '%s\n' "$now" >"$venv/.ready-$level"
}

# --- the default model -----------------------------------------------------------------------------------------------

default_model() {
    "$python" -P -m model models where default >/dev/null 2>&1 </dev/null ||
        say "fetching the default model and preparing it for fast opening (a download of 93 MB, 640 MB in the cache folder; once)"
    "$python" -P -m model models get default >/dev/null </dev/null ||
        die "the default model is not there (see above); run make again to go on"
}

system_packages
virtual_environment
python_packages
default_model
