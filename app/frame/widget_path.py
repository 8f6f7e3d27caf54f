"""Where a widget is among the attributes of a panel: the same place in another panel of its kind is its counterpart."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping

from PySide6.QtWidgets import QWidget
from shiboken6 import isValid

Step = tuple[str, object]
"""The name of an attribute, and the key or index of the widget in it; None where it is the widget itself."""


def path_of(root: QWidget, wanted: QWidget) -> tuple[Step, ...] | None:
    """The shortest way from `root` to `wanted`, which is in it; None where no attribute leads there."""
    ways: deque[tuple[QWidget, tuple[Step, ...]]] = deque([(root, ())])
    seen = {id(root)}
    while ways:
        at, way = ways.popleft()
        if at is wanted:
            return way
        for step, child in _steps(at):
            if id(child) not in seen and isValid(child) and root.isAncestorOf(child):
                seen.add(id(child))
                ways.append((child, (*way, step)))
    return None


def widgets_of(root: QWidget) -> dict[tuple[Step, ...], QWidget]:
    """Every widget in `root` that attributes lead to, by the shortest way."""
    ways: deque[tuple[QWidget, tuple[Step, ...]]] = deque([(root, ())])
    found: dict[tuple[Step, ...], QWidget] = {}
    seen = {id(root)}
    while ways:
        at, way = ways.popleft()
        for step, child in _steps(at):
            if id(child) not in seen and isValid(child) and root.isAncestorOf(child):
                seen.add(id(child))
                found[*way, step] = child
                ways.append((child, (*way, step)))
    return found


def at_path(root: QWidget, path: tuple[Step, ...]) -> QWidget | None:
    """The widget at the end of a way; None where it leads nowhere."""
    at = root
    for wanted in path:
        found = next((child for step, child in _steps(at) if step == wanted), None)
        if found is None or not isValid(found):
            return None
        at = found
    return at


def _steps(widget: QWidget) -> Iterator[tuple[Step, QWidget]]:
    for name, value in getattr(widget, "__dict__", {}).items():
        parts: Iterator[tuple[object, object]]
        if isinstance(value, Mapping):
            parts = iter(value.items())
        elif isinstance(value, list | tuple):
            parts = iter(enumerate(value))
        else:
            parts = iter(((None, value),))
        for key, part in parts:
            if isinstance(part, QWidget):
                yield (name, key), part
