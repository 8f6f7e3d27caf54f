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

import gguf
import numpy as np
import pytest
import torch
import transformers
from torch import Tensor

from model.families import family_for, family_for_gguf
from model.transformer import Decoder
from tests.model.family_cases import CASES
from tests.model.gguf_writing import ARCHITECTURES, write_gguf
from tests.model.reference import TOLERANCE, Reference, assemble, error, reference, state_from, trace

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
    "olmo2",
    "mixtral",
    "qwen3_moe",
]
# what the file does not state, llama.cpp takes as the real models have it
FIXED: dict[str, tuple[str, dict[str, Any]]] = {
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
    """By the family's map, with the gguf package's reader: what the loader does, in a few lines."""
    reader = gguf.GGUFReader(path)
    meta = {key: field.contents() for key, field in reader.fields.items()}
    # numpy has rows first, as torch; the copy makes it writable
    stored = {tensor.name: torch.from_numpy(np.array(tensor.data)) for tensor in reader.tensors}
    family = family_for_gguf(meta)
    gguf_map = family.gguf
    assert gguf_map is not None
    tables = {name: stored.pop(name) for name in gguf_map.config_tensors if name in stored}
    values = gguf_map.hf_config(meta, tables, tuple(stored))
    assert family_for(values) is family
    config = family.read_config(values)
    names = gguf_map.names(config)
    tensors = {names[name]: gguf_map.fix(names[name], tensor, config) for name, tensor in stored.items()}
    return assemble(config, state_from(family.gguf_rules(config), tensors))


@pytest.mark.parametrize("name", WRITTEN)
def test_a_file_gives_the_logits_of_the_model_it_was_made_from(name: str, tmp_path: Path) -> None:
    judge = judge_of(name)
    decoder = open_gguf(write_gguf(tmp_path / "tiny.gguf", judge))
    errors = error(trace(decoder, PROMPT)[0], judge.run(PROMPT)[0])
    assert max(errors.values()) < TOLERANCE, errors


def test_every_family_that_llama_cpp_writes_is_tried() -> None:
    tried = {judge_of(name).config["model_type"] for name in WRITTEN}
    assert tried == set(ARCHITECTURES)


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


@pytest.mark.skipif(find_spec("xllamacpp") is None, reason="llama.cpp as a judge: pip install xllamacpp")
@pytest.mark.parametrize("name", RUN_BY_LLAMA_CPP)
def test_llama_cpp_runs_the_same_from_the_file(name: str, tmp_path: Path) -> None:
    path = write_gguf(tmp_path / "tiny.gguf", judge_of(name))
    command = [sys.executable, "-m", "tests.model.llama_cpp_judge", str(path), *map(str, PROMPT)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    reply = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60, env=environment)
    theirs = dict(json.loads(reply.stdout[reply.stdout.index("[[") :]))
    assert sorted(theirs) == list(range(61))
    ours = trace(open_gguf(path), PROMPT)[0].logits[-1].log_softmax(-1)
    wrong = max(abs(ours[token].item() - logprob) for token, logprob in theirs.items())
    # ggml's GELU is a table in half precision; without it the difference is 1e-5
    assert wrong < 2e-2, wrong
