"""Puts the two accesses of a race in program order, whatever order the schedule took.

A device reports a race at the second access, so one race is a RAW in one run and a WAR in the next. The
kernel's text (`instrument/between`) decides which access is (1). Pairs with an asynchronous operation do not change:
their (1) and (2) have fixed roles.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from consan.instrument.relations import Order, Relations
from consan.instrument.sites import Site
from consan.reports.catalogue.global_races import FLAG_SIDES
from consan.reports.catalogue.situations import CHECKED, UPDATE
from consan.reports.model import Access, Finding

Pair = tuple[Site | None, Site | None]

# How the accesses of a race lie in the program (`kinds.describe`); most positions need no special wording.
NEXT_ITERATION: Final = "next-iteration"
STATEMENT: Final = "statement"
OWN_UPDATE: Final = "own-update"  # a statement whose write puts back what another read of its thread has loaded: `s[t] += s[t - d]`
ONE_STORE: Final = "one-store"  # one instruction by which several threads store
DISJOINT: Final = "disjoint"  # in two branches: no thread executes both
LOOPED_STORE: Final = "looped-store"  # the same, also in different iterations of a loop
_RACES: Final = ("data-race", "global-race", "missing-order")
RELEASED_BEFORE: Final = "released-before"
RELEASED_BY_OTHER: Final = "released-by-other"
NO_SYNCHRONISATION: Final = "no-synchronisation"
FLAG_BEFORE: Final = "flag-before"
FLAG_PASSED: Final = "flag-passed"
OVERTAKEN: Final = "released-round-before"  # the same, of a write of a later round
USED_AGAIN: Final = "released-reads-before"  # the same, of a write that each thread does behind its own read
_WITHIN: Final = ("no-barrier", "no-warp-sync")  # situations of strong accesses of one CTA
# One lane has the edge from (1) to (2).
_EDGES: Final = (*FLAG_SIDES, FLAG_BEFORE, FLAG_PASSED, "other-lanes", "other-lane-released", RELEASED_BEFORE, OVERTAKEN, USED_AGAIN)
_MIRRORED: Final = {"RAW": "WAR", "WAR": "RAW"}


def of_a_later_round(
    finding: Finding, pair: Pair, release: Site | None, situation: str | None, relations: Relations | None, *, is_first: bool = False
) -> tuple[Finding, Pair, str | None]:
    """An access that comes after a release in the run, and before it in the text: the release that (2) has acquired is of an earlier round.

    The read is then (1): the write, of a later round, was to wait for it. So it is with a write behind the release that comes only behind
    the read, if each thread does both, unless it is the first write of the bytes (`is_first`): the read was to see it. Lines of the source
    decide, since a loop may be unrolled. A read that comes only behind the write, such as one behind the loop, was to see it, too.
    If nothing leads from the release to the access, there are no rounds: another thread has released before.
    """
    first, second = pair
    if situation != RELEASED_BEFORE or finding.hazard not in _MIRRORED or first is None or release is None:
        return finding, pair, situation
    if not (_line_of(first), first.ptx_line) < (_line_of(release), release.ptx_line):  # of one line, the PTX decides
        again = (
            finding.hazard == "RAW"
            and not is_first
            and relations is not None
            and second is not None
            and _only_behind(first, second, finding.kernel, relations)
        )
        return (*turned(finding, pair, swap=True), USED_AGAIN) if again else (finding, pair, situation)
    if (
        relations is not None
        and finding.kind == "global-race"
        and relations.follows(finding.kernel, release.ptx_line, first.ptx_line) is False
    ):
        return finding, pair, RELEASED_BY_OTHER
    if finding.hazard == "RAW" and relations is not None and second is not None and _only_behind(second, first, finding.kernel, relations):
        return finding, pair, situation
    return *turned(finding, pair, swap=finding.hazard == "RAW"), OVERTAKEN


def in_one_round(kind: str, situation: str | None, first: Site | None, flag: Site | None) -> str | None:
    """The situation. A flag that is written before an access in the run, but not in the text, is one of an earlier round."""
    if situation != FLAG_BEFORE or first is None or flag is None:
        return situation
    before = (_line_of(flag), flag.ptx_line) < (_line_of(first), first.ptx_line)
    return situation if before else NO_SYNCHRONISATION if kind == "global-race" else "no-barrier"


def _only_behind(second: Site, first: Site, kernel: str, relations: Relations) -> bool:
    there, back = ((first.ptx_line, second.ptx_line), (second.ptx_line, first.ptx_line))
    return relations.follows(kernel, *there) is True and relations.follows(kernel, *back) is False


def _line_of(site: Site) -> tuple[str, int]:
    """The file and the line of an instruction in its kernel; of PTX without lines that of the PTX."""
    at = site.inlined[-1] if site.inlined else site
    return (at.file, at.line or 0) if at.file else ("", site.ptx_line)


def in_program_order(finding: Finding, pair: Pair, relations: Relations | None, situation: str | None = None) -> tuple[Finding, Pair, str]:
    """The finding with (1) before (2), the two sites, and their position to each other. An edge gives the order by itself."""
    first, second = pair
    if situation in _EDGES or (finding.kind == "missing-order" and situation not in _WITHIN):
        return finding, pair, ""
    if finding.kind not in _RACES or first is None or second is None:
        return finding, pair, ""
    if any(access.asynchronous for access in finding.accesses):
        late = relations is not None and (
            _is_of_a_later_round(finding, first, second, relations) or _is_behind_copy(finding, first, second, relations)
        )
        return *turned(finding, pair, swap=late), ""
    if relations and _is_update(first, second, relations) and not _of_one_writer(finding, first, second, relations):
        return *turned(finding, pair, swap=not first.only_reads and second.only_reads), UPDATE
    if relations and _is_checked(first, second, relations) and not _of_one_writer(finding, first, second, relations):
        return *turned(finding, pair, swap=not first.only_reads and second.only_reads), CHECKED
    if finding.kind == "global-race":
        return finding, pair, ""
    order = relations.order(first, second, _barriers(*finding.accesses)) if relations else None
    finding, pair = turned(finding, pair, swap=order is not None and order.swapped)
    shape = _shape(finding, order) or (DISJOINT if _are_disjoint(finding, pair, relations) else "")
    return finding, pair, OWN_UPDATE if shape == STATEMENT and relations and _updates(pair, relations) else shape


def _is_of_a_later_round(finding: Finding, write: Site, operation: Site, relations: Relations) -> bool:
    """Whether a write races with what an operation reads, and a barrier orders the write before the operation of its own round."""
    by = [access.asynchronous for access in finding.accesses[:2]]
    if (finding.kind, finding.hazard) != ("data-race", "RAW") or by[0] is not None or by[1] is None:
        return False
    order = relations.order(write, operation, _barriers(*finding.accesses))
    return order is not None and order.swapped and order.carried


def _is_behind_copy(finding: Finding, write: Site, copy: Site, relations: Relations) -> bool:
    """Whether a write races with a `cp.async`, and comes behind it on every path."""
    by = [access.asynchronous for access in finding.accesses[:2]]
    return by[0] is None and by[1] is not None and by[1].kind == "cp.async" and _only_behind(write, copy, finding.kernel, relations)


def _are_disjoint(finding: Finding, pair: Pair, relations: Relations | None) -> bool:
    """Whether the text has no path from one of the two accesses to the other, in either order."""
    lines = [site.ptx_line for site in pair if site is not None]
    both = (lines, lines[::-1]) if relations is not None and lines[0] != lines[1] else ()
    return bool(both) and all(relations is not None and relations.follows(finding.kernel, *each) is False for each in both)


def turned(finding: Finding, pair: Pair, *, swap: bool = True) -> tuple[Finding, Pair]:
    """The finding and its sites, with (1) and (2) swapped if asked."""
    hazard = _MIRRORED.get(finding.hazard or "", finding.hazard)
    return (replace(finding, accesses=finding.accesses[::-1], hazard=hazard), pair[::-1]) if swap else (finding, pair)


def _is_update(first: Site, second: Site, relations: Relations) -> bool:
    """Whether the two are the load and the store of one update, or one store that is part of an update."""
    writes = [site for site in (first, second) if site.access == "write"]
    if not writes or (len(writes) == 2 and not _one_place(first, second)):
        return False
    loads = relations.updates(writes[0])
    return bool(loads) and (len(writes) == 2 or bool(loads & {first.ptx_line, second.ptx_line}))


def _is_checked(first: Site, second: Site, relations: Relations) -> bool:
    """Whether the two are the load that decides and the write, or one write that such a load decides."""
    writes = [site for site in (first, second) if not site.only_reads]
    if not writes or (len(writes) == 2 and not _one_place(first, second)):
        return False
    loads = relations.checks(writes[0])
    return bool(loads) and (len(writes) == 2 or bool(loads & {first.ptx_line, second.ptx_line}))


def _of_one_writer(finding: Finding, first: Site, second: Site, relations: Relations) -> bool:
    """Whether the thread of the read surely never stores there: it reads what another thread updates, and loses no update of its own."""
    one, other = (access.thread for access in finding.accesses[:2])
    if first.only_reads:
        return relations.in_branches(first, second, (one, other))[1]
    return second.only_reads and relations.in_branches(second, first, (other, one))[1]


def _updates(pair: Pair, relations: Relations) -> bool:
    """Whether a write of the pair is an update of other bytes than those that the read of the pair has loaded."""
    return any(site is not None and site.access == "write" and relations.updates(site) for site in pair)


def _one_place(first: Site, second: Site) -> bool:
    """Whether the two are one instruction, or copies of one in an unrolled loop."""
    one, other = ((site.opcode, site.file, site.line, site.column, site.inlined) for site in (first, second))
    return first == second or (first.file is not None and one == other)


def _shape(finding: Finding, order: Order | None) -> str:
    first, second = finding.accesses
    carried = order is not None and order.carried
    if finding.hazard == "WAW" and first.site == second.site:
        return LOOPED_STORE if carried else ONE_STORE
    if carried and first.site != second.site:
        return NEXT_ITERATION
    one_line = first.line and (first.file, first.line) == (second.file, second.line)
    return STATEMENT if one_line and first.site != second.site else ""


def _barriers(first: Access, second: Access) -> str:
    """The barriers that would order the two."""
    if first.block != second.block:
        return "cluster"
    return "warp" if first.warp == second.warp else "cta"
