"""Contact sheet, sampler waterfall, KV growth and logit lens, reopened as pixels and as text."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from typing import Any
from xml.etree import ElementTree as ET

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.image import BboxImage
from matplotlib.text import Text
from PIL import Image

from model.colormaps import Levels, lut
from model.errors import BadValueError
from model.export import contact_sheet, tinted_text
from model.export.canvas import DRAWING_SETTINGS, Canvas
from model.export.chart import bytes_words
from model.export.contact_sheet import ContactSheet, draw_contact_sheet
from model.export.kv_growth import KVGrowth, draw_kv_growth
from model.export.labels import elide
from model.export.lens_figure import LensGrid, draw_lens
from model.export.palette import PALETTES
from model.export.render import render
from model.export.spec import FigureSpec
from model.export.tinted_text import TintedText, draw_tinted_text
from model.export.waterfall import Waterfall, draw_waterfall
from model.protocol.run_requests import StageInfo
from model.protocol.values import Candidate
from tests.model.export.examples import ODD_PIECES, attention, pieces, provenance

SPEC = FigureSpec(width=6, height=5, dpi=100)
ABOUT = provenance(12)


def sheet(layers: int, heads: int, kv_heads: int, n: int, *, own: bool = False) -> ContactSheet:
    tiles = np.stack([[attention(n, seed=layer * heads + head) for head in range(heads)] for layer in range(layers)])
    return ContactSheet(
        tiles=tiles,
        layers=tuple(range(layers)),
        heads=tuple(range(heads)),
        groups=tuple(head * kv_heads // heads for head in range(heads)),
        levels=None if own else Levels(low=0, high=1, scale="sqrt"),
        about=ABOUT,
        title="Attention weights · all heads",
        what="attention weight",
    )


def waterfall() -> Waterfall:
    kept = (("vocabulary", 49_152, 1.0), ("top_k", 40, 0.971), ("top_p", 5, 0.889))
    return Waterfall(
        stages=tuple(StageInfo(name=name, kept=count, mass=mass) for name, count, mass in kept),
        candidates=tuple(
            Candidate(rank=rank, id=rank, piece=piece, logit=1.0, p_raw=0.3 * 0.7**rank, p=0.5 * 0.5**rank)
            for rank, piece in enumerate(ODD_PIECES)
        ),
        about=ABOUT,
        draw=0.4172,
        picked="·$x^2$",
    )


def growth() -> KVGrowth:
    positions = tuple(range(12, 40))
    return KVGrowth(
        positions=positions,
        used=tuple(46_080 * n for n in positions),
        allocated=tuple(46_080 * (32 if n <= 32 else 64) for n in positions),
        per_token=46_080,
        layouts=(("as MHA", 138_240), ("as MQA", 15_360)),
        boundary=12,
        chunks=((8, 8 * 46_080, 8 * 46_080), (12, 12 * 46_080, 32 * 46_080)),
        about=ABOUT,
    )


def test_a_chunk_of_the_prefill_is_a_step_up() -> None:
    made = growth()
    token = 46_080
    steps = [(0, 0), (0, 8 * token), (8, 8 * token), (8, 12 * token), (12, 12 * token)]
    assert made.used_line()[: len(steps)] == steps
    assert made.used_line()[-1] == (39, 39 * token)
    assert made.allocated_steps()[:3] == [(0, 8 * token), (8, 32 * token), (12, 32 * token)]
    drawn: list[list[tuple[float, float]]] = []
    render(lambda canvas: _record(canvas, made, drawn), SPEC, "png", about=ABOUT, title="t")
    line = max(drawn, key=len)
    assert line[1][0] == line[0][0] and line[1][1] < line[0][1]  # straight up
    assert line[2][1] == line[1][1] and line[2][0] > line[1][0]


def _record(canvas: Canvas, made: KVGrowth, drawn: list[list[tuple[float, float]]]) -> None:
    """Draws the figure and keeps the points of its solid lines in the accent's colour."""
    plain = canvas.line

    def line(points: Sequence[tuple[float, float]], **style: Any) -> None:
        if style.get("colour") == canvas.palette.accent:
            drawn.append(list(points))
        plain(points, **style)

    canvas.line = line  # type: ignore[method-assign]
    draw_kv_growth(canvas, made)


def lens(n: int = 12, *, first: int = 0, boundary: int = 0) -> LensGrid:
    words = pieces(n)
    return LensGrid(
        p=np.linspace(0, 1, 5 * n, dtype=np.float32).reshape(5, n),
        pieces=tuple(words[row:] + words[:row] for row in range(5)),
        layers=tuple(range(5)),
        inputs=words,
        about=ABOUT,
        first=first,
        boundary=boundary,
    )


FIGURES: dict[str, Callable[[Canvas], None]] = {
    "sheet": lambda canvas: draw_contact_sheet(canvas, sheet(3, 4, 2, 9)),
    "sheet of its own": lambda canvas: draw_contact_sheet(canvas, sheet(30, 9, 3, 9, own=True)),
    "waterfall": lambda canvas: draw_waterfall(canvas, waterfall()),
    "growth": lambda canvas: draw_kv_growth(canvas, growth()),
    "lens": lambda canvas: draw_lens(canvas, lens()),
    "lens of many": lambda canvas: draw_lens(canvas, lens(48)),
    "text": lambda canvas: draw_tinted_text(canvas, text(30)),
}


def text(n: int) -> TintedText:
    values = np.linspace(0, 9, n, dtype=np.float32)
    levels = Levels.spanning(0.0, 9.0)
    return TintedText(values=values, pieces=pieces(n), levels=levels, what="surprisal, nats", about=ABOUT, title="Text")


def placed(draw: Callable[[Canvas], None], width: float, height: float) -> list[tuple[str, float, float]]:
    """(words, left, bottom) in points from the page's top left corner, as an SVG has them."""
    spec = FigureSpec(width=width, height=height, dpi=100)
    root = ET.fromstring(render(draw, spec, "svg", about=ABOUT, title="t"))
    found = root.iter("{http://www.w3.org/2000/svg}text")
    return [(one.text or "", float(one.attrib["x"]), float(one.attrib["y"])) for one in found if "x" in one.attrib]


def words_of(draw: Callable[[Canvas], None]) -> set[str]:
    root = ET.fromstring(render(draw, SPEC, "svg", about=ABOUT, title="t"))
    return {element.text or "" for element in root.iter("{http://www.w3.org/2000/svg}text")}


@pytest.mark.parametrize("name", FIGURES)
@pytest.mark.parametrize("size", [(6.0, 5.0), (3.3, 3.0), (10.0, 8.0)])
def test_words_stay_on_the_page(name: str, size: tuple[float, float]) -> None:
    spec = FigureSpec(width=size[0], height=size[1], dpi=100, theme="dark")
    with mpl.rc_context(DRAWING_SETTINGS):
        canvas = Canvas(spec)
        FIGURES[name](canvas)
        for child in canvas.figure.get_children():
            if isinstance(child, Text):
                box = child.get_window_extent()
                assert box.x0 >= -1 and box.x1 <= spec.pixels[0] + 1, child.get_text()
                assert box.y0 >= -1 and box.y1 <= spec.pixels[1] + 1, child.get_text()


@pytest.mark.parametrize("name", FIGURES)
@pytest.mark.parametrize("theme", ["light", "transparent"])
def test_every_format_is_made(name: str, theme: str) -> None:
    spec = FigureSpec(width=4, height=4, dpi=60, theme=theme)  # type: ignore[arg-type]
    with Image.open(io.BytesIO(render(FIGURES[name], spec, "png", about=ABOUT, title="t"))) as image:
        assert image.size == (240, 240)
        corner = np.asarray(image.convert("RGBA"))[0, 0]
    assert corner.tolist() == ([255, 255, 255, 255] if theme == "light" else [255, 255, 255, 0])
    assert render(FIGURES[name], spec, "pdf", about=ABOUT, title="t").startswith(b"%PDF")


def test_every_tile_of_a_sheet_has_the_colours_of_its_values() -> None:
    made = sheet(3, 4, 2, 6)
    with mpl.rc_context(DRAWING_SETTINGS):
        canvas = Canvas(SPEC)
        draw_contact_sheet(canvas, made)
        image = next(child for child in canvas.figure.get_children() if isinstance(child, BboxImage))
        box = image.get_window_extent()
    png = render(lambda page: draw_contact_sheet(page, made), SPEC, "png", about=ABOUT, title="t")
    with Image.open(io.BytesIO(png)) as picture:
        page = np.asarray(picture.convert("RGBA"))
    left, top = round(box.x0), SPEC.pixels[1] - round(box.y1)
    atlas = page[top : top + round(box.height), left : left + round(box.width)]
    span = 4 + 0.07 * 2 + 0.3  # four heads in two groups, in sides
    side = atlas.shape[1] / span
    edges = [0, 1.07, 2.37, 3.44]
    assert made.levels is not None
    for layer in range(3):
        for head in range(4):
            expected = lut("viridis", PALETTES["light"].masked)[made.levels.pixels(made.tiles[layer, head])]
            rows = ((layer * 1.07 + (np.arange(6) + 0.5) / 6) * side).astype(int)
            cols = ((edges[head] + (np.arange(6) + 0.5) / 6) * side).astype(int)
            assert np.array_equal(atlas[rows[:, None], cols[None, :]], expected)


def test_what_the_figures_say() -> None:
    assert {"KV 0", "KV 1", "heads →", "← layers", "masked"} <= words_of(FIGURES["sheet"])
    said = words_of(FIGURES["waterfall"])
    assert {"vocabulary", "top-k", "top-p", "49,152", "97.10 %", "88.90 %", "·$x^2$", "0.3000", "0.5000"} <= said
    assert "draw u = 0.417200 → would pick ·$x^2$" in said
    assert {"prefill", "decode", "used, measured", "allocated, measured", "as MHA", "0 B"} <= words_of(
        FIGURES["growth"]
    )
    assert {"·too", "after layer →", "input token →"} <= words_of(FIGURES["lens"])


@pytest.mark.parametrize("n", [12, 23, 48])
def test_every_input_of_a_lens_is_named(n: int) -> None:
    under = placed(lambda canvas: draw_lens(canvas, lens(n)), 9, 7)
    title = next(y for words, _, y in under if words == "input token →")
    named = [words for words, _, y in under if words in pieces(12) and title - 60 < y < title]
    assert sorted(named) == sorted(elide(piece, 14) for piece in pieces(n))


@pytest.mark.parametrize(("n", "first", "boundary"), [(12, 0, 0), (12, 0, 9), (23, 4, 9), (12, 10, 9), (12, 0, 30)])
def test_generated_inputs_of_a_lens_are_amber(n: int, first: int, boundary: int) -> None:
    canvas = Canvas(FigureSpec(width=9, height=7, dpi=72))
    draw_lens(canvas, lens(n, first=first, boundary=boundary))
    texts = [child for child in canvas.figure.get_children() if isinstance(child, Text)]
    title = next(text.get_position()[1] for text in texts if text.get_text() == "input token →")
    inputs = [text for text in texts if title - 60 < text.get_position()[1] < title and text.get_text() in pieces(12)]
    amber, black = canvas.palette.amber, canvas.palette.text
    expected = [amber if 0 < boundary <= first + col else black for col in range(n)]
    assert [text.get_color() for text in sorted(inputs, key=lambda text: text.get_position()[0])] == expected


@pytest.mark.parametrize("layers", [1, 4, 12])
def test_a_sheets_bar_stands_beside_all_its_rows(layers: int) -> None:
    words = placed(lambda canvas: draw_contact_sheet(canvas, sheet(layers, 4, 2, 9)), 7, 10)
    lowest = max(y for text, x, y in words if text == str(layers - 1) and x < 200)
    masked = next(y for text, _, y in words if text == "masked")
    assert lowest < masked < 720 - 40
    assert any(text.startswith("attention weight") for text, _, _ in words)


def test_a_page_is_as_high_as_what_is_on_it() -> None:
    groups = (0, 0, 1, 1)
    heights = [contact_sheet.fitting_height(groups, layers, 7.0) for layers in (1, 3, 5, 30)]
    assert heights == sorted(set(heights)) and heights[-1] == 10
    lines = [tinted_text.fitting_height(pieces(n), 7.0) for n in (3, 60, 200)]
    assert lines == sorted(set(lines))
    for n, height in zip((3, 60, 200), lines, strict=True):
        chips = [y for words, _, y in placed(lambda canvas, n=n: draw_tinted_text(canvas, text(n)), 7, height)  # type: ignore[misc]
                 if words in pieces(12)]  # fmt: skip
        assert len(chips) == n and height * 72 * (0.2 if n == 3 else 0.6) < max(chips) < height * 72 - 40


def test_a_caption_says_the_step() -> None:
    assert "step 2, 10 prompt + 2 decoded tokens" in provenance(12, n_prompt=10).caption()
    assert "step 0, 12 prompt tokens" in provenance(12).caption()


def test_a_head_group_is_bracketed_only_where_heads_share() -> None:
    words = words_of(lambda canvas: draw_contact_sheet(canvas, sheet(2, 4, 4, 6)))
    assert not any(word.startswith("KV") for word in words)


def test_bytes_have_units() -> None:
    assert [bytes_words(value) for value in (0, 999, 46_080, 2.5e6, 3e9, 4e12)] == [
        *("0 B", "999 B", "46.08 kB", "2.5 MB", "3 GB", "4 TB"),
    ]


def test_data_that_does_not_fit_is_refused() -> None:
    with pytest.raises(BadValueError, match="tiles"):
        sheet(1, 2, 1, 4).__class__(**{**vars(sheet(1, 2, 1, 4)), "layers": (0, 1)})
    with pytest.raises(BadValueError, match="stages"):
        Waterfall(stages=(), candidates=(), about=ABOUT)


def test_rows_of_the_lens_are_called_by_the_layer_they_end() -> None:
    figure = LensGrid(
        p=np.zeros((3, 1), dtype=np.float32), pieces=(("a",),) * 3, layers=(0, 1, 30), inputs=("a",), n_layers=30,
        about=lens().about,
    )  # fmt: skip
    assert figure.names == ("embedding", "0", "29, output")
