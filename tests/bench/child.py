"""One measurement in a process of its own: `python -m tests.bench.child WORK SOURCE [TOKENS PIXELS]`."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

READ_BYTES = 1 << 24


def floor(source: str) -> None:
    """Imports torch and reads the file that opening reads, once."""
    import torch

    assert torch.__version__
    for path in files_of(source):
        with path.open("rb", buffering=0) as file:
            buffer = bytearray(READ_BYTES)
            while file.readinto(buffer):
                pass


def files_of(source: str) -> list[Path]:
    """The weights that opening `source` reads: the prepared ones of the default model."""
    from model.checkpoint.paths import cache_dir

    if source:
        return sorted(Path(source).glob("*.safetensors"))
    made = (cache_dir() / "prepared").glob("*/weights.safetensors")
    return [max(made, key=lambda path: path.stat().st_mtime)]


def open_it(source: str) -> None:
    """Opens the model."""
    from model.loading import open_model

    open_model(source, device="cpu", dtype="float32")


def told(source: str, work: str, tokens: int, pixels: int) -> dict[str, int]:
    """Bytes: at most held, of the weights, before the model was opened, and of all matrices in float32."""
    from tests.bench.subject import Sizes, Subject

    started = resident()["VmHWM"]
    subject = Subject(source, Sizes(picture=pixels))
    info = subject.model().info
    run = subject.run(tokens)
    if work == "look":
        from model.protocol.attention_requests import HeadView
        from model.views.attention import matrix

        for layer in range(info.n_layers):
            for head in range(info.n_heads):
                matrix(run, HeadView(layer=layer, head=head), pixels=(pixels, pixels))
    else:
        from tests.bench.exports import write_all

        with tempfile.TemporaryDirectory() as folder:
            write_all(run, Path(folder))
    materialised = 4 * info.n_layers * info.n_heads * tokens * tokens
    peak = resident()["VmHWM"]
    return {"peak": peak, "weights": info.weight_bytes, "started": started, "materialised": materialised}


def resident() -> dict[str, int]:
    """Linux's own count: the peak that getrusage tells includes that of the process that started this one."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return {
        name: int(rest.split()[0]) * 1024 for name, _, rest in (line.partition(":") for line in lines) if "kB" in rest
    }


if __name__ == "__main__":
    what, model, *sizes = sys.argv[1:]
    if what == "floor":
        floor(model)
    elif what == "open":
        open_it(model)
    else:
        from model.threads import use_threads

        use_threads(2)
        sys.stdout.write(json.dumps(told(model, what, *map(int, sizes))))
