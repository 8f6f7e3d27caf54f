"""A run: one prompt, prefilled, and the tree of tokens decoded after it, with everything kept that the views show.

Stepping back, seeking and switching branches re-stitch stored rows and run nothing. Every method is for the compute
thread, but for `logits`, `order` and `tree` lookups by id, which any thread may read: their entries never change.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from model import sampling
from model.attention_spec import AttentionSpec
from model.checkpoint.memory import available_bytes
from model.config import DecoderConfig
from model.device import Stopwatch, kept, to_device
from model.errors import BadValueError, CancelledError
from model.hooks import replacements
from model.kv_cache import KVCache
from model.prefill import Chunks, ContextFullError, LayerWatch, ProgressReport, PromptError, YieldPoint, checked
from model.protocol.values import MemoryInfo, Node, RunState, SamplerSettings
from model.run_report import Stop, memory_of, state_of
from model.store import ActivationStore, BudgetError, Cost, cost_of
from model.text import PathText
from model.tree import RunTree

if TYPE_CHECKING:
    from model.loading import LoadedModel

BUDGET_SHARE = 0.25  # of the memory that is free when the run begins
ORDERS_KEPT = 8

_run_ids = itertools.count(1)


def default_budget(device: torch.device) -> int:
    """Bytes a run may keep unless it is told: a share of what is free now."""
    return int(available_bytes(device) * BUDGET_SHARE)


class Run:
    """One prompt and what came after it. `id` is unique in the process.

    `budget_bytes` bounds what is kept besides the weights (default: a quarter of the free memory of the device).
    `altered`: a listener replaced an activation during one of its forward passes. `stop`: why the last `generate` or
    `prefill` ended early. `chunks`: positions prefilled at a time, in order. `derived`: what views computed of the
    run and keep with it, by the view's name.
    """

    def __init__(self, model: LoadedModel, *, budget_bytes: int | None = None) -> None:
        self.id = next(_run_ids)
        self.model = model
        self.decoder = model.decoder
        self.config: DecoderConfig = model.decoder.config
        self.device: torch.device = self.decoder.device
        budget = default_budget(self.device) if budget_bytes is None else budget_bytes
        self.store = ActivationStore(
            self.config,
            device=self.device,
            dtype=self.decoder.dtype,
            cache=self.decoder.new_cache(),
            budget=budget,
        )
        self.tree = RunTree([])
        self.current = -1
        self.altered = False
        self.stop: Stop = ""
        self.prefill_ms = 0.0
        self.chunks: tuple[int, ...] = ()
        self._rope_length = 0  # of the prompt: the length that decided its frequencies
        self._text = PathText(model.tokenizer)
        self._reported = 0
        self.derived: dict[str, object] = {}
        self._orders: dict[int, sampling.Order] = {}
        self._orders_lock = threading.Lock()

    # where the run stands

    @property
    def cache(self) -> KVCache:
        """Keys and values of the active path."""
        return self.store.cache

    @property
    def length(self) -> int:
        """Whole tokens of the active path, prompt included."""
        return self.store.length

    @property
    def n_prompt(self) -> int:
        """Prompt tokens; the first decode position."""
        return self.tree.n_prompt

    @property
    def prompt_ids(self) -> tuple[int, ...]:
        """Token ids of the prompt."""
        return tuple(self.tree.prompt_ids)

    @property
    def nodes(self) -> dict[int, Node]:
        """Every decode step, by id."""
        return self.tree.nodes

    @property
    def path(self) -> tuple[int, ...]:
        """Decode nodes from the first generated token to the current one."""
        return self.tree.path(self.current) if self.n_prompt else ()

    @property
    def ids(self) -> tuple[int, ...]:
        """Token ids of the active path, prompt included; (length,)."""
        return (*self.tree.prompt_ids, *(self.tree.nodes[node].token_id for node in self.path))

    @property
    def text(self) -> str:
        """The text of the active path; a character still unfinished at its end is held back."""
        return self._text.of(self.ids)

    @property
    def generated_text(self) -> str:
        """The part of `text` after the prompt."""
        return self._text.after(self.ids, self.n_prompt)

    def cost(self, tokens: int, *, generated: int = 1) -> Cost:
        """What a run of so many tokens would keep, before it is run."""
        return cost_of(self.config, tokens, self.decoder.dtype.itemsize, generated=generated)

    # what views read

    def logits(self, node: int) -> NDArray[np.float32]:
        """Logits (V,) float32 of the token after `node`, read-only. Any thread. Raises NoLogitsError."""
        return self.store.logits_of(node)

    def order(self, node: int) -> sampling.Order:
        """The candidate order of the token after `node`, made once and kept for the last few nodes. Any thread."""
        with self._orders_lock:
            order = self._orders.pop(node, None) or sampling.order_of(self.logits(node))
            self._orders[node] = order
            while len(self._orders) > ORDERS_KEPT:
                del self._orders[next(iter(self._orders))]
            return order

    def ids_before(self, node: int) -> tuple[int, ...]:
        """Token ids up to and with `node`: what its logits were computed from. Any thread."""
        return (*self.tree.prompt_ids, *(self.tree.nodes[step].token_id for step in self.tree.path(node)))

    def draw(self, node: int, seed: int) -> float:
        """The draw that chooses the token after `node`. Any thread."""
        return sampling.draw(seed, self.tree.position(node) + 1)

    def spec(self, layer: int) -> AttentionSpec:
        """The arithmetic of a layer's attention."""
        self.check_layer(layer)
        return self.config.attention(layer)

    def k(self, layer: int) -> Tensor:
        """Keys as used (rotated where the model rotates), (K, length, D)."""
        return self.cache.k(layer)

    def v(self, layer: int) -> Tensor:
        """Values, (K, length, D)."""
        return self.cache.v(layer)

    def resid(self, layer: int) -> Tensor:
        """The residual stream before `layer`, (length, M); `layer` = n_layers: after the last one."""
        rows = self.store.rows("resid", layer)
        if rows is None:
            raise BadValueError("layer", layer, f"0 to {self.config.n_layers}")
        return rows

    def check_layer(self, layer: int) -> None:
        """Raises BadValueError for a layer the model doesn't have."""
        if not 0 <= layer < self.config.n_layers:
            raise BadValueError("layer", layer, f"0 to {self.config.n_layers - 1}")

    def rope_length(self, position: int) -> int:
        """The sequence length that decided the rotary frequencies of the token at `position`."""
        return self._rope_length if position < self.n_prompt else position + 1

    # running

    def prefill(
        self,
        prompt: str | Sequence[int],
        *,
        add_special: bool = True,
        chunk: int = 0,
        truncate: bool = False,
        progress: ProgressReport | None = None,
        yield_point: YieldPoint | None = None,
        on_chunk: Callable[[], None] | None = None,
    ) -> None:
        """Runs the prompt (text or ids) in chunks of `chunk` positions (0: chosen, shrinking where a layer is slow).

        `on_chunk` is called after each chunk but the last, when the run is whole as far as it goes, logits included.
        On CancelledError the tokens of the finished chunks stay and the run is usable. Raises PromptError, BudgetError.
        """
        if self.length:
            raise PromptError("This run has its prompt already: begin a new one.")
        watch = Stopwatch(self.device)
        whole = (
            self.model.tokenizer.encode(prompt, add_special=add_special) if isinstance(prompt, str) else list(prompt)
        )
        ids = checked(whole, self.config, truncate=truncate)
        cost = self.cost(len(ids))
        if cost.least > self.store.budget:
            raise BudgetError(f"A prompt of {len(ids):,} tokens", cost.least, self.store.budget)
        self._rope_length = len(ids)
        try:
            self._prefill_chunks(ids, chunk, progress, yield_point, on_chunk)
        finally:
            self.prefill_ms = watch.ms()
            if self.length and self.current not in self.store.logits:
                self.stop = "cancelled"
                self._keep_logits(self.current, self.decoder.unembed(self.resid(self.config.n_layers)[-1:]))

    def _prefill_chunks(
        self,
        ids: list[int],
        chunk: int,
        progress: ProgressReport | None,
        yield_point: YieldPoint | None,
        on_chunk: Callable[[], None] | None,
    ) -> None:
        chunks = Chunks(self.config, self.device, chunk)
        self.store.prepare(len(ids))
        while self.length < len(ids):
            start, time_of_part = self.length, Stopwatch(self.device)
            part = ids[start : start + chunks.size]
            watch = LayerWatch(
                yield_point=yield_point,
                progress=progress,
                start=start,
                tokens=len(part),
                total=len(ids),
                n_layers=self.config.n_layers,
            )
            last = start + len(part) == len(ids)
            wanted = last or on_chunk is not None
            logits = self._forward(part, watch, logits="last" if wanted else "none", rope_length=len(ids))
            self.tree.prompt_ids.extend(part)
            self.store.commit(range(start, start + len(part)))
            self.current = self.tree.root
            self.chunks += (len(part),)
            if wanted:
                self._keep_logits(self.current, logits)
            watch.report(self.config.n_layers)
            chunks.after(watch, time_of_part)
            if on_chunk is not None and not last:
                on_chunk()
                self.store.logits.pop(self.current, None)  # of a position that is no step: shown, not kept

    def _check_token(self, token: int) -> None:
        if not 0 <= token < self.config.d_vocab:
            raise BadValueError("token id", token, f"0 to {self.config.d_vocab - 1}")

    def step(
        self,
        settings: SamplerSettings,
        *,
        force_token: int | None = None,
        reuse: bool = False,
        yield_point: YieldPoint | None = None,
    ) -> Node:
        """Decodes one token after the current node: drawn, or `force_token`.

        `reuse`: go to the node that the same draw made before, if it is there. Raises ContextFullError,
        BadLogitsError, BudgetError, CancelledError; the run is then as it was.
        """
        if reuse and force_token is None and (known := self.tree.drawn_child(self.current, settings)) is not None:
            self.seek(known, yield_point=yield_point)
            return self.tree.nodes[known]
        watch = Stopwatch(self.device)
        position = self.length
        if position >= self.config.n_ctx:
            raise ContextFullError(self.config.n_ctx)
        if force_token is not None:
            self._check_token(force_token)
        previous = self.ids if settings.repetition_penalty != 1 else ()
        distribution = sampling.apply(self.order(self.current), settings, previous)
        draw = sampling.draw(settings.seed, position)
        token = sampling.pick(distribution, draw) if force_token is None else force_token
        return self._append(
            token, distribution, draw, settings, watch, forced=force_token is not None, yield_point=yield_point
        )

    def _append(
        self,
        token: int,
        distribution: sampling.Distribution,
        draw: float,
        settings: SamplerSettings,
        watch: Stopwatch,
        *,
        forced: bool,
        yield_point: YieldPoint | None,
    ) -> Node:
        chosen = np.array([token])
        node = Node(
            id=self.tree.next_id,
            parent=self.current,
            position=self.length,
            token_id=token,
            piece=self.model.tokenizer.piece(token),
            logprob=float(distribution.raw.log_probabilities(chosen)[0]),
            p=float(distribution.probabilities(chosen)[0]),
            entropy=distribution.raw.entropy,
            draw=draw,
            ms=0.0,
            settings=settings,
            forced=forced,
        )
        self._decode(node.id, token, yield_point)
        node = replace(node, ms=watch.ms())
        self.tree.add(node)
        self.current = node.id
        return node

    def _decode(self, node: int, token: int, yield_point: YieldPoint | None) -> None:
        """Runs `token` at the end of the path and keeps its rows and logits as those of `node`."""
        self.store.prepare(1)
        logits = self._forward([token], LayerWatch(yield_point=yield_point), logits="last")
        self.store.commit([node])
        self._keep_logits(node, logits)

    def generate(
        self,
        n: int,
        settings: SamplerSettings,
        *,
        stop_at_end_of_text: bool = True,
        reuse: bool = True,
        yield_point: YieldPoint | None = None,
        on_node: Callable[[Node], None] | None = None,
    ) -> None:
        """Up to `n` steps; `stop` says why there were fewer. `on_node` hears of each as soon as it is there.

        A full context and logits without a distribution end it quietly; CancelledError and BudgetError are raised.
        """
        self.stop = ""
        ends = self.model.tokenizer.eos_ids if stop_at_end_of_text else ()
        try:
            for _ in range(n):
                node = self.step(settings, reuse=reuse, yield_point=yield_point)
                if on_node is not None:
                    on_node(node)
                if node.token_id in ends:
                    self.stop = "end_of_text"
                    return
        except ContextFullError:
            self.stop = "context_full"
        except sampling.BadLogitsError:
            self.stop = "nan_logits"
        except CancelledError:
            self.stop = "cancelled"
            raise

    def branch(
        self,
        node: int,
        token_id: int,
        settings: SamplerSettings,
        *,
        again: bool = False,
        yield_point: YieldPoint | None = None,
    ) -> Node:
        """Goes to `node` and puts `token_id` after it, whatever the draw says; an equal branch is gone to, not made,
        unless it is wanted `again`."""
        self.tree.check(node)
        self._check_token(token_id)
        known = None if again else self.tree.child_with(node, token_id)
        if known is not None:
            self.seek(known, yield_point=yield_point)
            return self.tree.nodes[known]
        self.seek(node, yield_point=yield_point)
        return self.step(settings, force_token=token_id, yield_point=yield_point)

    def seek(
        self,
        node: int,
        *,
        progress: ProgressReport | None = None,
        yield_point: YieldPoint | None = None,
    ) -> int:
        """Goes to a decode node or the last prompt token from stored rows. Returns how many tokens had to be run again,
        0 unless the budget had dropped them. On CancelledError the run stands at the last node it reached."""
        self.tree.check(node)
        self.stop = ""
        path = [*range(self.n_prompt), *self.tree.path(node)]
        kept = self._go_to(path)
        for done, step in enumerate(path[kept:]):
            if progress is not None:
                progress("running dropped steps again", done, len(path) - kept, "tokens")
            self._decode(step, self.tree.token(step), yield_point)
            self.current = step
        return len(path) - kept

    @torch.inference_mode()
    def _go_to(self, path: list[int]) -> int:
        kept = self.store.go_to(path)
        self.current = path[kept - 1]
        return kept

    def restore(
        self,
        ids: Sequence[int],
        nodes: Sequence[Node],
        current: int,
        *,
        chunk: int = 0,
        progress: ProgressReport | None = None,
        yield_point: YieldPoint | None = None,
        on_node: Callable[[Node], None] | None = None,
    ) -> None:
        """The same tree again, from its record: prefills `ids`, appends `nodes` (parents first) with the tokens, draws
        and settings they had, goes to `current`. Probabilities are computed anew."""
        self.prefill(ids, chunk=chunk, progress=progress, yield_point=yield_point)
        for done, node in enumerate(nodes):
            if progress is not None:
                progress("running steps again", done, len(nodes), "tokens")
            if node.id != self.tree.next_id:
                raise BadValueError("id of a recorded step", node.id, f"{self.tree.next_id}, the next in order")
            if not 0 <= node.draw < 1:
                raise BadValueError("draw of a recorded step", node.draw, "from 0 to below 1")
            self._check_token(node.token_id)
            self.seek(node.parent, yield_point=yield_point)
            if self.length >= self.config.n_ctx:
                raise ContextFullError(self.config.n_ctx)
            previous = self.ids if node.settings.repetition_penalty != 1 else ()
            distribution = sampling.apply(self.order(self.current), node.settings, previous)
            made = self._append(
                node.token_id,
                distribution,
                node.draw,
                node.settings,
                Stopwatch(self.device),
                forced=node.forced,
                yield_point=yield_point,
            )
            if on_node is not None:
                on_node(made)
        self.seek(current, yield_point=yield_point)

    def adopt(self, tree: RunTree, current: int, *, rope_length: int) -> None:
        """Takes over a recorded tree and runs nothing: the caller puts the rows of its path into the store."""
        tree.check(current)
        self.tree, self.current, self._rope_length = tree, current, rope_length

    @torch.inference_mode()
    def _forward(
        self, ids: list[int], watch: LayerWatch, *, logits: Literal["last", "none"], rope_length: int | None = None
    ) -> Tensor:
        """One pass over `ids` at the end of the path, its activations kept as rows that are not named yet."""
        store = self.store
        self.model.require_weights()

        def at_layer(layer: int) -> None:
            store.writing = False  # views served here may recompute layers, and listeners hear that too
            watch.at_layer(layer)
            store.writing = True
            if len(ids) > 1:  # a layer of a whole chunk takes its time, and so do the views
                self.model.require_weights()

        tokens = to_device(torch.tensor(ids), self.device)
        before = replacements(self.decoder.hook_points.values())
        try:
            store.writing = True
            with self.decoder.hooks(store.listeners()):
                out = self.decoder(tokens, store.cache, logits=logits, at_layer=at_layer, rope_length=rope_length)
        finally:
            store.writing = False
        self.altered = self.altered or replacements(self.decoder.hook_points.values()) > before
        return out  # type: ignore[no-any-return]

    @torch.inference_mode()
    def _keep_logits(self, node: int, logits: Tensor) -> None:
        self.store.keep_logits(node, kept(logits[-1]).numpy())  # the one synchronisation of a step

    # reporting

    def memory(self) -> MemoryInfo:
        """Bytes in use now."""
        return memory_of(self)

    def state(self) -> RunState:
        """Where the run stands; `nodes` are those that are new since the last call."""
        state = state_of(self, self._reported)
        self._reported = self.tree.next_id
        return state
