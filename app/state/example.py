"""The first start's example: a prompt, a few greedy steps, and the cell where "it" reads "animal"."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.i18n import tr
from app.state.prompt_state import EXAMPLE_PROMPT

if TYPE_CHECKING:
    from app.session import Session

STEPS = 7
VIEW = (13, 8)  # layer, head of the default model
CELL = (8, 1)  # query, key


def show_example(session: Session) -> None:
    """Prefills what is in the prompt and steps a little, looking at the example's head. The steps take the likeliest
    tokens whatever the sliders say, which is told, and marked on them."""
    session.selection.set_layer_head(*VIEW)
    session.prefill(then_steps=STEPS, greedy=True)
    if session.busy:
        session.notify.say(
            tr("The example takes the likeliest tokens (temperature 0); the next ones follow the sliders.")
        )


def point_at_example(session: Session) -> None:
    """Chooses the example's cell, where the run is the example's."""
    if session.prompt_text == EXAMPLE_PROMPT and session.length > max(CELL):
        session.selection.set_cell(*CELL)
