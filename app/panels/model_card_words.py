"""The configuration in words, and the model's costs as rows of tables."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from app.amounts import tokens
from app.i18n import tr
from app.panels.feed_forward_words import activation_name
from app.state.check_words import check_title
from app.widgets.fact_table import Cell, Column, Row
from app.widgets.units import amount

if TYPE_CHECKING:
    from collections.abc import Sequence

    from app.widgets.fact_sheet import Fact
    from model.protocol.card_requests import Features, ModelCardReply, RopeFacts
    from model.protocol.engine_requests import CatalogueEntry, CheckRow
    from model.protocol.values import ModelInfo

DASH = "–"


def words_of(model: ModelInfo, features: Features) -> list[Fact]:
    """What the model is, part by part, in the order of a token's way through it."""
    size = tr(
        "{n} blocks on a stream of {m} numbers a token; vocabulary {v}, context {c} tokens",
        n=model.n_layers, m=f"{model.d_model:,}", v=f"{model.d_vocab:,}", c=f"{model.n_ctx:,}",
    )  # fmt: skip
    return [
        (tr("Size"), size),
        (tr("Positions"), positions_words(model, features)),
        (tr("Norm"), norm_words(features)),
        (tr("Attention"), attention_words(model, features)),
        (tr("Feed-forward"), mlp_words(model, features)),
        (tr("Residual"), residual_words(features)),
        (tr("Head"), head_words(model, features)),
    ]


def sentence(*parts: str) -> str:
    """Parts of a sentence, joined and ended."""
    return tr("; ").join(parts) + tr(".")


def attention_words(model: ModelInfo, features: Features) -> str:
    """MHA, GQA or MQA and why; scale, caps, windows, biases, norms of q and k."""
    h, k = model.n_heads, model.n_kv_heads
    if features.attention_kind == "MHA":
        kind = tr("MHA: each of the {h} query heads has keys and values of its own", h=h)
    elif features.attention_kind == "MQA":
        kind = tr("MQA: all {h} query heads share one head of keys and values; the cache is 1/{h} of MHA's", h=h)
    else:
        kind = tr(
            "GQA: {h} query heads share {k} heads of keys and values, {g} to each; the cache is 1/{g} of MHA's",
            h=h, k=k, g=h // k,
        )  # fmt: skip
    root = abs(features.scale - model.d_head**-0.5) < 1e-9
    scale = f"1/√{model.d_head} = {features.scale:.4g}" if root else f"{features.scale:.4g}"
    parts = [kind, tr("{d} dimensions a head, scores × {scale}", d=model.d_head, scale=scale)]
    if features.softcap is not None:
        parts.append(tr("scores capped: {c} · tanh(score / {c})", c=f"{features.softcap:g}"))
    if features.windows:
        parts.append(tr(
            "{n} of {all} layers see only the last {w} tokens",
            n=len(features.sliding_layers), all=model.n_layers, w=", ".join(f"{w:,}" for w in features.windows),
        ))  # fmt: skip
    if features.qkv_bias:
        parts.append(tr("biases on q, k, v"))
    if features.qk_norm != "none":
        parts.append(tr("q and k normed over each head") if features.qk_norm == "head"
                     else tr("q and k normed over all heads at once"))  # fmt: skip
    return sentence(*parts)


def positions_words(model: ModelInfo, features: Features) -> str:
    """How the order of tokens gets in."""
    if features.positions == "learned":
        words = tr("Learned: a vector for each of {c} positions is added to the embedding", c=f"{model.n_ctx:,}")
    elif features.positions == "alibi":
        words = tr("ALiBi: each head takes its slope × distance off the score, nothing is added or turned")
    elif features.positions == "none" or features.rope is None:
        words = tr("None: only the causal mask tells earlier from later")
    else:
        words = rope_words(model, features.rope)
        if features.rope_sliding is not None:
            words += tr("; ") + tr("layers with a window: base {theta}", theta=f"{features.rope_sliding.theta:,g}")
    return sentence(words)


def rope_words(model: ModelInfo, rope: RopeFacts) -> str:
    """Base, rotated dimensions, layout, scaling."""
    share = tr("all {d} dimensions of a head", d=rope.dim) if rope.dim == model.d_head else tr(
        "{r} of {d} dimensions of a head", r=rope.dim, d=model.d_head
    )  # fmt: skip
    words = tr(
        "RoPE: {share} turned in {n} pairs, base θ = {theta}, pair i is dimensions i and i + {n}",
        share=share, n=rope.dim // 2, theta=f"{rope.theta:,.0f}",
    )  # fmt: skip
    if rope.kind == "default":
        return words + tr("; ") + tr("not scaled for longer contexts")
    return words + tr("; ") + tr(
        "scaled for longer contexts ({kind}, factor {factor})", kind=rope.kind, factor=f"{rope.factor:g}"
    )  # fmt: skip


def norm_words(features: Features) -> str:
    """Which norm, where."""
    if features.norm == "rms":
        kind = tr("RMSNorm: x / √(mean x² + ε) · γ, ε = {eps}", eps=f"{features.norm_eps:g}")
    else:
        kind = tr("LayerNorm: (x − mean) / √(variance + ε) · γ + β, ε = {eps}", eps=f"{features.norm_eps:g}")
    if features.pre_norm and features.post_norm:
        where = tr("before and after attention and feed-forward")
    elif features.pre_norm:
        where = tr("before attention and feed-forward (pre-norm)")
    else:
        where = tr("after attention and feed-forward (post-norm)")
    return sentence(kind, where)


def mlp_words(model: ModelInfo, features: Features) -> str:
    """Gate or not, width, activation; experts where there are any."""
    act = activation_name(features.activation)
    m, f = f"{model.d_model:,}", f"{model.d_mlp:,}"
    ratio = f"{model.d_mlp / max(model.d_model, 1):.3g}"
    if features.gated_mlp:
        words = tr(
            "Gated: down({act}(gate·x) ⊙ up·x), {m} → {f} → {m}, {ratio} times as wide inside, three matrices",
            act=act, m=m, f=f, ratio=ratio,
        )  # fmt: skip
    else:
        words = tr(
            "Plain: down({act}(up·x)), {m} → {f} → {m}, {ratio} times as wide inside, two matrices",
            act=act, m=m, f=f, ratio=ratio,
        )  # fmt: skip
    if features.n_experts:
        words += tr("; ") + tr(
            "{e} experts in {n} of {all} layers, a router sends each token to {k} of them",
            e=features.n_experts, n=len(features.expert_layers), all=model.n_layers, k=features.experts_per_token,
        )  # fmt: skip
    return sentence(words)


def residual_words(features: Features) -> str:
    """How the block adds up."""
    if features.parallel_residual:
        return tr("Parallel: attention and feed-forward read the same stream and are added together.")
    return tr("One after the other: x + attention(x), then x + feed-forward(x).")


def head_words(model: ModelInfo, features: Features) -> str:
    """Tied or not, capped or not."""
    words = (
        tr("Tied: the embedding table, transposed, makes the logits too")
        if features.tied_head
        else tr("A matrix of its own, {m} → {v}, makes the logits", m=f"{model.d_model:,}", v=f"{model.d_vocab:,}")
    )
    if features.logit_softcap is not None:
        words += tr("; ") + tr("logits capped: {c} · tanh(logit / {c})", c=f"{features.logit_softcap:g}")
    return sentence(words)


def part_columns() -> tuple[Column, ...]:
    """Name, share as a bar, count, share."""
    return (
        Column(title=tr("part"), left=True), Column(bar=True, grows=True), Column(title=tr("parameters")),
        Column(title=tr("share")),
    )  # fmt: skip


def part_name(name: str) -> str:
    """A part as the panel names it."""
    return {
        "embedding": tr("embedding"), "positions": tr("position table"), "attention": tr("attention"),
        "feed_forward": tr("feed-forward"), "experts": tr("experts"), "router": tr("routers"), "norms": tr("norms"),
        "head": tr("head"),
    }.get(name, name)  # fmt: skip


def part_rows(reply: ModelCardReply) -> list[Row]:
    """Parts, the whole, and what one token's pass reads where that is less."""
    largest = max((part.parameters for part in reply.parts), default=1)
    rows: list[Row] = [
        (
            Cell(text=part_name(part.name)), Cell(bar=part.parameters / largest, voice="accent"),
            Cell(text=f"{part.parameters:,}"), Cell(text=share(part.parameters, reply.parameters), voice="secondary"),
        )
        for part in reply.parts
    ]  # fmt: skip
    rows.append((Cell(text=tr("all"), strong=True), Cell(), Cell(text=f"{reply.parameters:,}", strong=True),
                 Cell(text="100 %", voice="secondary")))  # fmt: skip
    if reply.active_parameters != reply.parameters:
        tip = tr("what one token's pass reads: of the experts only those it is sent to")
        rows.append((
            Cell(text=tr("active"), tip=tip), Cell(bar=reply.active_parameters / largest, voice="secondary", tip=tip),
            Cell(text=f"{reply.active_parameters:,}", tip=tip),
            Cell(text=share(reply.active_parameters, reply.parameters), voice="secondary", tip=tip),
        ))  # fmt: skip
    return rows


def share(part: int, whole: int) -> str:
    """A share with as many digits as mean something."""
    percent = 100 * part / max(whole, 1)
    return f"{percent:.1f} %" if percent >= 0.1 or not part else f"{percent:.3f} %"


COSTS = (Column(left=True, grows=True), Column())


def cost_rows(reply: ModelCardReply, model: ModelInfo) -> list[Row]:
    """Bytes of the weights in each dtype, of a token in the cache, operations of a token."""
    per_token = reply.prefill_flops / max(reply.prefill_tokens, 1)
    weights = [
        (tr("weights in {dtype}", dtype=dtype), amount(size, "B"), dtype == model.dtype, "")
        for dtype, size in reply.bytes_by_dtype.items()
    ]
    twice = tr("2 · parameters that are multiplied with, and more with every token before it: q·k and the sum over V")
    rows = [
        *weights,
        (tr("KV cache a token"), f"{reply.kv_bytes_per_token:,} B", False,
         tr("2·L·K·D·bytes; as MHA {mha} B, as MQA {mqa} B", mha=f"{reply.kv_bytes_per_token_mha:,}",
            mqa=f"{reply.kv_bytes_per_token_mqa:,}")),
        (tr("prefill of {tokens}", tokens=tokens(reply.prefill_tokens)), amount(reply.prefill_flops, "FLOP"), False,
         twice),
        (tr("prefill, per token"), amount(per_token, "FLOP"), False, twice),
        (tr("decode, next token"), amount(reply.decode_flops, "FLOP"), False, twice),
        (tr("2 · active parameters"), amount(2 * reply.active_parameters, "FLOP"), False,
         tr("the rule of thumb for one token, beside what is counted")),
    ]  # fmt: skip
    return [
        (Cell(text=name, voice="text" if own else "secondary", strong=own, tip=tip),
         Cell(text=value, strong=own, tip=tip))
        for name, value, own, tip in rows
    ]  # fmt: skip


def source_path(model: ModelInfo, opened: str, catalogue: Sequence[CatalogueEntry]) -> str:
    """The folder or file the weights were read from, as far as it is known here. `opened`: what was asked for; empty
    for the catalogue's first."""
    if model.recorded:
        return model.source
    entry = next((e for e in catalogue if opened in ("", e.name, e.title)), None)
    if entry is not None:
        return entry.path or model.source
    try:
        path = Path(opened).expanduser()
        return str(path.absolute()) if path.exists() else model.source
    except (OSError, RuntimeError, ValueError):
        return model.source


def source_facts(model: ModelInfo, path: str) -> list[Fact]:
    """Where the weights come from, `path` on this machine, and where they are."""
    facts = [
        (tr("Name"), model.name), (tr("Family"), model.family), (tr("File"), path),
        (tr("SHA-256"), model.sha256 or tr("not computed")), (tr("Dtype"), model.dtype), (tr("Device"), model.device),
        (tr("In memory"), tr("{size} of weights", size=amount(model.weight_bytes, "B"))),
        (tr("Ends a text"), ", ".join(str(i) for i in model.eos_ids) or DASH),
    ]  # fmt: skip
    return [*facts, *((tr("Note"), warning) for warning in model.warnings)]


def check_columns() -> tuple[Column, ...]:
    """What was compared, the error found, what it may be."""
    return (
        Column(left=True), Column(title=tr("compared"), left=True, grows=True), Column(title=tr("error")),
        Column(title=tr("bound")),
    )  # fmt: skip


def check_rows(rows: tuple[CheckRow, ...]) -> list[Row]:
    """A mark, words and numbers; what was looked at is in the tip."""
    return [
        (
            Cell(text="✓" if row.ok else "✗", voice="green" if row.ok else "red", strong=True, tip=row.detail),
            Cell(text=check_title(row), tip=f"{check_title(row)}\n{row.detail}"),
            Cell(text=f"{row.error:.1e}" if row.error else "0", voice="text" if row.ok else "red", tip=row.detail),
            Cell(text=f"{row.bound:.0e}" if row.bound else "0", voice="secondary", tip=row.detail),
        )
        for row in rows
    ]  # fmt: skip
