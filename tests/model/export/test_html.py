"""The interactive page: what an HTML parser and a base64 decoder find in it."""

from __future__ import annotations

import base64
import io
import json
import re
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest

from model.colormaps import Levels
from model.errors import BadValueError
from model.export.html import MAX_VALUES, MatrixPage, PageTooLargeError, write_html
from model.export.palette import PALETTES
from tests.model.export.examples import ODD_PIECES, attention, pieces, provenance


class Reader(HTMLParser):
    """Collects elements by tag, and the text in scripts."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[tuple[dict[str, str | None], str]] = []
        self._open: dict[str, str | None] | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag == "script":
            self._open = dict(attrs)
            self.scripts.append((self._open, ""))

    def handle_data(self, data: str) -> None:
        if self._open is not None:
            self.scripts[-1] = (self._open, self.scripts[-1][1] + data)

    def handle_endtag(self, tag: str) -> None:
        if tag == "script":
            self._open = None


def page(n: int, *, heads: int = 1, words: tuple[str, ...] | None = None, **changes: Any) -> MatrixPage:
    fields: dict[str, Any] = {
        "names": tuple(f"head {head}" for head in range(heads)),
        "matrices": (attention(n, seed=head) for head in range(heads)),
        "rows": (0, n),
        "cols": (0, n),
        "row_pieces": words or pieces(n),
        "col_pieces": words or pieces(n),
        "levels": Levels(low=0, high=1, scale="sqrt"),
        "about": provenance(n),
        "title": "Attention <b>weights</b>",
        "what": "weight",
    }
    return MatrixPage(**(fields | changes))


def read(made: MatrixPage) -> tuple[str, Reader]:
    out = io.BytesIO()
    write_html(made, out)
    text = out.getvalue().decode()
    reader = Reader()
    reader.feed(text)
    reader.close()
    return text, reader


def test_the_values_in_the_page_are_the_engines_bits() -> None:
    _text, reader = read(page(1001, heads=2))
    blobs = [script for attributes, script in reader.scripts if attributes.get("class") == "values"]
    assert len(blobs) == 2
    for head, blob in enumerate(blobs):
        found = np.frombuffer(base64.b64decode(blob, validate=True), dtype="<f4").reshape(1001, 1001)
        assert np.array_equal(found.view(np.uint32), attention(1001, seed=head).view(np.uint32))


def test_tokens_and_titles_are_text() -> None:
    hostile = (*ODD_PIECES[:-1], "</script><img src=x onerror=alert(1)>")
    text, reader = read(page(len(hostile), words=hostile))
    assert {tag for tag, _ in reader.tags} == {
        *("html", "head", "meta", "title", "style", "body", "h1", "div", "label", "select", "output", "canvas", "p"),
        "script",
    }
    assert len(reader.scripts) == 3
    [data] = [json.loads(script) for attributes, script in reader.scripts if attributes.get("id") == "data"]
    assert data["rowPieces"][-1] == hostile[-1]
    palette = PALETTES["light"]
    assert (data["masked"], data["hatch"], data["lut"][3]) == (palette.masked_hex, palette.hatch, 0)  # seen through
    assert data["metadata"]["settings"]["seed"] == 7
    assert "<h1>Attention &lt;b&gt;weights&lt;/b&gt;</h1>" in text


def test_the_page_asks_the_network_for_nothing() -> None:
    text, reader = read(page(5))
    assert not re.search(r"https?:|//[a-z]|@import|fetch\(|XMLHttp|import\(", text)
    assert not any("src" in attributes or "href" in attributes for _, attributes in reader.tags)
    [policy] = [attributes["content"] for _, attributes in reader.tags if "http-equiv" in attributes]
    assert policy is not None and policy.startswith("default-src 'none';")


def test_a_page_too_large_or_misshapen_is_refused() -> None:
    side = int((MAX_VALUES / 2) ** 0.5) + 1
    with pytest.raises(PageTooLargeError, match="choose one head"):
        page(side, heads=2, matrices=iter(()))
    with pytest.raises(BadValueError, match="pieces"):
        page(4, words=("a",))
    with pytest.raises(BadValueError, match="matrix"):
        read(page(4, matrices=iter([attention(5)])))


_BROWSER = """
var made = {}, readouts = [], listeners = {};
function element(id) {
  if (!made[id]) made[id] = {
    id: id, style: {}, textContent: "", value: "0", hidden: false, options: [],
    add: function (o) { this.options.push(o); }, addEventListener: function (kind, f) { listeners[id + kind] = f; },
    getContext: function () { return new Proxy({}, {get: function (t, k) { return k in t ? t[k] : function () {}; },
                                                    set: function (t, k, v) { t[k] = v; return true; }}); },
    getBoundingClientRect: function () { return {left: 0, top: 0, width: parseFloat(this.style.width)}; },
  };
  return made[id];
}
var document = {
  getElementById: element, createElement: function () { return element("small"); },
  querySelectorAll: function () { return blobs_; },
};
var window = {devicePixelRatio: 1, innerWidth: 1200, innerHeight: 900, addEventListener: function () {}};
function ImageData(w, h) { this.data = new Uint8ClampedArray(4 * w * h); images.push(this); }
var images = [];
function Option(name, value) { this.name = name; this.value = value; }
function atob(text) {
  var abc = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", out = "", bits = 0, held = 0;
  for (var i = 0; i < text.length && text[i] !== "="; i++) {
    held = (held << 6 | abc.indexOf(text[i])) & 0xffffff; bits += 6;
    if (bits >= 8) { bits -= 8; out += String.fromCharCode(held >> bits & 255); }
  }
  return out;
}
"""


def test_the_script_shows_each_value_with_its_shortest_digits(qapp: object) -> None:
    """In Qt's JavaScript engine, with a page's objects stood for by stubs."""
    del qapp  # which the engine needs
    qml = pytest.importorskip("PySide6.QtQml")
    values = attention(6)
    values[3, :3] = np.array([0.1, 1e-12, 16777216], dtype=np.float32)
    made = page(6, matrices=iter([values]))
    _text, reader = read(made)
    blob = next(script for attributes, script in reader.scripts if attributes.get("class") == "values")
    data = next(script for attributes, script in reader.scripts if attributes.get("id") == "data")
    engine = qml.QJSEngine()

    def run(code: str) -> Any:
        result = engine.evaluate(code)
        assert not result.isError(), f"{result.toString()} at line {result.property('lineNumber').toInt()}"
        return result.toVariant()

    run(_BROWSER)
    run(f"var blobs_ = [{{textContent: {json.dumps(blob)}}}]; element('data').textContent = {json.dumps(data)};")
    run(reader.scripts[-1][1].replace('"use strict";', ""))
    colours = np.array([run(f"images[0].data[{index}]") for index in range(6 * 6 * 4)], dtype=np.uint8)
    expected = np.array(json.loads(data)["lut"], dtype=np.uint8).reshape(256, 4)[made.levels.pixels(values)]
    assert np.array_equal(colours.reshape(6, 6, 4), expected)
    for row in range(6):
        for col in range(6):
            run(f"show({row}, {col})")
            words = run("made.readout.textContent")
            shown = words.rpartition(" ")[2]
            if np.isnan(values[row, col]):
                assert shown == "masked"
            else:
                assert np.float32(shown) == values[row, col]
                assert len(shown.replace("-", "").replace(".", "")) <= 12
    assert words.startswith("query ·the (5) → key ·the (5)   weight ")
    run("listeners.mapkeydown({key: 'ArrowUp', preventDefault: function () {}})")
    assert run("made.readout.textContent").startswith("query ·cross (4) → key ·the (5)   weight masked")
    run("listeners.mapmousemove({clientX: 151, clientY: 111})")
    assert run("made.readout.textContent").startswith("query The (0) → key The (0)")
