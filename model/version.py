"""The version of the product, as installed."""

from __future__ import annotations

import importlib.metadata


def product_version() -> str:
    """The installed version of decoderscope; "unknown" in a bare source tree."""
    try:
        return importlib.metadata.version("decoderscope")
    except importlib.metadata.PackageNotFoundError:
        return "unknown"
