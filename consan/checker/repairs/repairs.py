"""Candidate repairs of a finding, smallest first: another operand, place or scope of an instruction, then one more instruction, then two.

The replay decides whether one removes the finding. Not tried: new mbarriers, other addresses, barriers of some warps only.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator
from typing import Any

from consan.checker.questions.pieces import (
    BARRIER,
    BULK_COMMIT,
    CLUSTER,
    COMMIT,
    CTA_FENCE,
    GPU_FENCE,
    INITS_FENCE,
    PRODUCT_COMMIT,
    PROXY_FENCE,
    REGISTERS_FENCE,
    TENSOR_AFTER,
    TENSOR_BEFORE,
    TENSOR_LD,
    TENSOR_ST,
    WARP_BARRIER,
    Piece,
    bulk_wait,
    copy_wait,
    product_wait,
)
from consan.checker.repairs.forms import Repair, RepairStep, without
from consan.checker.repairs.phases import PhaseForms
from consan.instrument import effects
from consan.instrument.findings import FindingFlags, Kind, Operation as InFlight, Reason

_SCOPE_BITS, _GPU_SCOPE = 3 << 4, 2 << 4
_MOST_SMALL = 12  # repairs of one step that are tried in pairs

# For each kind of group: its commit, its wait, and what may be added.
_GROUPS: dict[type[effects.Effect], tuple[Piece, Callable[[int], tuple[Piece, ...]]]] = {
    effects.CopyWait: (COMMIT, lambda pending: (copy_wait(pending),)),
    effects.BulkWait: (BULK_COMMIT, lambda pending: (bulk_wait(pending, read=True), bulk_wait(pending, read=False))),
    effects.ProductWait: (PRODUCT_COMMIT, lambda pending: (product_wait(pending),)),
}
_COMMITS = {effects.CopyWait: effects.CopyCommit, effects.BulkWait: effects.BulkCommit, effects.ProductWait: effects.ProductCommit}
_WAIT_OF = {0: effects.CopyWait, InFlight.BULK_STORE: effects.BulkWait, InFlight.WGMMA: effects.ProductWait}
_TENSOR_WAITS = {InFlight.TCGEN05_LD: (TENSOR_LD,), InFlight.TCGEN05_ST: (TENSOR_ST,)}
_SCOPED = (effects.MbarrierArrive, effects.MbarrierWait, effects.Atomic, effects.Read, effects.Write, effects.Fence)
_ORDERS = {effects.MbarrierArrive: ".release", effects.MbarrierWait: ".acquire"}  # a cluster's barrier releases without a word
_RELAXED = (effects.MbarrierArrive, effects.MbarrierWait, effects.ClusterBarrierArrive)
_FLAGS = (effects.Observe, effects.Publish, effects.Fence)
_PLAIN = (effects.GlobalRead, effects.GlobalWrite)  # of a strong access, an event of its bytes
_ONE_SIDE = (Reason.NO_RELEASE, Reason.NO_ACQUIRE)
_OF_FLAGS = (Reason.NO_RELEASE, Reason.NO_ACQUIRE, Reason.NO_RELEASE_NO_ACQUIRE)  # of shared memory: fences of the CTA are enough
_SYNCHRONISING = (effects.CtaBarrier, effects.ClusterBarrierArrive, effects.MbarrierArrive, effects.WarpSync)


def _tighter(pending: int, event: Any) -> effects.Effect:
    fewer = effects.WordValue(min(event.pending.number, pending))
    tighter: effects.Effect = event.changed(pending=fewer) if event.pending.is_known else event
    return tighter


def _of_gpu_scope(event: Any) -> effects.Effect:
    is_weak = isinstance(event, _PLAIN) and not event.strong
    order = event.order & ~_SCOPE_BITS | max(event.order & _SCOPE_BITS, _GPU_SCOPE)
    wide: effects.Effect = event if is_weak else event.changed(order=order)
    return wide


def _pending(event: Any) -> int:
    return int(event.pending.number)


def _is_known(event: Any) -> bool:
    return bool(event.pending.is_known)


class Repairs(PhaseForms):
    """The repairs of one finding, in the order in which they are tried."""

    def __iter__(self) -> Iterator[Repair]:
        seen: set[tuple[RepairStep, ...]] = set()
        for repair in self._all():
            if repair.change and repair.steps not in seen:
                seen.add(repair.steps)
                yield repair

    def _all(self) -> Iterator[Repair]:
        if self.sites and (own := _BY_KIND.get(self.kind)):
            yield from own(self)
            yield from self.at_both(BARRIER)
            yield from self._pairs()

    def _pairs(self) -> Iterator[Repair]:
        """Two of the smallest together."""
        ones = itertools.chain(self.parities(), self.moved_across(effects.MbarrierArrive), self.counts(most=1))
        small = itertools.islice(ones, _MOST_SMALL)
        yield from filter(None, (one + other for one, other in itertools.combinations(small, 2)))

    # -- kinds of findings ---------------------------------------------------------------------------------------------------

    def _scope(self) -> Iterator[Repair]:
        yield from self._global() if self.record["flags"] & FindingFlags.GLOBAL else self._race()

    def _race(self) -> Iterator[Repair]:
        if self.reason in _OF_FLAGS:
            yield from self.at_flags(CTA_FENCE)
            yield from self._both_sides(CTA_FENCE)
        yield from self.at_accesses(WARP_BARRIER)  # also where lanes of one warp lack an edge that one of them has
        if self.record["flags"] & FindingFlags.SAME_WARP:
            yield from self._at_all(WARP_BARRIER)
            yield from self.around(WARP_BARRIER)
        if self.clusters:
            yield from self.moved_across(effects.ClusterBarrierArrive)
            yield from self.at_accesses(CLUSTER)
        yield from self.arrivals_moved()
        yield from self.moved_across(effects.CtaBarrier)
        yield from self.parities()
        yield from self.at_accesses(BARRIER)
        yield from self.around(BARRIER)
        yield from self._scopes()
        yield from self.counts()
        if self.kind is Kind.DATA_RACE and self.is_of_engine:
            yield from self._published()
        yield from self.between(BARRIER)
        yield from self.between(CTA_FENCE, everywhere=True)
        yield from self.phase_waits()

    def _published(self) -> Iterator[Repair]:
        """A proxy fence and a barrier between an access of a thread and an operation, in one place or two; or a later cluster arrival."""
        yield from self.moved(lambda event: isinstance(event, effects.ClusterBarrierArrive), self._is_own, lead=PROXY_FENCE)
        yield from self.at_accesses(PROXY_FENCE + BARRIER)
        yield from self.between(PROXY_FENCE + BARRIER)
        for whole in (True, False):
            fence = self.add(self.sites[0], PROXY_FENCE, after=True, whole=whole)
            yield from filter(None, (fence + other for other in (*self.at_accesses(BARRIER), *self.between(BARRIER))))

    def _wait(self) -> Iterator[Repair]:
        kind = _WAIT_OF.get(InFlight(self.operation) if self.operation else 0)
        yield from self._tensor_waits()
        yield from self.copies_arrive_later()
        if self.operation and kind is None:
            yield from self.parities()
        if self.operation:
            yield from self.at_accesses(WARP_BARRIER)
        if kind is effects.ProductWait:
            yield from self.at_accesses(REGISTERS_FENCE)
        yield from self._groups(kind) if kind else ()
        yield from self.bytes_expected()
        yield from self._race()
        if kind:
            commit, waits = _GROUPS[kind]
            for each in waits(0):
                yield from self.at_accesses(each + WARP_BARRIER)
                for piece in (each + BARRIER, commit + each, commit + each + BARRIER):
                    yield from self.at_accesses(piece)
                    yield from self.between(piece)

    def _tensor_waits(self) -> Iterator[Repair]:
        """Waits for loads from tensor memory, or for stores to it."""
        own = InFlight(self.operation) if self.operation else None
        for piece in _TENSOR_WAITS.get(own, ()) if own else ():
            for each in (piece, piece + BARRIER):
                yield from self.at_accesses(each)
                yield from self.at_synchronisation(each, after=False)

    def _deadlock(self) -> Iterator[Repair]:
        """Repairs of a wait that never ends: another parity or count, an arrival or a barrier at another place, or none."""
        yield from self.parities()
        yield from self.counts()
        yield from self.bytes_expected()
        yield from self.all_meet()
        for kind in (effects.MbarrierArrive, effects.Atomic, effects.Publish):
            yield from self.moved_across(kind)
        retained = self.arriving() | self.waiting()  # more would have to arrive, not fewer; what a barrier orders would race
        for site in dict.fromkeys((*self.sites, *self.conflicts())):
            if self.places.statement(site) not in retained:
                yield self.left_out(site)
        yield from self.between(BARRIER, everywhere=True)

    def _divergence(self) -> Iterator[Repair]:
        """An instruction for whole warps that some lanes do not reach: without it, or where all of them are."""
        for gone in filter(lambda repair: repair.change, map(self.left_out, self.sites)):
            yield gone
            for other in self.between(BARRIER, everywhere=True):
                if moved := gone + other:
                    yield moved
        yield from self.between(WARP_BARRIER, everywhere=True)

    def _fence(self) -> Iterator[Repair]:
        yield from self.moved_across(effects.ProxyFence, over=(*_SYNCHRONISING, effects.CopyWait))
        yield self.add(self.sites[0], PROXY_FENCE, after=True)  # by the writers
        yield from self.at_synchronisation(PROXY_FENCE, after=False)
        yield from self.at_accesses(PROXY_FENCE)
        for piece in (PROXY_FENCE + BARRIER, BARRIER + PROXY_FENCE):
            yield from self.at_accesses(piece)
            yield from self.between(piece)

    def _tensor_fence(self) -> Iterator[Repair]:
        for piece in (TENSOR_BEFORE, TENSOR_AFTER):
            yield from self.at_accesses(piece)
            yield from self.at_synchronisation(piece, after=False)
            yield from self.at_synchronisation(piece, after=True)

    def _misuse(self) -> Iterator[Repair]:
        if self.reason in (Reason.OTHER_CALL, Reason.OUT_OF_STEP):
            yield from self.moved_across(effects.CtaBarrier)
            return
        if self.reason in (Reason.BYTES_NOT_ANNOUNCED, Reason.BYTES_TOO_FEW):
            yield from self.bytes_expected()
        yield from self.parities()
        yield from self.bytes_expected()
        yield from self.counts()
        yield from self._scopes()
        yield from self.completing()
        yield from self.all_meet()
        if self.clusters:
            for piece in (CLUSTER, INITS_FENCE, INITS_FENCE + CLUSTER):
                yield from self.at_accesses(piece)
                yield from self.at_synchronisation(piece, after=False)
        yield from self.at_accesses(BARRIER)
        yield from self.between(BARRIER)
        yield from self.at_accesses(WARP_BARRIER)
        yield from self.invalidations()
        yield from self.phase_waits()
        if self.reason is not Reason.INIT_NOT_PUBLISHED:
            yield from map(self.left_out, self.sites)

    def _lifetime(self) -> Iterator[Repair]:
        kind = _WAIT_OF.get(InFlight(self.own_operation) if self.own_operation else 0)
        if self.reason is Reason.EXIT and kind:
            yield from self._groups(kind)
            commit, waits = _GROUPS[kind]
            for each in waits(0):
                yield from self.at_accesses(commit + each)
        if self.reason is Reason.EXIT:
            yield from self.bytes_expected()
            yield from self.parities()
            yield from self.phase_waits()
        if self.clusters:
            yield from self.at_accesses(CLUSTER)
            yield from self.between(CLUSTER, everywhere=True)

    def _global(self) -> Iterator[Repair]:
        yield from self._scopes()
        yield from self.at_accesses(WARP_BARRIER)
        yield from self.at_accesses(BARRIER)
        yield from self._one_side(GPU_FENCE)
        yield from self._both_sides(GPU_FENCE)
        yield from self.between(GPU_FENCE, everywhere=True)
        yield from self.between(BARRIER)

    def _one_side(self, fence: Piece) -> Iterator[Repair]:
        """The side of a flag that lacks: in `data += 1` under a lock, the acquire is before the load and the release behind the store."""
        first, last = int(self.record["other_site"]), int(self.record["site"])
        site, after = (first, True) if self.reason is Reason.NO_RELEASE else (last, False)
        if self.reason in _ONE_SIDE and site in self.sites:
            yield from (self.add(site, fence, after=after, whole=whole) for whole in (True, False))

    def _both_sides(self, fence: Piece) -> Iterator[Repair]:
        """The two sides of a flag: a fence behind the one access, and one before the other."""
        ends = self.sites[0], self.sites[-1]
        for first, last in dict.fromkeys((ends, ends[::-1])):
            for whole in (True, False):
                both = self.add(first, fence, after=True, whole=whole) + self.add(last, fence, after=False, whole=whole)
                if both:
                    yield both

    # -- groups and scopes ---------------------------------------------------------------------------------------------------

    def _at_all(self, piece: Piece) -> Iterator[Repair]:
        """Before each statement of a line that touches memory, and before all of the line's neighbours that the finding names."""
        both = self.add(self.sites[0], piece, after=False, whole=False) + self.add(self.sites[-1], piece, after=False, whole=False)
        if both:
            yield both

    def _groups(self, kind: type[effects.Effect]) -> Iterator[Repair]:
        """A wait for fewer groups in flight; a wait moved across a barrier; one more wait."""
        for pending in range(self._pending(kind), -1, -1):
            yield from self.altered((kind,), functools.partial(_tighter, pending), lambda event: f"{self.opcode(event)} {_pending(event)}")
        if kind is effects.BulkWait:
            yield from self.altered((kind,), without("read_only"), lambda event: f"cp.async.bulk.wait_group {_pending(event)}")
        yield from self.moved_across(kind)
        yield from self.moved_across(_COMMITS[kind], over=(kind,))
        commit, waits = _GROUPS[kind]
        for pending in sorted({self._left_over(), 0}, reverse=True):
            for piece in waits(pending):
                yield from self.at_synchronisation(piece, after=False)
                yield from self.before_fences(piece) if kind is effects.CopyWait else ()
                yield from self.at_accesses(piece)
        yield from self.at_accesses(commit)
        for piece in waits(0):
            yield from self.at_synchronisation(commit + piece, after=False)

    def _pending(self, kind: type[effects.Effect]) -> int:
        """The most groups that a wait of the kernel leaves in flight, and one less."""
        waits = [_pending(self.places[spot]) for spot in self.places.spots(lambda event: isinstance(event, kind) and _is_known(event))]
        return min(max(waits, default=0) - 1, 7)

    def _left_over(self) -> int:
        """The groups after that of the operation: a wait may leave these in flight."""
        group, commits = int(self.record["group"]), int(self.record["commits"])
        return commits - group - 1 if 0 <= group < commits and commits - group <= 8 else 0

    def _scopes(self) -> Iterator[Repair]:
        wider = "of a wider scope"
        yield from self.altered(_SCOPED, without("narrow"), lambda event: f"{self.opcode(event)} {wider} (.cluster)")
        yield from self.altered(_RELAXED, without("relaxed"), self._strengthened)
        if self.record["flags"] & FindingFlags.GLOBAL:
            wide = list(self.altered((*_FLAGS, *_PLAIN), _of_gpu_scope, lambda event: f"{self.opcode(event)} {wider} (.gpu)"))
            yield from wide
            yield from filter(None, (one + other for one, other in itertools.combinations(wide[:_MOST_SMALL], 2)))

    def _strengthened(self, event: effects.Effect) -> str:
        return self.opcode(event).replace(".relaxed", _ORDERS.get(type(event), ""))

    def _order(self) -> Iterator[Repair]:
        """Order for strong accesses that have none: fences of both threads, or a barrier."""
        yield from self.at_accesses(WARP_BARRIER)
        if self.record["flags"] & FindingFlags.SAME_WARP:
            yield from self.at_both(WARP_BARRIER)
        if self.record["reason"] in _OF_SEQUENCES:
            yield from self.at_accesses(GPU_FENCE)
        for fence in (CTA_FENCE, GPU_FENCE):
            yield from self.at_flags(fence)
            yield from self._both_sides(fence)
        yield from self.at_accesses(BARRIER)
        yield from self.between(BARRIER)


_OF_SEQUENCES = (Reason.SEQUENCE_READER, Reason.SEQUENCE_WRITER)
_BY_KIND: dict[Kind, Callable[[Repairs], Iterator[Repair]]] = {
    Kind.DATA_RACE: Repairs._race,
    Kind.SCOPE: Repairs._scope,
    Kind.UNINITIALIZED_READ: Repairs._race,
    Kind.MISSING_WAIT: Repairs._wait,
    Kind.MISSING_PROXY_FENCE: Repairs._fence,
    Kind.MISSING_TENSOR_FENCE: Repairs._tensor_fence,
    Kind.BARRIER_MISUSE: Repairs._misuse,
    Kind.LIFETIME: Repairs._lifetime,
    Kind.DEADLOCK: Repairs._deadlock,
    Kind.DIVERGENCE: Repairs._divergence,
    Kind.GLOBAL_RACE: Repairs._global,
    Kind.MISSING_ORDER: Repairs._order,
}
