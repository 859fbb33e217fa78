"""Groups: lanes at the same place with the same call stack, which run as one; and the queue of those ready to run.

The order in which groups run decides where lanes merge again: the deepest call goes first, and within it the smallest position, so
that lanes that are behind catch up and divergent lanes merge at the first common point (as the convergence barriers of a GPU mostly
do). This order alone would starve: a group that spins on a lock would never let the holder run. So a group that has branched
backwards too often moves to the next round, and lower rounds go first. Rounds alone would starve, too: groups that spin on a lock may
go before each other for ever, and before the holder. So a group that has waited too long goes first.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from consan.backends.cpu.engine.code import BoundBlock, BoundFunction

Array = npt.NDArray[Any]
Lanes = npt.NDArray[np.intp]

PATIENCE = 256  # how often each of the others may go first
MAY_WAIT, WRITES = 1, 2  # what a loop does: it may wait for another thread; it writes memory, so that it does more than wait


class Activation:
    """An activation on the call stack of a group; one object per call site, so that equal stacks are identical."""

    __slots__ = ("children", "depth", "function", "parent", "return_to", "saved")

    def __init__(self, parent: Activation | None, function: BoundFunction, return_to: Any = None) -> None:
        self.parent = parent
        self.function = function
        self.return_to = return_to  # the call's terminator: knows what to copy back and where to continue
        self.depth: int = 0 if parent is None else parent.depth + 1
        self.children: dict[int, Activation] = {}
        self.saved: Any = None  # what a recursive call must restore

    def calls(self) -> Iterator[int]:
        """The lines of the calls on the stack, the innermost first."""
        frame: Activation | None = self
        while frame is not None and frame.return_to is not None:
            yield frame.return_to.site.line
            frame = frame.parent


class LaneGroup:
    """Lanes that run together."""

    __slots__ = ("_lanes", "_mask", "_sel", "block", "count", "late", "polls", "round", "since", "spins", "stack")

    def __init__(self, lanes: Lanes, stack: Activation, block: BoundBlock, turn: int = 0) -> None:
        self.stack = stack
        self.block = block
        self.round = turn
        self.spins = 0
        self.since = 0  # how many groups had been taken from the queue when this one came to wait there
        self.late = False  # others go first until it has come back to its block
        self.polls = 0  # MAY_WAIT, WRITES: of the blocks since it last let others run
        self.set_lanes(lanes)

    def set_lanes(self, lanes: Lanes) -> None:
        """Replace the lanes (sorted, at least one)."""
        self._lanes = lanes
        self.count = len(lanes)
        self._sel: Any = None
        self._mask: npt.NDArray[np.bool_] | None = None

    @property
    def lanes(self) -> Lanes:
        """Sorted lane numbers."""
        return self._lanes

    @property
    def sel(self) -> Any:
        """The lanes as a slice where they are contiguous, else as an index array."""
        if self._sel is None:
            first, last = int(self._lanes[0]), int(self._lanes[-1])
            self._sel = slice(first, last + 1) if last - first + 1 == self.count else self._lanes
        return self._sel

    def mask(self, width: int) -> npt.NDArray[np.bool_]:
        """The lanes as a mask over the whole wave."""
        if self._mask is None:
            self._mask = np.zeros(width, np.bool_)
            self._mask[self._lanes] = True
        return self._mask


def merge_lanes(a: Lanes, b: Lanes) -> Lanes:
    """Sorted union of two disjoint sorted lane sets."""
    merged = np.concatenate((a, b))
    if a[-1] > b[0]:
        merged.sort(kind="stable")
    return merged


Key = tuple[int, int, int]  # round, -depth, position


class ReadyQueue:
    """Groups that can run, the one to run next first; groups at the same place are merged."""

    def __init__(self) -> None:
        self._heap: list[tuple[Key, int, LaneGroup]] = []
        self._at: dict[tuple[int, int], LaneGroup] = {}
        self._serial = 0
        self._taken = 0

    def __len__(self) -> int:
        return len(self._at)

    def groups(self) -> list[LaneGroup]:
        """All groups in the queue."""
        return list(self._at.values())

    @staticmethod
    def key(group: LaneGroup) -> Key:
        """Order of a group."""
        return group.round, -group.stack.depth, group.block.position

    def push(self, group: LaneGroup) -> None:
        """Add a group, or merge it with the one that waits at the same place."""
        group.since = self._taken
        self._put(group)

    def _put(self, group: LaneGroup) -> None:
        place = (id(group.stack), group.block.position)
        there = self._at.get(place)
        if there is not None:
            group.set_lanes(merge_lanes(there.lanes, group.lanes))
            group.round = min(group.round, there.round)
            group.since = min(group.since, there.since)
            group.spins = max(group.spins, there.spins)
            group.polls |= there.polls
        self._at[place] = group
        self._serial += 1
        heapq.heappush(self._heap, (self.key(group), self._serial, group))

    def _settle(self) -> bool:
        """Drop stale entries from the top of the heap. Returns whether any group is left."""
        heap = self._heap
        while heap:
            group = heap[0][2]
            if self._at.get((id(group.stack), group.block.position)) is group:
                return True
            heapq.heappop(heap)
        return False

    def best(self) -> Key | None:
        """Key of the group to run next."""
        return self._heap[0][0] if self._settle() else None

    def pop(self) -> LaneGroup | None:
        """Take the group to run next."""
        if not self._settle():
            return None
        self._taken += 1
        if self._taken % PATIENCE == 0:
            self._hurry()
        group = heapq.heappop(self._heap)[2]
        del self._at[(id(group.stack), group.block.position)]
        return group

    def _hurry(self) -> None:
        """Let a group that has waited too long go first."""
        oldest = min(self._at.values(), key=lambda group: group.since)
        if self._taken - oldest.since > PATIENCE * len(self):
            self.prefer(oldest, min(group.round for group in self._at.values()) - 1)
            self._settle()

    def take(self, place: tuple[int, int]) -> LaneGroup | None:
        """Take the group at a place out of the queue."""
        return self._at.pop(place, None)

    def prefer(self, group: LaneGroup, turn: int) -> None:
        """Give a group in the queue another round."""
        if group.round > turn:
            self.take((id(group.stack), group.block.position))
            group.round = turn
            self._put(group)
