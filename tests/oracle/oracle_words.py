"""Strong words under the oracle: who has observed what, and what that orders. Written from PTX ISA 8.8 to 8.9.5 (SEMANTICS 12).

A strong write heads or continues a release pattern, and a strong read that observes it may end an acquire pattern. Both the write with
the read (8.9.2) and the first operation of the one pattern with the last of the other (8.9.4) must be morally strong: so two scopes count
on each side. Observation passes through read-modify-writes; a plain store begins anew. What has been observed is itself before what
follows (8.9.5, case 2).

fence.sc: two of them synchronise in Fence-SC order. That order is the run's own, but for one case: if F1 is before a write in base
causality order, and F2 after a read that observes it, then F2 before F1 would let the read precede the write in causality order, which
8.10.1 and 8.10.6 forbid. Only such pairs make an edge here (R-GM6, D19). `lenient`: weaker fences and acquires do as well (D17).

A `red` observes nothing: it has no result, so that nothing that follows depends on which writes came before it (8.11.1).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from oracle_clocks import Clocks, Snapshot, join

Array = npt.NDArray[Any]
Span = tuple[int, int]
CTA, CLUSTER, DEVICE, SYSTEM = range(4)
LEVELS = {"cta": CTA, "cluster": CLUSTER, "gpu": DEVICE, "gl": DEVICE, "sys": SYSTEM}
PROXY, OBSERVED = range(2)  # the "homes" of the clocks: behind a proxy fence for global memory; before a write that has been observed


@dataclass(frozen=True)
class Where:
    """Who executes an operation, and its scope."""

    actor: int
    home: int  # CTA
    cluster: int
    rank: int  # the device
    level: int

    def meets(self, other: Where) -> bool:
        """Whether the scope of each includes the other's thread (8.7)."""
        within = (self.home == other.home, self.cluster == other.cluster, self.rank == other.rank, True)
        return min(self.level, other.level) >= within.index(True)


@dataclass(frozen=True)
class Head:
    """The first operation of a release pattern, and what is before it."""

    where: Where
    past: Snapshot


Heads = dict[tuple[int, int, int], Head]  # the last of an actor, home and level: it knows all that those before it knew


def _keyed(head: Head) -> tuple[tuple[int, int, int], Head]:
    return (head.where.actor, head.where.home, head.where.level), head


@dataclass
class Written:
    """The last strong write of a word, with what an observer of it observes."""

    span: Span
    where: Where
    heads: Heads
    chain: tuple[int, int]  # an actor for the writes that lead here by observation, and how many they are
    past: Snapshot | None  # what is before any of them; None while there is no fence.sc


@dataclass
class Words:
    """The strong words of a launch."""

    clocks: Clocks
    lenient: bool = False
    last: dict[int, Written] = field(default_factory=dict)  # by byte
    fences: dict[int, Heads] = field(default_factory=dict)  # release fences, by actor
    releases: dict[tuple[int, Span], Heads] = field(default_factory=dict)  # release operations, by actor and word
    pending: dict[int, dict[Span, Heads]] = field(default_factory=dict)  # observed by relaxed reads, by actor and word
    behind: dict[tuple[int, Span], Array] = field(default_factory=dict)  # by actor and word: before what it has observed there
    sc: list[tuple[int, Head]] = field(default_factory=list)  # fence.sc, each with its moment

    def found(self, span: Span) -> Written | None:
        """The strong write of exactly these bytes that a read of them reads from."""
        last = self.last.get(span[0])
        return last if last is not None and last.span == span and all(self.last.get(byte) is last for byte in range(*span)) else None

    def weak_write(self, span: Span) -> None:
        """Bytes are written by something that nobody can observe."""
        for byte in range(*span) if self.last else ():
            self.last.pop(byte, None)

    def read(self, where: Where, span: Span, *, acquires: bool) -> None:
        """A strong read. Not of a `red`."""
        last = self.found(span)
        if last is not None and last.where.meets(where):
            self._observe(where.actor, span, last)
            self.pending.setdefault(where.actor, {}).setdefault(span, {}).update(last.heads)
        if acquires:
            self._acquire(where, self.pending.get(where.actor, {}).get(span, {}))
            if self.lenient and (where.actor, span) in self.behind:
                self._after_fences(where, self.behind[where.actor, span])

    def _observe(self, actor: int, span: Span, last: Written) -> None:
        seen = self.clocks.seen[actor]
        seen[last.chain[0]] = max(seen[last.chain[0]], last.chain[1])
        if last.past is not None:
            known = last.past[0][: self.clocks.threads]
            for before in (
                self.clocks.fenced[OBSERVED, actor],
                self.behind.setdefault((actor, span), np.zeros(self.clocks.threads, np.int32)),
            ):
                np.maximum(before[: len(known)], known, out=before[: len(known)])

    def _acquire(self, last: Where, heads: Heads) -> None:
        for head in heads.values():
            if head.where.meets(last):
                self.clocks.acquire_one(last.actor, head.past)

    def write(self, where: Where, span: Span, *, releases: bool, rmw: bool) -> tuple[int, int]:
        """A strong write, after the read of a read-modify-write: its place in the chain of its observers."""
        actor, before = where.actor, self.found(span) if rmw else None
        before = before if before is not None and before.where.meets(where) else None
        past = self._past(actor)
        if releases:
            self.releases.setdefault((actor, span), {}).update([_keyed(Head(where, self.clocks.snapshot_of(actor)))])
        heads = {**self.fences.get(actor, {}), **_later(self.releases.get((actor, span), {}), self.fences.get(actor, {}))}
        chain = (int(self.clocks.new_actors(1)[0]), 1)
        if before is not None:
            heads, chain, past = {**before.heads, **heads}, (before.chain[0], before.chain[1] + 1), join(before.past, past)
        written = Written(span, where, heads, chain, past)
        self.last.update(dict.fromkeys(range(*span), written))
        return chain

    def _past(self, actor: int) -> Snapshot | None:
        width = self.clocks.actors
        return (self.clocks.seen[actor, :width].copy(), self.clocks.fenced[:, actor, :width].copy()) if self.sc else None

    def fence(self, where: Where, *, acquires: bool, releases: bool, sc: bool) -> None:
        """A memory fence."""
        actor, clocks = where.actor, self.clocks
        if acquires:
            for heads in list(self.pending.get(actor, {}).values()):
                self._acquire(where, heads)
        if sc or (self.lenient and acquires):
            self._after_fences(where, clocks.fenced[OBSERVED, actor])
        if releases or sc:
            clocks.advance(np.array([actor]))  # nothing else is of the fence's moment
            head = Head(where, clocks.snapshot_of(actor))
            self.fences.setdefault(actor, {}).update([_keyed(head)])
            if sc or self.lenient:
                self.sc.append((int(head.past[0][actor]), head))

    def _after_fences(self, where: Where, observed: Array) -> None:
        """A fence.sc comes after those that are before a write which something before it has observed."""
        clocks, actor = self.clocks, where.actor
        for moment, head in self.sc:
            u = head.where.actor
            if observed[u] >= moment > clocks.seen[actor, u] and head.where.meets(where):
                clocks.acquire_one(actor, head.past)


def _later(mine: Heads, others: Heads) -> Heads:
    """Heads that know more than others of the same actor, home and level."""
    return {
        key: head
        for key, head in mine.items()
        if key not in others or head.past[0][head.where.actor] >= others[key].past[0][head.where.actor]
    }
