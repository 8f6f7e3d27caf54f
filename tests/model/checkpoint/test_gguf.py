"""GGUF weights and configuration on tiny files, against the gguf package and transformers' own dequantisation."""

from contextlib import closing
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
import torch
from gguf import GGUFValueType
from transformers.integrations.gguf import dequant as judge

from model.checkpoint import gguf_source
from model.checkpoint.checkpoint import open_gguf_checkpoint
from model.checkpoint.errors import BadFileError, CheckpointError
from model.checkpoint.gguf_header import BLOCKS, read_header
from model.loading import open_model
from tests.model.checkpoint import files


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DECODERSCOPE_CACHE_DIR", str(tmp_path / "cache"))


def test_block_sizes_are_ggmls() -> None:
    sizes = {kind.value: (kind.name, *gguf.GGML_QUANT_SIZES[kind]) for kind in gguf.GGML_QUANT_SIZES}
    assert sizes == dict(BLOCKS)


@pytest.mark.parametrize("prepare", [True, False])
@pytest.mark.parametrize("tied", [True, False])
def test_a_float_file_gives_the_references_logits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, tied: bool, prepare: bool
) -> None:
    monkeypatch.setattr("model.checkpoint.prepared.LARGEST_BYTES", 1 << 30 if prepare else 0)
    path = files.tiny_gguf(tmp_path / "tiny.gguf", tie_word_embeddings=tied)
    model = open_model(path)
    assert (tmp_path / "cache" / "prepared").exists() is prepare
    theirs = files.tiny(tie_word_embeddings=tied)
    ids = [5, 77, 131, 12, 290, 0, 44]
    logits = model.decoder(torch.tensor(ids), model.decoder.new_cache(), logits="all")
    reference = theirs.run(ids)[0].logits
    assert (logits - reference).abs().max() < 1e-4  # the same float32 weights, sums in another order
    assert model.info.name == "tiny"
    assert model.tokenizer.chat_template == "{{ 2 }}"
    assert model.tokenizer.encode("the 12<|end|>") == files.tiny_tokenizer().encode("the 12<|end|>").ids


QUANTISED = ["Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K"]


@pytest.mark.parametrize("name", [*QUANTISED, "F16", "BF16"])
def test_dequantisation_agrees_with_two_others(name: str) -> None:
    kind = gguf.GGMLQuantizationType[name]
    block, width = gguf.GGML_QUANT_SIZES[kind]
    n_blocks = 4096 * 3 + 5 if block == 1 else 16 * 256 + 37
    rng = np.random.default_rng(7)
    raw = rng.integers(0, 256, n_blocks * width, dtype=np.uint8)
    halves = {"Q2_K": (80, 82), "Q3_K": (108,), "Q4_K": (0, 2), "Q5_K": (0, 2), "Q6_K": (208,)}
    for at in halves.get(name, (0, 2) if name.endswith("_1") else (0,)):  # scales: finite, of usual size
        rows = raw.reshape(n_blocks, width)
        scales = rng.normal(0, 0.1, n_blocks).astype(np.float16 if name != "BF16" else np.float32)
        rows[:, at : at + 2] = scales.view(np.uint8).reshape(n_blocks, -1)[:, -2:]
    ours = gguf_source.dequantise(raw, name)
    assert ours.dtype == torch.float32
    assert ours.isfinite().all()
    theirs = gguf.dequantize(raw.reshape(1, -1), kind).ravel()
    assert np.array_equal(ours.numpy(), theirs)
    if name in {"Q5_0", "Q5_1"}:
        assert np.allclose(ours[: 32 * 50].numpy(), _five_bits(raw.reshape(-1, width)[:50], name), rtol=1e-6)
    elif name in QUANTISED:
        other = judge.dequantize(torch.from_numpy(raw.copy()).view(1, -1), kind, torch.float32).reshape(-1)
        assert (ours - other).abs().max() <= 1e-6 * ours.abs().max()


def _five_bits(blocks: np.ndarray, name: str) -> list[float]:
    # ggml-quants.c, number by number: the judge above lacks these two.
    values = []
    for block in blocks:
        scale, low = (float(block[at : at + 2].view(np.float16)[0]) for at in (0, 2))
        at = 2 if name == "Q5_0" else 4
        high = int.from_bytes(block[at : at + 4].tobytes(), "little")
        for number in range(32):
            byte = int(block[at + 4 + number % 16])
            quant = (byte >> 4 if number >= 16 else byte & 15) | (high >> number & 1) << 4
            values.append((quant - 16) * scale if name == "Q5_0" else quant * scale + low)
    return values


@pytest.mark.parametrize("kind", ["Q8_0", "Q4_1", "F16", "BF16"])
def test_a_quantised_file_holds_its_dequantised_weights(tmp_path: Path, kind: str) -> None:
    model = open_model(files.tiny_gguf(tmp_path / f"{kind}.gguf", kind=kind))
    number = gguf.GGMLQuantizationType[kind]
    weights = dict(model.decoder.named_parameters())
    for name, tensor in files.tiny().tensors.items():
        if tensor.ndim == 2 and "q_proj" not in name and "k_proj" not in name:
            expected = gguf.dequantize(gguf.quantize(tensor.numpy(), number), number)
            assert np.array_equal(weights[name.removeprefix("model.")].numpy(), expected), name


def test_every_part_of_a_split_file_opens_the_whole(tmp_path: Path) -> None:
    whole = files.tiny_gguf(tmp_path / "tiny.gguf")
    expected = open_model(whole).decoder.state_dict()
    parts = files.split_gguf(whole, 3)
    for part in parts:
        state = open_model(part).decoder.state_dict()
        assert all(torch.equal(state[name], tensor) for name, tensor in expected.items())
    parts[1].unlink()
    with pytest.raises(BadFileError, match=r"one part of 3, and parts are missing: tiny-00002-of-00003\.gguf"):
        open_model(parts[2])


def test_a_part_under_another_name_is_refused(tmp_path: Path) -> None:
    parts = files.split_gguf(files.tiny_gguf(tmp_path / "tiny.gguf"), 2)
    renamed = parts[0].rename(tmp_path / "alone.gguf")
    with pytest.raises(BadFileError, match=r"split\.count.*found 2, expected 1"):
        open_model(renamed)


def test_a_half_precision_copy_is_the_rounded_float_one(tmp_path: Path) -> None:
    path = files.tiny_gguf(tmp_path / "tiny.gguf")
    full = open_model(path).decoder.state_dict()
    half = open_model(path, dtype="bfloat16").decoder.state_dict()
    assert all(torch.equal(half[name], tensor.bfloat16()) for name, tensor in full.items())


_SWAPS: tuple[tuple[Any, GGUFValueType], ...] = (
    ([2], GGUFValueType.ARRAY),
    ([float("nan")] * 3, GGUFValueType.ARRAY),
    (["a", "a", ""], GGUFValueType.ARRAY),
    ([True, False], GGUFValueType.ARRAY),
    (float("nan"), GGUFValueType.FLOAT32),
    (-1, GGUFValueType.INT32),
    (2**64 - 1, GGUFValueType.UINT64),
    (True, GGUFValueType.BOOL),
    ("", GGUFValueType.STRING),
)
_MORE = ("tokenizer.ggml.bos_token_id", "tokenizer.ggml.eot_token_id", "tokenizer.ggml.add_bos_token", "split.count",
         "split.no", "general.alignment", "llama.expert_count", "llama.attention.key_length",
         "llama.rope.scaling.factor")  # fmt: skip


def test_any_key_of_another_kind_is_a_refusal_or_changes_nothing(tmp_path: Path) -> None:
    whole = files.tiny_gguf(tmp_path / "whole.gguf")
    with whole.open("rb") as file:
        keys = read_header(file.fileno(), whole).meta
    said: dict[str, str] = {}
    for key in (*keys, *_MORE):
        for value, kind in _SWAPS:
            path = files.tiny_gguf(tmp_path / "swapped.gguf", meta={key: (value, kind)})
            try:
                with closing(open_gguf_checkpoint(path, lambda: "")) as checkpoint:
                    checkpoint.tokenizer()
            except CheckpointError as error:
                said[f"{key} {value!r}"] = str(error)
    assert len(said) > 100 and all("swapped.gguf: " in sentence for sentence in said.values())


@pytest.mark.parametrize(
    ("meta", "said"),
    [
        ({"attention.causal": False}, r"attention\.causal is False; expected true"),
        ({"rope.dimension_count": 4}, r"rope\.dimension_count is 4; expected 8, the size of a head"),
        ({"rope.scaling.type": "ntk"}, r"rope\.scaling\.type is 'ntk'; expected one of none, linear, yarn"),
        ({"rope.scaling.type": "yarn"}, r"factor is None; expected the factor of the yarn scaling"),
        ({"rope.scaling.factor": 2.0, "rope.scaling.attn_factor": 1.5}, r"attn_factor is 1\.5; expected 1"),
    ],
)
def test_what_would_make_other_numbers_and_is_not_known_is_refused(
    tmp_path: Path, meta: dict[str, Any], said: str
) -> None:
    path = files.tiny_gguf(tmp_path / "m.gguf", meta={f"llama.{key}": _typed(value) for key, value in meta.items()})
    with pytest.raises(BadFileError, match=said):
        open_model(path)


@pytest.mark.parametrize(
    ("meta", "rope"),
    [
        ({}, ("default", 1.0)),
        ({"rope.scaling.type": "none", "rope.scaling.factor": 4.0}, ("default", 1.0)),
        ({"rope.scaling.factor": 0.0}, ("default", 1.0)),
        ({"rope.scaling.factor": 4.0, "rope.scaling.finetuned": True}, ("linear", 4.0)),
        ({"rope.scale_linear": 2.0}, ("linear", 2.0)),
        ({"rope.scaling.type": "yarn", "rope.scaling.factor": 4.0, "rope.scaling.yarn_beta_fast": 16.0}, ("yarn", 4.0)),
    ],
)
def test_a_scaling_of_positions_is_read_as_llama_cpp_reads_it(
    tmp_path: Path, meta: dict[str, Any], rope: tuple[str, float]
) -> None:
    path = files.tiny_gguf(tmp_path / "m.gguf", meta={f"llama.{key}": _typed(value) for key, value in meta.items()})
    found = open_model(path).decoder.config.rope
    assert found is not None and (found.kind, found.factor) == rope
    assert found.kind != "yarn" or found.beta_fast == 16.0


def _typed(value: Any) -> tuple[Any, GGUFValueType]:
    return value, GGUFValueType.get_type(value)
