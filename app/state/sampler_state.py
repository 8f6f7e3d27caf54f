"""The sampler's settings and the next token's distribution under them, which follows without a forward pass."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QObject, Signal

from app.state.lost_run import UNSERVED
from model.protocol.run_requests import DistributionReply, GetDistribution
from model.protocol.values import SamplerSettings

if TYPE_CHECKING:
    from app.engine import EngineClient
    from model.protocol.framing import Array, Arrays
    from model.protocol.wire import ErrorInfo

TOP = 40


class SamplerState(QObject):
    """`settings` in force; `version` counts their changes; `distribution` belongs to node `distribution.node`, and so
    do `cdf`, the cumulative p, and `cdf_tokens`, after how many kept tokens it is that (`GetDistribution`); its `found`
    to `searched`. `settingsChanged`, `distributionChanged`."""

    settingsChanged = Signal()
    distributionChanged = Signal()

    def __init__(self, engine: EngineClient, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._engine = engine
        self._run: tuple[int, int] | None = None
        self.settings = SamplerSettings()
        self.version = 0
        self.search = self.searched = ""
        self.distribution: DistributionReply | None = None
        self.unserved = False
        self.cdf: Array | None = None
        self.cdf_tokens: Array | None = None

    def set(self, **changes: Any) -> None:
        """Changes settings. Raises BadValueError naming the field."""
        settings = replace(self.settings, **changes)
        if settings != self.settings:
            self.settings = settings
            self.version += 1
            self.settingsChanged.emit()
            self._ask()

    def set_search(self, text: str) -> None:
        """A piece of text or an id to find in the vocabulary beside the candidates."""
        if text != self.search:
            self.search = text
            self._ask()

    def look_at(self, run_id: int, node: int) -> None:
        """The distribution after `node` is wanted from now on."""
        self._run = (run_id, node)
        self._ask()

    def clear(self) -> None:
        """There is no run."""
        self._run = None
        self.unserved = False
        self.distribution = self.cdf = self.cdf_tokens = None
        self.distributionChanged.emit()

    def _ask(self) -> None:
        if self._run is None:
            return
        asked, search = self._run, self.search

        def done(reply: DistributionReply, arrays: Arrays) -> None:
            if self._run == asked:
                self.searched, self.unserved = search, False
                self.distribution, self.cdf, self.cdf_tokens = reply, arrays.get("cdf"), arrays.get("cdf_tokens")
                self.distributionChanged.emit()

        def failed(error: ErrorInfo) -> None:
            # Superseded or refused leaves what was drawn; the next change asks again.
            if error.code in UNSERVED and self._run == asked:
                self.unserved = True
                self.distributionChanged.emit()

        self._engine.request(
            GetDistribution(node=asked[1], settings=self.settings, top=TOP, search=search),
            on_reply=done,
            on_error=failed,
            slot="session.distribution",
        )
