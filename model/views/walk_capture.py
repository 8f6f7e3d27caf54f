"""What happens inside one block, captured while it runs again on its stored residual stream.

Hook points give the named activations; what has none (the norms, W_q before a norm on q, the feed-forward before its
own) is heard from the modules themselves. Nothing is replaced, so what is heard is what is computed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager

import torch
from torch import Tensor, nn

from model.prefill import ProgressReport
from model.recompute import activations
from model.run import Run
from model.transformer import Block
from model.views.selection import YieldPoint, no_yield

BLOCK_ROWS = 128

Captured = dict[str, Tensor]
"""Operation id → its rows: (T, M), (T, F), (T, k, F), (H, T, D), (K, T, D), (H, T, S) …"""

HEADS_FIRST = frozenset({
    "attn.q", "attn.k", "attn.v", "attn.rot_q", "attn.rot_k", "attn.scores", "attn.pattern", "attn.z",
})  # fmt: skip


def block_of(run: Run, layer: int) -> Block:
    """The module of a layer. Raises BadValueError."""
    run.check_layer(layer)
    block = run.decoder.layers[layer]
    assert isinstance(block, Block)
    return block


def modules_of(block: Block) -> dict[str, nn.Module]:
    """The modules heard, by the name of what they compute, as far as this block has them."""
    attention = block.self_attn
    named: dict[str, nn.Module | None] = {
        "attn.norm": block.input_layernorm,
        "attn.post_norm": block.attn_out_layernorm,
        "mlp.norm": block.post_attention_layernorm,
        "mlp.down": block.mlp,
        "mlp.post_norm": block.mlp_out_layernorm,
    }
    if hasattr(attention, "q_norm"):  # elsewhere their results are the hook points' q and k
        named |= {"attn.q_proj": attention.q_proj, "attn.k_proj": attention.k_proj}
    return {name: module for name, module in named.items() if module is not None}


def hooks_of(run: Run, layer: int) -> tuple[str, ...]:
    """The hook points of a layer without `layers.{l}.`."""
    prefix = f"layers.{layer}."
    return tuple(name.removeprefix(prefix) for name in run.decoder.hook_points if name.startswith(prefix))


@torch.inference_mode()
def capture(run: Run, layer: int, position: int) -> Captured:
    """Everything of `layer` at one position: T = 1 in every tensor; scores and pattern over keys 0 … position."""
    block = block_of(run, layer)
    with _heard(modules_of(block)) as heard:
        seen = activations(run, layer, hooks_of(run, layer), position, position + 1)
    return seen | {name: torch.cat(rows) for name, rows in heard.items()}


@torch.inference_mode()
def capture_rows(
    run: Run,
    layer: int,
    name: str,
    start: int,
    stop: int,
    *,
    yield_point: YieldPoint = no_yield,
    progress: ProgressReport | None = None,
) -> Tensor:
    """One activation at positions start … stop - 1, positions first: (T, M), (T, H, D) … in blocks of rows."""
    modules = modules_of(block_of(run, layer))
    blocks = []
    for begin in range(start, stop, BLOCK_ROWS):
        yield_point()
        if progress is not None:
            progress("running the block again", begin - start, stop - start, "positions")
        end = min(begin + BLOCK_ROWS, stop)
        if name in modules:
            with _heard({name: modules[name]}) as heard:
                activations(run, layer, ["resid_post"], begin, end)
            blocks.append(torch.cat(heard[name]))
        else:
            rows = activations(run, layer, [name], begin, end)[name]
            blocks.append(rows.transpose(0, 1) if name in HEADS_FIRST else rows)
    return torch.cat(blocks)


@contextmanager
def _heard(modules: Mapping[str, nn.Module]) -> Iterator[dict[str, list[Tensor]]]:
    """What each module returns inside the `with` block, call by call."""
    heard: dict[str, list[Tensor]] = {name: [] for name in modules}
    with ExitStack() as stack:
        for name, module in modules.items():

            def keep(_module: nn.Module, _inputs: object, out: Tensor, name: str = name) -> None:
                heard[name].append(out)

            stack.callback(module.register_forward_hook(keep).remove)
        yield heard
