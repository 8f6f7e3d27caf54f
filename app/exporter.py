"""Exports of the attention matrix: what was chosen, one under way at a time, how it ended."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QObject, QStandardPaths, QUrl, Signal
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QWidget

from app.files import FileExport
from app.i18n import tr
from app.notify import QUIET_CODES, Trouble
from app.widgets.toast import Toast
from model.colormaps import ONE_SIGNED
from model.protocol.export_requests import ExportAttention, FigureFormat, FigureTheme

if TYPE_CHECKING:
    from app.context import AppContext
    from app.export_dialog import ExportDialog
    from model.protocol.wire import ErrorInfo

Span = tuple[int, int]
FORMATS: tuple[FigureFormat, ...] = ("png", "svg", "pdf", "csv", "npz")
STEM = "attention"
"""A file's name where nothing of the wanted one can be used."""


@dataclass(frozen=True, kw_only=True)
class ExportOptions:
    """What was chosen last, as it is remembered."""

    formats: tuple[FigureFormat, ...] = ("png", "csv")
    theme: FigureTheme = "light"
    colormap: str = "viridis"
    width: float = 7.0
    height: float = 6.0
    dpi: int = 200
    whole: bool = True
    folder: str = ""

    @classmethod
    def remembered(cls, values: dict[str, Any]) -> ExportOptions:
        """Options from the preferences; what does not fit is left at its default."""
        default = cls()
        formats = tuple(f for f in FORMATS if f in values.get("formats", default.formats)) or default.formats
        theme = values.get("theme") if values.get("theme") in {"light", "dark", "transparent"} else default.theme
        colormap = values.get("colormap") if values.get("colormap") in ONE_SIGNED else default.colormap
        return cls(
            formats=formats, theme=theme or default.theme, colormap=colormap or default.colormap,
            width=_number(values.get("width"), default.width, 1, 60),
            height=_number(values.get("height"), default.height, 1, 60),
            dpi=int(_number(values.get("dpi"), default.dpi, 36, 1200)),
            whole=bool(values.get("whole", default.whole)), folder=str(values.get("folder", "")),
        )  # fmt: skip

    def as_values(self) -> dict[str, Any]:
        """For the preferences."""
        return {
            "formats": list(self.formats), "theme": self.theme, "colormap": self.colormap, "width": self.width,
            "height": self.height, "dpi": self.dpi, "whole": self.whole, "folder": self.folder,
        }  # fmt: skip


def _number(value: object, default: float, low: float, high: float) -> float:
    good = isinstance(value, int | float) and not isinstance(value, bool) and low <= value <= high
    return float(value) if good else default  # type: ignore[arg-type] # checked above


def default_folder() -> Path:
    """Where exports go until another folder is chosen: the user's documents."""
    place = QStandardPaths.writableLocation(QStandardPaths.StandardLocation.DocumentsLocation)
    return Path(place) / "Decoderscope" if place else Path.home()


def safe_stem(text: str) -> str:
    """A file name without an extension that every file system takes."""
    stem = re.sub(r"[^\w.\-]+", "-", text, flags=re.UNICODE).strip("-. ")
    return stem[:120] or STEM


class Exporter(QObject):
    """One export at a time, with or without the dialog; says how it ended."""

    ended = Signal(object)  # list[Path], empty when it failed or was cancelled

    def __init__(self, ctx: AppContext, window: QWidget) -> None:
        super().__init__(window)
        self.ctx, self.window = ctx, window
        self.options = ExportOptions.remembered(ctx.settings.panel("export"))
        self.running: FileExport | None = None
        self.toast: Toast | None = None

    def open(self, view: tuple[Span, Span]) -> ExportDialog:
        """The dialog for the matrix whose rows and columns `view` are in sight."""
        from app.export_dialog import ExportDialog  # noqa: PLC0415 - it needs this file

        dialog = ExportDialog(self, view)
        dialog.open()
        return dialog

    def again(self, view: tuple[Span, Span]) -> None:
        """Exports as last time, beside what is there already, without asking."""
        folder = Path(self.options.folder or default_folder())
        stem = free_stem(folder, self.stem(), self.options.formats)
        self.start(self.message(self.options, view, stem), folder, overwrite=False)

    def stem(self) -> str:
        """A name that says what the picture is of."""
        view, model = self.ctx.selection.view, self.ctx.session.model
        layer = "all" if view.layer == "all" else f"L{view.layer}"
        head = view.head if isinstance(view.head, str) else f"H{view.head}"
        return safe_stem(f"{model.name if model else ''}-{layer}-{head}-{view.stage}")

    def message(self, options: ExportOptions, view: tuple[Span, Span], stem: str) -> ExportAttention:
        """The request for the engine."""
        selection = self.ctx.selection
        rows, cols = ((0, 0), (0, 0)) if options.whole else view
        return ExportAttention(
            view=selection.view, rows=rows, cols=cols, scale=selection.scale,
            fixed=selection.fixed and selection.stage == "weights", ignore_first=selection.ignore_first,
            formats=options.formats, theme=options.theme, colormap=options.colormap, width=options.width,
            height=options.height, dpi=options.dpi, stem=stem,
        )  # fmt: skip

    def start(self, message: ExportAttention, folder: Path, *, overwrite: bool) -> None:
        """Writes the files; one export at a time."""
        if self.running is not None:
            self.ctx.notify.say(tr("An export is under way."))
            return
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            words = tr("The folder {folder} can't be made: {why}. Choose another one.")
            message_text = words.format(folder=folder, why=error.strerror or error)
            self.ctx.notify.fail(Trouble(title=tr("The export did not work"), message=message_text))
            self.ended.emit([])
            return
        self.running = FileExport(self.ctx.engine, folder, overwrite=overwrite, parent=self)
        self.running.finished.connect(self._on_finished)
        self.running.failed.connect(self._on_failed)
        self.ctx.notify.say(tr("Exporting …"))
        self.running.start(message)

    def cancel(self) -> None:
        """Stops the export under way; no half of a file is left."""
        if self.running is not None:
            self.running.cancel()

    def remember(self, options: ExportOptions) -> None:
        """Keeps the options for the next time and the next start."""
        self.options = options
        self.ctx.settings.update_panel("export", **options.as_values())

    def _on_finished(self, files: list[Path]) -> None:
        self._end()
        names = ", ".join(path.name for path in files)
        self.ctx.notify.say(tr("Exported {names}", names=names))
        folder = files[0].parent if files else default_folder()
        if self.toast is not None:
            self.toast.close()
        self.toast = Toast(self.ctx.theme, self.window)
        self.toast.say(
            tr("Exported {n} files to {folder}", n=len(files), folder=str(folder)),
            tr("Open folder"),
            lambda: QDesktopServices.openUrl(QUrl.fromLocalFile(str(folder))),
        )
        self.ended.emit(files)

    def _on_failed(self, error: ErrorInfo) -> None:
        self._end()
        if error.code in QUIET_CODES:
            self.ctx.notify.say(tr("The export was stopped; no file was left half-written."))
        else:
            self.ctx.notify.engine_error(tr("The export did not work"), error)
        self.ended.emit([])

    def _end(self) -> None:
        if self.running is not None:
            self.running.deleteLater()
            self.running = None


def free_stem(folder: Path, stem: str, formats: tuple[FigureFormat, ...]) -> str:
    """`stem`, or `stem`-2, -3 …: the first under which none of the files exists."""
    number, candidate = 1, stem
    while any((folder / f"{candidate}.{f}").exists() for f in formats):
        number += 1
        candidate = f"{stem}-{number}"
    return candidate
