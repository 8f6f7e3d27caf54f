"""Prepared models: a GGUF dequantised once, in the decoder's own layout, reopened by memory map.

A prepared model is a directory in our cache: weights.safetensors (float32, the decoder's parameter names, matrices
columns first, those multiplied as one in one), tokenizer.json and manifest.json. Only these files, which we wrote, are
ever mapped. The name holds the SHA-256 of the source and a fingerprint of the code that decides the layout; what does
not fit is made again.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import socket
import weakref
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import safe_open
from torch import Tensor

from model import families
from model.checkpoint.digest import sha256_of, stamp_of
from model.checkpoint.errors import CheckpointError, WeightsCutError
from model.checkpoint.paths import cache_dir, free_bytes, lock, make_dir, publish, staging
from model.checkpoint.progress import CheckCancel, Progress
from model.checkpoint.weights import PutRows
from model.protocol.events import WeightsMapped
from model.version import product_version

FORMAT_VERSION = 2
LARGEST_BYTES = 8 << 30
WEIGHTS, TOKENIZER, MANIFEST = "weights.safetensors", "tokenizer.json", "manifest.json"
_SAMPLES, _SAMPLE_BYTES = 64, 4096


class MappedWeights:
    """A weights file that tensors are mapped from: what is cut off it can be read no more (SIGBUS on POSIX), and
    what is written into it are their numbers at once."""

    def __init__(self, path: Path) -> None:
        self._path, self._fd = path, os.open(path, os.O_RDONLY)
        weakref.finalize(self, os.close, self._fd)
        found = os.fstat(self._fd)
        self._bytes, self._written = found.st_size, found.st_mtime_ns

    @property
    def told(self) -> WeightsMapped:
        """What the other side is told of it; nothing where no text can hold its path."""
        path = str(self._path)
        if any("\ud800" <= character <= "\udfff" for character in path):
            return WeightsMapped()
        return WeightsMapped(path=path, bytes=self._bytes, host=socket.gethostname())

    def require_whole(self) -> None:
        """Takes about a microsecond. Raises WeightsCutError when the file is no longer what it was."""
        found = os.fstat(self._fd)
        if found.st_size != self._bytes or found.st_mtime_ns != self._written:
            raise WeightsCutError(self._path, found=found.st_size, expected=self._bytes)


@dataclass(frozen=True)
class Prepared:
    """A prepared model whose files were checked. `mapped`: its weights file, watched since before that."""

    directory: Path
    manifest: Mapping[str, Any]
    mapped: MappedWeights

    @property
    def tokenizer_path(self) -> Path:
        """Its tokenizer.json."""
        return self.directory / TOKENIZER

    def tensors(self) -> Iterable[tuple[str, Tensor]]:
        """(parameter name, tensor mapped from the file), float32, matrices in the order `lay_out` gives. The largest
        first: what is doubled for a moment, on its way elsewhere, is then doubled while little else is in memory."""
        transposed, joined = set(self.manifest["columns_first"]), self.manifest["joined"]
        with safe_open(self.directory / WEIGHTS, framework="pt") as file:
            # all at once: asking for one looks at its memory, which a cut in the meantime would have taken away
            found = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dict
        for name, tensor in sorted(found.items(), key=lambda item: -item[1].numel()):
            if name in joined:
                parts = torch.split(tensor, [width for _, width in joined[name]], 1)
                yield from ((part, view.t()) for (part, _), view in zip(joined[name], parts, strict=True))
            else:
                yield name, tensor.t() if name in transposed else tensor

    def read_ahead(self) -> None:
        """Asks the system to bring the file in while the rest is set up."""
        if hasattr(os, "posix_fadvise"):
            with (self.directory / WEIGHTS).open("rb", buffering=0) as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_WILLNEED)


@cache
def layout_fingerprint() -> str:
    """Changes with the code that decides names and layout, so that nothing stale is ever mapped."""
    digest = hashlib.sha256(f"{FORMAT_VERSION} {product_version()}".encode())
    for path in sorted(Path(families.__file__).parent.glob("*.py")):
        digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()[:12]


def directory_of(source_sha256: str) -> Path:
    """Where the prepared form of a source belongs."""
    return cache_dir() / "prepared" / f"{source_sha256[:32]}-{layout_fingerprint()}"


def find(source_sha256: str, progress: Progress, check_cancel: CheckCancel) -> Prepared | None:
    """The prepared model, if it is whole: size, header and sampled pages as recorded; None otherwise.

    When the file's stamp differs from the recorded one (a copied or restored cache), every byte is checked.
    """
    directory = directory_of(source_sha256)
    try:
        manifest = json.loads((directory / MANIFEST).read_text(encoding="utf-8"))
        weights = directory / WEIGHTS
        mapped = MappedWeights(weights)
        good = (
            isinstance(manifest, dict)
            and manifest["source_sha256"] == source_sha256
            and weights.stat().st_size == manifest["weights_bytes"]
            and sampled_digest(weights) == manifest["weights_sampled"]
            and sha256_of(directory / TOKENIZER) == manifest["tokenizer_sha256"]
        )
        if good and stamp_of(weights) != manifest["weights_stamp"]:
            what = "Checking the prepared model"
            good = (
                sha256_of(weights, progress=progress, check_cancel=check_cancel, what=what)
                == manifest["weights_sha256"]
            )
            if good:
                _write_manifest(directory / MANIFEST, {**manifest, "weights_stamp": stamp_of(weights)})
    except (OSError, ValueError, KeyError, CheckpointError):
        return None
    return Prepared(directory, manifest, mapped) if good else None


def sampled_digest(path: Path) -> str:
    """SHA-256 of the size, the first MiB (the header), and 64 pages spread over the file."""
    digest = hashlib.sha256()
    with path.open("rb", buffering=0) as file:
        size = os.fstat(file.fileno()).st_size
        digest.update(str(size).encode() + file.read(1 << 20))
        for number in range(_SAMPLES):
            file.seek(max(0, (size - _SAMPLE_BYTES) * number // (_SAMPLES - 1)))
            digest.update(file.read(_SAMPLE_BYTES))
    return digest.hexdigest()


def worth_preparing(float32_bytes: int) -> bool:
    """Whether a dequantised copy is small enough, and the disk has twice its room."""
    return float32_bytes <= LARGEST_BYTES and free_bytes(cache_dir()) >= 2 * float32_bytes


def make(
    source_sha256: str,
    *,
    shapes: Mapping[str, tuple[int, ...]],
    columns_first: Callable[[str], bool],
    joined: Mapping[str, tuple[str, ...]],
    tokenizer_json: Callable[[], str],
    write_all: Callable[[PutRows], Mapping[str, Any]],
    check_cancel: CheckCancel,
) -> None:
    """Writes a prepared model. `write_all(put_rows)` puts every row of every parameter of `shapes` once and returns
    manifest fields.

    `joined`: the matrices stored as one, as `Decoder.joined_names` gives them. `tokenizer_json()` is asked, and its
    text gone, before the weights.
    """
    target = directory_of(source_sha256)
    make_dir(target.parent)
    with lock(target, check_cancel):
        with staging(target) as staged:
            (staged / TOKENIZER).write_text(tokenizer_json(), encoding="utf-8")
            weights = _Writer(staged / WEIGHTS, shapes, columns_first, joined)
            try:
                fields = write_all(weights.put_rows)
            finally:
                weights.close()
            if weights.left:
                raise AssertionError(f"parameters were never written: {sorted(weights.left)[:5]}")
            check_cancel()
            publish(staged / WEIGHTS, staged / WEIGHTS)
            (staged / WEIGHTS).chmod(0o444)  # it is mapped while in use: nothing should write into it by mistake
            manifest = {
                **fields,
                "source_sha256": source_sha256,
                "weights_bytes": (staged / WEIGHTS).stat().st_size,
                "weights_sampled": sampled_digest(staged / WEIGHTS),
                "weights_sha256": sha256_of(staged / WEIGHTS, check_cancel=check_cancel),
                "weights_stamp": stamp_of(staged / WEIGHTS),
                "tokenizer_sha256": sha256_of(staged / TOKENIZER),
                "columns_first": [name for name in shapes if weights.transposed(name)],
                "joined": {joint: [[part, shapes[part][0]] for part in parts] for joint, parts in joined.items()},
            }
            _write_manifest(staged / MANIFEST, manifest)
            shutil.rmtree(target, ignore_errors=True)
            staged.rename(target)
        for old in target.parent.glob(f"{source_sha256[:32]}-*"):  # other layouts of the same source
            if old.is_dir() and old != target:
                shutil.rmtree(old, ignore_errors=True)


def _write_manifest(path: Path, manifest: Mapping[str, Any]) -> None:
    temporary = path.with_suffix(".new")
    temporary.write_text(json.dumps(manifest), encoding="utf-8")
    publish(temporary, path)


class _Writer:
    """A float32 safetensors file written in any order of tensors: the header first, each tensor at its place."""

    def __init__(
        self,
        path: Path,
        shapes: Mapping[str, tuple[int, ...]],
        columns_first: Callable[[str], bool],
        joined: Mapping[str, tuple[str, ...]],
    ) -> None:
        self.shapes = shapes
        self._columns_first = columns_first
        header: dict[str, object] = {"__metadata__": {"format": "pt"}}
        self.starts: dict[str, int] = {}  # of a parameter's first number, from the start of the data
        self.widths: dict[str, int] = {}  # numbers from one stored row of a joined parameter to the next
        position = 0

        def reserve(name: str, stored: tuple[int, ...]) -> None:
            nonlocal position
            nbytes = 4 * torch.Size(stored).numel()
            header[name] = {"dtype": "F32", "shape": list(stored), "data_offsets": [position, position + nbytes]}
            position += nbytes

        for joint, parts in joined.items():
            width, begin = sum(shapes[part][0] for part in parts), 0
            for part in parts:
                self.starts[part], self.widths[part] = position + 4 * begin, width
                begin += shapes[part][0]
            reserve(joint, (shapes[parts[0]][1], width))
        for name in (name for name in shapes if name not in self.widths):
            self.starts[name] = position
            reserve(name, shapes[name][::-1] if self.transposed(name) else shapes[name])
        text = json.dumps(header).encode()
        text += b" " * (-(len(text) + 8) % 64)  # tensors on cache-line borders
        self.data_start = 8 + len(text)
        self.file = path.open("wb", buffering=0)
        self.file.write(len(text).to_bytes(8, "little") + text)
        self.file.truncate(self.data_start + position)
        self.left = {name: torch.Size(shape).numel() for name, shape in shapes.items()}

    def transposed(self, name: str) -> bool:
        """Whether the matrix is stored columns first."""
        return len(self.shapes[name]) == 2 and self._columns_first(name)

    def put_rows(self, name: str, begin: int, rows: Tensor) -> None:
        """Writes rows `begin` … of one parameter."""
        self.left[name] -= rows.numel()
        if not self.left[name]:
            del self.left[name]
        at, shape = self.data_start + self.starts[name], self.shapes[name]
        if not self.transposed(name):
            self._write(at + 4 * begin * torch.Size(shape[1:]).numel(), rows.float().contiguous().numpy())
            return
        width = self.widths.get(name, shape[0])
        columns = rows.t().float().contiguous().numpy()
        if rows.shape[0] == width:
            self._write(at, columns)
        else:
            for index, column in enumerate(columns):
                self._write(at + 4 * (index * width + begin), column)

    def _write(self, at: int, numbers: np.ndarray) -> None:
        self.file.seek(at)
        data = numbers.data.cast("B")
        while data:
            data = data[self.file.write(data) :]

    def close(self) -> None:
        """Closes the file."""
        self.file.close()
