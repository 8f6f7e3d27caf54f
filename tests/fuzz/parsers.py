"""Every parser of files and streams nobody vouches for, in a process with limits; the tests' other half is `Child`.

Run as a program it reads one JSON object a line ({"kind", "path"}) and answers each with how that ended.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MEMORY_BYTES = 500 << 20
SECONDS = 2.0
PATIENCE_SECONDS = 60.0  # a machine busy with something else is not a hang; processor time is what is held to SECONDS
TEXT = "The cat, 日本 <|end|>\u202e 77\n"


@dataclass(frozen=True, kw_only=True)
class Ending:
    """How one input ended. `end`: read, refused (one sentence), or fault (anything else). `seconds` of processor."""

    end: str
    said: str
    seconds: float


class Child:
    """The process with limits; a dead one is told and replaced."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def parse(self, kind: str, path: Path) -> Ending:
        """What the parser `kind` makes of `path`."""
        process = self._running()
        assert process.stdin is not None
        assert process.stdout is not None
        watchdog = threading.Timer(PATIENCE_SECONDS, process.kill)
        watchdog.start()
        try:
            process.stdin.write(json.dumps({"kind": kind, "path": str(path)}).encode() + b"\n")
            process.stdin.flush()
            line = process.stdout.readline()
        except OSError:
            line = b""
        finally:
            watchdog.cancel()
            watchdog.join()
        if not line:
            code = process.wait(PATIENCE_SECONDS)
            self.close()
            return Ending(end="fault", said=f"the process ended with {code}", seconds=0.0)
        return Ending(**json.loads(line))

    def close(self) -> None:
        """Ends it."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            for pipe in (self._process.stdin, self._process.stdout):
                if pipe is not None:
                    pipe.close()
        self._process = None

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            root = Path(__file__).resolve().parents[2]
            environment = os.environ | {"PYTHONPATH": str(root), "QT_QPA_PLATFORM": "offscreen"}
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.fuzz.parsers"],
                cwd=root, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            )  # fmt: skip
        return self._process


# --- inside the child


def _header(path: Path, read: Callable[[int, Path], object]) -> None:
    from model.checkpoint.paths import open_regular

    descriptor = open_regular(path)
    try:
        read(descriptor, path)
    finally:
        os.close(descriptor)


def safetensors_header(path: Path) -> None:
    from model.checkpoint import safetensors_header as parser

    _header(path, parser.read_header)


def gguf_header(path: Path) -> None:
    from model.checkpoint import gguf_header as parser

    _header(path, parser.read_header)


def model(path: Path) -> None:
    """A folder or a GGUF, whole: plan, weights, tokenizer, a first forward pass, a text."""
    from model.loading import open_model, plan_model

    plan_model(path)
    opened = open_model(path, threads=1)
    if opened.tokenizer is not None and not opened.tokenizer.ids_only:
        opened.tokenizer.pieces(opened.tokenizer.encode(TEXT))


def run_file(path: Path) -> None:
    from model.export.run_file import RunFile, reopen

    with RunFile(path) as file:
        reopen(file)


def settings(path: Path) -> None:
    from app.settings import Preferences, Settings

    values = Settings(path).values
    assert isinstance(values, Preferences)


def requests(path: Path) -> None:
    """A stream as the engine reads it."""
    from model.errors import UnknownNameError
    from model.protocol.framing import FrameDecoder
    from model.protocol.wire import BadRequestError, read_request

    for frame in FrameDecoder().feed(path.read_bytes()):
        try:
            read_request(frame)
        except (BadRequestError, UnknownNameError):
            continue


def answers(path: Path) -> None:
    """A stream as the window reads it."""
    from model.protocol.framing import FrameDecoder
    from model.protocol.run_requests import PrefillReply
    from model.protocol.wire import BadRequestError, ErrorInfo, read_value

    for frame in FrameDecoder().feed(path.read_bytes()):
        for key, kind in (("result", PrefillReply), ("error", ErrorInfo)):
            try:
                read_value(frame.header.get(key), kind)
            except BadRequestError:
                continue


def _eat(_path: Path) -> None:
    bytearray(MEMORY_BYTES + (1 << 20))


def _die(_path: Path) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _limit_memory() -> None:
    try:
        import resource
    except ImportError:
        return
    status = Path("/proc/self/status")
    if not status.exists():
        return
    used = next(int(line.split()[1]) << 10 for line in status.read_text().splitlines() if line.startswith("VmData"))
    resource.setrlimit(resource.RLIMIT_DATA, (used + MEMORY_BYTES, used + MEMORY_BYTES))


def _parse(kind: str, path: Path) -> dict[str, Any]:
    from model.errors import DecoderscopeError

    started = time.process_time()
    try:
        globals()[kind](path)
        end, said = "read", ""
    except DecoderscopeError as error:
        end, said = "refused", str(error)
    except BaseException as error:  # noqa: BLE001 - that is what the tests look for
        import traceback

        end, said = "fault", "".join(traceback.format_exception(error))[-3000:]
    return {"end": end, "said": said, "seconds": time.process_time() - started}


def main() -> None:
    """Answers until there is nothing more to read."""
    import gguf.constants
    import gguf.quants  # noqa: F401 - large imports belong to no case
    import torch
    from PySide6.QtCore import QCoreApplication

    import app.settings  # noqa: F401
    import model.export.run_file
    import model.loading  # noqa: F401

    torch.set_num_threads(1)
    keep = QCoreApplication([])
    for warm in ("model", "run_file"):
        _parse(warm, Path("/nowhere/model"))
    _limit_memory()
    for line in sys.stdin:
        case = json.loads(line)
        sys.stdout.write(json.dumps(_parse(case["kind"], Path(case["path"]))) + "\n")
        sys.stdout.flush()
    del keep


if __name__ == "__main__":
    main()
