"""The oracle: exact happens-before over the events of a plain run, written from SEMANTICS.md, with nothing of the shadow runtime.

Every access of a CTA is kept, to the byte and the thread, and each new one is compared with all of them: so the verdict is about
all pairs that nothing orders, in whichever order this run had them. It is the same for all schedules of a program whose
synchronisation does not depend on data.

Where an access and an asynchronous operation, or its issue, are not ordered at all, the order of the run decides between data-race
and missing-wait, and likewise between data-race and uninitialized-read: such a pair has both kinds, and either is right.

Severity: a pair is a warning if it is ordered once each warp counts as one thread (2.8 R-W1), or if both stored the same
value. A pair that is ordered then, and lacks a proxy fence, lacks both: it may be called a data-race or a missing-proxy-fence.

Not handled: registers, global memory, clusters, policy `isa`. Of the misuse of barriers these are found: what oracle_barriers.py names, use
without init or after inval, init twice, use as data, and inval before the copies that signal it are over.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from oracle_barriers import ALL, WARP, CtaBarriers, MBarrier
from oracle_clocks import Clocks, Snapshot, join
from oracle_rows import BULK, COPY, LIFE, PRODUCT, SYNC, Rows
from oracle_trace import CTA_SHIFT, ELSEWHERE, Event, Trace

Array = npt.NDArray[Any]
Pair = frozenset[int]

RACE, WAIT, PROXY, UNINIT = "data-race", "missing-wait", "missing-proxy-fence", "uninitialized-read"
MISUSE, LIFETIME = "barrier-misuse", "lifetime"
_INSIDE = (1 << CTA_SHIFT) - 1
_PRUNE = 4096  # rows
_FAMILIES = {COPY: "async", BULK: "bulk", PRODUCT: "wgmma"}


@dataclass
class Found:
    """A pair of sites (one line where both are the same) with every kind that is right for it."""

    kinds: set[str] = field(default_factory=set)
    severity: str = "warning"
    count: int = 0
    spans: set[tuple[int, int]] = field(default_factory=set)  # bytes

    def touches(self, other: Found) -> bool:
        """Whether the two have bytes in common."""
        return any(low < high_ and low_ < high for low, high in self.spans for low_, high_ in other.spans)


@dataclass
class Verdict:
    """What the oracle says of one launch."""

    pairs: dict[Pair, Found] = field(default_factory=dict)
    maybe_uninitialized: set[int] = field(default_factory=set)  # lines of reads no write is ordered before
    uninitialized: dict[int, set[int]] = field(default_factory=dict)  # of those, the bytes that nobody writes unordered either
    kinds: set[str] = field(default_factory=set)  # beyond pairs: deadlock
    merged: Verdict | None = None  # the same with the bound of merged lanes

    @property
    def clean(self) -> bool:
        """Whether there is nothing that is an error."""
        return not self.uninitialized and not self.kinds and all(found.severity != "error" for found in self.pairs.values())

    def merge(self, other: Verdict) -> None:
        """Add what another CTA has."""
        for pair, found in other.pairs.items():
            mine = self.pairs.setdefault(pair, Found())
            mine.kinds |= found.kinds
            mine.count += found.count
            mine.spans |= found.spans
            mine.severity = "error" if "error" in (mine.severity, found.severity) else "warning"
        self.maybe_uninitialized |= other.maybe_uninitialized
        for line, missing in other.uninitialized.items():
            self.uninitialized.setdefault(line, set()).update(missing)


@dataclass
class _Access:
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
    element: int = 0
    values: list[bytes] | None = None


class Cta:
    """One CTA under the oracle; `by_warp`: each warp counts as one thread.

    `merged`: so it does, and a thread goes on in the moment of its own last release, wait or barrier, even where another lane has released
    since. That is less than the truth: the bound that consan's clocks of warps have.
    """

    def __init__(self, threads: int, *, by_warp: bool, proxies: bool, merged: bool = False) -> None:
        numbers = np.arange(threads)
        self.actor_of = numbers // WARP if by_warp else numbers
        self.proxies = proxies
        self.clocks = Clocks(int(self.actor_of[-1]) + 1)
        self.barriers = CtaBarriers(self.clocks, self.actor_of)
        self.rows = Rows()
        self.verdict = Verdict()
        self.objects: dict[int, MBarrier] = {}
        self.flags: dict[int, Snapshot] = {}
        self.open: dict[tuple[str, int], list[int]] = {}  # operations not committed, by family and thread
        self.groups: dict[tuple[str, int], list[list[int]]] = {}
        self.arrivals: dict[tuple[int, int], list[list[int]]] = {}  # copies covered by arrive-ons, by place and thread
        self.copies: dict[int, list[int]] = {}  # all cp.async of a thread
        self.serials: dict[int, int] = {}  # bulk operations: their actors
        self.lines: dict[int, int] = {}  # actors of bulk operations: their lines
        self.signals: dict[int, list[int]] = {}  # of mbarriers: the bulk operations that signal them
        self.users: dict[int, dict[tuple[int, int], int]] = {}  # of mbarriers: when, by thread and line
        self.initialized = np.zeros(1 << CTA_SHIFT, np.bool_)
        self.unwritten: dict[int, set[int]] = {}  # rows of reads: bytes that no write is ordered before
        self.replaced: dict[int, list[tuple[int, int, int, int]]] = {}  # rows of generic writes: by whom, when, which bytes
        self.seen_generations = 0
        self.own = np.ones(threads, np.int64) if merged else None  # moments of the warp's clock that its threads are in

    # Comparing -------------------------------------------------------------------------------------------------------

    def add(self, new: _Access) -> None:
        """Compare accesses with all before and with each other, and keep them."""
        rows, actors = self.rows, self.actor_of[new.threads]
        for first in range(0, len(new.start), 64):
            self._compare(new, slice(first, first + 64), actors)
        first_row = rows.count
        numbers = rows.add(
            new.values, start=new.start, end=new.end, actor=new.actors, time=new.times, line=new.line, write=new.write,
            strong=new.strong, element=new.element, who=new.who, thread=new.threads, issuer=actors, issued=self.clocks.time[actors],
        )  # fmt: skip
        if new.reads:
            self._keep_unwritten(new, numbers)
        self._among_themselves(new, first_row)

    def _compare(self, new: _Access, part: slice, actors: Array) -> None:
        rows = self.rows
        over = (rows.start < new.end[part, None]) & (rows.end > new.start[part, None])
        if not new.write:
            over &= rows.write > 0
        index, row = over.nonzero()
        index += part.start
        if not len(index):
            return
        ordered = self.clocks.before(actors[index], rows.actor[row], rows.time[row])
        for i, r in zip(index[~ordered].tolist(), row[~ordered].tolist(), strict=True):
            self._unordered(new, i, r, int(actors[i]))
        if self.proxies:
            self._replace(new, index[ordered], row[ordered], actors)
        if self.proxies and new.who in (BULK, PRODUCT):
            self._check_proxies(new, index[ordered], row[ordered], actors)

    def _unordered(self, new: _Access, i: int, r: int, actor: int) -> None:
        rows = self.rows
        old_who, old_write = int(rows.who[r]), bool(rows.write[r])
        span = max(int(new.start[i]), int(rows.start[r])), min(int(new.end[i]), int(rows.end[r]))
        if LIFE in (old_who, new.who):
            self._report(new.line, r, {MISUSE, RACE}, span)
            return
        same = (
            new.strong and rows.strong[r] and new.element == rows.element[r] and new.start[i] == rows.start[r] and new.end[i] == rows.end[r]
        )
        if same or not (new.write or old_write):
            return
        if new.write and not old_write:
            self.unwritten.get(r, set()).difference_update(range(*span))
        kinds = {RACE}
        if old_who != SYNC:
            known = old_who == BULK and bool(self.clocks.before(np.array([actor]), rows.issuer[[r]], rows.issued[[r]])[0])
            kinds = {WAIT} if known and not self._observed(int(rows.actor[r])) else {WAIT, RACE}
        elif new.who != SYNC:
            kinds = {WAIT, RACE}
        self._report(new.line, r, kinds, span, alike=self._same_value(new, i, r, span))

    def _observed(self, operation: int) -> bool:
        return bool(self.clocks.seen[:, operation].any())

    def _same_value(self, new: _Access, i: int, r: int, span: tuple[int, int]) -> bool:
        old = self.rows.values[r]
        if new.values is None or old is None:
            return False
        mine = new.values[i][span[0] - int(new.start[i]) : span[1] - int(new.start[i])]
        return mine == old[span[0] - int(self.rows.start[r]) : span[1] - int(self.rows.start[r])]

    def _report(self, line: int, row: int, kinds: set[str], span: tuple[int, int], *, alike: bool = False) -> None:
        self._pair(frozenset((line, int(self.rows.line[row]))), kinds, span, "warning" if alike else "error")

    def _pair(self, pair: Pair, kinds: set[str], span: tuple[int, int], severity: str = "error") -> None:
        found = self.verdict.pairs.setdefault(pair, Found())
        found.kinds |= kinds
        found.count += 1
        found.spans.add(span)
        found.severity = "error" if severity == "error" else found.severity

    def _replace(self, new: _Access, index: Array, row: Array, actors: Array) -> None:
        """Note what overwrites generic writes that come before it: who sees the new bytes need not care for the old.

        Between a generic write and a bulk load there must be a proxy fence for that; between two generic writes there need not be,
        and where there is one, whoever comes after the second comes after the fence too.
        """
        rows = self.rows
        if not new.write:
            return
        unfenced = self.clocks.fenced[actors[index], rows.actor[row]] < rows.time[row]
        noted = (rows.write[row] > 0) & (rows.who[row] != BULK) & (unfenced != (new.who == BULK))
        for i, r in zip(index[noted].tolist(), row[noted].tolist(), strict=True):
            self.replaced.setdefault(r, []).append((int(new.actors[i]), int(new.times[i]), int(new.start[i]), int(new.end[i])))

    def _left(self, r: int, low: int, high: int, threads: Array) -> set[int]:
        """The bytes of a write that nothing has replaced that comes before what all of these threads do next."""
        left = set(range(max(low, int(self.rows.start[r])), min(high, int(self.rows.end[r]))))
        for actor, time, start, end in self.replaced.get(r, ()):
            if (self.clocks.seen[threads, actor] >= time).all():
                left.difference_update(range(start, end))
        return left

    def _check_proxies(self, new: _Access, index: Array, row: Array, actors: Array) -> None:
        """A generic write of bytes that are still there must be behind a proxy fence."""
        rows, who = self.rows, self.rows.who[row]
        generic = (rows.write[row] > 0) & ((who == SYNC) | ((who == COPY) & (new.who == BULK)))
        unfenced = generic & (self.clocks.fenced[actors[index], rows.actor[row]] < rows.time[row])
        for i, r in zip(index[unfenced].tolist(), row[unfenced].tolist(), strict=True):
            left = self._left(r, int(new.start[i]), int(new.end[i]), actors[[i]])
            if left:
                self._report(new.line, r, {PROXY}, (min(left), min(left) + 1))

    def _among_themselves(self, new: _Access, first: int) -> None:
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

    # Uninitialized reads -----------------------------------------------------------------------------------------------

    def _keep_unwritten(self, new: _Access, numbers: Array) -> None:
        rows, actors = self.rows, self.actor_of[new.threads]
        for i, number in enumerate(numbers.tolist()):
            low, high = int(new.start[i]), int(new.end[i])
            if self.initialized[low:high].all():
                continue
            over = ((rows.start < high) & (rows.end > low) & (rows.write > 0)).nonzero()[0]
            over = over[over < numbers[0]]
            covered = self.initialized[low:high].copy()
            ordered = self.clocks.before(np.full(len(over), actors[i]), rows.actor[over], rows.time[over])
            for r in over[ordered].tolist():
                covered[max(0, int(rows.start[r]) - low) : int(rows.end[r]) - low] = True
            missing = {low + int(k) for k in (~covered).nonzero()[0]}
            if missing:
                self.verdict.maybe_uninitialized.add(new.line)
                for r in over[~ordered].tolist():
                    missing -= set(range(int(rows.start[r]), int(rows.end[r])))
                self.unwritten[number] = missing

    def _prune(self) -> None:
        """Forget what happens before everything that is still to come."""
        live = np.unique(self.actor_of[self.barriers.live])
        if self.rows.count < _PRUNE or not len(live):
            return
        rows, clocks = self.rows, self.clocks
        old = clocks.seen[live].min(0)[rows.actor] >= rows.time
        fenced = clocks.fenced[live].min(0)[rows.actor] >= rows.time
        for start, end in zip(rows.start[old & (rows.write > 0)].tolist(), rows.end[old & (rows.write > 0)].tolist(), strict=True):
            self.initialized[start:end] = True
        needed = (rows.write > 0) & self.proxies & ~fenced & (rows.who != BULK)
        for r in (old & needed).nonzero()[0].tolist():
            needed[r] = bool(self._left(r, int(rows.start[r]), int(rows.end[r]), live))
        self._settle_unwritten(old & ~needed)
        kept = rows.keep(~old | needed).tolist()
        self.unwritten = {new: self.unwritten[k] for new, k in enumerate(kept) if k in self.unwritten}
        self.replaced = {new: self.replaced[k] for new, k in enumerate(kept) if k in self.replaced}

    def _settle_unwritten(self, gone: Array) -> None:
        for row, missing in self.unwritten.items():
            if missing and gone[row]:
                self.verdict.uninitialized.setdefault(int(self.rows.line[row]), set()).update(missing)

    def finish(self) -> Verdict:
        """The verdict, after the last event."""
        self._settle_unwritten(np.ones(self.rows.count, np.bool_))
        for actor, line in self.lines.items():
            if not self._observed(actor):
                self._pair(frozenset((line,)), {LIFETIME}, (0, 0))
        for pair in self.barriers.misuse:
            self._pair(pair, {MISUSE}, (0, 0))
        return self.verdict

    # Events ------------------------------------------------------------------------------------------------------------

    def handle(self, event: Event, threads: Array) -> None:
        """One event of threads of this CTA; arrays in its data have been cut to them."""
        _HANDLERS[event.kind](self, event, threads)
        if self.own is not None and (event.kind in _CATCH_UP or event.data.get("strong") or "arrive" in event.data.get("action", "")):
            threads = np.concatenate((threads, np.array(self.barriers.released, np.int64)))
            self.own[threads] = self.clocks.time[self.actor_of[threads]]
            self.barriers.released.clear()
        if self.barriers.generations != self.seen_generations:
            self.seen_generations = self.barriers.generations
            self._prune()

    def _sync_access(self, event: Event, threads: Array, places: Array, nbytes: int, **more: Any) -> None:
        actors = self.actor_of[threads]
        times = self.clocks.time[actors] if self.own is None else self.own[threads]
        self.add(_Access(threads, places, places + nbytes, actors, times, event.line, **more))

    def _on_access(self, event: Event, threads: Array) -> None:
        data = event.data
        inside = data["places"] != ELSEWHERE
        if inside.any():
            places, values = data["places"][inside] & _INSIDE, data["values"]
            self._check_objects(event.line, places, places + data["nbytes"], threads[inside])
            chosen = None if values is None else [values[k] for k in inside.nonzero()[0].tolist()]
            self._sync_access(
                event, threads[inside], places, data["nbytes"], write=data["access"] != "read", reads=data["access"] != "write",
                strong=data["strong"], element=data["element"], values=chosen,
            )  # fmt: skip
        self._synchronise(event, threads)

    def _check_objects(self, line: int, start: Array, end: Array, threads: Array) -> None:
        """Data accesses must keep off live objects, and be ordered after all that was done to dead ones."""
        for place, item in self.objects.items():
            over = (start < place + 8) & (end > place)
            if over.any() and item.live:
                self._pair(frozenset((line, item.init_line)), {MISUSE}, (place, place + 8))
            elif over.any():
                self._after_uses(line, place, threads[over])

    def _after_uses(self, line: int, place: int, threads: Array) -> None:
        actors = np.unique(self.actor_of[threads])
        for (user, used_line), time in self.users.get(place, {}).items():
            if (self.clocks.seen[actors, user] < time).any():
                self._pair(frozenset((line, used_line)), {MISUSE, RACE}, (place, place + 8))

    def _use(self, line: int, place: int, actors: Array) -> None:
        """An operation on an mbarrier must be ordered after its init or inval; those between themselves need no order."""
        for row in (self.rows.who == LIFE).nonzero()[0].tolist():
            actor, time = self.rows.actor[row], self.rows.time[row]
            if self.rows.start[row] == place and (self.clocks.seen[actors, actor] < time).any():
                self._report(line, row, {MISUSE, RACE}, (place, place + 8))
        for actor in actors.tolist():
            self.users.setdefault(place, {})[actor, line] = int(self.clocks.time[actor])

    def _synchronise(self, event: Event, threads: Array) -> None:
        """Release and acquire patterns through a strong location (2.3)."""
        data = event.data
        if not data["strong"]:
            for address in data["addresses"].tolist() if data["access"] != "read" and self.flags else ():
                self.flags.pop(address, None)
            return
        for thread, address in zip(threads.tolist(), data["addresses"].tolist(), strict=True):
            self._synchronise_one(int(self.actor_of[thread]), address, data["access"], data["sem"], event.opcode.startswith("red"))

    def _synchronise_one(self, actor: int, address: int, access: str, sem: str, reduction: bool) -> None:
        clocks, before = self.clocks, self.flags.get(address)
        if access != "read":
            mine = clocks.snapshot(np.array([actor])) if sem in ("release", "acq_rel") else clocks.released.get(actor)
            now = join(before, mine) if access == "rmw" else mine
            if now is None:
                self.flags.pop(address, None)
            else:
                self.flags[address] = now
        if access != "write" and before is not None and not reduction:
            if sem in ("acquire", "acq_rel"):
                clocks.acquire(np.array([actor]), before)
            else:
                clocks.pending.setdefault(actor, []).append(before)

    def _on_fence(self, event: Event, threads: Array) -> None:
        parts, actors = event.data["parts"], self.actor_of[threads]
        if "proxy" in parts:
            if any(part in ("async", "async.shared::cta", "shared::cta", "shared::cluster") for part in parts) and "global" not in parts:
                self.clocks.fence_proxies(actors)
        elif "mbarrier_init" not in parts:
            self.clocks.fence(actors, acquires="release" not in parts, releases="acquire" not in parts)

    def _on_barrier(self, event: Event, threads: Array) -> None:
        ids, counts = event.data["ids"], event.data["counts"]
        for number, count in sorted(set(zip(ids.tolist(), counts.tolist(), strict=True))):
            chosen = (ids == number) & (counts == count)
            aligned = event.opcode.startswith("bar.") or ".aligned" in event.opcode
            self.barriers.arrive(threads[chosen], number, ALL if count < 0 else count, event.data["waits"], event.line, aligned)

    def _on_warp_barrier(self, event: Event, threads: Array) -> None:
        self.barriers.arrive_warp(threads, event.data["members"])

    def _on_exit(self, event: Event, threads: Array) -> None:
        self.barriers.exit(threads)

    # Asynchronous operations -------------------------------------------------------------------------------------------

    def _issue(self, event: Event, threads: Array, start: Array, end: Array, operations: Array, who: int, *, write: bool) -> None:
        for thread, operation in dict(zip(threads.tolist(), operations.tolist(), strict=True)).items():
            self.open.setdefault((_FAMILIES[who], thread), []).append(operation)
        times = np.ones(len(start), np.int64)
        self._check_objects(event.line, start, end, threads)
        self.add(_Access(threads, start, end, operations, times, event.line, write=write, reads=not write, who=who))
        self.clocks.advance(self.actor_of[threads])

    def _on_copy(self, event: Event, threads: Array) -> None:
        places = event.data["places"] & _INSIDE
        operations = self.clocks.new_actors(len(threads))
        for thread, operation in zip(threads.tolist(), operations.tolist(), strict=True):
            self.copies.setdefault(thread, []).append(operation)
        self._issue(event, threads, places, places + event.data["nbytes"], operations, COPY, write=True)

    def _on_bulk(self, event: Event, threads: Array) -> None:
        operations = self.clocks.new_actors(1)
        self.serials[event.data["serial"]] = int(operations[0])
        self.lines[int(operations[0])] = event.line
        ranges = event.data["ranges"]
        start, end = np.array([r[0] & _INSIDE for r in ranges]), np.array([((r[1] - 1) & _INSIDE) + 1 for r in ranges])
        many = len(ranges)
        self._issue(event, np.repeat(threads, many), start, end, np.repeat(operations, many), BULK, write=event.data["writes"])
        if event.data["writes"]:
            self.signals.setdefault(event.data["unit"] & _INSIDE, []).append(int(operations[0]))
            self.open["bulk", int(threads[0])].pop()  # completes on its mbarrier, not in a group

    def _on_product(self, event: Event, threads: Array) -> None:
        """A wgmma of some warps: every thread of a warp has a part in it, and waits for itself."""
        for warp, ranges in enumerate(event.data["ranges"]):
            team = threads[warp * WARP : warp * WARP + WARP]
            (operation,) = self.clocks.new_actors(1).tolist()
            start, end = np.array([r[0] & _INSIDE for r in ranges]), np.array([((r[1] - 1) & _INSIDE) + 1 for r in ranges])
            for thread in team.tolist():
                self.open.setdefault(("wgmma", thread), []).append(operation)
            one = np.full(len(start), team[0])
            self._check_objects(event.line, start, end, one)
            self.add(
                _Access(one, start, end, np.full(len(start), operation), np.ones(len(start), np.int64), event.line, False, True, PRODUCT)
            )

    def _on_commit(self, event: Event, threads: Array) -> None:
        for thread in threads.tolist():
            key = (event.data["family"], thread)
            self.groups.setdefault(key, []).append(self.open.pop(key, []))

    def _on_wait(self, event: Event, threads: Array) -> None:
        family, pending = event.data["family"], event.data["pending"]
        for thread in threads.tolist():
            key = (family, thread)
            if pending is None:
                self.groups.setdefault(key, []).append(self.open.pop(key, []))
                pending_now = 0
            else:
                pending_now = pending
            groups = self.groups.get(key, [])
            for group in groups[: len(groups) - pending_now]:
                self.clocks.observe(int(self.actor_of[thread]), group)

    # mbarriers ---------------------------------------------------------------------------------------------------------

    def _on_mbarrier(self, event: Event, threads: Array) -> None:
        data, action = event.data, event.data["action"]
        places = data["places"] & _INSIDE
        for place in np.unique(places).tolist():
            users = threads[places == place]
            if action in ("init", "inval"):
                self._after_uses(event.line, place, users)
            else:
                self._use(event.line, place, np.unique(self.actor_of[users]))
        if action in ("init", "inval"):
            self._sync_access(event, threads, places, 8, write=True, reads=False, who=LIFE)
        misfits = self._misfits(event, threads, places)
        for thread, place, given in zip(threads.tolist(), places.tolist(), data["given"].tolist(), strict=True):
            item = self.objects.get(place)
            if action == "init":
                if item is not None and item.live:
                    self._pair(frozenset((event.line, item.init_line)), {MISUSE}, (place, place + 8))
                self.objects[place] = MBarrier(given, given, event.line)
            elif item is None or not item.live:
                self._pair(frozenset((event.line,)), {MISUSE}, (place, place + 8))
            elif action == "inval":
                item.live = False
                self._signals_in_flight(event.line, place, int(self.actor_of[thread]))
            else:
                fits = (thread // WARP, place) not in misfits
                self._signal(item, event.line, int(self.actor_of[thread]), action, given, data["parts"], fits)
                self._take_misuse(item, place)

    def _take_misuse(self, item: MBarrier, place: int) -> None:
        while item.misuse:
            self._pair(item.misuse.pop(), {MISUSE}, (place, place + 8))

    def _misfits(self, event: Event, threads: Array, places: Array) -> set[tuple[int, int]]:
        """Warps of which more lanes arrive at once than the phase takes."""
        if event.data["action"] not in ("arrive", "arrive_drop"):
            return set()
        counts = np.ones(len(threads), np.int64) if "expect_tx" in event.data["parts"] else event.data["given"]
        totals: dict[tuple[int, int], int] = {}
        for warp, place, count in zip((threads // WARP).tolist(), places.tolist(), counts.tolist(), strict=True):
            totals[warp, place] = totals.get((warp, place), 0) + count
        wrong = set()
        for (warp, place), count in totals.items():
            item = self.objects.get(place)
            if item is not None and item.live and not item.expects(event.line, count):
                wrong.add((warp, place))
        return wrong

    def _signals_in_flight(self, line: int, place: int, actor: int) -> None:
        """A barrier is invalidated: whoever does that must have observed all copies that signal it (R-M12)."""
        for operation in self.signals.pop(place, ()):
            if not self.clocks.seen[actor, operation]:
                self._pair(frozenset((line, self.lines[operation])), {MISUSE}, (place, place + 8))

    def _signal(self, item: MBarrier, line: int, actor: int, action: str, given: int, parts: tuple[str, ...], fits: bool) -> None:
        if action in ("expect_tx", "complete_tx"):
            item.transact(line, given if action == "expect_tx" else -given)
        elif action in ("arrive", "arrive_drop"):
            relaxed = "relaxed" in parts
            past = self.clocks.released.get(actor) if relaxed else self.clocks.snapshot(np.array([actor]))
            count = given
            if "expect_tx" in parts:
                count, item.tx = 1, item.tx + given
            if action == "arrive_drop":
                item.expected -= count
            item.arrive(line, count, past, completes="noComplete" not in parts, fits=fits)

    def _on_waited(self, event: Event, threads: Array) -> None:
        for thread, place in zip(threads.tolist(), (event.data["places"] & _INSIDE).tolist(), strict=True):
            item, actor = self.objects.get(place), int(self.actor_of[thread])
            if item is None:
                continue
            item.waited = item.phase
            if item.done is None:
                continue
            if event.data["relaxed"]:
                self.clocks.pending.setdefault(actor, []).append(item.done)
            else:
                self.clocks.acquire(np.array([actor]), item.done)

    def _only(self, operations: list[int]) -> Snapshot:
        """What a completion publishes: the operations, not what came before them."""
        seen = np.zeros(self.clocks.actors, np.int32)
        seen[operations] = 1
        return seen, np.zeros_like(seen)

    def _on_complete(self, event: Event, threads: Array) -> None:
        item = self.objects.get(event.data["unit"] & _INSIDE)
        if item is not None:
            item.gathered = join(item.gathered, self._only([self.serials[event.data["serial"]]]))
            item.transact(event.line, -event.data["nbytes"])
            self._take_misuse(item, event.data["unit"] & _INSIDE)

    def _on_arrive_on(self, event: Event, threads: Array) -> None:
        places = event.data["places"] & _INSIDE
        for place in np.unique(places).tolist():
            self._use(event.line, place, np.unique(self.actor_of[threads[places == place]]))
        for thread, place in zip(threads.tolist(), places.tolist(), strict=True):
            self.arrivals.setdefault((place, thread), []).append(list(self.copies.get(thread, [])))
            if not event.data["noinc"] and place in self.objects:
                self.objects[place].pending += 1

    def _on_copies_arrive(self, event: Event, threads: Array) -> None:
        for thread, place in zip(threads.tolist(), (event.data["places"] & _INSIDE).tolist(), strict=True):
            covered, item = self.arrivals[place, thread].pop(0), self.objects.get(place)
            if item is not None:
                item.arrive(event.line, 1, self._only(covered))
                self._take_misuse(item, place)


_HANDLERS: dict[str, Callable[[Cta, Event, Array], None]] = {
    "access": Cta._on_access, "fence": Cta._on_fence, "barrier": Cta._on_barrier, "warp-barrier": Cta._on_warp_barrier,
    "exit": Cta._on_exit, "copy": Cta._on_copy, "bulk": Cta._on_bulk, "product": Cta._on_product, "commit": Cta._on_commit,
    "wait": Cta._on_wait, "mbarrier": Cta._on_mbarrier, "waited": Cta._on_waited, "complete": Cta._on_complete,
    "arrive-on": Cta._on_arrive_on, "copies-arrive": Cta._on_copies_arrive,
}  # fmt: skip
_CATCH_UP = frozenset(("fence", "barrier", "warp-barrier", "waited"))
_PROXY_EVENTS = frozenset(("bulk", "product"))


def check(trace: Trace, *, ctas: int = 16) -> Verdict:
    """The verdict over a launch, from at most so many CTAs of each wave."""
    verdict, coarse = _check(trace, ctas, by_warp=False), _check(trace, ctas, by_warp=True)
    verdict.merged = _check(trace, ctas, by_warp=True, merged=True)
    for pair, found in verdict.pairs.items():
        wide = coarse.pairs.get(pair, Found())
        found.kinds |= wide.kinds & {PROXY}
        if PROXY not in found.kinds and wide.severity != "error":
            found.severity = "warning"
    return verdict


def _check(trace: Trace, ctas: int, **how: bool) -> Verdict:
    verdict = Verdict()
    for wave, events in trace.waves:
        proxies = any(event.kind in _PROXY_EVENTS for event in events)
        threads = wave.shape.threads
        for cta in range(min(ctas, wave.shape.ctas)):
            one = Cta(threads, proxies=proxies, **how)
            for event in events:
                chosen = event.lanes // threads == cta
                if chosen.any():
                    one.handle(event if chosen.all() else _cut(event, chosen), event.lanes[chosen] - cta * threads)
            verdict.merge(one.finish())
    return verdict


def _cut(event: Event, chosen: Array) -> Event:
    """The part of an event that some of its lanes have."""
    picked = chosen.nonzero()[0].tolist()

    def part(name: str, value: Any) -> Any:
        if isinstance(value, np.ndarray):
            return value[chosen]
        if name == "values" and value is not None:
            return [value[k] for k in picked]
        if name == "ranges" and event.kind == "product":
            return [value[k // WARP] for k in picked if k % WARP == 0]
        return value

    return Event(event.kind, event.line, event.opcode, event.lanes[chosen], {k: part(k, v) for k, v in event.data.items()})
