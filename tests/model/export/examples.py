"""Matrices and provenance for the export tests."""

from __future__ import annotations

import numpy as np

from model.colormaps import Levels
from model.export.heat_map import HeatMap
from model.export.provenance import Provenance, hash_ids
from model.export.raster import Float32
from model.export.tables import MatrixTable
from model.protocol.attention_requests import Scale
from model.protocol.values import SamplerSettings

PIECES = ("The", "·animal", "·didn", "'t", "·cross", "·the", "·street", "·because", "·it", "·was", "·too", "·tired")
ODD_PIECES = (
    "·$x^2$",
    "<img src=x>",
    "⟨E4⟩",
    "你好",
    "a\nb",
    "\u202eevil",
    "\U0001faf0",
    '"quoted", too',
    "_{i}",
    "\\frac",
    "=1+1",
    "#",
    "%",
    "|end|",
    "·",
    "العربية",
    "very" * 30,
)


def attention(n: int, *, seed: int = 0) -> Float32:
    """(n, n) float32: causal softmax rows, NaN where masked."""
    random = np.random.default_rng(seed)
    scores = random.normal(size=(n, n)) * 3
    hidden = np.triu(np.ones((n, n), dtype=bool), 1)
    scores[hidden] = -np.inf
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    weights /= weights.sum(axis=1, keepdims=True)
    values: Float32 = weights.astype(np.float32)
    values[hidden] = np.nan
    return values


def pieces(n: int) -> tuple[str, ...]:
    return tuple(PIECES[index % len(PIECES)] for index in range(n))


def provenance(n: int, *, n_prompt: int = 0, prompt: str = "The animal didn't cross $the$ <street>") -> Provenance:
    return Provenance(
        model="SmolLM2-135M-Instruct",
        model_sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        model_source="/models/a.gguf",
        family="llama",
        dtype="float32",
        device="cpu",
        what="attention weights",
        layer="13",
        head="8",
        kv_head="2",
        stage="weights",
        scale="square root",
        prompt=prompt,
        ids_sha256=hash_ids(range(n)),
        n_prompt=n_prompt or n,
        length=n,
        settings=SamplerSettings(),
        version="0.1.0",
    )


def heat_map(
    n: int, *, words: tuple[str, ...] | None = None, scale: Scale = "sqrt", boundary: int = 0, signed: bool = False
) -> HeatMap:
    values = attention(n)
    if signed:
        values = (values - np.float32(0.3)) * np.float32(9)
    return HeatMap(
        values=values,
        rows=(0, n),
        cols=(0, n),
        row_pieces=words or pieces(n),
        col_pieces=words or pieces(n),
        levels=Levels.spanning(float(np.nanmin(values)), float(np.nanmax(values)), scale=scale, signed=signed),
        about=provenance(n, n_prompt=boundary),
        title="Attention weights · layer 13 · head 8",
        what="attention weight",
        boundary=boundary,
    )


def matrix_table(values: Float32, words: tuple[str, ...] | None = None, *, block: int = 5) -> MatrixTable:
    """A square matrix as a table served in blocks of `block` rows, from position 3 on."""
    n = values.shape[0]
    return MatrixTable(
        rows=(3, 3 + n),
        cols=(3, 3 + n),
        row_ids=tuple(range(100, 100 + n)),
        col_ids=tuple(range(100, 100 + n)),
        row_pieces=words or pieces(n),
        col_pieces=words or pieces(n),
        about=provenance(n),
        blocks=lambda: (values[start : start + block] for start in range(0, n, block)),
    )
