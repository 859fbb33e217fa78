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
from typing import Any

import numpy as np
import numpy.typing as npt
from oracle_barriers import ALL, WARP, MBarrier
from oracle_clocks import Snapshot, join
from oracle_pairs import GROUP, Access, Pairs
from oracle_rows import BULK, COPY, LIFE, PRODUCT
from oracle_trace import CTA_SHIFT, ELSEWHERE, Event, Trace
from oracle_verdict import LIFETIME, MISUSE, PROXY, RACE, Found, Verdict

Array = npt.NDArray[Any]
Operands = dict[tuple[int, int], set[tuple[int, int]]]  # ranges, by warpgroup and number of its product
_INSIDE = (1 << CTA_SHIFT) - 1
_FAMILIES = {COPY: "async", BULK: "bulk", PRODUCT: "wgmma"}


class Cta(Pairs):
    """One CTA under the oracle; `by_warp`: each warp counts as one thread.

    `merged`: so it does, and a thread goes on in the moment of its own last release, wait or barrier, even where another lane has released
    since. That is less than the truth: the bound that consan's clocks of warps have.
    """

    def __init__(self, threads: int, *, by_warp: bool, proxies: bool, merged: bool = False) -> None:
        super().__init__(threads, by_warp=by_warp, proxies=proxies)
        self.objects: dict[int, MBarrier] = {}
        self.flags: dict[int, Snapshot] = {}
        self.open: dict[tuple[str, int], list[int]] = {}  # operations not committed, by family and thread
        self.groups: dict[tuple[str, int], list[list[int]]] = {}
        self.arrivals: dict[tuple[int, int], list[list[int]]] = {}  # copies covered by arrive-ons, by place and thread
        self.copies: dict[int, list[int]] = {}  # all cp.async of a thread
        self.serials: dict[int, int] = {}  # bulk operations: their actors
        self.lines: dict[int, int] = {}  # of operations that must be over when the CTA ends
        self.signals: dict[int, list[int]] = {}  # of mbarriers: the bulk operations that signal them
        self.users: dict[int, dict[tuple[int, int], int]] = {}  # of mbarriers: when, by thread and line
        self.operands: Operands = {}
        self.product_counts: dict[int, int] = {}  # products so far, by warp
        self.products: dict[tuple[int, int], list[int]] = {}  # parts of a wgmma, by warpgroup and number
        self.seen_generations = 0
        self.own = np.ones(threads, np.int64) if merged else None  # moments of the warp's clock that its threads are in

    def finish(self) -> Verdict:
        """The verdict, after the last event."""
        self.settle_unwritten(np.ones(self.rows.count, np.bool_))
        for actor, line in self.lines.items():
            if not self.observed(actor):
                self.pair(frozenset((line,)), {LIFETIME}, (0, 0))
        for pair in self.barriers.misuse:
            self.pair(pair, {MISUSE}, (0, 0))
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
            self.prune()

    def _sync_access(self, event: Event, threads: Array, places: Array, nbytes: int, **more: Any) -> None:
        actors = self.actor_of[threads]
        times = self.clocks.time[actors] if self.own is None else self.own[threads]
        self.add(Access(threads, places, places + nbytes, actors, times, event.line, **more))

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
                self.pair(frozenset((line, item.init_line)), {MISUSE}, (place, place + 8))
            elif over.any():
                self._after_uses(line, place, threads[over])

    def _after_uses(self, line: int, place: int, threads: Array) -> None:
        actors = np.unique(self.actor_of[threads])
        for (user, used_line), time in self.users.get(place, {}).items():
            if (self.clocks.seen[actors, user] < time).any():
                self.pair(frozenset((line, used_line)), {MISUSE, RACE}, (place, place + 8))

    def _use(self, line: int, place: int, actors: Array) -> None:
        """An operation on an mbarrier must be ordered after its init or inval; those between themselves need no order."""
        for row in (self.rows.who == LIFE).nonzero()[0].tolist():
            actor, time = self.rows.actor[row], self.rows.time[row]
            if self.rows.start[row] == place and (self.clocks.seen[actors, actor] < time).any():
                self.report(line, row, {MISUSE, RACE}, (place, place + 8))
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
        self.add(Access(threads, start, end, operations, times, event.line, write=write, reads=not write, who=who))
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
        """A wgmma of some warps: each has a part in it, for which it waits itself. Which of them reads what is not said: all read all."""
        for first in range(0, len(threads), WARP):
            team = threads[first : first + WARP]
            (operation,) = self.clocks.new_actors(1).tolist()
            key = _product_of(self.product_counts, int(team[0]))
            self.products.setdefault(key, []).append(operation)
            self.team[operation] = (int(team[0]) // WARP, self.products[key])
            self.lines[operation] = event.line
            ranges = sorted(self.operands[key])
            start, end = np.array([r[0] & _INSIDE for r in ranges]), np.array([((r[1] - 1) & _INSIDE) + 1 for r in ranges])
            for thread in team.tolist():
                self.open.setdefault(("wgmma", thread), []).append(operation)
            one = np.full(len(start), team[0])
            self._check_objects(event.line, start, end, one)
            self.add(
                Access(one, start, end, np.full(len(start), operation), np.ones(len(start), np.int64), event.line, False, True, PRODUCT)
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
                    self.pair(frozenset((event.line, item.init_line)), {MISUSE}, (place, place + 8))
                self.objects[place] = MBarrier(given, given, event.line)
            elif item is None or not item.live:
                self.pair(frozenset((event.line,)), {MISUSE}, (place, place + 8))
            elif action == "inval":
                item.live = False
                self._signals_in_flight(event.line, place, int(self.actor_of[thread]))
            else:
                fits = (thread // WARP, place) not in misfits
                self._signal(item, event.line, int(self.actor_of[thread]), action, given, data["parts"], fits)
                self._take_misuse(item, place)

    def _take_misuse(self, item: MBarrier, place: int) -> None:
        while item.misuse:
            self.pair(item.misuse.pop(), {MISUSE}, (place, place + 8))

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
                self.pair(frozenset((line, self.lines[operation])), {MISUSE}, (place, place + 8))

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


def _product_of(counts: dict[int, int], thread: int) -> tuple[int, int]:
    """Which product of its warpgroup the next one of a warp is: all four warps have the same ones."""
    warp = thread // WARP
    counts[warp] = counts.get(warp, 0) + 1
    return thread // GROUP, counts[warp]


def _operands(events: list[tuple[Event, Array]]) -> Operands:
    """What the warps of a product read together; they may come to it one after another."""
    found: Operands = {}
    counts: dict[int, int] = {}
    for event, threads in events:
        if event.kind == "product":
            for thread, ranges in zip(threads[::WARP].tolist(), event.data["ranges"], strict=True):
                found.setdefault(_product_of(counts, thread), set()).update(ranges)
    return found


def _check(trace: Trace, ctas: int, **how: bool) -> Verdict:
    verdict = Verdict()
    for wave, events in trace.waves:
        proxies = any(event.kind in _PROXY_EVENTS for event in events)
        threads = wave.shape.threads
        for cta in range(min(ctas, wave.shape.ctas)):
            one = Cta(threads, proxies=proxies, **how)
            own = [(_cut(event, event.lanes // threads == cta), cta * threads) for event in events]
            parts = [(event, event.lanes - first) for event, first in own if len(event.lanes)]
            one.operands = _operands(parts)
            for event, chosen in parts:
                one.handle(event, chosen)
            verdict.merge(one.finish())
    return verdict


def _cut(event: Event, chosen: Array) -> Event:
    """The part of an event that some of its lanes have."""
    if chosen.all():
        return event
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
