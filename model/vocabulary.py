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
        self._pieces = [piece.casefold() for piece in tokenizer.pieces(range(self._size))]

    @classmethod
    def of(cls, tokenizer: Tokenizer) -> Vocabulary:
        """The vocabulary of `tokenizer`, made once."""
        if tokenizer not in _known:
            _known[tokenizer] = cls(tokenizer)
        return _known[tokenizer]

    def find(self, text: str, order: Order, limit: int) -> list[int]:
        """Ids of at most `limit` tokens: the one whose id is written, then those that are `text`, then those that hold
        it, each likeliest first."""
        wanted = visible(text.encode("utf-8", "surrogatepass")).casefold()
        whole = {wanted, SPACE + wanted, text.casefold()}
        exact: list[int] = []
        partial: list[int] = []
        for token_id, piece in enumerate(self._pieces[: order.values.size]):
            if wanted in piece or text.casefold() in piece:
                (exact if piece in whole else partial).append(token_id)
        value = order.values
        likeliest = [sorted(ids, key=lambda i: (-value[i], i)) for ids in (exact, partial)]
        number = [int(text)] if text.isascii() and text.isdecimal() and int(text) < min(self._size, value.size) else []
        return list(dict.fromkeys([*number, *likeliest[0], *likeliest[1]]))[:limit]
