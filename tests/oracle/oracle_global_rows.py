"""Accesses of global memory held against each other: SEMANTICS 12, from the clocks of all threads of a launch.

A vector counts as so many scalar accesses if it is strong (8.2.4); a weak one is kept whole, since a weak access is morally strong with
nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from oracle_barriers import WARP
from oracle_clocks import Clocks
from oracle_rows import SYNC
from oracle_verdict import GLOBAL, PROXY, RACE, WAIT, Found, Pair, Verdict
from oracle_words import CLUSTER, CTA, DEVICE, PROXY as PROXY_HOME, SYSTEM

Array = npt.NDArray[Any]
COLUMNS = (
    "start", "end", "actor", "time", "chain", "link", "line", "write", "strong", "level", "who", "thread", "issuer", "issued", "nc", "rmw",
)  # fmt: skip
_CHUNK = 64


@dataclass
class Accesses:
    """New accesses of one instruction; arrays have an item for each."""

    threads: Array
    start: Array
    end: Array
    actors: Array
    times: Array
    line: int
    write: bool
    who: int = SYNC
    strong: bool = False
    rmw: bool = False  # a read-modify-write
    level: int = CTA
    nc: bool = False
    values: list[bytes] | None = None

    def part(self, k: int) -> Accesses:
        """Some of them."""
        piece = slice(k, k + _CHUNK)
        arrays = {name: getattr(self, name)[piece] for name in ("threads", "start", "end", "actors", "times")}
        values = None if self.values is None else self.values[piece]
        return Accesses(
            line=self.line,
            write=self.write,
            who=self.who,
            strong=self.strong,
            rmw=self.rmw,
            level=self.level,
            nc=self.nc,
            values=values,
            **arrays,
        )


class GlobalRows:
    """The accesses so far, and the verdict on them. `actor_of`, `home_of`, `cluster_of` and `rank_of` are those of the launch's threads.

    `proxies`: whether there are bulk copies; `lenient`: D24.
    """

    def __init__(
        self, clocks: Clocks, actor_of: Array, home_of: Array, cluster_of: Array, rank_of: Array, *, proxies: bool, lenient: bool
    ) -> None:
        self.clocks, self.actor_of, self.home_of, self.cluster_of, self.rank_of = clocks, actor_of, home_of, cluster_of, rank_of
        self.count, self.proxies, self.lenient = 0, proxies, lenient
        self.columns = {name: np.zeros(256, np.int64) for name in COLUMNS}
        self.values: list[bytes | None] = []
        self.known: set[tuple[int, ...]] = set()
        self.replaced: dict[int, list[tuple[int, int, int, int]]] = {}  # rows of generic writes: by whom, when, which bytes
        self.verdict = Verdict()

    def __getitem__(self, name: str) -> Array:
        return self.columns[name][: self.count]

    def add(self, new: Accesses) -> Array:
        """Compare accesses with all before and with each other, and keep them; returns their rows (-1: the same as one before)."""
        return np.concatenate([self._add(new.part(k)) for k in range(0, len(new.start), _CHUNK)])

    def link(self, rows: Array, chain: tuple[int, int]) -> None:
        """Some accesses are a strong write that can be observed."""
        rows = rows[rows >= 0]
        self.columns["chain"][rows], self.columns["link"][rows] = chain

    def _add(self, new: Accesses) -> Array:
        fresh = self._fresh(new)
        old, numbers = self.count, np.full(len(new.start), -1)
        numbers[fresh] = self._append(new, fresh)
        low, high = int(new.start.min()), int(new.end.max())
        near = (self["start"] < high) & (self["end"] > low)
        near &= (self["write"] > 0) | new.write
        row = near.nonzero()[0]
        index, at = ((self["start"][row] < new.end[fresh, None]) & (self["end"][row] > new.start[fresh, None])).nonzero()
        index, row = fresh[index], row[at]
        before = row < numbers[index]
        self._compare(new, index[before], row[before], own=row[before] >= old)
        return numbers

    def _fresh(self, new: Accesses) -> Array:
        """Which accesses no equal one precedes in the same moment of the same actor."""
        if new.who != SYNC or new.values is not None or (new.strong and new.write):
            return np.arange(len(new.start))
        found = []
        for k, key in enumerate(zip(new.threads.tolist(), new.times.tolist(), new.start.tolist(), new.end.tolist(), strict=True)):
            if (new.line, *key) not in self.known:
                self.known.add((new.line, *key))
                found.append(k)
        return np.array(found, np.int64)

    def _append(self, new: Accesses, chosen: Array) -> Array:
        first, self.count = self.count, self.count + len(chosen)
        issuers = self.actor_of[new.threads[chosen]]
        given = {
            "start": new.start[chosen], "end": new.end[chosen], "actor": new.actors[chosen], "time": new.times[chosen],
            "chain": -1, "link": 0, "line": new.line, "write": new.write, "strong": new.strong, "level": new.level, "who": new.who,
            "thread": new.threads[chosen], "issuer": issuers, "issued": self.clocks.time[issuers], "nc": new.nc, "rmw": new.rmw,
        }  # fmt: skip
        for name, value in given.items():
            while self.count > len(self.columns[name]):
                self.columns[name] = np.concatenate((self.columns[name], np.zeros_like(self.columns[name])))
            self.columns[name][first : self.count] = value
        self.values += [None] * len(chosen) if new.values is None else [new.values[k] for k in chosen.tolist()]
        return np.arange(first, self.count)

    # Pairs ---------------------------------------------------------------------------------------------------------------

    def _compare(self, new: Accesses, index: Array, row: Array, *, own: Array) -> None:
        """Pairs of new accesses and rows that overlap, one of them a write; `own`: rows of the same instruction."""
        if not len(index):
            return
        actors = self.actor_of[new.threads[index]]
        ordered = self.clocks.before(actors, self["actor"][row], self["time"][row])
        ordered |= (self["chain"][row] >= 0) & self.clocks.before(actors, np.maximum(self["chain"][row], 0), self["link"][row])
        ordered = np.where(own, new.actors[index] == self["actor"][row], ordered)
        outside = (self["nc"][row] > 0) | new.nc  # of the memory model (8.1)
        safe = (ordered & ~outside) | self._morally_strong(new, index, row)
        before = ordered & (self["nc"][row] > 0)  # D20: a read that is over before the write is no more than doubtful
        before |= self._reach(new, index, row) & (self["rmw"][row] > 0) & new.rmw  # each is performed as a whole (8.7.2)
        for i, r, mild in zip(index[~safe].tolist(), row[~safe].tolist(), before[~safe].tolist(), strict=True):
            self._report(new, i, r, mild=mild)
        if self.proxies:
            self._fences(new, index[ordered & ~own], row[ordered & ~own])

    def _morally_strong(self, new: Accesses, index: Array, row: Array) -> Array:
        """8.7: both strong, of the same bytes, through one proxy, each of a scope that includes the other thread."""
        same = (self["start"][row] == new.start[index]) & (self["end"][row] == new.end[index])
        same &= (self["who"][row] == new.who) | (self.lenient & (self["rmw"][row] > 0) & new.rmw)
        return np.asarray(same & self._reach(new, index, row))

    def _reach(self, new: Accesses, index: Array, row: Array) -> Array:
        """Both strong, each of a scope that includes the other thread."""
        near = self._distance(new.threads[index], self["thread"][row])
        return np.asarray(new.strong & (self["strong"][row] > 0) & (np.minimum(self["level"][row], new.level) >= near))

    def _distance(self, threads: Array, others: Array) -> Array:
        """The scope that two threads need."""
        apart = np.where(self.rank_of[threads] == self.rank_of[others], DEVICE, SYSTEM)
        apart = np.where(self.cluster_of[threads] == self.cluster_of[others], CLUSTER, apart)
        return np.where(self.home_of[threads] == self.home_of[others], CTA, apart)

    def _report(self, new: Accesses, i: int, r: int, *, mild: bool) -> None:
        thread, other = int(new.threads[i]), int(self["thread"][r])
        kinds = {RACE if self.home_of[thread] == self.home_of[other] else GLOBAL}
        if self["who"][r] != SYNC:
            known = bool(self.clocks.seen[self.actor_of[thread], self["issuer"][r]] >= self["issued"][r])
            over = bool(self.clocks.seen[:, self["actor"][r]].any())
            kinds = {WAIT} if known and not over else {WAIT} | kinds
        elif new.who != SYNC:
            kinds |= {WAIT}
        span = max(int(new.start[i]), int(self["start"][r])), min(int(new.end[i]), int(self["end"][r]))
        mild = mild or self._same_value(new, i, r)
        self._pair(frozenset((new.line, int(self["line"][r]))), kinds, span, mild=mild, within=thread // WARP == other // WARP)

    def _same_value(self, new: Accesses, i: int, r: int) -> bool:
        """Nothing is known of what stores of different bytes leave, even where both write one value to a byte (8.7.2)."""
        if new.values is None or (new.start[i], new.end[i]) != (self["start"][r], self["end"][r]):
            return False
        return new.values[i] == self.values[r]

    def _pair(self, pair: Pair, kinds: set[str], span: tuple[int, int], *, mild: bool = False, within: bool = False) -> None:
        found = self.verdict.pairs.setdefault(pair, Found())
        found.kinds |= kinds
        found.count += 1
        found.spans.add(span)
        found.within |= within
        found.severity = "warning" if mild and found.severity == "warning" else "error"

    # Proxies -------------------------------------------------------------------------------------------------------------

    def _fences(self, new: Accesses, index: Array, row: Array) -> None:
        """A generic write, then a bulk copy: a proxy fence for global memory between them (8.9.5, G12)."""
        threads = self.actor_of[new.threads[index]]
        unfenced = (self["write"][row] > 0) & (self["who"][row] == SYNC)
        unfenced &= self.clocks.fenced[PROXY_HOME, threads, self["actor"][row]] < self["time"][row]
        if new.who == SYNC:
            for i, r in zip(index[unfenced].tolist(), row[unfenced].tolist(), strict=True) if new.write else ():
                self.replaced.setdefault(r, []).append((int(new.actors[i]), int(new.times[i]), int(new.start[i]), int(new.end[i])))
            return
        for i, r in zip(index[unfenced].tolist(), row[unfenced].tolist(), strict=True):
            left = self._left(r, int(new.start[i]), int(new.end[i]), int(self.actor_of[new.threads[i]]))
            if left:
                self._pair(frozenset((new.line, int(self["line"][r]))), {PROXY}, (min(left), min(left) + 1))

    def _left(self, r: int, low: int, high: int, actor: int) -> set[int]:
        """The bytes of a write that nothing has replaced that comes before what the actor does next."""
        left = set(range(max(low, int(self["start"][r])), min(high, int(self["end"][r]))))
        for other, time, start, end in self.replaced.get(r, ()):
            if self.clocks.seen[actor, other] >= time:
                left.difference_update(range(start, end))
        return left
