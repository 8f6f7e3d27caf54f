"""The ⓘ of a panel: a button that opens a short explanation beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QPoint, QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QKeyEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QAbstractButton, QFrame, QLabel, QVBoxLayout, QWidget

from app.i18n import tr

if TYPE_CHECKING:
    from app.theme import Theme

SIZE = 22
WIDTH = 340


class InfoPopup(QFrame):
    """A title and paragraphs of plain text; closes on Esc or a click outside."""

    def __init__(self, theme: Theme, title: str, text: str, parent: QWidget) -> None:
        super().__init__(parent, Qt.WindowType.Popup)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setAccessibleName(title)
        self._theme = theme
        column = QVBoxLayout(self)
        column.setContentsMargins(16, 12, 16, 14)
        column.setSpacing(8)
        for index, paragraph in enumerate([title, *text.split("\n\n")]):
            label = QLabel(paragraph, self)
            label.setTextFormat(Qt.TextFormat.PlainText)
            label.setWordWrap(True)
            label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
            font = theme.font("ui")
            font.setBold(index == 0)
            label.setFont(font)
            column.addWidget(label)
        self.setFixedWidth(WIDTH)

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.fillRect(self.rect(), self._theme.palette.raised)
        painter.setPen(QPen(self._theme.palette.line, 1))
        painter.drawRect(QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_Escape, Qt.Key.Key_Return, Qt.Key.Key_Space):
            self.close()


class InfoButton(QAbstractButton):
    """`text`: paragraphs separated by empty lines; shown as written, never as markup."""

    def __init__(self, theme: Theme, title: str, text: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self.setAttribute(Qt.WidgetAttribute.WA_Hover)
        self.setFixedSize(SIZE, SIZE)
        self.set_text(title, text)
        self.clicked.connect(self.open)
        theme.changed.connect(self.update)

    def set_text(self, title: str, text: str) -> None:
        self._title, self._text = title, text
        self.setAccessibleName(tr("What is shown here: {title}", title=title))
        self.setToolTip(tr("What is shown here"))

    def open(self) -> InfoPopup:
        """Opens the explanation under the button, inside the screen."""
        popup = InfoPopup(self._theme, self._title, self._text, self)
        popup.adjustSize()
        corner = self.mapToGlobal(QPoint(self.width(), self.height() + 4)) - QPoint(popup.width(), 0)
        available = self.screen().availableGeometry()
        corner.setX(max(available.left(), min(corner.x(), available.right() - popup.width())))
        corner.setY(max(available.top(), min(corner.y(), available.bottom() - popup.height())))
        popup.move(corner)
        popup.show()
        return popup

    def sizeHint(self) -> QSize:
        return QSize(SIZE, SIZE)

    def paintEvent(self, _event: QPaintEvent) -> None:
        colours = self._theme.palette
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        colour: QColor = colours.accent if self.hasFocus() else colours.text if self.underMouse() else colours.secondary
        painter.setPen(QPen(colour, 1.2))
        centre = QRectF(self.rect()).center()
        painter.drawEllipse(centre, 6.5, 6.5)
        painter.drawLine(centre + QPointF(0, -0.5), centre + QPointF(0, 3.5))
        painter.setBrush(colour)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.drawEllipse(QRectF(centre.x() - 0.9, centre.y() - 4, 1.8, 1.8))
