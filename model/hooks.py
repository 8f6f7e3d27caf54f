"""Hook points: places in the forward pass where an activation can be read or replaced.

Names are TransformerLens' without `hook_` (ARCHITECTURE.md lists them with their shapes). A point nobody listens to
hands its tensor through; a listener gets the very tensor the model goes on with, and may return another, or the same
with other numbers in it. One that returns nothing has only read: what it wrote in secret would be marked nowhere.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from torch import Tensor, nn

from model.errors import DecoderscopeError, UnknownNameError

Listener = Callable[[Tensor, "HookPoint"], Tensor | None]


class BadReplacementError(DecoderscopeError):
    """A listener returned something that can't take the activation's place."""

    code = "bad_replacement"

    def __init__(self, point: str, found: str, expected: str) -> None:
        self.point = point
        super().__init__(f"The replacement for {point} is {found}; expected {expected}.")


@dataclass(eq=False)
class Listening:
    """What happened inside a `with decoder.hooks(...)` block."""

    points: tuple[str, ...]
    replaced: set[str] = field(default_factory=set)
    replacements: int = 0

    @property
    def altered(self) -> bool:
        """True once any listener has replaced an activation."""
        return bool(self.replaced)


class HookPoint(nn.Module):
    """An identity with a name, such as `layers.3.attn.q`, and a documented `shape`, such as `(H, T, D)`."""

    def __init__(self, name: str, shape: str) -> None:
        super().__init__()
        self.name = name
        self.shape = shape
        self.listeners: list[tuple[Listener, Listening]] = []

    def __call__(self, tensor: Tensor) -> Tensor:  # not nn.Module's: an idle point must cost next to nothing
        return self.forward(tensor) if self.listeners else tensor

    def forward(self, tensor: Tensor) -> Tensor:
        """Show `tensor` to every listener in turn; each sees what the one before left."""
        for listener, record in self.listeners:
            replacement = listener(tensor, self)
            if replacement is not None:
                self._check(tensor, replacement)
                record.replaced.add(self.name)
                record.replacements += 1
                # written into and handed back: told apart all the same by who asks whether it is still the tensor
                tensor = replacement if replacement is not tensor else replacement.view_as(replacement)
        return tensor

    def _check(self, tensor: Tensor, replacement: Tensor) -> None:
        expected = f"a {tensor.dtype} tensor of shape {tuple(tensor.shape)} on {tensor.device}"
        if not isinstance(replacement, Tensor):
            raise BadReplacementError(self.name, f"a {type(replacement).__name__}", expected)
        found = f"a {replacement.dtype} tensor of shape {tuple(replacement.shape)} on {replacement.device}"
        if found != expected:
            raise BadReplacementError(self.name, found, expected)


def replacements(points: Iterable[HookPoint]) -> int:
    """How often the listeners there are have replaced an activation: more after a pass than before it, if in it."""
    return sum(record.replacements for point in points for _, record in point.listeners)


@contextmanager
def listening(points: Mapping[str, HookPoint], listeners: Mapping[str, Listener]) -> Iterator[Listening]:
    """Attach `listeners` (name or pattern such as `layers.*.attn.q` → function) to `points` for a `with` block.

    A name that fits no point raises UnknownNameError and attaches nothing.
    """
    chosen: list[tuple[HookPoint, Listener]] = []
    for pattern, listener in listeners.items():
        found = [points[pattern]] if pattern in points else []
        if not found:
            found = [point for name, point in points.items() if fnmatch.fnmatchcase(name, pattern)]
        if not found:
            raise UnknownNameError("hook point", pattern, points)
        chosen += [(point, listener) for point in found]
    record = Listening(points=tuple(point.name for point, _ in chosen))
    entries = [(point, (listener, record)) for point, listener in chosen]
    try:
        for point, entry in entries:
            point.listeners.append(entry)
        yield record
    finally:
        for point, entry in entries:
            if entry in point.listeners:
                point.listeners.remove(entry)
