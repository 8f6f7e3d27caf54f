"""Products in every memory order and precision, and norms, against float64."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from model import layers
from model.attention import Span, attend
from model.attention_spec import alibi_slopes
from model.layers import Joined, Linear, Norm, lay_out, project, row_kernels
from tests.model.test_attention import draw, spec
from tests.model.test_kv_cache import CONFIG

# rounding of inputs of size 1, and of the result, in each type
CLOSE = {torch.float32: 1e-4, torch.bfloat16: 0.3, torch.float16: 0.04}


@pytest.fixture(params=[1, 2, 3])
def threads(request: pytest.FixtureRequest) -> Iterator[int]:
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


@pytest.mark.parametrize("dtype", CLOSE)
@pytest.mark.parametrize("rows", [1, 2, 9])
@pytest.mark.parametrize("shape", [(20, 48), (7, 30), (64, 1), (1, 31)])
@pytest.mark.parametrize("bias", [True, False])
def test_products(threads: int, dtype: torch.dtype, rows: int, shape: tuple[int, int], *, bias: bool) -> None:
    torch.manual_seed(0)
    x, weight = torch.randn(rows, shape[1]).to(dtype), torch.randn(shape).to(dtype)
    extra = torch.randn(shape[0]).to(dtype) if bias else None
    expected = x.double() @ weight.double().t() + (0 if extra is None else extra.double())
    for order in (weight.contiguous(), lay_out(weight), weight.t().contiguous().t()):
        with row_kernels(rows, order):
            got = project(x, order, extra)
        assert got.dtype == dtype
        torch.testing.assert_close(got.double(), expected, atol=CLOSE[dtype], rtol=0)


@pytest.mark.skipif(not hasattr(torch.ops.mkldnn, "_linear_pointwise"), reason="this torch has no such product")
@pytest.mark.parametrize("rows", [0, 1, 63, 64, 65, 192])
@pytest.mark.parametrize("bias", [False, True])
def test_whole_blocks_of_rows_have_the_same_products_in_the_other_library(
    monkeypatch: pytest.MonkeyPatch, rows: int, *, bias: bool
) -> None:
    asked: list[int] = []
    monkeypatch.setattr(layers, "onednn_is_faster", lambda: asked.append(rows) is None)  # type: ignore[func-returns-value]
    torch.manual_seed(0)
    x, weight = torch.randn(rows, 2 * 48)[:, ::2], torch.randn(80, 48)  # not side by side in memory
    extra = torch.randn(80) if bias else None
    wanted = x.double() @ weight.double().t() + (0 if extra is None else extra.double())
    for order in (weight, lay_out(weight)):
        torch.testing.assert_close(project(x, order, extra).double(), wanted, atol=1e-4, rtol=0)
    assert bool(asked) == (rows in {64, 192})


def test_half_precision_matrices_multiply_in_float32_where_the_cpu_lacks_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layers, "multiplies_natively", lambda dtype: dtype == torch.float32)
    x, weight = torch.randn(5, 32).bfloat16(), torch.randn(8, 32).bfloat16()
    assert torch.equal(project(x, weight), (x.float() @ weight.float().t()).bfloat16())


def test_the_layout_changes_memory_and_no_value() -> None:
    weight = torch.randn(5, 3)
    for tensor in (weight, weight.bfloat16(), weight[0]):
        assert torch.equal(lay_out(tensor), tensor)
    assert lay_out(weight).stride() == (1, 5)
    assert lay_out(weight.bfloat16()).is_contiguous()


def linear(weight: Tensor) -> Linear:
    made = Linear(weight.shape[1], weight.shape[0], bias=False)
    made.load_state_dict({"weight": weight}, assign=True)
    return made


def test_weights_that_lie_side_by_side_are_joined_without_a_copy() -> None:
    memory = torch.randn(6, 5 + 3)  # columns first: (in, out of both)
    first, second = (linear(part.t()) for part in torch.split(memory, [5, 3], 1))
    joined = Joined(first, second)
    joined.join()
    assert joined.weight is not None and joined.weight.data_ptr() == memory.data_ptr()
    assert torch.equal(joined.weight, memory.t())
    x = torch.randn(1, 6)
    torch.testing.assert_close(torch.cat(joined(x), 1), x @ memory)
    for apart in ([second, first], [linear(first.weight.clone()), second], [linear(torch.randn(2, 6)), second]):
        other = Joined(*apart)
        expected = torch.cat([part.weight for part in apart])
        other.join()
        assert other.weight is not None and torch.equal(other.weight, expected)


def test_one_row_kernels_are_put_back() -> None:
    def is_on() -> bool:
        return torch._C._get_mkldnn_enabled()

    def fail() -> None:
        with row_kernels(1, weight):
            assert not is_on()
            raise RuntimeError("stop")

    weight = torch.randn(4, 4).bfloat16()
    before = is_on()
    with pytest.raises(RuntimeError, match="stop"):
        fail()
    assert is_on() == before
    with row_kernels(2, weight), row_kernels(1, weight.float()):
        assert is_on() == before


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("offset", [True, False])
@pytest.mark.parametrize("kind", ["rms", "layer"])
def test_norms(dtype: torch.dtype, kind: str, *, offset: bool) -> None:
    torch.manual_seed(0)
    config = replace(CONFIG, norm=kind, norm_unit_offset=offset, norm_eps=1e-2)  # type: ignore[arg-type]
    norm = Norm(config, 24)
    weight, bias = torch.randn(2, 24).to(dtype)
    state = {"weight": weight} | ({"bias": bias} if kind == "layer" else {})
    norm.load_state_dict(state, assign=True)
    x = (torch.randn(7, 24) * 3 + 1).to(dtype)
    wide = x.double()
    if kind == "layer":
        centred = wide - wide.mean(-1, keepdim=True)
        expected = centred / (centred.square().mean(-1, keepdim=True) + 1e-2).sqrt() * weight.double() + bias.double()
    else:
        scale = weight.double() + (1 if offset else 0)
        expected = wide / (wide.square().mean(-1, keepdim=True) + 1e-2).sqrt() * scale
    got: Tensor = norm(x)
    assert got.dtype == dtype
    # bfloat16 keeps 8 bits: half a unit in the last place of values up to 8
    torch.testing.assert_close(got.double(), expected, atol=1e-5 if dtype == torch.float32 else 2e-2, rtol=0)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("length", [1, 6])
def test_far_alibi_positions_keep_their_digits_in_half_precision(dtype: torch.dtype, length: int) -> None:
    chosen = spec(slopes=alibi_slopes(6))
    start = 3000
    q, k, v = (tensor.to(dtype) for tensor in draw(chosen, length, start + length))
    span = Span(start=start, length=length, rope_length=0, device=q.device)
    exact = attend(chosen, q.float(), k.float(), v.float(), span)
    assert (attend(chosen, q, k, v, span).float() - exact).abs().max() < 0.05
