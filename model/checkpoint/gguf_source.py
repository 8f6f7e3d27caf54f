"""Tensors of a GGUF file, under the names of the family's rules, dequantised one at a time in bounded memory."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from model.checkpoint.errors import BadFileError, shown_list
from model.checkpoint.gguf_header import BLOCKS, GGUFHeader, Value, read_header
from model.checkpoint.progress import CheckCancel
from model.checkpoint.safetensors_folder import require_inside
from model.checkpoint.safetensors_source import OpenFiles, read_into
from model.checkpoint.tensors import Entry

# What the gguf package dequantises. Not: integers, F64, and Q8_1, Q8_K, Q1_0, which no model file holds.
DEQUANTISED = frozenset(
    {"F32", "F16", "BF16", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K"}
    | {
        "IQ1_S",
        "IQ1_M",
        "IQ2_XXS",
        "IQ2_XS",
        "IQ2_S",
        "IQ3_XXS",
        "IQ3_S",
        "IQ4_NL",
        "IQ4_XS",
        "TQ1_0",
        "TQ2_0",
        "MXFP4",
    }
)
_TYPE_NUMBER = {name: number for number, (name, _, _) in BLOCKS.items()}
_BLOCK = {name: (block, width) for name, block, width in BLOCKS.values()}
_CHUNK_NUMBERS = 1 << 22  # 16 MiB of float32
_SMALL_NUMBERS = 1 << 16
_GROUP_BLOCKS = 256  # gguf works on 16 "rows" at a time: longer rows spend the time in numpy, not in Python

_SPLIT = re.compile(r"^(?P<stem>.*)-(?P<part>\d{5})-of-(?P<count>\d{5})\.gguf$")
Fix = Callable[[str, torch.Tensor], torch.Tensor]


def open_gguf(path: Path) -> tuple[OpenFiles, GGUFHeader]:
    """The file, or all parts of a split one whichever was named, and its checked header."""
    parts = split_parts(path)
    files = OpenFiles(parts)
    try:
        headers = [read_header(file.fileno(), part) for part, file in files.files.items()]
        return files, _join(headers)
    except BaseException:
        files.close()
        raise


def split_parts(path: Path) -> list[Path]:
    """All parts of the split file that `path` is one of, in order; BadFileError lists those that are missing."""
    match = _SPLIT.match(path.name)
    if match is None:
        return [path]
    count = int(match["count"])
    names = [f"{match['stem']}-{part:05d}-of-{count:05d}.gguf" for part in range(1, count + 1)]
    missing = [name for name in names if not (path.parent / name).exists()]
    if missing or not names:
        raise BadFileError(
            path,
            f"one part of {count}, and parts are missing: {shown_list(missing)}",
            remedy="Put all parts into one folder.",
        )
    parts = [path.parent / name for name in names]
    for part in parts:
        if part.resolve().parent != path.resolve().parent:  # a folder of links to one other folder is somebody's order
            require_inside(path.parent, part)
    return parts


def _join(headers: list[GGUFHeader]) -> GGUFHeader:
    first = headers[0]
    declared = first.meta.get("split.count", 0)
    if declared not in (0, len(headers)):  # a tuple: a list of values has no hash
        raise BadFileError(
            first.path, "one part of a split file under another name", where="split.count", found=declared,
            expected=len(headers), remedy="Give the parts back their names (…-00001-of-0000N.gguf).",
        )  # fmt: skip
    entries: dict[str, Entry] = {}
    for number, header in enumerate(headers):
        if header.meta.get("split.no", number) != number:
            raise BadFileError(
                header.path,
                "the part has another number",
                where="split.no",
                found=header.meta["split.no"],
                expected=number,
            )
        for name, entry in header.entries.items():
            if name in entries:
                raise BadFileError(header.path, f"this tensor is in {entries[name].path.name} too", where=name)
            entries[name] = entry
    return GGUFHeader(first.path, first.version, first.meta, entries, sum(header.file_bytes for header in headers))


def dequantise(raw: np.ndarray, dtype: str) -> torch.Tensor:
    """Whole blocks of bytes (uint8, one-dimensional) as float32: the values llama.cpp computes with."""
    if dtype == "F32":
        return torch.from_numpy(raw.view(np.float32))
    if dtype in {"F16", "BF16"}:
        kind = torch.float16 if dtype == "F16" else torch.bfloat16
        return torch.from_numpy(raw).view(kind).float()
    from gguf.constants import GGMLQuantizationType  # noqa: PLC0415 - slow to import, needed only here
    from gguf.quants import dequantize  # noqa: PLC0415

    kind_number = GGMLQuantizationType(_TYPE_NUMBER[dtype])
    _, width = _BLOCK[dtype]
    row = width * _GROUP_BLOCKS
    whole = len(raw) // row * row
    parts = [dequantize(raw[:whole].reshape(-1, row), kind_number)] if whole else []
    if whole < len(raw):
        parts.append(dequantize(raw[whole:].reshape(1, -1), kind_number))
    return torch.from_numpy(np.concatenate([part.ravel() for part in parts]) if len(parts) > 1 else parts[0].ravel())


class GGUFSource:
    """A GGUF's tensors by the names of the family's rules, with what the converter did to them undone.

    `names` maps the file's names to the rules'; `fix(name, tensor)` undoes. Tensors without a mapping keep their names.
    """

    def __init__(self, files: OpenFiles, header: GGUFHeader, names: Mapping[str, str], fix: Fix) -> None:
        self.files, self.header, self._fix = files, header, fix
        self._stored = {names.get(name, name): entry for name, entry in header.entries.items()}
        self._entries = {
            name: replace(entry, name=name, shape=self._shape(name)) for name, entry in self._stored.items()
        }

    def _shape(self, name: str) -> tuple[int, ...]:
        try:
            return tuple(self._fix(name, self._ghost(name)).shape)
        except (RuntimeError, ValueError, IndexError):  # a shape the fix can't take: reported as stored
            return self._stored[name].shape

    def _ghost(self, name: str) -> torch.Tensor:
        """A tensor of the stored shape, its values beside the point."""
        entry = self._stored[name]
        # The small ones for real: the first sum of tensors without memory imports torch's compiler (1 s, 70 MB).
        return torch.empty(entry.shape, device="cpu" if entry.elements <= _SMALL_NUMBERS else "meta")

    @property
    def entries(self) -> Mapping[str, Entry]:
        """Every tensor by the rules' name, with its shape once fixed."""
        return self._entries

    def is_float(self, name: str) -> bool:
        """Whether the tensor's type can be dequantised."""
        return self._entries[name].dtype in DEQUANTISED

    def read(self, name: str, check_cancel: CheckCancel) -> torch.Tensor:
        """The whole tensor in float32."""
        entry = self._stored[name]
        tensor = torch.empty(entry.elements)
        block, width = _BLOCK[entry.dtype]
        step = _CHUNK_NUMBERS // block
        for begin in range(0, entry.elements // block, step):
            end = min(begin + step, entry.elements // block)
            raw = self._raw(entry, begin * width, end * width, check_cancel)
            tensor[begin * block : end * block] = dequantise(raw, entry.dtype)
        return self._fix(name, tensor.view(entry.shape))

    def read_rows(self, name: str, begin: int, end: int, check_cancel: CheckCancel) -> torch.Tensor | None:
        """Rows of the first dimension in float32; None where the fix needs the whole tensor."""
        entry = self._stored[name]
        ghost = self._ghost(name)
        if self._fix(name, ghost) is not ghost:
            return None
        row = entry.nbytes // entry.shape[0]
        raw = self._raw(entry, begin * row, end * row, check_cancel)
        return dequantise(raw, entry.dtype).view(end - begin, *entry.shape[1:])

    def _raw(self, entry: Entry, begin: int, end: int, check_cancel: CheckCancel) -> np.ndarray:
        raw = np.empty(end - begin, np.uint8)
        read_into(self.files.files[entry.path], entry.path, entry.name, entry.start + begin, raw.data, check_cancel)
        return raw

    def verify(self) -> None:
        """BadFileError if a file was written to since it was opened."""
        self.files.verify()

    def close(self) -> None:
        """Closes the files."""
        self.files.close()


def text_value(meta: Mapping[str, Value], key: str) -> str:
    """A text of the metadata, or "" when absent or of another kind."""
    value = meta.get(key)
    return value if isinstance(value, str) else ""
