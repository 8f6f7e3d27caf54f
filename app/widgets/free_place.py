"""Where a word beside a point of a plot lies on nothing else that is drawn there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRectF, QSizeF

Curve = tuple[NDArray[np.float32], NDArray[np.float32]]
"""x ascending and y of a drawn line, px, (n,) each; NaN where there is none."""
AWAY = (7.0, 5.0)
"""Px from the point to the word, across and along the height."""
CLEAR = 1.5


def free_place(at: QPointF, size: QSizeF, plot: QRectF, curves: Sequence[Curve]) -> QRectF | None:
    """The rectangle of `size` nearest to `at` that no curve crosses and that is inside `plot`; None: there is none."""
    for place in _places(at, size):
        if plot.contains(place) and not any(crosses(curve, place) for curve in curves):
            return place
    return None


def crosses(curve: Curve, place: QRectF) -> bool:
    """Whether a curve passes through a rectangle, or closer to it than it may."""
    x, y = curve
    seen = np.isfinite(y)
    x, y = x[seen], y[seen]
    left, right = place.left() - CLEAR, place.right() + CLEAR
    if not len(x) or x[-1] < left or x[0] > right:
        return False
    edges = np.interp([max(left, float(x[0])), min(right, float(x[-1]))], x, y)
    inside = np.concatenate([edges, y[(x > left) & (x < right)]])
    return bool(inside.min() <= place.bottom() + CLEAR and inside.max() >= place.top() - CLEAR)


def _places(at: QPointF, size: QSizeF) -> Iterable[QRectF]:
    """Right of the point before left of it, near before far, over it before under it, beside it last."""
    width, height = size.width(), size.height()
    for steps in (0.0, 0.5, 1.0, 1.5, 2.0):
        up, down = at.y() - AWAY[1] - height * (1 + steps), at.y() + AWAY[1] + height * steps
        for top in (up, down, at.y() - height / 2):
            yield QRectF(at.x() + AWAY[0], top, width, height)
        for top in (up, down, at.y() - height / 2):
            yield QRectF(at.x() - AWAY[0] - width, top, width, height)
