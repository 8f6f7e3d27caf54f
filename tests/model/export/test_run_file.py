"""Run files: the same run bit for bit, with the model or without; read with safetensors and json alone; bad ones."""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from model.checkpoint.errors import BadFileError
from model.config import MoeSpec
from model.errors import CancelledError, DecoderscopeError
from model.export.attention import export_attention
from model.export.prompt_record import PROMPT_BYTES
from model.export.recorded import RecordedError, RecordedRun, RecordedTokenizer
from model.export.run_file import CONTENTS, Contents, RunFile, RunFileError, largest_within, reopen, sizes_of, write_run
from model.loading import LoadedModel
from model.moe import Expert
from model.protocol.attention_requests import HeadView
from model.protocol.export_requests import ExportAttention
from model.protocol.values import SamplerSettings
from model.run import Run
from tests.model.tiny import made, random_ids, run_of

SAMPLED = SamplerSettings(temperature=1.5, seed=3)


def branched(model: LoadedModel | None = None) -> Run:
    """A run with a branch, standing in the middle of it."""
    run = run_of(model or made(), random_ids(9))
    run.generate(4, SAMPLED)
    run.branch(run.path[1], 5, SAMPLED)
    run.generate(2, SAMPLED)
    return run


def saved(run: Run, path: Path, contents: Contents = "all") -> Path:
    with path.open("wb") as out:
        write_run(run, out, contents=contents)
    return path


def npz(run: Run, layer: int, stage: Any = "weights") -> Any:
    message = ExportAttention(view=HeadView(layer=layer, head=1, stage=stage), formats=("npz",))
    [file] = export_attention(run, message)
    with file, np.load(io.BytesIO(file.read())) as arrays:
        return arrays["values"]


def assert_same(one: Run, other: Run) -> None:
    """The same tree, place, logits and rows, bit for bit."""
    times = [[replace(node, ms=0.0) for node in run.nodes.values()] for run in (one, other)]
    assert times[0] == times[1]
    assert (one.path, one.ids, one.prompt_ids, one.current) == (other.path, other.ids, other.prompt_ids, other.current)
    assert one.store.logits.keys() == other.store.logits.keys()
    for node in one.store.logits:
        assert np.array_equal(one.logits(node), other.logits(node))
    for layer in range(one.config.n_layers):
        assert torch.equal(one.k(layer), other.k(layer))
        assert torch.equal(one.v(layer), other.v(layer))
        for stage in ("weights", "scores", "weighted"):
            assert np.array_equal(npz(one, layer, stage), npz(other, layer, stage), equal_nan=True)


@pytest.mark.parametrize("contents", ["attention", "all"])
def test_reopened_without_the_model_it_is_the_same_run(tmp_path: Path, contents: Contents) -> None:
    run = branched()
    with RunFile(saved(run, tmp_path / "a.dscope", contents)) as file:
        again = reopen(file)
    assert isinstance(again, RecordedRun)
    assert_same(again, run)
    if contents == "all":
        for layer in range(run.config.n_layers + 1):
            assert torch.equal(again.resid(layer), run.resid(layer))
    else:
        with pytest.raises(RecordedError, match="the residual stream was left out"):
            again.resid(0)
    state = again.state()
    assert (state.n_prompt, state.length, len(state.nodes)) == (9, run.length, len(run.nodes))


def test_reopened_with_the_model_it_goes_on_as_if_never_closed(tmp_path: Path) -> None:
    run = branched()
    with RunFile(saved(run, tmp_path / "a.dscope")) as file:
        again = reopen(file, run.model)
    assert_same(again, run)
    for one in (run, again):
        one.generate(3, SAMPLED)
    assert_same(again, run)
    first = min(run.nodes)
    for one in (run, again):  # the other branch is off the path, so its rows were not recorded
        one.seek(run.tree.path(first + 3)[-1])
    assert again.ids == run.ids
    assert torch.allclose(again.k(2), run.k(2), atol=1e-6)


@pytest.mark.parametrize("contents", ["text", "attention"])
def test_a_smaller_file_is_run_again_with_the_model(tmp_path: Path, contents: Contents) -> None:
    run = branched()
    with RunFile(saved(run, tmp_path / "a.dscope", contents)) as file:
        again = reopen(file, run.model)
    assert again.ids == run.ids
    assert [node.token_id for node in again.nodes.values()] == [node.token_id for node in run.nodes.values()]


def test_without_the_model_nothing_is_computed(tmp_path: Path) -> None:
    run = branched()
    with RunFile(saved(run, tmp_path / "a.dscope")) as file:
        again = reopen(file)
    length = again.length
    with pytest.raises(RecordedError, match=r"recorded without the model: .*Open tiny to compute it"):
        again.step(SAMPLED)
    assert again.length == length
    with pytest.raises(RecordedError):
        again.seek(min(again.nodes) + 3)
    again.seek(again.tree.root)
    assert again.path == ()
    with (
        RunFile(saved(run, tmp_path / "b.dscope", "text")) as file,
        pytest.raises(RunFileError, match="Open tiny first"),
    ):
        reopen(file)


def test_it_is_read_with_safetensors_and_json_alone(tmp_path: Path) -> None:
    run = branched()
    path = saved(run, tmp_path / "a.dscope")
    with safe_open(path, framework="numpy") as file:
        assert file.metadata() == {"format": "dscope", "version": "1"}
        record = json.loads(file.get_tensor("run").tobytes())
        assert record["prompt_ids"] == list(run.prompt_ids)
        assert [node["draw"] for node in record["nodes"]] == [node.draw for node in run.nodes.values()]
        assert np.array_equal(file.get_tensor("q.1"), run.store.rows("q", 1).numpy())  # type: ignore[union-attr]
        assert np.array_equal(file.get_tensor(f"logits.{run.current}"), run.logits(run.current))
        assert file.get_tensor("resid.3").shape == (run.length, 32)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_is_kept_as_it_is(tmp_path: Path, dtype: torch.dtype) -> None:
    model = made()
    decoder = model.decoder.to(dtype)
    weight_bytes = model.info.parameters * dtype.itemsize
    halved = replace(model.info, dtype=str(dtype).removeprefix("torch."), weight_bytes=weight_bytes)
    run = branched(replace(model, decoder=decoder, info=halved))
    with RunFile(saved(run, tmp_path / "a.dscope")) as file:
        again = reopen(file)
    assert again.k(0).dtype == dtype
    assert_same(again, run)


def test_dropped_queries_stay_dropped(tmp_path: Path) -> None:
    run = branched()
    run.store.drop_queries(1)
    with RunFile(saved(run, tmp_path / "a.dscope")) as file:
        again = reopen(file, run.model)
        alone = reopen(file)
    assert not again.store.keeps_queries(1)
    assert np.array_equal(npz(again, 1), npz(run, 1), equal_nan=True)
    with pytest.raises(RecordedError):
        npz(alone, 1)


def test_a_model_of_other_weights_is_refused(tmp_path: Path) -> None:
    run = branched()
    other = replace(run.model, info=replace(run.model.info, sha256="ff" * 32, name="other"))
    with (
        RunFile(saved(run, tmp_path / "a.dscope")) as file,
        pytest.raises(RunFileError, match=r"made with tiny .* the open model is other"),
    ):
        reopen(file, other)


def test_contents_are_chosen_by_size(tmp_path: Path) -> None:
    run = branched()
    sizes = [sizes_of(run)[contents] for contents in CONTENTS]
    assert sizes == sorted(sizes)
    for contents, size in zip(CONTENTS, sizes, strict=True):
        assert largest_within(run, size) == contents
        assert 0 < saved(run, tmp_path / contents, contents).stat().st_size - size < 20_000
    assert largest_within(run, 0) == "text"


def test_progress_is_told_in_bytes_and_ends_at_all_of_them() -> None:
    run = branched()
    told: list[tuple[int, int]] = []
    with mock.patch("model.export.run_file.MB", 1):
        write_run(run, io.BytesIO(), progress=lambda _what, at, total, _unit: told.append((at, total)))
    done = [entry[0] for entry in told]
    assert done == sorted(done) and done[0] == 0 and done[-1] == told[-1][1]
    assert sizes_of(run)["all"] - PROMPT_BYTES * run.n_prompt < told[-1][1] <= sizes_of(run)["all"]
    assert len(set(done)) > 10


def test_writing_can_be_given_up() -> None:
    calls = iter(range(100))

    def check() -> None:
        if next(calls) == 5:
            raise CancelledError

    with pytest.raises(CancelledError):
        write_run(branched(), io.BytesIO(), check=check)


def change(name: str, value: Callable[[Any], Any] | None) -> Callable[[dict[str, Any]], None]:
    def apply(tensors: dict[str, Any]) -> None:
        if value is None:
            del tensors[name]
        else:
            tensors[name] = value(tensors[name])

    return apply


def record(**changes: Any) -> Callable[[dict[str, Any]], None]:
    def apply(tensors: dict[str, Any]) -> None:
        document = json.loads(tensors["run"].numpy().tobytes()) | changes
        tensors["run"] = torch.frombuffer(bytearray(json.dumps(document).encode()), dtype=torch.uint8)

    return apply


def info(**changes: Any) -> Callable[[dict[str, Any]], None]:
    return nested("info", **changes)


def nested(part: str, **changes: Any) -> Callable[[dict[str, Any]], None]:
    def apply(tensors: dict[str, Any]) -> None:
        document = json.loads(tensors["run"].numpy().tobytes())
        record(**{part: document[part] | changes})(tensors)

    return apply


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (info(n_heads=2**31), "info.n_heads is 2147483648, config says 4"),
        (info(n_kv_heads=0), "info.n_kv_heads is 0, config says 2"),
        (info(n_layers=-1), "info.n_layers is -1, config says 3"),
        (info(d_model=0), "info.d_model is 0, config says 32"),
        (info(d_vocab=10**12), "info.d_vocab is 1000000000000, config says 61"),
        (info(n_ctx=0), "info.n_ctx is 0, config says 256"),
        (info(attention_kind="MHA"), "info.attention_kind is MHA, config says GQA"),
        (info(family="llama"), "info.family is llama, config says own"),
        (info(dtype="float64"), "info.dtype is float64, expected one of float32"),
        (info(parameters=-1), "info.parameters is -1, expected 0 to"),
        (info(weight_bytes=5), "info.weight_bytes is 5, its parameters in float32 are"),
        (info(eos_ids=[2**40]), r"info.eos_ids is \(1099511627776,\), expected at most 1000 ids"),
        (info(name="x" * 1000), "info.name is x{100}…, 1000 characters long; expected at most 300"),
        (info(warnings=["x" * 5000]), "info.warnings is .*…, expected at most 100"),
        (nested("config", moe={"n_experts": 4, "top_k": 2, "d_expert": -5, "layers": [0]}), "d_expert is -5; expected"),
        (nested("config", moe={"n_experts": 4, "top_k": 2, "d_expert": 2**62, "layers": [0]}), "d_expert is 46116860"),
        (record(rope_length=2**62), "rope_length is 4611686018427387904, expected 0 to"),
        (record(chunks=[2**62]), "chunks is .*expected numbers from 1"),
        (record(prefill_ms=-1), "prefill_ms is -1.0, expected a finite number"),
        (record(special_ids=[-1]), r"special_ids is \(-1,\), expected ids from 0"),
        (record(prompt_ids=[]), "prompt_ids has 0 tokens, expected 1 to n_ctx"),
        (record(contents="x" * 100_000), r"its record is damaged: Invalid enum value 'x+…x+' - at `\$.contents`\."),
        (change("k.1", None), "k.1 is missing"),
        (change("resid.3", None), "resid.3 is missing"),
        (change("k.0", lambda k: k[:, :3].contiguous()), r"k\.0 is F32 \[2, 3, 8\], expected"),
        (change("v.0", lambda v: v.double()), "v.0 is F64"),
        (change("run", lambda run: run[:-5].clone()), "its record is damaged"),
        (change("tokens.lengths", None), "tokens.lengths is missing"),
        (lambda tensors: tensors.update({"extra": torch.zeros(1)}), "no part of a run"),
        (record(current=999), "expected"),
        (record(nodes=[]), "expected"),
        (record(prompt_ids=[1, 2, 10**6, 4, 5, 6, 7, 8, 9]), "token id 1000000 is not below 61"),
        (record(prompt_ids="no"), "its record is damaged"),
        (record(logit_nodes=[77]), "logits.*is (missing|no part|, which)|no part of a run"),
        (record(contents="everything"), "its record is damaged"),
    ],
)
def test_damaged_files_are_refused_with_a_reason(tmp_path: Path, damage: Callable[..., None], reason: str) -> None:
    path = saved(branched(), tmp_path / "a.dscope")
    tensors = load_file(path)
    damage(tensors)
    save_file(tensors, path, metadata={"format": "dscope", "version": "1"})
    with pytest.raises(DecoderscopeError, match=reason), RunFile(path) as file:
        reopen(file)


def test_no_message_about_a_run_file_is_as_long_as_what_is_in_it(tmp_path: Path) -> None:
    path = saved(branched(), tmp_path / "a.dscope")
    whole = load_file(path)
    long = "x" * 100_000
    for damage in (info(name=long), info(source=long), info(dtype=long), info(family=long), record(contents=long)):
        tensors = dict(whole)
        damage(tensors)
        save_file(tensors, path, metadata={"format": "dscope", "version": "1"})
        with pytest.raises(RunFileError) as caught:
            RunFile(path)
        assert len(str(caught.value)) < 600
    save_file(whole | {long: torch.zeros(1)}, path, metadata={"format": "dscope", "version": "1"})
    with pytest.raises(DecoderscopeError) as refused:
        RunFile(path)
    assert len(str(refused.value)) < 600


def test_a_recorded_run_makes_no_experts_and_can_be_cancelled(tmp_path: Path) -> None:
    experts = MoeSpec(n_experts=8, top_k=2, d_expert=16, layers=(0, 1, 2))
    run = branched(made(moe=experts))
    with RunFile(saved(run, tmp_path / "a.dscope")) as file:
        again = reopen(file)
        assert again.config.moe == experts and again.decoder.config == run.config
        assert again.decoder.hook_points.keys() == run.decoder.hook_points.keys()
        assert sum(isinstance(module, Expert) for module in again.decoder.modules()) == 3
        assert_same(again, run)
        for allowed in (0, 2, 5):  # between layers that are made, then between tensors that are read
            calls = iter(range(allowed))

            def check(calls: Any = calls) -> None:
                if next(calls, None) is None:
                    raise CancelledError

            with pytest.raises(CancelledError):
                reopen(file, yield_point=check)


@pytest.mark.parametrize("with_model", [False, True])
def test_what_has_no_room_in_memory_is_refused_before_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, with_model: bool
) -> None:
    run = branched()
    least = run.cost(run.length, generated=len(run.store.logits)).total
    with RunFile(saved(run, tmp_path / "a.dscope")) as file:
        model = run.model if with_model else None
        with monkeypatch.context() as patched:
            patched.setattr("model.export.run_file.available_bytes", lambda _device: least)
            patched.setattr(RunFile, "tensor", lambda *_: pytest.fail("something was read"))
            with pytest.raises(RunFileError, match=r"a\.dscope .*: it needs .* of memory and .* are free on cpu\."):
                reopen(file, model)
        assert_same(reopen(file, model), run)


def test_other_files_are_refused_with_a_reason(tmp_path: Path) -> None:
    path = tmp_path / "a.dscope"
    with pytest.raises(RunFileError, match="No such file"):
        RunFile(path)
    save_file({"a": torch.zeros(1)}, path)
    with pytest.raises(RunFileError, match="not a recorded run"):
        RunFile(path)
    save_file({"a": torch.zeros(1)}, path, metadata={"format": "dscope", "version": "2"})
    with pytest.raises(RunFileError, match="version '2', this program reads 1: update"):
        RunFile(path)
    whole = saved(branched(), path).read_bytes()
    for size in (0, 5, 100, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:size])
        with pytest.raises(
            RunFileError if size < 9 else BadFileError, match="not a run file" if size < 9 else "truncated"
        ):
            RunFile(path)


_WHOLE: list[bytes] = []


@settings(max_examples=60)
@given(st.data())
def test_flipped_bytes_never_crash_it(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    path = tmp_path_factory.getbasetemp() / "flipped.dscope"
    if not _WHOLE:
        _WHOLE.append(saved(branched(), path, "attention").read_bytes())
    damaged = bytearray(_WHOLE[0])
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, min(len(damaged), 12_000) - 1))
        damaged[at] = data.draw(st.integers(0, 255))
    path.write_bytes(damaged)
    with contextlib.suppress(DecoderscopeError), RunFile(path) as file:
        reopen(file)


def test_the_recorded_vocabulary_shows_and_joins_tokens() -> None:
    tokens = [b"The", b" animal", "你".encode()[:1], "你".encode()[1:], b"\xff", None, b"<end>"]
    tokenizer = RecordedTokenizer(tokens, special=frozenset({6}), eos_ids=(6,))
    assert tokenizer.pieces(range(8)) == ["The", "·animal", "⟨E4⟩", "⟨BD⟩⟨A0⟩", "⟨FF⟩", "⟨#5⟩", "<end>", "⟨#7⟩"]
    assert tokenizer.decode([0, 1, 2, 3, 6]) == "The animal你<end>"
    assert tokenizer.decode([0, 6], skip_special=True) == "The"
    stream = tokenizer.decode_stream()
    assert [stream.push(token) for token in (0, 1, 2, 3, 4, 2, 0)] == [
        *("The", " animal", "", "你", "", "", "\ufffd\ufffdThe"),
    ]
    assert tokenizer.is_special(6) and not tokenizer.is_special(0)
