"""A panel's data and its picture as files: what is on the screen as PNG, its tables as CSV or JSON, its figure as
SVG or PDF where the engine draws one."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QBuffer, QIODevice, QObject, QPoint, QSaveFile, Qt, QUrl, Signal
from PySide6.QtGui import QDesktopServices, QGuiApplication, QImage, QPainter, QRegion
from PySide6.QtWidgets import QFileDialog, QWidget

from app.exporter import default_folder, safe_stem
from app.files import FileExport
from app.i18n import tr
from app.notify import QUIET_CODES, Trouble
from app.widgets.toast import Toast

if TYPE_CHECKING:
    from app.panels.base import Panel
    from model.protocol.wire import ErrorInfo

Table = tuple[str, list[list[str]]]
"""A name and its lines of cells."""
PICTURE_RATIO = 2.0


class PanelFiles(QObject):
    """One file of one panel at a time. `ended` carries the path, None when it did not come to one."""

    ended = Signal(object)
    _written = Signal(str, str)  # path, error

    def __init__(self, panel: Panel) -> None:
        super().__init__(panel)
        self._panel, self._ctx = panel, panel.ctx
        self._thread: threading.Thread | None = None
        self._figure: FileExport | None = None
        self.dialog: QFileDialog | None = None
        self._written.connect(self._on_written, Qt.ConnectionType.QueuedConnection)

    def open(self) -> QFileDialog:
        """Asks for a name; its ending says what is written."""
        kinds = [tr("Picture, as on the screen (*.png)"), tr("Tables (*.csv)"), tr("Tables (*.json)")]
        if self._panel.figure(("svg",), "light", "") is not None:
            kinds += [tr("Figure for print (*.svg)"), tr("Figure for print (*.pdf)")]
        folder = self._ctx.settings.panel("export").get("folder") or str(default_folder())
        dialog = QFileDialog(self._panel.window(), tr("Export {title}", title=tr(self._panel.title)), str(folder))
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        dialog.setNameFilters(kinds)
        dialog.filterSelected.connect(lambda kind: dialog.setDefaultSuffix(kind.rpartition(".")[2].rstrip(")")))
        dialog.setDefaultSuffix("png")
        dialog.selectFile(f"{self.stem()}.png")
        dialog.fileSelected.connect(lambda path: self.save(Path(path)))
        self.dialog = dialog
        dialog.open()
        return dialog

    def stem(self) -> str:
        """A name that says what is in the file."""
        model = self._ctx.session.model
        return safe_stem(f"{model.name if model else ''}-{self._panel.panel_id}")

    def copy_picture(self) -> None:
        """The panel as it looks, on the clipboard."""
        QGuiApplication.clipboard().setImage(picture(self._panel))
        self._ctx.notify.say(tr("Copied."))

    def save(self, path: Path) -> None:
        """Writes one file; nothing is left of one that could not be written whole."""
        if self._thread is not None or self._figure is not None:
            self._ctx.notify.say(tr("An export is under way."))
            return
        kind = path.suffix.lower().lstrip(".")
        if kind in {"csv", "json"}:
            self._panel.tables(lambda tables: self._start(path, lambda: as_text(tables, kind).encode()))
        elif kind in {"svg", "pdf"} and self._save_figure(path, kind):
            return
        else:
            image = picture(self._panel)
            self._start(path if kind == "png" else path.with_suffix(".png"), lambda: as_png(image))

    # inside

    def _start(self, path: Path, make: Callable[[], bytes]) -> None:
        """Formats and writes on a thread of its own: a large table takes longer than a frame."""
        self._thread = threading.Thread(target=self._write, args=(path, make), name="panel file", daemon=True)
        self._thread.start()

    def _write(self, path: Path, make: Callable[[], bytes]) -> None:
        self._written.emit(str(path), write_whole(path, make()))

    def _on_written(self, path: str, error: str) -> None:
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        if error:
            words = tr("{path} could not be written: {why}. Choose another place.", path=path, why=error)
            self._ctx.notify.fail(Trouble(title=tr("The export did not work"), message=words))
            self.ended.emit(None)
        else:
            self._tell(Path(path))

    def _save_figure(self, path: Path, kind: str) -> bool:
        theme = "dark" if self._ctx.theme.dark else "light"
        message = self._panel.figure((kind,), theme, path.stem)
        if message is None:
            return False
        self._figure = FileExport(self._ctx.engine, path.parent, overwrite=True, parent=self)
        self._figure.finished.connect(self._on_figure)
        self._figure.failed.connect(self._on_figure_failed)
        self._figure.start(message)
        return True

    def _on_figure(self, files: list[Path]) -> None:
        self._end_figure()
        self._tell(files[0])

    def _on_figure_failed(self, error: ErrorInfo) -> None:
        self._end_figure()
        if error.code not in QUIET_CODES:
            self._ctx.notify.engine_error(tr("The export did not work"), error)
        self.ended.emit(None)

    def _end_figure(self) -> None:
        if self._figure is not None:
            self._figure.deleteLater()
            self._figure = None

    def _tell(self, path: Path) -> None:
        self._ctx.settings.update_panel("export", folder=str(path.parent))
        self._ctx.notify.say(tr("Exported {names}", names=path.name))
        toast = Toast(self._ctx.theme, self._panel.window())
        toast.say(
            tr("Exported {names}", names=path.name),
            tr("Open folder"),
            lambda: QDesktopServices.openUrl(QUrl.fromLocalFile(str(path.parent))),
        )
        self.ended.emit(path)


def picture(widget: QWidget) -> QImage:
    """A widget as it looks, twice as fine as a plain screen, on the panel's ground."""
    ratio = max(PICTURE_RATIO, widget.devicePixelRatioF())
    image = QImage(round(widget.width() * ratio), round(widget.height() * ratio), QImage.Format.Format_RGB32)
    image.setDevicePixelRatio(ratio)
    panel: Panel = widget  # type: ignore[assignment]
    image.fill(panel.ctx.theme.palette.panel)
    with QPainter(image) as painter:
        widget.render(painter, QPoint(), QRegion(), QWidget.RenderFlag.DrawChildren)
    return image


def as_png(image: QImage) -> bytes:
    """A picture's file."""
    buffer = QBuffer()
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    image.save(buffer, "PNG")  # type: ignore[call-overload] # the stubs say bytes
    return bytes(buffer.data().data())


def as_text(tables: Sequence[Table], kind: str) -> str:
    """Tables one after the other, each under its name; cells that could be taken for formulas are quoted."""
    if kind == "json":
        return json.dumps(dict(tables), ensure_ascii=False, indent=1) + "\n"
    parts = []
    for name, lines in tables:
        parts.append("\n".join([_cell(f"# {name}"), *(",".join(_cell(text) for text in line) for line in lines)]))
    return "\n\n".join(parts) + "\n"


def as_tabs(tables: Sequence[Table]) -> str:
    """Tables for the clipboard: cells between tabs, each table under its name where there are several."""
    parts = []
    for name, lines in tables:
        rows = ["\t".join(_plain_cell(text) for text in line) for line in lines]
        parts.append("\n".join([*([name] if len(tables) > 1 else []), *rows]))
    return "\n\n".join(parts)


def _plain_cell(text: str) -> str:
    """A cell without the characters that end one, and that starts no formula."""
    text = text.replace("\t", "⇥").replace("\n", "⏎")
    return f"'{text}" if text[:1] in {"=", "+", "@"} or (text[:1] == "-" and not _is_number(text)) else text


def write_whole(path: Path, data: bytes) -> str:
    """Writes a file at once or not at all; the reason when it could not, else empty."""
    file = QSaveFile(str(path))
    good = file.open(QIODevice.OpenModeFlag.WriteOnly) and file.write(data) == len(data) and file.commit()
    return "" if good else file.errorString()


def _cell(text: str) -> str:
    text = f"'{text}" if text[:1] in {"=", "+", "@"} or (text[:1] == "-" and not _is_number(text)) else text
    return '"' + text.replace('"', '""') + '"' if any(c in text for c in ',"\n\r') else text


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
