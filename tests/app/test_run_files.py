"""Runs saved and opened in the real window with the real engine, and the command line that makes a view again."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot
from safetensors.numpy import load_file

from app.export.exporter import Exporter
from app.export.run_commands import copy_command
from app.export.save_run import SaveRunDialog
from app.main import Application, create
from app.settings import Settings, default_path
from model import __main__ as program
from model.protocol.export_requests import RunContents
from tests.app.shell import close_window
from tests.model.checkpoint import files

SECONDS = 60_000


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.set_num_threads(1)
    return files.folder(tmp_path_factory.mktemp("tiny"), max_position_embeddings=256)


@pytest.fixture
def application(tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, qtbot: QtBot) -> Iterator[Application]:
    """The window after its first start on the tiny model, the example stepped."""
    monkeypatch.setenv("DECODERSCOPE_CONFIG", str(tmp_path / "config"))
    settings = Settings(default_path())
    settings.update(recent_models=(str(tiny),), threads=1, device="cpu", dtype="float32")
    settings.save()
    opened = create()
    with qtbot.waitSignal(opened.window.populated, timeout=20_000):
        opened.window.show()
    idle(qtbot, opened, lambda: len(session_of(opened).path_nodes()) == 7)
    yield opened
    close_window(opened)


def session_of(application: Application) -> Any:
    assert application.ctx is not None
    return application.ctx.session


def idle(qtbot: QtBot, application: Application, done: Any = lambda: True) -> None:
    session = session_of(application)
    qtbot.waitUntil(lambda: not session.busy and bool(done()), timeout=SECONDS)


def saved(qtbot: QtBot, application: Application, path: Path, contents: RunContents = "all") -> Path:
    """By the dialog, as a person does."""
    application.window.setFocus()
    QTest.keyClick(application.window, Qt.Key.Key_S, Qt.KeyboardModifier.ControlModifier)
    qtbot.waitUntil(lambda: bool(dialogs()))
    [dialog] = dialogs()
    qtbot.waitUntil(lambda: "·" in dialog.choices["all"].text())
    dialog.choices[contents].click()
    for odd in (".", "/", "..", "~nobody-of-this-name/a", "/tmp/" + "x" * 300, str(path.parent)):
        dialog.path_edit.setText(odd)  # names no file can have
        assert not dialog.save_button.isEnabled() and dialog.note.text()
    for odd, name in (("a:b", "a-b"), ("a\0b", "ab"), ("\u0007", "export")):
        dialog.path_edit.setText(str(path.parent / odd))
        assert dialog.save_button.isEnabled() and dialog.note.text() == f"The file will be called {name}.dscope."
    dialog.path_edit.setText(str(path.with_suffix("")))
    assert dialog.note.text() == ""
    QTest.mouseClick(dialog.save_button, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: not dialogs(), timeout=SECONDS)
    assert path.exists()
    return path


def dialogs() -> list[SaveRunDialog]:
    return [w for w in QApplication.topLevelWidgets() if isinstance(w, SaveRunDialog) and w.isVisible()]


def test_a_run_is_saved_opened_looked_at_and_gone_on_with(
    qtbot: QtBot, application: Application, tmp_path: Path
) -> None:
    session, window = session_of(application), application.window
    path = saved(qtbot, application, tmp_path / "a.dscope")
    text, ids = session.run_text, [token.id for token in session.path_tokens()]
    old = session.run_id
    window.open_path(path)  # with its model
    idle(qtbot, application, lambda: session.run_id != old)
    assert session.run_text == text and session.can_run and not session.files.recorded
    assert session.settings.values.recent_models[0] == str(path)
    other = files.folder(tmp_path / "other", num_hidden_layers=1, max_position_embeddings=256)
    window.open_path(other)
    idle(qtbot, application, lambda: session.model.n_layers == 1)
    window.open_path(path)  # without it
    idle(qtbot, application, lambda: session.model.n_layers == 2)
    assert session.files.recorded and session.run_text == text and session.prompt_text in text
    assert [token.id for token in session.path_tokens()] == ids
    qtbot.waitUntil(lambda: window.run_bar.model.hint == "recorded")  # bars follow a turn of the loop later
    assert not window.registry.can("run.step") and not window.registry.can("run.prefill")
    notices = [banner for banner in window.banners.notices if "was recorded with" in banner.sentence.text()]
    assert len(notices) == 1
    window.registry.run("run.back")
    idle(qtbot, application, lambda: len(session.path_nodes()) == 6)
    window.registry.run("run.last")
    idle(qtbot, application, lambda: len(session.path_nodes()) == 7)
    assert window.registry.run("file.go_on")
    idle(qtbot, application, lambda: session.can_run and session.run is not None and session.length == len(ids))
    assert [token.id for token in session.path_tokens()] == ids and not session.files.recorded
    window.registry.run("run.step")
    idle(qtbot, application, lambda: session.length == len(ids) + 1)


def test_a_run_in_another_dtype_keeps_its_numbers_and_is_gone_on_with_in_that_dtype(
    qtbot: QtBot, application: Application, tmp_path: Path
) -> None:
    session, window = session_of(application), application.window
    session.desk.open(session.source, dtype="bfloat16")
    idle(qtbot, application, lambda: session.model.dtype == "bfloat16")
    session.prefill(then_steps=2)
    idle(qtbot, application, lambda: session.run is not None and len(session.path_nodes()) == 2)
    path, nodes = saved(qtbot, application, tmp_path / "a.dscope"), session.path_nodes()
    session.open_model(session.source)  # in float32, as the preferences say
    idle(qtbot, application, lambda: session.model.dtype == "float32" and session.path_nodes() != nodes)
    assert [node.token_id for node in session.path_nodes()] == [node.token_id for node in nodes]  # made again
    window.open_path(path)
    idle(qtbot, application, lambda: session.files.recorded)
    assert session.path_nodes() == nodes and session.model.dtype == "bfloat16"
    assert "recorded in bfloat16" in application.notify.last and "float32" in application.notify.last
    assert window.registry.run("file.go_on")
    idle(qtbot, application, lambda: session.can_run and session.run is not None)
    assert session.model.dtype == "bfloat16" and session.path_nodes() == nodes
    session.restart_engine()
    idle(qtbot, application, lambda: session.can_run and session.run is not None)
    assert session.model.dtype == "bfloat16"


def test_text_alone_opens_its_model_by_itself(qtbot: QtBot, application: Application, tmp_path: Path) -> None:
    session = session_of(application)
    path, text = saved(qtbot, application, tmp_path / "a.dscope", "text"), session.run_text
    other = files.folder(tmp_path / "other", num_hidden_layers=1, max_position_embeddings=256)
    application.window.open_path(other)
    idle(qtbot, application, lambda: session.model.n_layers == 1)
    application.window.open_path(path)
    idle(qtbot, application, lambda: session.model.n_layers == 2 and session.run is not None)
    assert session.run_text == text and session.can_run


def test_a_file_that_is_no_run_says_why_and_changes_nothing(
    qtbot: QtBot, application: Application, tmp_path: Path
) -> None:
    session, before = session_of(application), session_of(application).run_id
    broken = tmp_path / "broken.dscope"
    broken.write_bytes(b"not a run" * 50)
    told: list[Any] = []
    application.notify.trouble.connect(told.append)
    application.window.open_path(broken)
    qtbot.waitUntil(lambda: bool(told), timeout=SECONDS)
    assert "broken.dscope" in told[0].message and session.run_id == before and session.can_run
    for widget in QApplication.topLevelWidgets():
        if widget.objectName() == "error-dialog":
            widget.close()


def test_the_copied_line_makes_the_view_again(
    qtbot: QtBot, application: Application, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    session, window = session_of(application), application.window
    application.ctx.selection.set_layer_head(1, 2)  # type: ignore[union-attr]
    lines = {}
    for name in ("drawn", "forced"):
        lines[name] = copied(window)
        whole = saved(qtbot, application, tmp_path / f"{name}.dscope")
        out = ("--out", str(tmp_path), "--name", name, "--overwrite")
        assert export([*shlex.split(lines[name])[1:], *out, "--format", "npz"]) == 0
        made = np.load(tmp_path / f"{name}.npz")["values"]
        same = ["export", "--run", str(whole), "--layer", "1", "--head", "2", *out, "--format", "npz"]
        assert export(same) == 0
        assert np.array_equal(made, np.load(tmp_path / f"{name}.npz")["values"], equal_nan=True)
        if name == "drawn":
            session.branch(session.current_node, 65)
            idle(qtbot, application, lambda: len(session.path_nodes()) == 8)
    assert "--steps 7" in lines["drawn"] and "--prompt " in lines["drawn"] and "--temperature 0" in lines["drawn"]
    assert "--force-ids" in lines["forced"] and ",65" in lines["forced"]
    sampling = window.docks["sampling"].panel
    copy_command(sampling)
    line = QGuiApplication.clipboard().text()
    assert "--what sampler" in line and "--top-k 40" in line and "--force-ids" in line
    capsys.readouterr()


def test_ctrl_e_exports_the_panel_with_the_focus(qtbot: QtBot, application: Application, tmp_path: Path) -> None:
    window, session = application.window, session_of(application)
    for name, kind, focus in (("sampling", "sampler", "table"), ("timeline", "panel", "table"), ("", "attention", "")):
        qtbot.waitUntil(window.isActiveWindow)  # the dialog of before has gone
        (getattr(window.docks[name].panel, focus) if name else window).setFocus()
        QTest.keyClick(window, Qt.Key.Key_E, Qt.KeyboardModifier.ControlModifier)
        qtbot.waitUntil(lambda: bool(QApplication.activeModalWidget()))
        assert application.ctx is not None
        dialog: Any = QApplication.activeModalWidget()
        assert dialog.kind_box.key() == kind
        dialog.folder_edit.setText(str(tmp_path))
        dialog.name_edit.setText(kind)
        dialog.choose("activation")
        dialog.names_edit.setText("layers.0.attn.pattern")
        dialog.boxes["safetensors"].setChecked(True)
        with qtbot.waitSignal(Exporter.shared(application.ctx).ended, timeout=SECONDS):
            dialog.export()
        assert load_file(tmp_path / f"{kind}.safetensors")["ids"].tolist() == [t.id for t in session.path_tokens()]


def copied(window: Any) -> str:
    QGuiApplication.clipboard().clear()
    window.setFocus()
    assert window.registry.run("file.copy_command")
    return QGuiApplication.clipboard().text()


def export(arguments: list[str]) -> int:
    return program.main([*arguments, "--threads", "1"])
