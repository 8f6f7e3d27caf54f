"""Positions: how rotary embedding turns a run's own q and k, pair by pair, and what other position schemes would do.

Su et al. 2021, arXiv:2104.09864: the score of a rotated q and k depends on their content and their distance alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from model.device import to_device, to_host
from model.errors import BadValueError
from model.protocol.framing import Array
from model.protocol.rope_requests import GetRope, RopeReply
from model.recompute import activations, query_rows
from model.rope import RopeSpec
from model.run import Run
from model.views.model_card import rope_facts
from model.views.selection import check_position, head_spec, kv_head

SHIFT = 97
MAX_DISTANCES = 2048


@dataclass(frozen=True, kw_only=True, eq=False)
class _Pair:
    """One query and key of a head: content before rotation and as used, (D,) float32 each."""

    q_before: Tensor
    k_before: Tensor
    q_after: Tensor
    k_after: Tensor


@torch.inference_mode()
def rope_reply(run: Run, message: GetRope) -> tuple[RopeReply, dict[str, Array]]:
    """The answer to GetRope."""
    run.check_layer(message.layer)
    if not 0 <= message.head < run.config.n_heads:
        raise BadValueError("head", message.head, f"0 to {run.config.n_heads - 1}")
    check_position(run, "query", message.query)
    check_position(run, "key", message.key)
    spec = run.spec(message.layer)
    shared = kv_head(spec, message.head)
    q = query_rows(run, message.layer, message.query, message.query + 1)[message.head, 0].float()  # (D,)
    k = run.k(message.layer)[shared, message.key].float()  # (D,)
    own = head_spec(spec, message.head)
    reply = RopeReply(
        positions=run.config.positions,
        layer=message.layer,
        head=message.head,
        kv_head=shared,
        query=message.query,
        key=message.key,
        raw=float(q @ k),
        scale=spec.scale,
        rest=0.0,
        shift=SHIFT,
        shift_error=math.nan,
        facts=None,
        frequencies_length=run.rope_length(message.query),
        curves=(),
        slope=own.slopes[0] if own.slopes is not None else 0.0,
        run_id=run.id,
        length=run.length,
    )
    rope = run.config.rope_of(message.layer)
    if rope is not None:
        before = _before(run, message, shared)
        pair = _Pair(q_before=before[0], k_before=before[1], q_after=q, k_after=k)
        return _rotary(run, message, reply, rope, pair)
    if own.slopes is not None:
        distance = _distances(run, message)
        bias = own.bias(-distance)
        assert bias is not None
        return reply, {"distance": _numpy(distance), "bias": _numpy(bias[0, 0])}
    if run.decoder.embed_positions is not None:
        table = run.decoder.embed_positions.weight[: run.length].float()  # (S, M)
        similarity = torch.nn.functional.cosine_similarity(table, table[message.query, None])  # (S,)
        away = (torch.arange(run.length, device=table.device) - message.query).abs()
        return reply, {
            "similarity": _numpy(similarity), "sinusoidal": _numpy(_sinusoidal(away, run.config.d_model)),
        }  # fmt: skip
    return reply, {}


def _before(run: Run, message: GetRope, shared: int) -> tuple[Tensor, Tensor]:
    """q of the query and k of the key as they were before rotation, (D,) each, recomputed."""
    at, to = message.query, message.key
    q = activations(run, message.layer, ["attn.q"], at, at + 1)["attn.q"][message.head, 0]
    k = activations(run, message.layer, ["attn.k"], to, to + 1)["attn.k"][shared, 0]
    return q.float(), k.float()


def _rotary(
    run: Run, message: GetRope, reply: RopeReply, rope: RopeSpec, pair: _Pair
) -> tuple[RopeReply, dict[str, Array]]:
    length = run.rope_length(message.query)
    inv_freq = rope.inv_freq(length)  # (P,)
    key_freq = rope.inv_freq(run.rope_length(message.key))
    planes = {name: _planes(getattr(pair, name), rope.dim) for name in ("q_before", "q_after", "k_before", "k_after")}
    contribution = (planes["q_after"] * planes["k_after"]).sum(-1)  # (P,)
    distance = _distances(run, message)
    what_ifs = _what_ifs(run, rope)
    curves = [_curve(other, pair, distance, length) for other in (rope, *what_ifs.values())]
    flat = pair.q_before @ pair.k_before
    curves.append(flat.expand(distance.shape))
    arrays = {name: _numpy(plane) for name, plane in planes.items()}
    arrays |= {
        "inv_freq": _numpy(inv_freq),
        "wavelength": _numpy(2 * math.pi / inv_freq),
        "q_angle": _numpy(inv_freq * message.query),
        "k_angle": _numpy(key_freq * message.key),
        "contribution": _numpy(contribution),
        "distance": _numpy(distance),
        "curve_scores": _numpy(torch.stack(curves) * reply.scale),
        "sinusoidal": _numpy(_sinusoidal(distance, run.config.d_model)),
    }
    filled = replace(
        reply,
        rest=float(pair.q_after[rope.dim :] @ pair.k_after[rope.dim :]),
        shift_error=_shift_error(rope, pair, message, length),
        facts=rope_facts(rope),
        curves=("model", *what_ifs, "none"),
    )
    return filled, arrays


def _planes(vector: Tensor, width: int) -> Tensor:
    """The rotated pairs of a vector (D,): dimensions i and i + R/2, (P, 2)."""
    return vector[:width].view(2, -1).T


def _turn(rope: RopeSpec, vector: Tensor, positions: Tensor, length: int) -> Tensor:
    """A vector (D,) turned to each of `positions` (n,): (n, D)."""
    turn = rope.rotation(positions, length=length).turn
    return turn(vector.expand(positions.shape[0], -1))


def _curve(rope: RopeSpec, pair: _Pair, distance: Tensor, length: int) -> Tensor:
    """q·k of the same content with the key at 0 and the query `distance` (n,) after it: (n,)."""
    q = _turn(rope, pair.q_before, distance, length)  # (n, D)
    k = _turn(rope, pair.k_before, torch.zeros_like(distance[:1]), length)[0]  # (D,)
    return q @ k


def _shift_error(rope: RopeSpec, pair: _Pair, message: GetRope, length: int) -> float:
    """The change of q·k when both positions move by SHIFT, over ‖q‖·‖k‖."""
    dots = []
    for shift in (0, SHIFT):
        at = to_device(torch.tensor([message.query + shift, message.key + shift]), pair.q_before.device)
        q, k = _turn(rope, pair.q_before, at[:1], length)[0], _turn(rope, pair.k_before, at[1:], length)[0]
        dots.append(float(q.double() @ k.double()))
    size = float(pair.q_before.norm() * pair.k_before.norm()) * rope.attention_factor**2
    return abs(dots[0] - dots[1]) / size if size else 0.0


def _what_ifs(run: Run, rope: RopeSpec) -> dict[str, RopeSpec]:
    """Other frequencies for the same q and k, by name; the model's own scaling is not among them."""
    context = rope.original_ctx or run.config.n_ctx
    plain = RopeSpec(theta=rope.theta, dim=rope.dim)
    others = {
        "unscaled": plain,
        "linear 4": replace(plain, kind="linear", factor=4.0),
        "yarn 4": replace(plain, kind="yarn", factor=4.0, original_ctx=context),
        "llama3 8": replace(plain, kind="llama3", factor=8.0, original_ctx=context),
        "base 10": replace(plain, theta=rope.theta * 10),
    }
    if rope.dim >= 4:  # dynamic NTK at four times the context it was trained for
        stretched = rope.theta * 4 ** (rope.dim / (rope.dim - 2))
        others["ntk 4"] = replace(plain, theta=stretched)
    if rope == plain:
        del others["unscaled"]
    return others


def _sinusoidal(distance: Tensor, d_model: int) -> Tensor:
    """Similarity of two rows of the fixed encoding (Vaswani et al. 2017, §3.5) by distance, 1 at 0: Σ cos(d·ω) / n."""
    omega = 10_000.0 ** (-torch.arange(0, d_model, 2, device=distance.device) / d_model)  # (M/2,)
    return (distance[:, None] * omega).cos().mean(-1)  # (n,)


def _distances(run: Run, message: GetRope) -> Tensor:
    """Distances from 0 to the text's length or `reach`, evenly, at most `distances` of them, and among them the one
    there is, where it is not beyond: (n,) int64."""
    reach = max(message.reach or run.length - 1, 1)
    count = min(max(message.distances, 2), MAX_DISTANCES, reach + 1)
    points = np.linspace(0, reach, count).round().astype(np.int64)
    own = message.query - message.key
    points = np.unique(np.append(points, own) if 0 <= own <= reach else points)
    return to_device(torch.from_numpy(points), run.device)


def _numpy(values: Tensor) -> Array:
    return to_host(values.float()).numpy()
