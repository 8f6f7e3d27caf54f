"""JSON from files nobody vouches for: bounded size and depth, UTF-8 with or without BOM, no key twice, no NaN."""

from __future__ import annotations

import json
import os
from pathlib import Path

from model.checkpoint.errors import BadFileError
from model.checkpoint.paths import open_regular
from model.checkpoint.sniff import HEAD_BYTES, JSON, UNKNOWN, kind_of
from model.errors import shown

CONFIG_LIMIT = 4 << 20
INDEX_LIMIT = 32 << 20
TOKENIZER_LIMIT = 128 << 20


class _DuplicateKeyError(ValueError):
    def __init__(self, key: str) -> None:
        self.key = key
        super().__init__(f"the key {shown(key)} appears twice")


def unique_pairs(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """For `object_pairs_hook`: refuses a key that appears twice."""
    result = dict(pairs)
    if len(result) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise _DuplicateKeyError(key)
            seen.add(key)
    return result


def _refuse_constant(name: str) -> object:
    raise ValueError(f"{name} is not JSON")


def parse_object(raw: bytes, path: Path, *, what: str, allow_nan: bool = False) -> dict[str, object]:
    """The JSON object in `raw`; BadFileError otherwise. `allow_nan`: real config.json files hold Infinity."""
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadFileError(path, f"{what} is not UTF-8 text", where=f"byte {error.start}") from error
    try:
        constant = None if allow_nan else _refuse_constant
        value = json.loads(text, object_pairs_hook=unique_pairs, parse_constant=constant)
    except RecursionError as error:
        raise BadFileError(path, f"{what} is nested too deeply") from error
    except ValueError as error:
        reason = str(error).splitlines()[0]
        raise BadFileError(path, f"{what} is not valid JSON: {shown(reason, 200)}") from error
    if not isinstance(value, dict):
        raise BadFileError(path, f"{what} is not a JSON object", found=type(value).__name__, expected="an object")
    return value


def read_bytes(path: Path, limit: int) -> bytes:
    """The whole of a regular file of at most `limit` bytes."""
    with open(open_regular(path), "rb") as file:  # noqa: PTH123 - a descriptor
        size = os.fstat(file.fileno()).st_size
        if size > limit:
            raise BadFileError(
                path, "far too large for what it is", found=f"{size} bytes", expected=f"at most {limit} bytes"
            )
        return file.read(size)


def read_object(path: Path, limit: int, *, allow_nan: bool = False) -> dict[str, object]:
    """The JSON object in a file of at most `limit` bytes; BadFileError says what it is instead."""
    raw = read_bytes(path, limit)
    kind = kind_of(raw[:HEAD_BYTES], len(raw), path.name)
    if kind not in {JSON, UNKNOWN}:
        raise BadFileError(path, f"this is {kind.name}", expected="a JSON text", remedy=kind.remedy)
    return parse_object(raw, path, what="the file", allow_nan=allow_nan)
