"""torch and Triton with two devices on the virtual machine: what is done on the two is compared as that of two streams is (R-RK6)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from planted import plant

import consan
from consan.adapters.triton import torch_device, torch_operations

triton = pytest.importorskip("triton", reason="Triton is not installed")
torch = pytest.importorskip("torch", reason="torch is not installed")
import triton_kernels as kernels  # noqa: E402 - needs Triton

pytestmark = pytest.mark.filterwarnings("ignore:TRITON_DEFAULT_FP_FUSION")
SIZE = 256


class Program:
    """A tensor on each device, and a second stream of each."""

    def __init__(self) -> None:
        self.tensors = [torch.zeros(SIZE, device=f"cuda:{device}") for device in (0, 1)]
        self.streams = [torch.cuda.Stream(device=device) for device in (0, 1)]
        for device in (0, 1):
            torch.cuda.synchronize(device)

    def fill(self, device: int, of: int, *, side: bool = False) -> None:
        """A kernel on a device writes the tensor of a device."""
        x = self.tensors[of]
        with torch.cuda.device(device), torch.cuda.stream(self.streams[device] if side else None):
            kernels.add[(1,)](x, x, x, SIZE, BLOCK=SIZE)


def apart(p: Program) -> None:
    for device in (0, 1, 0, 1):
        assert torch.cuda.current_device() == 0
        p.fill(device, device)


def race(p: Program) -> None:
    p.fill(0, 0)
    p.fill(1, 0)


def by_event(p: Program) -> None:
    p.fill(0, 0, side=True)
    p.streams[1].wait_event(p.streams[0].record_event())
    p.fill(1, 0, side=True)


def by_host(p: Program) -> None:
    p.fill(0, 0)
    torch.cuda.synchronize(0)
    p.fill(1, 0)


def by_host_of_the_other(p: Program) -> None:
    p.fill(0, 0)
    torch.cuda.synchronize(1)
    p.fill(1, 0)


def set_device(p: Program) -> None:
    x = p.tensors[0]
    for device in (0, 1):
        torch.cuda.set_device(device)
        kernels.add[(1,)](x, x, x, SIZE, BLOCK=SIZE)
    torch.cuda.set_device(0)


def copied(p: Program) -> None:
    """The default streams of both devices wait for a copy from the one to the other, and the copy for them."""
    p.fill(0, 0)
    p.fill(1, 1)
    p.tensors[1].copy_(p.tensors[0])
    p.fill(1, 1)
    p.fill(0, 0)


def copied_to_new(p: Program) -> None:
    p.fill(0, 0)
    p.tensors[1] = p.tensors[0].to("cuda:1")
    assert p.tensors[1].data_ptr() != p.tensors[0].data_ptr()
    p.fill(1, 1)
    p.fill(0, 0)


def copied_beside_a_stream(p: Program) -> None:
    p.tensors[1].copy_(p.tensors[0])
    p.fill(1, 1, side=True)


def read_back(p: Program) -> None:
    """The host waits for the stream of the device that it reads from."""
    p.fill(1, 1)
    assert p.tensors[1].sum().item() == 0
    p.fill(0, 1)


def on_its_device(p: Program) -> None:
    """An operation is on the device of its tensors, whichever is the current one."""
    p.fill(1, 1)
    p.tensors[1].add_(1)
    p.fill(1, 1)


PROGRAMS: dict[Callable[[Program], None], set[str]] = {
    **{key: set() for key in (apart, by_event, by_host, copied, copied_to_new, read_back, on_its_device)},
    **{key: {"no-device-edge"} for key in (race, by_host_of_the_other, set_device, copied_beside_a_stream)},
}


def ran(program: Callable[[Program], None], gpus: int = 2) -> Any:
    with consan.check(device="cpu", gpus=gpus, seed=0) as live:
        program(Program())
    return live.report if hasattr(live, "report") else live


@pytest.mark.parametrize("program", PROGRAMS)
def test_launches_of_two_devices(program: Callable[[Program], None]) -> None:
    report = ran(program)
    assert {str(finding.situation) for finding in report.findings} == PROGRAMS[program], report.findings
    assert report.verdict == ("violations" if PROGRAMS[program] else "clean"), report.incomplete


def test_devices_that_there_are_not() -> None:
    assert "which are one on the virtual machine" in ran(apart, gpus=1).incomplete[0]


FAULTS: dict[str, tuple[Any, str, str, str, Callable[[Program], None]]] = {
    "a block": (torch_device, "_on", "places.use(driver.now.place_of(device)) if named else", "", race),
    "set_device": (torch_device, "_set_device", "driver.session.streams.places.use(driver.now.place_of(device))", "pass", set_device),
    "the device that is waited for": (torch_device, "_synchronize", "_on(driver, device) if crew is None else", "", by_host_of_the_other),
    "a copy waits": (torch_operations, "TorchOperations._tell", "stream.wait(each)", "pass", copied),
    "a copy is waited for": (torch_operations, "TorchOperations._tell", "            each.wait(stream)", "            pass", copied),
    "a copy is one": (torch_operations, "TorchOperations.done", "result = result.clone()\n", "pass\n", copied_to_new),
    "who is read": (torch_operations, "TorchOperations.done", "streams.host_waits(self.now.get(source))", "pass", read_back),
    "the device of an operation": (torch_operations, "TorchOperations.done", "source if asked is None else asked", "0", on_its_device),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module, where, old, new, program = FAULTS[fault]
    plant(monkeypatch, module, old, new, where)
    with pytest.raises(AssertionError):
        test_launches_of_two_devices(program)
