"""`decoderscope record-check`: what is in a run file, and that it is whole."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from model.cli.command import Command
from model.errors import shown

MAX_SHOWN = 400
"""Characters of any text of the file; --json has them all."""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the options."""
    parser.add_argument("file", metavar="FILE", help="a .dscope file")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(options: argparse.Namespace) -> int:
    """Reads the file and tells what it holds."""
    from model.export.run_file import RunFile  # noqa: PLC0415 - imports torch

    with RunFile(Path(options.file)) as file:
        record, entries = file.record, file.header.entries
        found: dict[str, Any] = {
            "file": str(options.file),
            "contents": record.contents,
            "model": record.info.name,
            "sha256": record.info.sha256,
            "dtype": record.info.dtype,
            "made_with": record.product,
            "prompt_tokens": len(record.prompt_ids),
            "steps": len(record.nodes),
            "logits": len(record.logit_nodes),
            "tensors": len(entries),
            "bytes": file.header.file_bytes,
            "text": record.text,
        }
    if options.json:
        print(json.dumps(found, ensure_ascii=False))
    else:
        for name, value in found.items():
            print(f"{name.replace('_', ' ')}: {shown(value, MAX_SHOWN)}")
    return 0


COMMAND = Command(name="record-check", help="say what is in a run file", arguments=arguments, run=run)
