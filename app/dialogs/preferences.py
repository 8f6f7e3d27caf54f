"""Preferences: how the window looks, where and how models are computed, where files are. Changes act at once."""

from __future__ import annotations

import shlex
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QPoint, Qt, QTimer, QUrl, Signal
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import (
    QGridLayout,
    QHBoxLayout,
    QLineEdit,
    QPushButton,
    QWidget,
)

from app.amounts import size
from app.dialogs.label import label
from app.dialogs.open_model import DTYPES
from app.dialogs.sheet import Sheet
from app.engine_child import default_command
from app.i18n import LANGUAGES, tr
from app.settings import MAX_THREADS, config_folder, log_folder
from app.theme import MAX_SCALE, MIN_SCALE
from app.widgets.form_combo import FormCombo
from app.widgets.form_spin import FormDoubleSpin, FormSpin

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from app.context import AppContext

GIGABYTE = 1_000_000_000
BUDGET_DELAY_MS = 500
THEMES = {"system": "As the system", "light": "Light", "dark": "Dark"}


class PreferencesDialog(Sheet):
    """Every preference that has no better place. What needs the model or the engine again says so, with a button."""

    languageChosen = Signal(QPoint)  # where the dialog stood

    def __init__(self, ctx: AppContext, parent: QWidget | None = None) -> None:
        super().__init__(ctx.theme, parent, width=560)
        self._ctx = ctx
        self.setObjectName("preferences-dialog")
        self.setWindowTitle(tr("Preferences"))
        self._build_looks()
        self._build_model()
        self._build_engine()
        self._build_files()
        self.column.addStretch(1)
        self.foot.addStretch(1)
        close = self._button(tr("Close"), self.accept)
        close.setProperty("primary", True)
        close.setDefault(True)
        self.foot.addWidget(close)
        ctx.session.changed.connect(self._on_topic)
        self._show_state()

    # building

    def _build_looks(self) -> None:
        settings, values = self._ctx.settings, self._ctx.settings.values
        grid = self._section(tr("Window"))
        self.theme = self._choice({name: tr(title) for name, title in THEMES.items()}, values.theme)
        self.theme.currentIndexChanged.connect(lambda: settings.update(theme=self.theme.currentData()))
        self.language = self._choice({"": tr("As the system"), **LANGUAGES}, values.language)
        self.language.currentIndexChanged.connect(self._use_language)
        self.scale = FormSpin(self._ctx.theme)
        self.scale.setRange(round(100 * MIN_SCALE), round(100 * MAX_SCALE))
        self.scale.setSingleStep(10)
        self.scale.setSuffix(" %")
        self.scale.setValue(round(100 * values.text_scale))
        self.scale.valueChanged.connect(lambda value: settings.update(text_scale=value / 100))
        for at, (text, field) in enumerate(
            ((tr("Theme"), self.theme), (tr("Language"), self.language), (tr("Size of text"), self.scale))
        ):
            self._put(grid, 0, at, text, field)

    def _build_model(self) -> None:
        values, session = self._ctx.settings.values, self._ctx.session
        grid = self._section(tr("Models"))
        devices = session.hello.devices if session.hello else ()
        names = {"auto": tr("automatic"), **{device.name: f"{device.name} · {device.label}" for device in devices}}
        self.device = self._choice(names, values.device)
        self.device.currentIndexChanged.connect(lambda: self._use_next(device=self.device.currentData()))
        self.dtype = self._choice({name: tr("automatic") if name == "auto" else name for name in DTYPES}, values.dtype)
        self.dtype.currentIndexChanged.connect(lambda: self._use_next(dtype=self.dtype.currentData()))
        self.threads = FormSpin(self._ctx.theme)
        self.threads.setRange(0, MAX_THREADS)
        self.threads.setSpecialValueText(tr("automatic"))
        self.threads.setValue(values.threads)
        self.threads.valueChanged.connect(lambda value: self._use_next(threads=value))
        self.budget = FormDoubleSpin(self._ctx.theme)
        self.budget.setRange(0, 1e6)
        self.budget.setDecimals(1)
        self.budget.setSuffix(" GB")
        self.budget.setSpecialValueText(tr("automatic"))
        self.budget.setValue(values.budget_bytes / GIGABYTE)
        self._budget_timer = QTimer(self)
        self._budget_timer.setSingleShot(True)
        self._budget_timer.setInterval(BUDGET_DELAY_MS)
        self._budget_timer.timeout.connect(self._use_budget)
        self.budget.valueChanged.connect(lambda _value: self._budget_timer.start())
        for at, (text, field) in enumerate(((tr("Device"), self.device), (tr("Number format"), self.dtype))):
            self._put(grid, 0, at, text, field)
        for at, (text, box) in enumerate(((tr("Threads"), self.threads), (tr("Memory a run may keep"), self.budget))):
            self._put(grid, 3, at, text, box)
        grid.setRowMinimumHeight(2, 6)  # a name belongs to the field under it
        self.budget_words = label("", "hint", wrap=True)
        self.column.addWidget(self.budget_words)
        row = QHBoxLayout()
        self.reload_words = label(tr("Device, format and threads are used when a model is opened."), "hint", wrap=True)
        self.reload = self._button(tr("Open the model again"), lambda: session.open_model(session.source))
        row.addWidget(self.reload_words, 1)
        row.addWidget(self.reload)
        self.column.addLayout(row)

    def _build_engine(self) -> None:
        grid = self._section(tr("Engine"))
        command = self._ctx.settings.values.engine_command
        self.command = QLineEdit(shlex.join(command))
        self.command.setPlaceholderText(shlex.join(default_command()))
        self.command.editingFinished.connect(self._use_command)
        self._put(grid, 0, 0, tr("Command that starts it, on this machine or another"), self.command)
        self.restart = self._button(tr("Restart the engine"), self._restart)
        grid.addWidget(self.restart, 1, 1)
        self.command_words = label("", "hint", wrap=True)
        self.column.addWidget(self.command_words)

    def _build_files(self) -> None:
        self.column.addWidget(label(tr("Files"), "title"))
        for text, folder in ((tr("Preferences"), config_folder()), (tr("Log"), log_folder())):
            row = QHBoxLayout()
            place = label(f"{text}: {folder}", "hint", wrap=True)
            place.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
            row.addWidget(place, 1)
            row.addWidget(self._button(tr("Open the folder"), partial(_show_folder, folder)))
            self.column.addLayout(row)

    def _section(self, title: str) -> QGridLayout:
        self.column.addWidget(label(title, "title"))
        grid = QGridLayout()
        grid.setHorizontalSpacing(12)
        grid.setVerticalSpacing(4)
        self.column.addLayout(grid)
        return grid

    def _put(self, grid: QGridLayout, row: int, column: int, text: str, field: QWidget) -> None:
        grid.addWidget(label(text, "secondary"), row, column)
        grid.addWidget(field, row + 1, column)
        grid.setColumnStretch(column, 1)
        field.setAccessibleName(text)

    def _choice(self, names: dict[str, str], current: str) -> FormCombo:
        box = FormCombo(self._ctx.theme)
        for data, text in names.items():
            box.addItem(text, data)
        if box.findData(current) < 0:  # a device this machine does not have now
            box.addItem(current, current)
        box.setCurrentIndex(box.findData(current))
        return box

    def _button(self, text: str, run: Callable[[], object]) -> QPushButton:
        button = QPushButton(text)
        button.setAutoDefault(False)
        button.clicked.connect(lambda _checked=False: run())
        return button

    # acting

    def _use_language(self) -> None:
        # The dialog is in the old language from now on: it closes, and whoever opened it opens another in its place.
        self._ctx.settings.update(language=self.language.currentData())
        self.languageChosen.emit(self.pos())
        self.accept()

    def _use_next(self, **changes: object) -> None:
        self._ctx.settings.update(**changes)
        self._show_state()

    def _use_budget(self) -> None:
        self._ctx.session.remedies.use_budget(round(self.budget.value() * GIGABYTE))

    def _use_command(self) -> None:
        try:
            parts = tuple(shlex.split(self.command.text()))
        except ValueError as error:
            self.command_words.setText(tr("The command can't be read: {why}.", why=error))
            return
        self._ctx.settings.update(engine_command=parts)
        self._show_state()

    def _restart(self) -> None:
        self._use_command()
        self._ctx.session.restart_engine()

    def _on_topic(self, topic: object) -> None:
        if str(topic) in {"MODEL", "MEMORY", "ENGINE", "PROGRESS"}:
            self._show_state()

    def _show_state(self) -> None:
        session, values = self._ctx.session, self._ctx.settings.values
        self.reload.setEnabled(session.model is not None and not session.busy and session.can_run)
        memory = session.memory
        budget = values.budget_bytes / GIGABYTE
        if not self._budget_timer.isActive() and abs(self.budget.value() - budget) > 0.05:
            self.budget.blockSignals(True)  # a refusal, or a button elsewhere
            self.budget.setValue(budget)
            self.budget.blockSignals(False)
        if memory is not None:
            kept = memory.kv_allocated + memory.activations
            self.budget_words.setText(
                tr(
                    "Keys, values and activations: {kept} of {budget} kept; {free} are free.",
                    kept=size(kept), budget=size(memory.budget), free=size(memory.available),
                )
            )  # fmt: skip
        self.command_words.setText(
            tr("A changed command is used when the engine starts again; model, prompt and tokens come back.")
        )


def _show_folder(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    QDesktopServices.openUrl(QUrl.fromLocalFile(str(folder)))
