"""A run from the command line's options: the model, the prompt, the sampler."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from model.cli.command import ProgressLine, UsageError, add_model_options, number, whole
from model.protocol.values import MAX_SEED, ModelInfo, Node, SamplerSettings

if TYPE_CHECKING:
    from model.config import DecoderConfig
    from model.run import Run

DEFAULTS = SamplerSettings()
MAX_STDIN_BYTES = 16 * 2**20
SAMPLER_OPTIONS = ("temperature", "top_k", "top_p", "min_p", "repetition_penalty", "seed")


def add_run_options(parser: argparse.ArgumentParser, *, steps: int, recorded: bool = False) -> None:
    """The options that say what is run; `steps`: how many tokens are decoded unless asked; `recorded`: a run file does
    instead of a prompt."""
    add_model_options(parser)
    parser.add_argument("--prompt", metavar="TEXT", help="the text to begin with; - reads stdin")
    parser.add_argument("--prompt-ids", type=id_list, metavar="LIST", help="token ids instead: 504,1783,2152")
    if recorded:
        parser.add_argument("--run", dest="run_file", metavar="FILE", help="a .dscope file instead of a prompt")
    text = f"tokens to decode (default: {steps})"
    parser.add_argument("--steps", type=whole(0), default=steps, metavar="N", help=text)
    forced = "token ids to append one by one, before --steps, whatever the draw says"
    parser.add_argument("--force-ids", type=id_list, default=(), metavar="LIST", help=forced)
    group = parser.add_argument_group("sampler")
    group.add_argument("--temperature", type=number, metavar="T", help=f"0: greedy (default: {DEFAULTS.temperature})")
    group.add_argument("--top-k", type=whole(0), metavar="K", help=f"0: off (default: {DEFAULTS.top_k})")
    group.add_argument("--top-p", type=number, metavar="P", help=f"1: off (default: {DEFAULTS.top_p})")
    group.add_argument("--min-p", type=number, metavar="P", help="0: off (default)")
    group.add_argument("--repetition-penalty", type=number, metavar="R", help="1: off (default)")
    group.add_argument("--seed", type=whole(0, MAX_SEED), metavar="S", help=f"default: {DEFAULTS.seed}")


def id_list(text: str) -> tuple[int, ...]:
    """An option's type: token ids between commas."""
    words = [word.strip() for word in text.split(",")]
    if not all(word.isascii() and word.isdecimal() and len(word) < 10 for word in words):
        raise argparse.ArgumentTypeError(f"{text[:60]!r} is not a list of token ids, such as 504,1783")
    return tuple(int(word) for word in words)


def sampler_settings(options: argparse.Namespace) -> SamplerSettings:
    """The sampler the options ask for. Raises BadValueError."""
    given = {name: getattr(options, name) for name in SAMPLER_OPTIONS if getattr(options, name) is not None}
    return SamplerSettings(**given)


def read_prompt(options: argparse.Namespace) -> str | Sequence[int]:
    """The prompt as it is, or all of stdin as it is, or ids; bytes that are no UTF-8 stay apart as half surrogates.
    Raises UsageError where there is none, or more on stdin than any context takes."""
    prompt: str | None = options.prompt
    ids: Sequence[int] | None = options.prompt_ids
    if ids is not None:
        if prompt is not None:
            raise UsageError("give either --prompt TEXT or --prompt-ids LIST")
        return ids
    if prompt is None:
        raise UsageError("the following arguments are required: --prompt (see decoderscope --help)")
    if prompt != "-":
        return prompt
    data = sys.stdin.buffer.read(MAX_STDIN_BYTES + 1)
    if len(data) > MAX_STDIN_BYTES:
        raise UsageError(f"--prompt -: there are more than {MAX_STDIN_BYTES // 2**20} MiB on stdin, which is no prompt")
    return data.decode("utf-8", "surrogateescape")


def prefilled(
    options: argparse.Namespace,
    prompt: str | Sequence[int],
    *,
    check_config: Callable[[DecoderConfig], None] | None = None,
) -> tuple[Run, float]:
    """Opens the model and prefills `prompt` (of `read_prompt`); the run, and how long opening took in ms.
    `check_config`: see open_model."""
    from model.loading import open_model  # noqa: PLC0415 - imports torch
    from model.run import Run  # noqa: PLC0415
    from model.threads import use_threads  # noqa: PLC0415

    use_threads(options.threads)
    progress, begun = ProgressLine(), time.perf_counter()
    try:
        model = open_model(
            options.model, device=options.device, dtype=options.dtype, progress=progress, check_config=check_config
        )
        load_ms = (time.perf_counter() - begun) * 1e3
        ids = model.tokenizer.encode(prompt) if isinstance(prompt, str) else prompt
        _check_forced(options.force_ids, len(ids), model.info)
        run = Run(model)
        run.prefill(ids, progress=progress)
    finally:
        progress.clear()
    return run, load_ms


def _check_forced(forced: Sequence[int], n_prompt: int, info: ModelInfo) -> None:
    """Raises UsageError before anything is run where the ids that are to follow the prompt can't."""
    if n_prompt <= info.n_ctx < n_prompt + len(forced):  # of a prompt too long by itself the prefill tells
        raise UsageError(
            f"--force-ids: {len(forced):,} ids after a prompt of {n_prompt:,} tokens; this model takes {info.n_ctx:,} "
            "positions in all"
        )
    if (beyond := next((token for token in forced if token >= info.d_vocab), None)) is not None:
        raise UsageError(f"--force-ids: {beyond} is not an id of this model, which has 0 to {info.d_vocab - 1}")


def decoded(
    run: Run,
    options: argparse.Namespace,
    *,
    progress: ProgressLine | None = None,
    on_node: Callable[[Node], None] | None = None,
) -> None:
    """Takes the steps the options ask for: the forced ones, then those that are drawn."""
    settings = sampler_settings(options)
    total, done = len(options.force_ids) + options.steps, 0

    def tell(node: Node) -> None:
        nonlocal done
        done += 1
        if progress is not None:
            progress("decoding", done, total, "tokens")
        if on_node is not None:
            on_node(node)

    for token in options.force_ids:
        tell(run.step(settings, force_token=token))
    run.generate(options.steps, settings, on_node=tell)
