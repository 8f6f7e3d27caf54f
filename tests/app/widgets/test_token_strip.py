"""The token strip: where chips go, what the mouse and the keys do, bytes of one character together."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PySide6.QtCore import QPoint, QPointF, QRectF, Qt
from PySide6.QtGui import QColor
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.theme import Theme
from app.widgets.flow import flow
from app.widgets.token_groups import Group, Groups
from app.widgets.token_strip import SIGN_GAP, TokenStrip
from model.protocol.token_run import TokenRun
from model.protocol.values import Token

PIECES = "The ·animal ·didn 't ·cross ·the ·street ⟨E4⟩ ⟨BD⟩ ⟨A0⟩ ·because ·it ·was ·too ·tired".split()  # noqa: SIM905
Key = Qt.Key


@pytest.fixture
def strip(qtbot: QtBot) -> TokenStrip:
    made = TokenStrip(Theme("dark"), "Tokens")
    qtbot.addWidget(made)
    made.resize(260, 160)
    made.set_tokens(PIECES, ids=list(range(len(PIECES))), first_decode=12, groups=[Group(first=7, last=9, text="你")])
    made.show()
    qtbot.waitExposed(made)
    return made


@given(st.lists(st.floats(1, 90), min_size=1, max_size=200), st.floats(100, 400))
def test_every_chip_has_its_place(widths: list[float], line: float) -> None:
    none = np.empty(0, dtype=np.int64)
    laid = flow(np.array(widths), line=line, gap=5, row_height=22, row_gap=5, glue=none, tall=none, extra=19)
    assert int(laid.starts[-1]) == len(widths)
    for first, end in zip(laid.starts[:-1], laid.starts[1:], strict=True):
        right = laid.left[first:end] + laid.width[first:end]
        assert laid.left[first] == 0
        assert right[-1] <= line + 1e-6
        assert (laid.left[first + 1 : end] >= right[:-1] + 5 - 1e-6).all()
    for index in range(len(widths)):
        middle = laid.left[index] + laid.width[index] / 2
        assert laid.at(float(middle), float(laid.tops[laid.row[index]]) + 10) == index


def test_parts_of_a_character_stay_on_one_row(strip: TokenStrip) -> None:
    rects = [strip.chip_rect(i) for i in (7, 8, 9)]
    assert len({rect.top() for rect in rects}) == 1


def test_groups_are_the_parts_of_one_character() -> None:
    tokens = [
        Token(id=0, piece="a", start=0, end=1),
        *(Token(id=i, piece="⟨E4⟩", start=1, end=2, part=True) for i in range(3)),
        *(Token(id=i, piece="⟨E5⟩", start=2, end=3, part=True) for i in range(2)),
        Token(id=9, piece="b", start=3, end=4),
    ]
    for hidden, shown in (("\u202e", "⟨U+202E⟩"), ("\u200d", "⟨U+200D⟩"), ("👩\u200d👧", "👩\u200d👧"), (" 你", " 你")):
        whole = [*tokens[:1], *(replace(token, end=1 + len(hidden)) for token in tokens[1:4])]
        assert list(Groups.of(TokenRun.of(whole), f"a{hidden}b")) == [Group(first=1, last=3, text=shown)]
    assert list(Groups.of(TokenRun.of(tokens), "a你好b")) == [
        Group(first=1, last=3, text="你"),
        Group(first=4, last=5, text="好"),
    ]


def test_mouse_hovers_and_chooses(strip: TokenStrip, qtbot: QtBot) -> None:
    hovered: list[int] = []
    clicked: list[int] = []
    strip.tokenHovered.connect(hovered.append)
    strip.tokenClicked.connect(clicked.append)
    at = strip.chip_rect(4).center().toPoint()
    QTest.mouseMove(strip.windowHandle(), strip.viewport().mapTo(strip, at))
    QApplication.processEvents()
    assert hovered[-1] == 4
    QTest.mouseClick(strip.viewport(), Qt.MouseButton.LeftButton, pos=at)
    assert clicked == [4]
    QTest.mouseMove(strip.windowHandle(), QPoint(strip.width() - 2, strip.height() - 2))
    QApplication.processEvents()
    assert hovered[-1] == -1


def test_setters_emit_nothing(strip: TokenStrip) -> None:
    seen: list[int] = []
    strip.tokenHovered.connect(seen.append)
    strip.tokenClicked.connect(seen.append)
    strip.set_hovered(3)
    strip.set_selected(5)
    strip.set_marked(1, 4)
    strip.set_tints(np.linspace(0, 1, len(PIECES)).astype(np.float32))
    strip.set_differs(10)
    strip.grab()
    assert seen == []


def test_what_differs_from_another_branch_has_an_edge_and_its_first_token_a_sign(strip: TokenStrip) -> None:
    palette = strip._theme.palette

    def inks(rect: QRectF) -> dict[str, int]:
        image = strip.viewport().grab(rect.toRect()).toImage()
        at = [image.pixelColor(x, y) for x in range(image.width()) for y in range(image.height())]
        names = ("accent", "amber", "raised")
        return {name: sum(_near(pixel, getattr(palette, name), 8) for pixel in at) for name in names}

    def edged(index: int) -> bool:
        """Whether a chip's left side is amber all along, and its ground tinted."""
        image = strip.viewport().grab(strip.chip_rect(index).toRect()).toImage()
        rows = range(5, image.height() - 5)
        warm = [
            any(pixel.red() > pixel.blue() + 30 for pixel in (image.pixelColor(x, y) for x in (0, 1))) for y in rows
        ]
        return all(warm) and _near(image.pixelColor(image.width() - 4, 4), palette.amber_tint, 3)

    first, narrow = 13, strip.chip_rect(13).width()
    assert not edged(first + 1) and strip.sign_rect().isNull()
    strip.set_differs(first)
    assert strip.chip_rect(first).contains(strip.sign_rect())
    assert strip.chip_rect(first).width() == pytest.approx(narrow + strip.sign_rect().width() + SIGN_GAP)
    assert inks(strip.sign_rect())["amber"] > 0.4 * strip.sign_rect().width() * strip.sign_rect().height()
    text = strip.chip_rect(first)
    text.setLeft(strip.sign_rect().right() + 2)
    seen = inks(text)
    assert seen["accent"] == 0 < seen["amber"]  # blue is for what is chosen
    for index in (first, first + 1, len(PIECES) - 1):
        assert edged(index)
    assert not edged(first - 1)
    assert "another than in the other branches" in strip.tip_of(first)
    assert "\n" not in strip.tip_of(first + 1)
    strip.set_differs(None)
    assert not edged(first + 1) and strip.chip_rect(first).width() == narrow


def _near(one: QColor, other: QColor, within: int = 40) -> bool:
    return max(abs(one.red() - other.red()), abs(one.green() - other.green()), abs(one.blue() - other.blue())) < within


def test_keys_walk_the_tokens(strip: TokenStrip, qtbot: QtBot) -> None:
    seen: list[int] = []
    strip.tokenClicked.connect(seen.append)
    strip.setFocus()
    for key in (Key.Key_Right, Key.Key_Right, Key.Key_End, Key.Key_Left, Key.Key_Home, Key.Key_Down, Key.Key_Up):
        QTest.keyClick(strip, key)
    last = len(PIECES) - 1
    assert seen[:5] == [0, 1, last, last - 1, 0]
    assert strip.chip_rect(seen[5]).top() > strip.chip_rect(0).top()
    assert seen[6] == 0
    assert "position 0" in strip.accessibleDescription()


def test_tokens_that_look_like_markup_are_text(qtbot: QtBot) -> None:
    made = TokenStrip(Theme("light"), "Tokens")
    qtbot.addWidget(made)
    made.set_tokens(["<img", "src", ">"], ids=[1, 2, 3])
    assert made.tip_of(0) == "position 0 · id 1"


def test_twenty_five_thousand_tokens_stay_smooth(qtbot: QtBot) -> None:
    made = TokenStrip(Theme("dark"), "Tokens")
    qtbot.addWidget(made)
    made.resize(400, 300)
    made.show()
    qtbot.waitExposed(made)
    pieces = [f"·w{i % 4000}" for i in range(25_000)]
    made.set_tokens(pieces)
    start = time.perf_counter()
    made.set_tokens([*pieces, "·one"])
    laid_out = time.perf_counter() - start
    made.verticalScrollBar().setValue(made.verticalScrollBar().maximum() // 2)
    start = time.perf_counter()
    made.viewport().repaint()
    painted = time.perf_counter() - start
    print(f"25,000 tokens: layout {laid_out * 1e3:.1f} ms, paint {painted * 1e3:.1f} ms")
    # Ten times what it takes on two slow cores: a widget a token, or painting them all, takes seconds.
    assert laid_out < 0.3
    assert painted < 0.1


def test_what_grows_is_followed_only_when_it_should_be(strip: TokenStrip) -> None:
    strip.resize(260, 60)
    bar = strip.verticalScrollBar()
    strip.set_tokens([*PIECES, "·and"], first_decode=12)
    assert bar.maximum() > 0
    assert bar.value() == 0
    strip.set_tokens([*PIECES, "·and", "·old"], first_decode=12, follow=True)
    assert strip.viewport().rect().contains(strip.chip_rect(len(PIECES) + 1).center().toPoint())
    strip.reveal(0)
    assert strip.viewport().rect().contains(strip.chip_rect(0).center().toPoint())
    strip.set_tokens(PIECES, first_decode=12, follow=True)  # stepped back: nothing to follow
    assert strip.viewport().rect().contains(strip.chip_rect(0).center().toPoint())


def test_what_was_in_sight_stays_in_sight_at_another_width(strip: TokenStrip, qtbot: QtBot) -> None:
    del qtbot
    many = PIECES * 30
    strip.resize(260, 90)
    strip.set_tokens(many)
    strip.reveal(len(many) - 1)
    strip.resize(420, 70)
    assert strip.viewport().rect().contains(strip.chip_rect(len(many) - 1).center().toPoint())
    strip.reveal(0)
    strip.reveal(200)
    seen = strip.thing_at(QPointF(4, 10))
    assert seen
    for width in (300, 200, 500):
        strip.resize(width, 70)
        assert strip.viewport().rect().contains(strip.chip_rect(seen).center().toPoint())
        seen = strip.thing_at(QPointF(4, 10)) or seen


@pytest.mark.parametrize("height", [48, 63, 90, 131, 300])
def test_rows_show_whole_at_any_height_and_place_of_the_bar(strip: TokenStrip, height: int) -> None:
    strip.set_tokens(PIECES * 6, groups=[Group(first=7, last=9, text="你")])
    strip.resize(260, height)
    bar = strip.verticalScrollBar()
    for value in range(bar.maximum() + 1):
        bar.setValue(value)
        rows = [int(strip._layout().row[i]) for i in range(len(PIECES) * 6)]
        shown = [strip.chip_rect(i) for i, row in enumerate(rows) if row in strip.rows_shown()]
        assert shown[0].top() >= 0
        assert shown[-1].bottom() <= strip.viewport().height()
    assert strip.rows_shown().stop == rows[-1] + 1  # the bar's end is the last row
    strip.reveal(30)
    assert rows[30] in strip.rows_shown()
    bar.setValue(0)
    hidden = strip.chip_rect(rows.index(strip.rows_shown().stop)) if strip.rows_shown().stop <= rows[-1] else None
    assert hidden is None or strip.thing_at(hidden.center()) is None
