"""Whether the run on the screen is that of the text in the prompt box."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.plain import one_line
from app.state.under_way import Phase

if TYPE_CHECKING:
    from app.session import Session

BEGINNING = 28


def follows_run(session: Session) -> bool:
    """Whether the typed text is the prefilled one, token for token; as far as is known while it is being tokenised."""
    run, prompt = session.prompt_tokens, session.prompt
    if not run:
        return False
    if prompt.stale:
        return prompt.text == session.prefilled_text
    if prompt.taken is run:
        return True
    listed = len(prompt.tokens)  # of a long text the first tokens only: the others were made of the same text
    return (
        prompt.count == len(run)
        and prompt.tokens.token_ids.tolist() == [token.id for token in run[:listed]]
        and (listed == prompt.count or prompt.text == session.prefilled_text)
    )


def other_text(session: Session) -> str:
    """The beginning of the run's text on one line, where the prompt box holds another text; empty where it does not,
    and while another run is being made."""
    if session.run is None or session.phase in {Phase.PREFILL, Phase.OPENING} or follows_run(session):
        return ""
    return one_line(session.prefilled_text or session.run_text, BEGINNING)


def bring_back(session: Session) -> None:
    """Puts the text of the run into the prompt box; Undo there brings back the one it held."""
    text, tokens = session.prefilled_text, session.prompt_tokens
    session.prompt.take(text, session.run_text[: tokens[-1].end] if session.prompt.chat else text, tokens)
