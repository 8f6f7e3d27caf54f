"""`decoderscope export`: figures, tables, activations and run files of a prompt or of a recorded run."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from model.cli.command import Command, ProgressLine, UsageError, number, whole
from model.cli.prompted import add_run_options, decoded, prefilled, read_prompt, sampler_settings
from model.cli.wanted import FIELDS, KINDS, Wanted, check_places, wanted_of
from model.cli.what import TINTS, requests_for
from model.colormaps import ONE_SIGNED
from model.export.under_way import nothing
from model.protocol.attention_requests import Scale, Stage
from model.protocol.export_kinds import file_names
from model.protocol.export_requests import FigureTheme, FileRequest, RunContents
from model.protocol.file_writing import FileExistsAlreadyError, require_folder

if TYPE_CHECKING:
    from model.export.files import ExportedFile
    from model.run import Run


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the options."""
    parser.epilog = KINDS
    add_run_options(parser, steps=0, recorded=True)
    what = parser.add_argument_group("what")
    kinds = "one or several, see below (default: attention)"
    what.add_argument("--what", nargs="+", action="extend", metavar="KIND", help=kinds)
    layers = "0,3-5 or all; embed for lens (default: 0 for rope, all elsewhere)"
    what.add_argument("--layer", default="", metavar="LIST", help=layers)
    head = "2, 0-3, all, mean or max (default: all for sheets, 0 for rope, mean elsewhere)"
    what.add_argument("--head", default="", metavar="LIST", help=head)
    what.add_argument("--stage", default="weights", choices=get_args(Stage))
    what.add_argument("--scale", default="sqrt", choices=get_args(Scale))
    what.add_argument("--fixed", action="store_true", help="weights from 0 to 1 instead of to their maximum")
    what.add_argument("--ignore-first", action="store_true", help="leave key 0 out of the colour levels")
    what.add_argument("--rows", default="", metavar="A-B", help="positions of queries, or of the text (default: all)")
    what.add_argument("--cols", default="", metavar="A-B", help="positions of keys (default: all)")
    what.add_argument("--query", type=whole(0), metavar="N", help="for rope and --by reads (default: the last)")
    what.add_argument("--key", type=whole(0), metavar="N", help="for rope and --by read-by (default: 0)")
    what.add_argument("--by", default="surprisal", choices=TINTS, help="the tint of text")
    what.add_argument("--contents", default="all", choices=get_args(RunContents), help="of a .dscope file")
    most = "a .dscope file's size, at most: it then holds less than --contents (default: any)"
    what.add_argument("--max-mb", type=number, default=0.0, metavar="MB", help=most)
    look = parser.add_argument_group("files")
    look.add_argument("--format", default="", metavar="LIST", help="png,svg,pdf,html,csv,npz,json,safetensors")
    size = "inches (default: by kind, 7x6 for attention; a sheet or a text is as high as what is on it)"
    look.add_argument("--size", default="", metavar="WxH", help=size)
    look.add_argument("--dpi", type=whole(1), default=200)
    look.add_argument("--theme", default="light", choices=get_args(FigureTheme))
    look.add_argument("--colormap", default="viridis", choices=ONE_SIGNED)
    look.add_argument("--title", default="", metavar="TEXT")
    look.add_argument("--out", default=".", metavar="DIR", help="made when absent (default: here)")
    fields = "may hold " + ", ".join(f"{{{name}}}" for name in FIELDS)
    look.add_argument("--name", default="", metavar="PATTERN", help=fields)
    look.add_argument("--overwrite", action="store_true", help="replace files that are there")
    look.add_argument("--json", action="store_true", help="print a JSON list of what was written")


def run(options: argparse.Namespace) -> int:
    """Makes the run, exports, writes."""
    wanted = wanted_of(options)
    _check_source(options)
    folder = Path(options.out)
    _check_folder(folder)
    sampler_settings(options)
    prompt = read_prompt(options) if options.run_file is None else ()
    progress = ProgressLine()
    try:
        made = _run_of(options, wanted, prompt, progress)
        requests = [message for one in wanted for message in requests_for(made, one, options)]
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(f"--out: {folder} cannot be made: {error.strerror}") from error
        if not options.overwrite:
            _refuse_existing(requests, folder)
        written = [entry for files in _begun(made, requests, progress) for entry in _write(files, folder, options)]
    finally:
        progress.clear()
    if options.json:
        print(json.dumps(written, ensure_ascii=False, indent=1))
    else:
        for entry in written:
            print(entry["path"])
    return 0


def _check_folder(folder: Path) -> None:
    """Raises FileWriteError, before a model is opened, where the folder could be neither made nor written to."""
    there = folder
    while not os.path.lexists(there) and there != there.parent:
        there = there.parent
    require_folder(there, folder)


def _check_source(options: argparse.Namespace) -> None:
    given = [options.prompt is not None, options.prompt_ids is not None, options.run_file is not None]
    if sum(given) != 1:
        raise UsageError("give either --prompt TEXT or --run FILE (or --prompt-ids LIST)")
    if options.run_file is not None and (options.steps or options.force_ids):
        raise UsageError("--steps goes with --prompt; a recorded run is exported as it is")


def _run_of(
    options: argparse.Namespace, wanted: Sequence[Wanted], prompt: str | Sequence[int], progress: ProgressLine
) -> Run:
    from model.export.run_file import RunFile, reopen  # noqa: PLC0415 - imports torch
    from model.loading import open_model  # noqa: PLC0415

    if options.run_file is None:
        made, _ = prefilled(options, prompt, check_config=lambda config: check_places(wanted, config))
        decoded(made, options, progress=progress)
        return made
    from model.threads import use_threads  # noqa: PLC0415

    use_threads(options.threads)
    with RunFile(Path(options.run_file)) as file:
        check_places(wanted, file.record.config)
        model = None
        if options.model:
            model = open_model(options.model, device=options.device, dtype=options.dtype, progress=progress)
        return reopen(file, model, progress=progress)


def _refuse_existing(requests: Sequence[FileRequest], folder: Path) -> None:
    """Raises FileExistsAlreadyError before anything is computed where a file is there already."""
    for message in requests:
        for name in file_names(message):
            if (folder / name).exists():
                raise FileExistsAlreadyError(folder / name)


def _begun(made: Run, requests: Sequence[FileRequest], progress: ProgressLine) -> Iterator[Iterator[ExportedFile]]:
    """The files of each request, in order. All are begun before the first is made, so that what one of them refuses
    leaves none of the others. Of many, progress is which one is under way."""
    from model.export.making import make_files  # noqa: PLC0415 - imports torch

    report = progress if len(requests) == 1 else nothing
    begun = [make_files(made, message, progress=report) for message in requests]
    for index, files in enumerate(begun):
        if len(begun) > 1:
            progress("exporting", index, len(begun), "exports")
        yield files


def _write(files: Iterator[ExportedFile], folder: Path, options: argparse.Namespace) -> list[dict[str, Any]]:
    """Writes one export whole, or nothing of it."""
    from model.export.files import write_files  # noqa: PLC0415 - what an export needs once it is asked for

    return [
        {"path": str(path), "format": info.format, "size": info.size, "sha256": info.sha256}
        for path, info in write_files(files, folder, overwrite=options.overwrite, hashed=options.json)
    ]


COMMAND = Command(name="export", help="export figures, tables, activations and run files", arguments=arguments, run=run)
