"""`decoderscope doctor`: the self-check as a table, with the errors that were measured."""

from __future__ import annotations

import argparse
import json
import math
from dataclasses import asdict

from model.cli.command import Command, ProgressLine, add_model_options

EXIT_FAILED_CHECK = 1


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the options."""
    add_model_options(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of a table")


def run(options: argparse.Namespace) -> int:
    """Checks the model on a run of its own; exit code 1 when a row fails."""
    from model.loading import open_model  # noqa: PLC0415 - imports torch
    from model.threads import use_threads  # noqa: PLC0415
    from model.views.model_card import model_card  # noqa: PLC0415
    from model.views.self_check import doctor  # noqa: PLC0415

    use_threads(options.threads)
    progress = ProgressLine()
    try:
        model = open_model(options.model, device=options.device, dtype=options.dtype, progress=progress)
    finally:
        progress.clear()
    rows = doctor(model)
    failed = sum(not row.ok for row in rows)
    if options.json:
        values = [asdict(row) | {"error": row.error if math.isfinite(row.error) else None} for row in rows]
        info = model.info
        told = {"model": info.name, "dtype": info.dtype, "device": info.device, "ok": not failed, "rows": values}
        told |= {"info": asdict(info), "card": asdict(model_card(model))}
        print(json.dumps(told))
        return EXIT_FAILED_CHECK if failed else 0
    print(f"{model.info.name} · {model.info.dtype} · {model.info.device}")
    width = max(len(row.title) for row in rows)
    for row in rows:
        verdict = "ok    " if row.ok else "FAILED"
        print(
            f"{verdict}  {row.title:<{width}}  error {row.error:8.2g}  at most {row.bound:8.2g}  {row.detail}".rstrip()
        )
    print(f"{failed} of {len(rows)} checks failed" if failed else f"all {len(rows)} checks hold")
    return EXIT_FAILED_CHECK if failed else 0


COMMAND = Command(name="doctor", help="prove the numbers against the model's own", arguments=arguments, run=run)
