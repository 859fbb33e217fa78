"""Asynchronous operations in flight: when each lands, and the groups and barriers that signal completion.

PTX ISA, "Asynchronous operations", "cp.async", "cp.async.bulk", "Completion Mechanisms for Asynchronous Copy Operations".

An operation may land at any moment from its issue to the wait that covers it. The schedule decides (schedule.py): seed 0 lands each as
late as is legal, since that exposes a missing wait in the results; other seeds land each at once, after a while, or late. When no
thread can run, operations land one by one, awaited ones first: one of each cluster that awaits any, so that clusters which do the same
stay together and run as one group. Sources are read at landing.

One queue, `plan.copies`, holds all kinds. An operation is a subclass of `PendingOperation`; most need only

    plan.copies.issue(BulkOperation(lanes, read=..., write=..., complete=..., family="bulk"))

`lanes` are the threads that issue it together (usually one). Addresses are resolved and checked before issue, so that a fault belongs
to the instruction. `read()` returns the data, `write(data)` stores them, `complete()` signals completion. A
tensor load of one thread (tensor.py) is

    signal = plan.mbarriers.completion(barrier, nbytes)   # barrier: item of the arena in units of 8 bytes (WindowLocator.part)
    plan.copies.issue(BulkOperation(lanes, read=gather, write=scatter, complete=signal, signals=frozenset((barrier,))))

and a tensor store names `family="bulk"` instead, which puts it into the bulk group that its threads will commit next.
Groups are counted per thread and family: `commit(lanes, family)`, `wait(lanes, pending, family)`, where pending None covers
what is not committed too, and `read=True` asks for the source reads only (cp.async.bulk.wait_group.read). The families are
"async" (cp.async), "bulk" and "wgmma"; "" is for operations in no group. `after` names a family whose earlier operations of
the same threads land first: wgmma operations pass after="wgmma" and so stay in order, cp.async.mbarrier.arrive after="async".
`behind` gives other threads than its own, where the operations of a whole CTA stay in order (tcgen05.py).

Not handled: what an operation does; see async_steps.py (cp.async), bulk.py, tensor.py, wgmma.py, tcgen05.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from consan.dataclass import dataclass

from .faults import StepSite
from .flying import Flying
from .schedule import AT_ONCE, HELD, LATE_READ, Schedule
from .wave import Wave

Array = npt.NDArray[Any]
Lanes = npt.NDArray[np.intp]
Bools = npt.NDArray[np.bool_]
NEVER = 1 << 62
POLLS = 100  # consecutive polls before a held operation lands too: the loop may wait for its data
EMPTY: frozenset[int] = frozenset()


class PendingOperation:
    """One asynchronous operation of some lanes. The queue sets `group` and `due`."""

    family = ""  # the family whose groups it belongs to
    after = ""  # the family whose earlier operations of the same lanes land first
    signals: frozenset[int] = EMPTY  # mbarriers that its landing changes, as 8-byte items of the arena
    splits = False  # whether its source reads can come before its writes
    site: StepSite | None = None  # the instruction that started it
    name: Any = None  # its name in a schedule
    held = False  # whether it stays in flight although a loop may be waiting for it
    receiver: int | None = None  # the CTA of the wave that receives this part of a multicast
    group: Array  # per lane: number of the group that it will be committed with
    due = NEVER  # scheduler step at which it lands

    def __init__(self, lanes: Lanes) -> None:
        self.lanes = lanes

    @property
    def behind(self) -> Lanes:
        """The lanes whose earlier operations (`after`) land first: its own."""
        return self.lanes

    def land(self) -> None:
        """Land all of it."""
        raise NotImplementedError

    def land_some(self, due: Bools) -> PendingOperation | None:
        """Land at least the part of the lanes that `due` marks. Returns the rest."""
        self.land()
        return None

    def subset(self, _chosen: Bools) -> PendingOperation | None:
        """The same operation for some of its lanes. None if it cannot be divided."""
        return None

    def load(self) -> None:
        """Do its source reads, if it `splits`."""
        raise NotImplementedError


@dataclass(eq=False)
class BulkOperation(PendingOperation):
    """An operation with two halves, reads and writes, and an optional signal at its end."""

    lanes: Lanes
    read: Callable[[], Any]
    write: Callable[[Any], None]
    complete: Callable[[], None] | None = None
    family: str = ""
    signals: frozenset[int] = EMPTY
    after: str = ""
    site: StepSite | None = None
    receiver: int | None = None
    splits = True
    _data: Any = None
    _loaded = False

    def load(self) -> None:  # noqa: D102 - as in PendingOperation
        if not self._loaded:
            self._data, self._loaded = self.read(), True

    def land(self) -> None:  # noqa: D102 - as in PendingOperation
        self.load()
        self.write(self._data)
        self._data = None
        if self.complete is not None:
            self.complete()


@dataclass(eq=False)
class Copy(PendingOperation):
    """One cp.async of some lanes: each lane's source and target, resolved at issue."""

    lanes: Lanes
    source: tuple[Array, Array]
    target: tuple[Array, Array]
    fill: Array | None  # bytes to take from the source per lane; the rest of the target is zeroed
    nbytes: int
    site: StepSite | None = None
    family = "async"

    def subset(self, chosen: Array) -> Copy:  # noqa: D102 - as in PendingOperation
        fill = None if self.fill is None else self.fill[chosen]
        (sv, si), (tv, ti) = self.source, self.target
        part = Copy(self.lanes[chosen], (sv, si[chosen]), (tv, ti[chosen]), fill, self.nbytes, self.site)
        part.group, part.due = self.group[chosen], self.due
        return part

    def land_some(self, due: Bools) -> PendingOperation | None:  # noqa: D102 - as in PendingOperation
        self.subset(due).land()
        return self.subset(~due)

    def land(self) -> None:  # noqa: D102 - as in PendingOperation
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
    """The operations in flight of a wave."""

    def __init__(self, wave: Wave) -> None:
        self.wave = wave
        self.inside = np.zeros(wave.lanes, np.bool_)
        self._committed: dict[str, Array] = {}
        self.reset(Schedule())

    def reset(self, schedule: Schedule) -> None:
        """A new wave starts."""
        self.schedule = schedule
        self.step = 0
        self.polls = 0
        for counts in self._committed.values():
            counts[...] = 0
        self.flying = Flying(self.wave)
        self._serial = 0
        self.next_due = NEVER

    def committed(self, family: str) -> Array:
        """Per lane, the groups of a family committed so far."""
        if family not in self._committed:
            self._committed[family] = np.zeros(self.wave.lanes, np.int64)
        return self._committed[family]

    def issue(self, operation: PendingOperation) -> None:
        """Put an operation in flight."""
        operation.group = self.committed(operation.family)[operation.lanes]
        for part, when in self.schedule.landings(operation):
            serial = self._serial = self._serial + 1
            self.flying[serial] = part
            if when == AT_ONCE:
                self._land(serial)
            elif when > 0:
                part.due = self.step + when
                self.next_due = min(self.next_due, part.due)
            elif when == LATE_READ:
                part.load()
            part.held = when == HELD

    def commit(self, lanes: Any, family: str) -> None:
        """cp.async.commit_group and the other commits."""
        self.committed(family)[lanes] += 1

    def ahead(self, family: str) -> Bools:
        """Per warp, whether it has committed more groups than another live warp of its warpgroup."""
        wave, commits, group = self.wave, self.committed(family), self._warpgroups()
        own, live = commits[wave.warps.slots[:, 0]], wave.warps.live > 0
        least = np.full(wave.warps.count, NEVER)
        np.minimum.at(least, group[live], own[live])
        return np.asarray(own > least[group])

    def _warpgroups(self) -> Lanes:
        """Per warp, the first warp of its warpgroup."""
        warps, size = np.arange(self.wave.warps.count), self.wave.warps.per_cta
        return warps // size * size + warps % size // 4 * 4

    def tick(self, step: int) -> None:
        """Land what the schedule makes due by `step`."""
        self.step = step
        if step < self.next_due:
            return
        for serial in [serial for serial, operation in self.flying.items() if operation.due <= step]:
            self._land(serial)
        self.next_due = min((operation.due for operation in self.flying.values()), default=NEVER)

    def land_one(self, awaited: frozenset[int], *, polled: bool = False) -> bool:
        """No thread can run: land one operation of each cluster that awaits any, else one. Returns whether there was one.

        `polled`: one thread runs, and may be waiting; then one operation lands.
        """
        flying: dict[int, PendingOperation] = self.flying
        self.polls = self.polls + 1 if polled else 0
        if 0 < self.polls < POLLS:
            flying = {serial: operation for serial, operation in flying.items() if not operation.held}
        if not flying:
            return False
        for part in ([] if polled else self.flying.awaited(awaited)) or [flying]:
            self._land(self.schedule.first(part, awaited))
        return True

    def wait(self, lanes: Lanes, pending: int | None, family: str, *, read: bool = False) -> None:
        """Land the operations of `lanes` except their `pending` newest groups. None: also uncommitted ones.

        `read`: only their source reads must be done.
        """
        if self.flying:
            self._wait(lanes, None if pending is None else self.committed(family) - pending, family, read)

    def wait_together(self, lanes: Lanes, pending: int, family: str) -> None:
        """The same where an operation is one of whole warpgroups: what a warp has waited for is complete for all four."""
        if not self.flying:
            return
        groups, warps = self._warpgroups(), self.wave.warps.of_lane
        ends = np.zeros(self.wave.warps.count, np.int64)
        np.maximum.at(ends, groups[warps[lanes]], self.committed(family)[lanes] - pending)
        self._wait(np.arange(self.wave.lanes), ends[groups[warps]], family, False)

    def _wait(self, lanes: Lanes, ends: Array | None, family: str, read: bool) -> None:
        """Land the operations of `lanes` in groups before `ends`, which is per lane."""
        for serial, operation in self.flying.of(family):
            due = self._inside(operation, lanes)
            if ends is not None:
                due &= operation.group < ends[operation.lanes]
            if not due.any():
                continue
            if read and operation.splits:
                operation.load()
            else:
                self._land(serial, due)

    def land_those(self, lanes: Lanes, chosen: Callable[[PendingOperation], bool]) -> None:
        """Land the chosen operations of `lanes`."""
        for serial, operation in list(self.flying.items()):
            if chosen(operation) and (due := self._inside(operation, lanes)).any():
                self._land(serial, due)

    def _inside(self, operation: PendingOperation, lanes: Lanes) -> Bools:
        """The operation's lanes that are among `lanes`."""
        self.inside[lanes] = True
        found = self.inside[operation.lanes]
        self.inside[lanes] = False
        return found

    def _land(self, serial: int, due: Bools | None = None) -> None:
        """Land an operation, or its due part, after those that it follows."""
        operation = self.flying.get(serial)
        if operation is None:
            return
        if operation.after:
            for earlier, other in self.flying.of(operation.after, operation.behind):
                if earlier < serial and (shared := self._inside(other, operation.behind)).any():
                    self._land(earlier, shared)
        if due is None or due.all():
            del self.flying[serial]
            operation.land()
            self.schedule.landed(operation)
            return
        rest = operation.land_some(due)
        if rest is None:
            del self.flying[serial]
            self.schedule.landed(operation)
        else:
            rest.name, rest.held = operation.name, operation.held
            self.flying[serial] = rest
