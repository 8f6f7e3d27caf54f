"""The window when things go wrong around it: closed at every stage, an engine that lies, numbers that are none, memory
that is told before it is taken."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PySide6.QtWidgets import QLabel, QPushButton
from pytestqt.qtbot import QtBot
from safetensors.torch import load_file, save_file

from app.dialogs.error import ErrorDialog
from app.export.files import FileExport
from app.frame.pages import AbsentPage
from app.main import Application
from app.panels.prompt import PromptPanel
from app.settings import Settings, default_path
from model.loading import open_model
from model.protocol.attention_requests import HeadView
from model.protocol.export_requests import ExportAttention
from model.protocol.run_requests import Prefill
from model.protocol.values import NOT_FINITE, bytes_kept
from model.store import cost_of
from tests import fake_engine
from tests.app.shell import TIMEOUT, close_window, window_with
from tests.model.checkpoint import files
from tests.model.engine_child import alive

CLOSE_SECONDS = 1.5  # a second, and what a busy machine adds


@pytest.fixture
def faked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, qtbot: QtBot) -> Iterator[Application]:
    monkeypatch.setenv("FAKE_ENGINE_LOAD_SECONDS", "0")
    made = window_with(tmp_path / "config", monkeypatch, qtbot, fake_engine.command())
    yield made
    close_window(made)


def ready(application: Application, qtbot: QtBot) -> Any:
    """The session, once the fake engine has opened its model and shown its example."""
    assert application.ctx is not None
    session = application.ctx.session
    qtbot.waitUntil(lambda: session.can_run and not session.busy, timeout=TIMEOUT)
    return session


def _prefill(session: Any) -> None:
    session.engine.request(Prefill(text="a", chunk=4000))


def _decode(session: Any) -> None:
    session._step(4000, session.sampler)


def _export(session: Any) -> None:
    session.engine.request(ExportAttention(view=HeadView(layer=0, head=0), dpi=10**6))


def _hang(session: Any) -> None:
    session.open_model("hang")


def _open(session: Any) -> None:
    session.open_model("sleep")


@pytest.mark.parametrize("stage", [None, _open, _hang, _prefill, _decode, _export])
def test_closing_at_any_stage_is_quick_and_leaves_no_process(
    faked: Application, qtbot: QtBot, stage: Callable[[Any], None] | None
) -> None:
    session = ready(faked, qtbot)
    child = session.engine._child.processId()
    faked.settings.update(theme="light")
    if stage is not None:
        stage(session)
        qtbot.wait(150)
    begun = time.monotonic()
    faked.window.close()
    session.engine.close()
    assert time.monotonic() - begun < CLOSE_SECONDS
    assert not alive(child)
    assert Settings(default_path()).values.theme == "light"  # nothing chosen is lost


def test_closing_while_the_engine_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, qtbot: QtBot) -> None:
    monkeypatch.setenv("FAKE_ENGINE_LOAD_SECONDS", "60")
    made = window_with(tmp_path / "config", monkeypatch, qtbot, fake_engine.command())
    assert made.ctx is not None
    child = made.ctx.engine._child.processId()  # type: ignore[union-attr]
    begun = time.monotonic()
    close_window(made)
    assert time.monotonic() - begun < CLOSE_SECONDS
    qtbot.waitUntil(lambda: not alive(child), timeout=2000)


@pytest.mark.parametrize("act", ["die", "exit", "garbage", "large", "raise", "memory", "wrong"])
def test_whatever_an_engine_does_the_window_says_so_and_the_next_action_works(
    faked: Application, qtbot: QtBot, act: str
) -> None:
    session = ready(faked, qtbot)
    session.set_prompt("kept text")
    session.set_sampler(temperature=1.25, seed=77)
    model, nodes = session.model, dict(session.nodes)
    session.open_model(act)
    qtbot.waitUntil(lambda: not session.busy, timeout=TIMEOUT)
    if act in {"die", "exit", "garbage"}:
        qtbot.waitUntil(lambda: session.engine_status == "lost", timeout=TIMEOUT)
        button = faked.window.banners.findChild(QPushButton, "restart-engine")
        assert isinstance(button, QPushButton)
        button.click()
        qtbot.waitUntil(lambda: session.can_look and not session.busy, timeout=TIMEOUT)
    else:
        assert faked.notify.last
    assert session.model is not None and session.model.name == model.name
    assert (session.prompt_text, session.sampler.temperature, session.sampler.seed) == ("kept text", 1.25, 77)
    assert set(nodes) <= set(session.nodes) or act in {"die", "exit", "garbage"}
    session.prefill()
    qtbot.waitUntil(lambda: session.run is not None and not session.busy, timeout=TIMEOUT)
    assert session.run_text == "kept text"
    for dialog in faked.window.findChildren(ErrorDialog):
        dialog.close()


# --- numbers that are none, with the real engine


def nan_model(path: Path) -> Path:
    files.folder(path)
    weights = load_file(path / "model.safetensors")
    weights["model.layers.1.mlp.up_proj.weight"][3, :4] = torch.tensor([float("nan"), float("inf"), float("-inf"), 0.0])
    save_file(weights, path / "model.safetensors", metadata={"format": "pt"})
    return path


def test_weights_and_logits_that_are_no_numbers_are_told_in_red_and_sampling_stops(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, qtbot: QtBot
) -> None:
    source = nan_model(tmp_path / "nan")
    application = window_with(tmp_path / "config", monkeypatch, qtbot, None, str(source))
    try:
        assert application.ctx is not None
        session = application.ctx.session
        qtbot.waitUntil(lambda: session.run is not None and not session.busy, timeout=60_000)
        red = [b.sentence.text() for b in application.window.banners.notices if b._voice == "red"]
        assert any("3 weights are NaN or infinite: layers.1.mlp.up_proj.weight (3)" in text for text in red)
        qtbot.waitUntil(
            lambda: any("logits after token" in b.sentence.text() for b in application.window.banners.notices),
            timeout=TIMEOUT,
        )
        length = session.length
        session.step(3)
        qtbot.waitUntil(lambda: not session.busy, timeout=TIMEOUT)
        assert session.length == length and "not numbers" in application.notify.last  # no token from a NaN draw
        good = files.folder(tmp_path / "good")
        session.open_model(str(good))  # and another model works
        qtbot.waitUntil(lambda: session.source == str(good) and not session.busy, timeout=TIMEOUT)
        session.prefill(then_steps=2)
        qtbot.waitUntil(lambda: session.run is not None and len(session.path_nodes()) == 2, timeout=TIMEOUT)
        assert np.isfinite([node.p for node in session.path_nodes()]).all()
    finally:
        close_window(application)


def test_a_warning_about_numbers_says_so_in_the_shared_words(tmp_path: Path) -> None:
    warnings = open_model(nan_model(tmp_path / "nan")).warnings
    assert [NOT_FINITE in warning for warning in warnings] == [True, True]


# --- memory, told before it is taken


def test_what_a_prompt_will_keep_is_shown_and_is_what_the_engine_estimates(
    faked: Application, qtbot: QtBot, tmp_path: Path
) -> None:
    model = open_model(files.folder(tmp_path / "tiny"))
    for tokens in (1, 7, 64):
        assert bytes_kept(model.info, tokens) == cost_of(model.decoder.config, tokens, 4).total
    session = ready(faked, qtbot)
    [panel] = [dock.panel for dock in faked.window.docks.values() if isinstance(dock.panel, PromptPanel)]

    def said() -> str:
        return f"{panel.count.text()}\n{panel.notices.text()}"  # the second has what is longer than a line of the first

    session.set_prompt("ab" * 40)
    qtbot.waitUntil(lambda: "KV + views" in said() and "too many" in panel.notices.text(), timeout=TIMEOUT)
    session.facts.set_memory(replace(fake_engine.MEMORY, budget=100))
    session.set_prompt("abc" * 40)
    qtbot.waitUntil(lambda: " need " in said() and "of 100 B" in said(), timeout=TIMEOUT)


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="signals are Unix's")
def test_an_engine_killed_while_exporting_leaves_no_file(tmp_path: Path, qtbot: QtBot, faked: Application) -> None:
    session = ready(faked, qtbot)
    out = tmp_path / "out"
    out.mkdir()
    export = FileExport(session.engine, out, overwrite=False)
    with qtbot.waitSignal(export.failed, timeout=TIMEOUT):
        export.start(ExportAttention(view=HeadView(layer=0, head=0), dpi=10**6))
        qtbot.wait(200)
        os.kill(session.engine._child.processId(), signal.SIGKILL)
    assert list(out.iterdir()) == []
    session.restart_engine()
    qtbot.waitUntil(lambda: session.can_look and not session.busy, timeout=TIMEOUT)


def test_a_model_that_moved_is_told_and_another_can_be_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, qtbot: QtBot
) -> None:
    monkeypatch.setenv("DECODERSCOPE_CONFIG", str(tmp_path / "config"))
    settings = Settings(default_path())
    settings.update(recent_models=("refuse", "other"))
    settings.save()
    application = window_with(tmp_path / "config", monkeypatch, qtbot, fake_engine.command())
    try:
        assert application.ctx is not None
        session = application.ctx.session
        qtbot.waitUntil(lambda: isinstance(application.window.pages.currentWidget(), AbsentPage), timeout=TIMEOUT)
        page = application.window.pages.currentWidget()
        assert page is not None
        assert any("source is 'refuse'" in label.text() for label in page.findChildren(QLabel))
        session.open_model("other")
        qtbot.waitUntil(lambda: session.can_run and not session.busy, timeout=TIMEOUT)
        assert not isinstance(application.window.pages.currentWidget(), AbsentPage)
    finally:
        close_window(application)


def test_what_an_engine_cannot_measure_is_not_said_to_be_under_way(faked: Application, qtbot: QtBot) -> None:
    """The fake engine knows neither request."""
    session = ready(faked, qtbot)
    qtbot.waitUntil(lambda: session.facts.stats_failed and session.facts.check_failed, timeout=TIMEOUT)
    panel: Any = faked.window.docks["model"].panel
    card = panel.grid.cards["checks"]
    faked.window.docks["model"].raise_()
    qtbot.waitUntil(lambda: card.caption.text() == "self-check · could not be made", timeout=TIMEOUT)
    session.facts.forget()
    assert not session.facts.stats_failed and not session.facts.check_failed


def test_preferences_that_cannot_be_saved_any_more_are_told(faked: Application, qtbot: QtBot) -> None:
    ready(faked, qtbot)
    faked.settings.forbid_writing("The disk is full.")
    assert [banner.sentence.text() for banner in faked.window.banners.notices][-1] == "The disk is full."
    assert faked.settings.notices == []
