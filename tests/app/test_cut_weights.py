"""A prepared copy that is cut while the engine computes with it: the system ends the engine by SIGBUS, and the window
says why."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from app.engine import EngineClient, EngineState
from model.protocol.engine_requests import OpenModel
from model.protocol.run_requests import Prefill
from tests.model.checkpoint import files

TIMEOUT = 40_000
UNSEEN = """
from model.checkpoint import prepared
prepared.MappedWeights.require_whole = lambda self: None
from model.__main__ import main
raise SystemExit(main(["engine"]))
"""
"""An engine that does not look at the file: as where it is cut after the last look, inside a layer's arithmetic."""

pytestmark = [
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the signal is Linux's"),
    pytest.mark.timeout(120),
]


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DECODERSCOPE_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def client(tmp_path: Path, qtbot: QtBot, cache: Path) -> Iterator[EngineClient]:
    client = EngineClient(command=[sys.executable, "-P", "-c", UNSEEN])
    client.start()
    opened: list[object] = []
    client.request(
        OpenModel(source=str(files.tiny_gguf(tmp_path / "tiny.gguf")), device="cpu"),
        on_reply=lambda *_: opened.append(1),
    )
    qtbot.waitUntil(lambda: bool(opened), timeout=TIMEOUT)
    yield client
    client.close()


def weights_of(cache: Path) -> Path:
    [path] = list(cache.rglob("weights.safetensors"))
    return path


def lost(qtbot: QtBot, client: EngineClient, end: Callable[[], object]) -> str:
    """What the window says of an engine that ends by `end` and the next prompt."""
    end()
    client.request(Prefill(text="in the end"))
    qtbot.waitUntil(lambda: client.state is EngineState.LOST, timeout=TIMEOUT)
    assert client.crash is not None and client.crash.signal == "SIGBUS"
    return client.message


def test_the_window_says_that_the_weights_were_cut(qtbot: QtBot, client: EngineClient, cache: Path) -> None:
    weights = weights_of(cache)
    bytes_before = weights.stat().st_size
    said = lost(qtbot, client, lambda: os.truncate(weights, 100))
    assert said == (
        f"{weights}: was cut while the model was open: 100 bytes, expected {bytes_before:,}. Open the model again: its "
        "prepared copy is then made anew."
    )


def test_another_bus_error_is_not_laid_at_the_weights(qtbot: QtBot, client: EngineClient) -> None:
    assert client._child is not None
    pid = client._child.processId()
    assert lost(qtbot, client, lambda: os.kill(pid, signal.SIGBUS)) == "The engine crashed (SIGBUS)."


def test_another_machines_file_is_not_looked_for_here(qtbot: QtBot, client: EngineClient, cache: Path) -> None:
    assert client._mapped is not None and client._mapped.path == str(weights_of(cache))
    client._mapped = replace(client._mapped, host="another machine")
    said = lost(qtbot, client, lambda: os.truncate(weights_of(cache), 100))
    assert said == "The engine crashed (SIGBUS)."
