"""The words of attention: stages, scales, heads and layers as the panel names them."""

from __future__ import annotations

from app.i18n import tr
from model.protocol.attention_requests import Head, HeadView, LayerChoice, Scale, Stage

SIGNED_STAGES: frozenset[Stage] = frozenset({"raw", "scores", "masked"})
UNMASKED: frozenset[Stage] = frozenset({"raw", "scores"})
METRICS = ("entropy", "first", "previous", "self", "induction", "distance")


def stage_items() -> list[tuple[str, str]]:
    """Stages in the order of the computation, as on the segmented control."""
    return [
        ("raw", "q·k"), ("scores", tr("scores")), ("masked", tr("masked")), ("weights", tr("weights")),
        ("weighted", "× ‖v‖"),
    ]  # fmt: skip


def stage_tips() -> dict[str, str]:
    """What each stage is, in a line."""
    return {
        "raw": tr("q·kᵀ, before anything else"),
        "scores": tr("q·kᵀ/√d, with soft cap and bias where the model has them"),
        "masked": tr("scores of the keys the mask lets a query see"),
        "weights": tr("softmax of the masked scores: each row sums to 1"),
        "weighted": tr("weights times the length of the value vector: how much each key can move the result"),
    }


def value_name(stage: Stage) -> str:
    """What a cell's value is called in the readout."""
    return {
        "raw": "q·k", "scores": tr("score"), "masked": tr("score"), "weights": tr("weight"),
        "weighted": tr("weight × ‖v‖"),
    }[stage]  # fmt: skip


def scale_items() -> list[tuple[Scale, str]]:
    """Colour scales as the list names them."""
    return [("linear", tr("linear")), ("sqrt", tr("√ scale")), ("log", tr("log scale"))]


def metric_items() -> list[tuple[str, str]]:
    """Measures of a head, with none first."""
    return [
        ("", tr("no marks")), ("entropy", tr("entropy")), ("first", tr("first-token share")),
        ("previous", tr("previous-token share")), ("self", tr("self share")), ("induction", tr("induction score")),
        ("distance", tr("mean distance")),
    ]  # fmt: skip


def metric_unit(key: str) -> str:
    """What a measure is counted in; shares in nothing."""
    return {"entropy": tr("nats"), "distance": tr("positions")}.get(key, "")


def metric_short() -> dict[str, str]:
    """The longest names of measures, for where they have no room."""
    return {"first": tr("first token"), "previous": tr("previous token"), "distance": tr("distance")}


def layer_text(layer: LayerChoice) -> str:
    """A layer, or all of them, as the panel names it."""
    return tr("All layers") if layer == "all" else tr("Layer {layer}", layer=layer)


def head_text(head: Head) -> str:
    """A head, or what is taken over heads, as the panel names it."""
    if isinstance(head, str):
        return {"mean": tr("Mean of heads"), "max": tr("Max of heads")}[head]
    return tr("Head {head}", head=head)


def view_text(view: HeadView, *, brief: bool = False) -> str:
    """A view in a line: "Layer 13 · Head 8 · weights"; brief: "L13 H8 · weights"."""
    return f"{place_text(view, brief=brief)} · {dict(stage_items())[view.stage]}"


def place_text(view: HeadView, *, brief: bool = False) -> str:
    """Where a view looks: "Layer 13 · Head 8"; brief: "L13 H8"."""
    layer, head = layer_text(view.layer), head_text(view.head)
    if not brief:
        return f"{layer} · {head}"
    named = head if isinstance(view.head, str) else f"H{view.head}"
    return f"{layer} · {named}" if isinstance(view.layer, str) else f"L{view.layer} {named}"
