"""A headless Chromium spoken to through its debugging pipe: real layout, real script, real mouse."""

from __future__ import annotations

import base64
import io
import json
import os
import selectors
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from PIL import Image

SECONDS = 60.0


class Browser:
    """Opens `page`; `events` are what the browser told unasked (requests, exceptions). Fails where there is none."""

    def __init__(self, page: Path, *, width: int = 1200, height: int = 900) -> None:
        program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
        assert program is not None, "Chromium is not installed: make test-long installs it"
        self._profile = tempfile.TemporaryDirectory(prefix="decoderscope-browser-")
        theirs_in, self._out = os.pipe()
        self._in, theirs_out = os.pipe()
        command = [
            program, "--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", "--no-first-run",
            "--disable-dev-shm-usage", f"--user-data-dir={self._profile.name}", f"--window-size={width},{height}",
        ]  # fmt: skip
        # The pipe's ends are file descriptors 3 and 4 of the browser's.
        shell = f'exec "$@" 3<&{theirs_in} 4>&{theirs_out}'
        self._process = subprocess.Popen(
            ["bash", "-c", shell, "browser", *command], pass_fds=(theirs_in, theirs_out), stderr=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        os.close(theirs_in)
        os.close(theirs_out)
        self.events: list[dict[str, Any]] = []
        self._buffer, self._ids, self._session = b"", 0, ""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for area in ("Page", "Network", "Runtime", "Log"):
            self.call(f"{area}.enable")
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.call("Emulation.setDeviceMetricsOverride", **size)
        self.call("Page.navigate", url=page.as_uri())
        self._until(lambda message: message.get("method") == "Page.loadEventFired")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._session = ""
        try:
            self.call("Browser.close")
            self._process.wait(20)
        finally:
            if self._process.poll() is None:
                self._process.kill()
                self._process.wait()
            os.close(self._in)
            os.close(self._out)
            self._profile.cleanup()

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """A command's result."""
        self._ids += 1
        asked = {"id": self._ids, "method": method, "params": params}
        if self._session:
            asked["sessionId"] = self._session
        os.write(self._out, json.dumps(asked).encode() + b"\0")
        answer = self._until(lambda message, mine=self._ids: message.get("id") == mine)
        assert "error" not in answer, answer
        result: dict[str, Any] = answer["result"]
        return result

    def evaluate(self, expression: str) -> Any:
        """A JavaScript expression's value."""
        found = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def point(self, x: float, y: float) -> None:
        """Moves the mouse."""
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def picture(self) -> Image.Image:
        """What is on the screen."""
        data = base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"])
        return Image.open(io.BytesIO(data)).convert("RGB")

    def _until(self, found: Any) -> dict[str, Any]:
        deadline = time.monotonic() + SECONDS
        while True:
            while b"\0" in self._buffer:
                line, _, self._buffer = self._buffer.partition(b"\0")
                message: dict[str, Any] = json.loads(line)
                if "method" in message:
                    self.events.append(message)
                if found(message):
                    return message
            with selectors.DefaultSelector() as selector:
                selector.register(self._in, selectors.EVENT_READ)
                assert selector.select(max(0.0, deadline - time.monotonic())), "the browser does not answer"
            data = os.read(self._in, 2**20)
            assert data, "the browser is gone"
            self._buffer += data
