"""Accesses of a cluster held against each other: what nothing orders, what lacks a proxy fence, what reads bytes that nobody has written.

A generic write lacks a proxy fence before a bulk copy or a product only while its bytes are still there: what has been overwritten in order
is no matter of a fence any more. Accesses that come before everything that is still to come are forgotten.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from oracle_barriers import WARP, CtaBarriers
from oracle_clocks import Clocks
from oracle_rows import BULK, COPY, LIFE, PRODUCT, STORE, SYNC, Rows
from oracle_scopes import EXACT, EXECUTION, Scopes
from oracle_trace import CTA_SHIFT
from oracle_verdict import MISUSE, PROXY, RACE, SCOPE, WAIT, Found, Pair, Verdict

Array = npt.NDArray[Any]
GROUP = 4 * WARP  # threads of a warpgroup
_PRUNE = 4096  # rows


@dataclass
class Access:
    """New accesses of one instruction; arrays have an item for each."""

    threads: Array
    start: Array
    end: Array
    actors: Array
    times: Array
    line: int
    write: bool
    reads: bool
    who: int = SYNC
    strong: bool = False
    rmw: bool = False  # a read-modify-write
    narrow: bool = False
    element: int = 0
    values: list[bytes] | None = None


@dataclass(frozen=True)
class Shape:
    """The CTAs of a cluster, by rank, and the numbers of their threads: those of each CTA begin with a warp, or a warpgroup, of its own."""

    threads: int  # of a CTA
    ctas: int = 1

    @property
    def stride(self) -> int:
        """From the first number of a CTA to that of the next."""
        unit = 1 if self.ctas == 1 else GROUP if self.threads > GROUP else WARP
        return -(-self.threads // unit) * unit

    @property
    def lanes(self) -> int:
        """Lanes of a wave that the cluster has."""
        return self.threads * self.ctas

    def numbers(self, lanes: Array) -> Array:
        """The threads that lanes of a wave are."""
        inside = lanes % self.lanes
        return np.asarray(inside // self.threads * self.stride + inside % self.threads)


class Pairs:
    """The accesses of one cluster so far, and the verdict on them."""

    def __init__(self, shape: Shape, *, by_warp: bool, proxies: bool, homes: int = 1, level: int = EXACT) -> None:
        self.shape = shape
        numbers = np.arange(shape.stride * shape.ctas)
        self.home_of = numbers // shape.stride
        self.exists = numbers % shape.stride < shape.threads
        self.actor_of = numbers // WARP if by_warp else numbers
        self.proxies = proxies
        self.clocks = Clocks(int(self.actor_of[-1]) + 1, homes)
        self.scopes = Scopes(self.clocks, level)
        self.barriers = [CtaBarriers(self.clocks, self.actor_of[(self.home_of == home) & self.exists]) for home in range(shape.ctas)]
        self.rows = Rows()
        self.verdict = Verdict()
        self.initialized = np.zeros(shape.ctas << CTA_SHIFT, np.bool_)
        self.unwritten: dict[int, set[int]] = {}  # rows of reads: bytes that no write is ordered before
        self.replaced: dict[int, list[tuple[int, int, int, int]]] = {}  # rows of generic writes: by whom, when, which bytes
        self.team: dict[int, tuple[int, list[int]]] = {}  # of a warp's part in a product: the warp, and all parts
        self.signal_of: dict[int, int] = {}  # and the column of those who have seen an arrival of the warp behind its wait for it

    def add(self, new: Access) -> None:
        """Compare accesses with all before and with each other, and keep them."""
        if self.scopes.level == EXECUTION:
            return
        rows, actors = self.rows, self.actor_of[new.threads]
        for first in range(0, len(new.start), 64):
            self._compare(new, slice(first, first + 64), actors)
        first_row = rows.count
        numbers = rows.add(
            new.values, start=new.start, end=new.end, actor=new.actors, time=new.times, line=new.line, write=new.write,
            strong=new.strong, rmw=new.rmw, narrow=new.narrow, element=new.element, who=new.who, thread=new.threads,
            issuer=actors, issued=self.clocks.time[actors],
        )  # fmt: skip
        # Called hooks do not see that red.async reads: a finding of that is allowed, and not demanded.
        if new.reads or (new.who == STORE and new.rmw):
            self._keep_unwritten(new, numbers)
        self._among_themselves(new, first_row)

    def _compare(self, new: Access, part: slice, actors: Array) -> None:
        rows = self.rows
        near = self._near(int(new.start[part].min()), int(new.end[part].max()), writes=not new.write)
        index, row = ((rows.start[near] < new.end[part, None]) & (rows.end[near] > new.start[part, None])).nonzero()
        index, row = index + part.start, near[row]
        if not len(index):
            return
        ordered = self.clocks.before(actors[index], rows.actor[row], rows.time[row])
        for i, r in zip(index[~ordered].tolist(), row[~ordered].tolist(), strict=True):
            self._unordered(new, i, r, int(actors[i]))
        if self.proxies:
            self._replace(new, index[ordered], row[ordered], actors)
        if self.proxies and new.who in (BULK, PRODUCT):
            self._check_proxies(new, index[ordered], row[ordered], actors)

    def _near(self, low: int, high: int, *, writes: bool) -> Array:
        """The rows that have bytes between two places; `writes`: of writes only."""
        rows = self.rows
        found = (rows.start < high) & (rows.end > low)
        return np.asarray((found & (rows.write > 0) if writes else found).nonzero()[0])

    def _unordered(self, new: Access, i: int, r: int, actor: int) -> None:
        rows = self.rows
        old_who, old_write = int(rows.who[r]), bool(rows.write[r])
        span = max(int(new.start[i]), int(rows.start[r])), min(int(new.end[i]), int(rows.end[r]))
        if LIFE in (old_who, new.who):
            self.report(new.line, r, {MISUSE, RACE}, span)
            return
        if self._morally_strong(new, i, r) or not (new.write or old_write):
            return
        over = self._over(r, int(new.threads[i]))
        if over == "yes":
            return
        if new.write and not old_write:
            self.unwritten.get(r, set()).difference_update(range(*span))
        race = SCOPE if self._excluded(new, i, r) else RACE
        kinds = {race}
        if old_who != SYNC:
            known = old_who in (BULK, STORE) and bool(self.clocks.before(np.array([actor]), rows.issuer[[r]], rows.issued[[r]])[0])
            kinds = {WAIT} if known and not self.observed(int(rows.actor[r])) else {WAIT, race}
        elif new.who != SYNC:
            kinds = {WAIT, race}
        mild = (over == "warp" and new.who == SYNC) or self._atomics(new, i, r)
        self.report(new.line, r, kinds, span, mild=mild or self._same_value(new, i, r, span))
        within = int(rows.thread[r]) // WARP == int(new.threads[i]) // WARP
        self.verdict.pairs[frozenset((new.line, int(rows.line[r])))].within |= within

    def _atomics(self, new: Access, i: int, r: int) -> bool:
        """Whether two read-modify-writes that overlap in part stay atomic (8.7.2)."""
        return bool(self._included(new, i, r) and new.strong and new.rmw and self.rows.strong[r] and self.rows.rmw[r])

    def _morally_strong(self, new: Access, i: int, r: int) -> bool:
        """Both strong, of the same bytes, and each of a scope that includes the other thread (R-RACE)."""
        rows = self.rows
        if not (new.strong and rows.strong[r] and new.element == rows.element[r]):
            return False
        return bool(self._included(new, i, r) and new.start[i] == rows.start[r] and new.end[i] == rows.end[r])

    def _included(self, new: Access, i: int, r: int) -> bool:
        """Whether the scope of each of two strong accesses includes the other thread."""
        return self.home_of[new.threads[i]] == self.home_of[self.rows.thread[r]] or not (new.narrow or self.rows.narrow[r])

    def _excluded(self, new: Access, i: int, r: int) -> bool:
        """Whether a scope alone keeps two accesses from being morally strong."""
        return bool(new.strong and self.rows.strong[r] and new.element == self.rows.element[r] and not self._included(new, i, r))

    def _over(self, row: int, thread: int) -> str:
        """Whether a thread may take a product for over: "yes", "no", or "warp" if only its own warp has waited.

        A commit makes one group for the warpgroup, so for threads of other warpgroups it is over when one of its warps has waited and
        they come after that. For the warpgroup's own threads all four must have, or one of them has arrived at an mbarrier since, in a
        phase that the thread has seen (README, on points that can be read in two ways).
        """
        if self.rows.who[row] != PRODUCT:
            return "no"
        _, group = self.team[int(self.rows.actor[row])]
        seen = {self.team[part][0]: bool(self.clocks.seen[self.actor_of[thread], part]) for part in group}
        inside = thread // GROUP == int(self.rows.thread[row]) // GROUP
        if any(self.clocks.seen[self.actor_of[thread], self.signal_of[part]] for part in group):
            return "yes"
        if all(seen.values()) or (any(seen.values()) and not inside):
            return "yes"
        return "warp" if seen.get(thread // WARP) else "no"

    def observed(self, operation: int) -> bool:
        """Whether anybody has observed that an operation is over."""
        return bool(self.clocks.seen[:, operation].any())

    def _same_value(self, new: Access, i: int, r: int, span: tuple[int, int]) -> bool:
        old = self.rows.values[r]
        if new.values is None or old is None:
            return False
        mine = new.values[i][span[0] - int(new.start[i]) : span[1] - int(new.start[i])]
        return mine == old[span[0] - int(self.rows.start[r]) : span[1] - int(self.rows.start[r])]

    def report(self, line: int, row: int, kinds: set[str], span: tuple[int, int], *, mild: bool = False) -> None:
        """A line and a row that are at odds."""
        self.pair(frozenset((line, int(self.rows.line[row]))), kinds, span, "warning" if mild else "error")

    def pair(self, pair: Pair, kinds: set[str], span: tuple[int, int], severity: str = "error") -> None:
        """A pair of lines that are at odds."""
        found = self.verdict.pairs.setdefault(pair, Found())
        found.kinds |= kinds
        found.count += 1
        found.spans.add(span)
        found.severity = "error" if severity == "error" else found.severity

    def _replace(self, new: Access, index: Array, row: Array, actors: Array) -> None:
        """Note what overwrites generic writes that come before it: who sees the new bytes need not care for the old.

        Between a generic write and a bulk load there must be a proxy fence for that; between two generic writes there need not be,
        and where there is one, whoever comes after the second comes after the fence too.
        """
        rows = self.rows
        if not new.write:
            return
        unfenced = self._unfenced(row, actors[index])
        noted = (rows.write[row] > 0) & (rows.who[row] != BULK) & (unfenced != (new.who == BULK))
        for i, r in zip(index[noted].tolist(), row[noted].tolist(), strict=True):
            self.replaced.setdefault(r, []).append((int(new.actors[i]), int(new.times[i]), int(new.start[i]), int(new.end[i])))

    def _unfenced(self, row: Array, threads: Array) -> Array:
        """Whether rows are not behind a proxy fence for what threads do next to their bytes."""
        rows = self.rows
        return np.asarray(self.clocks.behind_fence(rows.start[row] >> CTA_SHIFT, threads, rows.actor[row]) < rows.time[row])

    def _left(self, r: int, low: int, high: int, threads: Array) -> set[int]:
        """The bytes of a write that nothing has replaced that comes before what all of these threads do next."""
        left = set(range(max(low, int(self.rows.start[r])), min(high, int(self.rows.end[r]))))
        for actor, time, start, end in self.replaced.get(r, ()):
            if (self.clocks.seen[threads, actor] >= time).all():
                left.difference_update(range(start, end))
        return left

    def _check_proxies(self, new: Access, index: Array, row: Array, actors: Array) -> None:
        """A generic write of bytes that are still there must be behind a proxy fence."""
        rows, who = self.rows, self.rows.who[row]
        generic = (rows.write[row] > 0) & ((who == SYNC) | (who == STORE) | ((who == COPY) & (new.who == BULK)))
        unfenced = generic & self._unfenced(row, actors[index])
        for i, r in zip(index[unfenced].tolist(), row[unfenced].tolist(), strict=True):
            left = self._left(r, int(new.start[i]), int(new.end[i]), actors[[i]])
            if left:
                self.report(new.line, r, {PROXY}, (min(left), min(left) + 1))

    def _among_themselves(self, new: Access, first: int) -> None:
        if not new.write or len(new.start) < 2:
            return
        order = np.argsort(new.start, kind="stable")
        start, end = new.start[order], new.end[order]
        for a in (np.maximum.accumulate(end)[:-1] > start[1:]).nonzero()[0].tolist():
            b = a + 1
            for c in range(a, -1, -1):
                i, j = sorted((int(order[c]), int(order[b])))
                if end[c] > start[b] and (new.actors[i] != new.actors[j]):
                    self._unordered(new, j, first + i, int(self.actor_of[new.threads[j]]))
                if start[c] + 4096 < start[b]:
                    break

    def _keep_unwritten(self, new: Access, numbers: Array) -> None:
        rows, actors = self.rows, self.actor_of[new.threads]
        first, last = int(new.start.min()), int(new.end.max())
        near = self._near(first, last, writes=True)
        near = near[near < numbers[0]]
        for i in self._not_surely_written(new, near[self._before_all(np.unique(actors), near)]):
            low, high = int(new.start[i]), int(new.end[i])
            over = near[(rows.start[near] < high) & (rows.end[near] > low)]
            covered = self.initialized[low:high].copy()
            ordered = self.clocks.before(np.full(len(over), actors[i]), rows.actor[over], rows.time[over])
            for r in over[ordered].tolist():
                covered[max(0, int(rows.start[r]) - low) : int(rows.end[r]) - low] = True
            missing = {low + int(k) for k in (~covered).nonzero()[0]}
            if missing:
                self.verdict.maybe_uninitialized.add(new.line)
                for r in over[~ordered].tolist():
                    missing -= set(range(int(rows.start[r]), int(rows.end[r])))
                self.unwritten[int(numbers[i])] = missing if new.reads else set()

    def _before_all(self, actors: Array, row: Array) -> Array:
        """Whether rows happen before what every one of some actors does next."""
        return np.asarray((self.clocks.seen[actors][:, self.rows.actor[row]] >= self.rows.time[row]).all(0))

    def _not_surely_written(self, new: Access, written: Array) -> list[int]:
        """Which accesses have bytes in none of some rows, and not written long ago either."""
        low, high = int(new.start.min()), int(new.end.max())
        depth = np.zeros(high - low + 1, np.int64)
        np.add.at(depth, np.maximum(self.rows.start[written] - low, 0), 1)
        np.add.at(depth, np.minimum(self.rows.end[written] - low, high - low), -1)
        missing = (np.cumsum(depth[:-1]) == 0) & ~self.initialized[low:high]
        before = np.concatenate(([0], np.cumsum(missing)))
        found: list[int] = (before[new.end - low] > before[new.start - low]).nonzero()[0].tolist()
        return found

    def prune(self) -> None:
        """Forget what happens before everything that is still to come."""
        live = np.unique(np.concatenate([one.actor_of[one.live] for one in self.barriers]))
        if self.rows.count < _PRUNE or not len(live):
            return
        rows, clocks = self.rows, self.clocks
        old = clocks.seen[live].min(0)[rows.actor] >= rows.time
        behind = clocks.fenced[:, live].min(1)
        fenced = behind[rows.start >> CTA_SHIFT if clocks.homes > 1 else 0, rows.actor] >= rows.time
        for start, end in zip(rows.start[old & (rows.write > 0)].tolist(), rows.end[old & (rows.write > 0)].tolist(), strict=True):
            self.initialized[start:end] = True
        needed = (rows.write > 0) & self.proxies & ~fenced & (rows.who != BULK)
        for r in (old & needed).nonzero()[0].tolist():
            needed[r] = bool(self._left(r, int(rows.start[r]), int(rows.end[r]), live))
        self.settle_unwritten(old & ~needed)
        kept = rows.keep(~old | needed).tolist()
        self.unwritten = {new: self.unwritten[k] for new, k in enumerate(kept) if k in self.unwritten}
        self.replaced = {new: self.replaced[k] for new, k in enumerate(kept) if k in self.replaced}

    def settle_unwritten(self, gone: Array) -> None:
        """Reads that nobody has written for by now."""
        for row, missing in self.unwritten.items():
            if missing and gone[row]:
                self.verdict.uninitialized.setdefault(int(self.rows.line[row]), set()).update(missing)
