"""The oracle: exact happens-before over the events of a plain run, written from SEMANTICS.md, with nothing of the shadow runtime.

Every access of a cluster (mostly of one CTA) is kept, to the byte and the thread, and each new one is compared with all of them: so the
verdict is about all pairs that nothing orders, in whichever order this run had them. It is the same for all schedules of a program whose
synchronisation does not depend on data.

Where an access and an asynchronous operation, or its issue, are not ordered at all, the order of the run decides between data-race
and missing-wait, and likewise between data-race and uninitialized-read: such a pair has both kinds, and either is right.

oracle_passes.py runs it several times over a trace, to say how severe a pair is, and what it lacks.

Not handled: registers, global memory, policy `isa`. These misuses of barriers are found: what oracle_barriers.py names, use
without init or after inval, init twice, use as data, and inval before the copies that signal it are over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from oracle_barriers import ALL, WARP, CtaBarriers, MBarrier
from oracle_clusters import ClusterBarrier, Lifetimes
from oracle_pairs import GROUP, Access, Pairs, Shape
from oracle_rows import BULK, COPY, LIFE, PRODUCT, STORE
from oracle_scopes import ANYBODY, EXECUTION, Past, both
from oracle_trace import CTA_SHIFT, ELSEWHERE, Event, Ranges, is_narrow
from oracle_verdict import LIFETIME, MISUSE, RACE, Verdict

Array = npt.NDArray[Any]
_FAMILIES = {COPY: "async", BULK: "bulk", PRODUCT: "wgmma", STORE: "store"}


class Cluster(Pairs):
    """One cluster under the oracle, the `number`th of its wave; `by_warp`: each warp counts as one thread.

    `level`: what counts as an edge (oracle_scopes.py). In EXECUTION only the lifetimes are of use.
    `merged`: so it does, and a thread goes on in the moment of its own last release, wait or barrier, even where another lane has released
    since. That is less than the truth: the bound that consan's clocks of warps have.
    """

    def __init__(self, shape: Shape, number: int = 0, *, merged: bool = False, **how: Any) -> None:
        super().__init__(shape, **how)
        self.base = number * shape.ctas << CTA_SHIFT  # where its places begin
        self.cluster_barrier = ClusterBarrier(self.scopes, self.actor_of, self.home_of, self.exists)
        self.lifetimes = Lifetimes(self.clocks, self.actor_of, self.home_of, self.exists)
        self.objects: dict[int, MBarrier] = {}
        self.flags: dict[int, Past] = {}  # by place in shared memory, or address
        self.open: dict[tuple[str, int], list[int]] = {}  # operations not committed, by family and thread
        self.groups: dict[tuple[str, int], list[list[int]]] = {}
        self.arrivals: dict[tuple[int, int], list[list[int]]] = {}  # copies covered by arrive-ons, by place and thread
        self.copies: dict[int, list[int]] = {}  # all cp.async of a thread
        self.copy_lines: dict[int, int] = {}
        self.tied: set[int] = set()  # copies of which an mbarrier tells
        self.serials: dict[int, list[int]] = {}  # bulk operations and asynchronous stores: their actors
        self.lines: dict[int, int] = {}  # of operations that must be over when the CTA ends
        self.over: set[int] = set()  # of those, what a relaxed wait has seen to be over: it orders nothing
        self.signals: dict[int, list[int]] = {}  # of mbarriers: the operations that signal them
        self.users: dict[int, dict[tuple[int, int], int]] = {}  # of mbarriers: when, by thread and line
        self.product_counts: dict[int, int] = {}  # products so far, by warp
        self.products: dict[tuple[int, int], list[int]] = {}  # parts of a wgmma, by warpgroup and number
        self.seen_generations = 0
        self.own = np.ones(len(self.actor_of), np.int64) if merged else None  # moments of the warp's clock that its threads are in

    def finish(self) -> Verdict:
        """The verdict, after the last event."""
        self.settle_unwritten(np.ones(self.rows.count, np.bool_))
        for actor, line in self.lines.items():
            if actor not in self.over and not self.observed(actor):
                self.pair(frozenset((line,)), {LIFETIME}, (0, 0))
        for line, _, span in self.lifetimes.broken() if self.scopes.level == EXECUTION else ():
            self.pair(frozenset((line,)), {LIFETIME}, span)
        for pair in set[frozenset[int]]().union(*(one.misuse for one in self.barriers)):
            self.pair(pair, {MISUSE}, (0, 0))
        return self.verdict

    # Events ------------------------------------------------------------------------------------------------------------

    def handle(self, event: Event, threads: Array) -> None:
        """One event of threads of this cluster; arrays in its data have been cut to them."""
        _HANDLERS[event.kind](self, event, threads)
        if self.own is not None and (event.kind in _CATCH_UP or event.data.get("strong") or "arrive" in event.data.get("action", "")):
            threads = np.concatenate((threads, self._let_go()))
            self.own[threads] = self.clocks.time[self.actor_of[threads]]
        generations = self.cluster_barrier.phase + sum(one.generations for one in self.barriers)
        if generations != self.seen_generations:
            self.seen_generations = generations
            self.prune()

    def _let_go(self) -> Array:
        """Threads that barriers have let go since the last time."""
        found = list(self.cluster_barrier.released)
        self.cluster_barrier.released.clear()
        for home, one in enumerate(self.barriers):
            found += [home * self.shape.stride + thread for thread in one.released]
            one.released.clear()
        return np.array(found, np.int64)

    def _by_cta(self, threads: Array) -> Iterator[tuple[CtaBarriers, Array, Array]]:
        """The barriers of each CTA that some threads are of, the threads' numbers in it, and which they are."""
        homes = self.home_of[threads]
        for home in np.unique(homes).tolist():
            chosen = homes == home
            yield self.barriers[home], threads[chosen] - home * self.shape.stride, chosen

    def _uses_peers(self, event: Event, threads: Array, places: Array, nbytes: int, *, at_once: bool = True) -> None:
        """Threads touch shared memory, their own CTA's or a peer's."""
        if self.scopes.level == EXECUTION:
            homes = self.home_of[threads]
            for i in (homes != places >> CTA_SHIFT).nonzero()[0].tolist():
                span = int(places[i]), int(places[i]) + nbytes
                self.lifetimes.use(event.line, int(self.actor_of[threads[i]]), int(homes[i]), span, at_once=at_once)

    def _sync_access(self, event: Event, threads: Array, places: Array, nbytes: int, **more: Any) -> None:
        actors = self.actor_of[threads]
        times = self.clocks.time[actors] if self.own is None else self.own[threads]
        self.add(Access(threads, places, places + nbytes, actors, times, event.line, **more))

    def _on_access(self, event: Event, threads: Array) -> None:
        data = event.data
        inside = data["places"] != ELSEWHERE
        if inside.any():
            places, values = data["places"][inside] - self.base, data["values"]
            self._uses_peers(event, threads[inside], places, data["nbytes"])
            self._check_objects(event.line, places, places + data["nbytes"], threads[inside])
            chosen = None if values is None else [values[k] for k in inside.nonzero()[0].tolist()]
            self._sync_access(
                event, threads[inside], places, data["nbytes"], write=data["access"] != "read", reads=data["access"] != "write",
                strong=data["strong"], rmw=data["access"] == "rmw", narrow=data["scope"] == "cta", element=data["element"], values=chosen,
            )  # fmt: skip
        self._synchronise(event, threads)

    def _check_objects(self, line: int, start: Array, end: Array, threads: Array) -> None:
        """Data accesses must keep off live objects, and be ordered after all that was done to dead ones."""
        first, last = (int(start.min()), int(end.max())) if self.objects else (0, 0)
        for place, item in self.objects.items():
            if place >= last or place + 8 <= first:
                continue
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
        self._after_life(line, place, actors)
        for actor in actors.tolist():
            self.users.setdefault(place, {})[actor, line] = int(self.clocks.time[actor])

    def _after_life(self, line: int, place: int, actors: Array) -> None:
        for row in (self.rows.who == LIFE).nonzero()[0].tolist():
            actor, time = self.rows.actor[row], self.rows.time[row]
            if self.rows.start[row] == place and (self.clocks.seen[actors, actor] < time).any():
                self.report(line, row, {MISUSE, RACE}, (place, place + 8))

    def _synchronise(self, event: Event, threads: Array) -> None:
        """Release and acquire patterns through a strong location (SEMANTICS 3)."""
        data = event.data
        keys = np.where(data["places"] == ELSEWHERE, data["addresses"], data["places"]).tolist()
        if not data["strong"]:
            for key in keys if data["access"] != "read" and self.flags else ():
                self.flags.pop(key, None)
            return
        for thread, key in zip(threads.tolist(), keys, strict=True):
            self._synchronise_one(event, int(self.actor_of[thread]), int(self.home_of[thread]), key)

    def _synchronise_one(self, event: Event, actor: int, home: int, key: int) -> None:
        access, sem, wide = event.data["access"], event.data["sem"], event.data["scope"] != "cta"
        before = self.flags.get(key, {})
        if access != "read":
            mine = self.scopes.release(actor, home, orders=sem in ("release", "acq_rel"), wide=wide)
            now = both(before, mine) if access == "rmw" else mine
            if now:
                self.flags[key] = now
            else:
                self.flags.pop(key, None)
        if access != "write" and before and not event.opcode.startswith("red"):
            self.scopes.take(actor, home, before, orders=sem in ("acquire", "acq_rel"), wide=wide)

    def _on_fence(self, event: Event, threads: Array) -> None:
        parts = event.data["parts"]
        if "proxy" in parts:
            self._fence_proxies(parts, threads)
            return
        releases, acquires, wide = "acquire" not in parts, "release" not in parts, "cta" not in parts
        for actor, home in self._actors(threads):
            if "mbarrier_init" in parts:
                self.scopes.fence_inits(actor, home)
            else:
                self.scopes.fence(actor, home, acquires=acquires, releases=releases, wide=wide)

    def _actors(self, threads: Array) -> list[tuple[int, int]]:
        """The actors that threads are, each with its CTA."""
        return sorted(set(zip(self.actor_of[threads].tolist(), self.home_of[threads].tolist(), strict=True)))

    def _fence_proxies(self, parts: tuple[str, ...], threads: Array) -> None:
        if "global" in parts or not any(part in ("async", "async.shared::cta", "shared::cta", "shared::cluster") for part in parts):
            return
        if "shared::cta" not in parts:
            self.clocks.fence_proxies(self.actor_of[threads])
            return
        for home in np.unique(self.home_of[threads]).tolist():
            self.clocks.fence_proxies(self.actor_of[threads[self.home_of[threads] == home]], home)

    def _on_barrier(self, event: Event, threads: Array) -> None:
        ids, counts = event.data["ids"], event.data["counts"]
        for number, count in sorted(set(zip(ids.tolist(), counts.tolist(), strict=True))):
            chosen = (ids == number) & (counts == count)
            aligned = event.opcode.startswith("bar.") or ".aligned" in event.opcode
            for barriers, inside, _ in self._by_cta(threads[chosen]):
                barriers.arrive(inside, number, ALL if count < 0 else count, event.data["waits"], event.line, aligned)

    def _on_warp_barrier(self, event: Event, threads: Array) -> None:
        for barriers, inside, chosen in self._by_cta(threads):
            barriers.arrive_warp(inside, event.data["members"][chosen])

    def _on_cluster_arrive(self, event: Event, threads: Array) -> None:
        self.cluster_barrier.arrive(threads, relaxed=event.data["relaxed"])

    def _on_cluster_wait(self, event: Event, threads: Array) -> None:
        self.cluster_barrier.wait(threads)

    def _on_exit(self, event: Event, threads: Array) -> None:
        for barriers, inside, _ in self._by_cta(threads):
            barriers.exit(inside)
        self.cluster_barrier.exit(threads)
        self.lifetimes.exit(threads)
        for thread in threads.tolist():
            self._leave_copies(thread)

    def _leave_copies(self, thread: int) -> None:
        """Only its own thread can wait for a cp.async (R-CP5), and for the last one is for all."""
        last = self.copies.get(thread, [])[-1:]
        if last and last[0] not in self.tied and not self.clocks.seen[self.actor_of[thread], last[0]]:
            self.pair(frozenset((self.copy_lines[last[0]],)), {LIFETIME}, (0, 0))

    # Asynchronous operations -------------------------------------------------------------------------------------------

    def _issue(
        self, event: Event, threads: Array, start: Array, end: Array, operations: Array, who: int, *, write: bool, **more: Any
    ) -> None:
        for thread, operation in dict(zip(threads.tolist(), operations.tolist(), strict=True)).items():
            self.open.setdefault((_FAMILIES[who], thread), []).append(operation)
        times = np.ones(len(start), np.int64)
        self._check_objects(event.line, start, end, threads)
        self.add(Access(threads, start, end, operations, times, event.line, write=write, reads=not write, who=who, **more))
        self.clocks.advance(self.actor_of[threads])
        if self.scopes.level == EXECUTION and who in (BULK, STORE):
            for operation, first, last in zip(operations.tolist(), start.tolist(), end.tolist(), strict=True):
                self.lifetimes.operate(event.line, operation, (first, last))

    def _on_copy(self, event: Event, threads: Array) -> None:
        places = event.data["places"] - self.base
        operations = self.clocks.new_actors(len(threads))
        for thread, operation in zip(threads.tolist(), operations.tolist(), strict=True):
            self.copies.setdefault(thread, []).append(operation)
            self.copy_lines[operation] = event.line
        self._issue(event, threads, places, places + event.data["nbytes"], operations, COPY, write=True)

    def _on_bulk(self, event: Event, threads: Array) -> None:
        (operation,) = self.clocks.new_actors(1).tolist()
        self._signalling(event, threads, [operation])
        for ranges, write in ((event.data["reads"], False), (event.data["writes"], True)):
            if ranges:
                start, end = self._bounds(ranges)
                many = len(ranges)
                for first in start.tolist():
                    self._uses_peers(event, threads, np.array([first]), 16, at_once=False)
                more = {}
                if write and (element := event.data["element"]):  # a reduction: relaxed operations on its elements
                    start = np.concatenate([np.arange(*bounds, element) for bounds in zip(start, end, strict=True)])
                    end, many, more = start + element, len(start), {"strong": True, "rmw": True, "element": element}
                self._issue(event, np.repeat(threads, many), start, end, np.full(many, operation), BULK, write=write, **more)
        if event.data["unit"] is not None:
            waited = self.open["bulk", int(threads[0])]  # completes on its mbarrier, not in a group
            waited[:] = [each for each in waited if each != operation]

    def _bounds(self, ranges: Ranges) -> tuple[Array, Array]:
        found = np.array(ranges) - self.base
        return found[:, 0], found[:, 1]

    def _on_async_store(self, event: Event, threads: Array) -> None:
        """st.async and red.async: stores that are over when an mbarrier says so. Those of one warp come to it one by one."""
        data, places = event.data, event.data["places"] - self.base
        operations = self.clocks.new_actors(len(threads))
        self._signalling(event, threads, operations.tolist())
        self._uses_peers(event, threads, places, data["nbytes"], at_once=False)
        more = {"strong": data["strong"], "rmw": data["strong"], "element": data["nbytes"]}
        self._issue(event, threads, places, places + data["nbytes"], operations, STORE, write=True, **more)

    def _signalling(self, event: Event, threads: Array, operations: list[int]) -> None:
        """Operations start; those that will signal an mbarrier use it from now on."""
        self.serials[event.data["serial"]] = operations
        self.lines.update(dict.fromkeys(operations, event.line))
        if event.data["unit"] is None:
            return
        place = event.data["unit"] - self.base
        self.signals.setdefault(place, []).extend(operations)
        self._uses_peers(event, threads, np.full(len(threads), place), 8, at_once=False)
        for operation in operations if self.scopes.level == EXECUTION else ():
            self.lifetimes.operate(event.line, operation, (place, place + 8))
        # A thread that knows that the operation is over need not know of its issue (R-M12).
        self._after_life(event.line, place, np.unique(self.actor_of[threads]))
        item = self.objects.get(place)
        if item is None or not item.live:
            self.pair(frozenset((event.line,)), {MISUSE}, (place, place + 8))

    def _on_product(self, event: Event, threads: Array) -> None:
        """A wgmma of some warps: each has a part in it, for which it waits itself. It reads its own rows of A and all of B (D25)."""
        for first, ranges in zip(range(0, len(threads), WARP), event.data["ranges"], strict=True):
            team = threads[first : first + WARP]
            operation, signal = self.clocks.new_actors(2).tolist()
            key = product_of(self.product_counts, int(team[0]))
            self.products.setdefault(key, []).append(operation)
            self.team[operation] = (int(team[0]) // WARP, self.products[key])
            self.signal_of[operation] = signal
            self.lines[operation] = event.line
            start, end = self._bounds(ranges)
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
        places = data["places"] - self.base
        self._uses_peers(event, threads, places, 8)
        for place in np.unique(places).tolist():
            users = threads[places == place]
            if action in ("init", "inval"):
                self._after_uses(event.line, place, users)
            else:
                self._use(event.line, place, np.unique(self.actor_of[users]))
        if action == "init":
            made = np.array([self.scopes.initialise(actor) for actor in self.actor_of[threads].tolist()])
            self.add(Access(threads, places, places + 8, made, np.ones_like(made), event.line, write=True, reads=False, who=LIFE))
        elif action == "inval":
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
                self._signal(item, event.line, thread, action, given, data["parts"], fits)
                self._take_misuse(item, place)

    def _take_misuse(self, item: MBarrier, place: int) -> None:
        while item.misuse:
            self.pair(item.misuse.pop(), {MISUSE}, (place, place + 8))

    def _misfits(self, event: Event, threads: Array, places: Array) -> set[tuple[int, int]]:
        """Warps with more lanes that arrive at once than the phase takes."""
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

    def _signal(self, item: MBarrier, line: int, thread: int, action: str, given: int, parts: tuple[str, ...], fits: bool) -> None:
        if action in ("expect_tx", "complete_tx"):
            item.transact(line, given if action == "expect_tx" else -given)
        elif action in ("arrive", "arrive_drop"):
            actor, home = int(self.actor_of[thread]), int(self.home_of[thread])
            past = self.scopes.release(actor, home, orders="relaxed" not in parts, wide=not is_narrow(parts))
            for snapshot in past.values() if "relaxed" not in parts else ():
                snapshot[0][self._signals_of(thread)] = 1
            count = given
            if "expect_tx" in parts:
                count, item.tx = 1, item.tx + given
            if action == "arrive_drop":
                item.expected -= count
            item.arrive(line, count, past, completes="noComplete" not in parts, fits=fits)

    def _signals_of(self, thread: int) -> list[int]:
        """What an arrival of a thread tells its warpgroup: the products for which its warp has waited."""
        seen = self.clocks.seen[self.actor_of[thread]]
        return [self.signal_of[part] for part, (warp, _) in self.team.items() if warp == thread // WARP and seen[part]]

    def _on_waited(self, event: Event, threads: Array) -> None:
        data = event.data
        for thread, place in zip(threads.tolist(), (data["places"] - self.base).tolist(), strict=True):
            item = self.objects.get(place)
            if item is None:
                continue
            item.waited = item.phase
            actor, home = int(self.actor_of[thread]), int(self.home_of[thread])
            self.scopes.take(actor, home, item.done, orders=not data["relaxed"], wide=not data["narrow"])
            if data["relaxed"] and ANYBODY in item.done:
                self.over.update(item.done[ANYBODY][0].nonzero()[0].tolist())

    def _on_complete(self, event: Event, threads: Array) -> None:
        place = event.data["unit"] - self.base
        item = self.objects.get(place)
        if item is not None:
            item.gathered = both(item.gathered, {ANYBODY: self.clocks.only(self.serials[event.data["serial"]])})
            item.transact(event.line, -event.data["total"])
            self._take_misuse(item, place)

    def _on_arrive_on(self, event: Event, threads: Array) -> None:
        places = event.data["places"] - self.base
        for place in np.unique(places).tolist():
            self._use(event.line, place, np.unique(self.actor_of[threads[places == place]]))
        for thread, place in zip(threads.tolist(), places.tolist(), strict=True):
            self.arrivals.setdefault((place, thread), []).append(list(self.copies.get(thread, [])))
            self.tied.update(self.copies.get(thread, []))
            if not event.data["noinc"] and place in self.objects:
                self.objects[place].pending += 1

    def _on_copies_arrive(self, event: Event, threads: Array) -> None:
        """The copies are for threads of the CTA only (SEMANTICS 4.1, D16)."""
        for thread, place in zip(threads.tolist(), (event.data["places"] - self.base).tolist(), strict=True):
            covered, item = self.arrivals[place, thread].pop(0), self.objects.get(place)
            if item is not None:
                item.arrive(event.line, 1, {int(self.home_of[thread]): self.clocks.only(covered)})
                self._take_misuse(item, place)


_HANDLERS: dict[str, Callable[[Cluster, Event, Array], None]] = {
    "access": Cluster._on_access, "fence": Cluster._on_fence, "barrier": Cluster._on_barrier, "warp-barrier": Cluster._on_warp_barrier,
    "cluster-arrive": Cluster._on_cluster_arrive, "cluster-wait": Cluster._on_cluster_wait, "exit": Cluster._on_exit,
    "copy": Cluster._on_copy, "bulk": Cluster._on_bulk, "product": Cluster._on_product, "async-store": Cluster._on_async_store,
    "commit": Cluster._on_commit, "wait": Cluster._on_wait, "mbarrier": Cluster._on_mbarrier, "waited": Cluster._on_waited,
    "complete": Cluster._on_complete, "arrive-on": Cluster._on_arrive_on, "copies-arrive": Cluster._on_copies_arrive,
}  # fmt: skip
_CATCH_UP = frozenset(("fence", "barrier", "warp-barrier", "waited", "cluster-arrive", "cluster-wait"))


def product_of(counts: dict[int, int], thread: int) -> tuple[int, int]:
    """Which product of its warpgroup the next one of a warp is: all four warps have the same ones."""
    warp = thread // WARP
    counts[warp] = counts.get(warp, 0) + 1
    return thread // GROUP, counts[warp]
