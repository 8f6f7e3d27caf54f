"""Every test here has a cache of its own, unless it asks for the session's."""

from pathlib import Path

import pytest


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache directory for this test."""
    cache = tmp_path / "cache"
    monkeypatch.setenv("DECODERSCOPE_CACHE_DIR", str(cache))
    return cache
