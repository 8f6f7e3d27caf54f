"""The tokenizer of a Hugging Face-style folder, with what the configs beside it say about special tokens."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import tokenizers

from model.checkpoint.bounded_json import CONFIG_LIMIT, TOKENIZER_LIMIT, read_bytes, read_object
from model.checkpoint.errors import BadFileError, shown_list
from model.checkpoint.guarded import GuardedEncoder, unknown_patterns
from model.checkpoint.safetensors_folder import require_inside
from model.checkpoint.sniff import HEAD_BYTES, JSON, UNKNOWN, kind_of
from model.errors import shown
from model.panics import may_panic
from model.tokenizer import IdsTokenizer, Tokenizer

_TEMPLATE_LIMIT = 1 << 20
MAX_TEXT = 1 << 16
"""Characters of all texts of a step of a tokenizer, or of one token."""
_QUICK_TEXT = 1 << 10
"""So many in a normalizer may grow a prompt; with more, encoding is put under its limits of time and memory."""
_FILES = ("tokenizer.json", "tokenizer_config.json", "generation_config.json", "chat_template.jinja")


def read_tokenizer(folder: Path, config: Mapping[str, object], d_vocab: int) -> tuple[Tokenizer, tuple[str, ...]]:
    """(tokenizer, warnings). Without tokenizer.json, prompts are ids, and a warning says so."""
    for name in _FILES:
        require_inside(folder, folder / name)
    eos_from_configs = _eos_ids(folder, config, d_vocab)
    path = folder / "tokenizer.json"
    if not (path.exists() or path.is_symlink()):
        warning = "There is no tokenizer.json beside the weights: prompts are token ids between spaces."
        if (folder / "tokenizer.model").exists() or (folder / "vocab.json").exists():
            warning += " transformers can write one: AutoTokenizer.from_pretrained(…).save_pretrained(…)."
        return IdsTokenizer(d_vocab=d_vocab, eos_ids=eos_from_configs), (warning,)
    backend = load_backend(path)
    beyond = check_ids(path, backend, d_vocab)
    settings = _object(folder / "tokenizer_config.json")
    ids = backend.get_vocab(with_added_tokens=True)
    named = [ids[text] for key in ("eos_token",) if (text := _token_text(settings.get(key))) in ids]
    bos = ids.get(_token_text(settings.get("bos_token")) or "", _one_id(config.get("bos_token_id"), d_vocab))
    tokenizer = Tokenizer(
        backend,
        eos_ids=[*eos_from_configs, *named],
        bos_id=bos,
        chat_template=_chat_template(folder, settings),
        d_vocab=d_vocab,
        encoder=_encoder(backend),
    )
    return tokenizer, beyond


def _encoder(backend: tokenizers.Tokenizer) -> GuardedEncoder | None:
    """None for patterns known to be quick, else an encoder that can be stopped."""
    steps = [step.__getstate__() for step in (backend.normalizer, backend.pre_tokenizer) if step is not None]
    known = not any(pattern for step in steps for pattern in unknown_patterns(json.loads(step)))
    normalizer = backend.normalizer
    if known and (normalizer is None or _size_of_texts(json.loads(normalizer.__getstate__())) <= _QUICK_TEXT):
        return None
    return GuardedEncoder(backend.to_str)


def load_backend(path: Path, *, trusted: bool = False) -> tokenizers.Tokenizer:
    """A tokenizer.json. BadFileError instead of the library's many errors; `trusted`: our own cache's."""
    if trusted:
        return tokenizers.Tokenizer.from_file(str(path))
    raw = read_bytes(path, TOKENIZER_LIMIT)
    kind = kind_of(raw[:HEAD_BYTES], len(raw), path.name)
    if kind not in {JSON, UNKNOWN}:
        raise BadFileError(path, f"this is {kind.name}", expected="a tokenizer.json", remedy=kind.remedy)
    try:
        with may_panic():
            backend = tokenizers.Tokenizer.from_buffer(raw)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # Rust's PanicException is no Exception
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise BadFileError(path, f"not a tokenizer: {shown(reason, 200)}", remedy="Download it again.") from error
    _check_texts(path, backend)
    return backend


def _check_texts(path: Path, backend: tokenizers.Tokenizer) -> None:
    """Refuses steps with texts so long that they, and not the prompt, would decide how long encoding takes."""
    for name in ("normalizer", "pre_tokenizer", "post_processor", "decoder"):
        step = getattr(backend, name)
        size = _size_of_texts(json.loads(step.__getstate__())) if step is not None else 0
        if size > MAX_TEXT:
            raise BadFileError(
                path, "its texts are far too long", where=name, found=f"{size:,} characters",
                expected=f"at most {MAX_TEXT:,}", remedy="Use another tokenizer.json.",
            )  # fmt: skip


def _size_of_texts(step: object) -> int:
    return sum(map(len, _texts(step)))


def _texts(value: object) -> Iterator[str]:
    """Every text in a step's JSON, but for the table of a Precompiled normalizer, which the library looks up in."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, inner in value.items():
            if key != "precompiled_charsmap":
                yield from _texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner)


def check_ids(path: Path, backend: tokenizers.Tokenizer, d_vocab: int) -> tuple[str, ...]:
    """Refuses two tokens with one id; warns of tokens that the model has no embedding for."""
    vocabulary = backend.get_vocab(with_added_tokens=True)
    by_id: dict[int, str] = {}
    for token, token_id in vocabulary.items():
        if len(token) > MAX_TEXT:
            raise BadFileError(
                path, "a token far too long", where=f"id {token_id}", found=f"{len(token):,} characters, "
                f"{shown(token, 40)}", expected=f"at most {MAX_TEXT:,}", remedy="Use another tokenizer.json.",
            )  # fmt: skip
        other = by_id.setdefault(token_id, token)
        if other != token:
            raise BadFileError(
                path, "two tokens share one id", where=f"id {token_id}", found=f"{shown(other)} and {shown(token)}",
                expected="one token", remedy="Download it again.",
            )  # fmt: skip
    beyond = sorted(token_id for token_id in by_id if token_id >= d_vocab)
    if not beyond:
        return ()
    names = shown_list([f"{token_id} {by_id[token_id]}" for token_id in beyond])
    warning = f"The tokenizer knows {len(beyond)} tokens that the model has no embedding for (from {d_vocab}): {names}."
    return (warning + " A text that needs one of them is refused.",)


def _object(path: Path) -> Mapping[str, object]:
    if not (path.exists() or path.is_symlink()):
        return {}
    return read_object(path, CONFIG_LIMIT, allow_nan=True)


def _token_text(value: object) -> str | None:
    """A token is written as its text, or as an object with `content`."""
    content = value.get("content") if isinstance(value, dict) else value
    return content if isinstance(content, str) else None


def _one_id(value: object, d_vocab: int) -> int | None:
    return next(_ids(value, d_vocab), None)


def _ids(value: object, d_vocab: int) -> Iterator[int]:
    for item in value if isinstance(value, list) else [value]:
        if isinstance(item, int) and not isinstance(item, bool) and 0 <= item < d_vocab:
            yield item


def _eos_ids(folder: Path, config: Mapping[str, object], d_vocab: int) -> list[int]:
    generation = _object(folder / "generation_config.json")
    return [*_ids(generation.get("eos_token_id"), d_vocab), *_ids(config.get("eos_token_id"), d_vocab)]


def _chat_template(folder: Path, settings: Mapping[str, object]) -> str | None:
    file = folder / "chat_template.jinja"
    if file.exists():
        return read_bytes(file, _TEMPLATE_LIMIT).decode("utf-8", "replace")
    value = settings.get("chat_template")
    if isinstance(value, list):  # several by name: the default one, else the first
        named = {item.get("name"): item.get("template") for item in value if isinstance(item, dict)}
        value = named.get("default", next(iter(named.values()), None))
    return value if isinstance(value, str) and len(value) <= _TEMPLATE_LIMIT else None
