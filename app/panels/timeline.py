"""The run as it went: prefill as one block, each decode a step; entropy and surprisal; branches."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QToolButton

from app.i18n import tr
from app.panels.base import Changes, Need, Panel
from app.panels.branch_tree import BranchTree
from app.panels.curves import curves
from app.panels.run_tables import step_table, token_table
from app.panels.step_table import HEADER, ROW, StepRow, StepTable
from app.session import Topic
from app.state.under_way import Phase
from app.widgets.curve_plot import CurvePlot, Series
from app.widgets.elided_label import ElidedLabel
from model.protocol.figure_requests import ExportText

if TYPE_CHECKING:
    from collections.abc import Callable

    from app.export.panel_files import Table
    from app.session import Session
    from model.protocol.wire import Request


SHORT = 300
CURVE, CURVE_LOW, CURVE_LEAST = 112, 58, 56
OVER_AND_UNDER = 46
"""Px of the panel that neither curve nor table has: margins, gaps, the line of steps."""


HELP = (
    "Prefill reads the whole prompt at once; each decode step adds one token. Click a step to go there, "
    "or drag along the curve; choose another candidate in Sampling to branch.\n\n"
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
        row = QHBoxLayout()
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
        self.body.setSpacing(4)
        self.body.addWidget(self.curve)
        self.body.addLayout(row)
        self.body.addWidget(self.tree)
        self.body.addWidget(self.table, 1)

    def _restyle(self) -> None:
        for button in self._ends:
            button.setFixedSize(self.ctx.theme.px(24), max(20, self.ctx.theme.px(14)))  # no row of the table for it

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit_curve()

    def room_changed(self) -> None:
        self._fit_curve()

    def _fit_curve(self) -> None:
        # By what is seen of the panel: its own height, where it is scrolled, is what the curve makes it.
        around = self.parentWidget()
        height = min(self.height(), around.height()) if around is not None else self.height()
        tree = 0 if self.tree.isHidden() else self.tree.sizeHint().height() + self.body.spacing()
        curve, px = curve_height(height - tree, self.ctx.theme.px), self.ctx.theme.px
        if tree:  # a little of the curve before the last step is scrolled out of sight
            over = self.body.minimumSize().height() - self.curve.minimumHeight() + curve - height
            curve = max(curve - max(over, 0), px(CURVE_LEAST))
        self.curve.setFixedHeight(curve)

    def tables(self, done: Callable[[list[Table]], None]) -> None:
        done([token_table(self.ctx.session), step_table(self.ctx.session)])

    def figure(self, formats: tuple[str, ...], theme: str, stem: str) -> Request | None:
        return replace(ExportText(), formats=formats, theme=theme, stem=stem)  # type: ignore[arg-type]

    def refresh(self, changes: Changes) -> None:
        session = self.ctx.session
        if session.run is None:
            return
        if changes & {Topic.RUN, Topic.NODE, Topic.PROMPT_STATS}:
            self.tree.set_tree(session.nodes, session.n_prompt, session.run.path, session.current_node)
            self._fit_curve()
            self._show_curve(session)
            self._show_steps(session)
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
        self.curve.set_boundary(session.n_prompt if len(entropy) > session.n_prompt else None)
        self.curve.set_ahead(session.length if ahead else None)
        self.curve.set_cursor(session.length - 1)

    def _show_steps(self, session: Session) -> None:
        rows = step_rows(session)
        self.table.set_rows(rows, session.current_node if session.run and session.run.path else session.n_prompt - 1)
        steps, branches = len(session.run.path) if session.run else 0, self.tree.lanes
        text = tr("step {n} of {all}", n=f"{steps:,}", all=f"{len(rows) - 1:,}")
        self.summary.setText(f"{text} · {tr('{n} branches', n=branches)}" if branches > 1 else text)

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


def curve_height(height: int, px: Callable[[float], int]) -> int:
    """Px of the curve in a panel `height` px high: where that is low, what the table can spare without losing a row."""
    if height >= px(SHORT):
        return px(CURVE)
    room = height - OVER_AND_UNDER - px(CURVE_LOW) - px(HEADER)
    return px(CURVE_LOW) + (min(room % px(ROW), px(16)) if room > 0 else 0)


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
