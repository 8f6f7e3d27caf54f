"""The text of a path of tokens, as they come: characters appear when their last byte is there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from model.tokenizer import TextStream, Tokenizer


class PathText:
    """Decodes the last path asked for once; a shorter one, or one that goes on from it, costs next to nothing."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._ids: list[int] = []
        self._parts: list[str] = []  # what each token completes
        self._stream: TextStream | None = None

    def of(self, ids: Sequence[int]) -> str:
        """The text of `ids`, without a character that is unfinished at their end."""
        self._follow(ids)
        return "".join(self._parts[: len(ids)])

    def after(self, ids: Sequence[int], n: int) -> str:
        """The part of the text that tokens `n` … complete."""
        self._follow(ids)
        return "".join(self._parts[n : len(ids)])

    def _follow(self, ids: Sequence[int]) -> None:
        known = min(len(ids), len(self._ids))
        if self._stream is None or list(ids[:known]) != self._ids[:known]:
            self._stream, self._ids, self._parts = self._tokenizer.decode_stream(), [], []
        for token in ids[len(self._ids) :]:
            self._parts.append(self._stream.push(token))
            self._ids.append(token)
