"""Work of consan's own in the streams of the program on a GPU: memory that is cleared, copies from the host, small kernels, and marks.

Work is executed in the order of its stream, and the caller does not wait for it. All calls are made inside of `entered`.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import itertools
import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from consan.backends import driver as api
from consan.backends.armed import numbers
from consan.backends.around import AroundLaunches
from consan.backends.base import Around, HostBytes, LaunchWork
from consan.backends.driver_values import pointer

if TYPE_CHECKING:
    from consan.backends.cuda import CudaBackend, CudaModule

_EVENT_DISABLE_TIMING = 2
_STREAM_NON_BLOCKING = 1
_SET_DEPENDENCIES = 1  # CU_STREAM_SET_CAPTURE_DEPENDENCIES
_MOST_PARAMETERS = 8
_NAP = 5e-5  # seconds


class CudaWork:
    """The work of one backend."""

    vanishes = False

    def __init__(self, backend: CudaBackend, driver: api.Driver) -> None:
        self._backend, self._driver = backend, driver
        self._own_stream: ctypes.c_void_p | None = None  # a stream for kernels that the host waits for
        self._ran: Any = None  # a mark of that stream
        self._lock = threading.Lock()
        self._values = (ctypes.c_uint64 * _MOST_PARAMETERS)()
        places = (ctypes.addressof(self._values) + 8 * number for number in range(_MOST_PARAMETERS))
        self._parameters = (ctypes.c_void_p * _MOST_PARAMETERS)(*places)

    def entered(self) -> contextlib.AbstractContextManager[None]:
        """Inside the block the calling thread may add work."""
        return self._backend.current()

    def clear(self, address: int, nbytes: int, stream: int) -> None:
        """Set bytes of the device to zero."""
        if nbytes:
            self._driver.call(
                "cuMemsetD8Async", ctypes.c_uint64(address), ctypes.c_ubyte(0), ctypes.c_size_t(nbytes), ctypes.c_void_p(stream)
            )

    def copy(self, address: int, data: HostBytes, stream: int) -> None:
        """Copy bytes of a ring of the host to the device. They must stay as they are until then."""
        arguments = ctypes.c_uint64(address), pointer(data), ctypes.c_size_t(data.size), ctypes.c_void_p(stream)
        self._driver.call("cuMemcpyHtoDAsync_v2", *arguments)

    def launch(self, handle: CudaModule, entry: str, ctas: int, threads: int, numbers: Sequence[int], stream: int) -> None:
        """Launch a kernel whose parameters have at most 64 bits each."""
        function = self._backend.function(handle, entry, 0, (1, 1, 1)) if entry not in handle.functions else handle.functions[entry].handle
        with self._lock:
            shape = (ctas, 1, 1, threads, 1, 1, 0)
            self._driver.call("cuLaunchKernel", ctypes.c_void_p(function), *shape, ctypes.c_void_p(stream), self.parameters(numbers), None)

    def launch_aside(self, handle: CudaModule, entry: str, ctas: int, threads: int, numbers: Sequence[int], stream: int) -> None:
        """See `StreamWork`. The driver's manual: nodes that are left out of the dependencies need not be joined."""
        before = self._captured_so_far(stream)
        self.launch(handle, entry, ctas, threads, numbers, stream)
        if before is not None:
            nodes, count = (ctypes.c_void_p * len(before))(*before), ctypes.c_size_t(len(before))
            self._driver.call("cuStreamUpdateCaptureDependencies", ctypes.c_void_p(stream), nodes, count, _SET_DEPENDENCIES)

    def _captured_so_far(self, stream: int) -> list[int | None] | None:
        """The nodes for which the next one of a captured stream waits. None: the driver does not give them."""
        of_capture = ctypes.c_int(), ctypes.c_uint64(), ctypes.c_void_p()
        nodes, count = ctypes.POINTER(ctypes.c_void_p)(), ctypes.c_size_t()
        found = (ctypes.byref(each) for each in (*of_capture, nodes, count))
        code = self._driver.status("cuStreamGetCaptureInfo_v2", ctypes.c_void_p(stream), *found)
        return None if code else nodes[: count.value]

    def parameters(self, numbers: Sequence[int]) -> Any:
        """Pointers to the numbers, as the driver takes them."""
        self._values[: len(numbers)] = list(numbers)
        return self._parameters

    def run(self, handle: CudaModule, entry: str, ctas: int, threads: int, numbers: Sequence[int]) -> None:
        """Launch a kernel on a stream that waits for no other, and ask until it is over: other threads may use the driver meanwhile."""
        with self.entered():
            if self._own_stream is None:
                self._own_stream, self._ran = self._driver.create("cuStreamCreate", _STREAM_NON_BLOCKING), self.new_mark()
            self.launch(handle, entry, ctas, threads, numbers, self._own_stream.value or 0)
            self.mark(self._ran, self._own_stream.value or 0)
        while not self.passed(self._ran):
            time.sleep(_NAP)

    def new_mark(self) -> Any:
        """A mark that is nowhere yet."""
        return self._driver.create("cuEventCreate", _EVENT_DISABLE_TIMING)

    def mark(self, mark: Any, stream: int) -> None:
        """Put a mark behind the work of a stream so far."""
        self._driver.call("cuEventRecord", mark, ctypes.c_void_p(stream))

    def after(self, mark: Any, stream: int) -> None:
        """Let the later work of a stream wait for a mark."""
        self._driver.call("cuStreamWaitEvent", ctypes.c_void_p(stream), mark, 0)

    def passed(self, mark: Any) -> bool:
        """Whether the device has come to a mark. Raises `DeviceLost` after a fatal error."""
        code = self._driver.status("cuEventQuery", mark)
        if code not in (0, api.NOT_READY):
            raise self._driver.error(code, "cuEventQuery")
        return code == 0

    @functools.cached_property
    def next_number(self) -> Callable[[], int]:
        """See `StreamWork`."""
        return numbers() or itertools.count(1).__next__

    @functools.cached_property
    def _around(self) -> AroundLaunches:
        return AroundLaunches(self._driver, self._backend.context)

    @property
    def here(self) -> int:
        """The address of work in the backend's context (`AroundLaunches.here`)."""
        return self._around.here

    def around(self, work: LaunchWork) -> Around | None:
        """Prepare the work around launches. None: there is no C here."""
        return self._around.make(work, self._backend.function(work.handle, work.entry, 0, (1, 1, 1)))
