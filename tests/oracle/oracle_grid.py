"""Global memory under the oracle: happens-before over all CTAs of a launch, written from the PTX ISA (SEMANTICS 12).

Barriers, mbarriers and asynchronous operations are those of oracle_checker.py, over all CTAs at once; its accesses of shared memory are
left out. Strong words, in global and in shared memory, are those of oracle_words.py. Accesses are compared in oracle_global_rows.py.

A run through the virtual machine gives values in one order; what a read observes is what that order says. The verdict is on this run.

Not handled: tensor maps in global memory, multimem, textures, `st.async` and `red.async` in global memory.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from oracle_checker import Cluster
from oracle_clocks import Snapshot, join
from oracle_clusters import ClusterBarrier
from oracle_global_rows import Accesses, GlobalRows
from oracle_pairs import Shape
from oracle_rows import BULK, COPY
from oracle_scopes import EXACT, SCOPES
from oracle_trace import CTA_SHIFT, ELSEWHERE, Event, Launch, Ranges, Trace, cut
from oracle_verdict import GLOBAL, RACE, SCOPE, Found, Verdict
from oracle_words import CTA, DEVICE, LEVELS, PROXY as PROXY_HOME, SYSTEM, Where, Words

Array = npt.NDArray[Any]
_HOMES = 2
_SHARED = 1 << 62  # where the places of shared memory begin among addresses


@dataclass(frozen=True)
class Wave:
    """The CTAs of a launch that ran at the same time: the first one, and what they did."""

    first: int
    events: list[Event]


class Grid(Cluster):
    """All CTAs of a launch. `by_warp`: each warp counts as one thread. `wide`: every scope counts as .sys. `lenient`: D17, D24.

    `ranks`: so many devices have a part of the CTAs each, in their order.
    """

    def __init__(
        self, shape: Shape, cluster_size: int, *, proxies: bool, ranks: int = 1, by_warp: bool = False, wide: bool = False,
        lenient: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(shape, by_warp=by_warp, proxies=False, homes=_HOMES, level=SCOPES if wide else EXACT)
        self.cluster_of, self.rank_of, self.wide = self.home_of // cluster_size, self.home_of // (shape.ctas // ranks), wide
        self.cluster_barriers = [
            ClusterBarrier(self.scopes, self.actor_of, self.home_of, self.exists & (self.cluster_of == number))
            for number in range(shape.ctas // cluster_size)
        ]
        self.words = Words(self.clocks, lenient)
        places = (self.home_of, self.cluster_of, self.rank_of)
        self.accesses = GlobalRows(self.clocks, self.actor_of, *places, proxies=proxies, lenient=lenient)
        self.launched: list[tuple[Array, Snapshot]] = []  # the threads of each launch so far, and what came before them
        self.ended = self.clocks.only([])  # what comes before a thread of the last launch that waits for its predecessors
        self.stores: dict[int, int] = {}  # by operation, that which stands for its writes of global memory

    def add(self, new: Any) -> None:
        """Accesses of shared memory are not looked at."""

    def prune(self) -> None:
        """Nor are there any to be forgotten."""

    def handle(self, event: Event, threads: Array) -> None:
        """One event; arrays in its data are those of the threads."""
        getattr(self, "_on_" + event.kind.replace("-", "_"))(event, threads)

    def _by_cluster(self, threads: Array) -> Iterator[tuple[ClusterBarrier, Array]]:
        for number in np.unique(self.cluster_of[threads]).tolist():
            yield self.cluster_barriers[number], threads[self.cluster_of[threads] == number]

    def _on_cluster_arrive(self, event: Event, threads: Array) -> None:
        for barrier, some in self._by_cluster(threads):
            barrier.arrive(some, relaxed=event.data["relaxed"])

    def _on_cluster_wait(self, event: Event, threads: Array) -> None:
        for barrier, some in self._by_cluster(threads):
            barrier.wait(some)

    def _on_exit(self, event: Event, threads: Array) -> None:
        for barriers, inside, _ in self._by_cta(threads):
            barriers.exit(inside)
        for barrier, some in self._by_cluster(threads):
            barrier.exit(some)

    def _on_product(self, event: Event, threads: Array) -> None:
        """wgmma touches no global memory."""

    def _on_grid_wait(self, event: Event, threads: Array) -> None:
        """The launches before this one are over (9.7.13.13)."""
        self.clocks.acquire(self.actor_of[threads], self.ended)

    def begin(self, threads: Array, launch: Launch) -> None:
        """A launch starts. A programmatic dependent knows what its predecessor knew at its own start (R-GM14)."""
        earlier = [self.launched[number] for number in launch.after]
        ends = [self.clocks.snapshot(self.actor_of[members]) for members, _ in earlier]
        starts = [start for _, start in earlier]
        nothing = self.clocks.only([])
        self.ended = functools.reduce(_both, [*ends, *starts], nothing)
        start = functools.reduce(_both, starts, nothing) if launch.programmatic else self.ended
        self.launched.append((threads, start))
        self.clocks.acquire(self.actor_of[threads], start)

    # Fences and accesses -------------------------------------------------------------------------------------------------

    def _level(self, scope: str) -> int:
        return SYSTEM if self.wide else LEVELS.get(scope, CTA)

    def _where(self, thread: int, level: int) -> Where:
        return Where(*(int(of[thread]) for of in (self.actor_of, self.home_of, self.cluster_of, self.rank_of)), level)

    def _on_fence(self, event: Event, threads: Array) -> None:
        super()._on_fence(event, threads)
        parts = event.data["parts"]
        if "proxy" in parts or "mbarrier_init" in parts or any(part.startswith("sync_restrict") for part in parts):
            return
        level = self._level(next((part for part in parts if part in LEVELS), "sys"))
        sc = "sc" in parts or parts[0] == "membar"
        for thread in threads[np.unique(self.actor_of[threads], return_index=True)[1]].tolist():
            self.words.fence(self._where(thread, level), acquires="release" not in parts, releases="acquire" not in parts, sc=sc)

    def _fence_proxies(self, parts: tuple[str, ...], threads: Array) -> None:
        if parts[parts.index("proxy") + 1 :] in (("async",), ("async", "global")):
            self.clocks.fence_proxies(self.actor_of[threads], PROXY_HOME)

    def _on_access(self, event: Event, threads: Array) -> None:
        """The strong words of shared memory."""
        inside = event.data["places"] != ELSEWHERE
        if inside.any():
            self._strong(cut(event, inside), threads[inside], event.data["places"][inside] - self.base + _SHARED, event.data["element"])

    def _on_global(self, event: Event, threads: Array) -> None:
        data, start = event.data, event.data["addresses"]
        nbytes, element, values = data["nbytes"], data["element"], data["values"]
        each = range(0, nbytes, element if data["strong"] else nbytes)
        rows = []
        for offset in each:
            size = nbytes // len(each)
            rows.append(
                self._accesses(
                    event, threads, start + offset, size, None if values is None else [value[offset : offset + size] for value in values]
                )
            )
        self._strong(event, threads, start, element, rows)

    def _accesses(self, event: Event, threads: Array, start: Array, size: int, values: list[bytes] | None) -> Array:
        data, actors = event.data, self.actor_of[threads]
        return self.accesses.add(
            Accesses(
                threads, start, start + size, actors, self.clocks.time[actors], event.line, data["access"] != "read",
                strong=data["strong"], rmw=data["access"] == "rmw", level=self._level(data["scope"]), nc=data["nc"], values=values,
            )
        )  # fmt: skip

    def _strong(self, event: Event, threads: Array, start: Array, element: int, rows: list[Array] | None = None) -> None:
        """What strong accesses observe and publish, and weak writes end, thread by thread."""
        data, level = event.data, self._level(event.data["scope"])
        reads = data["access"] != "write" and not event.opcode.startswith("red")
        writes, rmw, strong = data["access"] != "read", data["access"] == "rmw", data["strong"]
        if not strong and not (writes and self.words.last):
            return
        for k, (thread, first) in enumerate(zip(threads.tolist(), start.tolist(), strict=True)):
            where = self._where(thread, level)
            if not strong:
                self.words.weak_write((first, first + data["nbytes"]))
                continue
            for number, offset in enumerate(range(0, data["nbytes"], element)):
                span = first + offset, first + offset + element
                if reads:
                    self.words.read(where, span, acquires=data["sem"] in ("acquire", "acq_rel"))
                if writes:
                    chain = self.words.write(where, span, releases=data["sem"] in ("release", "acq_rel"), rmw=rmw)
                    if rows is not None:
                        self.accesses.link(rows[number][[k]], chain)

    # Copies --------------------------------------------------------------------------------------------------------------

    def _copied(
        self, event: Event, thread: int, operation: int, ranges: Ranges, *, write: bool, who: int, element: int = 0, **more: Any
    ) -> None:
        """An asynchronous operation reads or writes global memory; `element`: bytes of each if it reduces."""
        spans = np.array([piece for low, high in ranges for piece in _pieces(low, high, element)])
        many = len(spans)
        one = np.ones(many, np.int64)
        self.accesses.add(Accesses(one * thread, spans[:, 0], spans[:, 1], one * operation, one, event.line, write, who, **more))
        for low, high in ranges if write else ():
            self.words.weak_write((low, high))

    def _on_copy(self, event: Event, threads: Array) -> None:
        super()._on_copy(event, threads)
        for thread, source in zip(threads.tolist(), event.data["sources"].tolist(), strict=True):
            operation = self.copies[thread][-1]
            self._copied(event, thread, operation, [(source, source + event.data["nbytes"])], write=False, who=COPY)

    def _on_bulk(self, event: Event, threads: Array) -> None:
        super()._on_bulk(event, threads)
        (operation,), thread = self.serials[event.data["serial"]], int(threads[0])
        if event.data["global_reads"]:
            self._copied(event, thread, operation, event.data["global_reads"], write=False, who=BULK)
        if event.data["global_writes"]:
            (store,) = self.clocks.new_actors(1).tolist()
            self.stores[operation] = store
            reduces = event.opcode.startswith("cp.reduce")  # each element by a relaxed operation of scope .gpu (9.7.9.25.4.2)
            more = {"strong": True, "level": DEVICE, "element": event.data["element"], "rmw": True} if reduces else {}
            self._copied(event, thread, store, event.data["global_writes"], write=True, who=BULK, **more)

    def _on_wait(self, event: Event, threads: Array) -> None:
        """wait_group.read says nothing of what the copies write (R-B3)."""
        super()._on_wait(event, threads)
        family, pending = event.data["family"], event.data["pending"] or 0
        for thread in threads.tolist() if not event.data["read"] else ():
            groups = self.groups.get((family, thread), [])
            over = [self.stores[one] for group in groups[: len(groups) - pending] for one in group if one in self.stores]
            self.clocks.observe(int(self.actor_of[thread]), over)


def _both(left: Snapshot, right: Snapshot) -> Snapshot:
    found = join(left, right)
    assert found is not None
    return found


def _pieces(low: int, high: int, element: int) -> list[tuple[int, int]]:
    return [(low, high)] if not element else [(at, at + element) for at in range(low, high, element)]


def check_globals(trace: Trace, *, policy: str = "default") -> Verdict:
    """The verdict on global memory, over all CTAs of all launches of a trace, which have blocks of one size.

    Policy `isa`: with the points on which the ISA is silent, as warnings.
    """
    verdict = _run(trace)
    if not verdict.pairs:
        return verdict
    lenient = _run(trace, lenient=True)
    doubtful = verdict.pairs.keys() - lenient.pairs.keys()
    if policy == "default":
        verdict = lenient
    how = {"lenient": policy == "default"}
    _name_scopes(verdict, trace, **how)
    for pair in doubtful & verdict.pairs.keys():
        verdict.pairs[pair].severity = "warning"
    return verdict


def _name_scopes(verdict: Verdict, trace: Trace, **how: bool) -> None:
    """Races that lack nothing but a scope, or a wait besides: R-SCOPE, as in oracle_passes.py."""
    wide = _run(trace, wide=True, **how).pairs
    for pair, found in verdict.pairs.items():
        left = wide.get(pair, Found())
        if found.kinds & {RACE, GLOBAL} and (left.count < found.count or not left.kinds & {RACE, GLOBAL}):
            found.kinds |= {SCOPE}
            if not left.kinds & {RACE, GLOBAL} and found.kinds <= {RACE, GLOBAL, SCOPE}:
                found.kinds = {SCOPE}


def _run(trace: Trace, **how: bool) -> Verdict:
    waves, first = [], 0
    for wave, events in trace.waves:
        waves.append(Wave(first, events))
        first += wave.shape.ctas
    if not first:
        return Verdict()
    threads, size = trace.waves[0][0].shape.threads, trace.waves[0][0].cluster_size
    proxies = any(event.kind == "bulk" for one in waves for event in one.events)
    grid = Grid(Shape(threads, first), size, proxies=proxies, ranks=trace.ranks, **how)
    launches = trace.launches or [Launch(0)]
    for number, one in enumerate(waves):
        grid.base = -(one.first << CTA_SHIFT)
        for k, launch in enumerate(launches):
            if launch.wave == number:
                after = [later.wave for later in launches[k + 1 : k + 2]]
                ctas = (waves[after[0]].first if after else first) - one.first
                grid.begin(grid.shape.numbers(np.arange(ctas * threads) + one.first * threads), launch)
        for event in one.events:
            grid.handle(event, grid.shape.numbers(event.lanes + one.first * threads))
    return grid.accesses.verdict
