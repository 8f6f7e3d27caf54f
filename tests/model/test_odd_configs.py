"""Configurations that nobody chose: every family with fields drawn at random, in the old spelling and the new, read
from the config.json as it was drawn and as transformers saves it."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
import torch

from tests.model.reference import D_VOCAB, Reference, decoder_for, error, reference, trace

Fields = dict[str, Any]
ACTIVATIONS = ("silu", "gelu", "gelu_new", "gelu_pytorch_tanh", "relu", "gelu_fast", "swish")
KINDS = ("full_attention", "sliding_attention")
CONFIGS = 4
# of the largest value there is: attention this peaked makes rounding ten times what it is in the chosen cases, and a
# wrong feature a hundred times more than this
RELATIVE = 1e-4


class Draw(random.Random):
    """Fields at random."""

    def maybe(self, **options: tuple[Any, ...]) -> Fields:
        """Each field with one of its values, or not at all."""
        return {name: self.choice(values) for name, values in options.items() if self.random() < 0.6}

    def llama(self, *, heads: bool = True) -> Fields:
        """The sizes of a config in Llama's names; `heads`: their size may be stated."""
        n_heads, size = self.choice((1, 2, 3, 4, 6)), self.choice((4, 8, 16))
        groups = self.choice([count for count in range(1, n_heads + 1) if n_heads % count == 0])
        fields = {
            "hidden_size": n_heads * size,
            "num_hidden_layers": self.choice((1, 2, 3)),
            "num_attention_heads": n_heads,
            "num_key_value_heads": groups,
            "intermediate_size": self.choice((16, 40)),
            "max_position_embeddings": 64,
        }
        return fields | (self.maybe(head_dim=(4, 12, 16)) if heads else {}) | self.maybe(rms_norm_eps=(1e-5, 1e-2))

    def layer_types(self, fields: Fields) -> Fields:
        """A kind for every layer."""
        return {"layer_types": [self.choice(KINDS) for _ in range(fields["num_hidden_layers"])]}

    def rope(self, fields: Fields, *kinds: str, partial: bool = False) -> Fields:
        """Rotary frequencies of one of these kinds, in the old spelling or the new."""
        d_head = fields.get("head_dim") or fields["hidden_size"] // fields["num_attention_heads"]
        kind, factor = self.choice(("default", *kinds)), self.choice((2.0, 4.0))
        portion = {"partial_rotary_factor": self.choice((0.5, 1.0))} if partial else {}
        pairs = int(d_head * portion.get("partial_rotary_factor", 1.0)) // 2
        scaling: Fields = {"rope_type": kind} | ({"factor": factor} if kind not in ("default", "longrope") else {})
        if kind == "yarn":
            scaling |= {"original_max_position_embeddings": 16} | self.maybe(
                beta_fast=(16.0, 8.0), beta_slow=(0.5, 2.0), attention_factor=(0.7,), mscale=(0.7,),
                mscale_all_dim=(0.8,), truncate=(False,),
            )  # fmt: skip
        if kind == "llama3":
            scaling |= {"low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 16}
        if kind == "longrope":
            scaling |= {"short_factor": [1 + 0.1 * pair for pair in range(pairs)]}
            scaling |= {"long_factor": [2 + 0.5 * pair for pair in range(pairs)]}
        theta = {"rope_theta": self.choice((100.0, 10_000.0, 1e6))}
        if self.random() < 0.5:
            return {"rope_parameters": scaling | theta | portion}
        if self.random() < 0.5:
            scaling["type"] = scaling.pop("rope_type")
        return theta | portion | ({"rope_scaling": scaling} if kind != "default" else {})


SCALED = ("linear", "dynamic", "yarn", "llama3")


def llama(draw: Draw) -> Fields:
    fields = draw.llama() | draw.maybe(
        attention_bias=(True,), mlp_bias=(True,), tie_word_embeddings=(True,), hidden_act=ACTIVATIONS
    )
    return fields | draw.rope(fields, *SCALED)


def mistral(draw: Draw) -> Fields:
    fields = draw.llama() | draw.maybe(sliding_window=(None, 1, 2, 7, 100), hidden_act=ACTIVATIONS)
    return fields | draw.rope(fields, *SCALED)


def qwen2(draw: Draw, *, heads: bool = False) -> Fields:
    fields = draw.llama(heads=heads) | draw.maybe(
        use_sliding_window=(True,), sliding_window=(1, 5), max_window_layers=(0, 1, 9), tie_word_embeddings=(True,)
    )
    if draw.random() < 0.3:
        fields |= draw.layer_types(fields) | {"use_sliding_window": True, "sliding_window": 5}
    return fields | draw.rope(fields, *SCALED)


def qwen3(draw: Draw) -> Fields:
    return {"head_dim": 16} | qwen2(draw, heads=True) | draw.maybe(attention_bias=(True,))


def gemma(draw: Draw) -> Fields:
    fields = draw.llama() | {"head_dim": draw.choice((4, 12))} | draw.maybe(tie_word_embeddings=(False,))
    return fields | draw.maybe(attention_bias=(True,), hidden_act=("gelu", "gelu_new")) | draw.rope(fields, *SCALED[:3])


def gemma2(draw: Draw) -> Fields:
    fields = draw.llama() | {"head_dim": draw.choice((4, 12))} | draw.maybe(
        query_pre_attn_scalar=(4, 144), attn_logit_softcapping=(None, 3.0), final_logit_softcapping=(None, 4.0),
        sliding_window=(1, 4, 50), hidden_activation=("gelu",),
    )  # fmt: skip
    return fields | (draw.layer_types(fields) if draw.random() < 0.5 else {}) | draw.rope(fields, *SCALED[:3])


def gemma3_text(draw: Draw) -> Fields:
    fields = draw.llama() | {"head_dim": 12, "num_hidden_layers": draw.choice((2, 7))} | draw.maybe(
        query_pre_attn_scalar=(4, 144), final_logit_softcapping=(4.0,), sliding_window=(1, 4, 50),
        attention_bias=(True,), attn_logit_softcapping=(5.0,),
    )  # fmt: skip
    sliding = {"rope_type": "default", "rope_theta": 50.0}
    full = {"rope_type": "yarn", "factor": 4.0, "rope_theta": 1e3, "original_max_position_embeddings": 16}
    old = {"rope_theta": 1e3, "rope_local_base_freq": 50.0} | draw.maybe(
        rope_scaling=({"rope_type": "linear", "factor": 8.0},), sliding_window_pattern=(1, 2, 3)
    )
    new = {"rope_parameters": {"full_attention": full, "sliding_attention": sliding}} | draw.layer_types(fields)
    return fields | draw.choice((old, new))


def phi3(draw: Draw) -> Fields:
    fields = draw.llama(heads=False) | draw.maybe(sliding_window=(1, 5, 30), tie_word_embeddings=(True,))
    return fields | {"original_max_position_embeddings": draw.choice((8, 20, 64))} | draw.rope(
        fields, "longrope", partial=True
    )  # fmt: skip


def olmo2(draw: Draw) -> Fields:
    fields = draw.llama() | draw.maybe(attention_bias=(True,), tie_word_embeddings=(True,), hidden_act=ACTIVATIONS)
    return fields | draw.rope(fields, *SCALED)


def falcon(draw: Draw) -> Fields:
    sizes = draw.llama(heads=False)
    fields = {name: sizes[name] for name in ("hidden_size", "num_hidden_layers", "num_attention_heads")} | draw.maybe(
        ffn_hidden_size=(40,), bias=(True,), alibi=(True,), tie_word_embeddings=(False,), activation=("relu",)
    )
    if draw.random() < 0.5:
        groups = {"num_kv_heads": sizes["num_key_value_heads"], "new_decoder_architecture": True}
        fields |= groups | draw.maybe(num_ln_in_parallel_attn=(1, 2))
    else:
        fields |= draw.maybe(multi_query=(False,), parallel_attn=(False,))
    return fields if fields.get("alibi") else fields | draw.rope(fields, *SCALED[:3])


def bloom(draw: Draw) -> Fields:
    return {"hidden_size": 48, "n_layer": draw.choice((1, 3)), "n_head": draw.choice((1, 3, 4, 12, 16))} | draw.maybe(
        apply_residual_connection_post_layernorm=(True,), tie_word_embeddings=(False,), layer_norm_epsilon=(1e-3,)
    )


def gpt2(draw: Draw) -> Fields:
    n_heads = draw.choice((1, 2, 3, 6))
    sizes = {"n_embd": n_heads * draw.choice((4, 9)), "n_layer": draw.choice((1, 3)), "n_head": n_heads}
    return sizes | {"n_positions": 64} | draw.maybe(
        n_inner=(33, None), activation_function=ACTIVATIONS, scale_attn_weights=(False,),
        scale_attn_by_inverse_layer_idx=(True,), tie_word_embeddings=(False,), layer_norm_epsilon=(1e-3,),
    )  # fmt: skip


def gpt_neox(draw: Draw) -> Fields:
    fields = draw.llama(heads=False)
    del fields["num_key_value_heads"]
    fields |= {"hidden_size": fields["num_attention_heads"] * 16} | draw.maybe(
        use_parallel_residual=(False,), attention_bias=(False,), tie_word_embeddings=(True,), hidden_act=ACTIVATIONS
    )
    scaling = {"rope_type": "linear", "factor": 4.0}
    old = draw.maybe(rotary_pct=(0.5, 1.0), rotary_emb_base=(100, 5000), rope_scaling=(scaling,))
    new = {"rope_parameters": {"rope_type": "default", "rope_theta": 500.0, "partial_rotary_factor": 0.5}}
    return fields | draw.choice((old, new))


def mixtral(draw: Draw) -> Fields:
    fields = draw.llama() | {"num_local_experts": 5, "num_experts_per_tok": draw.choice((1, 2, 5))}
    fields |= {"head_dim": 8, "hidden_size": 8 * fields["num_attention_heads"]} | draw.maybe(
        sliding_window=(1, 6, None)
    )
    return fields | draw.rope(fields, *SCALED)


def qwen3_moe(draw: Draw) -> Fields:
    fields = draw.llama() | {"num_experts": 5, "num_experts_per_tok": draw.choice((1, 2, 5))}
    fields |= {"hidden_size": 8 * fields["num_attention_heads"], "moe_intermediate_size": 8} | draw.maybe(
        norm_topk_prob=(True,), decoder_sparse_step=(2, 3), mlp_only_layers=([0], [1], []), attention_bias=(True,),
        use_sliding_window=(True,), sliding_window=(2, 6), tie_word_embeddings=(True,),
    )  # fmt: skip
    return fields | draw.rope(fields, *SCALED)


FAMILIES: dict[str, Callable[[Draw], Fields]] = {
    "Llama": llama, "Mistral": mistral, "Qwen2": qwen2, "Qwen3": qwen3, "Gemma": gemma, "Gemma2": gemma2,
    "Gemma3Text": gemma3_text, "Phi3": phi3, "Olmo2": olmo2, "Falcon": falcon, "Bloom": bloom, "GPT2": gpt2,
    "GPTNeoX": gpt_neox, "Mixtral": mixtral, "Qwen3Moe": qwen3_moe,
}  # fmt: skip


@pytest.mark.parametrize("seed", range(CONFIGS))
@pytest.mark.parametrize("name", FAMILIES)
def test_a_configuration_drawn_at_random_equals_the_reference(name: str, seed: int) -> None:
    draw = Draw(f"{name} {seed}")
    fields = FAMILIES[name](draw)
    judge: Reference = reference(name, seed=seed, attention="sdpa" if fields.get("alibi") else "eager", **fields)
    length = draw.choice((3, 17, 40))
    ids = [draw.randrange(D_VOCAB) for _ in range(length)]
    chunks = (ids[:-2], ids[-2:-1], ids[-1:])
    theirs = judge.run(*chunks)
    drawn = {"model_type": judge.config["model_type"], "vocab_size": D_VOCAB} | fields
    for values in (drawn, judge.config):
        for ours, expected in zip(trace(decoder_for(values, judge.tensors), *chunks), theirs, strict=True):
            largest = max(float(tensor.abs().max()) for tensor in (expected.logits, *expected.resid))
            errors = error(ours, expected)
            assert max(errors.values()) < RELATIVE * max(1.0, largest), (fields, errors)


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)
