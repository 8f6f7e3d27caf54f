"""The engine's state and the model in it: which is open, opening another, fetching one."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from app.i18n import tr
from app.notify import WayOut
from app.state.under_way import Phase, UnderWay
from model.protocol.engine_requests import CatalogueEntry, GetModel, HelloReply, OpenModel
from model.protocol.values import NOT_FINITE, ModelInfo

if TYPE_CHECKING:
    from app.engine import EngineClient
    from app.notify import Notifier
    from app.settings import Settings
    from model.protocol.wire import ErrorInfo


RUN_SUFFIX = ".dscope"


def is_run_file(source: str) -> bool:
    """Whether a source names a recorded run."""
    return source.lower().endswith(RUN_SUFFIX)


class EngineStatus(StrEnum):
    """What the engine's process is doing, as a person would say it."""

    OFF = "off"
    STARTING = "starting"
    READY = "ready"
    LOST = "lost"
    SILENT = "silent"


class ModelDesk(QObject):
    """`opened(first, same)`: a model is there, the first of this window, the same as before. `refused`: the model asked
    for is not. `lost`: the engine and all it held is gone. `absent(why)`: there is no model to open; empty: the default
    has not been fetched. `open_run`: what opens a source that is a run file."""

    statusChanged = Signal()
    refused = Signal()
    lost = Signal()
    opened = Signal(bool, bool)
    absent = Signal(str)
    open_run: Callable[[str], object] | None = None

    def __init__(
        self,
        engine: EngineClient,
        settings: Settings,
        notify: Notifier,
        under_way: UnderWay,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._engine, self._settings, self._notify, self._under_way = engine, settings, notify, under_way
        self.status = EngineStatus.OFF
        self.hello: HelloReply | None = None
        self.model: ModelInfo | None = None
        self.loaded = False  # whether the engine holds it
        self.reopened = False  # whether it comes from where the one before it came from
        self.source = ""
        self._dtype = ""
        self.first_source = ""
        engine.stateChanged.connect(self._on_engine_state)

    @property
    def default_entry(self) -> CatalogueEntry | None:
        """The catalogue's first model, which is the default."""
        return self.hello.catalogue[0] if self.hello and self.hello.catalogue else None

    def open(self, source: str, *, dtype: str = "") -> None:
        """Opens a model; the one that is open stays until the new one is whole. "" is the default model. `dtype`: other
        than the preferred one."""
        if is_run_file(source) and self.open_run is not None:
            self.open_run(source)
            return
        prefs = self._settings.values
        message = OpenModel(
            source=source,
            device=prefs.device,
            dtype=dtype or prefs.dtype,  # type: ignore[arg-type] # the engine checks it and says so
            threads=prefs.threads,
        )
        pending = self._engine.request(
            message,
            on_reply=lambda info, _arrays: self._on_model(info, source, dtype),
            on_progress=self._under_way.on_progress,
            on_error=lambda error: self._on_error(error, source, dtype),
        )
        self._under_way.begin(Phase.OPENING, tr("Opening the model"), pending)

    def reopen(self) -> None:
        """Opens the model once more that is or was open."""
        self.open(self.source, dtype=self._dtype)

    def fetch(self, name: str) -> None:
        """Fetches a model of the catalogue, then opens it."""
        pending = self._engine.request(
            GetModel(name=name),
            on_reply=lambda entry, _arrays: self.open(entry.name),
            on_progress=self._under_way.on_progress,
            on_error=lambda error: self._on_error(error, name),
        )
        self._under_way.begin(Phase.OPENING, tr("Getting the model"), pending)

    def open_default(self) -> None:
        """Opens the default model, fetching it first when it is not on this machine."""
        default = self.default_entry
        if default is not None and not default.path:
            self.fetch(default.name)
        else:
            self.open("")

    def _on_engine_state(self) -> None:
        status = EngineStatus(str(self._engine.state))
        previous, self.status = self.status, status
        self.loaded = self.loaded and status in {EngineStatus.READY, EngineStatus.SILENT}
        if status is EngineStatus.READY and previous is not EngineStatus.SILENT:
            self.hello = self._engine.hello
            self.reopen() if self.model else self._first_open()
        elif previous in {EngineStatus.READY, EngineStatus.SILENT} and status is not EngineStatus.SILENT:
            self._notify.clear()  # the banner says why, and the status line that
            self.lost.emit()
        self.statusChanged.emit()

    def _first_open(self) -> None:
        recent = self._settings.values.recent_models
        models = [source for source in recent if not is_run_file(source)]
        source = self.first_source or (models[0] if models else "")
        default = self.default_entry
        if not source and default is not None and not default.path:
            self.absent.emit("")
        else:
            self.open(source)

    def _on_model(self, info: ModelInfo, source: str, dtype: str) -> None:
        first = self.model is None
        self.reopened = self.model is not None and self.source == source
        same = self.reopened and self.model is not None and self.model.d_vocab == info.d_vocab
        self.model, self.source, self._dtype, self.loaded = info, source, dtype, True
        self._under_way.resting = Phase.READY
        self._under_way.end()
        self._settings.add_recent(source)
        for warning in info.warnings:
            (self._notify.warn if NOT_FINITE in warning else self._notify.tell)(warning)
        self.opened.emit(first, same)

    def adopt(self, info: ModelInfo, source: str) -> None:
        """What a run file tells of its model stands in the model's place."""
        self.model, self.source, self._dtype, self.loaded = info, source, "", True
        self._under_way.resting = Phase.READY

    def _on_error(self, error: ErrorInfo, source: str, dtype: str = "") -> None:
        self._under_way.end()
        self.refused.emit()
        if self.model is None and error.code != "engine_lost":
            self.absent.emit("" if error.code == "cancelled" else error.message)
            return
        again = WayOut(label=tr("Try again"), run=lambda: self.open(source, dtype=dtype))
        self._notify.engine_error(tr("The model was not opened"), error, again)
