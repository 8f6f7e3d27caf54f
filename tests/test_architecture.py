"""The house rules that a linter cannot hold: what a fresh process loads, where things may stand, what is registered."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
MAX_LINES = 500
# What makes a file an entry of its package's registry, which is the package's __init__ or its registry.py.
REGISTRIES = {
    "app/panels": r"^class \w+\(Panel\)",
    "model/cli": r"^COMMAND = ",
    "model/families": r"^[A-Z0-9_]+ = Family\(",
    "model/handlers": r"^@handles",
    "model/protocol": r"^class \w+\(Request\)",
}
# A distribution's import name, where it is not its own.
IMPORT_NAMES = {"pyside6_essentials": ["PySide6", "shiboken6"], "fonttools": ["fontTools"]}


def sources(*folders: str) -> list[Path]:
    return [path for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def modules(*folders: str) -> list[str]:
    names = [".".join(path.relative_to(ROOT).with_suffix("").parts) for path in sources(*folders)]
    return [name.removesuffix(".__init__") for name in names]


def loaded_after(statement: str) -> set[str]:
    """Top-level modules in a fresh process after `statement`; started outside the tree, as the product is."""
    command = f"import sys\n{statement}\nprint(*{{name.partition('.')[0] for name in sys.modules}})"
    done = subprocess.run(
        [sys.executable, "-P", "-c", command], cwd="/", capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


def test_app_loads_no_torch() -> None:
    names = [name for name in modules("app") if not name.endswith("__main__")]
    assert "app.main" in names
    assert loaded_after(f"import {', '.join(names)}").isdisjoint({"torch", "transformers", "tokenizers"})


def test_entry_point_loads_neither_qt_nor_torch() -> None:
    assert loaded_after("import app.__main__").isdisjoint({"PySide6", "pyqtgraph", "torch"})


def test_model_loads_no_qt() -> None:
    names = [name for name in modules("model") if not name.endswith("__main__")]
    assert loaded_after(f"import {', '.join(names)}").isdisjoint({"PySide6", "pyqtgraph", "shiboken6", "app"})


def test_what_both_processes_share_is_light() -> None:
    names = [*modules("model/protocol"), "model.colormaps"]
    heavy = {"PySide6", "pyqtgraph", "shiboken6", "torch", "matplotlib", "tokenizers", "transformers"}
    assert loaded_after(f"import {', '.join(names)}").isdisjoint(heavy)


def test_every_file_holds_one_idea() -> None:
    files = sources("app", "model", "tests", "packaging")
    sizes = {relative(path): len(path.read_text(encoding="utf-8").splitlines()) for path in files}
    assert {name: size for name, size in sizes.items() if size > MAX_LINES} == {}


@pytest.mark.parametrize("package", REGISTRIES)
def test_every_entry_is_registered(package: str) -> None:
    files = {path: path.read_text(encoding="utf-8") for path in (ROOT / package).glob("*.py")}
    registry = "".join(text for path, text in files.items() if path.stem in {"__init__", "registry"})
    entries = [path for path, text in files.items() if re.search(REGISTRIES[package], text, re.MULTILINE)]
    assert entries
    assert [relative(path) for path in entries if not re.search(rf"\b{path.stem}\b", registry)] == []


def test_wheel_names_every_package() -> None:
    folders = {path.parent for path in sources("app", "model")}
    packages = {".".join(folder.relative_to(ROOT).parts) for folder in folders}
    assert set(PROJECT["tool"]["setuptools"]["packages"]) == packages | {"app.assets"}


@pytest.mark.parametrize(
    ("pattern", "home", "but_why"),
    [
        (r"\bQProcess\b", {"app/engine.py"}, "the child process"),
        (r"[\"']#(?:[0-9a-fA-F]{3}){1,2}\b", {"app/theme.py"}, "colours"),
        (r"\bQSettings\b|\bplatformdirs\b", {"app/settings.py"}, "preferences on disk"),
    ],
)
def test_one_file_knows(pattern: str, home: set[str], but_why: str) -> None:
    strangers = [relative(path) for path in sources("app") if re.search(pattern, path.read_text(encoding="utf-8"))]
    assert set(strangers) - home == set(), f"only {', '.join(home)} knows {but_why}"


@pytest.mark.parametrize("state", ["app/session.py", "app/selection.py"])
def test_state_owns_no_widgets(state: str) -> None:
    assert not [name for name in imports(ROOT / state) if name.startswith(("PySide6.QtWidgets", "pyqtgraph"))]


def test_no_pickle_and_no_relative_import() -> None:
    for path in sources("app", "model"):
        assert {"pickle", "shelve", "marshal", "dill"}.isdisjoint(imports(path)), relative(path)


def test_every_import_is_declared() -> None:
    declared = {"app", "model"}
    for requirement in PROJECT["project"]["dependencies"]:
        name = canonicalize_name(Requirement(requirement).name).replace("-", "_")
        declared.update(IMPORT_NAMES.get(name, [name]))
    used = {name.partition(".")[0] for path in sources("app", "model") for name in imports(path)}
    assert used - declared - set(sys.stdlib_module_names) == set()


def test_every_dependency_has_a_pin_in_its_range() -> None:
    lines = (ROOT / "packaging" / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = dict(line.split("==") for line in lines if line and not line.startswith("#"))
    pinned = {canonicalize_name(name): version for name, version in pins.items()}
    project = PROJECT["project"]
    groups = [project["dependencies"], *project["optional-dependencies"].values(), PROJECT["build-system"]["requires"]]
    for requirement in (Requirement(line) for group in groups for line in group):
        if requirement.name != project["name"]:
            assert requirement.specifier.contains(pinned[canonicalize_name(requirement.name)]), requirement


def imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"), str(path))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
