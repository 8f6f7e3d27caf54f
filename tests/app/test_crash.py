"""How the program ends when it is told to, and what it says when something in the window goes wrong."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from PySide6.QtCore import QUrl
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QPushButton
from pytestqt.qtbot import QtBot

from app.dialogs.error import ErrorDialog
from app.health.report import CRASH_LOG, KEPT_CRASHES, engine_line, keep_last_crash, versions
from app.notify import Trouble
from app.theme import Theme
from model.protocol.engine_requests import HelloReply
from tests.app.shell import close_window, open_window

ROOT = Path(__file__).resolve().parents[2]
SILENT_ENGINE = [sys.executable, "-c", "import sys; sys.stdin.buffer.read()"]
QUICK = 3.0
SCRIPT = """
import signal, sys
if hasattr(signal, "alarm"):
    signal.alarm(60)  # a start that waits for ever
from PySide6.QtCore import QTimer
from app import main

def more(application):
    crash_guard(application)
    print("up", flush=True)
    {more}

crash_guard = main._guard
main._guard = more
sys.exit(main.run([]))
"""


def start(config: Path, more: str = "", stderr: int | None = None) -> subprocess.Popen[str]:
    config.mkdir(exist_ok=True)
    engine = str(SILENT_ENGINE).replace("'", '"')
    (config / "settings.json").write_text(f'{{"engine_command": {engine}}}', encoding="utf-8")
    environment = {**os.environ, "DECODERSCOPE_CONFIG": str(config), "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT.format(more=more)], env=environment, cwd=ROOT, stdout=subprocess.PIPE,
        stderr=stderr, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n"
    return process


def wait_for_child(process: subprocess.Popen[str]) -> psutil.Process:
    until = time.monotonic() + 20
    while time.monotonic() < until:
        children = psutil.Process(process.pid).children()
        if children:
            return children[0]
        time.sleep(0.05)
    pytest.fail("the window started no engine")


@pytest.mark.skipif(sys.platform == "win32", reason="signals are Unix's")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, getattr(signal, "SIGHUP", signal.SIGTERM)])
@pytest.mark.usefixtures("qapp")
def test_a_signal_closes_the_window_and_ends_the_engine(tmp_path: Path, number: int) -> None:
    with start(tmp_path / "config") as process:
        engine = wait_for_child(process)
        time.sleep(0.5)
        started = time.monotonic()
        process.send_signal(number)
        assert process.wait(20) == 0
        assert time.monotonic() - started < QUICK
    psutil.wait_procs([engine], timeout=QUICK)
    assert not engine.is_running()
    assert (tmp_path / "config" / "window.lock").exists() is False


@pytest.mark.usefixtures("qapp")
def test_an_error_in_a_slot_is_told_and_logged_and_the_window_goes_on(tmp_path: Path) -> None:
    more = (
        "QTimer.singleShot(800, lambda: 1 / 0); "
        "QTimer.singleShot(2000, lambda: (print(application.notify.last, flush=True), application.window.close()))"
    )
    with start(tmp_path / "config", more) as process:
        assert process.stdout is not None
        assert "division by zero" in process.stdout.readline()
        assert process.wait(20) == 0
    log = (tmp_path / "config" / "decoderscope.log").read_text(encoding="utf-8")
    assert "ZeroDivisionError" in log
    assert "Traceback" in log


@pytest.mark.skipif(sys.platform == "win32", reason="signals are Unix's")
@pytest.mark.usefixtures("qapp")
def test_a_hard_crash_leaves_a_report_that_the_next_window_names(tmp_path: Path) -> None:
    crash = "QTimer.singleShot(800, lambda: __import__('os').kill(__import__('os').getpid(), 11))"
    with start(tmp_path / "config", crash) as process:
        engine = wait_for_child(process)
        assert process.wait(30) == -signal.SIGSEGV
    psutil.wait_procs([engine], timeout=QUICK)
    assert not engine.is_running()  # no orphan
    assert "Segmentation fault" in (tmp_path / "config" / "crash.log").read_text(encoding="utf-8")
    told = (
        "QTimer.singleShot(2500, lambda: (print([b.sentence.text() for b in application.window.banners.notices], "
        "flush=True), application.window.close()))"
    )
    with start(tmp_path / "config", told) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert process.wait(30) == 0
    [report] = (tmp_path / "config").glob("crash-*.log")
    assert str(report) in line
    assert "Segmentation fault" in report.read_text(encoding="utf-8")
    assert (tmp_path / "config" / "crash.log").read_text(encoding="utf-8") == ""


@pytest.mark.usefixtures("qapp")
def test_an_error_that_comes_with_every_frame_is_told_once(tmp_path: Path) -> None:
    more = (
        "application.storm = QTimer(); application.storm.timeout.connect(lambda: 1 / 0); "
        "kind = __import__('app.dialogs.error').dialogs.error.ErrorDialog; window = application.window; "
        "end = lambda: (print(len(window.findChildren(kind)), flush=True), window.close()); "
        "begin = lambda: (application.storm.start(5), QTimer.singleShot(1000, application.storm.stop), "
        "QTimer.singleShot(1100, end)); "
        "begin() if application.ctx else window.populated.connect(begin)"
    )
    with start(tmp_path / "config", more) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "1\n"
        assert process.wait(30) == 0
    assert (tmp_path / "config" / "decoderscope.log").read_text(encoding="utf-8").count("Traceback") == 1


@pytest.mark.skipif(sys.platform == "win32", reason="there are no named pipes in folders")
@pytest.mark.parametrize("name", ["decoderscope.log", CRASH_LOG])
@pytest.mark.usefixtures("qapp")
def test_a_pipe_under_the_logs_name_does_not_hold_the_start(tmp_path: Path, name: str) -> None:
    config = tmp_path / "config"
    config.mkdir()
    os.mkfifo(config / name)
    more = "QTimer.singleShot(300, lambda: (print('lives', flush=True), application.window.close()))"
    with start(config, more, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stderr is not None
        assert process.stdout.readline() == "lives\n"
        assert process.wait(20) == 0
        said = process.stderr.read() if name != CRASH_LOG else (config / "decoderscope.log").read_text(encoding="utf-8")
    assert f"{config / name} can't be written: it is a named pipe and not a file" in said


def test_a_report_has_the_releases_and_nothing_private(monkeypatch: pytest.MonkeyPatch, qtbot: QtBot) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_secretsecretsecret")
    hello = HelloReply(version="1.2", torch="2.13", pid=1, host="private-host", threads=2, devices=(), catalogue=())
    about = versions(engine_line(hello))
    for part in ("Decoderscope ", "Python 3", "Qt 6", "torch 2.13", "2 threads"):
        assert part in about
    for private in ("hf_secret", "private-host", str(Path.home()), socket.gethostname()):
        assert private not in about
    dialog = ErrorDialog(Theme("dark"), Trouble(title="T", message="m", details="Traceback"), about=about)
    qtbot.addWidget(dialog)
    dialog.copy.click()
    copied = QGuiApplication.clipboard().text()
    assert copied.startswith("T\nm\nTraceback\n") and about in copied


def test_only_the_last_few_crash_reports_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DECODERSCOPE_CONFIG", str(tmp_path))
    assert keep_last_crash() is None
    (tmp_path / CRASH_LOG).write_text("")
    assert keep_last_crash() is None
    for number in range(KEPT_CRASHES + 3):
        (tmp_path / CRASH_LOG).write_text("Fatal Python error")
        os.utime(tmp_path / CRASH_LOG, (number * 60, number * 60))
        assert keep_last_crash() is not None
    assert len(list(tmp_path.glob("crash-*.log"))) == KEPT_CRASHES


def test_the_log_folder_is_opened_or_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, qtbot: QtBot) -> None:
    application = open_window(tmp_path / "config", monkeypatch, qtbot)
    try:
        opened: list[str] = []

        def open_url(url: QUrl) -> bool:
            opened.append(url.toLocalFile())
            return True

        monkeypatch.setattr("app.dialogs.sheets.QDesktopServices.openUrl", open_url)
        application.window.sheets.log()
        assert opened == [str(tmp_path / "config")]
        monkeypatch.setattr("app.dialogs.sheets.QDesktopServices.openUrl", lambda _url: False)
        application.window.sheets.log()
        assert any(str(tmp_path / "config") in b.sentence.text() for b in application.window.banners.notices)
        application.window.sheets.log()
        (banner,) = application.window.banners.notices
        copy = next(button for button in banner.findChildren(QPushButton) if button.text() == "Copy the path")
        assert not banner.red and banner.offers
        copy.click()
        assert application.qt.clipboard().text() == str(tmp_path / "config")
        assert not application.window.banners.notices
    finally:
        close_window(application)
