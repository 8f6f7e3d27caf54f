"""The run: prefill, step, seek, branch, restore. While a run is made, and when that fails, the old one stays."""

from __future__ import annotations

import contextlib

from model.errors import CancelledError, DecoderscopeError
from model.handler_registry import Answer, EngineContext, handles
from model.handlers.text import tokens_of, wrapped
from model.jobs import Job
from model.protocol.run_requests import Branch, Prefill, PrefillPart, PrefillReply, Restore, Seek, Step, StepPart
from model.protocol.values import Node, Token
from model.run import Run


@handles(Prefill)
def prefill(context: EngineContext, message: Prefill, job: Job) -> Answer:
    """A new run, in chunks; views of the old one are served meanwhile."""
    model = context.need_model()
    tokenizer = model.tokenizer
    if message.ids is not None:
        text, tokens = tokens_of(tokenizer, message.ids)
    else:
        text, add_special, _ = wrapped(tokenizer, message)
        tokens = tuple(tokenizer.offsets(text, add_special=add_special))
    run = Run(model, budget_bytes=context.budget_bytes)
    told = 0

    def tell() -> None:
        nonlocal told
        context.run = run
        job.part(PrefillPart(state=run.state(), tokens=tokens[told : run.n_prompt]))
        told = run.n_prompt
        job.yield_point()  # the run is whole here: what is asked of it sees it so

    try:
        run.prefill(
            [token.id for token in tokens],
            chunk=message.chunk,
            truncate=message.truncate,
            progress=job.progress,
            # A view between the layers would find the new run half-way through a chunk.
            yield_point=job.check_cancel if message.visible else job.yield_point,
            on_chunk=tell if message.visible else None,
        )
    except CancelledError:
        if not told:
            raise
        run.stop = "cancelled"
    run.prefill_ms = max(0.0, run.prefill_ms - job.away_ms)
    context.run = run
    if run.n_prompt < len(tokens):
        tokens = tokens[: run.n_prompt]
        text = text[: max(token.end for token in tokens)]
    return PrefillReply(state=run.state(), tokens=tokens, text=text), {}


@handles(Step)
def step(context: EngineContext, message: Step, job: Job) -> Answer:
    """Up to `n` tokens, each told at once. A cancel ends it with the tokens there are."""
    run = context.need_run()

    def tell(node: Node) -> None:
        job.part(StepPart(node=node, length=run.length, text=run.text))
        job.yield_point()  # between tokens, so that no view's time counts as a token's

    try:
        run.generate(
            message.n,
            message.settings,
            stop_at_end_of_text=message.stop_at_end_of_text,
            reuse=message.reuse,
            yield_point=job.check_cancel,
            on_node=tell,
        )
    except CancelledError:
        run.stop = "cancelled"
    return run.state(), {}


@handles(Seek)
def seek(context: EngineContext, message: Seek, job: Job) -> Answer:
    """Goes to a node; a cancel while dropped tokens are run again leaves it at the last one reached."""
    run = context.need_run()
    try:
        run.seek(message.node, progress=job.progress, yield_point=job.check_cancel)
    except CancelledError:
        run.stop = "cancelled"
    return run.state(), {}


@handles(Branch)
def branch(context: EngineContext, message: Branch, job: Job) -> Answer:
    """A token chosen by hand after any node."""
    run = context.need_run()
    try:
        run.branch(message.node, message.token_id, message.settings, again=message.again, yield_point=job.check_cancel)
    except CancelledError:
        run.stop = "cancelled"
    return run.state(), {}


@handles(Restore)
def restore(context: EngineContext, message: Restore, job: Job) -> Answer:
    """The run as the app remembers it, made again."""
    model = context.need_model()
    run = Run(model, budget_bytes=context.budget_bytes)
    run.restore(
        message.ids,
        message.nodes,
        message.current,
        chunk=message.chunk,
        progress=job.progress,
        yield_point=job.check_cancel,
        on_node=lambda _node: job.yield_point(),
    )
    context.run = run
    tokens: tuple[Token, ...] = ()
    with contextlib.suppress(DecoderscopeError):  # the tokenizer is gone: a run needs only its ids
        tokens = tuple(model.tokenizer.offsets(message.text))
    if tuple(token.id for token in tokens) != message.ids:  # another template, other special tokens, or only ids
        tokens = tokens_of(model.tokenizer, message.ids)[1]
    return PrefillReply(state=run.state(), tokens=tokens, text=message.text), {}
