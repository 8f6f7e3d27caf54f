"""Every panel at 4,096 tokens of the default model in the real window: drawn, and as quickly as at 12."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PySide6.QtTest import QTest

from app.main import Application
from app.panels.base import Panel
from app.tour.driver import Driver
from tests.app.gui_time import CALL_MS, text_of
from tests.app.shell import close_window, window_with
from tests.app.test_every_family import empty_boxes

LENGTHS = (12, 4096)

pytestmark = [pytest.mark.long, pytest.mark.timeout(1800), pytest.mark.usefixtures("qapp", "default_model_path")]


@pytest.fixture
def driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, qtbot: object) -> Iterator[Driver]:
    application: Application = window_with(tmp_path / "config", monkeypatch, qtbot, None)  # type: ignore[arg-type]
    driver = Driver(application, tmp_path)
    try:
        application.window.resize(1400, 900)
        driver.wait(lambda: len(driver.session.path_nodes()) == 7 and not driver.session.busy, "the example", 300)
        yield driver
    finally:
        close_window(application)


def own_ms(call: Callable[[], object]) -> float:
    """Processor time of this thread, the least of three: what else the machine does is not in it."""
    times = []
    for _ in range(3):
        begun = time.thread_time()
        call()
        times.append((time.thread_time() - begun) * 1000)
    return min(times)


def refresh(panel: Panel) -> None:
    """All of a panel made again from the shared state."""
    panel._pending.update(str(name) for name in panel.watches)
    assert panel.flush()


def look(driver: Driver, panel: Panel) -> tuple[float, float]:
    """Milliseconds of a refresh and of drawing it, once what it asked for has come; and nothing in it is empty."""
    for _ in range(2):
        QTest.qWait(300)
        driver.wait(lambda: panel.settled, f"drawing {panel.panel_id}", 300)
    assert panel._empty is None
    assert empty_boxes(panel) == []
    times = own_ms(lambda: refresh(panel)), own_ms(panel.repaint)
    driver.wait(lambda: panel.settled, f"drawing {panel.panel_id} again", 300)
    return times


def test_every_panel_at_12_and_at_4096_tokens(driver: Driver) -> None:
    session, window = driver.session, driver.window
    found: dict[str, list[tuple[float, float]]] = {}
    for length in LENGTHS:
        run = session.run_id
        session.set_prompt(text_of(length))
        session.prefill(then_steps=2)
        driver.wait(lambda run=run: session.run_id != run and len(session.path_nodes()) == 2, "the run", 600)  # type: ignore[misc]
        driver.wait(lambda: not session.busy, "the steps")
        assert session.n_prompt == length
        for name, dock in window.docks.items():
            dock.raise_()
            driver.wait(dock.panel.seen, f"showing {name}")
            window.toggle_maximised(dock)
            found.setdefault(name, []).append(look(driver, dock.panel))
            window.grab().save(str(driver.out / f"{length}-{name}.png"))
            window.toggle_maximised(dock)
    print(f"\npictures in {driver.out}\n{'ms of own time':16}" + "".join(f"{n:>10,} tok {'draw':>6}" for n in LENGTHS))
    for name, times in found.items():
        print(f"{name:16}" + "".join(f"{refreshed:14.1f} {drawn:6.1f}" for refreshed, drawn in times))
    assert not driver.trouble
    slow = {name: times for name, times in found.items() if max(map(max, times)) > CALL_MS}
    assert slow == {}
