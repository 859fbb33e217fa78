"""Repairs that concern mbarriers: parities, counts, bytes, arrivals, and waits for the phase of another mbarrier.

Which mbarriers a launch has initialised, and in how many places, its logs tell (walks.py).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from dataclasses import replace

from consan.checker.changes import Spot, Statement
from consan.checker.forms import Forms, Repair, RepairStep, is_arrival
from consan.checker.pieces import BARRIER, PROXY_FENCE, arrival, invalidation, phase_wait
from consan.instrument.record.templates import NO_WORD, Event, Flag, TemplateEvent

MOST_PLACES = 6  # mbarriers that are tried
_EXPECTS = (Event.MBARRIER_ARRIVE, Event.MBARRIER_TX)


def _flipped(event: TemplateEvent) -> TemplateEvent:
    """The other parity: that of a word is the sum of both."""
    return replace(event, a=event.a ^ 1)


def _more(step: int, event: TemplateEvent) -> TemplateEvent:
    """Another count: that of a word is the sum of both."""
    return replace(event, a=event.a + step)


class PhaseForms(Forms):
    """The candidate repairs of a finding at mbarriers."""

    def parities(self) -> Iterator[Repair]:
        """The other parity at a wait."""
        yield from self.altered((Event.MBARRIER_WAIT,), _flipped, lambda event: f"{self.opcode(event)} with the other parity")

    def counts(self, most: float = math.inf) -> Iterator[Repair]:
        """Other counts at an init, `most` more or less: by one, by a warp's, and as many as the CTA has threads."""
        for spots in self.places.by_statement(lambda event: event.kind == Event.MBARRIER_INIT).values():
            event = self.places[spots[0]]
            more = (31 * event.a, math.prod(self.questions.launched.block) - event.a, event.a // 32 - event.a) if event.a else ()
            for step in dict.fromkeys((1, -1, 32, -32, *more)):
                change = self.places.altered(spots, functools.partial(_more, step))
                if abs(step) <= most and (event.a_word >= 0 or event.a + step > 0):
                    words = f"a count of {event.a + step}" if event.a_word < 0 else f"a count that differs by {step:+}"
                    yield Repair((RepairStep("alter", f"{self.opcode(event)} with {words}", "at", event.site),), change)

    def bytes_expected(self) -> Iterator[Repair]:
        """More or fewer bytes announced: by those of an operation, or twice as many; or as many as one or two operations have."""
        for spots in self.places.by_statement(self._expects).values():
            event = self.places[spots[0]]
            if self._is_computed(event):
                yield from self._constant_bytes(event, spots)
            announced, sizes = self._announced(event), self.questions.walked.sizes
            exact = [number * size - announced for size in sorted(sizes) for number in (1, 2) if announced]
            around = [step for size in sorted({*sizes, announced}) for step in (size, -size)]
            for step in dict.fromkeys((*exact, *around)):
                if step:
                    change = self.places.altered(spots, functools.partial(self._more_bytes, step))
                    words = f"{self.opcode(event)} with {abs(step)} bytes {'more' if step > 0 else 'less'}"
                    if change and all(self._announced(each) >= 0 for events in change.values() for each in events):
                        yield Repair((RepairStep("alter", words, "at", event.site),), change)

    def _constant_bytes(self, event: TemplateEvent, spots: list[Spot]) -> Iterator[Repair]:
        """The bytes of one or two operations in each phase, in place of a number that the kernel computes."""
        for size in sorted({number * size for size in self.questions.walked.sizes for number in (1, 2)}):
            change = self.places.altered(spots, functools.partial(self._with_bytes, size))
            yield Repair((RepairStep("alter", f"{self.opcode(event)} with {size} bytes", "at", event.site),), change)

    def _is_computed(self, event: TemplateEvent) -> bool:
        return (event.a_word if event.kind == Event.MBARRIER_TX else event.b_word) >= 0

    def _with_bytes(self, size: int, event: TemplateEvent) -> TemplateEvent:
        return replace(event, a=size, a_word=NO_WORD) if event.kind == Event.MBARRIER_TX else replace(event, b=size, b_word=NO_WORD)

    def _expects(self, event: TemplateEvent) -> bool:
        return event.kind in _EXPECTS and (event.kind == Event.MBARRIER_TX or "expect_tx" in self.opcode(event))

    def _announced(self, event: TemplateEvent) -> int:
        return event.a if event.kind == Event.MBARRIER_TX else event.b

    def _more_bytes(self, step: int, event: TemplateEvent) -> TemplateEvent:
        return replace(event, a=event.a + step) if event.kind == Event.MBARRIER_TX else replace(event, b=event.b + step)

    def completing(self) -> Iterator[Repair]:
        """Arrivals that may complete the phase."""
        alter = lambda event: replace(event, flags=event.flags & ~int(Flag.NO_COMPLETE))  # noqa: E731
        yield from self.altered((Event.MBARRIER_ARRIVE,), alter, lambda event: self.opcode(event).replace(".noComplete", ""))

    def arrivals_moved(self) -> Iterator[Repair]:
        """Arrivals, at mbarriers and at barriers, behind or before the accesses; or behind the proxy fence that follows them."""
        yield from self.moved(is_arrival, self._is_own)
        yield from self.moved(is_arrival, lambda event: event.kind == Event.PROXY_FENCE)
        yield from self.moved(is_arrival, self._is_own, lead=PROXY_FENCE)

    def copies_arrive_later(self) -> Iterator[Repair]:
        """The arrival of copies, behind those that it is to track."""
        yield from self.moved(lambda event: event.kind == Event.MBARRIER_COPIES, self._is_own)

    def _is_own(self, event: TemplateEvent) -> bool:
        return self.places.statement(event.site) in self._own

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
                yield from self.at_accesses(piece)
                yield from self.at_accesses(piece + BARRIER)

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
        alter = lambda event: replace(event, b=-1, b_word=-1)  # noqa: E731
        yield from self.altered((Event.BARRIER,), alter, lambda event: f"{self.opcode(event)} without a count")
