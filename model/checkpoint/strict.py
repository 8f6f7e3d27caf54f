"""Which checkpoint tensor goes where: exact, or one report that names everything that does not fit."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from model.checkpoint.errors import TensorsError
from model.checkpoint.tensors import Entry, TensorSource
from model.families.base import TensorRule

_NUMBER = re.compile(r"(?<=\.)\d+(?=\.)|^\d+(?=\.)")
_LAYER = re.compile(r"^(.*?(?:^|\.)#)\.")
# Trained beside the weights, not part of them: the model without them is the base model, and that is said.
_ADAPTER = re.compile(r"\.(lora_[AB]|lora_embedding_[AB]|lora_magnitude_vector|adapter)\b")


@dataclass(frozen=True)
class Match:
    """What to read for which rule, and what lies in the checkpoint beside the decoder."""

    found: tuple[tuple[TensorRule, str], ...]
    outside: tuple[str, ...]


def match(path: Path, rules: Sequence[TensorRule], ignored: Iterable[str], source: TensorSource) -> Match:
    """Pairs every rule with its tensor. TensorsError lists missing, unexpected, mis-shaped and quantised ones."""
    entries = source.entries
    found: list[tuple[TensorRule, str]] = []
    missing, taken = [], set()
    misshaped: dict[str, tuple[tuple[int, ...], tuple[int, ...]]] = {}
    unusable: dict[str, str] = {}
    for rule in rules:
        names = [name for name in (rule.source, *rule.aliases) if name in entries]
        taken.update(names)
        if not names:
            if not rule.optional:
                missing.append(rule.source)
            continue
        if not rule.targets:
            continue
        entry = entries[names[0]]
        if not source.is_float(entry.name):
            unusable[entry.name] = entry.dtype
        elif entry.shape != tuple(rule.shape):
            misshaped[entry.name] = (entry.shape, tuple(rule.shape))
        else:
            found.append((rule, entry.name))
    extra = _not_ignored(entries, taken, tuple(ignored))
    inside = _inside(rules)
    unexpected = [name for name in extra if inside(name)]
    if missing or unexpected or misshaped or unusable:
        raise TensorsError(path, missing=missing, unexpected=unexpected, misshaped=misshaped, unusable=unusable)
    return Match(tuple(found), tuple(name for name in extra if name not in unexpected))


def _not_ignored(entries: Mapping[str, Entry], taken: set[str], ignored: tuple[str, ...]) -> list[str]:
    patterns = [re.compile(fnmatch.translate(pattern)) for pattern in ignored]
    left = (name for name in entries if name not in taken)
    return [name for name in left if not any(pattern.match(name) for pattern in patterns)]


def _folded(name: str) -> str:
    """The name with every number between dots as #: one name for all layers."""
    return _NUMBER.sub("#", name)


class _inside:  # noqa: N801 - used as a function
    """Whether a tensor belongs to the decoder that the rules describe: in a layer, or beside one of its weights."""

    def __init__(self, rules: Sequence[TensorRule]) -> None:
        self.roots: set[str] = set()
        for rule in rules:
            for name in (rule.source, *rule.aliases):
                folded = _folded(name)
                layer = _LAYER.match(folded)
                self.roots.add(layer[1] if layer else folded.rpartition(".")[0])
        self.roots.discard("")

    def __call__(self, name: str) -> bool:
        if _ADAPTER.search(name):
            return False
        folded = _folded(name)
        return any(folded.startswith(root + ".") for root in self.roots)
