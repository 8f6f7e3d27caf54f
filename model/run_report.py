"""A run as it is told to the other side: memory in use, where it stands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from model.checkpoint.memory import available_bytes
from model.memory import process_bytes
from model.protocol.values import MemoryInfo, RunState

if TYPE_CHECKING:
    from model.run import Run

Stop = Literal["", "end_of_text", "context_full", "cancelled", "nan_logits"]


def memory_of(run: Run) -> MemoryInfo:
    """Bytes in use now."""
    rss, peak = process_bytes()
    return MemoryInfo(
        weights=run.model.info.weight_bytes,
        kv_used=run.cache.bytes_used(),
        kv_allocated=run.store.kv_allocated,
        activations=run.store.activation_bytes,
        rss=rss,
        peak_rss=peak,
        budget=run.store.budget,
        available=available_bytes(run.device),
    )


def state_of(run: Run, first_new: int) -> RunState:
    """Where a run stands, with the nodes from id `first_new` on."""
    stop: Stop = run.stop
    if not stop and run.current in run.store.logits and run.order(run.current).bad:
        stop = "nan_logits"
    return RunState(
        run_id=run.id,
        n_prompt=run.n_prompt,
        path=run.path,
        current=run.current,
        length=run.length,
        n_ctx=run.config.n_ctx,
        nodes=tuple(node for node_id, node in run.nodes.items() if node_id >= first_new),
        text=run.text,
        memory=memory_of(run),
        prefill_ms=run.prefill_ms,
        altered=run.altered,
        dropped=tuple(sorted(run.store.dropped)),
        stop=stop,
    )
