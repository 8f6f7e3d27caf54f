"""The prepared cache: made once, reopened by map, never trusted when it does not fit."""

import errno
import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from model import loading
from model.checkpoint import prepared
from model.checkpoint.digest import stamp_of
from model.checkpoint.errors import CheckpointError, WeightsCutError
from model.checkpoint.progress import never_cancel, no_progress
from model.errors import CancelledError
from model.export.files import write_files
from model.export.making import make_files
from model.loading import LoadedModel, get_model, open_model
from model.protocol.figure_requests import ExportLens, ExportText
from model.protocol.values import SamplerSettings
from model.run import Run
from tests.model.checkpoint import files

pytestmark = pytest.mark.usefixtures("own_cache")
WHAT = "Preparing the model"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return files.tiny_gguf(tmp_path / "tiny.gguf", num_hidden_layers=12)


def _opened(path: Path) -> tuple[LoadedModel, bool]:
    """(the model, whether it was prepared now)."""
    seen: list[str] = []
    model = open_model(path, progress=lambda what, *_: seen.append(what))
    return model, WHAT in seen


def _weights(model: LoadedModel) -> Path:
    return prepared.directory_of(model.info.sha256) / prepared.WEIGHTS


def test_prepares_once_and_reopens_the_same_numbers_in_the_fast_layout(path: Path) -> None:
    first, made = _opened(path)
    again, made_again = _opened(path)
    assert (made, made_again) == (True, False)
    assert again.info == first.info
    assert again.tokenizer.to_json() == first.tokenizer.to_json()
    for name, tensor in again.decoder.state_dict().items():
        assert torch.equal(tensor, first.decoder.state_dict()[name])
        if tensor.ndim == 2 and name != "embed_tokens.weight":
            assert tensor.stride(0) == 1, name


def _truncate(weights: Path) -> None:
    with weights.open("rb+") as file:
        file.truncate(weights.stat().st_size - 64)


def _flip_header(weights: Path) -> None:
    _flip(weights, 100)


def _flip_anywhere(weights: Path) -> None:
    _flip(weights, weights.stat().st_size // 3 + 1)


def _flip(weights: Path, at: int) -> None:
    with weights.open("rb+") as file:
        file.seek(at)
        byte = file.read(1)
        file.seek(at)
        file.write(bytes([byte[0] ^ 1]))


def _no_tokenizer(weights: Path) -> None:
    (weights.parent / prepared.TOKENIZER).unlink()


def _bad_manifest(weights: Path) -> None:
    (weights.parent / prepared.MANIFEST).write_text('{"source_sha256": ')


@pytest.mark.parametrize("damage", [_truncate, _flip_header, _flip_anywhere, _no_tokenizer, _bad_manifest])
def test_a_damaged_one_is_noticed_and_made_again(path: Path, damage: Callable[[Path], None]) -> None:
    model, _ = _opened(path)
    weights = _weights(model)
    expected, digest = {name: tensor.clone() for name, tensor in model.decoder.state_dict().items()}, model.info.sha256
    del model  # nothing is mapped any more: a truncated map would end the process
    damage(weights)
    assert prepared.find(digest, no_progress, never_cancel) is None
    again, made = _opened(path)
    assert made
    assert all(torch.equal(again.decoder.state_dict()[name], tensor) for name, tensor in expected.items())


def test_a_copied_cache_is_checked_in_full_once(path: Path) -> None:
    model, _ = _opened(path)
    weights = _weights(model)
    os.utime(weights, ns=(1, 1))
    seen: list[str] = []
    assert prepared.find(model.info.sha256, lambda what, *_: seen.append(what), never_cancel) is not None
    assert seen == ["Checking the prepared model"]
    assert prepared.find(model.info.sha256, lambda what, *_: seen.append(what), never_cancel) is not None
    assert len(seen) == 1
    manifest = json.loads((weights.parent / prepared.MANIFEST).read_text())
    assert manifest["weights_stamp"] == stamp_of(weights)


def test_another_layout_replaces_the_old_one(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old, _ = _opened(path)
    directory = prepared.directory_of(old.info.sha256)
    monkeypatch.setattr(prepared, "layout_fingerprint", lambda: "another")
    _, made = _opened(path)
    assert made
    assert not directory.exists()


def test_cancelling_leaves_nothing(path: Path, own_cache: Path) -> None:
    asked = 0

    def cancel_late() -> None:
        nonlocal asked
        asked += 1
        if asked > 40:
            raise CancelledError

    with pytest.raises(CancelledError):
        open_model(path, check_cancel=cancel_late)
    assert not [item for item in (own_cache / "prepared").iterdir() if item.is_dir()]
    assert _opened(path)[1]


def test_getting_the_default_model_prepares_it(path: Path, monkeypatch: pytest.MonkeyPatch, own_cache: Path) -> None:
    monkeypatch.setattr(
        "model.loading.fetch", lambda entry, **_: path if entry.name == "smollm2-135m-instruct" else None
    )
    assert get_model() == path
    (made,) = [item for item in (own_cache / "prepared").iterdir() if item.is_dir()]
    before = made.stat().st_mtime_ns
    get_model("smollm2-135m-instruct")
    assert made.stat().st_mtime_ns == before
    assert not _opened(path)[1]


def test_without_a_cache_that_can_be_written_it_opens_all_the_same(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected, _ = _opened(path)
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("DECODERSCOPE_CACHE_DIR", str(tmp_path / "file" / "cache"))
    model = open_model(path)
    assert torch.equal(model.decoder.norm.weight, expected.decoder.norm.weight)
    assert "could not be prepared for quick opening: Can't make the cache directory" in model.warnings[0]


def test_a_disk_that_fills_up_while_preparing_leaves_nothing(
    path: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("model.checkpoint.prepared.publish", full)
    assert "No space left on device" in open_model(path).warnings[0]
    assert not [item for item in (own_cache / "prepared").iterdir() if item.is_dir()]


def test_memory_that_runs_out_is_one_sentence(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for error in (
        MemoryError(),
        torch.OutOfMemoryError("CUDA"),
        RuntimeError("DefaultCPUAllocator: can't allocate memory"),
    ):

        def fail(*_: object, error: Exception = error, **__: object) -> None:
            raise error

        monkeypatch.setattr("model.loading.fill", fail)
        with pytest.raises(CheckpointError, match=r"the memory of cpu ran out .* Take a smaller dtype"):
            open_model(path)


def _cut(weights: Path) -> None:
    weights.chmod(0o644)
    os.truncate(weights, 100)


def _cut_by_half(weights: Path) -> None:
    weights.chmod(0o644)
    os.truncate(weights, weights.stat().st_size // 2)


def _write_into(weights: Path) -> None:
    weights.chmod(0o644)
    with weights.open("rb+") as file:
        file.write(bytes(weights.stat().st_size))
    later = weights.stat().st_mtime_ns + 10**9  # no matter how coarse the disk's clock is
    os.utime(weights, ns=(later, later))


def _replace(weights: Path) -> None:
    other = weights.with_name("other")
    other.write_bytes(b"no weights")
    other.replace(weights)


def _remove_all(weights: Path) -> None:
    shutil.rmtree(weights.parent)


@pytest.mark.parametrize("change", [_cut, _cut_by_half, _write_into])
def test_weights_that_are_cut_or_written_to_under_an_open_model_are_used_no_more(
    path: Path, tmp_path: Path, change: Callable[[Path], None]
) -> None:
    _opened(path)
    model, _ = _opened(path)
    made = Run(model)
    made.prefill("in the end")
    change(_weights(model))
    resid, k, v = made.resid(0), made.k(0), made.v(0)
    for use in (
        lambda: made.step(SamplerSettings()),
        lambda: model.decoder.recompute_layer(0, resid, k, v, 0),
        lambda: model.decoder.unembed(resid),
        lambda: model.decoder.embed_ids(torch.tensor([1]), 0),
        lambda: write_files(make_files(made, ExportLens(stem="lens", formats=("json",))), tmp_path),
        lambda: write_files(make_files(made, ExportText(stem="text", formats=("json",))), tmp_path),
    ):
        with pytest.raises(
            WeightsCutError, match=r"weights\.safetensors: was (cut|written to) while the model was open"
        ):
            use()


def test_weights_that_are_cut_between_two_layers_of_a_prefill_are_used_no_more(path: Path) -> None:
    _opened(path)
    model, _ = _opened(path)
    layers: list[str] = []

    def at_layer() -> None:
        layers.append("")
        if len(layers) == 5:
            _cut(_weights(model))

    with pytest.raises(WeightsCutError):
        Run(model).prefill("in the end", yield_point=at_layer)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("change", [_cut, _cut_by_half, _write_into, _replace, _remove_all])
@pytest.mark.parametrize("stage", ["found", "reading 3", "reading 5", "read"])
def test_weights_that_change_while_they_are_opened_are_prepared_again(
    path: Path, monkeypatch: pytest.MonkeyPatch, stage: str, change: Callable[[Path], None], dtype: str
) -> None:
    first, _ = _opened(path)
    weights, expected = _weights(first), first.decoder.state_dict()["layers.5.mlp.up_proj.weight"].clone()
    del first
    left, tensors, finish = [change], prepared.Prepared.tensors, loading._finish

    def once() -> None:
        if left:
            left.pop()(weights)

    def slowly(found: prepared.Prepared) -> Iterator[tuple[str, torch.Tensor]]:
        if stage == "found":
            once()
        for index, pair in enumerate(tensors(found)):
            yield pair
            if stage == f"reading {index}":
                once()

    def finished(*values: Any) -> LoadedModel:
        if stage == "read":
            once()
        return finish(*values)

    monkeypatch.setattr(prepared.Prepared, "tensors", slowly)
    monkeypatch.setattr(loading, "_finish", finished)
    model = open_model(path, dtype=dtype)
    assert not left
    found = model.decoder.state_dict()["layers.5.mlp.up_proj.weight"]
    assert torch.equal(found, expected.to(found.dtype))
