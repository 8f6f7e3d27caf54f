"""What a run file's record must agree with itself in, before anything of it is used: a number that another one
contradicts, or a text of any length, would reach every panel."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from model.checkpoint.plan import DTYPES
from model.config import LIMITS, DecoderConfig
from model.errors import shown
from model.protocol.values import ModelInfo

MAX_NAME, MAX_PATH, MAX_WARNING = 300, 4_096, 4_000
MAX_WARNINGS, MAX_EOS_IDS = 100, 1_000
_MAX_ID = 1 << 31
_MAX_BYTES = 1 << 53  # beyond it a float, as which bytes are shown, holds no whole number

_FROM_CONFIG = (
    "family", "n_layers", "n_heads", "n_kv_heads", "d_model", "d_head", "d_mlp", "d_vocab", "n_ctx", "positions",
    "attention_kind",
)  # fmt: skip


def trouble_with_info(info: ModelInfo, config: DecoderConfig) -> str:
    """The first field of `info` that `config`, another field or a limit contradicts, as a sentence; empty if none."""
    return next(
        (f"info.{field} is {shown(found)}, {expected}." for field, found, expected in _troubles(info, config)), ""
    )


def _troubles(info: ModelInfo, config: DecoderConfig) -> Iterator[tuple[str, Any, str]]:
    """(field, what it holds, what is expected)."""
    for field in _FROM_CONFIG:
        if getattr(info, field) != (wanted := getattr(config, field)):
            yield field, getattr(info, field), f"config says {shown(wanted)}"
    if info.dtype not in DTYPES:
        yield "dtype", info.dtype, f"expected one of {', '.join(DTYPES)}"
        return
    if not 0 <= info.parameters <= _MAX_BYTES:
        yield "parameters", info.parameters, f"expected 0 to {_MAX_BYTES}"
    if info.weight_bytes != (wanted := info.parameters * DTYPES[info.dtype].itemsize):
        yield "weight_bytes", info.weight_bytes, f"its parameters in {info.dtype} are {wanted}"
    if len(info.eos_ids) > MAX_EOS_IDS or not all(0 <= token < _MAX_ID for token in info.eos_ids):
        yield "eos_ids", info.eos_ids, f"expected at most {MAX_EOS_IDS} ids from 0 to {_MAX_ID - 1}"
    for field, limit in (("name", MAX_NAME), ("sha256", MAX_NAME), ("device", MAX_NAME), ("source", MAX_PATH)):
        text: str = getattr(info, field)
        if len(text) > limit:
            yield field, text, f"{len(text)} characters long; expected at most {limit}"
    if len(info.warnings) > MAX_WARNINGS or any(len(text) > MAX_WARNING for text in info.warnings):
        yield "warnings", info.warnings, f"expected at most {MAX_WARNINGS} of at most {MAX_WARNING} characters"


def trouble_with_run(
    *,
    rope_length: int,
    chunks: tuple[int, ...],
    prefill_ms: float,
    n_prompt: int,
    n_ctx: int,
    special_ids: tuple[int, ...],
) -> str:
    """The same of the numbers that are the run's own."""
    if not 1 <= n_prompt <= n_ctx:
        return f"prompt_ids has {n_prompt} tokens, expected 1 to n_ctx ({n_ctx})."
    if not 0 <= rope_length <= LIMITS["n_ctx"][1]:
        return f"rope_length is {shown(rope_length)}, expected 0 to {LIMITS['n_ctx'][1]}."
    if not all(0 < chunk <= n_prompt for chunk in chunks) or sum(chunks) > n_prompt:
        return (
            f"chunks is {shown(chunks)}, expected numbers from 1 whose sum is the prompt's {n_prompt} tokens at most."
        )
    if not 0 <= prefill_ms < float("inf"):
        return f"prefill_ms is {shown(prefill_ms)}, expected a finite number from 0."
    if not all(0 <= token < _MAX_ID for token in special_ids):
        return f"special_ids is {shown(special_ids)}, expected ids from 0 to {_MAX_ID - 1}."
    return ""
