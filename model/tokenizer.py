"""Text to token ids and back, and how a token is shown.

A token's piece is its own bytes made visible, never a guess: a space is `·`, a line break `⏎`, a byte that is
only part of a character `⟨E4⟩`, control and direction characters are escaped.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, TypeVar

import numpy as np
import tokenizers
from tokenizers.decoders import DecodeStream

from model.errors import DecoderscopeError, shown
from model.panics import may_panic
from model.protocol.token_run import PART, SPECIAL, TokenRun
from model.protocol.values import Token

_T = TypeVar("_T")

SPACE, NEWLINE, TAB, RETURN = "·", "⏎", "⇥", "␍"
_VISIBLE = {" ": SPACE, "\n": NEWLINE, "\t": TAB, "\r": RETURN}
# Joiners and variation selectors, which emoji and scripts need and which draw nothing alone; the rest of Cf turns text
# around.
_KEPT_FORMAT = {"\u200d", "\u200c", *map(chr, range(0xFE00, 0xFE10))}
_HIDDEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs"}
_BLANK = {"\u034f", "\u115f", "\u1160", "\u2800", "\u3164", "\uffa0"}
"""Categories of characters that draw nothing, and letters and signs that do not either."""


class TokenizerError(DecoderscopeError):
    """Text that the model's tokenizer can't handle, or a tokenizer that can't be used."""

    code = "tokenizer"


def byte_alphabet() -> dict[str, int]:
    """GPT-2's printable stand-in for each byte: characters of byte-level vocabularies to bytes.

    Printable Latin-1 stands for itself; the other 68 bytes are U+0100 onwards, in order (GPT-2, encoder.py).
    """
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(0x100 + n): byte for n, byte in enumerate(others)}


BYTE_OF = byte_alphabet()


def visible(raw: bytes) -> str:
    """Bytes as drawn: spaces as dots, breaks as signs, incomplete characters as ⟨E4⟩, controls and other spaces as
    ⟨U+202E⟩. Some sign is seen of any bytes."""
    text = raw.decode("utf-8", "surrogateescape")
    alone = _KEPT_FORMAT.issuperset(text)
    out = []
    for ch in text:
        if "\udc80" <= ch <= "\udcff":  # surrogateescape's mark for a byte that is no character
            out.append(f"⟨{ord(ch) - 0xDC00:02X}⟩")
        elif ch in _VISIBLE:
            out.append(_VISIBLE[ch])
        elif ch in _KEPT_FORMAT:
            out.append(f"⟨U+{ord(ch):04X}⟩" if alone else ch)
        elif unicodedata.category(ch) in _HIDDEN or ch in _BLANK:
            out.append(f"⟨U+{ord(ch):04X}⟩")
        else:
            out.append(ch)
    return "".join(out)


def is_whole(raw: bytes) -> bool:
    """Whether the bytes are characters and nothing but."""
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


class Encoding(Protocol):
    """Ids of a text, and the characters each covers."""

    @property
    def ids(self) -> list[int]: ...
    @property
    def offsets(self) -> list[tuple[int, int]]: ...


Encoder = Callable[[str, bool], Encoding]
"""encoder(text, add_special): in place of the backend's own encoding, where its patterns need a time limit."""


class Tokenizer:
    """A model's tokenizer. `d_vocab`: the ids the model has embeddings for (0: not known).

    Thread-safe: nothing but caches of immutable facts changes after construction.
    """

    def __init__(
        self,
        backend: tokenizers.Tokenizer,
        *,
        eos_ids: Iterable[int] = (),
        bos_id: int | None = None,
        chat_template: str | None = None,
        d_vocab: int = 0,
        encoder: Encoder | None = None,
    ) -> None:
        self._backend = backend
        self._encoder = encoder
        backend.no_truncation()
        backend.no_padding()
        decoder = backend.decoder
        state = decoder.__getstate__().decode() if decoder is not None else ""
        self._byte_level = '"ByteLevel"' in state
        self._byte_fallback = '"ByteFallback"' in state
        self._metaspace = "▁" in state
        added = backend.get_added_tokens_decoder()
        self._added = {token_id: token.content for token_id, token in added.items()}
        self._special = frozenset(token_id for token_id, token in added.items() if token.special)
        self.eos_ids = tuple(dict.fromkeys(eos_ids))
        self.bos_id = bos_id
        self.chat_template = chat_template
        self.d_vocab = d_vocab
        self._pieces: dict[int, str] = {}

    @property
    def n_vocab(self) -> int:
        """How many tokens the tokenizer knows."""
        return self._backend.get_vocab_size(with_added_tokens=True)

    @property
    def ids_only(self) -> bool:
        """Whether texts are lists of ids, because the model came without a tokenizer."""
        return False

    def encode(self, text: str, *, add_special: bool = True) -> list[int]:
        """The ids of `text`; `add_special`: with the tokens the model expects around a text, such as BOS."""
        ids: list[int] = self._encode(text, add_special).ids
        self._check(ids)
        return ids

    def decode(self, ids: Sequence[int], *, skip_special: bool = False) -> str:
        """The text of `ids`; incomplete characters become U+FFFD."""
        text: str = self._call(lambda: self._backend.decode(list(ids), skip_special_tokens=skip_special))
        return text

    def to_json(self) -> str:
        """The tokenizer as the text of a tokenizer.json."""
        return str(self._backend.to_str())

    def decode_stream(self) -> TextStream:
        """Text of tokens that come one at a time."""
        return TextStream(self)

    def pieces(self, ids: Iterable[int]) -> list[str]:
        """Each token as drawn, by itself."""
        return [self.piece(token_id) for token_id in ids]

    def piece(self, token_id: int) -> str:
        """One token as drawn; an id without a token is ⟨#49155⟩."""
        piece = self._pieces.get(token_id)
        if piece is None:
            raw = self.token_bytes(token_id)
            piece = f"⟨#{token_id}⟩" if raw is None else visible(raw)
            self._pieces[token_id] = piece
        return piece

    def is_special(self, token_id: int) -> bool:
        """Whether the token marks something (start, end, role) and is no text."""
        return token_id in self._special

    def token_bytes(self, token_id: int) -> bytes | None:
        """The bytes a token stands for; None for an id without a token."""
        if (content := self._added.get(token_id)) is not None:
            return content.encode("utf-8", "surrogatepass")
        token = self._backend.id_to_token(token_id) if 0 <= token_id < 2**32 else None
        if token is None:
            return None
        if self._byte_level:
            values = [BYTE_OF.get(ch) for ch in token]
            known = [value for value in values if value is not None]
            return bytes(known) if len(known) == len(values) else token.encode()
        if self._byte_fallback and len(token) == 6 and token.startswith("<0x") and token.endswith(">"):
            try:
                return bytes([int(token[3:5], 16)])
            except ValueError:
                pass
        return (token.replace("▁", " ") if self._metaspace else token).encode()

    def offsets(self, text: str, *, add_special: bool = True) -> list[Token]:
        """The tokens of `text` with the characters they cover; see `token_run`."""
        return list(self.token_run(text, add_special=add_special))

    def token_run(self, text: str, *, add_special: bool = True) -> TokenRun:
        """The tokens of `text` with the characters they cover, as arrays.

        `start`, `end` are indices into the Python string. Tokens that are parts of one character share its span and
        have `part` set; spaces that the tokenizer trims from its offsets are given back to their token.
        """
        encoding = self._encode(text, add_special)
        self._check(encoding.ids)
        starts, ends, last = [], [], 0
        for start, end in encoding.offsets:
            if last < start <= end and text[last:start].isspace():
                start = last  # noqa: PLW2901 - the span is mended
            last = max(last, end)
            starts.append(start)
            ends.append(end)
        distinct, kind = np.unique(np.array(encoding.ids, np.int32), return_inverse=True)
        ids = distinct.tolist()
        flags = [SPECIAL * self.is_special(token_id) + PART * self._is_part(token_id) for token_id in ids]
        return TokenRun(
            pieces=tuple(map(self.piece, ids)), kind=kind.astype(np.int32), start=np.array(starts, np.int32),
            end=np.array(ends, np.int32), ids=distinct, flags=np.array(flags, np.uint8),
        )  # fmt: skip

    def _is_part(self, token_id: int) -> bool:
        """Whether a token holds only part of a character."""
        raw = self.token_bytes(token_id)
        return raw is not None and not is_whole(raw)

    def _encode(self, text: str, add_special: bool) -> Encoding:
        clean = "".join("\ufffd" if "\ud800" <= ch <= "\udfff" else ch for ch in text) if _has_surrogate(text) else text
        if self._encoder is not None:
            return self._encoder(clean, add_special)
        encoding: Encoding = self._call(lambda: self._backend.encode(clean, add_special_tokens=add_special))
        return encoding

    def _check(self, ids: Sequence[int]) -> None:
        if self.d_vocab and ids and max(ids) >= self.d_vocab:
            bad = next(token_id for token_id in ids if token_id >= self.d_vocab)
            raise TokenizerError(
                f"The tokenizer gives the id {bad} ({self.piece(bad)}), but the model has only {self.d_vocab} "
                "embeddings: leave that token out of the text."
            )

    @staticmethod
    def _call(work: Callable[[], _T]) -> _T:
        try:
            with may_panic():
                return work()
        except (KeyboardInterrupt, SystemExit, GeneratorExit):
            raise
        except BaseException as error:  # Rust's PanicException is no Exception
            if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
                raise
            reason = shown(str(error).splitlines()[0] if str(error) else type(error).__name__, 200)
            raise TokenizerError(
                f"The model's tokenizer failed on this text: {reason}. Try a shorter or simpler text."
            ) from error


def _has_surrogate(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return True
    return False


class TextStream:
    """Text as tokens come: a character is given once its last byte is here."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._stream = DecodeStream(skip_special_tokens=False)

    def push(self, token_id: int) -> str:
        """The text that `token_id` completes; empty while a character is unfinished."""
        tokenizer = self._tokenizer
        return tokenizer._call(lambda: self._stream.step(tokenizer._backend, token_id)) or ""


class IdsTokenizer(Tokenizer):
    """Stands in where a model came without a tokenizer: a text is ids between spaces, such as `12 7 431`."""

    def __init__(self, *, d_vocab: int, eos_ids: Iterable[int] = ()) -> None:
        super().__init__(tokenizers.Tokenizer(tokenizers.models.BPE()), eos_ids=eos_ids, d_vocab=d_vocab)

    @property
    def ids_only(self) -> bool:
        return True

    @property
    def n_vocab(self) -> int:
        return self.d_vocab

    def encode(self, text: str, *, add_special: bool = True) -> list[int]:
        """The ids written in `text`."""
        return [token.id for token in self.offsets(text, add_special=add_special)]

    def decode(self, ids: Sequence[int], *, skip_special: bool = False) -> str:  # noqa: ARG002
        """The ids, written out."""
        return " ".join(str(token_id) for token_id in ids)

    def token_bytes(self, token_id: int) -> bytes | None:  # noqa: ARG002
        """None: no token is known."""
        return None

    def offsets(self, text: str, *, add_special: bool = True) -> list[Token]:  # noqa: ARG002
        """The ids written in `text` and where."""
        tokens, at = [], 0
        for word in text.split():
            start = text.index(word, at)
            at = start + len(word)
            if not (word.isascii() and word.isdecimal() and len(word) <= 10 and int(word) < self.d_vocab):
                raise TokenizerError(
                    f"This model came without a tokenizer, so a prompt is token ids from 0 to {self.d_vocab - 1} "
                    f"between spaces; found {word[:40]!r}."
                )
            tokens.append(Token(id=int(word), piece=self.piece(int(word)), start=start, end=at))
        return tokens

    def token_run(self, text: str, *, add_special: bool = True) -> TokenRun:
        """The same, as arrays."""
        return TokenRun.of(self.offsets(text, add_special=add_special))

    def decode_stream(self) -> TextStream:
        """The ids one at a time."""
        return _IdsStream(self)


class _IdsStream(TextStream):
    def push(self, token_id: int) -> str:
        return f" {token_id}"
