"""The interactive page in a real headless browser: what a mouse over it reads, what is drawn, what it asks for."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from model.colormaps import lut
from model.export.attention import export_attention
from model.export.palette import PALETTES
from model.export.sheet import export_sheet
from model.protocol.attention_requests import HeadView
from model.protocol.export_requests import ExportAttention, ExportSheet
from model.protocol.values import SamplerSettings
from model.run import Run
from model.views.attention_exact import exact
from model.views.selection import chosen
from tests.model import tiny
from tests.model.export.browser import Browser

pytestmark = [pytest.mark.long, pytest.mark.timeout(180)]
VIEW = HeadView(layer=1, head=2)
BOX = "(b => [b.left, b.top, b.width / (canvas.width / scale)])(canvas.getBoundingClientRect())"


@pytest.fixture(scope="module")
def run() -> Run:
    made = tiny.run_of(tiny.llama()[1], tiny.random_ids(12))
    made.generate(4, SamplerSettings(temperature=1.5, top_k=0, top_p=1.0))
    return made


def values(run: Run, head: int) -> np.ndarray:
    everything = (0, run.length)
    return exact(run, chosen(run, HeadView(layer=1, head=head)), everything, everything)


def centre(browser: Browser, row: int, col: int) -> tuple[float, float]:
    left, top, zoom = browser.evaluate(BOX)
    x, y, size = browser.evaluate("[left, top_, size]")
    return left + (x + (col + 0.5) * size) * zoom, top + (y + (row + 0.5) * size) * zoom


def read(browser: Browser) -> str:
    words: str = browser.evaluate("document.getElementById('readout').textContent")
    return words


def test_the_mouse_reads_the_engines_numbers(run: Run, tmp_path: Path) -> None:
    path, expected = tmp_path / "head.html", values(run, 2)
    message = ExportAttention(view=VIEW, formats=("html",), scale="sqrt", title="A <b>head</b> & $x$")
    for file in export_attention(run, message):
        with file:
            path.write_bytes(file.read())
    with Browser(path) as browser:
        assert browser.evaluate("document.querySelector('h1').textContent") == "A <b>head</b> & $x$"
        for row, col in ((8, 1), (15, 0), (3, 3), (12, 12), (2, 9)):
            browser.point(*centre(browser, row, col))
            words = read(browser)
            assert f"({row}) → key" in words and f"({col})   " in words, words
            shown = words.rpartition(" ")[2]
            if np.isnan(expected[row, col]):
                assert shown == "masked"
            else:
                assert np.float32(shown) == expected[row, col]
        colours = browser.evaluate("[11, 12, 15].map(at => voice(false, at))")
        palette = PALETTES["light"]
        assert colours == [palette.secondary, palette.amber, palette.amber]
        browser.point(1, 1)
        with browser.picture() as picture:
            picture.save(tmp_path / "head.png")
            levels = browser.evaluate("data.levels")
            for row, col in ((8, 1), (15, 0), (14, 9)):
                share = float(np.sqrt((expected[row, col] - levels["low"]) / (levels["high"] - levels["low"])))
                colour = lut("viridis")[1 + round(min(max(share, 0), 1) * 254)][:3]
                x, y = centre(browser, row, col)
                seen = picture.getpixel((round(x), round(y)))
                assert np.abs(np.array(seen, dtype=int) - colour).max() <= 2
        asked = [event["params"]["request"]["url"] for event in browser.events if event["method"].endswith("BeSent")]
        assert asked == [path.as_uri()]
        told = [event for event in browser.events if event["method"] in {"Runtime.exceptionThrown", "Log.entryAdded"}]
        assert told == []


def test_a_layers_heads_are_chosen_by_key(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "layer.html"
    for file in export_sheet(run, ExportSheet(layers=(1,), formats=("html",), theme="dark")):
        with file:
            path.write_bytes(file.read())
    with Browser(path) as browser:
        assert browser.evaluate("[...which.options].map(o => o.textContent)") == [
            f"layer 1 · head {head}" for head in range(4)
        ]
        browser.evaluate("which.focus()")
        for head in range(4):
            browser.point(*centre(browser, 9, 4))
            assert np.float32(read(browser).rpartition(" ")[2]) == values(run, head)[9, 4]
            for kind in ("rawKeyDown", "keyUp"):
                browser.call("Input.dispatchKeyEvent", type=kind, key="ArrowDown", code="ArrowDown",
                             windowsVirtualKeyCode=40)  # fmt: skip
