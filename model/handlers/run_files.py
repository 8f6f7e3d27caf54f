"""Run files: opening one with its model or to be looked at, and what saving one would take."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from model.errors import BadValueError, NoRunError
from model.export.run_file import RunFile, RunFileError, fits, reopen, sizes_of
from model.handler_registry import Answer, EngineContext, handles
from model.handlers.text import tokens_of
from model.jobs import Job
from model.protocol.run_file_requests import (
    GetRunSizes,
    OpenRun,
    OpenRunReply,
    PeekRun,
    RunFileInfo,
    RunSizesReply,
)
from model.tokenizer import Tokenizer

MAX_PEEK = 400
"""Characters of a run's text that a look at its file tells."""


@handles(PeekRun)
def peek(_context: EngineContext, message: PeekRun, job: Job) -> Answer:
    """The record alone."""
    with _file(message, job) as file:
        record = file.record
        found = RunFileInfo(
            model=record.info.name,
            source=record.info.source,
            sha256=record.info.sha256,
            dtype=record.info.dtype,
            contents=record.contents,
            n_prompt=len(record.prompt_ids),
            steps=len(record.nodes),
            size=file.header.file_bytes,
            text=record.text[:MAX_PEEK],
        )
    return found, {}


@handles(OpenRun)
def open_run(context: EngineContext, message: OpenRun, job: Job) -> Answer:
    """The run that was open stays until the file's is whole. A model that is another one, or the same in another dtype,
    gives way to the record: its numbers would not be those that were recorded."""
    with _file(message, job) as file:
        held = context.model if context.model is not None and not context.model.info.recorded else None
        record = file.record
        exact = held is not None and (held.info.dtype == record.info.dtype or record.contents == "text")
        model = held if held is not None and exact and fits(file, held) else None
        run = reopen(file, model, progress=job.progress, yield_point=job.yield_point)
    if context.budget_bytes is not None:
        run.store.budget = context.budget_bytes
    context.run, context.model = run, run.model
    if model is None:
        context.empty_caches()
    text, tokens = tokens_of(run.model.tokenizer, run.prompt_ids)
    reply = OpenRunReply(
        state=run.state(),
        tokens=tokens,
        text=text,
        prompt=prompt_of(run.model.tokenizer, run.prompt_ids),
        model=run.model.info,
        recorded=model is None,
        other=held is not None and model is None,
    )
    return reply, {}


@handles(GetRunSizes)
def run_sizes(context: EngineContext, _message: GetRunSizes, _job: Job) -> Answer:
    """Bytes by contents."""
    run = context.need_run()
    if not run.length:
        raise NoRunError
    sizes = sizes_of(run)
    return RunSizesReply(text=sizes["text"], attention=sizes["attention"], all=sizes.get("all", -1)), {}


@contextmanager
def _file(message: OpenRun | PeekRun, job: Job) -> Iterator[RunFile]:
    """The run file, from this disk or from beside the request."""
    if message.path:
        try:
            path = Path(message.path).expanduser()
        except RuntimeError as error:  # ~somebody
            raise RunFileError(message.path, f"{error}.") from error
        with RunFile(path) as file:
            yield file
        return
    data = job.arrays.get("data")
    if data is None or data.dtype != np.uint8 or data.ndim != 1:
        raise BadValueError("path", "", "the path of a run file, or the file itself as uint8 (n,)")
    with tempfile.TemporaryDirectory(prefix="decoderscope-") as folder:
        path = Path(folder) / "run.dscope"
        path.write_bytes(data.tobytes())
        with RunFile(path) as file:
            yield file


def prompt_of(tokenizer: Tokenizer, ids: Sequence[int]) -> str:
    """The text to be typed for these prompt ids: without the token that the tokenizer puts before every text."""
    start = 1 if len(ids) > 1 and ids[0] == tokenizer.bos_id else 0
    return tokenizer.decode(ids[start:])
