"""A line of many points is painted piece by piece: the same picture in a part of the time."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, Qt
from PySide6.QtGui import QColor, QImage, QPainter, QPen, QPolygonF

from app.widgets.stroke import MANY, stroke

SIZE = (400, 180)


def points(n: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    rng = np.random.default_rng(0)
    return np.linspace(10, 390, n), 90 + rng.normal(size=n) * 20


def pen(style: Qt.PenStyle = Qt.PenStyle.SolidLine) -> QPen:
    return QPen(QColor("white"), 1.6, style, Qt.PenCapStyle.RoundCap, Qt.PenJoinStyle.RoundJoin)


def painted(draw: Callable[[QPainter], None]) -> tuple[NDArray[np.float64], float]:
    """(h, w) how white each pixel is, 0 … 1, and seconds of this thread."""
    image = QImage(*SIZE, QImage.Format.Format_RGB32)
    image.fill(Qt.GlobalColor.black)
    painter = QPainter(image)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    begun = time.thread_time()
    draw(painter)
    took = time.thread_time() - begun
    painter.end()
    pixels = np.frombuffer(image.constBits(), np.uint8).reshape(SIZE[1], SIZE[0], 4)[..., 0]
    return pixels / 255, took


def at_once(painter: QPainter, n: int) -> None:
    painter.setPen(pen())
    painter.drawPolyline(
        QPolygonF([QPointF(a, b) for a, b in zip(*(each.tolist() for each in points(n)), strict=True)])
    )


@pytest.mark.parametrize("n", [2, MANY - 1, MANY, 760])
def test_the_picture_is_that_of_one_line(qapp: object, n: int) -> None:
    whole, _ = painted(lambda painter: at_once(painter, n))
    pieces, _ = painted(lambda painter: stroke(painter, *points(n), pen()))
    assert np.abs(whole - pieces).mean() < 0.02
    assert (np.abs(whole - pieces) > 0.6).mean() < 0.002


def test_it_takes_less_than_half_of_the_time(qapp: object) -> None:
    def ratio() -> float:
        _, ours = painted(lambda painter: stroke(painter, *points(760), pen()))
        _, theirs = painted(lambda painter: at_once(painter, 760))
        return ours / theirs

    assert float(np.median([ratio() for _ in range(7)])) < 0.5


def test_a_dashed_line_of_many_points_has_gaps_along_x(qapp: object) -> None:
    dashed, _ = painted(lambda painter: stroke(painter, *points(760), pen(Qt.PenStyle.DashLine)))
    solid, _ = painted(lambda painter: stroke(painter, *points(760), pen()))
    empty = dashed[:, 15:385].max(axis=0) < 0.5
    assert 0.05 < empty.mean() < 0.4
    assert not (solid[:, 15:385].max(axis=0) < 0.5).any()
