"""The version of this program."""

from __future__ import annotations

from importlib import metadata


def version() -> str:
    """The installed version, or that of a checkout that is not installed."""
    try:
        return metadata.version("decoderscope")
    except metadata.PackageNotFoundError:
        return "0.1.0"
