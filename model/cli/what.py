"""The requests that stand for the kinds that `decoderscope export` is asked for."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, get_args

from model.cli.command import UsageError
from model.cli.prompted import SAMPLER_OPTIONS, sampler_settings
from model.cli.wanted import Wanted, depths, indices, single, stem_of
from model.errors import BadValueError
from model.protocol.attention_requests import HeadView
from model.protocol.export_requests import (
    DrawnRequest,
    ExportActivations,
    ExportAttention,
    ExportRun,
    ExportSheet,
    FileRequest,
)
from model.protocol.figure_requests import (
    ExportKvGrowth,
    ExportLens,
    ExportRope,
    ExportSampler,
    ExportText,
    TintBy,
)
from model.protocol.values import SamplerSettings

if TYPE_CHECKING:
    from model.run import Run

TINTS = tuple(name.replace("_", "-") for name in get_args(TintBy))


def requests_for(made: Run, wanted: Wanted, options: argparse.Namespace) -> Iterator[FileRequest]:
    """The requests, each of which is written whole. Raises UsageError or BadValueError."""
    from model.export.page_size import as_high_as_needed  # noqa: PLC0415 - imports torch

    for message in _requests(made, wanted, options):
        sized = not options.size and isinstance(message, DrawnRequest)
        yield as_high_as_needed(made, message) if sized else message  # type: ignore[type-var] # told by `sized`


def _requests(made: Run, wanted: Wanted, options: argparse.Namespace) -> Iterator[FileRequest]:
    kind, formats = wanted.kind, wanted.formats
    look: dict[str, Any] = {name: getattr(options, name) for name in ("theme", "colormap", "dpi", "title")}
    look |= {"formats": formats, "width": wanted.size[0], "height": wanted.size[1]}
    levels: dict[str, Any] = {name: getattr(options, name) for name in ("scale", "fixed", "ignore_first")}
    if kind == "attention":
        yield from _heads(made, wanted, look | levels, options)
    elif kind in {"sheet", "grid"}:
        layers = indices("--layer", wanted.layer, made.config.n_layers)
        heads = indices("--head", wanted.head, made.config.n_heads)
        stem = stem_of(options, wanted, wanted.layer, wanted.head)
        yield ExportSheet(
            layers=layers, heads=heads, stage=options.stage, own_scale=kind == "grid", stem=stem, **look, **levels
        )
    elif kind == "run":
        most = int(options.max_mb * 1e6)
        yield ExportRun(contents=options.contents, max_bytes=most, stem=stem_of(options, wanted))
    elif wanted.names:
        yield ExportActivations(names=wanted.names, formats=formats, stem=stem_of(options, wanted))  # type: ignore[arg-type]
    else:
        yield _figure(made, wanted, look, options)


def _figure(made: Run, wanted: Wanted, look: dict[str, Any], options: argparse.Namespace) -> FileRequest:
    kind, stem = wanted.kind, stem_of(options, wanted, wanted.layer, wanted.head)
    if kind == "sampler":
        return ExportSampler(settings=_settings(made, options), stem=stem, **look)
    if kind == "kv-growth":
        return ExportKvGrowth(stem=stem, **look)
    if kind == "lens":
        layers = depths("--layer", wanted.layer, made.config.n_layers)
        return ExportLens(rows=_span(made, "--rows", options.rows), layers=layers, stem=stem, **look)
    query = made.length - 1 if options.query is None else options.query
    if kind == "rope":
        key = 0 if options.key is None else options.key
        layer = single("--layer", wanted.layer, made.config.n_layers)
        head = single("--head", wanted.head, made.config.n_heads)
        return ExportRope(layer=layer, head=head, query=query, key=key, stem=stem, **look)
    by: Any = options.by.replace("-", "_")
    return ExportText(
        by=by,
        view=_view(made, wanted, options) if wanted.one_head else None,
        position=(options.key or 0) if by == "read_by" else query,
        rows=_span(made, "--rows", options.rows),
        scale=options.scale,
        stem=stem,
        **look,
    )


def _settings(made: Run, options: argparse.Namespace) -> SamplerSettings:
    """The options' sampler; of a recorded run, the one of its last step where no option says otherwise."""
    untouched = all(getattr(options, name) is None for name in SAMPLER_OPTIONS)
    if options.run_file is not None and untouched and made.path:
        return made.nodes[made.path[-1]].settings
    return sampler_settings(options)


def _view(made: Run, wanted: Wanted, options: argparse.Namespace) -> HeadView:
    whole = wanted.combined and wanted.layer == "all"
    layer: Any = "all" if whole else single("--layer", wanted.layer, made.config.n_layers)
    head: Any = wanted.head if wanted.combined else single("--head", wanted.head, made.config.n_heads)
    return HeadView(layer=layer, head=head, stage=options.stage)


def _heads(made: Run, wanted: Wanted, figure: dict[str, Any], options: argparse.Namespace) -> Iterator[FileRequest]:
    layers: Iterable[Any] = indices("--layer", wanted.layer, made.config.n_layers)
    heads: Iterable[Any] = [wanted.head] if wanted.combined else indices("--head", wanted.head, made.config.n_heads)
    if wanted.combined and wanted.layer == "all":
        layers = ["all"]
    pairs = [(layer, head) for layer in layers for head in heads]
    rows, cols = _span(made, "--rows", options.rows), _span(made, "--cols", options.cols)
    for layer, head in pairs:
        view = HeadView(layer=layer, head=head, stage=options.stage)
        stem = stem_of(options, wanted, str(layer), str(head), several=len(pairs) > 1)
        yield ExportAttention(view=view, rows=rows, cols=cols, stem=stem, **figure)


def _index(what: str, word: str, count: int) -> int:
    if not (word.isascii() and word.isdecimal() and len(word) < 10 and int(word) < count):
        raise UsageError(f"{what}: {word!r} is not a whole number from 0 to {count - 1}")
    return int(word)


def _span(made: Run, what: str, text: str) -> tuple[int, int]:
    """ "3-9" → (3, 10); nothing → all, (0, 0)."""
    if not text:
        return 0, 0
    ends = [_index(what, word.strip(), made.length) for word in text.split("-", 1)]
    if ends[0] > ends[-1]:
        raise BadValueError(what, text, "the first position before the last")
    return ends[0], ends[-1] + 1
