"""What lies over the lens's cells and beside them: frames, the tokens at the top, the depths at the left."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QFontMetricsF, QPainter, QPen

from app.i18n import tr
from app.widgets.cell_frame import ROOM_INSIDE, draw_frame
from app.widgets.lens_sizes import CELL_WIDTH, WORD_WIDTH

if TYPE_CHECKING:
    from app.widgets.lens_grid import LensGrid

PADDING = 4.0
Span = tuple[int, int]


def paint_overlay(painter: QPainter, grid: LensGrid, area: QRectF, depths: Span, positions: Span) -> None:
    """Over the cells that fill `area`, of `depths` and `positions` in sight."""
    if grid.awaited:
        _paint_awaited(painter, grid, area, depths, positions)
    painter.save()
    painter.setClipRect(area.adjusted(-1, -1, 1, 1))  # a frame is as thick at the outer cells
    _paint_frames(painter, grid, depths, positions)
    painter.restore()
    painter.setRenderHint(QPainter.RenderHint.TextAntialiasing)
    _paint_axis(painter, grid, positions)
    _paint_depths(painter, grid, depths)
    if grid.hasFocus():
        painter.setPen(QPen(grid.theme.palette.accent, 1))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawRect(area.adjusted(0.5, 0.5, -1, -1))


def awaited_words(grid: LensGrid, depths: Span, positions: Span) -> tuple[str, QRectF] | None:
    """What is said of the layers in sight of which not all is here, and over which cells; None where there are none."""
    unknown = grid.ids[slice(*depths), slice(*positions)] < 0  # (depths, rising; positions)
    found = np.flatnonzero(unknown.any(1))
    if not len(found):
        return None
    groups = np.split(found, np.flatnonzero(np.diff(found) > 1) + 1)
    rows = max(groups, key=lambda group: int(unknown[group].sum()))
    across = np.flatnonzero(unknown[rows].any(0))
    top = grid.cell_rect(depths[0] + int(rows[-1]), positions[0] + int(across[0]))
    bottom = grid.cell_rect(depths[0] + int(rows[0]), positions[0] + int(across[-1]))
    return tr("computing layers, {n} to come …", n=len(found)), QRectF(top.topLeft(), bottom.bottomRight())


def _paint_awaited(painter: QPainter, grid: LensGrid, area: QRectF, depths: Span, positions: Span) -> None:
    """On a plate in the middle of the empty cells."""
    found = awaited_words(grid, depths, positions)
    if found is None:
        return
    words, cells = found
    metrics = QFontMetricsF(grid.theme.font("ui"))
    plate = QRectF(0, 0, min(metrics.horizontalAdvance(words) + 20, area.width() - 4), metrics.height() + 6)
    plate.moveCenter(cells.center())
    plate.moveLeft(max(min(plate.left(), area.right() - plate.width() - 2), area.left() + 2))
    plate.moveTop(max(min(plate.top(), area.bottom() - plate.height()), area.top()))
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(QPen(grid.theme.palette.line, 1))
    painter.setBrush(grid.theme.palette.panel)
    painter.drawRoundedRect(plate, 6, 6)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing, on=False)
    painter.setFont(grid.theme.font("ui"))
    painter.setPen(grid.theme.palette.secondary)
    painter.drawText(plate, Qt.AlignmentFlag.AlignCenter, words)


def _paint_frames(painter: QPainter, grid: LensGrid, depths: Span, positions: Span) -> None:
    colours = grid.theme.palette
    painter.setBrush(Qt.BrushStyle.NoBrush)
    if grid.linked is not None and grid.linked in range(*positions):
        painter.setPen(QPen(colours.cursor, 1))
        top, bottom = grid.cell_rect(grid.n_depths - 1, grid.linked), grid.cell_rect(0, grid.linked)
        painter.drawRect(QRectF(top.topLeft(), bottom.bottomRight()).adjusted(0.5, 0.5, -1.5, -1.5))
    for cell, chosen in ((grid.chosen, True), (grid.hovered, False)):
        if cell is not None and cell[0] in range(*depths) and cell[1] in range(*positions):
            rect, inside = grid.cell_rect(*cell), min(grid.cell_size()) >= ROOM_INSIDE
            # Cells stand 1 px apart in the panel's colour: the outline lies there, and the white on the cell.
            rect = rect.adjusted(1, 1, -2, -2) if inside else rect.adjusted(-0.5, -0.5, -0.5, -0.5)
            draw_frame(painter, colours, rect, chosen=chosen)


def axis_labels(grid: LensGrid, positions: Span) -> list[tuple[int, QRectF, str]]:
    """The tokens at the top that have room: position, place and text, cut where the next one begins. One that the edge
    would cut is left out. Where not every column has a label, those that are pointed at or chosen have theirs, and the
    others stay clear of them."""
    pointed, (width, _) = grid.hovered or grid.chosen, grid.cell_size()
    step = max(1, int(np.ceil(grid.theme.px(CELL_WIDTH) * WORD_WIDTH / width)))
    edge, free = float(grid.viewport().width()), grid.side_room
    found = _named_labels(grid, positions, width * step - 2 * PADDING) if step > 1 else []
    named, taken = {position for position, _, _ in found}, [_spaced(room) for _, room, _ in found]
    for position in range(-(-positions[0] // step) * step, positions[1], step):
        if position in named:
            continue
        bold = position in {pointed[1] if pointed else None, grid.linked}
        metrics = QFontMetricsF(grid.theme.font("mono_small", bold=bold))
        share = width * step - 2 * PADDING
        room = QRectF(grid.cell_rect(0, position).left() + PADDING, 0, share, grid.head_room)
        needed = metrics.horizontalAdvance(grid.axis[position])
        if position + step >= grid.n_positions:  # none follows: it ends at the edge, and begins before its cell
            room.setRight(edge)
            room.setLeft(min(room.left(), max(edge - needed - 1, free)))
        room.setRight(min(room.right(), edge))
        drawn = QRectF(room.left(), 0, min(needed, room.width()), room.height())
        if room.width() + 0.5 >= min(needed, share) and not any(drawn.intersects(other) for other in taken):
            text = metrics.elidedText(grid.axis[position], Qt.TextElideMode.ElideRight, room.width())
            found.append((position, room, text))
            free = drawn.right() + PADDING
    return sorted(found, key=lambda label: label[0])


def _named_labels(grid: LensGrid, positions: Span, most: float) -> list[tuple[int, QRectF, str]]:
    """Labels at most so many px wide of the columns pointed at here, chosen, pointed at elsewhere, in that order: one
    that would lie on another is left out."""
    cells, pointed = (grid.hovered, grid.chosen), grid.hovered or grid.chosen
    found: list[tuple[int, QRectF, str]] = []
    for position in dict.fromkeys([*(cell[1] for cell in cells if cell is not None), grid.linked]):
        if position is None or position not in range(*positions):
            continue
        bold = position in {pointed[1] if pointed else None, grid.linked}
        metrics = QFontMetricsF(grid.theme.font("mono_small", bold=bold))
        text = metrics.elidedText(grid.axis[position], Qt.TextElideMode.ElideRight, most)
        needed = metrics.horizontalAdvance(text) + 1
        left = min(grid.cell_rect(0, position).left() + PADDING, grid.viewport().width() - needed)
        room = QRectF(max(left, grid.side_room), 0, needed, grid.head_room)
        if not any(_spaced(other).intersects(room) for _, other, _ in found):
            found.append((position, room, text))
    return found


def _spaced(room: QRectF) -> QRectF:
    """A label with what stays free beside it."""
    return room.adjusted(-PADDING, 0, PADDING, 0)


def _paint_axis(painter: QPainter, grid: LensGrid, positions: Span) -> None:
    colours, pointed = grid.theme.palette, grid.hovered or grid.chosen
    painter.setClipRect(QRectF(grid.side_room, 0, grid.viewport().width(), grid.head_room))
    for position, room, text in axis_labels(grid, positions):
        bold = position in {pointed[1] if pointed else None, grid.linked}
        generated = grid.first_decode is not None and position >= grid.first_decode
        painter.setFont(grid.theme.font("mono_small", bold=bold))
        painter.setPen(colours.text if bold else colours.amber if generated else colours.secondary)
        painter.drawText(room, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, text)
    painter.setClipping(False)


def _paint_depths(painter: QPainter, grid: LensGrid, depths: Span) -> None:
    colours, (_, height) = grid.theme.palette, grid.cell_size()
    pointed = grid.hovered or grid.chosen
    metrics = QFontMetricsF(grid.theme.font("hint"))
    step = max(1, int(np.ceil(metrics.height() / height)))
    painter.setClipRect(QRectF(0, grid.head_room, grid.side_room, grid.viewport().height()))
    for depth in range(*depths):
        ends = depth in (0, grid.n_depths - 1)
        if not ends and ((depth - 1) % step or min(depth, grid.n_depths - 1 - depth) < step):
            continue
        bold = pointed is not None and pointed[0] == depth
        painter.setFont(grid.theme.font("hint", bold=bold))
        painter.setPen(colours.text if bold else colours.secondary)
        rect = grid.cell_rect(depth, 0)
        y = rect.center().y() - metrics.height() / 2
        if height < metrics.height():  # lines are lower than a name: the outer ones must not be cut
            y = max(min(y, grid.viewport().height() - metrics.height()), grid.head_room)
        room = QRectF(0, y, grid.side_room - 6, metrics.height())
        painter.drawText(room, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignRight, grid.depth_name(depth))
    painter.setClipping(False)


def fitted(word: str, metrics: QFontMetricsF, room: float) -> str:
    """A token in the room of a cell: whole; the code of one that draws nothing without U+; else its beginning."""
    code = f"⟨{word[3:]}" if word.startswith("⟨U+") and word.endswith("⟩") else word
    if metrics.horizontalAdvance(code) <= room < metrics.horizontalAdvance(word):
        return code
    return metrics.elidedText(word, Qt.TextElideMode.ElideRight, room)
