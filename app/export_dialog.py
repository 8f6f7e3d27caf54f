"""The export dialog: which files, how they look, where they go, with a preview drawn by the engine."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from PySide6.QtCore import QSize, Qt, QTimer
from PySide6.QtGui import QPixmap
from PySide6.QtWidgets import (
    QDialog,
    QDoubleSpinBox,
    QFileDialog,
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QMessageBox,
    QProgressBar,
    QPushButton,
    QSizePolicy,
    QSpinBox,
    QVBoxLayout,
    QWidget,
)

from app.exporter import FORMATS, Exporter, ExportOptions, Span, default_folder, safe_stem
from app.i18n import tr
from app.notify import QUIET_CODES
from app.widgets.check_box import CheckBox
from app.widgets.value_combo import Choice, ValueCombo
from model.colormaps import ONE_SIGNED
from model.protocol.export_requests import FigureTheme, FilePart

if TYPE_CHECKING:
    from app.theme import Theme
    from model.protocol.framing import Arrays
    from model.protocol.wire import ErrorInfo, Progress

FIGURES = frozenset({"png", "svg", "pdf"})
PREVIEW = QSize(360, 320)
PREVIEW_DELAY_MS = 250
"""After the last change of an option, before the engine draws again."""


class ExportDialog(QDialog):
    """Options at the left, the figure as the engine draws it at the right."""

    def __init__(self, exporter: Exporter, view: tuple[Span, Span]) -> None:
        super().__init__(exporter.window)
        self._exporter, self._view = exporter, view
        self._ctx = exporter.ctx
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(tr("Export the attention"))
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(PREVIEW_DELAY_MS)
        self._timer.timeout.connect(self._ask_preview)
        self._bytes: list[bytes] = []
        self._build(exporter.options)
        exporter.ended.connect(self._on_ended)
        self._timer.start(0)

    # what is chosen

    def options(self) -> ExportOptions:
        """The options as they stand."""
        return ExportOptions(
            formats=tuple(f for f in FORMATS if self.boxes[f].isChecked()),
            theme=cast("FigureTheme", self.theme_box.key()),
            colormap=str(self.colormap_box.key()), width=self.width_box.value(), height=self.height_box.value(),
            dpi=self.dpi_box.value(), whole=bool(self.whole_box.key()), folder=self.folder_edit.text().strip(),
        )  # fmt: skip

    def export(self) -> None:
        """Writes the files, after asking about those that exist."""
        options, stem = self.options(), safe_stem(self.name_edit.text())
        folder = Path(options.folder).expanduser()
        existing = [f"{stem}.{f}" for f in options.formats if (folder / f"{stem}.{f}").exists()]
        if existing and not self._may_replace(existing):
            return
        self._exporter.remember(options)
        self._set_running(running=True)
        self._exporter.start(self._exporter.message(options, self._view, stem), folder, overwrite=bool(existing))
        if self._exporter.running is not None:
            self._exporter.running.progressed.connect(self._on_progress)

    def reject(self) -> None:
        if self._exporter.running is not None:
            self._exporter.cancel()
        else:
            super().reject()

    # building

    def _build(self, options: ExportOptions) -> None:
        form = QGridLayout()
        form.setVerticalSpacing(8)
        form.setHorizontalSpacing(10)
        form.setColumnStretch(1, 1)
        self.name_edit = QLineEdit(self._exporter.stem())
        self.folder_edit = QLineEdit(options.folder or str(default_folder()))
        self.folder_edit.setMinimumWidth(220)
        browse = QPushButton(tr("Choose…"))
        browse.clicked.connect(self._choose_folder)
        _add_row(form, tr("Name"), self.name_edit)
        _add_row(form, tr("Folder"), self.folder_edit, browse)
        _add_row(form, tr("Files"), self._format_boxes(options))
        theme = self._ctx.theme
        cells = [(True, tr("the whole matrix")), (False, tr("what is in sight"))]
        self.whole_box = _choices(theme, tr("Cells"), cells, options.whole)
        _add_row(form, tr("Cells"), self.whole_box)
        themes = [("light", tr("light")), ("dark", tr("dark")), ("transparent", tr("no background"))]
        self.theme_box = _choices(theme, tr("Theme"), themes, options.theme)
        _add_row(form, tr("Theme"), self.theme_box)
        self.colormap_box = _choices(theme, tr("Colour map"), [(name, name) for name in ONE_SIGNED], options.colormap)
        _add_row(form, tr("Colour map"), self.colormap_box)
        self.width_box, self.height_box = _inches(options.width), _inches(options.height)
        _add_row(form, tr("Width"), self.width_box)
        _add_row(form, tr("Height"), self.height_box)
        self.dpi_box = QSpinBox()
        self.dpi_box.setRange(36, 1200)
        self.dpi_box.setValue(options.dpi)
        self.dpi_box.setSuffix(tr(" dpi"))
        self.dpi_box.lineEdit().setTextMargins(6, 0, 6, 0)
        _add_row(form, tr("Resolution"), self.dpi_box)
        self.size_note = QLabel()
        self.size_note.setTextFormat(Qt.TextFormat.PlainText)
        self.size_note.setFont(self._ctx.theme.font("hint"))
        form.addWidget(self.size_note, form.rowCount(), 1, 1, 2)
        form.setRowStretch(form.rowCount(), 1)
        self.preview = QLabel(tr("Drawing …"))
        self.preview.setTextFormat(Qt.TextFormat.PlainText)
        self.preview.setAccessibleName(tr("Preview"))
        self.preview.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.preview.setMinimumSize(PREVIEW)
        self.preview.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        top = QHBoxLayout()
        top.setSpacing(20)
        top.addLayout(form)
        top.addWidget(self.preview, 1)
        column = QVBoxLayout(self)
        column.setContentsMargins(16, 16, 16, 14)
        column.setSpacing(12)
        column.addLayout(top, 1)
        column.addLayout(self._buttons())
        self._watch()
        self._on_changed()

    def _format_boxes(self, options: ExportOptions) -> QWidget:
        tips = {
            "png": tr("A picture"), "svg": tr("A drawing that scales, text as text"), "pdf": tr("For print"),
            "csv": tr("Exact values and tokens, for a spreadsheet"),
            "npz": tr("Exact float32 values, token ids and metadata, for numpy"),
        }  # fmt: skip
        widget = QWidget()
        row = QHBoxLayout(widget)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(12)
        self.boxes: dict[str, CheckBox] = {}
        for name in FORMATS:
            box = CheckBox(self._ctx.theme, name.upper(), tip=tips[name])
            box.setChecked(name in options.formats)
            self.boxes[name] = box
            row.addWidget(box)
        row.addStretch(1)
        return widget

    def _buttons(self) -> QHBoxLayout:
        self.bar = QProgressBar()
        self.bar.setTextVisible(False)
        self.bar.hide()
        self.progress_note = QLabel()
        self.progress_note.setTextFormat(Qt.TextFormat.PlainText)
        self.export_button = QPushButton(tr("Export"))
        self.export_button.setDefault(True)
        self.export_button.setProperty("primary", True)
        self.export_button.clicked.connect(self.export)
        self.cancel_button = QPushButton(tr("Cancel"))
        self.cancel_button.clicked.connect(self.reject)
        row = QHBoxLayout()
        row.addWidget(self.progress_note)
        row.addWidget(self.bar, 1)
        row.addStretch(0)
        row.addWidget(self.cancel_button)
        row.addWidget(self.export_button)
        return row

    def _watch(self) -> None:
        for box in (*self.boxes.values(),):
            box.toggled.connect(self._on_changed)
        for combo in (self.theme_box, self.colormap_box, self.whole_box):
            combo.keyChosen.connect(self._on_changed)
        for spin in (self.width_box, self.height_box):
            spin.valueChanged.connect(self._on_changed)
        self.dpi_box.valueChanged.connect(self._on_changed)
        self.name_edit.textChanged.connect(self._on_changed)
        self.folder_edit.textChanged.connect(self._on_changed)

    # acting

    def _on_changed(self, *_: object) -> None:
        options = self.options()
        figures = bool(FIGURES & set(options.formats))
        for widget in (self.theme_box, self.colormap_box, self.width_box, self.height_box):
            widget.setEnabled(figures)
        self.dpi_box.setEnabled("png" in options.formats)
        width, height = round(options.width * options.dpi), round(options.height * options.dpi)
        self.size_note.setText(
            tr("{w} × {h} pixels", w=f"{width:,}", h=f"{height:,}") if self.dpi_box.isEnabled() else ""
        )
        good = bool(options.formats) and bool(options.folder) and bool(self.name_edit.text().strip())
        self.export_button.setEnabled(good and self._exporter.running is None)
        self._timer.start()

    def _ask_preview(self) -> None:
        options = self.options()
        if not FIGURES & set(options.formats):
            self.preview.setText(tr("Numbers only: no figure to preview."))
            return
        # The preview is the file's own layout, drawn with as many dots as the screen shows.
        shown = replace(options, formats=("png",), dpi=self._preview_dpi(options))
        self._bytes = []
        self._ctx.engine.request(
            self._exporter.message(shown, self._view, "preview"),
            on_part=self._on_preview_part, on_reply=self._on_preview, on_error=self._on_preview_error,
            slot="export.preview", owner=self,
        )  # fmt: skip

    def _preview_dpi(self, options: ExportOptions) -> int:
        room, ratio = self.preview.size(), self.devicePixelRatioF()
        fitting = min(room.width() / options.width, room.height() / options.height) * ratio
        return int(min(max(fitting, 36), 1200))

    def _on_preview_part(self, part: FilePart, arrays: Arrays) -> None:
        if part.offset == 0:
            self._bytes = []
        self._bytes.append(np.asarray(arrays["data"], dtype=np.uint8).tobytes())

    def _on_preview(self, *_: object) -> None:
        pixmap = QPixmap()
        if pixmap.loadFromData(b"".join(self._bytes), "PNG"):
            ratio = self.devicePixelRatioF()
            room = self.preview.size() * ratio
            if pixmap.width() > room.width() or pixmap.height() > room.height():
                pixmap = pixmap.scaled(
                    room, Qt.AspectRatioMode.KeepAspectRatio, Qt.TransformationMode.SmoothTransformation
                )
            pixmap.setDevicePixelRatio(ratio)
            self.preview.setPixmap(pixmap)

    def _on_preview_error(self, error: ErrorInfo) -> None:
        if error.code not in QUIET_CODES:
            self.preview.setText(error.message)

    def _choose_folder(self) -> None:
        folder = QFileDialog.getExistingDirectory(self, tr("Folder for the files"), self.folder_edit.text())
        if folder:
            self.folder_edit.setText(folder)

    def _may_replace(self, names: list[str]) -> bool:
        box = QMessageBox(self)
        box.setIcon(QMessageBox.Icon.Question)
        box.setTextFormat(Qt.TextFormat.PlainText)
        box.setText(tr("{names} exist in this folder.", names=", ".join(names)))
        replace_button = box.addButton(tr("Replace"), QMessageBox.ButtonRole.AcceptRole)
        box.addButton(tr("Keep"), QMessageBox.ButtonRole.RejectRole)
        box.exec()
        return box.clickedButton() is replace_button

    def _set_running(self, *, running: bool) -> None:
        self.bar.setVisible(running)
        self.bar.setRange(0, 0)
        self.progress_note.setText(tr("Exporting …") if running else "")
        self.export_button.setEnabled(not running)

    def _on_progress(self, progress: Progress) -> None:
        self.bar.setRange(0, progress.total)
        self.bar.setValue(progress.done)
        self.progress_note.setText(progress.what)

    def _on_ended(self, files: list[Path]) -> None:
        self._set_running(running=False)
        if files:
            self.accept()


def _add_row(form: QGridLayout, text: str, widget: QWidget, extra: QWidget | None = None) -> None:
    row = form.rowCount()
    label = QLabel(text)
    label.setTextFormat(Qt.TextFormat.PlainText)
    label.setBuddy(widget)
    widget.setAccessibleName(text)
    form.addWidget(label, row, 0)
    form.addWidget(widget, row, 1, 1, 1 if extra is not None else 2)
    if extra is not None:
        form.addWidget(extra, row, 2)


def _choices(theme: Theme, label: str, items: list[tuple[Any, str]], current: object) -> ValueCombo:
    box = ValueCombo(theme, label)
    box.set_choices([Choice(key=key, text=text) for key, text in items])
    box.set_key(current)
    return box


def _inches(value: float) -> QDoubleSpinBox:
    box = QDoubleSpinBox()
    box.setRange(1.0, 60.0)
    box.setDecimals(1)
    box.setSingleStep(0.5)
    box.setSuffix(tr(" in"))
    box.lineEdit().setTextMargins(6, 0, 6, 0)
    box.setValue(value)
    return box
