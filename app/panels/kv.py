"""The KV cache: its bytes as it grows, what it saves, what it costs to read, and what is in it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

from PySide6.QtWidgets import QPushButton, QVBoxLayout, QWidget

from app.commands import Command
from app.i18n import tr
from app.notify import QUIET_CODES
from app.panels.base import Changes, Need, Panel
from app.panels.kv_contents import ContentsView
from app.panels.kv_facts import (
    HEADS,
    LEFT,
    formula_forms,
    growth_lines,
    growth_of,
    heads_rows,
    layer_columns,
    layer_rows,
    left_rows,
    phase_columns,
    phase_rows,
    step_columns,
    step_rows,
)
from app.session import Topic
from app.widgets.card_grid import MARGINS, Card, CardGrid, Plan, Slot
from app.widgets.fact_table import FactTable
from app.widgets.growth_plot import GrowthPlot
from model.protocol.figure_requests import ExportKvGrowth
from model.protocol.kv_requests import GetKv, KvReply, MeasureRecompute, RecomputeReply

if TYPE_CHECKING:
    from app.export.panel_files import Table
    from model.protocol.export_requests import FigureTheme
    from model.protocol.figure_requests import DrawnFormat
    from model.protocol.framing import Arrays
    from model.protocol.wire import ErrorInfo, Progress, Request

FOUR, QUARTERS = 1290, 1345
"""Px at 100 % text from which a quarter of the width holds a table with its names whole, and one with a bar too."""
TWO, HALVES = 545, (4, 3)
"""Px at 100 % text from which the first of two columns holds every table with its names whole; shares of the two."""
HELP = (
    "Every layer keeps a key and a value of every token: the next token makes its own query, key and value, and reads "
    "all the others from here. Without it each step would compute the whole text again.\n\n"
    "bytes = 2·L·K·D·N·b: K and V, L layers, K key/value heads, D numbers a head, N tokens, b bytes a number. Heads "
    "that share keys and values (GQA, MQA) divide it; the weights of attention themselves, N × N for each head, are "
    "never kept.\n\n"
    "Prefill fills the cache at once and multiplies many rows with each weight it reads; decode reads every weight and "
    "the whole cache for one row. Compare their intensity, operations for each byte.\n\n"
    "Look for: the jump at the prefill and the even slope after it; steps of the allocation, which doubles; in the "
    "contents, the newest row at the bottom, and pairs of dimensions that turn with position in K and stand still "
    "before rotation."
)


class KvPanel(Panel):
    """See the parts: GrowthPlot, kv_facts, ContentsView."""

    panel_id: ClassVar[str] = "kv"
    title: ClassVar[str] = "KV cache"
    help_text: ClassVar[str] = HELP
    watches: ClassVar[frozenset[str]] = frozenset({
        Topic.MODEL, Topic.RUN, Topic.NODE, "layer", "head", "key", "scale", "hover_token",
    })  # fmt: skip
    area: ClassVar[str] = "bottom"
    needs: ClassVar[Need] = "run"
    exports: ClassVar[bool] = True

    def build(self) -> None:
        theme = self.ctx.theme
        self.plot = GrowthPlot(theme)
        self.heads = FactTable(theme, tr("Bytes of a token"), HEADS, along=True)
        self.left = FactTable(theme, tr("What is left"), LEFT, folds=True)
        self.phases = FactTable(theme, tr("Prefill and decode side by side"), (), folds=True)
        self.step = FactTable(theme, tr("One step with the cache and without"), step_columns(), folds=True)
        self.layers = FactTable(theme, tr("Bytes by layer"), layer_columns(sliding=False), folds=True, along=True)
        self.contents = ContentsView(self)
        self.measure = QPushButton(tr("Measure"))
        self.measure.setProperty("compact", True)
        self.measure.setFixedHeight(theme.px(26))
        self.measure.setToolTip(tr("Runs the text once more without a cache, to measure what it saves"))
        self.measure.clicked.connect(self.measure_or_cancel)
        cards = {
            "growth": (Card(theme, tr("bytes by position"), self.plot, tells=True), tr("Bytes")),
            "heads": (Card(theme, tr("bytes of a token"), _stacked(self.heads, self.left), tells=True), tr("Heads")),
            "phases": (Card(theme, tr("prefill and decode"), self.phases), tr("Phases")),
            "step": (Card(theme, tr("one decode step"), self.step, tool=self.measure), tr("One step")),
            "layers": (Card(theme, tr("by layer"), self.layers), tr("Layers")),
            "contents": (Card(theme, "", self.contents), tr("Contents")),
        }
        self.grid = CardGrid(theme, cards, plan, label=tr("What is shown"))
        for key in self.ctx.settings.panel("kv").get("cards", ()):  # the one that was chosen last is the last
            if key in cards:
                self.grid.show_card(key)
        self.grid.chosen.connect(self._keep_card)
        self.body.setContentsMargins(MARGINS)
        self.body.addWidget(self.grid, 1)
        self._asked: object = None
        self._shown: tuple[KvReply, Arrays] | None = None
        self._measured: tuple[object, RecomputeReply] | None = None
        self._measuring: Any = None
        self._progress = ""
        self.plot.positionHovered.connect(
            lambda position: self.ctx.selection.set_hover(token=position if position >= 0 else None)
        )
        self.plot.positionClicked.connect(self.ctx.selection.set_key)
        self.layers.rowChosen.connect(self.ctx.selection.set_layer)
        theme.changed.connect(self._refit)

    def _keep_card(self, key: str) -> None:
        """Remembers which cards were chosen, in this order."""
        before = self.ctx.settings.panel("kv").get("cards", ())
        self.ctx.settings.update_panel("kv", cards=[*(other for other in before if other != key), key])

    def _refit(self) -> None:
        self.measure.setFixedHeight(self.ctx.theme.px(26))
        self._fit_heads()

    def carry(self, before: Self) -> None:
        """Which cards are in front, what was measured, and the measuring that is under way, begun anew."""
        self.grid.carry(before.grid)
        self.contents.carry(before.contents)
        self._measured = before._measured
        if before._measuring is not None:
            before._measuring.cancel()
            self.measure_or_cancel()

    def commands(self) -> Iterable[Command]:
        def has_run() -> bool:
            return self.ctx.session.run is not None

        return (
            Command(id="kv.measure", title="Measure a step without the cache", menu="Run", group=3,
                    run=self.measure_or_cancel, enabled=has_run),
            Command(id="kv.table", title="KV cache as a table", menu="View", group=1, enabled=has_run,
                    run=self.toggle_table, checked=lambda: self.contents.as_table),
        )  # fmt: skip

    def tables(self, done: Callable[[list[Table]], None]) -> None:
        growth = self.plot.growth
        found: list[Table] = [
            (tr("bytes by position"), growth_lines(growth) if growth else []),
            (tr("bytes of a token"), self.heads.as_lines()),
            (tr("What is left"), self.left.as_lines()),
            (tr("prefill and decode"), self.phases.as_lines()),
            (tr("one decode step"), self.step.as_lines()),
            (tr("by layer"), self.layers.as_lines()),
        ]
        self.contents.tables(lambda table: done([*found, table]))

    def figure(self, formats: tuple[str, ...], theme: str, stem: str) -> Request | None:
        return ExportKvGrowth(
            formats=cast("tuple[DrawnFormat, ...]", formats),
            theme=cast("FigureTheme", theme),
            stem=stem or self.panel_id,
        )

    def toggle_table(self) -> None:
        """The contents as a table, or the map again."""
        self.grid.show_card("contents")
        self.contents.show_table(shown=not self.contents.as_table)

    # state → widgets

    def refresh(self, changes: Changes) -> None:
        self.plot.set_hovered(self.ctx.selection.hover_token)
        if changes <= {"hover_token"}:
            self.contents.follow_hover()
            return
        session, selection = self.ctx.session, self.ctx.selection
        self.contents.sync()
        self.plot.set_cursor(selection.key if session.run is not None else None)
        self.layers.set_current(selection.single_layer)
        state = self._state()
        if session.run is None:
            self._shown, self._asked = None, None
            self.plot.set_growth(None)
        elif state != self._asked:
            self._asked = state
            self.ask(GetKv(), self._on_bytes, slot="bytes", on_error=self._on_bytes_error)
        elif self._shown is not None:
            self._show_step(self._shown[0])

    def measure_or_cancel(self) -> None:
        """Measures a step without the cache, or stops doing so."""
        if self._measuring is not None:
            self._measuring.cancel()
            return
        if self.ctx.session.run is None:
            return
        state = self._state()
        self._progress = tr("measuring …")
        self._measuring = self.ask(
            MeasureRecompute(), lambda reply, _arrays: self._on_measured(reply, state),
            on_progress=self._on_progress, on_error=self._on_measure_error,
        )  # fmt: skip
        self._show_measuring()

    # inside

    def _state(self) -> tuple[object, ...]:
        session = self.ctx.session
        return (session.run_id, session.current_node, session.length)

    def _on_bytes(self, reply: KvReply, arrays: Arrays) -> None:
        model = self.ctx.session.model
        if model is None:
            return
        self._shown = (reply, arrays)
        sliding = bool((arrays["windows"] > 0).any())
        self.plot.set_growth(growth_of(reply, arrays, model))
        self.plot.set_tokens(self.ctx.session.path_tokens())
        self.grid.cards["growth"].set_caption(*formula_forms(reply, model))
        caption = tr("bytes of a token · {kind} {size}", kind=model.attention_kind, size=f"{reply.bytes_per_token:,} B")
        self.grid.cards["heads"].set_caption(caption, tr("bytes of a token"))
        self.heads.set_rows(heads_rows(reply, model))
        self.left.set_rows(left_rows(reply, sliding=sliding))
        self.phases.set_rows(phase_rows(reply), phase_columns(reply))
        self.layers.set_rows(layer_rows(arrays, sliding=sliding), layer_columns(sliding=sliding))
        self.layers.set_current(self.ctx.selection.single_layer)
        self._show_step(reply)
        self._fit_heads()

    def _on_bytes_error(self, _error: ErrorInfo) -> None:
        self._asked = None

    def _show_step(self, reply: KvReply) -> None:
        measured = self._measured[1] if self._measured and self._measured[0] == self._state() else None
        busy = self._progress if self._measuring is not None else ""
        self.step.set_rows(step_rows(reply, measured, busy=busy))

    def _show_measuring(self) -> None:
        self.measure.setText(tr("Cancel") if self._measuring is not None else tr("Measure"))
        if self._shown is not None:
            self._show_step(self._shown[0])

    def _on_progress(self, progress: Progress) -> None:
        self._progress = tr("layer {n} of {all}", n=progress.done + 1, all=progress.total)
        self.mark("measuring")

    def _on_measured(self, reply: RecomputeReply, state: object) -> None:
        self._measuring, self._measured = None, (state, reply)
        self._show_measuring()

    def _on_measure_error(self, error: ErrorInfo) -> None:
        self._measuring = None
        self._show_measuring()
        if error.code not in QUIET_CODES:
            self.ctx.notify.engine_error(tr("The step without a cache was not measured"), error)

    def _fit_heads(self) -> None:
        rows = len(self.heads.rows)
        self.heads.setFixedHeight(self.ctx.theme.px(21) * rows + 2)


def plan(width: float, height: float) -> Plan:
    """Where the cards go, px at 100 % text."""
    middle = ("heads", "step", "phases", "layers")
    if height >= 420 and width >= 900:
        return Plan(
            slots=(
                Slot(cards=("growth",), cols=2), Slot(cards=("contents",), col=2, cols=2),
                *(Slot(cards=(key,), row=1, col=index) for index, key in enumerate(middle)),
            ) if width >= FOUR else (
                Slot(cards=("growth",), cols=2), Slot(cards=("contents",), col=2, cols=2),
                Slot(cards=("heads",), row=1), Slot(cards=("phases", "step"), row=1, col=1, cols=2),
                Slot(cards=("layers",), row=1, col=3),
            ),
            widths=(1, 1, 1, 1) if width >= FOUR else (10, 6, 6, 9), heights=(5, 3),
        )  # fmt: skip
    slots: tuple[tuple[str, ...], ...]
    widths: tuple[int, ...]
    if width >= 1220:
        slots = (("growth",), ("heads",), ("phases", "step", "layers"), ("contents",))
        widths = (5, 4, 5, 6) if width >= QUARTERS else (17, 16, 22, 24)
    elif width >= 960:
        slots, widths = (("growth",), (*middle,), ("contents",)), (4, 5, 5)
    elif width >= TWO and height >= 560:
        return Plan(
            slots=(
                Slot(cards=("growth",)), Slot(cards=("heads",), row=1),
                Slot(cards=("phases", "step", "layers"), row=2), Slot(cards=("contents",), col=1, rows=3),
            ),
            widths=HALVES, heights=(6, 5, 6),
        )  # fmt: skip
    elif width >= TWO and height >= 420:
        return Plan(
            slots=(Slot(cards=("growth",)), Slot(cards=middle, row=1), Slot(cards=("contents",), col=1, rows=2)),
            widths=HALVES, heights=(1, 1),
        )  # fmt: skip
    elif width >= TWO:
        slots, widths = (("growth", *middle), ("contents",)), HALVES
    elif height >= 420:
        return Plan(slots=(Slot(cards=("growth", "contents")), Slot(cards=middle, row=1)), widths=(1,), heights=(6, 5))
    else:
        slots, widths = (("growth", *middle, "contents"),), (1,)
    return Plan(slots=tuple(Slot(cards=cards, col=index) for index, cards in enumerate(slots)), widths=widths)


def _stacked(*widgets: QWidget) -> QWidget:
    """Widgets under one another."""
    holder = QWidget()
    column = QVBoxLayout(holder)
    column.setContentsMargins(0, 0, 0, 0)
    column.setSpacing(4)
    for widget in widgets:
        column.addWidget(widget)
    return holder
