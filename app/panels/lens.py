"""Lens: what the model would say after each layer, and how a token comes to be said."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar, Self, cast

import numpy as np
from PySide6.QtCore import QEvent, QObject, QSignalBlocker, QSize, Qt, QTimer
from PySide6.QtGui import QColor, QGuiApplication, QResizeEvent
from PySide6.QtWidgets import QGridLayout, QPushButton, QSplitter, QStackedWidget, QVBoxLayout, QWidget

from app.i18n import tr
from app.panels.attention_copy import MOST_CELLS
from app.panels.base import Changes, Need, Panel
from app.panels.lens_stop import StoppedLens
from app.panels.lens_table import LensTable, cell_lines, cell_text
from app.panels.lens_token import TokenView, depth_text
from app.panels.question import Doing
from app.session import Topic
from app.widgets.folding_segmented import FoldingSegmented
from app.widgets.heatmap_image import colour_table
from app.widgets.lens_grid import Cell, LensGrid, Span
from app.widgets.lens_key import LensKey
from app.widgets.readout import Part, Readout
from app.widgets.ticks import figure
from model.colormaps import colormap_for, lut
from model.protocol.figure_requests import DrawnFormat, ExportLens
from model.protocol.lens_requests import GetLens, LensPart, LensReply

if TYPE_CHECKING:
    from app.export.panel_files import Table
    from model.protocol.export_requests import FigureTheme
    from model.protocol.framing import Arrays
    from model.protocol.wire import Request

LEAST_WIDTH, NARROW, BESIDE = 150, 560, 720
"""Px at 100 % text: of the panel; under which the readout has a line of its own; and from which the token stands beside
the grid and not under it."""
READOUT = 380
"""Px at 100 % text that a cell's line takes with a longer token."""
LATE_MS = 150
"""After so long it is said that layers are under way: what comes sooner would only flicker."""
BRIEF, LEAST = 7, 5
"""Letters of a token in the shortest readouts."""
HELP = (
    "What would the model say if it stopped early? The final norm and the head are put on the residual stream after "
    "every layer: the cell holds the likeliest next token there, its colour how likely. The bottom row reads the "
    "embedding alone, the top row is the model's own answer. A bar at a cell's left marks the token that came next.\n\n"
    "Click a cell to follow its token at that position: its rank among all tokens after each layer, and what each "
    "block's attention and feed-forward add to its logit. For that the final norm's scale is held at its value; then "
    "the logit is a plain sum, and what the sum leaves over is shown as the rest.\n\n"
    "logit(t) = W[t] · norm(x), x = embedding + Σ attention + Σ feed-forward\n\n"
    "Look for: the layer from which the answer no longer changes, a guess by grammar that becomes a guess by meaning, "
    "and the one or two blocks that lift the right token."
)


class LensPanel(Panel):
    """The grid of tokens, and the token that is followed."""

    panel_id: ClassVar[str] = "lens"
    title: ClassVar[str] = "Lens"
    help_text: ClassVar[str] = HELP
    watches: ClassVar[frozenset[str]] = frozenset({
        Topic.MODEL, Topic.RUN, Topic.NODE, "query", "hover_token", "layer",
    })  # fmt: skip
    area: ClassVar[str] = "bottom"
    needs: ClassVar[Need] = "run"
    exports: ClassVar[bool] = True

    def build(self) -> None:
        theme = self.ctx.theme
        self._state: object = None
        self._path: tuple[int, ...] = ()
        self._asked: object = None
        self._asked_column: object = None
        self._followed: tuple[int, int] | None = None
        self._beside = False
        self._late = QTimer(self, singleShot=True, interval=LATE_MS)
        self.look = FoldingSegmented(
            theme, [("words", tr("words")), ("overview", tr("overview"))], label=tr("Size of the cells"),
            tips={"words": tr("The token of every cell"), "overview": tr("Every layer in sight, colours only")},
        )  # fmt: skip
        self.table_button = QPushButton(tr("Table"))
        self.table_button.setCheckable(True)
        self.table_button.setProperty("compact", True)
        self.table_button.setToolTip(tr("Every layer and position as a table"))
        self.readout = Readout(theme)
        self.grid = LensGrid(theme, tr("Top token by layer and position"))
        self.table = LensTable(theme, tr("Top token by layer and position"), self.grid)
        self.token = TokenView(self)
        self._left = left = QWidget()
        column = self._column = QVBoxLayout(left)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(4)
        self._head = QGridLayout()
        column.addLayout(self._head)  # before it is filled: PySide would keep places that the readout leaves
        self._head.setHorizontalSpacing(8)
        self._head.setVerticalSpacing(2)
        self._head.addWidget(self.look, 0, 0)
        self._head.addWidget(self.readout, 0, 1)
        self._head.addWidget(self.table_button, 0, 3)
        self._head.setColumnStretch(1, 1)
        self.key = LensKey(theme)
        self._pages = QStackedWidget()
        self._pages.addWidget(self.grid)
        self._pages.addWidget(self.table)
        self.stopped = StoppedLens(theme, self._pages)
        column.addWidget(self._pages, 1)
        column.addWidget(self.key)
        self._split = QSplitter(Qt.Orientation.Vertical)  # until there is width: see resizeEvent
        self._split.setChildrenCollapsible(False)
        self._split.setHandleWidth(12)
        left.installEventFilter(self)
        self._split.addWidget(left)
        self._split.addWidget(self.token)
        self._split.setStretchFactor(0, 3)
        self._split.setStretchFactor(1, 2)
        self.body.addWidget(self._split, 1)
        theme.changed.connect(self._place_key)
        self._connect()

    def carry(self, before: Self) -> None:
        """The look of the cells, the chosen one, the token that is followed, the pages."""
        self.look.set_key(before.look.key())
        self.grid.carry(before.grid)
        self._followed = before._followed
        self.token.carry(before.token)
        with QSignalBlocker(self.table_button):  # it would take the focus
            self.table_button.setChecked(before.table_button.isChecked())
        self._show_table(shown=self.table_button.isChecked())

    def minimumSizeHint(self) -> QSize:
        return QSize(self.ctx.theme.px(LEAST_WIDTH), super().minimumSizeHint().height())

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        wide = event.size().width() >= self.ctx.theme.px(BESIDE)
        orientation = Qt.Orientation.Horizontal if wide else Qt.Orientation.Vertical
        if orientation != self._split.orientation():
            self._split.setOrientation(orientation)
            room = event.size().width() if wide else event.size().height()
            self._split.setSizes([room * 13 // 20, room * 7 // 20])
        self._head.removeWidget(self.readout)
        if event.size().width() < self.ctx.theme.px(NARROW):
            self._head.addWidget(self.readout, 1, 0, 1, 4)
        else:
            self._head.addWidget(self.readout, 0, 1)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if watched is self._left and event.type() == QEvent.Type.Resize:
            self._place_key()
        return bool(super().eventFilter(watched, event))

    def _place_key(self) -> None:
        """The key stands in the head where a readout has room beside it: the grid gains a line of cells."""
        px, head = self.ctx.theme.px, self.look.sizeHint().width() + self.table_button.sizeHint().width() + 24
        beside = self._left.width() >= head + self.key.needed_width() + px(READOUT)
        if beside != self._beside:
            self._beside = beside
            (self._column if beside else self._head).removeWidget(self.key)
            self.key.set_short(short=beside)
            if beside:
                self._head.addWidget(self.key, 0, 2)
            else:
                self._column.addWidget(self.key)

    def refresh(self, changes: Changes) -> None:
        session, selection = self.ctx.session, self.ctx.selection
        if session.run is None or session.model is None:
            return
        self.grid.set_linked(selection.hover_token)
        if changes <= {"hover_token"}:
            return
        self._sync_run()
        self._recolour()
        if Topic.MODEL in changes:
            self.token.find_again()
        if self._followed is None or self._followed[0] != selection.query:
            self._followed = (selection.query, -1)
        depth = self.grid.chosen[0] if self.grid.chosen else session.model.n_layers
        cell = (min(depth, session.model.n_layers), selection.query)
        if cell != self.grid.chosen:
            self.grid.set_chosen(cell)
            self.grid.reveal(cell)
            if self.table_button.isChecked():
                self.table.show_chosen()
        self._show_readout()
        self.token.drop_other_text(selection.query)
        if session.phase != "decode":
            self._ask()
            self._ask_pointed()
            self.token.follow(*self._followed)

    def tables(self, done: Callable[[list[Table]], None]) -> None:
        """Every layer at the positions in sight, and the token that is followed, in full."""
        depths, (_, positions) = (0, self.grid.n_depths), self._in_sight()

        def known() -> None:
            lines = cell_lines(self.grid, self.ctx.session.path_tokens(), depths, positions)
            done([(tr("top tokens"), lines), *self.token.tables()])

        self._fetch(depths, positions, known)

    def figure(self, formats: tuple[str, ...], theme: str, stem: str) -> Request | None:
        _, positions = self._in_sight()
        return ExportLens(
            formats=cast("tuple[DrawnFormat, ...]", formats), theme=cast("FigureTheme", theme),
            stem=stem or self.panel_id, rows=positions,
        )  # fmt: skip

    # inside: the grid

    def _sync_run(self) -> None:
        session, model = self.ctx.session, self.ctx.session.model
        assert model is not None
        tokens = session.path_tokens()
        path = tuple(token.id for token in tokens)
        state = (session.run_id, model.n_layers, path)
        if state == self._state:
            return
        same_run = isinstance(self._state, tuple) and self._state[0] == session.run_id
        keep = 0
        for before, now in zip(self._path, path, strict=False):
            if not same_run or before != now:
                break
            keep += 1
        self._state, self._path = state, path
        self._forget()
        self.stopped.forget()
        first_decode = session.n_prompt if session.length > session.n_prompt else None
        self.grid.set_run(model.n_layers + 1, [token.piece for token in tokens], path, first_decode, keep=keep)
        if self.table_button.isChecked():
            self.table.show_run()

    def _recolour(self) -> None:
        name = colormap_for(self.ctx.settings.panel("attention").get("colormap", "viridis"), signed=False)
        table = colour_table(lut(name), QColor(self.ctx.theme.palette.masked))
        self.grid.set_table(table)
        self.key.set_table(table)

    def _ask(self) -> None:
        """Asks for the cells in sight that are not here, from the top layer down."""
        depths, positions = self._in_sight()
        wanted = self.grid.missing(depths, positions)
        asked = (self._state, wanted, positions)
        if not wanted or asked == self._asked or self.stopped.holds(self._state, depths, positions, len(wanted)):
            return
        self._asked = asked
        self._late.start()

        def done(_reply: LensReply, _arrays: Arrays) -> None:
            if self._asked == asked:
                self._forget()
            self.mark("view")

        def failed(_error: object) -> None:
            if self._asked == asked:
                self._forget()

        def stopped() -> None:
            self.stopped.stop(self._state, depths, positions, len(self.grid.missing(depths, positions)))

        message = GetLens(positions=positions, depths=wanted)
        part = self._taker(positions)
        doing = Doing(title=tr("Reading the lens"), parts=len(wanted), part="depth", unit=tr("layers"), on_stop=stopped)
        self.ask(message, done, on_part=part, on_error=failed, slot="grid", priority="background", doing=doing)

    def _ask_pointed(self) -> None:
        """Asks for the cell of the readout where it is out of sight, and for the others above and below it."""
        cell = self._pointed()
        if cell is None or self.grid.ids[cell] >= 0:
            return
        seen = all(at in range(*span) for at, span in zip(cell, self._in_sight(), strict=True))
        positions = (cell[1], cell[1] + 1)
        asked = (self._state, positions)
        if seen or asked == self._asked_column:  # it comes with what is in sight
            return
        self._asked_column = asked

        def over(*_args: object) -> None:
            if self._asked_column == asked:
                self._asked_column = None

        others = (depth for depth in self.grid.missing((0, self.grid.n_depths), positions) if depth != cell[0])
        message = GetLens(positions=positions, depths=(cell[0], *others))
        self.ask(message, over, on_part=self._taker(positions), on_error=over, slot="cell")

    def _go_on(self) -> None:
        self.stopped.forget()
        self.mark("view")

    def _forget(self) -> None:
        """Nothing is under way any more."""
        self._asked = None
        self._late.stop()
        self.grid.set_awaited(awaited=False)

    def _in_sight(self) -> tuple[Span, Span]:
        """Depths and positions that can be seen, in the grid or in the table."""
        return self.table.in_sight() if self.table_button.isChecked() else self.grid.in_sight()

    def _fetch(self, depths: Span, positions: Span, known: Callable[[], None]) -> None:
        """Calls `known` once all these cells are here, or could not be had."""
        wanted = self.grid.missing(depths, positions)
        if not wanted:
            known()
            return
        message = GetLens(positions=positions, depths=wanted)
        self.ask(
            message, lambda _reply, _arrays: known(), on_part=self._taker(positions), on_error=lambda _error: known()
        )  # fmt: skip

    def _taker(self, positions: Span) -> Callable[[LensPart, Arrays], None]:
        """What puts an answer's parts into the grid, if it is still of the same text."""
        state = self._state

        def take(message: LensPart, arrays: Arrays) -> None:
            if self._state == state:
                self.grid.set_part(
                    message.depth, positions[0], np.asarray(arrays["ids"]), np.asarray(arrays["p"]),
                    np.asarray(arrays["entropy"]), message.pieces,
                )  # fmt: skip
                self.table.viewport().update()
                self._show_readout()

        return take

    def _show_readout(self) -> None:
        cell = self._pointed()
        if cell is None:
            self.readout.set_parts([])
            return
        depth, position = cell
        piece = self.ctx.session.path_tokens()[position].piece
        word = self.grid.word(depth, position) if int(self.grid.ids[depth, position]) >= 0 else None
        after, brief = depth_text(depth, self.grid.n_depths), self.grid.depth_name(depth)
        self.readout.set_parts(
            self._cell_parts(cell, f"{after}  ", piece, f" ({position:,})", word),
            self._cell_parts(cell, f"{brief}  ", piece, f" ({position:,})", word, entropy="H"),
            self._cell_parts(cell, f"{brief}  ", piece, f" ({position:,})", word, entropy="H", true=tr("✓ next")),
            self._cell_parts(cell, f"{brief}  ", piece, "", word, entropy="H", true=tr("✓ next")),
            self._cell_parts(cell, "", _cut(piece), "", word and _cut(word), entropy="H", true="✓"),
            self._cell_parts(cell, "", "", "", word and _cut(word), entropy="H", true="✓"),
            self._pair_parts(cell, _cut(piece), word and _cut(word), "  p "),
            self._pair_parts(cell, _cut(piece, LEAST), word and _cut(word, LEAST), " "),
        )

    def _pair_parts(self, cell: tuple[int, int], piece: str, word: str | None, p: str) -> list[Part]:
        """Both tokens and how likely, where there is no room for more."""
        said: list[Part] = [(piece, "strong"), (" → ", "secondary"), (word or "…", "strong")]
        return said if word is None else [*said, (p, "secondary"), (figure(float(self.grid.p[cell]), 3), "strong")]

    def _cell_parts(
        self, cell: tuple[int, int], after: str, piece: str, at: str, word: str | None, *, entropy: str = "",
        true: str = "",
    ) -> list[Part]:  # fmt: skip
        """A cell in so many words; whatever is left out, its figures stay. `word` None: it is not known yet."""
        parts: list[Part] = [
            (after, "secondary"), (piece, "strong"), (f"{at} → ", "secondary"), (word or "…", "strong")
        ]  # fmt: skip
        if word is not None:
            parts += [
                ("  p ", "secondary"), (figure(float(self.grid.p[cell]), 6), "strong"),
                (f"  {entropy or tr('entropy')} ", "secondary"),
                (figure(float(self.grid.entropy[cell]), 6), "strong"),
            ]  # fmt: skip
            if self.grid.comes_true(*cell):
                parts.append((f"  {true or '✓ ' + tr('came next')}", "text"))
        return parts

    # inside: pointing

    def _look_as(self, key: str) -> None:
        self.ctx.settings.update_panel("lens", look=key)
        self.grid.set_overview(overview=key == "overview")

    def _show_whole(self) -> None:
        """Everything in sight, for now: what was chosen is what the next panel begins with."""
        self.look.set_key("overview")
        self.grid.set_overview(overview=True)

    def _connect(self) -> None:
        self.look.keyChanged.connect(self._look_as)
        if self.ctx.settings.panel("lens").get("look") == "overview":
            self.look.set_key("overview")
            self.grid.set_overview(overview=True)
        self.grid.viewChanged.connect(self._on_view)
        self.stopped.wanted.connect(self._go_on)
        self._late.timeout.connect(lambda: self.grid.set_awaited(awaited=True))
        self.grid.cellHovered.connect(self._on_hover)
        self.grid.cellClicked.connect(self._on_click)
        self.grid.copyWanted.connect(self._copy)
        self.table_button.toggled.connect(self._on_table)
        self.token.named.connect(self._on_named)
        self.token.depthPointed.connect(self._on_depth_pointed)
        self.token.depthChosen.connect(self._on_depth_chosen)
        self.grid.tableWanted.connect(lambda: self.table_button.setChecked(True))
        self.grid.wholeWanted.connect(self._show_whole)
        self.table.cellClicked.connect(lambda row, col: self._on_click(self.grid.n_depths - 1 - row, col))
        self.table.viewChanged.connect(lambda: self.mark("view") if self.table_button.isChecked() else None)
        self.table.copyWanted.connect(self._copy)

    def _on_view(self) -> None:
        self.key.set_stripes(shown=self.grid.with_words)
        self.mark("view")

    def _on_hover(self, depth: int, position: int) -> None:
        self._show_readout()
        self.token.set_depth(depth if depth >= 0 else self.grid.chosen[0] if self.grid.chosen else None)
        self.ctx.selection.set_hover(token=position if position >= 0 else None)

    def _on_click(self, depth: int, position: int) -> None:
        self.grid.set_chosen((depth, position))
        token = int(self.grid.ids[depth, position])
        self._followed = (position, token)
        self.token.forget_name()
        if depth > 0:
            self.ctx.selection.set_layer(depth - 1)
        self.ctx.selection.set_query(position)
        self.token.set_depth(depth)
        self.mark("query")

    def _on_named(self) -> None:
        """The token that the box names, from here on at every position."""
        self._followed = (self.ctx.selection.query, -1)
        self.token.follow(*self._followed)

    def _on_depth_pointed(self, depth: int) -> None:
        if self.grid.chosen is not None:
            self.grid.hovered = (depth, self.ctx.selection.query) if depth >= 0 else None
            self.grid.viewport().update()
            self._show_readout()
            self._ask_pointed()

    def _on_depth_chosen(self, depth: int) -> None:
        self.grid.set_chosen((depth, self.ctx.selection.query))
        self.grid.reveal((depth, self.ctx.selection.query))
        if self.table_button.isChecked():
            self.table.show_chosen()
        if depth > 0:
            self.ctx.selection.set_layer(depth - 1)
        self.token.set_depth(depth)
        self._show_readout()

    def _on_table(self, shown: bool) -> None:
        self._show_table(shown=shown)
        if shown:
            self.table.setFocus()

    def _show_table(self, *, shown: bool) -> None:
        self._pages.setCurrentIndex(int(shown))
        self.key.setVisible(not shown)
        self._forget()
        if shown:
            self.table.show_run()
        self.mark("view")

    def _copy(self, what: str) -> None:
        """A cell, the row of its layer, or all in sight onto the clipboard, exact, tab-separated."""
        cell, (depths, positions) = self._pointed(), self._in_sight()
        if what != "matrix":
            if cell is None:
                self.ctx.notify.say(tr("Point at a cell first."))
                return
            depths, at = (cell[0], cell[0] + 1), cell[1]
            positions = (at, at + 1) if what == "cell" else (0, self.grid.n_positions)
        count = (depths[1] - depths[0]) * (positions[1] - positions[0])
        if count > MOST_CELLS:
            words = tr("{cells} cells are too many to copy: zoom in, or export them as CSV.", cells=f"{count:,}")
            self.ctx.notify.say(words)
            return

        def known() -> None:
            if what == "cell" and cell is not None:
                text = cell_text(self.grid, cell)
            else:
                lines = cell_lines(self.grid, self.ctx.session.path_tokens(), depths, positions)
                text = "\n".join("\t".join(line) for line in lines) if lines[1:] else ""
            if text:
                QGuiApplication.clipboard().setText(text)
                self.ctx.notify.say(tr("Copied."))

        self._fetch(depths, positions, known)

    def _pointed(self) -> Cell | None:
        """The cell that is pointed at or chosen."""
        cell = self.grid.hovered or self.grid.chosen
        # A part of an answer can come when the path is shorter already, and the grid not yet.
        positions = min(self.grid.n_positions, self.ctx.session.length)
        inside = cell is not None and cell[0] < self.grid.n_depths and cell[1] < positions
        return cell if inside else None


def _cut(piece: str, letters: int = BRIEF) -> str:
    """A token where there is room for little of it."""
    return piece if len(piece) <= letters else f"{piece[: letters - 1]}…"
