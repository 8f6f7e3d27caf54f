"""The KV cache in figures: rows of the panel's tables, made from the engine's answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from app.i18n import tr
from app.widgets.fact_table import Cell, Column, Row
from app.widgets.growth_plot import Growth
from app.widgets.units import amount, duration, three, times

if TYPE_CHECKING:
    from collections.abc import Callable

    from model.protocol.framing import Arrays
    from model.protocol.kv_requests import KvReply, PhaseCost, RecomputeReply
    from model.protocol.values import ModelInfo

DASH = "–"


def growth_of(reply: KvReply, arrays: Arrays, model: ModelInfo) -> Growth:
    """The curve's values; layouts that the model has itself are left out."""
    layouts = [
        (name, size)
        for name, size in (("MHA", reply.bytes_per_token_mha), ("MQA", reply.bytes_per_token_mqa))
        if name != model.attention_kind and size != reply.bytes_per_token
    ]
    grown = zip(_ints(arrays["grown_at"]), _ints(arrays["grown_to"]), strict=True)
    return Growth(
        length=reply.length, n_prompt=min(reply.n_prompt, reply.length), used=reply.used,
        chunk_ends=tuple(end for end in _ints(arrays["chunk_ends"]) if end <= reply.length),
        grown=tuple((start, size) for start, size in grown if start <= reply.length),
        per_token=reply.bytes_per_token, layouts=tuple(layouts),
    )  # fmt: skip


def formula_forms(reply: KvReply, model: ModelInfo) -> tuple[str, ...]:
    """2·L·K·D·N·bytes with this run's numbers, in a line, in two and in three."""
    size = reply.bytes_per_token // max(2 * model.n_layers * model.n_kv_heads * model.d_head, 1)
    product = f"2·{model.n_layers}·{model.n_kv_heads}·{model.d_head}·{reply.length:,}·{size}"
    names, result = "2·L·K·D·N·bytes", f"{reply.formula:,} B"
    return f"{names} = {product} = {result}", f"{names} =\n{product} = {result}", f"{names} =\n{product} =\n{result}"


HEADS = (Column(left=True), Column(bar=True, grows=True), Column())


def heads_rows(reply: KvReply, model: ModelInfo) -> list[Row]:
    """Bytes of a token with one KV head a query head, as the model has it, and with one in all."""
    kinds = [("MHA", model.n_heads, reply.bytes_per_token_mha)]
    if model.attention_kind == "GQA":
        kinds.append(("GQA", model.n_kv_heads, reply.bytes_per_token))
    if model.n_heads > 1:
        kinds.append(("MQA", 1, reply.bytes_per_token_mqa))
    largest = max(size for _, _, size in kinds)
    rows: list[Row] = []
    for kind, heads, size in kinds:
        own = kind == model.attention_kind or (kind == "MHA" and model.n_heads == 1)
        tip = tr("this model") if own else tr("the same model with as many KV heads")
        rows.append((
            Cell(text=tr("{kind}, {k} KV", kind=kind, k=heads), voice="text" if own else "secondary", strong=own,
                 tip=tip),
            Cell(bar=size / largest, voice="accent" if own else "ghost", tip=tip),
            Cell(text=f"{size:,} B", voice="text" if own else "secondary", strong=own, tip=tip),
        ))  # fmt: skip
    return rows


LEFT = (Column(left=True, grows=True), Column())


def left_rows(reply: KvReply, *, sliding: bool) -> list[Row]:
    """What is left, and what is never written."""
    rows = [
        (tr("context left after {length}", length=f"{reply.length:,}"),
         tr("{n} tokens", n=f"{reply.tokens_left_context:,}"),
         tr("{n} more than the {length} there are; they would take {size}", n=f"{reply.tokens_left_context:,}",
            length=f"{reply.length:,}", size=amount(reply.tokens_left_context * reply.bytes_per_token, "B"))),
        (tr("memory left after {length}", length=f"{reply.length:,}"),
         tr("{n} tokens", n=f"{reply.tokens_left_memory:,}"),
         tr("of the budget of this run, which keeps {size} of every token: K and V, queries, residuals, logits",
            size=amount(reply.run_bytes_per_token, "B"))),
        (tr("N × N, never kept"), amount(reply.weights_matrix_bytes, "B"),
         tr("What the attention weights of all heads and layers would take, were they written down. They are made row "
            "by row and given up.")),
    ]  # fmt: skip
    if sliding:
        rows.append((
            tr("sliding windows need"), amount(reply.served, "B"),
            tr("What a server would keep: layers with a window keep only their window. This run keeps everything, so "
               "that any position can be looked at."),
        ))  # fmt: skip
    return [(Cell(text=name, voice="secondary", tip=tip), Cell(text=value, tip=tip)) for name, value, tip in rows]


def phase_columns(reply: KvReply) -> tuple[Column, ...]:
    """What a column stands for."""
    return (
        Column(left=True, grows=True),
        Column(title=tr("prefill, {n} tok", n=f"{reply.prefill.tokens:,}"), brief=tr("prefill")),
        Column(title=tr("decode, {n} tok", n=1), brief=tr("decode")),
    )


def phase_rows(reply: KvReply) -> list[Row]:
    """Measured time, and what the formulas say was done in it; the larger rate is strong."""
    prefill, decode = reply.prefill, reply.decode
    tips = {
        "time": tr("measured; of decode the median step"),
        "flops": tr("multiplications and additions of every matrix product"),
        "bytes": tr("weights, keys and values, read once for each pass"),
        "intensity": tr("Operations for each byte read. Many: the arithmetic is what takes time. Few: reading is."),
    }
    table: tuple[tuple[str, str, Callable[[PhaseCost], str]], ...] = (
        (tr("time"), tips["time"], lambda p: duration(p.ms) if p.ms else DASH),  # a prefill under way has none yet
        (tr("computes"), tips["flops"], lambda p: amount(p.flops, "FLOP")),
        (tr("computes a second"), tips["flops"], lambda p: _rate(p.flops, p, "FLOP/s")),
        (tr("reads"), tips["bytes"], lambda p: amount(p.bytes_read, "B")),
        (tr("reads a second"), tips["bytes"], lambda p: _rate(p.bytes_read, p, "B/s")),
        (tr("intensity"), tips["intensity"], lambda p: f"{three(p.flops / max(p.bytes_read, 1))} FLOP/B"),
    )
    rows: list[Row] = []
    for name, tip, value in table:
        cells = [Cell(text=value(p) if p.tokens else DASH, voice=voice, tip=tip)
                 for p, voice in ((prefill, "green"), (decode, "amber"))]  # fmt: skip
        rows.append((Cell(text=name, voice="secondary", tip=tip), *cells))
    return rows


STEP_KEYS = ("weights", "cache", "computes", "measured", "times")


def step_columns() -> tuple[Column, ...]:
    """The next token with the cache and without."""
    return (Column(left=True, grows=True), Column(title=tr("with the cache"), brief=tr("with")),
            Column(title=tr("without")))  # fmt: skip


def step_rows(reply: KvReply, measured: RecomputeReply | None, *, busy: str) -> list[Row]:
    """What one decode step reads and computes, and what it would without. `busy`: how far the measurement is."""
    cache = reply.used
    without = busy or (duration(measured.ms) if measured else tr("not measured"))
    faster = times(measured.ms / max(measured.cached_ms, 1e-9)) if measured else DASH
    tip = tr("The last token of the text, computed from the whole text, and by one step with the cache")
    rows = (
        (tr("reads weights"), amount(reply.weights_read, "B"), amount(reply.weights_read, "B"), ""),
        (tr("reads the cache"), amount(cache, "B"), "0 B", tr("every key and value of every token so far")),
        (tr("computes"), amount(reply.step_flops, "FLOP"), amount(reply.recompute_flops, "FLOP"),
         tr("Without the cache every token so far is computed again, for one new token")),
        (tr("work, compared"), times(1.0), times(reply.recompute_flops / max(reply.step_flops, 1)), ""),
        (tr("time, measured"), duration(measured.cached_ms) if measured else DASH, without, tip),
        (tr("time, compared"), times(1.0) if measured else DASH, faster, tip),
    )  # fmt: skip
    return [
        (Cell(text=name, voice="secondary", tip=tip),
         Cell(text=first, voice="secondary" if first == DASH else "text", tip=tip),
         Cell(text=second, voice="secondary" if second == DASH or (not measured and row == 4) else "text", tip=tip))
        for row, (name, first, second, tip) in enumerate(rows)
    ]  # fmt: skip


def layer_columns(*, sliding: bool) -> tuple[Column, ...]:
    """With windows, two columns more."""
    more = (Column(title=tr("window")), Column(title=tr("served"))) if sliding else ()
    return (Column(title=tr("layer")), Column(bar=True, grows=True), Column(title=tr("used")),
            Column(title=tr("allocated")), *more)  # fmt: skip


def layer_rows(arrays: Arrays, *, sliding: bool) -> list[Row]:
    """Bytes by layer."""
    used, allocated, served, windows = (_ints(arrays[name]) for name in ("used", "allocated", "served", "windows"))
    largest = max([*allocated, 1])
    rows: list[Row] = []
    for layer, (here, room) in enumerate(zip(used, allocated, strict=True)):
        more: Row = ()
        if sliding:
            window = f"{windows[layer]:,}" if windows[layer] else tr("all")
            more = (Cell(text=window, voice="secondary"), Cell(text=amount(served[layer], "B")))
        rows.append((
            Cell(text=f"{layer}", voice="secondary"), Cell(bar=here / largest, voice="accent"),
            Cell(text=amount(here, "B")), Cell(text=amount(room, "B"), voice="secondary"), *more,
        ))  # fmt: skip
    return rows


def growth_lines(growth: Growth) -> list[list[str]]:
    """The curve as a table, for a file."""
    lines = [["length", "used_bytes", "allocated_bytes", "formula_bytes", *(f"{n}_bytes" for n, _ in growth.layouts)]]
    for position in range(growth.length):
        n = position + 1
        lines.append([
            str(n), str(growth.used_at(position)), str(growth.allocated_at(position)), str(growth.per_token * n),
            *(str(size * n) for _, size in growth.layouts),
        ])  # fmt: skip
    return lines


def _rate(count: int, phase: PhaseCost, unit: str) -> str:
    """So many a second of what was measured."""
    return amount(1000 * count / phase.ms, unit) if phase.ms else DASH


def _ints(values: Any) -> list[int]:
    found: list[int] = np.asarray(values).tolist()
    return found
