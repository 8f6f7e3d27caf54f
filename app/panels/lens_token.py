"""One token on its way up: its rank and probability at every depth, and what every part adds to its logit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from PySide6.QtCore import QSize, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QLineEdit, QPushButton, QStackedWidget, QVBoxLayout, QWidget

from app.i18n import tr
from app.panels.attention_copy import clean
from app.widgets.bar_plot import BarPlot
from app.widgets.fact_table import Cell, Column, FactTable, Row
from app.widgets.folding_segmented import FoldingSegmented
from app.widgets.line_plot import Line, LinePlot
from app.widgets.readout import BEGINNINGS, Part, Readout, brief_piece
from app.widgets.ticks import figure, short
from app.widgets.wrap_row import WrapRow, wrap
from model.protocol.lens_requests import GetLensPath, GetLensTerms, LensPathReply, LensTermsReply
from model.protocol.run_requests import DistributionReply, GetDistribution

if TYPE_CHECKING:
    from collections.abc import Callable

    from app.export.panel_files import Table
    from app.panels.base import Panel
    from model.protocol.framing import Arrays
    from model.protocol.wire import ErrorInfo

LEAST_PAGE = 84
"""Px of plot or table at 100 % text; the panel scrolls where there is less."""
NEGLIGIBLE = 5e-4
"""A rest of so much of a logit is rounding and no news."""


class TokenView(QWidget):
    """Two pages, each a plot and its table. `depthPointed`, `depthChosen` carry a depth; `named`: the box names another
    token, or none any more."""

    depthPointed = Signal(int)
    depthChosen = Signal(int)
    named = Signal()

    def __init__(self, panel: Panel) -> None:
        super().__init__(panel)
        self._panel, self._ctx = panel, panel.ctx
        theme = panel.ctx.theme
        self.token = self._named = -1
        self.position = -1
        self._text: tuple[int | None, int, int] | None = None
        """Of what is drawn: the run, the position, and the node there, which stands for the text up to it."""
        self.path: tuple[LensPathReply, Arrays] | None = None
        self.terms: tuple[LensTermsReply, Arrays] | None = None
        self._asked: dict[str, object] = {}
        self._terms: list[tuple[str, float]] = []
        self._missing = ""
        self._refused = False
        self.tabs = FoldingSegmented(
            theme, [("path", tr("rank by layer")), ("terms", tr("what adds to it"))], label=tr("About the token"),
            tips={"path": tr("Where the token stands among all tokens, if the model stopped after a layer"),
                  "terms": tr("What each block's attention and feed-forward add to the token's logit")},
        )  # fmt: skip
        self.box = QLineEdit()
        self.box.setPlaceholderText(tr("follow a token"))
        self.box.setAccessibleName(tr("Token to follow: text or id"))
        self.box.setClearButtonEnabled(True)
        self.table_button = QPushButton(tr("Table"))
        self.table_button.setCheckable(True)
        self.table_button.setProperty("compact", True)
        self.table_button.setToolTip(tr("The same numbers as a table"))
        self.words = Readout(theme)
        self.plot = LinePlot(
            theme,
            tr("Rank of the token by layer"),
            x_name=tr("layer"),
            y_name=tr("rank"),
            right_name="p",
            log=True,
            whole=True,
            x_names={-1.0: tr("emb.")},
            titled=True,
        )
        self.bars = BarPlot(theme, tr("What each part adds to the token's logit"), title=tr("logit"), keyed=True)
        self.path_table = FactTable(
            theme, tr("Rank of the token by layer"),
            [Column(title=tr("after"), left=True), Column(title=tr("rank")), Column(title="p"),
             Column(title=tr("logit"))],
        )  # fmt: skip
        self.terms_table = FactTable(
            theme, tr("What each part adds to the token's logit"),
            [Column(title=tr("part"), left=True), Column(title=tr("adds")), Column(title=tr("sum so far"))],
        )  # fmt: skip
        self._pages = QStackedWidget()
        for widget in (self.plot, self.bars, self.path_table, self.terms_table):
            self._pages.addWidget(widget)
        theme.changed.connect(self._restyle)
        self._restyle()
        head = self._head = QWidget()
        row = WrapRow(head)
        row.add(self.tabs)
        row.add(self.box, grows=True)
        row.add(self.table_button)
        wrap(head)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(4)
        column.addWidget(head)
        column.addWidget(self.words)
        column.addWidget(self._pages, 1)
        self.tabs.keyChanged.connect(lambda _key: self._turn())
        self.table_button.toggled.connect(lambda _shown: self._turn())
        self.box.returnPressed.connect(self._search)
        self.box.textChanged.connect(self._on_text)
        self.plot.xHovered.connect(lambda x: self.depthPointed.emit(-1 if np.isnan(x) else int(x) + 1))
        self.plot.xClicked.connect(lambda x: self.depthChosen.emit(int(x) + 1))
        self.bars.positionHovered.connect(lambda bar: self.depthPointed.emit(self._depth_of(bar)))
        self.bars.positionClicked.connect(lambda bar: self.depthChosen.emit(self._depth_of(bar)))
        self.path_table.rowChosen.connect(lambda row: self.depthChosen.emit(self._n_depths - 1 - row))

    def minimumSizeHint(self) -> QSize:
        """With all lines of the first row: a splitter asks for no height by width."""
        least, head = super().minimumSizeHint(), self._head
        more = head.heightForWidth(self.width()) - head.minimumSizeHint().height()
        return QSize(least.width(), least.height() + max(more, 0))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if event.size().width() != event.oldSize().width():
            self.updateGeometry()

    def _restyle(self) -> None:
        self._pages.setMinimumHeight(self._ctx.theme.px(LEAST_PAGE))

    def follow(self, position: int, token: int = -1) -> None:
        """Shows `token` at `position`; -1: the one that the box names, else the likeliest at the end."""
        self.position, self.token = position, token if token >= 0 else self._named
        self._ask()

    def drop_other_text(self, position: int) -> None:
        """Clears what is of another text than that which `position` ends: it would look like this one's."""
        session = self._ctx.session
        node = session.path_tokens()[position].node if 0 <= position < session.length else -1
        text, before = (session.run_id, position, node), self._text
        self._text = text
        if before is None or (before[0] == text[0] and (before[1] != position or before[2] == node)):
            return
        self.path = self.terms = None
        self._terms = []
        self._asked.clear()
        self.plot.set_lines([])
        self.bars.set_values(np.empty(0, np.float32), [])
        self.path_table.set_rows([])
        self.terms_table.set_rows([])
        self._show_words()

    def forget_name(self) -> None:
        """Empties the box, which emits nothing: another token was chosen."""
        self._named = -1
        self.box.clear()

    def find_again(self) -> None:
        """Looks for what the box names in the vocabulary of another model."""
        self._named = -1
        if self.box.text():
            self._search()

    def carry(self, before: TokenView) -> None:
        """The page, and what the box names."""
        self.tabs.set_key(before.tabs.key())
        self.box.setText(before.box.text())
        self._named = before._named
        self.table_button.setChecked(before.table_button.isChecked())
        self._turn()

    def set_depth(self, depth: int | None) -> None:
        """The depth chosen or pointed at in the grid."""
        self.plot.set_cursor(None if depth is None else float(depth - 1))

    def tables(self) -> list[Table]:
        """Every number of both pages, exact."""
        found: list[Table] = []
        if self.path is not None:
            reply, arrays = self.path
            lines = [["depth", tr("after"), "rank (1 = first)", "p", "logit"]]
            for depth, (rank, p, logit) in enumerate(zip(arrays["rank"], arrays["p"], arrays["logit"], strict=True)):
                after = depth_text(depth, self._n_depths)
                lines.append([str(depth), after, str(int(rank) + 1), str(p), str(logit)])
            found.append((f"{tr('rank by layer')} · {clean(reply.piece)} ({reply.token_id})", lines))
        if self.terms is not None:
            terms, _ = self.terms
            lines = [[tr("part"), tr("adds")], *([name, repr(value)] for name, value in self._terms)]
            lines.append(["logit", repr(terms.logit)])
            found.append((f"{tr('what adds to it')} · {clean(terms.piece)} ({terms.token_id})", lines))
        return found

    # inside

    @property
    def _n_depths(self) -> int:
        model = self._ctx.session.model
        return model.n_layers + 1 if model else 1

    def _turn(self) -> None:
        at = (0 if self.tabs.key() == "path" else 1) + (2 if self.table_button.isChecked() else 0)
        self._pages.setCurrentIndex(at)
        self._ask()

    def _ask(self) -> None:
        session = self._ctx.session
        state = (session.run_id, session.current_node, session.length, self.position, self.token)
        if self.position < 0:
            return
        if self._asked.get("path") != state:  # the path names the token, for both pages
            self._asked["path"], self._refused = state, False
            self._panel.ask(
                GetLensPath(position=self.position, token=self.token), self._on_path, slot="path",
                on_error=lambda _error: self._no_path(),
            )  # fmt: skip
        if self.tabs.key() == "terms" and self._asked.get("terms") != state:
            self._asked["terms"] = state
            self._panel.ask(
                GetLensTerms(position=self.position, token=self.token), self._on_terms, slot="terms",
                on_error=lambda _error: self._asked.pop("terms", None),
            )  # fmt: skip
        self._show_words()

    def _no_path(self) -> None:
        """The engine could not say, which the panel tells."""
        self._asked.pop("path", None)
        self._refused = True
        self._show_words()

    def _on_path(self, reply: LensPathReply, arrays: Arrays) -> None:
        self.path = (reply, arrays)
        rank, p, logit = (np.asarray(arrays[name]) for name in ("rank", "p", "logit"))
        x = np.arange(-1, len(rank) - 1, dtype=np.float32)  # after a layer; the embedding is one before the first
        self.plot.set_lines([
            Line(name=tr("rank, 1 is first"), x=x, y=(rank + 1).astype(np.float32)),
            Line(name="p", x=x, y=p, colour="secondary", dashed=True, right=True),
        ])  # fmt: skip
        rows: list[Row] = []
        for depth in reversed(range(len(rank))):
            first = int(rank[depth]) == 0
            rows.append((
                Cell(text=depth_text(depth, len(rank))),
                Cell(text=f"{int(rank[depth]) + 1:,}", strong=first, voice="accent" if first else "text"),
                Cell(text=figure(float(p[depth]), 3)), Cell(text=figure(float(logit[depth]))),
            ))  # fmt: skip
        self.path_table.set_rows(rows)
        self._show_words()

    def _on_terms(self, reply: LensTermsReply, arrays: Arrays) -> None:
        self.terms = (reply, arrays)
        names, values = [tr("embedding")], [reply.embed]
        for layer, (attn, mlp) in enumerate(zip(arrays["attn"].tolist(), arrays["mlp"].tolist(), strict=True)):
            names += [tr("{layer} attention", layer=layer), tr("{layer} feed-forward", layer=layer)]
            values += [attn, mlp]
        if reply.bias:
            names.append(tr("biases"))
            values.append(reply.bias)
        names.append(tr("rest"))
        values.append(reply.rest)
        self._terms = list(zip(names, values, strict=True))
        self.bars.set_values(np.array(values, np.float32), names)
        total, rows = 0.0, []
        for name, value in zip(names, values, strict=True):
            total += value
            rows.append((Cell(text=name), Cell(text=figure(value)), Cell(text=figure(total), voice="secondary")))
        self.terms_table.set_rows(rows)
        self._show_words()

    def _show_words(self) -> None:
        if self._missing:  # what is drawn is another token's, which says so itself where there is room for both
            sentence = tr("No token contains {text}", text=f"\u2039{self._missing}\u203a")
            named = self.path[0].piece if self.path is not None else ""
            self.words.set_parts([(sentence, "red"), (f"   {named}", "strong")], [(sentence, "red")])
            return
        if self.tabs.key() == "terms" and self.terms is not None:
            self.words.set_parts(*sum_forms(*self.terms))
        elif self.path is not None:
            reply, arrays = self.path
            name: list[Part] = [(reply.piece, "strong"), (f"  {tr('id')} {reply.token_id}   ", "secondary")]
            if self.tabs.key() == "terms":
                self.words.set_parts(name)
                return
            rank = f"{int(arrays['rank'][-1]) + 1:,}"
            words, figures = (tr("rank at the end") + " ", "secondary"), (rank, "strong")
            self.words.set_parts([*name, words, figures], [name[0], ("  ", "text"), words, figures], [words, figures],
                                 [figures])  # fmt: skip
        else:
            self.words.set_parts([(tr("computing …"), "secondary")] if self._text and not self._refused else [])

    def _depth_of(self, bar: int) -> int:
        """The depth a bar of the contributions leads to."""
        if bar < 0:
            return -1
        return min((bar + 1) // 2, self._n_depths - 1)

    def _on_text(self, text: str) -> None:
        """What was not found is no longer asked for; the likeliest token again, where an emptied box named one."""
        if text != self._missing:
            self._set_missing("")
        if not text and self._named >= 0:
            self._named = -1
            self.named.emit()

    def _set_missing(self, text: str) -> None:
        """What no token of the vocabulary contains, said where it was written."""
        self._missing = text
        if bool(text) != bool(self.box.property("bad")):
            self.box.setProperty("bad", bool(text))
            self.box.style().polish(self.box)
        self._show_words()

    def _search(self) -> None:
        """Follows the token that is written, or whose id is."""
        text, session = self.box.text(), self._ctx.session
        if not text:
            return

        def found(reply: DistributionReply, _arrays: Arrays) -> None:
            if self.box.text() != text:
                return
            if reply.found:
                self._set_missing("")
                self._named = reply.found[0].id
                self.named.emit()
            else:
                self._set_missing(text)

        def failed(error: ErrorInfo) -> None:
            self._ctx.notify.complain(error.message)

        message = GetDistribution(node=session.current_node, settings=session.sampler, top=1, search=text)
        self._panel.ask(message, found, slot="find", on_error=failed)


def sum_forms(reply: LensTermsReply, arrays: Arrays) -> list[list[Part]]:
    """The logit as the sum of its kinds of parts, the longest form first. Digits that only refine go before the token,
    and whole terms before a figure is cut: the end of a power of ten cut off makes it another number."""
    small = abs(reply.rest) <= NEGLIGIBLE * max(abs(reply.logit), 1.0)
    rest = (tr("rest"), reply.rest, "green" if small else "amber")
    terms = [
        (tr("emb."), reply.embed, "strong"), (tr("attn"), float(arrays["attn"].sum()), "strong"),
        (tr("ffn"), float(arrays["mlp"].sum()), "strong"), (tr("bias"), reply.bias, "strong"),
    ]  # fmt: skip
    terms = [(name, value, voice) for name, value, voice in terms if value]

    def form(piece: str, write: Callable[[float], str], *shown: tuple[str, float, str]) -> list[Part]:
        parts = [(piece, "strong"), ("  ", "text")] if piece else []
        parts += [(figure(reply.logit), "strong"), (" =" if len(shown) > 1 else "", "secondary")]
        for name, value, voice in shown:
            parts += [(f" {name} ", "secondary"), (write(value), voice)]
        return parts

    pieces = list(dict.fromkeys(brief_piece(reply.piece, brief) for brief in (0, BEGINNINGS, BEGINNINGS + 1)))
    return [
        form(reply.piece, lambda value: figure(value, 3), *terms, rest),
        *(form(piece, short, *terms, rest) for piece in pieces),
        *(form(piece, short, rest) for piece in pieces),
        [(figure(reply.logit), "strong")],
    ]


def depth_text(depth: int, n_depths: int) -> str:
    """A depth in words."""
    if depth == 0:
        return tr("embedding")
    return tr("layer {layer}, output", layer=depth - 1) if depth == n_depths - 1 else tr(
        "layer {layer}", layer=depth - 1
    )  # fmt: skip
