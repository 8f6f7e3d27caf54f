"""`decoderscope models`: the models known by name, and what of them is on this disk."""

from __future__ import annotations

import argparse
import json
import shutil
from pathlib import Path

from model.checkpoint import catalogue
from model.checkpoint.fetch import local_path
from model.checkpoint.paths import cache_dir, lock
from model.checkpoint.sources import NotFetchedError
from model.cli.command import Command, ProgressLine


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declares what can be done."""
    actions = parser.add_subparsers(title="actions", dest="action", metavar="ACTION", required=True)
    listed = actions.add_parser("list", help="every model known by name")
    listed.add_argument("--json", action="store_true", help="print a JSON list")
    for action, text in (
        ("get", "fetch a model and prepare it, unless it is here"),
        ("remove", "delete a fetched model and its prepared form"),
        ("where", "print where a fetched model is"),
    ):
        one = actions.add_parser(action, help=text)
        one.add_argument("name", nargs="?" if action != "remove" else None, default="default", metavar="NAME")


def run(options: argparse.Namespace) -> int:
    """Does what was asked."""
    if options.action == "list":
        list_models(as_json=options.json)
    else:
        entry = catalogue.DEFAULT if options.name == "default" else catalogue.get(options.name)
        {"get": get, "remove": remove, "where": where}[options.action](entry)
    return 0


def list_models(*, as_json: bool) -> None:
    """One line a model: name, licence, size, where it is; or all of it as JSON."""
    found = [(entry, local_path(entry)) for entry in catalogue.CATALOGUE]
    if as_json:
        print(json.dumps([facts(entry, path) for entry, path in found], ensure_ascii=False, indent=1))
        return
    for entry, path in found:
        place = str(path) if path is not None else f"not fetched ({entry.download_bytes / 1e6:.0f} MB)"
        default = " (default)" if entry is catalogue.DEFAULT else ""
        print(f"{entry.name}{default}\t{entry.licence}\t{place}")


def facts(entry: catalogue.Entry, path: Path | None) -> dict[str, object]:
    """What is known of a model; `path` null and `prepared` false where it is not on this disk."""
    return {
        "name": entry.name,
        "title": entry.title,
        "default": entry is catalogue.DEFAULT,
        "licence": entry.licence,
        "hub_id": entry.hub_id,
        "download_bytes": entry.download_bytes,
        "path": None if path is None else str(path),
        "prepared": bool(prepared_forms(entry)),
    }


def get(entry: catalogue.Entry) -> None:
    """Fetches and prepares `entry`; prints where it is."""
    path = local_path(entry)
    if path is None or not prepared_forms(entry):  # a stale form is made again when the model is opened
        from model.loading import get_model  # noqa: PLC0415 - imports torch

        progress = ProgressLine()
        try:
            path = get_model(entry.name, progress=progress)
        finally:
            progress.clear()
    print(path)


def remove(entry: catalogue.Entry) -> None:
    """Deletes what was fetched and prepared."""
    path = local_path(entry)
    if path is None:
        raise NotFetchedError(entry)
    with lock(path):
        for folder in (path.parent, *prepared_forms(entry)):
            shutil.rmtree(folder)
            print(f"removed {folder}")


def where(entry: catalogue.Entry) -> None:
    """Prints the path of a fetched model."""
    path = local_path(entry)
    if path is None:
        raise NotFetchedError(entry)
    print(path)


def prepared_forms(entry: catalogue.Entry) -> list[Path]:
    """Folders of our cache that hold the model ready to be mapped."""
    if entry.wheel is None:
        return []
    pattern = f"{entry.wheel.member_sha256[:32]}-*"
    return [path for path in sorted((cache_dir() / "prepared").glob(pattern)) if path.is_dir()]


COMMAND = Command(
    name="models", help="list, get, remove or find the models known by name", arguments=arguments, run=run
)
