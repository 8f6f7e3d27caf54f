"""Every text of the window that can be translated, read from the sources."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TITLES = {"title", "submenu", "help_text"}
# Texts a person reads in the sources' own constants, passed to tr() by name.
CONSTANTS = {"KEYS_RULE", "ABOUT", "HELP", "MENUS", "STAGES", "_HEADERS", "tints", "EXPORT_TITLES"}
NOT_TEXT = {"", "…", "·"}


def texts() -> dict[str, str]:
    """Text → the file that shows it."""
    found: dict[str, str] = {}
    for path in sorted((ROOT / "app").rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for text in _of_file(tree):
            if text not in NOT_TEXT:
                found.setdefault(text, path.relative_to(ROOT).as_posix())
    for example in json.loads((ROOT / "assets/prompts/examples.json").read_text(encoding="utf-8")):
        found.setdefault(example["title"], "assets/prompts/examples.json")
    return found


def _of_file(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield from _of_call(node)
        elif isinstance(node, ast.AnnAssign | ast.Assign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = {target.id for target in targets if isinstance(target, ast.Name)}
            if names & (TITLES | CONSTANTS) and node.value is not None:
                yield from _strings(node.value)


def _of_call(node: ast.Call) -> Iterator[str]:
    name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
    if name == "tr" and node.args:
        yield from _strings(node.args[0])
    elif name == "Command":
        for keyword in node.keywords:
            if keyword.arg in TITLES:
                yield from _strings(keyword.value)
    elif name == "ToCome":
        for keyword in node.keywords:
            if keyword.arg in {"title", "words"}:
                yield from _strings(keyword.value)


def _strings(node: ast.expr) -> Iterator[str]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.Tuple | ast.List):
        for element in node.elts:
            yield from _strings(element)
    elif isinstance(node, ast.Dict):
        for value in node.values:
            yield from _strings(value)
    elif isinstance(node, ast.Subscript):
        yield from _strings(node.value)
    elif isinstance(node, ast.IfExp):
        yield from _strings(node.body)
        yield from _strings(node.orelse)
