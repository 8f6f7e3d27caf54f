"""What the prompt panel says of its text: how many tokens, what they take, and what is to be noticed."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from app.amounts import size, tokens
from app.i18n import tr
from app.plain import one_line, unseen
from app.state.on_screen import other_text
from app.widgets.notice_line import Notice
from model.protocol.values import bytes_kept

if TYPE_CHECKING:
    from app.session import Session

OTHER_TEXT = "other text"
EMPTY = "emptied"
TOO_MANY = "too many"
STATS = "statistics"
NO_BREAK = "\N{NO-BREAK SPACE}"
BRIEF, BRIEFEST = 16, 8
"""Letters of the run's text beside two buttons in the standard layout, and in a window of 1000 px."""


def count_texts(session: Session) -> tuple[str, ...]:
    """Tokens, what they keep in memory, what is left of the context; then shorter for less room."""
    if session.model is None:
        return ("",)
    if session.prompt.notice:
        return (session.prompt.notice,)
    n = session.prompt.count
    left = session.model.n_ctx - n
    kept, budget = bytes_kept(session.model, n), session.memory.budget if session.memory else 0
    amounts = {"n": f"{n:,}", "bytes": size(kept).replace(" ", NO_BREAK), "left": f"{left:,}"}
    if left < 0:  # how many are too many is the first of the notices
        if 0 < budget < kept:
            return (tr("{n} tokens need {bytes} of {budget}", budget=size(budget), **amounts), tokens(n))
        return (tr("{n} tokens · KV + views {bytes}", **amounts), tokens(n))
    if n and 0 < budget < kept:
        return (
            tr("{n} tokens need {bytes} of {budget} and leave {left}", budget=size(budget), **amounts),
            tr("{n} tokens need {bytes} of {budget}", budget=size(budget), **amounts),
        )
    if n == 1:
        return (tr("1 token · KV + views {bytes} · {left} left", **amounts), tr("1 token · {left} left", **amounts))
    if n:
        long = tr("{n} tokens · KV + views {bytes} · {left} left", **amounts)
        return (long, tr("{n} tokens · {left} left", **amounts))
    return (tr("0 tokens · {left} left", left=f"{left:,}"),)


def loss_text(session: Session, *, follows: bool) -> str:
    """The prompt's mean cross-entropy and perplexity; empty while they are not known or not of this text."""
    stats = session.prompt_stats
    if session.prompt.notice or not (stats and follows and math.isfinite(stats.reply.mean_cross_entropy)):
        return ""
    entropy, perplexity = stats.reply.mean_cross_entropy, stats.reply.perplexity
    return tr("{h} nats/token · perplexity {p}", h=f"{entropy:.2f}", p=f"{perplexity:,.1f}")


def too_many(session: Session) -> tuple[str, ...]:
    """That the text has more tokens than the model takes, then shorter for less room; empty where it has not."""
    prompt, model = session.prompt, session.model
    if model is None or prompt.notice or not session.prompt_text or prompt.count <= model.n_ctx:
        return ()
    over = tokens(prompt.count - model.n_ctx)
    return (
        tr("{tokens} too many for the context of {n_ctx}: shorten the text", tokens=over, n_ctx=f"{model.n_ctx:,}"),
        tr("{tokens} too many for the context", tokens=over),
        tr("{tokens} too many", tokens=over),
    )


def notices(session: Session, *, follows: bool, shows_all: bool) -> list[Notice]:
    """What is to be noticed, what matters most first. `follows`: the run is of the text in the box; `shows_all`:
    whether the box shows all of it."""
    found = []
    if over := too_many(session):
        found.append(Notice(key=TOO_MANY, texts=over, voice="red"))
    if text := other_text(session):
        quoted, brief, briefest = (f"\u2039{one_line(text, n)}\u203a" for n in (len(text), BRIEF, BRIEFEST))
        words = (tr("The panels show the run of: {text}", text=quoted), tr("run of {text}", text=quoted),
                 tr("run of {text}", text=brief), tr("run of {text}", text=briefest))  # fmt: skip
        if over:  # what a button would run is refused
            found.append(Notice(key=OTHER_TEXT, texts=words))
        elif session.can_run and not session.busy and session.prompt_text:
            action = (tr("Prefill"), tr("Run the model on the text in the box"))
            found.append(Notice(key=OTHER_TEXT, texts=words, action=action))
        elif not session.prompt_text and not session.busy:
            action = (tr("Bring it back"), tr("Put the text of the run into the box"))
            found.append(Notice(key=EMPTY, texts=words, action=action))
        else:
            found.append(Notice(key=OTHER_TEXT, texts=words))
    if follows and session.facts.stats_stopped:
        action = (tr("Go on"), tr("Compute what the model expected of the prompt"))
        texts = (tr("stopped: loss and perplexity are not known"), tr("loss: stopped"))
        found.append(Notice(key=STATS, texts=texts, action=action))
    if session.model is None or session.prompt.notice:
        return found
    if signs := unseen(session.prompt_text, everywhere=not shows_all):
        whole = tr("not seen in the box, but in the tokens: {signs}", signs=signs)
        found.append(Notice(key="unseen", texts=(whole, tr("unseen: {signs}", signs=signs))))
    if (listed := len(session.prompt.tokens)) < session.prompt.count and not follows:
        found.append(Notice(key="listed", texts=(tr("the first {listed} are shown", listed=f"{listed:,}"),)))
    return found
