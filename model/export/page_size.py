"""How high the page of a figure is whose content says it: sheets by their rows, texts by their lines."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from model.export import contact_sheet, tinted_text
from model.protocol.export_requests import DrawnRequest, ExportSheet
from model.protocol.figure_requests import ExportText
from model.run import Run
from model.views.selection import span

Drawn = TypeVar("Drawn", bound=DrawnRequest)


def as_high_as_needed(run: Run, message: Drawn) -> Drawn:
    """`message`, of which no height was asked, with one that its content fills. Raises BadValueError for its rows."""
    height = message.height
    if isinstance(message, ExportSheet):
        shared = run.config.n_heads // run.config.n_kv_heads
        groups = tuple(head // shared for head in message.heads or range(run.config.n_heads))
        height = contact_sheet.fitting_height(groups, len(message.layers) or run.config.n_layers, message.width)
    elif isinstance(message, ExportText):
        pieces = run.model.tokenizer.pieces(run.ids[slice(*span(run, "rows", message.rows))])
        height = tinted_text.fitting_height(tuple(pieces), message.width)
    return replace(message, height=height)
