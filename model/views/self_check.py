"""The proof: numbers of a run against the model's own, each with the error measured and the bound it must keep.

Errors of activations are relative: the largest difference in a row of the tensor over the largest magnitude in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from model import sampling
from model.device import to_device, to_host
from model.loading import LoadedModel
from model.prefill import ProgressReport
from model.protocol.engine_requests import CheckRow
from model.protocol.values import SamplerSettings
from model.recompute import activations, query_rows
from model.run import Run
from model.transformer import Block
from model.views.attention_exact import stage_rows
from model.views.plain_sampler import plain_distribution
from model.views.selection import Chosen, YieldPoint, head_rows, no_yield

QUICK_ROWS = 16
FULL_ROWS = 512
FORWARD_ROWS = 256
"""Positions of the path that are run again from nothing, in the checks that do so."""

SHIFT = 97
"""By how much both positions are moved in the check of rotary embedding."""

# Relative. Sums of thousands of products in float32 taken in another order differ by 1e-6 to 1e-5; bfloat16 keeps 8
# bits of each number and float16 11, rounded a dozen times between two residuals.
BOUNDS = {torch.float32: 1e-4, torch.bfloat16: 6e-2, torch.float16: 1e-2}

DOCTOR_PROMPT = (
    "The animal didn't cross the street because it was too tired. The street didn't move because it was too wide. "
    "The animal didn't cross the"
)
DOCTOR_STEPS = 6
DOCTOR_SETTINGS = SamplerSettings(temperature=1.0, top_k=50, top_p=0.95)


@dataclass(frozen=True, kw_only=True)
class Measured:
    """The largest error a check found, what it may be, and on what it was measured."""

    error: float
    bound: float
    detail: str


@dataclass(frozen=True, kw_only=True)
class Scope:
    """What is looked at: positions `ranges` (half-open) of a run; others are served between layers."""

    run: Run
    ranges: tuple[tuple[int, int], ...]
    yield_point: YieldPoint

    def layers(self) -> Iterator[tuple[int, int, int]]:
        """(layer, start, stop) of every layer and range."""
        for layer in range(self.run.config.n_layers):
            for start, stop in self.ranges:
                self.yield_point()
                yield layer, start, stop

    @property
    def where(self) -> str:
        """The scope in words."""
        spans = ", ".join(f"{start} … {stop - 1}" for start, stop in self.ranges)
        return f"{self.run.config.n_layers} layers, positions {spans}"

    @property
    def bound(self) -> float:
        """The largest relative error of an activation in the model's dtype."""
        return BOUNDS[self.run.decoder.dtype]


@dataclass(frozen=True, kw_only=True)
class Check:
    """One row of the table. `measure` gives None where the model has nothing to check."""

    name: str
    title: str
    quick: bool
    measure: Callable[[Scope], Measured | None]


def self_check(
    run: Run, *, quick: bool = True, yield_point: YieldPoint = no_yield, progress: ProgressReport | None = None
) -> tuple[CheckRow, ...]:
    """Every check, or with `quick` those that need no new forward pass, on the last few positions of the path."""
    rows = []
    scope = Scope(run=run, ranges=_ranges(run.length, quick=quick), yield_point=yield_point)
    checks = [check for check in CHECKS if check.quick or not quick]
    for done, check in enumerate(checks):
        if progress is not None:
            progress("self-check", done, len(checks), "checks")
        yield_point()
        found = check.measure(scope)
        if found is not None:
            rows.append(
                CheckRow(
                    name=check.name,
                    title=check.title,
                    error=found.error,
                    bound=found.bound,
                    ok=found.error <= found.bound,  # False for NaN
                    detail=found.detail,
                )
            )
    return tuple(rows)


def doctor(model: LoadedModel, *, yield_point: YieldPoint = no_yield) -> tuple[CheckRow, ...]:
    """Every check on a run of its own: a prompt with repeats in two chunks, a few steps, another branch."""
    run = Run(model)
    tokenizer, d_vocab = model.tokenizer, model.decoder.config.d_vocab
    n_ctx = model.decoder.config.n_ctx
    ids = [token * 7919 % d_vocab for token in range(40)] if tokenizer.ids_only else tokenizer.encode(DOCTOR_PROMPT)
    ids = ids[: max(1, n_ctx - DOCTOR_STEPS)]
    run.prefill(ids, chunk=max(1, len(ids) * 2 // 3), yield_point=yield_point)
    run.generate(DOCTOR_STEPS // 2, DOCTOR_SETTINGS, stop_at_end_of_text=False, yield_point=yield_point)
    if run.path:
        run.seek(run.path[0], yield_point=yield_point)
        run.generate(
            DOCTOR_STEPS - 1, replace(DOCTOR_SETTINGS, seed=11), stop_at_end_of_text=False, yield_point=yield_point
        )
    return self_check(run, quick=False, yield_point=yield_point)


def _ranges(length: int, *, quick: bool) -> tuple[tuple[int, int], ...]:
    if quick:
        return ((max(0, length - QUICK_ROWS), length),)
    first = (0, min(FULL_ROWS, length))
    return (first,) if first[1] == length else (first, (max(first[1], length - FULL_ROWS), length))


def _relative(ours: Tensor, theirs: Tensor) -> float:
    """The largest difference in a row over the largest magnitude of that row of `theirs`."""
    ours, theirs = ours.float(), theirs.float()
    size = theirs.abs().amax(-1).clamp(min=torch.finfo(torch.float32).tiny)
    return _largest(to_host((ours - theirs).abs().amax(-1) / size).flatten().tolist())


def _largest(errors: Iterable[float]) -> float:
    """The largest error; NaN if any is, so that nothing compares well with it."""
    found = list(errors)
    return float("nan") if any(error != error for error in found) else max(found, default=0.0)  # noqa: PLR0124


def _captured(scope: Scope) -> Measured:
    """A forward pass with everything captured, and one with nobody listening."""
    run = scope.run
    ids = list(run.ids[:FORWARD_ROWS])
    listened = Run(run.model)
    listened.prefill(ids, chunk=len(ids))
    with torch.inference_mode():
        plain = to_host(run.decoder(to_device(torch.tensor(ids), run.device), run.decoder.new_cache())[0]).numpy()
    error = np.abs(listened.logits(listened.current).astype(np.float64) - plain).max()
    return Measured(error=float(error), bound=0.0, detail=f"logits after {len(ids)} tokens, absolute")


def _cached(scope: Scope) -> Measured | None:
    """Logits that were stored step by step, and those of one forward pass over the whole text. The two are not the same
    thing where rotary frequencies changed on the way."""
    run = scope.run
    length = min(run.length, FORWARD_ROWS)
    ropes = [rope for rope in (run.config.rope, run.config.rope_sliding) if rope is not None]
    if any(not rope.inv_freq(run.rope_length(0)).equal(rope.inv_freq(length)) for rope in ropes):
        return None
    nodes = [node for node in (run.tree.root, *run.path) if run.tree.position(node) < length]
    nodes = [node for node in nodes if node in run.store.logits]
    with torch.inference_mode():
        ids = to_device(torch.tensor(run.ids[:length]), run.device)
        whole = run.decoder(ids, run.decoder.new_cache(), logits="all", rope_length=run.rope_length(length - 1))
    errors = [
        _relative(torch.from_numpy(run.logits(node).copy())[None], whole[run.tree.position(node), None].cpu())
        for node in nodes
    ]
    detail = f"logits of {len(nodes)} steps" if nodes else f"no step within the first {length} tokens"
    return Measured(error=_largest(errors), bound=scope.bound, detail=detail)


@torch.inference_mode()
def _fused(scope: Scope) -> Measured:
    """The mixed values z of the fused path, and of the explicit formula."""
    run = scope.run
    errors = []
    for layer, start, stop in scope.layers():
        z = activations(run, layer, ["attn.z"], start, stop)["attn.z"]  # (H, T, D)
        spec, k, v = run.spec(layer), run.k(layer)[:, :stop], run.v(layer)[:, :stop]
        q_pos, k_pos = _positions(run, start, stop), _positions(run, 0, stop)
        weights = spec.weights(query_rows(run, layer, start, stop), k, q_pos, k_pos)  # (H, T, S)
        errors.append(_relative(spec.mix(weights, v), z))
    return Measured(error=_largest(errors), bound=scope.bound, detail=scope.where)


def _positions(run: Run, start: int, stop: int) -> Tensor:
    return torch.arange(start, stop, device=run.device)


@torch.inference_mode()
def _shown(scope: Scope) -> Measured:
    """The weights that are shown, times V and W_o, and what attention gave in the run."""
    run = scope.run
    errors = []
    for layer, start, stop in scope.layers():
        given = activations(run, layer, ["attn.proj"], start, stop)["attn.proj"]  # (T, M)
        heads = _all_heads(run, layer)
        z = [stage_rows(head, "weights", start, run.length)[0] @ head.v[0].float() for head in
             head_rows(run, heads, (start, stop))]  # H of (T, D)  # fmt: skip
        block = run.decoder.layers[layer]
        assert isinstance(block, Block)
        made = block.self_attn.o_proj(torch.cat(z, -1).to(given.dtype))  # (T, M)
        errors.append(_relative(made, given))
    return Measured(error=_largest(errors), bound=scope.bound, detail=scope.where)


def _all_heads(run: Run, layer: int) -> Chosen:
    return Chosen(layers=(layer,), heads=tuple(range(run.config.n_heads)), stage="weights", maximum=False)


@torch.inference_mode()
def _sums(scope: Scope) -> Measured:
    """Every row of weights sums to 1 and gives hidden keys nothing."""
    run = scope.run
    errors = []
    for layer, start, stop in scope.layers():
        for head in head_rows(run, _all_heads(run, layer), (start, stop)):
            weights, visible = stage_rows(head, "weights", start, run.length)  # (T, S) twice
            errors += [float((weights.sum(-1) - 1).abs().max()), float(weights.masked_fill(visible, 0).abs().max())]
    return Measured(error=_largest(errors), bound=1e-5, detail=scope.where)


@torch.inference_mode()
def _rope(scope: Scope) -> Measured | None:
    """q·k of rotated pairs, and of the same pairs with both positions moved; over ‖q‖·‖k‖."""
    run = scope.run
    errors = []
    for layer, start, stop in scope.layers():
        rope = run.config.rope_of(layer)
        if rope is None:
            return None
        seen = activations(run, layer, ["attn.q", "attn.k"], start, stop)
        groups = run.config.n_heads // run.config.n_kv_heads
        q, k = seen["attn.q"].float(), seen["attn.k"].float().repeat_interleave(groups, 0)  # (H, T, D) twice
        dots = []
        for shift in (0, SHIFT):
            turn = rope.rotation(_positions(run, start + shift, stop + shift), length=run.rope_length(start)).turn
            dots.append(turn(q) @ turn(k).transpose(1, 2))  # (H, T, T)
        sizes = q.norm(dim=-1)[:, :, None] * k.norm(dim=-1)[:, None] * rope.attention_factor**2  # (H, T, T)
        errors.append(float(((dots[0] - dots[1]).abs() / sizes.clamp(min=1e-30)).max()))
    # An angle of a thousand radians has an error of 6e-5 in float32.
    return Measured(error=_largest(errors), bound=1e-4, detail=f"both positions moved by {SHIFT}; {scope.where}")


def _sampler(scope: Scope) -> Measured:
    """Final probabilities and tokens kept after each stage, and those of a plain sampler without any shortcut."""
    run = scope.run
    settings = (
        SamplerSettings(temperature=0.7, top_k=40, top_p=0.9, min_p=0.02, repetition_penalty=1.3),
        SamplerSettings(temperature=1.6, top_k=0, top_p=0.97, order=("top_p", "temperature", "top_k", "min_p",
                        "repetition_penalty")),
        SamplerSettings(temperature=1.0, top_k=0, top_p=1.0, min_p=0.05),
        SamplerSettings(temperature=0.0),
    )  # fmt: skip
    order, ids = run.order(run.current), run.ids
    errors = []
    for chosen in settings:
        made = sampling.apply(order, chosen, ids)
        p, kept = plain_distribution(order.values, chosen, ids)
        errors.append(float(np.abs(made.probabilities(np.arange(p.size)) - p).max()))
        errors.append(float(max(abs(stage.kept - n) for stage, n in zip(made.stages, kept, strict=True))))
    return Measured(error=_largest(errors), bound=1e-9, detail=f"{len(settings)} settings on the current logits")


@torch.inference_mode()
def _blocks(scope: Scope) -> Measured:
    """A block on its stored residual, and the next stored residual."""
    run = scope.run
    errors = []
    for layer, start, stop in scope.layers():
        made = activations(run, layer, ["resid_post"], start, stop)["resid_post"]
        errors.append(_relative(made, run.resid(layer + 1)[start:stop]))
    return Measured(error=_largest(errors), bound=scope.bound, detail=scope.where)


@torch.inference_mode()
def _keys(scope: Scope) -> Measured:
    """Stored queries, keys and values, and those made again from the stored residual."""
    run = scope.run
    errors = []
    for layer, start, stop in scope.layers():
        again = activations(run, layer, ["attn.rot_q", "attn.rot_k", "attn.v"], start, stop)
        kept = (query_rows(run, layer, start, stop), run.k(layer)[:, start:stop], run.v(layer)[:, start:stop])
        errors += [_relative(made, rows) for made, rows in zip(again.values(), kept, strict=True)]
    return Measured(error=_largest(errors), bound=scope.bound, detail=scope.where)


CHECKS = (
    Check(name="captured", title="logits captured = not captured, bit for bit", quick=False, measure=_captured),
    Check(name="cached", title="cached decode = one forward pass", quick=False, measure=_cached),
    Check(name="fused", title="fused attention = explicit formula", quick=True, measure=_fused),
    Check(name="shown", title="weights shown × V × W_o = the layer's output", quick=True, measure=_shown),
    Check(name="sums", title="rows of weights sum to 1, hidden keys get 0", quick=True, measure=_sums),
    Check(name="rope", title="RoPE: moving both positions keeps q·k", quick=True, measure=_rope),
    Check(name="sampler", title="sampler stages = plain reference", quick=True, measure=_sampler),
    Check(name="blocks", title="block l on the stored residual = the next one", quick=True, measure=_blocks),
    Check(name="keys", title="stored q, k, v = made again from the residual", quick=True, measure=_keys),
)
