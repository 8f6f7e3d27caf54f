"""A long event in stretches: the same bytes and values as in one piece, and never more of it at once."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import msgspec
import pytest

from model.protocol import in_turns
from model.protocol.framing import FrameDecoder, encode_frame
from model.protocol.in_turns import STRETCH, decode_event, encode_event
from model.protocol.values import Node, SamplerSettings
from model.protocol.wire import event_frame, plain_value, read_value

NODE = Node(
    id=2, parent=1, position=2, token_id=7, piece="·a", logprob=-math.inf, p=1.0, entropy=1.5, draw=0.25, ms=71.25,
    settings=SamplerSettings(seed=2**64 - 1),
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Long:
    text: str
    nodes: tuple[Node, ...] = ()
    after: int = 3


def made(count: int, text: str = '"nodes":[ \\ ü') -> Long:
    return Long(text=text, nodes=tuple(replace(NODE, id=2 + i) for i in range(count)))


@pytest.mark.parametrize("count", [0, 1, STRETCH, STRETCH + 1, 3 * STRETCH - 1])
def test_the_bytes_are_those_of_one_piece_and_read_back(count: int) -> None:
    data = made(count)
    raw = encode_event("e", data, "nodes")
    assert raw == encode_frame(event_frame("e", data))
    assert decode_event(raw, Long, "nodes", list[Node]) == data


def test_no_call_codes_more_than_a_stretch(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes, turns = list[int](), list[float]()

    def read(value: Any, kind: Any) -> Any:
        sizes.append(len(value["nodes"]) if isinstance(value, dict) else len(value))
        return read_value(value, kind)

    def plain(value: Any) -> Any:
        sizes.append(len(value))
        return plain_value(value)

    monkeypatch.setattr(in_turns, "read_value", read)
    monkeypatch.setattr(in_turns, "plain_value", plain)
    monkeypatch.setattr("time.sleep", turns.append)
    raw = encode_event("e", made(10 * STRETCH), "nodes")
    assert len(sizes) == len(turns) == 10 and max(sizes) == STRETCH
    assert decode_event(raw, Long, "nodes", list[Node]) is not None
    assert sizes.count(STRETCH) == 20 and max(sizes) == STRETCH and len(turns) == 21


def test_halves_of_characters_travel_in_one_piece() -> None:
    for data in (made(3, "half \ud83d"), replace(made(0), nodes=(replace(NODE, piece="\ud83d"),))):
        raw = encode_event("e", data, "nodes")
        assert raw == encode_frame(event_frame("e", data))
        [frame] = FrameDecoder().feed(raw)
        assert read_value(frame.header["data"], Long) == data


def test_what_can_not_be_read_so_is_left_to_the_frame() -> None:
    raw = encode_event("e", made(2), "nodes")
    header = msgspec.json.decode(raw[16:])
    others: list[dict[str, Any]] = [
        {**header, "v": 99}, {"v": 1}, {**header, "data": 3}, {**header, "data": {"text": "a"}},
        {**header, "data": {"text": "a", "nodes": [3]}}, {**header, "data": {"nodes": []}},
        {**header, "data": {"text": 5, "nodes": [], "after": "x"}},
    ]  # fmt: skip
    broken = [raw[:-1], raw + b"x", raw[:10], b"", b"XXXX" + raw[4:], raw[:-4] + b"\xff]}}"]
    frames = [msgspec.json.encode(other) for other in others]
    for each in (*broken, *(raw[:4] + len(data).to_bytes(4, "little") + bytes(8) + data for data in frames)):
        assert decode_event(each, Long, "nodes", list[Node]) is None
