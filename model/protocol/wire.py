"""What a frame says: requests, replies, parts, progress, errors, cancels, events.

A request is a frozen dataclass registered with `@request("area.verb", Reply)`. Its fields travel as `params`, its
reply's fields as `result`; arrays travel beside either and are named in the request's docstring.

header of a request   {v, id, method, params, slot?, priority?}     app → engine
          a cancel    {v, cancel: id}                                app → engine
          an ack      {v, ack: id, seq}                              app → engine (one part of a file was written)
          a reply     {v, id, result, at?}                           engine → app, ends the request
          an error    {v, id, error: {code, message, details}}       engine → app, ends the request
          a part      {v, id, seq, part, at?}                        engine → app, any number before the reply
          progress    {v, id, progress: {what, done, total, unit}}   engine → app, any number before the reply
          an event    {v, event, data}                               engine → app, unasked

`slot`: a newer request with the same slot replaces an older one that has not started (it ends with error code
`superseded`). `priority`: "interactive" requests are served before "background" ones. `at`: [run, node] where the run
was when a view was answered: steps and seeks overtake views, so it need not be where it was when the view was asked.
JSON has no NaN and no infinities: they travel as the strings "nan", "inf" and "-inf", and come back as numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, TypeVar

import msgspec

from model.errors import DecoderscopeError, UnknownNameError
from model.protocol.framing import PROTOCOL_VERSION, Arrays, Frame, ProtocolError, brief

Lane = Literal["model", "view", "light"]
"""Who serves a request: `model` waits its turn on the compute thread, `view` is also served between the layers of a
running one, `light` runs on a thread of its own and touches no weights."""

Priority = Literal["interactive", "background"]
Place = tuple[int, int]
"""Where a run is: its id, and the node it is at."""


@dataclass(frozen=True, kw_only=True)
class Request:
    """Base of every request; `method`, `lane` and `reply` are set by the decorator."""

    method: ClassVar[str] = ""
    lane: ClassVar[Lane] = "model"
    reply: ClassVar[type]
    part: ClassVar[type | None] = None


@dataclass(frozen=True, kw_only=True)
class Empty:
    """A reply that says nothing but "done"."""


@dataclass(frozen=True, kw_only=True)
class Progress:
    """How far a long request is: `done` of `total` `unit`s (total 0: unknown) of `what`."""

    what: str
    done: int
    total: int
    unit: str


@dataclass(frozen=True, kw_only=True)
class ErrorInfo:
    """A refusal or failure, as it is shown: `message` is a whole sentence, `code` its kind, `details` may be copied."""

    code: str
    message: str
    details: str = ""

    @classmethod
    def of(cls, error: DecoderscopeError, details: str = "") -> ErrorInfo:
        return cls(code=error.code, message=str(error), details=details)


class SupersededError(DecoderscopeError):
    """A newer request with the same slot arrived before this one started."""

    code = "superseded"

    def __init__(self) -> None:
        super().__init__("A newer request of the same kind took this one's place.")


REQUESTS: dict[str, type[Request]] = {}
R = TypeVar("R", bound=Request)
T = TypeVar("T")


def request(
    method: str, reply: type, *, lane: Lane = "model", part: type | None = None
) -> Callable[[type[R]], type[R]]:
    """Registers a request dataclass under its wire name."""

    def register(cls: type[R]) -> type[R]:
        if method in REQUESTS:
            raise ValueError(f"{method} is registered twice")
        cls.method, cls.lane, cls.reply, cls.part = method, lane, reply, part
        REQUESTS[method] = cls
        return cls

    return register


def request_frame(
    request_id: int,
    message: Request,
    *,
    slot: str | None = None,
    priority: Priority = "interactive",
    arrays: Arrays | None = None,
) -> Frame:
    """The frame that asks `message`; its answers carry `request_id`."""
    header: dict[str, Any] = {
        "v": PROTOCOL_VERSION,
        "id": request_id,
        "method": message.method,
        "params": plain_value(message),
        "priority": priority,
    }
    if slot is not None:
        header["slot"] = slot
    return Frame(header=header, arrays=arrays or {})


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A request as the engine reads it."""

    id: int
    message: Request
    slot: str | None
    priority: Priority
    arrays: Arrays = field(default_factory=dict)


# msgspec itself stumbles over half of a surrogate pair where a number should be, and over what is nested too deeply.
_UNREADABLE = (msgspec.ValidationError, UnicodeError, OverflowError, RecursionError)


class BadRequestError(DecoderscopeError):
    """A frame that is well formed and asks something this engine cannot understand; the stream goes on."""

    code = "bad_request"


def read_request(frame: Frame) -> Asked:
    """The request in a frame. Raises ProtocolError without a usable id, else BadRequestError or UnknownNameError."""
    header = frame.header
    request_id = header.get("id")
    if not isinstance(request_id, int) or isinstance(request_id, bool):
        raise ProtocolError(f"A request's id is {brief(request_id)}, expected a whole number.")
    method = header.get("method")
    if not isinstance(method, str) or method not in REQUESTS:
        raise UnknownNameError("request", brief(method).strip("'"), REQUESTS)
    slot, priority = header.get("slot"), header.get("priority", "interactive")
    if not (slot is None or isinstance(slot, str)) or priority not in ("interactive", "background"):
        raise BadRequestError(f"{method}: slot {brief(slot)} or priority {brief(priority)} is not understood.")
    try:
        message = msgspec.convert(header.get("params", {}), REQUESTS[method], strict=False)
    except _UNREADABLE as error:
        raise BadRequestError(f"{method}: {error}") from error
    return Asked(id=request_id, message=message, slot=slot, priority=priority, arrays=frame.arrays)


def reply_frame(request_id: int, result: object, arrays: Arrays | None = None, *, at: Place | None = None) -> Frame:
    """The answer that ends a request."""
    return _answer(request_id, "result", result, arrays, at)


def part_frame(
    request_id: int, seq: int, part: object, arrays: Arrays | None = None, *, at: Place | None = None
) -> Frame:
    """A piece of an answer, before the reply; `seq` counts from 0."""
    frame = _answer(request_id, "part", part, arrays, at)
    frame.header["seq"] = seq
    return frame


def read_place(value: object) -> Place | None:
    """The `at` of a header; None where there is none, or none that can be read."""
    good = isinstance(value, list | tuple) and len(value) == 2 and all(type(each) is int for each in value)
    return (value[0], value[1]) if good else None  # type: ignore[index] # checked above


def progress_frame(request_id: int, progress: Progress) -> Frame:
    """How far a request is."""
    return _answer(request_id, "progress", progress, None)


def error_frame(request_id: int | None, error: ErrorInfo) -> Frame:
    """An error that ends request `request_id`, or, with None, one about the stream itself."""
    return Frame(header={"v": PROTOCOL_VERSION, "id": request_id, "error": msgspec.to_builtins(error)})


def event_frame(event: str, data: object) -> Frame:
    """Something said unasked (model/protocol/events.py)."""
    return Frame(header={"v": PROTOCOL_VERSION, "event": event, "data": plain_value(data)})


def cancel_frame(request_id: int) -> Frame:
    """Asks that a request be given up; it ends with error code `cancelled` unless its reply was faster."""
    return Frame(header={"v": PROTOCOL_VERSION, "cancel": request_id})


def ack_frame(request_id: int, seq: int) -> Frame:
    """Says that part `seq` of a file was taken care of."""
    return Frame(header={"v": PROTOCOL_VERSION, "ack": request_id, "seq": seq})


def _answer(request_id: int, key: str, value: object, arrays: Arrays | None, at: Place | None = None) -> Frame:
    header = {"v": PROTOCOL_VERSION, "id": request_id, key: plain_value(value)}
    if at is not None:
        header["at"] = list(at)
    return Frame(header=header, arrays=arrays or {})


def read_value(value: object, kind: type[T]) -> T:
    """The result, part, progress, error or event data of a frame as its dataclass. Raises BadRequestError."""
    try:
        return msgspec.convert(value, kind, strict=False)
    except _UNREADABLE as error:
        raise BadRequestError(f"{kind.__name__}: {error}") from error


def plain_value(value: object) -> Any:
    """A value as JSON has it."""
    return _spell_out(msgspec.to_builtins(value))


def _spell_out(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, dict):
        return {key: _spell_out(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_spell_out(item) for item in value]
    return value
