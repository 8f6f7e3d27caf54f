"""Small checkpoint files for tests: a tiny Llama as a folder and as GGUF, and raw files with any fault wanted."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import torch
from safetensors.torch import save_file
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

from model.tokenizer import BYTE_OF
from tests.model.reference import Reference, reference

TINY: dict[str, Any] = {
    "vocab_size": 300,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
    "bos_token_id": None,
    "eos_token_id": 257,
}
MERGES = (("t", "h"), ("th", "e"), ("Ġ", "the"), ("Ġ", "Ġ"), ("i", "n"), ("a", "n"))
SPECIAL = ("<|start|>", "<|end|>")


def tiny(**fields: Any) -> Reference:
    """The reference model the files below hold."""
    return reference("Llama", **(TINY | fields))


def vocabulary() -> list[str]:
    """256 byte tokens, two special ones, those of MERGES."""
    return [*BYTE_OF, *SPECIAL, *(left + right for left, right in MERGES)]


def tiny_tokenizer() -> Tokenizer:
    """A byte-level BPE whose single digits stand alone, as SmolLM2's."""
    index = {token: token_id for token_id, token in enumerate(vocabulary())}
    tokenizer = Tokenizer(models.BPE(vocab=index, merges=list(MERGES)))
    cuts = [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(cuts)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(token, normalized=False) for token in SPECIAL])
    return tokenizer


def folder(path: Path, *, tokenizer: bool = True, shard: bool = False, **fields: Any) -> Path:
    """A Hugging Face-style folder as the reference saves it."""
    judge = tiny(**fields)
    path.mkdir(parents=True, exist_ok=True)
    if shard:
        judge.model.save_pretrained(path, max_shard_size="40KB")
    else:
        save_file(judge.tensors, path / "model.safetensors", metadata={"format": "pt"})
    (path / "config.json").write_text(json.dumps(judge.config))
    if tokenizer:
        tiny_tokenizer().save(str(path / "tokenizer.json"))
        (path / "tokenizer_config.json").write_text(json.dumps({"eos_token": "<|end|>", "chat_template": "{{ 1 }}"}))
    return path


def edit_config(path: Path, **fields: Any) -> None:
    """Changes fields of a folder's config.json; None removes one."""
    file = path / "config.json"
    values = json.loads(file.read_text()) | fields
    file.write_text(json.dumps({name: value for name, value in values.items() if value is not None}))


def raw_safetensors(
    path: Path, header: Mapping[str, Any] | str | bytes, data: bytes = b"", length: int | None = None
) -> Path:
    """A safetensors file with any header, right or wrong."""
    text = (
        header
        if isinstance(header, bytes)
        else header.encode()
        if isinstance(header, str)
        else json.dumps(header).encode()
    )
    path.write_bytes((len(text) if length is None else length).to_bytes(8, "little") + text + data)
    return path


def entry(dtype: str, shape: Sequence[int], begin: int, end: int) -> dict[str, Any]:
    """A header's entry."""
    return {"dtype": dtype, "shape": list(shape), "data_offsets": [begin, end]}


def _permuted(tensor: torch.Tensor, n_heads: int) -> np.ndarray:
    # As llama.cpp's converter writes q and k of Llama: half-split rotary pairs become neighbours.
    rows = tensor.reshape(n_heads, 2, -1, *tensor.shape[1:]).swapaxes(1, 2)
    return rows.reshape(tensor.shape).contiguous().numpy()


def tiny_gguf(path: Path, *, kind: str = "F32", meta: Mapping[str, Any] | None = None, **fields: Any) -> Path:
    """The tiny model as llama.cpp's converter would write it, matrices in the GGML type `kind`."""
    judge = tiny(**fields)
    config = judge.config
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_rope_freq_base(10000.0)
    writer.add_vocab_size(config["vocab_size"])
    writer.add_rope_dimension_count(config["hidden_size"] // config["num_attention_heads"])
    tokens = vocabulary()
    tokens += [f"[PAD{number}]" for number in range(len(tokens), config["vocab_size"])]
    kinds = [3 if token in SPECIAL else 5 if token.startswith("[PAD") else 1 for token in tokens]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list(tokens)
    writer.add_token_types(kinds)
    writer.add_token_merges([" ".join(merge) for merge in MERGES])
    writer.add_eos_token_id(257)
    writer.add_chat_template("{{ 2 }}")
    for key, value in (meta or {}).items():
        writer.add_key_value(key, value[0], value[1])
    for name, tensor in judge.tensors.items():
        heads = {"q_proj": config["num_attention_heads"], "k_proj": config["num_key_value_heads"]}
        part = next((part for part in heads if part in name), None)
        array = _permuted(tensor, heads[part]) if part else tensor.numpy()
        _add(writer, gguf_name(name), array, kind if array.ndim == 2 else "F32")
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _add(writer: gguf.GGUFWriter, name: str, array: np.ndarray, kind: str) -> None:
    number = gguf.GGMLQuantizationType[kind]
    data = gguf.quantize(np.ascontiguousarray(array), number)
    writer.add_tensor(name, data, raw_dtype=number)


GGUF_PARTS = {
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}
GGUF_TOPS = {
    "model.embed_tokens.weight": "token_embd.weight",
    "model.norm.weight": "output_norm.weight",
    "lm_head.weight": "output.weight",
}


def gguf_name(name: str) -> str:
    """llama.cpp's name of a Llama tensor."""
    if name in GGUF_TOPS:
        return GGUF_TOPS[name]
    _, _, layer, rest = name.split(".", 3)
    part, _, suffix = rest.rpartition(".")
    return f"blk.{layer}.{GGUF_PARTS[part]}.{suffix}"


def gguf_string(text: str | bytes) -> bytes:
    """A string as a GGUF holds it."""
    raw = text.encode() if isinstance(text, str) else text
    return struct.pack("<Q", len(raw)) + raw


def raw_gguf(
    *, version: int = 3, tensors: int = 0, keys: int = 0, body: bytes = b"", magic: bytes = b"GGUF", order: str = "<"
) -> bytes:
    """A GGUF's bytes with any header."""
    return magic + struct.pack(f"{order}IQQ", version, tensors, keys) + body


def gguf_key(key: str, kind: int, value: bytes) -> bytes:
    """One key of the metadata."""
    return gguf_string(key) + struct.pack("<I", kind) + value


def gguf_tensor(name: str, dims: Sequence[int], kind: int = 0, offset: int = 0, n_dims: int | None = None) -> bytes:
    """One tensor's entry."""
    count = len(dims) if n_dims is None else n_dims
    return gguf_string(name) + struct.pack(f"<I{len(dims)}QIQ", count, *dims, kind, offset)


def split_gguf(path: Path, count: int) -> list[Path]:
    """The file cut into parts as llama.cpp's gguf-split does: metadata in the first, tensors spread."""
    reader = gguf.GGUFReader(path)
    stem = path.name.removesuffix(".gguf")
    parts = []
    for number in range(count):
        part = path.parent / f"{stem}-{number + 1:05d}-of-{count:05d}.gguf"
        writer = gguf.GGUFWriter(part, "llama")
        if number == 0:
            for key, field in reader.fields.items():
                if not key.startswith("GGUF.") and key != "general.architecture":
                    sub_type = field.types[1] if len(field.types) > 1 else None
                    writer.add_key_value(key, field.contents(), field.types[0], sub_type=sub_type)
        writer.add_key_value("split.no", number, gguf.GGUFValueType.UINT16)
        writer.add_key_value("split.count", count, gguf.GGUFValueType.UINT16)
        for tensor in reader.tensors[number::count]:
            writer.add_tensor(tensor.name, np.array(tensor.data), raw_dtype=tensor.tensor_type)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        parts.append(part)
    return parts
