"""A run from the command line's options: the model, the prompt, the sampler."""

from __future__ import annotations

import argparse
import sys
import time
from typing import TYPE_CHECKING

from model.cli.command import ProgressLine, add_model_options, number, whole
from model.protocol.values import MAX_SEED, SamplerSettings

if TYPE_CHECKING:
    from model.run import Run

DEFAULTS = SamplerSettings()


def add_run_options(parser: argparse.ArgumentParser, *, steps: int, recorded: bool = False) -> None:
    """The options that say what is run; `steps`: how many tokens are decoded unless asked; `recorded`: a run file does
    instead of a prompt."""
    add_model_options(parser)
    parser.add_argument("--prompt", required=not recorded, metavar="TEXT", help="the text to begin with; - reads stdin")
    if recorded:
        parser.add_argument("--run", dest="run_file", metavar="FILE", help="a .dscope file instead of a prompt")
    text = f"tokens to decode (default: {steps})"
    parser.add_argument("--steps", type=whole(0), default=steps, metavar="N", help=text)
    group = parser.add_argument_group("sampler")
    group.add_argument("--temperature", type=number, default=DEFAULTS.temperature, metavar="T", help="0: greedy")
    group.add_argument("--top-k", type=whole(0), default=DEFAULTS.top_k, metavar="K", help="0: off")
    group.add_argument("--top-p", type=number, default=DEFAULTS.top_p, metavar="P", help="1: off")
    group.add_argument("--seed", type=whole(0, MAX_SEED), default=DEFAULTS.seed, metavar="S")


def sampler_settings(options: argparse.Namespace) -> SamplerSettings:
    """The sampler the options ask for. Raises BadValueError."""
    return SamplerSettings(temperature=options.temperature, top_k=options.top_k, top_p=options.top_p, seed=options.seed)


def read_prompt(options: argparse.Namespace) -> str:
    """The prompt as it is, or all of stdin as it is; bytes that are no UTF-8 stay apart as half surrogates."""
    prompt: str = options.prompt
    return sys.stdin.buffer.read().decode("utf-8", "surrogateescape") if prompt == "-" else prompt


def prefilled(options: argparse.Namespace, prompt: str) -> tuple[Run, float]:
    """Opens the model and prefills `prompt`; the run, and how long opening took in ms."""
    from model.loading import open_model  # noqa: PLC0415 - imports torch
    from model.run import Run  # noqa: PLC0415
    from model.threads import use_threads  # noqa: PLC0415

    use_threads(options.threads)
    progress, begun = ProgressLine(), time.perf_counter()
    try:
        model = open_model(options.model, device=options.device, dtype=options.dtype, progress=progress)
        load_ms = (time.perf_counter() - begun) * 1e3
        run = Run(model)
        run.prefill(prompt, progress=progress)
    finally:
        progress.clear()
    return run, load_ms
