"""Experts: few tokens take the matrices of their own from stacks, without the host, and get what many tokens get."""

from __future__ import annotations

from copy import deepcopy
from typing import Any
from unittest import mock

import pytest
import torch
from torch import nn

from model.moe import GATHERED_SLOTS, Expert, Experts
from tests.model.tiny import model_of

FIELDS: dict[str, Any] = {
    "hidden_size": 32, "intermediate_size": 24, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "num_local_experts": 4, "num_experts_per_tok": 2,
}  # fmt: skip
CLOSE = 1e-5  # absolute, on values of size 1 to 10: sums of 32 products in another order


@pytest.fixture
def experts() -> Experts:
    _, model = model_of("Mixtral", **FIELDS)
    experts = model.decoder.layers[0].mlp
    assert isinstance(experts, Experts)
    return deepcopy(experts)  # the tiny model is shared


@pytest.mark.parametrize("tokens", [1, 3, GATHERED_SLOTS // 2, GATHERED_SLOTS])
def test_stacked_experts_give_the_same(experts: Experts, tokens: int) -> None:
    x = torch.randn(tokens, 32, generator=torch.Generator().manual_seed(tokens))
    expected = experts(x)
    before = {name: weight.clone() for name, weight in experts.named_parameters()}
    experts.stack()
    assert all(torch.equal(weight, before[name]) for name, weight in experts.named_parameters())
    assert float((experts(x) - expected).abs().max()) < CLOSE


def test_a_decode_step_never_asks_the_host(experts: Experts) -> None:
    experts.stack()
    x = torch.randn(1, 32)
    names = ("tolist", "item", "nonzero", "cpu")
    sync = mock.Mock(side_effect=AssertionError("a host sync"))
    with mock.patch.multiple(torch.Tensor, **dict.fromkeys(names, sync)):
        experts(x)
        with pytest.raises(AssertionError, match="a host sync"):
            experts(torch.randn(GATHERED_SLOTS, 32))  # many tokens are sorted by expert: one sync pays


def test_another_weight_is_used_at_once(experts: Experts) -> None:
    experts.stack()
    first, x = experts.experts[0], torch.randn(1, 32)
    assert isinstance(first, Expert)
    first.gate_proj.weight = nn.Parameter(torch.zeros_like(first.gate_proj.weight), requires_grad=False)
    expected = experts(x)
    with mock.patch.object(experts, "_stacks", ()):
        assert torch.equal(experts(x), expected)


def test_on_a_cpu_nothing_is_stacked(experts: Experts) -> None:
    experts._stacks = ()
    experts.join()
    assert experts._stacks == ()
