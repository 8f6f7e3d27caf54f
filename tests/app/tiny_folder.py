"""A tiny random model of any family as a folder that the real engine opens."""

from __future__ import annotations

import json
from pathlib import Path

from safetensors.torch import save_file

from tests.model.checkpoint.files import SPECIAL, tiny_tokenizer, vocabulary
from tests.model.family_cases import CASES
from tests.model.reference import reference

CONTEXT = 256
CONTEXT_FIELDS = {"GPT2": "n_positions", "Bloom": ""}
"""Where another field than Llama's says how long a text may be; empty: none does."""


def tiny_folder(path: Path, name: str) -> Path:
    """The family case `name` with a byte-level tokenizer, in a new folder."""
    case = CASES[name]
    fields = {"vocab_size": 300, "bos_token_id": None, "eos_token_id": vocabulary().index(SPECIAL[1])}
    if length := CONTEXT_FIELDS.get(case.reference, "max_position_embeddings"):
        fields[length] = CONTEXT
    judge = reference(case.reference, gain=case.gain, **{**case.fields, **fields})
    path.mkdir()
    save_file(judge.tensors, path / "model.safetensors", metadata={"format": "pt"})
    (path / "config.json").write_text(json.dumps(judge.config))
    tiny_tokenizer().save(str(path / "tokenizer.json"))
    return path
