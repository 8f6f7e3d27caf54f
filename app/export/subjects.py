"""What is exported of a panel: its kind, a name for its files, the request that makes them."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from model.protocol.attention_requests import HeadView
from model.protocol.export_kinds import EXPORT_KINDS, indices
from model.protocol.export_requests import (
    DrawnRequest,
    ExportActivations,
    ExportAttention,
    ExportSheet,
    FigureTheme,
    FileRequest,
)
from model.protocol.figure_requests import ExportKvGrowth, ExportLens, ExportRope, ExportSampler, ExportText
from model.protocol.file_names import safe_stem as writable

if TYPE_CHECKING:
    from app.context import AppContext
    from app.panels.base import Panel

FIGURES = frozenset({"png", "svg", "pdf"})
PANEL = "panel"
"""A panel as it looks, and its tables: made by the window; every other kind is made by the engine."""
STEM = "attention"
"""A file's name where nothing of the wanted one can be used."""


@dataclass(frozen=True, kw_only=True)
class Want:
    """Everything that was chosen for one export. `whole`: of a matrix all rows and columns, not those in sight;
    `layers`, `heads`: lists as written; `tint`, `names`: of text and activations, "" for what the panel shows."""

    kind: str
    formats: tuple[str, ...]
    stem: str
    theme: FigureTheme = "light"
    colormap: str = "viridis"
    width: float = 7.0
    height: float = 6.0
    dpi: int = 200
    whole: bool = True
    layers: str = "all"
    heads: str = "all"
    tint: str = ""
    names: str = ""


def safe_stem(text: str) -> str:
    """A file name without an extension that every file system takes."""
    stem = re.sub(r"[^\w.\-]+", "-", text, flags=re.UNICODE).strip("-. ")
    return writable(stem[:120] or STEM)


def shown(panel: Panel) -> FileRequest | None:
    """The export that stands for what a panel shows; None where the engine has none."""
    return cast("FileRequest | None", panel.figure(("png",), "light", ""))


def kind_of(panel: Panel) -> str:
    """The kind of what a panel shows; activations are numbers behind a picture, which is the panel's own, as are the
    curve, the steps and the tokens of those that are tables first."""
    if panel.tables_first:
        return PANEL
    message = shown(panel)
    return next((name for name, kind in EXPORT_KINDS.items() if kind.request is type(message) and kind.drawn), PANEL)


def stem_of(kind: str, panel: Panel) -> str:
    """A name that says what is in the files."""
    ctx = panel.ctx
    view, model = ctx.selection.view, ctx.session.model
    words = [model.name if model else ""]
    if kind == PANEL:
        words.append(panel.panel_id)
    elif kind == "attention":
        head = view.head if isinstance(view.head, str) else f"H{view.head}"
        words += ["all" if view.layer == "all" else f"L{view.layer}", head, view.stage]
    else:
        words.append({"sheet": "heads", "activation": "activations"}.get(kind, kind))
    return safe_stem("-".join(words))


def message_of(want: Want, panel: Panel) -> FileRequest:
    """The request for the engine. Raises IndexListError, BadValueError."""
    own = shown(panel)
    same = type(own) is EXPORT_KINDS[want.kind].request
    message = own if own is not None and same else plain(want.kind, panel.ctx)
    changes: dict[str, Any] = {"formats": want.formats, "stem": want.stem}
    if isinstance(message, DrawnRequest):
        sizes = ("width", "height", "dpi") if FIGURES & set(want.formats) else ()  # a table has none
        changes |= {name: getattr(want, name) for name in ("theme", "colormap", *sizes)}
    if isinstance(message, ExportAttention) and want.whole:
        changes |= {"rows": (0, 0), "cols": (0, 0)}
    if isinstance(message, ExportSheet):
        changes |= {
            "layers": _chosen(want.layers, panel.ctx.selection.n_layers),
            "heads": _chosen(want.heads, panel.ctx.selection.n_heads),
        }
    if isinstance(message, ExportText) and want.tint:
        changes |= _tint(want.tint, panel.ctx)
    if isinstance(message, ExportActivations) and want.names.strip():
        changes["names"] = names_in(want.names)
    return replace(message, **changes)


def plain(kind: str, ctx: AppContext) -> FileRequest:
    """An export of what is selected, whichever panel it is asked from."""
    selection = ctx.selection
    layer, head = selection.single_layer, selection.single_head
    levels: dict[str, Any] = {
        "scale": selection.scale,
        "fixed": selection.fixed and selection.stage == "weights",
        "ignore_first": selection.ignore_first,
    }
    if kind == "attention":
        return ExportAttention(view=selection.view, **levels)
    if kind in {"sheet", "grid"}:
        return ExportSheet(stage=selection.stage, own_scale=kind == "grid", **levels)
    if kind == "sampler":
        return ExportSampler(settings=ctx.session.sampler)
    if kind == "rope":
        return ExportRope(layer=layer, head=head, query=selection.query, key=selection.key)
    if kind == "activation":
        return ExportActivations(names=(f"layers.{layer}.attn.pattern",))
    others: dict[str, type[FileRequest]] = {"kv-growth": ExportKvGrowth, "lens": ExportLens, "text": ExportText}
    return others[kind]()


def tinted(ctx: AppContext) -> ExportText:
    """The text as it is tinted in the window; by surprisal where it has no tint."""
    tint = {"attention": "reads", "entropy": "entropy"}.get(ctx.selection.tint, "surprisal")
    return replace(ExportText(), **_tint(tint, ctx))


def numbers(*names: str, stem: str = "") -> ExportActivations:
    """Activations behind a panel that has no figure of the engine's."""
    return ExportActivations(names=names, stem=stem or "activations")


def names_in(text: str) -> tuple[str, ...]:
    """Names of activations as they were typed, between commas or blanks."""
    return tuple(dict.fromkeys(re.split(r"[,\s]+", text.strip(", \n\t"))))


def _tint(tint: str, ctx: AppContext) -> dict[str, Any]:
    selection = ctx.selection
    if tint not in {"reads", "read_by"}:
        return {"by": tint, "view": None, "position": -1}
    view = HeadView(layer=selection.layer, head=selection.head, stage="weights")
    return {"by": tint, "view": view, "position": selection.query if tint == "reads" else selection.key}


def _chosen(text: str, count: int) -> tuple[int, ...]:
    """Empty for all of them, as the request wants it."""
    found = indices(text or "all", count)
    return () if len(found) == count else found
