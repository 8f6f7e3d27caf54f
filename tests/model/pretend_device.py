"""A device that is not the CPU, made of it: tensors on it hold real numbers that torch may not touch from elsewhere.

An operation that mixes it with the CPU fails as it would on a GPU, what is copied to and fro is counted, and so is
every value read in Python, for which a GPU would be waited for. It cannot show kernels, streams, events, pinned memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any, Self

import torch
from torch import Tensor, nn
from torch._ops import OpOverload
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

NAME = "pretend"
aten = torch.ops.aten
COPIES = {aten._to_copy.default, aten.copy_.default}
WAITS = {aten._local_scalar_dense.default, aten.nonzero.default, aten.masked_select.default, aten.equal.default}
"""Operations after which the host knows something only the device knew."""


@cache
def device() -> torch.device:
    """The device, known to torch from the first call on."""
    _setup_privateuseone_for_python_backend(NAME)
    return torch.device(NAME, 0)


class PretendTensor(torch.Tensor):
    """`held`, a tensor on the CPU, under another device's name."""

    held: Tensor

    @staticmethod
    def __new__(cls: type[Self], held: Tensor) -> Self:
        made: Self = torch.Tensor._make_wrapper_subclass(
            cls,
            held.size(),
            strides=held.stride(),
            storage_offset=held.storage_offset(),
            dtype=held.dtype,
            device=device(),
        )
        made.held = held
        return made

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, func: OpOverload, types: Sequence[type], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        del types
        return run(func, args, kwargs or {}, Traffic())


class Traffic(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """What goes between the device and the host within a `with` block: shapes copied to it and from it, and the
    operations that would have waited for it."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.sent: list[tuple[int, ...]] = []
        self.fetched: list[tuple[int, ...]] = []
        self.waits: list[str] = []

    def clear(self) -> None:
        """Counts from here on."""
        self.sent, self.fetched, self.waits = [], [], []

    def __torch_dispatch__(
        self, func: OpOverload, types: Sequence[type], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        del types
        return run(func, args, kwargs or {}, self)


def run(func: OpOverload, args: Sequence[Any], kwargs: Mapping[str, Any], traffic: Traffic) -> Any:
    """`func` on what the tensors hold; raises RuntimeError where two devices meet."""
    tensors = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
    there = [tensor for tensor in tensors if isinstance(tensor, PretendTensor)]
    here = [tensor for tensor in tensors if not isinstance(tensor, PretendTensor) and tensor.dim() > 0]
    wanted = kwargs.get("device")
    made_there = bool(there) if wanted is None else torch.device(wanted).type == NAME
    if func in COPIES:
        source, target = _ends(func, args, made_there=made_there)
        if source != target:
            (traffic.sent if target else traffic.fetched).append(tuple(tensors[-1].shape))
        made_there = target
    elif there and here:
        raise RuntimeError(f"{func} was given tensors on two devices")
    elif func in WAITS and there:
        traffic.waits.append(str(func))
    wrappers = {id(tensor.held): tensor for tensor in there}
    inner_args, inner_kwargs = tree_map(_held, (tuple(args), dict(kwargs)))
    if "device" in inner_kwargs and made_there:
        inner_kwargs["device"] = torch.device("cpu")
    out = func(*inner_args, **inner_kwargs)
    return tree_map(lambda leaf: _wrapped(leaf, wrappers) if made_there and isinstance(leaf, Tensor) else leaf, out)


def _ends(func: OpOverload, args: Sequence[Any], *, made_there: bool) -> tuple[bool, bool]:
    if func is aten.copy_.default:
        return isinstance(args[1], PretendTensor), isinstance(args[0], PretendTensor)
    return isinstance(args[0], PretendTensor), made_there


def _held(leaf: Any) -> Any:
    return leaf.held if isinstance(leaf, PretendTensor) else leaf


def _wrapped(tensor: Tensor, wrappers: Mapping[int, PretendTensor]) -> PretendTensor:
    known = wrappers.get(id(tensor))
    return PretendTensor(tensor) if known is None else known


def move(module: nn.Module) -> None:
    """Puts a module's parameters and buffers on the device."""
    for part in module.modules():
        for name, parameter in list(part._parameters.items()):
            if parameter is not None:
                part._parameters[name] = PretendTensor(parameter.detach())  # type: ignore[assignment]
        for name, buffer in list(part._buffers.items()):
            if buffer is not None:
                part._buffers[name] = PretendTensor(buffer)


@contextmanager
def traffic() -> Iterator[Traffic]:
    """Within it, tensors can be made on the device; yields what goes to and fro."""
    device()
    with _no_inference_tensors(), Traffic() as counted:
        yield counted


@contextmanager
def _no_inference_tensors() -> Iterator[None]:
    # Tensors of a class of one's own cannot be inference tensors: without gradients is as near as can be.
    mode = torch.inference_mode
    enter, leave = mode.__enter__, mode.__exit__

    def begin(self: torch.inference_mode) -> None:
        self.before = torch.is_grad_enabled()  # type: ignore[attr-defined]
        torch.set_grad_enabled(False)

    def end(self: torch.inference_mode, *_: object) -> None:
        torch.set_grad_enabled(self.before)  # type: ignore[attr-defined]

    mode.__enter__, mode.__exit__ = begin, end  # type: ignore[method-assign]
    try:
        yield
    finally:
        mode.__enter__, mode.__exit__ = enter, leave  # type: ignore[method-assign]
