"""The run as it went: prefill as one block, each decode a step; entropy and surprisal; branches."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from PySide6.QtCore import Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QGridLayout, QHBoxLayout, QToolButton

from app.i18n import tr
from app.panels.base import Changes, Need, Panel
from app.panels.branch_tree import BranchTree
from app.panels.curves import curves
from app.panels.run_tables import step_table, token_table
from app.panels.step_table import HEADER, LOW_HEADER, ROW, StepRow, StepTable
from app.session import Topic
from app.state.under_way import Phase
from app.widgets.curve_plot import LEGEND_APART, CurvePlot, Series
from app.widgets.elided_label import ElidedLabel
from model.protocol.figure_requests import ExportText

if TYPE_CHECKING:
    from collections.abc import Callable

    from app.export.panel_files import Table
    from app.session import Session
    from model.protocol.wire import Request


ROOMY = 260
"""Px of curve and table from which on the curve is high."""
CURVE, CURVE_LOW, CURVE_LEAST = 112, 58, 54
FAIR = 50
"""Px of the plot at any size of text, which the branches leave it while the table has its least rows."""
LEAST_ROWS = 5
"""Of the table, before the curve is low and the branches stand in the line of steps."""
TREE_LEAST = 120
"""Px at 100 % text that the branches keep in the line of steps, or which of them it is stands in a tool tip only."""
TOP, BOTTOM = 6, 6
GAP, LOW_GAP = 4, 2
"""Px between curve, line of steps and table; and where the branches stand in that line."""
LINE = 17
"""Px at 100 % text of the line of steps where it is the legend's too."""
BRIEF = "00 / 00"
"""What the steps have room for there at least."""
TOP_LINE = Qt.AlignmentFlag.AlignTop
FIRST = 1000
"""How much more of what is left over the curve takes than the table does, up to its height."""


HELP = (
    "Prefill reads the whole prompt at once; each decode step adds one token. Click a step to go there, "
    "or drag along the curve; choose another candidate in Sampling to branch; a token chosen so has a star (*).\n\n"
    "The curve, in nats: entropy = −Σ p·log p over the vocabulary, how unsure the model was before a token; "
    "surprisal = −log p(token), how little it expected the one that came. Surprisal is entropy on average "
    "when tokens are drawn from p as it is.\n\n"
    "Look for: high entropy where a new word or sentence begins, next to nothing inside a word; surprisal "
    "far above entropy, where the text does what the model thought unlikely; and the first step, whose time "
    "is the prefill of the whole prompt."
)


class TimelinePanel(Panel):
    """Curve, branches, table. A click anywhere goes to that step without running the model."""

    panel_id: ClassVar[str] = "timeline"
    title: ClassVar[str] = "Timeline"
    help_text: ClassVar[str] = HELP
    area: ClassVar[str] = "left_below"
    exports: ClassVar[bool] = True
    tables_first: ClassVar[bool] = True
    needs: ClassVar[Need] = "run"
    watches: ClassVar[frozenset[str]] = frozenset(
        {Topic.RUN, Topic.NODE, Topic.PROMPT_STATS, Topic.PROGRESS, "hover_token"}
    )

    def build(self) -> None:
        self._wanted: int | None = None
        theme, session = self.ctx.theme, self.ctx.session
        self.curve = CurvePlot(theme, unit=tr("nats"), label=tr("Entropy and surprisal by position"))
        self.curve.positionClicked.connect(self._seek_position)
        self.curve.positionHovered.connect(
            lambda position: self.ctx.selection.set_hover(token=position if position >= 0 else None)
        )
        self.tree = BranchTree(theme)
        self.tree.hide()
        self.tree.nodeClicked.connect(session.seek)
        self.table = StepTable(theme)
        self.table.stepChosen.connect(session.seek)
        self.table.stepHovered.connect(self._hover_step)
        self.summary = ElidedLabel()
        self.summary.setProperty("role", "hint")
        self._ends: list[QToolButton] = []
        self._over = QGridLayout()
        row = self._line = QHBoxLayout()
        row.setSpacing(4)
        row.addWidget(self.summary, 1)
        for text, tip, command in (("⇤", tr("First step"), "run.first"), ("⇥", tr("Last step"), "run.last")):
            button = QToolButton()
            button.setText(text)
            button.setProperty("flat", True)
            self._ends.append(button)
            button.setToolTip(tip)
            button.setAccessibleName(tip)
            button.clicked.connect(lambda _checked=False, command=command: self.ctx.commands.run(command))
            row.addWidget(button)
        theme.changed.connect(self._restyle)
        self._restyle()
        sides = self.body.contentsMargins()
        self.body.setContentsMargins(sides.left(), TOP, sides.right(), BOTTOM)
        self.body.setSpacing(GAP)
        self._over.setVerticalSpacing(GAP)
        self._over.addWidget(self.curve, 0, 0)
        self._over.setRowStretch(0, 1)
        self._over.addLayout(row, 1, 0)
        self.body.addLayout(self._over, FIRST)
        self.body.addWidget(self.tree)
        self.body.addWidget(self.table, 1)

    def _restyle(self) -> None:
        px = self.ctx.theme.px
        for button in self._ends:  # no row of the table for them
            button.setFixedSize(px(24), px(LINE) if self._shares_line else max(20, px(14)))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit_curve()

    def room_changed(self) -> None:
        self._fit_curve()

    def _fit_curve(self) -> None:
        # By what is seen of the panel: its own height, where it is scrolled, is what the curve makes it.
        around, px, tree, gap = self.parentWidget(), self.ctx.theme.px, self.tree, GAP
        height = min(self.height(), around.height()) if around is not None else self.height()
        branches, sides = not tree.isHidden(), self.body.contentsMargins()
        self._place_line(shared=not branches)
        line = max(self.summary.sizeHint().height(), self._ends[0].height())
        room = height - sides.top() - sides.bottom() - 2 * gap
        header = px(HEADER)
        own = gap + tree.height_as(low=False)
        steps = header + LEAST_ROWS * px(ROW)
        low = branches and room - line - own - max(px(CURVE_LEAST), self.curve.height_for(FAIR, inside=False)) < steps
        self._place_tree(low=low)
        if low:
            room, header = room + 2 * (GAP - LOW_GAP) - max(tree.height_as(low=True) - line, 0), px(LOW_HEADER)
        elif branches:
            room -= own
        curve = curve_height(room - line, px, header=header)
        if branches:
            fair = self.curve.height_for(FAIR, inside=low)
            curve = max(curve, min(fair, room - line - header - LEAST_ROWS * px(ROW)))
        if self._shares_line:  # the steps have what they had, five at least, the curve what the line leaves
            room, curve, line = room + gap, max(curve, min(curve + line + gap, px(CURVE))), 0
            if px(CURVE_LOW) <= room - steps < curve:
                curve = room - steps
        # A little of the curve before the last step is scrolled out of sight.
        over = self.body.minimumSize().height() - self.curve.minimumHeight() + curve - height
        curve = max(curve - max(over, 0), px(CURVE_LEAST))
        # What only steps to come will need is the curve's until then, but nothing that it asks for.
        rows = header + self.table.model().rowCount() * px(ROW) + 2 * self.table.frameWidth()
        self.curve.setMinimumHeight(curve)
        self.curve.setMaximumHeight(max(curve, room - line - max(rows, self.table.minimumHeight())))
        self._say_step()

    @property
    def _shares_line(self) -> bool:
        """Whether the line of steps is the legend's, over the curve."""
        at = self._over.indexOf(self._line)
        return at >= 0 and self._over.getItemPosition(at)[0] == 0  # type: ignore[index]

    def _place_line(self, *, shared: bool) -> None:
        """The line of steps at the right of the legend's, where that has room for both, or under the curve."""
        line, curve, metrics = self._line, self.curve, self.summary.fontMetrics()
        sides, ends = self.body.contentsMargins(), 2 * (self.ctx.theme.px(24) + line.spacing())
        left = round(curve.legend_least() + LEGEND_APART)
        room = self.width() - sides.left() - sides.right() - left - ends
        shared = shared and room >= metrics.horizontalAdvance(BRIEF)
        if shared != self._shares_line:
            held = line.indexOf(self.tree) >= 0
            line.removeWidget(self.tree)  # PySide would keep its place after it has gone
            self._over.removeItem(line)
            self._over.addLayout(line, 0 if shared else 1, 0, TOP_LINE if shared else Qt.AlignmentFlag(0))
            if held:
                line.insertWidget(1, self.tree, 1)
            self._restyle()
        line.setContentsMargins(left if shared else 0, 0, 0, 0)
        self.summary.setAlignment(Qt.AlignmentFlag.AlignRight if shared else Qt.AlignmentFlag.AlignLeft)
        said = min(metrics.horizontalAdvance(self._steps_text(last=True)), room)
        curve.set_taken(said + ends if shared else 0)

    def _place_tree(self, *, low: bool) -> None:
        """The branches in the line of steps, where a line of their own would leave too few steps, or under it. In that
        line they have the room of the curve's positions, which are written within it, and of what is empty."""
        tree, line = self.tree, self._line
        tree.set_low(low=low)
        self.curve.set_inside(inside=low)
        self.table.set_low(low=low)
        for part in (self.body.setSpacing, self._over.setVerticalSpacing):
            part(LOW_GAP if low else GAP)
        if low == (line.indexOf(tree) >= 0):
            return
        if low:
            self.body.removeWidget(tree)
            line.insertWidget(1, tree, 1)
        else:
            line.removeWidget(tree)
            self.body.insertWidget(self.body.indexOf(self.table), tree)
        line.setStretch(0, 0 if low else 1)

    def tables(self, done: Callable[[list[Table]], None]) -> None:
        done([token_table(self.ctx.session), step_table(self.ctx.session)])

    def figure(self, formats: tuple[str, ...], theme: str, stem: str) -> Request | None:
        return replace(ExportText(), formats=formats, theme=theme, stem=stem)  # type: ignore[arg-type]

    def refresh(self, changes: Changes) -> None:
        session = self.ctx.session
        if session.run is None:
            return
        if changes & {Topic.RUN, Topic.NODE, Topic.PROMPT_STATS}:
            ahead = session.nodes_ahead()
            self.tree.set_tree(
                session.nodes, session.n_prompt, session.run.path, session.current_node, ahead[-1].id if ahead else -1
            )
            self._show_steps(session)
            self._show_curve(session)
            self._fit_curve()
        token = self.ctx.selection.hover_token
        if "hover_token" in changes:
            self.curve.set_hovered(token)
        self.table.set_hovered(None if token is None else max(token - session.n_prompt + 1, 0))
        if Topic.RUN in changes:
            self._wanted = None
        if self._wanted is not None and not session.busy:
            self._go_to(self._wanted)

    def _show_curve(self, session: Session) -> None:
        entropy, surprisal = curves(session)
        ahead = session.nodes_ahead()  # on the axis too: it stays as it is while the run goes back and forth
        entropy = np.append(entropy, np.array([node.entropy for node in ahead], dtype=np.float32))
        surprisal = np.append(surprisal, np.array([-node.logprob for node in ahead], dtype=np.float32))
        self.curve.set_series(
            (
                Series(name=tr("entropy"), values=entropy, colour="accent"),
                Series(name=tr("surprisal"), values=surprisal, colour="secondary", dashed=True),
            )
        )
        model = session.model
        # A record has no weights to compute them with; of one token nothing was expected.
        computed = session.prompt_stats is None and session.n_prompt > 1 and not (model and model.recorded)
        failed = tr("could not be computed") if session.facts.stats_failed else tr("being computed …")
        self.curve.set_message(failed if computed else "")
        first = tr("Nothing comes before the first token, so nothing was expected of it: curves begin with the second.")
        self.curve.set_note(first if len(entropy) == 1 else "")
        self.curve.set_boundary(session.n_prompt if len(entropy) > session.n_prompt else None)
        self.curve.set_ahead(session.length if ahead else None)
        self.curve.set_cursor(session.length - 1)

    def _show_steps(self, session: Session) -> None:
        rows = step_rows(session)
        self.table.set_rows(rows, session.current_node if session.run and session.run.path else session.n_prompt - 1)

    def _say_step(self) -> None:
        """Which step of how many, and on which branch where there are some and room for the words."""
        text = self._steps_text()
        whole = f"{text} · {self.tree.branch_words()}" if self.tree.lanes > 1 else text
        px, ends = self.ctx.theme.px, sum(button.width() for button in self._ends)
        sides, gaps = self.body.contentsMargins(), (self._line.count() - 1) * self._line.spacing()
        room = self.width() - sides.left() - sides.right() - ends - gaps - px(TREE_LEAST)
        beside = self._line.indexOf(self.tree) >= 0
        fits = not beside or self.summary.fontMetrics().horizontalAdvance(whole) <= room
        n, last = self._steps()
        self.summary.set_forms(whole if fits else text, f"{n} / {last}", f"{n}/{last}", n)
        self.summary.setToolTip(whole)

    def _steps(self) -> tuple[str, str]:
        """The step the run is at, and the last one, in figures."""
        run, rows = self.ctx.session.run, self.table.model().rowCount()
        return f"{len(run.path) if run else 0:,}", f"{max(rows - 1, 0):,}"

    def _steps_text(self, *, last: bool = False) -> str:
        """Which step of how many. `last`: as it is said of the last of them, which is the longest."""
        n, end = self._steps()
        return tr("step {n} of {all}", n=end if last else n, all=end)

    def _hover_step(self, step: int) -> None:
        """A step's token; the prefill's is its last one, where a click goes."""
        self.ctx.selection.set_hover(token=self.ctx.session.n_prompt - 1 + step if step >= 0 else None)

    def _seek_position(self, position: int) -> None:
        session = self.ctx.session
        nodes = [token.node for token in session.path_tokens()] + [node.id for node in session.nodes_ahead()]
        if position < len(nodes):
            self._go_to(max(nodes[position], session.n_prompt - 1))

    def _go_to(self, node: int) -> None:
        """Goes there, or once the way that is under way has ended: of many asked for meanwhile, to the last."""
        session = self.ctx.session
        going = session.busy and session.phase in {Phase.IDLE, Phase.READY}
        self._wanted = node if going else None
        session.seek(node)


def curve_height(room: int, px: Callable[[float], int], *, header: int | None = None) -> int:
    """Px of the curve that shares `room` px with the table, whose titles have `header`: where that is low, what the
    table can spare without losing a row, and a little less where that gives it the last of the rows it should have."""
    if room >= px(ROOMY):
        return px(CURVE)
    low = px(CURVE_LOW)
    free = room - (px(HEADER) if header is None else header) - low
    wanting = LEAST_ROWS * px(ROW) - free
    if 0 < wanting <= low - px(CURVE_LEAST):
        return low - wanting
    return low + (min(free % px(ROW), px(16)) if free > 0 else 0)


def step_rows(session: Session) -> tuple[StepRow, ...]:
    """The prefill block, the path, and the steps that were left by going back."""
    if session.run is None:
        return ()
    prefill = StepRow(
        node=session.n_prompt - 1,
        step=0,
        piece=tr("prefill · {n} tok", n=f"{session.n_prompt:,}"),
        p=None,
        entropy=None,
        ms=session.prefill_ms,
    )
    nodes = [(node, False) for node in session.path_nodes()] + [(node, True) for node in session.nodes_ahead()]
    return (
        prefill,
        *(
            StepRow(
                node=node.id,
                step=node.position - session.n_prompt + 1,
                piece=node.piece,
                p=float(np.exp(node.logprob)),
                entropy=node.entropy,
                ms=node.ms,
                forced=node.forced,
                ahead=ahead,
            )
            for node, ahead in nodes
        ),
    )
