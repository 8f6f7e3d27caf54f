"""Weights from a checkpoint into the decoder: tensor by tensor, big ones row by row, converted on the way.

At no time is more in memory than what is loaded, one small tensor or one block of rows twice, and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

import torch
from torch import Tensor, nn

from model.checkpoint.progress import CheckCancel, Progress
from model.checkpoint.tensors import TensorSource
from model.device import to_device
from model.families.base import TensorRule
from model.layers import lay_out
from model.protocol.values import NOT_FINITE

_BLOCK_NUMBERS = 2 << 20
_STREAMED_NUMBERS = 4 * _BLOCK_NUMBERS
Put = Callable[[str, Tensor], None]
PutRows = Callable[[str, int, Tensor], None]
"""put_rows(parameter, begin, rows): rows `begin` … of a parameter, all of them or a block of a big matrix's."""


class RowSource(TensorSource, Protocol):
    """A source that can also give some rows of a tensor."""

    def read_rows(self, name: str, begin: int, end: int, check_cancel: CheckCancel) -> Tensor | None:
        """Rows of the first dimension, or None where only the whole tensor makes sense."""


@dataclass
class NonFinite:
    """How many NaN and infinities each parameter holds."""

    counts: dict[str, int] = field(default_factory=dict)

    def add(self, name: str, tensor: Tensor) -> None:
        """Counts those of `tensor`; costs one pass over it."""
        if not tensor.numel():
            return
        # In the order of memory: the reduction would copy a transposed matrix whole.
        ordered = tensor if tensor.is_contiguous() else tensor.t() if tensor.ndim == 2 else tensor.contiguous()
        low, high = ordered.aminmax()  # NaN and infinities show in the extremes
        if not bool(torch.isfinite(low) & torch.isfinite(high)):
            count = int((~torch.isfinite(tensor)).sum())
            self.counts[name] = self.counts.get(name, 0) + count

    def warnings(self) -> tuple[str, ...]:
        """One sentence, if there is anything to say."""
        if not self.counts:
            return ()
        worst = sorted(self.counts.items(), key=lambda item: -item[1])
        where = ", ".join(f"{name} ({count})" for name, count in worst[:5])
        more = f" and {len(worst) - 5} more tensors" if len(worst) > 5 else ""
        return (f"{sum(self.counts.values())} weights are {NOT_FINITE}: {where}{more}. Outputs will not make sense.",)


def fill(
    pairs: Iterable[tuple[TensorRule, str]],
    source: RowSource,
    put: Put,
    *,
    put_rows: PutRows | None = None,
    device: torch.device,
    dtype: torch.dtype,
    columns_first: Callable[[str], bool],
    progress: Progress,
    check_cancel: CheckCancel,
) -> NonFinite:
    """Reads every pair's tensor, cuts it for its parameters, converts, lays out and hands it to `put`.

    `put_rows`: takes big matrices by blocks of rows, as they are read, in place of `put`.
    `columns_first(parameter)`: whether the matrix is kept in the order one-row products read fastest (`lay_out`).
    """
    # The largest first: what is doubled for a moment is then doubled while little else is in memory.
    ordered = sorted(pairs, key=lambda pair: -source.entries[pair[1]].elements)
    total = sum(source.entries[name].nbytes for _, name in ordered)
    done, bad = 0, NonFinite()
    for rule, name in ordered:
        check_cancel()
        blocks = _blocks(rule, name, source, check_cancel)
        if blocks is not None and put_rows is not None:
            for begin, block in blocks:
                bad.add(rule.targets[0].name, block)
                put_rows(rule.targets[0].name, begin, block)
        elif blocks is not None:
            shape, first = source.entries[name].shape, columns_first(rule.targets[0].name)
            whole = _gathered(blocks, shape, device, dtype, columns_first=first)
            bad.add(rule.targets[0].name, whole)
            put(rule.targets[0].name, whole)
        else:
            tensor = source.read(name, check_cancel)
            for target in rule.targets:
                part = to_device(target.take(tensor), device, dtype)
                part = lay_out(part) if columns_first(target.name) else part.contiguous()
                bad.add(target.name, part)
                put(target.name, part)
            del tensor
        done += source.entries[name].nbytes
        progress("Reading weights", done, total, "bytes")
    return bad


def _blocks(
    rule: TensorRule, name: str, source: RowSource, check_cancel: CheckCancel
) -> Iterator[tuple[int, Tensor]] | None:
    """(first row, rows) of a big matrix that is one parameter as it is, read one after the other; else None."""
    entry = source.entries[name]
    if len(rule.targets) != 1 or len(entry.shape) != 2 or entry.elements < _STREAMED_NUMBERS:
        return None
    ghost = torch.empty(entry.shape, device="meta")
    if rule.targets[0].take(ghost) is not ghost:
        return None
    rows, columns = entry.shape
    step = max(1, _BLOCK_NUMBERS // columns)
    first = source.read_rows(name, 0, min(step, rows), check_cancel)
    if first is None:
        return None

    def all_of_them() -> Iterator[tuple[int, Tensor]]:
        yield 0, first
        for begin in range(step, rows, step):
            block = source.read_rows(name, begin, min(begin + step, rows), check_cancel)
            assert block is not None
            yield begin, block

    return all_of_them()


def _gathered(
    blocks: Iterable[tuple[int, Tensor]],
    shape: tuple[int, ...],
    device: torch.device,
    dtype: torch.dtype,
    *,
    columns_first: bool,
) -> Tensor:
    """Blocks of rows, each converted into its final place."""
    order = lay_out(torch.empty((2, 2), device=device, dtype=dtype)) if columns_first else None
    transposed = order is not None and order.stride(0) == 1
    final = torch.empty(shape[::-1] if transposed else shape, device=device, dtype=dtype)
    whole = final.t() if transposed else final
    for begin, block in blocks:
        whole[begin : begin + len(block)] = to_device(block, device)
    return whole


def putter(decoder: nn.Module) -> Put:
    """Sets a parameter of `decoder` by its name; the tensor becomes the parameter, without a copy."""

    def put(name: str, tensor: Tensor) -> None:
        module_name, _, parameter = name.rpartition(".")
        module = decoder.get_submodule(module_name)
        expected = getattr(module, parameter).shape
        if expected != tensor.shape:
            raise AssertionError(f"{name}: the rule gives {tuple(tensor.shape)}, the decoder has {tuple(expected)}")
        setattr(module, parameter, nn.Parameter(tensor, requires_grad=False))

    return put


def require_whole(decoder: nn.Module) -> None:
    """Every parameter has memory: the family's rules named them all."""
    empty = [name for name, parameter in decoder.named_parameters() if parameter.is_meta]
    if empty:
        raise AssertionError(f"the family's rules leave parameters without weights: {', '.join(empty[:5])}")
