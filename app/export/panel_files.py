"""A panel's picture and its tables as files: as on the screen as PNG, its tables as CSV, JSON, NPZ or safetensors."""

from __future__ import annotations

import hashlib
import io
import json
import threading
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from PySide6.QtCore import QBuffer, QCoreApplication, QIODevice, QObject, QPoint, QRect, QSizeF, Qt, Signal
from PySide6.QtGui import QGuiApplication, QImage, QPainter, QRegion
from PySide6.QtWidgets import QWidget

from app.i18n import tr
from app.version import version
from model.protocol.export_requests import FileInfo, FilePart
from model.protocol.file_writing import FileWriteError, IncomingFiles
from model.protocol.wire import ErrorInfo

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from app.panels.base import Panel

Table = tuple[str, list[list[str]]]
"""A name and its lines of cells."""
PICTURE_RATIO = 2.0
CAPTION = 36
"""Px at 100 % text of the line over a picture."""
ABOUT_TABLE = "about"


def copy_picture(panel: Panel) -> None:
    """The panel as it looks, on the clipboard."""
    QGuiApplication.clipboard().setImage(picture(panel))
    panel.ctx.notify.say(tr("Copied."))


class PanelExport(QObject):
    """Files of one panel under way: as FileExport, ends with exactly one of `finished` and `failed`, and neither
    leaves half a file. `progressed` is never told: it takes no longer than the engine takes to send the tables."""

    progressed = Signal(object)
    finished = Signal(object)  # list[Path]
    failed = Signal(object)  # ErrorInfo
    _written = Signal(object)  # list[Path] or ErrorInfo; from the writing thread

    def __init__(self, panel: Panel, folder: Path, *, overwrite: bool, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._panel, self._folder, self._overwrite = panel, folder, overwrite
        self._thread: threading.Thread | None = None
        self._over = False
        self._written.connect(self._end, Qt.ConnectionType.QueuedConnection)
        if (application := QCoreApplication.instance()) is not None:
            application.aboutToQuit.connect(self.close)

    @property
    def running(self) -> bool:
        """Between `start` and the end."""
        return not self._over

    def start(self, formats: Sequence[str], stem: str) -> None:
        """Takes the picture now and the tables when they are there; once only."""
        image = picture(self._panel) if "png" in formats else None
        if set(formats) <= {"png"}:
            self._write(formats, stem, image, [])
        else:
            self._panel.destroyed.connect(self.cancel)  # made anew in another language: its tables never come
            self._panel.tables(partial(self._on_tables, formats, stem, image))

    def _on_tables(self, formats: Sequence[str], stem: str, image: QImage | None, tables: list[Table]) -> None:
        if not self._over:
            self._write(formats, stem, image, [about(self._panel), *tables])

    def cancel(self) -> None:
        """Ends it, unless it is being written already, which takes no time."""
        if self._thread is None:
            self._end(ErrorInfo(code="cancelled", message=""))

    def close(self) -> None:
        """Ends it and waits for the disk, without a signal: for the end of the program."""
        self._over = True
        if self._thread is not None:
            self._thread.join()

    def _write(self, formats: Sequence[str], stem: str, image: QImage | None, tables: list[Table]) -> None:
        """On a thread of its own: a large table takes longer than a frame to be formatted."""
        if self._over or self._thread is not None:
            return

        def write() -> None:
            made = [(name, content(name, image, tables)) for name in formats]
            self._written.emit(write_files(self._folder, stem, made, overwrite=self._overwrite))

        self._thread = threading.Thread(target=write, name="panel files", daemon=True)
        self._thread.start()

    def _end(self, outcome: list[Path] | ErrorInfo) -> None:
        if self._thread is not None:
            self._thread.join()
        if self._over:
            return
        self._over = True
        if isinstance(outcome, ErrorInfo):
            self.failed.emit(outcome)
        else:
            self.finished.emit(outcome)


def content(kind: str, image: QImage | None, tables: Sequence[Table]) -> bytes:
    """A file's bytes."""
    if kind == "png":
        assert image is not None
        return as_png(image)
    if kind in {"npz", "safetensors"}:
        return as_npz(tables) if kind == "npz" else as_safetensors(tables)
    return as_text(tables, kind).encode("utf-8", "backslashreplace")


def write_files(
    folder: Path, stem: str, made: Sequence[tuple[str, bytes]], *, overwrite: bool
) -> list[Path] | ErrorInfo:
    """Writes all of them or none; the reason when it could not."""
    infos = []
    try:
        with IncomingFiles(folder, overwrite=overwrite) as files:
            for kind, data in made:
                name, digest = f"{stem}.{kind}", hashlib.sha256(data).hexdigest()
                files.add(FilePart(name=name, offset=0, last=True, sha256=digest), data)
                infos.append(FileInfo(name=name, format=kind, size=len(data), sha256=digest))
            return files.finish(infos)
    except FileWriteError as error:
        return ErrorInfo.of(error)


def about(panel: Panel) -> Table:
    """Where a panel's numbers come from: model and hash, text, ids' hash, what is selected."""
    session, selection = panel.ctx.session, panel.ctx.selection
    model = session.model
    facts: list[tuple[str, object]] = [("panel", panel.panel_id), ("version", version())]
    if model is not None:
        facts += [("model", model.name), ("model_sha256", model.sha256), ("model_source", model.source)]
        facts += [("dtype", model.dtype), ("device", model.device)]
    if session.run is not None:
        ids = np.asarray([token.id for token in session.path_tokens()], dtype="<i8")
        facts += [("prompt", session.prefilled_text), ("text", session.run_text)]
        facts += [("ids_sha256", hashlib.sha256(ids.tobytes()).hexdigest())]
        facts += [("n_prompt", session.n_prompt), ("length", session.length), ("layer", selection.layer)]
        facts += [("head", selection.head), ("query", selection.query), ("key", selection.key)]
    return ABOUT_TABLE, [[name, str(value)] for name, value in facts]


def picture(panel: Panel) -> QImage:
    """A panel as it looks, or as it says it is pictured, twice as fine as a plain screen, on its ground."""
    ratio, theme = max(PICTURE_RATIO, panel.devicePixelRatioF()), panel.ctx.theme
    with panel.as_picture() as caption:
        over = theme.px(CAPTION) if caption else 0
        size = QSizeF(panel.width() * ratio, (panel.height() + over) * ratio).toSize()
        image = QImage(size, QImage.Format.Format_RGB32)
        image.setDevicePixelRatio(ratio)
        image.fill(theme.palette.panel)
        with QPainter(image) as painter:
            painter.setFont(theme.font("title"))
            painter.setPen(theme.palette.text)
            painter.drawText(QRect(12, 0, panel.width() - 24, over), Qt.AlignmentFlag.AlignVCenter, caption)
            panel.render(painter, QPoint(0, over), QRegion(), QWidget.RenderFlag.DrawChildren)
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


def as_npz(tables: Sequence[Table]) -> bytes:
    """Two arrays a table: NAME str (lines, cells), "" where a line is shorter, and NAME.numbers float64 of the same
    shape, NaN where a cell is no number. A float32 that is converted back is the very one."""
    arrays: dict[str, Any] = {}
    for name, lines in tables:
        key = name.replace("/", "∕").replace("\\", "∖").replace("\0", "")
        numbers = numbers_of(lines)
        cells = np.full(numbers.shape, "", dtype=object)
        for row, line in enumerate(lines):
            cells[row, : len(line)] = line
        arrays[key], arrays[f"{key}.numbers"] = cells.astype(np.str_), numbers
    out = io.BytesIO()
    np.savez_compressed(out, **arrays)
    return out.getvalue()


def as_safetensors(tables: Sequence[Table]) -> bytes:
    """A tensor a table: NAME.numbers as in NPZ; the lines of cells are JSON in the metadata, under NAME."""
    from safetensors.numpy import save  # noqa: PLC0415 - wanted by few

    texts = {name: json.dumps(lines, ensure_ascii=False).encode(errors="replace").decode() for name, lines in tables}
    return save({f"{name}.numbers": numbers_of(lines) for name, lines in tables}, texts)


def numbers_of(lines: list[list[str]]) -> NDArray[np.float64]:
    """The cells of a table, (lines, cells) float64, NaN where there is no number."""
    numbers = np.full((len(lines), max(map(len, lines), default=0)), np.nan)
    for row, line in enumerate(lines):
        for column, text in enumerate(line):
            numbers[row, column] = float(text) if _is_number(text) else np.nan
    return numbers


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


def _cell(text: str) -> str:
    text = f"'{text}" if text[:1] in {"=", "+", "@"} or (text[:1] == "-" and not _is_number(text)) else text
    return '"' + text.replace('"', '""') + '"' if any(c in text for c in ',"\n\r') else text


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
