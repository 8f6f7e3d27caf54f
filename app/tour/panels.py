"""The tour's pictures of single panels: each in a window of its own, with the example's data."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from app.panels.base import Panel
    from app.tour.driver import Driver

SIZE, SMALL, LIST = (960, 600), (560, 350), (530, 420)
FEW = frozenset({"prompt", "timeline"})
"""Panels of few things, whose picture is smaller: larger they would be empty, and their text too small to read."""

SIZES = {**dict.fromkeys(FEW, SMALL), "sampling": LIST}
"""A list's names and figures are far apart where it is wide."""


def photograph(driver: Driver) -> None:
    """Every panel in each theme, also those behind another tab: `panel-ID-THEME.png`."""
    for name, dock in driver.window.docks.items():
        dock.raise_()
        dock.toggle_floating()
        dock.resize(*SIZES.get(name, SIZE))
        driver.wait(dock.panel.seen, f"showing the panel {name}")
        _wait_for(driver, dock.panel)
        driver.picture(f"panel-{name}", dock)
        dock.toggle_floating()
        driver.settle(100)


def _wait_for(driver: Driver, panel: Panel) -> None:
    """Until what the panel asked for has come and is drawn, and has stayed so."""
    for _ in range(2):
        driver.settle()
        driver.wait(lambda: panel.settled, f"drawing the panel {panel.panel_id}")
