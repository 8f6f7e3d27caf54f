"""Where each head's thumbnail goes: layers × heads in KV groups, or all of them by rank. Arithmetic, no widget."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRectF

Head = tuple[int, int]
"""Layer and head."""
LEAST, MOST = 8.0, 40.0
"""Px of a thumbnail's side."""
ROOMY = 14.0
"""Px of a side from which all layers at once are worth smaller thumbnails."""
DENSE = 11.0
"""The same where no gap but a line of `THIN_GAP` is left between layers, before any of them is out of sight."""
SCROLLED = 16.0
"""At most, where there are too many layers to see all at once, unless their numbers need more."""
GROUP_GAP, MOST_BETWEEN, MOST_DOWN = 7.0, 5.0, 0.5
"""Px between KV groups, and of width that is left between heads at most; of height, as a share of a thumbnail's."""
ROW_GAP, THIN_GAP, STACK_GAP = 2.0, 1.0, 14.0
"""Px from one layer's thumbnails to the next one's, at least; and from one stack of layers to the next."""
MOST_WIDER = 8
"""Px by which sorted thumbnails are larger at most where their names leave them room."""
EVERY = 5
"""Layers from one number to the next where not all have room for theirs."""


@dataclass(frozen=True, kw_only=True, eq=False)
class GridLayout:
    """`side` of a thumbnail, which is square like the matrix it shows; `pitch`: from one row to the next, `step`: from
    one head to the next; `left`, `header`: room for numbers and brackets, and for `key` px of what stands over them.
    `order`: heads by rank (layer · heads + head), None when they lie by layer; then `stacks` of layers, `apart` px from
    one to the next, stand beside one another."""

    shape: tuple[int, int]
    side: float
    pitch: float
    step: float
    left: float
    header: float
    group: int
    order: NDArray[np.int64] | None = None
    columns: int = 1
    stacks: int = 1
    apart: float = 0.0
    key: float = 0.0

    @property
    def per_stack(self) -> int:
        """Layers of a stack."""
        return max(1, -(-self.shape[0] // self.stacks))

    @property
    def rows(self) -> int:
        return self.per_stack if self.order is None else -(-len(self.order) // self.columns)

    def rows_in(self, height: float) -> int:
        """Rows that show whole in a view of that height, one at least."""
        return min(max(1, math.floor((height - self.header) / self.pitch + 1e-6)), max(self.rows, 1))

    @property
    def width(self) -> float:
        if self.order is not None:
            return self.columns * self.step
        return self.rect(max(self.shape[0] - 1, 0), self.shape[1] - 1).right() + 3 if self.shape[1] else 0.0

    @property
    def height(self) -> float:
        return self.header + self.rows * self.pitch + 1

    def height_with(self, gap: float) -> float:
        """Px that all rows would take with so many between them."""
        return self.header + self.rows * (self.side + gap) + 1

    def rect(self, layer: int, head: int) -> QRectF:
        """Where a thumbnail lies on the whole sheet."""
        if self.order is None:
            gaps = head // self.group * (GROUP_GAP - (self.step - self.side)) if self.group > 1 else 0.0
            stack, row = divmod(layer, self.per_stack)
            left = self.left + stack * self.apart + head * self.step + gaps
            return QRectF(left, self.header + row * self.pitch, self.side, self.side)
        place = int(self._places()[layer * self.shape[1] + head])
        row, column = divmod(place, self.columns)
        return QRectF(self.left + column * self.step, self.header + row * self.pitch, self.side, self.side)

    def at(self, point: QPointF) -> Head | None:
        """The head under a point of the sheet; the gap after a thumbnail belongs to it."""
        row = math.floor((point.y() - self.header) / self.pitch)
        if row < 0:
            return None
        if self.order is not None:
            column = math.floor((point.x() - self.left) / self.step)
            place = row * self.columns + column
            if not 0 <= column < self.columns or place >= len(self.order):
                return None
            return self._head(place)
        if row >= self.per_stack:
            return None
        for layer in range(row, self.shape[0], self.per_stack):
            for head in range(self.shape[1]):
                rect = self.rect(layer, head)
                if rect.left() - 1 <= point.x() <= rect.right() + 1:
                    return layer, head
        return None

    def heads_between(self, top: float, bottom: float) -> Iterator[Head]:
        """The heads that show between two heights of the sheet."""
        first = max(0, math.floor((top - self.header) / self.pitch + 1e-6))
        last = math.ceil((bottom - self.header) / self.pitch - 1e-6)
        if self.order is None:
            for layer in range(self.shape[0]):
                if first <= layer % self.per_stack < last:
                    for head in range(self.shape[1]):
                        yield layer, head
        else:
            for place in range(first * self.columns, min(last * self.columns, len(self.order))):
                yield self._head(place)

    def layers_between(self, top: float, bottom: float) -> list[int]:
        """The layers that show between two heights of the sheet, in order."""
        return sorted({layer for layer, _ in self.heads_between(top, bottom)})

    def moved(self, here: Head, rows: int, columns: int) -> Head:
        """The head so many rows and columns away, at the edge at most."""
        if self.order is None:
            layer, head = here[0] + rows, here[1] + columns
            return min(max(layer, 0), self.shape[0] - 1), min(max(head, 0), self.shape[1] - 1)
        place = int(self._places()[here[0] * self.shape[1] + here[1]]) + rows * self.columns + columns
        return self._head(min(max(place, 0), len(self.order) - 1))

    def rank(self, layer: int, head: int) -> int:
        """The place of a head among all that are sorted, from 0."""
        return int(self._places()[layer * self.shape[1] + head])

    def _head(self, place: int) -> Head:
        assert self.order is not None
        layer, head = divmod(int(self.order[place]), self.shape[1])
        return layer, head

    def _places(self) -> NDArray[np.int64]:
        assert self.order is not None
        places = self.__dict__.get("_cached_places")
        if places is None:
            places = np.empty_like(self.order)
            places[self.order] = np.arange(len(self.order))
            object.__setattr__(self, "_cached_places", places)
        found: NDArray[np.int64] = places
        return found


def by_layer(
    shape: tuple[int, int],
    group: int,
    *,
    width: float,
    height: float,
    left: float,
    header: float,
    gap: float,
    line: float = 0.0,
    key: float = 0.0,
) -> GridLayout:
    """Rows are layers. Thumbnails as large as the width allows, smaller where that brings all layers into `height`
    and they stay at least 14 px, or 11 px closer to one another, with a number at each (`line` px from one to the
    next); never under 8 px. Where there is width for it the layers stand in stacks beside one another, and are larger
    or all in sight. Width and height that are left go between them."""
    n_layers, n_heads = shape
    groups = (n_heads - 1) // group if group > 1 else 0

    def across_in(count: int) -> float:
        room = (width - (count - 1) * STACK_GAP) / count
        return (room - left - groups * (GROUP_GAP - 2.0) - 3) / max(n_heads, 1) - 2.0

    across = across_in(1)
    pitch, least = (height - header - 1) / max(n_layers, 1), max(ROOMY, line - gap)
    fits = math.floor(pitch - gap) >= least
    thin = math.floor((height - header) / max(n_layers, 1)) - THIN_GAP
    dense = not fits and min(across, thin) >= DENSE and thin + THIN_GAP >= line
    apart = THIN_GAP if dense else gap
    down = thin if dense else pitch - apart if fits else max(SCROLLED, least)
    side, stacks = math.floor(min(max(min(across, down), LEAST), MOST)), 1
    for count in range(2, n_layers + 1):
        fits_down = (height - header - 2) / -(-n_layers // count) - gap
        larger = math.floor(min(across_in(count), fits_down, MOST))
        if across_in(count) < least:
            break
        # Stacks for thumbnails to be larger, or as large and all in sight.
        if larger >= least and (larger > side + 1 or (not (fits or dense) and stacks == 1 and larger >= side)):
            side, across, stacks, apart = larger, across_in(count), count, gap
    if stacks == 1 and not (fits or dense):
        side, stacks, apart = _low_stacks(n_layers, side, height - header - 1, gap, line, across_in)
        across = across_in(stacks)
    between = min(max(math.floor(across - side + 2.0), 2.0), MOST_BETWEEN)
    layout = GridLayout(
        shape=shape, side=side, pitch=side + apart, step=side + between, left=left, header=header, group=max(group, 1),
        stacks=stacks, key=key,
    )  # fmt: skip
    down = math.floor((height - layout.height) / max(layout.rows, 1))
    layout = replace(layout, pitch=layout.pitch + min(max(down, 0), math.floor(MOST_DOWN * side)))
    if stacks == 1:
        return layout
    return replace(layout, apart=replace(layout, stacks=1).width + STACK_GAP)


def _low_stacks(
    n_layers: int, side: int, height: float, gap: float, line: float, across_in: Callable[[int], float]
) -> tuple[int, int, float]:
    """Side, number and gap where layers of one stack are out of sight: small ones close to one another for all to be in
    sight, else as many stacks as there is width for, so that fewer are out of it."""
    for count in range(2, n_layers + 1):
        thin = math.floor(height / -(-n_layers // count)) - THIN_GAP
        if across_in(count) < DENSE:
            break
        if thin >= DENSE and thin + THIN_GAP >= line:
            return math.floor(min(across_in(count), thin)), count, THIN_GAP
    stacks = 1
    while stacks < n_layers and across_in(stacks + 1) >= side:
        stacks += 1
    return side, stacks, gap


def by_rank(
    metric: NDArray[np.float32], *, width: float, side: float, label: float, header: float = 4.0, least: float = 0.0,
    key: float = 0.0,
) -> GridLayout:  # fmt: skip
    """All heads, largest value first (NaN last), each with room for a label under it, `least` px wide. They take all of
    the width."""
    flat = np.where(np.isfinite(metric), metric, -np.inf).ravel()
    order = np.argsort(-flat, kind="stable").astype(np.int64)
    columns = max(1, int(width // max(side + 10, least)))
    step = max(width / columns, side + 4)
    side += max(min(math.floor(step - 10 - side), MOST_WIDER), 0)
    return GridLayout(
        shape=(metric.shape[0], metric.shape[1]), side=side, pitch=side + label + 4, step=step,
        left=round((step - side) / 2), header=header, group=1, order=order, columns=columns, key=key,
    )  # fmt: skip


def named_layers(layout: GridLayout, layers: Sequence[int], chosen: int, *, least: float) -> list[int]:
    """The layers whose numbers are written: all where rows are `least` px apart, else every fifth, the last, and the
    chosen one instead of those it would touch."""
    if layout.pitch >= least:
        return list(layers)
    apart, last = math.ceil(least / layout.pitch), layout.shape[0] - 1

    def touches(layer: int, other: int) -> bool:
        together = other >= 0 and layer // layout.per_stack == other // layout.per_stack
        return together and abs(layer - other) < apart

    named = [layer for layer in layers if layer == last or (layer % EVERY == 0 and not touches(layer, last))]
    kept = [layer for layer in named if not touches(layer, chosen)]
    return sorted({*kept, chosen}) if chosen in layers else kept
