"""A model on disk, looked at but not loaded: configuration, which tensor goes where, tokenizer, identity."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from model.checkpoint.bounded_json import CONFIG_LIMIT, read_object
from model.checkpoint.digest import remembered_sha256
from model.checkpoint.errors import BadFileError, UnsupportedError, shown_list
from model.checkpoint.folder_tokenizer import read_tokenizer
from model.checkpoint.gguf_source import GGUFSource, dequantise, open_gguf, split_parts
from model.checkpoint.gguf_tokenizer import build_tokenizer, special_ids
from model.checkpoint.prepared import sampled_digest
from model.checkpoint.progress import CheckCancel, Progress, never_cancel
from model.checkpoint.safetensors_folder import require_inside, weight_files
from model.checkpoint.safetensors_source import OpenFiles, SafetensorsSource, read_into
from model.checkpoint.strict import Match, match
from model.checkpoint.tensors import Entry
from model.checkpoint.weights import RowSource
from model.config import ConfigError, DecoderConfig
from model.errors import DecoderscopeError, shown
from model.families import Family, family_for, family_for_gguf
from model.families.base import TensorRule
from model.tokenizer import Tokenizer

_COMPARE_NUMBERS = 8 << 20


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """An open, checked model. `tokenizer()` and `digest()` do their work when called. Close it after use."""

    name: str
    path: Path
    hf_config: Mapping[str, Any]
    family: Family
    config: DecoderConfig
    source: RowSource
    match: Match
    file_bytes: int
    warnings: tuple[str, ...]
    tokenizer: Callable[[], tuple[Tokenizer, tuple[str, ...]]]
    digest: Callable[[], str]
    verify: Callable[[], None]

    @property
    def parameters(self) -> int:
        """Numbers in the decoder, a tied head counted once."""
        ghosts = (
            target.take(torch.empty(rule.shape, device="meta"))
            for rule, _ in self.match.found
            for target in rule.targets
        )
        return sum(ghost.numel() for ghost in ghosts)

    def close(self) -> None:
        """Closes the files."""
        self.source.close()


RulesOf = Callable[[DecoderConfig], list[TensorRule]]


def read_config(path: Path, values: Mapping[str, Any]) -> DecoderConfig:
    """The decoder of a config.json that unquantised weights belong to; BadFileError names the file and the field."""
    _refuse_quantised(path, values)
    return _read_config(path, _family(path, family_for, values), values)


def _read_config(path: Path, family: Family, values: Mapping[str, Any]) -> DecoderConfig:
    try:
        return family.read_config(values)
    except DecoderscopeError as error:
        raise BadFileError(path, str(error).rstrip(".")) from error


def _family(path: Path, find: Callable[[Mapping[str, Any]], Family], values: Mapping[str, Any]) -> Family:
    try:
        return find(values)
    except DecoderscopeError as error:
        raise BadFileError(path, str(error).rstrip(".")) from error


def _matched(
    path: Path, rules_of: RulesOf, config: DecoderConfig, ignored: Sequence[str], source: RowSource
) -> tuple[DecoderConfig, Match, tuple[str, ...]]:
    """Strict matching. A head the configuration calls tied but whose own weights differ is used, not dropped."""
    rules = rules_of(config)
    result = match(path, rules, ignored, source)
    warnings: tuple[str, ...] = ()
    if config.tied_head and _has_own_head(rules, config, source):
        config = replace(config, tied_head=False)
        result = match(path, rules_of(config), ignored, source)
        warnings = (
            "The configuration ties the output head to the embedding, but the file holds a different head: it is used.",
        )
    if result.outside:
        warnings += (f"Not part of the decoder and left out: {shown_list(result.outside)}.",)
    return config, result, warnings


def _has_own_head(rules: Sequence[TensorRule], config: DecoderConfig, source: RowSource) -> bool:
    shape = (config.d_vocab, config.d_model)

    def held(rule: TensorRule) -> Entry | None:
        names = (name for name in (rule.source, *rule.aliases) if name in source.entries)
        return next((source.entries[name] for name in names), None)

    heads = [entry for rule in rules if not rule.targets and rule.shape == shape and (entry := held(rule))]
    embeddings = [
        entry
        for rule in rules
        if any(target.name == "embed_tokens.weight" for target in rule.targets) and (entry := held(rule))
    ]
    if not heads or not embeddings or heads[0].shape != shape or not source.is_float(heads[0].name):
        return False
    step = max(1, _COMPARE_NUMBERS // config.d_model)
    for begin in range(0, config.d_vocab, step):
        end = min(begin + step, config.d_vocab)
        head = source.read_rows(heads[0].name, begin, end, never_cancel)
        embedding = source.read_rows(embeddings[0].name, begin, end, never_cancel)
        if head is None or embedding is None or not torch.equal(head, embedding):
            return True
    return False


# --- a Hugging Face-style folder


def open_folder(path: Path) -> Checkpoint:
    """A folder with config.json and safetensors, or one .safetensors file with config.json beside it."""
    folder, only = (path, None) if path.is_dir() else (path.parent, path)
    config_path = folder / "config.json"
    files, weight_map = ([only], None) if only is not None else weight_files(folder)
    if not (config_path.exists() or config_path.is_symlink()):
        raise BadFileError(
            config_path, "no such file", remedy="A model's folder needs its config.json; download it too."
        )
    for file in (config_path, *files):
        require_inside(folder, file)
    values = read_object(config_path, CONFIG_LIMIT, allow_nan=True)
    _refuse_quantised(config_path, values)
    family = _family(config_path, family_for, values)
    config = _read_config(config_path, family, values)
    source = SafetensorsSource(files, weight_map)
    try:
        config, found, warnings = _matched(folder, family.rules, config, family.ignored, source)
    except BaseException:
        source.close()
        raise
    return Checkpoint(
        name=folder.resolve().name if only is None else only.stem,
        path=path,
        hf_config=values,
        family=family,
        config=config,
        source=source,
        match=found,
        file_bytes=source.files.total_bytes,
        warnings=warnings,
        tokenizer=lambda: read_tokenizer(folder, values, config.d_vocab),
        digest=lambda: _folder_digest(config_path, files),
        verify=source.verify,
    )


def _refuse_quantised(path: Path, values: Mapping[str, object]) -> None:
    found = values.get("quantization_config")
    if not found:
        return
    method = found.get("quant_method", "no method named") if isinstance(found, dict) else found
    if method == "bitsandbytes" or (isinstance(found, dict) and ("load_in_4bit" in found or "load_in_8bit" in found)):
        method = "bitsandbytes"
    raise UnsupportedError(
        path,
        f"the weights are quantised ({shown(str(method))}), which is not supported here",
        "Use the unquantised model, or a GGUF version of it.",
    )


def _folder_digest(config_path: Path, files: Sequence[Path]) -> str:
    """Identity of a folder: configuration, and of every file its size, header and 64 pages (not every byte)."""
    digest = hashlib.sha256(config_path.read_bytes())
    for file in files:
        digest.update(f"{file.name} {sampled_digest(file)}".encode())
    return digest.hexdigest()


# --- GGUF


def gguf_digest(path: Path, progress: Progress, check_cancel: CheckCancel) -> str:
    """SHA-256 of the file, or of the digests of all parts of a split one."""
    digests = [remembered_sha256(part, progress=progress, check_cancel=check_cancel) for part in split_parts(path)]
    return digests[0] if len(digests) == 1 else hashlib.sha256("".join(digests).encode()).hexdigest()


def open_gguf_checkpoint(path: Path, digest: Callable[[], str]) -> Checkpoint:
    """A .gguf file, or any part of a split one."""
    files, header = open_gguf(path)
    try:
        family = _family(path, family_for_gguf, header.meta)
        gguf = family.gguf
        assert gguf is not None
        tables = {name: _small(files, header.entries[name]) for name in gguf.config_tensors if name in header.entries}
        try:
            values = gguf.hf_config(header.meta, tables, tuple(header.entries))
        except ConfigError as error:
            raise BadFileError(path, str(error).rstrip(".")) from error
        config = _read_config(path, family, values)
        fix = gguf.fix
        as_stored = config  # the head's tie, all that may change below, is nothing a fix looks at
        source = GGUFSource(files, header, gguf.names(config), lambda name, tensor: fix(name, tensor, as_stored))
        ignored = (*family.ignored, *gguf.ignored, *gguf.config_tensors)
        config, found, warnings = _matched(path, family.gguf_rules, config, ignored, source)
    except BaseException:
        files.close()
        raise
    meta = header.meta
    return Checkpoint(
        name=_title(path, meta),
        path=path,
        hf_config=values,
        family=family,
        config=config,
        source=source,
        match=found,
        file_bytes=header.file_bytes,
        warnings=warnings,
        tokenizer=lambda: _gguf_tokenizer(path, meta, config.d_vocab),
        digest=digest,
        verify=source.verify,
    )


def _small(files: OpenFiles, entry: Entry) -> torch.Tensor:
    if entry.nbytes > 1 << 20:
        raise BadFileError(entry.path, "far too large for a table of factors", where=entry.name, found=entry.nbytes)
    raw = bytearray(entry.nbytes)
    read_into(files.files[entry.path], entry.path, entry.name, entry.start, memoryview(raw), never_cancel)
    return dequantise(np.frombuffer(raw, np.uint8), entry.dtype)


def _title(path: Path, meta: Mapping[str, Any]) -> str:
    return path.name.removesuffix(".gguf") or str(meta.get("general.name", path.name))


def _gguf_tokenizer(path: Path, meta: Mapping[str, Any], d_vocab: int) -> tuple[Tokenizer, tuple[str, ...]]:
    backend = build_tokenizer(path, meta)
    eos, bos = special_ids(path, meta)
    template = meta.get("tokenizer.chat_template")
    n_tokens = len(meta["tokenizer.ggml.tokens"])
    warnings: tuple[str, ...] = ()
    if n_tokens > d_vocab:
        warnings = (f"The tokenizer knows {n_tokens} tokens, the model has embeddings for {d_vocab}.",)
    tokenizer = Tokenizer(
        backend,
        eos_ids=[token_id for token_id in eos if token_id < d_vocab],
        bos_id=bos,
        chat_template=template if isinstance(template, str) else None,
        d_vocab=d_vocab,
    )
    return tokenizer, warnings
