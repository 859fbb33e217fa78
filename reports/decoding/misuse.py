"""Adds facts from the kernel's text to the report on a misused barrier: numbers and places that the device does not record.

- thread counts that disagree: the count of each thread, and where it is computed;
- a phase that nobody waited for, too many arrivals, or a copy over one in flight: the waits on that mbarrier, and the other one, whose
  wait should have held the next round back.

Nothing is added where the text does not tell.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Final

from consan.dataclass import dataclass
from consan.instrument.relations import Relations, Signal
from consan.instrument.sites import Place, Site
from consan.reports.culprits.cases import access_of
from consan.reports.model import Dim3, Finding
from consan.reports.records.numbering import unflatten
from consan.reports.source.names import name_without_element, variable_name
from consan.reports.source.places import culprit_at
from consan.reports.words.wording import place, place_of

MOST_LISTED: Final = 3  # thread counts, or places, that a sentence lists


def explained_misuse(finding: Finding, site: Site | None, relations: Relations | None, threads: Dim3) -> Finding:
    """The finding with what is known from the text. `site`: of the last access; `threads`: of the CTA."""
    rule = _RULES.get(finding.situation) if finding.kind == "barrier-misuse" else None
    return rule(finding, site, relations, threads) if rule is not None and relations is not None and site is not None else finding


def _counts(finding: Finding, site: Site, relations: Relations, threads: Dim3) -> Finding:
    """The count of each thread, if one instruction gives different ones."""
    counted = relations.counted(site)
    if counted is None or len({access.site for access in finding.pair}) > 1:
        return finding
    total = threads[0] * threads[1] * threads[2]
    counts = [counted.count.of(unflatten(number, threads)) for number in range(total)]
    if None in counts or not 1 < len(set(counts)) <= MOST_LISTED:
        return finding
    listed = " and ".join(f"{count} {_of_threads(counts, count)}" for count in dict.fromkeys(counts))
    more = f"; the CTA has only {total} threads" if max(filter(None, counts)) > total else ""
    finding = replace(finding, message=f"{finding.message}: {listed}{more}")
    return _computed(finding, counted.computed) if counted.computed is not None else finding


def _of_threads(counts: list[int | None], count: int | None) -> str:
    """`in threads 0 to 31`, if these are neighbours."""
    numbers = [number for number, each in enumerate(counts) if each == count]
    if numbers[-1] - numbers[0] >= len(numbers):
        return f"in {len(numbers)} threads"
    return f"in threads {numbers[0]} to {numbers[-1]}" if len(numbers) > 1 else f"in thread {numbers[0]}"


def _computed(finding: Finding, at: Place) -> Finding:
    """The finding with the instruction that computes the count, if it is on a line of its own."""
    access = culprit_at(at)
    if place(access) in map(place, finding.pair):
        return finding
    where = " and ".join(dict.fromkeys(map(place, finding.pair)))
    fix = f"let {place(access)}, which computes the count, give all threads that meet at {where} the same one"
    return replace(finding, accesses=(*finding.accesses, access), fix=f"{fix}: their number, a multiple of 32")


def _lapped(finding: Finding, site: Site, relations: Relations, threads: Dim3) -> Finding:
    """Add the places at which the kernel waits for the mbarrier, and the mbarrier that should have held the next round back."""
    name, signals = _variable_of(finding, relations)
    if not name:
        return finding
    ring = _Ring.of(name, signals)
    places = _places(ring.waits)
    if len(places) > MOST_LISTED:
        return finding
    where = f"{name} is waited for only at {' and '.join(places)}" if places else f"no instruction of this kernel waits for {name}"
    shown = {place(access): access for access in map(access_of, ring.waits)}
    shown |= {place(access): replace(access, name=ring.other) for access in map(access_of, ring.other_waits)}
    accesses = (*finding.accesses, *list(shown.values())[:MOST_LISTED])
    fix = _counted(finding, ring.fix(place(finding.pair[-1])) or finding.fix)
    return replace(finding, message=f"{finding.message}; {where}", accesses=accesses, fix=fix)


def _crowded(finding: Finding, site: Site, relations: Relations, threads: Dim3) -> Finding:
    """Add the mbarrier that should have held the threads back: they arrive too often, too, where one comes round again in a phase."""
    name, signals = _variable_of(finding, relations)
    ring = _Ring.of(name, signals)
    again = ring.fix(place(finding.pair[-1])) if name and ring.waits and ring.other_waits else ""
    if not again:
        return finding
    accesses = (*finding.accesses, *(replace(access_of(each), name=ring.other) for each in ring.other_waits[:1]))
    return replace(finding, accesses=accesses, fix=f"{finding.fix}; or, if one thread arrives twice in a phase: {again}")


def _counted(finding: Finding, fix: str) -> str:
    """The fix, or before it that of the count: the phases that two threads complete may be meant as one."""
    one, other = finding.pair[0], finding.pair[-1]
    if (one.thread, one.block) == (other.thread, other.block) or place(one) == place(other):
        return fix
    places = f"{place(one)} and {place(other)}"
    return f"if what comes at {places} is of one phase, initialise the mbarrier with the number of its arrivals; else {fix}"


def explained_refill(finding: Finding, relations: Relations | None) -> Finding:
    """Two copies in flight to the same bytes: the wait that lacks is that for the mbarrier on which the readers of the first arrive."""
    name, signals = _variable_of(finding, relations)
    loads = [access for access in finding.pair if access.role in ("bulk load", "asynchronous copy")]
    if (finding.kind, finding.hazard) != ("missing-wait", "WAW") or len(loads) < 2:
        return finding
    if not name:
        at = place(loads[-1])
        read = f'if threads use what the first copy brings, let them arrive behind that on an "empty" mbarrier, and wait for it before {at}'
        return replace(finding, fix=f"{read} {_FIRST}; else {finding.fix}")
    ring = _Ring.of(name, signals)
    return replace(finding, fix=ring.fix(place(loads[-1])) or finding.fix) if ring.waits else finding


def _variable_of(finding: Finding, relations: Relations | None) -> tuple[str, tuple[Signal, ...]]:
    """The variable of the finding's mbarrier, and the signals of the kernel. Empty if the text has no such name (dynamic memory)."""
    name = name_without_element((finding.barrier or {}).get("name", ""))
    signals = tuple(relations.signals(finding.kernel)) if relations is not None and name else ()
    return (name, signals) if name in {variable_name(each.symbol) for each in signals if each.symbol} else ("", signals)


_FIRST: Final = "(mbarrier.try_wait.parity with parity 1, which passes in the first round, then 0, and so on)"


@dataclass(frozen=True)
class _Ring:
    """An mbarrier, and the one other of a kernel on which threads arrive: those of a producer and a consumer. Empty if it is not known."""

    name: str
    waits: tuple[Signal, ...]
    other: str = ""
    other_waits: tuple[Signal, ...] = ()
    arrivals: tuple[Signal, ...] = ()  # on the other one

    @classmethod
    def of(cls, name: str, signals: Iterable[Signal]) -> _Ring:
        """The ring that has an mbarrier's variable."""
        known = [each for each in signals if each.barrier is None and each.symbol]
        waits = {variable: tuple(signals) for variable, signals in _by_variable(each for each in known if each.verb == "wait").items()}
        arrivals = _by_variable(each for each in known if each.verb in ("arrive", "announce"))
        others = arrivals.keys() - {name}
        if len(others) != 1:
            return cls(name, waits.get(name, ()))
        (other,) = others
        return cls(name, waits.get(name, ()), other, waits.get(other, ()), tuple(arrivals[other]))

    def fix(self, refill: str) -> str:
        """The wait that holds the next round back. `refill`: the place of its arrivals or its copy."""
        arrivals = _places(self.arrivals)
        if not self.other or len(arrivals) > MOST_LISTED:
            return ""
        at, waits = " and ".join(arrivals), " and ".join(_places(self.other_waits))
        if not self.waits:
            return f"wait for {self.name} before the next round begins, in the threads that arrive on {self.other} at {at} {_FIRST}"
        if not waits:
            return f"wait for {self.other}, on which threads arrive at {at}, before the next round at {refill} {_FIRST}"
        return (
            f"the wait for {self.other} at {waits} is to hold the next round at {refill} back: let it wait for the phase that the arrivals"
            f" at {at} complete in this round (check its parity), and let these come once a round"
        )


def _by_variable(signals: Iterable[Signal]) -> dict[str, list[Signal]]:
    found: dict[str, list[Signal]] = {}
    for each in signals:
        found.setdefault(variable_name(each.symbol), []).append(each)
    return found


def _places(signals: Iterable[Signal]) -> list[str]:
    return list(dict.fromkeys(place_of(each.place) for each in signals))


_RULES: Final[dict[str, Callable[[Finding, Site, Relations, Dim3], Finding]]] = {
    "counts-disagree": _counts,
    "phase-lapped": _lapped,
    "too-many-arrivals": _crowded,
}
