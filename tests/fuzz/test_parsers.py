"""Damaged input for every parser, ten thousand cases under `long`: read or refused in one sentence, in two seconds and
500 MB, by a process that goes on."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

from app.settings import Preferences
from model.protocol.framing import encode_frame
from model.protocol.run_requests import Prefill, PrefillReply, Step
from model.protocol.values import SamplerSettings
from model.protocol.wire import ErrorInfo, error_frame, reply_frame, request_frame
from tests.fake_engine import state, tokens
from tests.fuzz.mutations import damaged_bytes, damaged_json
from tests.fuzz.parsers import SECONDS, Child
from tests.model.checkpoint import files
from tests.model.export.test_run_file import branched, saved

FEW, MANY = 60, 800
"""Cases a parser in `make test`, and in `make test-long` (thirteen parsers: ten thousand)."""

Draw = Callable[[st.SearchStrategy[Any]], Any]
TALLY: dict[str, Counter[str]] = {}


@dataclass(frozen=True)
class Target:
    """A parser of `tests.fuzz.parsers`, the file that is damaged, what is opened, and how damage is made."""

    kind: str
    file: Path
    opened: Path
    damage: Callable[[Draw], bytes]


@dataclass
class Bench:
    """The child and the files; `targets` by name."""

    child: Child
    targets: dict[str, Target] = field(default_factory=dict)


def _json_target(folder: Path, name: str) -> Target:
    value = json.loads((folder / name).read_text())
    return Target("model", folder / name, folder, lambda draw: damaged_json(draw, value))


def _safetensors(raw: bytes) -> Callable[[Draw], bytes]:
    length = int.from_bytes(raw[:8], "little")
    header, data = json.loads(raw[8 : 8 + length]), raw[8 + length :]

    def damage(draw: Draw) -> bytes:
        if draw(st.integers(0, 2)) == 0:
            return damaged_bytes(draw, raw, within=8 + length)
        text = damaged_json(draw, header)
        return len(text).to_bytes(8, "little") + text + data

    return damage


def _run_record(path: Path) -> Callable[[Draw], bytes]:
    import torch

    raw, tensors = path.read_bytes(), load_file(path)
    length = int.from_bytes(raw[:8], "little")
    record = json.loads(tensors["run"].numpy().tobytes())

    def damage(draw: Draw) -> bytes:
        if draw(st.integers(0, 2)) == 0:
            return damaged_bytes(draw, raw, within=8 + length)
        changed = tensors | {"run": torch.frombuffer(bytearray(damaged_json(draw, record) or b"x"), dtype=torch.uint8)}
        save_file(changed, path.with_suffix(".made"), metadata={"format": "dscope", "version": "1"})
        return path.with_suffix(".made").read_bytes()

    return damage


def _bytes(raw: bytes, within: int = 1 << 40) -> Callable[[Draw], bytes]:
    return lambda draw: damaged_bytes(draw, raw, within=within)


def _frame_headers(raw: bytes) -> Callable[[Draw], bytes]:
    """Frames whose header is damaged as JSON and whose lengths are right, so that the reading goes on behind it."""
    length = int.from_bytes(raw[4:8], "little")
    header = json.loads(raw[16 : 16 + length])

    def damage(draw: Draw) -> bytes:
        if draw(st.integers(0, 2)) == 0:
            return damaged_bytes(draw, raw + raw)
        text = damaged_json(draw, header)
        return b"DSC1" + len(text).to_bytes(4, "little") + bytes(8) + text + raw

    return damage


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    place = tmp_path_factory.mktemp("fuzz")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DECODERSCOPE_CACHE_DIR", str(place / "cache"))
        made = Bench(Child())
        made.child.parse("requests", place)  # started here, so that it belongs to no single test
        base = files.folder(place / "base")
        (base / "generation_config.json").write_text(json.dumps({"eos_token_id": [257], "bos_token_id": 256}))
        for name in ("config.json", "tokenizer.json", "tokenizer_config.json", "generation_config.json"):
            made.targets[name] = _json_target(Path(shutil.copytree(base, place / name.partition(".")[0])), name)
        sharded = files.folder(place / "sharded", shard=True)
        made.targets["index"] = _json_target(sharded, "model.safetensors.index.json")
        raw = (base / "model.safetensors").read_bytes()
        whole = Path(shutil.copytree(base, place / "whole")) / "model.safetensors"
        made.targets["safetensors header"] = Target(
            "safetensors_header", place / "a.st", place / "a.st", _safetensors(raw)
        )
        made.targets["safetensors"] = Target("model", whole, whole.parent, _safetensors(raw))
        gguf = files.tiny_gguf(place / "tiny.gguf").read_bytes()
        head = gguf.index(b"output_norm.weight") + 1500
        made.targets["gguf header"] = Target("gguf_header", place / "h.gguf", place / "h.gguf", _bytes(gguf, head))
        made.targets["gguf"] = Target("model", place / "m.gguf", place / "m.gguf", _bytes(gguf, head))
        run = saved(branched(), place / "a.dscope", "attention")
        made.targets["run file"] = Target("run_file", place / "b.dscope", place / "b.dscope", _run_record(run))
        preferences = {"version": 1, "theme": "dark", "text_scale": 1.5, "layouts": {"a": "AAAA"}, "threads": 2}
        preferences |= {
            "recent_models": ["a"],
            "engine_command": ["ssh"],
            "panels": {"p": {"x": 1}},
            "geometry": "AA==",
        }
        assert set(preferences) <= set(Preferences.__dataclass_fields__)
        chosen = place / "settings" / "settings.json"
        chosen.parent.mkdir()
        made.targets["settings"] = Target("settings", chosen, chosen, lambda draw: damaged_json(draw, preferences))
        asked = encode_frame(request_frame(1, Prefill(text="a"))) + encode_frame(
            request_frame(2, Step(settings=SamplerSettings()), slot="s")
        )
        made.targets["requests"] = Target("requests", place / "in", place / "in", _frame_headers(asked))
        reply = PrefillReply(state=state((), "ab"), tokens=tokens("ab"), text="ab")
        told = encode_frame(reply_frame(1, reply)) + encode_frame(error_frame(2, ErrorInfo(code="a", message="b")))
        made.targets["answers"] = Target("answers", place / "out", place / "out", _frame_headers(told))
        try:
            yield made
        finally:
            made.child.close()


NAMES = (
    "config.json", "tokenizer.json", "tokenizer_config.json", "generation_config.json", "index", "safetensors header",
    "safetensors", "gguf header", "gguf", "run file", "settings", "requests", "answers",
)  # fmt: skip


def _fuzz(bench: Bench, name: str, cases: int) -> None:
    target = bench.targets[name]
    tally = TALLY.setdefault(name, Counter())
    undamaged = target.file.read_bytes() if target.file.exists() else None

    @settings(max_examples=cases, deadline=None, suppress_health_check=list(HealthCheck))
    @given(data=st.data())
    def one(data: st.DataObject) -> None:
        raw = target.damage(data.draw)
        target.file.unlink(missing_ok=True)  # another inode: what was read of the last one is not this one
        target.file.write_bytes(raw)
        ending = bench.child.parse(target.kind, target.opened)
        tally[ending.end] += 1
        assert ending.end in {"read", "refused"}, ending.said
        assert ending.seconds < SECONDS, f"{ending.seconds} s of processor time"
        if ending.end == "refused":
            assert ending.said.isprintable(), ascii(ending.said)
            assert 10 < len(ending.said) < 4000, ending.said
        for backup in target.file.parent.glob("settings.backup-*"):
            backup.unlink()

    try:
        one()
    finally:
        if undamaged is not None:
            target.file.write_bytes(undamaged)


@pytest.mark.parametrize("name", NAMES)
def test_a_few_damaged_inputs_are_read_or_refused(bench: Bench, name: str) -> None:
    _fuzz(bench, name, FEW)


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", NAMES)
def test_ten_thousand_damaged_inputs_are_read_or_refused(bench: Bench, name: str) -> None:
    _fuzz(bench, name, MANY)


def test_every_parser_is_fed(bench: Bench) -> None:
    assert set(bench.targets) == set(NAMES)


def test_what_is_not_damaged_is_read(bench: Bench) -> None:
    for name in ("config.json", "index", "safetensors"):
        assert bench.child.parse("model", bench.targets[name].opened).end == "read"


def test_the_limits_are_real(tmp_path: Path) -> None:
    """A parser that allocates, dies or is not there is seen as what it is."""
    child = Child()
    assert child.parse("no_such_parser", tmp_path).end == "fault"
    hungry = tmp_path / "hungry"
    hungry.write_bytes(b"DSC1" + (16 << 20).to_bytes(4, "little") + bytes(8))
    assert "MemoryError" in child.parse("_eat", hungry).said
    assert "the process ended with -9" in child.parse("_die", hungry).said
    assert child.parse("requests", hungry).end == "read"  # and the next one works
    child.close()
