"""Where the numbers of an exported file came from, as data and as the words of a caption."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from model.export.labels import elide, escape
from model.protocol.attention_requests import Scale, Stage
from model.protocol.values import SamplerSettings

FORMAT_VERSION = 1
"""Of the metadata in exported files; grows when a field changes its meaning."""

STAGE_WORDS: dict[Stage, str] = {
    "raw": "q·kᵀ, unscaled",
    "scores": "attention scores",
    "masked": "attention scores after the mask",
    "weights": "attention weights",
    "weighted": "attention weights × ‖v‖",
}
SCALE_WORDS: dict[Scale, str] = {"linear": "linear", "sqrt": "square root", "log": "logarithmic"}
_SHORT_HASH = 12


def hash_ids(ids: Sequence[int]) -> str:
    """SHA-256 (hex) of token ids as little-endian int64."""
    return hashlib.sha256(np.asarray(ids, dtype="<i8").tobytes()).hexdigest()


@dataclass(frozen=True, kw_only=True)
class Provenance:
    """The model, the text and the settings behind an export. `what`: e.g. "attention weights"; `layer`, `head`,
    `kv_head`: words, empty where there is none. `length` counts the tokens of the path, the first `n_prompt` of which
    were prefilled; `settings` are those of the last decoded token (None before the first)."""

    model: str
    model_sha256: str
    model_source: str
    family: str
    dtype: str
    device: str
    what: str = ""
    layer: str = ""
    head: str = ""
    kv_head: str = ""
    stage: str = ""
    scale: str = ""
    prompt: str = ""
    text: str = ""
    ids_sha256: str = ""
    n_prompt: int = 0
    length: int = 0
    settings: SamplerSettings | None = None
    altered: bool = False
    version: str = ""

    def as_dict(self) -> dict[str, Any]:
        """JSON-compatible, with the format's name and version first."""
        return {"format": "decoderscope export", "format_version": FORMAT_VERSION, **asdict(self), "step": self.step}

    @property
    def step(self) -> int:
        """Tokens decoded after the prompt."""
        return self.length - self.n_prompt

    def as_json(self) -> str:
        """One line of JSON, every character of the text as it is."""
        return json.dumps(self.as_dict(), ensure_ascii=False)

    def caption(self) -> tuple[str, ...]:
        """The facts of a figure's caption, each a phrase without line breaks, in the order of their weight."""
        model = self.model
        if self.model_sha256:
            model += f" (sha256 {self.model_sha256[:_SHORT_HASH]})"
        facts = [escape(model), f"{self.dtype} on {self.device}"]
        facts += [fact for fact in (self._place(), self._drawn(), self._size()) if fact]
        if self.prompt:
            facts.append(f"prompt “{elide(escape(self.prompt), 100)}”")
        if self.ids_sha256:
            facts.append(f"ids sha256 {self.ids_sha256[:_SHORT_HASH]}")
        if self.settings is not None:
            facts += sampler_words(self.settings)
        if self.altered:
            facts.append("activations were altered by a hook")
        if self.version:
            facts.append(f"Decoderscope {self.version}")
        return tuple(facts)

    def _place(self) -> str:
        head = _counted("head", self.head)
        if self.kv_head:
            head += f" (KV head {self.kv_head})"
        return ", ".join(part for part in (_counted("layer", self.layer), head) if part)

    def _drawn(self) -> str:
        return f"{self.what}, {self.scale} scale" if self.what and self.scale else self.what

    def _size(self) -> str:
        if not self.length:
            return ""
        decoded = f" + {self.step:,} decoded" if self.step else ""
        return f"step {self.step:,}, {self.n_prompt:,} prompt{decoded} token{'s' if self.length > 1 else ''}"


def _counted(what: str, indices: str) -> str:
    return f"{what}{'s' if '–' in indices or ',' in indices else ''} {indices}" if indices else ""


def sampler_words(settings: SamplerSettings) -> list[str]:
    """The settings that are on, as phrases: seed, temperature, top-k, top-p, min-p, repetition penalty."""
    if settings.greedy:
        return [f"seed {settings.seed}", "greedy"]
    words = [f"seed {settings.seed}", f"temperature {settings.temperature:g}"]
    if settings.top_k:
        words.append(f"top-k {settings.top_k:,}")
    if settings.top_p < 1:
        words.append(f"top-p {settings.top_p:g}")
    if settings.min_p > 0:
        words.append(f"min-p {settings.min_p:g}")
    if settings.repetition_penalty != 1:
        words.append(f"repetition penalty {settings.repetition_penalty:g}")
    return words
