"""Both ends of the walk: from the table of embeddings into the residual stream, and from it to probabilities."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from model.device import all_to_host, to_device, to_host
from model.hooks import HookPoint
from model.protocol.walk_requests import WalkToken
from model.run import Run
from model.views.selection import YieldPoint, no_yield
from model.views.walk_ops import Walk, norm_formula, norm_note, stream_name

NEAREST = 8
LIKELIEST = 10
BLOCK_ROWS = 16_384


@torch.inference_mode()
def walk_in(run: Run, position: int, *, yield_point: YieldPoint = no_yield) -> tuple[Walk, Tensor, Tensor]:
    """The token's row of the table, what is done to it, and the stream that enters layer 0: made, and stored."""
    decoder, config, token = run.decoder, run.config, run.ids[position]
    ids = to_device(torch.tensor([token]), run.device)
    seen: dict[str, Tensor] = {}

    def keep(rows: Tensor, _point: HookPoint) -> None:
        seen["embed"] = rows

    with decoder.hooks({"embed": keep}):
        made: Tensor = decoder.embed_ids(ids, position)[0]  # (M,)
    row = decoder.embed_tokens(ids)[0]  # (M,)
    walk = Walk()
    walk.add(
        "embed.row", row, f"e = E[{token}]", "(M)", note=f"E: {config.d_vocab:,} × {config.d_model:,}",
        tokens=nearest(run, token, yield_point=yield_point),
    )  # fmt: skip
    if config.embed_scale != 1.0:
        walk.add("embed.scale", seen["embed"][0], f"e ← {config.embed_scale:.6g} · e", "(M)")
    summed = seen["embed"]  # (1, M)
    if decoder.embed_positions is not None:
        place = decoder.embed_positions(to_device(torch.tensor([position]), run.device))  # (1, M)
        walk.add(
            "embed.position", place[0], f"p = P[{position}]", "(M)",
            note=f"P: {config.n_positions_table:,} × {config.d_model:,}",
        )  # fmt: skip
        summed = summed + place
        walk.add("embed.sum", summed[0], "x = e + p", "(M)", recomputed=True)
    if decoder.embed_layernorm is not None:
        norm = decoder.embed_layernorm
        walk.add("embed.norm", made, norm_formula(norm, "e"), "(M)", note=norm_note(norm, summed))
    last = "norm(e)" if decoder.embed_layernorm is not None else "e + p" if decoder.embed_positions is not None else "e"
    walk.add("embed.out", made, f"{stream_name(0)} = {last}", "(M)")
    return walk, made, run.resid(0)[position]


def nearest(run: Run, token: int, *, yield_point: YieldPoint = no_yield) -> tuple[WalkToken, ...]:
    """The tokens whose rows of the table point most nearly where `token`'s does, by cosine; kept with the run."""
    kept = run.derived.setdefault("nearest", {})
    assert isinstance(kept, dict)
    if token not in kept:
        table = run.decoder.embed_tokens.weight  # (V, M)
        row = table[token].float()
        row = row / row.norm().clamp(min=1e-30)
        cosines = []
        for begin in range(0, table.shape[0], BLOCK_ROWS):
            yield_point()
            part = table[begin : begin + BLOCK_ROWS].float()  # (n, M)
            cosines.append(part @ row / part.norm(dim=-1).clamp(min=1e-30))  # (n,)
        cosine = torch.cat(cosines)  # (V,)
        cosine[token] = -2.0
        best = cosine.topk(min(NEAREST, cosine.numel() - 1))
        kept[token] = tuple(
            WalkToken(id=other, piece=run.model.tokenizer.piece(other), value=value)
            for value, other in zip(*(each.tolist() for each in all_to_host(best.values, best.indices)), strict=True)
        )
    found: tuple[WalkToken, ...] = kept[token]
    return found


@torch.inference_mode()
def walk_out(run: Run, position: int) -> tuple[Walk, Tensor, Tensor | None]:
    """From the last residual stream to probabilities; the logits made, and those the run stored there, if it did."""
    decoder, config = run.decoder, run.config
    stream = run.resid(config.n_layers)[position : position + 1]  # (1, M)
    seen: dict[str, Tensor] = {}

    def keep(rows: Tensor, point: HookPoint) -> None:
        seen[point.name] = rows

    with decoder.hooks({"final_norm": keep, "logits": keep}):
        decoder.unembed(stream)
    logits = seen["logits"][0]  # (V,)
    walk = Walk()
    walk.add("resid_post", stream[0], f"x = {stream_name(config.n_layers)}", "(M)")
    walk.add(
        "head.norm", seen["final_norm"][0], norm_formula(decoder.norm), "(M)", note=norm_note(decoder.norm, stream)
    )
    p = logits.softmax(-1)  # (V,)
    best = logits.topk(min(LIKELIEST, logits.numel()))
    pieces = [(token, run.model.tokenizer.piece(token)) for token in to_host(best.indices).tolist()]
    walk.add(
        "head.logits", logits, _logit_formula(run), "(V)", cols="token",
        note="W = Eᵀ" if config.tied_head else "",
        tokens=tuple(WalkToken(id=token, piece=piece, value=float(logits[token])) for token, piece in pieces),
    )  # fmt: skip
    entropy = float(torch.special.entr(p.cpu().double()).sum())
    walk.add(
        "head.softmax", p, "p = exp(ℓ) / Σ exp(ℓ)", "(V)", cols="token", recomputed=True,
        note=f"H = {entropy:.3f} nats",
        tokens=tuple(WalkToken(id=token, piece=piece, value=float(p[token])) for token, piece in pieces),
    )  # fmt: skip
    node = position if position < run.n_prompt else run.path[position - run.n_prompt]
    stored = run.store.logits.get(node)
    return walk, logits, None if stored is None else torch.from_numpy(np.array(stored))


def _logit_formula(run: Run) -> str:
    config = run.config
    formula = "W · x̂ + b" if config.head_bias else "W · x̂"
    if config.logit_scale != 1.0:
        formula = f"{config.logit_scale:g} · {formula}"
    if config.logit_softcap is not None:
        formula = f"{config.logit_softcap:g} · tanh({formula} / {config.logit_softcap:g})"
    return f"ℓ = {formula}"
