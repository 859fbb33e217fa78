"""Computes full logs by the compiled machine (source/expansion/expansion.hpp): once to know how long they are, and once to store them.

Not handled: compact logs without room, whose end the text marks itself, and programs with a step that the machine does not execute. The
caller has the virtual machine for these.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from consan.checker.compiled.build import library
from consan.checker.compiled.cores import computed as in_threads
from consan.checker.compiled.expanding import ExpansionEnd
from consan.checker.compiled.layouts import EXPAND_MEMORY, EXPANSION
from consan.checker.compiled.replay import filled
from consan.checker.logs.grouping import Dim3
from consan.checker.logs.program import OF_LAUNCH, LogProgram
from consan.dataclass import dataclass
from consan.instrument.effects import LANES
from consan.instrument.layouts.records import dtype
from consan.instrument.record.text import expansion, text
from consan.instrument.record.text.templates import LINE_BYTES

_NOWHERE: Final = 1 << 44  # the address of logs that are not stored
_MOST_LINES: Final = (1 << 31) // LINE_BYTES - 1  # threads compare distances in a log as numbers with a sign
_MOST_BYTES: Final = 1 << 32  # of all logs
MOST_STEPS: Final = 1 << 31  # of the warps of a CTA: about a minute


@dataclass(frozen=True)
class Computing:
    """The CTAs whose logs are wanted. `given`: what the text reads, by field. `words`: that a thread stores between two cuts."""

    program: LogProgram
    given: Mapping[int, npt.NDArray[Any]]
    block: Dim3
    words: int

    def logs(self) -> npt.NDArray[np.uint32] | None:
        """The full logs of the warps; None: the machine does not execute the text.

        What earlier logs had room for is mostly enough for these, and then their length need not be known beforehand.
        """
        used = np.zeros(len(self.given[expansion.CTAS]) * self._warps, np.uint32)
        for longest in self.program.used[-1:]:
            logs, needed = self._made(longest, used), int(used.max(initial=0))
            if logs is not None and needed <= longest:  # lines of zeros follow each log
                return logs if 2 * needed >= longest else np.ascontiguousarray(logs[:, : self._lines(needed)])
        if not self._run(None, used):
            return None
        longest = int(used.max(initial=0))
        self.program.used.append(max(longest, *self.program.used, 0))
        return self._made(longest, used)

    def _made(self, longest: int, used: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint32] | None:
        """The logs with room for so many lines; None: there are more, or too many bytes."""
        lines = self._lines(longest)
        if len(used) * lines * LINE_BYTES > _MOST_BYTES:
            return None
        logs = np.zeros((len(used), lines, LANES), "<u4")
        return logs if self._run(logs, used) else None

    def _lines(self, used: int) -> int:
        return used + self.words + 3

    @property
    def _threads(self) -> int:
        return math.prod(self.block)

    @property
    def _warps(self) -> int:
        return -(-self._threads // LANES)

    def _run(self, logs: npt.NDArray[np.uint32] | None, used: npt.NDArray[np.uint32]) -> bool:
        """Run the program for all CTAs, and store their logs if there is room for them."""
        ctas = len(self.given[expansion.CTAS])
        lines = logs.shape[1] if logs is not None else _MOST_LINES
        log = logs.ctypes.data if logs is not None else _NOWHERE
        written = {name: np.zeros(nbytes // 8 * max(1, ctas * self._threads), "<u8") for name, nbytes in _OF_THREADS.items()}
        launch, record, given = self._launch(log, lines, written["hashes"]), np.zeros(2, "<u8"), self._given()
        record[0] = written["results"].ctypes.data
        read = [launch, record, given, *self.given.values()]
        memory = _memory(read, [*written.values()], (log, log + len(used) * lines * LINE_BYTES))
        addresses = {expansion.GIVEN: given.ctypes.data, text.PLACES: launch.ctypes.data, text.LAUNCH: record.ctypes.data}
        values = self.program.values_with(self._special(ctas) | addresses)
        fields = {
            "steps": self.program.steps.ctypes.data, "values": values.ctypes.data, "memory": memory.ctypes.data, "used": used.ctypes.data,
            "lines": lines, "most_steps": MOST_STEPS, "slots": len(values), "memory_count": len(memory), "threads": self._threads,
            "width": self.block[0], "height": self.block[1], "warps": self._warps, "dry": logs is None,
        }  # fmt: skip

        def some(first: int, end: int, _used: Any = (logs, used, read, written, memory, values)) -> bool:
            task = filled(EXPANSION, {**fields, "first": first, "end": end})
            return int(library().consan_expand(ctypes.c_void_p(task.ctypes.data))) == ExpansionEnd.EXPANDED

        tasks = [(cta, cta + 1) for cta in range(ctas)]
        return all(in_threads(some, tasks, self.given[expansion.LOGS].nbytes))

    def _special(self, ctas: int) -> dict[str, int]:
        """Special registers. Nobody reads what comes of those of shared memory."""
        sizes = {f"%ntid.{axis}": size for axis, size in zip("xyz", self.block, strict=True)}
        return {**dict.fromkeys(OF_LAUNCH, 0), **sizes, "%nctaid.x": ctas, "%nctaid.y": 1, "%nctaid.z": 1}

    def _launch(self, log: int, lines: int, hashes: npt.NDArray[Any]) -> npt.NDArray[Any]:
        places = np.zeros(text.PLACES_BYTES // 8, "<u8")
        places[text.ARENA // 8], places[text.HASHES // 8] = log, hashes.ctypes.data
        places.view("<u4")[[text.LINES // 4, text.USABLE // 4]] = lines, _MOST_LINES * LINE_BYTES
        return places

    def _given(self) -> npt.NDArray[Any]:
        fields = np.zeros(expansion.GIVEN_BYTES // 8, "<u8")
        for where, array in self.given.items():
            fields[where // 8] = array.ctypes.data
        fields[[expansion.LINES // 8, expansion.USABLE // 8]] = self.given[expansion.LOGS].shape[1], 1 << 48
        return fields


_OF_THREADS: Final = {"hashes": text.HASH_BYTES, "results": -(-text.RESULT_BYTES // 8) * 8}


def _memory(read: Sequence[npt.NDArray[Any]], written: Sequence[npt.NDArray[Any]], log: tuple[int, int]) -> npt.NDArray[np.void]:
    places = [(*log, 0, 1), *((each.ctypes.data, each.ctypes.data + each.nbytes, 1, 0) for each in read)]
    return np.array([*places, *((each.ctypes.data, each.ctypes.data + each.nbytes, 0, 0) for each in written)], dtype(EXPAND_MEMORY))
