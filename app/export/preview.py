"""What an export will look like: the engine's own figure with as many dots as the screen shows, or the panel itself."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from PySide6.QtCore import QByteArray, QSize, Qt
from PySide6.QtGui import QImage, QPixmap
from PySide6.QtWidgets import QLabel, QSizePolicy

from app.engine import LOST
from app.export.panel_files import picture
from app.export.subjects import FIGURES, PANEL, message_of
from app.i18n import tr
from app.notify import QUIET_CODES
from model.protocol.errors import DecoderscopeError
from model.protocol.export_kinds import EXPORT_KINDS

if TYPE_CHECKING:
    from app.engine import EngineClient, Pending
    from app.export.subjects import Want
    from app.panels.base import Panel
    from model.protocol.export_requests import FilePart
    from model.protocol.framing import Arrays
    from model.protocol.wire import ErrorInfo, Place, Progress

SMALLEST = QSize(360, 320)
MIN_DPI, MAX_DPI = 36, 1200


class Preview(QLabel):
    """Shows one want at a time; a newer one ends what is being drawn for an older."""

    def __init__(self, engine: EngineClient) -> None:
        super().__init__(tr("Drawing …"))
        self._engine = engine
        self._pending: Pending | None = None
        self._bytes: list[bytes] = []
        self.place: Place | None = None
        """Where the run was when what is shown, or being drawn, was asked for; None: it is of no run."""
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setWordWrap(True)
        self.setAccessibleName(tr("Preview"))
        self.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.setMinimumSize(SMALLEST)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)

    def sizeHint(self) -> QSize:
        return SMALLEST  # a figure, drawn for the room there is, asks for no more and no less

    def show_want(self, want: Want, panel: Panel) -> None:
        """Draws it, or says why there is nothing to see."""
        self.stop()
        self.place = None
        if not FIGURES & set(want.formats):
            page = "html" in want.formats
            text = tr("An interactive page: no preview.") if page else tr("Numbers only: no figure to preview.")
            self.setText(text)
        elif want.kind == PANEL:
            self.place = place_of(panel)
            self._show(picture(panel))
        else:
            try:
                message = message_of(replace(want, formats=("png",), dpi=self._dpi(want), stem="preview"), panel)
            except DecoderscopeError as error:
                self.setText(str(error))
                return
            self._bytes, self.place = [], place_of(panel)
            self._pending = self._engine.request(
                message, on_part=self._on_part, on_reply=self._on_reply, on_progress=self._on_progress,
                on_error=self._on_error, slot="export.preview", owner=self,
            )  # fmt: skip

    def stop(self) -> None:
        """Nothing is to be drawn any more."""
        pending, self._pending = self._pending, None
        if pending is not None:
            pending.cancel()

    def _dpi(self, want: Want) -> int:
        fitting = min(self.width() / want.width, self.height() / want.height) * self.devicePixelRatioF()
        return int(min(max(fitting, MIN_DPI), MAX_DPI))

    def _on_part(self, part: FilePart, arrays: Arrays) -> None:
        if part.offset == 0:
            self._bytes = []
        self._bytes.append(np.asarray(arrays["data"], dtype=np.uint8).tobytes())

    def _on_progress(self, progress: Progress) -> None:
        if progress.total > 1 and self.pixmap().isNull():
            self.setText(tr("Drawing …") + f" {progress.done:,} / {progress.total:,}")

    def _on_reply(self, *_: object) -> None:
        self._pending = None
        image = QImage.fromData(QByteArray(b"".join(self._bytes)))
        if not image.isNull():
            self._show(image)

    def _on_error(self, error: ErrorInfo) -> None:
        if error.code not in QUIET_CODES or error.code == LOST:
            self._pending = None
            self.setText(error.message)

    def _show(self, image: QImage) -> None:
        ratio = self.devicePixelRatioF()
        room = self.size() * ratio
        if image.width() > room.width() or image.height() > room.height():
            image = image.scaled(room, Qt.AspectRatioMode.KeepAspectRatio, Qt.TransformationMode.SmoothTransformation)
        image.setDevicePixelRatio(ratio)
        self.setPixmap(QPixmap.fromImage(image))


def place_of(panel: Panel) -> Place:
    """Where the run is now."""
    session = panel.ctx.session
    return session.run_id or 0, session.current_node


def has_figures(kind: str) -> bool:
    """Whether a kind is drawn by the engine, at a size that is asked for."""
    return kind != PANEL and EXPORT_KINDS[kind].drawn
