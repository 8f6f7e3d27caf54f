"""Sampling: settings that act on stored logits at once, what each stage leaves, candidates, the draw."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Self

from PySide6.QtCore import QMargins, Qt, QTimer
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QGridLayout, QLabel, QSizePolicy, QVBoxLayout

from app.amounts import tokens
from app.i18n import tr
from app.panels.base import Changes, Need, Panel
from app.panels.run_tables import sampling_tables
from app.session import Topic
from app.widgets.candidate_table import PADDING, CandidateTable
from app.widgets.cdf_plot import CdfPlot
from app.widgets.elided_label import ElidedLabel
from app.widgets.mapping import Linear, Log, Mapping, Number, Whole
from app.widgets.readout import Readout
from app.widgets.slider_row import SliderRow
from app.widgets.stage_tiles import StageTiles
from model.protocol.errors import BadValueError
from model.protocol.figure_requests import ExportSampler
from model.protocol.values import MAX_SEED, SamplerSettings

if TYPE_CHECKING:
    from collections.abc import Callable

    from app.export.panel_files import Table
    from app.widgets.readout import Part
    from model.protocol.run_requests import DistributionReply, StageInfo
    from model.protocol.values import Candidate
    from model.protocol.wire import Request

DEFAULTS = SamplerSettings()
SEARCH_DELAY_MS = 150
SHORT = 580
TWO_COLUMNS, APART = 600, 28
"""Px at 100 % text of width from which on sliders stand in two columns, and between these."""
CDF, CDF_STRIP = 92, 52
BAR_OUT = 9
"""Px of the table's scroll bar that lie in the panel's margin."""
STAGES = {"vocabulary": "vocabulary", "top_k": "top-k", "top_p": "top-p", "min_p": "min-p"}


HELP = (
    "How the next token is chosen. The settings act on the stored logits z of the whole vocabulary at once, "
    "without running the model, and on the steps to come.\n\n"
    "Temperature T: p ∝ e^(z/T). Below 1 the likely tokens gain, above 1 the others; at 0 only the likeliest "
    "is left. Top-k keeps the k likeliest tokens. Top-p keeps the fewest likeliest ones whose probabilities "
    "together reach p. Min-p keeps those with at least that share of the likeliest one's probability. What "
    "is left is divided by its sum.\n\n"
    "Grey bars: the model's own probabilities; blue: after the settings. The draw u is a number made from "
    "seed and position: the token is where it falls on the cumulative distribution. Click a candidate to "
    "continue with it.\n\n"
    "Look for: how few tokens top-p keeps where the model is sure and how many where it is not, while top-k "
    "keeps as many in both; and how raising T brings back tokens that a small top-p had cut."
)


class SamplingPanel(Panel):
    """Sliders, waterfall, table, distribution function. A click on a candidate continues with it: a branch."""

    panel_id: ClassVar[str] = "sampling"
    title: ClassVar[str] = "Sampling"
    help_text: ClassVar[str] = HELP
    area: ClassVar[str] = "right"
    exports: ClassVar[bool] = True
    needs: ClassVar[Need] = "run"
    watches: ClassVar[frozenset[str]] = frozenset({Topic.SAMPLER, Topic.DISTRIBUTION, Topic.MODEL, Topic.RUN})

    def build(self) -> None:
        theme = self.ctx.theme
        self.rows: dict[str, SliderRow] = {}
        sliders = self._sliders = QGridLayout()
        sliders.setSpacing(0)
        self.body.setSpacing(4)  # the table has what is saved
        for name, label, mapping, decimals, off, tip in slider_table(49152):
            row = SliderRow(theme, label, mapping, decimals=decimals, off=off, tip=tip, label_width=78)
            row.setObjectName(f"slider-{name}")
            row.valueChanged.connect(lambda value, name=name: self._set(name, value))
            self.rows[name] = row
        self._columns = 0
        self._place_sliders(1)
        self._rows: tuple[Candidate, ...] = ()
        self._shown: DistributionReply | None = None
        self._carried: int | None = None
        self._place: tuple[int | None, int] = (None, -1)
        self.tiles = StageTiles(theme)
        self.table = CandidateTable(theme)
        kept = self.ctx.settings.panel("sampling").get("columns", ())
        self.table.keep_columns(kept if isinstance(kept, list | tuple) else ())
        self.table.keptChanged.connect(lambda names: self.ctx.settings.update_panel("sampling", columns=list(names)))
        self.search = self.table.search
        self._delay = QTimer(self)
        self._delay.setSingleShot(True)
        self._delay.setInterval(SEARCH_DELAY_MS)
        self._delay.timeout.connect(lambda: self.ctx.session.sampling.set_search(self.search.text().strip()))
        self.search.setText(self.ctx.session.sampling.search)  # typed before the language was changed
        self.search.textChanged.connect(lambda _text: self._delay.start())
        self.table.doubleClicked.disconnect()  # one click branches; the second of two must not branch again
        self.table.clicked.connect(lambda index: self._branch_row(index.row()))
        self.table.candidateActivated.connect(self._branch)
        self.table.setToolTip(tr("Click a candidate to continue with it; right-click for columns"))
        self.cdf = CdfPlot(theme)
        self.draw = Readout(theme)
        self.draw.setAccessibleName(tr("The draw"))
        self.note = QLabel()
        self.note.setTextFormat(Qt.TextFormat.PlainText)
        self.note.setProperty("role", "hint")
        self.missing = ElidedLabel()
        self.missing.setProperty("role", "error")
        self.missing.hide()
        # The table's padding and its scroll bar lie in the margin: figures begin and end with what is over them.
        sides = self.body.contentsMargins()
        self._sides = sides.left() + sides.right()
        self.body.setContentsMargins(sides - QMargins(PADDING, 0, BAR_OUT, 0))
        over, under = QVBoxLayout(), QVBoxLayout()
        for part in (over, under):
            part.setSpacing(self.body.spacing())
            part.setContentsMargins(PADDING, 0, BAR_OUT, 0)
        over.addLayout(sliders)
        over.addWidget(self.tiles)
        over.addWidget(self.missing)
        for widget in (self.cdf, self.draw, self.note):
            under.addWidget(widget)
        self.body.addLayout(over)
        self.body.addWidget(self.table, 1)
        self.body.addLayout(under)

    def carry(self, before: Self) -> None:
        """The candidate whose row is chosen."""
        row = before.table.currentIndex().row()
        self._carried = before._rows[row].id if 0 <= row < len(before._rows) else before._carried

    def least_width(self) -> int:
        others = (self.tiles, self.cdf, self.draw)
        wide = self.table.minimumSizeHint().width() - PADDING - BAR_OUT
        least = max(wide, *(row.least_width() for row in self.rows.values()),
                    *(each.minimumSizeHint().width() for each in others))  # fmt: skip
        return self._sides + least

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        # Where room is short the table keeps it: ten candidates are seen over a strip of the curve.
        theme, short = self.ctx.theme, event.size().height() < self.ctx.theme.px(SHORT)
        for row in self.rows.values():
            row.set_dense(short)
        self._place_sliders(2 if event.size().width() >= theme.px(TWO_COLUMNS) else 1)
        self.cdf.setFixedHeight(theme.px(CDF_STRIP if short else CDF))
        self.note.setVisible(not short)

    def _place_sliders(self, columns: int) -> None:
        """One under the other, or in two columns where that leaves each longer than it is in a narrow panel."""
        if columns == self._columns:
            return
        self._columns, rows = columns, -(-len(self.rows) // columns)
        across = (
            QSizePolicy.Policy.Expanding if columns == 1 else QSizePolicy.Policy.Ignored
        )  # it may become narrow again
        for at, row in enumerate(self.rows.values()):
            row.setSizePolicy(across, row.sizePolicy().verticalPolicy())
            self._sliders.addWidget(row, at % rows, at // rows)
        for column in range(2):
            self._sliders.setColumnStretch(column, 1 if column < columns else 0)
        self._sliders.setHorizontalSpacing(APART if columns > 1 else 0)

    def tables(self, done: Callable[[list[Table]], None]) -> None:
        done(sampling_tables(self.ctx.session))

    def figure(self, formats: tuple[str, ...], theme: str, stem: str) -> Request | None:
        message = ExportSampler(settings=self.ctx.session.sampler)
        return replace(message, formats=formats, theme=theme, stem=stem)  # type: ignore[arg-type]

    # state → widgets

    def refresh(self, changes: Changes) -> None:
        session = self.ctx.session
        if Topic.MODEL in changes and session.model is not None:
            self.rows["top_k"].set_mapping(top_k_mapping(session.model.d_vocab))
        for name, row in self.rows.items():
            row.set_value(getattr(session.sampler, name))
        last = session.nodes.get(session.current_node)
        for name, row in self.rows.items():  # one chosen by hand was made with none of them
            row.set_used(None if last is None or last.forced else getattr(last.settings, name))
        reply = session.distribution
        self.set_unserved(unserved=session.sampling.unserved)
        if reply is not None and changes & {Topic.DISTRIBUTION, Topic.RUN, Topic.SAMPLER}:
            self._show(reply)

    def _show(self, reply: DistributionReply) -> None:
        settings = self.ctx.session.sampler
        self.tiles.set_stages(tuple(stage_tile(stage) for stage in shown_stages(reply.stages, settings)))
        found = reply.found if self.search.text().strip() else ()
        rows = found or reply.candidates
        self._rows = rows
        if reply is not self._shown:  # where a run has just begun, what is on the screen is still of the one before
            self._shown, self._place = reply, (self.ctx.session.run_id, reply.node)
        self.table.set_candidates(rows, reply.would_pick, place=self._place, among=reply.candidates)
        if self._carried is not None:
            self.table.select_id(self._carried)
            self._carried = None
        self.search.setProperty("bad", bool(self.search.text().strip()) and not found)
        self.search.style().polish(self.search)
        searched = self.ctx.session.sampling.searched
        self.missing.setText(tr("No token contains {text}", text=f"\u2039{searched}\u203a"))
        self.missing.setVisible(bool(searched) and not found and searched == self.search.text().strip())
        cdf, of_cdf = self.ctx.session.sampling.cdf, self.ctx.session.sampling.cdf_tokens
        if cdf is not None and of_cdf is not None and len(cdf):
            self.cdf.set_cdf(cdf, of_cdf, draw=reply.draw, place=reply.place, label=reply.would_pick.piece)
        brief = tr("greedy") if settings.greedy else f"u = {reply.draw:.4f}"
        how = brief if settings.greedy else f"{tr('draw')} {brief}"
        word = (reply.would_pick.piece, "strong")
        taken = self._taken(reply)
        self.draw.set_parts(
            *([((f"{how} → {tr('would pick')} ", "secondary"), word, *taken)] if taken else []),
            *([((f"{brief} → ", "secondary"), word, (f" · {tr('took')} ", "secondary"), taken[1])] if taken else []),
            ((f"{how} → {tr('would pick')} ", "secondary"), word),
            ((f"{brief} → ", "secondary"), word),
            (("→ ", "secondary"), word),
        )
        self.note.setText(
            tr(
                "entropy {raw} → {final} nats · {tokens} kept",
                raw=f"{reply.entropy_raw:.2f}", final=f"{reply.entropy:.2f}", tokens=tokens(reply.kept),
            )
        )  # fmt: skip

    def _taken(self, reply: DistributionReply) -> tuple[Part, ...]:
        """Where the run went on with another token than these settings pick: which, and how it was chosen."""
        session = self.ctx.session
        ahead = session.nodes_ahead() if reply.node == session.current_node else ()
        if not ahead or ahead[0].token_id == reply.would_pick.id:
            return ()
        how = tr("greedy") if ahead[0].settings.greedy else f"T {ahead[0].settings.temperature:g}"
        return ((f" · {tr('the run took')} ", "secondary"), (ahead[0].piece, "strong"), (f" ({how})", "secondary"))

    # widgets → state

    def _set(self, name: str, value: Number) -> None:
        try:
            self.ctx.session.set_sampler(**{name: value})
        except BadValueError as error:
            self.ctx.notify.complain(str(error))
            self.rows[name].set_value(getattr(self.ctx.session.sampler, name))

    def _branch_row(self, row: int) -> None:
        rows = self._rows
        if 0 <= row < len(rows):
            self._branch(rows[row].id)

    def _branch(self, token_id: int) -> None:
        # After the node whose candidates are on the screen: those of a step just made may still be on their way.
        (run_id, node), session = self._place, self.ctx.session
        if run_id == session.run_id:
            session.branch(node, token_id)


def top_k_mapping(d_vocab: int) -> Mapping:
    """0 is off, then 1 … the whole vocabulary."""
    return Log(low=1, high=d_vocab, default=DEFAULTS.top_k, zero=True, whole=True)


def slider_table(d_vocab: int) -> tuple[tuple[str, str, Mapping, int, str, str], ...]:
    """Field, label, mapping, decimals, word for off, tip."""
    return (
        ("temperature", tr("temperature"), Linear(low=0, high=5, step=0.01, default=DEFAULTS.temperature), 2, "",
         tr("Divides the logits: 0 takes the likeliest token, 1 leaves the model's own probabilities")),
        ("top_k", tr("top-k"), top_k_mapping(d_vocab), 0, tr("off"), tr("Keeps the k likeliest tokens; 0 is off")),
        ("top_p", tr("top-p"), Linear(low=0, high=1, step=0.01, default=DEFAULTS.top_p), 2, "",
         tr("Keeps the likeliest tokens that together hold this share; 1 is off")),
        ("min_p", tr("min-p"), Linear(low=0, high=1, step=0.01, default=DEFAULTS.min_p), 2, "",
         tr("Keeps tokens with at least this share of the likeliest one's probability; 0 is off")),
        ("repetition_penalty", tr("repetition"), Linear(low=0.5, high=2, step=0.01, default=1.0), 2, "",
         tr("Lowers the logits of tokens that are in the text already; 1 is off")),
        ("seed", tr("seed"), Whole(low=0, high=MAX_SEED, default=DEFAULTS.seed, slider_high=99), 0, "",
         tr("Seed and position make the draw; the same seed draws the same tokens again")),
    )  # fmt: skip


def shown_stages(stages: tuple[StageInfo, ...], settings: SamplerSettings) -> tuple[StageInfo, ...]:
    """The whole vocabulary, then the stages that are on and drop tokens."""
    on = {"top_k": settings.top_k > 0, "top_p": settings.top_p < 1, "min_p": settings.min_p > 0}
    return tuple(
        stage
        for at, stage in enumerate(stages)
        if at == 0 or on.get(stage.name, False) or (at and stage.kept < stages[at - 1].kept)
    )


def stage_tile(stage: StageInfo) -> tuple[str, int, float]:
    """Name as shown, tokens kept, mass kept."""
    return tr(STAGES.get(stage.name, stage.name.replace("_", " "))), stage.kept, stage.mass
