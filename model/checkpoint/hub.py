"""Models on the Hugging Face hub: what they hold, asked first; then only the files a model needs, one at a time.

Honours HF_ENDPOINT, HF_TOKEN, HF_HUB_OFFLINE and the existing hub cache. A snapshot that is whole in the cache is used
without asking the network.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Self

from huggingface_hub import HfApi, constants, get_token, hf_hub_download
from huggingface_hub import errors as hub_errors

from model.checkpoint.bounded_json import CONFIG_LIMIT, read_object
from model.checkpoint.errors import CheckpointError, FetchError, UnsupportedError, shown_list
from model.checkpoint.progress import CheckCancel, Progress, never_cancel, no_progress
from model.checkpoint.safetensors_folder import INDEX, SINGLE, weight_files
from model.errors import DecoderscopeError

CHUNK_BYTES = 1 << 18  # how much arrives between two questions whether to stop
_SMALL_FILES = (
    "config.json",
    "generation_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "chat_template.jinja",
)
_LOGGERS = ("huggingface_hub", "httpx", "httpx2", "httpcore", "httpcore2")  # at DEBUG they log headers
_TOKEN = re.compile(r"\bhf_[A-Za-z0-9]{6,}\b")
_CREDENTIALS = re.compile(r"//[^/@\s]+@")


def cached_snapshot(hub_id: str) -> Path | None:
    """The model's folder in the hub cache, if everything it needs is there; no network."""
    try:
        config = hf_hub_download(hub_id, "config.json", local_files_only=True)
        folder = Path(config).parent
        weight_files(folder)
    except (hub_errors.LocalEntryNotFoundError, hub_errors.HFValidationError, CheckpointError, OSError):
        return None
    return folder


def local_snapshot(hub_id: str, *, progress: Progress = no_progress, check_cancel: CheckCancel = never_cancel) -> Path:
    """The model's folder in the hub cache, downloaded as far as it is not there. FetchError says what failed."""
    if (folder := cached_snapshot(hub_id)) is not None:
        return folder
    with _told(hub_id):
        _download(hub_id, _needed(hub_id, _files(hub_id)), progress, check_cancel)
    folder = cached_snapshot(hub_id)
    if folder is None:
        raise FetchError(hub_id, "files are missing although every download ended", "Try again.")
    return folder


def preview(hub_id: str) -> tuple[Mapping[str, Any], int]:
    """(config.json, bytes to download) of a model that is not in the cache; fetches the configuration only."""
    with _told(hub_id):
        wanted = _needed(hub_id, _files(hub_id))
        path = hf_hub_download(hub_id, "config.json", tqdm_class=_bar(no_progress, never_cancel, 0, 0))
    return read_object(Path(path), CONFIG_LIMIT, allow_nan=True), sum(wanted.values())


def _files(hub_id: str) -> dict[str, int]:
    """{file: bytes} as the hub lists them."""
    info = HfApi().model_info(hub_id, files_metadata=True)
    return {sibling.rfilename: sibling.size or 0 for sibling in info.siblings or ()}


def _needed(hub_id: str, sizes: Mapping[str, int]) -> dict[str, int]:
    """The files to download: configuration, tokenizer, and one set of safetensors. Refuses what holds none, unread."""
    top = {name: size for name, size in sizes.items() if "/" not in name}
    weights = [name for name in top if name.endswith(".safetensors")]
    if INDEX in top:
        chosen = [INDEX, *(name for name in weights if re.search(r"-\d{5}-of-\d{5}\.safetensors$", name))]
    else:
        chosen = [SINGLE] if SINGLE in top else weights
    if not weights:
        ggufs = [name for name in top if name.endswith(".gguf")]
        if ggufs:
            raise UnsupportedError(
                hub_id, f"it holds GGUF files ({shown_list(ggufs)})", "Download one and open it by its path."
            )
        raise UnsupportedError(
            hub_id,
            f"it holds no .safetensors files ({shown_list(sorted(top)) or 'nothing at all'})",
            "Choose a version of the model that has them: pickle files can run code and are never opened.",
        )
    if "config.json" not in top:
        raise UnsupportedError(hub_id, "it holds no config.json", "Choose a whole model, not an adapter.")
    return {name: top[name] for name in (*_SMALL_FILES, *chosen) if name in top}


def _download(hub_id: str, sizes: Mapping[str, int], progress: Progress, check_cancel: CheckCancel) -> None:
    total, done = sum(sizes.values()), 0
    for name in sizes:
        check_cancel()
        hf_hub_download(hub_id, name, tqdm_class=_bar(progress, check_cancel, done, total))
        done += sizes[name]
        progress("Downloading from the hub", done, total, "bytes")


def _bar(progress: Progress, check_cancel: CheckCancel, before: int, total: int) -> Any:
    """What the hub's client makes as its progress bar: draws nothing, reports, and raises when cancelled."""

    class Bar:
        def __init__(self, *, initial: float | None = 0, **_options: object) -> None:
            self.arrived = int(initial or 0)

        def __enter__(self) -> Self:
            return self

        def __exit__(self, *_exception: object) -> None:
            """Nothing was opened."""

        def update(self, n: float | None = 1) -> None:
            check_cancel()
            self.arrived += int(n or 0)
            if total:
                progress("Downloading from the hub", min(before + self.arrived, total), total, "bytes")

    return Bar


@contextlib.contextmanager
def _told(hub_id: str) -> Iterator[None]:
    """Small chunks, no second protocol, no logs; every failure as one sentence without the token."""
    loggers = [logging.getLogger(name) for name in _LOGGERS]
    before = (constants.DOWNLOAD_CHUNK_SIZE, constants.HF_HUB_DISABLE_XET)
    levels = [logger.level for logger in loggers]
    constants.DOWNLOAD_CHUNK_SIZE, constants.HF_HUB_DISABLE_XET = CHUNK_BYTES, True  # Xet can't be cancelled
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    try:
        yield
    except DecoderscopeError:
        raise
    except Exception as error:  # noqa: BLE001 - the client and the libraries under it raise dozens of kinds
        reason, remedy = _explain(hub_id, error)
        # `from None`: the chain would carry request headers into logs.
        raise FetchError(hub_id, reason, remedy) from None
    finally:
        constants.DOWNLOAD_CHUNK_SIZE, constants.HF_HUB_DISABLE_XET = before
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


def _explain(hub_id: str, error: Exception) -> tuple[str, str]:
    status = getattr(getattr(error, "response", None), "status_code", None)
    if isinstance(error, hub_errors.GatedRepoError) or status == 403:
        where = f"{constants.ENDPOINT}/{hub_id}"
        return "the hub does not give it to you yet", f"Accept its terms at {where}, then set HF_TOKEN."
    if isinstance(error, hub_errors.RepositoryNotFoundError) or status in {401, 404}:
        return "there is no such model, or it is private", "Check the name; for a private model set HF_TOKEN."
    if isinstance(error, hub_errors.OfflineModeIsEnabled):
        return "it is not in the cache and HF_HUB_OFFLINE is set", "Unset it, or open a model from disk."
    if isinstance(error, hub_errors.HFValidationError):
        return "this is no hub id", "A hub id is owner/name."
    if status == 407:
        return "the proxy wants a password", "Set HTTPS_PROXY with it."
    if status is not None:
        return f"the hub answered {status}", "Try again later."
    if isinstance(error, OSError) and error.errno == errno.ENOSPC:
        return "the disk is full", "Free some space, or set HF_HOME to another disk."
    text = str(error).splitlines()[0] if str(error) else type(error).__name__
    return _without_secrets(text).rstrip("."), "Check the network, then try again; what is whole stays."


def _without_secrets(text: str) -> str:
    token = get_token()
    if token:
        text = text.replace(token, "…")
    return _TOKEN.sub("hf_…", _CREDENTIALS.sub("//…@", text))
