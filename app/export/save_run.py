"""Saving the run as a file: how much of it, where; written by the engine's stream, whole or not at all."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, cast

from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QButtonGroup,
    QFileDialog,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QPushButton,
    QRadioButton,
)

from app.amounts import size
from app.dialogs.sheet import Sheet
from app.export.exporter import default_folder
from app.export.files import FileExport
from app.export.places import is_there, typed_path
from app.export.subjects import safe_stem
from app.i18n import tr
from app.notify import QUIET_CODES
from app.widgets.busy_bar import BusyBar
from model.protocol.errors import DecoderscopeError
from model.protocol.export_requests import ExportRun, RunContents
from model.protocol.file_writing import RUN_SUFFIX, named
from model.protocol.run_file_requests import GetRunSizes, RunSizesReply

if TYPE_CHECKING:
    from PySide6.QtWidgets import QWidget

    from app.context import AppContext
    from model.protocol.framing import Arrays
    from model.protocol.wire import ErrorInfo, Progress


class SaveRunDialog(Sheet):
    """Which contents, with what each takes; a path; a bar while it is written."""

    def __init__(self, ctx: AppContext, parent: QWidget) -> None:
        super().__init__(ctx.theme, parent, width=480)
        self._ctx = ctx
        self.export: FileExport | None = None
        self.setObjectName("save-run-dialog")
        self.setWindowTitle(tr("Save the run"))
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        column = self.column
        self.choices: dict[RunContents, QRadioButton] = {}
        group = QButtonGroup(self)
        for contents, text in _texts().items():
            button = QRadioButton(text)
            button.setChecked(contents == "all")
            group.addButton(button)
            column.addWidget(button)
            self.choices[contents] = button
        self.path_edit = QLineEdit(str(self._folder() / f"{self._stem()}{RUN_SUFFIX}"))
        self.path_edit.setAccessibleName(tr("File"))
        self.path_edit.textChanged.connect(self._on_path)
        browse = QPushButton(tr("Choose…"))
        browse.clicked.connect(self._browse)
        row = QHBoxLayout()
        row.addWidget(self.path_edit, 1)
        row.addWidget(browse)
        column.addLayout(row)
        self.note = QLabel()
        self.note.setTextFormat(Qt.TextFormat.PlainText)
        self.note.setWordWrap(True)
        column.addWidget(self.note)
        self.bar = BusyBar(ctx.theme)
        self.bar.setRange(0, 0)
        self.bar.hide()
        column.addWidget(self.bar)
        column.addStretch(1)
        self._add_buttons()
        self._on_path()
        ctx.engine.request(GetRunSizes(), on_reply=self._on_sizes, on_error=_ignore, owner=self)

    @property
    def contents(self) -> RunContents:
        """What was chosen."""
        return next(contents for contents, button in self.choices.items() if button.isChecked())

    @property
    def path(self) -> Path:
        """Where it goes, with the suffix of run files. Raises NoSuchUserError and FileWriteError."""
        return named(typed_path(self.path_edit.text().strip()), RUN_SUFFIX)

    def save(self) -> None:
        """Writes the file; one that is there is replaced, as the dialog says."""
        path = self.path
        self.bar.setRange(0, 0)
        self.bar.show()
        self.save_button.setEnabled(False)
        self.export = FileExport(self._ctx.engine, path.parent, overwrite=True, parent=self)
        self.export.progressed.connect(self._on_progress)
        self.export.finished.connect(self._on_finished)
        self.export.failed.connect(self._on_failed)
        self.export.start(ExportRun(contents=self.contents, stem=path.name.removesuffix(RUN_SUFFIX)))

    def reject(self) -> None:
        if self.export is not None:
            self.export.cancel()
        else:
            super().reject()

    def _add_buttons(self) -> None:
        self.save_button = QPushButton(tr("Save"))
        self.save_button.setProperty("primary", True)
        self.save_button.setDefault(True)
        self.save_button.clicked.connect(self.save)
        cancel = QPushButton(tr("Cancel"))
        cancel.clicked.connect(self.reject)
        self.foot.addStretch(1)
        self.foot.addWidget(cancel)
        self.foot.addWidget(self.save_button)

    def _folder(self) -> Path:
        folder = self._ctx.settings.panel("export").get("folder")
        return Path(str(folder)) if folder else default_folder()

    def _stem(self) -> str:
        words = " ".join(self._ctx.session.run_text.split()[:6])
        return safe_stem(words)[:60] or "run"

    def _browse(self) -> None:
        kinds = tr("Recorded runs (*.dscope)")
        path, _ = QFileDialog.getSaveFileName(
            self, tr("Save the run"), str(self.path), kinds, options=QFileDialog.Option.DontConfirmOverwrite
        )
        if path:
            self.path_edit.setText(path)

    def _on_path(self) -> None:
        note, good = "", bool(self.path_edit.text().strip())
        if good:
            try:
                path, typed = self.path, Path(self.path_edit.text().strip()).name
                if is_there(path):
                    note = tr("{name} exists and will be replaced.", name=path.name)
                elif path.name not in {typed, typed + RUN_SUFFIX}:
                    note = tr("The file will be called {name}.", name=path.name)
            except DecoderscopeError as error:
                note, good = str(error), False
        self.save_button.setEnabled(good and self.export is None)
        self.note.setText(note)

    def _on_sizes(self, reply: RunSizesReply, _arrays: Arrays) -> None:
        for contents, button in self.choices.items():
            taken = cast("int", getattr(reply, contents))
            button.setEnabled(taken >= 0)
            if taken >= 0:
                button.setText(f"{_texts()[contents]} · {size(taken)}")
        if not self.choices[self.contents].isEnabled():
            self.choices["attention"].setChecked(True)
        self.adjustSize()

    def _on_progress(self, progress: Progress) -> None:
        self.bar.setRange(0, progress.total)
        self.bar.setValue(progress.done)

    def _on_finished(self, files: list[Path]) -> None:
        self.export = None
        self._ctx.settings.update_panel("export", folder=str(files[0].parent))
        self._ctx.settings.add_recent(str(files[0]))
        self._ctx.notify.say(tr("Saved {path}", path=str(files[0])))
        self.accept()

    def _on_failed(self, error: ErrorInfo) -> None:
        self.export = None
        self.bar.hide()
        self._on_path()
        stopped = tr("Stopped; no file was left half-written.")
        self.note.setText(stopped if error.code in QUIET_CODES else error.message)


def _texts() -> dict[RunContents, str]:
    return {
        "all": tr("Everything: tokens, draws, logits, q, k, v and residuals"),
        "attention": tr("Without residuals: enough to look at attention and sampling"),
        "text": tr("Tokens, settings and draws only: reopening it runs the model again"),
    }


def _ignore(*_: object) -> None:
    """Sizes that could not be told are not shown."""
