"""The work of consan's own before and behind a launch of the program, prepared once: two calls of C make all calls of the driver."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any, Final

from consan._errors import EnvironmentFailure
from consan.backends.base import HostBytes, LaunchWork
from consan.backends.call_filter import FILTER

if TYPE_CHECKING:
    from consan.backends.driver import Driver

_PIECES, _NUMBERS = 2, 8  # of around.h
_FUNCTIONS: Final = (
    "cuCtxGetCurrent",
    "cuCtxPushCurrent_v2",
    "cuCtxPopCurrent_v2",
    "cuStreamIsCapturing",
    "cuMemsetD8Async",
    "cuMemcpyHtoDAsync_v2",
    "cuEventRecord",
    "cuLaunchKernel",
)


class _Piece(ctypes.Structure):
    _fields_ = (("address", ctypes.c_uint64), ("source", ctypes.c_void_p), ("nbytes", ctypes.c_uint64))


class _Around(ctypes.Structure):
    _fields_ = (
        ("driver", ctypes.c_void_p),
        ("context", ctypes.c_void_p),
        ("clears", _Piece * _PIECES),
        ("copies", _Piece * _PIECES),
        ("begun", ctypes.c_void_p),
        ("ended", ctypes.c_void_p),
        ("function", ctypes.c_void_p),
        ("ctas", ctypes.c_uint32),
        ("threads", ctypes.c_uint32),
        ("count", ctypes.c_uint32),
        ("numbers", ctypes.c_uint64 * _NUMBERS),
    )


class AroundLaunches:
    """Prepares the work around launches in one context. `make` gives None without C, or without a driver of C."""

    def __init__(self, driver: Driver, context: ctypes.c_void_p) -> None:
        self._driver, self._context = driver, context.value
        self._table = (ctypes.c_void_p * len(_FUNCTIONS))()
        self._before: Any = None
        try:
            self._table[:] = [ctypes.cast(driver.function(name), ctypes.c_void_p).value for name in _FUNCTIONS]
            library = FILTER.load()
        except (EnvironmentFailure, OSError, AttributeError, TypeError, ctypes.ArgumentError):
            return
        self._before, self._behind = library.consan_before, library.consan_behind
        self._before.argtypes = (ctypes.c_void_p, ctypes.c_uint64, ctypes.c_int)
        self._behind.argtypes = (ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint64)

    def make(self, work: LaunchWork, function: int) -> CudaAround | None:
        """The work around launches that follow each other. `function`: the handle of the kernel behind them."""
        if self._before is None or max(len(work.clears), len(work.copies)) > _PIECES or len(work.numbers) > _NUMBERS:
            return None
        state = _Around(driver=ctypes.addressof(self._table), context=self._context, begun=work.begun, ended=work.ended)
        state.function, state.ctas, state.threads, state.count = function, work.ctas, work.threads, len(work.numbers)
        state.numbers[: len(work.numbers)] = work.numbers
        for piece, (address, nbytes) in zip(state.clears, work.clears, strict=False):
            piece.address, piece.nbytes = address, nbytes
        for piece, (address, data) in zip(state.copies, work.copies, strict=False):
            piece.address, piece.source, piece.nbytes = address, data.ctypes.data, data.size
        return CudaAround(self, state, [data for _, data in work.copies])

    def check(self, status: int) -> bool:
        """Whether the work was put into the stream: not where the stream is captured, or another context is current."""
        if status > 0:
            raise self._driver.error(status, "the work around a launch")
        return status == 0


class CudaAround:
    """The work around launches (`Around`)."""

    __slots__ = ("_at", "_behind", "_check", "_put_before", "_retained")

    def __init__(self, launches: AroundLaunches, state: _Around, data: list[HostBytes]) -> None:
        self._retained, self._at = (launches, state, data), ctypes.addressof(state)
        self._put_before, self._behind, self._check = launches._before, launches._behind, launches.check

    def before(self, stream: int, *, copies: bool) -> bool:
        """See `Around`."""
        status = self._put_before(self._at, stream, copies)
        return not status or self._check(status)

    def behind(self, stream: int, number: int) -> None:
        """See `Around`."""
        if status := self._behind(self._at, stream, number):
            self._check(status)
