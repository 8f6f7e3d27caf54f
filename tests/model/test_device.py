"""To a device and back, and its clock: on the CPU, on a device made of it, and on a GPU where there is one."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
import torch
from torch import Tensor

from model import device
from model.loading import LoadedModel
from model.protocol.values import SamplerSettings
from model.run import Run
from tests.model import pretend_device
from tests.model.tiny import loaded, made, random_ids, run_of

CPU = torch.device("cpu")
GREEDY = SamplerSettings(temperature=0.0)


def test_on_the_cpu_nothing_is_copied() -> None:
    tensor = torch.arange(6.0)
    assert device.to_device(tensor, CPU) is tensor
    assert device.to_host(tensor) is tensor
    assert device.kept(tensor) is tensor
    assert device.all_to_host(tensor, tensor) == (tensor, tensor)
    assert device.to_device(tensor, CPU, torch.float16).dtype == torch.float16


def test_a_stopwatch_tells_milliseconds() -> None:
    watch = device.Stopwatch(CPU)
    time.sleep(0.02)
    assert 20 <= watch.ms() < 2000


@pytest.fixture
def pinning(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """The device made of the CPU, treated as one that pins; yields the sizes of what was pinned."""
    pinned: list[int] = []

    def pin(tensor: Tensor) -> Tensor:
        pinned.append(tensor.numel())
        return tensor

    empty = torch.empty

    def empty_anywhere(*size: object, pin_memory: bool = False, **given: object) -> Tensor:
        del pin_memory
        return empty(*size, **given)  # type: ignore[call-overload, no-any-return]

    monkeypatch.setattr(torch.Tensor, "pin_memory", pin)
    monkeypatch.setattr(torch, "empty", empty_anywhere)
    monkeypatch.setattr(device, "_pins", lambda at: at.type == pretend_device.NAME)
    with pretend_device.traffic():
        yield pinned


@pytest.mark.parametrize("shape", [(), (0,), (1,), (7,), (4, 5), (3, 2, 4)])
def test_a_large_tensor_is_pinned_a_piece_at_a_time(
    shape: tuple[int, ...], pinning: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device, "PIECE_BYTES", 4 * 4)
    tensor = torch.randn(shape)
    there = device.to_device(tensor, pretend_device.device())
    assert there.shape == tensor.shape and there.device == pretend_device.device()
    assert max(pinning, default=0) <= 4 and sum(pinning) == tensor.numel()
    assert torch.equal(device.to_host(there), tensor)
    first, second = device.all_to_host(there, there + 1)
    assert torch.equal(first, tensor) and torch.equal(second, tensor + 1)


def test_a_transposed_tensor_and_another_dtype_arrive_whole(pinning: list[int]) -> None:
    tensor = torch.randn(3, 4).T
    there = device.to_device(tensor, pretend_device.device(), torch.bfloat16)
    assert torch.equal(there.cpu(), tensor.bfloat16()) and sum(pinning) == 12


def test_the_device_made_of_the_cpu_is_a_device() -> None:
    with pretend_device.traffic() as traffic:
        there = torch.zeros(2, device=pretend_device.device())
        with pytest.raises(RuntimeError, match="two devices"):
            _ = there + torch.zeros(2)
        assert float(there[0]) == 0 and traffic.waits == ["aten._local_scalar_dense.default"]
        assert there.cpu().tolist() == [0, 0] and traffic.fetched == [(2,)]
        torch.ones(3).to(there.device)
        assert traffic.sent == [(3,)]


@pytest.fixture
def on_gpu() -> Iterator[LoadedModel]:
    model = made()
    try:
        model.decoder.to("cuda")
        yield loaded(model.decoder)
    finally:
        model.decoder.to("cpu")


@pytest.mark.cuda
def test_on_a_gpu_tensors_go_and_come_back_through_pinned_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device, "PIECE_BYTES", 1 << 10)
    tensor = torch.randn(1000, 37).T
    there = device.to_device(tensor, torch.device("cuda", 0))
    assert there.is_cuda and torch.equal(there.cpu(), tensor)
    home = device.to_host(there)
    assert home.is_pinned() and torch.equal(home, tensor)
    assert not device.kept(there).is_pinned()


@pytest.mark.cuda
def test_on_a_gpu_time_is_the_devices_own() -> None:
    at = torch.device("cuda", 0)
    large = torch.randn(4096, 4096, device=at)
    device.wait(at)
    watch, begun = device.Stopwatch(at), time.perf_counter()
    for _ in range(8):
        large = large @ large
    given = (time.perf_counter() - begun) * 1e3  # the products are still under way
    assert given < watch.ms()


@pytest.mark.cuda
def test_on_a_gpu_a_step_waits_once_and_where_it_says(on_gpu: LoadedModel) -> None:
    run = run_of(on_gpu, random_ids(40))
    run.generate(2, GREEDY, stop_at_end_of_text=False)  # whatever is made once is made
    torch.cuda.set_sync_debug_mode("error")  # any operation that would wait raises; `wait` is asked for
    try:
        node = run.step(GREEDY)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert node.ms > 0 and run.length == 43


def filled(size: int) -> Iterator[Tensor]:
    """Tensors of so many numbers until the GPU has no room for one more."""
    while True:
        try:
            yield torch.empty(size, device="cuda")
        except torch.OutOfMemoryError:
            return


@pytest.mark.cuda
def test_on_a_gpu_out_of_memory_leaves_the_run_as_it_was(on_gpu: LoadedModel) -> None:
    run = Run(on_gpu, budget_bytes=1 << 50)
    run.prefill(random_ids(40))
    before = run.resid(3).clone()
    length, total = run.length, torch.cuda.mem_get_info()[1]
    torch.cuda.empty_cache()
    torch.cuda.set_per_process_memory_fraction(min(1.0, (torch.cuda.memory_reserved() + (8 << 20)) / total))
    try:
        held = [*filled(1 << 20), *filled(1 << 10), *filled(1)]  # until not one number more has room
        with pytest.raises(torch.OutOfMemoryError):
            run.step(GREEDY)
        held.clear()
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
        torch.cuda.empty_cache()
    assert run.length == length and torch.equal(run.resid(3), before)
    run.generate(3, GREEDY, stop_at_end_of_text=False)
    assert run.length == length + 3
