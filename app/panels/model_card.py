"""The model: its configuration in words, its parameters and costs, where it comes from, the proof of the numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar, Self

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QAbstractScrollArea, QPushButton

from app.i18n import tr
from app.panels.base import Changes, Need, Panel
from app.panels.model_card_words import (
    COSTS,
    check_columns,
    check_rows,
    cost_rows,
    part_columns,
    part_rows,
    source_facts,
    source_path,
    words_of,
)
from app.panels.model_outline import outline_lines, outline_of
from app.session import Topic
from app.widgets.block_drawing import BlockDrawing, DrawingPage
from app.widgets.card_grid import MARGINS, TOOL_HEAD, Card, CardGrid, Plan, Slot
from app.widgets.fact_sheet import FactSheet
from app.widgets.fact_table import FactTable
from app.widgets.table_style import HEADER, LEAST_ROW
from model.protocol.card_requests import GetModelCard, ModelCardReply
from model.protocol.engine_requests import SelfCheck, SelfCheckReply

if TYPE_CHECKING:
    from app.export.panel_files import Table
    from model.protocol.framing import Arrays
    from model.protocol.wire import ErrorInfo

PICTURED, PICTURED_MOST = (1640, 480), 2400
"""Px at 100 % text of its picture: at least, and of height at most."""
DRAWN = 420
"""Px of height at 100 % text from which the drawing has a place of its own where there is the width."""
SENTENCE = 28
"""Shares of width that sentences have at most: longer lines are hard to read."""
FOUR, TWO = 1190, 580
"""Px of width at 100 % text from which so many cards stand beside one another with every figure and name whole."""
SWITCH, HALVED = 400, 300
"""Px at 100 % text: of width that one switch for all cards needs, and of height from which there are two."""
WORDY = 500
"""Px of height at 100 % text from which tables under the words are whole in less than the half of it."""
HELP = (
    "What this model is made of. Parameters are counted from its configuration and must fit the file exactly. A token "
    "costs about two operations for each parameter it is multiplied with: a multiplication and an addition.\n\n"
    "parameters of a block ≈ 2·M·D·(H + K) for attention + 3·M·F for a gated feed-forward (2·M·F for a plain one): M "
    "width, D head dimensions, H query heads, K key/value heads, F feed-forward width. The embedding has V·M; a tied "
    "head adds nothing.\n\n"
    "The self-check computes numbers of the run that you see a second time in another way, and prints the largest "
    "difference beside the bound it has to keep.\n\n"
    "Look for: the share of the feed-forward, which is usually the largest; the share of the embedding in a small "
    "model; the dtype printed bold, which is the one that is loaded."
)


class ModelPanel(Panel):
    """See model_card_words for what it says."""

    panel_id: ClassVar[str] = "model"
    title: ClassVar[str] = "Model"
    help_text: ClassVar[str] = HELP
    watches: ClassVar[frozenset[str]] = frozenset({Topic.MODEL, Topic.RUN, Topic.SELF_CHECK})
    area: ClassVar[str] = "bottom"
    needs: ClassVar[Need] = "model"
    exports: ClassVar[bool] = True

    def build(self) -> None:
        theme = self.ctx.theme
        self.words = FactSheet(theme, tr("The configuration in words"))
        self.parts = FactTable(theme, tr("Parameters by part"), part_columns())
        self.costs = FactTable(theme, tr("Bytes and operations"), COSTS)
        self.source = FactSheet(theme, tr("Source"))
        self.drawing = BlockDrawing(theme, tr("The model as a drawing"))
        self.way = DrawingPage(theme, self.drawing)
        self.checks = FactTable(theme, tr("Self-check"), check_columns())
        self.check_all = QPushButton(tr("Check all"))
        self.check_all.setProperty("compact", True)
        self.check_all.setFixedHeight(theme.px(26))
        self.check_all.setToolTip(tr("Also the checks that run the model again"))
        self.check_all.clicked.connect(self.check_or_cancel)
        cards = {
            "words": (Card(theme, tr("configuration"), self.words), tr("Words")),
            "parts": (Card(theme, tr("parameters"), self.parts), tr("Parameters")),
            "costs": (Card(theme, tr("bytes and operations"), self.costs), tr("Costs")),
            "drawing": (Card(theme, tr("a token's way"), self.way), tr("Drawing")),
            "source": (Card(theme, tr("source"), self.source), tr("Source")),
            "checks": (Card(theme, tr("self-check"), self.checks, tool=self.check_all), tr("Self-check")),
        }
        self.grid = CardGrid(theme, cards, plan, label=tr("What is shown"))
        self.body.setContentsMargins(MARGINS)
        cards["checks"][0].lead = self._lead
        self.body.addWidget(self.grid, 1)
        self._asked: object = None
        self._checking: Any = None
        theme.changed.connect(self._fit_button)

    def _lead(self, height: int) -> int:
        """See Card: where not all checks would be in sight, their titles stand on the line of caption and button."""
        table, px = self.checks, self.ctx.theme.px
        low = 0 < height < px(TOOL_HEAD) + 2 + px(HEADER) + len(table.rows) * px(LEAST_ROW)
        table.set_head(TOOL_HEAD if low else HEADER, shared=low)
        return table.figures_width() if low else 0

    def _fit_button(self) -> None:
        self.check_all.setFixedHeight(self.ctx.theme.px(26))

    def refresh(self, changes: Changes) -> None:
        session = self.ctx.session
        model = session.model
        if model is None:
            self._asked = None
            return
        self._show_checks()
        state = (model, session.n_prompt if session.run is not None else 0)
        if state != self._asked or changes & {Topic.MODEL, Topic.RUN}:
            self._asked = state
            catalogue = session.hello.catalogue if session.hello is not None else ()
            self.source.set_facts(source_facts(model, source_path(model, session.source, catalogue)))
            self.ask(GetModelCard(tokens=state[1]), self._on_card, slot="card", on_error=self._on_card_error)

    def carry(self, before: Self) -> None:
        """Which cards are in front, and the checking that is under way, begun anew."""
        self.grid.carry(before.grid)
        if before._checking is not None:
            before._checking.cancel()
            self.check_or_cancel()

    def check_or_cancel(self) -> None:
        """Runs every check, or stops doing so."""
        if self._checking is not None:
            self._checking.cancel()
            return
        if self.ctx.session.run is None:
            return
        self._checking = self.ask(
            SelfCheck(quick=False), self._on_checks, on_error=self._on_check_error, priority="background"
        )
        self._show_checks()

    @contextmanager
    def as_picture(self) -> Iterator[str]:
        """All cards beside one another, as high as the longest of them needs, without bars and button."""
        model, before, px = self.ctx.session.model, self.size(), self.ctx.theme.px
        shown: tuple[QAbstractScrollArea, ...] = (
            self.words, self.source, self.parts, self.costs, self.checks, self.way,
        )  # fmt: skip
        policies = [widget.verticalScrollBarPolicy() for widget in shown]
        for widget in shown:
            widget.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        try:
            self._reshape(max(before.width(), px(PICTURED[0])), max(before.height(), px(PICTURED[1])))
            while self.height() < px(PICTURED_MOST) and self.cut():
                self._reshape(self.width(), self.height() + px(24))
            self.check_all.hide()
            yield f"{model.name} · {model.dtype} · sha256 {model.sha256[:16]}" if model is not None else ""
        finally:
            for widget, policy in zip(shown, policies, strict=True):
                widget.setVerticalScrollBarPolicy(policy)
            self._reshape(before.width(), before.height())
            self.check_all.setVisible(self.grid.cards["checks"].isVisibleTo(self))

    def cut(self) -> bool:
        """Whether a card has more lines than it shows."""
        sheets = (sheet for sheet in (self.words, self.source) if sheet.isVisibleTo(self))
        tables = (table for table in (self.parts, self.costs, self.checks) if table.isVisibleTo(self))
        if self.way.isVisibleTo(self) and self.drawing.minimumSizeHint().height() > self.way.viewport().height():
            return True
        return any(sheet.needed_height() > sheet.viewport().height() for sheet in sheets) or any(
            table.verticalHeader().length() > table.viewport().height() for table in tables
        )

    def _reshape(self, width: int, height: int) -> None:
        """Another size, with everything in it in its place at once."""
        self.resize(width, height)
        self.body.activate()
        for card in self.grid.cards.values():
            if (column := card.layout()) is not None:
                column.activate()

    def line(self) -> str:
        from app.export.command_line import doctor_line  # noqa: PLC0415 - not before it is asked for

        return doctor_line(self.ctx.session)

    def tables(self, done: Callable[[list[Table]], None]) -> None:
        done(
            [
                (tr("configuration"), [list(fact) for fact in self.words.facts]),
                (tr("a token's way"), outline_lines(self.drawing.outline)),
                (tr("parameters"), self.parts.as_lines()),
                (tr("bytes and operations"), self.costs.as_lines()),
                (tr("source"), [list(fact) for fact in self.source.facts]),
                (tr("self-check"), self.checks.as_lines()),
            ]
        )

    # inside

    def _on_card(self, reply: ModelCardReply, _arrays: Arrays) -> None:
        model = self.ctx.session.model
        if model is None:
            return
        self.words.set_facts(words_of(model, reply.features))
        self.parts.set_rows(part_rows(reply), part_columns())
        self.costs.set_rows(cost_rows(reply, model))
        self.drawing.set_outline(outline_of(model, reply))

    def _on_card_error(self, _error: ErrorInfo) -> None:
        self._asked = None

    def _show_checks(self) -> None:
        session = self.ctx.session
        found = session.self_check
        self.checks.set_rows(check_rows(found.rows if found else ()), check_columns())
        self.check_all.setEnabled(session.run is not None)
        self.check_all.setText(tr("Cancel") if self._checking is not None else tr("Check all"))
        card = self.grid.cards["checks"]
        under_way = found is None and session.run is not None and not (session.model and session.model.recorded)
        if self._checking is None and session.facts.check_failed:
            card.set_caption(tr("self-check · could not be made"))
        elif self._checking is not None or under_way:
            card.set_caption(tr("self-check · running …"))
        elif found is None:
            card.set_caption(tr("self-check · after the first prefill"))
        else:
            good = sum(row.ok for row in found.rows)
            card.set_caption(tr("self-check · {n} of {all} hold", n=good, all=len(found.rows)))
        self.grid.look_again()  # once the button has its words: it is as wide as they are

    def _on_checks(self, reply: SelfCheckReply, _arrays: Arrays) -> None:
        self._checking = None
        self.ctx.session.facts.take_check(reply)
        self._show_checks()

    def _on_check_error(self, error: ErrorInfo) -> None:
        self._checking = None
        self._show_checks()
        if error.code != "cancelled":
            self.ctx.notify.engine_error(tr("The numbers were not checked"), error)


def plan(width: float, height: float) -> Plan:
    """Where the cards go, px at 100 % text."""
    if height >= 420 and width >= 900:
        return Plan(
            slots=(
                Slot(cards=("drawing",), rows=2),
                Slot(cards=("words",), col=1), Slot(cards=("source",), row=1, col=1),
                Slot(cards=("parts",), col=2), Slot(cards=("costs",), row=1, col=2),
                Slot(cards=("checks",), col=3, rows=2),
            ) if width >= FOUR else (
                Slot(cards=("drawing", "words"), rows=2), Slot(cards=("parts",), col=1),
                Slot(cards=("costs", "source"), row=1, col=1), Slot(cards=("checks",), col=2, rows=2),
            ),
            widths=(8, 9, 8, 9) if width >= FOUR else (9, 9, 10),
            heights=(11, 9),
        )  # fmt: skip
    if height >= DRAWN and width >= TWO:
        slots = (
            Slot(cards=("drawing",), rows=2), Slot(cards=("words", "source"), col=1),
            Slot(cards=("parts", "costs", "checks"), row=1, col=1),
        )  # fmt: skip
        return Plan(slots=slots, widths=(5, 6), heights=(11, 8))
    groups: tuple[tuple[str, ...], ...]
    widths: tuple[int, ...]
    if width >= FOUR:
        # What figures do not need is the sentences', which then take fewer lines, and the drawing's.
        more = (width - FOUR) * 62 / (FOUR - 60)
        words, drawn = min(15 + more * 0.75, SENTENCE), 14 + more * 0.25
        groups = ("words",), ("parts",), ("costs", "source", "drawing"), ("checks",)
        widths = round(words * 4), 15 * 4, round(drawn * 4), 18 * 4
    elif width >= 920:
        groups, widths = (("words", "drawing", "source"), ("parts", "costs"), ("checks",)), (9, 9, 10)
    elif width >= TWO:
        groups, widths = (("words", "drawing", "source"), ("parts", "costs", "checks")), (1, 1)
    elif height >= (HALVED if width < SWITCH else DRAWN):
        front = Slot(cards=("words", "drawing", "source"), fills=("drawing",))
        heights = (13, 8) if height >= WORDY else (6, 5)
        return Plan(slots=(front, Slot(cards=("parts", "costs", "checks"), row=1)), widths=(1,), heights=heights)
    else:
        groups, widths = (("words", "drawing", "parts", "costs", "source", "checks"),), (1,)
    fills = ("drawing",) if width >= FOUR else ()  # from left to right: it needs the width
    return Plan(
        slots=tuple(Slot(cards=cards, col=index, fills=fills) for index, cards in enumerate(groups)), widths=widths
    )
