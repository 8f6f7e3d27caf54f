"""A grid whose widgets are put elsewhere when the room changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from PySide6.QtWidgets import QGridLayout, QWidget

SPACING, LINE_SPACING = 14, 10
Place = tuple[int, int, int, int]
"""Row, column, rows, columns."""


class CellLayout(QGridLayout):
    """`arrange` says all of it each time: where widgets stand, and how rows and columns share the room."""

    def __init__(self, parent: QWidget, widgets: Sequence[QWidget]) -> None:
        super().__init__(parent)
        self._widgets = tuple(widgets)
        self.setContentsMargins(0, 0, 0, 0)
        self.setHorizontalSpacing(SPACING)
        self.setVerticalSpacing(LINE_SPACING)

    def arrange(
        self,
        places: Mapping[QWidget, Place],
        *,
        columns: Sequence[int],
        rows: Sequence[int],
        least: Sequence[int] = (),
    ) -> None:
        """Widgets without a place are hidden. `columns`, `rows`: shares; `least`: px a row has at least."""
        for widget in self._widgets:
            self.removeWidget(widget)
            if widget not in places:
                widget.hide()
        for widget, place in places.items():
            self.addWidget(widget, *place)
            widget.show()  # not before it has its parent: it would be a window for a moment
        for column in range(max(len(columns), self.columnCount())):
            self.setColumnStretch(column, columns[column] if column < len(columns) else 0)
        for row in range(max(len(rows), self.rowCount())):
            self.setRowStretch(row, rows[row] if row < len(rows) else 0)
            self.setRowMinimumHeight(row, least[row] if row < len(least) else 0)
