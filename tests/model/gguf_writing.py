"""Writes the reference's tiny models as llama.cpp's converter writes the real ones.

Tensor names come from the `gguf` package's own map; what the converter does to values follows llama.cpp's
conversion scripts. That this writing is right is judged by transformers' GGUF loader and by llama.cpp itself.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import gguf
import torch
from torch import Tensor

from tests.model.reference import Reference

ARCHITECTURES = {
    "gpt2": "gpt2",
    "gpt_neox": "gptneox",
    "bloom": "bloom",
    "falcon": "falcon",
    "llama": "llama",
    "mixtral": "llama",
    "qwen2": "qwen2",
    "qwen3": "qwen3",
    "qwen3_moe": "qwen3moe",
    "gemma": "gemma",
    "gemma2": "gemma2",
    "gemma3_text": "gemma3",
    "phi3": "phi3",
    "olmo2": "olmo2",
}
ARCH_OF_NAME = {name: arch for arch, name in gguf.MODEL_ARCH_NAMES.items()}


def write_gguf(path: Path, judge: Reference, meta: Mapping[str, Any] | None = None) -> Path:
    """`judge` as a float32 GGUF file, with other values of the keys in `meta`; None leaves a key out."""
    config = judge.model.config
    arch = ARCHITECTURES[config.model_type]
    writer = gguf.GGUFWriter(path, arch)
    _write_fields(writer, arch, config)
    _write_tokens(writer, config.vocab_size)
    for key, value in (meta or {}).items():
        writer.kv_data[0].pop(key, None)
        if value is not None:
            kind = gguf.GGUFValueType.UINT32 if type(value) is int else gguf.GGUFValueType.get_type(value)
            writer.add_key_value(key, value, kind)
    tied = config.tie_word_embeddings
    names = gguf.get_tensor_name_map(ARCH_OF_NAME[arch], config.num_hidden_layers)
    tensors = {name: tensor for name, tensor in judge.tensors.items() if not (tied and "lm_head" in name)}
    for name, tensor in _converted(config, tensors):
        known = name.removeprefix("transformer.") if arch == "bloom" else name
        found = names.get_name(known, (".weight", ".bias")) or name
        writer.add_tensor(found, tensor.contiguous().float().numpy())
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _write_fields(writer: gguf.GGUFWriter, arch: str, config: Any) -> None:
    n_heads, d_model = config.num_attention_heads, config.hidden_size
    stated = getattr(config, "head_dim", None)
    d_head = stated or d_model // n_heads
    n_kv = getattr(config, "num_kv_heads" if arch == "falcon" else "num_key_value_heads", None)
    if arch == "falcon" and config.multi_query and not config.new_decoder_architecture:
        n_kv = 1
    inner = {"gpt2": "n_inner", "falcon": "ffn_hidden_size"}.get(arch, "intermediate_size")
    writer.add_context_length(getattr(config, "max_position_embeddings", 64))
    writer.add_embedding_length(d_model)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(getattr(config, inner, None) or 4 * d_model)
    writer.add_head_count(n_heads)
    writer.add_vocab_size(config.vocab_size)
    if n_kv:
        writer.add_head_count_kv(n_kv)
    if stated and arch not in {"falcon", "bloom", "gpt2", "gptneox", "phi3"}:
        writer.add_key_length(d_head)
        writer.add_value_length(d_head)
    if hasattr(config, "rms_norm_eps"):
        writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    else:
        writer.add_layer_norm_eps(getattr(config, "layer_norm_epsilon", None) or config.layer_norm_eps)
    _write_rope(writer, arch, config, d_head)
    if getattr(config, "sliding_window", None) and arch in {"gemma2", "gemma3", "phi3"}:
        writer.add_sliding_window(config.sliding_window)
    elif arch == "phi3":
        writer.add_sliding_window(0)
    if arch == "gptneox":
        writer.add_parallel_residual(config.use_parallel_residual)
    if arch == "gemma2":
        writer.add_attn_logit_softcapping(config.attn_logit_softcapping)
    if getattr(config, "final_logit_softcapping", None):
        writer.add_final_logit_softcapping(config.final_logit_softcapping)
    if config.model_type in {"mixtral", "qwen3_moe"}:
        writer.add_expert_count(config.num_local_experts)
        writer.add_expert_used_count(config.num_experts_per_tok)
    if config.model_type == "qwen3_moe":
        writer.add_expert_feed_forward_length(config.moe_intermediate_size)


def _write_rope(writer: gguf.GGUFWriter, arch: str, config: Any, d_head: int) -> None:
    rope: Mapping[str, Any] | None = getattr(config, "rope_parameters", None)
    if not rope or arch in {"gpt2", "bloom"}:
        return
    rope = rope.get("full_attention", rope)
    writer.add_rope_dimension_count(int(d_head * rope.get("partial_rotary_factor", 1.0)))
    if arch not in {"falcon", "gptneox"}:
        writer.add_rope_freq_base(rope["rope_theta"])
    if arch == "phi3":
        writer.add_rope_scaling_orig_ctx_len(config.original_max_position_embeddings)
    kind = rope["rope_type"]
    if kind in {"linear", "yarn"}:
        writer.add_rope_scaling_type(gguf.RopeScalingType(kind))
        writer.add_rope_scaling_factor(rope["factor"])
    if kind == "yarn":
        writer.add_rope_scaling_orig_ctx_len(rope["original_max_position_embeddings"])
    if kind == "longrope":
        scale = config.max_position_embeddings / config.original_max_position_embeddings
        original = config.original_max_position_embeddings
        writer.add_rope_scaling_attn_factors(math.sqrt(1 + math.log(scale) / math.log(original)) if scale > 1 else 1.0)


def _write_tokens(writer: gguf.GGUFWriter, count: int) -> None:
    tokens = ["Ċ", *(f"t{number}" for number in range(1, count - 2)), "t", "1"]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(tokens)
    writer.add_token_types([gguf.TokenType.NORMAL] * count)
    writer.add_token_merges(["t 1"])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_add_bos_token(False)


def _converted(config: Any, tensors: Mapping[str, Tensor]) -> Iterator[tuple[str, Tensor]]:
    kind = config.model_type
    experts: dict[str, list[Tensor]] = {}
    for name, tensor in tensors.items():
        if ".experts." in name:
            # …experts.3.w1.weight → …experts.w1.weight, all experts stacked in order
            at, _, rest = name.partition(".experts.")
            number, part = rest.split(".", 1)
            stack = experts.setdefault(f"{at}.experts.{part}", [torch.empty(0)] * config.num_local_experts)
            stack[int(number)] = tensor
        else:
            yield name, _value(kind, config, name, tensor)
    for name, stack in experts.items():
        yield name, torch.stack(stack)
    yield from _tables(config)


def _value(kind: str, config: Any, name: str, tensor: Tensor) -> Tensor:
    n_heads = config.num_attention_heads
    if kind in {"llama", "mixtral"} and (".q_proj." in name or ".k_proj." in name):
        heads = n_heads if ".q_proj." in name else config.num_key_value_heads
        halves = tensor.reshape(heads, 2, -1, *tensor.shape[1:])  # (H, 2, D/2, …)
        return halves.swapaxes(1, 2).reshape(tensor.shape)
    if kind == "gpt2" and name.endswith((".c_attn.weight", ".c_proj.weight", ".c_fc.weight")):
        return tensor.t()
    if kind in {"gpt_neox", "bloom"} and "query_key_value" in name:
        parts = tensor.reshape(n_heads, 3, -1, *tensor.shape[1:])  # (H, 3, D, …)
        return torch.cat([parts[:, index].reshape(-1, *tensor.shape[1:]) for index in range(3)])
    if kind == "falcon" and "query_key_value" in name:
        groups = 1 if config.multi_query and not config.new_decoder_architecture else config.num_kv_heads
        rows = tensor.reshape(groups, n_heads // groups + 2, -1, *tensor.shape[1:])  # (K, H/K + 2, D, …)
        rest = tensor.shape[1:]
        return torch.cat([part.reshape(-1, *rest) for part in (rows[:, :-2], rows[:, -2], rows[:, -1])])
    if kind.startswith("gemma") and name.endswith("norm.weight"):
        return tensor + 1
    return tensor


def _tables(config: Any) -> Iterator[tuple[str, Tensor]]:
    rope: Mapping[str, Any] = getattr(config, "rope_parameters", None) or {}
    kind = rope.get("rope_type")
    if kind == "longrope":
        yield "rope_factors_long.weight", torch.tensor(rope["long_factor"])
        yield "rope_factors_short.weight", torch.tensor(rope["short_factor"])
    if kind == "llama3":
        original, low, high = (rope[f"{name}"] for name in ("original_max_position_embeddings", *_FREQUENCIES))
        factors = []
        for pair in range(0, config.head_dim, 2):
            wavelength = 2 * math.pi * rope["rope_theta"] ** (pair / config.head_dim)
            if wavelength < original / high:
                factors.append(1.0)
            elif wavelength > original / low:
                factors.append(rope["factor"])
            else:
                smooth = (original / wavelength - low) / (high - low)
                factors.append(1 / ((1 - smooth) / rope["factor"] + smooth))
        yield "rope_freqs.weight", torch.tensor(factors)


_FREQUENCIES = ("low_freq_factor", "high_freq_factor")
