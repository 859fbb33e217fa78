"""Launches whose threads each store a flag and then look at the other's, without `fence.sc` in between (R-MO2).

They are made once more with the store behind the look (late_stores.py): what races there races in a run that the kernel may have.

The virtual machine makes them, from the memory that the launch had, and in other schedules up to the first error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from consan.instrument.ptx import parse
from consan.reports.model import Finding
from consan.reports.verdict.crossed import CROSSED, behind_a_look
from consan.session.planning.late_stores import LateStores, late_stores
from consan.session.planning.schedules import RACES

MOST_SECONDS: Final = 10.0  # of one launch
EXPLORED: Final = 2.0  # seconds of processor time for other schedules of one text

Run = Callable[[str], list[Finding]]
"""Makes the launch with another text, also in other schedules: what was found."""


def crossings(found: Iterable[Finding], entry: str) -> list[Finding]:
    """The findings of a kernel whose stores may come behind looks; none if it has an error, which is repaired first."""
    own = [each for each in found if each.kernel == entry]
    return [] if any(each.severity == "error" for each in own) else [each for each in own if each.situation == CROSSED]


def races(crossed: Iterable[Finding], text: str, run: Run) -> list[Finding]:
    """The races that only a text with late stores has, in the words of the finding that it follows from."""
    for each in crossed:
        write, read = each.pair
        lines, looks = {write.ptx_line, read.ptx_line}, {read.ptx_line}
        late = late_stores(parse(text), lines, between_ctas=write.block != read.block, looks=looks)
        shown = [] if late is None else _shown(run(late.text), late)
        if shown:
            return [behind_a_look(race, each) for race in shown]
    return []


def _shown(found: list[Finding], late: LateStores) -> list[Finding]:
    """The races of a run that the kernel may have: none, if an atomic that was taken apart has found another value than it had read."""
    return [] if any(each.kind == "out-of-bounds" for each in found) else [each for each in found if _counts(each, late)]


def _counts(finding: Finding, late: LateStores) -> bool:
    places = [access.ptx_line for access in finding.pair]
    return finding.kind in RACES and finding.severity == "error" and not late.lines.intersection(places)
