"""What the prompt panel says of its text: how many tokens, what they take, and what is to be noticed."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from app.amounts import size
from app.i18n import tr
from app.plain import one_line, unseen
from app.state.on_screen import other_text
from app.widgets.notice_line import Notice
from model.protocol.values import bytes_kept

if TYPE_CHECKING:
    from app.session import Session

OTHER_TEXT = "other text"
EMPTY = "emptied"
BRIEF = 16
"""Letters of the run's text beside two buttons in the standard layout."""


def count_texts(session: Session) -> tuple[str, ...]:
    """Tokens, what they keep in memory, what is left of the context; then shorter for less room."""
    if session.model is None:
        return ("",)
    if session.prompt.notice:
        return (session.prompt.notice,)
    n = session.prompt.count
    left = session.model.n_ctx - n
    kept, budget = bytes_kept(session.model, n), session.memory.budget if session.memory else 0
    amounts = {"n": f"{n:,}", "bytes": size(kept), "left": f"{left:,}"}
    if left < 0:
        amounts["over"] = f"{-left:,}"
        if 0 < budget < kept:
            return (
                tr("{n} tokens need {bytes} of {budget}: {over} too many", budget=size(budget), **amounts),
                tr("{n} tokens: {over} too many", **amounts),
            )
        return (
            tr("{n} tokens take {bytes}: {over} too many for the context", **amounts),
            tr("{n} tokens: {over} too many for the context", **amounts),
            tr("{n} tokens: {over} too many", **amounts),
        )
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


def notices(session: Session, *, follows: bool, shows_all: bool) -> list[Notice]:
    """What is to be noticed, what matters most first. `follows`: the run is of the text in the box; `shows_all`:
    whether the box shows all of it."""
    found = []
    if text := other_text(session):
        quoted = f"\u2039{text}\u203a"
        brief = f"\u2039{one_line(text, BRIEF)}\u203a"
        words = (tr("The panels show the run of: {text}", text=quoted), tr("run of {text}", text=quoted),
                 tr("run of {text}", text=brief), brief)  # fmt: skip
        if session.can_run and not session.busy and session.prompt_text:
            action = (tr("Prefill"), tr("Run the model on the text in the box"))
            found.append(Notice(key=OTHER_TEXT, texts=words, action=action))
        elif not session.prompt_text and not session.busy:
            action = (tr("Bring it back"), tr("Put the text of the run into the box"))
            found.append(Notice(key=EMPTY, texts=words, action=action))
        else:
            found.append(Notice(key=OTHER_TEXT, texts=words))
    if session.model is None or session.prompt.notice:
        return found
    if signs := unseen(session.prompt_text, everywhere=not shows_all):
        whole = tr("not seen in the box, but in the tokens: {signs}", signs=signs)
        found.append(Notice(key="unseen", texts=(whole, tr("unseen: {signs}", signs=signs))))
    if (listed := len(session.prompt.tokens)) < session.prompt.count and not follows:
        found.append(Notice(key="listed", texts=(tr("the first {listed} are shown", listed=f"{listed:,}"),)))
    return found
