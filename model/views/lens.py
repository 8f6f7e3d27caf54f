"""The logit lens, and what each block adds to a token's logit.

The lens reads the residual stream of an inner layer with the model's own final norm and head (nostalgebraist 2020,
"interpreting GPT: the logit lens"). Attribution freezes that norm's scale: the logit is then a sum over what entered
and what every block added (Elhage et al. 2021, "A mathematical framework for transformer circuits").
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from model.candidates import candidates
from model.errors import BadValueError
from model.layers import Norm
from model.protocol.framing import Array
from model.protocol.lens_requests import (
    AttributionReply,
    GetAttribution,
    GetLens,
    GetRankPath,
    LensPart,
    LensReply,
    RankPathReply,
)
from model.protocol.values import Candidate
from model.recompute import activations
from model.run import Run
from model.sampling import apply
from model.views.prompt_stats import PLAIN, order_after
from model.views.selection import YieldPoint, check_position, no_yield, span

DEFAULT_ROWS, MAX_ROWS = 48, 256


def lens_rows(run: Run, message: GetLens) -> tuple[int, int]:
    """The positions a GetLens asks for. Raises BadValueError for too many."""
    if message.rows == (0, 0):
        return max(0, run.length - DEFAULT_ROWS), run.length
    rows = span(run, "rows", message.rows)
    if rows[1] - rows[0] > MAX_ROWS:
        raise BadValueError("rows", rows, f"at most {MAX_ROWS} positions")
    return rows


def lens_layers(run: Run, message: GetLens) -> tuple[int, ...]:
    """The layers a GetLens asks for, in order; n_layers is the stream after the last. Raises BadValueError."""
    if not message.layers:
        return tuple(range(run.config.n_layers, -1, -1))
    for layer in message.layers:
        if not 0 <= layer <= run.config.n_layers:
            raise BadValueError("layer", layer, f"0 to {run.config.n_layers}")
    return message.layers


@torch.inference_mode()
def lens_part(run: Run, layer: int, rows: tuple[int, int]) -> tuple[LensPart, dict[str, Array]]:
    """One part of the answer to GetLens."""
    log_p = run.decoder.unembed(run.resid(layer)[slice(*rows)]).log_softmax(-1)  # (t, V)
    best = log_p.max(-1)
    p = log_p.exp()
    ids = best.indices.cpu().numpy().astype(np.int32)
    return LensPart(layer=layer, pieces=tuple(run.model.tokenizer.pieces(ids.tolist()))), {
        "ids": ids,
        "probs": best.values.exp().cpu().numpy(),
        "entropy": -(p * log_p.masked_fill(p == 0, 0.0)).sum(-1).cpu().numpy(),
    }


def lens_reply(run: Run, message: GetLens) -> LensReply:
    """The answer to GetLens that ends its parts."""
    return LensReply(rows=lens_rows(run, message), layers=run.config.n_layers + 1, run_id=run.id, length=run.length)


@torch.inference_mode()
def rank_path_reply(
    run: Run, message: GetRankPath, *, yield_point: YieldPoint = no_yield
) -> tuple[RankPathReply, dict[str, Array]]:
    """The answer to GetRankPath."""
    _check(run, message.position, message.token_id)
    ranks, logprobs = [], []
    for layer in range(run.config.n_layers + 1):
        yield_point()
        logits = run.decoder.unembed(run.resid(layer)[message.position, None])[0]  # (V,)
        own = logits[message.token_id]
        ranks.append(int((logits > own).sum() + (logits[: message.token_id] == own).sum()))
        logprobs.append(float(logits.log_softmax(-1)[message.token_id]))
    reply = RankPathReply(
        position=message.position,
        token=_candidate(run, message.position, message.token_id),
        run_id=run.id,
        length=run.length,
    )
    return reply, {"rank": np.array(ranks, np.int32), "logprob": np.array(logprobs, np.float32)}


def _check(run: Run, position: int, token_id: int) -> None:
    check_position(run, "position", position)
    if not 0 <= token_id < run.config.d_vocab:
        raise BadValueError("token_id", token_id, f"0 to {run.config.d_vocab - 1}")


def _candidate(run: Run, position: int, token_id: int) -> Candidate:
    made = apply(order_after(run, position), PLAIN)
    return candidates(made, run.model.tokenizer, [token_id])[0]


@torch.inference_mode()
def attribution_reply(
    run: Run, message: GetAttribution, *, yield_point: YieldPoint = no_yield
) -> tuple[AttributionReply, dict[str, Array]]:
    """The answer to GetAttribution."""
    at, token = message.position, message.token_id
    _check(run, at, token)
    final = run.resid(run.config.n_layers)[at].float()  # (M,)
    direction, bias = _direction(run, final, token)
    attention, feed_forward = [], []
    for layer in range(run.config.n_layers):
        yield_point()
        added = activations(run, layer, ["attn.out", "mlp.out"], at, at + 1)
        attention.append(float(added["attn.out"][0].float() @ direction))
        feed_forward.append(float(added["mlp.out"][0].float() @ direction))
    candidate = _candidate(run, at, token)
    embedding = float(run.resid(0)[at].float() @ direction)
    reply = AttributionReply(
        position=at,
        token=candidate,
        logit=candidate.logit,
        embedding=embedding,
        bias=bias,
        unexplained=candidate.logit - embedding - bias - sum(attention) - sum(feed_forward),
        run_id=run.id,
        length=run.length,
    )
    return reply, {"attention": np.array(attention, np.float32), "feed_forward": np.array(feed_forward, np.float32)}


def _direction(run: Run, final: Tensor, token_id: int) -> tuple[Tensor, float]:
    """The vector (M,) whose product with a residual is its share of the token's logit under the frozen norm, and the
    constant that comes from the biases."""
    decoder, scale = run.decoder, run.config.logit_scale
    norm: Norm = decoder.norm
    head = decoder.embed_tokens.weight if decoder.lm_head is None else decoder.lm_head.weight
    row = head[token_id].float()  # (M,)
    weighted = row * (norm.weight.float() + norm.unit_offset)
    bias = 0.0 if norm.bias is None else float(norm.bias.float() @ row)
    if decoder.lm_head is not None and decoder.lm_head.bias is not None:
        bias += float(decoder.lm_head.bias[token_id])
    if norm.is_rms:
        deviation = (final.square().mean() + norm.eps).sqrt()
    else:
        deviation = (final.var(unbiased=False) + norm.eps).sqrt()
        weighted = weighted - weighted.mean()  # (x - mean(x)) · w = x · (w - mean(w))
    return weighted / deviation * scale, bias * scale
