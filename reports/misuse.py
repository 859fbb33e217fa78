"""Adds facts from the kernel's text to the report on a misused barrier: numbers and places that the device does not record.

- thread counts that disagree: the count of each thread, and where it is computed;
- a phase that nobody waited for: the waits on that mbarrier.

Nothing is added where the text does not tell.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from consan.instrument.relations import Relations
from consan.instrument.sites import Place, Site
from consan.reports.culprits.cases import access_of
from consan.reports.kinds import place, place_of
from consan.reports.model import Dim3, Finding
from consan.reports.names import base_name, variable_name
from consan.reports.numbering import unflatten
from consan.reports.places import culprit_at

MOST_LISTED: Final = 3  # thread counts, or places, that a sentence lists


def explained_misuse(finding: Finding, site: Site | None, relations: Relations | None, threads: Dim3) -> Finding:
    """The finding with what the text tells. `site`: of the last access; `threads`: of the CTA."""
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
    """Add the places at which the kernel waits for the mbarrier."""
    name = base_name((finding.barrier or {}).get("name", ""))
    if not name:
        return finding
    found = relations.signals(finding.kernel)
    waits = [each for each in found if each.verb == "wait" and each.barrier is None and variable_name(each.symbol) == name]
    places = list(dict.fromkeys(place_of(each.place) for each in waits))
    if len(places) > MOST_LISTED:
        return finding
    where = f"{name} is waited for only at {' and '.join(places)}" if places else f"no instruction of this kernel waits for {name}"
    shown = {place(access): access for access in map(access_of, waits)}
    return replace(finding, message=f"{finding.message}; {where}", accesses=(*finding.accesses, *shown.values()))


_RULES: Final[dict[str, Callable[[Finding, Site, Relations, Dim3], Finding]]] = {
    "counts-disagree": _counts,
    "phase-lapped": _lapped,
}
