"""The heat map under a real mouse and keyboard: exact values, true cells on zoom, labels that never touch."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Literal

import numpy as np
import pytest
from numpy.typing import NDArray
from PySide6.QtCore import QEvent, QPoint, QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QImage, QKeyEvent, QPainter, QPolygonF, QWheelEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.theme import Theme
from app.widgets.cell_frame import draw_frame
from app.widgets.colour_bar import BarText, words_in
from app.widgets.heatmap import HeatMap
from app.widgets.heatmap_image import Tile
from app.widgets.heatmap_paint import axis_labels, bold_labels
from app.widgets.ticks import figure
from model.colormaps import Levels, lut

PIECES = ("The", "·animal", "·didn", "'t", "·internationalisation", "你好", "⏎", "<img>", "·w")
Floats = NDArray[np.float32]


@pytest.fixture
def theme(qapp: QApplication) -> Theme:
    del qapp
    return Theme("dark")


def causal(n: int, seed: int = 0) -> Floats:
    values = np.random.default_rng(seed).random((n, n), dtype=np.float32)
    values[np.triu_indices(n, 1)] = np.nan
    return values


def tile_of(values: Floats, *, exact: bool = True) -> Tile:
    pixels = Levels.spanning(0.0, 1.0).pixels(values)
    return Tile(pixels=pixels, rows=(0, len(values)), cols=(0, values.shape[1]), values=values if exact else None)


def made(
    qtbot: QtBot, theme: Theme, values: Floats, size: tuple[int, int] = (640, 560), *, exact: bool = True
) -> HeatMap:
    heat = HeatMap(theme, "Attention")
    qtbot.addWidget(heat)
    heat.resize(*size)
    heat.set_lut(lut("viridis"))
    heat.set_bar(BarText(values=(0.0, 0.5, 1.0), scale="linear"))
    n = len(values)
    heat.set_shape(*values.shape)
    heat.set_axis_tokens([PIECES[i % len(PIECES)] for i in range(n)], first_decode=n * 2 // 3)
    heat.set_boundary(n * 2 // 3)
    heat.set_tile(tile_of(values, exact=exact))
    heat.show()
    qtbot.waitExposed(heat)
    return heat


def centre(heat: HeatMap, row: int, col: int) -> QPoint:
    return heat.cell_rect((row, col)).center().toPoint()


def wheel(heat: HeatMap, at: QPointF, notches: int) -> None:
    event = QWheelEvent(
        at, heat.mapToGlobal(at), QPoint(), QPoint(0, 120 * notches), Qt.MouseButton.NoButton,
        Qt.KeyboardModifier.NoModifier, Qt.ScrollPhase.NoScrollPhase, False,
    )  # fmt: skip
    QApplication.sendEvent(heat, event)


def point_at(heat: HeatMap, at: QPoint) -> None:
    """A move of the mouse as the window system reports it."""
    window = heat.window().windowHandle()
    QTest.mouseMove(window, heat.mapTo(heat.window(), at))
    QApplication.processEvents()


def test_hover_reads_the_exact_value_of_the_array(qtbot: QtBot, theme: Theme) -> None:
    values = causal(19)
    heat = made(qtbot, theme, values)
    seen: list[tuple[int, int]] = []
    heat.cellHovered.connect(lambda row, col: seen.append((row, col)))
    for row, col in ((8, 1), (18, 0), (0, 0), (12, 12)):
        point_at(heat, centre(heat, row, col))
        assert seen[-1] == (row, col)
        assert heat.value_of((row, col)) == float(values[row, col])
        assert figure(float(values[row, col]), 6) in heat.readout_text()
        assert PIECES[row % 9] in heat.readout_text()
        assert PIECES[col % 9] in heat.readout_text()
    point_at(heat, centre(heat, 2, 9))
    assert "hidden by the mask" in heat.readout_text()


def test_leaving_the_map_ends_the_hover(qtbot: QtBot, theme: Theme) -> None:
    heat = made(qtbot, theme, causal(19))
    point_at(heat, centre(heat, 8, 1))
    seen: list[tuple[int, int]] = []
    heat.cellHovered.connect(lambda row, col: seen.append((row, col)))
    point_at(heat, QPoint(heat.width() - 2, heat.height() - 2))
    assert seen == [(-1, -1)]


def test_an_unknown_value_is_asked_for_and_never_guessed(qtbot: QtBot, theme: Theme) -> None:
    values = causal(19)
    heat = made(qtbot, theme, values, exact=False)
    asked: list[tuple[int, int]] = []
    heat.valueWanted.connect(lambda row, col: asked.append((row, col)))
    point_at(heat, centre(heat, 7, 3))
    assert asked == [(7, 3)]
    assert "…" in heat.readout_text()
    heat.set_cell_value(7, 3, float(values[7, 3]))
    assert figure(float(values[7, 3]), 6) in heat.readout_text()
    heat.set_cell_value(7, 3, None)
    assert "hidden by the mask" in heat.readout_text()


def test_the_scale_s_words_are_never_an_ellipsis_alone(theme: Theme) -> None:
    metrics = QFontMetricsF(theme.font("hint"))
    lens = BarText(values=(0.0, 0.5, 1.0), scale="p · linear · fixed", brief="p")
    said = [words_in(lens, metrics, room) for room in range(160)]
    assert "…" not in said and {"", "p", "p · linear · fixed"} <= set(said)
    assert words_in(lens, metrics, metrics.horizontalAdvance("p") + 1) == "p"
    assert "…" not in [words_in(BarText(values=(0.0, 0.5, 1.0), scale="linear"), metrics, n) for n in range(60)]


def test_a_cells_colour_is_its_pixels_colour(qtbot: QtBot, theme: Theme) -> None:
    values = causal(19)
    heat = made(qtbot, theme, values)
    point_at(heat, QPoint(heat.width() - 2, heat.height() - 2))
    picture = heat.grab().toImage()
    pixels = Levels.spanning(0.0, 1.0).pixels(values)
    for row, col in itertools.product((0, 5, 18), (0, 5, 17)):
        point = centre(heat, row, col)
        shown = picture.pixelColor(point)
        if np.isnan(values[row, col]):
            assert shown.rgb() in {theme.palette.masked.rgb(), theme.palette.ghost.rgb()}
        else:
            rgb = lut("viridis")[pixels[row, col]][:3].tolist()
            assert [shown.red(), shown.green(), shown.blue()] == rgb


def test_wheel_zooms_at_the_mouse_and_asks_for_true_cells(qtbot: QtBot, theme: Theme) -> None:
    n = 4096
    heat = made(qtbot, theme, np.zeros((8, 8), dtype=np.float32))
    heat.set_shape(n, n)
    rows, cols, height, width = heat.wanted()
    assert rows == cols == (0, n)
    assert height < n
    at = QPointF(heat.geometry_now().area.center())
    before = heat.cell_at(at)
    changes: list[None] = []
    heat.viewChanged.connect(lambda: changes.append(None))
    wheel(heat, at, 15)
    assert changes
    after = heat.cell_at(at)
    assert before is not None
    assert after is not None
    assert max(abs(after[0] - before[0]), abs(after[1] - before[1])) <= n / width + 1
    rows, cols, height, width = heat.wanted()
    assert rows[1] - rows[0] <= height
    assert cols[1] - cols[0] <= width
    assert rows[0] <= before[0] < rows[1]
    for _ in range(60):
        wheel(heat, at, 1)
    assert heat.view.rows >= 4
    for _ in range(200):
        wheel(heat, at, -1)
    assert heat.view.is_whole(heat.shape)


def test_drag_pans_and_double_click_shows_the_whole(qtbot: QtBot, theme: Theme) -> None:
    heat = made(qtbot, theme, causal(64))
    area = heat.geometry_now().area
    middle = area.center().toPoint()
    wheel(heat, QPointF(middle), 5)
    before = heat.view
    clicked: list[tuple[int, int]] = []
    heat.cellClicked.connect(lambda row, col: clicked.append((row, col)))
    window, plain = heat.windowHandle(), Qt.KeyboardModifier.NoModifier
    QTest.mousePress(window, Qt.MouseButton.LeftButton, plain, middle)
    point_at(heat, middle + QPoint(40, 60))
    point_at(heat, middle + QPoint(80, 60))
    QTest.mouseRelease(window, Qt.MouseButton.LeftButton, plain, middle + QPoint(80, 60))
    assert heat.view.col == pytest.approx(before.col - 80 / area.width() * before.cols, abs=1e-6)
    assert heat.view.row == pytest.approx(before.row - 60 / area.height() * before.rows, abs=1e-6)
    assert not clicked
    QTest.mouseDClick(heat, Qt.MouseButton.LeftButton, pos=middle)
    assert heat.view.is_whole(heat.shape)


def test_click_and_keys_move_the_chosen_cell(qtbot: QtBot, theme: Theme) -> None:
    values = causal(19)
    heat = made(qtbot, theme, values)
    clicked: list[tuple[int, int]] = []
    heat.cellClicked.connect(lambda row, col: clicked.append((row, col)))
    QTest.mouseClick(heat, Qt.MouseButton.LeftButton, pos=centre(heat, 8, 1))
    assert clicked == [(8, 1)]
    heat.setFocus()
    steps = (
        (Qt.Key.Key_Down, Qt.KeyboardModifier.NoModifier, (9, 1)),
        (Qt.Key.Key_Right, Qt.KeyboardModifier.NoModifier, (9, 2)),
        (Qt.Key.Key_End, Qt.KeyboardModifier.NoModifier, (9, 18)),
        (Qt.Key.Key_Home, Qt.KeyboardModifier.NoModifier, (9, 0)),
        (Qt.Key.Key_End, Qt.KeyboardModifier.ControlModifier, (18, 18)),
        (Qt.Key.Key_Home, Qt.KeyboardModifier.ControlModifier, (0, 0)),
        (Qt.Key.Key_PageDown, Qt.KeyboardModifier.NoModifier, (2, 0)),
        (Qt.Key.Key_Up, Qt.KeyboardModifier.NoModifier, (1, 0)),
    )
    for key, modifier, cell in steps:
        QTest.keyClick(heat, key, modifier)
        assert heat.selected == cell
        assert clicked[-1] == cell
    assert figure(float(values[1, 0]), 6) in heat.accessibleDescription()


def test_the_cursor_stays_in_sight_when_zoomed(qtbot: QtBot, theme: Theme) -> None:
    heat = made(qtbot, theme, causal(128))
    heat.set_selected((20, 20))
    for _ in range(12):
        QTest.keyClick(heat, Qt.Key.Key_Z)
    assert heat.view.rows < 20
    for _ in range(40):
        QTest.keyClick(heat, Qt.Key.Key_Down)
    rows, cols, _, _ = heat.wanted()
    assert heat.selected == (60, 20)
    assert rows[0] <= 60 < rows[1]
    assert cols[0] <= 20 < cols[1]
    QTest.keyClick(heat, Qt.Key.Key_0)
    assert heat.view.is_whole(heat.shape)


def test_keys_it_has_no_use_for_are_left_to_the_window(qtbot: QtBot, theme: Theme) -> None:
    heat = made(qtbot, theme, causal(19))
    for key in (Qt.Key.Key_Escape, Qt.Key.Key_Space, Qt.Key.Key_R):
        event = QKeyEvent(QEvent.Type.KeyPress, key, Qt.KeyboardModifier.NoModifier)
        QApplication.sendEvent(heat, event)
        assert not event.isAccepted()


@pytest.mark.parametrize("text_scale", [1.0, 2.0])
@pytest.mark.parametrize("size", [(340, 300), (640, 560), (1200, 900)])
@pytest.mark.parametrize("n", [5, 19, 40, 120, 512, 4096])
def test_axis_labels_never_touch_and_stay_inside(
    qtbot: QtBot, qapp: QApplication, n: int, size: tuple[int, int], text_scale: float
) -> None:
    del qapp
    theme = Theme("dark", text_scale)
    heat = made(qtbot, theme, np.zeros((4, 4), dtype=np.float32), size)
    heat.set_shape(n, n)
    heat.set_axis_tokens([PIECES[i % len(PIECES)] for i in range(n)])
    views = [1.0, 1.7, 6.0]
    for zoom in views:
        heat.reset_view()
        heat.zoom(zoom)
        rows, cols = axis_labels(heat)
        geometry = heat.geometry_now()
        left = [heat.row_axis.outline(label, geometry.area.left(), geometry.row_room) for label in rows]
        top = [heat.col_axis.outline(label, geometry.area.top(), geometry.col_room) for label in cols]
        assert min(len(left), len(top)) >= (2 if text_scale == 1 else 1)
        for axis in (left, top):
            for one, other in itertools.pairwise(axis):
                assert not one.intersects(other), (n, size, zoom)
        whole = QPolygonF(heat.rect().toRectF().adjusted(-1, -1, 1, 1))
        for shape in (*left, *top):
            box = shape.boundingRect()
            assert whole.boundingRect().contains(box), (n, size, zoom, box)


def test_a_thin_bright_line_survives_pooling(qtbot: QtBot, theme: Theme) -> None:
    pixels = np.ones((4096, 4096), dtype=np.uint8)
    pixels[:, 1234] = 255
    pixels[3001, :] = 255
    heat = made(qtbot, theme, np.zeros((4, 4), dtype=np.float32))
    heat.set_shape(4096, 4096)
    heat.set_tile(Tile(pixels=pixels, rows=(0, 4096), cols=(0, 4096)))
    picture, area = heat.grab().toImage(), heat.geometry_now().area
    bright = lut("viridis")[255][:3].tolist()

    def lit(x: float, y: float) -> bool:
        colour = picture.pixelColor(int(x), int(y))
        return bool([colour.red(), colour.green(), colour.blue()] == bright)

    x, y = heat.cell_rect((0, 1234)).left(), heat.cell_rect((3001, 0)).top()
    assert all(any(lit(x + d, row) for d in (-1, 0, 1)) for row in np.linspace(area.top() + 2, area.bottom() - 2, 40))
    assert all(any(lit(col, y + d) for d in (-1, 0, 1)) for col in np.linspace(area.left() + 2, area.right() - 2, 40))


def test_a_signed_maps_strongest_negative_survives_pooling(qtbot: QtBot, theme: Theme) -> None:
    pixels = np.full((1024, 1024), 140, dtype=np.uint8)
    pixels[:, 500] = 1
    heat = made(qtbot, theme, np.zeros((4, 4), dtype=np.float32))
    heat.set_shape(1024, 1024)
    heat.set_lut(lut("CET-CBD1"))
    heat.set_tile(Tile(pixels=pixels, rows=(0, 1024), cols=(0, 1024), signed=True))
    picture, area = heat.grab().toImage(), heat.geometry_now().area
    darkest = lut("CET-CBD1")[1][:3].tolist()
    x = int(heat.cell_rect((0, 500)).left())
    y = int(area.bottom() - 5)
    shown = [picture.pixelColor(x + d, y) for d in (-1, 0, 1)]
    assert darkest in [[c.red(), c.green(), c.blue()] for c in shown]


def test_redraws_of_4096_tokens_cost_what_those_of_19_do(qtbot: QtBot, theme: Theme) -> None:
    """A moving mouse copies a kept picture: the ratio does not depend on the matrix (two-sided: it is not skipped)."""
    small = made(qtbot, theme, causal(19))
    large = made(qtbot, theme, np.zeros((4, 4), dtype=np.float32))
    large.set_shape(4096, 4096)
    large.set_axis_tokens([PIECES[i % len(PIECES)] for i in range(4096)])
    large.set_tile(Tile(pixels=np.ones((4096, 4096), dtype=np.uint8), rows=(0, 4096), cols=(0, 4096)))

    def redraw(heat: HeatMap, at: int) -> float:
        heat.set_hovered((at % heat.shape[0], 0))
        start = time.perf_counter()
        heat.repaint()
        return time.perf_counter() - start

    for heat in (small, large):
        redraw(heat, 1)
    pairs = [(redraw(large, i), redraw(small, i)) for i in range(2, 42)]
    ratio = float(np.median([one / other for one, other in pairs]))
    print(f"redraw 4,096 / 19 tokens: {ratio:.2f}, {1e3 * float(np.median([p[0] for p in pairs])):.2f} ms")
    assert 0.2 < ratio < 3


def test_tiles_of_a_part_lie_over_the_whole(qtbot: QtBot, theme: Theme) -> None:
    heat = made(qtbot, theme, np.zeros((4, 4), dtype=np.float32))
    heat.set_shape(100, 100)
    whole = Tile(pixels=np.full((50, 50), 10, dtype=np.uint8), rows=(0, 100), cols=(0, 100))
    part = Tile(pixels=np.full((10, 10), 200, dtype=np.uint8), rows=(20, 30), cols=(20, 30))
    heat.set_tile(whole, key="a")
    heat.set_tile(part, key="a")
    assert heat.tiles == [whole, part]
    heat.set_tile(part, key="b")
    assert heat.tiles == [part]


def test_a_whole_view_stays_whole_when_a_token_is_added(qtbot: QtBot, theme: Theme) -> None:
    heat = made(qtbot, theme, causal(19))
    heat.set_shape(20, 20)
    assert heat.view.is_whole((20, 20))
    heat.zoom(3.0)
    view = heat.view
    heat.set_shape(21, 21)
    assert heat.view == view


@pytest.fixture(autouse=True)
def _still_mouse(qtbot: QtBot) -> Iterator[None]:
    yield
    QApplication.processEvents()


@pytest.mark.parametrize("width", [220, 400, 900])
def test_columns_that_are_only_counted_have_upright_numbers_that_never_touch(
    qtbot: QtBot, theme: Theme, width: int
) -> None:
    heat = made(qtbot, theme, causal(64), (width, 220))
    heat.options = replace(heat.options, square=False)
    heat.set_axis_tokens(["The"] * 64, [])
    assert heat.col_axis.counts
    area, room = heat.geometry_now().area, heat.geometry_now().col_room
    boxes = [heat.col_axis.outline(label, area.top(), room).boundingRect() for label in axis_labels(heat)[1]]
    assert len(boxes) > 2
    assert all(box.top() >= 0 and box.bottom() <= area.top() for box in boxes)
    assert all(left.right() + 2 < right.left() for left, right in itertools.pairwise(boxes))
    assert boxes[-1].right() <= heat.width()
    assert axis_labels(heat)[1][0].index == 0  # positions and dimensions are counted from 0


@pytest.mark.parametrize(("away", "both"), [(1, False), (2, False), (30, True)])
def test_the_chosen_cells_label_gives_way_to_the_one_pointed_at(
    qtbot: QtBot, theme: Theme, away: int, both: bool
) -> None:
    heat = made(qtbot, theme, causal(64), (400, 300))
    heat.set_selected((3, 3))
    assert [[label.index for label in labels] for labels in bold_labels(heat)] == [[3], [3]]
    heat.set_linked(3 + away)  # a neighbour's token, elsewhere in the window
    for axis, labels in zip((heat.row_axis, heat.col_axis), bold_labels(heat), strict=True):
        assert [label.index for label in labels] == ([3 + away, 3] if both else [3 + away])
        assert all(abs(a.centre - b.centre) >= axis.spacing(64) for a, b in itertools.combinations(labels, 2))
    heat.set_linked(3)
    assert [len(labels) for labels in bold_labels(heat)] == [1, 1]
    heat.set_hovered((20, 10))  # a cell under the mouse has both labels, the chosen one none
    assert [[label.index for label in labels] for labels in bold_labels(heat)] == [[20], [10]]


def test_neighbours_with_a_line_each_are_both_bold(qtbot: QtBot, theme: Theme) -> None:
    heat = made(qtbot, theme, causal(8), (640, 560))
    heat.set_selected((3, 3))
    heat.set_linked(4)
    assert [[label.index for label in labels] for labels in bold_labels(heat)] == [[4, 3], [4, 3]]


def test_a_ruler_label_that_a_bold_one_would_touch_is_taken_away(qtbot: QtBot, theme: Theme) -> None:
    heat = made(qtbot, theme, causal(400), (700, 620))
    rows, spacing = axis_labels(heat)[0], heat.row_axis.spacing(400)
    near = rows[1].index
    while heat.cell_rect((near + 1, 0)).center().y() - rows[1].centre < spacing:
        near += 1  # the farthest that is too near: its outline is free of the other's, by less than a line's descent
    box = heat.row_axis.outline(rows[1], heat.geometry_now().area.left(), heat.geometry_now().row_room).boundingRect()
    line = round(box.top()) - 1  # of the taken label's top: nothing of the bold one under it reaches so far
    empty = {heat.theme.palette.panel.rgb()}

    def ink() -> set[int]:
        image = heat.grab().toImage()
        return {
            image.pixel(x, y) for y in range(line + 1, line + 4) for x in range(round(box.left()), round(box.right()))
        }

    assert ink() != empty
    heat.set_selected((near, 0))
    assert ink() == empty


@pytest.mark.parametrize("name", ["dark", "light"])
def test_the_boundary_shows_on_every_colour_of_the_map(qtbot: QtBot, name: Literal["dark", "light"]) -> None:
    theme = Theme(name)
    for level in (0.0, 0.5, 1.0):
        heat = made(qtbot, theme, np.full((12, 12), level, dtype=np.float32))
        area = heat.geometry_now().area
        y = round(area.top() + 8 * area.height() / 12)
        image = heat.grab().toImage()
        line = {image.pixelColor(x, row).name() for x in range(round(area.left()) + 4, round(area.right()) - 160)
                for row in (y - 1, y)}  # fmt: skip
        amber = theme.palette.amber
        nearest = min(abs(QColor(c).red() - amber.red()) + abs(QColor(c).blue() - amber.blue()) for c in line)
        assert nearest < 60
        assert len(line) > 1  # dashes, and the bed they lie on


@pytest.mark.parametrize(("width", "height", "lines"), [(700, 610, 1), (482, 450, 1), (454, 560, 2), (300, 300, 2)])
def test_the_bar_stands_beside_the_readout_where_both_fit_or_the_matrix_gains(
    qtbot: QtBot, theme: Theme, width: int, height: int, lines: int
) -> None:
    heat = HeatMap(theme, "attention")
    qtbot.addWidget(heat)
    heat.resize(width, height)
    heat.set_bar(BarText(values=(0.0, 0.5, 1.0), scale="√ scale"))
    heat.set_axis_tokens(["·token"] * 19)
    heat.set_shape(19, 19)
    geometry = heat.geometry_now()
    assert len({geometry.bar.top(), geometry.readout.top()}) == lines
    assert not geometry.bar.intersects(geometry.readout)
    assert geometry.bar.right() <= width
    assert min(geometry.bar.top(), geometry.readout.top()) >= geometry.area.bottom()
    if width == 700:  # ends with the matrix, where the readout has room
        assert geometry.bar.right() == geometry.area.right()
        assert geometry.readout.width() >= 350


@pytest.mark.parametrize("theme", ["dark", "light"])
@pytest.mark.parametrize("ground", ["#440154", "#21918c", "#fde725", "#ffffff", "#1769d2", "#5aa9ff"])
@pytest.mark.parametrize("chosen", [True, False])
def test_a_cells_frame_shows_on_any_colour(qtbot: QtBot, theme: str, ground: str, chosen: bool) -> None:
    del qtbot
    shot = QImage(60, 40, QImage.Format.Format_RGB32)
    shot.fill(QColor(ground))
    painter = QPainter(shot)
    draw_frame(painter, Theme("dark" if theme == "dark" else "light").palette, QRectF(20, 10, 20, 20), chosen=chosen)
    painter.end()
    crossed = {shot.pixelColor(x, 20).name() for x in range(14, 24)}
    lights = [QColor(colour).lightnessF() for colour in crossed]
    assert max(lights) > 0.95
    assert min(lights) < 0.35  # white and dark side by side: one of them stands out from every ground


def test_the_frame_of_a_cell_that_a_zoom_cuts_stays_on_the_map(qtbot: QtBot, theme: Theme) -> None:
    """It once went on over the axis and the readout."""
    heat = made(qtbot, theme, causal(12))
    heat.options = replace(heat.options, readout=False)
    heat.resize(641, 561)
    heat.zoom(2.4, heat.geometry_now().area.center())
    area = heat.geometry_now().area
    cut = [
        (row, col)
        for row, col in itertools.product(range(12), repeat=2)
        if area.intersects(heat.cell_rect((row, col))) and not area.contains(heat.cell_rect((row, col)))
    ]
    assert len(cut) > 8
    left, top, right, below = round(area.left()), round(area.top()), round(area.right()) + 4, round(area.bottom()) + 4

    def beside(cell: tuple[int, int] | None) -> tuple[QImage, QImage]:
        """What is right of the map, and what is under it, without the axes' labels."""
        heat.set_selected(cell)
        picture = heat.grab().toImage()
        return picture.copy(right, top, 641 - right, 561), picture.copy(left, below, 641 - left, 561 - below)

    before = beside(None)
    for cell in cut:
        assert beside(cell) == before, cell
