"""What the feed-forward panel says: facts, formulas, columns of its tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from app.i18n import tr
from app.panels.attention_copy import number
from app.widgets.data_table import Column
from app.widgets.fact_list import Fact
from app.widgets.sign_colours import SIGNS
from app.widgets.ticks import figure

if TYPE_CHECKING:
    from model.protocol.feed_forward_requests import NeuronsReply, RouterReply
    from model.protocol.framing import Arrays
    from model.protocol.values import ModelInfo

NAMES = {"silu": "SiLU", "gelu": "GELU", "gelu_tanh": "GELU (tanh)", "gelu_pytorch_tanh": "GELU (tanh)", "relu": "ReLU",
         "relu_squared": "ReLU²"}  # fmt: skip


def activation_name(name: str) -> str:
    """An activation function as papers write it."""
    return NAMES.get(name, name)


@dataclass(frozen=True, kw_only=True)
class Neuron:
    """One neuron for one token: `up` None where there is no gate; `expert` None in a layer without them."""

    id: int
    pre: float
    act: float
    up: float | None
    post: float
    expert: int | None = None

    @property
    def label(self) -> str:
        return f"{self.id}" if self.expert is None else f"{self.expert}:{self.id}"


def neurons_of(arrays: Arrays) -> list[Neuron]:
    """The strongest neurons, in order."""
    found = []
    for at, index in enumerate(np.asarray(arrays["ids"]).tolist()):
        pre, post = float(arrays["pre"][at]), float(arrays["post"][at])
        up = float(arrays["up"][at]) if "up" in arrays else None
        act = float(arrays["act"][at])
        expert = int(arrays["experts"][at]) if "experts" in arrays else None
        found.append(Neuron(id=index, pre=pre, act=act, up=up, post=post, expert=expert))
    return found


def neuron_columns(reply: NeuronsReply, neurons: list[Neuron]) -> list[Column]:
    """Rank by rank: neuron, gate, up, product; without a gate what comes before and after the function."""
    most = max((abs(neuron.post) for neuron in neurons), default=0.0) or 1.0
    columns = []
    if reply.has_experts:
        columns.append(Column(name=tr("expert"), texts=[str(n.expert) for n in neurons], voice="secondary"))
    columns.append(Column(name=tr("neuron"), texts=[str(n.id) for n in neurons]))
    columns.append(Column(name=tr("gate") if reply.gated else tr("before"), texts=[figure(n.pre, 3) for n in neurons]))
    if reply.gated:
        columns.append(Column(name=tr("up"), texts=[figure(n.up or 0.0, 3) for n in neurons]))
    columns.append(
        Column(name=tr("product") if reply.gated else tr("after"), texts=[figure(n.post, 3) for n in neurons])
    )
    bars = np.array([n.post / most for n in neurons], dtype=np.float32)
    columns.append(Column(name="", bars=bars, colours=SIGNS))
    return columns


def neuron_facts(reply: NeuronsReply, chosen: Neuron | None, model: ModelInfo) -> list[Fact]:
    """The chosen neuron's sum, how many are quiet, how wide the layer is."""
    name = activation_name(reply.activation)
    facts = []
    if chosen is not None:
        bent = f"{name}({figure(chosen.pre, 3)}) = {figure(chosen.act, 3)}"
        facts += [Fact(name=tr("neuron"), value=chosen.label, voice="strong"), Fact(name=tr("function"), value=bent)]
        if chosen.up is not None:
            product = f"{figure(chosen.act, 3)} × {figure(chosen.up, 3)} = {figure(chosen.post, 3)}"
            facts.append(Fact(name=tr("product"), value=product))
    tip = tr("Neurons whose output is under {share} of the token's largest", share=f"{100 * reply.threshold:.0f} %")
    tokens = reply.rows[1] - reply.rows[0]
    among = tr("in {n} tokens", n=f"{tokens:,}") if tokens > 1 else tr("in 1 token")
    width = reply.neurons / model.d_model
    facts += [
        Fact(name=tr("near zero"), value=tr("{share} of {n}", share=percent(reply.near_zero),
                                            n=f"{reply.neurons:,}"), tip=tip),
        Fact(name=among, value=percent(reply.near_zero_rows), tip=tip),
        Fact(name=tr("width"), value=f"{reply.neurons:,} = {width:.3g} × {model.d_model:,}", tip=tr(
            "The stream is widened, each number bent on its own, and narrowed again: the more neurons, the more "
            "patterns a token can be tested for at once.")),
        Fact(name=tr("kind"), value=f"{name} · {tr('gated')}" if reply.gated else name, tip=formula(reply)),
    ]  # fmt: skip
    return facts


def percent(share: float) -> str:
    """A share as the window writes it: 20.1 %."""
    return f"{100 * share:.1f} %"


def formula(reply: NeuronsReply) -> str:
    """The layer's formula."""
    name = activation_name(reply.activation)
    return f"W_down({name}(W_gate·x) ⊙ W_up·x)" if reply.gated else f"W_out·{name}(W_in·x + b) + b"


def router_facts(reply: RouterReply, probs: NDArray[np.float32], load: NDArray[np.int64]) -> list[Fact]:
    """How many experts, how evenly they are used, what one token's pass costs."""
    entropy = float(-(probs * np.log(np.maximum(probs, 1e-30))).sum())
    tokens = reply.rows[1] - reply.rows[0]
    active = reply.active_parameters / reply.parameters
    even = tokens * reply.experts_per_token / reply.n_experts
    return [
        Fact(name=tr("experts"), value=tr("{k} of {n} for each token", k=reply.experts_per_token, n=reply.n_experts),
             voice="strong"),
        Fact(name=tr("router entropy"), value=f"{entropy:.3f} {tr('nats')}", tip=tr(
            "Of this token's probabilities: 0 is sure, ln {n} = {most} is undecided", n=reply.n_experts,
            most=f"{np.log(reply.n_experts):.2f}")),
        Fact(name=tr("busiest"), value=tr("expert {e}, {n} of {all} tokens", e=int(load.argmax()),
                                          n=f"{int(load.max()):,}", all=f"{tokens:,}"),
             tip=tr("Even use would be {n} tokens each", n=figure(even, 3))),
        Fact(name=tr("idle"), value=f"{int((load == 0).sum()):,}"),
        Fact(name=tr("parameters"), value=f"{reply.parameters:,}"),
        Fact(name=tr("active"), value=f"{reply.active_parameters:,} ({percent(active)})",
             tip=tr("What one token's pass multiplies with: all but the experts it is not sent to")),
    ]  # fmt: skip


def expert_columns(
    probs: NDArray[np.float32], chosen: list[int], weights: list[float], load: NDArray[np.int64]
) -> list[Column]:
    """Expert by expert, likeliest first: probability, weight where chosen, tokens sent."""
    order = np.argsort(-probs, kind="stable").tolist()
    by_expert = dict(zip(chosen, weights, strict=True))
    most = float(probs.max(initial=0.0)) or 1.0
    return [
        Column(name=tr("expert"), texts=[str(e) for e in order]),
        Column(name=tr("p"), texts=[figure(float(probs[e]), 3) for e in order]),
        Column(name="", bars=np.array([probs[e] / most for e in order], dtype=np.float32)),
        Column(name=tr("weight"), texts=[figure(by_expert[e], 3) if e in by_expert else "–" for e in order]),
        Column(name=tr("tokens"), texts=[f"{int(load[e]):,}" for e in order], voice="secondary"),
    ]


def neuron_captions(reply: NeuronsReply, n: int, token: str) -> tuple[tuple[str, ...], str]:
    """What rows, columns and colours of the map are, from all of it to the least, and in sentences."""
    value, name = tr("product") if reply.gated else tr("after"), activation_name(reply.activation)
    whole = f"{name}({tr('gate')}) × {tr('up')}" if reply.gated else f"{name}({tr('before')})"
    column = tr("expert:neuron") if reply.has_experts else tr("neuron")
    captions = (
        tr("tokens × the {n} strongest neurons of {token} · colour: {value} = {whole}", n=n, token=token, value=value,
           whole=whole),
        tr("tokens × the {n} strongest neurons of {token} · colour: {value}", n=n, token=token, value=value),
        tr("tokens × strongest neurons · colour: {value}", value=value),
        tr("colour: {value}", value=value),
    )  # fmt: skip
    return captions, "\n".join((
        tr("Rows: tokens. Columns ({column}): those that add most for {token}, strongest first.", column=column,
           token=token),
        tr("Colour: {value} = {whole}, what the neuron's column of weights is multiplied by; it has no unit.",
           value=value, whole=whole),
    ))  # fmt: skip


def expert_captions(n: int) -> tuple[str, ...]:
    """As `neuron_captions`."""
    return (
        tr("tokens × {n} experts · colour: router probability", n=n),
        tr("tokens × experts · colour: probability"),
        tr("colour: {value}", value=tr("probability")),
    )


def expert_tip(reply: RouterReply) -> str:
    """What rows, columns and colours of the map are."""
    return "\n".join((
        tr("Rows: tokens. Columns: the layer's {n} experts, by number.", n=reply.n_experts),
        tr("Colour: the router's probability, 0 to 1. Marked: the {k} experts each token is sent to.",
           k=reply.experts_per_token),
    ))  # fmt: skip


# whole numbers, for files


def neuron_lines(neurons: Sequence[Neuron]) -> list[list[str]]:
    """The strongest neurons of the chosen token."""
    lines = [["rank", "expert", "neuron", "pre", "activation", "up", "post"]]
    for rank, n in enumerate(neurons):
        expert, up = "" if n.expert is None else str(n.expert), "" if n.up is None else number(n.up)
        lines.append([str(rank), expert, str(n.id), number(n.pre), number(n.act), up, number(n.post)])
    return lines


def grid_lines(values: NDArray[np.float32], start: int, pieces: Sequence[str], names: Sequence[str]) -> list[list[str]]:
    """Tokens by neurons or experts; empty where a token was not sent to an expert."""
    lines = [["position", "token", *names]]
    for row, line in enumerate(values):
        lines.append([str(start + row), pieces[start + row], *(number(float(value)) for value in line)])
    return lines


def norm_lines(arrays: Arrays) -> list[list[str]]:
    """Stream, attention and feed-forward by layer; the stream once more after the last."""
    lines = [["layer", "stream_before", "attention", "feed_forward"]]
    stream = arrays.get("resid", ())
    for layer, norm in enumerate(stream):
        added = [number(float(arrays[name][layer])) if layer < len(arrays[name]) else ""
                 for name in ("attention", "feed_forward")]  # fmt: skip
        lines.append([str(layer), number(float(norm)), *added])
    return lines
