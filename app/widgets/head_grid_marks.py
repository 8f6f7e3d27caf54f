"""A measure of every head shown on its thumbnail: the cells no query may read are tinted by it, with a key."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRectF
from PySide6.QtGui import QColor, QFontMetricsF, QImage, QPainter

from app.widgets.ticks import short

if TYPE_CHECKING:
    from app.theme import Theme
    from app.widgets.heatmap_image import Colours
    from app.widgets.thumbnails import Pixels

LEAST_FREE = 0.2
"""Of a thumbnail's cells: where fewer are masked (stages before the mask), its upper right corner is tinted instead."""
KEY_LENGTH, KEY_THICKNESS, KEY_GAP = 72.0, 8.0, 3.0
LEAST_KEY, NOTE_GAP = 24.0, 12.0


def shares(metric: NDArray[np.float32]) -> NDArray[np.float32]:
    """(layers, heads) → the same as shares of the largest magnitude, 0 … 1; 0 where there is no value."""
    sizes = np.abs(np.nan_to_num(metric, nan=0.0, posinf=0.0, neginf=0.0))
    top = float(sizes.max(initial=0.0))
    return (sizes / top if top > 0 else np.zeros_like(sizes)).astype(np.float32)


def largest(metric: NDArray[np.float32]) -> float:
    """The largest magnitude, which marks are shares of."""
    return float(np.abs(np.nan_to_num(metric, nan=0.0)).max(initial=0.0))


def tints(masked: QColor, full: QColor, at: NDArray[np.float32]) -> Colours:
    """Colours from `masked` (0) to `full` (1) as uint32 0xffRRGGBB, of `at`'s shape."""
    ends = np.array([[c.red(), c.green(), c.blue()] for c in (masked, full)], dtype=np.float32)
    mixed = ends[0] + (ends[1] - ends[0]) * np.asarray(at, dtype=np.float32)[..., None]  # (..., 3)
    red, green, blue = np.moveaxis(np.rint(mixed).astype(np.uint32), -1, 0)
    found: Colours = np.uint32(0xFF000000) | red << np.uint32(16) | green << np.uint32(8) | blue
    return found


def tint(colours: Colours, pixels: Pixels, tint_of: Colours) -> None:
    """Paints `colours` (heads, h, w), drawn from `pixels` of the same shape, in each head's tint (heads,) where
    nothing can be read."""
    height, width = pixels.shape[1:]
    corner = np.arange(width)[None, :] / width - np.arange(height)[:, None] / height > 0.4
    free = pixels == 0  # (heads, h, w)
    where = np.where(free.mean(axis=(1, 2), keepdims=True) >= LEAST_FREE, free, corner)
    np.copyto(colours, tint_of[:, None, None], where=where)


def draw_key(painter: QPainter, theme: Theme, rect: QRectF, top: float, unit: str = "", note: str = "") -> None:
    """On one line from the left of `rect`: 0, the tints, the largest magnitude with its unit; at its right a note, if
    that has room."""
    colours, metrics = theme.palette, QFontMetricsF(painter.font())
    baseline = rect.center().y() + (metrics.ascent() - metrics.descent()) / 2
    painter.setPen(colours.secondary)
    painter.drawText(QPointF(rect.left(), baseline), "0")
    left = rect.left() + metrics.horizontalAdvance("0") + 6
    words = f"{short(top)} {unit}".rstrip()
    room = rect.right() - left - 6 - metrics.horizontalAdvance(words)
    noted = metrics.horizontalAdvance(note) + NOTE_GAP if note else 0.0
    if noted and noted + LEAST_KEY <= room:
        painter.drawText(QPointF(rect.right() - noted + NOTE_GAP, baseline), note)
        room -= noted
    length = max(LEAST_KEY, min(KEY_LENGTH * theme.text_scale, room))
    line = tints(colours.masked, colours.secondary, np.linspace(0, 1, 64, dtype=np.float32))
    image = QImage(line.data, len(line), 1, 4 * len(line), QImage.Format.Format_RGB32)
    painter.drawImage(QRectF(left, rect.center().y() - KEY_THICKNESS / 2, length, KEY_THICKNESS), image)
    painter.drawText(QPointF(left + length + 6, baseline), words)


def key_width(theme: Theme, top: float, unit: str) -> float:
    """Px of an upright key."""
    metrics = QFontMetricsF(theme.font("hint"))
    return max(KEY_THICKNESS, *(metrics.horizontalAdvance(words) for words in (short(top), unit)))


def draw_key_upright(painter: QPainter, theme: Theme, at: QPointF, top: float, unit: str = "") -> None:
    """The same from `at` down: the largest magnitude and its unit, the tints, 0."""
    colours, metrics = theme.palette, QFontMetricsF(painter.font())
    painter.setPen(colours.secondary)
    y = at.y()
    for words in (short(top), unit):
        if words:
            painter.drawText(QPointF(at.x(), y + metrics.ascent()), words)
            y += metrics.height()
    line = tints(colours.masked, colours.secondary, np.linspace(1, 0, 64, dtype=np.float32))
    image = QImage(line.data, 1, len(line), 4, QImage.Format.Format_RGB32)
    length = KEY_LENGTH * theme.text_scale
    painter.drawImage(QRectF(at.x(), y + KEY_GAP, KEY_THICKNESS, length), image)
    painter.drawText(QPointF(at.x(), y + 2 * KEY_GAP + length + metrics.ascent()), "0")
