"""The figures that are no heat map, filled from a run: sampler, KV growth, logit lens, rotary planes, tinted text."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from model import sampling
from model.candidates import candidates
from model.colormaps import Levels
from model.errors import BadValueError, UnknownNameError
from model.export.files import ExportedFile
from model.export.kv_growth import KVGrowth, draw_kv_growth
from model.export.lens_figure import LensGrid, draw_lens
from model.export.provenance import Provenance
from model.export.raster import Float32
from model.export.recorded import RecordedError
from model.export.rope_planes import RopePlanes, draw_rope_planes
from model.export.spec import FigureSpec, PictureFormat
from model.export.subject import Subject, view_title
from model.export.tinted_text import TintedText, draw_tinted_text
from model.export.under_way import Check, Report, load_figures, nothing
from model.export.waterfall import Waterfall, draw_waterfall
from model.protocol.attention_requests import HeadView
from model.protocol.figure_requests import (
    ExportKvGrowth,
    ExportLens,
    ExportRope,
    ExportSampler,
    ExportText,
    FigureRequest,
    TintBy,
)
from model.protocol.file_names import safe_stem
from model.protocol.rope_requests import GetRope
from model.run import Run
from model.views.attention_exact import exact
from model.views.kv import kv_reply
from model.views.lens import check_depth, top_of
from model.views.prompt_stats import PromptStats, order_after, prompt_stats
from model.views.rope import rope_reply
from model.views.selection import check_position, chosen, span

if TYPE_CHECKING:
    from model.export.canvas import Canvas

FORMATS = ("png", "svg", "pdf", "json")
LENS_POSITIONS, MAX_LENS_POSITIONS = 48, 256
"""Positions of a lens figure unless asked, and at most."""
BY_WORD: frozenset[TintBy] = frozenset({"surprisal", "entropy"})
"""Tints that are of the tokens themselves, not of a head."""
TINT_TITLES: Mapping[TintBy, str] = {
    "surprisal": "Surprisal of each token",
    "entropy": "Entropy of the distribution after each token",
    "reads": "What is read of each token",
    "read_by": "How much each token reads",
}


@dataclass(frozen=True, kw_only=True, eq=False)
class Drawn:
    """A figure ready to be put on a canvas, and the numbers on it, JSON-compatible."""

    draw: Callable[[Canvas], None]
    about: Provenance
    title: str
    numbers: Mapping[str, Any]


def export_figure(
    run: Run, message: FigureRequest, *, progress: Report = nothing, check: Check = nothing
) -> Iterator[ExportedFile]:
    """The files of `message`, one at a time; the caller closes each before it takes the next. Raises BadValueError,
    FigureTooLargeError, UnknownNameError or NoRunError before anything is made."""
    spec = FigureSpec.of(message)
    unknown = [name for name in message.formats if name not in FORMATS]
    if unknown:
        raise UnknownNameError("format", unknown[0], FORMATS)
    drawn = _BUILDERS[type(message)](run, Subject.of(run), message, check)

    def files() -> Iterator[ExportedFile]:
        total = len(message.formats)
        for index, name in enumerate(message.formats):
            check()
            progress("export", index, total, "files")
            write = partial(_write_json, drawn) if name == "json" else partial(_write_picture, drawn, spec, name, check)
            yield ExportedFile(f"{safe_stem(message.stem)}.{name}", name, write)
        progress("export", total, total, "files")

    return files()


def _write_picture(drawn: Drawn, spec: FigureSpec, file_format: PictureFormat, check: Check, out: IO[bytes]) -> None:
    load_figures(check)  # which numbers do without
    from model.export.render import render  # noqa: PLC0415

    out.write(render(drawn.draw, spec, file_format, about=drawn.about, title=drawn.title, check=check))


def _write_json(drawn: Drawn, out: IO[bytes]) -> None:
    document = {"metadata": drawn.about.as_dict(), "title": drawn.title, **drawn.numbers}
    out.write(json.dumps(_finite(document), ensure_ascii=False, allow_nan=False, indent=1).encode())


def _finite(value: Any) -> Any:
    """Arrays as lists, each float32 with the shortest digits that read back to it; null where there is no number."""
    if isinstance(value, np.ndarray):
        if value.dtype == np.float32:
            flat = [float(word) if math.isfinite(float(word)) else None for word in value.ravel().astype(np.str_)]
            return np.array(flat, dtype=object).reshape(value.shape).tolist()
        return value.tolist()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in value.items()}
    return [_finite(item) for item in value] if isinstance(value, list | tuple) else value


def sampler_figure(run: Run, subject: Subject, message: ExportSampler, check: Check) -> Drawn:
    """The waterfall of the token after a node, as the sampling panel shows it."""
    check()
    node = run.current if message.node < 0 else message.node
    run.tree.check(node)
    order = run.order(node)
    made = sampling.apply(order, message.settings, run.ids_before(node))
    draw = run.draw(node, message.settings.seed)
    tokenizer = run.model.tokenizer
    picked = candidates(made, tokenizer, [sampling.pick(made, draw)])[0]
    about = subject.with_settings(message.settings).about(f"sampler after position {run.tree.position(node):,}")
    figure = Waterfall(
        stages=made.stages,
        candidates=candidates(made, tokenizer, order.ids(max(1, min(message.top, 1000)))),
        about=about,
        draw=draw,
        picked=picked.piece,
        title=message.title or Waterfall.title,
    )
    numbers = {
        "node": node,
        "stages": [asdict(stage) for stage in figure.stages],
        "candidates": [asdict(candidate) for candidate in figure.candidates],
        "draw": draw,
        "would_pick": asdict(picked),
        "entropy_raw": order.entropy,
        "entropy": made.entropy,
    }
    return Drawn(draw=partial(draw_waterfall, waterfall=figure), about=about, title=figure.title, numbers=numbers)


def kv_figure(run: Run, subject: Subject, message: ExportKvGrowth, check: Check) -> Drawn:
    """Bytes by position, from the first prefilled token to the last of the path."""
    check()
    reply, arrays = kv_reply(run)
    positions = tuple(range(run.n_prompt, run.length + 1))
    grown = list(zip(arrays["grown_at"].tolist(), arrays["grown_to"].tolist(), strict=True))
    ends = (*(end for end in arrays["chunk_ends"].tolist() if end < run.n_prompt), run.n_prompt)

    def used(tokens: int) -> int:
        return reply.used * tokens // reply.length

    def allocated(tokens: int) -> int:
        return next((to for at, to in reversed(grown) if at < tokens), reply.allocated)

    about = subject.about("KV cache bytes")
    layouts = (("as MHA", reply.bytes_per_token_mha), ("as MQA", reply.bytes_per_token_mqa))
    figure = KVGrowth(
        positions=positions,
        used=tuple(used(n) for n in positions),
        allocated=tuple(allocated(n) for n in positions),
        chunks=tuple((end, used(end), allocated(end)) for end in ends),
        per_token=reply.bytes_per_token,
        layouts=tuple(entry for entry in layouts if entry[1] != reply.bytes_per_token),
        boundary=subject.boundary,
        about=about,
        title=message.title or KVGrowth.title,
    )
    numbers = {
        name: getattr(figure, name)
        for name in ("positions", "used", "allocated", "chunks", "per_token", "layouts", "boundary")
    }
    return Drawn(draw=partial(draw_kv_growth, growth=figure), about=about, title=figure.title, numbers=numbers)


def lens_figure(run: Run, subject: Subject, message: ExportLens, check: Check) -> Drawn:
    """The likeliest token after every layer."""
    rows = span(run, "rows", message.rows if message.rows != (0, 0) else (run.length - LENS_POSITIONS, run.length))
    if rows[1] - rows[0] > MAX_LENS_POSITIONS:
        raise BadValueError("rows", rows, f"at most {MAX_LENS_POSITIONS} positions")
    layers = tuple(sorted(set(message.layers))) or tuple(range(run.config.n_layers + 1))
    for layer in layers:
        check_depth(run, layer)
    told = [top_of(run, layer, range(*rows), yield_point=check) for layer in layers]
    ids = np.array([[token for token, _, _ in row] for row in told])
    p = np.array([[share for _, share, _ in row] for row in told], dtype=np.float32)
    named = ["embedding" if depth == 0 else str(depth - 1) for depth in (layers[0], layers[-1])]
    about = subject.about("top token of the logit lens", layer="–".join(named))
    figure = LensGrid(
        n_layers=run.config.n_layers,
        p=p,
        pieces=tuple(tuple(run.model.tokenizer.pieces(row)) for row in ids.tolist()),
        layers=layers,
        inputs=subject.pieces[slice(*rows)],
        about=about,
        first=rows[0],
        boundary=subject.boundary,
        title=message.title or LensGrid.title,
    )
    numbers = {
        "rows": rows,
        "layers": layers,
        "after": figure.names,
        "ids": ids,
        "pieces": figure.pieces,
        "p": p,
        "inputs": figure.inputs,
    }
    return Drawn(draw=partial(draw_lens, lens=figure), about=about, title=figure.title, numbers=numbers)


def rope_figure(run: Run, subject: Subject, message: ExportRope, check: Check) -> Drawn:
    """Every pair's plane of one query and key."""
    check()
    asked = GetRope(layer=message.layer, head=message.head, query=message.query, key=message.key, distances=2)
    reply, arrays = rope_reply(run, asked)
    if "q_before" not in arrays:
        raise BadValueError("positions", reply.positions, "a layer that rotates its queries and keys")
    names = ("q_before", "q_after", "k_before", "k_after", "wavelength", "contribution")
    planes: dict[str, Float32] = {name: arrays[name] for name in names}
    about = subject.about("rotary planes", layer=str(message.layer), head=str(message.head), kv_head=str(reply.kv_head))
    figure = RopePlanes(
        **planes,
        raw=reply.raw,
        rest=reply.rest,
        scale=reply.scale,
        query=(message.query, subject.pieces[message.query]),
        key=(message.key, subject.pieces[message.key]),
        about=about,
        title=message.title or f"Rotary planes · layer {message.layer} · head {message.head}",
    )
    numbers = {**planes, "raw": reply.raw, "rest": reply.rest, "scale": reply.scale} | {
        "query": figure.query,
        "key": figure.key,
    }
    return Drawn(draw=partial(draw_rope_planes, planes=figure), about=about, title=figure.title, numbers=numbers)


def text_figure(run: Run, subject: Subject, message: ExportText, check: Check) -> Drawn:
    """The text, each token tinted."""
    rows = span(run, "rows", message.rows)
    title, marked, view = TINT_TITLES[message.by], -1, message.view
    if message.by in BY_WORD:
        whole, known = _surprise(run, message.by, check)
        values, what = whole[slice(*rows)], f"{message.by}, nats"
        about = subject.about(message.by if known else f"{message.by}, of the prompt not recorded")
        high = float(np.nanmax(values)) if not np.isnan(values).all() else 1.0
        levels = Levels.spanning(0.0, high, scale=message.scale)
    else:
        view = view or HeadView(layer="all", head="mean")
        marked = run.length - 1 if message.position < 0 else message.position
        check_position(run, "position", marked)
        values, what = _read(run, view, message.by, marked, rows), "attention weight"
        about, title = subject.about_view(view, message.scale), f"{title} · {view_title(view)}"
        seen = values[~np.isnan(values)]
        low, high = (float(seen.min()), float(seen.max())) if seen.size else (math.nan, math.nan)
        levels = Levels.spanning(low, high, scale=message.scale, signed=chosen(run, view).signed)
    figure = TintedText(
        values=values,
        pieces=subject.pieces[slice(*rows)],
        levels=levels,
        what=what,
        about=about,
        title=message.title or title,
        first=rows[0],
        marked=marked,
        boundary=subject.boundary,
        masked=message.by not in BY_WORD,
    )
    numbers = {"by": message.by, "rows": rows, "position": marked, "pieces": figure.pieces, "values": values}
    return Drawn(draw=partial(draw_tinted_text, text=figure), about=about, title=figure.title, numbers=numbers)


def _surprise(run: Run, by: TintBy, check: Check) -> tuple[Float32, bool]:
    """-ln p of each token (NaN for the first), or the entropy of the distribution after it: (T,) float32, nats; and
    whether it is known of the prompt too, which older run files don't say."""
    try:
        stats, known = prompt_stats(run, yield_point=check), True
    except RecordedError:
        stats, known = PromptStats.empty(run.n_prompt), False
        stats.entropy[-1] = order_after(run, run.n_prompt - 1).entropy
    nodes = [run.nodes[node] for node in run.path]
    if by == "surprisal":
        values = [*-stats.logprob, *(-node.logprob for node in nodes)]
    else:
        # The last prompt position's and every step's but the last are those that the next step was drawn from.
        after = [node.entropy for node in nodes[1:]] + [order_after(run, run.length - 1).entropy] * bool(nodes)
        values = [*stats.entropy, *after]
    return np.array(values, dtype=np.float32), known


def _read(run: Run, view: HeadView, by: TintBy, position: int, rows: tuple[int, int]) -> Float32:
    """The query's row or the key's column over `rows`: (T,) float32, NaN masked."""
    heads = chosen(run, view)
    at = (position, position + 1)
    block = exact(run, heads, at, rows) if by == "reads" else exact(run, heads, rows, at)
    return block.reshape(-1)  # (T,)


_BUILDERS: dict[type[FigureRequest], Callable[[Run, Subject, Any, Check], Drawn]] = {
    ExportSampler: sampler_figure,
    ExportKvGrowth: kv_figure,
    ExportLens: lens_figure,
    ExportRope: rope_figure,
    ExportText: text_figure,
}
