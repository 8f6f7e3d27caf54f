"""Finding tokens in the whole vocabulary by what is written on them or by their id."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING

from model.tokenizer import SPACE, Tokenizer, visible

if TYPE_CHECKING:
    from model.sampling import Order

_known: weakref.WeakKeyDictionary[Tokenizer, Vocabulary] = weakref.WeakKeyDictionary()


class Vocabulary:
    """Every token's piece, folded once; a search reads them all (some ms at 150,000 tokens)."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._size = max(tokenizer.n_vocab, tokenizer.d_vocab)
        self._pieces = tokenizer.pieces(range(self._size))
        self._folded = [piece.casefold() for piece in self._pieces]

    @classmethod
    def of(cls, tokenizer: Tokenizer) -> Vocabulary:
        """The vocabulary of `tokenizer`, made once."""
        if tokenizer not in _known:
            _known[tokenizer] = cls(tokenizer)
        return _known[tokenizer]

    def find(self, text: str, order: Order, limit: int) -> list[int]:
        """Ids of at most `limit` tokens: the one whose id is written, then those that are `text` letter for letter,
        then those that are it after a space, then those that are either but for the case, then those that hold it,
        each likeliest first."""
        written = visible(text.encode("utf-8", "surrogatepass"))
        wanted, value = written.casefold(), order.values
        whole = {wanted, SPACE + wanted, text.casefold()}
        exact: list[tuple[int, int]] = []
        partial: list[int] = []
        for token_id, folded in enumerate(self._folded[: value.size]):
            if wanted in folded or text.casefold() in folded:
                if folded not in whole:
                    partial.append(token_id)
                    continue
                piece = self._pieces[token_id]
                exact.append((0 if piece in (written, text) else 1 if piece == SPACE + written else 2, token_id))
        exact.sort(key=lambda pair: (pair[0], -value[pair[1]], pair[1]))
        likeliest = [[i for _, i in exact], sorted(partial, key=lambda i: (-value[i], i))]
        number = [int(text)] if text.isascii() and text.isdecimal() and int(text) < min(self._size, value.size) else []
        return list(dict.fromkeys([*number, *likeliest[0], *likeliest[1]]))[:limit]
