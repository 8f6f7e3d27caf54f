"""A newcomer's first minutes: a fresh clone, an empty home, no display, nothing but `make run`."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
# How this machine reaches its package index; everything else of the environment is left behind.
KEPT = ("PATH", "PIP_", "SSL_", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.skipif(sys.platform == "win32", reason="make is not there")
def test_make_run_in_a_fresh_clone_with_an_empty_home(tmp_path: Path) -> None:
    clone, home = tmp_path / "clone", tmp_path / "home"
    home.mkdir()
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True, timeout=120)
    environment = {name: value for name, value in os.environ.items() if name.upper().startswith(KEPT)}
    environment |= {"HOME": str(home), "PYTHON": os.path.realpath(sys.executable)}

    first = subprocess.run(
        ["make", "run"], cwd=clone, env=environment, capture_output=True, text=True, check=False, timeout=1700
    )
    assert first.returncode == 0, first.stdout + first.stderr
    assert "There is no display here" in first.stdout
    left = sorted(path.relative_to(clone).as_posix() for path in (clone / "out").rglob("*") if path.is_file())
    assert {Path(name).suffix for name in left} >= {".png", ".svg", ".pdf", ".csv", ".npz"}
    assert all(name in first.stdout for name in left), "every path it leaves is printed"
    assert all((clone / name).stat().st_size > 0 for name in left)

    start = time.monotonic()
    subprocess.run(["sh", "packaging/setup.sh", "run"], cwd=clone, env=environment, check=True, timeout=60)
    assert time.monotonic() - start < 2
