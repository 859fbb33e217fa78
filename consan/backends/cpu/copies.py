"""Non-bulk cp.async: copies in flight and the groups that they belong to (PTX ISA, "cp.async", "cp.async.commit_group",
"cp.async.wait_group").

A copy may land at any moment from its issue to the wait that covers it, and one that is never waited for at any moment up
to the thread's exit. The seed decides: seed 0 lands every copy as late as is legal, since that shows a missing wait in the
results; other seeds land each copy at once, after a while, or late. The source is read when the copy lands.

Groups belong to threads, so a copy is kept with the group number of each of its lanes. Completion through an mbarrier is
not handled here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .wave import Wave

Array = npt.NDArray[Any]
Lanes = npt.NDArray[np.intp]
NEVER = 1 << 62


@dataclass(eq=False)
class Copy:
    """One cp.async of some lanes: where each lane's bytes come from and go to, resolved at issue."""

    lanes: Lanes
    group: Array  # per lane: number of the group that it will be committed with
    source: tuple[Array, Array]
    target: tuple[Array, Array]
    fill: Array | None  # bytes to take from the source per lane; the rest of the target is zeroed
    nbytes: int
    due: int  # scheduler step at which it lands by itself

    def subset(self, chosen: Array) -> Copy:
        """The same copy for some of its lanes."""
        fill = None if self.fill is None else self.fill[chosen]
        (sv, si), (tv, ti) = self.source, self.target
        return Copy(self.lanes[chosen], self.group[chosen], (sv, si[chosen]), (tv, ti[chosen]), fill, self.nbytes, self.due)

    def land(self) -> None:
        """Do the copy."""
        (sv, si), (tv, ti) = self.source, self.target
        if self.fill is None:
            tv[ti] = sv[si]
            return
        data = np.zeros((len(ti), self.nbytes), np.uint8)
        some = self.fill.nonzero()[0]
        data[some] = sv[si[some]].view(np.uint8).reshape(-1, self.nbytes)
        data[np.arange(self.nbytes) >= self.fill[:, None]] = 0
        tv[ti] = data.view(tv.dtype)[:, 0]


class AsyncCopies:
    """The copies in flight of a wave."""

    def __init__(self, wave: Wave) -> None:
        self.committed = np.zeros(wave.lanes, np.int64)
        self.inside = np.zeros(wave.lanes, np.bool_)
        self.reset(None)

    def reset(self, rng: np.random.Generator | None) -> None:
        """A new wave starts."""
        self.rng = rng
        self.step = 0
        self.committed[...] = 0
        self.flying: list[Copy] = []
        self.next_due = NEVER

    def issue(self, copy: Copy) -> None:
        """A copy starts."""
        if self.rng is not None:
            choice = int(self.rng.integers(3))
            if choice == 0:
                copy.land()
                return
            if choice == 1:
                copy.due = self.step + int(self.rng.integers(1, self.rng.choice((4, 40, 400))))
                self.next_due = min(self.next_due, copy.due)
        self.flying.append(copy)

    def commit(self, sel: Any) -> None:
        """cp.async.commit_group."""
        self.committed[sel] += 1

    def tick(self, step: int) -> None:
        """Land what the schedule lets land by `step`."""
        self.step = step
        if step < self.next_due:
            return
        ready = [copy for copy in self.flying if copy.due <= step]
        self.flying = [copy for copy in self.flying if copy.due > step]
        self.next_due = min((copy.due for copy in self.flying), default=NEVER)
        for copy in ready:
            copy.land()

    def wait(self, lanes: Lanes, pending: int | None) -> None:
        """Land the copies of `lanes` but for their `pending` newest groups; None: also those not committed (wait_all)."""
        if not self.flying:
            return
        self.inside[lanes] = True
        kept: list[Copy] = []
        for copy in self.flying:
            due = self.inside[copy.lanes]
            if pending is not None:
                due &= copy.group < self.committed[copy.lanes] - pending
            kept += self._land(copy, due)
        self.flying = kept
        self.inside[lanes] = False

    @staticmethod
    def _land(copy: Copy, due: npt.NDArray[np.bool_]) -> list[Copy]:
        if due.all():
            copy.land()
            return []
        if not due.any():
            return [copy]
        copy.subset(due).land()
        return [copy.subset(~due)]
