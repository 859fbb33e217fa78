"""The pieces of memory that the log of a launch needs, and those that it has taken."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import field

import numpy as np
import numpy.typing as npt

from consan._errors import EnvironmentFailure
from consan.checker.logs.log_lines import LogNeeds, LogRoom
from consan.checker.logs.memory import LogMemory
from consan.checker.logs.recorded_launch import MemoryBefore
from consan.dataclass import dataclass
from consan.instrument.effects import LANES
from consan.instrument.record import Compact, Recorded
from consan.instrument.record.analyses.launch_inputs import SLOT
from consan.instrument.record.families.global_memory import Mode
from consan.instrument.record.text import text

_ALIGNED = 256


class NoRoom(Exception):  # noqa: N818
    """The launch cannot be recorded: why."""


@dataclass(frozen=True)
class LogForm:
    """The parts that the logs of a kernel's launches have."""

    words: int  # the most that a thread stores between two cuts, and one for the mark of the end
    calls: bool = False  # threads keep their place in the log in memory
    mode: Mode = Mode.OFF  # how accesses to global memory are in the logs
    loops: bool = True  # a thread may store more
    silent: bool = False  # the kernel records nothing: all of its CTAs did the same
    compact: Compact | None = None  # what its log has, if that is not all

    @classmethod
    def of(cls, recorded: Recorded, kernel: int) -> LogForm:
        """The form of the log of a kernel, by its number in the module."""
        one, blocks = recorded.kernels[kernel], recorded.blocks
        return cls(blocks.words, blocks.calls, one.mode, blocks.loops, one.silent, one.compact)

    @property
    def result_bytes(self) -> int:
        """The bytes that the first thread stores."""
        return text.RESULT_BYTES + (SLOT * len(self.compact.constants) if self.compact is not None else 0)

    def needs(self, bytes_of_line: int, room: LogRoom, *, zeros: bool) -> LogNeeds:
        """How many lines a log needs. `zeros`: the device gives memory that is zero, and takes none for what nobody writes to."""
        compact, dense = self.compact, self.mode is not Mode.OFF and zeros
        if compact is None:
            return LogNeeds(bytes_of_line, self.words, self.loops, room=room, dense=dense)
        synced = self.mode is Mode.SYNCED
        return LogNeeds(bytes_of_line, self.words, self.loops, compact.stores, True, compact.most, room, dense, synced)

    def sizes(self, threads: int) -> dict[str, int]:
        """Bytes of all but the log, for so many threads."""
        counts, synced = self.compact is not None and self.compact.counts, self.mode is Mode.SYNCED
        return {
            "results": self.result_bytes,
            "hashes": threads * text.HASH_BYTES,
            "ends": threads * text.END_BYTES * counts,
            "states": threads * text.STATE_BYTES * self.calls,
            "clocks": text.CLOCKS_OF_LAUNCH * text.CLOCK_BYTES * synced,
        }


@dataclass
class LogPieces:
    """The memory of a launch: one piece for the log, and one for all else."""

    memory: LogMemory
    to_clear: list[tuple[int, int]] = field(default_factory=list)  # addresses and bytes that a launch finds zeroed
    before: Sequence[MemoryBefore] = ()  # what memory of the program held before the launch, where it is known
    _places: dict[str, int] = field(default_factory=dict)  # addresses
    _taken: dict[str, int] = field(default_factory=dict)  # those of whole pieces

    def take(self, log: int, sizes: Mapping[str, int], *, dense: bool, clear: bool) -> None:
        """Take so many bytes, cleared if `clear`. A log that is not dense may hold anything behind its words. Raises `NoRoom`."""
        ends = list(itertools.accumulate(-(-size // _ALIGNED) * _ALIGNED for size in sizes.values()))
        try:
            self._taken["log"] = self.memory.take("log", log, clear=dense and clear)
            self._taken["rest"] = self.memory.take("rest", ends[-1], clear=clear)
        except EnvironmentFailure as error:
            self.free()
            raise NoRoom(f"the device has no {log + ends[-1] >> 20:,} MiB for the logs: {error}") from error
        starts = (self._taken["rest"] + end for end in (0, *ends))
        self._places = {"log": self._taken["log"], **dict(zip(sizes, starts, strict=False))}
        self.to_clear = [(self._taken["rest"], ends[-1]), *([(self._taken["log"], log)] if dense else [])]

    def get(self, name: str) -> int:
        """The address of a part; 0: there is none."""
        return self._places.get(name, 0)

    def free(self) -> None:
        """Free the memory."""
        self._places.clear()
        while self._taken:
            self.memory.give(*self._taken.popitem())


def one_line(warps: int, word: int) -> npt.NDArray[np.uint32]:
    """Logs that have only this word for each lane."""
    log = np.zeros((warps, 2, LANES), "<u4")
    log[:, 0] = word
    return log
