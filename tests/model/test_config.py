"""Configurations: both spellings mean the same; bad ones are refused with the field, what it holds, what it should."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
import transformers
from hypothesis import given
from hypothesis import strategies as st

from model.config import ConfigError, DecoderConfig, MoeSpec
from model.errors import BadValueError, DecoderscopeError
from model.families import FAMILIES, UnsupportedModelError, family_for, family_for_gguf, model_types
from model.rope import RopeSpec
from tests.model.family_cases import CASES

LLAMA: dict[str, Any] = {
    "model_type": "llama",
    "vocab_size": 128,
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "intermediate_size": 96,
    "max_position_embeddings": 256,
}


def read(**fields: Any) -> DecoderConfig:
    values = LLAMA | fields
    return family_for(values).read_config(values)


def test_old_and_new_spelling_mean_the_same() -> None:
    scaling = {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 64}
    old = read(rope_theta=5e5, rope_scaling={"type": "llama3", **scaling}, torch_dtype="bfloat16")
    new = read(rope_parameters={"rope_type": "llama3", "rope_theta": 5e5, **scaling}, dtype="bfloat16")
    assert old == new
    assert old.rope is not None and old.rope.theta == 5e5 and old.rope.original_ctx == 64
    gemma = {"hidden_size": 64, "query_pre_attn_scalar": 8, "sliding_window": 16, "num_hidden_layers": 6}
    flat = read(model_type="gemma3_text", rope_theta=1e6, rope_local_base_freq=1e4, sliding_window_pattern=6, **gemma)
    nested = read(
        model_type="gemma3_text",
        layer_types=["sliding_attention"] * 5 + ["full_attention"],
        rope_parameters={
            "full_attention": {"rope_type": "default", "rope_theta": 1e6},
            "sliding_attention": {"rope_type": "default", "rope_theta": 1e4},
        },
        **gemma,
    )
    assert flat == nested and flat.rope != flat.rope_sliding


def test_a_multimodal_gemma_opens_as_its_decoder() -> None:
    text = {key: value for key, value in LLAMA.items() if key != "model_type"} | {"model_type": "gemma3_text"}
    values = {"model_type": "gemma3", "text_config": text, "vision_config": {"hidden_size": 9}}
    assert family_for(values).read_config(values).d_model == 64


def test_attention_kinds() -> None:
    kinds = {heads: read(num_key_value_heads=heads).attention_kind for heads in (8, 2, 1, None)}
    assert kinds == {8: "MHA", 2: "GQA", 1: "MQA", None: "MHA"}


SIZES = [
    ("num_hidden_layers", 2000, "a whole number from 1 to 1024"),
    ("num_hidden_layers", 0, "a whole number from 1 to 1024"),
    ("num_hidden_layers", None, "a whole number from 1 to 1024"),
    ("num_hidden_layers", True, "a whole number from 1 to 1024"),
    ("vocab_size", 10**9, "a whole number from 1 to 4000000"),
    ("hidden_size", -64, "a whole number from 1 to 65536"),
    ("hidden_size", "64", "a whole number from 1 to 65536"),
    ("hidden_size", 0, "a whole number from 1 to 65536"),
    ("hidden_size", 64.0, "a whole number from 1 to 65536"),
    ("intermediate_size", 10**30, "a whole number from 1 to 1048576"),
    ("num_key_value_heads", 0, "a whole number from 1 to 1024"),
    ("num_key_value_heads", 3, "a divisor of num_attention_heads (8)"),
    ("num_attention_heads", 6, "a multiple of the number of attention heads (6)"),
    ("head_dim", 7, "an even number from 2 to 7, RoPE turns pairs"),
    ("rope_theta", 0, "a finite number above 0"),
    ("rope_theta", math.nan, "a finite number above 0"),
    ("rope_theta", 10**400, "a finite number above 0"),
    ("rope_scaling", {"rope_type": "cubic"}, "one of default, linear, dynamic, yarn, llama3, longrope, su"),
    ("rope_scaling", {"rope_type": "linear", "factor": math.nan}, "a finite number above 0"),
    ("rope_scaling", {"rope_type": "linear"}, "a finite number above 0"),
    ("rope_scaling", {"type": "longrope", "short_factor": [1.0], "long_factor": [1.0]}, "a list of 4 finite numbers"),
    ("rope_scaling", ["linear"], "an object"),
    ("partial_rotary_factor", 1e308, "a finite number above 0, at most 1"),
    ("partial_rotary_factor", 10**400, "a finite number above 0, at most 1"),
    ("rope_parameters", {"partial_rotary_factor": 1e308}, "a finite number above 0, at most 1"),
    ("rope_scaling", {"type": "longrope", "short_factor": [10**400] * 4, "long_factor": [1] * 4}, "a list of 4 finite"),
    ("hidden_act", "quick_gelu", "one of silu, swish, gelu,"),
    ("rms_norm_eps", "small", "a finite number above 0"),
    ("tie_word_embeddings", "yes", "true or false"),
]


@pytest.mark.parametrize(("field", "found", "expected"), SIZES)
def test_a_bad_field_is_named(field: str, found: object, expected: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read(**{field: found})
    sentence = str(caught.value)
    assert sentence.startswith("The model's configuration says ") and expected in sentence
    assert sentence.endswith(".")
    if field in {"vocab_size", "num_hidden_layers", "intermediate_size", "rope_theta"} and found is not None:
        assert f"says {field} is {found!r}"[:100] in sentence or "…" in sentence


@pytest.mark.parametrize("kinds", [[{}, {}], [["full_attention"]] * 2, ["full_attention"], "full_attention", [1, None]])
def test_kinds_of_layers_that_are_no_words_are_refused_by_name(kinds: object) -> None:
    with pytest.raises(ConfigError, match=r"says layer_types is .*; expected a list of 2 of full_attention, sliding_"):
        read(model_type="gemma3_text", layer_types=kinds)


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"rope_theta": 500.0}, r"rope_theta is 500\.0; expected 10000, as rotary_emb_base has it"),
        ({"rope_theta": 10_000, "rotary_emb_base": 200}, r"rope_theta is 10000; expected 200, as rotary_emb_base has"),
        ({"partial_rotary_factor": 0.5}, r"partial_rotary_factor is 0\.5; expected 0\.25, as rotary_pct has it"),
    ],
)
def test_gpt_neox_is_read_by_its_own_names(fields: dict[str, Any], says: str) -> None:
    # transformers 4 took the one, 5 takes the other where they differ: neither is guessed
    values: dict[str, Any] = {"hidden_size": 64, "num_attention_heads": 8, "vocab_size": 10, "num_hidden_layers": 1}
    values |= {"model_type": "gpt_neox", "intermediate_size": 64}
    neox = family_for(values)
    with pytest.raises(ConfigError, match=says):
        neox.read_config(values | fields)
    same = {"rope_theta": 200, "rotary_emb_base": 200.0, "partial_rotary_factor": 0.5, "rotary_pct": 0.5}
    new = {"rope_parameters": {"rope_type": "default", "rope_theta": 200.0, "partial_rotary_factor": 0.5}}
    assert neox.read_config(values | same).rope == neox.read_config(values | new).rope == RopeSpec(theta=200.0, dim=4)


def test_the_sentence_in_full() -> None:
    with pytest.raises(ConfigError) as caught:
        read(num_hidden_layers=2000)
    assert str(caught.value) == (
        "The model's configuration says num_hidden_layers is 2000; expected a whole number from 1 to 1024. If that is "
        "a mistake, correct it in the model's files or get them again; a model that is made so can't be run here."
    )


FIELDS = sorted({name for case in CASES.values() for name in case.fields} | set(LLAMA) - {"model_type"})
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=4),
    max_leaves=8,
)


@pytest.mark.parametrize("model_type", model_types())
@given(spoiled=st.dictionaries(st.sampled_from([*FIELDS, "rope_parameters", "layer_types"]), JSON, max_size=4))
def test_any_values_give_a_config_or_one_refusal(model_type: str, spoiled: dict[str, Any]) -> None:
    name = family_for({"model_type": model_type}).name
    case = next(case for case in CASES.values() if getattr(transformers, f"{case.reference}Config").model_type == name)
    values = {**case.fields, "vocab_size": 61, **spoiled, "model_type": model_type}
    try:
        config = family_for(values).read_config(values)
    except DecoderscopeError:
        return
    assert config.n_layers <= 1024 and config.d_vocab <= 4_000_000


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"model_type": "bert"}, "'bert' is an encoder-only model: it has no next token to predict."),
        ({"model_type": "t5", "is_encoder_decoder": True}, "'t5' is an encoder-decoder model"),
        ({"model_type": "mamba2"}, "The model type 'mamba2' is not supported."),
        ({"model_type": "dbrx", "auto_map": {"AutoModel": "evil.Model"}}, "The model type 'dbrx' is not supported."),
        ({}, "The model's configuration has no model_type (found None)."),
        ({"model_type": ["llama"]}, "The model's configuration has no model_type (found ['llama'])."),
    ],
)
def test_an_unsupported_kind_is_refused_with_those_supported(values: dict[str, Any], says: str) -> None:
    with pytest.raises(UnsupportedModelError) as caught:
        family_for(values)
    assert says in str(caught.value)
    assert "Supported: bloom, falcon," in str(caught.value) and "qwen3_moe." in str(caught.value)


def test_an_unsupported_gguf_architecture_is_refused() -> None:
    with pytest.raises(UnsupportedModelError, match=r"GGUF architecture 'mamba' is not supported\. Supported: bloom"):
        family_for_gguf({"general.architecture": "mamba"})
    assert family_for_gguf({"general.architecture": "llama"}).name == "llama"
    assert family_for_gguf({"general.architecture": "llama", "llama.expert_count": 8}).name == "mixtral"


def test_every_family_is_registered_once_and_has_a_case() -> None:
    names = [family.name for family in FAMILIES]
    assert sorted(set(names)) == names
    covered = {getattr(transformers, f"{case.reference}Config").model_type for case in CASES.values()}
    assert covered == set(names)


def experts(**fields: Any) -> MoeSpec:
    return replace(MoeSpec(n_experts=4, top_k=2, d_expert=8, layers=(0, 1)), **fields)


def test_the_largest_mixtures_there_are_stay_within_the_limits() -> None:
    config = replace(read(), n_layers=128, moe=experts(n_experts=512, layers=tuple(range(128))))
    assert config.moe is not None and len(config.moe.layers) * config.moe.n_experts == 65_536


GGUF_SIZES: list[tuple[str, str, object]] = [
    (arch, key, bad)
    for arch in ("falcon", "gemma2", "gemma3", "gpt2", "gptneox", "phi3", "qwen3moe", "bloom", "llama")
    for key in ("block_count", "embedding_length", "attention.head_count")
    for bad in (0, 1 << 62, "46", [1, 2], None)
]
GGUF_SIZES += [("falcon", "attention.head_count_kv", bad) for bad in (0, 1 << 62, "46", [1, 2])]
GGUF_SIZES += [("phi3", "rope.dimension_count", bad) for bad in (1 << 62, "46", [1, 2])]


@pytest.mark.parametrize(("arch", "key", "bad"), GGUF_SIZES)
def test_gguf_numbers_are_checked_before_anything_is_computed_of_them(arch: str, key: str, bad: object) -> None:
    meta: dict[str, Any] = {"general.architecture": arch, "tokenizer.ggml.tokens": ["a"] * 8}
    sizes = {"block_count": 46, "embedding_length": 64, "attention.head_count": 4, "feed_forward_length": 96}
    more = {"context_length": 128, "rope.dimension_count": 8 if arch == "phi3" else None}
    more |= {"expert_count": 4, "expert_used_count": 2} if arch == "qwen3moe" else {}
    norms = {f"attention.layer_norm_{kind}": 1e-5 for kind in ("epsilon", "rms_epsilon")}

    def read_as(changes: dict[str, object]) -> DecoderConfig:
        values = sizes | more | norms | changes
        given = meta | {f"{arch}.{name}": value for name, value in values.items() if value is not None}
        family = family_for_gguf(given)
        assert family.gguf is not None
        return family.read_config(family.gguf.hf_config(given, {}, ()))

    assert read_as({}).n_layers == 46
    with pytest.raises(DecoderscopeError):
        read_as({key: bad})


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"n_layers": 0}, "n_layers is 0; expected a whole number from 1 to 1024."),
        ({"n_kv_heads": 3}, "n_kv_heads is 3; expected a divisor of n_heads (8)."),
        ({"norm_eps": math.nan}, "norm_eps is nan; expected a finite number above 0."),
        ({"layer_kinds": ("sliding",)}, "length of layer_kinds is 1; expected n_layers (2)."),
        ({"layer_kinds": ("sliding", "full")}, "sliding_window is None; expected a whole number from 1."),
        ({"positions": "learned"}, "rope is RopeSpec"),
        ({"shared_norm": True}, "shared_norm is True; expected False without a parallel residual."),
        ({"pre_norm": False}, "pre_norm is False; expected a norm before or after attention and MLP."),
        ({"norm": "batch"}, "norm is 'batch'; expected one of rms, layer."),
        ({"n_positions_table": 2**62}, "n_positions_table is 4611686018427387904; expected a whole number from 0"),
        ({"n_positions_table": -1}, "n_positions_table is -1; expected a whole number from 0"),
        ({"sliding_window": 2**62}, "sliding_window is 4611686018427387904; expected a whole number from 1"),
        ({"sliding_window": -3}, "sliding_window is -3; expected a whole number from 1"),
        ({"layer_kinds": ("global", "full")}, "layer_kinds is ('global', 'full'); expected each one of full, sliding."),
        ({"moe": experts(d_expert=-5)}, "d_expert is -5; expected a whole number from 1 to 1048576."),
        ({"moe": experts(d_expert=2**62)}, "d_expert is 4611686018427387904; expected a whole number"),
        ({"moe": experts(n_experts=2**31)}, "n_experts is 2147483648; expected a whole number from 1 to 4096."),
        ({"moe": experts(top_k=0)}, "top_k experts is 0; expected 1 to n_experts (4)."),
        ({"moe": experts(top_k=True)}, "top_k experts is True; expected 1 to n_experts (4)."),
        ({"moe": experts(layers=(0, 2))}, "layers with experts is (0, 2); expected 0 to 1."),
        ({"moe": experts(layers=(0, 0))}, "layers with experts is (0, 0); expected each layer once."),
        (
            {"n_layers": 1024, "moe": experts(n_experts=4096, layers=tuple(range(1024)))},
            "layers with experts × n_experts is 4194304; expected at most 131072.",
        ),
    ],
)
def test_a_config_checks_itself(fields: dict[str, Any], says: str) -> None:
    with pytest.raises(BadValueError) as caught:
        replace(read(), **fields)
    assert str(caught.value).startswith(says)
