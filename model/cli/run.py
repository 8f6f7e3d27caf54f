"""`decoderscope run`: prefill a prompt, decode some tokens, print the text or everything that was measured."""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from model.cli.command import Command
from model.cli.prompted import add_run_options, decoded, prefilled, read_prompt, sampler_settings
from model.protocol.file_writing import RUN_SUFFIX, named, require_place
from model.protocol.values import Node

if TYPE_CHECKING:
    from model.loading import LoadedModel
    from model.run import Run

TOP = 10


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the options."""
    add_run_options(parser, steps=32)
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of the text")
    parser.add_argument(
        "--save", default="", metavar="FILE.dscope", help="record the run in a file; its path is printed"
    )
    parser.add_argument("--overwrite", action="store_true", help="replace the file if it is there")


@dataclass
class Report:
    """What is told of a run: filled while it runs, so that nothing is computed twice."""

    model: LoadedModel
    load_ms: float
    steps: list[dict[str, Any]] = field(default_factory=list)

    def note(self, run: Run, node: Node) -> None:
        """Adds a step with the distribution it came from."""
        from model.candidates import candidates  # noqa: PLC0415
        from model.sampling import apply  # noqa: PLC0415

        order = run.order(node.parent)
        made = apply(order, node.settings, run.ids_before(node.parent))
        self.steps.append(
            {
                "id": node.token_id,
                "piece": node.piece,
                "logprob": node.logprob,
                "entropy": node.entropy,
                "draw": node.draw,
                "ms": node.ms,
                "top": [
                    {"id": one.id, "piece": one.piece, "p_raw": one.p_raw, "p": one.p}
                    for one in candidates(made, self.model.tokenizer, order.ids(TOP))
                ],
            }
        )

    def decode_ms_median(self) -> float | None:
        """Median time of a step, ms; None without any."""
        return statistics.median(step["ms"] for step in self.steps) if self.steps else None

    def whole(self, run: Run, prompt: str | Sequence[int]) -> dict[str, Any]:
        """The JSON object."""
        info, memory = self.model.info, run.memory()
        names = (
            "name", "family", "source", "n_layers", "n_heads", "n_kv_heads", "d_model", "d_head", "d_mlp", "d_vocab",
            "n_ctx", "dtype", "device", "parameters",
        )  # fmt: skip
        return {
            "model": {name: getattr(info, name) for name in names},
            "prompt": {
                "text": prompt if isinstance(prompt, str) else self.model.tokenizer.decode(prompt),
                "ids": list(run.prompt_ids),
                "pieces": self.model.tokenizer.pieces(run.prompt_ids),
            },
            "steps": self.steps,
            "text": run.generated_text,
            "stop": run.stop,
            "timing": {
                "load_ms": self.load_ms,
                "prefill_ms": run.prefill_ms,
                "decode_ms_median": self.decode_ms_median(),
            },
            "memory": {
                name: getattr(memory, name)
                for name in ("weights", "kv_used", "kv_allocated", "activations", "peak_rss")
            },
        }


def run(options: argparse.Namespace) -> int:
    """Opens the model, prefills, decodes, prints."""
    sampler_settings(options)  # refused before a model is opened
    prompt = read_prompt(options)
    place = named(Path(options.save), RUN_SUFFIX) if options.save else None
    if place is not None:
        require_place(place, overwrite=options.overwrite)
    made, load_ms = prefilled(options, prompt)
    report = Report(model=made.model, load_ms=load_ms)
    shown = 0

    def tell(node: Node) -> None:
        nonlocal shown
        report.note(made, node)
        if not options.json:
            text = made.generated_text
            _write(text[shown:])
            shown = len(text)

    decoded(made, options, on_node=tell)
    saved = ""
    if place is not None:
        from model.export.run_file import save_run  # noqa: PLC0415

        saved = str(save_run(made, place, overwrite=options.overwrite))
    if options.json:
        told = report.whole(made, prompt) | ({"saved": saved} if saved else {})
        print(json.dumps(_finite(told), allow_nan=False))
        return 0
    if shown:
        _write("\n")
    print(_timing(made, report), file=sys.stderr)
    if saved:
        print(f"saved {saved}", file=sys.stderr)
    return 0


def _write(text: str) -> None:
    """Text as it is, where the terminal can show it."""
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(text.encode(encoding, "backslashreplace").decode(encoding))
    sys.stdout.flush()


def _timing(run: Run, report: Report) -> str:
    parts = [f"load {report.load_ms:,.0f} ms", f"prefill {run.n_prompt:,} tokens {run.prefill_ms:,.0f} ms"]
    if (median := report.decode_ms_median()) is not None:
        parts.append(f"decode {len(report.steps):,} tokens {median:,.1f} ms each")
    reasons = {
        "end_of_text": "end of text",
        "context_full": "the context is full",
        "nan_logits": "the logits are not numbers",
    }
    if run.stop in reasons:
        parts.append(reasons[run.stop])
    return " · ".join(parts)


def _finite(value: Any) -> Any:
    """JSON has no NaN and no infinities: null."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    return [_finite(item) for item in value] if isinstance(value, list) else value


COMMAND = Command(name="run", help="prefill a prompt and decode tokens", arguments=arguments, run=run)
