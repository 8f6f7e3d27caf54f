"""What is in sight of a panel that is scrolled is whole, in large text too; the rest is reached by scrolling."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QFontMetrics, QFontMetricsF
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLabel, QScrollArea, QTableView, QVBoxLayout, QWidget
from pytestqt.qtbot import QtBot

from app.frame.whole_edge import WholeEdge
from app.main import Application
from app.panels.prompt import PromptPanel
from app.panels.sampling import SamplingPanel
from app.theme import Theme
from app.widgets.check_box import CheckBox
from app.widgets.mapping import Linear
from app.widgets.menu_button import MenuButton
from app.widgets.slider_row import SliderRow
from app.widgets.stage_tiles import StageTiles
from tests.app.shell import TIMEOUT, close_window, window_with
from tests.model.checkpoint import files

ROW = 40


@pytest.fixture
def live(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, qtbot: QtBot) -> Iterator[Application]:
    made = window_with(tmp_path / "config", monkeypatch, qtbot, None, str(files.folder(tmp_path / "tiny")))
    assert made.ctx is not None
    session = made.ctx.session
    qtbot.waitUntil(lambda: session.run is not None and not session.busy, timeout=3 * TIMEOUT)
    yield made
    close_window(made)


def scrolled(qtbot: QtBot, height: int, parts: list[QWidget]) -> tuple[QScrollArea, QWidget, WholeEdge]:
    area, panel = QScrollArea(), QWidget()
    qtbot.addWidget(area)
    column = QVBoxLayout(panel)
    column.setContentsMargins(0, 0, 0, 0)
    column.setSpacing(0)
    for part in parts:
        part.setFixedHeight(ROW)
        column.addWidget(part)
    area.setWidget(panel)
    edge = WholeEdge(area, panel, Theme("dark"))
    panel.resize(200, ROW * len(parts))
    area.resize(220, height)
    area.show()
    qtbot.waitExposed(area)
    edge.look_again()
    qtbot.wait(30)
    return area, panel, edge


def test_what_would_be_sliced_is_covered_and_a_click_brings_it_up(qtbot: QtBot) -> None:
    parts: list[QWidget] = [QWidget() for _ in range(12)]
    area, panel, edge = scrolled(qtbot, 5 * ROW + 15, parts)
    view = area.viewport()
    assert edge.isVisible() and edge.y() == 5 * ROW and edge.geometry().bottom() == view.height() - 1
    QTest.mouseClick(edge, Qt.MouseButton.LeftButton)
    assert parts[5].mapTo(view, QPoint()).y() < ROW
    area.verticalScrollBar().setValue(area.verticalScrollBar().maximum())
    qtbot.waitUntil(lambda: not edge.isVisible())
    assert panel.mapTo(view, QPoint(0, panel.height())).y() <= view.height()


def test_a_picture_of_which_much_is_in_sight_stays(qtbot: QtBot) -> None:
    """The map of the neurons was covered whole at 1000 × 700: 200 px of blank in its place."""
    picture = QWidget()
    area, panel, edge = scrolled(qtbot, 200, [QWidget(), picture, QWidget()])
    picture.setFixedHeight(300)
    panel.resize(200, 2 * ROW + 300)
    for seen, covered in ((150, False), (60, False), (20, True)):
        area.resize(220, ROW + seen)
        edge.look_again()
        qtbot.wait(30)
        assert edge.isVisible() is covered, seen


def test_lines_of_another_face_are_whole(qtbot: QtBot) -> None:
    """Chinese lines are higher than the font says, where its characters are of another one."""
    words = QLabel("\n".join(["层的残差"] * 6))
    words.setAlignment(Qt.AlignmentFlag.AlignTop)
    line = words.sizeHint().height() / 6
    area, panel, edge = scrolled(qtbot, 200, [QWidget() for _ in range(4)] + [words, QWidget()])
    words.setFixedHeight(words.sizeHint().height())
    panel.resize(200, 5 * ROW + words.height())
    for shown in (2, 4):
        area.resize(220, round(4 * ROW + shown * line + 6))
        edge.look_again()
        qtbot.waitUntil(lambda shown=shown: abs(edge.y() - (4 * ROW + shown * line)) <= 2)  # type: ignore[misc]


def test_a_bar_that_comes_later_moves_the_cover(qtbot: QtBot) -> None:
    area, _panel, edge = scrolled(qtbot, 130, [QWidget() for _ in range(6)])
    assert edge.isVisible() and edge.y() == 3 * ROW
    area.setViewportMargins(0, 0, 0, 30)  # nothing is scrolled and no size of the panel's changes
    qtbot.waitUntil(lambda: edge.y() == 2 * ROW)


def test_lines_of_a_text_are_whole(qtbot: QtBot) -> None:
    words = QLabel("one\ntwo\nthree\nfour\nfive\nsix")
    area, panel, edge = scrolled(qtbot, 200, [QWidget() for _ in range(4)] + [words, QWidget()])
    line = QFontMetrics(words.font()).lineSpacing()
    words.setFixedHeight(6 * line)
    panel.resize(200, 5 * ROW + 6 * line)
    area.resize(220, 4 * ROW + 2 * line + 6)
    edge.look_again()
    qtbot.waitUntil(lambda: edge.isVisible() and abs(edge.y() - (4 * ROW + 2 * line)) <= 2)


def test_panels_in_large_text_show_whole_rows(live: Application, qtbot: QtBot) -> None:
    assert live.ctx is not None
    live.settings.update(text_scale=2.0)
    live.window.resize(1400, 965)  # a little less, and two panels of a column are tabs
    qtbot.wait(700)
    for name in ("prompt", "sampling", "timeline"):
        if name == "timeline":  # which just has its height: the prompt takes of it
            above, below = (live.window.docks[each] for each in ("prompt", name))
            heights = [above.height() + 140, below.height() - 140]
            live.window.area.resizeDocks([above, below], heights, Qt.Orientation.Vertical)
            qtbot.wait(300)
        dock = live.window.docks[name]
        scroller, panel = dock.scroller, dock.panel
        view = scroller.viewport()
        assert panel.height() > view.height(), name  # it is scrolled: else there is nothing to see to
        for value in (0, scroller.verticalScrollBar().maximum()):
            scroller.verticalScrollBar().setValue(value)
            qtbot.wait(60)
            bottom = scroller.edge.y() if scroller.edge.isVisible() else view.height()
            for label in panel.findChildren(QLabel):
                top = label.mapTo(view, QPoint()).y()
                if label.isVisible() and label.text() and top < bottom < top + label.height():
                    assert (bottom - top) % QFontMetrics(label.font()).lineSpacing() <= 2, (name, label.text())
            for table in panel.findChildren(QTableView):
                inside = table.viewport().mapTo(view, QPoint()).y()
                rows = [table.rowViewportPosition(row) + inside for row in range(table.model().rowCount())]
                seen = min(bottom, inside + table.viewport().height())
                assert not any(top + 3 < seen < top + table.rowHeight(0) - 1 for top in rows if top >= inside), name
    prompt = live.window.docks["prompt"].panel
    assert isinstance(prompt, PromptPanel)
    options = prompt._options_row
    assert all(options.rect().contains(part.geometry()) for part in options.findChildren(CheckBox))
    assert options.rect().contains(options.findChildren(MenuButton)[0].geometry())
    assert prompt.rect().contains(options.geometry())
    sampling = live.window.docks["sampling"].panel
    assert isinstance(sampling, SamplingPanel)
    for row in sampling.rows.values():
        assert row._slider.width() >= 150 and row._slider.y() >= row._label.geometry().bottom()
    search = sampling.search
    words = search.fontMetrics().horizontalAdvance(search.placeholderText())
    assert words + 8 <= search.width()


def test_a_slider_without_room_has_a_line_of_its_own(qtbot: QtBot) -> None:
    theme = Theme("dark", 2.0)
    row = SliderRow(theme, "temperature", Linear(low=0, high=5, step=0.01, default=0.8), label_width=78)
    around = QWidget()  # a window would not be narrower than its layout likes
    qtbot.addWidget(around)
    row.setParent(around)
    around.resize(640, 120)
    around.show()
    heights = []
    for width in (600, 290, 600):
        row.resize(width, row.height())
        qtbot.wait(30)
        heights.append(row.height())
        assert row._slider.width() >= theme.px(24) and row.rect().contains(row._slider.geometry())
        assert not row._slider.geometry().intersects(row._box.geometry())
    assert heights == [theme.px(26), theme.px(24 + 22), theme.px(26)]


def test_stages_in_a_list_have_whole_names(qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    elided: list[str] = []

    class Metrics(QFontMetricsF):
        def elidedText(self, text: str, mode: Qt.TextElideMode, width: float, flags: int | None = 0) -> str:
            shown = str(super().elidedText(text, mode, width, flags))
            elided.append(shown)
            return shown

    monkeypatch.setattr("app.widgets.stage_tiles.QFontMetricsF", Metrics)
    tiles = StageTiles(Theme("dark", 2.0))
    qtbot.addWidget(tiles)
    tiles.set_stages([("vocabulary", 49152, 1.0), ("top-k", 40, 0.88), ("top-p", 23, 0.797)])
    tiles.resize(300, tiles.heightForWidth(300))
    tiles.grab()
    assert elided == ["vocabulary", "top-k", "top-p"]
