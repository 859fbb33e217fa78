"""CuPy's stand-in with two devices: what is done on the two is compared as that of two streams is (R-RK6)."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import pytest
from planted import plant

import consan
from consan.adapters.standin import context, device
from consan.reports.model import Report

SOURCE = """
__device__ int total;
extern "C" __global__ void fill(float *y) { y[threadIdx.x] = 2.0f; }
extern "C" __global__ void take(const float *y, float *z) { z[threadIdx.x] = y[threadIdx.x] + 1.0f; }
extern "C" __global__ void add() { if (threadIdx.x == 0) total += 1; }
"""
BETWEEN = "no-device-edge"


class Program:
    """Arrays x on device 0, y on device 1, and a stream of each."""

    def __init__(self) -> None:
        self.cp: Any = importlib.import_module("cupy")
        self.module = self.cp.RawModule(code=SOURCE)
        self.streams, self.arrays, self.results = list[Any](), list[Any](), list[Any]()
        for number in range(2):
            with self.on(number):
                self.streams.append(self.cp.cuda.Stream(non_blocking=True))
                self.arrays.append(self.cp.zeros(32, "f4"))
                self.results.append(self.cp.zeros(32, "f4"))
                self.cp.cuda.runtime.deviceSynchronize()

    def on(self, number: int) -> Any:
        return self.cp.cuda.Device(number)

    def run(self, name: str, number: int, *args: Any, stream: bool = True) -> None:
        with self.on(number):
            self.module.get_function(name)((1,), (32,), args, stream=self.streams[number] if stream else None)

    def fill(self, number: int, of: int, **how: Any) -> None:
        self.run("fill", number, self.arrays[of], **how)

    def take(self, number: int, of: int, **how: Any) -> None:
        self.run("take", number, self.arrays[of], self.results[number], **how)

    def wait(self, number: int) -> None:
        """The stream of a device waits for that of the other one."""
        with self.on(1 - number):
            event = self.streams[1 - number].record()
        self.streams[number].wait_event(event)


def race(p: Program) -> None:
    p.fill(0, 0)
    p.take(1, 0)


def event(p: Program) -> None:
    p.fill(0, 0)
    p.wait(1)
    p.take(1, 0)


def event_too_early(p: Program) -> None:
    p.wait(1)
    p.fill(0, 0)
    p.take(1, 0)


def host_waits(p: Program) -> None:
    p.fill(0, 0)
    p.on(0).synchronize()
    p.take(1, 0)


def host_waits_for_the_other(p: Program) -> None:
    p.fill(0, 0)
    p.on(1).synchronize()
    p.take(1, 0)


def default_streams(p: Program) -> None:
    p.fill(0, 0, stream=False)
    p.take(1, 0, stream=False)


def default_streams_and_a_wait(p: Program) -> None:
    p.fill(0, 0, stream=False)
    with p.on(0):
        p.cp.cuda.get_current_stream().synchronize()
    p.take(1, 0, stream=False)


def own_memory(p: Program) -> None:
    p.fill(0, 0)
    p.fill(1, 1)


def behind_blocks(p: Program) -> None:
    """The current device is the first one again."""
    p.fill(0, 0, stream=False)
    p.fill(1, 1, stream=False)
    p.arrays[0] + 1


def variables(p: Program) -> None:
    p.run("add", 0)
    p.run("add", 1)


def copy_to_the_other_device(p: Program) -> None:
    p.fill(0, 0)
    with p.on(1), p.streams[1]:
        p.cp.asarray(p.arrays[0])


def copy_behind_an_event(p: Program) -> None:
    p.fill(0, 0)
    p.wait(1)
    with p.on(1), p.streams[1]:
        copy = p.cp.asarray(p.arrays[0])
        assert copy is not p.arrays[0]
        assert (copy.device.id, p.arrays[0].device.id) == (1, 0)


def peer_copy_in_a_stream(p: Program) -> None:
    nbytes = p.arrays[0].nbytes
    p.cp.cuda.runtime.memcpyPeerAsync(p.arrays[1].data.ptr, 1, p.arrays[0].data.ptr, 0, nbytes, p.streams[0].ptr)
    p.fill(1, 1)


def peer_copy(p: Program) -> None:
    p.fill(0, 0)
    p.cp.cuda.runtime.memcpyPeer(p.arrays[1].data.ptr, 1, p.arrays[0].data.ptr, 0, p.arrays[0].nbytes)
    p.take(1, 1)


def read_by_the_host(p: Program) -> None:
    p.fill(1, 0)
    p.arrays[0].get()


def read_behind_a_wait(p: Program) -> None:
    p.fill(1, 0)
    p.streams[1].synchronize()
    p.arrays[0].get()


def operation_on_the_other_device(p: Program) -> None:
    p.fill(0, 0)
    with p.on(1):
        p.arrays[0] + 1


RIGHT = (
    event,
    behind_blocks,
    host_waits,
    default_streams_and_a_wait,
    own_memory,
    variables,
    copy_behind_an_event,
    peer_copy,
    read_behind_a_wait,
)
RACY = (race, event_too_early, host_waits_for_the_other, default_streams, copy_to_the_other_device, peer_copy_in_a_stream,
        read_by_the_host, operation_on_the_other_device)  # fmt: skip


def ran(program: Callable[[Program], None], gpus: int = 2) -> Report:
    with consan.check(device="cpu", gpus=gpus, seed=0) as live:
        p = Program()
        program(p)
        if program is not variables:
            p.run("add", 0)
    return live.report


@pytest.mark.parametrize(("program", "right"), [*((each, True) for each in RIGHT), *((each, False) for each in RACY)])
def test_two_devices(program: Callable[[Program], None], *, right: bool) -> None:
    report = ran(program)
    assert {each.situation for each in report.findings} == (set() if right else {BETWEEN}), str(report)
    assert report.verdict == ("clean" if right else "violations"), str(report)


@pytest.mark.parametrize(
    ("module", "old", "new", "program"),
    [
        (device, "places().use(self._outside.pop())", "self._outside.pop()", behind_blocks),
        (device, "with self:", "if self:", host_waits_for_the_other),
        (context, "streams.current(_FRAMEWORK, device)", "streams.default", default_streams),
    ],
)
def test_a_planted_fault(module: Any, old: str, new: str, program: Callable[[Program], None], monkeypatch: pytest.MonkeyPatch) -> None:
    right = ran(program)
    plant(monkeypatch, module, old, new)
    found = ran(program)
    assert [each.situation for each in found.findings] != [each.situation for each in right.findings]
