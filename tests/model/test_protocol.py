"""Frames and the envelope: round trips, cuts anywhere, and what a bad stream gets."""

from __future__ import annotations

import struct
import subprocess
import sys

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.errors import BadValueError, DecoderscopeError, UnknownNameError
from model.protocol import framing, wire
from model.protocol.attention_requests import GetMatrix, HeadView
from model.protocol.run_requests import PromptStatsReply, Step, Tokenize
from model.protocol.values import MemoryInfo, SamplerSettings


def _frame() -> framing.Frame:
    message = GetMatrix(view=HeadView(layer=13, head="mean"), rows=(0, 19))
    return wire.request_frame(7, message, slot="attention", arrays={"x": np.arange(6, dtype=np.float32).reshape(2, 3)})


@given(st.lists(st.integers(1, 400), max_size=8))
def test_a_stream_cut_anywhere_gives_the_same_frames(cuts: list[int]) -> None:
    data = framing.encode_frame(_frame()) * 2
    decoder, frames, start = framing.FrameDecoder(), [], 0
    for end in [*np.cumsum(cuts).tolist(), len(data)]:
        frames += decoder.feed(data[start:end])
        start = max(start, min(int(end), len(data)))
    assert len(frames) == 2 and decoder.pending == 0
    for frame in frames:
        asked = wire.read_request(frame)
        assert asked.id == 7 and asked.slot == "attention"
        assert asked.message == GetMatrix(view=HeadView(layer=13, head="mean"), rows=(0, 19))
        np.testing.assert_array_equal(asked.arrays["x"], np.arange(6, dtype=np.float32).reshape(2, 3))


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"Traceback (most recent", "should begin with"),
        (struct.pack("<4sIQ", b"DSC1", 2**31, 0), "over the limit"),
        (struct.pack("<4sIQ", b"DSC1", 2, 2**60), "over the limit"),
        (struct.pack("<4sIQ", b"DSC1", 2, 0) + b"[]", "expected a JSON object"),
        (struct.pack("<4sIQ", b"DSC1", 2, 0) + b"{{", "cannot be read"),
        (struct.pack("<4sIQ", b"DSC1", 8, 0) + b'{"v":99}', "protocol version 99"),
        (struct.pack("<4sIQ", b"DSC1", 7, 9) + b'{"v":1}' + b"\xff" * 9, "cannot be read"),
    ],
)
def test_a_stream_that_is_not_ours_is_refused(data: bytes, words: str) -> None:
    with pytest.raises(framing.ProtocolError, match=words):
        framing.FrameDecoder().feed(data)


@given(st.binary(max_size=200))
def test_garbage_never_raises_anything_else(data: bytes) -> None:
    for prefix in (b"", struct.pack("<4sIQ", b"DSC1", len(data) // 2, len(data) - len(data) // 2)):
        try:
            framing.FrameDecoder().feed(prefix + data)
        except framing.ProtocolError:
            continue


def test_requests_with_wrong_fields_are_refused_and_the_stream_goes_on() -> None:
    header = dict(_frame().header)
    with pytest.raises(wire.BadRequestError, match="rows"):
        wire.read_request(framing.Frame(header=header | {"params": {"view": {"layer": 0, "head": 0}, "rows": "x"}}))
    with pytest.raises(UnknownNameError, match=r"attention\.matrix"):
        wire.read_request(framing.Frame(header=header | {"method": "attention.matri"}))
    with pytest.raises(framing.ProtocolError, match="id"):
        wire.read_request(framing.Frame(header=header | {"id": "7"}))
    step = wire.request_frame(1, Step(settings=SamplerSettings())).header
    step["params"]["settings"]["temperature"] = -1.0
    with pytest.raises(wire.BadRequestError, match="temperature"):
        wire.read_request(framing.Frame(header=step))


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"params": {"n": "\ud800"}}, wire.BadRequestError),  # msgspec itself raises UnicodeEncodeError here
        ({"params": {"n": "x" * 10**6}}, wire.BadRequestError),
        ({"method": "x" * 10**6}, UnknownNameError),
        ({"method": ["run.step"] * 10**4}, UnknownNameError),
        ({"slot": ["x"] * 10**5}, wire.BadRequestError),
        ({"id": list(range(10**5))}, framing.ProtocolError),
    ],
)
def test_odd_values_get_short_sentences(change: dict[str, object], error: type[DecoderscopeError]) -> None:
    header = wire.request_frame(1, Step(settings=SamplerSettings())).header | change
    with pytest.raises(error) as caught:
        wire.read_request(framing.Frame(header=header))
    assert str(caught.value).isprintable() and len(str(caught.value)) < 500
    with pytest.raises(wire.BadRequestError):
        wire.read_value({"code": "a", "message": "b", "details": 7} | change, MemoryInfo)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("temperature", -0.1), ("temperature", float("nan")), ("temperature", float("inf")), ("top_k", -1),
        ("top_p", 1.01), ("top_p", -0.5), ("min_p", 2.0), ("repetition_penalty", 0.0), ("seed", -1), ("seed", 2**64),
        ("order", ("temperature",)),
    ],
)  # fmt: skip
def test_sampler_settings_name_the_field_they_refuse(field: str, value: object) -> None:
    with pytest.raises(BadValueError, match=field):
        SamplerSettings(**{field: value})  # type: ignore[arg-type]


def test_settings_travel_without_loss() -> None:
    settings = SamplerSettings(temperature=1e-9, seed=2**64 - 1, top_p=0.1 + 0.2)
    encoded = msgspec.json.encode(msgspec.to_builtins(settings))
    assert msgspec.convert(msgspec.json.decode(encoded), SamplerSettings) == settings


def test_the_protocol_loads_neither_torch_nor_qt() -> None:
    code = "import sys, model.protocol; print([m for m in ('torch', 'PySide6', 'transformers') if m in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


def test_numbers_json_lacks_and_half_characters_travel() -> None:
    stats = PromptStatsReply(first=0, last=0, mean_cross_entropy=float("inf"), perplexity=float("nan"), complete=True)
    frame = framing.FrameDecoder().feed(framing.encode_frame(wire.reply_frame(3, stats)))[0]
    back = wire.read_value(frame.header["result"], PromptStatsReply)
    assert back.mean_cross_entropy == float("inf") and back.perplexity != back.perplexity
    text = "a\ud83d\x00b\udc80 \\ud800 🦊"
    frame = framing.FrameDecoder().feed(framing.encode_frame(wire.request_frame(4, Tokenize(text=text))))[0]
    assert wire.read_request(frame).message == Tokenize(text=text)
    with pytest.raises(framing.ProtocolError):
        framing.FrameDecoder().feed(struct.pack("<4sIQ", b"DSC1", 22, 0) + b'{"v":NaN,"x":"\\ud800"}')
