"""Feed-forward: the neurons a token wakes, the function that bends them, experts, what each layer adds."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.commands import Command
from app.i18n import tr
from app.panels.base import Changes, Need, Panel
from app.panels.feed_forward_map import Grid, MapPage
from app.panels.feed_forward_words import (
    Neuron,
    activation_name,
    expert_captions,
    expert_columns,
    expert_tip,
    grid_lines,
    neuron_captions,
    neuron_columns,
    neuron_facts,
    neuron_lines,
    neurons_of,
    norm_lines,
    router_facts,
)
from app.panels.where_controls import WhereControls, room_of
from app.session import Topic
from app.widgets.cell_layout import CellLayout
from app.widgets.data_table import DataTable
from app.widgets.fact_list import FactList
from app.widgets.line_plot import Line, LinePlot, Mark
from app.widgets.readout import Readout
from app.widgets.segmented import Segmented
from app.widgets.ticks import figure
from app.widgets.value_combo import Choice, ValueCombo
from model.protocol.feed_forward_requests import (
    GetNeurons,
    GetNorms,
    GetRouter,
    NeuronsReply,
    NormsReply,
    RouterReply,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from app.export.panel_files import Table
    from model.protocol.framing import Arrays
    from model.protocol.wire import Request

TOP = 48
WINDOWS = (64, 256, 512)
TALL, NARROW, COLUMN = 430, 860, 470
BINS = 48
CELL_ROOM = 214
"""Px at 100 % text of "neuron 1503  product -1.39061"."""
LEAD = 20
"""Px at 100 % text from the token to the words of the cell."""
BRIEF = 9
"""Letters of a token in the key of the function."""
HELP = (
    "After attention has brought tokens together, the feed-forward works on each token alone. The stream x is widened "
    "to many neurons, each is bent by one function, and all are added up again on the way back: W_out·f(W_in·x). With "
    "a gate, one half decides how far the other gets through: W_down(f(W_gate·x) ⊙ W_up·x).\n\n"
    "A neuron is a row of W_in that asks a question of x, and a column of W_out that is added as far as the answer is "
    "yes. Wide layers ask more. The share near zero counts the neurons whose output is under 1 % of the token's "
    "largest: how many add next to nothing differs from layer to layer and with the function.\n\n"
    "Experts: a router turns x into probabilities, the best k experts are run, their results added by weight. The "
    "model holds all of them, one token pays for k.\n\n"
    "Norms: how long the stream is, and what attention and feed-forward add to it in each layer.\n\n"
    "Look for: one or two neurons far above the rest, columns that light up for one kind of token, and layers whose "
    "addition is as long as the stream itself."
)


class FeedForwardPanel(Panel):
    """Facts, strongest neurons or experts, tokens × them, the function, norms by layer."""

    panel_id: ClassVar[str] = "feed_forward"
    title: ClassVar[str] = "Feed-forward"
    help_text: ClassVar[str] = HELP
    area: ClassVar[str] = "bottom"
    needs: ClassVar[Need] = "run"
    exports: ClassVar[bool] = True
    watches: ClassVar[frozenset[str]] = frozenset({
        Topic.MODEL, Topic.RUN, Topic.NODE, "layer", "query", "scale", "hover_token",
    })  # fmt: skip

    def build(self) -> None:
        theme = self.ctx.theme
        self.neurons: list[Neuron] = []
        self.reply: NeuronsReply | None = None
        self.router: RouterReply | None = None
        self.chosen = self._carried = 0
        self._arrays: Arrays = {}
        self._routed: Arrays = {}
        self._norms: Arrays = {}
        self._order: list[int] = []
        self._asked: dict[str, object] = {}
        self._arranged = ""
        self.where = WhereControls(self.ctx, show_head=False, show_key=False)
        self.window_box = ValueCombo(theme, tr("Tokens in the map"))
        self.pages = Segmented(theme, [("experts", tr("Experts")), ("neurons", tr("Neurons"))], label=tr("Columns"))
        self.twin = Segmented(theme, [("map", tr("Map")), ("table", tr("Table"))], label=tr("Tokens by neurons as"))
        self.facts = FactList(theme, tr("The layer in numbers"))
        self.table = DataTable(theme, tr("Strongest neurons"))
        self.map = MapPage(self)
        self.function = LinePlot(theme, tr("Activation function"), x_name=tr("gate"), right_name=tr("neurons"))
        self.norms = LinePlot(
            theme, tr("Norms by layer"), x_name=tr("layer"), y_name="‖x‖", log=True, whole=True, titled=True
        )
        self.readout = Readout(theme, least=CELL_ROOM, lead=LEAD)
        self.readout.setAccessibleName(tr("The cell pointed at"))
        self.where.row.add(self.readout, grows=True)
        for widget in (self.window_box, self.pages, self.twin):
            self.where.row.add(widget)
        self.pages.hide()
        self._place = QWidget()
        self._place.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self._parts = (self.facts, self.table, self.map, self.function, self.norms)
        self._cells = CellLayout(self._place, self._parts)
        self.body.addWidget(self.where)
        self.body.addWidget(self._place, 1)
        self._connect()
        theme.changed.connect(self._arrange)
        self._arrange()

    # state → widgets

    def refresh(self, changes: Changes) -> None:
        if self.ctx.session.run is None:
            return
        if not changes <= {"hover_token", "scale"}:
            self.where.sync()
            self.norms.set_cursor(float(self.where.layer))
            self._sync_window()
            self._ask()
        if "scale" in changes:
            self.map.draw()
        self.map.follow_hover(self.ctx.selection.hover_token)

    def carry(self, before: Self) -> None:
        """Pages, how many tokens the map has, the chosen neuron or expert, the map's part in sight."""
        self._sync_window()
        self.window_box.set_key(before.window_box.key())
        self.pages.set_key(before.pages.key())
        self._show_twin(before.twin.key())
        self._carried = before._carried or before.chosen
        self.map.carry(before.map)

    def commands(self) -> Iterable[Command]:
        def has_run() -> bool:
            return self.ctx.session.run is not None

        return (
            Command(id="feed_forward.table", title="Feed-forward as a table", menu="View", group=1, enabled=has_run,
                    run=lambda: self._show_twin("map" if self.map.as_table else "table"),
                    checked=lambda: self.map.as_table),
        )  # fmt: skip

    def tables(self, done: Callable[[list[Table]], None]) -> None:
        found: list[Table] = [(tr("numbers"), [[fact.name, fact.value] for fact in self.facts.facts])]
        if self.reply is not None:
            found.append((tr("Strongest neurons"), neuron_lines(self.neurons)))
        grid = self.map.grid
        if grid is not None:
            pieces = [token.piece for token in self.ctx.session.path_tokens()]
            found.append((grid.title, grid_lines(grid.values, grid.start, pieces, grid.names)))
        found.append((tr("Norms by layer"), norm_lines(self._norms)))
        done(found)

    def figure(self, formats: tuple[str, ...], theme: str, stem: str) -> Request | None:  # noqa: ARG002
        """The layer's activations, of which the panel shows the strongest."""
        from app.export.subjects import numbers  # noqa: PLC0415 - not before it is asked for

        return numbers(f"layers.{self.where.layer}.mlp.*", stem=stem)

    @property
    def shows_experts(self) -> bool:
        """Whether the columns are experts now."""
        return self.router is not None and self.pages.key() == "experts"

    def rows(self) -> tuple[int, int]:
        """The tokens of the map: the whole text where it fits, else those up to the chosen one."""
        size, length = int(str(self.window_box.key())), self.ctx.session.length
        stop = min(length, max(self.ctx.selection.query + 1, size))
        return max(0, stop - size), stop

    def _ask(self) -> None:
        session, layer, position = self.ctx.session, self.where.layer, self.ctx.selection.query
        if session.phase == "decode" and self._asked:
            return  # the tokens of a stream come faster than they can be read
        rows = self.rows()
        tokens = session.path_tokens()
        # What is asked for depends on the text up to here alone, not on how far it has grown since.
        state = (session.run_id, tokens[max(position, rows[1] - 1)].node)
        neurons = GetNeurons(layer=layer, position=position, top=TOP, rows=rows)
        self._ask_once("neurons", (state, neurons), lambda asked: self.ask(
            neurons, self._on_neurons, on_error=lambda _: self._forget("neurons", asked), slot="neurons"))  # fmt: skip
        norms = GetNorms(position=position)
        self._ask_once("norms", ((session.run_id, tokens[position].node), norms), lambda asked: self.ask(
            norms, self._on_norms, on_error=lambda _: self._forget("norms", asked), slot="norms",
            priority="background"))  # fmt: skip

    def _ask_once(self, name: str, asked: object, ask: Callable[[object], object]) -> None:
        if self._asked.get(name) != asked:
            self._asked[name] = asked
            ask(asked)

    def _forget(self, name: str, asked: object) -> None:
        if self._asked.get(name) == asked:
            self._asked.pop(name)

    def _on_neurons(self, reply: NeuronsReply, arrays: Arrays) -> None:
        self.reply, self._arrays = reply, arrays
        self.neurons = neurons_of(arrays)
        self.chosen, self._carried = self._carried, 0
        self.pages.setVisible(reply.has_experts)
        if reply.has_experts:
            message = GetRouter(layer=reply.layer, rows=reply.rows)
            self.ask(message, self._on_router, slot="router")
        else:
            self.router = None
        if not self.shows_experts:
            self._show_columns()
        self._show_function()

    def _on_router(self, reply: RouterReply, arrays: Arrays) -> None:
        if self.reply is None or (reply.layer, reply.rows) != (self.reply.layer, self.reply.rows):
            return
        self.router, self._routed = reply, arrays
        self._show_columns()

    def _on_norms(self, _reply: NormsReply, arrays: Arrays) -> None:
        self._norms = arrays
        layers = np.arange(len(arrays["attention"]), dtype=np.float32)
        stream = np.asarray(arrays["resid"])
        self.norms.set_lines([
            Line(name=tr("attention"), x=layers, y=np.asarray(arrays["attention"]), colour="text"),
            Line(name=tr("feed-forward"), x=layers, y=np.asarray(arrays["feed_forward"]), colour="secondary",
                 dashed=True),
            Line(name=tr("stream"), x=np.arange(len(stream), dtype=np.float32), y=stream),
        ])  # fmt: skip
        self.norms.set_cursor(float(self.where.layer))

    def _show_columns(self) -> None:
        """Table, map and facts of the neurons, or of the experts."""
        reply, model = self.reply, self.ctx.session.model
        if reply is None or model is None:
            return
        row = reply.position - reply.rows[0]
        if self.shows_experts and self.router is not None:
            self._show_experts(self.router, row)
            return
        self.table.setAccessibleName(tr("Strongest neurons"))
        self.table.set_columns(neuron_columns(reply, self.neurons))
        self._order = list(range(len(self.neurons)))
        captions, tip = neuron_captions(reply, len(self.neurons), self._token(reply.position))
        grid = Grid(
            values=np.asarray(self._arrays["heat"]), start=reply.rows[0], names=[n.label for n in self.neurons],
            kind=tr("neuron"), value=tr("product") if reply.gated else tr("after"), signed=True,
            hidden=tr("not sent to that expert"), title=tr("Tokens by strongest neurons"), captions=captions, tip=tip,
        )  # fmt: skip
        self.map.show_grid(grid, (row, self.chosen))
        self._show_chosen()

    def _show_experts(self, router: RouterReply, row: int) -> None:
        probs, load = np.asarray(self._routed["probs"]), np.asarray(self._routed["load"])
        chosen = np.asarray(self._routed["chosen"])
        weights = np.asarray(self._routed["weights"])[row].tolist()
        mine = chosen[row].tolist()
        self._order = np.argsort(-probs[row], kind="stable").tolist()
        self.chosen = min(self.chosen, router.n_experts - 1)
        strong = frozenset(at for at, expert in enumerate(self._order) if expert in mine)
        self.table.setAccessibleName(tr("Experts, likeliest first"))
        self.table.set_columns(expert_columns(probs[row], mine, weights, load), strong=strong)
        grid = Grid(
            values=probs, start=router.rows[0], names=[str(e) for e in range(router.n_experts)], kind=tr("expert"),
            value=tr("probability"), signed=False, hidden="", marked=chosen, title=tr("Tokens by experts"),
            captions=expert_captions(router.n_experts), tip=expert_tip(router),
        )  # fmt: skip
        self.map.show_grid(grid, (row, self._order[self.chosen]))
        self.table.set_current(self.chosen)
        self.facts.set_facts(router_facts(router, probs[row], load))

    def _show_chosen(self) -> None:
        """The chosen neuron everywhere."""
        reply, model = self.reply, self.ctx.session.model
        if reply is None or model is None or not self.neurons:
            return
        neuron = self.neurons[min(self.chosen, len(self.neurons) - 1)]
        self.table.set_current(self.chosen)
        self.facts.set_facts(neuron_facts(reply, neuron, model))
        self._mark(neuron)

    def _show_function(self) -> None:
        reply, arrays = self.reply, self._arrays
        if reply is None:
            return
        pre, act = np.asarray(arrays["all_pre"]), np.asarray(arrays["all_act"])
        counts, edges = np.histogram(pre, bins=BINS)
        order = np.argsort(pre)
        name = activation_name(reply.activation)
        x = tr("gate") if reply.gated else tr("before")
        self.function.set_names(x=x, y="")  # the curve's name says it
        self.function.set_lines([
            Line(name=f"{name}({x})", x=np.asarray(arrays["curve_x"]), y=np.asarray(arrays["curve_y"]),
                 colour="secondary"),
            Line(name=self._token(reply.position), x=pre[order], y=act[order], style="dots"),
            Line(name=tr("{n} neurons", n=f"{len(pre):,}"), x=((edges[1:] + edges[:-1]) / 2).astype(np.float32),
                 y=counts.astype(np.float32), colour="secondary", style="bars", right=True),
        ])  # fmt: skip
        if self.neurons:
            self._mark(self.neurons[0])

    def _token(self, position: int) -> str:
        """A token and its position in a few letters: "·it (8)"."""
        tokens = self.ctx.session.path_tokens()
        piece = tokens[position].piece if position < len(tokens) else ""
        return f"{piece if len(piece) <= BRIEF else piece[: BRIEF - 1] + '…'} ({position:,})"

    def _mark(self, neuron: Neuron) -> None:
        self.function.set_marks([Mark(x=neuron.pre, y=neuron.act, colour="accent", text=figure(neuron.act, 3))])

    def _sync_window(self) -> None:
        length = self.ctx.session.length
        sizes = [size for at, size in enumerate(WINDOWS) if at == 0 or length > WINDOWS[at - 1]]
        self.window_box.set_choices([
            Choice(key=size, text=tr("{n} tokens", n=f"{min(size, length):,}")) for size in sizes
        ])  # fmt: skip
        self.window_box.setVisible(len(sizes) > 1)

    def _show_readout(self) -> None:
        """The cell in the map; its token only where that is not the one named beside it."""
        heat, grid = self.map.heat, self.map.grid
        cell = heat.hovered or heat.selected
        named = cell is not None and grid is not None and grid.start + cell[0] == self.ctx.selection.query
        said = [heat.readout(brief=brief)[2 if named else 0 :] for brief in (0, 1, 2, 3)]
        self.readout.set_parts(*said)

    # widgets → state

    def _connect(self) -> None:
        self.table.rowChosen.connect(self._choose)
        self.table.rowHovered.connect(self._hover_row)
        self.map.columnChosen.connect(self._choose_column)
        self.map.columnHovered.connect(self._hover_column)
        self.map.heat.described.connect(self._show_readout)
        self.map.tableAsked.connect(lambda: self._show_twin("table"))
        self.window_box.keyChosen.connect(lambda _key: self.mark("window"))
        self.pages.keyChanged.connect(self._on_page)
        self.twin.keyChanged.connect(self._show_twin)
        self.norms.xClicked.connect(
            lambda x: self.ctx.selection.set_layer(min(round(x), self.ctx.selection.n_layers - 1))
        )

    def _choose(self, rank: int) -> None:
        self.chosen = rank
        row = self.ctx.selection.query - self.map.grid.start if self.map.grid else 0
        self.map.select((row, self._order[rank]))
        if not self.shows_experts:
            self._show_chosen()

    def _choose_column(self, column: int) -> None:
        self.chosen = self._order.index(column)
        self.table.set_current(self.chosen)
        if not self.shows_experts:
            self._show_chosen()

    def _hover_row(self, rank: int) -> None:
        if rank < 0 or self.map.grid is None:
            self.map.heat.set_hovered(None)
        else:
            self.map.heat.set_hovered((self.ctx.selection.query - self.map.grid.start, self._order[rank]))
        self._hover_column(self._order[rank] if rank >= 0 else -1)

    def _hover_column(self, column: int) -> None:
        if self.shows_experts or not self.neurons:
            return
        self._mark(self.neurons[column if 0 <= column < len(self.neurons) else min(self.chosen, len(self.neurons) - 1)])

    def _on_page(self, _key: str) -> None:
        self.chosen = 0
        self._show_columns()

    def _show_twin(self, key: str) -> None:
        self.twin.set_key(key)
        self.map.show_table(shown=key == "table")

    # layout

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange()

    def room_changed(self) -> None:
        self._arrange()

    def _arrange(self) -> None:
        """One row where the panel is low, two where it is tall; two columns where it is narrow, or one."""
        px = self.ctx.theme.px
        narrow, tall = self.width() < px(NARROW), room_of(self).height() >= px(TALL)
        column = self.width() < px(COLUMN)
        arranged = f"{'column' if column else 'narrow' if narrow else 'tall' if tall else 'low'} {px(100)}"
        if arranged == self._arranged:
            return
        self._arranged = arranged
        self.facts.set_grows(grows=narrow)
        if narrow and not column:
            self._cells.arrange(
                {self.facts: (0, 0, 1, 1), self.table: (1, 0, 1, 1), self.map: (0, 1, 2, 1),
                 self.function: (2, 0, 1, 1), self.norms: (2, 1, 1, 1)},
                columns=(5, 6), rows=(2, 3, 3), least=[*map(px, (110, 110, 130))],
            )  # fmt: skip
        elif narrow:
            high = [220 if widget is self.map else 130 for widget in self._parts]
            self._cells.arrange(
                {widget: (row, 0, 1, 1) for row, widget in enumerate(self._parts)},
                columns=(1,), rows=[2 if widget is self.map else 1 for widget in self._parts], least=[*map(px, high)],
            )  # fmt: skip
        elif tall:
            self._cells.arrange(
                {self.facts: (0, 0, 1, 1), self.table: (1, 0, 2, 1), self.map: (0, 1, 2, 2),
                 self.function: (2, 1, 1, 1), self.norms: (2, 2, 1, 1)},
                columns=(30, 35, 35), rows=(24, 36, 40),
            )  # fmt: skip
        else:
            places = {widget: (0, column, 1, 1) for column, widget in enumerate(self._parts)}
            self._cells.arrange(places, columns=(21, 26, 31, 16, 22), rows=(1,))
