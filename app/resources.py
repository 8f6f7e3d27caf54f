"""Where the committed files of assets/ are: inside the wheel as app.assets, beside app/ in a checkout."""

from __future__ import annotations

from functools import lru_cache
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path


@lru_cache(maxsize=1)
def assets() -> Traversable:
    """The folder of assets."""
    beside = Path(__file__).resolve().parent.parent / "assets"
    if (beside / "style.qss").is_file():
        return beside
    return resources.files("app.assets")


def text(name: str) -> str:
    """The text of an asset, named by its path in assets/."""
    return assets().joinpath(name).read_text(encoding="utf-8")


def data(name: str) -> bytes:
    """The bytes of an asset."""
    return assets().joinpath(name).read_bytes()
