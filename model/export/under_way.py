"""What an export under way calls now and then."""

from __future__ import annotations

from collections.abc import Callable

Report = Callable[[str, int, int, str], None]
"""How far it is: what, done, of how many, in which unit."""
Check = Callable[[], None]
"""Whether to go on: raises to end it. Asked often enough that a cancel acts within 200 ms."""


def nothing(*_: object) -> None:
    """No progress wanted, or no cancel possible."""
