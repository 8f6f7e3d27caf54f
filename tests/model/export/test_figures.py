"""Figures reopened by Pillow, an XML parser and poppler: sizes, colours, words, and nothing over anything else."""

from __future__ import annotations

import io
import json
import re
import shutil
import subprocess
from itertools import pairwise
from pathlib import Path
from typing import get_args
from xml.etree import ElementTree as ET

import matplotlib as mpl
import numpy as np
import pytest
from fontTools import subset  # type: ignore[import-untyped]  # no stubs
from matplotlib.font_manager import findfont
from matplotlib.image import BboxImage
from matplotlib.text import Text
from numpy.typing import NDArray
from PIL import Image

from model.colormaps import Levels, lut
from model.errors import BadValueError, CancelledError
from model.export.canvas import BAND_PIXELS, DRAWING_SETTINGS, Canvas
from model.export.fonts import families, families_for
from model.export.heat_map import HeatMap, draw_heat_map
from model.export.palette import PALETTES
from model.export.png import BAND_BYTES, encode
from model.export.raster import enlarge, pool
from model.export.render import LAYOUT_TABLES, glyphs_alone, render
from model.export.spec import PICTURE_FORMATS, FigureSpec, PictureFormat
from model.export.under_way import nothing
from model.protocol.attention_requests import Scale
from model.protocol.export_requests import FigureTheme, FigureTooLargeError
from tests.model.export.examples import ODD_PIECES, PIECES, heat_map

needs_poppler = pytest.mark.skipif(shutil.which("pdftotext") is None, reason="poppler-utils is not installed")
SMALL = FigureSpec(width=5, height=4.5, dpi=100)


def made(heat: HeatMap, file_format: PictureFormat, spec: FigureSpec = SMALL) -> bytes:
    return render(lambda canvas: draw_heat_map(canvas, heat), spec, file_format, about=heat.about, title=heat.title)


def drawn(heat: HeatMap, spec: FigureSpec = SMALL) -> Canvas:
    with mpl.rc_context(DRAWING_SETTINGS):
        canvas = Canvas(spec)
        draw_heat_map(canvas, heat)
    return canvas


def rgba(png: bytes) -> NDArray[np.uint8]:
    with Image.open(io.BytesIO(png)) as image:
        return np.asarray(image.convert("RGBA"))


def matrix_box(canvas: Canvas) -> tuple[int, int, int, int]:
    """Device pixels (left, top, right, bottom) of the matrix: the first image drawn."""
    image = next(child for child in canvas.figure.get_children() if isinstance(child, BboxImage))
    box = image.get_window_extent()
    high = canvas.spec.pixels[1]
    return round(box.x0), high - round(box.y1), round(box.x1), high - round(box.y0)


@pytest.mark.parametrize("theme", ["light", "dark", "transparent"])
@pytest.mark.parametrize("scale", ["linear", "sqrt", "log"])
def test_every_cell_of_a_png_has_the_colour_of_its_value(theme: FigureTheme, scale: Scale) -> None:
    spec = FigureSpec(width=5, height=4.5, dpi=100, theme=theme, colormap="cividis")
    heat = heat_map(7, scale=scale)
    left, top, right, bottom = matrix_box(drawn(heat, spec))
    picture = rgba(made(heat, "png", spec))[top:bottom, left:right]
    expected = lut("cividis", PALETTES[theme].masked)[heat.levels.pixels(heat.values)]
    rows, cols = ((np.arange(7) + 0.5) * size / 7 for size in picture.shape[:2])
    found = picture[rows.astype(int)[:, None], cols.astype(int)[None, :]]
    seen = ~np.isnan(heat.values)
    assert np.array_equal(found[seen], expected[seen])
    palette = PALETTES[theme]
    ground, line = np.array(palette.masked), np.array([*bytes.fromhex(palette.hatch[1:]), 255])
    low, high = np.minimum(ground, line) - 4, np.maximum(ground, line) + 4  # translucent, a little is lost in 8 bits
    assert ((low <= found[~seen]) & (found[~seen] <= high)).all()
    corner = picture[: picture.shape[0] // 7 - 2, -picture.shape[1] // 7 + 2 :].reshape(-1, 4).astype(int)
    assert (np.abs(corner - ground).max(axis=1) <= 4).any(), "between the lines"
    assert (np.abs(corner - ground).sum(axis=1) > np.abs(line - ground).sum() / 2).any(), "on them"


@pytest.mark.parametrize(("width", "height", "dpi"), [(7, 6, 200), (3.3, 2.5, 600), (2, 2, 72), (11.69, 4.1, 96)])
def test_a_png_has_the_size_and_resolution_asked_for(width: float, height: float, dpi: int) -> None:
    spec = FigureSpec(width=width, height=height, dpi=dpi)
    with Image.open(io.BytesIO(made(heat_map(12), "png", spec))) as image:
        assert image.size == spec.pixels == (round(width * dpi), round(height * dpi))
        assert image.info["dpi"] == pytest.approx((dpi, dpi), abs=0.02)
        assert json.loads(image.info["Description"])["layer"] == "13"


@pytest.mark.parametrize("file_format", PICTURE_FORMATS)
def test_a_figure_can_be_given_up_from_its_layout_to_its_last_bytes(file_format: PictureFormat) -> None:
    """Wherever it is: `check` is asked all along, and what it raises ends it."""
    asked, stop = 0, -1

    def check() -> None:
        nonlocal asked
        asked += 1
        if 0 < stop <= asked:
            raise CancelledError

    def draw() -> bytes:
        nonlocal asked
        asked = 0
        heat = heat_map(12)
        spec = FigureSpec(width=15, height=15, dpi=200)
        return render(
            lambda canvas: draw_heat_map(canvas, heat), spec, file_format, about=heat.about, title="", check=check
        )

    draw()  # what is read once and kept
    draw()
    total = asked
    assert total > 150
    if file_format == "png":  # a picture of 9 million pixels: its drawing and its compression
        assert total > 9_000_000 / BAND_PIXELS + 9_000_000 * 4 / BAND_BYTES + 100
    for share in (0.0, 0.3, 0.6, 0.9):
        stop = max(1, round(total * share))
        with pytest.raises(CancelledError):
            draw()
        assert asked - stop < 10  # PDF closes its streams
    stop = -1
    assert draw()


@pytest.mark.parametrize("shape", [(1, 1), (3, 7), (700, 900)])
def test_a_png_holds_every_pixel_and_text(shape: tuple[int, int]) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (*shape, 4), dtype=np.uint8)
    texts = {"Title": "naïve", "Description": "你好 \U0001faf0", "Software": ""}
    with Image.open(io.BytesIO(encode(pixels, dpi=300, texts=texts, check=nothing))) as image:
        assert image.mode == "RGBA" and (np.asarray(image) == pixels).all()
        assert {key: image.info[key] for key in texts} == texts
        assert image.info["dpi"] == pytest.approx((300, 300), abs=0.02)


def test_a_single_bright_cell_of_a_large_matrix_is_on_the_picture() -> None:
    heat = heat_map(1500, scale="linear")
    heat.values[~np.isnan(heat.values)] = 0.0
    heat.values[1234, 77] = 1.0
    left, top, right, bottom = matrix_box(drawn(heat))
    picture = rgba(made(heat, "png"))[top:bottom, left:right]
    bright = (picture == lut("viridis")[255]).all(axis=2)
    assert bright.sum() == 1
    [[y, x]] = np.argwhere(bright)
    assert (y / picture.shape[0], x / picture.shape[1]) == pytest.approx((1234 / 1500, 77 / 1500), abs=0.005)


def test_fonts_are_whole_again_after_a_pdf() -> None:
    def tables() -> set[str]:
        with subset.load_font(findfont("DejaVu Sans"), subset.Options()) as font:
            return set(font.keys())

    before = tables()
    with glyphs_alone():
        assert not tables() & set(LAYOUT_TABLES)
    assert before == tables() > {"GSUB", "GPOS"}


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("size", [(40, 3), (7, 20), (1, 1)])
def test_pooling_is_the_same_however_the_cells_are_met(
    monkeypatch: pytest.MonkeyPatch, size: tuple[int, int], signed: bool
) -> None:
    values = np.random.default_rng(3).normal(size=(2, 41, 53)).astype(np.float32)
    values[values > 0.3] = np.nan
    made = []
    for gathered in (0, 100):
        monkeypatch.setattr("model.export.raster.GATHERED", gathered)
        made += [pool(values, *size, signed=signed), np.stack([pool(each, *size, signed=signed) for each in values])]
    for each in made:
        assert np.array_equal(each, made[0], equal_nan=True)


def test_pooling_takes_the_extreme_and_keeps_the_mask() -> None:
    values = np.array([[1, -5, np.nan, np.nan], [2, 3, np.nan, np.nan], [0, 0, 4, np.nan]], dtype=np.float32)
    assert np.array_equal(pool(values, 1, 2), np.array([[3, 4]], dtype=np.float32))
    assert np.array_equal(pool(values, 3, 2, signed=True)[0], np.array([-5, np.nan], dtype=np.float32), equal_nan=True)
    assert pool(values, 9, 9) is values
    assert enlarge(np.array([[1, 2]]), 2, 5).tolist() == [[1, 1, 1, 2, 2]] * 2


@pytest.mark.parametrize("n", [1, 2, 5, 19, 40, 64, 130, 513, 4096])
@pytest.mark.parametrize("size", [(7.0, 6.0), (3.3, 3.0), (10.0, 4.0)])
def test_labels_never_overlap_and_stay_on_the_page(n: int, size: tuple[float, float]) -> None:
    values = np.zeros((min(n, 64), min(n, 64)), dtype=np.float32)
    words = tuple(PIECES[index % len(PIECES)] for index in range(n))
    base = heat_map(2)
    heat = HeatMap(
        values=values, rows=(0, n), cols=(0, n), row_pieces=words, col_pieces=words, boundary=n // 2,
        levels=Levels(low=0, high=1), about=base.about, title=base.title, what=base.what,
    )  # fmt: skip
    with mpl.rc_context(DRAWING_SETTINGS):
        canvas = drawn(heat, FigureSpec(width=size[0], height=size[1], dpi=100))
        wide, high = canvas.spec.pixels
        texts = [child for child in canvas.figure.get_children() if isinstance(child, Text)]
        boxes = [text.get_window_extent() for text in texts]
    for text, box in zip(texts, boxes, strict=True):
        assert box.x0 >= -1 and box.y0 >= -1 and box.x1 <= wide + 1 and box.y1 <= high + 1, text.get_text()
    upright = [box for text, box in zip(texts, boxes, strict=True) if text.get_rotation() == 0]
    for index, one in enumerate(upright):
        for other in upright[index + 1 :]:
            across = min(one.x1, other.x1) - max(one.x0, other.x0)
            along = min(one.y1, other.y1) - max(one.y0, other.y0)
            # a box includes the line's empty ascent and descent
            assert min(across, along) <= 0.35 * min(one.height, other.height)
    slanted = sorted(box.x0 for text, box in zip(texts, boxes, strict=True) if 0 < text.get_rotation() < 90)
    assert all(later - earlier > 3 for earlier, later in pairwise(slanted))


@pytest.mark.parametrize("scale", ["linear", "sqrt", "log"])
def test_the_words_of_an_svg_are_text(scale: Scale) -> None:
    svg = made(heat_map(len(ODD_PIECES), words=ODD_PIECES, scale=scale, boundary=9), "svg")
    root = ET.fromstring(svg)
    words = [element.text or "" for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {"·$x^2$", "<img src=x>", "你好", "a⏎b", "⟨U+202E⟩evil", "⟨U+1FAF0⟩", "_{i}", "\\frac"} <= set(words)
    assert {"prefill ↑", "decode ↓", "keys →", "← queries", "masked"} <= set(words)
    named = {"linear": "linear", "sqrt": "square root", "log": "logarithmic"}[scale]
    assert any(f"{named} scale" in word for word in words)
    assert any("SmolLM2-135M-Instruct (sha256 b179c9523d0e)" in word for word in words)
    assert any(word.startswith("very") and word.endswith("…") for word in words)


@pytest.mark.parametrize("theme", ["light", "dark", "transparent"])
@pytest.mark.parametrize(("n", "first", "boundary"), [(12, 0, 0), (12, 0, 8), (12, 5, 8), (12, 9, 8), (400, 0, 250)])
def test_generated_tokens_are_amber_on_both_axes(theme: FigureTheme, n: int, first: int, boundary: int) -> None:
    base, words, span = heat_map(2), tuple(f"word{place}" for place in range(n)), (first, first + n)
    heat = HeatMap(
        values=np.zeros((min(n, 64), min(n, 64)), dtype=np.float32), rows=span, cols=span, row_pieces=words,
        col_pieces=words, boundary=boundary, levels=Levels(low=0, high=1), about=base.about, title=base.title,
        what=base.what,
    )  # fmt: skip
    canvas = drawn(heat, FigureSpec(width=6, height=5, dpi=72, theme=theme))
    amber, black = PALETTES[theme].amber, PALETTES[theme].text
    found = [(text, re.match(r"word(\d+)", text.get_text())) for text in canvas.figure.get_children()
             if isinstance(text, Text)]  # fmt: skip
    labels = [(text, first + int(name[1])) for text, name in found if name]
    assert len(labels) == 24 if n == 12 else len(labels) >= 12, "of rows and columns"
    for text, position in labels:
        assert text.get_color() == (amber if 0 < boundary <= position else black)
    in_svg = made(heat, "svg", FigureSpec(width=6, height=5, dpi=72, theme=theme)).decode().count(f"fill: {amber}")
    assert in_svg >= sum(0 < boundary <= position for _, position in labels)


def test_a_file_is_the_same_each_time() -> None:
    for file_format in PICTURE_FORMATS:
        assert made(heat_map(9), file_format) == made(heat_map(9), file_format)


@needs_poppler
def test_a_pdf_has_text_fonts_and_size(tmp_path: Path) -> None:
    path = tmp_path / "a.pdf"
    path.write_bytes(made(heat_map(len(ODD_PIECES), words=ODD_PIECES), "pdf"))
    text = subprocess.run(["pdftotext", "-layout", path, "-"], capture_output=True, check=True, text=True).stdout
    for words in (
        "·$x^2$",
        "<img src=x>",
        "⟨E4⟩",
        "你好",
        "SmolLM2-135M-Instruct",
        "seed 7",
        "layer 13, head 8 (KV head 2)",
    ):
        assert words in text
    fonts = subprocess.run(["pdffonts", path], capture_output=True, check=True, text=True).stdout
    assert "Type 3" not in fonts
    info = subprocess.run(["pdfinfo", path], capture_output=True, check=True, text=True).stdout
    assert re.search(r"Page size:\s+360 x 324 pts", info)


@needs_poppler
def test_a_pdf_shows_the_same_cells_as_the_png(tmp_path: Path) -> None:
    heat = heat_map(6)
    path = tmp_path / "a.pdf"
    path.write_bytes(made(heat, "pdf"))
    subprocess.run(["pdftoppm", "-r", "100", "-png", "-singlefile", path, tmp_path / "a"], check=True)
    left, top, right, bottom = matrix_box(drawn(heat))
    one, other = (rgba(data)[top:bottom, left:right] for data in ((tmp_path / "a.png").read_bytes(), made(heat, "png")))
    rows, cols = ((np.arange(6) + 0.5) * size / 6 for size in one.shape[:2])
    at = rows.astype(int)[:, None], cols.astype(int)[None, :]
    apart, seen = np.abs(one[at].astype(int) - other[at].astype(int)), ~np.isnan(heat.values)
    assert apart[seen].max() <= 1
    assert apart[~seen].max() <= 32, "the edges of the hatch, as each program smooths them"


def test_30000_pixels_are_refused_before_anything_is_drawn() -> None:
    with pytest.raises(FigureTooLargeError, match=r"30,000 × 30,000 pixels is over the limit"):
        FigureSpec(width=100, height=100, dpi=300)
    with pytest.raises(FigureTooLargeError):
        FigureSpec(width=40, height=40, dpi=300)
    for inches in (0.0, -1.0, float("nan"), float("inf"), 1e9):
        with pytest.raises(BadValueError, match="width"):
            FigureSpec(width=inches)
        with pytest.raises(BadValueError, match="height"):
            FigureSpec(height=inches)
    with pytest.raises(BadValueError, match="dpi"):
        FigureSpec(dpi=0)


def test_a_matrix_of_masked_cells_is_drawn() -> None:
    heat = heat_map(3)
    heat.values[:] = np.nan
    assert made(heat, "png")


def test_pieces_must_fit_the_cells() -> None:
    base = heat_map(3)
    with pytest.raises(BadValueError, match="rows"):
        HeatMap(
            values=base.values, rows=(0, 3), cols=(0, 3), row_pieces=("a",), col_pieces=base.col_pieces,
            levels=base.levels, about=base.about, title="", what="",
        )  # fmt: skip


@pytest.mark.parametrize("mono", [False, True])
@pytest.mark.parametrize("bold", [False, True])
def test_words_the_first_typeface_holds_ask_no_other(mono: bool, bold: bool) -> None:
    chain = families(mono=mono)
    assert len(chain) > 1
    assert families_for("layer 13 · head 8 → q·k/√d, é", mono=mono, bold=bold) == chain[:1]
    assert families_for("", mono=mono, bold=bold) == chain[:1]
    assert families_for("你好 a", mono=mono, bold=bold) == chain
    assert families_for("a\U0001f600", mono=mono, bold=bold) == chain


@pytest.mark.parametrize("file_format", get_args(PictureFormat))
def test_the_shorter_way_to_a_typeface_draws_the_same_figure(
    monkeypatch: pytest.MonkeyPatch, file_format: PictureFormat
) -> None:
    heat = heat_map(4, words=("animal", "é", "你", "x"))
    short = made(heat, file_format)
    monkeypatch.setattr("model.export.canvas.families_for", lambda _text, *, mono, bold: families(mono=mono))
    assert short == made(heat, file_format)
    if file_format == "svg":  # drawn where other typefaces are
        named = set(re.findall(rb"font-family: (.*?)[;\"]", short))
        assert named
        assert all(names.count(b"'DejaVu Sans'") == 1 for names in named)
