"""Hundreds of random changes to what a window shows, in any order and faster than the engine answers; afterwards every
panel in sight must have come to rest, with the numbers of what is chosen."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence

from PySide6.QtCore import QEventLoop, QRect, QTimer

from app.frame.docks import PanelDock
from app.main import Application
from app.panels.attention import AttentionPanel
from app.selection import SCALES, STAGES
from app.session import Session
from app.widgets.heatmap_view import View
from model.protocol.attention_requests import CellReply, GetCell

REST_SECONDS = 20.0
PAUSES = (0, 0, 1, 5, 17, 40)
"""Milliseconds the loop turns between two changes: mostly less than a frame."""


class Storm:
    """Changes to `application`'s window, drawn from `seed`; those named in `without` never come."""

    def __init__(self, application: Application, seed: int, without: Sequence[str] = ()) -> None:
        assert application.ctx is not None
        self.application, self.window, self.ctx = application, application.window, application.ctx
        self.session: Session = application.ctx.session
        self.random = random.Random(seed)
        self.done: list[str] = []
        self._without = without
        self._texts = iter(range(10**6))

    @property
    def attention(self) -> AttentionPanel:
        panel = self.window.docks["attention"].panel
        assert isinstance(panel, AttentionPanel)
        return panel

    def blow(self, changes: int) -> None:
        """So many of them."""
        acts = {name: act for name, act in self._acts().items() if name not in self._without}
        weights = [weight for weight, _ in acts.values()]
        for name in self.random.choices(list(acts), weights, k=changes):
            self.done.append(name)
            acts[name][1]()
            turn(self.random.choice(PAUSES))

    def rest(self) -> str:
        """Waits until all is drawn; what is not after 20 s, empty when all is."""
        self.window.restore_maximised()
        for dock in self.window.docks.values():
            dock.setFloating(False)
            dock.show()
        if self.attention.main.as_table:
            self.attention.toggle_table()
        self.window.docks["attention"].raise_()
        until = time.monotonic() + REST_SECONDS
        waiting = "?"
        while waiting:
            if time.monotonic() > until:
                return waiting
            turn(20)
            waiting = self._waiting_for()
        return ""

    def exact(self, query: int, key: int) -> float | None:
        """A cell of the chosen view, asked of the engine anew; None: it is masked."""
        found: list[CellReply] = []
        message = GetCell(view=self.ctx.selection.view, query=query, key=key)
        self.ctx.engine.request(message, on_reply=lambda reply, _: found.append(reply))
        until = time.monotonic() + REST_SECONDS
        while not found and time.monotonic() < until:
            turn(5)
        return found[0].value

    def _waiting_for(self) -> str:
        if self.session.busy or self.session.prompt.stale:
            return f"the session, {self.session.phase}"
        panels = [dock.panel for dock in self.window.docks.values() if dock.panel.seen()]
        late = [panel.panel_id for panel in panels if not panel.settled]
        if late:
            return f"panels {', '.join(late)}"
        last = self.session.length - 1
        main, side = self.attention.main, self.attention.side
        if not self.attention.seen():
            return f"attention to be seen in {self.attention.visibleRegion()} of {self.attention.geometry()}"
        if main.view != self.ctx.selection.view:
            return f"the matrix of {self.ctx.selection.view}, not {main.view}"
        heat = main.heat
        rows, cols = heat.wanted()[:2]
        drawn = [(tile.rows, tile.cols) for tile in heat.tiles[-1:] if heat._held_rows is None]
        if last >= 0 and drawn != [(rows, cols)]:
            return f"the cells of {main.view}, asked {main._asked}"
        pooled = bool(heat.tiles) and heat.tiles[-1].values is None  # there are more cells than pixels
        if last >= 0 and not pooled and heat.value_of((rows[1] - 1, cols[0])) is None:
            return f"the last row of {main.view}, asked {main._asked}"
        if side.grid.isVisible() and side.grid.missing():
            return f"heads of layers {side.grid.missing()}"
        return ""

    def _number(self, count: int) -> int:
        return self.random.randrange(max(1, count))

    def _dock(self) -> PanelDock:
        return self.random.choice(list(self.window.docks.values()))

    def _cell(self) -> tuple[int, int]:
        return self._number(self.session.length), self._number(self.session.length)

    def _node(self) -> int:
        return self.random.choice([self.session.current_node, *self.session.nodes])

    # what changes

    def _back_and_forth(self) -> None:
        self.ctx.selection.step_head(1)
        self.ctx.selection.step_head(-1)

    def _head(self) -> None:
        selection = self.ctx.selection
        selection.set_layer_head(self._number(selection.n_layers), self._number(selection.n_heads))

    def _text(self) -> None:
        self.session.set_prompt(f"The animal {next(self._texts)} " + "did not cross the street " * self._number(4))

    def _toggle_dock(self) -> None:
        dock = self._dock()
        dock.setVisible(not dock.isVisible())

    def _zoom(self) -> None:
        heat, number = self.attention.main.heat, self._number
        rows, cols = heat.shape
        part = View(row=number(rows) / 2, col=number(cols) / 2, rows=max(2.0, rows / 2), cols=max(2.0, cols / 2))
        heat.set_view(part)

    def _resize(self) -> None:
        self.window.setGeometry(QRect(0, 0, 700 + self._number(700), 560 + self._number(340)))

    def _take_back(self) -> None:  # as another window of the same engine might
        for pending in list(self.ctx.engine._open.values()):
            if pending.message.lane == "view":
                pending.cancel()

    def _measure(self) -> None:
        box = self.attention.side.metric_box
        box.set_key(self.random.choice(("", "entropy", "previous")))
        box.keyChosen.emit(box.key())

    def _page(self) -> None:
        self.attention.side.show_page(self.random.choice(("heads", "row", "column", "entropy")))

    def _whole(self) -> None:
        self.attention.main.heat.reset_view()

    def _grid(self) -> None:
        self.attention.toggle_grid()

    def _table(self) -> None:
        self.attention.toggle_table()

    def _acts(self) -> dict[str, tuple[int, Callable[[], object]]]:
        """Each with how often it comes."""
        session, selection, pick, settings = self.session, self.ctx.selection, self.random.choice, self.ctx.settings
        return {
            "head": (12, self._head), "stage": (6, lambda: selection.set_stage(pick(STAGES))),
            "back and forth": (6, self._back_and_forth), "scale": (3, lambda: selection.set_scale(pick(SCALES))),
            "first apart": (2, lambda: selection.set_ignore_first(not selection.ignore_first)),
            "levels": (2, lambda: selection.set_fixed(not selection.fixed)),
            "cell": (4, lambda: selection.set_cell(*self._cell())),
            "hover": (6, lambda: selection.set_hover(cell=self._cell())),
            "step": (6, lambda: session.step(1 + self._number(3))), "left": (5, session.back),
            "right": (5, session.forward), "first": (2, session.first), "last": (2, session.last),
            "seek": (3, lambda: session.seek(self._node())),
            "branch": (2, lambda: session.branch(self._node(), self._number(250))), "stop": (2, session.stop),
            "text": (3, self._text), "prefill": (3, session.prefill), "raise": (6, lambda: self._dock().raise_()),
            "dock": (3, self._toggle_dock), "float": (2, lambda: self._dock().toggle_floating()),
            "maximise": (2, lambda: self.window.toggle_maximised(self._dock())),
            "layout": (1, self.window.reset_layout), "resize": (3, self._resize),
            "theme": (1, lambda: settings.update(theme=pick(("dark", "light")))),
            "language": (1, lambda: settings.update(language=pick(("en", "zh_CN")))), "zoom": (3, self._zoom),
            "whole": (3, self._whole), "grid": (2, self._grid), "table": (1, self._table),
            "pin": (2, lambda: selection.toggle_pin(selection.view)), "taken back": (3, self._take_back),
            "page": (3, self._page), "measure": (1, self._measure),
        }  # fmt: skip


def turn(milliseconds: int) -> None:
    """Runs the event loop for a while."""
    loop = QEventLoop()
    QTimer.singleShot(milliseconds, loop, loop.quit)
    loop.exec()
