"""Slider rows, segments, number boxes, combos under real keys and clicks: one change, one signal, no echo."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QWheelEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QPushButton, QWidget
from pytestqt.qtbot import QtBot

from app.theme import Theme
from app.widgets.mapping import Linear, Log, Mapping, Whole
from app.widgets.number_box import NumberBox
from app.widgets.segmented import Segmented
from app.widgets.slider_row import SliderRow, TravelSlider
from app.widgets.value_combo import Choice, ValueCombo
from app.widgets.wrap_row import WrapRow

TEMPERATURE = Linear(low=0.0, high=5.0, step=0.01, default=0.8)
TOP_K = Log(low=1, high=49_152, default=40, zero=True, whole=True)
SEED = Whole(low=0, high=2**64 - 1, default=7, slider_high=99)
MAPPINGS: tuple[Mapping, ...] = (TEMPERATURE, TOP_K, SEED, Log(low=0.01, high=100.0, default=1.0))
Key = Qt.Key


@pytest.fixture
def theme(qapp: QApplication) -> Theme:
    del qapp
    return Theme("dark")


def shown(qtbot: QtBot, widget: QWidget, width: int = 320) -> None:
    qtbot.addWidget(widget)
    widget.resize(width, 30)
    widget.show()
    qtbot.waitExposed(widget)


def focus(qtbot: QtBot, widget: QWidget) -> None:
    widget.window().activateWindow()
    widget.setFocus()
    qtbot.waitUntil(widget.hasFocus, timeout=3000)


def parts(row: SliderRow) -> tuple[TravelSlider, NumberBox]:
    slider, box = row.findChild(TravelSlider), row.findChild(NumberBox)
    assert isinstance(slider, TravelSlider)
    assert isinstance(box, NumberBox)
    return slider, box


def test_a_number_box_keeps_its_height_from_the_first_paint(qtbot: QtBot, theme: Theme) -> None:
    """A height in the style sheet replaces the one that the box was given."""
    holder = QWidget()
    qtbot.addWidget(holder)
    holder.setStyleSheet(theme.style_sheet())
    box = NumberBox(theme, SEED, decimals=0, parent=holder)
    box.setFixedSize(58, 26)
    holder.show()
    qtbot.waitExposed(holder)
    assert (box.minimumHeight(), box.height()) == (26, 26)


@pytest.mark.parametrize("mapping", MAPPINGS)
@given(travel=st.floats(0, 1))
def test_travel_and_value_are_each_others_inverse(mapping: Mapping, travel: float) -> None:
    value = mapping.value(travel)
    assert mapping.bottom <= value <= mapping.high
    again = mapping.value(mapping.travel(value))
    assert again == pytest.approx(value, rel=1e-6, abs=1e-9)


@given(st.integers(0, 2**64 - 1))
def test_a_seed_keeps_all_its_64_bits(seed: int) -> None:
    assert SEED.clamp(seed) == seed
    assert 0 <= SEED.travel(seed) <= 1


def test_dragging_emits_each_value_once(qtbot: QtBot, theme: Theme) -> None:
    row = SliderRow(theme, "temperature", TEMPERATURE)
    shown(qtbot, row)
    slider, box = parts(row)
    seen: list[float] = []
    row.valueChanged.connect(seen.append)
    middle = slider.height() // 2
    QTest.mousePress(slider, Qt.MouseButton.LeftButton, pos=QPoint(slider.width() // 2, middle))
    assert seen == [pytest.approx(2.5, abs=0.1)]
    QTest.mouseRelease(slider, Qt.MouseButton.LeftButton, pos=QPoint(slider.width() // 2, middle))
    QTest.mousePress(slider, Qt.MouseButton.LeftButton, pos=QPoint(slider.width() // 2, middle))
    assert len(seen) == 1
    assert float(box.text()) == pytest.approx(seen[0], abs=0.005)


def test_setting_from_outside_emits_nothing(qtbot: QtBot, theme: Theme) -> None:
    row = SliderRow(theme, "top-k", TOP_K, off="off")
    shown(qtbot, row)
    seen: list[object] = []
    row.valueChanged.connect(seen.append)
    for value in (0, 1, 40, 49_152):
        row.set_value(value)
        assert row.value() == value
    assert seen == []
    row.set_value(0)
    assert parts(row)[1].text() == "off"


def test_keys_step_page_and_go_to_the_ends(qtbot: QtBot, theme: Theme) -> None:
    row = SliderRow(theme, "temperature", TEMPERATURE)
    shown(qtbot, row)
    slider, _ = parts(row)
    slider.setFocus()
    seen: list[float] = []
    row.valueChanged.connect(seen.append)
    for key in (Key.Key_Right, Key.Key_Left, Key.Key_PageUp, Key.Key_End, Key.Key_End, Key.Key_Home):
        QTest.keyClick(slider, key)
    assert seen == [0.81, 0.8, 0.9, 5.0, 0.0]


def test_typing_and_reset(qtbot: QtBot, theme: Theme) -> None:
    row = SliderRow(theme, "seed", SEED)
    shown(qtbot, row)
    _, box = parts(row)
    seen: list[int] = []
    row.valueChanged.connect(seen.append)
    box.setFocus()
    box.selectAll()
    QTest.keyClicks(box, "18446744073709551615")
    QTest.keyClick(box, Key.Key_Return)
    assert seen == [2**64 - 1]
    box.selectAll()
    QTest.keyClicks(box, "nonsense")
    QTest.keyClick(box, Key.Key_Return)
    assert seen == [2**64 - 1]
    assert box.text() == "18,446,744,073,709,551,615"
    row._reset.click()
    assert seen[-1] == 7
    assert not row._reset.isEnabled()


def test_the_reset_stands_in_the_box_and_only_when_there_is_something_to_reset(qtbot: QtBot, theme: Theme) -> None:
    row = SliderRow(theme, "temperature", TEMPERATURE)
    shown(qtbot, row)
    slider, box = parts(row)
    width = slider.width()
    assert not row._reset.isVisible()
    row.set_value(1.25)
    assert row._reset.isVisible()
    assert slider.width() == width  # nothing moves
    assert box.rect().contains(row._reset.geometry())
    assert not box.lineEdit().geometry().intersects(row._reset.geometry())
    QTest.mouseClick(row._reset, Qt.MouseButton.LeftButton)
    assert row.value() == TEMPERATURE.default
    assert not row._reset.isVisible()


def test_a_number_grows_with_the_text(qtbot: QtBot, qapp: QApplication, theme: Theme) -> None:
    row = SliderRow(theme, "temperature", TEMPERATURE)
    shown(qtbot, row)
    _, box = parts(row)
    for scale in (2.0, 1.5, 1.0):
        theme.set_text_scale(scale)
        assert box.lineEdit().font().pixelSize() == theme.font("table").pixelSize()
        box.set_value(0.85)
        assert box.lineEdit().width() >= box.lineEdit().fontMetrics().horizontalAdvance("0.85")
        theme.set_choice("light" if theme.dark else "dark")
        assert box.lineEdit().font().pixelSize() == theme.font("table").pixelSize()
    qapp.setStyleSheet("")


def test_a_row_goes_on_below_where_the_width_ends(qtbot: QtBot) -> None:
    holder = QWidget()
    qtbot.addWidget(holder)
    row = WrapRow(holder)
    boxes = [QPushButton(f"button {n}") for n in range(5)]
    for box in boxes[:3]:
        row.add(box)
    row.add_gap()
    for box in boxes[3:]:
        row.add(box)
    whole, one = row.sizeHint().width(), row.sizeHint().height()
    holder.resize(whole + 80, row.heightForWidth(whole + 80))
    holder.show()
    qtbot.waitExposed(holder)
    assert holder.height() == one
    assert boxes[4].geometry().right() == holder.width() - 1  # what stands behind the gap ends at the right
    holder.resize(whole // 2, row.heightForWidth(whole // 2))
    assert holder.height() > one
    for box in boxes:
        assert holder.rect().contains(box.geometry())
    for first, second in itertools.combinations(boxes, 2):
        assert not first.geometry().intersects(second.geometry())
    boxes[0].hide()
    boxes[1].hide()
    boxes[2].hide()
    assert row.heightForWidth(whole) == one


def test_what_is_shown_rounded_is_not_an_edit(qtbot: QtBot, theme: Theme) -> None:
    row = SliderRow(theme, "temperature", TEMPERATURE)
    shown(qtbot, row)
    row.set_value(math.pi)
    seen: list[float] = []
    row.valueChanged.connect(seen.append)
    _, box = parts(row)
    box.setFocus()
    QTest.keyClick(box, Key.Key_Return)
    assert seen == []
    assert row.value() == math.pi


def test_the_wheel_acts_on_a_focused_slider_only(qtbot: QtBot, theme: Theme) -> None:
    row = SliderRow(theme, "temperature", TEMPERATURE)
    shown(qtbot, row)
    slider, _ = parts(row)
    seen: list[float] = []
    row.valueChanged.connect(seen.append)

    def turn() -> None:
        event = QWheelEvent(
            QPointF(20, 10), slider.mapToGlobal(QPointF(20, 10)), QPoint(), QPoint(0, 120), Qt.MouseButton.NoButton,
            Qt.KeyboardModifier.NoModifier, Qt.ScrollPhase.NoScrollPhase, False,
        )  # fmt: skip
        QApplication.sendEvent(slider, event)

    focus(qtbot, row._box)
    turn()
    assert seen == []
    focus(qtbot, slider)
    turn()
    assert seen == [0.81]


def test_segments_by_click_and_arrow(qtbot: QtBot, theme: Theme) -> None:
    stages = Segmented(theme, [("raw", "q·k"), ("scores", "scores"), ("weights", "weights")], label="Stage")
    shown(qtbot, stages)
    seen: list[str] = []
    stages.keyChanged.connect(seen.append)
    QTest.mouseClick(stages._segments["weights"], Qt.MouseButton.LeftButton)
    QTest.mouseClick(stages._segments["weights"], Qt.MouseButton.LeftButton)
    assert seen == ["weights"]
    stages.set_key("raw")
    assert seen == ["weights"]
    stages._segments["raw"].setFocus()
    QTest.keyClick(stages._segments["raw"], Key.Key_Right)
    assert seen == ["weights", "scores"]
    assert stages.key() == "scores"
    assert all(segment.accessibleName().startswith("Stage: ") for segment in stages._segments.values())


def test_a_combo_chooses_by_key_and_keeps_its_choice(qtbot: QtBot, theme: Theme) -> None:
    combo = ValueCombo(theme, "Head")
    combo.set_choices([Choice(key=i, text=f"Head {i}", note=f"KV {i // 3}") for i in range(9)])
    shown(qtbot, combo)
    seen: list[object] = []
    combo.keyChosen.connect(seen.append)
    combo.set_key(8)
    assert combo.key() == 8
    combo.set_choices([Choice(key=i, text=f"Head {i}") for i in range(12)])
    assert combo.key() == 8
    assert seen == []
    combo.setFocus()
    QTest.keyClick(combo, Key.Key_Down)
    assert seen == [9]
