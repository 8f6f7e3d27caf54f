"""Encoding with patterns nobody vouches for, in a process that can be killed: a regex can't be interrupted in ours."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from model.checkpoint import tokenizer_child
from model.checkpoint.pretokenizers import KNOWN_REGEXES
from model.errors import shown
from model.tokenizer import TokenizerError

SECONDS = 2.0
START_SECONDS = 30.0  # reading a large tokenizer.json, once


@dataclass(frozen=True)
class Encoded:
    """What `tokenizers.Encoding` holds of interest."""

    ids: list[int]
    offsets: list[tuple[int, int]]


def unknown_patterns(steps: object) -> Iterator[str]:
    """Regular expressions in a normalizer or pre-tokenizer (as JSON) that are not known to take linear time."""
    if isinstance(steps, dict):
        pattern = steps.get("pattern")
        regex = pattern.get("Regex") if isinstance(pattern, dict) else None
        if isinstance(regex, str) and regex not in KNOWN_REGEXES:
            yield regex
        for value in steps.values():
            yield from unknown_patterns(value)
    elif isinstance(steps, list):
        for value in steps:
            yield from unknown_patterns(value)


class GuardedEncoder:
    """Encodes in a child process, started at the first text and again after a kill. One text at a time.

    `tokenizer_json()` is asked whenever one starts: kept, the text takes as much as the tokenizer.
    """

    def __init__(self, tokenizer_json: Callable[[], str], *, seconds: float = SECONDS) -> None:
        self._json, self._seconds = tokenizer_json, seconds
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._end: weakref.finalize[..., GuardedEncoder] | None = None

    def __call__(self, text: str, add_special: bool) -> Encoded:
        """Ids and spans of `text`; TokenizerError after two seconds, or when the tokenizer fails on it."""
        with self._lock:
            request = _line({"text": text, "special": add_special})
            line = self._exchange(self._process, request, self._seconds) if self._process is not None else b""
            if not line:  # no child yet, or it has ended meanwhile
                line = self._exchange(self._start(), request, self._seconds)
        if not line:
            raise TokenizerError("The model's tokenizer ended its process on this text. Try a shorter or simpler text.")
        reply = json.loads(line)
        if "error" in reply:
            reason = shown(reply["error"], 200)
            raise TokenizerError(f"The model's tokenizer failed on this text: {reason}. Try a shorter or simpler text.")
        return Encoded(reply["ids"], [(start, end) for start, end in reply["offsets"]])

    def close(self) -> None:
        """Ends the child; the next text starts another."""
        if self._end is not None:
            self._end()
        self._process = None

    def _start(self) -> subprocess.Popen[bytes]:
        self.close()
        frozen = getattr(sys, "frozen", False)
        command = [sys.executable, *(["tokenizer"] if frozen else ["-I", str(Path(tokenizer_child.__file__))])]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self._process = process
        self._end = weakref.finalize(self, _finish, process)
        # An empty text first: the clock of a real one starts once the tokenizer is there.
        self._exchange(process, _line(self._json()) + _line({"text": "", "special": False}), START_SECONDS)
        return process

    def _exchange(self, process: subprocess.Popen[bytes], request: bytes, seconds: float) -> bytes:
        """Writes and reads one line; empty when the child is gone. TokenizerError after `seconds`, the child killed."""
        answer = b""

        def talk() -> None:
            nonlocal answer
            assert process.stdin is not None
            assert process.stdout is not None
            with contextlib.suppress(OSError, ValueError):  # the child is gone, or its pipes are
                process.stdin.write(request)
                process.stdin.flush()
                answer = process.stdout.readline()

        thread = threading.Thread(target=talk, name="guarded tokenizer", daemon=True)
        thread.start()
        thread.join(seconds)
        late = thread.is_alive()
        if late:
            process.kill()
            thread.join()
        if not answer:
            self.close()
        if late and not answer:
            raise TokenizerError(
                f"The model's tokenizer took longer than {seconds:g} seconds on this text. Try a shorter one."
            )
        return answer


def _line(value: object) -> bytes:
    return json.dumps(value).encode() + b"\n"


def _finish(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with contextlib.suppress(OSError):  # closing flushes, and nobody listens
                pipe.close()
