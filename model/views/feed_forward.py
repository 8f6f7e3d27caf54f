"""The feed-forward of a layer: which neurons a token wakes, which experts it is sent to, how much each layer adds."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from model.config import DecoderConfig
from model.costs import active_parameters
from model.device import to_host
from model.errors import BadValueError
from model.layers import ACTIVATIONS
from model.protocol.feed_forward_requests import GetNeurons, GetNorms, GetRouter, NeuronsReply, NormsReply, RouterReply
from model.protocol.framing import Array
from model.recompute import activations
from model.run import Run
from model.views.selection import YieldPoint, check_position, no_yield, span

NEAR_ZERO = 0.01
"""An output under this share of the token's largest counts as near zero."""

MAX_TOP, MAX_ROWS, DEFAULT_ROWS = 512, 512, 64
CURVE_POINTS = 201


@torch.inference_mode()
def neurons_reply(run: Run, message: GetNeurons) -> tuple[NeuronsReply, dict[str, Array]]:
    """The answer to GetNeurons."""
    run.check_layer(message.layer)
    check_position(run, "position", message.position)
    rows = _rows(run, message)
    gated = run.config.gated_mlp
    names = ["mlp.pre", "mlp.post", *(["mlp.up"] if gated else [])]
    own, shown = (_neurons(run, message.layer, names, *ends) for ends in
                  ((message.position, message.position + 1), rows))  # fmt: skip
    post = own["mlp.post"][0]  # (n,)
    best = post.abs().topk(min(max(message.top, 1), MAX_TOP, post.numel())).indices
    arrays: dict[str, Array] = {
        "pre": _numpy(own["mlp.pre"][0, best]),
        "act": _numpy(ACTIVATIONS[run.config.activation](own["mlp.pre"][0, best])),
        "post": _numpy(post[best]),
        "all_pre": _numpy(own["mlp.pre"][0]),
        "all_post": _numpy(post),
        "all_act": _numpy(ACTIVATIONS[run.config.activation](own["mlp.pre"][0])),
    }
    if gated:
        arrays["up"] = _numpy(own["mlp.up"][0, best])
    width = _width(run.config, message.layer)
    arrays["ids"] = to_host(best % width).numpy().astype(np.int32)
    if "experts" in own:
        experts = own["experts"][0, best // width]  # (top,)
        arrays["experts"] = to_host(experts).numpy().astype(np.int32)
        arrays["heat"] = _numpy(_heat_of_experts(shown, experts, best % width, width))
    else:
        arrays["heat"] = _numpy(shown["mlp.post"][:, best])
    arrays["curve_x"], arrays["curve_y"] = _curve(run.config, own["mlp.pre"])
    reply = NeuronsReply(
        layer=message.layer,
        position=message.position,
        rows=rows,
        neurons=post.numel(),
        activation=run.config.activation,
        gated=gated,
        near_zero=_near_zero(own["mlp.post"]),
        near_zero_rows=_near_zero(shown["mlp.post"]),
        threshold=NEAR_ZERO,
        has_experts="experts" in own,
        run_id=run.id,
        length=run.length,
    )
    return reply, arrays


def _rows(run: Run, message: GetNeurons) -> tuple[int, int]:
    if message.rows == (0, 0):
        return max(0, message.position + 1 - DEFAULT_ROWS), message.position + 1
    rows = span(run, "rows", message.rows)
    if rows[1] - rows[0] > MAX_ROWS:
        raise BadValueError("rows", rows, f"at most {MAX_ROWS} positions")
    return rows


def _neurons(run: Run, layer: int, names: list[str], start: int, stop: int) -> dict[str, Tensor]:
    """Activations (T, n) float32 by name; with experts those of the chosen ones side by side, and "experts" (T, k)."""
    if not run.config.has_experts(layer):
        seen = activations(run, layer, names, start, stop)
        return {name: rows.float() for name, rows in seen.items()}
    seen = activations(run, layer, [*names, "moe.ids"], start, stop)
    experts = seen.pop("moe.ids")
    return {name: rows.float().flatten(1) for name, rows in seen.items()} | {"experts": experts}  # (T, k · F)


def _width(config: DecoderConfig, layer: int) -> int:
    return config.moe.d_expert if config.moe is not None and config.has_experts(layer) else config.d_mlp


def _heat_of_experts(shown: dict[str, Tensor], experts: Tensor, ids: Tensor, width: int) -> Tensor:
    """Outputs (t, n) of neurons `ids` of `experts` (n,), NaN for tokens that weren't sent to that expert."""
    flat = shown["mlp.post"]
    post = flat.view(flat.shape[0], -1, width)  # (t, k, F)
    heat = post.new_full((post.shape[0], ids.numel()), torch.nan)
    for slot in range(post.shape[1]):
        sent = shown["experts"][:, slot, None] == experts  # (t, n)
        heat = torch.where(sent, post[:, slot][:, ids], heat)
    return heat


def _near_zero(post: Tensor) -> float:
    limit = NEAR_ZERO * post.abs().amax(-1, keepdim=True)
    return float((post.abs() < limit).float().mean())


def _curve(config: DecoderConfig, pre: Tensor) -> tuple[Array, Array]:
    low, high = min(float(pre.min()), -1.0), max(float(pre.max()), 1.0)
    x = torch.linspace(low, high, CURVE_POINTS)
    return _numpy(x), _numpy(ACTIVATIONS[config.activation](x))


@torch.inference_mode()
def router_reply(run: Run, message: GetRouter) -> tuple[RouterReply, dict[str, Array]]:
    """The answer to GetRouter. Raises BadValueError for a layer without experts."""
    run.check_layer(message.layer)
    moe = run.config.moe
    if moe is None or not run.config.has_experts(message.layer):
        raise BadValueError("layer", message.layer, f"a layer with experts ({moe.layers if moe else 'there is none'})")
    rows = span(run, "rows", message.rows)
    seen = activations(run, message.layer, ["moe.router", "moe.ids", "moe.weights"], *rows)
    chosen = to_host(seen["moe.ids"]).numpy().astype(np.int32)
    reply = RouterReply(
        layer=message.layer,
        rows=rows,
        n_experts=moe.n_experts,
        experts_per_token=moe.top_k,
        parameters=run.model.info.parameters,
        active_parameters=active_parameters(run.config),
        run_id=run.id,
        length=run.length,
    )
    return reply, {
        "probs": _numpy(seen["moe.router"].float().softmax(-1)),
        "chosen": chosen,
        "weights": _numpy(seen["moe.weights"]),
        "load": np.bincount(chosen.ravel(), minlength=moe.n_experts).astype(np.int64),
    }


@torch.inference_mode()
def norms_reply(
    run: Run, message: GetNorms, *, yield_point: YieldPoint = no_yield
) -> tuple[NormsReply, dict[str, Array]]:
    """The answer to GetNorms."""
    at = message.position
    check_position(run, "position", at)
    resid = [run.resid(layer)[at] for layer in range(run.config.n_layers + 1)]  # L + 1 of (M,)
    added: dict[str, list[Tensor]] = {"attn.out": [], "mlp.out": []}
    for layer in range(run.config.n_layers):
        yield_point()
        for name, rows in activations(run, layer, list(added), at, at + 1).items():
            added[name].append(rows[0])
    arrays = {"resid": _norms(resid), "attention": _norms(added["attn.out"]), "feed_forward": _norms(added["mlp.out"])}
    return NormsReply(position=at, run_id=run.id, length=run.length), arrays


def _norms(vectors: list[Tensor]) -> Array:
    return _numpy(torch.stack(vectors).float().norm(dim=-1))


def _numpy(values: Tensor) -> Array:
    return to_host(values.float()).numpy()
