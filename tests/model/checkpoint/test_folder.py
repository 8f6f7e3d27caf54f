"""Hugging Face-style folders: what opens equals the reference, what does not says why."""

import errno
import json
import os
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from model.checkpoint.errors import BadFileError, CheckpointError, TensorsError, TooBigError, UnsupportedError
from model.checkpoint.safetensors_folder import INDEX, SINGLE
from model.errors import CancelledError, LackingError
from model.loading import LoadedModel, open_model, plan_model
from tests.model.checkpoint import files

IDS = [5, 77, 131, 12, 290, 0, 44]


def _logits(model: LoadedModel) -> torch.Tensor:
    logits: torch.Tensor = model.decoder(torch.tensor(IDS), model.decoder.new_cache(), logits="all")
    return logits


@pytest.mark.parametrize("shard", [False, True])
@pytest.mark.parametrize("tied", [False, True])
def test_opens_what_the_reference_saved(tmp_path: Path, *, shard: bool, tied: bool) -> None:
    path = files.folder(tmp_path / "tiny", shard=shard, tie_word_embeddings=tied)
    assert (path / INDEX).exists() is shard
    model = open_model(path)
    expected = files.tiny(tie_word_embeddings=tied).run(IDS)[0].logits
    assert (_logits(model) - expected).abs().max() < 1e-4  # sums in another order
    assert model.info.eos_ids == (257,)
    assert (model.info.name, model.info.has_chat_template, model.warnings) == ("tiny", True, ())
    assert plan_model(path).parameters == model.info.parameters


def test_a_single_file_opens_with_the_config_beside_it(tmp_path: Path) -> None:
    path = files.folder(tmp_path / "tiny")
    assert torch.equal(_logits(open_model(path / SINGLE)), _logits(open_model(path)))
    assert open_model(path / "config.json").info.name == "tiny"


@pytest.mark.parametrize("stored", [torch.float16, torch.bfloat16, torch.float64])
def test_every_stored_float_type_is_converted(tmp_path: Path, stored: torch.dtype) -> None:
    path = files.folder(tmp_path / "tiny")
    tensors = {name: tensor.to(stored) for name, tensor in load_file(path / SINGLE).items()}
    save_file(tensors, path / SINGLE)
    weights = dict(open_model(path).decoder.named_parameters())
    for name, tensor in tensors.items():
        assert torch.equal(weights[name.removeprefix("model.")], tensor.float())


def test_big_matrices_are_read_in_blocks_of_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = files.folder(tmp_path / "tiny")
    whole = open_model(path).decoder.state_dict()
    monkeypatch.setattr("model.checkpoint.weights._STREAMED_NUMBERS", 1)
    monkeypatch.setattr("model.checkpoint.weights._BLOCK_NUMBERS", 7 * 32)
    blocks = open_model(path).decoder.state_dict()
    for name, tensor in whole.items():
        assert torch.equal(blocks[name], tensor)
        assert blocks[name].stride() == tensor.stride()


# --- strictness


def _edit(path: Path, **changes: torch.Tensor | None) -> None:
    tensors: dict[str, Any] = load_file(path / SINGLE)
    for name, tensor in changes.items():
        tensors.pop(name, None)
        if tensor is not None:
            tensors[name] = tensor
    save_file(tensors, path / SINGLE)


def test_one_report_names_all_that_does_not_fit(tmp_path: Path) -> None:
    path = files.folder(tmp_path / "tiny")
    layer = "model.layers.1"
    _edit(
        path,
        **{
            f"{layer}.self_attn.q_proj.weight": None,
            f"{layer}.self_attn.k_proj.bias": torch.zeros(16),
            f"{layer}.mlp.up_proj.weight": torch.zeros(63, 32),
            f"{layer}.mlp.down_proj.weight": torch.zeros(32, 64, dtype=torch.int8),
            "model.layers.2.mlp.up_proj.weight": torch.zeros(64, 32),
        },
    )
    with pytest.raises(TensorsError) as caught:
        open_model(path)
    error = caught.value
    assert error.missing == (f"{layer}.self_attn.q_proj.weight",)
    assert error.unexpected == (f"{layer}.self_attn.k_proj.bias", "model.layers.2.mlp.up_proj.weight")
    assert error.misshaped == {f"{layer}.mlp.up_proj.weight": ((63, 32), (64, 32))}
    assert error.unusable == {f"{layer}.mlp.down_proj.weight": "I8"}
    for part in (str(path), "q_proj", "k_proj.bias", "[63, 32], expected [64, 32]", "quantised", "config.json"):
        assert part in str(error)


def test_what_lies_beside_the_decoder_is_left_out_with_a_warning(tmp_path: Path) -> None:
    path = files.folder(tmp_path / "tiny")
    before = _logits(open_model(path))
    beside = {
        "vision_tower.layers.0.weight": torch.ones(3),
        "model.layers.0.self_attn.q_proj.lora_A.weight": torch.ones(4, 32),
        "model.layers.0.self_attn.rotary_emb.inv_freq": torch.ones(4),  # known, never needed: no warning
    }
    _edit(path, **beside)
    model = open_model(path)
    assert torch.equal(_logits(model), before)
    (warning,) = model.warnings
    assert "vision_tower.layers.0.weight" in warning
    assert "lora_A" in warning
    assert "inv_freq" not in warning


def test_ties_are_kept_followed_or_refused(tmp_path: Path) -> None:
    path = files.folder(tmp_path / "tiny", tie_word_embeddings=False)
    _edit(path, **{"lm_head.weight": None})
    with pytest.raises(TensorsError, match=r"missing 1: lm_head\.weight"):
        open_model(path)
    files.edit_config(path, tie_word_embeddings=True)
    assert open_model(path).decoder.lm_head is None
    embedding = load_file(path / SINGLE)["model.embed_tokens.weight"]
    _edit(path, **{"lm_head.weight": embedding.clone()})
    model = open_model(path)
    assert (model.decoder.lm_head, model.warnings) == (None, ())
    _edit(path, **{"lm_head.weight": embedding + 1})  # the reference unties these too
    model = open_model(path)
    assert model.decoder.lm_head is not None
    assert torch.equal(model.decoder.lm_head.weight, embedding + 1)
    assert "different head" in model.warnings[0]


def test_damaged_weights_are_counted_and_named(tmp_path: Path) -> None:
    path = files.folder(tmp_path / "tiny")
    tensor = load_file(path / SINGLE)["model.layers.1.mlp.up_proj.weight"]
    tensor[3, :4] = torch.tensor([float("nan"), float("inf"), float("-inf"), 0.0])
    _edit(path, **{"model.layers.1.mlp.up_proj.weight": tensor})
    model = open_model(path)
    assert model.warnings[0].startswith("3 weights are NaN or infinite: layers.1.mlp.up_proj.weight (3).")
    assert "first forward pass" in model.warnings[1]


# --- folders that hold no model


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("pytorch_model.bin", r"pickles only \(pytorch_model\.bin\).*save_pretrained"),
        ("consolidated.00.pth", "pickles only"),
        ("model.onnx", "another framework"),
        ("m.gguf", "holds GGUF files"),
        ("readme.txt", r"no \.safetensors files"),
    ],
)
def test_a_folder_without_safetensors_says_what_it_holds(tmp_path: Path, name: str, said: str) -> None:
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / name).write_bytes(b"\x80\x02}q\x00.")
    with pytest.raises(UnsupportedError, match=said):
        open_model(tmp_path)


@pytest.mark.parametrize("name", ["out_attention.npz", "blob.bin", "model.onnx", "readme.txt", None])
def test_a_folder_without_a_configuration_says_so_first(tmp_path: Path, name: str | None) -> None:
    if name is not None:
        (tmp_path / name).write_bytes(b"PK")
    with pytest.raises(UnsupportedError, match=r"there is no config\.json in it"):
        open_model(tmp_path)


def test_arrays_beside_a_configuration_are_no_weights(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "out_attention.npz").write_bytes(b"PK")
    with pytest.raises(UnsupportedError, match=r"no \.safetensors files"):
        open_model(tmp_path)
    (tmp_path / "weights.npz").write_bytes(b"PK")
    with pytest.raises(UnsupportedError, match=r"another framework \(weights\.npz\)"):
        open_model(tmp_path)


def test_a_folder_of_gguf_files_needs_no_configuration(tmp_path: Path) -> None:
    (tmp_path / "m.gguf").write_bytes(b"GGUF")
    with pytest.raises(UnsupportedError, match="holds GGUF files"):
        open_model(tmp_path)


def test_adapters_and_loose_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "adapter_config.json").write_text("{}")
    with pytest.raises(UnsupportedError, match="adapter"):
        open_model(tmp_path)
    path = files.folder(tmp_path / "tiny")
    (path / SINGLE).rename(path / "a.safetensors")
    assert open_model(path).info.name == "tiny"
    (path / "b.safetensors").write_bytes((path / "a.safetensors").read_bytes())
    with pytest.raises(UnsupportedError, match=r"several \.safetensors files and no index"):
        open_model(path)


def test_quantised_models_are_named(tmp_path: Path) -> None:
    path = files.folder(tmp_path / "tiny")
    for found, said in (
        ({"quant_method": "gptq"}, "gptq"),
        ({"quant_method": "awq"}, "awq"),
        ({"load_in_4bit": True}, "bitsandbytes"),
        ({"quant_method": "some_new_one"}, "some_new_one"),
        ({"bits": 4}, "no method named"),
    ):
        files.edit_config(path, quantization_config=found)
        with pytest.raises(UnsupportedError, match=said):
            open_model(path)


# --- the index of shards


@pytest.mark.parametrize(
    "name",
    ["../x.safetensors", "/etc/x.safetensors", "a\\b.safetensors", "a/b.safetensors", "x\0.safetensors",
     "CON.safetensors", ".safetensors", "C:x.safetensors", "x" * 300 + ".safetensors", "x.bin", 7, None, ["a"]],
)  # fmt: skip
def test_an_index_that_leads_elsewhere_is_refused(tmp_path: Path, name: object) -> None:
    path = files.folder(tmp_path / "tiny", shard=True)
    index = json.loads((path / INDEX).read_text())
    index["weight_map"]["model.norm.weight"] = name
    (path / INDEX).write_text(json.dumps(index))
    with pytest.raises(BadFileError, match=r"model\.norm\.weight: a file name that leads elsewhere"):
        open_model(path)


def test_a_shard_that_links_out_is_refused_but_the_hub_caches_links_are_fine(tmp_path: Path) -> None:
    snapshot = files.folder(tmp_path / "models--a--b" / "snapshots" / "abc", shard=True)
    shard = next(snapshot.glob("*.safetensors"))
    blobs = tmp_path / "models--a--b" / "blobs"
    blobs.mkdir()
    shard.rename(blobs / "123")
    shard.symlink_to("../../blobs/123")
    assert open_model(snapshot).info.n_layers == 2
    outside = tmp_path / "outside.safetensors"
    (blobs / "123").rename(outside)
    shard.unlink()
    shard.symlink_to(outside)
    with pytest.raises(BadFileError, match="a link out of the model's folder") as caught:
        open_model(snapshot)
    assert f"(found {outside}"[:60] in str(caught.value)


def test_an_index_that_does_not_fit_its_shards_is_refused(tmp_path: Path) -> None:
    path = files.folder(tmp_path / "tiny", shard=True)
    whole = (path / INDEX).read_text()
    names = sorted(set(json.loads(whole)["weight_map"].values()))

    def say(change: dict[str, str | None]) -> str:
        index = json.loads(whole)
        for tensor, name in change.items():
            if name is None:
                del index["weight_map"][tensor]
            else:
                index["weight_map"][tensor] = name
        (path / INDEX).write_text(json.dumps(index))
        with pytest.raises(BadFileError) as caught:
            open_model(path)
        return str(caught.value)

    shard_of = json.loads(whole)["weight_map"]
    other = next(name for name in names if name != shard_of["model.norm.weight"])
    assert "tensors in another shard: model.norm.weight" in say({"model.norm.weight": other})
    assert "tensors it lacks: model.norm.weight" in say({"model.norm.weight": None})
    assert "tensors the shards lack: model.norm.bias" in say({"model.norm.bias": other})
    assert "files that are not there: gone.safetensors" in say({"model.norm.weight": "gone.safetensors"})
    (path / "model-00009-of-00009.safetensors").write_bytes(b"")
    assert "shards that it does not name lie beside it: model-00009-of-00009" in say({})


# --- files that change, memory, cancel


def test_a_file_truncated_or_changed_while_it_is_read_is_an_error(tmp_path: Path) -> None:
    path = files.folder(tmp_path / "tiny")
    size = (path / SINGLE).stat().st_size

    def truncate(what: str, done: int, total: int, unit: str) -> None:
        del what, total, unit
        if done:
            os.truncate(path / SINGLE, 5000)

    with pytest.raises(BadFileError, match="truncated while it was read"):
        open_model(path, progress=truncate)
    files.folder(tmp_path / "again")
    target = tmp_path / "again" / SINGLE

    def touch(what: str, done: int, total: int, unit: str) -> None:
        del what, done, total, unit
        os.utime(target, ns=(5, 5))

    with pytest.raises(BadFileError, match="changed while it was read"):
        open_model(target.parent, progress=touch)
    assert target.stat().st_size == size


def test_a_model_larger_than_memory_is_refused_unread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = files.folder(tmp_path / "tiny")
    need = plan_model(path).bytes_by_dtype["float16"]
    monkeypatch.setattr("model.loading.available_bytes", lambda _: int(need * 1.5))
    plan = plan_model(path)
    assert (plan.fits, plan_model(path, dtype="float16").fits) == (False, True)
    with pytest.raises(TooBigError, match="Bfloat16 or float16 would fit"):
        open_model(path)
    assert open_model(path, dtype="float16").info.dtype == "float16"


def test_cancel_stops_between_tensors(tmp_path: Path) -> None:
    path = files.folder(tmp_path / "tiny")
    asked = 0

    def cancel() -> None:
        nonlocal asked
        asked += 1
        if asked == 9:
            raise CancelledError

    with pytest.raises(CancelledError):
        open_model(path, check_cancel=cancel)
    assert asked == 9


def test_errors_are_one_sentence_kind(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError) as caught:
        open_model(tmp_path / "nowhere" / "model")
    assert "no such file or folder" in str(caught.value)


def test_a_system_that_gives_no_more_files_is_not_taken_for_a_bad_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = files.folder(tmp_path / "tiny")

    def none_left(*_: object) -> Path:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE), str(path))

    monkeypatch.setattr("model.loading.open_folder", none_left)
    for asked in (open_model, plan_model):
        with pytest.raises(LackingError, match=r"^Too many files are open: raise the limit"):
            asked(path)
