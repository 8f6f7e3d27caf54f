"""How the block walk names things: operations, axes, statistics."""

from __future__ import annotations

from collections.abc import Sequence

from app.i18n import tr
from app.panels.block_walk_texts import OpWords, attention_words, end_words, feed_forward_words
from app.widgets.matrix_header import Counted
from app.widgets.readout import Part
from app.widgets.ticks import figure, short
from model.protocol.walk_requests import WalkAxis, WalkOp, WalkPlace


def words_of(place: WalkPlace) -> dict[str, OpWords]:
    """The texts of every operation of a place, by id."""
    if place == "block":
        return attention_words() | feed_forward_words()
    return attention_words() | end_words()


def unknown(op: WalkOp) -> OpWords:
    """An operation of a newer engine: its id and formula."""
    return OpWords(title=op.id, what=formula_text(op), look="")


def axis_name(axis: WalkAxis) -> str:
    """What an index along an axis is called."""
    return {
        "one": "", "dim": tr("dimension"), "head": tr("head"), "kv_head": tr("KV head"), "key": tr("key"),
        "neuron": tr("neuron"), "expert": tr("expert"), "slot": tr("chosen expert"), "token": tr("token"),
        "position": tr("position"),
    }[axis]  # fmt: skip


def cell_names(axis: WalkAxis, pieces: Sequence[str], count: int) -> tuple[Sequence[str], bool]:
    """Names of rows or columns in a table, and whether their numbers stand before them: those of tokens do."""
    if axis in ("key", "position"):
        return pieces, True
    if axis == "one":
        return [""] * count, False
    return Counted(axis_brief(axis), count), False


def axis_brief(axis: WalkAxis) -> str:
    """What stands before an index in a table."""
    return tr("dim") if axis == "dim" else axis_name(axis)


def shape_text(op: WalkOp) -> str:
    """A shape in numbers: "9 × 64"."""
    return " × ".join(f"{size:,}" for size in op.shape)


def shape_words(op: WalkOp) -> str:
    """A shape in words, letters and numbers: "heads H × dimensions D = 9 × 64"."""
    names = {
        "M": tr("width"), "H": tr("heads"), "K": tr("KV heads"), "D": tr("dimensions"), "S": tr("keys"),
        "F": tr("neurons"), "V": tr("vocabulary"), "E": tr("experts"), "k": tr("chosen experts"),
    }  # fmt: skip
    letters = op.letters.strip("()").split(", ")
    return " × ".join(f"{names.get(letter, '')} {letter}".strip() for letter in letters) + f" = {shape_text(op)}"


def mark_text(op: WalkOp) -> str:
    """What the row that is marked in a card's picture is."""
    if op.first_row < 0:
        return ""
    return tr("KV head {n}", n=op.first_row) if op.rows == "kv_head" else tr("head {n}", n=op.first_row)


def formula_text(op: WalkOp) -> str:
    """The formula, its words in the language of the window."""
    return op.formula.replace(" unless ", f" {tr('unless')} ")


def brief_formula(op: WalkOp) -> str:
    """The formula where there is little room: a norm without its ε, a function without what it is; empty where there is
    no shorter one."""
    left, _, right = formula_text(op).partition(" = ")
    if "√(mean(" in right:
        x, gain = right.partition(" / ")[0], right.rpartition(" ⊙ ")[2]
        return f"{left} = {x} / rms({x}) ⊙ {gain}"
    if "√(var(" in right:
        return f"{left} = {right.partition(' / ')[0]} / σ ⊙ γ + β"
    if op.id == "attn.pattern":
        return "w = softmax(s)"
    if op.id == "attn.dots":
        return formula_text(op).partition(",")[0]
    if op.id == "attn.mask":
        return right
    if op.id in ("mlp.act", "mlp.post"):
        return f"{left} = {right.replace(' ≈ ', ' = ').partition(' = ')[0]}"
    return ""


def foot_text(op: WalkOp) -> str:
    """The last line of a card: extremes and length."""
    return f"{short(op.low)} … {short(op.high)}   ‖x‖ {short(op.norm)}"


def statistics(op: WalkOp, *, digits: int = 4, gap: str = "   ", spread: bool = True) -> list[Part]:
    """All statistics in a line; with fewer `digits` and less of a `gap` where it is short, and without mean and σ where
    it is shorter (`spread`)."""
    parts: list[Part] = []
    for name, value in ((tr("min"), op.low), (tr("max"), op.high), (tr("mean"), op.mean), ("σ", op.std),
                        ("‖x‖", op.norm)):  # fmt: skip
        if spread or name in {tr("min"), tr("max"), "‖x‖"}:
            parts += [(f"{name} ", "secondary"), (figure(value, digits), "strong"), (gap, "text")]
    if op.note:
        parts.append((note_words(op), "accent"))
    return parts


def note_words(op: WalkOp) -> str:
    """What an operation notes, in words where it is bare numbers."""
    visible, _, total = op.note.partition(" / ")
    return tr("{n} of {total} keys visible", n=visible, total=total) if op.id == "attn.mask" and total else op.note


def list_title(op: WalkOp) -> str:
    """What the list beside a picture holds."""
    return {
        "embed.row": tr("nearest rows of the table, cosine"),
        "attn.pattern": tr("keys read most"),
        "moe.weights": tr("chosen experts, weight"),
        "head.logits": tr("largest logits"),
        "head.softmax": tr("likeliest next tokens"),
    }.get(op.id, "")


def list_value(op: WalkOp) -> str:
    """What the numbers of that list are."""
    return {
        "embed.row": tr("cosine"), "attn.pattern": tr("weight"), "moe.weights": tr("weight"),
        "head.logits": tr("logit"), "head.softmax": tr("probability"),
    }.get(op.id, "")  # fmt: skip


def parts_title(op: WalkOp) -> str:
    """What the terms of an operation are."""
    return {
        "attn.dots": tr("q·k of every key and dimension: a row sums to its product"),
        "attn.scaled": tr("q·k/√d of every key and dimension: a row sums to its score"),
        "attn.z": tr("weight × v of every key: a column sums to the result"),
        "attn.proj": tr("what each head writes: a column sums to the result"),
    }.get(op.id, "")
