"""The checks of the numbers in words, whole and in brief; and which of them came nearest to its bound."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from app.i18n import tr

if TYPE_CHECKING:
    from collections.abc import Sequence

    from model.protocol.engine_requests import CheckRow


def check_title(row: CheckRow) -> str:
    """A check as the panel names it; one it does not know, as the engine does."""
    return {
        "captured": tr("captured logits = not captured"),
        "cached": tr("cached decode = one forward pass"),
        "fused": tr("fused = explicit attention"),
        "shown": tr("weights·V·W_o = layer's output"),
        "sums": tr("rows of weights sum to 1"),
        "rope": tr("RoPE: shift both, same q·k"),
        "sampler": tr("sampler = plain reference"),
        "blocks": tr("block(stored) = next stream"),
        "keys": tr("stored q, k, v = made again"),
    }.get(row.name, row.title)


def check_name(row: CheckRow) -> str:
    """The same in a word or two."""
    return {
        "captured": tr("captured logits"),
        "cached": tr("cached decode"),
        "fused": tr("fused attention"),
        "shown": tr("weights shown"),
        "sums": tr("sums of weights"),
        "rope": tr("RoPE shift"),
        "sampler": tr("the sampler"),
        "blocks": tr("stored stream"),
        "keys": tr("stored q, k, v"),
    }.get(row.name, row.title)


def nearest(rows: Sequence[CheckRow]) -> CheckRow:
    """The one whose error is the largest share of its bound; before all one that does not hold."""

    def share(row: CheckRow) -> tuple[bool, float]:
        if row.bound and not math.isnan(row.error):
            return not row.ok, row.error / row.bound
        return not row.ok, 0.0 if row.error == 0 else math.inf  # a bound of 0: bit for bit

    return max(rows, key=share)


def check_line(row: CheckRow) -> str:
    """A check with its error and its bound, for one line."""
    error = f"{row.error:.1e}" if row.error else "0"
    bound = f"{row.bound:.0e}" if row.bound else "0"
    if row.ok:
        return tr("self-check: {name} {error} ≤ {bound}", name=check_name(row), error=error, bound=bound)
    return tr("self-check: {name} {error} > {bound} ✗", name=check_name(row), error=error, bound=bound)
