"""What gets installed: every file of app, model and assets, under two names, and a command that starts."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path, PurePosixPath

import pytest

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    for name in ("app", "model", "assets"):
        shutil.copytree(ROOT / name, folder / "source" / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder / "source")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-index", "--no-build-isolation"]
    subprocess.run([*command, "--wheel-dir", str(folder), "."], cwd=folder / "source", check=True, timeout=100)
    (built,) = folder.glob("*.whl")
    return built


def test_wheel_holds_every_file_under_two_names(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if ".dist-info/" not in name}
    sources = {
        path.relative_to(ROOT) for name in ("app", "model") for path in (ROOT / name).rglob("*") if is_ours(path)
    }
    assets = {"app" / path.relative_to(ROOT) for path in (ROOT / "assets").rglob("*") if is_ours(path)}
    assets = {path for path in assets if path.parent.name != "pictures"}  # README.md's
    assert packed == {path.as_posix() for path in sources | assets}
    assert {PurePosixPath(name).parts[0] for name in packed} == {"app", "model"}


def test_installed_command_and_assets_work(wheel: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    (entry_points,) = tmp_path.glob("*.dist-info/entry_points.txt")
    assert "decoderscope = app.__main__:main" in entry_points.read_text(encoding="utf-8")
    program = f"""
import sys
sys.path.insert(0, {str(tmp_path)!r})
import app, model
from importlib.resources import files
assert app.__file__.startswith({str(tmp_path)!r}) and model.__file__.startswith({str(tmp_path)!r})
assert files("app.assets").joinpath("icons", "decoderscope.svg").is_file()
from app.__main__ import main
sys.argv = ["decoderscope", "--version"]
sys.exit(main())
"""
    done = subprocess.run(
        [sys.executable, "-P", "-c", program], cwd="/", capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stdout.split()) == (0, ["decoderscope", PROJECT["version"]]), done.stderr


def is_ours(path: Path) -> bool:
    return path.is_file() and "__pycache__" not in path.parts
