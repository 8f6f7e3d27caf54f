"""Damage that finds bugs: to bytes (flips, cuts, copies, extreme numbers) and to the structure of JSON."""

from __future__ import annotations

import copy
import json
import struct
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

EXTREMES = (0, 1, 7, 127, 255, 2**16, 2**31 - 1, 2**31, 2**32 - 1, 2**40, 2**63 - 1, 2**63, 2**64 - 1)
_DEEP: Any = json.loads("[" * 400 + "]" * 400)
HOSTILE: tuple[Any, ...] = (
    None, True, False, -1, 0, 1, 3, 2**31, 2**63, 2**64, 10**40, 0.5, 1e308, -1e308, float("nan"), float("inf"),
    "", "x", "7", "../../../etc/passwd", "/dev/zero", "a\0b", "\ud800", "<b>\u202e", "9" * 3000, "(a+)+$" * 3,
    [], {}, [[]], [1, 2, 3], [None], ["a", "a"], {"a": {"b": []}}, _DEEP, list(range(3000)),
    {str(n): n for n in range(500)},
)  # fmt: skip


def damaged_bytes(draw: Callable[[st.SearchStrategy[Any]], Any], raw: bytes, *, within: int = 1 << 40) -> bytes:
    """`raw` after one to five changes, the first byte of each within the first `within` bytes."""
    data = bytearray(raw)
    for _ in range(draw(st.integers(1, 5))):
        at = draw(st.integers(0, max(0, min(len(data), within) - 1)))
        span = draw(st.integers(1, 40))
        act = draw(st.sampled_from(("set", "flip", "cut", "drop", "copy", "insert", "u32", "u64")))
        if act == "set":
            data[at : at + 1] = bytes([draw(st.integers(0, 255))])
        elif act == "flip" and at < len(data):
            data[at] ^= 1 << draw(st.integers(0, 7))
        elif act == "cut":
            del data[at:]
        elif act == "drop":
            del data[at : at + span]
        elif act == "copy":
            data[at:at] = data[at : at + span]
        elif act == "insert":
            data[at:at] = draw(st.binary(max_size=16))
        elif act == "u32":
            data[at : at + 4] = struct.pack("<I", draw(st.sampled_from(EXTREMES)) & 0xFFFFFFFF)
        elif act == "u64":
            data[at : at + 8] = struct.pack("<Q", draw(st.sampled_from(EXTREMES)))
    return bytes(data)


def damaged_json(draw: Callable[[st.SearchStrategy[Any]], Any], value: Any) -> bytes:
    """The text of `value` after one to four changes of its structure; now and then a few bytes of it too."""
    value = copy.deepcopy(value)
    doubled = False
    for _ in range(draw(st.integers(1, 4))):
        holder, key = _somewhere(draw, value)
        if holder is None:
            continue
        act = draw(st.sampled_from(("replace", "replace", "replace", "delete", "rename", "wrap", "double")))
        if act == "delete":
            del holder[key]
        elif act == "rename" and isinstance(holder, dict):
            holder[draw(st.sampled_from(("", "x", "\0", "__class__", "a.b", str(key).upper())))] = holder.pop(key)
        elif act == "wrap":
            holder[key] = [holder[key]]
        elif act == "double":
            doubled = True
        else:
            holder[key] = copy.deepcopy(draw(st.sampled_from(HOSTILE)))
    text = json.dumps(value)
    if doubled and text.startswith("{") and len(text) > 2:
        text = text[:-1] + ", " + text[1:]
    raw = text.encode()
    return damaged_bytes(draw, raw) if draw(st.integers(0, 5)) == 0 else raw


def _somewhere(draw: Callable[[st.SearchStrategy[Any]], Any], value: Any) -> tuple[Any, Any]:
    holder, key = None, None
    while isinstance(value, dict | list) and value:
        keys = list(value) if isinstance(value, dict) else range(len(value))
        holder, key = value, keys[draw(st.integers(0, len(keys) - 1))]
        value = value[key]
        if draw(st.integers(0, 2)) == 0:
            break
    return holder, key
