"""llama.cpp's own log-probabilities of the next token: `python -m tests.model.llama_cpp_judge file.gguf 3 1 4 …`.

A process of its own, since llama.cpp keeps threads. Needs the PyPI package xllamacpp, which carries llama.cpp built.
"""

from __future__ import annotations

import json
import sys

import xllamacpp  # type: ignore[import-not-found, import-untyped, unused-ignore]


def logprobs(path: str, ids: list[int]) -> list[tuple[int, float]]:
    """(id, natural logarithm of its probability) of every token after `ids`, float32 cache, no fused attention."""
    params = xllamacpp.CommonParams()
    params.model.path = path
    params.n_ctx = 64
    params.n_gpu_layers = 0
    params.n_parallel = 1
    params.warmup = False
    params.verbosity = 0
    params.cpuparams.n_threads = 1
    params.cache_type_k = params.cache_type_v = xllamacpp.ggml_type.GGML_TYPE_F32
    params.flash_attn_type = xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
    server = xllamacpp.Server(params)
    reply = server.handle_completions({"prompt": ids, "n_predict": 1, "n_probs": 100, "temperature": 0})
    reply = json.loads(reply) if isinstance(reply, str) else reply
    entries = reply["choices"][0]["logprobs"]["content"][0]["top_logprobs"]
    return [(entry["id"], entry["logprob"]) for entry in entries]


if __name__ == "__main__":
    json.dump(logprobs(sys.argv[1], [int(word) for word in sys.argv[2:]]), sys.stdout)
