"""The line that makes a view again on the command line: the run's options, then what is exported of it."""

from __future__ import annotations

import os
import shlex
import subprocess
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING

from model.protocol.export_requests import DrawnRequest, ExportActivations, ExportAttention, ExportSheet
from model.protocol.figure_requests import ExportKvGrowth, ExportLens, ExportRope, ExportSampler, ExportText
from model.protocol.values import DEFAULT_ORDER, SamplerSettings

if TYPE_CHECKING:
    from app.session import Session
    from model.protocol.attention_requests import HeadView
    from model.protocol.values import ModelInfo, Node
    from model.protocol.wire import Request

PROGRAM = "decoderscope"
MAX_CHARACTERS = 100_000
"""Of a prompt; systems take little more in one argument."""


def command_line(session: Session, message: Request) -> str:
    """The line, quoted for this system's shell; empty where there is no run or none can say it."""
    what = what_options(message)
    sampler = message.settings if isinstance(message, ExportSampler) else None
    run = run_options(session, sampler)
    return quoted([PROGRAM, "export", *run, *what]) if run and what else ""


def doctor_line(session: Session) -> str:
    """The line that tells of the model and proves its numbers; empty without a model."""
    model = session.model
    if model is None:
        return ""
    source = model.source if model.recorded else session.source
    return quoted([PROGRAM, "doctor", *_model(source, model), "--json"])


def quoted(words: Sequence[str]) -> str:
    """Arguments as one line of the shell that people use here."""
    return subprocess.list2cmdline(words) if os.name == "nt" else shlex.join(words)


def run_options(session: Session, sampler: SamplerSettings | None = None) -> list[str]:
    """What makes the current path again, to the bit on the same machine; with `sampler` in force at its end."""
    run, model = session.run, session.model
    if run is None or model is None:
        return []
    path, at = session.files.place
    if path and at == session.current_node and sampler in {None, _last(session.path_nodes())}:
        return ["--run", path]
    words = [*_model(session.source if not model.recorded else model.source, model), *_prompt(session)]
    if len(" ".join(words)) > MAX_CHARACTERS:
        return []
    nodes = session.path_nodes()
    drawn = {node.settings for node in nodes}
    settings = sampler or (next(iter(drawn)) if len(drawn) == 1 else None)
    if any(node.forced for node in nodes) or drawn - {settings} or any(s.order != DEFAULT_ORDER for s in drawn):
        words += ["--force-ids", ",".join(str(node.token_id) for node in nodes)]
    elif nodes:
        words += ["--steps", str(len(nodes))]
    return [*words, *_sampler(settings)] if settings else words


def _last(nodes: Sequence[Node]) -> SamplerSettings | None:
    return nodes[-1].settings if nodes else None


def _model(source: str, model: ModelInfo) -> list[str]:
    return [*(["--model", source] if source else []), "--dtype", model.dtype, "--device", model.device]


def _prompt(session: Session) -> list[str]:
    """The text where it gives the same ids; the ids themselves where it may not."""
    text, prompt = session.prefilled_text, session.prompt
    shown = session.prompt_tokens[-1].end if session.prompt_tokens else 0
    plain = not prompt.chat and prompt.add_special and not session.files.place[0] and shown == len(text)
    if plain and text not in {"", "-"} and all(_sayable(character) for character in text):
        return [f"--prompt={text}"] if text.startswith("-") else ["--prompt", text]
    return ["--prompt-ids", ",".join(str(token.id) for token in session.prompt_tokens)]


def _sayable(character: str) -> bool:
    """Whether a terminal passes it on as it is."""
    return character in "\n\t" or unicodedata.category(character) not in {"Cc", "Cs"}


def _sampler(settings: SamplerSettings) -> list[str]:
    words = ["--temperature", f"{settings.temperature:.12g}"]
    if not settings.greedy:
        words += ["--top-k", str(settings.top_k), "--top-p", f"{settings.top_p:.12g}"]
        words += ["--min-p", f"{settings.min_p:.12g}"] if settings.min_p else []
    if settings.repetition_penalty != 1:
        words += ["--repetition-penalty", f"{settings.repetition_penalty:.12g}"]
    return [*words, "--seed", str(settings.seed)]


def what_options(message: Request) -> list[str]:
    """The options that stand for an export; empty for one that the command line doesn't know."""
    words: list[str]
    if isinstance(message, ExportAttention):
        words = ["--what", "attention", *_view(message.view), "--scale", message.scale]
        words += _flags(("--fixed", message.fixed), ("--ignore-first", message.ignore_first))
        words += _span("--rows", message.rows) + _span("--cols", message.cols)
    elif isinstance(message, ExportSheet):
        kind = "grid" if message.own_scale else "sheet"
        words = ["--what", kind, "--stage", message.stage, "--scale", message.scale]
        words += _list("--layer", message.layers) + _list("--head", message.heads)
        words += _flags(("--fixed", message.fixed), ("--ignore-first", message.ignore_first))
    elif isinstance(message, ExportActivations):
        return ["--what", "activation", *message.names, "--format", ",".join(message.formats)]
    elif isinstance(message, ExportSampler):
        words = ["--what", "sampler"]
    elif isinstance(message, ExportKvGrowth):
        words = ["--what", "kv-growth"]
    elif isinstance(message, ExportLens):
        words = ["--what", "lens", *_list("--layer", map(_after, message.layers)), *_span("--rows", message.rows)]
    elif isinstance(message, ExportRope):
        words = ["--what", "rope", "--layer", str(message.layer), "--head", str(message.head)]
        words += ["--query", str(message.query), "--key", str(message.key)]
    elif isinstance(message, ExportText):
        words = ["--what", "text", "--by", message.by.replace("_", "-"), "--scale", message.scale]
        words += _view(message.view) if message.view is not None else []
        words += ["--key" if message.by == "read_by" else "--query", str(message.position)] * (message.position >= 0)
        words += _span("--rows", message.rows)
    else:
        return []
    return [*words, "--format", ",".join(message.formats), *_look(message)]


def _look(message: DrawnRequest) -> list[str]:
    """What is not as it is without being said."""
    plain = {entry.name: entry.default for entry in fields(message)}
    words = ["--theme", message.theme] if message.theme != plain["theme"] else []
    words += ["--colormap", message.colormap] if message.colormap != plain["colormap"] else []
    fitted = isinstance(message, ExportSheet | ExportText)  # whose height would follow from what is on it
    if fitted or (message.width, message.height) != (plain["width"], plain["height"]):
        words += ["--size", f"{message.width:g}x{message.height:g}"]
    return words + (["--dpi", str(message.dpi)] if message.dpi != plain["dpi"] else [])


def _view(view: HeadView) -> list[str]:
    return ["--layer", str(view.layer), "--head", str(view.head), "--stage", view.stage]


def _flags(*flags: tuple[str, bool]) -> list[str]:
    return [name for name, on in flags if on]


def _after(depth: int) -> str:
    """What the command line calls a depth of the lens: the layer it is after."""
    return str(depth - 1) if depth else "embed"


def _list(name: str, indices: Iterable[int | str]) -> list[str]:
    text = ",".join(str(index) for index in indices)
    return [name, text] if text else []


def _span(name: str, span: tuple[int, int]) -> list[str]:
    return [name, f"{span[0]}-{span[1] - 1}"] if span != (0, 0) else []
