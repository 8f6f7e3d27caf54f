"""`decoderscope export`: figures, tables, activations and run files of a prompt or of a recorded run."""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from model.cli.command import Command, ProgressLine, UsageError, add_model_options, number, whole
from model.colormaps import ONE_SIGNED
from model.errors import BadValueError
from model.export.spec import FigureSpec
from model.protocol.attention_requests import HeadView, Scale, Stage
from model.protocol.export_requests import (
    ExportActivations,
    ExportAttention,
    ExportRun,
    ExportSheet,
    FigureTheme,
)
from model.protocol.file_writing import FileWriteError, IncomingFiles
from model.protocol.values import MAX_SEED, SamplerSettings
from model.protocol.wire import Request

if TYPE_CHECKING:
    from model.export.files import ExportedFile
    from model.run import Run

DEFAULTS = SamplerSettings()
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
    source = parser.add_argument_group("source")
    source.add_argument("--prompt", metavar="TEXT", help="the text to begin with; - reads stdin")
    source.add_argument("--run", dest="run_file", metavar="FILE", help="a recorded run instead of a prompt")
    source.add_argument("--steps", type=whole(0), default=0, metavar="N", help="tokens to decode (default: 0)")
    source.add_argument("--temperature", type=number, default=0.0, metavar="T", help="default: 0, greedy")
    source.add_argument("--top-k", type=whole(0), default=DEFAULTS.top_k, metavar="K", help="0: off")
    source.add_argument("--top-p", type=number, default=DEFAULTS.top_p, metavar="P", help="1: off")
    source.add_argument("--seed", type=whole(0, MAX_SEED), default=DEFAULTS.seed, metavar="S")
    add_model_options(parser)
    what = parser.add_argument_group("what")
    what.add_argument("--what", nargs="+", default=["attention"], metavar="KIND", help="default: attention")
    what.add_argument("--layer", default="all", metavar="LIST", help="0,3-5 or all (default: all)")
    what.add_argument("--head", default="all", metavar="LIST", help="2, 0-3, all, mean or max (default: all)")
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
    FigureSpec(width=size[0], height=size[1], dpi=options.dpi)  # refused before a model is opened
    folder = Path(options.out)
    progress = ProgressLine()
    try:
        made = _run_of(options, progress)
        requests = list(_requests(made, kind, names, formats, size, options))
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise FileWriteError.of(folder, error) from error
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
        raise UsageError(f"--what {kind} is not one of {', '.join(FORMATS)}")
    if names and kind != "activation":
        raise UsageError(f"--what {kind} takes no name, found {' '.join(names)}")
    if kind == "activation" and not names:
        raise UsageError("--what activation needs a name, such as layers.3.attn.pattern")
    if (options.prompt is None) == (options.run_file is None):
        raise UsageError("give either --prompt TEXT or --run FILE")
    if options.run_file is not None and options.steps:
        raise UsageError("--steps goes with --prompt; a recorded run is exported as it is")


def _formats(kind: str, asked: str) -> tuple[str, ...]:
    known = FORMATS[kind]
    formats = tuple(dict.fromkeys(word.strip() for word in asked.split(",") if word.strip())) or known[:1]
    for name in formats:
        if name not in known:
            raise UsageError(f"--format {name} does not fit --what {kind}; choose from {', '.join(known)}")
    return formats


def _size(text: str) -> tuple[float, float]:
    match = re.fullmatch(r"(\d+(?:\.\d+)?)[x×](\d+(?:\.\d+)?)", text.strip())
    if match is None:
        raise UsageError(f"--size {text} is not of the form 7x6 (inches)")
    return float(match[1]), float(match[2])


def indices(what: str, text: str, count: int) -> tuple[int, ...]:
    """ "0,3-5" → (0, 3, 4, 5); "all" → every one. Raises BadValueError."""
    if text.strip() == "all":
        return tuple(range(count))
    found: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d{1,9})(?:-(\d{1,9}))?\s*", part)
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (0, -1)
        if not first <= last < count:
            raise BadValueError(what, text, f"numbers or ranges from 0 to {count - 1}, or all")
        found += range(first, last + 1)
    return tuple(dict.fromkeys(found))


def _run_of(options: argparse.Namespace, progress: ProgressLine) -> Run:
    from model.loading import open_model  # noqa: PLC0415 - imports torch
    from model.run import Run  # noqa: PLC0415
    from model.threads import use_threads  # noqa: PLC0415

    use_threads(options.threads)
    if options.run_file is not None:
        from model.export.run_file import RunFile, reopen  # noqa: PLC0415

        model = (
            open_model(options.model, device=options.device, dtype=options.dtype, progress=progress)
            if options.model
            else None
        )
        with RunFile(Path(options.run_file)) as file:
            return reopen(file, model)
    settings = SamplerSettings(
        temperature=options.temperature, top_k=options.top_k, top_p=options.top_p, seed=options.seed
    )
    prompt = sys.stdin.read() if options.prompt == "-" else options.prompt
    model = open_model(options.model, device=options.device, dtype=options.dtype, progress=progress)
    made = Run(model)
    made.prefill(prompt, progress=progress)
    made.generate(options.steps, settings)
    return made


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
    for layer in layers:
        for head in heads:
            view = HeadView(layer=layer, head=head, stage=options.stage)
            stem = _stem(options, "attention", str(layer), str(head), several=True)
            yield ExportAttention(view=view, stem=stem, **figure)


def _stem(options: argparse.Namespace, kind: str, layer: str = "", head: str = "", *, several: bool = False) -> str:
    pattern = options.name or ("{what}-layer{layer}-head{head}" if several else "{what}")
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
