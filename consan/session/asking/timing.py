"""The cost of synchronisation on a GPU: two forms of a kernel are timed in turn, and their results compared bit by bit.

A pair is a batch of launches of each, the one that goes first alternating. The interval is that of the median over the pairs (95 %, by the
order of the values): it makes no claim about clocks, other work or other inputs.
"""

from __future__ import annotations

import ctypes
import math
import statistics
from collections.abc import Callable
from typing import Any

from consan.backends.cuda import CudaBackend
from consan.backends.driver import driver
from consan.dataclass import dataclass

PAIRS = 41
_LEAST_SECONDS = 4e-4  # of a batch
_MOST_LAUNCHES = 200


@dataclass(frozen=True)
class Timed:
    """Two forms: seconds of a launch of the first, the share that the second saves (median and interval), and whether results are equal."""

    seconds: float
    saved: float
    low: float
    high: float
    equal: bool

    def __str__(self) -> str:
        results = "equal results" if self.equal else "OTHER RESULTS"
        return f"saves {self.saved:+.1%} of {self.seconds * 1e6:.2f} us ({self.low:+.1%} to {self.high:+.1%}, {PAIRS} pairs), {results}"


class Timer:
    """Times forms of one kernel. `launch` starts one on a loaded module; `results` renews the arguments, runs it once and reads them."""

    def __init__(self, backend: CudaBackend, launch: Callable[[Any], None], results: Callable[[Callable[[], None]], list[bytes]]) -> None:
        self._backend, self._launch, self._results = backend, launch, results
        self._driver = driver()

    def compare(self, plain: str, changed: str) -> Timed:
        """Two forms, as PTX."""
        forms = [self._backend.load(text) for text in (plain, changed)]
        try:
            first, second = (self._results(lambda form=form: self._launch(form)) for form in forms)  # type: ignore[misc]
            launches = self._launches(forms[0])
            pairs = [self._pair(forms, launches, swapped=bool(number % 2)) for number in range(PAIRS)]
        finally:
            for form in forms:
                self._backend.unload(form)
        saved = sorted(1 - other / one for one, other in pairs)
        low, high = order_interval(len(saved))
        return Timed(statistics.median(one for one, _ in pairs), statistics.median(saved), saved[low], saved[high], first == second)

    def _launches(self, form: Any) -> int:
        self._batch(form, 3)
        return min(_MOST_LAUNCHES, max(1, math.ceil(_LEAST_SECONDS / max(self._batch(form, 3), 1e-7))))

    def _pair(self, forms: list[Any], launches: int, *, swapped: bool) -> tuple[float, float]:
        times = {number: self._batch(forms[number], launches) for number in ((1, 0) if swapped else (0, 1))}
        return times[0], times[1]

    def _batch(self, form: Any, launches: int) -> float:
        """Seconds of a launch."""
        with self._backend.current():
            begin, end = (self._driver.create("cuEventCreate", 0) for _ in range(2))
            self._driver.call("cuEventRecord", begin, None)
        for _ in range(launches):
            self._launch(form)
        with self._backend.current():
            self._driver.call("cuEventRecord", end, None)
            self._driver.call("cuEventSynchronize", end)
            elapsed = ctypes.c_float()
            self._driver.call("cuEventElapsedTime", ctypes.byref(elapsed), begin, end)
            for event in (begin, end):
                self._driver.call("cuEventDestroy_v2", event)
        return elapsed.value / 1000 / launches


def gpu() -> CudaBackend:
    """The GPU of this machine. Raises if there is none."""
    return CudaBackend()


def order_interval(count: int) -> tuple[int, int]:
    """The positions of the sorted values between which the median lies with 95 % or more, for values without order in time."""
    below, total = 0, 0.0
    while below < (count - 1) // 2:
        total += math.comb(count, below) / 2**count
        if 2 * total > 0.05:
            break
        below += 1
    return max(below - 1, 0), count - 1 - max(below - 1, 0)
