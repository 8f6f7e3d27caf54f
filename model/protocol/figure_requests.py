"""Requests for the figures that are no heat map: sampler, KV growth, logit lens, rotary planes, tinted text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from model.protocol.attention_requests import HeadView, Scale
from model.protocol.export_requests import DrawnRequest, ExportReply, FilePart
from model.protocol.values import SamplerSettings
from model.protocol.wire import request

DrawnFormat = Literal["png", "svg", "pdf", "json"]
"""json: the numbers that are drawn, with metadata."""
TintBy = Literal["surprisal", "entropy", "reads", "read_by"]
"""surprisal: -ln p of each token given those before; entropy: of the distribution after each token, both in nats;
reads: what the query `position` reads of each token; read_by: how much each token reads of the key `position`."""


@dataclass(frozen=True, kw_only=True)
class FigureRequest(DrawnRequest):
    """The base of all of them."""

    formats: tuple[DrawnFormat, ...] = ("png",)
    stem: str = "figure"


@request("export.sampler", ExportReply, lane="view", part=FilePart)
@dataclass(frozen=True, kw_only=True)
class ExportSampler(FigureRequest):
    """The sampler's waterfall for the token after `node` (-1: the current one) under `settings`."""

    node: int = -1
    settings: SamplerSettings
    top: int = 40


@request("export.kv_growth", ExportReply, lane="view", part=FilePart)
@dataclass(frozen=True, kw_only=True)
class ExportKvGrowth(FigureRequest):
    """Bytes of the KV cache against position."""


@request("export.lens", ExportReply, lane="view", part=FilePart)
@dataclass(frozen=True, kw_only=True)
class ExportLens(FigureRequest):
    """The logit lens at positions `rows` ((0, 0): the last 48) at the depths `layers`: 0 is the embedding, l + 1 the
    stream after layer l; empty: all."""

    rows: tuple[int, int] = (0, 0)
    layers: tuple[int, ...] = ()
    width: float = 9.0
    height: float = 7.0


@request("export.rope", ExportReply, lane="view", part=FilePart)
@dataclass(frozen=True, kw_only=True)
class ExportRope(FigureRequest):
    """The planes of one query and key of a head, before and after rotation. Refused for a model without RoPE."""

    layer: int
    head: int
    query: int
    key: int


@request("export.text", ExportReply, lane="view", part=FilePart)
@dataclass(frozen=True, kw_only=True)
class ExportText(FigureRequest):
    """The text with each token tinted `by` a number; `view` and `position` for reads and read_by."""

    height: float = 4.0
    by: TintBy = "surprisal"
    view: HeadView | None = None
    position: int = -1
    rows: tuple[int, int] = (0, 0)
    scale: Scale = "linear"
