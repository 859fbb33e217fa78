"""torch's streams and events on the virtual machine, and what its functions read and write, without torch."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import consan
from consan.adapters.distributed.torch_streams import CurrentStream
from consan.adapters.standin.context import current
from consan.adapters.triton.torch_operations import TorchOperations

SOURCE = """
extern "C" __global__ void produce(const float *x, float *y) { y[threadIdx.x] = 2.0f * x[threadIdx.x]; }
extern "C" __global__ void consume(const float *y, float *z) { z[threadIdx.x] = y[threadIdx.x] + 1.0f; }
"""


class Program:
    """Kernels of CuPy's stand-in in streams of torch, by their handles."""

    def __init__(self) -> None:
        self.cp: Any = importlib.import_module("cupy")
        module = self.cp.RawModule(code=SOURCE)
        self.kernels = {name: module.get_function(name) for name in ("produce", "consume")}
        self.now = CurrentStream(current().session)
        self.torch: Any = SimpleNamespace(**self.now.classes())
        self.a, self.b = self.torch.Stream(), self.torch.Stream(priority=-1)
        self.default = self.torch.Stream(of=current().session.streams.default)
        self.x, self.y, self.z = (self.cp.ones(32, "f4") for _ in range(3))
        self.cp.cuda.Device().synchronize()

    def run(self, name: str, stream: Any) -> None:
        args = (self.x, self.y) if name == "produce" else (self.y, self.z)
        self.kernels[name]((1,), (32,), args, stream=self.cp.cuda.ExternalStream(stream.cuda_stream))


def nothing(p: Program) -> None:
    pass


def wait_stream(p: Program) -> None:
    p.b.wait_stream(p.a)


def wait_event(p: Program) -> None:
    p.b.wait_event(p.a.record_event())


def event_waits(p: Program) -> None:
    event = p.torch.Event(enable_timing=True)
    with p.a:
        event.record()
    with p.b:
        event.wait()


def event_of_the_wrong_stream(p: Program) -> None:
    event = p.torch.Event()
    event.record(p.b)
    event.wait(p.b)


def never_recorded(p: Program) -> None:
    p.torch.Event().wait(p.b)
    p.torch.Event().synchronize()


def synchronize(p: Program) -> None:
    p.torch.ExternalStream(p.a.cuda_stream).synchronize()


def query(p: Program) -> None:
    assert p.a.record_event().query()
    assert p.a.query()


def default_stream_waits_only(p: Program) -> None:
    p.default.wait_stream(p.a)


def through_the_default_stream(p: Program) -> None:
    p.default.wait_stream(p.a)
    p.b.wait_stream(p.default)


@pytest.mark.parametrize(
    ("edge", "clean"),
    [
        *((each, True) for each in (wait_stream, wait_event, event_waits, synchronize, query, through_the_default_stream)),
        *((each, False) for each in (nothing, event_of_the_wrong_stream, never_recorded, default_stream_waits_only)),
    ],
)
def test_an_edge(edge: Callable[[Program], None], clean: bool) -> None:
    with consan.check(device="cpu") as live:
        program = Program()
        program.run("produce", program.a)
        edge(program)
        program.run("consume", program.b)
    assert [each.situation for each in live.report.findings] == ([] if clean else ["no-stream-edge"])
    assert clean or "(second.wait_stream(first))" in live.report.findings[0].fix


@dataclass
class Tensor:
    """The part of a tensor on the host that consan reads."""

    array: Any
    is_sparse = False
    device = SimpleNamespace(type="cpu")

    @property
    def shape(self) -> Any:
        return self.array.shape

    def untyped_storage(self) -> Any:
        base = self.array if self.array.base is None else self.array.base
        return SimpleNamespace(data_ptr=lambda: base.__array_interface__["data"][0])

    def data_ptr(self) -> int:
        return int(self.array.__array_interface__["data"][0])

    def element_size(self) -> int:
        return int(self.array.itemsize)

    def stride(self) -> tuple[int, ...]:
        return tuple(step // self.array.itemsize for step in self.array.strides)

    def clone(self) -> Tensor:
        return Tensor(self.array.copy())


class Operations:
    """Functions of torch in two streams; none runs a kernel."""

    def __init__(self) -> None:
        self.told: list[tuple[str, int, int, int]] = []
        self.waits: list[int] = []
        self.notes: list[str] = []
        default = SimpleNamespace(handle=0, context=0)
        calls = {"current": lambda device: default, "operated": self.operated, "host_waits": self.host_waits}
        streams = SimpleNamespace(compares=True, here=0, **calls)
        self.torch = TorchOperations(CurrentStream(SimpleNamespace(streams=streams, note=self.notes.append)))

    def operated(self, name: str, stream: Any, reads: Any, writes: Any, *, owners: Any) -> None:
        assert len(owners) == len(reads) + len(writes)
        self.told.append((name, stream.handle, len(reads), len(writes)))

    def host_waits(self, stream: Any) -> None:
        self.waits.append(stream.handle)

    def __call__(self, name: str, args: Any, result: Any, *, asked: int | None = None, **kwargs: Any) -> Any:
        return self.torch.done(name, args, kwargs, result, asked=asked)


def tensor() -> Tensor:
    return Tensor(np.ones((4, 4), np.float32))


def test_what_functions_of_torch_touch() -> None:
    run, x, y = Operations(), tensor(), tensor()
    run("zeros", [(4, 4)], x, asked=0)
    run("empty_like", [x], y)
    run("view", [x], Tensor(x.array[:2]))
    run("add_", [x, 1], x)
    run("mul", [x, y], tensor(), out=y)
    assert run.told == [("torch's zeros", 0, 0, 1), ("torch's add_", 0, 1, 1), ("torch's mul", 0, 3, 2)]
    assert run.waits == []


def test_a_copy_to_the_host_waits_and_is_a_copy() -> None:
    run, x = Operations(), tensor()
    run("zeros", [(4, 4)], x, asked=0)
    copy = run("cpu", [x], x)
    assert copy is not x
    run("add_", [copy, 1], copy)
    assert (run.told[1:], run.waits) == ([("torch's cpu", 0, 1, 0)], [0])


def test_tensors_of_the_host_are_no_matter_of_streams() -> None:
    run, x = Operations(), tensor()
    run("zeros", [(4, 4)], x)
    run("add_", [x, 1], x)
    assert run("cuda", [x], x, asked=0) is x
    run("item", [x], 1.0)
    assert (run.told, run.waits, len(run.notes)) == ([], [], 1)


@pytest.mark.parametrize(
    ("named", "complete"),
    [
        ([(0, None), (1, None)], False),
        ([(1, None), (1, None)], True),
        ([(None, None), (1, None)], False),
        ([(None, 1), (1, 1), (0, 0)], True),
        ([(0, 1), (1, 1)], False),
    ],
)
def test_devices_that_are_one(named: list[tuple[int | None, int | None]], *, complete: bool) -> None:
    with consan.check(device="cpu", seed=0) as sanitizer:
        p = Program()
        for device, rank in named:
            current().session.streams.names_device(device, rank)
        p.run("produce", p.a)
    assert (sanitizer.report.incomplete == ()) is complete
