"""Any activation by its hook name, as exact float32: `layers.3.attn.pattern`, `layers.*.mlp.post`, `logits`, `kv`.

What the run keeps (residuals, rotated q, k, v, logits) is written as kept; scores and patterns are the very values a
hover shows; everything else is recomputed one layer at a time from the stored residual stream. A name may hold `*`.

Of a recorded run, `logits` are those that are in its file: after the prompt's last token and after every step.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import Tensor

from model.device import to_device, to_host
from model.errors import BadValueError, UnknownNameError
from model.export.recorded import RecordedError, RecordedRun
from model.hooks import HookPoint
from model.protocol.attention_requests import HeadView, Stage
from model.recompute import activations, query_rows, unrotated_keys
from model.run import Run
from model.views.attention_exact import exact
from model.views.selection import chosen

KV = "kv"
"""Short for `layers.*.attn.rot_k` and `layers.*.attn.v`: what the cache holds."""
_ROWS = 256
_STAGES: dict[str, Stage] = {"attn.scores": "scores", "attn.pattern": "weights"}


@dataclass(frozen=True, kw_only=True, eq=False)
class Activation:
    """One activation over the active path: its hook name, the axes' letters, its shape, and its values in blocks along
    the first axis, float32 (ids: int64). `positions` of its rows where they are not the path's, in order."""

    name: str
    axes: str
    shape: tuple[int, ...]
    blocks: Callable[[], Iterator[Tensor]]
    dtype: torch.dtype = torch.float32
    positions: tuple[int, ...] = ()

    @property
    def positions_name(self) -> str:
        """What its positions are called beside it."""
        return f"{self.name}.positions"


def names_among(known: Collection[str], wanted: Sequence[str]) -> list[str]:
    """Hook names that `wanted` names or patterns mean, each once, in the model's order. Raises UnknownNameError."""
    chosen_names: set[str] = set()
    for pattern in wanted:
        found = {
            name
            for part in (("layers.*.attn.rot_k", "layers.*.attn.v") if pattern == KV else (pattern,))
            for name in fnmatch.filter(known, part)
        }
        if not found:
            raise UnknownNameError("activation", pattern, [*known, KV])
        chosen_names |= found
    return [name for name in known if name in chosen_names]


def find(run: Run, wanted: Sequence[str]) -> list[Activation]:
    """The activations of a run by name or pattern; their values are computed when they are read."""
    if not run.length:
        raise BadValueError("length", 0, "a prompt to have been prefilled")
    return [_activation(run, name) for name in names_among(run.decoder.hook_points, wanted)]


def _activation(run: Run, name: str) -> Activation:
    point = run.decoder.hook_points[name]
    if name == "logits" and isinstance(run, RecordedRun):
        return _recorded_logits(run, point.shape)
    if isinstance(run, RecordedRun) and not _is_recorded(run, name):
        raise RecordedError(run.model.info.name, f"{name} is not in the file")
    letters = point.shape.strip("()").split(", ")
    shape = tuple(_size(run, letter, name) for letter in letters)
    dtype = torch.int64 if name.endswith("moe.ids") else torch.float32
    return Activation(
        name=name, axes=point.shape, shape=shape, dtype=dtype, blocks=partial(_blocks, run, name, shape, dtype)
    )


def _is_recorded(run: RecordedRun, name: str) -> bool:
    """Whether it follows from what a recorded run holds."""
    if name in ("embed", "final_norm"):
        return False
    _, layer, rest = name.split(".", 2)
    if rest in ("resid_pre", "resid_post"):
        return run.has_residuals
    queries = run.store.rows("q", int(layer)) is not None
    return rest in ("attn.rot_k", "attn.v") or (queries and (rest == "attn.rot_q" or rest in _STAGES))


def _recorded_logits(run: Run, axes: str) -> Activation:
    """The rows that are there without the model."""
    nodes = (*range(run.n_prompt), *run.path)
    held = {at: node for at, node in enumerate(nodes) if node in run.store.logits}

    def blocks() -> Iterator[Tensor]:
        for node in held.values():
            yield torch.from_numpy(run.logits(node).copy())[None]

    shape = len(held), run.config.d_vocab
    return Activation(name="logits", axes=axes, shape=shape, blocks=blocks, positions=tuple(held))


def _size(run: Run, letter: str, name: str) -> int:
    config = run.config
    moe = config.moe
    sizes = {
        "T": run.length,
        "S": run.length,
        "M": config.d_model,
        "H": config.n_heads,
        "K": config.n_kv_heads,
        "D": config.d_head,
        "F": moe.d_expert if moe is not None and ".mlp." in name and _of_experts(run, name) else config.d_mlp,
        "V": config.d_vocab,
        "E": moe.n_experts if moe is not None else 0,
        "k": moe.top_k if moe is not None else 0,
    }
    return sizes[letter]


def _of_experts(run: Run, name: str) -> bool:
    return run.config.has_experts(int(name.split(".")[1]))


def _blocks(run: Run, name: str, shape: tuple[int, ...], dtype: torch.dtype) -> Iterator[Tensor]:
    for block in _raw_blocks(run, name, shape):
        yield to_host(block.detach().to(dtype))


def _raw_blocks(run: Run, name: str, shape: tuple[int, ...]) -> Iterator[Tensor]:
    if name == "embed":
        yield _embedded(run)
    elif name in ("final_norm", "logits"):
        yield from _head_rows(run, name)
    else:
        _, layer_word, rest = name.split(".", 2)
        layer = int(layer_word)
        if rest in _STAGES:
            yield from _patterns(run, layer, rest)
        else:
            rows = _kept(run, layer, rest)
            yield rows if rows is not None else activations(run, layer, [rest], 0, run.length)[rest].reshape(shape)


def _kept(run: Run, layer: int, rest: str) -> Tensor | None:
    """What the run keeps of a layer under its hook's name."""
    if rest == "resid_pre":
        return run.resid(layer)
    if rest == "resid_post":
        return run.resid(layer + 1)
    if rest == "attn.rot_q":
        return query_rows(run, layer, 0, run.length)
    if rest == "attn.rot_k":
        return run.k(layer)
    if rest == "attn.k":
        return unrotated_keys(run, layer, 0, run.length)
    return run.v(layer) if rest == "attn.v" else None


def _patterns(run: Run, layer: int, rest: str) -> Iterator[Tensor]:
    """(1, T, S) a head: scores before the mask, or weights with 0 where masked, as the hooks have them."""
    everything = (0, run.length)
    for head in range(run.config.n_heads):
        view = chosen(run, HeadView(layer=layer, head=head, stage=_STAGES[rest]))
        values = exact(run, view, everything, everything)
        yield torch.from_numpy(np.nan_to_num(values, nan=0.0) if rest == "attn.pattern" else values)[None]


@torch.inference_mode()
def _embedded(run: Run) -> Tensor:
    seen: list[Tensor] = []
    with run.decoder.hooks({"embed": lambda rows, _point: seen.append(rows)}):
        run.decoder.embed_ids(to_device(torch.tensor(run.ids), run.device), 0)
    return seen[0]


@torch.inference_mode()
def _head_rows(run: Run, name: str) -> Iterator[Tensor]:
    """(rows, M) or (rows, V) in blocks; logits the run sampled from are the ones it keeps."""
    nodes = (*range(run.n_prompt), *run.path)
    final = run.resid(run.config.n_layers)
    seen: list[Tensor] = []

    def keep(rows: Tensor, _point: HookPoint) -> None:
        seen.append(rows)

    for start in range(0, run.length, _ROWS):
        with run.decoder.hooks({name: keep}):
            run.decoder.unembed(final[start : start + _ROWS])
        rows = seen.pop().clone()
        if name == "logits":
            for index, node in enumerate(nodes[start : start + _ROWS]):
                if node in run.store.logits:
                    rows[index] = torch.from_numpy(run.logits(node).copy())
        yield rows
