"""The work of consan's own before and behind a launch of the program, prepared once: two calls of C make all calls of the driver."""

from __future__ import annotations

import ctypes
import functools
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from consan._errors import EnvironmentFailure
from consan.backends.base import HostBytes, LaunchWork
from consan.backends.call_filter import AROUND, FILTER, FUNCTIONS, NUMBERS, PIECES
from consan.instrument.layouts.records import dtype

if TYPE_CHECKING:
    from consan.backends.driver import Driver


class AroundLaunches:
    """Prepares the work around launches in one context. `make` gives None without C, or without a driver of C."""

    def __init__(self, driver: Driver, context: ctypes.c_void_p) -> None:
        self._driver, self._context = driver, context.value
        self._table: npt.NDArray[np.void] = np.zeros((), dtype(FUNCTIONS))
        self._before: Any = None
        try:
            for each in FUNCTIONS.fields:
                self._table[each.name] = ctypes.cast(driver.function(each.meaning), ctypes.c_void_p).value
            library = FILTER.load()
        except (EnvironmentFailure, OSError, AttributeError, TypeError, ctypes.ArgumentError):
            return
        self._before, self._behind = library.consan_before, library.consan_behind
        self._before.argtypes = (ctypes.c_void_p, ctypes.c_uint64, ctypes.c_int)
        self._behind.argtypes = (ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint64)

    @functools.cached_property
    def here(self) -> int:
        """The address of an `Around` that names this driver and this context, and no work."""
        self._nothing: npt.NDArray[np.void] = np.zeros((), dtype(AROUND))
        self._nothing["driver"], self._nothing["context"] = self._table.ctypes.data, self._context
        return int(self._nothing.ctypes.data)

    def make(self, work: LaunchWork, function: int) -> CudaAround | None:
        """The work around launches that follow each other. `function`: the handle of the kernel behind them."""
        if self._before is None or max(len(work.clears), len(work.copies)) > PIECES or len(work.numbers) > NUMBERS:
            return None
        state: npt.NDArray[np.void] = np.zeros((), dtype(AROUND))
        state["driver"], state["context"] = self._table.ctypes.data, self._context
        state["begun"], state["ended"] = work.begun.value, work.ended.value
        state["function"], state["ctas"], state["threads"], state["count"] = function, work.ctas, work.threads, len(work.numbers)
        state["numbers"][: len(work.numbers)] = work.numbers
        for at, (address, nbytes) in enumerate(work.clears):
            state["clears"]["address"][at], state["clears"]["nbytes"][at] = address, nbytes
        for at, (address, data) in enumerate(work.copies):
            state["copies"][at] = (address, data.ctypes.data, data.size)
        return CudaAround(self, state, [data for _, data in work.copies])

    def check(self, status: int) -> bool:
        """Whether the work was put into the stream: not where the stream is captured, or another context is current."""
        if status > 0:
            raise self._driver.error(status, "the work around a launch")
        return status == 0


class CudaAround:
    """The work around launches (`Around`)."""

    __slots__ = ("_at", "_behind", "_check", "_put_before", "_retained")

    def __init__(self, launches: AroundLaunches, state: npt.NDArray[np.void], data: list[HostBytes]) -> None:
        self._retained, self._at = (launches, state, data), state.ctypes.data
        self._put_before, self._behind, self._check = launches._before, launches._behind, launches.check

    def before(self, stream: int, *, copies: bool) -> bool:
        """See `Around`."""
        status = self._put_before(self._at, stream, copies)
        return not status or self._check(status)

    def behind(self, stream: int, number: int) -> None:
        """See `Around`."""
        if status := self._behind(self._at, stream, number):
            self._check(status)

    @property
    def address(self) -> int:
        """The address of what C knows."""
        return self._at

    def check(self, status: int) -> None:
        """Raise what the driver has said."""
        self._check(status)
