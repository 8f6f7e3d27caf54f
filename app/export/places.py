"""Where files go that a person named: what was typed may name no place at all."""

from __future__ import annotations

import os
from pathlib import Path

from app.i18n import tr
from model.protocol.errors import DecoderscopeError, shown


class NoSuchUserError(DecoderscopeError):
    """A path that begins with ~ and a name nobody has."""

    code = "no_such_user"

    def __init__(self, path: str) -> None:
        name = shown(path.partition("/")[0])
        super().__init__(tr("{name}: there is no such user, or none with a folder. Choose another place.", name=name))


def typed_path(text: str) -> Path:
    """`text` as a path, ~ as the home folder. Raises NoSuchUserError."""
    try:
        return Path(text).expanduser()
    except RuntimeError as error:
        raise NoSuchUserError(text) from error


def is_there(path: Path) -> bool:
    """Whether something has this name. Nothing has one that no system takes: too long, a NUL, half a character."""
    return os.path.exists(path)  # noqa: PTH110 - the method raises
