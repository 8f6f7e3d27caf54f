"""The main job of the real window with the real engine and the default model, by key presses and clicks."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QEvent, QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QPushButton, QWidget
from shiboken6 import isValid

from app.main import Application, create
from app.panels.attention import AttentionPanel
from app.panels.prompt import PromptPanel
from app.panels.sampling import SamplingPanel
from app.panels.timeline import TimelinePanel
from app.tour.driver import Driver
from app.widgets.candidate_table import TOKEN
from app.widgets.slider_row import TravelSlider

# " to move.\n\nThe original": what the reference decodes greedily from this model (tests/model/test_default_model.py).
EXAMPLE_TEXT = "The animal didn't cross the street because it was too tired to move.\n\nThe original"
CLOSE_SECONDS = 1.0

pytestmark = [pytest.mark.timeout(400), pytest.mark.usefixtures("qapp", "default_model_path")]


@pytest.fixture
def driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Driver]:
    """The window after its first start: the example prefilled and stepped seven times."""
    monkeypatch.setenv("DECODERSCOPE_CONFIG", str(tmp_path / "config"))
    application = create()
    driver = Driver(application, tmp_path)
    try:
        application.window.show()
        QTest.qWaitForWindowActive(application.window)
        driver.wait(lambda: application.ctx is not None, "filling the window")
        driver.wait(lambda: first_start_is_over(driver), "the first start", 300)
        yield driver
    finally:
        close(application)


def first_start_is_over(driver: Driver) -> bool:
    session = driver.session
    assert session.engine_status != "lost", session.engine.stderr
    return len(session.path_nodes()) == 7 and not session.busy


def close(application: Application) -> float:
    """Closes the window as a person does; the seconds it took until the engine was gone."""
    started = time.monotonic()
    if not isValid(application.window):
        return 0.0
    application.window.close()
    if application.ctx is not None:
        application.ctx.engine.close()
    took = time.monotonic() - started
    application.window.deleteLater()
    application.qt.sendPostedEvents(None, QEvent.Type.DeferredDelete.value)
    return took


def panels(driver: Driver) -> tuple[PromptPanel, TimelinePanel, AttentionPanel, SamplingPanel]:
    found = tuple(dock.panel for dock in driver.window.docks.values())
    prompt, timeline, attention, sampling = found[:4]
    assert isinstance(prompt, PromptPanel)
    assert isinstance(timeline, TimelinePanel)
    assert isinstance(attention, AttentionPanel)
    assert isinstance(sampling, SamplingPanel)
    return prompt, timeline, attention, sampling


def tokens(driver: Driver) -> list[int]:
    return [token.id for token in driver.session.path_tokens()]


def type_prompt(driver: Driver, text: str) -> None:
    prompt = panels(driver)[0]
    driver.click(prompt.edit.viewport())
    driver.press("Ctrl+A", prompt.edit)
    driver.write(prompt.edit, text)
    driver.wait(lambda: driver.session.prompt.shown == text, "tokenising")


def prefill(driver: Driver) -> None:
    run = driver.session.run_id
    driver.press("Ctrl+Return", QApplication.focusWidget())
    driver.wait(lambda: driver.session.run_id != run and not driver.session.busy, "prefilling")


def leave_the_text(driver: Driver) -> None:
    driver.window.setFocus()
    driver.wait(lambda: QApplication.focusWidget() is driver.window, "focusing the window")


def step(driver: Driver, key: str, steps: int) -> None:
    driver.press(key)
    driver.wait(lambda: len(driver.session.path_nodes()) == steps and not driver.session.busy, f"{key} to step {steps}")


def first_start_shows_the_example(driver: Driver) -> None:
    session, selection = driver.session, driver.application.ctx.selection  # type: ignore[union-attr]
    prompt, timeline, attention, sampling = panels(driver)
    assert session.run_text == EXAMPLE_TEXT
    assert prompt.strip.viewport().rect().contains(prompt.strip.chip_rect(0).center().toPoint())  # opens at the start
    assert (selection.layer, selection.head, selection.query, selection.key) == (13, 8, 8, 1)
    assert session.path_tokens()[8].piece.strip("·") == "it"
    assert session.path_tokens()[1].piece.strip("·") == "animal"
    assert all(node.settings.greedy for node in session.path_nodes())
    assert (session.sampler.temperature, session.sampler.top_k, session.sampler.top_p) == (0.8, 40, 0.9)
    driver.wait(
        lambda: session.distribution is not None and session.distribution.node == session.current_node, "sampling"
    )
    shown = len(session.distribution.candidates)  # type: ignore[union-attr]
    driver.wait(lambda: sampling.table.model().rowCount() == shown, "showing the candidates")  # a panel a frame
    driver.wait(lambda: timeline.table.model().rowCount() == 8, "showing the steps")
    driver.wait(lambda: attention.main.heat.value_of((8, 1)) is not None, "drawing the attention")
    assert attention.main.heat.value_of((8, 1)) == pytest.approx(0.75, abs=0.005)
    assert "DECODE 7" in driver.window.run_bar.readout.text()
    assert not driver.window.banners.isVisible()


def type_prefill_step_back_and_forth(driver: Driver) -> None:
    session = driver.session
    type_prompt(driver, "Once upon a time [there] = was - a, s. R")
    layer = driver.application.ctx.selection.layer  # type: ignore[union-attr]
    assert layer == 13  # "[", "]", "=", "-", "S" were text, not commands
    assert not session.busy
    prefill(driver)
    assert session.run_text == "Once upon a time [there] = was - a, s. R"
    n_prompt = session.n_prompt
    leave_the_text(driver)
    for steps in (1, 2, 3):
        step(driver, "Space", steps)
    after = tokens(driver)
    nodes = len(session.nodes)
    strip = panels(driver)[0].strip
    driver.wait(lambda: len(strip._pieces) == len(after), "showing the tokens")
    assert strip.viewport().rect().contains(strip.chip_rect(len(after) - 1).center().toPoint())  # steps are followed
    step(driver, "Left", 2)
    step(driver, "Left", 1)
    assert tokens(driver) == after[: n_prompt + 1]
    step(driver, "Right", 2)
    step(driver, "End", 3)
    assert tokens(driver) == after
    step(driver, "Home", 0)
    step(driver, "End", 3)
    assert len(session.nodes) == nodes  # going back and forth made nothing new
    driver.press("]")
    driver.press("=")
    driver.press("S")
    selection = driver.application.ctx.selection  # type: ignore[union-attr]
    assert (selection.layer, selection.head, selection.stage) == (14, 8, "weighted")


def sliders_answer_without_a_step_and_steer_the_next(driver: Driver) -> None:
    session = driver.session
    sampling = panels(driver)[3]
    before, nodes = session.distribution, len(session.nodes)
    slider = sampling.rows["temperature"].findChild(TravelSlider)
    assert slider is not None
    slider.setFocus()
    for _ in range(8):
        driver.press("PgUp", slider)
    driver.wait(lambda: session.distribution not in {None, before}, "the distribution")
    assert session.sampler.temperature == pytest.approx(1.6)
    assert session.distribution.entropy > before.entropy  # type: ignore[union-attr]
    assert session.distribution.entropy_raw == before.entropy_raw  # type: ignore[union-attr]
    assert len(session.nodes) == nodes
    kept = session.distribution.kept  # type: ignore[union-attr]
    assert session.sampling.cdf_tokens.tolist() == list(range(1, kept + 1))  # type: ignore[union-attr]
    would_pick = session.distribution.would_pick.id  # type: ignore[union-attr]
    leave_the_text(driver)
    step(driver, "Space", 8)
    assert tokens(driver)[-1] == would_pick


def a_click_on_a_candidate_branches(driver: Driver) -> None:
    session = driver.session
    _, timeline, _, sampling = panels(driver)
    leave_the_text(driver)
    step(driver, "Left", 7)
    step(driver, "Left", 6)
    driver.wait(lambda: session.distribution and session.distribution.node == session.current_node, "the distribution")
    driver.settle(200)
    other = next(c for c in session.distribution.candidates if c.id != session.nodes_ahead()[0].token_id)  # type: ignore[union-attr]
    index = sampling.table.model().index(other.rank, TOKEN)
    rect = sampling.table.visualRect(index)
    QTest.mouseClick(sampling.table.viewport(), Qt.MouseButton.LeftButton, pos=rect.center())
    driver.wait(lambda: len(session.path_nodes()) == 7 and not session.busy, "branching")
    assert tokens(driver)[-1] == other.id
    assert session.path_nodes()[-1].forced
    driver.wait(timeline.tree.isVisible, "showing the branches")
    assert timeline.tree.lanes == 2


def hover_is_linked(driver: Driver) -> None:
    prompt = panels(driver)[0]
    assert driver.application.ctx is not None
    selection = driver.application.ctx.selection
    prompt.strip.verticalScrollBar().setValue(0)
    place = prompt.strip.chip_rect(3).center().toPoint()
    QTest.mouseMove(prompt.strip.viewport(), QPoint(1, prompt.strip.viewport().height() - 1))
    QTest.mouseMove(prompt.strip.viewport(), place)
    driver.wait(lambda: selection.hover_token == 3, "hovering")
    assert prompt.edit.extraSelections()


def test_the_main_job(driver: Driver) -> None:
    first_start_shows_the_example(driver)
    hover_is_linked(driver)
    sliders_answer_without_a_step_and_steer_the_next(driver)
    a_click_on_a_candidate_branches(driver)
    type_prefill_step_back_and_forth(driver)


def test_run_until_stop_then_kill_and_restart(driver: Driver) -> None:
    session, window = driver.session, driver.window
    leave_the_text(driver)
    driver.press("R")
    driver.wait(lambda: len(session.path_nodes()) >= 9, "running")
    driver.press("Esc")
    driver.wait(lambda: not session.busy, "stopping", 20)
    assert session.can_run
    session.set_sampler(temperature=1.3, seed=99)
    kept, text, sampler = tokens(driver), session.run_text, session.sampler
    driver.press("R")
    driver.wait(lambda: len(tokens(driver)) > len(kept), "running again")
    assert session.hello is not None
    os.kill(session.hello.pid, signal.SIGKILL)
    driver.wait(window.banners.isVisible, "saying that the engine is gone")
    kept_now = tokens(driver)
    assert kept_now[: len(kept)] == kept
    assert session.engine_status == "lost"
    driver.wait(lambda: not window.run_bar.step.isEnabled(), "disabling the steps", 5)
    button = window.banners.findChild(QPushButton, "restart-engine")
    assert isinstance(button, QWidget)
    driver.click(button)
    driver.wait(lambda: session.can_run and not session.busy and session.length == len(kept_now), "restoring", 200)
    assert tokens(driver) == kept_now
    assert session.run_text.startswith(text)
    assert session.sampler == sampler
    assert not window.banners.isVisible()
    leave_the_text(driver)
    driver.press("Space")
    driver.wait(lambda: len(tokens(driver)) == len(kept_now) + 1 and not session.busy, "a step after the restart")


def test_closing_while_the_engine_works_takes_under_a_second(driver: Driver) -> None:
    leave_the_text(driver)
    driver.press("R")
    driver.wait(lambda: driver.session.busy, "running")
    assert close(driver.application) < CLOSE_SECONDS
