"""How byte-level vocabularies cut text before merging, by the names llama.cpp's converter gives them.

A GGUF carries only the name (`tokenizer.ggml.pre`); the rules are those of the original tokenizer.json files.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tokenizers import Regex, normalizers, pre_tokenizers
from tokenizers.pre_tokenizers import PreTokenizer

_CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_REST = r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
_WORD = r"[^\r\n\p{L}\p{N}]?\p{L}+"
_UPPER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]"
_LOWER = r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_REST_SLASH = r" ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"

LLAMA3 = rf"{_CONTRACTIONS}|{_WORD}|\p{{N}}{{1,3}}|{_REST}"  # cl100k's cut, with groups of up to three digits
QWEN2 = rf"{_CONTRACTIONS}|{_WORD}|\p{{N}}|{_REST}"
TEKKEN = rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}*{_LOWER}+|[^\r\n\p{{L}}\p{{N}}]?{_UPPER}+{_LOWER}*|\p{{N}}|{_REST_SLASH}"
GPT4O = (
    rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}*{_LOWER}+{_CONTRACTIONS}?|[^\r\n\p{{L}}\p{{N}}]?{_UPPER}+{_LOWER}*"
    rf"{_CONTRACTIONS}?|\p{{N}}{{1,3}}|{_REST_SLASH}"
)
BLOOM = r" ?[^(\s|[.,!?…。，、।۔،])]+"

KNOWN_REGEXES = frozenset({LLAMA3, QWEN2, TEKKEN, GPT4O, BLOOM, "[0-9][0-9][0-9]"})
"""Patterns that take linear time; a tokenizer.json with others is run under a time limit."""


def _byte_level(*, use_regex: bool) -> PreTokenizer:
    return pre_tokenizers.ByteLevel(add_prefix_space=False, trim_offsets=False, use_regex=use_regex)


def _split(*patterns: str) -> Callable[[], PreTokenizer]:
    def make() -> PreTokenizer:
        cuts: list[PreTokenizer] = [pre_tokenizers.Split(Regex(pattern), "isolated") for pattern in patterns]
        return pre_tokenizers.Sequence([*cuts, _byte_level(use_regex=False)])

    return make


def _gpt2() -> PreTokenizer:
    return _byte_level(use_regex=True)


def _single_digits() -> PreTokenizer:
    return pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), _gpt2()])


def _falcon() -> PreTokenizer:
    return pre_tokenizers.Sequence(
        [
            pre_tokenizers.Punctuation("contiguous"),
            _gpt2(),
            pre_tokenizers.Digits(individual_digits=False),
            pre_tokenizers.Split(Regex("[0-9][0-9][0-9]"), "isolated"),
        ]
    )


@dataclass(frozen=True)
class PreTokenization:
    """`ignore_merges`: a piece that is a token is taken whole. `nfc`: text is composed. `add_bos`: the default."""

    make: Callable[[], PreTokenizer]
    ignore_merges: bool = False
    nfc: bool = False
    add_bos: bool = False
    names: tuple[str, ...] = field(default=())

    def normalizer(self) -> normalizers.Normalizer | None:
        """Unicode normalisation before the cut."""
        return normalizers.NFC() if self.nfc else None


_KINDS = (
    PreTokenization(_gpt2, names=("gpt-2", "gpt2", "phi-2", "mpt", "jais")),
    PreTokenization(_gpt2, nfc=True, names=("olmo",)),
    PreTokenization(
        _single_digits,
        names=("smollm", "starcoder", "refact", "command-r", "codeshell", "exaone", "minerva-7b"),
    ),
    PreTokenization(
        _split(LLAMA3),
        ignore_merges=True,
        add_bos=True,
        names=("llama3", "llama-v3", "llama-bpe", "falcon3", "pixtral"),
    ),
    PreTokenization(_split(LLAMA3), names=("dbrx", "smaug-bpe")),
    PreTokenization(_split(QWEN2), nfc=True, names=("qwen2", "deepseek-r1-qwen", "megrez")),
    PreTokenization(_split(TEKKEN), ignore_merges=True, add_bos=True, names=("tekken",)),
    PreTokenization(_split(GPT4O), names=("gpt-4o", "llama4", "kanana2")),
    PreTokenization(_split(BLOOM), names=("bloom", "poro-chat", "gpt3-finnish")),
    PreTokenization(_falcon, names=("falcon",)),
)
PRE_TOKENIZATIONS: Mapping[str, PreTokenization] = {name: kind for kind in _KINDS for name in kind.names}
