"""`make bench`: every promise about speed and memory as a ratio, measured in pairs, in one table.

Options by ARGS="--only decode-floor grid --repeats 9". Times of their own are `decoderscope bench`'s matter.
"""

from __future__ import annotations

import argparse
import platform
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import torch

from model.errors import DecoderscopeError
from model.threads import use_threads
from tests.bench import pictures, processes, speed
from tests.bench.subject import Subject, has_reference
from tests.bench.table import Result, Row, document, in_print, markdown

ROWS: tuple[Row, ...] = (*speed.ROWS, *pictures.ROWS, *processes.ROWS)
THREADS = 2
CPU_ONLY = "says nothing of a GPU"
NO_REFERENCE = "transformers is not installed (make setup-dev)"


def say(text: str) -> None:
    """A line now, even into a pipe."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def measured(row: Row, subject: Subject, repeats: int) -> Result:
    """The row's number, or why there is none."""
    if row.needs_reference and not has_reference():
        return Result(row=row, skipped=NO_REFERENCE)
    is_judged = subject.device == "cpu"
    if not (is_judged or row.on_gpu):
        return Result(row=row, skipped=CPU_ONLY)
    return Result(row=row, outcome=row.measure(subject, repeats or row.pairs), is_judged=is_judged)


def about(subject: Subject, seconds: float) -> str:
    """On what it was measured."""
    info = subject.model().info
    place = (
        f"{THREADS} threads of {platform.machine()}" if info.device == "cpu" else f"{info.device}, bounds not judged"
    )
    return (
        f"{info.name} · {place} · torch {torch.__version__} · "
        f"Python {platform.python_version()} · {time.strftime('%Y-%m-%d %H:%M')} · {seconds / 60:.1f} minutes"
    )


def main(arguments: Sequence[str] | None = None, subject: Subject | None = None) -> int:
    """Measures, prints, writes; 0, or with --strict 1 when a bound was missed."""
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("--only", nargs="+", metavar="ROW", choices=[row.name for row in ROWS], help="these rows")
    parser.add_argument("--repeats", type=int, default=0, metavar="N", help="measurements a row, instead of its own")
    parser.add_argument("--model", default="", help="a folder or .gguf file instead of the default model")
    parser.add_argument(
        "--device", default="cpu", metavar="D", help="where the model is: cpu (the bounds' own), cuda, mps"
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of lines")
    parser.add_argument(
        "--out", type=Path, default=Path("out/bench.md"), metavar="FILE", help="and FILE's .json beside"
    )
    parser.add_argument("--strict", action="store_true", help="fail when a bound is missed")
    options = parser.parse_args(arguments)
    use_threads(THREADS)
    subject, begun = subject or Subject(options.model, device=options.device), time.monotonic()
    try:
        subject.model()
    except DecoderscopeError as error:
        parser.error(str(error))
    results = []
    for row in ROWS:
        if options.only and row.name not in options.only:
            continue
        results.append(measured(row, subject, options.repeats))
        if not options.json:
            say(in_print(results[-1]))
    where = about(subject, time.monotonic() - begun)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(markdown(where, results), encoding="utf-8")
    options.out.with_suffix(".json").write_text(document(where, results), encoding="utf-8")
    missed = [result.row.name for result in results if result.verdict == "NO"]
    if options.json:
        say(document(where, results))
    else:
        say(f"{len(results) - len(missed)} of {len(results)} without a missed bound · {where}")
        say(f"Written: {options.out} and {options.out.with_suffix('.json').name}")
    return 1 if missed and options.strict else 0


if __name__ == "__main__":
    sys.exit(main())
