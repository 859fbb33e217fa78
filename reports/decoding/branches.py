"""Says where a barrier of the CTA belongs if an access is in a branch: outside of it, where all threads pass; or that no place is.

Warps of one role have a barrier of their own (`bar.sync 1, 128`): theirs is named in its place, since the other warps never come there.

A fix that offers a barrier after (1) and before (2) names their lines. A barrier in a branch that only some threads take is itself
wrong. The words are added to every fix with such a barrier, whatever its kind, if the text of the kernel proves the branch: the
thread of the other access cannot enter it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from consan.instrument.relations import Relations, Stretches, SyncPoint, Thread, Threads
from consan.reports.model import Finding
from consan.reports.words import frameworks
from consan.reports.words.ordering import Pair
from consan.reports.words.wording import caller_places, place, place_of

_BARRIERS: Final = {"cta_barrier": "the barrier where all threads", "warp_barrier": "it where all lanes of the warp"}
_SIDES: Final = ("after", "before")
_BETWEEN: Final = ("no-barrier", "no-warp-sync")  # their fix is a barrier between (1) and (2)
_EXCLUSIVE: Final = (
    "no barrier can stand between the two, because their branches exclude each other, and in one branch a barrier is wrong: end the branch"
    " of the {first}, put {call} where all threads pass, and do the {second} in a branch behind that"
)
_OWN_BYTES: Final = "; or, if each is to write bytes of its own, correct one of the addresses: both write {name}"
_OF_A_GROUP: Final = "a barrier of these {count} threads (as the bar.sync {number}, {count} at {at})"
_BEHIND_WAIT: Final = "waited-no-barrier"  # the barrier belongs behind the wait for (1), and not behind (1)
_BEHIND_INVAL: Final = "bytes-used"  # and here behind the mbarrier.inval, which is not there yet


def where_all_pass(finding: Finding, pair: Pair, relations: Relations | None, framework: str, size: int) -> Finding:
    """The finding, with the branches that its barrier has to be outside of. `size`: how many threads the CTA has."""
    first, second = pair
    words = frameworks.words_of(framework, "")
    barrier = next((text for name, text in _BARRIERS.items() if words[name] in finding.fix), "")
    if relations is None or first is None or second is None or not barrier or finding.situation == _BEHIND_INVAL:
        return finding
    one, other = finding.pair[:2]
    if finding.situation in _BETWEEN and _exclude_each_other(pair, (one.thread, other.thread), relations):
        sides = [f"{each.role} at {place(each)}" for each in (one, other)]
        call = next(words[name] for name in _BARRIERS if words[name] in finding.fix)
        fix = _EXCLUSIVE.format(call=call, first=sides[0], second=sides[1])
        own = _OWN_BYTES.format(name=one.name or "the same bytes") if finding.hazard == "WAW" else ""
        return replace(finding, fix=f"{fix}{own}")
    behind_wait = finding.situation.removeprefix("global-").startswith(_BEHIND_WAIT)
    wait = finding.culprit if behind_wait else None
    if (
        not finding.situation.startswith(_BETWEEN)
        and barrier == _BARRIERS["warp_barrier"]
        and (one.block, one.warp) != (other.block, other.warp)
    ):
        return finding  # it stands between an access and a release or an acquire of one warp
    if finding.situation == "written-later":  # (2) is the write, which has to come first
        first, second, one, other = second, first, other, one
    is_users = words["cta_barrier"] in finding.fix and framework not in frameworks.GROUPS_BY_COMPILER
    own = _barrier_of_group(finding.kernel, pair, (one.thread, other.thread), relations, size) if is_users else ""
    if own:
        return replace(finding, fix=finding.fix.replace(words["cta_barrier"], own))
    inside = relations.in_branches(first, second, (one.thread, other.thread), wait.ptx_line if wait else 0)
    if behind_wait and wait is None:  # nobody knows where the wait is
        inside = False, inside[1]
    places = zip(_SIDES, caller_places(wait or one, other), inside, strict=True)
    named = [f"{side} the branch that contains {at}" for side, at, is_in in places if is_in]
    if not named:
        return finding
    return replace(finding, fix=f"{finding.fix}; put {barrier} pass: {' and '.join(named)}")


def _barrier_of_group(entry: str, pair: Pair, threads: Threads, relations: Relations, size: int) -> str:
    """A named barrier of fewer threads than the CTA has, at which the threads of both accesses meet elsewhere; empty without one."""
    first, second = pair
    found = relations.stretches(first, second, threads) if first is not None and second is not None else None
    if found is None or first is None or second is None or not (found.follows or relations.follows(entry, second.ptx_line, first.ptx_line)):
        return ""  # roles of their own
    for point in _around(found):
        line, met = point.place.ptx_line, {_met(point, thread) for thread in threads}
        number, count = met.pop()
        comes_to_both = all(relations.follows(entry, line, site.ptx_line) for site in (first, second))
        left_out = [relations.in_branches(first, second, threads, line)[0], relations.in_branches(second, first, threads[::-1], line)[0]]
        if number and count and count < size and not met and comes_to_both and not any(left_out):
            return _OF_A_GROUP.format(number=number, count=count, at=place_of(point.place))
    return ""


def _met(point: SyncPoint, thread: Thread | None) -> tuple[int | None, int | None]:
    """The number of the named barrier at which a thread waits, and how many do; nothing of all else."""
    waits = point.row.is_cta_barrier and not point.row.arrives_only and point.always
    if thread is None or not waits or point.number is None or point.count is None:
        return None, None
    return point.number.of(thread), point.count.of(thread)


def _exclude_each_other(pair: Pair, threads: Threads, relations: Relations) -> bool:
    """Whether neither access follows the other in any thread, and the branches do not signal each other, as roles of warps do."""
    first, second = pair
    if first is None or second is None or first.ptx_line == second.ptx_line or first.function != second.function:
        return False
    found = relations.stretches(first, second, threads)
    return found is not None and not (found.follows or found.repeats) and not any(map(_signals_a_role, _around(found)))


def _around(found: Stretches) -> Iterator[SyncPoint]:
    return itertools.chain(found.before_first, found.after_first, found.before_second, found.after_second)


def _signals_a_role(point: SyncPoint) -> bool:
    """Whether an instruction synchronises some threads of the CTA: at an mbarrier, or at a barrier that counts threads."""
    return point.row.arrives_at_mbarrier or point.row.is_phase_wait or (point.row.is_cta_barrier and point.count is not None)
