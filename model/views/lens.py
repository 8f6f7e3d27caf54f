"""The lens: what the model would say if it stopped after a layer, and which part of it said so.

Logit lens: final norm and head on the residual stream of any depth (nostalgebraist 2020). Contributions: with the final
norm's scale frozen at what it was, a logit is a sum over everything that was added to the stream (direct logit
attribution, Elhage et al. 2021); what the sum leaves is shown as the rest.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from model.device import all_to_host, to_device, to_host
from model.errors import BadValueError
from model.layers import Norm
from model.protocol.framing import Array
from model.protocol.lens_requests import (
    GetLens,
    GetLensPath,
    GetLensTerms,
    LensPart,
    LensPathReply,
    LensTermsReply,
)
from model.recompute import activations
from model.run import Run
from model.views.selection import YieldPoint, check_position, no_yield, span

BLOCK_LOGITS = 1 << 20
"""Logits held at a time (4 MiB in float32): some 60 ms of a small model's head on two cores, then others are served."""

MOST_KEPT = 200_000
KEPT = "lens"

Told = tuple[int, float, float]
"""Top token, its probability, the entropy in nats."""


def node_at(run: Run, position: int) -> int:
    """The node of a position of the path: what is said there stays true wherever the run goes."""
    return position if position < run.n_prompt else run.path[position - run.n_prompt]


def lens_parts(
    run: Run, message: GetLens, *, yield_point: YieldPoint = no_yield
) -> Iterator[tuple[LensPart, dict[str, Array]]]:
    """The parts of the answer to GetLens, one a depth."""
    first, last = span(run, "positions", message.positions)
    for depth in message.depths:
        check_depth(run, depth)
    for depth in message.depths:
        told = top_of(run, depth, range(first, last), yield_point=yield_point)
        ids = [token for token, _, _ in told]
        yield (
            LensPart(depth=depth, pieces=tuple(run.model.tokenizer.pieces(ids))),
            {
                "ids": np.array(ids, np.int32),
                "p": np.array([p for _, p, _ in told], np.float32),
                "entropy": np.array([entropy for _, _, entropy in told], np.float32),
            },
        )


def check_depth(run: Run, depth: int) -> None:
    """Raises BadValueError for a depth the model doesn't have."""
    if not 0 <= depth <= run.config.n_layers:
        raise BadValueError("depth", depth, f"0 to {run.config.n_layers}")


@torch.inference_mode()
def top_of(run: Run, depth: int, positions: range, *, yield_point: YieldPoint = no_yield) -> list[Told]:
    """The top token at every position, in row blocks. What is known of a node is kept: scrolling asks again."""
    kept = run.derived.setdefault(KEPT, {})
    assert isinstance(kept, dict)
    if len(kept) > MOST_KEPT:
        kept.clear()
    nodes = [node_at(run, position) for position in positions]
    missing = [position for position, node in zip(positions, nodes, strict=True) if (depth, node) not in kept]
    at_once = max(1, BLOCK_LOGITS // run.config.d_vocab)
    for begin in range(0, len(missing), at_once):
        yield_point()
        block = missing[begin : begin + at_once]
        logits = run.decoder.unembed(run.resid(depth)[to_device(torch.tensor(block), run.device)])  # (T, V)
        p = logits.softmax(-1)  # (T, V)
        best = logits.max(-1)
        entropy = torch.special.entr(p).sum(-1)  # (T,)
        top = p.gather(1, best.indices[:, None])[:, 0]  # (T,)
        told = zip(*(each.tolist() for each in all_to_host(best.indices, top, entropy)), strict=True)
        kept |= {(depth, node_at(run, position)): one for position, one in zip(block, told, strict=True)}
    return [kept[depth, node] for node in nodes]


@dataclass(frozen=True, kw_only=True, eq=False)
class TokenPath:
    """A token's `rank` int32, `logit` and `p` float32 at every depth, (L + 1,); `top`: the likeliest at the end."""

    token: int
    top: int
    rank: NDArray[np.int32]
    logit: NDArray[np.float32]
    p: NDArray[np.float32]


@torch.inference_mode()
def token_path(run: Run, position: int, token: int, *, yield_point: YieldPoint = no_yield) -> TokenPath:
    """The way of `token` (-1: the likeliest at the end) up through the layers at `position`."""
    check_position(run, "position", position)
    check_token(run, token)
    n_depths = run.config.n_layers + 1
    final = run.decoder.unembed(run.resid(n_depths - 1)[position : position + 1])  # (1, V)
    top = int(final.argmax())
    token = top if token < 0 else token
    stream = torch.stack([run.resid(depth)[position] for depth in range(n_depths)])  # (L + 1, M)
    ranks, own, shares = [], [], []
    at_once = max(1, BLOCK_LOGITS // run.config.d_vocab)
    for begin in range(0, n_depths, at_once):
        yield_point()
        logits = run.decoder.unembed(stream[begin : begin + at_once])  # (n, V)
        value = logits[:, token]  # (n,)
        tied = (logits[:, :token] == value[:, None]).sum(-1)  # (n,)
        ranks.append((logits > value[:, None]).sum(-1) + tied)
        own.append(value)
        shares.append(logits.log_softmax(-1)[:, token].exp())
    rank, logit, p = all_to_host(torch.cat(ranks).int(), torch.cat(own), torch.cat(shares))
    return TokenPath(token=token, top=top, rank=rank.numpy(), logit=logit.numpy(), p=p.numpy())


def check_token(run: Run, token: int) -> None:
    """Raises BadValueError for a token the model doesn't have; -1 is the likeliest."""
    if not -1 <= token < run.config.d_vocab:
        raise BadValueError("token", token, f"0 to {run.config.d_vocab - 1}, or -1 for the likeliest")


def path_reply(
    run: Run, message: GetLensPath, *, yield_point: YieldPoint = no_yield
) -> tuple[LensPathReply, dict[str, Array]]:
    """The answer to GetLensPath."""
    path = token_path(run, message.position, message.token, yield_point=yield_point)
    tokenizer = run.model.tokenizer
    reply = LensPathReply(
        position=message.position,
        token_id=path.token,
        piece=tokenizer.piece(path.token),
        top_id=path.top,
        top_piece=tokenizer.piece(path.top),
        run_id=run.id,
    )
    return reply, {"rank": path.rank, "logit": path.logit, "p": path.p}


@dataclass(frozen=True, kw_only=True, eq=False)
class Terms:
    """A logit as a sum: `embed` + Σ `attn` + Σ `mlp` + `bias` + `rest` = `logit`; `attn`, `mlp` float64 (L,)."""

    token: int
    logit: float
    embed: float
    attn: NDArray[np.float64]
    mlp: NDArray[np.float64]
    bias: float
    rest: float
    scale: float


@torch.inference_mode()
def token_terms(run: Run, position: int, token: int, *, yield_point: YieldPoint = no_yield) -> Terms:
    """What each part of the model adds to the logit of `token` (-1: the likeliest) at `position`.

    The final norm divides by a number of the whole stream; it is frozen at its value there. What it subtracts (the mean
    of a LayerNorm) and multiplies is linear, so every part has a share of its own.
    """
    check_position(run, "position", position)
    check_token(run, token)
    config, decoder = run.config, run.decoder
    last = run.resid(config.n_layers)[position]  # (M,)
    logits = decoder.unembed(last[None])[0]  # (V,)
    token = int(logits.argmax()) if token < 0 else token
    direction, scale, bias = _readout(run, token, last)

    parts = [run.resid(0)[position]]  # (M,) each: the embedding, then attention and feed-forward of every layer
    for layer in range(config.n_layers):
        yield_point()
        seen = activations(run, layer, ["attn.out", "mlp.out"], position, position + 1)
        parts += [seen["attn.out"][0], seen["mlp.out"][0]]
    shares = (to_host(torch.stack(parts)).double() @ direction).numpy()  # (2 L + 1,)
    embed, attn, mlp, logit = float(shares[0]), shares[1::2], shares[2::2], float(logits[token])
    return Terms(
        token=token,
        logit=logit,
        embed=embed,
        attn=attn,
        mlp=mlp,
        bias=bias,
        rest=logit - (embed + float(attn.sum()) + float(mlp.sum()) + bias),
        scale=scale,
    )


def _readout(run: Run, token: int, last: Tensor) -> tuple[Tensor, float, float]:
    """The direction d (M,) float64 with logit = d · x + bias for the frozen norm, its scale, and the bias."""
    config, decoder = run.config, run.decoder
    norm: Norm = decoder.norm
    head = decoder.embed_tokens.weight if decoder.lm_head is None else decoder.lm_head.weight
    row, gain = head[token].cpu().double(), norm.weight.cpu().double()  # (M,) twice
    if norm.unit_offset:
        gain = gain + 1
    direction = row * gain  # (M,)
    x = last.cpu().double()
    if norm.is_rms:
        scale = float((x.square().mean() + norm.eps).rsqrt())
    else:
        scale = float((x.var(correction=0) + norm.eps).rsqrt())
        direction = direction - direction.mean()  # the mean of x is subtracted: the same as of the direction
    bias = 0.0 if norm.bias is None else float(norm.bias.cpu().double() @ row)
    if decoder.lm_head is not None and decoder.lm_head.bias is not None:
        bias += float(decoder.lm_head.bias[token])
    return direction * scale * config.logit_scale, scale, bias * config.logit_scale


def terms_reply(
    run: Run, message: GetLensTerms, *, yield_point: YieldPoint = no_yield
) -> tuple[LensTermsReply, dict[str, Array]]:
    """The answer to GetLensTerms."""
    terms = token_terms(run, message.position, message.token, yield_point=yield_point)
    reply = LensTermsReply(
        position=message.position,
        token_id=terms.token,
        piece=run.model.tokenizer.piece(terms.token),
        logit=terms.logit,
        embed=terms.embed,
        bias=terms.bias,
        rest=terms.rest,
        scale=terms.scale,
        run_id=run.id,
    )
    return reply, {"attn": terms.attn, "mlp": terms.mlp}
