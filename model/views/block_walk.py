"""One token's way through the model, operation by operation: into the residual stream, through a block, out to
probabilities.

The list of operations is made from the configuration, the numbers are captured while the block runs again on the stored
residual stream, and the end of each walk is compared with the number the run stored.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from model.attention_spec import AttentionSpec
from model.config import DecoderConfig
from model.device import Stopwatch, to_device, to_host
from model.errors import BadValueError
from model.layers import ACTIVATIONS
from model.protocol.framing import Array
from model.protocol.walk_requests import GetWalk, WalkAxis, WalkReply, WalkToken
from model.run import Run
from model.transformer import Block
from model.views.selection import YieldPoint, check_position, head_spec, kv_head, no_yield
from model.views.self_check import BOUNDS
from model.views.walk_capture import Captured, block_of, capture
from model.views.walk_ends import walk_in, walk_out
from model.views.walk_ops import ACTIVATION_FORMULAS, Walk, norm_formula, norm_note, stream_name

MOST_KEYS_NAMED = 8


def walk_reply(run: Run, message: GetWalk, *, yield_point: YieldPoint = no_yield) -> tuple[WalkReply, dict[str, Array]]:
    """The answer to GetWalk."""
    watch = Stopwatch(run.device)
    check_position(run, "position", message.position)
    check_head(run, message.head)
    run.check_layer(message.layer)
    stored: Tensor | None
    if message.place == "embed":
        walk, made, stored = walk_in(run, message.position, yield_point=yield_point)
    elif message.place == "head":
        walk, made, stored = walk_out(run, message.position)
    else:
        walk, made, stored = walk_block(run, message.layer, message.head, message.position)
    reply = WalkReply(
        place=message.place,
        position=message.position,
        token_id=run.ids[message.position],
        layer=message.layer,
        head=message.head,
        kv_head=kv_head(run.spec(message.layer), message.head),
        ops=tuple(walk.ops),
        error=float("nan") if stored is None else relative(made, stored),
        bound=BOUNDS[run.decoder.dtype],
        run_id=run.id,
        length=run.length,
        ms=watch.ms(),
    )
    return reply, walk.named()


def check_head(run: Run, head: int) -> None:
    """Raises BadValueError for a head the model doesn't have."""
    if not 0 <= head < run.config.n_heads:
        raise BadValueError("head", head, f"0 to {run.config.n_heads - 1}")


def relative(made: Tensor, stored: Tensor) -> float:
    """The largest difference over the largest magnitude stored."""
    made, stored = made.cpu().double().flatten(), stored.cpu().double().flatten()
    return float((made - stored).abs().max() / stored.abs().max().clamp(min=1e-30))


@torch.inference_mode()
def walk_block(run: Run, layer: int, head: int, position: int) -> tuple[Walk, Tensor, Tensor]:
    """Through one block: the operations, the residual stream they end in, and the one the run stored."""
    run.store.focus = layer
    block, seen = block_of(run, layer), capture(run, layer, position)
    walk = Walk()
    walk.add("resid_pre", seen["resid_pre"][0], f"x = {stream_name(layer)}", "(M)", at_positions=True)
    if block.input_layernorm is not None:
        _add_norm(walk, block, seen, "attn.norm", seen["resid_pre"])
    _add_qkv(walk, run.config, seen, head, kv_head(run.spec(layer), head), position, layer)
    _add_scores(walk, run, seen, layer, head, position)
    _add_mix(walk, block, run.config, seen, head)
    if not block.parallel:
        start = "x̂" if block.residual_from_norm else "x"
        walk.add("resid_mid", seen["resid_mid"][0], f"y = {start} + o", "(M)", at_positions=True)
    if block.post_attention_layernorm is not None:
        entered = seen["resid_pre"] if block.parallel else seen["resid_mid"]
        _add_norm(walk, block, seen, "mlp.norm", entered, "x" if block.parallel else "y")
    if run.config.has_experts(layer):
        _add_experts(walk, run.config, seen)
    else:
        _add_mlp(walk, run.config, seen)
    _add_mlp_out(walk, block, seen)
    start = "x + o" if block.parallel else "ŷ" if block.residual_from_norm else "y"
    walk.add("resid_post", seen["resid_post"][0], f"{stream_name(layer + 1)} = {start} + m", "(M)", at_positions=True)
    return walk, seen["resid_post"][0], run.resid(layer + 1)[position]


def _add_norm(walk: Walk, block: Block, seen: Captured, id_: str, x: Tensor, name: str = "x") -> None:
    norm = block.input_layernorm if id_ == "attn.norm" else block.post_attention_layernorm
    assert norm is not None
    formula = norm_formula(norm, name)
    if name == "y":
        formula = formula.replace("x̂", "ŷ", 1)
    note = norm_note(norm, x).replace("(x)", f"({name})")
    walk.add(id_, seen[id_][0], formula, "(M)", note=note, at_positions=True)


def _add_qkv(
    walk: Walk, config: DecoderConfig, seen: Captured, head: int, shared: int, position: int, layer: int
) -> None:
    x = "x̂" if config.pre_norm else "x"
    bias = " + b" if config.qkv_bias else ""
    sides: tuple[tuple[str, WalkAxis, str, int], ...] = (
        ("q", "head", "(H, D)", head),
        ("k", "kv_head", "(K, D)", shared),
        ("v", "kv_head", "(K, D)", shared),
    )
    for name, rows, letters, row in sides:
        made, formula = seen[f"attn.{name}"][:, 0], f"{name} = W_{name} · {x}{bias}"  # (H | K, D)
        if config.qk_norm == "none" or name == "v":
            walk.add(f"attn.{name}", made, formula, letters, rows=rows, first_row=row, at_positions=True)
            continue
        raw = seen[f"attn.{name}_proj"].view(made.shape)  # (H | K, D)
        walk.add(f"attn.{name}", raw, formula, letters, rows=rows, first_row=row)
        over = "ₕ" if config.qk_norm == "head" else ""  # each head by itself, or the whole row
        formula = f"{name}{over} ← norm({name}{over})"
        walk.add(f"attn.{name}_norm", made, formula, letters, rows=rows, first_row=row)
    rope = config.rope_of(layer)
    if rope is None:
        return
    for name, rows, letters, row in sides[:2]:
        walk.add(
            f"attn.rot_{name}",
            seen[f"attn.rot_{name}"][:, 0],
            f"{name}′ = R({position}·θ) · {name}",
            letters,
            rows=rows,
            first_row=row,
            at_positions=True,
            note=f"θᵢ = {rope.theta:g}^(−2i/{rope.dim}), i = 0 … {rope.dim // 2 - 1}",
        )


def _add_scores(walk: Walk, run: Run, seen: Captured, layer: int, head: int, position: int) -> None:
    """Scores of every key of the path, so that the mask has something to hide; weights as the hook shows them."""
    config, n_keys = run.config, run.length
    spec = head_spec(run.spec(layer), head)
    k = run.k(layer)[kv_head(run.spec(layer), head), None]  # (1, S, D)
    q = seen["attn.rot_q"][head, None]  # (1, 1, D)
    q_pos, k_pos = to_device(torch.tensor([position]), run.device), torch.arange(n_keys, device=run.device)
    mark = "′" if config.rope_of(layer) is not None else ""
    walk.add(
        "attn.dots", spec.raw(q, k)[0, 0], f"q{mark}·k{mark}ⱼ,  j = 0 … {n_keys - 1}", "(S)", cols="key",
        parts=("key", "dim"), recomputed=True,
    )  # fmt: skip
    scaled = replace(spec, slopes=None, softcap=None).scores(q, k, q_pos, k_pos)[0, 0]  # (S,)
    walk.add(
        "attn.scaled", scaled, f"s = q{mark}·k{mark}ⱼ × {spec.scale:.6g}", "(S)", cols="key", parts=("key", "dim"),
        recomputed=True, note=_scale_note(config, spec),
    )  # fmt: skip
    if spec.slopes is not None:
        biased = replace(spec, softcap=None).scores(q, k, q_pos, k_pos)[0, 0]  # (S,)
        formula = f"s ← s + {spec.slopes[0] * spec.bias_scale:.6g} · j"
        walk.add("attn.bias", biased, formula, "(S)", cols="key", recomputed=True)
    if spec.softcap is not None:
        capped = spec.scores(q, k, q_pos, k_pos)[0, 0]  # (S,)
        formula = f"s ← {spec.softcap:g} · tanh(s / {spec.softcap:g})"
        walk.add("attn.cap", capped, formula, "(S)", cols="key", recomputed=True)
    visible = spec.mask(q_pos, k_pos)[0]  # (S,)
    masked = spec.scores(q, k, q_pos, k_pos)[0, 0].masked_fill(~visible, torch.nan)  # (S,)
    rule = f"j ≤ {position}" if spec.window is None else f"{max(0, position - spec.window + 1)} ≤ j ≤ {position}"
    walk.add(
        "attn.mask", masked, f"s = −∞ unless {rule}", "(S)", cols="key", recomputed=True,
        note=f"{int(visible.sum())} / {n_keys}",
    )  # fmt: skip
    weights = masked.new_full((n_keys,), torch.nan)
    weights[: position + 1] = seen["attn.pattern"][head, 0]
    weights = weights.masked_fill(~visible, torch.nan)  # (S,)
    read = torch.nan_to_num(weights, nan=-1.0).topk(min(MOST_KEYS_NAMED, int(visible.sum())))
    tokens = tuple(
        WalkToken(id=int(key), piece=run.model.tokenizer.piece(run.ids[int(key)]), value=float(weight))
        for weight, key in zip(read.values, read.indices, strict=True)
    )
    shares = weights[visible].cpu().double()
    entropy = float(torch.special.entr(shares).sum())
    walk.add(
        "attn.pattern", weights, "wⱼ = exp(sⱼ) / Σᵢ exp(sᵢ)", "(S)", cols="key",
        note=f"Σ wⱼ = {float(shares.sum()):.6f},  H = {entropy:.3f} nats", tokens=tokens,
    )  # fmt: skip


def _scale_note(config: DecoderConfig, spec: AttentionSpec) -> str:
    return f"1/√{config.d_head}" if np.isclose(spec.scale, config.d_head**-0.5) else ""


def _add_mix(walk: Walk, block: Block, config: DecoderConfig, seen: Captured, head: int) -> None:
    z = seen["attn.z"][:, 0]  # (H, D)
    walk.add("attn.z", z[head], "z = Σⱼ wⱼ · vⱼ", "(D)", parts=("key", "dim"), at_positions=True)
    walk.add("attn.concat", z, f"concat(z₀ … z{_small(config.n_heads - 1)})", "(H, D)", rows="head", first_row=head)
    bias = " + b" if config.out_bias else ""
    plain = block.attn_out_layernorm is None and block.residual_scale == 1.0
    out = "o" if plain else "o₀"
    walk.add(
        "attn.proj", seen["attn.proj"][0], f"{out} = W_o · concat(z){bias}", "(M)", parts=("head", "dim"),
        at_positions=True,
    )  # fmt: skip
    if block.attn_out_layernorm is not None:
        formula = norm_formula(block.attn_out_layernorm, "o₀").replace("x̂", "o", 1)
        walk.add("attn.post_norm", seen["attn.post_norm"][0], formula, "(M)", at_positions=True)
    if block.residual_scale != 1.0:
        inner = "o₀" if block.attn_out_layernorm is None else "o"
        walk.add("attn.out", seen["attn.out"][0], f"o = {block.residual_scale:g} · {inner}", "(M)", at_positions=True)


def _add_mlp(walk: Walk, config: DecoderConfig, seen: Captured) -> None:
    x, bias = _mlp_input(config), " + b" if config.mlp_bias else ""
    name = "W_gate" if config.gated_mlp else "W_up"
    walk.add("mlp.pre", seen["mlp.pre"][0], f"g = {name} · {x}{bias}", "(F)", cols="neuron", at_positions=True)
    act = ACTIVATION_FORMULAS[config.activation]
    if config.gated_mlp:
        walk.add("mlp.up", seen["mlp.up"][0], f"u = W_up · {x}{bias}", "(F)", cols="neuron", at_positions=True)
        made = ACTIVATIONS[config.activation](seen["mlp.pre"][0])  # (F,)
        walk.add("mlp.act", made, f"a = {act}", "(F)", cols="neuron", recomputed=True)
    formula = "h = a ⊙ u" if config.gated_mlp else f"h = {act}"
    walk.add("mlp.post", seen["mlp.post"][0], formula, "(F)", cols="neuron", at_positions=True)
    walk.add("mlp.down", seen["mlp.down"][0], f"m = W_down · h{bias}", "(M)", at_positions=True)


def _add_experts(walk: Walk, config: DecoderConfig, seen: Captured) -> None:
    assert config.moe is not None
    x, router = _mlp_input(config), seen["moe.router"][0]  # (E,)
    ids, shares = to_host(seen["moe.ids"][0]).tolist(), seen["moe.weights"][0]  # (k,) twice
    walk.add("moe.router", router, f"r = W_router · {x}", "(E)", cols="expert", at_positions=True)
    walk.add("moe.probs", router.float().softmax(-1), "p = softmax(r)", "(E)", cols="expert", recomputed=True)
    best = f"top{config.moe.top_k}(p)"
    rule = f"w = {best} / Σ {best}" if config.moe.renormalize else f"w = {best}"
    tokens = tuple(
        WalkToken(id=expert, piece="", value=float(share)) for expert, share in zip(ids, shares, strict=True)
    )
    walk.add(
        "moe.weights", shares, rule, "(k)", cols="slot",
        note=", ".join(str(expert) for expert in ids), tokens=tokens,
    )  # fmt: skip
    gate = seen["mlp.pre"][0]  # (k, F)
    walk.add("mlp.pre", gate, f"gᵉ = W_gateᵉ · {x}", "(k, F)", rows="slot", cols="neuron")
    walk.add("mlp.up", seen["mlp.up"][0], f"uᵉ = W_upᵉ · {x}", "(k, F)", rows="slot", cols="neuron")
    act = ACTIVATION_FORMULAS[config.activation]
    made = ACTIVATIONS[config.activation](gate)  # (k, F)
    walk.add("mlp.act", made, f"a = {act}", "(k, F)", rows="slot", cols="neuron", recomputed=True)
    walk.add("mlp.post", seen["mlp.post"][0], "hᵉ = aᵉ ⊙ uᵉ", "(k, F)", rows="slot", cols="neuron")
    walk.add("mlp.down", seen["mlp.down"][0], "m = Σₑ wₑ · W_downᵉ · hᵉ", "(M)", at_positions=True)


def _mlp_input(config: DecoderConfig) -> str:
    if config.parallel_residual:
        return "x̂" if config.pre_norm else "x"
    return "ŷ" if config.pre_norm else "y"


def _add_mlp_out(walk: Walk, block: Block, seen: Captured) -> None:
    if block.mlp_out_layernorm is not None:
        formula = norm_formula(block.mlp_out_layernorm, "m").replace("x̂", "m", 1)
        walk.add("mlp.post_norm", seen["mlp.post_norm"][0], formula, "(M)", at_positions=True)
    if block.residual_scale != 1.0:
        walk.add("mlp.out", seen["mlp.out"][0], f"m ← {block.residual_scale:g} · m", "(M)", at_positions=True)


def _small(number: int) -> str:
    return str(number).translate(str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉"))
