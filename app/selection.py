"""What is pointed at: layer, head, cell, stage, scale, hover, pins. Shared by every panel; owns no widget."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeVar

from PySide6.QtCore import QObject, Signal

if TYPE_CHECKING:
    from model.protocol.attention_requests import Head, HeadView, LayerChoice, Scale, Stage
    from model.protocol.values import ModelInfo

STAGES: tuple[Stage, ...] = ("raw", "scores", "masked", "weights", "weighted")
SCALES: tuple[Scale, ...] = ("linear", "sqrt", "log")
TINTS: tuple[Tint, ...] = ("attention", "entropy", "surprisal", "none")
MAX_PINS = 4
T = TypeVar("T")
Tint = Literal["attention", "entropy", "surprisal", "none"]
"""What tints the tokens of the text: what the chosen query reads, or how unsure or surprised the model was."""
Cell = tuple[int, int]


class Selection(QObject):
    """Every setter clamps to the model and the run, and says which fields changed (`changed`: frozenset of names).

    The chosen query and key are remembered while the path is shorter, as when a prompt is read in chunks or on going
    back, and come back with its length, until others are chosen."""

    changed = Signal(object)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._n_layers, self._n_heads, self._n_kv_heads = 1, 1, 1
        self._length = 0
        self.layer: LayerChoice = 0
        self.head: Head = 0
        self.query = 0
        self.key = 0
        self._chosen: Cell = (0, 0)
        self._single: tuple[int, int] = (0, 0)
        self.stage: Stage = "weights"
        self.scale: Scale = "sqrt"
        self.fixed = False
        self.ignore_first = False
        self.hover_token: int | None = None
        self.hover_cell: Cell | None = None
        self.pins: tuple[HeadView, ...] = ()
        self.tint: Tint = "attention"

    # limits

    @property
    def n_layers(self) -> int:
        return self._n_layers

    @property
    def n_heads(self) -> int:
        return self._n_heads

    @property
    def length(self) -> int:
        """Positions of the current path; 0 without a run."""
        return self._length

    @property
    def single_layer(self) -> int:
        """The selected layer; where all are selected, the last single one."""
        return self._single[0]

    @property
    def single_head(self) -> int:
        """The selected head; with mean and max, the last single one."""
        return self._single[1]

    @property
    def single_kv_head(self) -> int:
        """The KV head that `single_head` reads."""
        return self._single[1] // (self._n_heads // self._n_kv_heads)

    @property
    def kv_head(self) -> int | None:
        """The KV head the selected head reads, None for mean and max."""
        return None if isinstance(self.head, str) else self.head // (self._n_heads // self._n_kv_heads)

    @property
    def view(self) -> HeadView:
        """The selected matrix as the protocol names it."""
        from model.protocol.attention_requests import HeadView  # noqa: PLC0415 - after the first paint

        return HeadView(layer=self.layer, head=self.head, stage=self.stage)

    def set_model(self, model: ModelInfo | None) -> None:
        """New limits of layers and heads; what is selected is kept where it still exists."""
        self._n_layers = model.n_layers if model else 1
        self._n_heads = model.n_heads if model else 1
        self._n_kv_heads = model.n_kv_heads if model else 1
        self._single = (_clamp(self._single[0], self._n_layers), _clamp(self._single[1], self._n_heads))
        self._apply(
            layer=self.layer if self.layer == "all" else _clamp(self.layer, self._n_layers),
            head=self.head if isinstance(self.head, str) else _clamp(self.head, self._n_heads),
            pins=tuple(pin for pin in self.pins if self._exists(pin)),
        )

    def set_length(self, length: int) -> None:
        """New number of positions; the chosen cell and the hover are clamped to it."""
        self._length = length
        self._apply(
            query=_clamp(self._chosen[0], length),
            key=_clamp(self._chosen[1], length),
            hover_token=self.hover_token if _inside(self.hover_token, length) else None,
            hover_cell=self.hover_cell if self.hover_cell and max(self.hover_cell) < length else None,
        )

    # setters

    def set_layer(self, layer: LayerChoice) -> None:
        self._apply(layer=layer if layer == "all" else _clamp(layer, self._n_layers))

    def set_head(self, head: Head) -> None:
        self._apply(head=head if isinstance(head, str) else _clamp(head, self._n_heads))

    def set_layer_head(self, layer: LayerChoice, head: Head) -> None:
        """Both at once, one signal: a click in the grid of heads."""
        self._apply(
            layer=layer if layer == "all" else _clamp(layer, self._n_layers),
            head=head if isinstance(head, str) else _clamp(head, self._n_heads),
        )

    def set_cell(self, query: int, key: int) -> None:
        self._choose(_clamp(query, self._length), _clamp(key, self._length))

    def set_query(self, query: int) -> None:
        self._choose(_clamp(query, self._length), self._chosen[1])

    def set_key(self, key: int) -> None:
        self._choose(self._chosen[0], _clamp(key, self._length))

    def _choose(self, query: int, key: int) -> None:
        self._chosen = (query, key)
        self._apply(query=_clamp(query, self._length), key=_clamp(key, self._length))

    def set_stage(self, stage: Stage) -> None:
        self._apply(stage=stage)

    def set_scale(self, scale: Scale) -> None:
        self._apply(scale=scale)

    def set_fixed(self, fixed: bool) -> None:
        self._apply(fixed=fixed)

    def set_ignore_first(self, ignore: bool) -> None:
        self._apply(ignore_first=ignore)

    def set_tint(self, tint: Tint) -> None:
        self._apply(tint=tint)

    def set_hover(self, *, token: int | None = None, cell: Cell | None = None) -> None:
        """What the mouse is over: a token's position, or a cell (query, key), whose token is its key unless `token`
        says otherwise; nothing when both are None."""
        if token is None and cell is not None:
            token = cell[1]
        self._apply(
            hover_token=token if _inside(token, self._length) else None,
            hover_cell=cell if cell and min(cell) >= 0 and max(cell) < self._length else None,
        )

    def step_layer(self, by: int) -> None:
        """The next or previous layer; from "all" to the first or last."""
        start = (-1 if by > 0 else self._n_layers) if self.layer == "all" else self.layer
        self.set_layer(start + by)

    def step_head(self, by: int) -> None:
        """The next or previous head; from mean or max to the first or last."""
        start = (-1 if by > 0 else self._n_heads) if isinstance(self.head, str) else self.head
        self.set_head(start + by)

    def step_query(self, by: int) -> None:
        self.set_query(self.query + by)

    def cycle_stage(self) -> None:
        self.set_stage(_next(STAGES, self.stage))

    def cycle_scale(self) -> None:
        self.set_scale(_next(SCALES, self.scale))

    def toggle_pin(self, view: HeadView) -> None:
        """Pins a view beside the others, at most four (the oldest goes), or unpins it."""
        if view in self.pins:
            self._apply(pins=tuple(pin for pin in self.pins if pin != view))
        else:
            self._apply(pins=(*self.pins, view)[-MAX_PINS:])

    def _exists(self, view: HeadView) -> bool:
        layer_ok = view.layer == "all" or view.layer < self._n_layers
        return layer_ok and (isinstance(view.head, str) or view.head < self._n_heads)

    def _apply(self, **values: object) -> None:
        changed = {name for name, value in values.items() if getattr(self, name) != value}
        for name in changed:
            setattr(self, name, values[name])
        layer, head = self.layer, self.head
        self._single = (
            self._single[0] if isinstance(layer, str) else layer,
            self._single[1] if isinstance(head, str) else head,
        )
        if changed:
            self.changed.emit(frozenset(changed))


def _clamp(value: int, count: int) -> int:
    return max(0, min(value, count - 1))


def _inside(value: int | None, count: int) -> bool:
    return value is not None and 0 <= value < count


def _next(choices: tuple[T, ...], current: T) -> T:
    return choices[(choices.index(current) + 1) % len(choices)]
