"""Finds the instruction between two accesses that does not order them. One function for each rule of `rules.py`.

A finder names an instruction only if the rule's sentence about it is true for every path that fits the finding.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable

from consan.instrument.relations import SyncPoint
from consan.reports.culprits.cases import (
    Case,
    Culprit,
    commits,
    constant_of,
    first_of,
    group_waits,
    is_arrival,
    is_barrier,
    is_phase_wait,
    is_proxy_fence,
    is_release,
    is_wait,
    last_of,
    last_wrong,
    named,
    same,
    thread_of,
    waits_for_operation,
)
from consan.reports.words.wording import place, place_of


def warp_barrier(case: Case) -> Culprit:
    """A `__syncwarp` that both threads pass, between accesses of two warps, with nothing that orders the warps."""
    around = case.around
    if case.first.warp == case.second.warp or any(map(is_barrier, around.between)):
        return None
    both = [point for point in around.after_first if point.always and point in around.before_second]
    return last_of(both, lambda point: point.row.is_warp_barrier)


def two_barriers(case: Case) -> Culprit:
    """The thread of (1) waits at one barrier, the thread of (2) at another."""
    one, other = first_of(case.around.after_first, is_barrier), last_of(case.around.before_second, is_barrier)
    if one is None or other is None or not (one.always and other.always and one.number and other.number):
        return None
    numbers = one.number.of(case.first.thread), other.number.of(case.second.thread)
    if None in numbers or numbers[0] == numbers[1] or case.around.repeats:
        return None
    one_at, other_at = place_of(one.place), place_of(other.place)
    return other, {
        "one": f"{thread_of(case.first)} {_verb(one)} named barrier {numbers[0]} ({one_at})",
        "other": f"{thread_of(case.second)} {_verb(other)} named barrier {numbers[1]} ({other_at})",
        "both_at": other_at if one_at == other_at else f"{one_at} and {other_at}",
    }


def _verb(barrier: SyncPoint) -> str:
    return "waits at" if is_wait(barrier) else "arrives at"


def arrives_only(case: Case) -> Culprit:
    """The last barrier before (2) is one at which its thread arrives without waiting."""
    last = last_of(case.around.before_second, is_barrier)
    return last if last and last.always and not is_wait(last) and case.around.follows else None


def too_few(case: Case) -> Culprit:
    """A barrier with a thread count that both threads pass once: in different rounds."""
    one, other = first_of(case.around.after_first, is_barrier), last_of(case.around.before_second, is_barrier)
    if case.around.repeats or one != other or one is None or not (one.always and is_wait(one) and one.number and one.count):
        return None
    numbers, threads = {one.number.of(access.thread) for access in case.finding.pair}, one.count.of(case.first.thread)
    return (one, {"threads": str(threads)}) if len(numbers) == 1 and None not in numbers and threads is not None else None


def passed_by(case: Case) -> Culprit:
    """A barrier between (1) and (2) that one of the two threads can reach in between. The other one cannot, nor beyond them."""
    point, around = last_of(case.around.between, is_wait), case.around
    if point is None:
        return None
    sides = ((case.first, around.after_first, around.before_first), (case.second, around.before_second, around.after_second))
    absent = [(thread_of(access), beyond) for access, points, beyond in sides if not same(point, points)]
    if len(absent) != 1 or same(point, absent[0][1]):
        return None
    return point, {"absent": absent[0][0]}


def late_cluster_wait(case: Case) -> Culprit:
    """The wait of a split cluster barrier that comes only after (2), while its arrival comes before."""
    around = case.around
    arrival = last_of(around.before_second, lambda point: point.row.is_cluster_barrier)
    if not around.follows or arrival is None or not arrival.row.arrives_only:
        return None
    return first_of(around.after_second, lambda point: point.row.is_cluster_barrier and not point.row.arrives_only and point.always)


def in_branch(case: Case) -> Culprit:
    """A barrier of the CTA that some path from (1) to (2) avoids. Had both threads passed it, it would have ordered them."""
    around = case.around
    own = [point for point in around.between if same(point, around.after_first) and same(point, around.before_second)]
    barriers = [point for point in own if is_barrier(point)]
    if around.repeats or any(point.always for point in barriers):
        return None
    return last_of(barriers, lambda point: is_wait(point) and point.count is None)


def other_arrival(case: Case) -> Culprit:
    """The arrival after (1) and the wait before (2), once each: they belong to different phases, or they would order the two."""
    arrival, wait = first_of(case.around.after_first, is_arrival), last_of(case.around.before_second, is_phase_wait)
    if case.around.repeats or arrival is None or wait is None or not (arrival.always and wait.always):
        return None
    if arrival.is_relaxed or wait.is_relaxed:
        return None
    return wait, {"arrival_at": place_of(arrival.place), "the_arrival": named(arrival, case.words)}


def orders_nothing(chosen: Callable[[SyncPoint], bool]) -> Callable[[Case], Culprit]:
    """Make a finder: the last chosen instruction between (1) and (2), if nothing else there could have been meant to order them."""

    def find(case: Case) -> Culprit:
        between = case.around.between
        if any(point.row.is_barrier or point.row.is_mbarrier for point in between):
            return None
        return last_of(between, lambda point: chosen(point) and point.always)

    return find


def relaxed(points: str, chosen: Callable[[SyncPoint], bool]) -> Callable[[Case], Culprit]:
    """Make a finder: the last of some instructions of a stretch, if it is .relaxed."""
    return last_wrong(points, chosen, lambda point: point.is_relaxed)


def leaves(case: Case) -> Culprit:
    """The last wait after (1), if it leaves too many groups in flight to cover (1). If there are several, all must.

    Where the last one is in a branch, such as a case of a switch, it is the one that leaves the fewest: they drain a pipeline.
    """
    waits, leave = group_waits(case, case.around.after_first), case.facts.get("leave")
    numbers = [constant_of(point) for point in waits]
    if not waits or leave is None or any(number is None or number <= leave for number in numbers):
        return None
    last = waits[-1] if waits[-1].always else min(reversed(waits), key=lambda point: constant_of(point) or 0)
    number = constant_of(last)
    newest = ("newest group", "it") if number == 1 else (f"{number} newest groups", "one of them")
    return last, {"number": str(number), "newest": newest[0], "one_of_these": newest[1]}


def waits_for_own(case: Case) -> Culprit:
    """The last wait of the thread of (2), where that of (1) has it, too, and no barrier comes behind: nothing makes it cover (1)."""
    points = case.around.before_second
    wait = last_of(points, lambda point: point in group_waits(case, points))
    if wait is None or case.first.thread == case.second.thread or not same(wait, case.around.after_first):
        return None
    return None if any(map(is_barrier, points[points.index(group_waits(case, points)[0]) :])) else wait


def late_wait(case: Case) -> Culprit:
    """The wait for (1), if it comes only after (2) in the thread that issued (1)."""
    around = case.around
    own = case.operation == "wgmma" or (case.first.thread, case.first.block) == (case.second.thread, case.second.block)
    wait = first_of(around.after_second, lambda point: point.always and point in group_waits(case, [point]))
    if wait is None or not (own and around.follows) or group_waits(case, around.between) or not _covers(case, wait):
        return None
    barrier = last_of(around.between, _orders_all)
    if barrier is not None:
        return wait, {"before": f"before the {named(barrier, case.words)} at {place_of(barrier.place)}"}
    then = "" if case.first.thread == case.second.thread else f", with {case.words['cta_barrier']} after it"
    return wait, {"before": f"before {place(case.second)}{then}"}


def _covers(case: Case, wait: SyncPoint) -> bool:
    """Whether a wait for groups would cover (1), if it came in time."""
    number = constant_of(wait) if wait.number else 0  # a wait for all has no number
    return number is not None and number <= int(case.facts.get("leave") or 0)


def _orders_all(point: SyncPoint) -> bool:
    """Whether it is a barrier of the whole CTA that every path passes."""
    return point.always and is_wait(point) and point.count is None


def barrier_without_wait(case: Case) -> Culprit:
    """A barrier between (1) and (2) where no path waits for (1)."""
    points = case.around.between
    barrier = first_of(points, _orders_all)
    if barrier is None or group_waits(case, points) or not case.groups:
        return None
    before = points[: points.index(barrier)]
    fence = first_of(before, lambda point: bool(point.fenced) and point.always) if case.operation == "cp.async" else None
    by = fence or barrier  # the fence is to cover what the copy brings
    return barrier, {"after": _after_commit(case, before), "by": f"the {named(by, case.words)} at {place_of(by.place)}"}


def _after_commit(case: Case, points: Iterable[SyncPoint]) -> str:
    """` after the cp.async.commit_group at k.cu:9 and`, if (1) is committed there."""
    commit = last_of(points, functools.partial(commits, case))
    return f" after the {named(commit, case.words)} at {place_of(commit.place)} and" if commit else ""


def leaves_last(case: Case) -> Culprit:
    """The last wait before the exit, if it leaves groups in flight and (1) was committed before it."""
    points = [point for point in case.around.after_first if point.always]
    waits = group_waits(case, points)
    commit = first_of(points, functools.partial(commits, case))
    if not waits or commit is None or points.index(waits[-1]) < points.index(commit) or not constant_of(waits[-1]):
        return None
    number = constant_of(waits[-1])
    return waits[-1], {"number": str(number), "groups": "the last group" if number == 1 else f"the last {number} groups"}


def committed_only(case: Case) -> Culprit:
    """The commit of (1), if no wait comes before the exit."""
    points = case.around.after_first
    return None if group_waits(case, points) else first_of(points, lambda point: point.always and commits(case, point))


def commit_after_wait(case: Case) -> Culprit:
    """The commit of (1), if it comes after the wait that was to cover it."""
    points = [point for point in case.around.after_first if point.always]
    wait = next(iter(group_waits(case, points)[::-1]), None)
    commit = first_of(points, functools.partial(commits, case))
    if wait is None or commit is None or points.index(commit) < points.index(wait):
        return None
    return commit, _with_place(case, "wait", wait)


def _with_place(case: Case, name: str, point: SyncPoint) -> dict[str, str]:
    """The words for a second instruction in a sentence."""
    return {f"{name}_at": place_of(point.place), f"the_{name}": named(point, case.words)}


def never_committed(case: Case) -> Culprit:
    """A wait after (1), if no path has a commit."""
    waits = group_waits(case, case.around.after_first)
    return waits[-1] if waits and not any(commits(case, point) for point in case.around.after_first) else None


def not_by_issuer(case: Case) -> Culprit:
    """A wait between (1) and (2) that the thread of (1) cannot reach."""
    waits = group_waits(case, case.around.between)
    return (waits[-1], {"issuer": thread_of(case.first)}) if waits and not group_waits(case, case.around.after_first) else None


def barrier_before_wait(case: Case) -> Culprit:
    """A barrier between (1) and (2) that comes before the wait it should publish, with none after the wait."""
    points = case.around.between
    waits, barrier = waits_for_operation(case, points), last_of(points, is_barrier)
    if not waits or barrier is None or not (barrier.always and is_wait(barrier) and barrier.count is None):
        return None
    return (barrier, _with_place(case, "wait", waits[-1])) if points.index(barrier) < points.index(waits[-1]) else None


def wait_of_another(case: Case) -> Culprit:
    """A wait between (1) and (2) that the thread of (2) cannot reach, or did not, as it is in a branch; with no barrier after it."""
    if (case.finding.barrier or {}).get("cluster_rank") not in (None, case.second.cluster_rank):
        return None  # a thread can wait at the mbarriers of its own CTA only
    points = case.around.between
    waits, barrier = waits_for_operation(case, points), last_of(points, is_barrier)
    own = waits_for_operation(case, case.around.before_second)
    if not waits or (own and (case.groups or case.around.repeats or any(point.always for point in own))):
        return None
    if barrier is not None and points.index(barrier) > points.index(waits[-1]):
        return None
    return waits[-1], {"absent": thread_of(case.second)}


def source_only(case: Case) -> Culprit:
    """A wait until the source has been read, which says nothing of the result."""
    points = (*case.around.after_first, *case.around.before_second)
    return last_of(points, lambda point: point.row.flags(point.parts).get("read_only", False))


def foreign_wait(case: Case) -> Culprit:
    """A group wait by the thread of (2), whose groups are its own."""
    waits = group_waits(case, case.around.before_second)
    return waits[-1] if waits else None


def of_other_space(case: Case) -> Culprit:
    """A proxy fence for another state space."""
    other = "global" if case.first.in_shared else "shared"
    fences = [point for point in case.around.before_second if point.fenced]
    if not fences or any(point.fenced != {other} for point in fences):
        return None
    return fences[-1], {"space": other, "own": case.first.space}


def fence_of_some(case: Case) -> Culprit:
    """A proxy fence in a branch that neither thread has taken where the fence would help."""
    fences = [point for point in _late_fences(case) if point.fenced]
    if not fences or any(point.always for point in fences):
        return None
    barrier = _ordering(case)
    return fences[-1], {"barrier": f"the {named(barrier, case.words)} at {place_of(barrier.place)}" if barrier else "the barrier"}


def _late_fences(case: Case) -> list[SyncPoint]:
    """The proxy fences that may come after (1). One that only comes before (1), such as one before a loop, was not meant to order it."""
    around = case.around
    later = (*around.after_first, *around.between)
    earlier = [point for point in around.before_first if not same(point, later)]
    return [point for point in (*later, *around.before_second) if is_proxy_fence(point) and not same(point, earlier)]


def _ordering(case: Case) -> SyncPoint | None:
    """The first barrier or arrival after (1), by which its thread is ordered before others. (1) in a loop may come again before it."""
    points = [point for point in case.around.after_first if _orders(point)]
    return first_of(points, lambda point: point.always) or (points[0] if len(points) == 1 else None)


def _orders(point: SyncPoint) -> bool:
    return is_release(point) or (is_wait(point) and point.count is None)


def unfenced(case: Case) -> Culprit:
    """The barrier or arrival after (1), with no proxy fence before it. A copy must have been waited for before the fence."""
    point = _ordering(case)
    if point is None or _late_fences(case):
        return None
    if case.operation != "cp.async" or not case.first.asynchronous:
        return point, {"after": f"the {case.first.role} at {place(case.first)}"}
    points = case.around.after_first
    waits = group_waits(case, points[: points.index(point)])
    return (point, {"after": f"the {named(waits[-1], case.words)} at {place_of(waits[-1].place)}"}) if waits else None


def fence_before_wait(case: Case) -> Culprit:
    """The thread of (1), a copy through the generic proxy, has its proxy fence before the wait for it, and none behind."""
    points = [point for point in case.around.after_first if point.always]
    waits, fences = group_waits(case, points), [point for point in points if point.fenced]
    if case.operation != "cp.async" or not waits or not fences or points.index(fences[-1]) > points.index(waits[0]):
        return None
    return fences[-1], _with_place(case, "wait", waits[0])


def fence_before(case: Case) -> Culprit:
    """A proxy fence right before (1), with none after it."""
    if any(map(is_proxy_fence, case.around.after_first)) or any(map(is_proxy_fence, case.around.before_second)):
        return None
    return last_of(case.around.before_first, lambda point: bool(point.fenced) and point.always)


def thread_fence(case: Case) -> Culprit:
    """A fence of the generic proxy where a proxy fence is needed."""
    if any(map(is_proxy_fence, case.around.before_second)):
        return None
    return last_of(case.around.after_first, lambda point: point.row.is_fence and point.always)


def fence_after_barrier(case: Case) -> Culprit:
    """A proxy fence that comes after the barrier."""
    points = case.around.before_second
    fence, barrier = last_of(points, is_proxy_fence), last_of(points, is_wait)
    if fence is None or barrier is None or points.index(fence) < points.index(barrier):
        return None
    return fence, _with_place(case, "barrier", barrier)
