"""A kernel in a captured stream for which nothing waits (`CudaWork.launch_aside`), against a made-up driver."""

from __future__ import annotations

import ctypes
from typing import Any, cast

import pytest

from consan.backends.work import CudaWork

NOT_SUPPORTED = 801
KERNEL = 5


class Driver:
    """One captured stream. `ends`: the nodes that its next node waits for; `code`: of the question for them."""

    def __init__(self, ends: list[int], code: int) -> None:
        self.ends, self.code = ends, code
        self._kept: Any = None

    def status(self, name: str, _stream: Any, _status: Any, _number: Any, _graph: Any, nodes: Any, count: Any) -> int:
        assert name == "cuStreamGetCaptureInfo_v2"
        self._kept = (ctypes.c_void_p * len(self.ends))(*self.ends)
        nodes._obj.contents = ctypes.c_void_p.from_buffer(self._kept) if self.ends else ctypes.c_void_p()
        count._obj.value = len(self.ends)
        return self.code

    def call(self, name: str, *given: Any) -> None:
        if name == "cuLaunchKernel":
            self.ends = [KERNEL]
            ctypes.memset(self._kept, 0, ctypes.sizeof(self._kept))  # the driver's own list is valid no longer
        else:
            assert name == "cuStreamUpdateCaptureDependencies"
            _, nodes, count, mode = given
            assert mode == 1, "they are set, not added"
            self.ends = list(nodes[: count.value])


class Backend:
    """Finds a kernel."""

    def function(self, *_: Any) -> int:
        return 1


@pytest.mark.parametrize(("ends", "code", "left"), [([], 0, []), ([3, 4], 0, [3, 4]), ([3, 4], NOT_SUPPORTED, [KERNEL])])
def test_what_comes_later_waits_for_what_came_before(ends: list[int], code: int, left: list[int]) -> None:
    driver = Driver(ends, code)
    work = CudaWork(cast(Any, Backend()), cast(Any, driver))
    handle = type("Module", (), {"functions": {}})()
    work.launch_aside(cast(Any, handle), "counts", 1, 32, (7,), 9)
    assert driver.ends == left
