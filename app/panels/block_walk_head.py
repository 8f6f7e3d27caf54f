"""What stands over the large picture of an operation: its name, formula, shape and statistics, and what to draw."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtGui import QFontMetricsF
from PySide6.QtWidgets import QBoxLayout, QHBoxLayout, QLabel, QPushButton, QVBoxLayout, QWidget

from app.i18n import tr
from app.panels.block_walk_words import shape_words, statistics
from app.widgets.elided_label import ElidedLabel
from app.widgets.folding_segmented import FoldingSegmented
from app.widgets.info_button import InfoButton
from app.widgets.readout import Readout, parts_width

if TYPE_CHECKING:
    from app.panels.block_walk_cell import Shown
    from app.theme import Theme

LOW, VERY_LOW = 240, 150
"""Px at 100 % text of the view: under the first the formula stands beside the statistics, or is left to the card; under
the second the picture needs the statistics' line as well."""
STRIP = 480
"""Px at 100 % text of a picture whose own line has room for the statistics beside its colours."""
GAP = 6
QWIDGETSIZE_MAX = (1 << 24) - 1


class DetailHead(QWidget):
    """A name is never cut: where it is narrow, the shape goes to the formula's line and the switch folds to a list."""

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self._theme = theme
        self.folded = False
        """Whether the picture's own line has the statistics."""
        self.lowest = False
        self._shape = ""
        self.title = ElidedLabel()
        self.shape = ElidedLabel()
        self.shape.setProperty("role", "hint")
        self.info = InfoButton(theme, "", "")
        self.what = FoldingSegmented(
            theme, [("token", tr("this token")), ("parts", tr("terms")), ("positions", tr("all positions"))],
            label=tr("What is drawn"),
            tips={"parts": tr("The terms that sum to this result"),
                  "positions": tr("This result at every position of the text")},
        )  # fmt: skip
        self.table_button = QPushButton(tr("Table"))
        self.table_button.setCheckable(True)
        self.table_button.setToolTip(tr("The same numbers as a table"))
        self.back = QPushButton(tr("Back"))
        self.back.setToolTip(tr("Back to the operations (Backspace)"))
        for button in (self.table_button, self.back):
            button.setProperty("compact", True)
        self.formula = QLabel()
        self.formula.setTextFormat(Qt.TextFormat.PlainText)
        self.formula.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.formula.setWordWrap(True)
        self.stats = Readout(theme)
        for part in (self.formula, self.shape, self.stats):  # until it is known how much room there is
            part.hide()
        self._lay_out()
        self.restyle()

    def show_op(self, shown: Shown) -> None:
        """Says what an operation is."""
        op, words = shown.op, shown.words
        self.title.setText(words.title)
        self._shape = shape_words(op)
        self.info.set_text(words.title, f"{op.formula}\n\n{words.text}")
        self.formula.setText(op.formula)
        self.what.set_enabled("parts", op.parts_rows != "one")
        self.what.set_enabled("positions", op.at_positions)
        self.show_statistics(shown)

    def show_statistics(self, shown: Shown) -> None:
        op = shown.op
        self.stats.set_parts(
            statistics(op), statistics(op, gap=" "), statistics(op, digits=2, gap=" "),
            statistics(op, digits=2, gap=" ", spread=False), *([statistics(op)[-1:]] if op.note else []),
        )  # fmt: skip

    def arrange(self, size: tuple[int, int], picture: int, *, large: bool, table: bool) -> None:
        """Lays out for a view of that width and height, whose picture is `picture` px wide."""
        theme, (width, height) = self._theme, size
        low, self.lowest = height < theme.px(LOW), height < theme.px(VERY_LOW)
        self.folded = self.lowest and not table and picture >= theme.px(STRIP)
        needed = QFontMetricsF(self.formula.font()).horizontalAdvance(self.formula.text()) + 24
        beside = low and needed + parts_width(theme, self.stats.shown()) <= width
        self._facts.setDirection(QBoxLayout.Direction.LeftToRight if beside else QBoxLayout.Direction.TopToBottom)
        self._facts.setSpacing(20 if beside else 3)
        said = not self.folded and (beside or not low or large)
        self.formula.setWordWrap(not beside)
        self.formula.setVisible(said)
        self.stats.setVisible(not self.folded)
        self.shape.setText(f"{self.formula.text()}   {self._shape}" if self.folded and large else self._shape)
        self._place_shape(width, in_head=low, formula=said)
        if self.shape.isHidden() and self.folded:
            self.shape.setText(self._shape)
            self._place_shape(width, in_head=low, formula=said)

    def restyle(self) -> None:
        """Fonts after the theme changed."""
        self.title.setFont(self._theme.font("title"))
        self.formula.setFont(self._theme.font("mono"))
        self.shape.setFont(self._theme.font("hint"))

    # inside

    def _lay_out(self) -> None:
        self._row = QHBoxLayout()
        self._row.setSpacing(GAP)
        for widget in (self.back, self.title, self.info, self.what, self.table_button):
            self._row.addWidget(widget, 1 if widget is self.title else 0)
        self._lead = QHBoxLayout()
        self._lead.setSpacing(20)
        self._lead.addWidget(self.formula, 1)
        self._facts = QBoxLayout(QBoxLayout.Direction.TopToBottom)
        self._facts.setSpacing(3)
        self._facts.addLayout(self._lead)
        self._facts.addWidget(self.stats, 1)
        self._in_head: bool | None = None
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(3)
        column.addLayout(self._row)
        column.addLayout(self._facts)

    def _place_shape(self, width: int, *, in_head: bool, formula: bool) -> None:
        """Beside the name where the formula has no line of its own, and only whole."""
        beside = [w for w in (self.back, self.info, self.table_button) if not w.isHidden()]
        taken = sum(widget.sizeHint().width() + GAP for widget in beside)
        name = QFontMetricsF(self.title.font()).horizontalAdvance(self.title.text()).__ceil__() + 2
        room = width - taken - GAP - self.what.sizeHint().width()
        shape = QFontMetricsF(self.shape.font()).horizontalAdvance(self.shape.text()).__ceil__() + 2
        if in_head != self._in_head:
            self._in_head = in_head
            self._lead.removeWidget(self.shape)
            self._row.removeWidget(self.shape)
            if in_head:
                self._row.insertWidget(2, self.shape, 1)
            else:
                self._lead.addWidget(self.shape)
        beside_name = in_head and room >= name + shape + 2 * GAP
        self.shape.setVisible(beside_name if in_head else formula)
        self.shape.setMinimumWidth(min(shape, width // 2) if not in_head else 0)
        least = taken + GAP + self.what.minimumSizeHint().width()
        self.title.setMaximumWidth(name if beside_name else QWIDGETSIZE_MAX)
        self.title.setMinimumWidth(max(min(name, width - least), 20))
