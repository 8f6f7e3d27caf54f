"""The lens's cells painted: a token in each where it has room, colours alone where it has not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QImage, QPainter

from app.widgets.lens_overlay import PADDING, Span, fitted

if TYPE_CHECKING:
    from app.widgets.lens_grid import LensGrid

STRIPE = 3.0
LIGHT = 0.179
"""Colours of more relative luminance than this (WCAG) stand out better against black than against white."""


def paint_cells(painter: QPainter, grid: LensGrid, depths: Span, positions: Span) -> None:
    """Those in sight, with a stripe where the token is the one that came next."""
    width, _ = grid.cell_size()
    if not grid.with_words:
        _paint_colours(painter, grid, depths, positions)
        return
    font = grid.theme.font("mono_small")
    metrics = QFontMetricsF(font)
    painter.setFont(font)
    room = width - PADDING - STRIPE - 3
    shown: dict[int, str] = {}
    for depth in range(*depths):
        for position in range(*positions):
            rect = grid.cell_rect(depth, position).adjusted(0, 0, -1, -1)
            token = int(grid.ids[depth, position])
            level = 0 if token < 0 else 1 + round(min(float(grid.p[depth, position]), 1.0) * 254)
            painter.fillRect(rect, QColor.fromRgb(int(grid.table[level])))
            if token < 0:
                continue
            painter.setPen(Qt.GlobalColor.black if grid.light[level] else Qt.GlobalColor.white)
            if grid.comes_true(depth, position):
                # On the cell and not at its edge, where it would be lost in the gap of one of the themes.
                painter.fillRect(rect.adjusted(2, 3, STRIPE + 2 - rect.width(), -3), painter.pen().color())
            if token not in shown:
                shown[token] = fitted(grid.words.get(token, ""), metrics, room)
            inside = rect.adjusted(PADDING + STRIPE, 0, 0, 0)
            painter.drawText(inside, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, shown[token])


def _paint_colours(painter: QPainter, grid: LensGrid, depths: Span, positions: Span) -> None:
    """The cells in sight as one picture."""
    part = (slice(*depths), slice(*positions))
    p = np.nan_to_num(np.minimum(grid.p[part], 1.0))
    levels = np.where(grid.ids[part] < 0, 0, 1 + np.rint(p * 254)).astype(np.int64)
    if not levels.size:
        return
    colours = np.ascontiguousarray(grid.table[levels[::-1]])
    height, width = colours.shape
    image = QImage(colours.data, width, height, 4 * width, QImage.Format.Format_RGB32)
    top, bottom = grid.cell_rect(depths[1] - 1, positions[0]), grid.cell_rect(depths[0], positions[1] - 1)
    painter.drawImage(QRectF(top.topLeft(), bottom.bottomRight()), image)
