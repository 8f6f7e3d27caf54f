"""Models without a feature in the real window with the real engine: every panel shows what they have instead."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtGui import QImage
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLabel, QWidget
from pytestqt.qtbot import QtBot

from app.panels.base import Panel
from app.tour.driver import Driver
from tests.app.shell import close_window, window_with
from tests.app.tiny_folder import tiny_folder

PROMPT = "the thin hat in the an the thin hat"
FAMILIES = ("llama", "gpt2", "bloom, heads not a power of two", "mixtral")
WORDS_OF_ROPE = {"gpt2": "learned table", "bloom, heads not a power of two": "ALiBi"}
LEAST_BOX = (120, 60)
"""Px from which on a widget of ours that shows one colour alone is an empty box."""

pytestmark = [pytest.mark.timeout(400), pytest.mark.usefixtures("qapp")]


@pytest.fixture(params=FAMILIES)
def driver(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, qtbot: QtBot
) -> Iterator[Driver]:
    source = tiny_folder(tmp_path / "model", request.param)
    application = window_with(tmp_path / "config", monkeypatch, qtbot, None, str(source))
    driver = Driver(application, tmp_path)
    try:
        application.window.resize(1400, 900)
        assert application.ctx is not None
        session = application.ctx.session
        driver.wait(lambda: len(session.path_nodes()) == 7 and not session.busy, "the example", 300)
        run = session.run_id
        session.set_prompt(PROMPT)
        session.prefill(then_steps=4)
        driver.wait(lambda: session.run_id != run and len(session.path_nodes()) == 4 and not session.busy, "the run")
        yield driver
    finally:
        close_window(application)


def colours(image: QImage) -> int:
    """How many different colours there are in an image."""
    shown = image.convertToFormat(QImage.Format.Format_RGB32)
    pixels = np.frombuffer(shown.constBits(), np.uint32).reshape(shown.height(), -1)
    return len(np.unique(pixels))


def empty_boxes(panel: Panel) -> list[str]:
    """Widgets of ours in sight that show one colour alone."""
    picture = panel.grab().toImage()
    found = []
    for widget in panel.findChildren(QWidget):
        ours = type(widget).__module__.startswith("app.") or isinstance(widget, QLabel)
        size = widget.size()
        if not ours or not widget.isVisible() or size.width() < LEAST_BOX[0] or size.height() < LEAST_BOX[1]:
            continue
        corner = widget.mapTo(panel, widget.rect().topLeft())
        part = picture.copy(corner.x(), corner.y(), size.width(), size.height())
        if colours(part) < 2:
            found.append(f"{panel.panel_id}: {type(widget).__name__} {size.width()}×{size.height()}")
    return found


def look(driver: Driver, panel: Panel) -> list[str]:
    """The empty boxes of a panel, once what it asked for has come."""
    QTest.qWait(60)
    driver.wait(lambda: panel.settled, f"drawing {panel.panel_id}")
    driver.wait(driver._heads_drawn, "drawing every head in sight")
    QTest.qWait(60)
    return empty_boxes(panel)


def test_every_panel_shows_what_the_model_has(driver: Driver, request: pytest.FixtureRequest) -> None:
    name = request.node.callspec.params["driver"]
    window, ctx = driver.window, driver.application.ctx
    assert ctx is not None
    selection, session = ctx.selection, ctx.session
    found = []
    for dock in window.docks.values():
        dock.raise_()
        driver.wait(dock.panel.seen, f"showing {dock.panel.panel_id}")
        window.toggle_maximised(dock)
        assert dock.panel._empty is None
        for change in (
            lambda: None,
            lambda: selection.set_layer_head(0, selection.n_heads - 1),
            lambda: selection.set_cell(session.length - 1, 0),
            lambda: selection.set_layer_head(selection.n_layers - 1, "mean"),
            lambda: selection.set_layer_head(1, 0),
        ):
            change()  # type: ignore[no-untyped-call]
            found += look(driver, dock.panel)
        window.toggle_maximised(dock)
    assert found == []
    assert driver.trouble == ""
    for notice in window.banners.notices:
        pytest.fail(notice.sentence.text())
    rope = window.docks["rope"].panel
    said = " ".join(label.text() for label in rope.findChildren(QLabel))
    assert WORDS_OF_ROPE.get(name, "") in said


def test_an_empty_box_is_found(qtbot: QtBot) -> None:
    panel = QWidget()
    qtbot.addWidget(panel)
    panel.resize(400, 300)
    label = QLabel("words", panel)
    label.resize(200, 100)
    panel.panel_id = "example"  # type: ignore[attr-defined]
    panel.show()
    assert empty_boxes(panel) == []  # type: ignore[arg-type]
    label.setText("")
    assert empty_boxes(panel) == ["example: QLabel 200×100"]  # type: ignore[arg-type]
