"""A decoder's drawing in a low, wide place: the stream goes to the right, the branches of a block stand over it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QPointF, QRectF, QSizeF

if TYPE_CHECKING:
    from collections.abc import Callable

    from app.widgets.block_drawing import Branch, Op, Outline

Laid = tuple[list[tuple[QRectF, "Op"]], list[list[QPointF]], list[QPointF], QRectF]
"""Boxes, wires (the last point is an arrow's), the places of sums, and the frame of the block."""
GAP, WIDE_GAP = 12.0, 22.0
SPARE = 6.0
"""Px between what stands over one another."""
LOWEST, LOW, HIGHEST = 36.0, 28.0, 58.0
"""Px of height at 100 % text of a box: with two lines, with one where branches stand over one another, at most."""


def flat_height(outline: Outline) -> float:
    """Px at 100 % text that all of it needs."""
    return (_most(outline) + 1) * (_low(outline) + SPARE) + 2 * SPARE


def flat_width(outline: Outline, need: Callable[[Op], float], scale: float) -> float:
    """Px that all of it needs; `need`: px of a box."""
    return sum(_widths(outline, need)) + _gaps(outline) * GAP * scale + 4


def lay_flat(outline: Outline, need: Callable[[Op], float], room: QSizeF, scale: float, radius: float) -> Laid:
    """Where everything is; `radius`: of a sum, px."""
    width, height = room.width(), room.height()
    needed, count = sum(_widths(outline, need)), _gaps(outline)
    gap = min(max((width - 4 - needed) / (3 * count), GAP * scale), WIDE_GAP * scale)
    stretch = max((width - 4 - gap * count) / needed, 1.0)
    most = _most(outline)
    low, high = _low(outline) * scale, HIGHEST * scale
    on = min(max((height - 2 * SPARE) / (most + 1) - SPARE, low), high)
    stream = height - on / 2 - SPARE
    over = min((stream - radius - 2 * SPARE) / most - SPARE, high)
    boxes: list[tuple[QRectF, Op]] = []
    wires: list[list[QPointF]] = []
    sums: list[QPointF] = []
    x = last = 2.0

    def wide(op: Op) -> float:
        return need(op) * stretch

    def on_stream(op: Op) -> None:
        nonlocal x, last
        if boxes:
            wires.append([QPointF(last, stream), QPointF(x, stream)])
        boxes.append((QRectF(x, stream - on / 2, wide(op), on), op))
        last = x + wide(op)
        x = last + gap

    for op in outline.first:
        on_stream(op)
    left = x
    x += gap / 2
    for group in outline.groups:
        out, start = x, x + gap
        ends = [start + sum(map(wide, branch)) + gap * (len(branch) - 1) for branch in group]
        foot = max(ends) + gap
        for row, branch in enumerate(group):
            middle, at = 2 * SPARE + row * (over + SPARE) + over / 2, start
            wires.append([QPointF(out, stream), QPointF(out, middle), QPointF(at, middle)])
            for number, op in enumerate(branch):
                if number:
                    wires.append([QPointF(at - gap, middle), QPointF(at, middle)])
                boxes.append((QRectF(at, middle - over / 2, wide(op), over), op))
                at += wide(op) + gap
            wires.append([QPointF(at - gap, middle), QPointF(foot, middle), QPointF(foot, stream - radius)])
        wires.append([QPointF(last, stream), QPointF(foot - radius, stream)])
        sums.append(QPointF(foot, stream))
        last = foot + radius
        x = foot + gap
    frame = QRectF(left, 2, x - left, height - 4)
    x += gap / 2
    for op in outline.last:
        on_stream(op)
    return boxes, wires, sums, frame


def _widths(outline: Outline, need: Callable[[Op], float]) -> list[float]:
    """Px of the boxes beside one another; of branches over one another the longest counts."""
    longest = (max(group, key=lambda branch: sum(map(need, branch))) for group in outline.groups)
    row: list[Branch] = [outline.first, *longest, outline.last]
    return [need(op) for branch in row for op in branch]


def _gaps(outline: Outline) -> float:
    """How many gaps lie beside one another."""
    inner = sum(max(map(len, group)) + 2 for group in outline.groups)
    return len(outline.first) + inner + len(outline.last)


def _low(outline: Outline) -> float:
    return LOWEST if _most(outline) == 1 else LOW


def _most(outline: Outline) -> int:
    """Branches over one another."""
    return max(map(len, outline.groups), default=1)
