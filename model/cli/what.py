"""What `decoderscope export` makes: each kind with its formats, its default size, and the requests it stands for."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, get_args

from model.cli.command import UsageError
from model.cli.prompted import SAMPLER_OPTIONS, sampler_settings
from model.errors import BadValueError
from model.protocol import export_kinds
from model.protocol.attention_requests import HeadView
from model.protocol.export_requests import ExportActivations, ExportAttention, ExportRun, ExportSheet, FileRequest
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
KINDS = (
    "KIND: attention (one file a head), sheet (heads on one colour scale), grid (each head on its own scale), sampler "
    "(the next token's waterfall), kv-growth, lens (top token of every layer), rope (rotary planes of --query and "
    "--key), text (tokens tinted --by something), activation NAME … (layers.3.attn.pattern, layers.*.mlp.post), "
    "logits, kv, run (a .dscope file)."
)


def requests_for(
    made: Run,
    kind: str,
    names: list[str],
    formats: tuple[str, ...],
    size: tuple[float, float],
    options: argparse.Namespace,
) -> Iterator[FileRequest]:
    """The requests, each of which is written whole. Raises UsageError or BadValueError."""
    look: dict[str, Any] = {name: getattr(options, name) for name in ("theme", "colormap", "dpi", "title")}
    look |= {"formats": formats, "width": size[0], "height": size[1]}
    levels: dict[str, Any] = {name: getattr(options, name) for name in ("scale", "fixed", "ignore_first")}
    if kind == "attention":
        yield from _heads(made, look | levels, options)
    elif kind in {"sheet", "grid"}:
        layers = indices("--layer", options.layer, made.config.n_layers)
        heads = indices("--head", options.head, made.config.n_heads)
        stem = stem_of(options, kind, options.layer, options.head)
        yield ExportSheet(
            layers=layers, heads=heads, stage=options.stage, own_scale=kind == "grid", stem=stem, **look, **levels
        )
    elif kind == "run":
        most = int(options.max_mb * 1e6)
        yield ExportRun(contents=options.contents, max_bytes=most, stem=stem_of(options, kind))
    elif kind in {"activation", "logits", "kv"}:
        wanted = tuple(names) if kind == "activation" else (kind,)
        yield ExportActivations(names=wanted, formats=formats, stem=stem_of(options, kind))  # type: ignore[arg-type]
    else:
        yield _figure(made, kind, look, options)


def _figure(made: Run, kind: str, look: dict[str, Any], options: argparse.Namespace) -> FileRequest:
    stem = stem_of(options, kind, options.layer, options.head)
    if kind == "sampler":
        return ExportSampler(settings=_settings(made, options), stem=stem, **look)
    if kind == "kv-growth":
        return ExportKvGrowth(stem=stem, **look)
    if kind == "lens":
        layers = indices("--layer", options.layer, made.config.n_layers + 1)
        return ExportLens(rows=_span(made, "--rows", options.rows), layers=layers, stem=stem, **look)
    query = made.length - 1 if options.query is None else options.query
    if kind == "rope":
        key = 0 if options.key is None else options.key
        return ExportRope(
            layer=_single("--layer", options.layer, made.config.n_layers),
            head=_single("--head", options.head, made.config.n_heads),
            query=query, key=key, stem=stem, **look,
        )  # fmt: skip
    by: Any = options.by.replace("-", "_")
    return ExportText(
        by=by,
        view=None if by in {"surprisal", "entropy"} else _view(made, options),
        position=options.key if by == "read_by" and options.key is not None else query,
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


def _view(made: Run, options: argparse.Namespace) -> HeadView:
    if options.head in {"mean", "max"}:
        layer: Any = "all" if options.layer == "all" else _single("--layer", options.layer, made.config.n_layers)
        return HeadView(layer=layer, head=options.head, stage=options.stage)
    return HeadView(
        layer=_single("--layer", options.layer, made.config.n_layers),
        head=_single("--head", options.head, made.config.n_heads),
        stage=options.stage,
    )


def _heads(made: Run, figure: dict[str, Any], options: argparse.Namespace) -> Iterator[FileRequest]:
    combined = options.head in {"mean", "max"}
    layers: Iterable[Any] = indices("--layer", options.layer, made.config.n_layers)
    heads: Iterable[Any] = [options.head] if combined else indices("--head", options.head, made.config.n_heads)
    if combined and options.layer == "all":
        layers = ["all"]
    pairs = [(layer, head) for layer in layers for head in heads]
    rows, cols = _span(made, "--rows", options.rows), _span(made, "--cols", options.cols)
    for layer, head in pairs:
        view = HeadView(layer=layer, head=head, stage=options.stage)
        stem = stem_of(options, "attention", str(layer), str(head), several=len(pairs) > 1)
        yield ExportAttention(view=view, rows=rows, cols=cols, stem=stem, **figure)


def stem_of(options: argparse.Namespace, kind: str, layer: str = "", head: str = "", *, several: bool = False) -> str:
    """The file's name without its extension."""
    pattern = options.name or "{what}"
    if several and not re.search(r"\{(layer|head)\}", pattern):
        pattern += "-layer{layer}-head{head}"
    fields = {"what": kind, "layer": layer, "head": head, "stage": options.stage}
    return re.sub(r"\{(\w+)\}", lambda match: fields.get(match[1], match[0]), pattern)


def indices(what: str, text: str, count: int) -> tuple[int, ...]:
    """`export_kinds.indices` of an option. Raises UsageError."""
    try:
        return export_kinds.indices(text, count)
    except export_kinds.IndexListError as error:
        raise UsageError(f"{what}: {error}") from error


def _index(what: str, word: str, count: int) -> int:
    if not (word.isascii() and word.isdecimal() and len(word) < 10 and int(word) < count):
        raise UsageError(f"{what}: {word!r} is not a whole number from 0 to {count - 1}")
    return int(word)


def _single(what: str, text: str, count: int) -> int:
    found = indices(what, text, count) if text not in {"", "all", "mean", "max"} else ()
    if len(found) != 1:
        raise UsageError(f"{what}: name one, from 0 to {count - 1}")
    return found[0]


def _span(made: Run, what: str, text: str) -> tuple[int, int]:
    """ "3-9" → (3, 10); nothing → all, (0, 0)."""
    if not text:
        return 0, 0
    ends = [_index(what, word.strip(), made.length) for word in text.split("-", 1)]
    if ends[0] > ends[-1]:
        raise BadValueError(what, text, "the first position before the last")
    return ends[0], ends[-1] + 1
