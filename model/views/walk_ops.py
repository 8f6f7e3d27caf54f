"""The operations of a walk as values: a result with its formula, its axes and its statistics."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from model.device import to_host
from model.layers import Norm
from model.protocol.framing import Array
from model.protocol.walk_requests import WalkAxis, WalkOp, WalkToken
from model.views.heat import shrink

MOST_COLS = 16_384
Floats = NDArray[np.float32]


@dataclass(kw_only=True, eq=False)
class Walk:
    """Operations in order, and the array of each."""

    ops: list[WalkOp] = field(default_factory=list)
    arrays: list[Floats] = field(default_factory=list)

    def add(
        self,
        id_: str,
        values: Tensor | Floats,
        formula: str,
        letters: str,
        *,
        rows: WalkAxis = "one",
        cols: WalkAxis = "dim",
        first_row: int = -1,
        parts: tuple[WalkAxis, WalkAxis] = ("one", "one"),
        recomputed: bool = False,
        at_positions: bool = False,
        note: str = "",
        tokens: tuple[WalkToken, ...] = (),
    ) -> None:
        """Appends an operation; `values` (n,) or (rows, cols), NaN where masked."""
        exact = as_floats(values)
        matrix = exact.reshape(1, -1) if exact.ndim == 1 else exact
        seen = exact[~np.isnan(exact)].astype(np.float64)
        kept = shrink(matrix, matrix.shape[0], MOST_COLS)
        self.ops.append(
            WalkOp(
                id=id_,
                formula=formula,
                letters=letters,
                shape=exact.shape,
                rows=rows,
                cols=cols,
                low=float(seen.min()) if seen.size else float("nan"),
                high=float(seen.max()) if seen.size else float("nan"),
                mean=float(seen.mean()) if seen.size else float("nan"),
                std=float(seen.std()) if seen.size else float("nan"),
                norm=float(np.sqrt((seen**2).sum())),
                first_row=first_row,
                pooled=kept.shape != matrix.shape,
                parts_rows=parts[0],
                parts_cols=parts[1],
                recomputed=recomputed,
                at_positions=at_positions,
                note=note,
                tokens=tokens,
            )
        )
        self.arrays.append(kept)

    def named(self) -> dict[str, Array]:
        """The arrays as they travel."""
        return {str(index): np.ascontiguousarray(values) for index, values in enumerate(self.arrays)}


def as_floats(values: Tensor | Floats) -> Floats:
    """float32 on the host."""
    if isinstance(values, Tensor):
        floats: Floats = to_host(values.float()).numpy()
        return floats
    return values


def norm_formula(norm: Norm, x: str = "x") -> str:
    """What a norm does to `x`, with its ε."""
    gain = "(1 + γ)" if norm.unit_offset else "γ"
    if norm.is_rms:
        return f"x̂ = {x} / √(mean({x}²) + {norm.eps:g}) ⊙ {gain}"
    return f"x̂ = ({x} − mean({x})) / √(var({x}) + {norm.eps:g}) ⊙ γ + β"


def norm_note(norm: Norm, x: Tensor) -> str:
    """What this row was divided by."""
    row = x.cpu().double().flatten()
    if norm.is_rms:
        return f"rms(x) = {row.square().mean().sqrt().item():.4g}"
    return f"mean(x) = {row.mean().item():.4g},  σ(x) = {row.std(correction=0).item():.4g}"


ACTIVATION_FORMULAS = {
    "silu": "SiLU(g) = g · 1/(1 + e⁻ᵍ)",
    "gelu": "GELU(g) = g · Φ(g)",
    "gelu_tanh": "GELU(g) ≈ ½g · (1 + tanh(√(2/π)(g + 0.044715 g³)))",
    "relu": "ReLU(g) = max(0, g)",
    "relu_squared": "ReLU²(g) = max(0, g)²",
}


def stream_name(layer: int) -> str:
    """The residual stream before `layer`, as formulas write it: x_13, in letters as large as all others."""
    return f"x_{layer}"
