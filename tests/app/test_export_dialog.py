"""The export dialog: a preview from the engine, files on the disk, options remembered, an end that can be cancelled."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from PySide6.QtCore import QEvent, Qt, QTimer
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot
from shiboken6 import isValid

from app.dialogs.ask import ConfirmDialog
from app.export.dialog import PREVIEW_DELAY_MS, ExportDialog
from app.export.exporter import Exporter, ExportOptions, formats_of, free_stem
from app.export.subjects import safe_stem, stem_of
from app.panels.attention import AttentionPanel
from app.state.under_way import Phase
from app.theme import Theme
from app.widgets.busy_bar import BusyBar
from model.protocol.export_requests import ExportAttention
from model.protocol.wire import Progress, Request
from tests.app.attention_bench import Bench

LEFT = Qt.MouseButton.LeftButton


@pytest.fixture
def bench(qtbot: QtBot, tmp_path: Path) -> Bench:
    del qtbot
    made = Bench(tmp_path, Theme("dark"))
    made.run(19, 7)
    return made


@pytest.fixture
def panel(qtbot: QtBot, bench: Bench) -> AttentionPanel:
    made = bench.panel()
    qtbot.addWidget(made)
    made.resize(800, 600)
    made.show()
    qtbot.waitExposed(made)
    return made


@pytest.fixture
def exporter(panel: AttentionPanel) -> Exporter:
    return Exporter.shared(panel.ctx)


def opened(qtbot: QtBot, panel: AttentionPanel, folder: Path) -> ExportDialog:
    dialog = Exporter.shared(panel.ctx).open(panel)
    qtbot.waitExposed(dialog)
    dialog.folder_edit.setText(str(folder))
    return dialog


def asked(bench: Bench) -> list[ExportAttention]:
    return [m for m in bench.engine.asked if isinstance(m, ExportAttention)]


def test_the_preview_is_the_engines_picture(qtbot: QtBot, bench: Bench, panel: AttentionPanel, tmp_path: Path) -> None:
    dialog = opened(qtbot, panel, tmp_path)
    qtbot.waitUntil(lambda: not dialog.preview.pixmap().isNull())
    message = asked(bench)[-1]
    assert message.formats == ("png",)
    assert message.view == bench.selection.view
    shown = dialog.preview.pixmap()
    assert shown.width() / shown.height() == pytest.approx(message.width / message.height, rel=0.02)
    before = len(asked(bench))
    for value in (8.0, 9.0, 10.0, 11.0):
        dialog.width_box.setValue(value)
    qtbot.waitUntil(lambda: len(asked(bench)) > before)
    assert len(asked(bench)) == before + 1
    assert asked(bench)[-1].width == 11.0
    dialog.reject()


def test_every_format_lands_on_the_disk_and_is_remembered(
    qtbot: QtBot, bench: Bench, exporter: Exporter, panel: AttentionPanel, tmp_path: Path
) -> None:
    folder = tmp_path / "figures"
    dialog = opened(qtbot, panel, folder)
    for box in dialog.boxes.values():
        box.setChecked(True)
    assert dialog.boxes["safetensors"].isVisible()
    dialog.name_edit.setText("my head")
    dialog.dpi_box.setValue(72)
    dialog.whole_box.set_key(key=False)
    qtbot.waitUntil(lambda: panel.main.heat.shape == (19, 19))
    with qtbot.waitSignal(exporter.ended, timeout=5000) as blocker:
        QTest.mouseClick(dialog.export_button, LEFT)
    assert [path.name for path in blocker.args[0]] == [f"my-head.{f}" for f in formats_of("attention")]
    assert all(path.exists() for path in blocker.args[0])
    assert (folder / "my-head.csv").read_bytes() == b"csv"
    message = asked(bench)[-1]
    assert (message.rows, message.cols) == ((0, 19), (0, 19))
    assert exporter.toast is not None
    remembered = ExportOptions.remembered(bench.settings.panel("export"))
    assert remembered == exporter.options
    assert remembered.dpi == 72
    assert not remembered.whole
    exporter.toast.close()


def test_again_keeps_what_is_there(qtbot: QtBot, exporter: Exporter, panel: AttentionPanel, tmp_path: Path) -> None:
    exporter.remember(ExportOptions(formats=("csv",), folder=str(tmp_path)))
    names = []
    for _ in range(3):
        with qtbot.waitSignal(exporter.ended, timeout=5000) as blocker:
            exporter.again(panel)
        names.append(blocker.args[0][0].name)
    stem = stem_of("attention", panel)
    assert names == [f"{stem}.csv", f"{stem}-2.csv", f"{stem}-3.csv"]
    assert exporter.toast is not None
    exporter.toast.close()


def test_files_that_exist_are_asked_about(
    qtbot: QtBot, exporter: Exporter, panel: AttentionPanel, tmp_path: Path
) -> None:
    dialog = opened(qtbot, panel, tmp_path)
    dialog.boxes["png"].setChecked(False)
    dialog.name_edit.setText("there")
    (tmp_path / "there.csv").write_text("mine")
    answers: list[str] = []

    def answer(*, replace: bool) -> None:
        box = QApplication.activeModalWidget()
        assert isinstance(box, ConfirmDialog)
        answers.append(box.sentence.text())
        assert box.keep.isDefault()
        (box.go if replace else box.keep).click()

    QTimer.singleShot(50, lambda: answer(replace=False))
    dialog.export()
    assert (tmp_path / "there.csv").read_text() == "mine"
    QTimer.singleShot(50, lambda: answer(replace=True))
    with qtbot.waitSignal(exporter.ended, timeout=5000):
        dialog.export()
    assert (tmp_path / "there.csv").read_text() == "csv"
    assert all("there.csv" in text for text in answers)
    assert exporter.toast is not None
    exporter.toast.close()


def test_cancel_ends_the_export_and_leaves_no_file(
    qtbot: QtBot, bench: Bench, exporter: Exporter, panel: AttentionPanel, tmp_path: Path
) -> None:
    dialog = opened(qtbot, panel, tmp_path / "none")
    bench.engine.held = True
    dialog.export()
    assert dialog.bar.isVisible() and isinstance(dialog.bar, BusyBar) and dialog.bar.busy
    assert not dialog.export_button.isEnabled()
    with qtbot.waitSignal(exporter.ended, timeout=5000) as blocker:
        QTest.keyClick(dialog, Qt.Key.Key_Escape)
    assert blocker.args == [[]]
    assert dialog.isVisible()
    assert dialog.export_button.isEnabled()
    assert not list((tmp_path / "none").glob("*")) if (tmp_path / "none").exists() else True
    dialog.reject()


def test_a_cancel_says_so_at_once_and_an_export_that_does_not_end_holds_no_dialog(
    qtbot: QtBot,
    bench: Bench,
    exporter: Exporter,
    panel: AttentionPanel,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    dialog = opened(qtbot, panel, tmp_path)
    bench.engine.held = True
    dialog.export()
    assert exporter.running is not None
    monkeypatch.setattr(exporter.running, "cancel", lambda: None)  # an engine that does not hear
    dialog.reject()
    assert dialog.isVisible() and dialog.progress_note.text() == bench.notify.last == "Stopping …"
    dialog.reject()
    assert not dialog.isVisible()
    other = opened(qtbot, panel, tmp_path)
    assert not other.export_button.isEnabled() and "An export is under way." in other.note.text()
    monkeypatch.undo()
    with qtbot.waitSignal(exporter.ended, timeout=5000):
        exporter.cancel()
    assert other.export_button.isEnabled() and "under way" not in other.note.text() and other.isVisible()
    other.reject()


@pytest.mark.parametrize(
    ("typed", "stem", "said"),
    [
        ("\U0001f600", "attention", "No character of this name can be used: the files will be called attention."),
        ("\u202e", "attention", "No character of this name"),
        ("a\u202eb", "a-b", "The files will be called a-b."),
        (".hid", "hid", "The files will be called hid."),
        ("x" * 400, "x" * 120, "The files will be called xxx"),
        (" plain ", "plain", ""),
        ("attention", "attention", ""),
    ],
)
def test_a_name_that_is_changed_is_told_and_is_the_one_asked_about(
    qtbot: QtBot,
    panel: AttentionPanel,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    typed: str,
    stem: str,
    said: str,
) -> None:
    dialog = opened(qtbot, panel, tmp_path)
    dialog.name_edit.setText(typed)
    assert said in dialog.note.text()
    assert bool(said) is ("called" in dialog.note.text())
    (tmp_path / f"{stem}.csv").write_text("mine")
    asked: list[list[str]] = []
    monkeypatch.setattr(dialog, "_may_replace", asked.append)
    dialog.export()
    assert asked == [[f"{stem}.csv"]]
    dialog.reject()


@pytest.mark.parametrize("folder", ["~nobody-of-this-name/out", "~nobody-of-this-name"])
def test_a_folder_of_no_user_is_refused_while_it_is_typed(qtbot: QtBot, panel: AttentionPanel, folder: str) -> None:
    dialog = opened(qtbot, panel, Path(folder))
    assert not dialog.export_button.isEnabled()
    assert "~nobody-of-this-name: there is no such user" in dialog.note.text()
    exporter = Exporter.shared(panel.ctx)
    exporter.remember(ExportOptions(formats=("csv",), folder=folder))
    with qtbot.waitSignal(exporter.ended, timeout=5000) as blocker:
        exporter.again(panel)
    assert blocker.args == [[]]
    dialog.reject()


@pytest.mark.parametrize("name", ["a\0b", "a" * 300, "\ud800", "a" * 5000])
def test_a_folder_that_no_system_takes_is_refused(
    qtbot: QtBot, exporter: Exporter, panel: AttentionPanel, tmp_path: Path, name: str
) -> None:
    exporter.remember(ExportOptions(formats=("csv",), folder=str(tmp_path / name)))
    with qtbot.waitSignal(exporter.ended, timeout=5000) as blocker:
        exporter.again(panel)
    assert blocker.args == [[]] and not list(tmp_path.glob("a*"))


def test_nothing_to_write_cannot_be_exported(qtbot: QtBot, panel: AttentionPanel, tmp_path: Path) -> None:
    dialog = opened(qtbot, panel, tmp_path)
    for box in dialog.boxes.values():
        box.setChecked(False)
    assert not dialog.export_button.isEnabled()
    dialog.boxes["npz"].setChecked(True)
    assert dialog.export_button.isEnabled()
    assert not dialog.dpi_box.isEnabled()
    dialog.reject()


@pytest.mark.parametrize(
    "values",
    [
        {"formats": ["exe"], "theme": 3, "colormap": None, "dpi": "many", "width": float("nan")},
        {"formats": [], "dpi": -1, "height": 1e9},
        {},
    ],
)
def test_preferences_that_do_not_fit_are_left_at_their_defaults(values: dict[str, object]) -> None:
    assert ExportOptions.remembered(values) == ExportOptions()


def test_names_of_files_are_safe(tmp_path: Path) -> None:
    assert safe_stem("a/../b: c*?") == "a-..-b-c"
    assert safe_stem("…/") == "attention"
    assert safe_stem("注意力 L1") == "注意力-L1"
    assert free_stem(tmp_path, "x", ("csv",)) == "x"


def test_nothing_lies_over_the_form_whatever_is_chosen(
    qtbot: QtBot, exporter: Exporter, panel: AttentionPanel, tmp_path: Path
) -> None:
    """The cover of a sliced line was placed while two scroll bars came and went, and stayed over words and preview."""
    exporter.remember(ExportOptions(formats=("png", "csv"), folder=str(tmp_path)))
    dialog = opened(qtbot, panel, tmp_path)
    for kind in ("panel", "attention", "sheet", "grid", "text", "attention", "panel", "grid", "attention", "sheet"):
        dialog.choose(kind)
        qtbot.wait(80)
        assert dialog.scroller.verticalScrollBar().maximum() == 0, kind
        assert not dialog.edge.isVisible(), kind
        assert dialog.note.height() >= dialog.note.heightForWidth(dialog.note.width()), kind
    dialog.reject()


def test_the_preview_follows_the_run(qtbot: QtBot, bench: Bench, panel: AttentionPanel, tmp_path: Path) -> None:
    """It showed the matrix of the tokens that were there when the dialog was opened, and others were written."""
    session, words = bench.session, "The run has moved on: this is drawn again once it rests."
    dialog = opened(qtbot, panel, tmp_path)
    qtbot.waitUntil(lambda: not dialog.preview.pixmap().isNull())
    assert not dialog.moved.text()
    before, size = len(asked(bench)), dialog.preview.size()
    session.under_way.begin(Phase.DECODE, "", SimpleNamespace(cancel=lambda: None))  # type: ignore[arg-type]
    bench.run(20, 8)  # tokens are coming
    assert dialog.moved.text() == words
    qtbot.wait(2 * PREVIEW_DELAY_MS)
    assert len(asked(bench)) == before and dialog.preview.size() == size
    session.under_way.end()
    qtbot.waitUntil(lambda: len(asked(bench)) > before and not dialog.moved.text())
    bench.run(19, 7, run_id=2)  # another run, all at once
    assert dialog.moved.text() == words
    qtbot.waitUntil(lambda: not dialog.moved.text())
    qtbot.wait(2 * PREVIEW_DELAY_MS)
    assert len(asked(bench)) == before + 2
    dialog.reject()


def test_an_export_waits_for_no_measurement_and_no_preview_and_says_how_far_it_is(
    qtbot: QtBot,
    bench: Bench,
    exporter: Exporter,
    panel: AttentionPanel,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    dialog = opened(qtbot, panel, tmp_path)
    bench.engine.held = True
    before = len(asked(bench))
    qtbot.waitUntil(lambda: len(asked(bench)) == before + 1)  # the preview is being drawn
    calls: dict[str, object] = {}
    request = bench.engine.request

    def noted(message: Request, **others: Any) -> object:
        calls.update(others)
        return request(message, **others)

    monkeypatch.setattr(bench.engine, "request", noted)
    under_way = bench.session.under_way
    under_way.begin(Phase.PREFILL, "Prefilling", SimpleNamespace(cancel=lambda: None))  # type: ignore[arg-type]
    under_way.on_progress(Progress(what="prefill", done=1024, total=3889, unit="tokens"))
    dialog.export()
    assert calls.get("priority", "interactive") == "interactive"
    assert not any(message.stem == "preview" for message in waiting_exports(bench))
    assert dialog.progress_note.text() == "Waiting: Prefilling  1,024 / 3,889 tokens"
    assert (dialog.bar.value(), dialog.bar.maximum()) == (1024, 3889)
    under_way.end()
    assert dialog.progress_note.text() == "Exporting …" and dialog.bar.busy
    assert exporter.running is not None
    exporter.running.progressed.emit(Progress(what="heads", done=12, total=270, unit="heads"))
    assert dialog.progress_note.text() == "Exporting  12 / 270 heads"
    task = bench.session.aside.newest
    assert task is not None and task.progress is not None
    assert (task.progress.what, task.progress.done, task.progress.total) == ("Exporting", 12, 270)
    with qtbot.waitSignal(exporter.ended, timeout=5000):
        dialog.reject()
    dialog.reject()


def waiting_exports(bench: Bench) -> list[ExportAttention]:
    return [asked.message for asked in bench.engine._queue if isinstance(asked.message, ExportAttention)]


@pytest.fixture
def housed(qtbot: QtBot, bench: Bench) -> Iterator[AttentionPanel]:
    """A panel in a window that stays when it goes."""
    window = QWidget()
    qtbot.addWidget(window)
    window.resize(800, 600)
    panel = bench.panel()
    panel.setParent(window)
    window.show()
    qtbot.waitExposed(window)
    yield panel
    window.close()


def take_away(panel: AttentionPanel) -> None:
    """As another language does, which makes it anew."""
    panel.deleteLater()
    QApplication.sendPostedEvents(panel, QEvent.Type.DeferredDelete.value)
    assert not isValid(panel)


@pytest.mark.parametrize("formats", [("png",), ("csv",)])
def test_an_export_ends_when_its_panel_is_made_anew_in_another_language(
    qtbot: QtBot, bench: Bench, housed: AttentionPanel, tmp_path: Path, formats: tuple[str, ...]
) -> None:
    """At its end it asked the panel that was gone where to say so, and no other export could begin."""
    window, exporter = housed.window(), Exporter.shared(housed.ctx)
    bench.engine.held = True
    want = ExportOptions(formats=formats).want("attention", "map")
    exporter.start(housed, want, tmp_path, overwrite=False)
    take_away(housed)
    with qtbot.waitSignal(exporter.ended) as ended:
        bench.engine.held = False
        bench.engine.release()
    assert ended.args == [[tmp_path / f"map.{formats[0]}"]]
    assert exporter.running is None and exporter.toast is not None and exporter.toast.parent() is window


def test_a_panels_tables_that_never_come_end_their_export(
    qtbot: QtBot, housed: AttentionPanel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    exporter = Exporter.shared(housed.ctx)
    monkeypatch.setattr(housed, "tables", lambda _done: None)
    exporter.start(housed, ExportOptions(formats=("csv",)).want("panel", "it"), tmp_path, overwrite=False)
    assert exporter.running is not None
    with qtbot.waitSignal(exporter.ended) as ended:
        take_away(housed)
    assert ended.args == [[]] and exporter.running is None and not list(tmp_path.glob("it*"))


def test_the_dialog_goes_with_its_panel(qtbot: QtBot, housed: AttentionPanel, tmp_path: Path) -> None:
    dialog = opened(qtbot, housed, tmp_path)
    with qtbot.waitSignal(dialog.finished):
        take_away(housed)
