"""A run without its model: what was recorded can be looked at, nothing can be computed anew."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NoReturn

import torch
from torch import Tensor

from model.config import DecoderConfig
from model.errors import DecoderscopeError, shown
from model.loading import LoadedModel
from model.prefill import ProgressReport, YieldPoint
from model.protocol.values import ModelInfo, Token
from model.run import Run
from model.tokenizer import IdsTokenizer, TextStream
from model.transformer import Decoder


class RecordedError(DecoderscopeError):
    """Something that needs the model's weights, or rows that were not recorded."""

    code = "recorded"

    def __init__(self, model: str, what: str) -> None:
        super().__init__(
            f"This run was recorded without the model: {what}. Open {shown(model)} to compute it (--model in a "
            "command)."
        )


class RecordedDecoder(Decoder):
    """A decoder without weights: its configuration, hook names and attention arithmetic, no forward pass.

    Its layers are there for the names of what they compute; of experts, which share theirs, there is one. `check` may
    raise between layers.
    """

    def __init__(
        self, config: DecoderConfig, *, dtype: torch.dtype, name: str, check: YieldPoint = lambda: None
    ) -> None:
        one = None if config.moe is None else replace(config.moe, n_experts=1, top_k=1)
        super().__init__(replace(config, moe=one), check=check)
        self.config = config
        self._recorded_dtype, self._name = dtype, name

    @property
    def device(self) -> torch.device:
        return torch.device("cpu")

    @property
    def dtype(self) -> torch.dtype:
        return self._recorded_dtype

    def forward(self, *_: Any, **__: Any) -> NoReturn:
        """Raises RecordedError."""
        raise RecordedError(self._name, "no further token can be run")

    def embed_ids(self, *_: Any, **__: Any) -> NoReturn:
        """Raises RecordedError."""
        raise RecordedError(self._name, "its embedding is not in the file")

    def unembed(self, *_: Any, **__: Any) -> NoReturn:
        """Raises RecordedError."""
        raise RecordedError(self._name, "its output head is not in the file")

    def recompute_layer(self, *_: Any, **__: Any) -> NoReturn:
        """Raises RecordedError."""
        raise RecordedError(self._name, "its layers are not in the file")


def hook_names(config: DecoderConfig) -> tuple[str, ...]:
    """The names of all activations of a model, from its configuration alone."""
    return tuple(RecordedDecoder(config, dtype=torch.float32, name="").hook_points)


class RecordedTokenizer(IdsTokenizer):
    """The vocabulary as bytes: shows and joins tokens, and cannot cut a text into them."""

    def __init__(self, tokens: Sequence[bytes | None], *, special: frozenset[int], eos_ids: Sequence[int]) -> None:
        super().__init__(d_vocab=len(tokens), eos_ids=eos_ids)
        self._tokens, self._recorded_special = tokens, special

    @property
    def ids_only(self) -> bool:
        return True

    def token_bytes(self, token_id: int) -> bytes | None:
        return self._tokens[token_id] if 0 <= token_id < len(self._tokens) else None

    def is_special(self, token_id: int) -> bool:
        return token_id in self._recorded_special

    def decode(self, ids: Sequence[int], *, skip_special: bool = False) -> str:
        kept = (token_id for token_id in ids if not (skip_special and self.is_special(token_id)))
        return b"".join(self.token_bytes(token_id) or b"" for token_id in kept).decode("utf-8", "replace")

    def offsets(self, text: str, *, add_special: bool = True) -> list[Token]:
        """Raises RecordedError."""
        del text, add_special
        raise RecordedError("the model", "its tokenizer is not in the file, only what its tokens are")

    def decode_stream(self) -> TextStream:
        return _BytesStream(self)


class _BytesStream(TextStream):
    """Characters as their last byte comes."""

    def __init__(self, tokenizer: RecordedTokenizer) -> None:
        super().__init__(tokenizer)
        self._bytes_of = tokenizer.token_bytes
        self._held = b""

    def push(self, token_id: int) -> str:
        self._held += self._bytes_of(token_id) or b""
        text = self._held.decode("utf-8", "replace")
        if text.endswith("\ufffd"):  # unfinished, or no text at all: the next token tells, as in `tokenizers`
            return ""
        self._held = b""
        return text


class RecordedRun(Run):
    """A run reopened without its model. `recorded` is what the window badges it with."""

    recorded = True

    def __init__(self, model: LoadedModel, *, has_residuals: bool, tokens: int = 0, logits: int = 0) -> None:
        super().__init__(model)
        # What was recorded has its place whatever is free; the panels tell the rest of the budget as of any run.
        self.store.budget = max(self.store.budget, 4 * self.cost(tokens, generated=logits).total)
        self.has_residuals = has_residuals

    def resid(self, layer: int) -> Tensor:
        """The residual stream before `layer`, (length, M). Raises RecordedError where it was left out."""
        if not self.has_residuals:
            raise RecordedError(self.model.info.name, "the residual stream was left out of the file")
        return super().resid(layer)

    def seek(self, node: int, *, progress: ProgressReport | None = None, yield_point: YieldPoint | None = None) -> int:
        """Goes to a node whose rows were recorded. Raises RecordedError for another one; the run stays where it is."""
        self.tree.check(node)
        if any(step in self.store.dropped for step in self.tree.path(node)):
            raise RecordedError(self.model.info.name, "that branch's keys and values are not in the file")
        return super().seek(node, progress=progress, yield_point=yield_point)


def recorded_model(
    config: DecoderConfig,
    info: ModelInfo,
    tokenizer: RecordedTokenizer,
    dtype: torch.dtype,
    check: YieldPoint = lambda: None,
) -> LoadedModel:
    """What stands for the model of a recorded run."""
    decoder = RecordedDecoder(config, dtype=dtype, name=info.name, check=check)
    return LoadedModel(decoder=decoder, tokenizer=tokenizer, info=replace(info, recorded=True))
