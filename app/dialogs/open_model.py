"""Opening a model or a run: what, where, in which numbers, and what it will take."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, QTimer
from PySide6.QtWidgets import (
    QFileDialog,
    QGridLayout,
    QHBoxLayout,
    QLineEdit,
    QPushButton,
    QWidget,
)

from app.amounts import size
from app.i18n import tr
from app.state.model_desk import is_run_file
from app.widgets.form_combo import FormCombo
from model.protocol.engine_requests import LoadPlan, PlanModel
from model.protocol.run_file_requests import PeekRun, RunFileInfo

if TYPE_CHECKING:
    from app.session import Session
    from app.theme import Theme
    from model.protocol.framing import Arrays
    from model.protocol.wire import ErrorInfo

from app.dialogs.label import label
from app.dialogs.sheet import Sheet

PLAN_DELAY_MS = 350
FIRST_WORDS = "What it is and what it takes is read here first; nothing is opened yet."
DTYPES = ("auto", "float32", "bfloat16", "float16")


class OpenDialog(Sheet):
    """Which model, on what device, in which dtype; says what it will take before it is read."""

    def __init__(self, theme: Theme, session: Session, source: str = "", parent: QWidget | None = None) -> None:
        super().__init__(theme, parent, width=560)
        self._session = session
        self._plan: LoadPlan | None = None
        self.setObjectName("open-dialog")
        self.setWindowTitle(tr("Open a model"))
        column, buttons = self.column, self.foot
        host = session.hello.host if session.hello else ""
        where = tr("Paths are on {host}, where the engine runs.", host=host) if host else ""
        column.addWidget(label(tr("File, folder or hub id"), "title"))
        self.source = QLineEdit(source)
        self.source.setPlaceholderText(tr("a path, or owner/name on the hub"))
        self.source.setAccessibleName(tr("File, folder or hub id"))
        row = QHBoxLayout()
        row.addWidget(self.source, 1)
        row.addWidget(self._button(tr("File …"), self._browse_file))
        row.addWidget(self._button(tr("Folder …"), self._browse_folder))
        column.addLayout(row)
        column.addWidget(label(where, "hint"))
        grid = QGridLayout()
        grid.setHorizontalSpacing(12)
        self.device, self.dtype = FormCombo(theme), FormCombo(theme)
        devices = session.hello.devices if session.hello else ()
        self.device.addItem(tr("automatic"), "auto")
        for device in devices:
            self.device.addItem(f"{device.name} · {device.label}", device.name)
        for dtype in DTYPES:
            self.dtype.addItem(tr("automatic") if dtype == "auto" else dtype, dtype)
        prefs = session.settings.values
        self.device.setCurrentIndex(max(0, self.device.findData(prefs.device)))
        self.dtype.setCurrentIndex(max(0, self.dtype.findData(prefs.dtype)))
        for at, (text, box) in enumerate(((tr("Device"), self.device), (tr("Number format"), self.dtype))):
            grid.addWidget(label(text, "secondary"), 0, at)
            grid.addWidget(box, 1, at)
            box.setAccessibleName(text)
            box.currentIndexChanged.connect(self._replan)
        column.addLayout(grid)
        self.plan = label("", "secondary", wrap=True)
        self.plan.setMinimumHeight(theme.px(50))  # three lines: the buttons stay where they are
        self.plan.setAlignment(Qt.AlignmentFlag.AlignTop)
        column.addWidget(self.plan)
        column.addStretch(1)
        buttons.addStretch(1)
        buttons.addWidget(self._button(tr("Cancel"), self.reject))
        self.go = self._button(tr("Open"), self._open)
        self.go.setObjectName("open-model")
        self.go.setProperty("primary", True)
        self.go.setDefault(True)
        buttons.addWidget(self.go)
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(PLAN_DELAY_MS)
        self._timer.timeout.connect(self._ask_plan)
        self.source.textChanged.connect(self._replan)
        self._replan()

    def _button(self, text: str, run: Callable[[], object]) -> QPushButton:
        button = QPushButton(text)
        button.clicked.connect(lambda _checked=False: run())
        button.setAutoDefault(False)
        return button

    def _browse_file(self) -> None:
        folder = self._session.settings.values.last_folder
        path, _ = QFileDialog.getOpenFileName(
            self, tr("Open a model"), folder, tr("Models and runs (*.gguf *.safetensors *.json *.dscope)")
        )
        if path:
            self.source.setText(path)

    def _browse_folder(self) -> None:
        path = QFileDialog.getExistingDirectory(self, tr("Open a model"), self._session.settings.values.last_folder)
        if path:
            self.source.setText(path)

    def _replan(self) -> None:
        self._plan = None
        source = self.source.text().strip()
        self.go.setEnabled(bool(source))
        self._say(tr("Reading its headers …") if source else tr(FIRST_WORDS))
        self._timer.start()

    def _say(self, text: str, role: str = "secondary") -> None:
        """What the source is and takes, or, in the role of an error, why it can't be opened."""
        if role != self.plan.property("role"):
            self.plan.setProperty("role", role)
            self.plan.style().polish(self.plan)
        self.plan.setText(text)

    def _ask_plan(self) -> None:
        source = self.source.text().strip()
        if not source:
            return

        def done(plan: LoadPlan, _arrays: Arrays) -> None:
            if source == self.source.text().strip():
                self._say(plan_text(plan))

        def failed(error: ErrorInfo) -> None:
            if source == self.source.text().strip() and error.code not in {"superseded", "cancelled"}:
                self._say(error.message, "error")

        if is_run_file(source):
            self._session.engine.request(
                PeekRun(path=source),
                on_reply=lambda info, _arrays: self._show_run(source, info),
                on_error=failed,
                slot="dialog.plan",
            )
            return
        self._session.engine.request(
            PlanModel(source=source, device=self.device.currentData(), dtype=self.dtype.currentData()),
            on_reply=done,
            on_error=failed,
            slot="dialog.plan",
        )

    def _show_run(self, source: str, info: RunFileInfo) -> None:
        if source == self.source.text().strip():
            words = tr(
                "A run recorded with {model}: {n} prompt tokens, {steps} steps", model=info.model, n=info.n_prompt,
                steps=info.steps,
            )  # fmt: skip
            self._say(f"{words}\n{info.text}")

    def _open(self) -> None:
        device, dtype = str(self.device.currentData()), str(self.dtype.currentData())
        self._session.settings.update(device=device, dtype=dtype)
        self.accept()
        self._session.open_model(self.source.text().strip())


def plan_text(plan: LoadPlan) -> str:
    """What opening takes, in two or three lines."""
    first = tr(
        "{name} · {family} · {parameters} parameters · context {n_ctx}",
        name=plan.name,
        family=plan.family,
        parameters=f"{plan.parameters:,}",
        n_ctx=f"{plan.n_ctx:,}",
    )
    second = tr(
        "{bytes} in {dtype} on {device}; {free} are free there",
        bytes=size(plan.weight_bytes),
        dtype=plan.dtype,
        device=plan.device,
        free=size(plan.available_bytes),
    )
    third = () if plan.fits else (tr("It does not fit: choose a smaller number format or another device."),)
    return "\n".join((first, second, *third, *plan.notes))
