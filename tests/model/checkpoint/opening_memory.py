"""What opening takes beside the weights, watched from another process: within a library's call nothing of ours runs."""

from __future__ import annotations

import os
import select
import subprocess
import sys
from pathlib import Path

OPEN = """
import sys
import torch
from model import loading
torch.set_num_threads(1)
print("ready", flush=True)
sys.stdin.readline()
model = loading.open_model(sys.argv[1], dtype=sys.argv[2])
print(model.info.weight_bytes, flush=True)
sys.stdin.readline()
"""
PARSE = """
import sys
import torch
import tokenizers
from model.checkpoint.memory import give_back
print("ready", flush=True)
sys.stdin.readline()
tokenizer = tokenizers.Tokenizer.from_file(sys.argv[1])
give_back()
print(0, flush=True)
sys.stdin.readline()
"""


def memory_of(program: str, *arguments: str, **environment: str) -> tuple[int, int, int]:
    """(highest anonymous memory, what is left of it, the number printed) of a program, above what there was when it was
    ready."""
    with subprocess.Popen(
        [sys.executable, "-c", program, *arguments],
        env=os.environ | environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    ) as child:  # fmt: skip
        assert child.stdin is not None
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
        before = peak = _anonymous(child.pid)
        child.stdin.write(b"\n")
        child.stdin.flush()
        while not select.select([child.stdout], [], [], 0.001)[0]:
            peak = max(peak, _anonymous(child.pid))
        printed, left = child.stdout.readline(), _anonymous(child.pid)
    return peak - before, left - before, int(printed)


def _anonymous(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
    return 1024 * next((int(line.split()[1]) for line in lines if line.startswith("RssAnon:")), 0)
