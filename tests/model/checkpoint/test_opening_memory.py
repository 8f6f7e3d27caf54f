"""Memory while a model is opened: little more than its weights, or than what its tokenizer's library takes."""

from __future__ import annotations

import itertools
import json
import sys
from pathlib import Path

import gguf
import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from model.checkpoint.safetensors_folder import SINGLE
from tests.model.checkpoint import files
from tests.model.checkpoint.opening_memory import OPEN, PARSE, memory_of

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")

MB = 1e6


def test_loading_takes_little_more_than_the_model(tmp_path: Path) -> None:
    # 268 MB of float32 from bfloat16; the embedding, half of it, is the hardest part.
    path = tmp_path / "big"
    path.mkdir()
    shapes = {"model.embed_tokens.weight": (65536, 512), "model.norm.weight": (512,)}
    for layer in range(11):
        at = f"model.layers.{layer}"
        shapes |= {f"{at}.self_attn.{part}_proj.weight": (512, 512) for part in "qkvo"}
        shapes |= {f"{at}.mlp.{part}_proj.weight": (1280, 512) for part in ("gate", "up")}
        shapes |= {f"{at}.mlp.down_proj.weight": (512, 1280)}
        shapes |= {f"{at}.{part}_layernorm.weight": (512,) for part in ("input", "post_attention")}
    save_file({name: torch.zeros(shape, dtype=torch.bfloat16) for name, shape in shapes.items()}, path / SINGLE)
    config = files.tiny().config | {"hidden_size": 512, "intermediate_size": 1280, "vocab_size": 65536}
    config |= {"num_hidden_layers": 11, "num_key_value_heads": 4, "tie_word_embeddings": True, "head_dim": 128}
    (path / "config.json").write_text(json.dumps(config))
    peak, _, weights = memory_of(OPEN, str(path), "float32")
    assert weights > 260 * MB
    assert peak < 1.3 * weights


def test_a_gguf_in_half_precision_takes_little_more_than_the_model_prepared_or_not(
    default_model_path: Path, tmp_path: Path
) -> None:
    for _ in range(2):
        peak, _, weights = memory_of(OPEN, str(default_model_path), "bfloat16", DECODERSCOPE_CACHE_DIR=str(tmp_path))
        assert weights > 260 * MB
        assert peak < 1.3 * weights
        assert (tmp_path / "prepared").exists()


# --- a large vocabulary: the tokenizer takes as much as a small model's weights

N_TOKENS, D_MODEL, D_MLP = 131_072, 512, 32  # the long tests open a real model of twice as many
ALPHABET = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789▁."


def _many_tokens() -> list[str]:
    """Letters, their pairs, and triples, each made in two ways: twice as many merges as tokens, as Gemma 3 has."""
    words = ("".join(letters) for size in (1, 2, 3) for letters in itertools.product(ALPHABET, repeat=size))
    byte_tokens = (f"<0x{byte:02X}>" for byte in range(256))
    return list(itertools.islice(itertools.chain(["<unk>", "<bos>", "<eos>"], byte_tokens, words), N_TOKENS))


def _many_tokens_gguf(path: Path) -> Path:
    """A Gemma of one layer, all of whose weights are zero (but for the 1 that is added to norms)."""
    writer = gguf.GGUFWriter(path, "gemma")
    writer.add_context_length(64)
    writer.add_embedding_length(D_MODEL)
    writer.add_block_count(1)
    writer.add_feed_forward_length(D_MLP)
    writer.add_head_count(4)
    writer.add_head_count_kv(1)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_tokenizer_model("llama")
    writer.add_token_list(_many_tokens())
    writer.add_token_types([2, 3, 3, *[6] * 256, *[1] * (N_TOKENS - 259)])
    writer.add_token_scores([-float(rank) for rank in range(N_TOKENS)])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)
    d_head = D_MODEL // 4
    matrices = {
        "token_embd": (N_TOKENS, D_MODEL),
        "blk.0.attn_q": (D_MODEL, D_MODEL),
        "blk.0.attn_k": (d_head, D_MODEL),
        "blk.0.attn_v": (d_head, D_MODEL),
        "blk.0.attn_output": (D_MODEL, D_MODEL),
        "blk.0.ffn_gate": (D_MLP, D_MODEL),
        "blk.0.ffn_up": (D_MLP, D_MODEL),
        "blk.0.ffn_down": (D_MODEL, D_MLP),
    }
    for name, (rows, columns) in matrices.items():
        zeros = np.zeros((rows, columns // 32 * 18), np.uint8)
        writer.add_tensor(f"{name}.weight", zeros, raw_dtype=gguf.GGMLQuantizationType.Q4_0)
    for name in ("output_norm", "blk.0.attn_norm", "blk.0.ffn_norm"):
        writer.add_tensor(f"{name}.weight", np.ones(D_MODEL, np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def test_a_large_vocabulary_takes_what_its_library_takes_and_not_while_the_weights_are_read(tmp_path: Path) -> None:
    path, cache = _many_tokens_gguf(tmp_path / "many.gguf"), {"DECODERSCOPE_CACHE_DIR": str(tmp_path / "cache")}
    first = memory_of(OPEN, str(path), "bfloat16", **cache)
    again = memory_of(OPEN, str(path), "bfloat16", **cache)
    mapped = memory_of(OPEN, str(path), "float32", **cache)
    (written,) = (tmp_path / "cache" / "prepared").glob("*/tokenizer.json")
    parsing, tokenizer, _ = memory_of(PARSE, str(written))
    for (peak, left, weights), in_memory in ((first, True), (again, True), (mapped, False)):
        assert weights > 130 * MB
        held = tokenizer + (weights if in_memory else 0)
        assert peak < max(parsing, held) + 50 * MB  # the file's own texts; a block of rows
        assert left < held + 30 * MB
