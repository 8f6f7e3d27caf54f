"""An error in what Qt calls of ours ends as a message and not the process.

Before Python 3.12 an error that is raised in C (`[][0]`, `int("x")`, `1 / 0`) is kept as its type and a bare text until
somebody catches it. Where Qt calls an override within a call of ours (a model's `data` within `super().paintEvent`,
`sizeHint` within `adjustSize`, anything within `grab`), PySide 6.11 keeps its error for the caller and writes where it
comes from into the arguments of the exception; a text has none, and the process dies of SIGSEGV. Whoever catches and
raises it again makes an exception of it. So every override of every class made after this module's import is wrapped
in that.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any

from shiboken6 import Shiboken

WHOLE_ERRORS = sys.version_info >= (3, 12)
"""Whether every error is an exception from the beginning."""


def raised_whole(override: FunctionType) -> Callable[..., Any]:
    """`override`, from which every error comes as an exception. One that takes nothing but `self` takes nothing still:
    a signal's arguments are those that a slot says it takes."""
    if override.__code__.co_argcount == 1 and not override.__code__.co_flags & _MORE:

        @functools.wraps(override)
        def alone(self: Any) -> Any:
            try:
                return override(self)
            except BaseException:  # noqa: TRY203 - which is what makes it one
                raise

        return alone

    @functools.wraps(override)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return override(self, *args, **kwargs)
        except BaseException:  # noqa: TRY203 - as above
            raise

    return call


_MORE = 0x04 | 0x08  # inspect.CO_VARARGS, CO_VARKEYWORDS


def _wrap_overrides(cls: type, **kwargs: Any) -> None:
    super(Shiboken.Object, cls).__init_subclass__(**kwargs)  # type: ignore[misc]  # only ever called for its subclasses
    wrapped = [base for base in cls.__mro__ if isinstance(base, type(Shiboken.Object))]
    of_qt = [base for base in wrapped if base.__module__.startswith("PySide6")]
    for owner in _ours(cls):
        for name, member in list(vars(owner).items()):
            overrides = not name.startswith("__") and any(name in vars(base) for base in of_qt)
            if overrides and isinstance(member, FunctionType) and not hasattr(member, "__wrapped__"):
                setattr(owner, name, raised_whole(member))


def _ours(cls: type) -> Iterator[type]:
    """The class, and the mixins that no class of Qt's is above."""
    yield cls
    for base in cls.__mro__[1:]:
        if not isinstance(base, type(Shiboken.Object)) and base.__module__ not in {"builtins", "typing"}:
            yield base


if not WHOLE_ERRORS:
    Shiboken.Object.__init_subclass__ = classmethod(_wrap_overrides)  # type: ignore[arg-type, assignment, method-assign]
