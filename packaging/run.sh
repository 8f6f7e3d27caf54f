#!/bin/sh
# What `make run` starts: the window; where there is no display, the same main job in an offscreen window.
set -eu
cd "$(dirname "$0")/.."
program=.venv/bin/python

if [ "$(uname -s)" = Linux ] && [ -z "${DISPLAY:-}" ] && [ -z "${WAYLAND_DISPLAY:-}" ]; then
    export QT_QPA_PLATFORM="${QT_QPA_PLATFORM:-offscreen}"
    if [ $# = 0 ]; then
        echo "There is no display here (neither DISPLAY nor WAYLAND_DISPLAY is set):" \
            "walking the main job in an offscreen window instead; screenshots and exports go to out/."
        set -- tour --out out/
    fi
fi
exec "$program" -P -m app "$@"
