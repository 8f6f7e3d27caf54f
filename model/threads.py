"""How many threads torch computes on."""

from __future__ import annotations

import os

import torch

from model.process import usable_cores


def use_threads(threads: int = 0) -> None:
    """Computes on `threads` threads from now on; 0: OMP_NUM_THREADS where it is set, else one a physical core."""
    if threads or "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(threads or usable_cores())
