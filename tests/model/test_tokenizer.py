"""Pieces, spans, streams, odd texts, and tokenizers built from GGUF metadata against other implementations."""

import io
import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import hypothesis
import pytest
import sentencepiece
import tokenizers
from hypothesis import strategies as st
from tokenizers import AddedToken, Regex, decoders, models, pre_tokenizers

from model.checkpoint.errors import CheckpointError
from model.checkpoint.folder_tokenizer import check_ids, load_backend, read_tokenizer
from model.checkpoint.gguf_tokenizer import build_tokenizer, special_ids
from model.checkpoint.guarded import GuardedEncoder, unknown_patterns
from model.checkpoint.pretokenizers import PRE_TOKENIZATIONS
from model.tokenizer import BYTE_OF, IdsTokenizer, Tokenizer, TokenizerError, visible
from tests.model.checkpoint import files

HERE, ROOT = Path("m.gguf"), Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def tiny() -> Tokenizer:
    return Tokenizer(files.tiny_tokenizer(), eos_ids=[257], d_vocab=300)


# --- how tokens look


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        (b" the", "·the"),
        (b"  \n\t\r", "··⏎⇥␍"),
        ("a\u202eb\u200b".encode(), "a⟨U+202E⟩b⟨U+200B⟩"),
        (b"\xe6\x97", "⟨E6⟩⟨97⟩"),
        (b" \xf0\x9f", "·⟨F0⟩⟨9F⟩"),
        ("日\u200d".encode(), "日\u200d"),
        ("\u200d".encode(), "⟨U+200D⟩"),
        ("❤\ufe0f".encode(), "❤\ufe0f"),
        ("\ufe0f".encode(), "⟨U+FE0F⟩"),
        ("a\xa0\u3000\u2800".encode(), "a⟨U+00A0⟩⟨U+3000⟩⟨U+2800⟩"),
        (b"\x00\x1b", "⟨U+0000⟩⟨U+001B⟩"),
        (b"", ""),
    ],
)
def test_bytes_are_shown_as_what_they_are(raw: bytes, shown: str) -> None:
    assert visible(raw) == shown


def test_pieces_and_spans(tiny: Tokenizer) -> None:
    text = " the 日<|end|>12"
    tokens = tiny.offsets(text)
    assert [token.piece for token in tokens] == ["·the", "·", "⟨E6⟩", "⟨97⟩", "⟨A5⟩", "<|end|>", "1", "2"]
    spans = [(token.start, token.end) for token in tokens]
    assert spans == [(0, 4), (4, 5), (5, 6), (5, 6), (5, 6), (6, 13), (13, 14), (14, 15)]
    assert [token.part for token in tokens] == [False, False, True, True, True, False, False, False]
    assert [token.special for token in tokens] == [False] * 5 + [True, False, False]
    assert tiny.encode(text) == [token.id for token in tokens]
    assert tiny.pieces([9999, -1, 2**40]) == ["⟨#9999⟩", "⟨#-1⟩", f"⟨#{2**40}⟩"]


def test_spaces_that_offsets_leave_out_belong_to_their_token() -> None:
    backend = files.tiny_tokenizer()
    backend.post_processor = tokenizers.processors.ByteLevel(trim_offsets=True)
    assert backend.encode("x the").offsets[-1] == (2, 5)
    assert [(token.start, token.end) for token in Tokenizer(backend).offsets("x the")] == [(0, 1), (1, 5)]


ODD = ["", "\x00", "\u202e\u2066x", "👩‍👩‍👧‍👦", "𠀀𠀁", "e\u0301", "\n\r\n \t", " ", "ﷺ"]


@pytest.mark.parametrize("text", ODD)
def test_odd_texts_come_back(tiny: Tokenizer, text: str) -> None:
    tokens = tiny.offsets(text)
    assert tiny.decode([token.id for token in tokens]) == text
    stream = tiny.decode_stream()
    assert "".join(stream.push(token.id) for token in tokens) == text
    assert "".join(token.piece for token in tokens).isprintable() or "\u200d" in text


@hypothesis.given(st.text(max_size=60))
def test_spans_cover_the_text_in_order(tiny: Tokenizer, text: str) -> None:
    tokens = tiny.offsets(text)
    assert tiny.decode([token.id for token in tokens]) == text
    last = 0
    for token in tokens:
        assert last <= token.end
        assert token.start <= token.end <= len(text)
        assert token.start in {last, last - 1} or token.part
        last = token.end
    assert last == len(text)


def test_lone_surrogates_become_replacement_characters(tiny: Tokenizer) -> None:
    tokens = tiny.offsets("a\ud800b")
    assert [(token.start, token.end) for token in tokens] == [(0, 1), (1, 2), (1, 2), (1, 2), (2, 3)]
    assert tiny.decode(tiny.encode("a\ud800b")) == "a\ufffdb"


def test_a_character_is_streamed_with_its_last_byte(tiny: Tokenizer) -> None:
    stream = tiny.decode_stream()
    assert [stream.push(token_id) for token_id in tiny.encode("a日the<|end|>")] == ["a", "", "", "日", "the", "<|end|>"]


def test_truncation_and_padding_of_a_tokenizer_file_are_switched_off() -> None:
    backend = files.tiny_tokenizer()
    backend.enable_truncation(3)
    backend.enable_padding(length=20)
    assert len(Tokenizer(backend).encode("x" * 10)) == 10


def test_a_hundred_thousand_characters_are_quick(tiny: Tokenizer) -> None:
    for text in ("the rain in spain 1234 日本 " * 4000, "a" * 100_000, "日" * 33_000):
        start = time.process_time()
        tiny.encode(text[:100_000])
        assert time.process_time() - start < 1


# --- what can't be tokenised


def test_a_panic_in_the_library_is_an_error_and_the_next_text_works() -> None:
    backend = files.tiny_tokenizer()
    backend.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex("(a+)+$"), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    tokenizer = Tokenizer(backend)
    start = time.process_time()
    with pytest.raises(TokenizerError, match=r"retry-limit-in-match.*Try a shorter"):
        tokenizer.encode("a" * 40 + "!")
    assert time.process_time() - start < 2
    assert tokenizer.decode(tokenizer.encode("bc")) == "bc"


SLOW = r"x+x+x+[yw]\b"  # seconds for 400 x, minutes for 800, and never over the library's own limit


def _slow_tokenizer(folder: Path) -> Tokenizer:
    backend = files.tiny_tokenizer()
    backend.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(SLOW), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    backend.save(str(folder / "tokenizer.json"))
    return read_tokenizer(folder, {}, 300)[0]


def test_patterns_nobody_knows_run_under_a_time_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(GuardedEncoder.__init__, "__kwdefaults__", {"seconds": 0.5})
    tokenizer = _slow_tokenizer(tmp_path)
    encoder = tokenizer._encoder
    assert isinstance(encoder, GuardedEncoder)
    try:
        expected = files.tiny_tokenizer().encode("the 日 in")
        assert tokenizer.encode("the 日 in") == expected.ids
        assert [(token.start, token.end) for token in tokenizer.offsets("the 日")][-1] == (4, 5)
        with pytest.raises(TokenizerError, match=r"took longer than 0\.5 seconds"):
            tokenizer.encode("x" * 800 + "z")
        assert tokenizer.encode("the 日 in") == expected.ids  # a new child
        assert encoder._process is not None
        encoder._process.kill()
        assert tokenizer.encode("the 日 in", add_special=False) == expected.ids
    finally:
        encoder.close()


def test_known_patterns_run_in_this_process(tmp_path: Path) -> None:
    files.tiny_tokenizer().save(str(tmp_path / "tokenizer.json"))
    assert read_tokenizer(tmp_path, {}, 300)[0]._encoder is None
    for rules in PRE_TOKENIZATIONS.values():
        assert not list(unknown_patterns(json.loads(rules.make().__getstate__())))
    assert list(unknown_patterns([{"a": {"pattern": {"Regex": SLOW}}}, {"pattern": {"String": " "}}])) == [SLOW]


def test_ids_beyond_the_embedding_are_refused_when_a_text_needs_them() -> None:
    tokenizer = Tokenizer(files.tiny_tokenizer(), d_vocab=257)
    assert tokenizer.encode("abc") == files.tiny_tokenizer().encode("abc").ids
    with pytest.raises(TokenizerError, match=r"id 257 \(<\|end\|>\), but the model has only 257"):
        tokenizer.encode("a<|end|>")


def test_duplicate_ids_are_refused_and_extra_ones_named(tmp_path: Path) -> None:
    assert check_ids(tmp_path, files.tiny_tokenizer(), 300) == ()
    (warning,) = check_ids(tmp_path, files.tiny_tokenizer(), 257)
    assert "257 <|end|>" in warning
    double = json.loads(files.tiny_tokenizer().to_str())
    double["model"]["vocab"]["zz"] = 7
    with pytest.raises(CheckpointError, match="id 7: two tokens share one id"):
        check_ids(tmp_path, tokenizers.Tokenizer.from_str(json.dumps(double)), 300)


@pytest.mark.parametrize("change", [{"model": {"type": "Nope"}}, {"version": 3}, {"model": None}])
def test_a_tokenizer_file_that_is_none_is_one_sentence(tmp_path: Path, change: Mapping[str, Any]) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(json.loads(files.tiny_tokenizer().to_str()) | change))
    with pytest.raises(CheckpointError, match=r"tokenizer\.json: not a tokenizer: ") as caught:
        load_backend(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("where", "step"),
    [
        ("normalizer", {"type": "Prepend", "prepend": "x" * 10**7}),
        ("normalizer", {"type": "Replace", "pattern": {"String": "a"}, "content": "x" * 10**6}),
        ("normalizer", {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "x" * 30_000}] * 3}),
        (
            "pre_tokenizer",
            {"type": "Split", "pattern": {"String": "x" * 10**6}, "behavior": "Isolated", "invert": False},
        ),
        ("decoder", {"type": "WordPiece", "prefix": "x" * 10**6, "cleanup": True}),
    ],
)
def test_steps_with_far_too_long_texts_are_refused(tmp_path: Path, where: str, step: Mapping[str, Any]) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(json.loads(files.tiny_tokenizer().to_str()) | {where: step}))
    with pytest.raises(
        CheckpointError, match=rf"{where}: its texts are far too long \(found .* expected at most 65,536"
    ):
        load_backend(path)


def test_a_token_that_is_far_too_long_is_refused(tmp_path: Path) -> None:
    values = json.loads(files.tiny_tokenizer().to_str())
    values["model"]["vocab"]["z" * 10**6] = 299
    backend = tokenizers.Tokenizer.from_str(json.dumps(values))
    with pytest.raises(CheckpointError, match="id 299: a token far too long") as caught:
        check_ids(tmp_path, backend, 300)
    assert len(str(caught.value)) < 600


def test_a_normalizer_that_grows_texts_runs_under_a_limit(tmp_path: Path) -> None:
    step = {"type": "Replace", "pattern": {"String": "a"}, "content": "b" * 5000}
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(json.loads(files.tiny_tokenizer().to_str()) | {"normalizer": step}))
    assert isinstance(read_tokenizer(tmp_path, {}, 300)[0]._encoder, GuardedEncoder)


@pytest.mark.parametrize("shown_where", ["", "1"])
def test_a_panic_is_one_line_of_a_command_and_all_of_it_when_asked_for(tmp_path: Path, shown_where: str) -> None:
    folder = files.folder(tmp_path / "m")
    path = folder / "tokenizer.json"
    broken = {"normalizer": {"type": "Precompiled", "precompiled_charsmap": "AAAA"}}
    path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8")) | broken))
    done = subprocess.run(
        [sys.executable, "-P", "-m", "model", "run", "--model", str(folder), "--prompt", "a"],
        env=os.environ | {"PYTHONPATH": str(ROOT), "DECODERSCOPE_TRACEBACK": shown_where},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2 and "not a tokenizer: " in done.stderr.splitlines()[-1]
    assert ("panicked" in done.stderr) == bool(shown_where)
    assert shown_where or done.stderr.count("\n") == 1


def test_huge_ids_in_a_tokenizer_file_are_named(tmp_path: Path) -> None:
    values = json.loads(files.tiny_tokenizer().to_str())
    values["model"]["vocab"]["zz"] = 2**32 - 1
    (tmp_path / "tokenizer.json").write_text(json.dumps(values))
    tokenizer, warnings = read_tokenizer(tmp_path, {}, 300)
    assert "4294967295 zz" in warnings[0]
    assert tokenizer.encode("abc") == files.tiny_tokenizer().encode("abc").ids


# --- the folder's other files


def test_special_tokens_come_from_every_file_that_names_them(tmp_path: Path) -> None:
    files.tiny_tokenizer().save(str(tmp_path / "tokenizer.json"))
    settings = {"eos_token": {"content": "<|end|>"}, "bos_token": "<|start|>", "chat_template": "{{ 3 }}"}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(settings))
    (tmp_path / "generation_config.json").write_text(json.dumps({"eos_token_id": [5, 257]}))
    tokenizer, warnings = read_tokenizer(tmp_path, {"eos_token_id": 6}, 300)
    assert (tokenizer.eos_ids, tokenizer.bos_id, tokenizer.chat_template, warnings) == ((5, 257, 6), 256, "{{ 3 }}", ())
    several = [{"name": "tool_use", "template": "t"}, {"name": "default", "template": "d"}]
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({**settings, "chat_template": several}))
    assert read_tokenizer(tmp_path, {}, 300)[0].chat_template == "d"
    (tmp_path / "chat_template.jinja").write_text("own file")
    assert read_tokenizer(tmp_path, {}, 300)[0].chat_template == "own file"


def test_a_model_without_a_tokenizer_takes_ids(tmp_path: Path) -> None:
    tokenizer, (warning,) = read_tokenizer(tmp_path, {"eos_token_id": 2}, 300)
    assert isinstance(tokenizer, IdsTokenizer)
    assert tokenizer.ids_only
    assert "no tokenizer.json" in warning
    assert tokenizer.encode(" 12  7\n299 ") == [12, 7, 299]
    assert [(token.start, token.end, token.piece) for token in tokenizer.offsets("12 1")] == [
        (0, 2, "⟨#12⟩"),
        (3, 4, "⟨#1⟩"),
    ]
    assert tokenizer.decode([12, 7]) == "12 7"
    assert tokenizer.decode_stream().push(12) == " 12"
    for text in ("hello", "300", "-1", "1.5", "٣", "9" * 5000):
        with pytest.raises(TokenizerError, match="came without a tokenizer, so a prompt is token ids from 0 to 299"):
            tokenizer.encode(text)


# --- tokenizers out of GGUF metadata


CORPUS = (
    "Hello world! It's 12345 o'clock, I'LL say; don’t…",
    "日本語の文章。漢字𠮷野 한국어 العربية עברית ไทย हिन्दी",
    "def f(x):\n\treturn x**2  # 3.14\r\n\r\n",
    "  leading, trailing  \n\n\n and   inner",
    "👩‍👩‍👧‍👦 e\u0301 ½ ² ٣٤ ǅ ß İ",
    "<|end|>a<|start|> b",
    "",
    " ",
)


def _byte_meta(pre: str, **more: Any) -> dict[str, Any]:
    tokens = files.vocabulary()
    return {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": pre,
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": [3 if token in files.SPECIAL else 1 for token in tokens],
        "tokenizer.ggml.merges": [" ".join(merge) for merge in files.MERGES],
        "tokenizer.ggml.bos_token_id": 256,
        "tokenizer.ggml.eos_token_id": 257,
    } | {f"tokenizer.ggml.{name}": value for name, value in more.items()}


# The patterns as the models' own tokenizer.json files have them, written out once more on purpose.
LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
    r"|\s+(?!\S)|\s+"
)
QWEN2 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


@pytest.mark.parametrize(
    ("pre", "cut"),
    [
        ("gpt-2", [pre_tokenizers.ByteLevel(add_prefix_space=False)]),
        ("smollm", [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]),
        ("llama-bpe", [pre_tokenizers.Split(Regex(LLAMA3), "isolated")]),
        ("qwen2", [pre_tokenizers.Split(Regex(QWEN2), "isolated")]),
    ],
)
def test_text_is_cut_as_the_original_cuts_it(pre: str, cut: list[Any]) -> None:
    made = PRE_TOKENIZATIONS[pre].make()
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    original = pre_tokenizers.Sequence([*cut, *([byte_level] if pre in {"llama-bpe", "qwen2"} else [])])
    for text in CORPUS:
        assert made.pre_tokenize_str(text) == original.pre_tokenize_str(text)


def test_published_cuts() -> None:
    # Known from the models' cards and issues: digits one by one, in threes, or all together.
    def words(pre: str, text: str) -> list[str]:
        return [word.replace("Ġ", " ") for word, _ in PRE_TOKENIZATIONS[pre].make().pre_tokenize_str(text)]

    assert words("gpt-2", "in 12345 days") == ["in", " 12345", " days"]
    assert words("smollm", "in 12345 days") == ["in", " ", "1", "2", "3", "4", "5", " days"]
    assert words("llama-bpe", "in 12345 days") == ["in", " ", "123", "45", " days"]
    assert words("qwen2", "in 12345 days") == ["in", " ", "1", "2", "3", "4", "5", " days"]
    assert words("falcon", "in 12345, days") == ["in", " ", "123", "45", ",", " days"]
    assert words("tekken", "iPhone12") == ["i", "Phone", "1", "2"]
    assert words("bloom", "in 12345, days") == ["in", " 12345", ",", " days"]


@pytest.mark.parametrize("pre", sorted(PRE_TOKENIZATIONS))
def test_every_named_pre_tokenizer_loses_nothing(pre: str) -> None:
    tokenizer = Tokenizer(build_tokenizer(HERE, _byte_meta(pre, add_bos_token=False)))
    for text in CORPUS:
        if "e\u0301" not in text:  # composed by those that normalise
            assert tokenizer.decode(tokenizer.encode(text)) == text
    assert tokenizer.n_vocab == len(files.vocabulary())


def test_special_tokens_surround_a_text_where_the_file_says_so() -> None:
    def ids(pre: str, **more: Any) -> list[int]:
        return Tokenizer(build_tokenizer(HERE, _byte_meta(pre, **more))).encode("a")

    a = [files.vocabulary().index("a")]
    assert ids("smollm") == a
    assert ids("smollm", add_bos_token=True, add_eos_token=True) == [256, *a, 257]
    assert ids("llama-bpe") == [256, *a]  # llama.cpp's default for this one
    assert ids("llama-bpe", add_bos_token=False) == a
    assert special_ids(HERE, _byte_meta("smollm", eot_token_id=5)) == ((257, 5), 256)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"model": "bert"}, "its tokenizer is of kind bert"),
        ({"pre": "invented"}, "its pre-tokenizer is invented; known are bloom"),
        ({"tokens": []}, "no vocabulary"),
        ({"tokens": ["a", "a"], "token_type": [1, 1]}, "1 tokens appear twice: a"),
        ({"token_type": [1]}, "as many types as tokens"),
        ({"merges": ["ab"]}, "malformed merge"),
        ({"merges": ["zz yy"]}, "merges that do not fit the vocabulary"),
        ({"bos_token_id": 10**6}, "bos_token_id: wrong kind of value"),
        ({"add_bos_token": 1}, "add_bos_token: wrong kind of value"),
        ({"tokens": 3}, "tokens: wrong kind of value"),
    ],
)
def test_bad_metadata_is_named(change: dict[str, Any], said: str) -> None:
    with pytest.raises(CheckpointError, match=said):
        build_tokenizer(HERE, _byte_meta(**{"pre": "smollm"} | change))


@pytest.fixture(scope="module")
def judge() -> sentencepiece.SentencePieceProcessor:
    """A SentencePiece model trained here, as Llama's are: BPE, bytes for what it has not seen, digits split."""
    words = ["the cat sat on the mat", "il gatto è sul tappeto", "naïve café", "for i in range(10): print(i)"]
    out = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(words * 50), model_writer=out, vocab_size=340, model_type="bpe", byte_fallback=True,
        split_digits=True, normalization_rule_name="identity", remove_extra_whitespaces=False,
        allow_whitespace_only_pieces=True, hard_vocab_limit=False, minloglevel=2,
        user_defined_symbols=["<mark>"], bos_id=1, eos_id=2, unk_id=0,
    )  # fmt: skip
    return sentencepiece.SentencePieceProcessor(model_proto=out.getvalue())


def _sentencepiece_meta(judge: sentencepiece.SentencePieceProcessor, **more: Any) -> dict[str, Any]:
    size = judge.get_piece_size()

    def kind(number: int) -> int:
        if judge.is_unknown(number):
            return 2
        if judge.is_control(number):
            return 3
        if judge.is_byte(number):
            return 6
        return 4 if judge.id_to_piece(number) == "<mark>" else 1

    return {
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.tokens": [judge.id_to_piece(number) for number in range(size)],
        "tokenizer.ggml.scores": [judge.get_score(number) for number in range(size)],
        "tokenizer.ggml.token_type": [kind(number) for number in range(size)],
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 2,
        "tokenizer.ggml.unknown_token_id": 0,
    } | {f"tokenizer.ggml.{name}": value for name, value in more.items()}


def test_sentencepiece_ids_are_sentencepieces_own(judge: sentencepiece.SentencePieceProcessor) -> None:
    tokenizer = Tokenizer(build_tokenizer(HERE, _sentencepiece_meta(judge)))
    texts = [text for text in CORPUS if "<|" not in text and "\u0301" not in text]
    for text in (*texts, "the cat sat 12 345", "  the   cat", "naïve café il gatto", "日本𠮷", "\t\x00"):
        ours = tokenizer.encode(text)
        assert ours == [1, *judge.encode(text)], text
        assert tokenizer.decode(ours[1:]) == text
    assert tokenizer.offsets("日a")[-1].piece == "a"
    assert [token.piece for token in tokenizer.offsets("日")][-3:] == ["⟨E6⟩", "⟨97⟩", "⟨A5⟩"]


def test_sentencepiece_without_a_leading_space(judge: sentencepiece.SentencePieceProcessor) -> None:
    meta = _sentencepiece_meta(judge, add_space_prefix=False, add_bos_token=False)
    tokenizer = Tokenizer(build_tokenizer(HERE, meta))
    assert tokenizer.decode(tokenizer.encode("the cat")) == "the cat"
    assert tokenizer.piece(tokenizer.encode("the cat")[0])[0] != "·"


def test_phi3s_special_tokens_take_the_space_after_them(judge: sentencepiece.SentencePieceProcessor) -> None:
    meta = _sentencepiece_meta(judge)
    plain = Tokenizer(build_tokenizer(HERE, meta)).encode("the</s>\n cat")
    stripped = Tokenizer(build_tokenizer(HERE, meta | {"general.architecture": "phi3"})).encode("the</s>\n cat")
    assert stripped == [1, *judge.encode("the"), 2, *judge.encode("cat")]
    assert len(plain) > len(stripped)


def test_user_defined_tokens_stay_whole(judge: sentencepiece.SentencePieceProcessor) -> None:
    tokenizer = Tokenizer(build_tokenizer(HERE, _sentencepiece_meta(judge)))
    marked = tokenizer.encode("the<mark>cat")
    assert judge.piece_to_id("<mark>") in marked


def test_a_wordless_alphabet_is_all_bytes() -> None:
    assert sorted(BYTE_OF.values()) == list(range(256))
    assert {"Ġ": 32, "Ċ": 10, "a": 97}.items() <= BYTE_OF.items()
    assert decoders.ByteLevel().decode(
        [ch for ch, _ in sorted(BYTE_OF.items(), key=lambda item: item[1])][:128]
    ) == "".join(map(chr, range(128)))


def test_added_tokens_show_their_own_text() -> None:
    backend = tokenizers.Tokenizer(models.BPE(vocab={"a": 0}, merges=[]))
    backend.decoder = decoders.ByteLevel()
    backend.add_tokens([AddedToken("  x", normalized=False)])
    assert Tokenizer(backend).pieces([0, 1]) == ["a", "··x"]
