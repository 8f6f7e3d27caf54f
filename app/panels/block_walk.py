"""Block walk: one token's way through the model, operation by operation."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QColor, QResizeEvent
from PySide6.QtWidgets import QBoxLayout, QHBoxLayout, QSplitter

from app.commands import Command
from app.i18n import tr
from app.panels.attention_copy import clean, number
from app.panels.base import Changes, Need, Panel
from app.panels.block_walk_cell import Shown
from app.panels.block_walk_detail import DetailView
from app.panels.block_walk_texts import OpWords
from app.panels.block_walk_words import (
    brief_formula,
    foot_text,
    formula_text,
    list_title,
    mark_text,
    shape_text,
    unknown,
    words_of,
)
from app.panels.in_sight import bring_into_sight
from app.session import Topic
from app.widgets.folding import Floats, fold, strongest
from app.widgets.heatmap_image import colour_table
from app.widgets.info_button import InfoPopup
from app.widgets.op_cards import Card, OpCards
from app.widgets.place_bar import PlaceBar
from app.widgets.readout import BEGINNINGS, Part, Readout, brief_piece
from app.widgets.ticks import figure
from model.colormaps import Levels, colormap_for, lut
from model.protocol.walk_requests import SHARES, GetWalk, WalkOp, WalkPlace, WalkReply

if TYPE_CHECKING:
    from app.export.panel_files import Table
    from model.protocol.framing import Arrays
    from model.protocol.wire import ErrorInfo, Request

PICTURE = (10, 76)
"""Cells of a card's picture at most, down and across."""
NARROW, TALL = 640, 330
"""Px at 100 % text: under so wide the large view stands under the cards and not beside them, where there is height for
both."""
CARDS_SHARE, CARDS_SHARE_BESIDE = 0.53, 0.44
"""The cards' share of the height over it, three rows where the window is smallest, and of the width beside it."""
HELP = (
    "One token on its way through the model. Choose a place at the top: the embedding, a block, or the output head; "
    "then an operation. Each card shows its formula, the size of its result, its extremes and its length ‖x‖, and the "
    "numbers themselves as a small picture. Enter opens an operation large, Backspace leads out again.\n\n"
    "x′ = x + attention(norm(x)); x″ = x′ + feed-forward(norm(x′)). The list follows this model: a part it does not "
    "have is not in it, and a part of its own is.\n\n"
    "The numbers are captured while the block runs again on the stored stream; the green figure is how far its end is "
    "from what the run stored.\n\n"
    "Look for: what is added is short beside the stream it is added to, and one head's row or a few neurons stand out."
)


class BlockWalkPanel(Panel):
    """The place in the bar, the operations as cards, the chosen one in full."""

    panel_id: ClassVar[str] = "block_walk"
    title: ClassVar[str] = "Block walk"
    help_text: ClassVar[str] = HELP
    watches: ClassVar[frozenset[str]] = frozenset({
        Topic.MODEL, Topic.RUN, Topic.NODE, "layer", "head", "query", "hover_token", "scale",
    })  # fmt: skip
    area: ClassVar[str] = "bottom"
    needs: ClassVar[Need] = "run"
    exports: ClassVar[bool] = True

    def build(self) -> None:
        theme = self.ctx.theme
        self.place: WalkPlace = "block"
        self.large = False
        self.walk: WalkReply | None = None
        self.arrays: list[Floats] = []
        self._words: dict[str, OpWords] = {}
        self._asked: object = None
        self._chosen_id = ""
        self.bar = PlaceBar(theme)
        self.about = Readout(theme)
        self.cards = OpCards(theme)
        self.detail = DetailView(self)
        self._head = QHBoxLayout()
        self._head.setSpacing(8)
        self._head.addWidget(self.bar, 3)
        self._head.addWidget(self.about, 2)
        self._split = QSplitter(Qt.Orientation.Horizontal)
        self._shares = {True: CARDS_SHARE, False: CARDS_SHARE_BESIDE}
        self._split.setChildrenCollapsible(False)
        self._split.setHandleWidth(12)
        self._split.addWidget(self.cards)
        self._split.addWidget(self.detail)
        self._split.setStretchFactor(0, 1)
        self._split.setStretchFactor(1, 1)
        self.body.addLayout(self._head)
        self.body.addWidget(self._split, 1)
        self._split.splitterMoved.connect(self._on_split)
        self.bar.placeChosen.connect(self._on_place)
        self.cards.cardChosen.connect(self._on_card)
        self.cards.cardOpened.connect(self.open_card)
        self.cards.infoWanted.connect(self._show_info)
        self.detail.closed.connect(self.out)

    def carry(self, before: Self) -> None:
        """The place, the operation, how it is shown."""
        self.place, self.large, self._chosen_id = before.place, before.large, before._chosen_id
        self._shares = dict(before._shares)
        self.detail.carry(before.detail)

    def least_width(self) -> int:
        """Where columns give way: it is not scrolled sideways before its parts have lines of their own."""
        sides = self.body.contentsMargins()
        parts = (self.cards.least_width(), self.detail.least_width(), self.bar.minimumSizeHint().width())
        return sides.left() + max(parts) + sides.right()

    def commands(self) -> Iterable[Command]:
        def has_run() -> bool:
            return self.ctx.session.run is not None

        return (
            Command(id="walk.into", title="Walk into", shortcuts=("Return", "Enter"), keys="unclaimed", menu="View",
                    group=1, run=self.into, enabled=has_run),
            Command(id="walk.out", title="Walk out", shortcuts=("Backspace",), keys="unclaimed", menu="View", group=1,
                    run=self.out, enabled=has_run),
        )  # fmt: skip

    def refresh(self, changes: Changes) -> None:
        session = self.ctx.session
        if session.run is None or session.model is None:
            return
        if changes <= {"hover_token"}:
            self.detail.follow_hover(self.ctx.selection.hover_token)
            return
        n_layers = session.model.n_layers
        cell = {"embed": 0, "head": n_layers + 1}.get(self.place, self._layer() + 1)
        self.bar.set_places(n_layers, cell)
        self._ask()
        if "scale" in changes and self.walk is not None:  # or the theme, which changes everything
            self._show_cards(self.walk)
        self.detail.draw()

    def tables(self, done: Callable[[list[Table]], None]) -> None:
        """The operations with their statistics, the numbers of each, and the matrix in full view where it is exact."""
        if self.walk is None:
            done([])
            return
        head = ["op", tr("operation"), tr("formula"), tr("shape"), "min", "max", "mean", "std", "norm", "note"]
        lines = [
            [op.id, (self._words.get(op.id) or unknown(op)).title, formula_text(op), shape_text(op), *(
                repr(value) for value in (op.low, op.high, op.mean, op.std, op.norm)), op.note]
            for op in self.walk.ops
        ]  # fmt: skip
        found: list[Table] = [(tr("operations"), [head, *lines])]
        for op, values in zip(self.walk.ops, self.arrays, strict=True):
            found.append((op.id, [[number(float(value)) for value in row] for row in values]))
            if op.tokens:
                listed = [[str(token.id), clean(token.piece), repr(token.value)] for token in op.tokens]
                found.append((f"{op.id} · {list_title(op)}", listed))
        shown = self.detail.matrix()
        if shown is not None and self.detail.what.key() != "token":
            rows, cols, values = shown
            lines = [["", *map(clean, cols)]]
            lines += [[clean(row), *(number(float(value)) for value in line)] for row, line in
                      zip(rows, values, strict=True)]  # fmt: skip
            found.append((f"{self._chosen_id} · {self.detail.what.key()}", lines))
        done(found)

    def figure(self, formats: tuple[str, ...], theme: str, stem: str) -> Request | None:  # noqa: ARG002
        """All activations of the place that is walked through."""
        from app.export.subjects import numbers  # noqa: PLC0415 - not before it is asked for

        where = {"embed": ("embed",), "head": ("final_norm", "logits")}
        return numbers(*where.get(self.place, (f"layers.{self._layer()}.*",)), stem=stem)

    # commands

    def into(self) -> None:
        """Shows the panel, then the operations, then the chosen one large."""
        if not self.isVisible():
            bring_into_sight(self)
            self.cards.setFocus()
        elif self.bar.hasFocus():
            self.cards.setFocus()
        elif self.large:
            self.detail.heat.setFocus()
        else:
            self.open_card(self.cards.chosen)

    def out(self) -> None:
        """From the large view to the cards, from the cards to the place."""
        if self.large:
            self.large = False
            self._arrange()
            self.cards.setFocus()
        elif self.cards.hasFocus():
            self.bar.setFocus()

    def open_card(self, index: int) -> None:
        """One operation over the whole panel."""
        self._choose(index)
        self.large = True
        self._arrange()
        self.detail.heat.setFocus()

    # inside

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange()

    def _arrange(self) -> None:
        theme = self.ctx.theme
        narrow = self.width() < theme.px(NARROW)
        tall = self.height() - self._split.y() >= theme.px(TALL)
        way = Qt.Orientation.Vertical if narrow else Qt.Orientation.Horizontal
        if way != self._split.orientation():
            self._split.setOrientation(way)
            room, share = self._split.height() if narrow else self._split.width(), self._shares[narrow]
            self._split.setSizes([round(room * share), round(room * (1 - share))])
        self._head.setDirection(QBoxLayout.Direction.TopToBottom if narrow else QBoxLayout.Direction.LeftToRight)
        self.cards.setVisible(not self.large)
        self.detail.setVisible(self.large or not narrow or tall)
        self.detail.set_large(self.large)

    def _on_split(self) -> None:
        """Under each other and beside each other have their own shares, as they were left."""
        sizes = self._split.sizes()
        self._shares[self._split.orientation() == Qt.Orientation.Vertical] = sizes[0] / max(sum(sizes), 1)

    def _layer(self) -> int:
        return self.ctx.selection.single_layer

    def _chosen_head(self) -> int:
        return self.ctx.selection.single_head

    def _ask(self) -> None:
        session, selection = self.ctx.session, self.ctx.selection
        if session.phase == "decode" and self.walk is not None:
            return  # tokens are streaming: the last NODE of them asks
        message = GetWalk(place=self.place, position=selection.query, layer=self._layer(), head=self._chosen_head())
        asked = (session.run_id, session.current_node, session.length, message)
        if asked != self._asked:
            self._asked = asked
            self.ask(message, self._on_walk, slot="walk", on_error=lambda error: self._on_error(error, asked))

    def _on_error(self, error: ErrorInfo, asked: object) -> None:
        if self._asked == asked:
            self._asked = None
        del error

    def _on_walk(self, reply: WalkReply, arrays: Arrays) -> None:
        self.walk = reply
        self.arrays = [np.asarray(arrays[str(index)]) for index in range(len(reply.ops))]
        self._words = words_of(reply.place)
        self._show_about(reply)
        self._show_cards(reply)
        ids = [op.id for op in reply.ops]
        self._choose(ids.index(self._chosen_id) if self._chosen_id in ids else 0)

    def _show_about(self, walk: WalkReply) -> None:
        tokens, model = self.ctx.session.path_tokens(), self.ctx.session.model
        piece = tokens[walk.position].piece if walk.position < len(tokens) else ""
        parts: list[Part] = [(piece, "strong"), (f" ({walk.position:,})", "secondary")]
        if walk.place == "block":
            shared = model is not None and model.n_kv_heads < model.n_heads
            kv = f" · KV {walk.kv_head}" if shared else ""
            parts.append((f"  {tr('Head {head}', head=walk.head)}{kv}", "text"))
        if math.isfinite(walk.error):
            voice, error = "green" if walk.error <= walk.bound else "red", figure(walk.error, 2)
            words = (
                tr("differs from the run by {error}", error=error) if walk.error else tr("equals the run bit for bit")
            )
            least = f"± {error}" if walk.error else "± 0"
            brief: Part = (f"   {least}", voice)
            near: Part = (f" {least}", voice)
            self.about.set_parts(
                [*parts, (f"   {words}", voice)], [*parts, brief], [*parts[:2], brief], [*parts[:2], near],
                [parts[0], near], [(brief_piece(piece, BEGINNINGS), "strong"), near], [(least, voice)],
            )  # fmt: skip
        else:
            self.about.set_parts(parts)
        self.about.setToolTip(tr(
            "The largest difference between the end of this walk and what the run stored, over the largest magnitude "
            "stored"
        ))  # fmt: skip

    def _show_cards(self, walk: WalkReply) -> None:
        name = self.ctx.settings.panel("attention").get("colormap", "viridis")
        masked = QColor(self.ctx.theme.palette.masked)
        tables = {signed: colour_table(lut(colormap_for(name, signed=signed)), masked) for signed in (False, True)}
        cards = [
            self._card(op, values, self._words.get(op.id) or unknown(op))
            for op, values in zip(walk.ops, self.arrays, strict=True)
        ]
        self.cards.set_cards(cards, tables)

    def _card(self, op: WalkOp, values: Floats, words: OpWords) -> Card:
        levels = Levels.spanning(op.low, op.high, signed=op.id not in SHARES, scale=self.ctx.selection.scale)
        rows = values
        if len(values) == 1 and op.cols != "key":
            rows = fold(values[0], aspect=10.0).values
        picture = levels.pixels(strongest(rows, *PICTURE))
        marked = op.first_row if op.first_row >= 0 and len(values) <= PICTURE[0] and len(values) > 1 else -1
        return Card(
            title=words.title, formula=formula_text(op), shape=shape_text(op), foot=foot_text(op), picture=picture,
            signed=levels.signed, marked=marked, mark=mark_text(op) if marked >= 0 else "", brief=brief_formula(op),
        )  # fmt: skip

    def _on_place(self, cell: int) -> None:
        n_layers = self.ctx.selection.n_layers
        self.place = "embed" if cell == 0 else "head" if cell == n_layers + 1 else "block"
        if self.place == "block":
            self.ctx.selection.set_layer(cell - 1)
        self.mark("view")

    def _on_card(self, index: int) -> None:
        self._choose(index)

    def _choose(self, index: int) -> None:
        if self.walk is None or not 0 <= index < len(self.walk.ops):
            return
        op = self.walk.ops[index]
        self._chosen_id = op.id
        self.cards.set_chosen(index)
        words = self._words.get(op.id) or unknown(op)
        self.detail.show_op(Shown(walk=self.walk, op=op, values=self.arrays[index], words=words))

    def _show_info(self, index: int, at: QPoint) -> None:
        if self.walk is None:
            return
        op = self.walk.ops[index]
        words = self._words.get(op.id) or unknown(op)
        popup = InfoPopup(self.ctx.theme, words.title, f"{formula_text(op)}\n\n{words.text}", self)
        screen = self.screen().availableGeometry()
        popup.fit(screen.height() - 16)
        at.setX(max(screen.left(), min(at.x(), screen.right() - popup.width())))
        at.setY(max(screen.top(), min(at.y() + 8, screen.bottom() - popup.height())))
        popup.move(at)
        popup.show()
