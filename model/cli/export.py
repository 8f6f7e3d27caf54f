"""`decoderscope export`: figures, tables, activations and run files of a prompt or of a recorded run."""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from model.cli.command import Command, ProgressLine, UsageError, whole
from model.cli.prompted import add_run_options, prefilled, read_prompt, sampler_settings
from model.colormaps import ONE_SIGNED
from model.export.spec import FigureSpec
from model.protocol.attention_requests import HeadView, Scale, Stage
from model.protocol.export_requests import (
    ExportActivations,
    ExportAttention,
    ExportRun,
    ExportSheet,
    FigureTheme,
)
from model.protocol.file_writing import IncomingFiles
from model.protocol.wire import Request

if TYPE_CHECKING:
    from model.export.files import ExportedFile
    from model.run import Run

FORMATS = {
    "attention": ("png", "svg", "pdf", "html", "csv", "npz", "json"),
    "sheet": ("png", "svg", "pdf", "html", "npz"),
    "grid": ("png", "svg", "pdf", "html", "npz"),
    "activation": ("safetensors", "npz"),
    "logits": ("safetensors", "npz"),
    "kv": ("safetensors", "npz"),
    "run": ("dscope",),
}
"""What can be exported, and as what; the first one is the default."""
SIZES = {"attention": "7x6", "sheet": "7x10", "grid": "7x10"}


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the options."""
    parser.epilog = (
        "KIND: attention (one file a head), sheet (heads on one colour scale), grid (each head on its own scale), "
        "activation NAME … (layers.3.attn.pattern, layers.*.mlp.post), logits, kv, run (a .dscope file)."
    )
    add_run_options(parser, steps=0, recorded=True)
    what = parser.add_argument_group("what")
    what.add_argument("--what", nargs="+", default=["attention"], metavar="KIND", help="default: attention")
    what.add_argument("--layer", default="all", metavar="LIST", help="0,3-5 or all (default: all)")
    head = "2, 0-3, all, mean or max (default: mean for attention, all for sheets)"
    what.add_argument("--head", default="", metavar="LIST", help=head)
    what.add_argument("--stage", default="weights", choices=get_args(Stage))
    what.add_argument("--scale", default="sqrt", choices=get_args(Scale))
    what.add_argument("--fixed", action="store_true", help="weights from 0 to 1 instead of to their maximum")
    what.add_argument("--ignore-first", action="store_true", help="leave key 0 out of the colour levels")
    look = parser.add_argument_group("files")
    look.add_argument("--format", default="", metavar="LIST", help="png,svg,pdf,html,csv,npz,json,safetensors")
    look.add_argument("--size", default="", metavar="WxH", help="inches (default: 7x6, sheets 7x10)")
    look.add_argument("--dpi", type=whole(1), default=200)
    look.add_argument("--theme", default="light", choices=get_args(FigureTheme))
    look.add_argument("--colormap", default="viridis", choices=ONE_SIGNED)
    look.add_argument("--title", default="", metavar="TEXT")
    look.add_argument("--out", default=".", metavar="DIR", help="made when absent (default: here)")
    look.add_argument("--name", default="", metavar="PATTERN", help="may hold {what}, {layer}, {head}, {stage}")
    look.add_argument("--overwrite", action="store_true", help="replace files that are there")
    look.add_argument("--json", action="store_true", help="print a JSON list of what was written")


def run(options: argparse.Namespace) -> int:
    """Makes the run, exports, writes."""
    kind, *names = options.what
    _check(kind, names, options)
    formats = _formats(kind, options.format)
    size = _size(options.size or SIZES.get(kind, "7x6"))
    options.head = options.head or ("mean" if kind == "attention" else "all")
    FigureSpec(width=size[0], height=size[1], dpi=options.dpi)  # refused before a model is opened
    folder = Path(options.out)
    progress = ProgressLine()
    try:
        made = _run_of(options, progress)
        requests = list(_requests(made, kind, names, formats, size, options))
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(f"--out: {folder} cannot be made: {error.strerror}") from error
        written = [entry for message in requests for entry in _write(made, message, folder, options, progress)]
    finally:
        progress.clear()
    if options.json:
        print(json.dumps(written, ensure_ascii=False, indent=1))
    else:
        for entry in written:
            print(entry["path"])
    return 0


def _check(kind: str, names: list[str], options: argparse.Namespace) -> None:
    if kind not in FORMATS:
        raise UsageError(f"--what: {kind!r} is not one of {', '.join(FORMATS)}")
    if bool(names) != (kind == "activation"):
        raise UsageError(
            "--what: activation, and nothing else, takes the names of activations, such as layers.3.attn.pattern"
        )
    if (options.prompt is None) == (options.run_file is None):
        raise UsageError("give either --prompt TEXT or --run FILE")
    if options.run_file is not None and options.steps:
        raise UsageError("--steps goes with --prompt; a recorded run is exported as it is")


def _formats(kind: str, asked: str) -> tuple[str, ...]:
    known = FORMATS[kind]
    formats = tuple(dict.fromkeys(word.strip() for word in asked.split(",") if word.strip())) or known[:1]
    for name in formats:
        if name not in known:
            raise UsageError(f"--format: {name!r} is no format of {kind}; choose from {', '.join(known)}")
    return formats


def _size(text: str) -> tuple[float, float]:
    match = re.fullmatch(r"(\d+(?:\.\d+)?)[x×](\d+(?:\.\d+)?)", text.strip())
    if match is None:
        raise UsageError(f"--size: {text!r} is not of the form 7x6 (inches)")
    return float(match[1]), float(match[2])


def indices(what: str, text: str, count: int) -> tuple[int, ...]:
    """ "0,3-5" → (0, 3, 4, 5); "all" → every one. Raises UsageError."""
    if text.strip() == "all":
        return tuple(range(count))
    found: list[int] = []
    for part in text.split(","):
        ends = [_index(what, word.strip(), count) for word in part.split("-", 1)]
        found += range(ends[0], ends[-1] + 1)
    return tuple(dict.fromkeys(found))


def _index(what: str, word: str, count: int) -> int:
    if not (word.isascii() and word.isdecimal() and len(word) < 10 and int(word) < count):
        raise UsageError(f"{what}: {word!r} is not a whole number from 0 to {count - 1}")
    return int(word)


def _run_of(options: argparse.Namespace, progress: ProgressLine) -> Run:
    if options.run_file is None:
        settings = sampler_settings(options)
        made, _ = prefilled(options, read_prompt(options))
        made.generate(options.steps, settings)
        return made
    from model.export.run_file import RunFile, reopen  # noqa: PLC0415 - imports torch
    from model.loading import open_model  # noqa: PLC0415

    model = None
    if options.model:
        model = open_model(options.model, device=options.device, dtype=options.dtype, progress=progress)
    with RunFile(Path(options.run_file)) as file:
        return reopen(file, model)


def _requests(
    made: Run,
    kind: str,
    names: list[str],
    formats: tuple[str, ...],
    size: tuple[float, float],
    options: argparse.Namespace,
) -> Iterator[Request]:
    figure: dict[str, Any] = {
        name: getattr(options, name) for name in ("scale", "fixed", "ignore_first", "theme", "colormap", "dpi", "title")
    }
    figure |= {"formats": formats, "width": size[0], "height": size[1]}
    if kind == "attention":
        yield from _heads(made, figure, options)
    elif kind in {"sheet", "grid"}:
        layers = indices("--layer", options.layer, made.config.n_layers)
        heads = indices("--head", options.head, made.config.n_heads)
        stem = _stem(options, kind, options.layer, options.head)
        yield ExportSheet(
            layers=layers, heads=heads, stage=options.stage, own_scale=kind == "grid", stem=stem, **figure
        )
    elif kind == "run":
        yield ExportRun(stem=_stem(options, kind))
    else:
        wanted = tuple(names) if kind == "activation" else (kind,)
        yield ExportActivations(names=wanted, formats=formats, stem=_stem(options, kind))  # type: ignore[arg-type]


def _heads(made: Run, figure: dict[str, Any], options: argparse.Namespace) -> Iterator[Request]:
    combined = options.head in {"mean", "max"}
    layers: Iterable[Any] = indices("--layer", options.layer, made.config.n_layers)
    heads: Iterable[Any] = [options.head] if combined else indices("--head", options.head, made.config.n_heads)
    if combined and options.layer == "all":
        layers = ["all"]
    pairs = [(layer, head) for layer in layers for head in heads]
    for layer, head in pairs:
        view = HeadView(layer=layer, head=head, stage=options.stage)
        stem = _stem(options, "attention", str(layer), str(head), several=len(pairs) > 1)
        yield ExportAttention(view=view, stem=stem, **figure)


def _stem(options: argparse.Namespace, kind: str, layer: str = "", head: str = "", *, several: bool = False) -> str:
    pattern = options.name or "{what}"
    if several and not re.search(r"\{(layer|head)\}", pattern):
        pattern += "-layer{layer}-head{head}"
    fields = {"what": kind, "layer": layer, "head": head, "stage": options.stage}
    return re.sub(r"\{(\w+)\}", lambda match: fields.get(match[1], match[0]), pattern)


def _write(
    made: Run, message: Request, folder: Path, options: argparse.Namespace, progress: ProgressLine
) -> list[dict[str, Any]]:
    """Writes one export whole, or nothing of it."""
    infos = []
    with IncomingFiles(folder, overwrite=options.overwrite) as incoming:
        for file in _files(made, message, progress):
            with file:
                for part, data in file.parts():
                    incoming.add(part, data)
                infos.append(file.info)
        paths = incoming.finish(infos)
    return [
        {"path": str(path), "format": info.format, "size": info.size, "sha256": info.sha256}
        for path, info in zip(paths, infos, strict=True)
    ]


def _files(made: Run, message: Request, progress: ProgressLine) -> Iterator[ExportedFile]:
    from model.export.activations import export_activations  # noqa: PLC0415 - imports torch
    from model.export.attention import export_attention, nothing  # noqa: PLC0415
    from model.export.run_file import export_run  # noqa: PLC0415
    from model.export.sheet import export_sheet  # noqa: PLC0415

    if isinstance(message, ExportAttention):
        return export_attention(made, message, progress=progress)
    if isinstance(message, ExportSheet):
        return export_sheet(made, message, progress=progress)
    if isinstance(message, ExportActivations):
        return export_activations(made, message, check=nothing)
    assert isinstance(message, ExportRun)
    return export_run(made, message)


COMMAND = Command(name="export", help="export figures, tables, activations and run files", arguments=arguments, run=run)
