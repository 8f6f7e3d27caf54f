"""GGUF files of nobody's here: a real Gemma 3 against transformers and llama.cpp, real vocabularies against the ids of
the tokenizers they were made from."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import transformers
from safetensors.torch import save_file

from model.checkpoint.errors import UnsupportedError
from model.checkpoint.gguf_header import read_header
from model.checkpoint.gguf_tokenizer import build_tokenizer
from model.checkpoint.safetensors_folder import SINGLE
from model.families import family_for_gguf
from model.loading import LoadedModel, open_model
from model.tokenizer import Tokenizer
from tests.model import real_files
from tests.model.checkpoint.opening_memory import OPEN, memory_of

pytestmark = [pytest.mark.long, pytest.mark.timeout(1800)]

TEXT = "The animal didn't cross the street because it was too tired.\n\nIn 12345 日本語 👩‍👩‍👧  x"
KNOWN = {"command-r", "falcon", "gpt-2", "llama-bpe", "llama-spm", "mpt", "phi-3", "qwen2", "refact", "starcoder"}
"""Vocabularies whose tokenizers open; those of the others (BERT, T5, DeepSeek …) are refused by name."""


@pytest.fixture(scope="module")
def gemma_path(real_cache: Path) -> Path:
    return real_files.gemma(real_cache)


@pytest.fixture(scope="module")
def gemma(gemma_path: Path, tmp_path_factory: pytest.TempPathFactory) -> LoadedModel:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DECODERSCOPE_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        return open_model(gemma_path, device="cpu", dtype="float32")


def test_gemmas_ids_and_logits_are_those_of_transformers(gemma: LoadedModel, gemma_path: Path) -> None:
    place = {"pretrained_model_name_or_path": gemma_path.parent, "gguf_file": gemma_path.name}
    tokenizer = transformers.AutoTokenizer.from_pretrained(**place)
    for text in (TEXT, "  <start_of_turn>user\n x\t\t<end_of_turn>", "٣½ 한국어 𠮷 \x00 e\u0301", ""):
        assert gemma.tokenizer.encode(text) == tokenizer(text)["input_ids"], text
    judge = transformers.AutoModelForCausalLM.from_pretrained(**place, dtype=torch.float32, attn_implementation="eager")
    ids = gemma.tokenizer.encode(TEXT)
    ids = (ids * (600 // len(ids) + 1))[:600]  # past the window of 512
    with torch.inference_mode():
        theirs = judge(torch.tensor([ids]), logits_to_keep=100).logits[0]
        ours = gemma.decoder(torch.tensor(ids), gemma.decoder.new_cache(), logits="all")[-100:]
    assert float((ours - theirs).abs().max() / theirs.abs().max()) < 1e-4


def test_llama_cpp_expects_the_same_tokens(gemma: LoadedModel, gemma_path: Path) -> None:
    ids = gemma.tokenizer.encode(TEXT)
    command = [sys.executable, "-m", "tests.model.llama_cpp_judge", str(gemma_path), *map(str, ids)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    reply = subprocess.run(command, check=True, capture_output=True, text=True, timeout=300, env=environment)
    theirs = dict(json.loads(reply.stdout[reply.stdout.index("[[") :]))
    ours = gemma.decoder(torch.tensor(ids), gemma.decoder.new_cache())[0].log_softmax(-1)
    best = sorted(theirs, key=lambda token: -theirs[token])[:20]
    assert best[0] == int(ours.argmax())
    # llama.cpp multiplies 4-bit weights with activations of 8 bits
    assert max(abs(ours[token].item() - theirs[token]) for token in best) < 0.5


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_gemma_takes_little_more_memory_than_its_weights(gemma_path: Path, tmp_path: Path) -> None:
    cache = {"DECODERSCOPE_CACHE_DIR": str(tmp_path)}
    for dtype in ("bfloat16", "bfloat16", "float32"):  # prepared, reopened, mapped
        peak, _, weights = memory_of(OPEN, str(gemma_path), dtype, **cache)
        assert peak < 1.3 * weights
    folder = _as_folder(gemma_path, tmp_path / "folder")
    for dtype in ("bfloat16", "float32"):
        peak, _, weights = memory_of(OPEN, str(folder), dtype)
        assert peak < 1.3 * weights


def _as_folder(gguf_path: Path, folder: Path) -> Path:
    """Its configuration and tokenizer beside weights of bfloat16 zeros."""
    folder.mkdir()
    with gguf_path.open("rb") as file:
        header = read_header(file.fileno(), gguf_path)
    build_tokenizer(gguf_path, header.meta).save(str(folder / "tokenizer.json"))
    family = family_for_gguf(header.meta)
    assert family.gguf is not None
    values = family.gguf.hf_config(header.meta, {}, tuple(header.entries))
    (folder / "config.json").write_text(json.dumps(values))
    rules = family.rules(family.read_config(values))
    zeros = {rule.source: torch.zeros(rule.shape, dtype=torch.bfloat16) for rule in rules if rule.targets}
    save_file(zeros, folder / SINGLE)
    return folder


def test_ids_are_those_of_the_original_tokenizers(real_cache: Path) -> None:
    wrong, known = {}, set()
    for path in real_files.vocabularies(real_cache):
        with path.open("rb") as file:
            meta = read_header(file.fileno(), path).meta
        try:
            tokenizer = Tokenizer(build_tokenizer(path, meta))
        except UnsupportedError:
            continue
        known.add(path.stem.removeprefix("ggml-vocab-"))
        for text, ids in real_files.texts_and_ids(path):
            found = tokenizer.encode(text, add_special=False)
            if found != ids:
                wrong[path.stem, text] = (found, ids)
    assert not wrong
    assert known == KNOWN
