"""What the RoPE panel says: names of curves, facts of the rotation, sentences about models that do not rotate."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from app.i18n import tr
from app.panels.attention_copy import number
from app.widgets.fact_list import Fact
from app.widgets.ticks import figure, short

if TYPE_CHECKING:
    from app.export.panel_files import Table
    from model.protocol.card_requests import RopeFacts
    from model.protocol.framing import Arrays
    from model.protocol.rope_requests import RopeReply

Floats = NDArray[np.float32]
STYLES: dict[str, tuple[str, bool]] = {
    "model": ("accent", False), "none": ("secondary", True), "unscaled": ("accent", True), "linear 4": ("amber", False),
    "yarn 4": ("green", False), "llama3 8": ("text", True), "base 10": ("text", False), "ntk 4": ("green", True),
    "sinusoidal": ("amber", True),
}  # fmt: skip
"""Colour of the theme and whether dashed, by the engine's name of a curve."""


def curve_name(key: str) -> str:
    """A curve as its legend names it."""
    return {
        "model": tr("this model"), "none": tr("no position"), "unscaled": tr("unscaled"), "linear 4": tr("linear ×4"),
        "yarn 4": "YaRN ×4", "llama3 8": "llama3 ×8", "base 10": tr("base ×10"), "ntk 4": "NTK ×4",
        "sinusoidal": tr("sinusoidal"),
    }.get(key, key)  # fmt: skip


def curve_tip(key: str) -> str:
    """What a curve is, in a line."""
    return {
        "model": tr("The rotation this model was trained with"),
        "none": tr("The same q and k without any rotation: distance changes nothing"),
        "unscaled": tr("The model's base without its scaling"),
        "linear 4": tr("Position interpolation: every position divided by 4"),
        "yarn 4": tr("YaRN: slow pairs interpolated by 4, fast pairs kept, the band between blended"),
        "llama3 8": tr("Llama 3.1: long waves slowed by 8, short ones kept"),
        "base 10": tr("A base ten times as large: every wave but the shortest grows longer"),
        "ntk 4": tr("Dynamic NTK at four times the context: a larger base"),
        "sinusoidal": tr(
            "The fixed encoding of the first Transformer: how alike two positions' vectors are (right scale)"
        ),
    }.get(key, "")  # fmt: skip


def scaling_text(facts: RopeFacts) -> str:
    """The model's own scaling."""
    if facts.kind == "default":
        return tr("none")
    name = {"linear": tr("linear"), "dynamic": "dynamic NTK", "yarn": "YaRN", "longrope": "LongRoPE"}.get(
        facts.kind, facts.kind
    )
    words = f"{name} ×{figure(facts.factor, 3)}"
    if facts.original_ctx:
        words += " " + tr("of {n}", n=f"{facts.original_ctx:,}")
    if facts.attention_factor != 1:
        words += " · " + tr("q and k × {factor}", factor=figure(facts.attention_factor))
    return words


def on_the_curve(reply: RopeReply, arrays: Arrays, dtype: str) -> list[Fact]:
    """What the model's own curve has at this distance, and why that is not the score, where rounding parts them."""
    at = np.flatnonzero(np.asarray(arrays["distance"]) == reply.query - reply.key)
    if dtype == "float32" or not at.size or "model" not in reply.curves:
        return []
    score = float(np.asarray(arrays["curve_scores"])[reply.curves.index("model"), at[0]])
    return [
        Fact(name=tr("on the curve"), value=tr("{score}, not rounded", score=figure(score)), tip=tr(
            "Score and curve are both computed in float32. The score is of q and k as the run used them: the model "
            "turns them in float32 and then rounds them to {dtype}. The curve turns the same q and k once more for "
            "every distance and does not round them.", dtype=dtype)),
    ]  # fmt: skip


def score_facts(
    reply: RopeReply, d_head: int, longest_wave: float, n_ctx: int, beside: Sequence[Fact] = ()
) -> list[Fact]:
    """The score and how it came about, with what stands `beside` it; the rotation as this model has it."""
    distance = reply.query - reply.key
    facts = [
        Fact(name=tr("score"), value=f"{figure(reply.raw)} × {short(reply.scale)} = {figure(reply.raw * reply.scale)}",
             voice="strong", tip=tr("q·k of the rotated vectors, times the scale 1/√d, before the mask and softmax")),
        *beside,
        Fact(name=tr("distance"), value=_distance_text(distance), voice="text" if distance >= 0 else "amber"),
        Fact(name=tr("shift both by {n}", n=reply.shift), value=tr("changes {error}", error=_error(reply)),
             voice="green" if reply.shift_error < 1e-4 else "red",
             tip=tr("How much q·k changes when both positions move by {n}, as a share of ‖q‖·‖k‖, measured. "
                    "Only the distance matters, so nothing but rounding is left.", n=reply.shift)),
    ]  # fmt: skip
    rope = reply.facts
    if rope is None:
        return facts
    half = rope.dim // 2
    layout = tr("half-split: i with i + {half}", half=half) if rope.layout == "half-split" else tr(
        "interleaved: 2i with 2i + 1"
    )  # fmt: skip
    partial = rope.dim < d_head
    facts += [
        Fact(name=tr("layout"), value=layout, tip=tr(
            "Which two dimensions of a head make a pair. Papers pair neighbours; these weights pair the two halves. "
            "Checkpoints with neighbours are brought to this order when they are read.")),
        Fact(name=tr("rotated"), value=tr("{n} of {all} dims", n=rope.dim, all=d_head) + (
            " · " + tr("the rest gives {rest}", rest=figure(reply.rest)) if partial else "")),
        Fact(name=tr("base θ"), value=short(rope.theta)),
        Fact(name=tr("scaling"), value=scaling_text(rope)),
        Fact(name=tr("longest wave"), value=tr("{n} · context {ctx}", n=f"{longest_wave:,.0f}",
                                               ctx=f"{n_ctx:,}")),
    ]  # fmt: skip
    if rope.kind in {"dynamic", "longrope"}:
        facts.append(Fact(name=tr("frequencies for"), value=tr("{n} tokens", n=f"{reply.frequencies_length:,}")))
    return facts


def alibi_facts(reply: RopeReply) -> list[Fact]:
    """A head's slope and what it does to this score."""
    distance = reply.query - reply.key
    bias = -reply.slope * distance
    scaled = reply.raw * reply.scale
    return [
        Fact(name=tr("slope"), value=figure(reply.slope), voice="strong"),
        Fact(name=tr("distance"), value=_distance_text(distance), voice="text" if distance >= 0 else "amber"),
        Fact(name=tr("bias"), value=f"-{figure(reply.slope)} × {distance:,} = {figure(bias)}"),
        Fact(name=tr("score"), value=f"{figure(reply.raw)} × {short(reply.scale)} {_signed(bias)} = "
                                     f"{figure(scaled + bias)}"),
        Fact(name=tr("halves e^score every"), value=tr("{n} positions", n=figure(math.log(2) / reply.slope, 3))
             if reply.slope else "–"),
    ]  # fmt: skip


def plain_facts(reply: RopeReply) -> list[Fact]:
    """The score of a model whose attention knows no positions."""
    return [
        Fact(name=tr("score"), value=f"{figure(reply.raw)} × {short(reply.scale)} = {figure(reply.raw * reply.scale)}",
             voice="strong"),
        Fact(name=tr("distance"), value=_distance_text(reply.query - reply.key)),
    ]  # fmt: skip


def instead_text(positions: str) -> str:
    """What a model without RoPE has instead."""
    return {
        "learned": tr(
            "This model rotates nothing. Each position has a row of its own in a learned table; the row is added to "
            "the token's embedding before the first block, and q and k carry it from there. The curve: how alike the "
            "query's row is to every position's (cosine). A table ends where training ended: there is no row beyond "
            "the context."
        ),
        "alibi": tr(
            "This model rotates nothing. ALiBi takes slope × distance off every score, before the softmax. Each head "
            "has its own slope: a steep one reads its neighbours, a flat one the whole text. The line is what it adds "
            "to this head's scores."
        ),
        "none": tr(
            "This model is given no positions at all: q·k depends on content alone, and order is known only from the "
            "mask, which hides what comes later."
        ),
    }.get(positions, "")  # fmt: skip


def _distance_text(distance: int) -> str:
    if distance < 0:
        return tr("{n}: the mask hides a later key", n=f"{distance:,}")
    return tr("1 position") if distance == 1 else tr("{n} positions", n=f"{distance:,}")


def _signed(value: float) -> str:
    return f"{'-' if value < 0 else '+'} {figure(abs(value))}"


def _error(reply: RopeReply) -> str:
    return "0" if reply.shift_error == 0 else f"{reply.shift_error:.1e}"


def rope_tables(reply: RopeReply, arrays: Arrays, facts: Sequence[Fact]) -> list[Table]:
    """What the panel shows as tables, numbers whole."""
    found: list[Table] = [(tr("numbers"), [[fact.name, fact.value] for fact in facts])]
    if "contribution" in arrays:
        half = len(arrays["contribution"])
        names = ("q_before", "q_after", "k_before", "k_after")
        lines = [["pair", "dim_a", "dim_b", "wavelength", "q_angle", "k_angle",
                  *(f"{name}_{side}" for name in names for side in "ab"), "contribution"]]  # fmt: skip
        for i in range(half):
            angles = [number(float(arrays[name][i])) for name in ("wavelength", "q_angle", "k_angle")]
            ends = [number(float(value)) for name in names for value in arrays[name][i]]
            lines.append([str(i), str(i), str(i + half), *angles, *ends, number(float(arrays["contribution"][i]))])
        found.append((tr("pairs"), lines))
    columns: dict[str, Floats] = {}
    if "curve_scores" in arrays:
        columns = dict(zip(reply.curves, np.asarray(arrays["curve_scores"]), strict=True))
    columns |= {name: np.asarray(arrays[name]) for name in ("bias", "similarity", "sinusoidal") if name in arrays}
    if columns:
        count = len(next(iter(columns.values())))
        first = np.asarray(arrays["distance"]) if "distance" in arrays else np.arange(count)
        lines = [["distance" if "distance" in arrays else "position", *columns]]
        lines += [[f"{int(x)}", *(number(float(values[i])) for values in columns.values())]
                  for i, x in enumerate(first)]  # fmt: skip
        found.append((tr("by distance") if "distance" in arrays else tr("by position"), lines))
    return found
