"""The work around launches that repeat: which calls of the driver C makes, in which order, with which parameters."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest

from consan.backends.around import AroundLaunches
from consan.backends.base import DeviceLost, LaunchWork
from consan.backends.driver import Driver

POINTER, WORD, SIZE, INT = ctypes.c_void_p, ctypes.c_uint64, ctypes.c_size_t, ctypes.c_uint
FORMS = {
    "cuCtxGetCurrent": (ctypes.POINTER(POINTER),),
    "cuCtxPushCurrent_v2": (POINTER,),
    "cuCtxPopCurrent_v2": (POINTER,),
    "cuStreamIsCapturing": (POINTER, ctypes.POINTER(ctypes.c_int)),
    "cuMemsetD8Async": (WORD, ctypes.c_ubyte, SIZE, POINTER),
    "cuMemcpyHtoDAsync_v2": (WORD, POINTER, SIZE, POINTER),
    "cuEventRecord": (POINTER, POINTER),
    "cuLaunchKernel": (POINTER, *(INT,) * 7, POINTER, ctypes.POINTER(POINTER), POINTER),
}
CONTEXT = 0xC0


class Fake:
    """A driver in C, whose functions are Python's. `current`: the context; `captured`: a stream; `status`: of which call what."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.current, self.captured, self.status = CONTEXT, 0, dict[str, int]()
        for name, form in FORMS.items():
            setattr(self, name, ctypes.CFUNCTYPE(ctypes.c_int, *form)(lambda *given, name=name: self._called(name, *given)))

    def _called(self, name: str, *given: Any) -> int:
        if name == "cuCtxGetCurrent":
            given[0][0] = self.current
        elif name == "cuStreamIsCapturing":
            given[1][0] = int(given[0] == self.captured)
        elif name == "cuLaunchKernel":
            numbers = [ctypes.c_uint64.from_address(given[9][at] or 0).value for at in range(3)]
            self.calls.append((name, *given[:9], numbers))
        elif name == "cuMemcpyHtoDAsync_v2":
            self.calls.append((name, given[0], ctypes.string_at(given[1], given[2]), given[3]))
        else:
            self.calls.append((name, *given))
        return self.status.get(name, 0)

    def cuGetErrorName(self, code: int, out: Any) -> int:
        return 1

    def cuGetErrorString(self, code: int, out: Any) -> int:
        return 1


def work() -> LaunchWork:
    data = np.frombuffer(b"variable", np.uint8)
    return LaunchWork([(0x100, 64), (0x200, 32)], [(0x300, data)], POINTER(0xB), POINTER(0xE), None, "", 4, 128, (1, 2, 3))


@pytest.fixture
def fake() -> Fake:
    return Fake()


def made(fake: Fake) -> Any:
    return AroundLaunches(Driver(fake), POINTER(CONTEXT)).make(work(), 0xF)


def test_all_calls_in_their_order(fake: Fake) -> None:
    around = made(fake)
    assert around.before(0, copies=True)
    around.behind(0, 77)
    launch = ("cuLaunchKernel", 0xF, 4, 1, 1, 128, 1, 1, 0, None, [1, 2, 77])
    clears = [("cuMemsetD8Async", 0x100, 0, 64, None), ("cuMemsetD8Async", 0x200, 0, 32, None)]
    copy = ("cuMemcpyHtoDAsync_v2", 0x300, b"variable", None)
    assert fake.calls == [*clears, copy, ("cuEventRecord", 0xB, None), launch, ("cuEventRecord", 0xE, None)]
    fake.calls.clear()
    assert around.before(7, copies=False)
    assert [call[0] for call in fake.calls] == ["cuMemsetD8Async"] * 2 + ["cuEventRecord"]
    assert {call[-1] for call in fake.calls} == {7}


def test_nothing_is_done_in_a_graph_or_in_another_context(fake: Fake) -> None:
    around, fake.captured = made(fake), 7
    assert not around.before(7, copies=True)
    fake.captured, fake.current = 0, CONTEXT + 1
    assert not around.before(0, copies=True)
    assert not fake.calls


def test_a_thread_without_a_context_gets_it(fake: Fake) -> None:
    around, fake.current = made(fake), 0
    assert around.before(0, copies=False)
    assert [fake.calls[0], fake.calls[-1][0]] == [("cuCtxPushCurrent_v2", CONTEXT), "cuCtxPopCurrent_v2"]


def test_a_device_that_is_lost(fake: Fake) -> None:
    around, fake.status["cuEventRecord"] = made(fake), 700
    with pytest.raises(DeviceLost):
        around.before(0, copies=False)
    with pytest.raises(DeviceLost):
        around.behind(0, 1)


def test_a_driver_that_is_not_of_c() -> None:
    class Other:
        def __getattr__(self, name: str) -> Any:
            return lambda *_: 0

    assert AroundLaunches(Driver(Other()), POINTER(CONTEXT)).make(work(), 0xF) is None
