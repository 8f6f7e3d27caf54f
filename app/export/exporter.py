"""Exports: what was chosen, one under way at a time, how it ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast, get_args

from PySide6.QtCore import QObject, QStandardPaths, Qt, QUrl, Signal
from PySide6.QtGui import QDesktopServices
from shiboken6 import isValid

from app.export.files import FileExport
from app.export.panel_files import PanelExport
from app.export.places import NoSuchUserError, is_there, typed_path
from app.export.subjects import PANEL, Want, kind_of, message_of, stem_of
from app.i18n import tr
from app.notify import QUIET_CODES, Trouble
from app.widgets.toast import Toast
from model.colormaps import ONE_SIGNED
from model.protocol.errors import DecoderscopeError
from model.protocol.export_kinds import EXPORT_KINDS
from model.protocol.export_requests import FigureTheme

if TYPE_CHECKING:
    from PySide6.QtWidgets import QWidget

    from app.context import AppContext
    from app.export.dialog import ExportDialog
    from app.panels.base import Panel
    from app.state.aside import Task
    from model.protocol.wire import ErrorInfo, Progress

Size = tuple[float, float]
KINDS = (PANEL, *(name for name in EXPORT_KINDS if name not in {"run", "logits", "kv"}))
"""What the window exports; a run has its own dialog, logits and kv are names of activations."""
PANEL_FORMATS = ("png", "csv", "json", "npz", "safetensors")
FORMATS = ("png", "svg", "pdf", "html", "csv", "npz", "json", "safetensors")
"""All formats, in the order in which they are offered."""
MIN_INCHES, MAX_INCHES, MIN_DPI, MAX_DPI = 1.0, 60.0, 36, 1200


def formats_of(kind: str) -> tuple[str, ...]:
    """The formats of a kind, in the order in which they are offered."""
    known = PANEL_FORMATS if kind == PANEL else EXPORT_KINDS[kind].formats
    return tuple(name for name in FORMATS if name in known)


@dataclass(frozen=True, kw_only=True)
class ExportOptions:
    """What was chosen last, as it is remembered. `sizes` in inches by kind."""

    formats: tuple[str, ...] = ("png", "csv")
    theme: FigureTheme = "light"
    colormap: str = "viridis"
    sizes: Mapping[str, Size] = field(default_factory=dict)
    dpi: int = 200
    whole: bool = True
    layers: str = "all"
    heads: str = "all"
    folder: str = ""

    @classmethod
    def remembered(cls, values: dict[str, Any]) -> ExportOptions:
        """Options from the preferences; what does not fit is left at its default."""
        default = cls()
        found = values.get("formats", default.formats)
        formats = tuple(f for f in FORMATS if f in found) if isinstance(found, list | tuple) else ()
        theme = values.get("theme") if values.get("theme") in get_args(FigureTheme) else default.theme
        colormap = values.get("colormap") if values.get("colormap") in ONE_SIGNED else default.colormap
        sizes = values.get("sizes")
        return cls(
            formats=formats or default.formats, theme=cast("FigureTheme", theme), colormap=str(colormap),
            sizes={str(kind): _size(size, EXPORT_KINDS[kind].size) for kind, size in sizes.items()
                   if kind in EXPORT_KINDS} if isinstance(sizes, dict) else {},
            dpi=int(_number(values.get("dpi"), default.dpi, MIN_DPI, MAX_DPI)),
            whole=bool(values.get("whole", default.whole)),
            layers=str(values.get("layers") or default.layers), heads=str(values.get("heads") or default.heads),
            folder=str(values.get("folder", "")),
        )  # fmt: skip

    def as_values(self) -> dict[str, Any]:
        """For the preferences."""
        return {
            **asdict(self),
            "formats": list(self.formats),
            "sizes": {kind: list(size) for kind, size in self.sizes.items()},
        }

    def formats_for(self, kind: str) -> tuple[str, ...]:
        """Those of a kind that were chosen; its first one where none was."""
        known = formats_of(kind)
        return tuple(name for name in known if name in self.formats) or known[:1]

    def size(self, kind: str) -> Size:
        """Of a kind's figures, inches."""
        default = (0.0, 0.0) if kind == PANEL else EXPORT_KINDS[kind].size
        return self.sizes.get(kind, default)

    def want(self, kind: str, stem: str) -> Want:
        """All of it, for one kind."""
        width, height = self.size(kind)
        return Want(
            kind=kind, formats=self.formats_for(kind), stem=stem, theme=self.theme, colormap=self.colormap,
            width=width, height=height, dpi=self.dpi, whole=self.whole, layers=self.layers, heads=self.heads,
        )  # fmt: skip


def _number(value: object, default: float, low: float, high: float) -> float:
    good = isinstance(value, int | float) and not isinstance(value, bool) and low <= value <= high
    return float(value) if good else default  # type: ignore[arg-type] # checked above


def _size(value: object, default: Size) -> Size:
    if not isinstance(value, list | tuple) or len(value) != 2:
        return default
    width, height = (_number(one, 0, MIN_INCHES, MAX_INCHES) for one in value)
    return (width, height) if width and height else default


def default_folder() -> Path:
    """Where exports go until another folder is chosen: the user's documents."""
    place = QStandardPaths.writableLocation(QStandardPaths.StandardLocation.DocumentsLocation)
    return Path(place) / "Decoderscope" if place else Path.home()


class Exporter(QObject):
    """One export at a time, with or without the dialog; says how it ended."""

    progressed = Signal(object)  # Progress in the person's words
    ended = Signal(object)  # list[Path], empty when it failed or was cancelled

    def __init__(self, ctx: AppContext, parent: QObject | None = None) -> None:
        super().__init__(parent or ctx.session)
        self.ctx = ctx
        self.options = ExportOptions.remembered(ctx.settings.panel("export"))
        self.running: FileExport | PanelExport | None = None
        self.toast: Toast | None = None
        self._window: QWidget | None = None  # the panel may be gone at the end: made anew in another language
        self._task: Task | None = None

    @classmethod
    def shared(cls, ctx: AppContext) -> Exporter:
        """The window's one, made on first use."""
        found = ctx.session.findChild(cls, options=Qt.FindChildOption.FindDirectChildrenOnly)
        return found if isinstance(found, cls) else cls(ctx)

    def open(self, panel: Panel) -> ExportDialog:
        """The dialog, with what `panel` shows chosen."""
        from app.export.dialog import ExportDialog  # noqa: PLC0415 - it needs this file

        dialog = ExportDialog(self, panel)
        dialog.open()
        return dialog

    def again(self, panel: Panel) -> None:
        """Exports what `panel` shows with the options used last, beside what is there already, without asking."""
        kind = kind_of(panel)
        try:
            folder = typed_path(self.options.folder) if self.options.folder else default_folder()
        except NoSuchUserError as error:
            self._refuse(str(error))
            return
        stem = free_stem(folder, stem_of(kind, panel), self.options.formats_for(kind))
        self.start(panel, self.options.want(kind, stem), folder, overwrite=False)

    def start(self, panel: Panel, want: Want, folder: Path, *, overwrite: bool) -> None:
        """Writes the files; one export at a time."""
        if self.running is not None:
            self.ctx.notify.say(tr("An export is under way."))
            return
        try:
            message = None if want.kind == PANEL else message_of(want, panel)
            folder.mkdir(parents=True, exist_ok=True)
        except (OSError, ValueError) as error:  # a NUL, or half a character, is no OSError
            words = tr("The folder {folder} can't be made: {why}. Choose another one.")
            self._refuse(words.format(folder=folder, why=getattr(error, "strerror", None) or error))
            return
        except DecoderscopeError as error:
            self._refuse(str(error))
            return
        self._window = panel.window()
        if message is None:
            made = PanelExport(panel, folder, overwrite=overwrite, parent=self)
            self._begin(made)
            made.start(want.formats, want.stem)
        else:
            session = self.ctx.session
            place = None if session.busy else (session.run_id or 0, session.current_node)  # tokens may be coming
            export = FileExport(self.ctx.engine, folder, overwrite=overwrite, place=place, parent=self)
            self._begin(export)
            export.start(message)

    def cancel(self) -> None:
        """Stops the export under way; no half of a file is left."""
        if self.running is not None:
            self.ctx.notify.say(tr("Stopping …"))
            self.running.cancel()

    def remember(self, options: ExportOptions) -> None:
        """Keeps the options for the next time and the next start."""
        self.options = options
        self.ctx.settings.update_panel("export", **options.as_values())

    def _begin(self, export: FileExport | PanelExport) -> None:
        self.running = export
        self._task = self.ctx.session.aside.begin(tr("Exporting"), self.cancel)
        export.progressed.connect(self._on_progress)
        export.finished.connect(self._on_finished)
        export.failed.connect(self._on_failed)
        self.ctx.notify.say(tr("Exporting …"))

    def _on_progress(self, progress: Progress) -> None:
        if self._task is not None and (progress.unit, progress.total) != ("files", 1):  # which says nothing
            told = in_words(progress)
            self._task.tell(told)
            self.progressed.emit(told)

    def _refuse(self, why: str) -> None:
        self.ctx.notify.fail(Trouble(title=tr("The export did not work"), message=why))
        self.ended.emit([])

    def _on_finished(self, files: list[Path]) -> None:
        window = self._end()
        names = ", ".join(path.name for path in files)
        self.ctx.notify.say(tr("Exported {names}", names=names))
        folder = files[0].parent if files else default_folder()
        if self.toast is not None and isValid(self.toast):
            self.toast.close()
        if window is not None:
            self.toast = Toast(self.ctx.theme, window.window())
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

    def _end(self) -> QWidget | None:
        if self._task is not None:
            self._task.end()
            self._task = None
        if self.running is not None:
            self.running.deleteLater()
            self.running = None
        window, self._window = self._window, None
        return window


def in_words(progress: Progress) -> Progress:
    """How far an export is, as a person reads it."""
    units = {
        "heads": tr("heads"), "rows": tr("rows"), "files": tr("files"), "layers": tr("layers"),
        "positions": tr("positions"), "tokens": tr("tokens"),
    }  # fmt: skip
    return replace(progress, what=tr("Exporting"), unit=units.get(progress.unit, progress.unit))


def free_stem(folder: Path, stem: str, formats: tuple[str, ...]) -> str:
    """`stem`, or `stem`-2, -3 …: the first under which none of the files exists."""
    number, candidate = 1, stem
    while any(is_there(folder / f"{candidate}.{f}") for f in formats):
        number += 1
        candidate = f"{stem}-{number}"
    return candidate
