"""All heads of a run as files: ours, and everything materialised by the reference."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from model.export.files import write_files
from model.export.sheet import export_sheet
from model.protocol.export_requests import ExportSheet, SheetFormat
from model.run import Run
from tests.bench.subject import Subject


def write_all(run: Run, folder: Path, formats: tuple[SheetFormat, ...] = ("npz", "pdf")) -> None:
    """Every head of `run` as heads.npz and heads.pdf, as the command line writes them."""
    folder.mkdir(exist_ok=True)
    write_files(export_sheet(run, ExportSheet(formats=formats)), folder, overwrite=True)


def materialise(subject: Subject, tokens: int, path: Path) -> None:
    """Every head's matrix by the reference, (L, H, T, T), saved by numpy."""
    model = subject.reference
    model.set_attn_implementation("eager")
    with torch.inference_mode():
        made = model(subject.tensor(subject.ids(tokens))[None], logits_to_keep=1, output_attentions=True)
    np.savez(path, attentions=np.stack([layer[0].numpy() for layer in made.attentions]))
