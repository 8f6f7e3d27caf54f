"""What stands over the large picture of an operation: its name, formula, shape and statistics, and what to draw."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QFont, QFontMetricsF
from PySide6.QtWidgets import QBoxLayout, QHBoxLayout, QLabel, QPushButton, QVBoxLayout, QWidget

from app.i18n import tr
from app.panels.block_walk_words import formula_text, shape_words, statistics
from app.widgets.elided_label import ElidedLabel
from app.widgets.folding_segmented import FoldingSegmented
from app.widgets.info_button import InfoButton
from app.widgets.readout import Part, Readout, parts_width

if TYPE_CHECKING:
    from app.panels.block_walk_cell import Shown
    from app.theme import Theme
    from model.protocol.walk_requests import WalkOp

LOW, VERY_LOW = 240, 150
"""Px at 100 % text of the view: under the first the formula stands beside the statistics, or is left to the card; under
the second the picture needs the statistics' line as well."""
STRIP = 480
"""Px at 100 % text of a picture whose own line has room for the statistics beside its colours."""
GAP, LEAST_WIDTH, MORE_LINES = 6, 124, 6
QWIDGETSIZE_MAX = (1 << 24) - 1


class DetailHead(QWidget):
    """A name is never cut: where it is narrow, the shape goes to the formula's line and the switch folds to a list; and
    where that does not do, the buttons and then the switch have lines of their own under the name."""

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self._theme = theme
        self.folded = False
        """Whether the picture's own line has the statistics."""
        self.lowest = False
        self._name = self._formula = self._shape = ""
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
        self.more = [Readout(theme) for _ in range(MORE_LINES)]
        self._op: WalkOp | None = None
        self._width = 0
        for part in (self.formula, self.shape, self.stats, *self.more):  # until it is known how much room there is
            part.hide()
        self._lay_out()
        self.restyle()

    def show_op(self, shown: Shown) -> None:
        """Says what an operation is."""
        op, words = shown.op, shown.words
        self._name = words.title
        self.title.setText(words.title)
        self._shape = shape_words(op)
        self.info.set_text(words.title, f"{formula_text(op)}\n\n{words.text}")
        self._formula = formula_text(op)
        self.formula.setText(formula_text(op))
        self.what.set_enabled("parts", op.parts_rows != "one")
        self.what.set_enabled("positions", op.at_positions)
        self.show_statistics(shown)

    def show_statistics(self, shown: Shown) -> None:
        self._op = shown.op
        self._wrap_statistics()

    def show_line(self, parts: Sequence[Part]) -> None:
        """Says something else where the statistics are."""
        self._op = None
        self._wrap_statistics()
        self.stats.set_parts(parts)

    def arrange(self, size: tuple[int, int], picture: int, *, large: bool, table: bool) -> None:
        """Lays out for a view of that width and height, whose picture is `picture` px wide."""
        theme, (width, height) = self._theme, size
        self._width = width
        low, self.lowest = height < theme.px(LOW), height < theme.px(VERY_LOW)
        self.folded = self.lowest and not table and picture >= theme.px(STRIP)
        self._stack(self._level_for(width))
        self._wrap_statistics()
        needed = QFontMetricsF(self.formula.font()).horizontalAdvance(self._formula) + 24
        beside = low and needed + parts_width(theme, self.stats.shown()) <= width
        self._facts.setDirection(QBoxLayout.Direction.LeftToRight if beside else QBoxLayout.Direction.TopToBottom)
        self._facts.setSpacing(20 if beside else 3)
        said = not self.folded and (beside or not low or large)
        self.formula.setVisible(said)
        self.stats.setVisible(not self.folded)
        self.shape.setText(f"{self._formula}   {self._shape}" if self.folded and large else self._shape)
        room = width - self.info.sizeHint().width() - GAP
        alone = self._level > 0  # on lines of their own
        self.title.setText(_broken(self._name, self.title.font(), room) if alone else self._name)
        self.formula.setWordWrap(not beside and not alone)
        self.formula.setText(_broken(self._formula, self.formula.font(), width) if alone else self._formula)
        if alone:
            self.shape.setText(_broken(self.shape.text(), self.shape.font(), width))
        self._place_shape(width, in_head=low, formula=said)
        if self.shape.isHidden() and self.folded:
            self.shape.setText(self._shape)
            self._place_shape(width, in_head=low, formula=said)

    def restyle(self) -> None:
        """Fonts after the theme changed."""
        self.title.setFont(self._theme.font("title"))
        self.formula.setFont(self._theme.font("mono"))
        self.shape.setFont(self._theme.font("hint"))

    def _wrap_statistics(self) -> None:
        """Where the buttons have lines of their own the statistics have as many as they need, else one."""
        lines: list[list[Part]] = []
        op = self._op
        if op is not None and self._level > 0 and not self.folded:
            forms = [_wrapped(self._theme, statistics(op, digits=n, gap=""), self._width) for n in (3, 2)]
            lines = min(forms, key=len)
            self.stats.set_parts(lines[0])
        elif op is not None:
            self.stats.set_parts(
                statistics(op), statistics(op, gap=" "), statistics(op, digits=2, gap=" "),
                statistics(op, digits=2, gap=" ", spread=False), *([statistics(op)[-1:]] if op.note else []),
            )  # fmt: skip
        for index, readout in enumerate(self.more):
            readout.setVisible(index + 1 < len(lines))
            if index + 1 < len(lines):
                readout.set_parts(lines[index + 1])

    def minimumSizeHint(self) -> QSize:
        """As narrow as on lines of their own; as high as it is now."""
        rows = ((self.info,), (self._widest(self.back, self.table_button),), (self.what,))
        least = max(sum(widget.minimumSizeHint().width() for widget in row) for row in rows)
        return QSize(max(least, self._theme.px(LEAST_WIDTH)), super().minimumSizeHint().height())

    # inside

    def _lay_out(self) -> None:
        self._row, self._tools, self._last = QHBoxLayout(), QHBoxLayout(), QHBoxLayout()
        self._level = -1
        for row in (self._row, self._tools, self._last):
            row.setSpacing(GAP)
        self._lead = QBoxLayout(QBoxLayout.Direction.LeftToRight)
        self._lead.addWidget(self.formula, 1)
        self._facts = QBoxLayout(QBoxLayout.Direction.TopToBottom)
        self._facts.setSpacing(3)
        self._facts.addLayout(self._lead)
        self._facts.addWidget(self.stats, 1)
        self._in_head: bool | None = None
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(3)
        for part in (self._row, self._tools, self._last, self._facts):
            column.addLayout(part)
        for readout in self.more:
            column.addWidget(readout)
        self._stack(0)

    @staticmethod
    def _widest(*widgets: QWidget) -> QWidget:
        return max(widgets, key=lambda widget: widget.minimumSizeHint().width())

    def _level_for(self, width: int) -> int:
        """0: all on the name's line; 1: the buttons and the switch on the next; 2: the switch on one more."""
        buttons = [button for button in (self.back, self.table_button) if not button.isHidden()]
        tools = self.what.minimumSizeHint().width() + sum(button.sizeHint().width() + GAP for button in buttons)
        if width >= self._name_width() + self.info.sizeHint().width() + 2 * GAP + tools:
            return 0
        return 1 if width >= tools else 2

    def _name_width(self) -> int:
        return QFontMetricsF(self.title.font()).horizontalAdvance(self._name).__ceil__() + 2

    def _stack(self, level: int) -> None:
        if level == self._level:
            return
        self._level, self._in_head = level, None
        self._lead.setDirection(QBoxLayout.Direction.TopToBottom if level else QBoxLayout.Direction.LeftToRight)
        self._lead.setSpacing(3 if level else 20)
        rows = (self._row, self._tools, self._last)
        for row in rows:
            while row.count():
                row.takeAt(0)
        self._lead.removeWidget(self.shape)
        name, tools = (self.title, self.info), (self.back, self.what, self.table_button)
        placed: tuple[tuple[QWidget, ...], ...] = (
            ((self.back, *name, self.what, self.table_button),) if level == 0 else
            (name, tools) if level == 1 else (name, (self.back, self.table_button), (self.what,))
        )  # fmt: skip
        for row, widgets in zip(rows, placed, strict=False):
            for widget in widgets:
                row.addWidget(widget, 1 if widget is self.title else 0)
            if self.title not in widgets:
                row.addStretch(1)

    def _place_shape(self, width: int, *, in_head: bool, formula: bool) -> None:
        """Beside the name where the formula has no line of its own, and only whole."""
        all_on_it = self._level == 0
        there = (self.back, self.info, self.table_button) if all_on_it else (self.info,)
        taken = sum(widget.sizeHint().width() + GAP for widget in there if not widget.isHidden())
        name = self._name_width()
        room = width - taken - (GAP + self.what.sizeHint().width() if all_on_it else 0)
        shape = QFontMetricsF(self.shape.font()).horizontalAdvance(self.shape.text()).__ceil__() + 2
        if in_head != self._in_head:
            self._in_head = in_head
            self._lead.removeWidget(self.shape)
            self._row.removeWidget(self.shape)
            if in_head:
                self._row.insertWidget(self._row.indexOf(self.title) + 1, self.shape, 1)
            else:
                self._lead.addWidget(self.shape)
        beside_name = in_head and room >= name + shape + 2 * GAP
        self.shape.setVisible(beside_name if in_head else formula)
        self.shape.setMinimumWidth(min(shape, width // 2) if not in_head and all_on_it else 0)
        least = taken + (GAP + self.what.minimumSizeHint().width() if all_on_it else 0)
        self.title.setMaximumWidth(name if beside_name else QWIDGETSIZE_MAX)
        self.title.setMinimumWidth(max(min(name, width - least), 20))


def _broken(text: str, font: QFont, room: float) -> str:
    """A text in lines of `room` px, broken between words."""
    metrics, lines = QFontMetricsF(font), [""]
    for word in text.split(" "):
        longer = f"{lines[-1]} {word}" if lines[-1] else word
        if lines[-1] and metrics.horizontalAdvance(longer) > room:
            lines.append(word)
        else:
            lines[-1] = longer
    return "\n".join(lines)


def _wrapped(theme: Theme, parts: Sequence[Part], width: float) -> list[list[Part]]:
    """Names with their figures, none parted from its own, in lines of `width` px."""
    groups: list[list[Part]] = []
    for part in parts:
        if part[0] and part[1] == "strong":
            groups[-1].append(part)
        elif part[1] == "accent":
            groups += [[(word, "accent")] for word in part[0].split(" ")]
        elif part[0]:
            groups.append([part])
    lines: list[list[Part]] = []
    for group in groups:
        longer = [*lines[-1], (" ", "text"), *group] if lines else group
        if lines and parts_width(theme, longer) <= width:
            lines[-1] = longer
        else:
            lines.append(group)
    return lines
