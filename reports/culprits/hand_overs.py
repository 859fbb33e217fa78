"""Finds the arrival by which a stage is handed over too early, or to nobody. Part of `finders.py`."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from typing import Final

from consan.instrument.relations import Stretches, SyncPoint
from consan.reports.culprits.cases import (
    Case,
    Culprit,
    constant_of,
    first_of,
    is_arrival,
    is_barrier,
    is_phase_wait,
    is_release,
    is_wait,
    last_of,
    named,
    same,
)
from consan.reports.source.names import variable_name
from consan.reports.words.wording import place, place_of


def released_early(case: Case) -> Culprit:
    """A reader arrives after its wait and before its read, and does not arrive between the read and its next wait.

    If the thread of the read arrives nowhere there, another lane may do so for its warp; or it arrives for the others.
    """
    found, any_thread, synced = (
        _released_early(case, case.around, ""),
        case.around_any(),
        f", with {case.words['warp_barrier']} between the two",
    )
    if any_thread is None:
        return found
    if found is None:
        return _released_early(case, any_thread, synced)
    arrival, words = found
    of_any = [point for point in (*any_thread.before_first, *any_thread.before_second) if same(arrival, [point])]
    return (arrival, {**words, "with_between": synced}) if arrival.always and not any(point.always for point in of_any) else found


def _released_early(case: Case, around: Stretches, between: str) -> tuple[SyncPoint, dict[str, str]] | None:
    for access, before, after, other in (
        (case.first, around.before_first, around.after_first, around.before_second),
        (case.second, around.before_second, around.after_second, around.before_first),
    ):
        for arrives, waits in ((is_release, is_phase_wait), (_is_bar_arrival, is_wait)) if access.role == "read" else ():
            arrival, wait = last_of(before, arrives), last_of(before, waits)
            if arrival is None or wait is None or before.index(arrival) < before.index(wait):
                continue
            if arrives is _is_bar_arrival and not any(_may_wait_for(arrival, point) for point in other):
                continue  # the other thread does not wait for it before its write
            if not _comes_before(arrives, waits, after):
                return arrival, {"reader_at": place(access), "reader_role": access.role, "with_between": between}
    return None


def released_alone(case: Case) -> Culprit:
    """A lane arrives for its warp, behind its own read: that of the read does not, and no barrier lets the first one wait for it."""
    whole = case.around_any()
    for access, own, all_ in (
        (case.first, case.around.after_first, whole.after_first if whole else ()),
        (case.second, case.around.after_second, whole.after_second if whole else ()),
    ):
        arrival = first_of(all_, is_release) if access.role == "read" else None
        if arrival is None or same(arrival, own):
            continue
        between = all_[: all_.index(arrival)]
        if not any(point.row.is_warp_barrier or is_barrier(point) for point in between):
            return arrival, {"reader_at": place(access), "reader_role": access.role}
    return None


# Finder, sentence, fix.
EARLY_RELEASE: Final = (
    released_early,
    "the {culprit} at {culprit_at} comes before the {reader_role} at {reader_at}, and lets the bytes be overwritten",
    "move the {culprit} at {culprit_at} after the {reader_role} at {reader_at}, the last one of these bytes{with_between}",
)
LONE_RELEASE: Final = (
    released_alone,
    "the {culprit} at {culprit_at} is of another lane, which has not waited for the {reader_role}, and lets the bytes be overwritten",
    "put {warp_barrier} after the {reader_role} at {reader_at} and before the {culprit} at {culprit_at}",
)


def _comes_before(wanted: Callable[[SyncPoint], bool], end: Callable[[SyncPoint], bool], points: Iterable[SyncPoint]) -> bool:
    """Whether some point is wanted, before the first one that ends the search."""
    return any(map(wanted, itertools.takewhile(lambda point: not end(point), points)))


def _may_wait_for(arrival: SyncPoint, point: SyncPoint) -> bool:
    """Whether a thread may wait at the barrier of an arrival of another one. A number in a register may be any."""
    numbers = constant_of(arrival), constant_of(point)
    return is_wait(point) and is_barrier(point) and (None in numbers or numbers[0] == numbers[1])


def _is_bar_arrival(point: SyncPoint) -> bool:
    return is_barrier(point) and not is_wait(point)


def ends_early(case: Case) -> Culprit:
    """The wait for a counter between the accesses of two CTAs, where nothing that the other one has added was waited for."""
    found = case.awaited_count()
    return (found[1], {"arrival_at": place_of(found[0].place)}) if found is not None else None


def heard_by_nobody(case: Case) -> Culprit:
    """An arrival on an mbarrier that no instruction waits for, in a kernel with a reader that waits for another one: the writer goes on."""
    arrivals = [each for each in case.signals if each.verb == "arrive" and each.barrier is None]
    unheard = {each.symbol: each for each in arrivals if not (each.symbol and case.is_waited_for(each.symbol))}
    sides = ((case.first, case.around.before_first), (case.second, case.around.before_second))
    for (access, before), (other, _) in zip(sides, sides[::-1], strict=True):
        if access.role == "read" and len(unheard) == 1 and "" not in unheard and any(map(is_phase_wait, before)):
            ((symbol, arrival),) = unheard.items()
            words = {"writer_at": place(other), "writer_role": other.role, "variable": variable_name(symbol)}
            return SyncPoint(arrival.opcode, arrival.place), words
    return None


def not_waited_for(case: Case) -> Culprit:
    """The thread of (2) arrives at the mbarrier at which that of (1) arrives, and some path has no wait between its arrival and (2)."""
    first, points = first_of(case.around.after_first, is_release), case.around.before_second
    arrival = last_of(points, is_release)
    if first is None or arrival is None or not (first.always and arrival.always and case.variable(arrival)):
        return None
    if case.variable(first) != case.variable(arrival) or any(map(is_barrier, case.around.between)):
        return None
    later = points[points.index(arrival) + 1 :]
    return None if any(is_phase_wait(point) and point.always for point in later) else arrival


def published_early(case: Case) -> Culprit:
    """The thread of (1) arrives before (1), and not after it before its next wait; the thread of (2) waits there. Named barriers, too."""
    around, copies = case.around, case.operation == "cp.async"
    if not (copies or case.first.role == "write"):
        return None
    signals = (_is_copies_arrival, is_phase_wait), (is_arrival, is_phase_wait), (_is_bar_arrival, is_wait)
    for arrives, waits in signals[:1] if copies else signals[1:]:
        arrival, wait = last_of(around.before_first, arrives), last_of(around.before_first, waits)
        if arrival is None or not arrival.always:
            continue
        if wait is not None and around.before_first.index(arrival) < around.before_first.index(wait):
            continue
        again = (point for point in around.after_first if not arrives(point) or _may_meet(case, point, arrival))
        if _comes_before(arrives, waits, again):
            continue
        if any(_is_of(case, point, arrival) and _may_meet(case, point, arrival) for point in around.before_second if waits(point)):
            what = "signals only the copies that" if arrives is _is_copies_arrival else "publishes only what"
            return arrival, {"publishes": f"{what} came before it", "and_fence": _fence_of(case)}
    return None


def _may_meet(case: Case, point: SyncPoint, arrival: SyncPoint) -> bool:
    """Whether a point may be at the barrier of an arrival: named barriers have numbers, which may be computed."""
    numbers = {each.number.of(case.first.thread) for each in (point, arrival) if each.number}
    return len(numbers - {None}) < 2


def announced_alone(case: Case) -> Culprit:
    """The thread that issues the copy announces its bytes and does not arrive behind that: arrivals of others may end the phase before."""
    around, announced = case.around, {each.place.ptx_line for each in case.signals if each.verb == "announce"}
    for access, before, after in (
        (case.first, around.before_first, around.after_first),
        (case.second, around.before_second, around.after_second),
    ):
        announces = last_of(before, lambda point: point.place.ptx_line in announced) if access.asynchronous else None
        if announces is None or is_arrival(announces) or any(is_barrier(point) or _arrives_at(case, point, announces) for point in after):
            continue
        variable = case.variable(announces)
        others = [each for each in case.signals if each.symbol == variable != "" and is_arrival(SyncPoint(each.opcode, each.place))]
        if others:
            places = " and ".join(dict.fromkeys(place_of(each.place) for each in others))
            return announces, {"copy_at": place(access), "copy_role": access.role, "arrivals_at": places}
    return None


def _fence_of(case: Case) -> str:
    """The proxy fence that belongs before the arrival, where an asynchronous copy reads what it publishes."""
    if not case.second.asynchronous or case.first.asynchronous:
        return ""
    fence = first_of(case.around.after_first, lambda point: bool(point.fenced) and point.always)
    return f" and after the {named(fence, case.words)} at {place_of(fence.place)}" if fence else ", with fence.proxy.async between the two"


def _is_of(case: Case, wait: SyncPoint, arrival: SyncPoint) -> bool:
    """Whether a wait may be at the mbarrier of an arrival."""
    return len({case.variable(wait), case.variable(arrival)} - {""}) < 2


def _arrives_at(case: Case, arrival: SyncPoint, announces: SyncPoint) -> bool:
    """Whether an instruction may be an arrival at the mbarrier of another one."""
    return is_arrival(arrival) and _is_of(case, arrival, announces)


def _is_copies_arrival(point: SyncPoint) -> bool:
    return point.row.arrives_behind_copies
