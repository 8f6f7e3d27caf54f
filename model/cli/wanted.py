"""The kinds that `decoderscope export` is asked for, and all that the arguments and a model's configuration tell of
them before its weights are read."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from model.cli.command import UsageError
from model.errors import shown
from model.export.spec import MAX_INCHES, MIN_INCHES, FigureSpec
from model.protocol import export_kinds
from model.protocol.export_kinds import EXPORT_KINDS

if TYPE_CHECKING:
    from model.config import DecoderConfig

KINDS = (
    "KIND, one or several: attention (one file a head), sheet (heads on one colour scale), grid (each head on its own "
    "scale), sampler (the next token's waterfall), kv-growth, lens (top token of every layer), rope (rotary planes of "
    "--query and --key), text (tokens tinted --by something), activation NAME … (layers.3.attn.pattern, "
    "layers.*.mlp.post, kv, logits: in one file), logits, kv, run (a .dscope file). Each makes files of its own, in "
    "those of the formats that it has: --what attention kv --format png,npz"
)
NUMBERS = frozenset({"logits", "kv"})
"""Kinds that are names of activations too."""
FIELDS = ("what", "layer", "head", "stage")
"""Of --name."""
EMBED = "embed"
"""In the place of a layer: what the lens sees before the first one."""
_NONE = "\0"
"""In the place of a field that a kind has not; it goes, with the dashes before it."""


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """One kind: its formats, its figures' size in inches, the lists of layers and heads that hold for it; `names` of
    activations. `several`: one of several kinds. `one_head`: of one layer and head, or of heads together."""

    kind: str
    names: tuple[str, ...]
    formats: tuple[str, ...]
    size: tuple[float, float]
    layer: str
    head: str
    several: bool = False
    one_head: bool = False

    @property
    def combined(self) -> bool:
        """Whether heads are taken together."""
        return self.kind != "rope" and self.head in {"mean", "max"}

    @property
    def single_places(self) -> tuple[tuple[str, str], ...]:
        """Options, and what they say, that have to name one layer or head."""
        if not self.one_head or (self.combined and self.layer == "all"):
            return ()
        return (("--layer", self.layer), *(() if self.combined else (("--head", self.head),)))


def wanted_of(options: argparse.Namespace) -> tuple[Wanted, ...]:
    """What the arguments ask for, in their order. Raises UsageError, BadValueError and FigureTooLargeError for what no
    model could make."""
    kinds = _kinds(options.what or ["attention"])
    size = _size(options.size)
    asked = _listed(options.format)
    known = dict.fromkeys(name for kind in kinds for name in EXPORT_KINDS[kind].formats)
    for name in asked:
        if name not in known:
            words = f"{shown(name)!r} is no format of {' or '.join(kinds)}"
            raise UsageError(f"--format: {words}; choose from {', '.join(known)}")
    found = tuple(_wanted(kind, names, asked, size, options, several=len(kinds) > 1) for kind, names in kinds.items())
    for one in found:
        if EXPORT_KINDS[one.kind].drawn:
            FigureSpec(width=one.size[0], height=one.size[1], dpi=options.dpi)
    _check_name(options.name)
    return found


def _wanted(
    kind: str,
    names: Sequence[str],
    asked: Sequence[str],
    size: tuple[float, float] | None,
    options: argparse.Namespace,
    *,
    several: bool,
) -> Wanted:
    known = EXPORT_KINDS[kind].formats
    formats = tuple(name for name in asked if name in known) or (() if asked else known[:1])
    if not formats:
        raise UsageError(f"--format: none of these is a format of {kind}; add one of {', '.join(known)}")
    one = Wanted(
        kind=kind,
        names=(kind,) if kind in NUMBERS else tuple(names),
        formats=formats,
        size=size or EXPORT_KINDS[kind].size,
        layer=options.layer or ("0" if kind == "rope" else "all"),
        head=options.head or {"rope": "0", "sheet": "all", "grid": "all"}.get(kind, "mean"),
        several=several,
        one_head=kind == "rope" or (kind == "text" and options.by in {"reads", "read-by"}),
    )
    for option, text in one.single_places:
        if not text.strip().isdecimal():
            what = kind if kind == "rope" else f"--by {options.by}"
            raise UsageError(f"{option}: {shown(text)!r} is not one index; {what} is of one layer and one head")
    return one


def _kinds(words: Sequence[str]) -> dict[str, list[str]]:
    """Kinds in their order, each once, with the names that follow `activation`."""
    kinds: dict[str, list[str]] = {}
    kind = ""
    for word in (part for argument in words for part in _listed(argument)):
        if kind == "activation" and (word not in EXPORT_KINDS or word in NUMBERS):
            kinds[kind].append(word)
        elif word in EXPORT_KINDS:
            kind = word
            kinds.setdefault(kind, [])
        else:
            hint = "; names of activations follow the word activation" if re.search(r"[.*]", word) else ""
            raise UsageError(f"--what: {shown(word)!r} is not one of {', '.join(EXPORT_KINDS)}{hint}")
    if not kinds:
        raise UsageError(f"--what: name at least one of {', '.join(EXPORT_KINDS)}")
    if not kinds.get("activation", ["."]):
        raise UsageError("--what: activation takes names of activations, such as layers.3.attn.pattern")
    return kinds


def _listed(text: str) -> list[str]:
    return list(dict.fromkeys(word.strip() for word in text.split(",") if word.strip()))


def _size(text: str) -> tuple[float, float] | None:
    if not text:
        return None
    match = re.fullmatch(r"(\d+(?:\.\d+)?)[x×](\d+(?:\.\d+)?)", text.strip())
    if match is None:
        raise UsageError(f"--size: {shown(text)!r} is not of the form 7x6 (inches)")
    width, height = float(match[1]), float(match[2])
    if not all(MIN_INCHES <= side <= MAX_INCHES for side in (width, height)):
        raise UsageError(
            f"--size: {shown(text)} is in inches, and each side takes {MIN_INCHES:g} to {MAX_INCHES:g}; for pixels, "
            "divide them by --dpi"
        )
    return width, height


def _check_name(pattern: str) -> None:
    """Raises UsageError for a field that would stay in the file's name as it is."""
    for field in re.findall(r"\{([^{}]*)\}", pattern):
        if field not in FIELDS:
            fields = ", ".join(f"{{{name}}}" for name in FIELDS)
            raise UsageError(f"--name: there is no field {shown(f'{{{field}}}')}; the fields are {fields}")


def check_places(wanted: Sequence[Wanted], config: DecoderConfig) -> None:
    """That every layer, head and activation is one of a model's, from its configuration alone. Raises UsageError,
    UnknownNameError."""
    for one in wanted:
        layers, heads = config.n_layers, config.n_heads
        for option, text in one.single_places:
            single(option, text, layers if option == "--layer" else heads)
        if one.kind == "rope" and config.rope_of(int(one.layer)) is None:
            raise UsageError(f"--what: layer {one.layer} of this model rotates nothing (positions: {config.positions})")
        if one.kind == "lens":
            depths("--layer", one.layer, layers)
        if one.kind in {"attention", "sheet", "grid"}:
            found = indices("--layer", one.layer, layers)
            if one.kind != "attention" and "html" in one.formats and len(found) > 1:
                raise UsageError("--layer: an interactive page (html) of a sheet is of one layer; name it")
            if one.kind != "attention" or not one.combined:
                indices("--head", one.head, heads)
    names = [name for one in wanted for name in one.names]
    if names:
        from model.export.activations import names_among  # noqa: PLC0415 - imports torch
        from model.export.recorded import hook_names  # noqa: PLC0415

        names_among(hook_names(config), names)


def stem_of(
    options: argparse.Namespace, wanted: Wanted, layer: str = "", head: str = "", *, several: bool = False
) -> str:
    """The file's name without its extension; `several`: one of several heads of its kind. A field that the kind has not
    leaves nothing, and no dash either."""
    pattern = options.name or "{what}"
    if wanted.several and "{what}" not in pattern:
        pattern += "-{what}"
    if several and not re.search(r"\{(layer|head)\}", pattern):
        pattern += "-layer{layer}-head{head}"
    placed = wanted.one_head or wanted.kind in {"attention", "sheet", "grid"}
    fields = {
        "what": wanted.kind,
        "layer": layer if placed or wanted.kind == "lens" else "",
        "head": head if placed else "",
        "stage": options.stage if placed and wanted.kind != "rope" else "",
    }
    named = re.sub(r"\{(\w+)\}", lambda match: fields[match[1]] or _NONE, pattern)
    return re.sub(f"[-_. ]*{_NONE}", "", named).lstrip("-_ ") if _NONE in named else named


def indices(what: str, text: str, count: int) -> tuple[int, ...]:
    """`export_kinds.indices` of an option. Raises UsageError."""
    try:
        return export_kinds.indices(text, count)
    except export_kinds.IndexListError as error:
        raise UsageError(f"{what}: {error}") from error


def depths(what: str, text: str, n_layers: int) -> tuple[int, ...]:
    """Layers after which the lens looks: "embed,0-2" → (0, 1, 2, 3); all of them with the embedding. Raises
    UsageError."""
    found: list[int] = []
    for part in text.split(","):
        word = part.strip()
        if word in {"all", EMBED}:
            found += range(n_layers + 1) if word == "all" else (0,)
        else:
            found += (layer + 1 for layer in indices(what, part, n_layers))
    return tuple(dict.fromkeys(found))


def single(what: str, text: str, count: int) -> int:
    """The one index that `text` names. Raises UsageError."""
    found = indices(what, text, count) if text not in {"", "all", "mean", "max"} else ()
    if len(found) != 1:
        raise UsageError(f"{what}: name one, from 0 to {count - 1}")
    return found[0]
