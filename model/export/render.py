"""From a drawing to the bytes of a PNG, SVG or PDF file."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import Any

import matplotlib as mpl
import numpy as np
from fontTools import subset  # type: ignore[import-untyped]  # no stubs
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_pdf import FigureCanvasPdf
from matplotlib.backends.backend_svg import FigureCanvasSVG

from model.export.canvas import DRAWING_SETTINGS, Canvas
from model.export.png import encode
from model.export.provenance import Provenance
from model.export.spec import FigureSpec, PictureFormat
from model.export.under_way import Check, nothing

Draw = Callable[[Canvas], None]

LAYOUT_TABLES = ("GDEF", "GPOS", "GSUB", "BASE", "JSTF", "MATH", "kern")
_VECTORS = {"svg": FigureCanvasSVG, "pdf": FigureCanvasPdf}


class _Asked(io.BytesIO):
    """A file in memory, written piece by piece: `check` is asked before each."""

    def __init__(self, check: Check) -> None:
        super().__init__()
        self._check = check

    def write(self, data: Any) -> int:
        self._check()
        return super().write(data)


def render(
    draw: Draw,
    spec: FigureSpec,
    file_format: PictureFormat,
    *,
    about: Provenance,
    title: str,
    check: Check = nothing,
) -> bytes:
    """The file. `draw` puts a figure on the canvas it is given; `about` goes into the file's own metadata; `check` may
    raise to end it."""
    with mpl.rc_context(DRAWING_SETTINGS), glyphs_alone() if file_format == "pdf" else nullcontext():
        canvas = Canvas(spec, check=check, whole_chain=file_format == "svg")
        draw(canvas)
        metadata = _metadata(file_format, title, about)
        if file_format == "png":
            backend = FigureCanvasAgg(canvas.figure)
            backend.draw()  # type: ignore[no-untyped-call]  # matplotlib
            pixels = np.asarray(backend.buffer_rgba())  # type: ignore[no-untyped-call]  # matplotlib
            return encode(pixels, dpi=spec.dpi, texts=metadata, check=check)
        out = _Asked(check)
        try:
            _VECTORS[file_format](canvas.figure).print_figure(
                out,
                format=file_format,
                dpi=spec.dpi,
                facecolor=canvas.figure.get_facecolor(),
                edgecolor="none",
                metadata=metadata,
            )
        except AttributeError:  # of matplotlib's, which closes a stream that was given up before it was open
            check()
            raise
    return out.getvalue()


@contextmanager
def glyphs_alone() -> Iterator[None]:
    """Fonts are embedded without the names of their glyphs and the tables that lay text out: in a PDF every glyph has
    its place already, and to read these tables takes longer than the rest of a page."""
    load = subset.load_font

    def load_bare(path: Any, options: subset.Options, **_: Any) -> Any:
        options.glyph_names = False
        font = load(path, options, dontLoadGlyphNames=True)
        for table in LAYOUT_TABLES:
            if table in font:
                del font[table]  # rather than have it dropped: it would be read first
        if "glyf" in font:  # CFF has names of its own; here they would be made of cmap
            font.setGlyphOrder([f"glyph{index}" for index in range(font["maxp"].numGlyphs)])
        return font

    subset.load_font = load_bare
    try:
        yield
    finally:
        subset.load_font = load


def _metadata(file_format: PictureFormat, title: str, about: Provenance) -> Mapping[str, Any]:
    """Without a date, so that the same figure is the same file."""
    creator = f"Decoderscope {about.version}".rstrip()
    if file_format == "png":
        return {"Title": title, "Software": creator, "Description": about.as_json()}
    if file_format == "pdf":
        return {"Title": title, "Creator": creator, "Subject": about.as_json(), "CreationDate": None}
    return {"Title": title, "Creator": creator, "Description": about.as_json(), "Date": None}
