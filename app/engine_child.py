"""The engine's process itself: how it is started, and what is said of how it ended."""

from __future__ import annotations

import contextlib
import os
import site
import socket
import sys
from pathlib import Path

from PySide6.QtCore import QProcessEnvironment

from app.i18n import tr
from model import protocol
from model.protocol.events import WeightsMapped, cut_words


def default_command() -> list[str]:
    """This installation's own engine; -P keeps a `model` folder in the user's directory from being run instead."""
    if getattr(sys, "frozen", False):
        return [sys.executable, "engine"]
    return [sys.executable, "-P", "-m", "model", "engine"]


def child_environment() -> QProcessEnvironment:
    """Ours; and from a source tree, where nothing is installed, the way to it."""
    environment = QProcessEnvironment.systemEnvironment()
    root = Path(protocol.__file__).resolve().parents[2]
    installed = {Path(folder).resolve() for folder in (*site.getsitepackages(), site.getusersitepackages())}
    if not getattr(sys, "frozen", False) and root not in installed:
        others = environment.value("PYTHONPATH", "")
        environment.insert("PYTHONPATH", os.pathsep.join(filter(None, (str(root), others))))
    return environment


def end_sentence(name: str, exit_code: int, mapped: WeightsMapped | None) -> str:
    """Why an engine ended: by the signal `name`, else with `exit_code`. `mapped`: its weights."""
    if name == "SIGBUS" and mapped is not None and (words := _cut(mapped)):
        return words
    if name == "SIGKILL":
        return tr("The engine was killed (SIGKILL), as happens when the machine runs out of memory.")
    if name:
        return tr("The engine crashed ({signal}).", signal=name)
    return tr("The engine ended by itself (exit code {code}).", code=exit_code)


def _cut(mapped: WeightsMapped) -> str:
    """Says that the file was cut, where it was: reading on then ends a process by SIGBUS. Empty where it was not, or
    is another machine's."""
    found = Path(mapped.path)
    if mapped.host != socket.gethostname():
        return ""
    with contextlib.suppress(OSError, ValueError):
        if (size := found.stat().st_size) < mapped.bytes:
            return cut_words(mapped.path, found=size, expected=mapped.bytes)
    return ""
