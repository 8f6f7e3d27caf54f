"""Attention: one head's matrix in any stage, pinned heads beside it, every head as a thumbnail, rows and columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Self

from PySide6.QtCore import QCoreApplication, QEvent, QSize, Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QSplitter, QWidget

from app.commands import Command
from app.i18n import tr
from app.panels.attention_controls import AttentionControls
from app.panels.attention_copy import attention_tables, measure_table
from app.panels.attention_grid import MapGrid
from app.panels.attention_map import TITLE, TITLE_GAP, MapView
from app.panels.attention_side import SideView
from app.panels.base import Changes, Need, Panel
from app.session import Topic
from app.widgets.folding_segmented import FoldingSegmented
from app.widgets.wrap_row import WrapRow, wrap

if TYPE_CHECKING:
    from app.export.panel_files import Table
    from model.protocol.attention_requests import HeadView
    from model.protocol.wire import Request

SIDE_WIDTH, MOST_SIDE = 226, 460
NARROW = 620
LARGER = 1.1
"""Times pinned matrices are larger at least for the heads beside them to become tabs."""
SPLIT_SIDE = 190
LEAST_LINES, LINES_SHARE, STACK_GAIN = 200, 0.32, 1.15
"""Px of height of the lines under the heads and their share of it, the larger of both, and times a thumbnail must be
larger for the lines to go there."""
UNDER, BESIDE = 150, 180
"""Px of height the lines need under the matrix, and of width beside it."""
INSIDE, UNDER_INSIDE = 166, 132
"""The same in the place that pinned matrices leave over, which stays empty else."""
WIDE, UNDER_WIDE = 540, 104
"""Px of width from which that place has the words over a row on one line, and of height the lines need there."""
HELP = (
    "Each row is a query: the token that is being computed. Each column is a key: a token it may read. A cell is how "
    "much of the key's value the query takes in this head.\n\n"
    "weight = softmax(q·kᵀ/√d + mask), row by row. Dividing by √d keeps the scores' spread near 1, so that the softmax "
    "is neither flat nor a single spike: compare the two entropies under Row. The mask hides later tokens, which is "
    "why the upper right is empty.\n\n"
    "The stages show the same matrix on its way: q·k, scores, masked, weights, and weights times the length of the "
    "value vector. Rows above the dashed line came in one prefill; each one below was added by a decode step.\n\n"
    "Look for: a bright first column (a sink that takes what is not needed), a diagonal just left of the edge "
    "(previous token), and a single bright cell where a word finds what it refers to."
)


class AttentionPanel(Panel):
    """See the parts: AttentionControls, MapView, SideView."""

    panel_id: ClassVar[str] = "attention"
    title: ClassVar[str] = "Attention"
    help_text: ClassVar[str] = HELP
    watches: ClassVar[frozenset[str]] = frozenset({
        Topic.MODEL, Topic.RUN, Topic.NODE, "layer", "head", "query", "key", "stage", "scale", "fixed",
        "ignore_first", "hover_token", "hover_cell", "pins",
    })  # fmt: skip
    area: ClassVar[str] = "center"
    needs: ClassVar[Need] = "run"

    _resized = Signal()

    def build(self) -> None:
        self.controls = AttentionControls(self.ctx)
        self.side = SideView(self)
        pages = [("matrix", tr("Matrix")), *self.side.pages]
        self.pages = FoldingSegmented(self.ctx.theme, pages, label=tr("What is shown"))
        self.main = MapView(self, 0)
        self.pinned: list[MapView] = []
        self._maps = MapGrid(self.ctx.theme)
        self._split = QSplitter(Qt.Orientation.Horizontal)
        self._split.setChildrenCollapsible(False)
        self._split.setHandleWidth(12)
        self._left = QSplitter(Qt.Orientation.Vertical)
        self._left.setChildrenCollapsible(False)
        self._left.setHandleWidth(10)
        self._left.addWidget(self._maps)
        self._right = QSplitter(Qt.Orientation.Vertical)
        self._right.setChildrenCollapsible(False)
        self._right.setHandleWidth(10)
        self._right.addWidget(self.side)
        self._split.addWidget(self._left)
        self._split.addWidget(self._right)
        self._split.setStretchFactor(0, 1)
        self._split.setStretchFactor(1, 0)
        self.body.addWidget(self.controls)
        self._under = QWidget()
        under = WrapRow(self._under)
        wrap(self._under)
        under.add(self.pages, folds=True)
        under.add(self.controls.stage_below)
        self.body.addWidget(self._under)
        self.body.addWidget(self._split, 1)
        self._beside, self._instead, self._were_tabs = True, False, False
        self._own_sizes = self._own_lines = self._is_resizing = False
        self._line_sizes, self._stacked, self._inside, self._free_width = [1, 1], False, False, 0
        self._split.splitterMoved.connect(self._on_split_moved)
        for lines in (self._left, self._right):
            lines.splitterMoved.connect(self._on_lines_moved)
        self._maps.set_views(self.maps())
        self._maps.freed.connect(self._look_again)
        self._connect_map(self.main)
        self._resized.connect(self._after_resize, Qt.ConnectionType.QueuedConnection)
        self.pages.keyChanged.connect(self._choose_page)
        self.side.pageChanged.connect(lambda _page: self._show_side())
        self.controls.gridToggled.connect(self.toggle_grid)
        self.controls.tableToggled.connect(self.toggle_table)
        self.controls.exportWanted.connect(self.export)
        self.controls.colormapChosen.connect(self._set_colormap)

    def make_ready(self) -> None:
        self._sync_pins()

    def carry(self, before: Self) -> None:
        """Pages, tables, and whose the sizes are."""
        self._beside, self._instead, self._were_tabs = before._beside, before._instead, before._were_tabs
        self._own_sizes, self._own_lines = before._own_sizes, before._own_lines
        self.side.carry(before.side)
        for view, other in zip(self.maps(), before.maps(), strict=False):
            view.carry(other)

    def commands(self) -> Iterable[Command]:
        def has_run() -> bool:
            return self.ctx.session.run is not None

        return (
            Command(id="attention.grid", title="All heads", shortcuts=("G",), keys="letter", menu="View", group=1,
                    run=self.toggle_grid, enabled=has_run, checked=lambda: self.side.heads_seen),
            Command(id="attention.pin", title="Pin this head", shortcuts=("P",), keys="letter", menu="View", group=1,
                    run=self.controls.toggle_pin, enabled=has_run),
            Command(id="attention.table", title="Attention as a table", shortcuts=("T",), keys="letter", menu="View",
                    group=1, run=self.toggle_table, enabled=has_run, checked=lambda: self.main.as_table),
            Command(id="attention.heads_table", title="Heads as a table", menu="View", group=1, enabled=has_run,
                    run=self.toggle_heads_table, checked=self.side.heads_table.isVisible),
            Command(id="attention.fixed", title="Fixed levels 0 … 1", menu="View", group=1, enabled=has_run,
                    run=lambda: self.ctx.selection.set_fixed(not self.ctx.selection.fixed),
                    checked=lambda: self.ctx.selection.fixed),
            Command(id="attention.ignore_first", title="Ignore the first token", menu="View", group=1,
                    enabled=has_run, checked=lambda: self.ctx.selection.ignore_first,
                    run=lambda: self.ctx.selection.set_ignore_first(not self.ctx.selection.ignore_first)),
            Command(id="attention.viridis", title="Colour map: viridis", run=partial(self._set_colormap, "viridis")),
            Command(id="attention.cividis", title="Colour map: cividis", run=partial(self._set_colormap, "cividis")),
            Command(id="attention.cbl1", title="Colour map: CET-CBL1", run=partial(self._set_colormap, "CET-CBL1")),
        )  # fmt: skip

    def refresh(self, changes: Changes) -> None:
        if changes <= {"hover_cell", "hover_token"}:
            for view in self.maps():
                view.follow_hover()
            if self.side.entropy.isVisible():
                self.side.entropy.set_hovered(self.ctx.selection.hover_token)
            return
        if "pins" in changes:
            self._sync_pins()
        self.controls.sync()
        self._follow()
        self._show_side()
        for view in self.maps():
            view.request()
        if self.side.isVisible() or self.side.split:
            self.side.sync()

    def maps(self) -> tuple[MapView, ...]:
        """The chosen head's matrix, then the pinned ones."""
        return (self.main, *self.pinned)

    def _follow(self) -> None:
        """Shapes come first: where all else goes depends on them."""
        for view in self.maps():
            view.follow(titled=bool(self.pinned))
        self._maps.fit()
        self.side.follow_shape()

    # commands

    def toggle_grid(self) -> None:
        """Shows all heads beside the matrix or, where it is narrow, in its place; or gives the matrix the room."""
        shown = self.side.heads_seen
        if self._in_tabs:
            self._instead = not shown
        else:
            self._beside = not shown
        self._show_side()
        if not shown:
            self.side.show_page("heads")
            (self.side.heads_table if self.side.heads_as_table else self.side.grid).setFocus()
        self.mark("view")

    def toggle_table(self) -> None:
        """The exact values as a table, or the map again."""
        self.main.show_table(shown=not self.main.as_table)

    def toggle_heads_table(self) -> None:
        """Every head's measures as a table where its thumbnails are, or these again; they come into sight."""
        shown = not self.side.heads_table.isVisible()
        self.side.show_heads_table(shown=shown)
        if not self.side.heads_seen:
            self.toggle_grid()
        if shown:
            self.side.heads_table.setFocus()

    def tables(self, done: Callable[[list[Table]], None]) -> None:
        measure = self.side.grid.measure
        marks = [] if measure is None else [measure_table(*measure)]
        attention_tables(self, self.main.heat, self.ctx.selection.view, lambda found: done([*found, *marks]))

    def figure(self, formats: tuple[str, ...], theme: str, stem: str) -> Request | None:
        from app.export.subjects import plain  # noqa: PLC0415 - not before it is asked for

        rows, cols = self.main.heat.wanted()[:2]
        message = plain("attention", self.ctx)
        return replace(message, rows=rows, cols=cols, formats=formats, theme=theme, stem=stem)  # type: ignore[call-arg]

    # inside

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._look_again()

    def _look_again(self) -> None:
        if not self._is_resizing:
            self._is_resizing = True
            self._resized.emit()

    def _after_resize(self) -> None:
        # In a turn of its own, before the paint: moving widgets to another parent is as dear as the whole of a layout.
        self._is_resizing = False
        self._show_side()

    def _show_side(self) -> None:
        """Beside the matrix where there is room; where there is not, in its place, one page at a time."""
        session = self.ctx.session
        has_run = session.run is not None
        if has_run and self.main.heat.shape[0] != session.length:  # a change of size comes before the run is drawn
            self._follow()
        narrow = self._in_tabs
        if self._were_tabs and not narrow:
            self._instead = False
        self._were_tabs = narrow
        shown = has_run and (self._instead if narrow else self._beside)
        self._under.setVisible(narrow and has_run)
        self.pages.setVisible(narrow and has_run)
        self.pages.set_key(self.side.page if shown else "matrix")
        self.side.set_bare(bare=narrow)
        self.side.setVisible(shown)
        self._right.setVisible(shown)
        self._left.setVisible(not (shown and narrow))
        self._place_lines(shown=shown, narrow=narrow)
        if shown and not narrow and not self._own_sizes:
            side = self._side_width()
            self._split.setSizes([max(self.width() - side - 36, 200), side])
        if self.side.split and not self._inside and not self._own_lines:
            (self._right if self._stacked else self._left).setSizes(self._line_sizes)
        self._settle()

    def _settle(self) -> None:
        """Shares out the room at once: what comes into sight has its size in its first picture."""
        for layout in (self.layout(), self._under.layout()):
            if layout is not None:
                layout.activate()
        for splitter in (self._split, self._left, self._right):
            QCoreApplication.sendPostedEvents(splitter, QEvent.Type.LayoutRequest.value)
        self.side.settle()

    @property
    def _in_tabs(self) -> bool:
        """Whether matrix, heads and lines take turns: where it is narrow and not so low that a square matrix leaves the
        heads room, and where pinned matrices gain by it."""
        narrow = self.width() < self.ctx.theme.px(NARROW)
        if narrow and not self.pinned:
            return self._left_by_matrix() < self._split_side()
        return narrow or (bool(self.pinned) and self._gains_by_tabs())

    def _gains_by_tabs(self) -> bool:
        px = self.ctx.theme.px
        room = QSize(self.width() - 24, self.height() - px(60))
        tabs = self._maps.worth_in(room - QSize(0, px(28) + 8))
        beside = self._maps.worth_in(room - QSize(self._split_side() + 12, 0))
        return all(self.main.heat.shape) and tabs > LARGER * beside

    def _choose_page(self, page: str) -> None:
        self._instead = page != "matrix"
        self._show_side()
        if self._instead:
            self.side.show_page(page)
        self.mark("view")

    def _side_width(self) -> int:
        """Of the heads' place: what the square matrix leaves, where the lines do not take it."""
        px = self.ctx.theme.px
        if self._stacked:
            return self._free_width
        alone = not self.side.split and len(self.maps()) == 1
        return min(max(px(SIDE_WIDTH), self._left_by_matrix()), px(MOST_SIDE)) if alone else self._split_side()

    def _left_by_matrix(self) -> int:
        """Px of width that one square matrix as high as there is room leaves."""
        px = self.ctx.theme.px
        return self.width() - 36 - round((self.height() - px(60)) * 1.06) - px(12)

    def _split_side(self) -> int:
        """Of the heads' place, where the lines have one of their own: never less than the heads need."""
        return max(self.ctx.theme.px(SPLIT_SIDE), self.side.heads_least())

    def _on_split_moved(self, *_: object) -> None:
        self._own_sizes = True

    def _on_lines_moved(self, *_: object) -> None:
        self._own_lines = True

    def _place_lines(self, *, shown: bool, narrow: bool) -> None:
        """Row, column and entropy go where the square matrix leaves room: under it, between it and the heads, or under
        these where they gain by the width; else they share the heads' place."""
        px = self.ctx.theme.px
        if self._stacked and self._own_sizes and shown and not narrow:
            return
        side = 0 if not shown else self.side.width() if self._own_sizes else self._split_side()
        width, height = self.width() - side - (36 if shown else 24), self.height() - px(60)
        stays = 0 if self.side.split and not self._inside else 10
        under, beside = height - self._matrix_height(width, height), width - self._matrix_width(width, height)
        split = (
            self.ctx.session.run is not None
            and not narrow
            and (under >= px(UNDER + stays) or beside >= px(BESIDE + stays))
        )
        way = Qt.Orientation.Horizontal if beside > under else Qt.Orientation.Vertical
        room, spare = (width, beside) if way == Qt.Orientation.Horizontal else (self.height(), under)
        # The handle's px come off the lines: the matrix would lose a pixel of every cell.
        self._line_sizes = [round(room - spare), round(spare) - self._left.handleWidth()]
        stacked = split and shown and way == Qt.Orientation.Horizontal and not self._own_sizes
        if stacked:
            heads = self._heads_over_lines(side, side + round(beside), height)
            stacked = heads > 0
            if stacked:
                self._line_sizes, self._free_width = [heads, height - heads], side + round(beside)
        self._place_inside(allowed=not split and self.ctx.session.run is not None and not (narrow and shown))
        if self._inside:
            return
        if split == self.side.split and stacked == self._stacked and (not split or way == self._left.orientation()):
            return
        self._stacked = stacked
        self.side.set_split(split=split, wide=split and (stacked or way == Qt.Orientation.Vertical))
        if split:
            self._left.setOrientation(way)
            (self._right if stacked else self._left).addWidget(self.side.lines)
            self.side.lines.show()
        self.mark("view")

    def _place_inside(self, *, allowed: bool) -> None:
        """Lines that have no place else go where pinned matrices leave one over, or from there."""
        px, free, lines = self.ctx.theme.px, self._maps.free, self.side.lines
        wide = free.width() >= px(WIDE)
        roomy = free.width() >= px(INSIDE) and free.height() >= px(UNDER_WIDE if wide else UNDER_INSIDE)
        inside = allowed and bool(self.pinned) and roomy
        if inside:
            self.side.set_split(split=True, wide=wide, low=not wide and free.height() < px(UNDER))
            if not self._inside:
                lines.setParent(self._maps)
                lines.show()
            lines.setGeometry(free)
            lines.raise_()
        elif self._inside:
            self.side.set_split(split=False)
        if inside != self._inside:
            self._inside = inside
            self._stacked = False
            self.mark("view")

    def _matrix_width(self, width: int, height: int) -> int:
        """Px of `width` with which the matrices are as large as the height lets them be: more would lie idle."""
        shape, rough = self.main.heat.shape, height + self.ctx.theme.px(22)
        if self.pinned and all(shape):
            few, most = min(rough, width // 2), width - self.ctx.theme.px(BESIDE)
            return _enough(few, width, lambda n: self._maps.worth_in(QSize(n, height)), if_by=most)
        if not all(shape) or rough >= width:
            return rough
        high = max(height, self._split.height()) + self.ctx.theme.px(TITLE) + TITLE_GAP  # one alone has no title
        return _enough(rough, width, lambda n: self._maps.side_in(QSize(n, high)))

    def _matrix_height(self, width: int, height: int) -> float:
        """The same of `height`."""
        if self.pinned and all(self.main.heat.shape):
            most = height - self.ctx.theme.px(UNDER)
            return _enough(height // 2, height, lambda n: self._maps.worth_in(QSize(width, n)), if_by=most)
        return width * 0.97

    def _heads_over_lines(self, narrow: int, wide: int, height: int) -> int:
        """Px of height for the heads over the lines, both `wide`; 0 where thumbnails are not much larger then than in
        all of the height and a `narrow` place."""
        px, grid = self.ctx.theme.px, self.side.grid
        over = px(30)  # what marks them
        now, _ = grid.room_for(narrow, height - over)
        then, taken = grid.room_for(wide, height - over - max(px(LEAST_LINES), round(LINES_SHARE * height)))
        return round(taken) + over if then >= STACK_GAIN * now else 0

    def _sync_pins(self) -> None:
        pins = self.ctx.selection.pins
        for view in [v for v in self.pinned if v.pinned not in pins]:
            self.pinned.remove(view)
            view.retire()
        known = {view.pinned for view in self.pinned}
        for pin in pins:
            if pin not in known:
                view = MapView(self, self._free_number(), pinned=pin)
                view.unpinned.connect(self._unpin)
                self._connect_map(view)
                self.pinned.append(view)
        self._maps.set_views(self.maps())

    def _free_number(self) -> int:
        taken = {view.number for view in self.maps()}
        return next(n for n in range(1, 99) if n not in taken)

    def _connect_map(self, view: MapView) -> None:
        view.rowClicked.connect(lambda: self._open_line("row"))
        view.colClicked.connect(lambda: self._open_line("column"))

    def _open_line(self, page: str) -> None:
        """The page of a clicked row or column: it comes into sight where it is not."""
        if not self.side.isVisible() and not self.side.split:
            if self._in_tabs:
                self._instead = True
            else:
                self._beside = True
            self._show_side()
            self.mark("view")
        self.side.show_page(page)

    def _unpin(self, pin: HeadView) -> None:
        if pin in self.ctx.selection.pins:
            self.ctx.selection.toggle_pin(pin)

    def _set_colormap(self, name: str) -> None:
        self.ctx.settings.update_panel("attention", colormap=name)
        for view in self.maps():
            view.restyle()
        self.side.restyle()


def _enough(few: int, most: int, worth: Callable[[int], float], *, if_by: int | None = None) -> int:
    """The least of `few` … `most` px that are worth as much as all of them; all where `if_by` px are not."""
    least = worth(most) - 0.5
    enough = most if if_by is None else max(if_by, few)
    if enough < most and worth(enough) < least:
        return most
    if few >= enough or worth(few) >= least:
        return few
    while enough - few > 1:
        middle = (few + enough) // 2
        few, enough = (few, middle) if worth(middle) >= least else (middle, enough)
    return enough
