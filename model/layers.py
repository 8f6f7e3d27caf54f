"""The layers attention and experts are built from: linear maps, norms, activations, the feed-forward."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, partial
from math import gcd
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F  # noqa: N812 (torch's own spelling)
from torch import Tensor, nn

from model.hooks import HookPoint

if TYPE_CHECKING:
    from model.config import DecoderConfig

ROWS = 64
"""Of how many rows, or a whole number of times as many, oneDNN is asked."""
ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "silu": F.silu,
    "gelu": F.gelu,
    "gelu_tanh": partial(F.gelu, approximate="tanh"),
    "relu": F.relu,
    "relu_squared": lambda x: F.relu(x).square(),
}


def parameter(*shape: int) -> nn.Parameter:
    """A parameter without memory: weights are assigned when a checkpoint is read, never initialised."""
    return nn.Parameter(torch.empty(shape, device="meta"), requires_grad=False)


class Linear(nn.Module):
    """x (T, in) → (T, out). `weight` is (out, in) as in Hugging Face checkpoints, in any memory order (`lay_out`)."""

    def __init__(self, d_in: int, d_out: int, *, bias: bool) -> None:
        super().__init__()
        self.weight = parameter(d_out, d_in)
        self.bias = parameter(d_out) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        """(T, in) → (T, out)."""
        return project(x, self.weight, self.bias)


class Joined:
    """Linear maps of one input, multiplied as one where their weights lie side by side in memory.

    Reading one long row of weights is faster than several short ones, and needs its threads to meet once. After
    `join` the maps' own parameters are views of the joint ones. A map that has been given another weight since, or
    that somebody listens to, is multiplied on its own.
    """

    def __init__(self, *linears: Linear) -> None:
        self.linears = linears
        self.weight: Tensor | None = None
        self.bias: Tensor | None = None
        self.widths: list[int] = []
        self.places: list[tuple[int, int]] = []

    def join(self) -> None:
        """Copy the weights side by side, unless they are so already. On a CPU; elsewhere there is little to gain."""
        weights: tuple[Tensor, ...] = tuple(linear.weight for linear in self.linears)
        if weights[0].device.type != "cpu":
            return
        columns_first = weights[0].stride(0) == 1
        joint = _side_by_side(weights) if columns_first else None
        if joint is None:
            joint = torch.cat([part.t() for part in weights], 1).t() if columns_first else torch.cat(weights)
        self.weight = joint
        self.widths = [part.shape[0] for part in weights]
        for linear, part in zip(self.linears, torch.split(self.weight, self.widths), strict=True):
            linear.weight = nn.Parameter(part, requires_grad=False)
        biases = tuple(linear.bias for linear in self.linears if linear.bias is not None)
        self.bias = torch.cat(biases) if biases else None
        if self.bias is not None:
            for linear, part in zip(self.linears, torch.split(self.bias, self.widths), strict=True):
                linear.bias = nn.Parameter(part, requires_grad=False)
        self.places = [_place(linear) for linear in self.linears]

    def __call__(self, x: Tensor) -> tuple[Tensor, ...]:
        """(T, in) → (T, out) of every map."""
        if self.weight is None or not self._is_whole():
            return tuple(linear(x) for linear in self.linears)
        return torch.split(project(x, self.weight, self.bias), self.widths, -1)

    def _is_whole(self) -> bool:
        for linear, place in zip(self.linears, self.places, strict=True):
            if _place(linear) != place or linear._forward_hooks:
                return False
        return True


def _side_by_side(weights: Sequence[Tensor]) -> Tensor | None:
    """The matrix (out, in), columns first, whose rows the weights are as views of one memory, if they are."""
    first, total = weights[0], sum(part.shape[0] for part in weights)
    place = first.data_ptr()
    for part in weights:
        shared = part.untyped_storage().data_ptr() == first.untyped_storage().data_ptr()
        if not shared or part.data_ptr() != place or part.stride() != (1, total):
            return None
        place += part.shape[0] * part.itemsize
    return first.as_strided((total, first.shape[1]), (1, total), first.storage_offset())


def _place(linear: Linear) -> tuple[int, int]:
    return linear.weight.data_ptr(), 0 if linear.bias is None else linear.bias.data_ptr()


def project(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x (T, in) times weight (out, in) transposed, plus bias: (T, out).

    Decoding one token is bound by reading the weights, and libraries run one-row products on one core. In float32 on
    a CPU with the memory order of `lay_out`, the product is split along `in` so that every thread reads a part. Half
    precision on a CPU without such arithmetic multiplies matrices in float32. Whole blocks of rows are multiplied by
    the faster of two libraries.
    """
    if weight.device.type != "cpu":
        return F.linear(x, weight, bias)
    if x.shape[0] == 1:
        if weight.dtype == torch.float32 and weight.stride(0) == 1:
            return _split_row(x, weight, bias)
    elif not multiplies_natively(weight.dtype):
        wide_bias = None if bias is None else bias.float()
        return F.linear(x.float(), weight.float(), wide_bias).to(x.dtype)
    elif weight.dtype == torch.float32 and x.shape[0] and x.shape[0] % ROWS == 0 and onednn_is_faster():
        product: Tensor = torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], "")
        return product
    return F.linear(x, weight, bias)


@cache
def onednn_is_faster() -> bool:
    """Whether oneDNN multiplies float32 faster than torch's own library: by a tenth on AMD processors with AVX-512,
    which that one does not use there. Each number of rows takes it half a millisecond once, so it gets few: `ROWS`."""
    known: dict[str, bool] = getattr(torch.cpu, "get_capabilities", dict)()
    is_such = known.get("sse4a", False) and known.get("avx512_f", False)  # the first is AMD's alone
    has: bool = torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
    return is_such and has and hasattr(torch.ops.mkldnn, "_linear_pointwise")


def _split_row(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    d_out, d_in = weight.shape
    parts = gcd(d_in, torch.get_num_threads())
    if parts == 1:
        row = x @ weight.t()  # (1, out)
    else:
        split = weight.t().view(parts, d_in // parts, d_out)
        row = torch.bmm(x.view(parts, 1, d_in // parts), split).sum(0)  # (1, out)
    return row if bias is None else row + bias


def lay_out(weight: Tensor) -> Tensor:
    """The same matrix in the memory order that `project` reads fastest: for float32 on a CPU, columns first."""
    if weight.ndim != 2 or weight.device.type != "cpu" or weight.dtype != torch.float32:
        return weight.contiguous()
    return weight if weight.stride(0) == 1 else weight.t().contiguous().t()


@cache
def multiplies_natively(dtype: torch.dtype) -> bool:
    """Whether this CPU has matrix products in `dtype`; without them torch's are ten times slower than float32."""
    if dtype == torch.float32:
        return True
    wanted = {torch.bfloat16: ("avx512_bf16", "amx_bf16"), torch.float16: ("avx512_fp16", "amx_fp16")}[dtype]
    known: dict[str, bool] = getattr(torch.cpu, "get_capabilities", dict)()  # absent in older torch
    return any(known.get(name, False) for name in wanted)


@contextmanager
def row_kernels(x_rows: int, weight: Tensor) -> Iterator[None]:
    """For one bfloat16 row on a CPU, torch's own product reads weights several times faster than oneDNN's."""
    if x_rows != 1 or weight.device.type != "cpu" or weight.dtype != torch.bfloat16:
        yield
        return
    before: bool = torch.backends.mkldnn.enabled  # type: ignore[assignment]  # a property, typed as its descriptor
    torch.backends.mkldnn.enabled = False  # type: ignore[assignment]
    try:
        yield
    finally:
        torch.backends.mkldnn.enabled = before  # type: ignore[assignment]


class Norm(nn.Module):
    """RMSNorm (Zhang & Sennrich 2019, arXiv:1910.07467) or LayerNorm over the last `size` numbers, in float32."""

    def __init__(self, config: DecoderConfig, size: int) -> None:
        super().__init__()
        self.eps = config.norm_eps
        self.size = (size,)
        self.is_rms = config.norm == "rms"
        self.unit_offset = config.norm_unit_offset
        self.weight = parameter(size)
        self.bias = None if self.is_rms else parameter(size)

    def forward(self, x: Tensor) -> Tensor:
        """(…, size) → (…, size)."""
        if not self.is_rms:
            return F.layer_norm(x, self.size, self.weight, self.bias, self.eps)
        wide, weight = x.float(), self.weight.float()  # no copies in float32
        if self.unit_offset:
            weight = weight + 1
        if x.device.type != "cpu":
            return F.rms_norm(wide, self.size, weight, self.eps).to(x.dtype)
        # half the passes over memory of torch's own on a CPU
        mean_square: Tensor = torch.linalg.vector_norm(wide, dim=-1, keepdim=True).square_().mul_(1 / self.size[0])
        return (wide * mean_square.add_(self.eps).rsqrt_()).mul_(weight).to(x.dtype)


class Mlp(nn.Module):
    """The feed-forward: down(act(gate(x)) · up(x)) where gated (arXiv:2002.05202), else down(act(up(x)))."""

    def __init__(self, config: DecoderConfig, layer: int) -> None:
        super().__init__()
        self.act = ACTIVATIONS[config.activation]
        bias = config.mlp_bias
        self.gate_proj = Linear(config.d_model, config.d_mlp, bias=bias) if config.gated_mlp else None
        self.up_proj = Linear(config.d_model, config.d_mlp, bias=bias)
        self.down_proj = Linear(config.d_mlp, config.d_model, bias=bias)
        self.gate_up = Joined(self.gate_proj, self.up_proj) if self.gate_proj is not None else None
        name = f"layers.{layer}.mlp"
        self.hook_pre = HookPoint(f"{name}.pre", "(T, F)")
        if config.gated_mlp:
            self.hook_up = HookPoint(f"{name}.up", "(T, F)")
        self.hook_post = HookPoint(f"{name}.post", "(T, F)")

    def forward(self, x: Tensor) -> Tensor:
        """(T, M) → (T, M)."""
        if self.gate_up is None:
            post = self.act(self.hook_pre(self.up_proj(x)))  # (T, F)
        else:
            gate, up = self.gate_up(x)  # (T, F) twice
            post = self.act(self.hook_pre(gate)).mul_(self.hook_up(up))  # (T, F)
        down: Tensor = self.down_proj(self.hook_post(post))  # (T, M)
        return down
