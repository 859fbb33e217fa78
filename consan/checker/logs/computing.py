"""Computes full logs by the compiled machine (source/expansion/expansion.hpp), or replays clusters whose logs nobody keeps
(source/sweep.hpp).

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
from consan.checker.compiled.layouts import EXPAND_MEMORY, EXPANSION, SWEEP_INPUT
from consan.checker.compiled.replay import filled
from consan.checker.logs.grouping import Dim3
from consan.checker.logs.program import OF_LAUNCH, LogProgram
from consan.dataclass import dataclass
from consan.instrument.effects import LANES
from consan.instrument.layouts.records import dtype
from consan.instrument.record.text import expansion, text
from consan.instrument.record.text.templates import LINE_BYTES

_LOGS: Final = 1 << 44  # where the program believes the logs to be
_BEHIND: Final = 3  # lines of zeros that follow a log, beside those of a block
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

        What earlier logs had room for is mostly enough for these, and they are computed once.
        """
        used = np.zeros(len(self.given[expansion.CTAS]) * self._warps, np.uint32)
        room = max(self.program.used, default=0)
        room = room if self._fits(room) else 0
        while self._fits(room):
            logs = np.zeros((len(used), self._lines(room), LANES), "<u4")
            if not self._run(logs, used):
                return None
            needed = int(used.max(initial=0))
            if needed <= room:  # lines of zeros follow each log
                return logs if 2 * needed >= room else np.ascontiguousarray(logs[:, : self._lines(needed)])
            room = needed
            self.program.used.append(max(room, *self.program.used, 0))
        return None

    def clear(self, one: npt.NDArray[np.void], *, both: bool) -> npt.NDArray[np.uint64]:
        """The lane events of the replays of each cluster; 0: something is found in it, or may be. `both`: in both orders.

        `one`: the input of their replays, without a log.
        """
        clusters = len(self.given[expansion.CTAS]) // int(one["ctas"])
        events = np.zeros(clusters, np.uint64)
        more = {"one": one, "events": events.ctypes.data, "count": clusters, "both": both, "words": self.words + _BEHIND}
        fields, _alive = self._fields()
        task = filled(SWEEP_INPUT, {"expansion": filled(EXPANSION, fields), **more})
        library().consan_sweep(ctypes.c_void_p(task.ctypes.data))
        return events

    def _fits(self, room: int) -> bool:
        return len(self.given[expansion.CTAS]) * self._warps * self._lines(room) * LINE_BYTES <= _MOST_BYTES

    def _lines(self, used: int) -> int:
        return used + self.words + _BEHIND

    @property
    def _threads(self) -> int:
        return math.prod(self.block)

    @property
    def _warps(self) -> int:
        return -(-self._threads // LANES)

    def _run(self, logs: npt.NDArray[np.uint32], used: npt.NDArray[np.uint32]) -> bool:
        """Run the program for all CTAs, and store of their logs what there is room for."""
        fields, alive = self._fields()
        fields |= {"log": logs.ctypes.data, "room": logs.shape[1], "used": used.ctypes.data}

        def some(first: int, end: int, _used: Any = (logs, used, alive)) -> bool:
            task = filled(EXPANSION, {**fields, "first": first, "end": end})
            return int(library().consan_expand(ctypes.c_void_p(task.ctypes.data))) == ExpansionEnd.EXPANDED

        tasks = [(cta, cta + 1) for cta in range(len(self.given[expansion.CTAS]))]
        return all(in_threads(some, tasks, self.given[expansion.LOGS].nbytes))

    def _fields(self) -> tuple[dict[str, int], Any]:
        """The fields of an EXPANSION but for its results, and what must live as long."""
        ctas = len(self.given[expansion.CTAS])
        written = {name: np.zeros(nbytes // 8 * max(1, ctas * self._threads), "<u8") for name, nbytes in _OF_THREADS.items()}
        launch, record, given = self._launch(written["hashes"]), np.zeros(2, "<u8"), self._given()
        record[0] = written["results"].ctypes.data
        logs = _LOGS, _LOGS + ctas * self._warps * _MOST_LINES * LINE_BYTES
        memory = _memory([launch, record, given, *self.given.values()], [*written.values()], logs)
        addresses = {expansion.GIVEN: given.ctypes.data, text.PLACES: launch.ctypes.data, text.LAUNCH: record.ctypes.data}
        values = self.program.values_with(self._special(ctas) | addresses)
        fields = {
            "steps": self.program.steps.ctypes.data, "values": values.ctypes.data, "memory": memory.ctypes.data, "lines": _MOST_LINES,
            "most_steps": MOST_STEPS, "slots": len(values), "memory_count": len(memory), "threads": self._threads,
            "width": self.block[0], "height": self.block[1], "warps": self._warps,
        }  # fmt: skip
        return fields, (launch, record, given, written, memory, values)

    def _special(self, ctas: int) -> dict[str, int]:
        """Special registers. Nobody reads what comes of those of shared memory."""
        sizes = {f"%ntid.{axis}": size for axis, size in zip("xyz", self.block, strict=True)}
        return {**dict.fromkeys(OF_LAUNCH, 0), **sizes, "%nctaid.x": ctas, "%nctaid.y": 1, "%nctaid.z": 1}

    def _launch(self, hashes: npt.NDArray[Any]) -> npt.NDArray[Any]:
        places = np.zeros(text.PLACES_BYTES // 8, "<u8")
        places[text.ARENA // 8], places[text.HASHES // 8] = _LOGS, hashes.ctypes.data
        places.view("<u4")[[text.LINES // 4, text.USABLE // 4]] = _MOST_LINES, _MOST_LINES * LINE_BYTES
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
