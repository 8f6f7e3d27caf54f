"""Hook points: read, replace, refuse, and leave nothing behind."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from model.errors import UnknownNameError
from model.hooks import BadReplacementError, HookPoint
from model.transformer import Decoder
from tests.model.family_cases import CASES
from tests.model.reference import decoder_for, reference

IDS = torch.tensor([3, 1, 4, 1, 5, 9, 2, 6])


@pytest.fixture
def decoder() -> Decoder:
    case = CASES["llama"]
    judge = reference(case.reference, gain=case.gain, **case.fields)
    return decoder_for(judge.config, judge.tensors)


def run(decoder: Decoder) -> Tensor:
    logits: Tensor = decoder(IDS, decoder.new_cache(), logits="all")
    return logits


def test_the_names_are_the_documented_ones(decoder: Decoder) -> None:
    parts = "q k v rot_q rot_k scores pattern z proj out"
    layer = [f"attn.{part}" for part in parts.split()] + [f"mlp.{part}" for part in ("pre", "up", "post", "out")]
    layer += ["resid_pre", "resid_mid", "resid_post"]
    expected = {f"layers.{index}.{name}" for index in range(3) for name in layer}
    assert set(decoder.hook_points) == expected | {"embed", "final_norm", "logits"}


def test_a_parallel_model_has_no_middle_and_experts_have_a_router() -> None:
    for name, there, absent in (
        ("gpt_neox", "layers.0.mlp.pre", ("layers.0.resid_mid", "layers.0.mlp.up")),
        ("mixtral", "layers.0.moe.router", ("layers.0.moe.gate",)),
    ):
        case = CASES[name]
        judge = reference(case.reference, gain=case.gain, **case.fields)
        points = decoder_for(judge.config, judge.tensors).hook_points
        assert there in points and not any(point in points for point in absent)


def test_an_unknown_name_is_refused_with_the_nearest(decoder: Decoder) -> None:
    with (
        pytest.raises(UnknownNameError, match=r"no hook point called 'layers.1.attn.querry'.*'layers.1.attn.q"),
        decoder.hooks({"layers.0.attn.q": lambda tensor, point: None, "layers.1.attn.querry": lambda t, p: None}),
    ):
        pass
    assert not any(point.listeners for point in decoder.hook_points.values())


def test_reading_sees_the_used_tensor_and_its_name(decoder: Decoder) -> None:
    seen: dict[str, Tensor] = {}

    def read(tensor: Tensor, point: HookPoint) -> None:
        seen[point.name] = tensor

    with decoder.hooks({"layers.*.resid_post": read, "final_norm": read}) as listening:
        logits = run(decoder)
    assert sorted(listening.points) == sorted(seen) and not listening.altered
    torch.testing.assert_close(decoder.unembed(seen["layers.2.resid_post"]), logits)


def test_zeroing_a_head_removes_its_share_of_the_output(decoder: Decoder) -> None:
    z: list[Tensor] = []
    before: list[Tensor] = []
    after: list[Tensor] = []

    def zero(tensor: Tensor, point: HookPoint) -> Tensor:
        z.append(tensor)
        out = tensor.clone()
        out[2] = 0
        return out

    name = "layers.1.attn.z"
    with decoder.hooks({"layers.1.attn.proj": lambda tensor, point: before.append(tensor)}):
        plain = run(decoder)
    with decoder.hooks({name: zero, "layers.1.attn.proj": lambda tensor, point: after.append(tensor)}) as listening:
        ablated = run(decoder)
    assert listening.altered and listening.replaced == {name}
    assert not torch.allclose(plain, ablated)
    width = decoder.config.d_head
    share = z[0][2] @ decoder.layers[1].self_attn.o_proj.weight[:, 2 * width : 3 * width].t()  # type: ignore[union-attr, index]
    torch.testing.assert_close(before[0] - after[0], share, atol=1e-5, rtol=0)
    assert torch.equal(run(decoder), plain)


def test_a_patched_residual_carries_another_prompt_over(decoder: Decoder) -> None:
    other = IDS.flip(0)
    kept: list[Tensor] = []
    cache = decoder.new_cache()
    with decoder.hooks({"layers.0.resid_post": lambda tensor, point: kept.append(tensor)}):
        theirs = decoder(other, cache, logits="all")
    with decoder.hooks({"layers.0.resid_post": lambda tensor, point: kept[0]}):
        torch.testing.assert_close(run(decoder), theirs)


@pytest.mark.parametrize("name", ["scores", "pattern"])
def test_replacing_attention_takes_the_explicit_path(decoder: Decoder, name: str) -> None:
    plain = run(decoder)
    with decoder.hooks({f"layers.*.attn.{name}": lambda tensor, point: tensor.clone()}) as listening:
        explicit = run(decoder)
    assert listening.altered
    torch.testing.assert_close(explicit, plain, atol=1e-4, rtol=0)
    to_self = torch.eye(len(IDS)).expand(6, -1, -1)
    z: list[Tensor] = []
    v: list[Tensor] = []
    with decoder.hooks(
        {
            "layers.0.attn.pattern": lambda tensor, point: to_self,
            "layers.0.attn.z": lambda tensor, point: z.append(tensor),
            "layers.0.attn.v": lambda tensor, point: v.append(tensor),
        }
    ):
        run(decoder)
    torch.testing.assert_close(z[0], v[0].repeat_interleave(3, 0))


@pytest.mark.parametrize(
    ("case", "name"),
    [("llama", f"attn.{name}") for name in ("q", "rot_k", "v", "scores", "pattern", "z", "out")]
    + [("llama", "mlp.post"), ("llama", "resid_mid"), ("mixtral", "moe.ids"), ("mixtral", "moe.router")],
)
def test_what_a_listener_writes_into_the_tensor_and_returns_is_what_another_tensor_would_be(
    case: str, name: str
) -> None:
    judge = reference(CASES[case].reference, gain=CASES[case].gain, **CASES[case].fields)
    decoder = decoder_for(judge.config, judge.tensors)

    def written(tensor: Tensor, point: HookPoint) -> Tensor:
        tensor[1:] = tensor[:1]
        return tensor

    plain = run(decoder)
    with decoder.hooks({f"layers.1.{name}": lambda tensor, point: written(tensor.clone(), point)}):
        expected = run(decoder)
    with decoder.hooks({f"layers.1.{name}": written}) as listening:
        torch.testing.assert_close(run(decoder), expected, atol=1e-5, rtol=0)
    assert listening.altered and not torch.allclose(plain, expected, atol=1e-3)


def test_a_replacement_of_another_shape_or_kind_is_refused(decoder: Decoder) -> None:
    wrong: list[Any] = [torch.zeros(1), 3]
    for says in (r"torch.float32 tensor of shape \(1,\)", "a int"):
        with (
            pytest.raises(BadReplacementError, match=rf"replacement for layers.0.resid_pre is .*{says}.*; expected a"),
            decoder.hooks({"layers.0.resid_pre": lambda tensor, point: wrong[0]}),
        ):
            run(decoder)
        wrong.pop(0)
    assert not any(point.listeners for point in decoder.hook_points.values())


def test_an_error_in_a_listener_leaves_cache_and_hooks_as_they_were(decoder: Decoder) -> None:
    cache = decoder.new_cache()
    decoder(IDS, cache)
    expected = decoder(torch.tensor([7]), cache).clone()
    cache.truncate(len(IDS))

    def fail(tensor: Tensor, point: HookPoint) -> None:
        raise RuntimeError(point.name)

    with pytest.raises(RuntimeError, match=r"layers\.1\.mlp\.post"), decoder.hooks({"layers.1.mlp.post": fail}):
        decoder(torch.tensor([8, 9]), cache)
    assert cache.length == len(IDS)
    assert not any(point.listeners for point in decoder.hook_points.values())
    assert torch.equal(decoder(torch.tensor([7]), cache), expected)


def test_blocks_nest_and_see_each_others_replacements(decoder: Decoder) -> None:
    seen: list[Tensor] = []
    double = {"embed": lambda tensor, point: tensor * 2}
    with decoder.hooks(double), decoder.hooks({"embed": lambda tensor, point: seen.append(tensor)}) as inner:
        run(decoder)
    torch.testing.assert_close(seen[0], decoder.embed_tokens(IDS) * 2)
    assert not inner.altered


def test_routing_can_be_forced() -> None:
    case = CASES["mixtral"]
    judge = reference(case.reference, gain=case.gain, **case.fields)
    decoder = decoder_for(judge.config, judge.tensors)
    ids: dict[str, Tensor] = {}
    weights: dict[str, Tensor] = {}
    listeners = {
        "layers.*.moe.ids": lambda tensor, point: ids.update({point.name: tensor}),
        "layers.*.moe.weights": lambda tensor, point: weights.update({point.name: tensor}),
    }
    with decoder.hooks(listeners):
        plain = run(decoder)
    assert ids["layers.0.moe.ids"].shape == (len(IDS), 2)
    torch.testing.assert_close(weights["layers.0.moe.weights"].sum(-1), torch.ones(len(IDS)))
    with decoder.hooks({"layers.*.moe.ids": lambda tensor, point: ids[point.name]}):
        assert torch.equal(run(decoder), plain)
    with decoder.hooks({"layers.0.moe.ids": lambda tensor, point: (tensor + 1) % 5}):
        assert not torch.allclose(run(decoder), plain)
