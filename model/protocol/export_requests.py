"""Requests that make files. The engine renders; the app writes, atomically."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from model.errors import DecoderscopeError
from model.protocol.attention_requests import HeadView, Scale, Stage
from model.protocol.wire import Request, request

FigureFormat = Literal["png", "svg", "pdf", "html", "csv", "npz", "json", "safetensors"]
SheetFormat = Literal["png", "svg", "pdf", "html", "npz", "safetensors"]
ActivationFormat = Literal["safetensors", "npz", "csv", "json"]
RunFormat = Literal["dscope"]
RunContents = Literal["text", "attention", "all"]
FigureTheme = Literal["light", "dark", "transparent"]
MAX_SIDE, MAX_PIXELS = 16_384, 100_000_000
"""Of a picture, in pixels."""


class FigureTooLargeError(DecoderscopeError):
    """More pixels than a figure may have."""

    code = "figure_too_large"

    def __init__(self, width: int, height: int) -> None:
        self.width, self.height = width, height
        super().__init__(
            f"A picture of {width:,} × {height:,} pixels is over the limit of {MAX_SIDE:,} a side and "
            f"{MAX_PIXELS // 1_000_000} million in all: ask for a smaller size or a lower resolution, or choose SVG or "
            "PDF with a low one, which print sharp at any size."
        )


def figure_pixels(width: float, height: float, dpi: int) -> tuple[int, int]:
    """(wide, high) of a figure of so many inches. Raises FigureTooLargeError."""
    wide, high = max(1, round(width * dpi)), max(1, round(height * dpi))
    if max(wide, high) > MAX_SIDE or wide * high > MAX_PIXELS:
        raise FigureTooLargeError(wide, high)
    return wide, high


@dataclass(frozen=True, kw_only=True)
class FilePart:
    """At most 1 MiB of file `name`. `last`: it is complete after this; `sha256` of the whole is then given. Arrays:
    `data` uint8 (n,). The engine waits for an ack when more than 8 parts are under way."""

    name: str
    offset: int
    last: bool
    sha256: str = ""


@dataclass(frozen=True, kw_only=True)
class FileInfo:
    """A finished file: its name, format, bytes and SHA-256."""

    name: str
    format: str
    size: int
    sha256: str


@dataclass(frozen=True, kw_only=True)
class ExportReply:
    """The files sent in parts before this reply."""

    files: tuple[FileInfo, ...]


@dataclass(frozen=True, kw_only=True)
class FileRequest(Request):
    """Makes a file in each of `formats`, named `stem` + extension."""

    formats: tuple[str, ...] = ()
    stem: str = "export"


@dataclass(frozen=True, kw_only=True)
class DrawnRequest(FileRequest):
    """Figures among the files: `width` × `height` inches at `dpi`, on a `theme`'s ground, under `title` or its own."""

    theme: FigureTheme = "light"
    colormap: str = "viridis"
    width: float = 7.0
    height: float = 5.0
    dpi: int = 200
    title: str = ""


@request("export.attention", ExportReply, lane="view", part=FilePart)
@dataclass(frozen=True, kw_only=True)
class ExportAttention(DrawnRequest):
    """The heat map in view. CSV, NPZ and safetensors hold exact float32 cells of the whole rectangle, token ids, pieces
    and metadata; beside a CSV lies `stem`.csv-metadata.json."""

    view: HeadView
    rows: tuple[int, int] = (0, 0)
    cols: tuple[int, int] = (0, 0)
    scale: Scale = "linear"
    fixed: bool = False
    ignore_first: bool = False
    formats: tuple[FigureFormat, ...] = ("png",)
    height: float = 6.0
    stem: str = "attention"


@request("export.sheet", ExportReply, lane="view", part=FilePart)
@dataclass(frozen=True, kw_only=True)
class ExportSheet(DrawnRequest):
    """A contact sheet: `layers` × `heads` (empty: all) on one colour scale, or, with `own_scale`, each on its own. NPZ
    and safetensors hold `values` float32 (L, H, T, S) of all of them; HTML is for one layer."""

    layers: tuple[int, ...] = ()
    heads: tuple[int, ...] = ()
    stage: Stage = "weights"
    scale: Scale = "sqrt"
    own_scale: bool = False
    fixed: bool = False
    ignore_first: bool = False
    formats: tuple[SheetFormat, ...] = ("pdf",)
    height: float = 10.0
    stem: str = "heads"


@request("export.activations", ExportReply, lane="view", part=FilePart)
@dataclass(frozen=True, kw_only=True)
class ExportActivations(FileRequest):
    """Activations over the active path by hook name or pattern ("layers.*.mlp.post", "logits", "kv"), exact float32.
    Several names are several CSV files (`stem`-NAME.csv, each with its csv-metadata.json) and one file otherwise."""

    names: tuple[str, ...]
    formats: tuple[ActivationFormat, ...] = ("safetensors",)
    stem: str = "activations"


@request("export.run", ExportReply, lane="view", part=FilePart)
@dataclass(frozen=True, kw_only=True)
class ExportRun(FileRequest):
    """The run as a `.dscope` file: "text" (tokens, settings, draws), "attention" (and logits, q, k, v), "all" (and
    residuals); with `max_bytes` the fullest of these that stays within, but no fuller than `contents`."""

    contents: RunContents = "all"
    max_bytes: int = 0
    formats: tuple[RunFormat, ...] = ("dscope",)
    stem: str = "run"
