"""Repairs that concern mbarriers: parities, counts, bytes, arrivals, and waits for the phase of another mbarrier.

Which mbarriers a launch has initialised, and in how many places, its logs tell (walks.py).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from typing import Any

from consan.checker.questions.changes import Spot, Statement
from consan.checker.questions.pieces import BARRIER, PROXY_FENCE, arrival, invalidation, phase_wait
from consan.checker.repairs.forms import Forms, Repair, RepairStep, is_arrival, without
from consan.instrument import effects
from consan.instrument.findings import Hazard, Kind
from consan.instrument.isa import announces_bytes

MOST_PLACES = 6  # mbarriers that are tried
_EXPECTS = (effects.MbarrierArrive, effects.MbarrierTransaction)


def _flipped(event: Any) -> Any:
    """The other parity: that of a word is the sum of both."""
    return event.changed(parity=effects.WordValue(event.parity.number ^ 1, event.parity.word))


def _more(step: int, event: Any) -> Any:
    """Another count: that of a word is the sum of both."""
    return event.changed(count=event.count.plus(step))


class PhaseForms(Forms):
    """The candidate repairs of a finding at mbarriers."""

    def parities(self) -> Iterator[Repair]:
        """The other parity at a wait."""
        yield from self.altered((effects.MbarrierWait,), _flipped, lambda event: f"{self.opcode(event)} with the other parity")

    def counts(self, most: float = math.inf) -> Iterator[Repair]:
        """Other counts at an init, `most` more or less: by one, by a warp's; as many as the CTA has threads or warps; one warp less."""
        threads = math.prod(self.questions.launched.block)
        totals = (threads, threads // 32, threads // 32 - 1, threads - 32)
        for spots in self.places.by_statement(lambda event: isinstance(event, effects.MbarrierInit)).values():
            event: Any = self.places[spots[0]]
            count = event.count.number
            more = (31 * count, *(total - count for total in totals), count // 32 - count) if count else ()
            for step in filter(None, dict.fromkeys((1, -1, 32, -32, *more))):
                change = self.places.altered(spots, functools.partial(_more, step))
                if abs(step) <= most and (not event.count.is_known or count + step > 0):
                    words = f"a count of {count + step}" if event.count.is_known else f"a count that differs by {step:+}"
                    yield Repair((RepairStep("alter", f"{self.opcode(event)} with {words}", "at", event.site),), change)

    def bytes_expected(self) -> Iterator[Repair]:
        """More or fewer bytes announced: by those of an operation, or twice as many; or as many as one to four operations have."""
        for spots in self.places.by_statement(self._expects).values():
            event = self.places[spots[0]]
            if self._is_computed(event):
                yield from self._constant_bytes(event, spots)
            announced, sizes = self._announced(event), self.questions.walked.sizes
            exact = [number * size - announced for number in (1, 2, 4, 3) for size in sorted(sizes) if announced]
            around = [step for size in sorted({*sizes, announced}) for step in (size, -size)]
            for step in dict.fromkeys((*exact, *around)):
                if step:
                    change = self.places.altered(spots, functools.partial(self._more_bytes, step))
                    words = f"{self.opcode(event)} with {abs(step)} bytes {'more' if step > 0 else 'less'}"
                    if change and all(self._announced(each) >= 0 for events in change.values() for each in events):
                        yield Repair((RepairStep("alter", words, "at", event.site),), change)

    def _constant_bytes(self, event: effects.Effect, spots: list[Spot]) -> Iterator[Repair]:
        """The bytes of one or two operations in each phase, in place of a number that the kernel computes."""
        for size in sorted({number * size for size in self.questions.walked.sizes for number in (1, 2)}):
            change = self.places.altered(spots, functools.partial(self._with_bytes, size))
            yield Repair((RepairStep("alter", f"{self.opcode(event)} with {size} bytes", "at", event.site),), change)

    def _is_computed(self, event: effects.Effect) -> bool:
        return not self._announcement(event).is_known

    def _with_bytes(self, size: int, event: effects.Effect) -> effects.Effect:
        return self._announcing(event, effects.WordValue(size))

    def _expects(self, event: effects.Effect) -> bool:
        return isinstance(event, _EXPECTS) and (isinstance(event, effects.MbarrierTransaction) or announces_bytes(self.opcode(event)))

    def _announced(self, event: effects.Effect) -> int:
        return self._announcement(event).number

    def _announcement(self, event: Any) -> effects.WordValue:
        value: effects.WordValue = event.size if isinstance(event, effects.MbarrierTransaction) else event.expected
        return value

    def _announcing(self, event: effects.Effect, value: effects.WordValue) -> effects.Effect:
        return event.changed(**{"size" if isinstance(event, effects.MbarrierTransaction) else "expected": value})

    def _more_bytes(self, step: int, event: effects.Effect) -> effects.Effect:
        return self._announcing(event, self._announcement(event).plus(step))

    def completing(self) -> Iterator[Repair]:
        """Arrivals that may complete the phase."""
        words = lambda event: self.opcode(event).replace(".noComplete", "")  # noqa: E731
        yield from self.altered((effects.MbarrierArrive,), without("no_complete"), words)

    def arrivals_moved(self) -> Iterator[Repair]:
        """Arrivals, at mbarriers and at barriers, behind or before the accesses; or behind the proxy fence that follows them."""
        yield from self.moved(is_arrival, self._is_own)
        yield from self.moved(is_arrival, lambda event: isinstance(event, effects.ProxyFence))
        yield from self.moved(is_arrival, self._is_own, lead=PROXY_FENCE)

    def copies_arrive_later(self) -> Iterator[Repair]:
        """The arrival of copies, behind those that it is to track."""
        yield from self.moved(lambda event: isinstance(event, effects.MbarrierCopies), self._is_own)

    def _is_own(self, event: effects.Effect) -> bool:
        return self.places.statement(event.site) in self._own

    @property
    def is_of_engine(self) -> bool:
        """Whether an operation in flight is one side of the finding."""
        spots = self.places.spots(
            lambda event: isinstance(event, (effects.BulkStore, effects.TensorStore, effects.BulkPush, effects.ToShared))
        )
        return any(self._is_own(self.places[spot]) for spot in spots)

    @functools.cached_property
    def _own(self) -> set[Statement | None]:
        return {self.places.statement(site) for site in self.sites}

    def places_of_mbarriers(self) -> list[int]:
        """The addresses of mbarriers, that of the finding first."""
        window = self.questions.launch.window()
        place = int(self.record["place"])
        own = [window[0] + (place - 1) % max(window[1], 1)] if place else []
        return list(dict.fromkeys((*own, *self.questions.walked.mbarriers)))[:MOST_PLACES]

    def phase_waits(self) -> Iterator[Repair]:
        """A wait for the phase of an mbarrier."""
        for address in self.places_of_mbarriers():
            for parity in (0, 1):
                piece = phase_wait(address, parity)
                for each in (*self.at_accesses(piece), *self.at_accesses(piece + BARRIER)):
                    if not self._turns(each):
                        yield each

    def _turns(self, repair: Repair) -> bool:
        """Whether a wait is before a read that is to come first: the read would get what the later write has stored."""
        is_first = self.kind is Kind.DATA_RACE and self.record["hazard"] == Hazard.WAR
        return is_first and any((step.where, step.site) == ("before", int(self.record["other_site"])) for step in repair.steps)

    def arrivals(self) -> Iterator[Repair]:
        """One more arrival."""
        for address in self.places_of_mbarriers():
            yield from self.at_accesses(arrival(address))

    def invalidations(self) -> Iterator[Repair]:
        """An mbarrier ends before its bytes are used for something else."""
        for address in self.places_of_mbarriers():
            yield from self.at_accesses(invalidation(address))

    def all_meet(self) -> Iterator[Repair]:
        """A named barrier is for all threads of the CTA."""
        alter = lambda event: event.changed(threads=effects.ALL_THREADS)  # noqa: E731
        yield from self.altered((effects.CtaBarrier,), alter, lambda event: f"{self.opcode(event)} without a count")
