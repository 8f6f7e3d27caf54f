"""An event with one very long tuple, as bytes and back, a stretch at a time: a thread that does so lets the others go
on in between. Megabytes of JSON in one piece hold the interpreter, and so a window, for 50 ms.
"""

from __future__ import annotations

import time
from dataclasses import Field, replace
from typing import Any, ClassVar, Protocol, TypeVar

import msgspec

from model.errors import DecoderscopeError
from model.protocol.framing import PROTOCOL_VERSION, encode_frame, pack_frame, unpack_frame
from model.protocol.wire import event_frame, plain_value, read_value


class Dataclass(Protocol):
    """What `dataclasses.replace` takes."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]


T = TypeVar("T", bound=Dataclass)

STRETCH = 250
"""Items in one piece, half a millisecond of a run's nodes."""
Parts = dict[str, msgspec.Raw]


def encode_event(event: str, data: Dataclass, field: str) -> bytes:
    """The bytes of `encode_frame(event_frame(event, data))`; `field` names the long tuple. Raises ProtocolError."""
    items, parts = getattr(data, field), list[bytes]()
    header = event_frame(event, replace(data, **{field: ()})).header
    try:
        for at in range(0, len(items), STRETCH):
            parts.append(msgspec.json.encode(plain_value(items[at : at + STRETCH]))[1:-1])
            _let_others()
        header["data"][field] = msgspec.Raw(b"[" + b",".join(parts) + b"]")
        return pack_frame(msgspec.json.encode(header))
    except UnicodeEncodeError:  # halves of surrogate pairs: the frame knows how
        return encode_frame(event_frame(event, data))


def decode_event(raw: bytes, kind: type[T], field: str, stretch: type[list[Any]]) -> T | None:
    """The data of the one event in `raw`; `stretch`: a list of what the long tuple `field` holds. None where it can't
    be read so: reading it whole says why, or knows how."""
    try:
        header = msgspec.json.decode(unpack_frame(raw), type=Parts)
        if msgspec.json.decode(header["v"]) != PROTOCOL_VERSION:
            return None
        data = msgspec.json.decode(header["data"], type=Parts)
        _let_others()
        items, found = msgspec.json.decode(data.pop(field), type=list[msgspec.Raw]), list[Any]()
        rest = {name: msgspec.json.decode(value) for name, value in data.items()}
        for at in range(0, len(items), STRETCH):
            _let_others()
            part = msgspec.json.decode(b"[" + b",".join(items[at : at + STRETCH]) + b"]")
            found += read_value(part, stretch)
        return replace(read_value({**rest, field: ()}, kind), **{field: tuple(found)})
    except (msgspec.MsgspecError, DecoderscopeError, KeyError, ValueError, RecursionError):
        return None


def _let_others() -> None:
    """A turn for whoever waits for the interpreter, of which they would have none within a call of msgspec."""
    time.sleep(0)
