"""An interactive page in one file: hover a cell, read its exact value. No network, no library, no stored script.

The float32 values travel as base64 of little-endian bytes, so that what the page shows is bit for bit what the
engine computed; JavaScript prints each with the shortest digits that read back to the same float32.
"""

from __future__ import annotations

import base64
import html
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO

import numpy as np

from model.colormaps import Levels, colormap_for, lut
from model.errors import BadValueError, DecoderscopeError
from model.export.html_script import SCRIPT, STYLE
from model.export.labels import escape
from model.export.palette import PALETTES
from model.export.provenance import SCALE_WORDS, Provenance
from model.export.raster import Float32
from model.protocol.export_requests import FigureTheme

MAX_VALUES = 16 * 2**20
"""Cells of a page: past this a browser tab takes too long and too much memory."""
_ROWS = 256


class PageTooLargeError(DecoderscopeError):
    """More cells than a page may have."""

    code = "page_too_large"

    def __init__(self, cells: int) -> None:
        self.cells = cells
        super().__init__(
            f"An interactive page of {cells:,} cells is over the limit of {MAX_VALUES:,}: choose one head, fewer rows "
            "or columns, or export NPZ, which has no limit."
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class MatrixPage:
    """One matrix or several of the same axes (`names`: "head 0", …). `matrices` yields each as float32 (T, S), NaN
    masked, when it is written, so that one at a time is in memory. Raises BadValueError or PageTooLargeError."""

    names: tuple[str, ...]
    matrices: Iterator[Float32]
    rows: tuple[int, int]
    cols: tuple[int, int]
    row_pieces: tuple[str, ...]
    col_pieces: tuple[str, ...]
    levels: Levels
    about: Provenance
    title: str
    what: str
    boundary: int = 0
    theme: FigureTheme = "light"
    colormap: str = "viridis"

    def __post_init__(self) -> None:
        height, width = self.rows[1] - self.rows[0], self.cols[1] - self.cols[0]
        if (height, width) != (len(self.row_pieces), len(self.col_pieces)) or not self.names:
            raise BadValueError("pieces", (len(self.row_pieces), len(self.col_pieces)), f"{height} and {width}")
        if height * width * len(self.names) > MAX_VALUES:
            raise PageTooLargeError(height * width * len(self.names))


def write_html(page: MatrixPage, out: IO[bytes]) -> None:
    """The page, UTF-8. Tokens reach it as JSON text and are set as text, never as markup."""
    palette = PALETTES[page.theme]
    colours = lut(colormap_for(page.colormap, signed=page.levels.signed))
    data = {
        "names": page.names,
        "rows": page.rows,
        "cols": page.cols,
        "rowPieces": [escape(piece) for piece in page.row_pieces],
        "colPieces": [escape(piece) for piece in page.col_pieces],
        "boundary": page.boundary,
        "levels": {
            "low": page.levels.low,
            "high": page.levels.high,
            "scale": page.levels.scale,
            "signed": page.levels.signed,
        },
        "what": page.what,
        "scaleWords": f"{SCALE_WORDS[page.levels.scale]} scale",
        "lut": colours.ravel().tolist(),
        "masked": palette.masked_hex,
        "hatch": palette.hatch,
        "amber": palette.amber,
        "text": palette.text,
        "secondary": palette.secondary,
        "metadata": page.about.as_dict(),
    }
    variables = "".join(
        f"--{name}:{value};"
        for name, value in (
            ("ground", palette.ground or "transparent"),
            ("text", palette.text),
            ("secondary", palette.secondary),
            ("line", palette.line),
            ("accent", palette.accent),
        )
    )
    caption = html.escape("  ·  ".join(page.about.caption()))
    out.write(
        (
            '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
            # nothing is fetched, whatever the tokens say
            "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src 'unsafe-inline'; "
            "style-src 'unsafe-inline'; img-src data:\">\n"
            '<meta name="viewport" content="width=device-width">\n'
            f"<title>{html.escape(escape(page.title))}</title>\n"
            f"<style>:root{{{variables}}}{STYLE}</style></head><body>\n"
            f"<h1>{html.escape(escape(page.title))}</h1>\n"
            '<div id="bar"><label id="pick">matrix <select id="which"></select></label>'
            '<output id="readout" aria-live="polite">point at a cell, or use the arrow keys</output></div>\n'
            '<canvas id="map" tabindex="0" role="img" aria-label="heat map; arrow keys move the cell"></canvas>\n'
            f'<p id="caption">{caption}</p>\n'
            f'<script type="application/json" id="data">{_json(data)}</script>\n'
        ).encode()
    )
    for index, matrix in enumerate(page.matrices):
        _check(page, matrix)
        out.write(f'<script type="application/octet-stream" class="values" data-index="{index}">'.encode())
        for start in range(0, matrix.shape[0], _ROWS * 3):  # a multiple of 3 rows: base64 pieces join without padding
            out.write(base64.b64encode(np.ascontiguousarray(matrix[start : start + _ROWS * 3], dtype="<f4").tobytes()))
        out.write(b"</script>\n")
    out.write(f"<script>{SCRIPT}</script>\n</body></html>\n".encode())


def _check(page: MatrixPage, matrix: Float32) -> None:
    expected = (len(page.row_pieces), len(page.col_pieces))
    if matrix.shape != expected:
        raise BadValueError("matrix", matrix.shape, str(expected))


def _json(value: object) -> str:
    """JSON that no HTML parser can end early."""
    return json.dumps(value, ensure_ascii=False).replace("<", "\\u003c").replace("\u2028", "\\u2028")
