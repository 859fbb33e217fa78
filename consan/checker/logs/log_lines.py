"""How many lines the log of each warp of a launch gets.

A thread of a kernel with loops may store any number of words. The first launch of a shape gets what its parameters allow to be stored
(consan/ranges/words.py), or else much. Later ones get what an earlier one has used, with room to spare: the logs of a program's large
kernels then take some MiB each.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from consan.dataclass import dataclass
from consan.instrument.record.text import text
from consan.instrument.record.text.templates import LINE_BYTES

LEAST_LINES, MOST_LINES = 64, 1 << 13  # of a warp's log, in a kernel with loops
LONG_BYTES = 1 << 30  # in sum: the logs of few warps may be longer than that
SMALL_BYTES: Final = 1 << 22  # in sum: logs that are no shorter than that, whatever an earlier launch has used
_ROOMY: Final = 32
_MOST_COMPACT: Final = 3 << 30  # bytes in sum
_FEW_LINES: Final = 512  # compact logs of many warps that are shorter than that may take more
_MOST_OF_MANY: Final = 6 << 30
_MOST_LOG_LINES: Final = (1 << 31) // LINE_BYTES - 1  # threads compare distances in a log as numbers with a sign
_MOST_GLOBAL_LINES: Final = 1 << 16  # with global memory, where room costs nothing
_SPARE, _MORE_SPARE = 2, 4  # times what an earlier launch has used; the second as long as it is no more than _SPARE_BYTES in sum
_SPARE_BYTES: Final = 1 << 27


@dataclass(frozen=True)
class LaunchSlice:
    """The CTAs that have logs: two runs of `count` each, from `first` and from `second` on."""

    first: int
    second: int
    count: int

    @property
    def slots(self) -> int:
        """How many logs there are. The last one is that of all other CTAs, and nobody reads it."""
        return 2 * self.count + 1

    def slots_of(self, ctas: Sequence[int] | npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """The number of each CTA's log, as the kernel computes it."""
        numbers = np.asarray(ctas, np.int64)
        one, other = (np.minimum((numbers - begin) % (1 << 32), self.count) for begin in (self.first, self.second))
        return np.where(one < self.count, one, self.count + other)

    def has(self, ctas: Sequence[int] | npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Whether each CTA has a log."""
        return np.asarray(self.slots_of(ctas) < self.slots - 1)


@dataclass(frozen=True)
class LogSlots:
    """The places of the logs of a launch. `some`: the CTAs that have one; None: all. `clusters`: gives the CTAs of each."""

    ctas: int
    some: LaunchSlice | None
    clusters: Callable[[], npt.NDArray[np.int64]]

    @property
    def count(self) -> int:
        """How many logs of CTAs there are."""
        return self.ctas if self.some is None else self.some.slots

    def of(self, ctas: Sequence[int]) -> npt.NDArray[np.int64]:
        """The numbers of the logs of some CTAs, which have one."""
        if self.some is None:
            return np.asarray(ctas, np.int64)
        assert self.some.has(ctas).all()
        return self.some.slots_of(ctas)

    @functools.cached_property
    def there(self) -> npt.NDArray[np.bool_]:
        """Whether each cluster has logs."""
        clusters = self.clusters()
        return np.ones(len(clusters), np.bool_) if self.some is None else np.asarray(self.some.has(clusters).all(axis=1))

    def given(self) -> dict[int, int]:
        """The values that the kernel is given, by their place in its variable."""
        some = self.some or LaunchSlice(0, 0, self.ctas)
        return {text.FIRST: some.first, text.SECOND: some.second, text.COUNT: some.count}


@dataclass(frozen=True)
class LogRoom:
    """The contents of logs. `roomy`: of an earlier launch a log of the usual length was full. `used`: lines of a log of this shape;
    0: not known. `most`: words that a thread stores at most, by its parameters; 0: not known. `first`: CTAs that start, and have logs;
    0: all. `some`: those that have logs; None: all that start.
    """

    roomy: bool = False
    used: int = 0
    most: int = 0
    first: int = 0
    some: LaunchSlice | None = None


USUAL_ROOM: Final = LogRoom()


@dataclass(frozen=True)
class LogNeeds:
    """The room for logs. `line_bytes`: of one line of all logs; `words`: the most that a thread stores between two cuts, plus
    one for the mark of the end.

    `bounded`: words that a thread stores at most, by the text (0: it does not say). `dense`: logs of global memory, where room costs
    nothing.
    """

    line_bytes: int
    words: int
    loops: bool
    stores: bool = True
    compact: bool = False
    bounded: int = 0
    room: LogRoom = USUAL_ROOM
    dense: bool = False
    synced: bool = False

    def lines(self, most_bytes: int) -> tuple[int, int]:
        """The lines of each log, and the fewest that serve: there is no room if there are less."""
        if not self.stores:
            return min(1, most_bytes // self.line_bytes), 1
        if self.bounded:
            return min(self.bounded + 1, most_bytes // self.line_bytes), self.bounded + 1
        least = most = self.words + 2
        if self.loops:
            usual = _MOST_GLOBAL_LINES if self.dense else MOST_LINES
            least, most = max(LEAST_LINES, 2 * self.words), max(usual, 4 * self.words, LONG_BYTES // self.line_bytes)
            most *= _ROOMY if self.room.roomy else 1
        if enough := self._enough():
            least, most = min(least, enough), min(most, enough)
        lines = min(most_bytes // self.line_bytes, most, _MOST_LOG_LINES)
        if self.compact and not self.room.roomy and not self.synced:
            lines = min(lines, max(least, _MOST_COMPACT // self.line_bytes, min(_FEW_LINES, _MOST_OF_MANY // self.line_bytes)))
        return lines, least

    def _enough(self) -> int:
        """Lines beyond which there is nothing to store; 0: not known."""
        behind = self.words + 2
        if not (used := self.room.used):
            return max(self.room.most, SMALL_BYTES // self.line_bytes) + behind if self.room.most else 0
        spare = min(_MORE_SPARE * used, _SPARE_BYTES // self.line_bytes)
        return max(_SPARE * used, spare, SMALL_BYTES // self.line_bytes) + behind
