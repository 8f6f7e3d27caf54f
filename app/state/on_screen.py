"""Whether the run on the screen is that of the text in the prompt box."""

from __future__ import annotations

from typing import TYPE_CHECKING

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
    return prompt.tokens is run or [token.id for token in prompt.tokens] == [token.id for token in run]


def other_text(session: Session) -> str:
    """The beginning of the run's text on one line, where the prompt box holds another text; empty where it does not,
    and while another run is being made."""
    if session.run is None or session.phase in {Phase.PREFILL, Phase.OPENING} or follows_run(session):
        return ""
    text = " ".join(session.run_text[: 8 * BEGINNING].split())
    text = "".join(character if character.isprintable() else "·" for character in text)
    return text if len(text) <= BEGINNING else text[: BEGINNING - 1].rstrip() + "…"
