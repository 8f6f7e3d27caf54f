"""Time from starting the program to the example's attention on screen, against what no program can avoid.

`python tests/app/attention_time.py [--pairs N]` (it needs a display: `xvfb-run -a python …`) starts, in turn, a Python
that imports torch and reads the default model's weights once, and the real window on the default model, each as a
process of its own, and prints both medians in seconds and the median of the paired ratios.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
GIVE_UP_SECONDS = 240


def tell(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def floor() -> None:
    """Imports torch and reads the weights."""
    import torch

    from model.checkpoint.paths import cache_dir

    assert torch.__version__
    files = sorted((cache_dir() / "prepared").glob("*/weights.safetensors"), key=lambda path: path.stat().st_mtime)
    with files[-1].open("rb", buffering=0) as file:
        buffer = bytearray(2**24)
        while file.readinto(buffer):
            pass


def window() -> None:
    """The real window, until layer 13, head 8 of the example is drawn."""
    from PySide6.QtCore import QTimer

    from app.main import create

    application = create()
    give_up = time.monotonic() + GIVE_UP_SECONDS

    def look() -> None:
        if time.monotonic() > give_up:
            os._exit(1)
        if application.ctx is None:
            return
        from app.panels.attention import AttentionPanel

        panel = application.window.findChild(AttentionPanel)
        if panel is not None and panel.main.heat.value_of((8, 1)) is not None:
            panel.main.heat.repaint()
            application.ctx.engine.close()
            os._exit(0)

    timer = QTimer()
    timer.timeout.connect(look)
    timer.start(5)
    application.window.show()
    application.qt.exec()


def seconds(which: str, environment: dict[str, str]) -> float:
    begin = time.perf_counter()
    subprocess.run([sys.executable, __file__, which], cwd=ROOT, env=environment, check=True)
    return time.perf_counter() - begin


def compare(pairs: int) -> None:
    """Interleaved pairs after one warm-up of each."""
    from model.checkpoint.paths import cache_dir

    with tempfile.TemporaryDirectory() as home:
        places = dict.fromkeys(("HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME"), home)
        environment = {**os.environ, **places, "DECODERSCOPE_CACHE_DIR": str(cache_dir()), "PYTHONPATH": str(ROOT)}
        rows = [(seconds("floor", environment), seconds("window", environment)) for _ in range(pairs + 1)][1:]
    floors, windows = zip(*rows, strict=True)
    ratios = sorted(ours / least for least, ours in rows)
    tell(f"import torch + one read of the weights   {statistics.median(floors):6.2f} s")
    tell(f"start to the example's attention drawn   {statistics.median(windows):6.2f} s")
    tell(f"ratio {statistics.median(ratios):.2f} ({ratios[0]:.2f} … {ratios[-1]:.2f} over {pairs} pairs; bound 2)")


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    if sys.argv[1:2] in (["floor"], ["window"]):
        {"floor": floor, "window": window}[sys.argv[1]]()
    else:
        parser = argparse.ArgumentParser(description=__doc__)
        parser.add_argument("--pairs", type=int, default=5)
        compare(parser.parse_args().pairs)
