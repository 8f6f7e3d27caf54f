"""The tokenizer a GGUF describes, as a `tokenizers.Tokenizer` whose ids are the original's.

Keys: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md#tokenizer
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, processors

from model.checkpoint.errors import BadFileError, UnsupportedError, shown_list
from model.checkpoint.gguf_header import Value
from model.checkpoint.pretokenizers import PRE_TOKENIZATIONS
from model.errors import shown

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = 1, 2, 3, 4, 5, 6
_SPACE = "▁"
_PHI3_PLAIN = frozenset({"<unk>", "<s>", "<|endoftext|>"})
_EOS_KEYS = ("eos_token_id", "eot_token_id", "eom_token_id")


class _Vocabulary:
    """The typed, checked `tokenizer.ggml.*` keys."""

    def __init__(self, path: Path, meta: Mapping[str, Value]) -> None:
        self.path, self.meta = path, meta
        self.tokens = self.texts("tokens")
        if not self.tokens:
            raise BadFileError(path, "no vocabulary", where="tokenizer.ggml.tokens")
        self.index = {token: token_id for token_id, token in enumerate(self.tokens)}
        if len(self.index) != len(self.tokens):
            double = [token for token_id, token in enumerate(self.tokens) if self.index[token] != token_id]
            raise BadFileError(
                path, f"{len(double)} tokens appear twice: {shown_list(double)}", where="tokenizer.ggml.tokens"
            )
        self.types = self.wholes("token_type") or [NORMAL] * len(self.tokens)
        if len(self.types) != len(self.tokens):
            raise BadFileError(
                path, "as many types as tokens are needed", where="tokenizer.ggml.token_type", found=len(self.types),
                expected=len(self.tokens),
            )  # fmt: skip

    def bad(self, key: str, found: object, expected: str) -> BadFileError:
        return BadFileError(self.path, "wrong kind of value", where=key, found=found, expected=expected)

    def get(self, name: str) -> Value | None:
        return self.meta.get(f"tokenizer.ggml.{name}")

    def texts(self, name: str) -> list[str]:
        value = self.get(name)
        if value is None:
            return []
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self.bad(f"tokenizer.ggml.{name}", value, "an array of texts")
        return [item for item in value if isinstance(item, str)]

    def numbers(self, name: str) -> list[float]:
        value = self.get(name)
        if value is None:
            return []
        if not isinstance(value, list) or any(isinstance(item, str) for item in value):
            raise self.bad(f"tokenizer.ggml.{name}", value, "an array of numbers")
        return [float(item) for item in value]

    def wholes(self, name: str) -> list[int]:
        numbers = self.numbers(name)
        if not all(number.is_integer() for number in numbers):
            raise self.bad(f"tokenizer.ggml.{name}", self.get(name), "an array of whole numbers")
        return [int(number) for number in numbers]

    def text(self, name: str) -> str:
        value = self.get(name)
        if value is not None and not isinstance(value, str):
            raise self.bad(f"tokenizer.ggml.{name}", value, "a text")
        return value or ""

    def flag(self, name: str, default: bool) -> bool:
        value = self.get(name)
        if value is not None and not isinstance(value, bool):
            raise self.bad(f"tokenizer.ggml.{name}", value, "true or false")
        return default if value is None else value

    def token_id(self, name: str) -> int | None:
        value = self.get(name)
        if value is None or value in (-1, 0xFFFFFFFF):  # a tuple: a list of values has no hash
            return None
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < len(self.tokens):
            raise self.bad(f"tokenizer.ggml.{name}", value, f"a token id from 0 to {len(self.tokens) - 1}")
        return value

    def of_type(self, kind: int) -> list[int]:
        return [token_id for token_id, found in enumerate(self.types) if found == kind]


def build_tokenizer(path: Path, meta: Mapping[str, Value]) -> Tokenizer:
    """The tokenizer in a GGUF's metadata. UnsupportedError names a tokenizer or pre-tokenizer we do not know."""
    vocabulary = _Vocabulary(path, meta)
    kind = vocabulary.text("model")
    if kind == "gpt2":
        tokenizer, add_bos = _byte_level(vocabulary)
    elif kind == "llama":
        tokenizer, add_bos = _sentencepiece(vocabulary)
    else:
        raise UnsupportedError(
            path,
            f"its tokenizer is of kind {shown(kind or 'none')}; byte-level BPE (gpt2) and SentencePiece (llama) work",
            "Use the model's Hugging Face folder, which holds tokenizer.json.",
        )
    _add_marked_tokens(tokenizer, vocabulary)
    _surround(tokenizer, vocabulary, add_bos=add_bos)
    if tokenizer.get_vocab_size(with_added_tokens=True) != len(vocabulary.tokens):
        raise BadFileError(
            path, "the tokenizer built from it has another size", where="tokenizer.ggml.tokens",
            found=tokenizer.get_vocab_size(with_added_tokens=True), expected=len(vocabulary.tokens),
        )  # fmt: skip
    return tokenizer


def special_ids(path: Path, meta: Mapping[str, Value]) -> tuple[tuple[int, ...], int | None]:
    """(ids that end a text, the id that begins one or None)."""
    vocabulary = _Vocabulary(path, meta)
    eos = [token_id for name in _EOS_KEYS if (token_id := vocabulary.token_id(name)) is not None]
    return tuple(dict.fromkeys(eos)), vocabulary.token_id("bos_token_id")


def _byte_level(vocabulary: _Vocabulary) -> tuple[Tokenizer, bool]:
    name = vocabulary.text("pre")
    rules = PRE_TOKENIZATIONS.get(name)
    if rules is None:
        raise UnsupportedError(
            vocabulary.path,
            f"its pre-tokenizer is {shown(name or 'not named')}; known are {', '.join(sorted(PRE_TOKENIZATIONS))}",
            "Use the model's Hugging Face folder, which holds tokenizer.json.",
        )
    merges = []
    for merge in vocabulary.texts("merges"):
        left, space, right = merge.partition(" ")
        if not space or not left or not right:
            raise BadFileError(
                vocabulary.path, "malformed merge", where="tokenizer.ggml.merges", found=merge, expected="two parts"
            )
        merges.append((left, right))
    tokenizer = Tokenizer(_bpe(vocabulary, merges, byte_fallback=False, ignore_merges=rules.ignore_merges))
    normalizer = rules.normalizer()
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = rules.make()
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer, vocabulary.flag("add_bos_token", rules.add_bos)


def _bpe(
    vocabulary: _Vocabulary, merges: list[tuple[str, str]], *, byte_fallback: bool, ignore_merges: bool = False
) -> models.BPE:
    try:
        if not byte_fallback:
            return models.BPE(vocab=vocabulary.index, merges=merges, ignore_merges=ignore_merges)
        unknown = vocabulary.token_id("unknown_token_id")
        unknown_token = vocabulary.tokens[unknown if unknown is not None else 0]
        return models.BPE(
            vocab=vocabulary.index, merges=merges, byte_fallback=True, fuse_unk=True, unk_token=unknown_token
        )
    except Exception as error:  # the library raises its own kinds
        raise BadFileError(
            vocabulary.path,
            f"merges that do not fit the vocabulary: {shown(str(error))}",
            where="tokenizer.ggml.merges",
        ) from error


def _sentencepiece(vocabulary: _Vocabulary) -> tuple[Tokenizer, bool]:
    """SentencePiece's BPE: spaces are ▁, unknown characters fall back to bytes, merges follow the tokens' scores."""
    scores = vocabulary.numbers("scores")
    if len(scores) != len(vocabulary.tokens):
        raise BadFileError(
            vocabulary.path, "as many scores as tokens are needed", where="tokenizer.ggml.scores", found=len(scores),
            expected=len(vocabulary.tokens),
        )  # fmt: skip
    tokenizer = Tokenizer(_bpe(vocabulary, _merges_of(vocabulary, scores), byte_fallback=True))
    spaces = normalizers.Replace(" ", _SPACE)
    prefix = vocabulary.flag("add_space_prefix", default=True)
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend(_SPACE), spaces]) if prefix else spaces
    steps = [decoders.Replace(_SPACE, " "), decoders.ByteFallback(), decoders.Fuse()]
    tokenizer.decoder = decoders.Sequence([*steps, decoders.Strip(" ", 1, 0)] if prefix else steps)
    return tokenizer, vocabulary.flag("add_bos_token", default=True)


def _merges_of(vocabulary: _Vocabulary, scores: Sequence[float]) -> list[tuple[str, str]]:
    """Every way to make a token of two others, best score first.

    SentencePiece merges the neighbours whose union scores highest, BPE by rank: the same when rank follows score.
    """
    texts = vocabulary.tokens
    mergeable = {
        token: token_id
        for token, token_id in vocabulary.index.items()
        if vocabulary.types[token_id] in {NORMAL, USER_DEFINED, UNUSED}
    }
    merges: list[tuple[str, str]] = []
    for token_id in sorted(mergeable.values(), key=lambda token_id: -scores[token_id]):
        token = texts[token_id]
        for cut in range(1, len(token)):
            left = mergeable.get(token[:cut])
            if left is not None and (right := mergeable.get(token[cut:])) is not None:
                merges.append((texts[left], texts[right]))  # the vocabulary's own: half a million copies take 60 MB
    return merges


def _add_marked_tokens(tokenizer: Tokenizer, vocabulary: _Vocabulary) -> None:
    """Control and user-defined tokens are matched whole in a text, before anything is cut."""
    byte_level = vocabulary.text("model") == "gpt2"
    control = [vocabulary.tokens[token_id] for token_id in vocabulary.of_type(CONTROL)]
    if not byte_level:
        control += [vocabulary.tokens[token_id] for token_id in vocabulary.of_type(UNKNOWN)]
    strip = _strips_right(vocabulary)
    tokenizer.add_special_tokens(
        [
            AddedToken(token, normalized=False, special=True, rstrip=strip and token not in _PHI3_PLAIN)
            for token in control
        ]
    )
    user = [vocabulary.tokens[token_id] for token_id in vocabulary.of_type(USER_DEFINED)]
    tokenizer.add_tokens([AddedToken(token, normalized=False, special=False) for token in user])


def _strips_right(vocabulary: _Vocabulary) -> bool:
    """Phi-3's special tokens take the white space after them; a GGUF does not say so, llama.cpp knows it by name."""
    name = vocabulary.meta.get("general.name", "")
    return vocabulary.text("model") == "llama" and (
        vocabulary.meta.get("general.architecture") == "phi3" or "phi-3" in str(name).lower()
    )


def _surround(tokenizer: Tokenizer, vocabulary: _Vocabulary, *, add_bos: bool) -> None:
    """BOS before and EOS after a text, where the file asks for them."""
    bos, eos = vocabulary.token_id("bos_token_id"), vocabulary.token_id("eos_token_id")
    template, special = ["$A"], []
    if add_bos and bos is not None:
        template.insert(0, vocabulary.tokens[bos])
        special.append((vocabulary.tokens[bos], bos))
    if vocabulary.flag("add_eos_token", default=False) and eos is not None:
        template.append(vocabulary.tokens[eos])
        special.append((vocabulary.tokens[eos], eos))
    if special:
        tokenizer.post_processor = processors.TemplateProcessing(single=template, special_tokens=special)
    elif vocabulary.text("model") == "gpt2":
        tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
