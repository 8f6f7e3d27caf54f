"""The tour's pictures of single panels: each in a window of its own, with the example's data."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QPoint, QRect, Qt
from PySide6.QtGui import QBitmap, QColor, QRegion
from PySide6.QtWidgets import QWidget

if TYPE_CHECKING:
    from app.panels.base import Panel
    from app.tour.driver import Driver

SIZE, SMALL, LIST, GRID = (960, 600), (560, 350), (530, 420), (880, 440)
FEW = frozenset({"prompt", "timeline"})
"""Panels of few things, whose picture is smaller: larger they would be empty, and their text too small to read."""

SIZES = {**dict.fromkeys(FEW, SMALL), "sampling": LIST, "lens": GRID}
"""A list's names and figures are far apart where it is wide; a grid whose cells do not grow is, with the words of its
help, no higher than the screen of a small laptop."""
TELLING: Mapping[str, Callable[[Any], tuple[QWidget, ...]]] = {
    "attention": lambda panel: (panel.main,),
    "kv": lambda panel: (panel.grid.cards["growth"],),
    "rope": lambda panel: (panel.grid,),
    "feed_forward": lambda panel: (panel.map,),
    "block_walk": lambda panel: (panel.cards,),
    "lens": lambda panel: (panel.grid, panel.key),
    "model": lambda panel: (panel.grid.cards["drawing"],),
}
"""The figure of a panel that its help shows, where the picture of the whole is too wide for that."""
MARGIN, CLEAR = 8, 3
"""Px round a figure, as far as nothing else stands there; px from there on in which nothing does: a picture that is
written in fewer bytes smears it."""


def photograph(driver: Driver) -> None:
    """Every panel in each theme, also those behind another tab: `panel-ID-THEME.png`; and where the figure lies in each
    that its help shows: `telling.json`."""
    found = {}
    for name, dock in driver.window.docks.items():
        dock.raise_()
        dock.toggle_floating()
        dock.resize(*SIZES.get(name, SIZE))
        driver.wait(dock.panel.seen, f"showing the panel {name}")
        _wait_for(driver, dock.panel)
        driver.picture(f"panel-{name}", dock)
        if name in TELLING:
            ground = driver.application.ctx.theme.palette.panel if driver.application.ctx else QColor()
            found[name] = figure_in(dock, TELLING[name](dock.panel), ground).getRect()
        dock.toggle_floating()
        driver.settle(100)
    path = driver.out / "telling.json"
    path.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    driver.files.append(path)


def figure_in(whole: QWidget, widgets: Sequence[QWidget], ground: QColor) -> QRect:
    """What is drawn in `widgets`, in px of `whole`, with some of the empty `ground` round it: nothing crosses its edge
    unless it is cut on the screen too."""
    image = whole.grab().toImage()
    mask = image.createMaskFromColor(ground.rgb(), Qt.MaskMode.MaskInColor)  # white: a bitmap's nothing
    drawn = QRegion(QBitmap.fromImage(mask))
    places = QRect()
    for widget in widgets:
        places = places.united(QRect(widget.mapTo(whole, QPoint()), widget.size()))
    inner = drawn.intersected(places).boundingRect()
    for margin in range(MARGIN, 0, -1):
        outer = inner.adjusted(-margin, -margin, margin, margin)
        kept = QRegion(outer.adjusted(-CLEAR, -CLEAR, CLEAR, CLEAR)).subtracted(QRegion(inner))
        if whole.rect().contains(outer) and not drawn.intersects(kept):
            return outer
    return inner


def _wait_for(driver: Driver, panel: Panel) -> None:
    """Until what the panel asked for has come and is drawn, and has stayed so."""
    for _ in range(2):
        driver.settle()
        driver.wait(lambda: panel.settled, f"drawing the panel {panel.panel_id}")
