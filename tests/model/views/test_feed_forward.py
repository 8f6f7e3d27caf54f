"""Neurons, experts and norms, against the reference's own modules."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from model.config import MoeSpec
from model.errors import BadValueError
from model.protocol.feed_forward_requests import GetNeurons, GetNorms, GetRouter
from model.protocol.values import SamplerSettings
from model.views.feed_forward import neurons_reply, norms_reply, router_reply
from tests.model.tiny import llama, made, model_of, random_ids, run_of

SAMPLED = SamplerSettings(temperature=1.5, top_k=0, top_p=1.0)
MIXTRAL: dict[str, Any] = {
    "hidden_size": 32,
    "intermediate_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "num_local_experts": 6,
    "num_experts_per_tok": 2,
    "max_position_embeddings": 128,
    "sliding_window": None,
}


def outputs(judge: Any, ids: tuple[int, ...], *names: str) -> list[Tensor]:
    """What modules of the reference gave for one forward pass, (T, …) each."""
    seen: dict[str, Tensor] = {}
    modules = dict(judge.model.named_modules())

    def listener(name: str) -> Any:
        def keep(_module: Any, _inputs: Any, out: Any) -> None:
            seen[name] = (out[0] if isinstance(out, tuple) else out).detach()

        return keep

    handles = [modules[name].register_forward_hook(listener(name)) for name in names]
    judge.run(list(ids))
    for handle in handles:
        handle.remove()
    return [seen[name].reshape(len(ids), -1) for name in names]


def test_neurons_equal_the_reference_s() -> None:
    judge, model = llama()
    run = run_of(model, random_ids(20))
    run.generate(2, SAMPLED)
    prefix = "model.layers.1.mlp."
    gate, up = outputs(judge, run.ids, prefix + "gate_proj", prefix + "up_proj")
    post = torch.nn.functional.silu(gate) * up
    reply, arrays = neurons_reply(run, GetNeurons(layer=1, position=13, top=10))
    best = post[13].abs().argsort(descending=True)[:10]
    assert arrays["ids"].tolist() == best.tolist()
    np.testing.assert_allclose(arrays["pre"], gate[13, best], atol=1e-4)
    np.testing.assert_allclose(arrays["up"], up[13, best], atol=1e-4)
    np.testing.assert_allclose(arrays["post"], post[13, best], atol=1e-4)
    np.testing.assert_allclose(arrays["all_post"], post[13], atol=1e-4)
    np.testing.assert_allclose(arrays["all_act"], torch.nn.functional.silu(gate[13]), atol=1e-4)
    assert reply.rows == (0, 14) and reply.neurons == 48 and reply.activation == "silu" and reply.gated
    np.testing.assert_allclose(arrays["heat"], post[:14, best], atol=1e-4)
    sizes = post.abs()
    near = sizes < 0.01 * sizes.amax(-1, keepdim=True)
    assert reply.near_zero == pytest.approx(near[13].float().mean().item(), abs=1e-6)
    assert reply.near_zero_rows == pytest.approx(near[:14].float().mean().item(), abs=1e-3)
    expected = torch.nn.functional.silu(torch.from_numpy(arrays["curve_x"]))
    np.testing.assert_allclose(arrays["curve_y"], expected, atol=1e-6)
    assert arrays["curve_x"].min() <= arrays["all_pre"].min() and arrays["curve_x"].max() >= arrays["all_pre"].max()


def test_a_plain_mlp_has_no_second_factor() -> None:
    run = run_of(made(gated_mlp=False, activation="relu"), random_ids(9))
    reply, arrays = neurons_reply(run, GetNeurons(layer=0, position=5, rows=(2, 8)))
    assert "up" not in arrays and not reply.gated and arrays["heat"].shape == (6, 32)
    np.testing.assert_allclose(arrays["post"], np.maximum(arrays["pre"], 0), atol=1e-6)
    assert reply.near_zero >= 0.3  # relu cuts about half


def test_experts_are_those_of_the_reference() -> None:
    judge, model = model_of("Mixtral", **MIXTRAL)
    run = run_of(model, random_ids(20))
    run.step(SAMPLED)
    reply, arrays = router_reply(run, GetRouter(layer=1))
    whole = judge.run(list(run.ids))[0]
    block = judge.model.model.layers[1]
    entered = block.post_attention_layernorm(whole_mid(judge, run.ids))
    probs = torch.nn.functional.linear(entered, block.mlp.gate.weight).softmax(-1)
    np.testing.assert_allclose(arrays["probs"], probs, atol=1e-4)
    top = probs.topk(2)
    assert arrays["chosen"].tolist() == top.indices.tolist()
    np.testing.assert_allclose(arrays["weights"], top.values / top.values.sum(-1, keepdim=True), atol=1e-4)
    assert arrays["load"].sum() == 42 and arrays["load"].shape == (6,) and whole.logits.shape[0] == 21
    assert reply.n_experts == 6 and reply.experts_per_token == 2
    assert reply.active_parameters < reply.parameters == model.info.parameters


def whole_mid(judge: Any, ids: tuple[int, ...]) -> Tensor:
    """The residual stream between attention and experts of layer 1, (T, M)."""
    attention = outputs(judge, ids, "model.layers.1.self_attn")[0]
    return judge.run(list(ids))[0].resid[1] + attention  # type: ignore[no-any-return]


def test_neurons_of_experts_are_told_apart() -> None:
    run = run_of(made(moe=MoeSpec(n_experts=5, top_k=2, d_expert=12, layers=(1,))), random_ids(20))
    reply, arrays = neurons_reply(run, GetNeurons(layer=1, position=7, top=24, rows=(0, 20)))
    assert reply.has_experts and reply.neurons == 24
    chosen = router_reply(run, GetRouter(layer=1))[1]["chosen"]
    assert set(arrays["experts"].tolist()) == set(chosen[7].tolist())
    assert arrays["ids"].max() < 12
    np.testing.assert_allclose(arrays["heat"][7], arrays["post"], atol=1e-5)
    for token in range(20):
        sent = np.isin(arrays["experts"], chosen[token])
        assert np.array_equal(np.isnan(arrays["heat"][token]), ~sent)
    other = int(next(t for t in range(20) if set(chosen[t]) & set(chosen[7]) and t != 7))
    again = neurons_reply(run, GetNeurons(layer=1, position=other, top=24))[1]
    for expert, neuron, value in zip(again["experts"], again["ids"], again["post"], strict=True):
        at = np.flatnonzero((arrays["experts"] == expert) & (arrays["ids"] == neuron))
        if at.size:
            assert arrays["heat"][other, at[0]] == pytest.approx(value, abs=1e-5)
    assert "experts" not in neurons_reply(run, GetNeurons(layer=0, position=7))[1]


def test_norms_equal_the_reference_s() -> None:
    judge, model = llama()
    run = run_of(model, random_ids(20))
    _, arrays = norms_reply(run, GetNorms(position=13))
    whole = judge.run(list(run.ids))[0]
    np.testing.assert_allclose(arrays["resid"], [rows[13].norm() for rows in whole.resid], rtol=1e-4)
    for layer in range(3):
        attention, mlp = outputs(judge, run.ids, f"model.layers.{layer}.self_attn", f"model.layers.{layer}.mlp")
        assert arrays["attention"][layer] == pytest.approx(attention[13].norm().item(), rel=1e-4)
        assert arrays["feed_forward"][layer] == pytest.approx(mlp[13].norm().item(), rel=1e-4)


def test_what_is_not_there_is_refused() -> None:
    run = run_of(made(), random_ids(9))
    with pytest.raises(BadValueError, match="there is none"):
        router_reply(run, GetRouter(layer=0))
    with pytest.raises(BadValueError):
        neurons_reply(run, GetNeurons(layer=3, position=0))
    with pytest.raises(BadValueError):
        neurons_reply(run, GetNeurons(layer=0, position=9))
    with pytest.raises(BadValueError):
        norms_reply(run, GetNorms(position=-1))
