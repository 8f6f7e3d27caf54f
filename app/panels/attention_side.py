"""Beside the attention matrix: the grid of all heads, the chosen query's row, the chosen key's column, entropy."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QBoxLayout, QLabel, QStackedWidget, QVBoxLayout, QWidget

from app.i18n import tr
from app.panels.attention_words import SIGNED_STAGES, metric_items, metric_short, metric_unit, value_name
from app.panels.heads_table import HeadsTable
from app.panels.question import Doing
from app.widgets.bar_table import BarTable
from app.widgets.check_box import CheckBox
from app.widgets.curve_plot import CurvePlot, Series
from app.widgets.floating_note import FloatingNote
from app.widgets.head_grid import HeadGrid
from app.widgets.readout import Readout
from app.widgets.segmented import Segmented
from app.widgets.stopped_note import StoppedNote
from app.widgets.ticks import figure
from app.widgets.value_combo import Choice, ValueCombo
from app.widgets.wrap_row import WrapRow, wrap
from model.colormaps import colormap_for, lut
from model.protocol.attention_requests import (
    EntropyReply,
    GetColumn,
    GetEntropy,
    GetGrid,
    GetMetrics,
    GetRow,
    GridPart,
    LineReply,
    MetricsReply,
)

if TYPE_CHECKING:
    from app.panels.base import OnReply, Panel
    from app.widgets.readout import Part
    from model.protocol.framing import Arrays

PAGES = ("heads", "row", "column", "entropy")
ROW_SHARES, APART = (14, 18, 24), 14
"""Of the three readouts over a row that share a line: characters, and px between them."""
STOPPED_AWAY = 6
"""Px at 100 % text from the sides of the heads to what says that their drawing was stopped."""


class SideView(QWidget):
    """Pages beside the matrix; asks only for what can be seen. With `split`, the lines (row, column, entropy) are a
    widget of their own, `lines`, that the owner puts under the matrix, and here the heads stay."""

    pageChanged = Signal(str)

    def __init__(self, panel: Panel) -> None:
        super().__init__(panel)
        self._panel, self._ctx = panel, panel.ctx
        theme = panel.ctx.theme
        tips = {
            "heads": tr("Every head of every layer"),
            "row": tr("What the chosen query reads"),
            "column": tr("Who reads the chosen key"),
            "entropy": tr("How spread each query's reading is"),
        }
        lines = [("row", tr("Row")), ("column", tr("Column")), ("entropy", tr("Entropy"))]
        label = tr("Beside the matrix")
        self.pages = (("heads", tr("Heads")), *lines)
        self.tabs = Segmented(theme, self.pages, label=label, tips=tips)
        self.line_tabs = Segmented(theme, lines, label=tr("Under the matrix"), tips=tips)
        self.grid, self.heads_table = HeadGrid(theme), HeadsTable(theme)
        self.row, self.column = BarTable(theme, tr("What the query reads")), BarTable(theme, tr("Who reads the key"))
        self.row_words, self.column_words = Readout(theme), Readout(theme)
        self.row_entropy, self.row_unscaled = Readout(theme), Readout(theme)
        self.entropy = CurvePlot(theme, label=tr("Entropy of each row"))
        self.entropy_words = Readout(theme)
        self._asked: dict[str, object] = {}
        self._state: object = None
        self._stopped: object = None
        self._what: tuple[object, object] = (None, None)  # run and stage of the thumbnails
        self.split = self._bare = False
        self._stack, self._line_stack = QStackedWidget(), QStackedWidget()
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(4)
        column.addWidget(self.tabs)
        column.addWidget(self._stack, 1)
        self._heads = self._make_heads()
        self._stack.addWidget(self._heads)
        self.lines = QWidget()
        under = QVBoxLayout(self.lines)
        under.setContentsMargins(0, 0, 0, 0)
        under.setSpacing(6)
        under.addWidget(self.line_tabs)
        under.addWidget(self._line_stack, 1)
        self._row_line = QBoxLayout(QBoxLayout.Direction.TopToBottom)
        self._row_line.setSpacing(2)
        for words, share in zip((self.row_words, self.row_entropy, self.row_unscaled), ROW_SHARES, strict=True):
            self._row_line.addWidget(words, share)
        self._line_stack.addWidget(_page(self._row_line, self.row))
        self._line_stack.addWidget(_page(self.column_words, self.column))
        self._line_stack.addWidget(_page(self.entropy_words, self.entropy))
        self._stack.addWidget(self.lines)
        self.line_tabs.hide()
        self._connect()

    @property
    def page(self) -> str:
        """The open page; of a split view the open line."""
        if not self.split and self._stack.currentIndex() == 0:
            return "heads"
        return PAGES[self._line_stack.currentIndex() + 1]

    def show_page(self, page: str) -> None:
        """Opens a page and fills it."""
        if page != "heads":
            self._line_stack.setCurrentIndex(PAGES.index(page) - 1)
            self.line_tabs.set_key(page)
        if not self.split:
            self.tabs.set_key(page)
            self._stack.setCurrentIndex(0 if page == "heads" else 1)
        self.sync()
        self.pageChanged.emit(page)

    def carry(self, before: SideView) -> None:
        """The pages, how heads are marked and sorted, and whether they are a table."""
        line = before._line_stack.currentIndex()
        heads = before._stack.currentIndex() == 0
        self._line_stack.setCurrentIndex(line)
        self._stack.setCurrentIndex(0 if heads else 1)
        self.line_tabs.set_key(PAGES[line + 1])
        self.tabs.set_key("heads" if heads else PAGES[line + 1])
        self.metric_box.set_key(before.metric_box.key())
        self.sort.setEnabled(before.sort.isEnabled())
        self.sort.setChecked(before.sort.isChecked())
        self.show_heads_table(shown=before.heads_as_table)

    def set_split(self, *, split: bool, wide: bool = False, low: bool = False) -> None:
        """Gives the lines away, to be put elsewhere by the owner, or takes them back. `wide`: to where the words over a
        row stand on one line; `low`: to where they would leave the row no room, and just name the query."""
        self._row_line.setDirection(QBoxLayout.Direction.LeftToRight if wide else QBoxLayout.Direction.TopToBottom)
        self._row_line.setSpacing(APART if wide else 2)
        for words in (self.row_entropy, self.row_unscaled):
            words.setVisible(not low)
        if split == self.split:
            return
        self.split = split
        self.tabs.setVisible(not split and not self._bare)
        self.line_tabs.setVisible(split)
        if split:
            self._stack.setCurrentIndex(0)
            self._stack.removeWidget(self.lines)
        else:
            self._stack.addWidget(self.lines)
            self.tabs.set_key("heads")

    def set_bare(self, *, bare: bool) -> None:
        """Without its tabs, where the owner has them with others."""
        self._bare = bare
        self.tabs.setVisible(not self.split and not bare)

    def follow_shape(self) -> None:
        """How many heads there are: the room they need depends on it."""
        model = self._ctx.session.model
        if model is not None:
            self.grid.set_shape(model.n_layers, model.n_heads, model.n_kv_heads)

    def settle(self) -> None:
        """Shares out its room at once."""
        for layout in (self.layout(), self._heads.layout()):
            if layout is not None:
                layout.activate()

    @property
    def heads_seen(self) -> bool:
        """Whether the heads are on the screen, as thumbnails or as a table."""
        return self.grid.isVisible() or self.heads_table.isVisible()

    @property
    def heads_as_table(self) -> bool:
        return self._heads_stack.currentWidget() is self.heads_table

    def show_heads_table(self, *, shown: bool) -> None:
        """Every head's measures as a table in the thumbnails' place, or these again."""
        self._heads_stack.setCurrentWidget(self.heads_table if shown else self.grid)
        self._asked.pop("metrics", None)
        self._panel.mark("view")

    def heads_least(self) -> int:
        """Px of width the page of heads needs, whatever page is open, with what marks them on one line."""
        return max(self._heads.minimumSizeHint().width(), self._marks_row.sizeHint().width())

    def sync(self) -> None:
        """Brings what can be seen up to date."""
        session = self._ctx.session
        if session.run is None or session.model is None:
            self.grid.clear()
            self._asked.clear()
            self.stopped.forget()
            return
        if self.heads_seen:
            self._sync_grid()
        if self.lines.isVisible():
            page = PAGES[self._line_stack.currentIndex() + 1]
            {"row": self._sync_row, "column": self._sync_column, "entropy": self._sync_entropy}[page]()

    def restyle(self) -> None:
        """Colours the thumbnails again, as after a change of colour map."""
        signed = self._ctx.selection.stage in SIGNED_STAGES
        name = colormap_for(self._ctx.settings.panel("attention").get("colormap", "viridis"), signed=signed)
        self.grid.set_lut(lut(name), signed=signed)

    # heads

    def _make_heads(self) -> QWidget:
        theme = self._ctx.theme
        self.metric_box = ValueCombo(theme, tr("Mark heads by"))
        self.metric_box.set_choices([
            Choice(key=key, text=text, short=metric_short().get(key, "")) for key, text in metric_items()
        ])  # fmt: skip
        self.sort = CheckBox(theme, tr("sort"), tip=tr("Largest first instead of by layer"))
        self.sort.setEnabled(False)
        self.metric_box.set_compact()
        self._marks = QWidget()
        self._marks_row = WrapRow(self._marks)
        wrap(self._marks)
        self._marks_row.add(self.metric_box)
        self._marks_row.add(self.sort)
        page = QWidget()
        column = QVBoxLayout(page)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self._marks)
        self._heads_stack = QStackedWidget()
        self._heads_stack.addWidget(self.grid)
        self._heads_stack.addWidget(self.heads_table)
        column.addWidget(self._heads_stack, 1)
        self.waiting = FloatingNote(theme, self.grid.viewport())
        self.stopped = StoppedNote(theme, self.grid.viewport(), away=STOPPED_AWAY)
        self.grid_note = QLabel()
        self.grid_note.setTextFormat(Qt.TextFormat.PlainText)
        self.grid_note.setProperty("role", "hint")
        self.grid_note.setWordWrap(True)
        self.grid_note.hide()
        column.addWidget(self.grid_note)
        return page

    def _sync_grid(self) -> None:
        session, selection = self._ctx.session, self._ctx.selection
        self.follow_shape()
        layer = selection.layer if isinstance(selection.layer, int) else None
        head = selection.head if isinstance(selection.head, int) else None
        self.grid.set_selected(layer, head)
        self.heads_table.set_selected(layer, head)
        state = (session.run_id, session.current_node, session.length, selection.stage, selection.ignore_first)
        if state != self._state:
            what = (session.run_id, selection.stage)
            if what != self._what:  # cells of another run or stage are no answer, not even for a moment
                self.grid.clear()
            if what[0] != self._what[0]:
                self.grid.set_metric(None)
            self._what, self._state = what, state
            self.restyle()
            self.grid.make_stale()
            self._asked.clear()
            self._stopped = None
        self._tell_wait()
        self._tell_stopped()
        # While tokens stream the thumbnails wait: thirty layers a token would only be in the way.
        if session.phase != "decode":
            if not self.heads_as_table:
                self._ask_layers()
            self._ask_metric()

    def _tell_wait(self) -> None:
        """Says why the squares are empty, until the first thumbnails come."""
        stepping = self._ctx.session.phase == "decode"
        words = tr("The heads are drawn when the steps are done.") if stepping else tr("The heads are being drawn …")
        if self._stopped is not None:
            words = tr("No head is drawn yet.")
        self.waiting.set_text(words if self.grid.blank else "")

    def _tell_stopped(self) -> None:
        """How far the drawing came that was stopped, in what is in sight now."""
        if self._stopped is None or not self.grid.missing():
            self.stopped.forget()
            return
        n, seen = self.grid.drawn()
        texts = [tr("Stopped at {n} of {all} layers", n=n, all=seen), tr("Stopped: {n} of {all}", n=n, all=seen)]
        if n == seen:  # smaller pictures, of before a change of size
            texts = [tr("Stopped: drawn coarsely")]
        self.stopped.say(texts, tr("Draw the layers that are missing"))

    def _go_on(self) -> None:
        self._stopped = None
        self._panel.mark("view")

    def _ask_layers(self) -> None:
        session, selection = self._ctx.session, self._ctx.selection
        layers = self.grid.missing()
        size = self.grid.thumbnail_pixels()
        asked = (layers, size)
        if not layers or self._asked.get("grid") == asked or self._stopped is not None:
            return
        self._asked["grid"] = asked
        state = self._state

        def part(message: GridPart, arrays: Arrays) -> None:
            if self._state == state:
                pixels = np.ascontiguousarray(arrays["pixels"])
                pooled = pixels.shape[-1] < session.length  # else a larger thumbnail has nothing more to show
                self.grid.set_layer(message.layer, pixels, enough=size if pooled else None)
                self.waiting.set_text("")

        message = GetGrid(layers=layers, stage=selection.stage, size=size, ignore_first=selection.ignore_first)
        doing = Doing(
            title=tr("Drawing the heads"), parts=len(layers), part="layer", unit=tr("layers"), on_stop=self._stop_grid
        )  # fmt: skip
        self._panel.ask(
            message, lambda *_: self._on_grid_done(), on_part=part, slot="grid", priority="background",
            on_error=lambda _: self._forget("grid", asked), doing=doing,
        )  # fmt: skip

    def _stop_grid(self) -> None:
        """What has not come stays undrawn until it is gone on with or something else is chosen."""
        self._stopped = self._state
        self._tell_wait()
        self._tell_stopped()

    def _stop_metrics(self) -> None:
        """Heads are not marked, until a measure is chosen again."""
        self.metric_box.set_key("")
        self.sort.setEnabled(False)
        self.grid.set_metric(None)
        self._ctx.notify.say(tr("Stopped: choose a measure again to mark the heads."))
        if self.heads_as_table:
            self.show_heads_table(shown=False)

    def _on_grid_done(self) -> None:
        self._asked.pop("grid", None)
        if self.grid.missing():
            self._panel.mark("view")

    def _ask_metric(self) -> None:
        name = str(self.metric_box.key())
        if not name:
            self.grid.set_metric(None)
            self.grid_note.hide()
        if not name and not self.heads_as_table:
            return
        asked = (self._state,)
        if self._asked.get("metrics") == asked:
            return
        self._asked["metrics"] = asked
        self._panel.ask(
            GetMetrics(), self._on_metrics, on_error=lambda _: self._forget("metrics", asked), slot="metrics",
            priority="background", doing=Doing(title=tr("Measuring the heads"), on_stop=self._stop_metrics),
        )  # fmt: skip

    def _on_metrics(self, reply: MetricsReply, arrays: Arrays) -> None:
        name = str(self.metric_box.key())
        if self.heads_as_table:
            self.heads_table.set_measures(arrays, by=name if self.sort.isChecked() else "")
            self._panel.mark("view")
        if name in arrays:
            words = dict(metric_items())[name]
            unit = metric_unit(name)
            self.grid.set_metric(np.asarray(arrays[name]), words, unit=unit, sort=self.sort.isChecked())
            self._panel.mark("view")
        note = tr("The prompt repeats no token: there is no induction to measure.")
        self.grid_note.setText(note)
        self.grid_note.setVisible(name == "induction" and reply.repeats == 0)

    # lines

    def _sync_row(self) -> None:
        selection = self._ctx.selection
        message = GetRow(view=selection.view, query=selection.query)
        self._ask_line("row", message, self._on_row)

    def _sync_column(self) -> None:
        selection = self._ctx.selection
        message = GetColumn(view=selection.view, key=selection.key)
        self._ask_line("column", message, self._on_column)

    def _sync_entropy(self) -> None:
        self.entropy.set_cursor(self._ctx.selection.query)
        self.entropy.set_hovered(self._ctx.selection.hover_token)
        self._ask_line("entropy", GetEntropy(view=self._ctx.selection.view), self._on_entropy)

    def _ask_line(self, name: str, message: GetRow | GetColumn | GetEntropy, on_reply: OnReply) -> None:
        session = self._ctx.session
        asked = (session.run_id, session.current_node, session.length, message)
        if self._asked.get(name) != asked:
            self._asked[name] = asked
            self._panel.ask(
                message, on_reply, on_error=lambda _: self._forget(name, asked), slot=name,
            )  # fmt: skip

    def _on_row(self, reply: LineReply, arrays: Arrays) -> None:
        pieces, first_decode = self._pieces()
        stage = self._ctx.selection.stage
        self.row.set_values(pieces, np.asarray(arrays["values"]), name=value_name(stage), first_decode=first_decode,
                             signed=stage in SIGNED_STAGES)  # fmt: skip
        self.row_words.set_parts(_named(tr("query"), pieces, reply.index))
        for line, name, value in (
            (self.row_entropy, tr("entropy"), reply.entropy),
            (self.row_unscaled, tr("without 1/√d"), reply.entropy_unscaled),
        ):
            line.set_parts([(f"{name} ", "secondary"), (f"{value:.3f}", "strong"), (" " + tr("nats"), "secondary")])

    def _on_column(self, reply: LineReply, arrays: Arrays) -> None:
        pieces, first_decode = self._pieces()
        stage = self._ctx.selection.stage
        self.column.set_values(pieces, np.asarray(arrays["values"]), name=value_name(stage), first_decode=first_decode,
                             signed=stage in SIGNED_STAGES)  # fmt: skip
        total: list[Part] = [("  " + tr("in all") + " ", "secondary"), (figure(reply.total, 4), "strong")]
        self.column_words.set_parts([*_named(tr("key"), pieces, reply.index), *total])

    def _on_entropy(self, reply: EntropyReply, arrays: Arrays) -> None:
        _, first_decode = self._pieces()
        self.entropy.set_series([
            Series(name=tr("weights"), values=np.asarray(arrays["entropy"])),
            Series(
                name=tr("without 1/√d"), values=np.asarray(arrays["entropy_unscaled"]), colour="secondary", dashed=True
            ),
        ])  # fmt: skip
        self.entropy.set_boundary(first_decode)
        mean = [(tr("mean") + " ", "secondary"), (f"{reply.mean:.3f}", "strong"), (" " + tr("nats"), "secondary")]
        across = "  " + tr("by position")
        self.entropy_words.set_parts([*mean, (across, "secondary")], mean)

    # inside

    def _connect(self) -> None:
        selection = self._ctx.selection
        self.tabs.keyChanged.connect(self.show_page)
        self.line_tabs.keyChanged.connect(self.show_page)
        self.grid.headClicked.connect(self._on_head)
        self.grid.layersWanted.connect(lambda: self._panel.mark("view"))
        self.stopped.wanted.connect(self._go_on)
        self.grid.tableWanted.connect(lambda: self.show_heads_table(shown=True))
        self.heads_table.headClicked.connect(self._on_head)
        self.heads_table.backWanted.connect(lambda: self.show_heads_table(shown=False))
        self.heads_table.copied.connect(lambda: self._ctx.notify.say(tr("Copied.")))
        self.metric_box.keyChosen.connect(self._on_metric_chosen)
        self.sort.toggled.connect(self._on_metric_chosen)
        self.row.positionHovered.connect(lambda p: self._hover((selection.query, p) if p >= 0 else None))
        self.row.positionClicked.connect(selection.set_key)
        self.column.positionHovered.connect(lambda p: self._hover((p, selection.key) if p >= 0 else None))
        self.column.positionClicked.connect(selection.set_query)
        self.entropy.positionHovered.connect(lambda p: selection.set_hover(token=None if p < 0 else p))
        self.entropy.positionClicked.connect(selection.set_query)

    def _forget(self, name: str, asked: object) -> None:
        """What was asked did not come; it may be asked again. What replaced it is left alone, an equal question too:
        taken for the one that failed it would be asked again, and so taken back itself."""
        if self._asked.get(name) is asked:
            self._asked.pop(name)

    def _hover(self, cell: tuple[int, int] | None) -> None:
        self._ctx.selection.set_hover(cell=cell)

    def _on_head(self, layer: int, head: int) -> None:
        self._ctx.selection.set_layer_head(layer, head)

    def _on_metric_chosen(self, *_: object) -> None:
        self.sort.setEnabled(bool(self.metric_box.key()))
        self._asked.pop("metrics", None)
        self._panel.mark("view")

    def _pieces(self) -> tuple[list[str], int | None]:
        session = self._ctx.session
        first = session.n_prompt if session.length > session.n_prompt else None
        return [token.piece for token in session.path_tokens()], first


def _page(words: Readout | QBoxLayout, content: QWidget) -> QWidget:
    page = QWidget()
    column = QVBoxLayout(page)
    column.setContentsMargins(0, 0, 0, 0)
    column.setSpacing(2)
    if isinstance(words, QBoxLayout):
        column.addLayout(words)
    else:
        column.addWidget(words)
    column.addWidget(content, 1)
    return page


def _named(kind: str, pieces: list[str], index: int) -> list[Part]:
    piece = pieces[index] if index < len(pieces) else ""
    return [(f"{kind} ", "secondary"), (piece, "strong"), (f" ({index:,})", "secondary")]
