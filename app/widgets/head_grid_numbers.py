"""The numbers of layers and heads around their thumbnails, and brackets over the heads that share a KV head."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QFontMetricsF, QPainter, QPen

from app.i18n import tr
from app.widgets.head_grid_layout import named_layers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from app.theme import Theme
    from app.widgets.head_grid_layout import GridLayout

APART = 4.0
"""Px at least between the figures of one layer's number and the next one's."""


def number_pitch(metrics: QFontMetricsF) -> float:
    """Px from one layer to the next with which each has its number."""
    return metrics.capHeight() + APART


def header_height(metrics: QFontMetricsF, *, grouped: bool) -> float:
    """Px of the heads' numbers and of the brackets over them."""
    return math.ceil(metrics.height() + 1 + (metrics.height() if grouped else 0.0))


def draw_layer_numbers(
    painter: QPainter, theme: Theme, layout: GridLayout, offset: QPointF, layers: Sequence[int], chosen: int
) -> None:
    """At the left of the layers in sight."""
    metrics = QFontMetricsF(painter.font())
    for layer in named_layers(layout, layers, chosen, least=number_pitch(metrics)):
        rect = layout.rect(layer, 0).translated(-offset)
        painter.setPen(theme.palette.text if layer == chosen else theme.palette.secondary)
        left = rect.left() - layout.left
        place = QRectF(left, rect.center().y() - metrics.height() / 2, layout.left - 6, metrics.height())
        painter.drawText(place, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter, str(layer))


def draw_header(painter: QPainter, theme: Theme, layout: GridLayout, offset: QPointF, chosen: int) -> None:
    """Over every stack of layers."""
    painter.setRenderHint(QPainter.RenderHint.Antialiasing, on=False)
    for stack in range(layout.stacks):
        at = offset - QPointF(stack * layout.apart, 0)
        if layout.group > 1:
            _draw_brackets(painter, theme, layout, at)
        _draw_head_numbers(painter, theme, layout, at, chosen)


def _draw_brackets(painter: QPainter, theme: Theme, layout: GridLayout, offset: QPointF) -> None:
    metrics = QFontMetricsF(painter.font())
    for first in range(0, layout.shape[1], layout.group):
        start = layout.rect(0, first).left() - offset.x()
        end = layout.rect(0, first + layout.group - 1).right() - offset.x() - 1
        middle, y = (start + end) / 2, round(layout.key + metrics.height() / 2) + 0.0
        text = tr("KV {n}", n=first // layout.group)
        if metrics.horizontalAdvance(text) > end - start - 16:
            text = str(first // layout.group)
        half = metrics.horizontalAdvance(text) / 2 + 3
        painter.setPen(QPen(theme.palette.secondary, 1))
        if 2 * half <= end - start - 4:  # the name stands in its bracket, which takes no line of its own
            left, right = QPointF(middle - half, y), QPointF(middle + half, y)
            painter.drawPolyline([QPointF(start, y + 4), QPointF(start, y), left])
            painter.drawPolyline([right, QPointF(end, y), QPointF(end, y + 4)])
            baseline = y + (metrics.ascent() - metrics.descent()) / 2
            painter.drawText(QPointF(middle - half + 3, baseline), text)
        else:
            painter.drawPolyline([QPointF(start, y + 4), QPointF(start, y), QPointF(end, y), QPointF(end, y + 4)])


def _draw_head_numbers(painter: QPainter, theme: Theme, layout: GridLayout, offset: QPointF, chosen: int) -> None:
    """As far as they fit."""
    metrics, heads = QFontMetricsF(painter.font()), layout.shape[1]
    y = layout.header - metrics.descent() - 1
    widest = metrics.horizontalAdvance(str(heads - 1)) + 3
    every = max(1, -(-int(widest) // max(int(layout.step), 1)))
    for head in range(heads):
        if head % every and head != chosen:
            continue
        rect = layout.rect(0, head).translated(-offset)
        painter.setPen(theme.palette.text if head == chosen else theme.palette.secondary)
        painter.drawText(QPointF(rect.center().x() - metrics.horizontalAdvance(str(head)) / 2, y), str(head))
