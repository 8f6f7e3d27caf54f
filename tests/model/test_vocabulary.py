"""Tokens found by what is written: as written, after a space, then whatever the case."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pytest

from model.sampling import Order
from model.vocabulary import Vocabulary

PIECES = ["·Dog", "·dog", "dog", "Dog", "·dogs", "DOG", "7"]


class Written:
    """What a search uses of a tokenizer."""

    n_vocab = d_vocab = len(PIECES)

    def pieces(self, ids: Iterable[int]) -> list[str]:
        return [PIECES[i] for i in ids]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("dog", ["dog", "·dog", "·Dog", "Dog", "DOG", "·dogs"]),
        (" dog", ["·dog", "·Dog", "·dogs"]),
        ("·dog", ["·dog", "·Dog", "·dogs"]),
        ("Dog", ["Dog", "·Dog", "·dog", "dog", "DOG", "·dogs"]),
        ("·DOG", ["·Dog", "·dog", "·dogs"]),
        ("1", ["·dog"]),
    ],
)
def test_what_is_written_letter_for_letter_comes_first(text: str, wanted: list[str]) -> None:
    vocabulary = Vocabulary(Written())  # type: ignore[arg-type]  # pieces are all it reads
    order = Order(np.arange(len(PIECES), 0, -1, dtype=np.float32))  # likeliest: the first, "·Dog"
    assert [PIECES[i] for i in vocabulary.find(text, order, 10)] == wanted
