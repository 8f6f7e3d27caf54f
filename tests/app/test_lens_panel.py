"""The lens with the engine's own numbers, driven by mouse and keys."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import QPointF, Qt
from PySide6.QtGui import QFontMetricsF
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QToolButton
from pytestqt.qtbot import QtBot

from app.export.panel_files import Table
from app.panels.lens import LensPanel
from app.theme import Theme
from app.widgets.lens_sizes import TIGHT_WIDTH
from app.widgets.line_plot import Line, LinePlot
from app.widgets.readout import parts_width
from app.widgets.ticks import figure
from model.loading import LoadedModel
from model.protocol.framing import Arrays
from model.protocol.lens_requests import GetLens, GetLensPath, GetLensTerms, LensPart
from model.views.lens import token_path, token_terms, top_of
from tests.app.model_bench import ModelBench
from tests.model.family_cases import CASES
from tests.model.reference import decoder_for, reference
from tests.model.tiny import loaded, made, random_ids

Key, LEFT = Qt.Key, Qt.MouseButton.LeftButton


def shown(
    qtbot: QtBot,
    folder: Path,
    model: LoadedModel | None = None,
    size: tuple[int, int] = (1100, 300),
    n: int = 12,
) -> tuple[LensPanel, ModelBench]:
    bench = ModelBench(folder, Theme("dark"), model or made())
    panel = LensPanel(bench.ctx)
    qtbot.addWidget(panel)
    panel.resize(*size)
    panel.show()
    qtbot.waitExposed(panel)
    bench.run(random_ids(n), 3)
    bench.selection.set_cell(8, 1)
    settled(qtbot, panel, bench)
    return panel, bench


def settled(qtbot: QtBot, panel: LensPanel, bench: ModelBench) -> None:
    qtbot.waitUntil(lambda: not bench.engine.waiting and panel.settled and not panel.grid.missing(), timeout=4000)


def click(panel: LensPanel, depth: int, position: int) -> None:
    at = panel.grid.cell_rect(depth, position).center().toPoint()
    QTest.mouseClick(panel.grid.viewport(), LEFT, pos=at)


def test_the_overview_is_there_in_a_panel_made_anew(qtbot: QtBot, tmp_path: Path) -> None:
    panel, bench = shown(qtbot, tmp_path)
    QTest.mouseClick(panel.look._segments["overview"], LEFT)
    assert panel.grid.overview
    again = LensPanel(bench.ctx)
    qtbot.addWidget(again)
    assert again.grid.overview
    assert again.look.key() == "overview"


@pytest.mark.parametrize("name", [None, "gpt2", "bloom, residual from the norm", "mixtral", "gemma2"])
def test_cells_in_sight_are_the_engine_s(qtbot: QtBot, tmp_path: Path, name: str | None) -> None:
    model = None
    if name is not None:
        case = CASES[name]
        judge = reference(case.reference, gain=case.gain, attention=case.attention, **case.fields)
        model = loaded(decoder_for(judge.config, judge.tensors))
    panel, bench = shown(qtbot, tmp_path, model)
    run = bench.engine.context.run
    assert run is not None
    (low, high), positions = panel.grid.in_sight()
    for depth in range(low, high):
        told = top_of(run, depth, range(*positions))
        assert panel.grid.ids[depth, slice(*positions)].tolist() == [token for token, _, _ in told]
        np.testing.assert_allclose(panel.grid.p[depth, slice(*positions)], [p for _, p, _ in told], rtol=1e-6)
    click(panel, high - 1, 3)
    settled(qtbot, panel, bench)
    QTest.mouseClick(panel.token.tabs._segments["terms"], LEFT)
    qtbot.waitUntil(lambda: panel.token.terms is not None)
    assert panel.token.terms is not None
    reply, arrays = panel.token.terms
    wanted = token_terms(run, 3, int(panel.grid.ids[high - 1, 3]))
    assert reply.logit == wanted.logit
    total = reply.embed + arrays["attn"].sum() + arrays["mlp"].sum() + reply.bias + reply.rest
    assert total == pytest.approx(reply.logit, abs=1e-9)


def test_a_click_follows_the_cell_s_token(qtbot: QtBot, tmp_path: Path) -> None:
    panel, bench = shown(qtbot, tmp_path)
    run = bench.engine.context.run
    assert run is not None
    click(panel, 2, 5)
    assert (bench.selection.query, bench.selection.layer) == (5, 1)
    settled(qtbot, panel, bench)
    token = int(panel.grid.ids[2, 5])
    qtbot.waitUntil(lambda: panel.token.path is not None and panel.token.path[0].token_id == token)
    assert panel.token.path is not None
    wanted = token_path(run, 5, token)
    np.testing.assert_array_equal(panel.token.path[1]["rank"], wanted.rank)
    rows = panel.token.path_table.rows
    assert [row[1].text for row in rows] == [f"{rank + 1:,}" for rank in wanted.rank[::-1]]


def test_only_what_is_in_sight_is_asked_and_scrolling_asks_the_rest(qtbot: QtBot, tmp_path: Path) -> None:
    panel, bench = shown(qtbot, tmp_path, n=120)
    asked = [m for m in bench.engine.asked_of(GetLens) if isinstance(m, GetLens)]
    assert all(message.positions[1] < 40 for message in asked)
    assert (panel.grid.ids[:, 60] < 0).all()
    bar = panel.grid.horizontalScrollBar()
    bar.setValue(bar.maximum())
    settled(qtbot, panel, bench)
    assert (panel.grid.ids[-1, 115:] >= 0).all()
    count = len(bench.engine.asked_of(GetLens))
    bar.setValue(0)
    settled(qtbot, panel, bench)
    assert len(bench.engine.asked_of(GetLens)) == count


def test_a_step_keeps_what_is_known(qtbot: QtBot, tmp_path: Path) -> None:
    panel, bench = shown(qtbot, tmp_path)
    before = panel.grid.ids.copy()
    bench.step()
    settled(qtbot, panel, bench)
    assert panel.grid.n_positions == 16
    seen = before >= 0
    assert np.array_equal(panel.grid.ids[:, :15][seen], before[seen])
    bench.run(random_ids(12, seed=5))
    assert panel._state != bench.session.run_id
    qtbot.waitUntil(lambda: panel.grid.n_positions == 12)
    settled(qtbot, panel, bench)


def test_keys_move_the_cell_and_the_overview_shows_every_layer(qtbot: QtBot, tmp_path: Path) -> None:
    panel, bench = shown(qtbot, tmp_path, made(n_layers=40), size=(900, 260))
    panel.grid.setFocus()
    panel.grid.set_chosen((40, 8))
    QTest.keyClick(panel.grid, Key.Key_Down)
    QTest.keyClick(panel.grid, Key.Key_Left)
    assert panel.grid.chosen == (39, 7) and bench.selection.query == 7 and bench.selection.layer == 38
    assert panel.grid.in_sight()[0][0] > 0
    QTest.mouseClick(panel.look._segments["overview"], LEFT)
    assert panel.grid.in_sight()[0] == (0, 41)
    settled(qtbot, panel, bench)
    assert (panel.grid.ids >= 0).all()


def test_hover_is_linked_both_ways(qtbot: QtBot, tmp_path: Path) -> None:
    panel, bench = shown(qtbot, tmp_path)
    at = panel.grid.viewport().mapTo(panel, panel.grid.cell_rect(3, 4).center().toPoint())
    QTest.mouseMove(panel.windowHandle(), at)
    qtbot.waitUntil(lambda: bench.selection.hover_token == 4)
    assert panel.grid.thing_at(QPointF(panel.grid.cell_rect(3, 4).center())) == (3, 4)
    assert panel.grid.word(3, 4) in panel.readout.text()
    bench.selection.set_hover(token=6)
    qtbot.waitUntil(lambda: panel.grid.linked == 6)


def test_tables_hold_every_number(qtbot: QtBot, tmp_path: Path) -> None:
    panel, _ = shown(qtbot, tmp_path)
    QTest.mouseClick(panel.token.tabs._segments["terms"], LEFT)
    qtbot.waitUntil(lambda: panel.token.terms is not None)
    found: list[Table] = []
    panel.tables(found.extend)
    assert len(found) == 3
    cells = {(int(line[0]), int(line[2])): line for line in found[0][1][1:]}
    assert int(cells[3, 8][4]) == panel.grid.ids[3, 8]
    assert np.float32(cells[3, 8][6]) == panel.grid.p[3, 8]
    adds = {name: float(value) for name, value in found[2][1][1:]}
    logit = adds.pop("logit")
    assert sum(adds.values()) == pytest.approx(logit, abs=1e-9)


def test_a_hidden_panel_asks_nothing(qtbot: QtBot, tmp_path: Path) -> None:
    panel, bench = shown(qtbot, tmp_path)
    panel.hide()
    before = len(bench.engine.asked)
    for position in range(10):
        bench.selection.set_query(position)
    bench.step()
    QTest.qWait(50)
    assert len(bench.engine.asked) == before
    panel.show()
    settled(qtbot, panel, bench)
    assert len(bench.engine.asked_of(GetLensPath)) <= 3
    assert not bench.engine.asked_of(GetLensTerms)


def test_the_colours_and_the_stripes_have_a_key_in_both_modes(qtbot: QtBot, tmp_path: Path) -> None:
    panel, bench = shown(qtbot, tmp_path)
    assert panel.key.isVisible() and panel.key.stripes and panel.key.bar.values == (0.0, 0.5, 1.0)
    assert "linear" in panel.key.bar.scale
    picture = panel.key.grab().toImage()
    lines = {picture.pixelColor(x, picture.height() // 2).rgb() for x in range(picture.width())}
    assert len(lines & set(panel.grid.table[1:].tolist())) > 60  # the bar is 96 px wide
    QTest.mouseClick(panel.look._segments["overview"], LEFT)
    settled(qtbot, panel, bench)
    panel.resize(1100, 190)
    qtbot.waitUntil(lambda: not panel.grid.with_words)
    assert panel.key.isVisible() and not panel.key.stripes
    QTest.mouseClick(panel.table_button, LEFT)
    assert not panel.key.isVisible()


@pytest.mark.parametrize(("width", "size"), [(330, 1.0), (460, 1.0), (690, 1.5), (1100, 1.0)])
def test_the_readout_keeps_its_figures_where_words_have_no_room(
    qtbot: QtBot, tmp_path: Path, width: int, size: float
) -> None:
    panel, bench = shown(qtbot, tmp_path, size=(width, 560))
    panel.ctx.theme.set_text_scale(size)
    click(panel, 2, panel.grid.in_sight()[1][0])
    settled(qtbot, panel, bench)
    depth, position = panel.grid.chosen or (0, 0)
    said = panel.readout.shown()
    figures = [text for text, voice in said if voice == "strong"]
    assert figure(float(panel.grid.p[depth, position]), 6) in figures
    assert figure(float(panel.grid.entropy[depth, position]), 6) in figures
    assert parts_width(panel.ctx.theme, said) <= panel.readout.width()


def test_the_shortest_readout_keeps_both_tokens_and_the_probability(qtbot: QtBot, tmp_path: Path) -> None:
    """At 200 % in the smallest window it said "→ ·was", and its figures were cut."""
    panel, bench = shown(qtbot, tmp_path, size=(310, 560))
    panel.ctx.theme.set_text_scale(2.0)
    click(panel, 2, panel.grid.in_sight()[1][0])
    settled(qtbot, panel, bench)
    depth, position = panel.grid.chosen or (0, 0)
    said = panel.readout.shown()
    strong = [text for text, voice in said if voice == "strong"]
    piece = panel.ctx.session.path_tokens()[position].piece
    assert strong[0].rstrip("…") and piece.startswith(strong[0].rstrip("…"))
    assert panel.grid.word(depth, position).startswith(strong[1].rstrip("…"))
    assert strong[2] == figure(float(panel.grid.p[depth, position]), 3)
    assert parts_width(panel.ctx.theme, said) <= panel.readout.width()


def test_the_chosen_cell_comes_into_sight(qtbot: QtBot, tmp_path: Path) -> None:
    panel, bench = shown(qtbot, tmp_path, n=60)
    bench.selection.set_query(50)
    settled(qtbot, panel, bench)
    low, high = panel.grid.in_sight()[1]
    assert low <= 50 < high and panel.grid.word(3, 50) and "…" not in panel.readout.text()


def test_ticks_of_a_low_plot_do_not_touch(qtbot: QtBot, tmp_path: Path) -> None:
    panel, _ = shown(qtbot, tmp_path, size=(680, 400))
    plot = LinePlot(panel.ctx.theme, "", log=True)
    qtbot.addWidget(plot)
    plot.show()
    ranks = np.geomspace(1, 40_000, 31).astype(np.float32)
    plot.set_lines([Line(name="rank", x=np.arange(31, dtype=np.float32), y=ranks)])
    counts = []
    for height in (75, 110, 400):
        plot.resize(300, height)
        frame = plot.frame()
        places = sorted(float(frame.py(np.array([value]))[0]) for value in frame.ticks)
        assert np.diff(places).min() >= QFontMetricsF(panel.ctx.theme.font("hint")).height() - 1
        counts.append(len(places))
    assert counts == sorted(counts) and counts[-1] > counts[0]


@pytest.mark.parametrize("scale", [1.0, 1.25])
def test_cells_are_seen_whole_at_any_size(qtbot: QtBot, tmp_path: Path, scale: float) -> None:
    panel, bench = shown(qtbot, tmp_path, made(n_layers=20), n=60)
    panel.ctx.theme.set_text_scale(scale)
    grid = panel.grid
    for width, height in ((1380, 209), (1010, 226), (1380, 240), (760, 430)):
        panel.resize(width, height)
        settled(qtbot, panel, bench)
        for value in (0, 1, grid.horizontalScrollBar().maximum()):
            grid.horizontalScrollBar().setValue(value)
            grid.verticalScrollBar().setValue(min(value, grid.verticalScrollBar().maximum()))
            (low, high), (left, right) = grid.in_sight()
            first, last = grid.cell_rect(high - 1, left), grid.cell_rect(low, right - 1)
            assert (first.left(), first.top()) == (grid.side_room, grid.head_room)
            assert last.right() <= grid.viewport().width() and last.bottom() <= grid.viewport().height()
            assert last.right() > grid.viewport().width() - (right - left) - 1  # only what whole px leave is left over
            assert first.width() >= panel.ctx.theme.px(TIGHT_WIDTH)
        assert right == 63 and grid.thing_at(last.center()) == (low, 62)


def test_where_there_is_room_the_key_stands_beside_the_readout(qtbot: QtBot, tmp_path: Path) -> None:
    panel, bench = shown(qtbot, tmp_path, size=(1700, 300))
    settled(qtbot, panel, bench)
    key, button = panel.key, panel.table_button
    assert abs(key.geometry().center().y() - button.geometry().center().y()) <= 2
    assert panel.readout.geometry().right() < key.x() and key.geometry().right() < button.x()
    assert key.width() == key.needed_width()
    panel.resize(900, 209)
    qtbot.waitUntil(lambda: panel.key.y() > panel.grid.y())


def test_a_token_that_the_box_names_is_followed_everywhere(qtbot: QtBot, tmp_path: Path) -> None:
    """Steps and other positions keep it, as the box keeps its name; an emptied box or a clicked cell does not."""
    panel, bench = shown(qtbot, tmp_path)
    run, view = bench.engine.context.run, panel.token
    assert run is not None

    def follows(token: int, position: int) -> None:
        settled(qtbot, panel, bench)
        assert view.path is not None and view.terms is not None
        assert (view.path[0].token_id, view.terms[0].token_id) == (token, token)
        np.testing.assert_array_equal(view.path[1]["rank"], token_path(run, position, token).rank)
        assert view.terms[0].logit == token_terms(run, position, token).logit

    view.tabs.set_key("terms")
    QTest.keyClicks(view.box, "7")
    QTest.keyClick(view.box, Key.Key_Return)
    settled(qtbot, panel, bench)
    follows(7, 8)
    bench.selection.set_query(3)
    follows(7, 3)
    bench.step()
    follows(7, 3)
    likeliest = int(panel.grid.ids[panel.grid.n_depths - 1, 3])
    assert likeliest != 7
    view.box.clear()
    follows(likeliest, 3)
    QTest.keyClicks(view.box, "7")
    QTest.keyClick(view.box, Key.Key_Return)
    settled(qtbot, panel, bench)
    click(panel, 2, 5)
    assert not view.box.text()
    follows(int(panel.grid.ids[2, 5]), 5)


def test_what_no_token_contains_is_said_at_the_box(qtbot: QtBot, tmp_path: Path) -> None:
    panel, bench = shown(qtbot, tmp_path)
    view = panel.token
    before = view.words.text()
    QTest.keyClicks(view.box, "zzzqqx")
    QTest.keyClick(view.box, Key.Key_Return)
    settled(qtbot, panel, bench)
    assert view.box.property("bad")
    sentence, voice = view.words.shown()[0]
    assert (sentence, voice) == ("No token contains ‹zzzqqx›", "red")
    QTest.keyClick(view.box, Key.Key_Backspace)
    assert not view.box.property("bad") and view.words.text() == before
    clear = view.box.findChild(QToolButton)
    assert clear is not None
    assert abs(clear.geometry().center().y() - view.box.rect().center().y()) <= 1, "in the middle of its field"


def test_an_answer_that_comes_when_the_path_is_shorter_already_is_taken_in(qtbot: QtBot, tmp_path: Path) -> None:
    panel, bench = shown(qtbot, tmp_path)
    panel.grid.set_chosen((2, panel.grid.n_positions - 1))
    take, columns = panel._taker((0, panel.grid.n_positions)), panel.grid.n_positions
    run = bench.engine.context.run
    assert run is not None
    run.seek(run.path[-2])
    bench.session.book.take(run.state())  # told to the panel only after this
    zeros = np.zeros(columns, dtype=np.int64)
    arrays: Arrays = {"ids": zeros, "p": np.zeros(columns, np.float32), "entropy": np.zeros(columns, np.float32)}
    take(LensPart(depth=2, pieces=("x",) * columns), arrays)
    assert not panel.readout.text()


def test_another_prompt_s_token_is_cleared_until_its_own_numbers_are_there(qtbot: QtBot, tmp_path: Path) -> None:
    """The chart of the previous prompt's token stood there for a second and a half as if it were this one's."""
    panel, bench = shown(qtbot, tmp_path)
    token = panel.token
    QTest.mouseClick(token.tabs._segments["terms"], LEFT)
    qtbot.waitUntil(lambda: token.path is not None and token.terms is not None and panel.settled)
    bench.step()
    qtbot.waitUntil(lambda: panel.grid.n_positions == len(bench.session.path_tokens()) and panel.settled)
    assert token.path is not None and token.terms is not None  # a step leaves the text before it as it was
    bench.engine.held = True
    bench.run(random_ids(20, seed=5))
    qtbot.waitUntil(lambda: panel.grid.n_positions == 20)
    assert token.path is None and token.terms is None and not token.tables()
    assert not token.plot.lines and not token.path_table.rows and not token.terms_table.rows
    assert token.words.text() == "computing …"
    bench.engine.held = False
    bench.engine.release()
    qtbot.waitUntil(lambda: token.path is not None and token.terms is not None)
    assert token.path is not None and token.words.text().startswith(token.path[0].piece)
    assert token.plot.lines and token.path_table.rows and token.terms_table.rows
