"""Run files (`.dscope`): a run as it was, to be reopened without the model or gone on with.

A run file is a safetensors file. Its `__metadata__` says `format` "dscope" and `version`; its tensors are

    run              U8     a JSON document: `Record` below
    tokens.bytes     U8     the bytes of every token of the vocabulary, one after the other
    tokens.lengths   I32    (V,) how many of them each token has; -1: an id without a token
    logits.N         F32    (V,) of the token after node N
    k.L  v.L         dtype  (K, T, D) of layer L = 0 …, over the active path
    q.L              dtype  (H, T, D) as used; a layer whose queries were dropped has none
    resid.L          dtype  (T, M) before layer L; L = n_layers: after the last one
    expert_ids.L     I16    (T, k), expert_weights.L dtype (T, k), of layers with experts

so that `safetensors` and `json` are all it takes to read one. Files with `contents` "text" hold the first three only,
"attention" all but `resid`, "all" everything.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import IO, Self, get_args

import msgspec
import numpy as np
import torch
from torch import Tensor

from model.checkpoint.memory import available_bytes
from model.checkpoint.plan import DTYPES
from model.checkpoint.safetensors_header import Header, read_header
from model.config import DecoderConfig
from model.errors import DecoderscopeError, NoRunError, shown, shown_ends
from model.export.files import ExportedFile, write_files
from model.export.not_a_run import not_a_run
from model.export.prompt_record import PROMPT_BYTES, PromptRecord, prompt_record
from model.export.record_check import trouble_with_info, trouble_with_run
from model.export.recorded import RecordedRun, RecordedTokenizer, recorded_model
from model.export.tensor_file import Piece, write_tensors
from model.export.under_way import Check, Report, nothing
from model.loading import LoadedModel
from model.memory import amount
from model.prefill import ProgressReport, YieldPoint
from model.protocol.export_requests import ExportRun, RunContents
from model.protocol.file_names import safe_stem
from model.protocol.file_writing import RUN_SUFFIX, named
from model.protocol.values import ModelInfo, Node
from model.run import Run
from model.store import Key, cost_of
from model.tree import RunTree
from model.version import product_version
from model.views.prompt_stats import KEPT

FORMAT, VERSION = "dscope", 1
SUFFIX = RUN_SUFFIX
Contents = RunContents
CONTENTS: tuple[Contents, ...] = get_args(RunContents)
_MAX_RECORD = 256 * 2**20
_READ_BYTES = 64 * 2**20
_ROW_KINDS = frozenset({"k", "v", "q", "resid", "expert_ids", "expert_weights"})
_FROM_CODE = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16, "I16": torch.int16, "U8": torch.uint8,
              "I32": torch.int32}  # fmt: skip


class RunFileError(DecoderscopeError):
    """A run file that cannot be read, or does not fit the model it is opened with."""

    code = "run_file"

    def __init__(self, path: Path | str, why: str) -> None:
        self.path = path
        super().__init__(f"{shown(Path(path).name)} cannot be opened as a run: {why}")


class RunNeedsModelError(RunFileError):
    """A run file with too little in it to be looked at without its model."""

    code = "run_needs_model"


@dataclass(frozen=True, kw_only=True)
class Record:
    """The JSON document of a run file. `prompt_ids`, then `nodes` (parents first), make the tree; `current` is the node
    the run stood at. `rope_length`: the length that decided the prompt's rotary frequencies. `prompt_stats`: what the
    model expected at every position of the prompt; older files have none."""

    product: str
    contents: Contents
    info: ModelInfo
    config: DecoderConfig
    prompt: str
    text: str
    prompt_ids: tuple[int, ...]
    nodes: tuple[Node, ...]
    current: int
    rope_length: int
    chunks: tuple[int, ...]
    prefill_ms: float
    altered: bool
    special_ids: tuple[int, ...]
    logit_nodes: tuple[int, ...]
    prompt_stats: PromptRecord | None = None


MB = 10**6
_WRITING = "writing the run"


def record_of(run: Run, contents: Contents, prompt: PromptRecord | None = None) -> Record:
    """What the JSON document says of a run; `prompt` (of `prompt_record`) with it."""
    tokenizer = run.model.tokenizer
    kept = () if contents == "text" else tuple(sorted(run.store.logits))
    return Record(
        product=product_version(),
        contents=contents,
        info=replace(run.model.info, recorded=False),
        config=run.config,
        prompt=tokenizer.decode(run.prompt_ids),
        text=run.text,
        prompt_ids=run.prompt_ids,
        nodes=tuple(run.nodes.values()),
        current=run.current,
        rope_length=run.rope_length(0),
        chunks=run.chunks,
        prefill_ms=run.prefill_ms,
        altered=run.altered,
        special_ids=tuple(token for token in range(run.config.d_vocab) if tokenizer.is_special(token)),
        logit_nodes=kept,
        prompt_stats=prompt,
    )


def pieces_of(run: Run, contents: Contents, prompt: PromptRecord | None = None) -> list[Piece]:
    """The tensors of a run file."""
    record = record_of(run, contents, prompt)
    document = np.frombuffer(msgspec.json.encode(record), dtype=np.uint8)
    tokens = [run.model.tokenizer.token_bytes(token) for token in range(run.config.d_vocab)]
    lengths = np.array([-1 if raw is None else len(raw) for raw in tokens], dtype=np.int32)
    joined = np.frombuffer(b"".join(raw or b"" for raw in tokens), dtype=np.uint8)
    pieces = [
        Piece.of(name, torch.from_numpy(array.copy()))
        for name, array in (("run", document), ("tokens.bytes", joined), ("tokens.lengths", lengths))
    ]
    if contents == "text":
        return pieces
    pieces += [
        Piece(
            name=f"logits.{node}",
            dtype=torch.float32,
            shape=(run.config.d_vocab,),
            blocks=partial(_logits, run, node),
        )
        for node in record.logit_nodes
    ]
    for layer in range(run.config.n_layers):
        pieces += [Piece.of(f"k.{layer}", run.k(layer)), Piece.of(f"v.{layer}", run.v(layer))]
        for kind in ("q", "expert_ids", "expert_weights"):
            rows = run.store.rows(kind, layer)
            if rows is not None:
                pieces.append(Piece.of(f"{kind}.{layer}", rows))
    if contents == "all":
        pieces += [Piece.of(f"resid.{layer}", run.resid(layer)) for layer in range(run.config.n_layers + 1)]
    return pieces


def _logits(run: Run, node: int) -> tuple[Tensor]:
    return (torch.from_numpy(run.logits(node).copy()),)  # (V,), writable as torch wants it


def fullest(run: Run) -> Contents:
    """What there is to be recorded of a run: a recorded one may have no residuals."""
    return "attention" if isinstance(run, RecordedRun) and not run.has_residuals else "all"


def sizes_of(run: Run) -> dict[Contents, int]:
    """Bytes of data of a file, at most, with each of the contents there are."""
    sizes: dict[Contents, int] = dict.fromkeys(CONTENTS[: CONTENTS.index(fullest(run)) + 1], 0)
    for piece in pieces_of(run, fullest(run)):
        kind = piece.name.partition(".")[0]
        least = CONTENTS.index("all" if kind == "resid" else "text" if kind in {"run", "tokens"} else "attention")
        for contents in CONTENTS[least : len(sizes)]:
            sizes[contents] += piece.nbytes
    return {name: size + PROMPT_BYTES * run.n_prompt * (name != "text") for name, size in sizes.items()}


def largest_within(run: Run, limit: int) -> Contents:
    """The fullest contents whose data stay within `limit` bytes; "text" if none does."""
    fitting = [contents for contents, size in sizes_of(run).items() if size <= limit]
    return fitting[-1] if fitting else "text"


def write_run(
    run: Run, out: IO[bytes], *, contents: Contents = "all", progress: Report = nothing, check: Check = nothing
) -> None:
    """Writes a run file to a stream; `progress` is told and `check`, which may raise, is called between tensors."""
    metadata = {"format": FORMAT, "version": str(VERSION)}
    pieces = pieces_of(run, contents, None if contents == "text" else prompt_record(run, check))
    total = sum(piece.nbytes for piece in pieces)
    write_tensors(list(_told(pieces, total, progress)), out, metadata, check=check)
    progress(_WRITING, total // MB, total // MB, "MB")


def _told(pieces: Iterable[Piece], total: int, progress: Report) -> Iterator[Piece]:
    """The pieces, each of which says how much was written before it when its turn comes."""
    done = 0

    def blocks(piece: Piece, before: int) -> Iterable[Tensor]:
        progress(_WRITING, before // MB, total // MB, "MB")
        return piece.blocks()

    for piece in pieces:
        yield replace(piece, blocks=partial(blocks, piece, done))
        done += piece.nbytes


def export_run(
    run: Run, message: ExportRun, *, progress: Report = nothing, check: Check = nothing
) -> Iterator[ExportedFile]:
    """The run file of `message`; the caller closes it. Raises NoRunError."""
    if not run.length:
        raise NoRunError
    most = largest_within(run, message.max_bytes) if message.max_bytes else fullest(run)
    contents = CONTENTS[min(CONTENTS.index(message.contents), CONTENTS.index(most))]
    write = partial(write_run, run, contents=contents, progress=progress, check=check)
    return iter([ExportedFile(safe_stem(message.stem) + SUFFIX, SUFFIX[1:], write)])


def save_run(run: Run, path: Path, *, contents: Contents = "all", overwrite: bool = False) -> Path:
    """Writes a run file, whole or not at all; returns where it is: its name made safe, with our suffix. Raises
    FileWriteError."""
    wanted = named(path, SUFFIX)
    write = partial(write_run, run, contents=contents)
    [(target, _)] = write_files([ExportedFile(wanted.name, SUFFIX[1:], write)], wanted.parent, overwrite=overwrite)
    return target


class RunFile:
    """A run file opened for reading: `record` at once, tensors when asked for. Close it, or use it in `with`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0))
        except (OSError, ValueError) as error:  # a name with half a character or a zero in it is no OSError
            raise RunFileError(path, f"{getattr(error, 'strerror', None) or error}.") from error
        try:
            if not stat.S_ISREG(os.fstat(self._descriptor).st_mode):
                raise RunFileError(path, "it is not a file.")
            if other := not_a_run(self._descriptor, path.name):
                raise RunFileError(path, other)
            self.header: Header = read_header(self._descriptor, path)
            self.record = self._read_record()
            self._check_shapes()
        except OSError as error:
            self.close()
            raise RunFileError(path, f"it can't be read: {error.strerror or error}.") from error
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Gives the file back; may be called again."""
        if self._descriptor >= 0:
            with suppress(OSError):
                os.close(self._descriptor)
            self._descriptor = -1

    def tensor(self, name: str) -> Tensor:
        """One tensor, in its own memory. Raises RunFileError."""
        entry = self.header.entries[name]
        data = bytearray(entry.nbytes)
        view, at = memoryview(data), 0
        os.lseek(self._descriptor, entry.start, os.SEEK_SET)
        while at < entry.nbytes:
            try:
                part = os.read(self._descriptor, min(entry.nbytes - at, _READ_BYTES))
            except OSError as error:
                raise RunFileError(self.path, f"it can't be read: {error.strerror or error}.") from error
            if not part:
                raise RunFileError(self.path, "it changed while it was read.")
            view[at : at + len(part)] = part
            at += len(part)
        dtype = _FROM_CODE[entry.dtype]
        flat = torch.frombuffer(data, dtype=dtype) if data else torch.empty(0, dtype=dtype)
        return flat.reshape(entry.shape)

    def tokenizer(self) -> RecordedTokenizer:
        """The vocabulary of the file."""
        joined = self.tensor("tokens.bytes").numpy().tobytes()
        tokens: list[bytes | None] = []
        at = 0
        for length in self.tensor("tokens.lengths").tolist():
            tokens.append(None if length < 0 else joined[at : at + length])
            at += max(length, 0)
        record = self.record
        return RecordedTokenizer(tokens, special=frozenset(record.special_ids), eos_ids=record.info.eos_ids)

    def _read_record(self) -> Record:
        if self.header.metadata.get("format") != FORMAT:
            raise RunFileError(self.path, "it is a safetensors file, but not a recorded run.")
        version = self.header.metadata.get("version", "")
        if version != str(VERSION):
            raise RunFileError(
                self.path,
                f"its format is version {shown(version)!r}, this program reads {VERSION}: update decoderscope.",
            )
        entry = self.header.entries.get("run")
        if entry is None or entry.dtype != "U8" or entry.nbytes > _MAX_RECORD:
            raise RunFileError(self.path, "its record is missing or too large.")
        try:
            record = msgspec.json.decode(self.tensor("run").numpy().tobytes(), type=Record)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
            raise RunFileError(self.path, f"its record is damaged: {shown_ends(str(error))}.") from error
        trouble = trouble_with_info(record.info, record.config) or trouble_with_run(
            rope_length=record.rope_length,
            chunks=record.chunks,
            prefill_ms=record.prefill_ms,
            n_prompt=len(record.prompt_ids),
            n_ctx=record.config.n_ctx,
            special_ids=record.special_ids,
        )
        if not trouble and record.prompt_stats is not None:
            trouble = record.prompt_stats.trouble(len(record.prompt_ids))
        if trouble:
            raise RunFileError(self.path, f"its record is damaged: {trouble}")
        return record

    def _check_shapes(self) -> None:
        """That every tensor is one we know, of the shape the record promises."""
        expected = _expected(self.record)
        for name, entry in self.header.entries.items():
            if name not in expected:
                raise RunFileError(self.path, f"it holds {shown(name)!r}, which is no part of a run.")
            dtypes, shape = expected[name]
            if entry.dtype not in dtypes or (shape is not None and entry.shape != shape):
                found = f"{entry.dtype} {list(entry.shape)}"
                raise RunFileError(self.path, f"{name} is {found}, expected {dtypes[0]} {list(shape or ('n',))}.")
        needed = {"run", "tokens.bytes", "tokens.lengths"}
        if self.record.contents != "text":
            needed |= {f"{kind}.{layer}" for kind in "kv" for layer in range(self.record.config.n_layers)}
            needed |= {f"logits.{node}" for node in self.record.logit_nodes}
        if self.record.contents == "all":
            needed |= {f"resid.{layer}" for layer in range(self.record.config.n_layers + 1)}
        missing = sorted(needed - self.header.entries.keys())
        if missing:
            raise RunFileError(self.path, f"{missing[0]} is missing.")


def _expected(record: Record) -> dict[str, tuple[tuple[str, ...], tuple[int, ...] | None]]:
    """name → (dtypes it may have, shape; None: any one-dimensional)."""
    config = record.config
    floats = {"float32": ("F32",), "bfloat16": ("BF16",), "float16": ("F16",)}[record.info.dtype]
    length = len(record.prompt_ids)
    by_id = {node.id: node for node in record.nodes}
    node = record.current
    while node in by_id and length <= len(record.prompt_ids) + len(by_id):
        length += 1
        node = by_id[node].parent
    expected: dict[str, tuple[tuple[str, ...], tuple[int, ...] | None]] = {
        "run": (("U8",), None),
        "tokens.bytes": (("U8",), None),
        "tokens.lengths": (("I32",), (config.d_vocab,)),
        f"resid.{config.n_layers}": (floats, (length, config.d_model)),
    }
    expected |= {f"logits.{node}": (("F32",), (config.d_vocab,)) for node in record.logit_nodes}
    top_k = config.moe.top_k if config.moe is not None else 0
    for layer in range(config.n_layers):
        expected |= {
            f"k.{layer}": (floats, (config.n_kv_heads, length, config.d_head)),
            f"v.{layer}": (floats, (config.n_kv_heads, length, config.d_head)),
            f"q.{layer}": (floats, (config.n_heads, length, config.d_head)),
            f"resid.{layer}": (floats, (length, config.d_model)),
            f"expert_ids.{layer}": (("I16",), (length, top_k)),
            f"expert_weights.{layer}": (floats, (length, top_k)),
        }
    return expected


class _Rows(Mapping[Key, Tensor]):
    """The row tensors of a file by the store's keys, each read when it is asked for, after a `check` that may raise."""

    def __init__(self, file: RunFile, check: YieldPoint) -> None:
        self._file, self._check = file, check

    def __getitem__(self, key: Key) -> Tensor:
        self._check()
        return self._file.tensor(f"{key[0]}.{key[1]}")

    def __contains__(self, key: object) -> bool:
        return isinstance(key, tuple) and f"{key[0]}.{key[1]}" in self._file.header.entries

    def __iter__(self) -> Iterator[Key]:
        for name in self._file.header.entries:
            kind, _, layer = name.rpartition(".")
            if kind in _ROW_KINDS:
                yield kind, int(layer)

    def __len__(self) -> int:
        return sum(1 for _ in self)


def fits(file: RunFile, model: LoadedModel) -> bool:
    """Whether a run was made with this very model, in whatever dtype."""
    return file.record.info.sha256 == model.info.sha256 and file.record.config == model.decoder.config


def reopen(
    file: RunFile,
    model: LoadedModel | None = None,
    *,
    progress: ProgressReport | None = None,
    yield_point: YieldPoint | None = None,
) -> Run:
    """The run in a file: with its model, to be gone on with; without, to be looked at.

    Nothing is run when the file holds everything (`contents` "all", or "attention" without a model); otherwise, with
    a model, its tokens are. Raises RunFileError when the model is another one, or when there is nothing to look at.
    """
    record = file.record
    if model is None:
        if record.contents == "text":
            why = f"it holds the text and the settings only. Open {shown(record.info.name)} first to run it again."
            raise RunNeedsModelError(file.path, why)
        check = yield_point or (lambda: None)
        _require_room(file, torch.device("cpu"))
        stand_in = recorded_model(record.config, record.info, file.tokenizer(), DTYPES[record.info.dtype], check)
        run: Run = RecordedRun(
            stand_in,
            has_residuals=record.contents == "all",
            tokens=len(record.prompt_ids) + len(record.nodes),
            logits=len(record.logit_nodes),
        )
        _fill(run, file, check)
        if record.prompt_stats is not None:
            run.derived[KEPT] = record.prompt_stats.stats
        return run
    _check_model(file, model)
    run = Run(model)
    if record.contents == "all" and model.info.dtype == record.info.dtype:
        _require_room(file, run.device)
        _fill(run, file, yield_point or (lambda: None))
    else:
        run.restore(record.prompt_ids, record.nodes, record.current, progress=progress, yield_point=yield_point)
    return run


def _require_room(file: RunFile, device: torch.device) -> None:
    """Raises RunFileError, before anything is read, where what the file holds has no room: a few kilobytes on a disk
    can be many gigabytes of zeros."""
    record, sizes = file.record, {name: entry.nbytes for name, entry in file.header.entries.items()}
    length = file.header.entries["k.0"].shape[1]  # of the path, the only one with rows
    itemsize = DTYPES[record.info.dtype].itemsize
    rows = cost_of(record.config, length, itemsize, generated=len(record.logit_nodes)).total
    needed = rows + max(sizes.values()) + 2 * sizes["tokens.bytes"]
    if needed > (free := available_bytes(device)):
        why = f"it needs {amount(needed)} of memory and {amount(free)} are free on {device}. Close other programs."
        raise RunFileError(file.path, why)


def _fill(run: Run, file: RunFile, check: YieldPoint) -> None:
    record = file.record
    for token in (*record.prompt_ids, *(node.token_id for node in record.nodes)):
        if not 0 <= token < record.config.d_vocab:
            raise RunFileError(file.path, f"token id {token} is not below {record.config.d_vocab}.")
    tree = RunTree(list(record.prompt_ids))
    for node in record.nodes:
        tree.add(node)
    run.adopt(tree, record.current, rope_length=record.rope_length)
    path = (*range(run.n_prompt), *run.path)
    run.store.put(path, _Rows(file, check))
    for held in record.logit_nodes:
        check()
        run.tree.check(held)
        run.store.keep_logits(held, file.tensor(f"logits.{held}").numpy())
    run.store.dropped.update(node for node in run.nodes if node not in set(path))
    run.chunks, run.prefill_ms, run.altered = record.chunks, record.prefill_ms, record.altered


def _check_model(file: RunFile, model: LoadedModel) -> None:
    recorded, here = file.record.info, model.info
    if not fits(file, model):
        there, source = shown(recorded.name), shown(recorded.source or recorded.name, 300)
        raise RunFileError(
            file.path,
            f"it was made with {there} (sha256 {shown(recorded.sha256, 12)}), the open model is {here.name} (sha256 "
            f"{here.sha256[:12]}). Open {source}, or look at it without a model.",
        )
