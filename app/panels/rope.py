"""RoPE: pairs of a query and a key turned by their positions, each pair's share of the score, the score by distance."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np
from PySide6.QtCore import Qt
from PySide6.QtGui import QActionGroup, QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QLabel, QSizePolicy, QStackedWidget, QVBoxLayout, QWidget

from app.commands import Command
from app.i18n import tr
from app.panels.base import Changes, Need, Panel
from app.panels.rope_words import (
    STYLES,
    alibi_facts,
    curve_name,
    curve_tip,
    instead_text,
    on_the_curve,
    plain_facts,
    rope_tables,
    score_facts,
)
from app.panels.where_controls import WhereControls, room_of
from app.session import Topic
from app.widgets.bar_plot import BarPlot
from app.widgets.cell_layout import CellLayout
from app.widgets.data_table import Column, DataTable
from app.widgets.fact_list import FactList
from app.widgets.line_plot import Line, LinePlot, Mark
from app.widgets.menu_button import MenuButton
from app.widgets.rotary_planes import PlaneGrid, Planes, PlaneView
from app.widgets.segmented import Segmented
from app.widgets.sign_colours import SIGNS
from app.widgets.tick_menu import TickMenu
from app.widgets.ticks import figure
from app.widgets.value_combo import Choice, ValueCombo
from model.protocol.rope_requests import GetRope, RopeReply

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from app.export.panel_files import Table
    from app.widgets.fact_list import Fact
    from model.protocol.framing import Arrays
    from model.protocol.wire import Request

DISTANCES = 401
TALL, NARROW, COLUMN, BARS_FROM = 430, 860, 470, 1180
SHOWN = ("model", "none", "base 10", "sinusoidal")
HELP = (
    "Positions enter where q meets k. Each head's numbers are taken two by two; in pair i the point (a, b) of a token "
    "at position p is turned by the angle p·θ^(−2i/R): the first pairs fast, the last ones hardly at all. q and k are "
    "turned, v is not.\n\n"
    "R(m)q · R(n)k = q · R(n−m)k: turning both by the same angle changes nothing, so the score knows the distance "
    'alone. The line "shift both" measures that on this model\'s own numbers.\n\n'
    "Dashed arrows: before rotation; solid: after. Blue is q, amber is k. The ground of a small plane, and its bar, "
    "is what the pair adds to q·k, in the colours of the signed heat maps: gold for more, blue for less. The curve "
    "keeps the content and lets the distance grow; What if shows the same q and k under other scalings, under no "
    "rotation, and the fixed sinusoidal encoding.\n\n"
    "Look for: slow pairs (long λ) that carry content whatever the distance, and fast pairs that make a head prefer "
    "one distance, such as the token just before."
)


class RopePanel(Panel):
    """Planes, shares, table; curve; facts. A model without RoPE shows what it has instead in the same place."""

    panel_id: ClassVar[str] = "rope"
    title: ClassVar[str] = "RoPE"
    help_text: ClassVar[str] = HELP
    area: ClassVar[str] = "bottom"
    needs: ClassVar[Need] = "run"
    exports: ClassVar[bool] = True
    watches: ClassVar[frozenset[str]] = frozenset({
        Topic.MODEL, Topic.RUN, Topic.NODE, "layer", "head", "query", "key", "hover_token",
    })  # fmt: skip

    def build(self) -> None:
        theme = self.ctx.theme
        self.reply: RopeReply | None = None
        self.arrays: Arrays = {}
        self.planes: Planes | None = None
        self.pair = -1
        self.reach = 0
        self._asked: object = None
        self._arranged = ""
        kept = self.ctx.settings.panel("rope").get("curves", SHOWN)
        self.shown = {str(key) for key in kept if key in STYLES} | {"model"}
        self.where = WhereControls(self.ctx)
        self.reach_box = ValueCombo(theme, tr("How far the curve goes"))
        self.what_if = MenuButton(theme, tr("What if"))
        self.pages = Segmented(theme, [("planes", tr("Planes")), ("table", tr("Table"))], label=tr("Pairs as"))
        self.plane = PlaneView(theme, tr("The chosen pair"))
        self.grid = PlaneGrid(theme, tr("All pairs as planes"))
        self.bars = BarPlot(theme, tr("What each pair adds to q·k"), title=tr("share of q·k by pair"))
        self.table = DataTable(theme, tr("Pairs as a table"), self)
        self.curve = LinePlot(
            theme,
            tr("Score by distance"),
            x_name=tr("distance"),
            y_name="q·k/√d",
            right_name=tr("cosine"),
            zero=False,
            whole=True,
            titled=True,
        )
        self.facts = FactList(theme, tr("The rotation in numbers"))
        self.instead = _Instead(self)
        self._make_menu()
        for widget in (self.reach_box, self.what_if, self.pages):
            self.where.row.add(widget)
        self._rope = QWidget()
        parts = (self.plane, self.grid, self.bars, self.table, self.curve, self.facts)
        self._cells = CellLayout(self._rope, parts)
        self._stack = QStackedWidget()
        self._stack.addWidget(self._rope)
        self._stack.addWidget(self.instead)
        self.body.addWidget(self.where)
        self.body.addWidget(self._stack, 1)
        self._connect()
        theme.changed.connect(self._restyle)
        self._restyle()

    # state → widgets

    def refresh(self, changes: Changes) -> None:
        if self.ctx.session.run is None:
            return
        if not changes <= {"hover_token"}:
            self.where.sync()
            self._sync_reach()
            self._ask()
        self._follow_hover()

    def carry(self, before: Self) -> None:
        """The page, the chosen pair, how far the curve goes."""
        self.pages.set_key(before.pages.key())
        self.pair, self.reach = before.pair, before.reach

    def commands(self) -> Iterable[Command]:
        def has_run() -> bool:
            return self.ctx.session.run is not None

        return (
            Command(id="rope.table", title="RoPE pairs as a table", menu="View", group=1, enabled=has_run,
                    run=self.toggle_table, checked=lambda: self.pages.key() == "table"),
        )  # fmt: skip

    def toggle_table(self) -> None:
        """The pairs as a table, or as planes again."""
        self.pages.set_key("planes" if self.pages.key() == "table" else "table")
        self._arrange()

    def tables(self, done: Callable[[list[Table]], None]) -> None:
        done(rope_tables(self.reply, self.arrays, self.shown_facts()) if self.reply else [])

    def figure(self, formats: tuple[str, ...], theme: str, stem: str) -> Request | None:
        if self.planes is None or self.reply is None or self.reply.positions != "rope":
            return None
        from model.protocol.figure_requests import ExportRope  # noqa: PLC0415 - not before it is asked for

        reply = self.reply
        return ExportRope(layer=reply.layer, head=reply.head, query=reply.query, key=reply.key,
                          formats=formats, theme=theme, stem=stem)  # type: ignore[arg-type] # fmt: skip

    def shown_facts(self) -> tuple[Fact, ...]:
        """The facts in sight."""
        return self.facts.facts if self._stack.currentIndex() == 0 else self.instead.facts.facts

    # asking

    def _ask(self) -> None:
        session, selection = self.ctx.session, self.ctx.selection
        message = GetRope(
            layer=self.where.layer, head=self.where.head, query=selection.query, key=selection.key,
            distances=DISTANCES, reach=self.reach,
        )  # fmt: skip
        asked = (session.run_id, session.current_node, session.length, message)
        if asked == self._asked:
            return
        self._asked = asked
        self.ask(message, self._on_reply, on_error=lambda _error: self._forget(asked), slot="score")

    def _forget(self, asked: object) -> None:
        if self._asked == asked:
            self._asked = None

    def _on_reply(self, reply: RopeReply, arrays: Arrays) -> None:
        self.reply, self.arrays = reply, arrays
        rotary = reply.positions == "rope" and "contribution" in arrays
        self._stack.setCurrentIndex(0 if rotary else 1)
        for widget in (self.what_if, self.pages):
            widget.setVisible(rotary)
        self.reach_box.setVisible(rotary or reply.positions == "alibi")
        if not rotary:
            self.instead.show_reply(reply, arrays)
            return
        assert reply.facts is not None
        self.planes = Planes(
            **{name: np.asarray(arrays[name]) for name in (
                "q_before", "q_after", "k_before", "k_after", "q_angle", "k_angle", "wavelength")},
            share=np.asarray(arrays["contribution"]), half=reply.facts.dim // 2,
        )  # fmt: skip
        if not 0 <= self.pair < self.planes.count:
            # First the pair in which position matters most: its share with and without turning differ by most.
            still = np.einsum("pi,pi->p", self.planes.q_before, self.planes.k_before)  # (P,)
            self.pair = int(np.abs(self.planes.share - still).argmax())
        self.grid.set_planes(self.planes)
        self.bars.set_values(self.planes.share, [str(i) for i in range(self.planes.count)])
        self._fill_table(self.planes)
        model = self.ctx.session.model
        if model is not None:
            longest = float(self.planes.wavelength.max())
            rounded = on_the_curve(reply, arrays, model.dtype)
            self.facts.set_facts(score_facts(reply, model.d_head, longest, model.n_ctx, rounded))
        self._show_pair()
        self._show_curves()

    def _show_pair(self) -> None:
        self.plane.set_pair(self.planes, self.pair)
        self.grid.set_cursor(self.pair)
        self.bars.set_cursor(self.pair)
        self.table.set_current(self.pair)

    def _show_curves(self) -> None:
        reply, arrays = self.reply, self.arrays
        if reply is None or "curve_scores" not in arrays:
            return
        x = np.asarray(arrays["distance"], dtype=np.float32)
        lines = []
        for key, values in zip(reply.curves, np.asarray(arrays["curve_scores"]), strict=True):
            if key in self.shown:
                colour, dashed = STYLES.get(key, ("secondary", False))
                lines.append(Line(name=curve_name(key), x=x, y=values, colour=colour, dashed=dashed, key=key,
                                  tip=curve_tip(key)))  # fmt: skip
        if "sinusoidal" in self.shown:
            colour, dashed = STYLES["sinusoidal"]
            name = curve_name("sinusoidal")
            lines.append(Line(name=name, x=x, y=np.asarray(arrays["sinusoidal"]), colour=colour, dashed=dashed,
                              right=True, tip=curve_tip("sinusoidal")))  # fmt: skip
        step = float(np.median(np.diff(x))) if len(x) > 1 else 1.0
        name = tr("distance") if step <= 1 else tr("distance, every {n}", n=f"{step:,.0f}")
        self.curve.set_names(x=name, y="q·k/√d")
        self.curve.set_lines(lines)
        distance, score = reply.query - reply.key, reply.raw * reply.scale
        self.curve.set_cursor(float(distance) if distance >= 0 else None)
        self.curve.set_marks([Mark(x=distance, y=score, colour="accent", text=figure(score))] if distance >= 0 else [])

    def _fill_table(self, planes: Planes) -> None:
        most = float(np.abs(planes.share).max(initial=0.0)) or 1.0
        pairs = range(planes.count)
        self.table.set_columns([
            Column(name=tr("pair"), texts=[str(i) for i in pairs], voice="secondary"),
            Column(name=tr("dims"), texts=[f"{i}, {i + planes.half}" for i in pairs], voice="secondary",
                   gives_way=True),
            Column(name=tr("adds to q·k"), texts=[figure(float(v), 3) for v in planes.share]),
            Column(name="", bars=planes.share / np.float32(most), colours=SIGNS),
            Column(name=tr("λ, positions"), texts=[figure(float(v), 3) for v in planes.wavelength]),
            Column(name=tr("q angle"), texts=[figure(float(v), 3) for v in planes.q_angle]),
            Column(name=tr("k angle"), texts=[figure(float(v), 3) for v in planes.k_angle]),
            Column(name="‖q‖", texts=[figure(float(np.hypot(*v)), 3) for v in planes.q_after]),
            Column(name="‖k‖", texts=[figure(float(np.hypot(*v)), 3) for v in planes.k_after]),
        ])  # fmt: skip

    def _follow_hover(self) -> None:
        token, query = self.ctx.selection.hover_token, self.ctx.selection.query
        distance = None if token is None or token > query else float(query - token)
        self.curve.set_hovered(distance)
        self.instead.follow_hover(token)

    def _sync_reach(self) -> None:
        model, length = self.ctx.session.model, self.ctx.session.length
        n_ctx = model.n_ctx if model else 0
        choices = [Choice(key=0, text=_reach_text(max(length - 1, 1)), note=tr("text"))]
        for reach, note in ((128, ""), (1024, ""), (n_ctx, tr("context")), (4 * n_ctx, tr("4 × context"))):
            if reach > length and all(reach > int(str(c.key)) for c in choices):
                choices.append(Choice(key=reach, text=_reach_text(reach), note=note))
        self.reach_box.set_choices(choices)
        self.reach_box.set_key(self.reach)
        self.reach = int(str(self.reach_box.key()))

    # widgets → state

    def _connect(self) -> None:
        for widget in (self.grid, self.bars):
            widget.positionHovered.connect(self._hover_pair)
            widget.positionClicked.connect(self._choose_pair)
        self.table.rowHovered.connect(self._hover_pair)
        self.table.rowChosen.connect(self._choose_pair)
        self.pages.keyChanged.connect(lambda _key: self._arrange())
        self.reach_box.keyChosen.connect(self._choose_reach)
        self.curve.xHovered.connect(self._hover_distance)
        self.curve.xClicked.connect(self._choose_distance)

    def _hover_pair(self, pair: int) -> None:
        self.grid.set_hovered(pair)
        self.bars.set_hovered(pair)
        self.plane.set_pair(self.planes, pair if pair >= 0 else self.pair)

    def _choose_pair(self, pair: int) -> None:
        self.pair = pair
        self._show_pair()

    def _choose_reach(self, reach: object) -> None:
        self.reach = int(str(reach))
        self.mark("reach")

    def _hover_distance(self, distance: float) -> None:
        key = -1 if math.isnan(distance) else self.ctx.selection.query - round(distance)
        self.ctx.selection.set_hover(token=key if key >= 0 else None)

    def _choose_distance(self, distance: float) -> None:
        key = self.ctx.selection.query - round(distance)
        if key >= 0:
            self.ctx.selection.set_key(key)

    # what if

    def _make_menu(self) -> None:
        self.what_if.setAccessibleName(tr("Curves of other rotations"))
        self.what_if.setToolTip(tr("The same q and k under other rotations"))
        self._menu = TickMenu(self)
        self._menu.setToolTipsVisible(True)
        self._menu.aboutToShow.connect(self._fill_menu)
        self.what_if.setMenu(self._menu)

    def _fill_menu(self) -> None:
        self._menu.clear()
        group = QActionGroup(self._menu)
        group.setExclusive(False)
        keys = self.reply.curves if self.reply else ()
        for key in (*keys[1:], "sinusoidal"):
            action = self._menu.addAction(curve_name(key))
            action.setToolTip(curve_tip(key))
            action.setCheckable(True)
            action.setChecked(key in self.shown)
            action.toggled.connect(lambda on, key=key: self.show_curve(key, on=on))
            group.addAction(action)

    def show_curve(self, key: str, *, on: bool) -> None:
        """Draws a what-if, or takes it away; remembered."""
        self.shown = self.shown | {key} if on else self.shown - {key}
        self.ctx.settings.update_panel("rope", curves=sorted(self.shown))
        self._show_curves()

    # layout

    def _restyle(self) -> None:
        self.what_if.setFixedHeight(self.ctx.theme.px(28))
        self._arrange()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange()

    def _arrange(self) -> None:
        """One row where the panel is low, two where it is tall; two columns where it is narrow, or one."""
        px, table = self.ctx.theme.px, self.pages.key() == "table"
        narrow, tall = self.width() < px(NARROW), room_of(self).height() >= px(TALL)
        column = self.width() < px(COLUMN)
        shape = "column" if column else "narrow" if narrow else "tall" if tall else "low"
        arranged = f"{shape} {table} {self.width() >= px(BARS_FROM)} {px(100)}"
        if arranged == self._arranged:
            return
        self._arranged = arranged
        self.facts.set_grows(grows=narrow)
        if narrow and not column:
            pair: dict[QWidget, tuple[int, int, int, int]] = {
                self.plane: (0, 0, 1, 1), (self.table if table else self.grid): (0, 1, 1, 1),
                self.curve: (1, 0, 1, 1), self.facts: (1, 1, 1, 1),
            }  # fmt: skip
            pair |= {} if table else {self.bars: (2, 0, 1, 2)}
            rows = (1,) * max(place[0] + 1 for place in pair.values())
            self._cells.arrange(pair, columns=(1, 1), rows=rows, least=[*map(px, (150, 200, 130)[: len(rows)])])
            return
        places = self._places(narrow=narrow, tall=tall, table=table)
        shares = {self.plane: 24, self.grid: 24, self.table: 46, self.bars: 22, self.curve: 38, self.facts: 26}
        columns = [1] if narrow else [28, 46, 26] if tall else [shares[widget] for widget in places]
        lines = len(places) if narrow else 2 if tall else 1
        # In one column the curve's key and the numbers may take more lines.
        high: dict[QWidget, int] = {self.curve: 232, self.facts: 200}
        least = [px(high.get(widget, 150)) for widget in places] if narrow else ()
        self._cells.arrange(places, columns=columns, rows=[1] * lines, least=least)

    def _places(self, *, narrow: bool, tall: bool, table: bool) -> dict[QWidget, tuple[int, int, int, int]]:
        """Row, column, rows, columns of what is shown."""
        if narrow:
            first: list[QWidget] = [self.table] if table else [self.grid, self.bars]
            column = [self.plane, *first, self.curve, self.facts]
            return {widget: (row, 0, 1, 1) for row, widget in enumerate(column)}
        if tall:
            places: dict[QWidget, tuple[int, int, int, int]] = {self.plane: (0, 0, 1, 1), self.facts: (0, 2, 1, 1)}
            if table:
                return places | {self.table: (0, 1, 1, 1), self.curve: (1, 0, 1, 2), self.bars: (1, 2, 1, 1)}
            return places | {self.grid: (0, 1, 1, 1), self.bars: (1, 0, 1, 1), self.curve: (1, 1, 1, 2)}
        row: list[QWidget] = [self.plane, self.table] if table else [self.plane, self.grid]
        if not table and self.width() >= self.ctx.theme.px(BARS_FROM):
            row.append(self.bars)
        return {widget: (0, column, 1, 1) for column, widget in enumerate([*row, self.curve, self.facts])}


def _reach_text(last: int) -> str:
    return tr("distance 0 … {n}", n=f"{last:,}")


class _Instead(QWidget):
    """What a model without RoPE has: a sentence, numbers, a curve."""

    def __init__(self, panel: RopePanel) -> None:
        super().__init__()
        self._ctx = panel.ctx
        self.words = QLabel()
        self.words.setTextFormat(Qt.TextFormat.PlainText)
        self.words.setWordWrap(True)
        self.facts = FactList(panel.ctx.theme, tr("Positions in numbers"))
        self.facts.setMinimumHeight(40)
        self.plot = LinePlot(panel.ctx.theme, tr("Position by position"), whole=True)
        for widget in (self.facts, self.plot):  # as high as the dock leaves them: their hints made it scroll
            widget.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Ignored)
        left = QVBoxLayout()
        left.setSpacing(10)
        left.addWidget(self.words)
        left.addWidget(self.facts, 1)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(20)
        row.addLayout(left, 2)
        row.addWidget(self.plot, 3)
        self._positions = ""
        self._query = 0
        self.plot.xHovered.connect(self._hover)
        self.plot.xClicked.connect(self._choose)

    def show_reply(self, reply: RopeReply, arrays: Arrays) -> None:
        self._positions, self._query = reply.positions, reply.query
        self.words.setText(instead_text(reply.positions))
        self.facts.set_facts(alibi_facts(reply) if reply.positions == "alibi" else plain_facts(reply))
        self.plot.setVisible(reply.positions != "none")
        if reply.positions == "alibi" and "bias" in arrays:
            x = np.asarray(arrays["distance"], dtype=np.float32)
            self.plot.set_names(x=tr("distance"), y=tr("added to the score"))
            self.plot.set_lines([Line(name=tr("slope {slope}", slope=figure(reply.slope)), x=x,
                                      y=np.asarray(arrays["bias"]))])  # fmt: skip
            distance = reply.query - reply.key
            self.plot.set_cursor(float(distance) if distance >= 0 else None)
        elif "similarity" in arrays:
            values = np.asarray(arrays["similarity"])
            x = np.arange(len(values), dtype=np.float32)
            lines = [Line(name=tr("learned table"), x=x, y=values)]
            if "sinusoidal" in arrays:
                fixed = np.asarray(arrays["sinusoidal"])
                lines.append(Line(name=tr("sinusoidal"), x=x, y=fixed, colour="secondary", dashed=True))
            self.plot.set_names(x=tr("position"), y=tr("cosine with position {n}", n=f"{reply.query:,}"))
            self.plot.set_lines(lines)
            self.plot.set_cursor(float(reply.key))

    def follow_hover(self, token: int | None) -> None:
        """The token pointed at anywhere."""
        if self._positions == "alibi":
            behind = token is not None and token <= self._query
            self.plot.set_hovered(float(self._query - token) if behind and token is not None else None)
        else:
            self.plot.set_hovered(None if token is None else float(token))

    def _position(self, x: float) -> int:
        return self._query - round(x) if self._positions == "alibi" else round(x)

    def _hover(self, x: float) -> None:
        position = -1 if math.isnan(x) else self._position(x)
        self._ctx.selection.set_hover(token=position if position >= 0 else None)

    def _choose(self, x: float) -> None:
        if self._position(x) >= 0:
            self._ctx.selection.set_key(self._position(x))
