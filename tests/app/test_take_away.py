"""What every panel gives away: its picture, its values, the line that makes it, its files; the same numbers in each."""

from __future__ import annotations

import csv
import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication, QImage
from PySide6.QtWidgets import QDockWidget, QMainWindow, QWidget
from pytestqt.qtbot import QtBot
from safetensors import safe_open

from app.export.command_line import what_options
from app.export.dialog import ExportDialog
from app.export.exporter import KINDS, Exporter, formats_of
from app.export.panel_files import as_npz, copy_picture
from app.export.run_commands import copy_command, copy_values
from app.export.subjects import PANEL, kind_of
from app.panels import PANELS
from app.panels.base import Panel
from app.theme import Theme
from model import __main__ as program
from model.export.making import make_files
from model.protocol.attention_requests import HeadView
from model.protocol.export_requests import ExportSheet, FileRequest
from model.protocol.figure_requests import ExportLens, ExportText
from model.views.attention_exact import exact
from model.views.selection import chosen
from tests.app.model_bench import ModelBench
from tests.app.saving import save
from tests.model.tiny import llama

PROMPT, STEPS = [5, 9, 1, 30, 9, 1, 30, 2], 4
OWN = {
    "prompt": PANEL, "timeline": PANEL, "attention": "attention", "sampling": "sampler", "kv": "kv-growth",
    "rope": "rope", "lens": "lens", "feed_forward": PANEL, "block_walk": PANEL, "model": PANEL,
}  # fmt: skip
LINES = {
    "prompt": ["--what", "text", "--by", "reads"], "timeline": ["--what", "text", "--by", "surprisal"],
    "attention": ["--what", "attention", "--layer", "1"], "sampling": ["--what", "sampler"],
    "kv": ["--what", "kv-growth"], "rope": ["--what", "rope", "--layer", "1"], "lens": ["--what", "lens"],
    "feed_forward": ["--what", "activation", "layers.1.mlp.*"], "block_walk": ["--what", "activation", "layers.1.*"],
    "model": ["doctor"],
}  # fmt: skip


@pytest.fixture
def bench(qtbot: QtBot, tmp_path: Path) -> Iterator[ModelBench]:
    del qtbot
    made = ModelBench(tmp_path, Theme("dark"), llama()[1])
    made.run(PROMPT, STEPS)
    made.session.prompt.take("text", "text", made.session.prompt_tokens)
    made.session.sampling.look_at(made.session.run_id or 0, made.session.current_node)
    made.selection.set_layer_head(1, 2)
    made.selection.set_query(9)
    made.selection.set_key(4)
    yield made
    toast = Exporter.shared(made.ctx).toast
    if toast is not None:
        toast.close()


@pytest.fixture(params=PANELS, ids=lambda kind: kind.panel_id)
def panel(request: pytest.FixtureRequest, qtbot: QtBot, bench: ModelBench) -> Panel:
    return shown(qtbot, bench, request.param)


def shown(qtbot: QtBot, bench: ModelBench, kind: type[Panel]) -> Panel:
    window = QWidget()
    bench.kept.append(window)
    qtbot.addWidget(window)
    made = kind(bench.ctx, window)
    made.resize(900, 600)
    window.resize(900, 600)
    window.show()
    qtbot.waitExposed(window)
    settle(qtbot, bench, made)
    return made


def settle(qtbot: QtBot, bench: ModelBench, panel: Panel) -> None:
    for _ in range(3):
        qtbot.waitUntil(lambda: panel.settled and not bench.engine.waiting)
        qtbot.wait(40)


def copied(panel: Panel, qtbot: QtBot) -> str:
    clipboard = QGuiApplication.clipboard()
    clipboard.clear()
    copy_values(panel)
    qtbot.waitUntil(lambda: bool(clipboard.text()))
    return clipboard.text()


def test_every_panel_is_known_here() -> None:
    assert {kind.panel_id for kind in PANELS} == set(OWN) == set(LINES)


def test_picture_values_and_line_are_copied(qtbot: QtBot, bench: ModelBench, panel: Panel) -> None:
    clipboard = QGuiApplication.clipboard()
    clipboard.clear()
    copy_picture(panel)
    image = clipboard.image()
    whole = (2 * panel.width(), 2 * panel.height())
    assert (image.width(), image.height()) == whole or panel.panel_id == "model"
    assert len({image.pixel(x, y) for x in range(0, image.width(), 9) for y in range(0, image.height(), 9)}) > 3
    assert "\t" in copied(panel, qtbot)
    clipboard.clear()
    copy_command(panel)
    words = shlex.split(clipboard.text())
    assert words[0] == "decoderscope"
    at = words.index(LINES[panel.panel_id][0])
    assert words[at : at + len(LINES[panel.panel_id])] == LINES[panel.panel_id]
    del bench


def test_csv_npz_and_json_hold_the_same_cells(qtbot: QtBot, panel: Panel, tmp_path: Path) -> None:
    document: dict[str, list[list[str]]] = json.loads(save(qtbot, panel, tmp_path / "x.json").read_text())
    assert ["panel", panel.panel_id] in document["about"]
    assert sum(len(lines) for lines in document.values()) > len(document["about"])
    with save(qtbot, panel, tmp_path / "x.csv").open(newline="", encoding="utf-8") as file:
        lines = list(csv.reader(file))
    for name, table in document.items():
        start = lines.index([f"# {name}"]) + 1
        assert [plainly(line) for line in lines[start : start + len(table)]] == [plainly(line) for line in table]
    with np.load(save(qtbot, panel, tmp_path / "x.npz"), allow_pickle=False) as arrays:
        for name, table in document.items():
            cells = arrays[name.replace("/", "∕")]
            assert [row[: len(line)] for row, line in zip(cells.tolist(), table, strict=True)] == table
        with safe_open(save(qtbot, panel, tmp_path / "x.safetensors"), framework="np") as tensors:
            texts = tensors.metadata()
            assert {name: json.loads(text) for name, text in texts.items()} == document
            for name in document:
                numbers = arrays[f"{name.replace('/', '∕')}.numbers"]
                assert np.array_equal(tensors.get_tensor(f"{name}.numbers"), numbers, equal_nan=True)
    with Image.open(save(qtbot, panel, tmp_path / "x.png")) as picture:
        whole = (2 * panel.width(), 2 * panel.height())
        assert picture.size == whole or (panel.panel_id == "model" and picture.size >= whole)


def plainly(line: list[str]) -> list[str]:
    return [cell.removeprefix("'") for cell in line]


def test_the_dialog_opens_on_what_the_panel_shows(
    qtbot: QtBot, bench: ModelBench, panel: Panel, tmp_path: Path
) -> None:
    assert panel.panel_id == "attention" or panel.exports
    assert kind_of(panel) == OWN[panel.panel_id]
    panel.export()
    dialog = next(w for w in panel.window().findChildren(ExportDialog))
    qtbot.waitExposed(dialog)
    assert dialog.kind_box.key() == OWN[panel.panel_id]
    qtbot.waitUntil(lambda: not dialog.preview.pixmap().isNull())
    dialog.folder_edit.setText(str(tmp_path / "out"))
    dialog.name_edit.setText("a b")
    for name in formats_of(OWN[panel.panel_id]):
        dialog.boxes[name].setChecked(True)
    dialog.dpi_box.setValue(50)
    with qtbot.waitSignal(Exporter.shared(bench.ctx).ended, timeout=20_000) as ended:
        dialog.export()
    assert {path.name for path in ended.args[0]} >= {f"a-b.{name}" for name in formats_of(OWN[panel.panel_id])}
    assert all(path.stat().st_size for path in ended.args[0])


@pytest.mark.parametrize("name", ["block_walk", "feed_forward", "rope", "model", "kv", "lens"])
def test_a_panel_behind_another_is_drawn_before_it_is_exported(qtbot: QtBot, bench: ModelBench, name: str) -> None:
    window = QMainWindow()
    qtbot.addWidget(window)
    panel = next(entry for entry in PANELS if entry.panel_id == name)(bench.ctx)
    behind, before = QDockWidget(window), QDockWidget(window)
    behind.setWidget(panel)
    before.setWidget(QWidget())
    for dock in (behind, before):
        window.addDockWidget(Qt.DockWidgetArea.RightDockWidgetArea, dock)
    window.tabifyDockWidget(behind, before)
    window.resize(900, 600)
    window.show()
    before.raise_()
    qtbot.waitExposed(window)
    qtbot.waitUntil(lambda: not panel.seen())
    panel.export()
    qtbot.waitUntil(lambda: bool(window.findChildren(ExportDialog)))
    assert panel.seen() and panel.settled
    tables: list[list[tuple[str, list[list[str]]]]] = []
    panel.tables(tables.append)
    qtbot.waitUntil(lambda: bool(tables))
    assert any(len(lines) > 2 for _, lines in tables[0])


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != PANEL])
def test_each_kind_writes_what_the_library_makes(qtbot: QtBot, bench: ModelBench, tmp_path: Path, kind: str) -> None:
    panel = shown(qtbot, bench, next(entry for entry in PANELS if entry.panel_id == "attention"))
    dialog = Exporter.shared(bench.ctx).open(panel)
    dialog.choose(kind)
    dialog.layers_edit.setText("1")
    dialog.heads_edit.setText("0,2-3")
    dialog.names_edit.setText("layers.*.attn.rot_k, logits")
    dialog.folder_edit.setText(str(tmp_path))
    dialog.name_edit.setText("made")
    dialog.dpi_box.setValue(50)
    for name in formats_of(kind):
        dialog.boxes[name].setChecked(True)
    bench.engine.asked.clear()
    with qtbot.waitSignal(Exporter.shared(bench.ctx).ended, timeout=20_000) as ended:
        dialog.export()
    message = next(entry for entry in bench.engine.asked if isinstance(entry, FileRequest))
    assert message.formats == formats_of(kind)
    if kind in {"sheet", "grid"}:
        assert (message.layers, message.heads) == ((1,), (0, 2, 3))  # type: ignore[attr-defined]
    run = bench.engine.context.run
    assert run is not None
    expected = {}
    for file in make_files(run, message):
        with file:
            expected[file.name] = file.read()
    assert {path.name: path.read_bytes() for path in ended.args[0]} == expected


def test_the_preview_is_the_file(qtbot: QtBot, bench: ModelBench, tmp_path: Path) -> None:
    """Dot for dot, where the file is asked for with as many."""
    panel = shown(qtbot, bench, next(entry for entry in PANELS if entry.panel_id == "lens"))
    dialog = Exporter.shared(bench.ctx).open(panel)
    qtbot.waitUntil(lambda: not dialog.preview.pixmap().isNull())
    image = dialog.preview.pixmap().toImage()
    [preview] = [entry for entry in bench.engine.asked if isinstance(entry, ExportLens)]
    dialog.dpi_box.setValue(preview.dpi)
    dialog.folder_edit.setText(str(tmp_path))
    with qtbot.waitSignal(Exporter.shared(bench.ctx).ended, timeout=20_000) as ended:
        dialog.export()
    made = next(QImage(str(path)) for path in ended.args[0] if path.suffix == ".png")
    assert made.convertToFormat(QImage.Format.Format_RGB32) == image.convertToFormat(QImage.Format.Format_RGB32)
    assert len({image.pixel(x, image.height() // 2) for x in range(image.width())}) > 5


def test_a_figure_too_large_is_refused_with_the_reason_and_nothing_is_written(
    qtbot: QtBot, bench: ModelBench, tmp_path: Path
) -> None:
    told: list[Any] = []
    bench.notify.trouble.connect(told.append)
    panel = shown(qtbot, bench, next(entry for entry in PANELS if entry.panel_id == "timeline"))
    dialog = Exporter.shared(bench.ctx).open(panel)
    dialog.choose("text")
    dialog.folder_edit.setText(str(tmp_path / "out"))
    dialog.width_box.setValue(60)
    dialog.dpi_box.setValue(1200)
    assert not dialog.export_button.isEnabled()
    assert "72,000" in dialog.note.text() and "lower resolution" in dialog.note.text()
    dialog.boxes["json"].setChecked(True)
    for name in ("png", "svg", "pdf"):
        dialog.boxes[name].setChecked(False)
    assert dialog.export_button.isEnabled()  # numbers have no size
    dialog.boxes["png"].setChecked(True)
    assert not dialog.export_button.isEnabled()
    with qtbot.waitSignal(Exporter.shared(bench.ctx).ended, timeout=20_000) as ended:  # asked in spite of that
        dialog.export()
    assert ended.args == [[]]
    assert "72,000" in told[0].message
    assert "lower resolution" in told[0].message
    assert not list((tmp_path / "out").iterdir())
    assert dialog.isVisible()
    dialog.reject()


def test_a_format_that_what_is_chosen_has_not_is_said(qtbot: QtBot, bench: ModelBench) -> None:
    panel = shown(qtbot, bench, next(entry for entry in PANELS if entry.panel_id == "timeline"))
    dialog = Exporter.shared(bench.ctx).open(panel)
    assert dialog.want().kind == PANEL
    assert dialog.boxes["csv"].isChecked()
    assert dialog.boxes["csv"].isVisible()
    assert "CSV" not in dialog.note.text()
    dialog.choose("text")
    assert "csv" not in dialog.want().formats
    assert "No CSV of this: see “Timeline" in dialog.note.text()
    qtbot.waitUntil(lambda: dialog.note.height() >= dialog.note.heightForWidth(dialog.note.width()))
    assert dialog.note.height() > 2 * dialog.note.fontMetrics().height() - 4
    dialog.choose(PANEL)
    assert "csv" in dialog.want().formats
    assert "CSV" not in dialog.note.text()
    dialog.reject()


@pytest.mark.parametrize("name", ["a: b/c", "🦙 注意力", "x" * 300, "con", ".hidden"])
def test_odd_names_are_made_safe_and_lists_are_checked(
    qtbot: QtBot, bench: ModelBench, tmp_path: Path, name: str
) -> None:
    panel = shown(qtbot, bench, next(entry for entry in PANELS if entry.panel_id == "model"))
    dialog = Exporter.shared(bench.ctx).open(panel)
    dialog.folder_edit.setText(str(tmp_path / "out"))
    dialog.name_edit.setText(name)
    dialog.choose("sheet")
    dialog.layers_edit.setText("0-9")
    assert "'9' is not a whole number from 0 to" in dialog.note.text()
    assert not dialog.export_button.isEnabled()
    dialog.choose(PANEL)
    for box in dialog.boxes.values():
        box.setChecked(True)
    with qtbot.waitSignal(Exporter.shared(bench.ctx).ended, timeout=20_000) as ended:
        dialog.export()
    paths = ended.args[0]
    assert len(paths) == 5 == len(list((tmp_path / "out").iterdir()))
    assert all(path.parent == tmp_path / "out" and len(path.name.encode()) < 250 for path in paths)


def test_hover_csv_and_npz_of_attention_are_equal(qtbot: QtBot, bench: ModelBench, tmp_path: Path) -> None:
    panel: Any = shown(qtbot, bench, next(entry for entry in PANELS if entry.panel_id == "attention"))
    run = bench.engine.context.run
    assert run is not None
    everything = (0, run.length)
    values = exact(run, chosen(run, HeadView(layer=1, head=2)), everything, everything)
    tables = json.loads(save(qtbot, panel, tmp_path / "x.json").read_text())
    matrix = next(lines for name, lines in tables.items() if name.startswith("matrix in sight"))
    found = np.array([[float(cell or "nan") for cell in line[2:]] for line in matrix[1:]], np.float32)
    assert np.array_equal(found, values, equal_nan=True)
    row = next(lines for name, lines in tables.items() if name.startswith("query 9"))
    assert [np.float32(line[3]) for line in row[1:11]] == values[9][:10].tolist()
    assert panel.main.heat.tiles[-1].values[9, 4] == values[9, 4]


def test_the_run_in_numbers(qtbot: QtBot, bench: ModelBench, tmp_path: Path) -> None:
    run, session = bench.engine.context.run, bench.session
    assert run is not None
    timeline = shown(qtbot, bench, next(entry for entry in PANELS if entry.panel_id == "timeline"))
    tables = json.loads(save(qtbot, timeline, tmp_path / "t.json").read_text())
    head, *steps = tables["steps"]
    assert [int(line[head.index("id")]) for line in steps] == [run.nodes[node].token_id for node in run.path]
    assert [float(line[head.index("logprob (nats)")]) for line in steps] == [
        run.nodes[node].logprob for node in run.path
    ]
    head, *tokens = tables["tokens of the run"]
    assert [int(line[head.index("id")]) for line in tokens] == list(run.ids)
    assert np.float32(tokens[-1][head.index("surprisal (nats)")]) == np.float32(-run.nodes[run.path[-1]].logprob)
    sampling = shown(qtbot, bench, next(entry for entry in PANELS if entry.panel_id == "sampling"))
    tables = json.loads(save(qtbot, sampling, tmp_path / "s.json").read_text())
    reply = session.distribution
    assert reply is not None
    assert [float(line[4]) for line in tables["candidates"][1:]] == [row.p_raw for row in reply.candidates]
    assert ["draw", repr(reply.draw)] in tables["the draw"]
    assert session.sampling.cdf is not None
    assert [float(line[1]) for line in tables["distribution function"][1:]] == session.sampling.cdf.tolist()
    assert session.sampling.cdf_tokens is not None
    assert [int(line[0]) for line in tables["distribution function"][1:]] == session.sampling.cdf_tokens.tolist()


def test_a_float32_comes_back_from_an_npz_of_tables(tmp_path: Path) -> None:
    values = np.random.default_rng(3).normal(size=(4, 3)).astype(np.float32)
    data = as_npz([("a/b", [["x", "y", "z"], *([str(value) for value in row] for row in values)]), ("empty", [])])
    (tmp_path / "a.npz").write_bytes(data)
    with np.load(tmp_path / "a.npz", allow_pickle=False) as arrays:
        assert np.array_equal(arrays["a∕b.numbers"][1:].astype(np.float32), values)
        assert np.isnan(arrays["a∕b.numbers"][0]).all()
        assert arrays["a∕b"][0].tolist() == ["x", "y", "z"]


def test_a_line_says_the_size_where_the_page_would_follow_what_is_on_it() -> None:
    """And the lens' layers as its rows are called."""
    assert what_options(ExportText())[-2:] == ["--size", "7x4"]
    assert what_options(ExportSheet(formats=("png",)))[-2:] == ["--size", "7x10"]
    assert "--size" not in what_options(ExportLens())
    lens = what_options(ExportLens(layers=(0, 1, 30)))
    assert lens[lens.index("--layer") + 1] == "embed,0,29"


def test_the_line_of_the_model_panel_tells_of_the_model(
    qtbot: QtBot, bench: ModelBench, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    del qtbot, bench
    from tests.model.checkpoint import files

    folder = files.folder(tmp_path / "tiny")
    capsys.readouterr()
    assert program.main(["doctor", "--model", str(folder), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["info"]["n_layers"] == 2
    assert told["card"]["parameters"] == told["info"]["parameters"]
