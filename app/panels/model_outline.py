"""What the drawing of a model says in its boxes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.i18n import tr
from app.panels.feed_forward_words import activation_name
from app.panels.model_card_words import share
from app.widgets.block_drawing import Branch, Op, Outline

if TYPE_CHECKING:
    from model.protocol.card_requests import Features, ModelCardReply
    from model.protocol.values import ModelInfo


def outline_of(model: ModelInfo, reply: ModelCardReply) -> Outline:
    """The way of a token through this model; at the right of a box what of all parameters is in it, over all blocks."""
    features = reply.features
    counts = {part.name: part.parameters for part in reply.parts}

    def of_all(*names: str) -> str:
        found = sum(counts.get(name, 0) for name in names)
        return share(found, reply.parameters) if found else ""

    m, v = f"{model.d_model:,}", f"{model.d_vocab:,}"
    first = [Op(name=tr("Embedding"), detail=f"{v} × {m}", note=of_all("embedding"))]
    if features.positions == "learned":
        first.append(Op(name=tr("+ position"), detail=f"{model.n_ctx:,} × {m}", note=of_all("positions")))
    norm = Op(name="RMSNorm" if features.norm == "rms" else "LayerNorm")
    attention = Op(name=tr("Attention"), detail=attention_detail(model, features), note=of_all("attention"))
    parts = of_all("feed_forward", "experts", "router")
    mlp = Op(name=tr("Feed-forward"), detail=mlp_detail(model, features), note=parts)

    def branch(op: Op) -> Branch:
        return (*((norm,) if features.pre_norm else ()), op, *((norm,) if features.post_norm else ()))

    head = tr("the embedding, transposed") if features.tied_head else ""
    last = (
        norm,
        Op(name=tr("Output head"), detail=" · ".join(filter(None, (f"{m} → {v}", head))), note=of_all("head")),
        Op(name=tr("Softmax"), detail=tr("the next token's distribution")),
    )
    branches = branch(attention), branch(mlp)
    return Outline(
        first=tuple(first), last=last, blocks=model.n_layers, caption=tr("× {n} blocks", n=model.n_layers),
        groups=(branches,) if features.parallel_residual else ((branches[0],), (branches[1],)),
    )  # fmt: skip


def attention_detail(model: ModelInfo, features: Features) -> str:
    """Heads and their sizes, and what positions do there."""
    words = tr(
        "{kind}: {h} q, {k} k and v × {d}", kind=features.attention_kind, h=model.n_heads, k=model.n_kv_heads,
        d=model.d_head,
    )  # fmt: skip
    where = {"rope": "RoPE", "alibi": "ALiBi"}.get(features.positions, "")
    return f"{words} · {where}" if where else words


def mlp_detail(model: ModelInfo, features: Features) -> str:
    """Widths, activation, experts."""
    words = f"{model.d_model:,} → {model.d_mlp:,} → {model.d_model:,} · {activation_name(features.activation)}"
    if features.gated_mlp:
        words += ", " + tr("gated")
    if features.n_experts:
        words += " · " + tr("{k} of {e} experts", k=features.experts_per_token, e=features.n_experts)
    return words


def outline_lines(outline: Outline | None) -> list[list[str]]:
    """The drawing as a table, for a file."""
    return [[op.name, op.detail, op.note] for op in outline.ops()] if outline else []
