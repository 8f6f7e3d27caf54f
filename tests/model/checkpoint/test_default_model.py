"""The default model, the real file, against transformers' own GGUF loader."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from tokenizers import Tokenizer, pre_tokenizers

from model.checkpoint.catalogue import DEFAULT
from model.loading import LoadedModel, open_model, plan_model

ROOT = Path(__file__).resolve().parents[3]
TEXTS = (
    "The animal didn't cross the street because it was too tired",
    "Naïve café — “quoted”, it's I'LL don’t",
    "日本語の文章。漢字𠮷野 한국어 العربية עברית",
    "👩‍👩‍👧‍👦 🇫🇷 é e\u0301 \u202eabc\x00\x07\u200b",
    "<|im_start|>user\nHi<|im_end|>\n<|endoftext|>",
    "\n\n  \t x\r\n",
    "def f(x):\n    return x**2  # c\n",
    "a" * 300,
    "",
)
NUMBERS = ("12 345 6,789  10", "  1  22   3", "½ ² ٣٤", "x2y10")


@pytest.fixture(scope="module")
def opened(default_model_path: Path) -> LoadedModel:
    assert default_model_path.exists()
    return open_model()


@pytest.fixture(scope="module")
def reference(default_model_path: Path) -> Any:
    return transformers.AutoModelForCausalLM.from_pretrained(
        default_model_path.parent, gguf_file=default_model_path.name, dtype=torch.float32
    )


def test_every_tensor_is_the_references(opened: LoadedModel, reference: Any) -> None:
    theirs = {name.removeprefix("model."): tensor for name, tensor in reference.state_dict().items()}
    ours = opened.decoder.state_dict()
    assert set(theirs) - set(ours) == {"lm_head.weight"}  # tied: one tensor under two names there
    for name, tensor in ours.items():
        assert torch.equal(tensor, theirs[name]), name  # exact: both multiply and add in float32


def test_info_is_what_the_file_says(opened: LoadedModel, default_model_path: Path) -> None:
    info = opened.info
    assert (info.name, info.family, info.source) == ("SmolLM2-135M-Instruct", "llama", "SmolLM2-135M-Instruct")
    assert (info.n_layers, info.n_heads, info.n_kv_heads, info.d_model, info.d_head) == (30, 9, 3, 576, 64)
    assert (info.d_mlp, info.d_vocab, info.n_ctx, info.attention_kind) == (1536, 49152, 8192, "GQA")
    assert info.parameters == 134_515_008
    assert info.weight_bytes == 4 * info.parameters
    assert (info.eos_ids, info.has_tokenizer, info.has_chat_template, info.warnings) == ((2,), True, True, ())
    assert info.sha256 == "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
    plan = plan_model(default_model_path)
    assert (plan.parameters, plan.bytes_by_dtype["bfloat16"]) == (info.parameters, 2 * info.parameters)
    assert plan.fits


def test_the_sizes_that_are_told_are_the_files(opened: LoadedModel, default_model_path: Path) -> None:
    download, file, weights = DEFAULT.download_bytes, default_model_path.stat().st_size, opened.info.weight_bytes
    kept = round((file + weights) / 1e7) * 10
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    assert f"a download of {download / 1e6:.0f} MB" in readme
    assert f"takes {kept} MB: its file of {file / 1e6:.0f} MB" in readme
    assert f"{weights / 1e6:.0f} MB, so that" in readme
    setup = (ROOT / "packaging" / "setup.sh").read_text(encoding="utf-8")
    assert f"a download of {download / 1e6:.0f} MB, {kept} MB in the cache folder" in setup


def test_token_ids_are_the_originals(opened: LoadedModel, default_model_path: Path) -> None:
    # transformers reads the vocabulary and merges but not the pre-tokenizer's name, so it keeps digits together. The
    # model's own tokenizer.json cuts at single digits first (as llama.cpp does for "smollm"): the judge is given that.
    theirs = transformers.AutoTokenizer.from_pretrained(default_model_path.parent, gguf_file=default_model_path.name)
    for text in TEXTS:
        assert opened.tokenizer.encode(text) == theirs.encode(text), text
    backend: Tokenizer = theirs.backend_tokenizer
    digits = pre_tokenizers.Digits(individual_digits=True)
    backend.pre_tokenizer = pre_tokenizers.Sequence([digits, pre_tokenizers.ByteLevel(add_prefix_space=False)])
    for text in (*TEXTS, *NUMBERS):
        assert opened.tokenizer.encode(text) == backend.encode(text).ids, text
        assert opened.tokenizer.decode(opened.tokenizer.encode(text)) == text
    assert opened.tokenizer.encode("Hello world! 123") == [19556, 905, 17, 216, 33, 34, 35]  # published, SmolLM2's own


def test_pieces_and_spans_of_the_example(opened: LoadedModel) -> None:
    tokens = opened.tokenizer.offsets(TEXTS[0])
    assert [token.piece for token in tokens][:4] == ["The", "·animal", "·didn", "'t"]
    assert "".join(TEXTS[0][token.start : token.end] for token in tokens) == TEXTS[0]
    assert not any(token.part or token.special for token in tokens)


MEMORY_CHILD = """
import torch
torch.set_num_threads(1)
from model.loading import open_model
def anonymous():
    fields = dict(line.split(":") for line in open("/proc/self/status") if line.startswith("Rss"))
    return int(fields["RssAnon"].split()[0]) * 1024
before = anonymous()
model = open_model()
print(anonymous() - before, model.info.weight_bytes)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_the_prepared_model_is_mapped_not_copied(opened: LoadedModel) -> None:
    assert opened.info.dtype == "float32"
    done = subprocess.run([sys.executable, "-c", MEMORY_CHILD], capture_output=True, text=True, check=True)
    anonymous, weights = map(int, done.stdout.split())
    assert anonymous < 0.5 * weights  # the tokenizer, torch's own; not one byte of the weights
