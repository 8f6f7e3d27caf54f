"""The ⓘ of a panel: a button that opens a short explanation beside it, with a picture where there is one."""

from __future__ import annotations

import json
from functools import cache
from typing import TYPE_CHECKING

from PySide6.QtCore import QPoint, QPointF, QRect, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QKeyEvent, QPainter, QPaintEvent, QPen, QPixmap
from PySide6.QtWidgets import QAbstractButton, QFrame, QHBoxLayout, QLabel, QScrollArea, QVBoxLayout, QWidget

from app import resources
from app.i18n import tr

if TYPE_CHECKING:
    from app.theme import Theme

SIZE = 22
WIDTH, WIDTH_WITH_PICTURE = 340, 592
MARGIN = 16
LEAST_SCALE, LEAST_TEXT = 0.7, 220
"""Of a picture that has not the height; px at 100 % text of words that have a picture beside them."""


@cache
def telling() -> dict[str, list[int]]:
    """Of a panel's picture the figure that is shown: left, top, width, height, px. A picture of a panel that is not
    among them is shown whole. app/tour/panels.py finds them."""
    found: dict[str, list[int]] = json.loads(resources.text("panels/telling.json"))
    return found


class InfoPopup(QFrame):
    """A title and paragraphs of plain text, under them or, where it is narrow, beside them `picture`, as large as it
    was taken or as there is room for; closes on Esc or a click outside. `room`: px of height there are."""

    def __init__(
        self, theme: Theme, title: str, text: str, parent: QWidget, picture: QPixmap | None = None, *, room: int = 800
    ) -> None:
        super().__init__(parent, Qt.WindowType.Popup)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setAccessibleName(title)
        self._theme = theme
        self._content = QWidget()
        self._content.setAutoFillBackground(False)
        column = self._column = QVBoxLayout(self._content)
        column.setContentsMargins(MARGIN, 12, MARGIN, 14)
        column.setSpacing(8)
        for index, paragraph in enumerate([title, *text.split("\n\n")]):
            label = QLabel(paragraph, self._content)
            label.setTextFormat(Qt.TextFormat.PlainText)
            label.setWordWrap(True)
            label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
            label.setFont(theme.font("ui" if index else "title"))
            column.addWidget(label)
        self.setFixedWidth(max(WIDTH_WITH_PICTURE if picture else WIDTH, theme.px(WIDTH)))
        if picture:
            self._add_picture(picture, title, room)
        scroller = self._scroller = QScrollArea()
        scroller.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        scroller.setFrameShape(QFrame.Shape.NoFrame)
        scroller.setWidgetResizable(True)
        scroller.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        scroller.setWidget(self._content)
        scroller.viewport().setAutoFillBackground(False)
        self._content.setAutoFillBackground(False)
        outer = QVBoxLayout(self)
        outer.setContentsMargins(1, 1, 1, 1)
        outer.addWidget(scroller)

    def fit(self, room: int) -> None:
        """As high as its words, up to `room` px; more is scrolled."""
        self.ensurePolished()
        self._content.ensurePolished()
        self.resize(self.width(), min(self._column.totalHeightForWidth(self.width() - 2) + 2, room))

    def _add_picture(self, picture: QPixmap, title: str, room: int) -> None:
        ratio, column = self.devicePixelRatioF(), self._column
        image, words = QLabel(self._content), QLabel(tr("With the default model and its example."), self._content)
        image.setAccessibleName(tr("A picture of the panel: {title}", title=title))
        words.setProperty("role", "hint")
        beside = self.width() - 3 * MARGIN - picture.width() >= self._theme.px(LEAST_TEXT)
        if beside:
            row, text = QHBoxLayout(), QVBoxLayout()
            row.setSpacing(MARGIN)
            while (item := column.takeAt(1)) is not None:
                text.addItem(item)
            text.addStretch(1)
            row.addLayout(text, 1)
            row.addWidget(image, 0, Qt.AlignmentFlag.AlignTop)
            column.addLayout(row)
        else:
            column.addWidget(image)
        column.addWidget(words)
        self.ensurePolished()
        self._content.ensurePolished()
        high = room - (0 if beside else column.totalHeightForWidth(self.width() - 2) + 2)
        scale = min(1.0, (self.width() - 2 * MARGIN) / picture.width(), max(high / picture.height(), LEAST_SCALE))
        size = (picture.size().toSizeF() * scale * ratio).toSize()
        scaled = (
            picture.scaled(size, mode=Qt.TransformationMode.SmoothTransformation) if scale * ratio != 1 else picture
        )
        scaled.setDevicePixelRatio(ratio)
        image.setPixmap(scaled)

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.fillRect(self.rect(), self._theme.palette.raised)
        painter.setPen(QPen(self._theme.palette.line, 1))
        painter.drawRect(QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_Escape, Qt.Key.Key_Return, Qt.Key.Key_Space):
            self.close()
        else:
            self._scroller.verticalScrollBar().event(event)  # arrows and pages


class InfoButton(QAbstractButton):
    """`text`: paragraphs separated by empty lines; shown as written, never as markup. `panel`: the id of the panel it
    explains, whose picture is shown too."""

    def __init__(self, theme: Theme, title: str, text: str, parent: QWidget | None = None, *, panel: str = "") -> None:
        super().__init__(parent)
        self._theme = theme
        self.setAttribute(Qt.WidgetAttribute.WA_Hover)
        self._restyle()
        self.set_text(title, text, panel=panel)
        self.clicked.connect(self.open)
        theme.changed.connect(self._restyle)

    def set_text(self, title: str, text: str, *, panel: str = "") -> None:
        self._title, self._text, self._panel = title, text, panel
        self.setAccessibleName(tr("What is shown here: {title}", title=title))
        self.setToolTip(tr("What is shown here"))

    def open(self) -> InfoPopup:
        """Opens the explanation under the button, inside the screen; over it where there is no room for that: what it
        explains stays in sight."""
        available = self.screen().availableGeometry()
        room = available.height() - 16
        popup = InfoPopup(self._theme, self._title, self._text, self, self._picture(), room=room)
        popup.fit(room)
        corner = self.mapToGlobal(QPoint(self.width(), self.height() + 4)) - QPoint(popup.width(), 0)
        corner.setX(max(available.left(), min(corner.x(), available.right() - popup.width())))
        over = self.mapToGlobal(QPoint(0, -4)).y() - popup.height()
        if corner.y() > available.bottom() - popup.height() and over >= available.top():
            corner.setY(over)
        corner.setY(max(available.top(), min(corner.y(), available.bottom() - popup.height())))
        popup.move(corner)
        popup.show()
        return popup

    def _picture(self) -> QPixmap | None:
        """The panel's picture in the theme in force; packaging/pictures.py makes them all again."""
        if not self._panel:
            return None
        picture = QPixmap()
        picture.loadFromData(resources.data(f"panels/{self._panel}-{'dark' if self._theme.dark else 'light'}.webp"))
        if picture.isNull():
            return None  # a Qt without WebP
        part = telling().get(self._panel)
        return picture.copy(QRect(*part)) if part else picture

    def sizeHint(self) -> QSize:
        return QSize(self._theme.px(SIZE), self._theme.px(SIZE))

    def _restyle(self) -> None:
        self.setFixedSize(self.sizeHint())
        self.update()

    def paintEvent(self, _event: QPaintEvent) -> None:
        colours = self._theme.palette
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        colour: QColor = colours.accent if self.hasFocus() else colours.text if self.underMouse() else colours.secondary
        painter.setPen(QPen(colour, 1.2))
        painter.translate(QRectF(self.rect()).center())
        painter.scale(self._theme.text_scale, self._theme.text_scale)
        centre = QPointF()
        painter.drawEllipse(centre, 6.5, 6.5)
        painter.drawLine(centre + QPointF(0, -0.5), centre + QPointF(0, 3.5))
        painter.setBrush(colour)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.drawEllipse(QRectF(centre.x() - 0.9, centre.y() - 4, 1.8, 1.8))
