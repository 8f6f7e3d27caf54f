"""The panels of the window, one line each, in the order of the View menu."""

from __future__ import annotations

from app.panels.base import Panel

PANELS: tuple[type[Panel], ...] = ()
