"""What a run keeps of every token: residual stream, queries, keys and values, routing, logits; within a budget.

Rows of the active path lie in buffers by position (K and V in the KV cache). Rows of nodes off the path stay where they
are until something else needs their place; then they are parked in segments of their own, on the host where the model
is on another device. A node's rows never change, so going back to it copies them and runs nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from model.config import DecoderConfig
from model.device import kept, to_device
from model.errors import DecoderscopeError
from model.hooks import HookPoint, Listener
from model.kv_cache import KVCache
from model.memory import amount

Key = tuple[str, int]
"""What a buffer holds, and of which layer: ("resid", 0 … L), ("q", l), ("expert_ids", l), ("expert_weights", l); in a
segment also ("k", l) and ("v", l)."""

FIRST_ROWS = 64
GROWTH_ROWS = 64  # where doubling would break the budget


class BudgetError(DecoderscopeError):
    """What has to be kept is more than the budget."""

    code = "budget"

    def __init__(self, what: str, needed: int, budget: int) -> None:
        self.needed, self.budget = needed, budget
        super().__init__(
            f"{what} needs {amount(needed)} for keys, values and activations; the budget is {amount(budget)}. "
            "Raise the budget, shorten the text, or open the model in a smaller dtype."
        )


class NoLogitsError(DecoderscopeError):
    """Logits asked of a node whose numbers were dropped, or that never had any."""

    code = "no_logits"

    def __init__(self, node: int) -> None:
        super().__init__(
            f"The logits of step {node} are not in memory. Go to that step to compute them again, or raise the budget."
        )


@dataclass(frozen=True, kw_only=True)
class Cost:
    """Bytes that a run of so many tokens takes, by kind."""

    kv: int
    residuals: int
    queries: int
    routes: int
    logits: int

    @property
    def total(self) -> int:
        """With everything kept."""
        return self.kv + self.residuals + self.queries + self.routes + self.logits

    @property
    def least(self) -> int:
        """Without the queries, which can be recomputed."""
        return self.total - self.queries


def cost_of(config: DecoderConfig, tokens: int, itemsize: int, *, generated: int = 1) -> Cost:
    """The bytes `tokens` positions take, `generated` of them with logits, in a dtype of `itemsize` bytes."""
    routes = 0
    if config.moe is not None:
        routes = len(config.moe.layers) * config.moe.top_k * tokens * (2 + itemsize)
    return Cost(
        kv=2 * config.n_layers * config.n_kv_heads * config.d_head * tokens * itemsize,
        residuals=(config.n_layers + 1) * config.d_model * tokens * itemsize,
        queries=config.n_layers * config.n_heads * config.d_head * tokens * itemsize,
        routes=routes,
        logits=config.d_vocab * generated * 4,
    )


class Buffer:
    """One tensor whose `axis` is positions, with more rows than are used."""

    def __init__(self, shape: Sequence[int], axis: int, dtype: torch.dtype, device: torch.device) -> None:
        self.axis = axis
        self.tensor = torch.empty(shape, dtype=dtype, device=device)

    @property
    def capacity(self) -> int:
        """Positions there is room for."""
        return self.tensor.shape[self.axis]

    @property
    def row_bytes(self) -> int:
        """Bytes of one position."""
        sizes = (size for axis, size in enumerate(self.tensor.shape) if axis != self.axis)
        return math.prod(sizes) * self.tensor.dtype.itemsize

    def rows(self, start: int, stop: int) -> Tensor:
        """A view of positions start … stop - 1."""
        return self.tensor.narrow(self.axis, start, stop - start)

    def write(self, start: int, rows: Tensor) -> None:
        """Copies rows in from position `start`."""
        self.tensor.narrow(self.axis, start, rows.shape[self.axis]).copy_(rows)

    def grow(self, capacity: int, used: int) -> None:
        """Makes room for `capacity` positions and keeps the first `used`."""
        shape = list(self.tensor.shape)
        shape[self.axis] = capacity
        grown = torch.empty(shape, dtype=self.tensor.dtype, device=self.tensor.device)
        grown.narrow(self.axis, 0, used).copy_(self.rows(0, used))
        self.tensor = grown


@dataclass(eq=False)
class Segment:
    """Rows of nodes off the path: `nodes[i]` (None once it went back or was dropped) is row i of every tensor."""

    nodes: list[int | None]
    tensors: dict[Key, Tensor]

    @property
    def nbytes(self) -> int:
        """Bytes held, the rows of nodes that left included."""
        return sum(tensor.nbytes for tensor in self.tensors.values())


def _axis(kind: str) -> int:
    return 1 if kind in ("q", "k", "v") else 0  # (H, T, D) and (K, T, D); all else has positions first


class ActivationStore:
    """The rows of one run. Touched by the compute thread only, but for `logits`.

    `logits`: node → full-vocabulary logits (V,) float32, read-only arrays; an entry is added whole and never changed,
    so other threads may read the dict with `get`. `dropped`: nodes whose rows went for the budget. `focus`: the layer
    in view; queries are dropped farthest from it first. `allocations`: (length, bytes set aside for K and V from then
    on), one at each growth.
    """

    def __init__(
        self, config: DecoderConfig, *, device: torch.device, dtype: torch.dtype, cache: KVCache, budget: int
    ) -> None:
        self.config, self.cache, self.budget = config, cache, budget
        self.device = device
        self.logits: dict[int, NDArray[np.float32]] = {}
        self.dropped: set[int] = set()
        self.focus = 0
        self.writing = False
        self.allocations: list[tuple[int, int]] = []
        self._nodes: list[int] = []
        self._segments: list[Segment] = []
        self._parked: dict[int, tuple[Segment, int]] = {}
        self._buffers: dict[Key, Buffer] = {}
        self._is_single = False  # whether the pass under way has one position
        self._single: list[tuple[Buffer, Tensor]] = []  # its rows, and where they go
        for layer in range(config.n_layers + 1):
            self._buffers["resid", layer] = Buffer((0, config.d_model), 0, dtype, device)
        for layer in range(config.n_layers):
            self._buffers["q", layer] = Buffer((config.n_heads, 0, config.d_head), 1, dtype, device)
            if config.has_experts(layer):
                assert config.moe is not None
                self._buffers["expert_ids", layer] = Buffer((0, config.moe.top_k), 0, torch.int16, device)
                self._buffers["expert_weights", layer] = Buffer((0, config.moe.top_k), 0, dtype, device)

    # reading

    @property
    def length(self) -> int:
        """Whole tokens of the active path."""
        return self.cache.length

    def rows(self, kind: str, layer: int) -> Tensor | None:
        """A view of what is kept of the active path: (length, M) of "resid", (H, length, D) of "q" …; None if not."""
        buffer = self._buffers.get((kind, layer))
        return None if buffer is None else buffer.rows(0, self.length)

    def keeps_queries(self, layer: int) -> bool:
        """Whether `layer`'s queries are stored; otherwise they are recomputed from its residuals."""
        return ("q", layer) in self._buffers

    @property
    def kv_allocated(self) -> int:
        """Bytes set aside for K and V of the active path."""
        return self.cache.bytes_allocated()

    @property
    def activation_bytes(self) -> int:
        """Bytes allocated besides the KV cache: buffers, parked rows, logits."""
        return self._buffer_bytes() + sum(segment.nbytes for segment in self._segments) + self._logit_bytes()

    @property
    def nbytes(self) -> int:
        """Everything the budget counts."""
        return self.kv_allocated + self.activation_bytes

    def _buffer_bytes(self) -> int:
        return sum(buffer.tensor.nbytes for buffer in self._buffers.values())

    def _logit_bytes(self) -> int:
        return len(self.logits) * self.config.d_vocab * 4

    # capturing

    def listeners(self) -> dict[str, Listener]:
        """What to listen to during a forward pass so that its rows are kept. Read only: no logit changes."""
        points = {f"layers.{layer}.resid_pre": ("resid", layer) for layer in range(self.config.n_layers)}
        points[f"layers.{self.config.n_layers - 1}.resid_post"] = ("resid", self.config.n_layers)
        for layer in range(self.config.n_layers):
            points[f"layers.{layer}.attn.rot_q"] = ("q", layer)
            if self.config.has_experts(layer):
                points[f"layers.{layer}.moe.ids"] = ("expert_ids", layer)
                points[f"layers.{layer}.moe.weights"] = ("expert_weights", layer)
        return {name: self._listener(self._buffers[key]) for name, key in points.items() if key in self._buffers}

    def _listener(self, buffer: Buffer) -> Callable[[Tensor, HookPoint], None]:
        def keep(rows: Tensor, _point: HookPoint) -> None:
            if not self.writing:  # a view recomputes a layer between two of ours
                return
            if self._is_single:  # one copy for all of them once the pass is through
                self._single.append((buffer, rows))
            else:
                buffer.write(self.length, rows)

        return keep

    def prepare(self, tokens: int) -> None:
        """Makes room for `tokens` more rows and one more row of logits; what lay there off the path is parked. Raises
        BudgetError."""
        self._single.clear()
        self._is_single = tokens == 1
        self._park_from(self.length)
        self._ensure(self.length + tokens)
        logits = self.config.d_vocab * 4
        if not self._make_room(lambda: logits):
            raise BudgetError(f"A text of {self.length + tokens:,} tokens", self.nbytes + logits, self.budget)

    def commit(self, nodes: Sequence[int]) -> None:
        """Names the rows that a forward pass has just appended."""
        if self._single:
            at = self.length - 1
            torch._foreach_copy_(
                [buffer.tensor.narrow(buffer.axis, at, 1) for buffer, _ in self._single],
                [rows for _, rows in self._single],
            )
            self._single.clear()
        self._nodes += nodes
        self.dropped.difference_update(nodes)

    def keep_logits(self, node: int, logits: NDArray[np.float32]) -> None:
        """Keeps a node's logits (V,), read-only from here on."""
        logits.flags.writeable = False
        self.logits[node] = logits

    def logits_of(self, node: int) -> NDArray[np.float32]:
        """A node's logits (V,). Any thread. Raises NoLogitsError."""
        found = self.logits.get(node)
        if found is None:
            raise NoLogitsError(node)
        return found

    def put(self, nodes: Sequence[int], rows: Mapping[Key, Tensor]) -> None:
        """Fills an empty store with recorded rows of the path `nodes`: ("k", l) and ("v", l) of every layer, and of the
        rest what there is; layers without queries count as dropped. Raises BudgetError."""
        self._ensure(len(nodes))
        for layer in range(self.config.n_layers):
            self.cache.append(layer, rows["k", layer], rows["v", layer])
            if ("q", layer) not in rows:
                self.drop_queries(layer)
        for key, buffer in self._buffers.items():
            if key in rows:
                buffer.write(0, rows[key])
        self.cache.advance(len(nodes))
        self._nodes = list(nodes)

    # going elsewhere in the tree

    def go_to(self, path: Sequence[int]) -> int:
        """Makes `path` (every node from position 0 on) the active one as far as its rows are kept; returns how far."""
        common = 0
        for held, wanted in zip(self._nodes, path, strict=False):
            if held != wanted:
                break
            common += 1
        if common == len(path):
            self._set_length(common)
            return common
        self._park_from(common)
        self._set_length(common)
        self._ensure(len(path))
        while common < len(path) and path[common] in self._parked:
            common += self._unpark(path, common)
        return common

    def _set_length(self, length: int) -> None:
        if length <= self.cache.length:
            self.cache.truncate(length)
        else:
            self.cache.advance(length - self.cache.length)

    def _park_from(self, start: int) -> None:
        """Moves rows start … out of the buffers, or drops them where the budget has no room."""
        nodes = self._nodes[start:]
        if not nodes:
            return
        length = self.length
        self._set_length(len(self._nodes))
        if self._make_room(lambda: self._row_bytes() * len(nodes), spare_queries=True):
            segment = Segment(nodes=list(nodes), tensors=self._copies(start, len(self._nodes)))
            self._segments.append(segment)
            self._parked |= {node: (segment, index) for index, node in enumerate(nodes)}
        else:
            self._drop(nodes)
        self._set_length(min(length, start))
        del self._nodes[start:]

    def _copies(self, start: int, stop: int) -> dict[Key, Tensor]:
        rows = {key: buffer.rows(start, stop) for key, buffer in self._buffers.items()}
        for layer in range(self.config.n_layers):
            rows["k", layer] = self.cache.k(layer)[:, start:stop]
            rows["v", layer] = self.cache.v(layer)[:, start:stop]
        on_host = self.device.type == "cpu"
        return {key: view.clone() if on_host else kept(view) for key, view in rows.items()}

    def _unpark(self, path: Sequence[int], at: int) -> int:
        """Copies rows of path[at] and those after it in the same segment back; returns how many."""
        segment, first = self._parked[path[at]]
        count = 0
        while at + count < len(path) and self._parked.get(path[at + count]) == (segment, first + count):
            count += 1

        def rows(key: Key) -> Tensor:
            return to_device(segment.tensors[key].narrow(_axis(key[0]), first, count), self.device)

        for key, buffer in self._buffers.items():
            buffer.write(at, rows(key))
        for layer in range(self.config.n_layers):
            self.cache.append(layer, rows(("k", layer)), rows(("v", layer)))
        self.cache.advance(count)
        for index in range(count):
            del self._parked[path[at + index]]
            segment.nodes[first + index] = None
        if not any(node is not None for node in segment.nodes):
            self._segments.remove(segment)
        self._nodes += path[at : at + count]
        return count

    # the budget

    def _row_bytes(self) -> int:
        kv = 2 * self.config.n_layers * self.config.n_kv_heads * self.config.d_head * self.cache.dtype.itemsize
        return kv + sum(buffer.row_bytes for buffer in self._buffers.values())

    @property
    def capacity(self) -> int:
        """Positions there is room for."""
        return min(self.cache.capacity, *(buffer.capacity for buffer in self._buffers.values()))

    def _ensure(self, rows: int) -> None:
        if rows <= self.capacity:
            return
        limit = max(rows, self.config.n_ctx)
        doubled = min(max(rows + rows // 8, 2 * self.capacity, FIRST_ROWS), limit)
        least = min(-(-rows // GROWTH_ROWS) * GROWTH_ROWS, limit)
        target = doubled if self._fits(self._growth_bytes(doubled)) else least
        if not self._make_room(lambda: self._growth_bytes(target)):
            raise BudgetError(f"A text of {rows:,} tokens", self.nbytes + self._growth_bytes(least), self.budget)
        self.cache.reserve(target)
        self.allocations.append((self.length, self.kv_allocated))
        for buffer in self._buffers.values():
            if buffer.capacity < target:  # not if memory ran out half-way the last time
                buffer.grow(target, min(self.length, buffer.capacity))

    def _growth_bytes(self, rows: int) -> int:
        return self._row_bytes() * (rows - self.capacity)

    def _fits(self, extra: int) -> bool:
        return self.nbytes + extra <= self.budget

    def _make_room(self, extra: Callable[[], int], *, spare_queries: bool = False) -> bool:
        """Drops, oldest first, parked nodes, then queries of layers far from `focus`, until `extra()` bytes fit."""
        while not self._fits(extra()):
            if self._segments:
                segment = self._segments.pop(0)
                self._drop([node for node in segment.nodes if node is not None])
                continue
            held = [layer for kind, layer in self._buffers if kind == "q"]
            if spare_queries or not held:
                return False
            self.drop_queries(max(held, key=lambda layer: (abs(layer - self.focus), layer)))
        return True

    def drop_queries(self, layer: int) -> None:
        """Forgets the stored queries of a layer, on the path and off it."""
        self._buffers.pop(("q", layer), None)
        for segment in self._segments:
            segment.tensors.pop(("q", layer), None)

    def _drop(self, nodes: Iterable[int]) -> None:
        for node in nodes:
            self._parked.pop(node, None)
            self.logits.pop(node, None)
            self.dropped.add(node)
