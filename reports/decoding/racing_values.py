"""Says what becomes of the value that a race is about: it reaches a store, a branch or an address, or it is discarded.

The value is what the reading side loads; where both sides write, what stays in memory. It is asked of the threads that read in all pairs
that were merged into the finding, which a record of shared memory has; elsewhere of all threads of the CTA.

Not known: of cells of tensor memory, and where the text does not show it (instrument/between/value_uses.py).
"""

from __future__ import annotations

import math

from consan.instrument.findings import KINDS, FindingFlags, FindingRecord, Hazard
from consan.instrument.relations import Thread, ValueUse
from consan.instrument.sites import Place
from consan.reports.racing_value import RacingValue, UsedAt, united_value
from consan.reports.records.finding_records import ModuleSites
from consan.reports.records.numbering import in_cta, unflatten
from consan.reports.source.places import shown_at


def value_of(found: FindingRecord, module: ModuleSites) -> RacingValue | None:
    """The use of the value of a finding; None where it has none, or nobody knows."""
    if module.relations is None or not KINDS[found.kind].conflicts or FindingFlags.TENSOR in found.flags:
        return None
    sides = [site for number in (found.site, found.other_site) if (site := module.site(number)) is not None]
    if len(sides) < 2:
        return None
    threads = readers_of(found)
    asked = [site for site in sides if site.reads] or (sides if found.hazard is Hazard.WAW else [])
    return united_value(None if use is None else _worded(use) for use in [module.relations.value_use(site, threads) for site in asked])


def readers_of(found: FindingRecord) -> tuple[Thread, ...]:
    """The threads that may have read, by their index in the CTA."""
    ntid = found.geometry.ntid
    numbers = range(math.prod(ntid))
    if found.readers is not None:
        first, last = (in_cta(found, each) for each in found.readers)
        one_cta = found.readers[0] - first == found.readers[1] - last
        numbers = range(first, last + 1) if one_cta else numbers
    return tuple(unflatten(each, ntid) for each in numbers)


def _worded(use: ValueUse) -> RacingValue:
    path = list[UsedAt]()
    for place in map(_step, use.path):
        if path and (place.file, place.line or place.ptx_line) == (path[-1].file, path[-1].line or path[-1].ptx_line):
            path.pop()  # of several steps on a line the last one stays: it says where the value ends
        path.append(place)
    return RacingValue(use.end, tuple(path), use.addresses)


def _step(place: Place) -> UsedAt:
    shown = shown_at(place)
    return UsedAt(shown["file"], shown["line"], place.ptx_line)
