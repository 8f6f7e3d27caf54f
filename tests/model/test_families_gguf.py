"""Every architecture as llama.cpp's converter writes it: our reading against the model it was made from, and the
writing itself against transformers' loader and, where it is installed, llama.cpp."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from torch import Tensor

from model.checkpoint.errors import BadFileError
from model.loading import open_model
from model.transformer import Decoder
from tests.model.family_cases import CASES
from tests.model.gguf_writing import ARCHITECTURES, write_gguf
from tests.model.reference import TOLERANCE, Reference, error, reference, trace

WRITTEN = [
    "gpt2",
    "gpt_neox",
    "gpt_neox, sequential, whole heads rotated, no attention bias, tied",
    "bloom, heads not a power of two",
    "falcon, one KV head, one norm",
    "falcon, grouped, two norms",
    "falcon, grouped, one norm, untied",
    "llama",
    "llama, head wider than d_model / n_heads, biases, tied",
    "llama, linear scaling",
    "llama, llama3 scaling",
    "qwen2",
    "qwen3",
    "gemma",
    "gemma2, written",
    "gemma3_text, written",
    "phi3",
    "phi3, longrope past its switch, partial, tied",
    "phi3, no window",
    "olmo2",
    "mixtral",
    "qwen3_moe",
]
# what the file does not state, llama.cpp takes as the real models have it
FIXED: dict[str, tuple[str, dict[str, Any]]] = {
    "phi3, no window": ("phi3", {"sliding_window": None}),
    "gemma2, written": ("gemma2", {"query_pre_attn_scalar": 16}),
    "gemma3_text, written": (
        "gemma3_text, default pattern, capped",
        {"query_pre_attn_scalar": 16, "final_logit_softcapping": None},
    ),
    "gpt_neox, sequential, whole heads rotated, no attention bias, tied": (
        "gpt_neox, sequential, whole heads rotated, no attention bias, tied",
        {
            "hidden_act": "gelu",
            "rope_parameters": {"rope_type": "default", "rope_theta": 10_000.0, "partial_rotary_factor": 1.0},
        },
    ),
}
PROMPT = torch.randint(61, (24,), generator=torch.Generator().manual_seed(1)).tolist()


def judge_of(name: str) -> Reference:
    name, fields = FIXED.get(name, (name, {}))
    case = CASES[name]
    return reference(case.reference, gain=case.gain, **(dict(case.fields) | fields))


def open_gguf(path: Path) -> Decoder:
    """As a person opens it."""
    return open_model(path, device="cpu", dtype="float32").decoder


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DECODERSCOPE_CACHE_DIR", str(tmp_path / "cache"))


@pytest.mark.parametrize("name", WRITTEN)
def test_a_file_gives_the_logits_of_the_model_it_was_made_from(name: str, tmp_path: Path) -> None:
    judge = judge_of(name)
    decoder = open_gguf(write_gguf(tmp_path / "tiny.gguf", judge))
    errors = error(trace(decoder, PROMPT)[0], judge.run(PROMPT)[0])
    assert max(errors.values()) < TOLERANCE, errors


def test_every_family_that_llama_cpp_writes_is_tried() -> None:
    tried = {judge_of(name).config["model_type"] for name in WRITTEN}
    assert tried == set(ARCHITECTURES)


PLANS = """
import sys
from model import loading
from model.checkpoint import gguf_source
gguf_source._SMALL_NUMBERS = 512  # as in a model of real size, no matrix is small
for path in sys.argv[1:]:
    loading.plan_model(path)
    assert "torch._dynamo" not in sys.modules, path
"""


def test_no_plan_imports_torchs_compiler(tmp_path: Path) -> None:
    # what some sums of tensors without memory do: 800 modules, a second and 70 MB
    paths = [write_gguf(tmp_path / f"{index}.gguf", judge_of(name)) for index, name in enumerate(WRITTEN)]
    subprocess.run([sys.executable, "-c", PLANS, *map(str, paths)], check=True, timeout=100)


# transformers 5.24 reads these architectures (not gptneox, gemma or olmo2), but of phi3 not LongRoPE's tables, of
# llama not the table of frequencies, and of falcon only the first generation
READ_BY_TRANSFORMERS = [
    "gpt2",
    "bloom, heads not a power of two",
    "falcon, one KV head, one norm",
    "llama",
    "qwen2",
    "qwen3",
    "gemma2, written",
    "gemma3_text, written",
    "phi3",
    "qwen3_moe",
]


@pytest.mark.parametrize("name", READ_BY_TRANSFORMERS)
def test_transformers_reads_the_same_from_the_file(name: str, tmp_path: Path) -> None:
    judge = judge_of(name)
    path = write_gguf(tmp_path / "tiny.gguf", judge)
    # with the config given: it takes many sizes for those of the best-known model; what it does to tensors is judged
    model = transformers.AutoModelForCausalLM.from_pretrained(
        tmp_path, gguf_file=path.name, config=judge.model.config, attn_implementation="eager", dtype=torch.float32
    )
    with torch.no_grad():
        theirs: Tensor = model(torch.tensor([PROMPT])).logits[0]
    ours = trace(open_gguf(path), PROMPT)[0].logits
    torch.testing.assert_close(ours, theirs, atol=TOLERANCE, rtol=0)


# llama.cpp has no gpt_neox without biases, and runs Phi-3 without the window its file states
RUN_BY_LLAMA_CPP = [name for name in WRITTEN if name != "phi3" and "no attention bias" not in name]


needs_llama_cpp = pytest.mark.skipif(
    find_spec("xllamacpp") is None, reason="llama.cpp as a judge: pip install xllamacpp"
)


@needs_llama_cpp
@pytest.mark.parametrize("name", RUN_BY_LLAMA_CPP)
def test_llama_cpp_runs_the_same_from_the_file(name: str, tmp_path: Path) -> None:
    _compare_with_llama_cpp(write_gguf(tmp_path / "tiny.gguf", judge_of(name)))


def scaled(arch: str, kind: str) -> dict[str, Any]:
    at = f"{arch}.rope.scaling"
    yarn = {f"{at}.original_context_length": 16} if kind == "yarn" else {}
    return {f"{at}.type": kind, f"{at}.factor": 4.0} | yarn


_SOME = [True, False, True, True, True, False, True]
STATED: list[tuple[str, dict[str, Any]]] = [
    *(
        (name, scaled(arch, kind))
        for name, arch in (
            ("gemma", "gemma"),
            ("gemma2, written", "gemma2"),
            ("gemma3_text, written", "gemma3"),
            ("falcon, grouped, two norms", "falcon"),
            ("gpt_neox", "gptneox"),
            ("phi3, no window", "phi3"),
        )
        for kind in ("linear", "yarn")
    ),
    ("gemma2, written", {"gemma2.attention.sliding_window_pattern": 3}),
    ("gemma3_text, written", {"gemma3.attention.sliding_window_pattern": 3}),
    (
        "gemma3_text, written",
        {"gemma3.attention.sliding_window_pattern": [True, False, True, False, True, False, True]},
    ),
    ("gemma3_text, written", {"gemma3.rope.freq_base_swa": 55.0}),
    ("gemma3_text, written", {"gemma3.attention.sliding_window": 0, "gemma3.attention.sliding_window_pattern": 3}),
    # what llama.cpp takes where a file says nothing
    ("gemma3_text, written", {"gemma3.rope.freq_base": None}),
    ("mixtral", {"llama.rope.freq_base": None}),
    ("gpt_neox", {"gptneox.rope.dimension_count": None}),
    ("gemma2, written", {"gemma2.attn_logit_softcapping": None, "gemma2.final_logit_softcapping": None}),
    ("phi3, longrope past its switch, partial, tied", {"phi3.rope.scaling.attn_factor": None}),
    ("phi3, longrope past its switch, partial, tied", {"phi3.rope.scaling.type": "longrope"}),
    ("phi3, longrope past its switch, partial, tied", {"phi3.rope.scaling.attn_factor": 1.7}),
]


@needs_llama_cpp
@pytest.mark.parametrize(("name", "meta"), STATED, ids=[f"{name}, {', '.join(meta)}" for name, meta in STATED])
def test_what_a_file_states_or_leaves_out_is_read_as_llama_cpp_reads_it(
    name: str, meta: dict[str, Any], tmp_path: Path
) -> None:
    _compare_with_llama_cpp(write_gguf(tmp_path / "tiny.gguf", judge_of(name), meta))


@pytest.mark.parametrize(
    ("name", "meta", "said"),
    [
        ("gemma2, written", {"gemma2.rope.freq_base_swa": 55.0}, r"freq_base_swa is 55\.0; expected 10000"),
        ("gemma2, written", {"gemma2.rope.dimension_count_swa": 8}, r"count_swa is 8; expected 16, the size of a head"),
        ("gemma3_text, written", {"gemma3.attention.sliding_window_pattern": [True]}, "expected a period, or true or"),
        ("gemma3_text, written", {"gemma3.attention.sliding_window_pattern": 0}, "pattern is 0; expected a whole"),
        ("olmo2", {"olmo2.attention.sliding_window": 5}, r"sliding_window is 5; expected 0: .* OLMo 3"),
        ("llama, llama3 scaling", scaled("llama", "linear"), r"is 'linear'; expected none beside the table rope_freqs"),
        (
            "phi3, longrope past its switch, partial, tied",
            scaled("phi3", "linear"),
            "is 'linear'; expected none beside the table rope_factors_long",
        ),
        (
            "llama",
            {"llama.attention.layer_norm_rms_epsilon": None},
            "rms_epsilon is None; expected a finite",
        ),
        ("qwen2", {"qwen2.rope.scaling.attn_factor": 0.5}, r"attn_factor is 0\.5; expected 1: no other is known here"),
        ("gpt2", {"gpt2.attention.layer_norm_epsilon": None}, "layer_norm_epsilon is None; expected a finite number"),
        ("qwen3", {"qwen3.context_length": None}, "context_length is None; expected a whole number"),
        ("mixtral", {"llama.expert_used_count": None}, "expert_used_count is None; expected a whole number"),
        ("qwen3_moe", {"qwen3moe.expert_used_count": None}, "expert_used_count is None; expected a whole number"),
    ],
)
def test_what_is_missing_or_not_heard_is_refused(name: str, meta: dict[str, Any], said: str, tmp_path: Path) -> None:
    path = write_gguf(tmp_path / "tiny.gguf", judge_of(name), meta)
    with pytest.raises(BadFileError, match=said):
        open_gguf(path)


def _compare_with_llama_cpp(path: Path) -> None:
    command = [sys.executable, "-m", "tests.model.llama_cpp_judge", str(path), *map(str, PROMPT)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    reply = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60, env=environment)
    theirs = dict(json.loads(reply.stdout[reply.stdout.index("[[") :]))
    assert sorted(theirs) == list(range(61))
    ours = trace(open_gguf(path), PROMPT)[0].logits[-1].log_softmax(-1)
    wrong = max(abs(ours[token].item() - logprob) for token, logprob in theirs.items())
    # ggml's GELU is a table in half precision; without it the difference is 1e-5
    assert wrong < 2e-2, wrong
