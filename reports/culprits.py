"""The third event of a finding: an instruction between the two accesses that does not order them.

A table of rules. Each rule looks at the synchronising instructions around the accesses (`instrument/relations.py`) and at the finding,
and names one instruction, or none, with the reason why it does not order (1) before (2). That instruction joins the
accesses with role `culprit`, its sentence joins the message, and the fix becomes: move it, else widen it, else add what is missing.

A rule speaks only if its sentence is true for every path that fits the finding. If no rule fits there is no culprit, and the
words do not change.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from consan.instrument.relations import Relations, Stretches, SyncPoint
from consan.reports import frameworks
from consan.reports.kinds import place, refined, words_of
from consan.reports.model import CULPRIT, Access, Finding
from consan.reports.ordering import Pair
from consan.reports.places import located

Found = tuple[SyncPoint, Mapping[str, str]] | SyncPoint | None


@dataclass(frozen=True)
class Case:
    """A finding and its context."""

    finding: Finding
    situation: str
    around: Stretches
    facts: Mapping[str, Any]
    words: Mapping[str, str]  # words for the sentences, in the framework's spelling

    @property
    def first(self) -> Access:
        """(1)."""
        return self.finding.accesses[0]

    @property
    def second(self) -> Access:
        """(2)."""
        return self.finding.accesses[1]

    @property
    def operation(self) -> str:
        """The kind of asynchronous operation that (1) is."""
        return self.first.asynchronous.kind if self.first.asynchronous else ""


@dataclass(frozen=True)
class Rule:
    """When the rule applies (kinds, and situations if not all), which instruction it finds, and its sentence."""

    kind: str
    situations: tuple[str, ...]
    find: Callable[[Case], Found]
    sentence: str
    fix: str


def blame(
    finding: Finding,
    situation: str | None,
    pair: Pair,
    relations: Relations | None,
    facts: dict[str, Any],
    framework: str = frameworks.CUDA,
) -> Finding:
    """The finding with its culprit, if a rule finds one. Nothing stands between two accesses of one instruction."""
    first, second = pair
    if relations is None or first is None or second is None or first == second:
        return finding
    name = refined(finding, situation)
    rules = [rule for rule in _RULES if rule.kind == finding.kind and name in rule.situations]
    one, other = finding.accesses[:2]
    around = relations.stretches(first, second, (one.thread, other.thread)) if rules else None
    if around is None:
        return finding
    case = Case(finding, name, around, facts, words_of(finding, facts, framework))
    return next((_told(case, rule, found, framework) for rule in rules if (found := rule.find(case)) is not None), finding)


def _told(case: Case, rule: Rule, found: SyncPoint | tuple[SyncPoint, Mapping[str, str]], framework: str) -> Finding:
    point, more = found if isinstance(found, tuple) else (found, {})
    finding, access = case.finding, _access(point)
    words = {**case.words, "culprit": _named(point, case.words), "culprit_at": place(access), **more}
    return replace(
        finding,
        accesses=(*finding.accesses, access),
        message=f"{finding.message}; {frameworks.tidy(rule.sentence.format_map(words))}",
        fix=frameworks.tidy(rule.fix.format_map(words)) + frameworks.advice(framework, finding.kind),
    )


def _access(point: SyncPoint) -> Access:
    return Access(role=CULPRIT, op=point.opcode, proxy="none", space="none", **located(point.place))


# --- names -------------------------------------------------------------------------------------------------------------


def _named(point: SyncPoint, words: Mapping[str, str]) -> str:
    """`__syncthreads()`, `cp.async.wait_group 1`: barriers as the framework spells them, else the opcode with its numbers."""
    numbers = [number for number in (_constant(point), point.count.of(None) if point.count else None) if number is not None]
    if point.family == "warp-barrier":
        return words["warp_barrier"]
    if point.family == "barrier" and "arrive" not in point.parts and numbers == [0]:
        return words["cta_barrier"]
    shown = numbers if point.family in ("barrier", "cp.async.wait") or "wait_group" in point.parts else []
    return " ".join([_short(point), ", ".join(map(str, shown))]).strip()


def _short(point: SyncPoint) -> str:
    """The opcode without modifiers that do not matter here."""
    return ".".join(part for part in point.parts if part not in ("sync", "aligned", "b64", "pred") or point.parts[0] in ("bar", "barrier"))


def _constant(point: SyncPoint) -> int | None:
    return point.number.of(None) if point.number else None


def _thread(access: Access) -> str:
    return "thread ({},{},{})".format(*access.thread) if access.thread else "the other thread"


# --- finders -------------------------------------------------------------------------------------------------------


def _last(points: Iterable[SyncPoint], holds: Callable[[SyncPoint], bool]) -> SyncPoint | None:
    return next((point for point in reversed(tuple(points)) if holds(point)), None)


def _first(points: Iterable[SyncPoint], holds: Callable[[SyncPoint], bool]) -> SyncPoint | None:
    return next((point for point in points if holds(point)), None)


def _is_barrier(point: SyncPoint) -> bool:
    return point.family == "barrier"


def _waits(point: SyncPoint) -> bool:
    """Whether it is a barrier at which a thread waits."""
    return _is_barrier(point) and "arrive" not in point.parts


def _is_proxy_fence(point: SyncPoint) -> bool:
    return point.family == "proxy-fence"


def _is_arrival(point: SyncPoint) -> bool:
    return point.parts[0] == "mbarrier" and point.parts[1].startswith("arrive")


def _is_phase_wait(point: SyncPoint) -> bool:
    return point.parts[:2] in (("mbarrier", "try_wait"), ("mbarrier", "test_wait"))


# The waits and commits of each operation, by opcode prefix.
_GROUP_WAITS: Final = {
    "cp.async": ("cp.async.wait_group", "cp.async.wait_all"),
    "bulk store": ("cp.async.bulk.wait_group",),
    "wgmma": ("wgmma.wait_group",),
}
_COMMITS: Final = {"cp.async": "cp.async.commit_group", "bulk store": "cp.async.bulk.commit_group", "wgmma": "wgmma.commit_group"}


def _group_waits(case: Case, points: Iterable[SyncPoint]) -> list[SyncPoint]:
    """The waits for groups of (1)'s kind."""
    return [point for point in points if point.opcode.startswith(_GROUP_WAITS.get(case.operation, ("-",)))]


def _waits_for_operation(case: Case, points: Iterable[SyncPoint]) -> list[SyncPoint]:
    """The waits for the completion of (1): for its group, or for a phase of an mbarrier."""
    points = tuple(points)
    return _group_waits(case, points) if case.operation in _GROUP_WAITS else list(filter(_is_phase_wait, points))


def _same(point: SyncPoint, points: Iterable[SyncPoint]) -> bool:
    """Whether the points include this one, on every path or on some."""
    return any(each.place == point.place and each.opcode == point.opcode for each in points)


def _warp_barrier(case: Case) -> Found:
    """A `__syncwarp` that both threads pass, between accesses of two warps, with nothing that orders the warps."""
    around = case.around
    if case.first.warp == case.second.warp or any(map(_is_barrier, around.between)):
        return None
    both = [point for point in around.after_first if point.always and point in around.before_second]
    return _last(both, lambda point: point.family == "warp-barrier")


def _two_barriers(case: Case) -> Found:
    """The thread of (1) waits at one barrier, the thread of (2) at another."""
    one, other = _first(case.around.after_first, _is_barrier), _last(case.around.before_second, _is_barrier)
    if one is None or other is None or not (one.always and other.always and one.number and other.number):
        return None
    numbers = one.number.of(case.first.thread), other.number.of(case.second.thread)
    if None in numbers or numbers[0] == numbers[1] or case.around.repeats:
        return None
    one_at, other_at = place(_access(one)), place(_access(other))
    return other, {
        "one": f"{_thread(case.first)} {_verb(one)} named barrier {numbers[0]} ({one_at})",
        "other": f"{_thread(case.second)} {_verb(other)} named barrier {numbers[1]} ({other_at})",
        "both_at": other_at if one_at == other_at else f"{one_at} and {other_at}",
    }


def _verb(barrier: SyncPoint) -> str:
    return "waits at" if _waits(barrier) else "arrives at"


def _arrives_only(case: Case) -> Found:
    """The last barrier before (2) is one at which its thread arrives without waiting."""
    last = _last(case.around.before_second, _is_barrier)
    return last if last and last.always and not _waits(last) and case.around.follows else None


def _too_few(case: Case) -> Found:
    """A barrier with a thread count that both threads pass once: in different rounds."""
    one, other = _first(case.around.after_first, _is_barrier), _last(case.around.before_second, _is_barrier)
    if case.around.repeats or one != other or one is None or not (one.always and _waits(one) and one.number and one.count):
        return None
    numbers, threads = {one.number.of(access.thread) for access in case.finding.pair}, one.count.of(case.first.thread)
    return (one, {"threads": str(threads)}) if len(numbers) == 1 and None not in numbers and threads is not None else None


def _passed_by(case: Case) -> Found:
    """A barrier between (1) and (2) that one of the two threads cannot reach in between."""
    point = _last(case.around.between, _waits)
    if point is None:
        return None
    sides = ((case.first, case.around.after_first), (case.second, case.around.before_second))
    absent = [_thread(access) for access, points in sides if not _same(point, points)]
    return (point, {"absent": absent[0]}) if absent else None


def _in_branch(case: Case) -> Found:
    """A barrier of the CTA that some path from (1) to (2) avoids. Had both threads passed it, it would have ordered them."""
    barriers = [point for point in case.around.between if _is_barrier(point)]
    if case.around.repeats or any(point.always for point in barriers):
        return None
    return _last(barriers, lambda point: _waits(point) and point.count is None)


def _released_early(case: Case) -> Found:
    """A reader arrives after its wait and before its read, and does not arrive between the read and its next wait."""
    around = case.around
    for access, before, after in (
        (case.first, around.before_first, around.after_first),
        (case.second, around.before_second, around.after_second),
    ):
        for arrives, waits in ((_is_release, _is_phase_wait), (_is_bar_arrival, _waits)) if access.role == "read" else ():
            arrival, wait = _last(before, arrives), _last(before, waits)
            if arrival is None or wait is None or before.index(arrival) < before.index(wait):
                continue
            if not any(map(arrives, itertools.takewhile(functools.partial(_fails, waits), after))):
                return arrival, {"reader_at": place(access), "reader_role": access.role}
    return None


def _fails(holds: Callable[[SyncPoint], bool], point: SyncPoint) -> bool:
    return not holds(point)


def _is_release(point: SyncPoint) -> bool:
    return _is_arrival(point) and "relaxed" not in point.parts


def _is_bar_arrival(point: SyncPoint) -> bool:
    return _is_barrier(point) and not _waits(point)


def _published_early(case: Case) -> Found:
    """The thread of (1) arrives at an mbarrier before (1) and not after it; the thread of (2) waits at one."""
    if any(map(_is_arrival, case.around.after_first)) or case.around.repeats or case.first.role != "write":
        return None
    if not any(_is_phase_wait(point) and point.always for point in case.around.before_second):
        return None
    return _last(case.around.before_first, lambda point: _is_arrival(point) and point.always)


def _other_arrival(case: Case) -> Found:
    """The arrival after (1) and the wait before (2), once each: they belong to different phases, or they would order the two."""
    arrival, wait = _first(case.around.after_first, _is_arrival), _last(case.around.before_second, _is_phase_wait)
    if case.around.repeats or arrival is None or wait is None or not (arrival.always and wait.always):
        return None
    if "relaxed" in (*arrival.parts, *wait.parts) or arrival.family != wait.family:
        return None
    return wait, {"arrival_at": place(_access(arrival)), "the_arrival": _named(arrival, case.words)}


def _orders_nothing(family: str) -> Callable[[Case], Found]:
    """Make a finder: the instruction of a family between (1) and (2), if nothing else there could have been meant to order them."""

    def find(case: Case) -> Found:
        between = case.around.between
        if any(point.family in ("barrier", "warp-barrier", "mbarrier", "cluster-barrier") for point in between):
            return None
        return _last(between, lambda point: point.family == family and point.always)

    return find


def _relaxed(points: str, holds: Callable[[SyncPoint], bool]) -> Callable[[Case], Found]:
    """Make a finder: the last of some instructions of a stretch, if it is .relaxed."""

    def find(case: Case) -> Found:
        last = _last(getattr(case.around, points), holds)
        return last if last and last.always and "relaxed" in last.parts else None

    return find


def _leaves(case: Case) -> Found:
    """The last wait after (1), if it leaves too many groups in flight to cover (1). If there are several, all must."""
    waits, leave = _group_waits(case, case.around.after_first), case.facts.get("leave")
    numbers = [_constant(point) for point in waits]
    if not waits or leave is None or any(number is None or number <= leave for number in numbers):
        return None
    return waits[-1], {"number": str(numbers[-1])}


def _commit_after_wait(case: Case) -> Found:
    """The commit of (1), if it comes after the wait that was to cover it."""
    points = [point for point in case.around.after_first if point.always]
    wait = next(iter(_group_waits(case, points)[::-1]), None)
    commit = _first(points, lambda point: point.opcode.startswith(_COMMITS.get(case.operation, "-")))
    if wait is None or commit is None or points.index(commit) < points.index(wait):
        return None
    return commit, _beside(case, "wait", wait)


def _beside(case: Case, name: str, point: SyncPoint) -> dict[str, str]:
    """The words for a second instruction in a sentence."""
    return {f"{name}_at": place(_access(point)), f"the_{name}": _named(point, case.words)}


def _never_committed(case: Case) -> Found:
    """A wait after (1), if no path has a commit."""
    waits = _group_waits(case, case.around.after_first)
    commits = [point for point in case.around.after_first if point.opcode.startswith(_COMMITS.get(case.operation, "-"))]
    return waits[-1] if waits and not commits else None


def _not_by_issuer(case: Case) -> Found:
    """A wait between (1) and (2) that the thread of (1) cannot reach."""
    waits = _group_waits(case, case.around.between)
    return (waits[-1], {"issuer": _thread(case.first)}) if waits and not _group_waits(case, case.around.after_first) else None


def _barrier_before_wait(case: Case) -> Found:
    """A barrier between (1) and (2) that comes before the wait it should publish, with none after the wait."""
    points = case.around.between
    waits, barrier = _waits_for_operation(case, points), _last(points, _is_barrier)
    if not waits or barrier is None or not (barrier.always and _waits(barrier) and barrier.count is None):
        return None
    return (barrier, _beside(case, "wait", waits[-1])) if points.index(barrier) < points.index(waits[-1]) else None


def _wait_of_another(case: Case) -> Found:
    """A wait between (1) and (2) that the thread of (2) cannot reach, with no barrier after it."""
    points = case.around.between
    waits, barrier = _waits_for_operation(case, points), _last(points, _is_barrier)
    if not waits or _waits_for_operation(case, case.around.before_second):
        return None
    if barrier is not None and points.index(barrier) > points.index(waits[-1]):
        return None
    return waits[-1], {"absent": _thread(case.second)}


def _source_only(case: Case) -> Found:
    points = (*case.around.after_first, *case.around.before_second)
    return _last(points, lambda point: point.opcode.startswith("cp.async.bulk.wait_group.read"))


def _foreign_wait(case: Case) -> Found:
    waits = _group_waits(case, case.around.before_second)
    return waits[-1] if waits else None


def _other_phase(case: Case) -> Found:
    """The thread of (2) always waits before (2), so it waited for a phase other than that of (1)."""
    wait = _last(case.around.before_second, _is_phase_wait)
    return wait if wait and wait.always and case.operation in ("bulk load", "st.async") else None


def _of_other_space(case: Case) -> Found:
    """A proxy fence for another state space."""
    wrong = ("global",) if case.first.space == "shared" else ("shared::cta", "shared::cluster")
    fences = [point for point in case.around.before_second if _is_proxy_fence(point) and "async" in point.parts]
    if not fences or not all(any(part in wrong for part in point.parts) for point in fences):
        return None
    return fences[-1], {"space": "global" if case.first.space == "shared" else "shared", "own": case.first.space}


def _fence_of_some(case: Case) -> Found:
    """A proxy fence in a branch that neither thread has taken where the fence would help."""
    around = case.around
    points = (*around.after_first, *around.before_second, *around.between)
    fences = [point for point in points if _is_proxy_fence(point) and "async" in point.parts]
    return fences[-1] if fences and not any(point.always for point in fences) else None


def _fence_before(case: Case) -> Found:
    """A proxy fence right before (1), with none after it."""
    if any(map(_is_proxy_fence, case.around.after_first)) or any(map(_is_proxy_fence, case.around.before_second)):
        return None
    return _last(case.around.before_first, lambda point: _is_proxy_fence(point) and "async" in point.parts and point.always)


def _thread_fence(case: Case) -> Found:
    """A fence of the generic proxy where a proxy fence is needed."""
    if any(map(_is_proxy_fence, case.around.before_second)):
        return None
    return _last(case.around.after_first, lambda point: point.family == "fence" and point.always)


def _fence_after_barrier(case: Case) -> Found:
    points = case.around.before_second
    fence, barrier = _last(points, _is_proxy_fence), _last(points, _waits)
    if fence is None or barrier is None or points.index(fence) < points.index(barrier):
        return None
    return fence, _beside(case, "barrier", barrier)


def _of_cta_scope(points: str, holds: Callable[[SyncPoint], bool]) -> Callable[[Case], Found]:
    """Make a finder: the instruction that makes the edge, if its scope is .cta."""

    def find(case: Case) -> Found:
        last = _last(getattr(case.around, points), holds)
        return last if last and last.always and "cluster" not in last.parts else None

    return find


_CTA: Final = ("no-barrier", "atomic", "same-value")
_ENGINES: Final = ("operation-unordered",)
_GROUPS: Final = ("not-waited", "source-overwritten", "overlapping-copies", "global-not-waited", "global-map-changed")

_RACES: Final = (
    (
        _CTA + _ENGINES,
        _warp_barrier,
        "the {culprit} at {culprit_at} orders the lanes of one warp only",
        "replace the {culprit} at {culprit_at} by {cta_barrier}, where all threads of the CTA reach it",
    ),
    (
        _CTA + _ENGINES,
        _two_barriers,
        "{one}, {other}: that orders nothing between them",
        "use one barrier id for the two groups of threads, at {both_at}, with a thread count that covers both",
    ),
    (
        _CTA + _ENGINES,
        _arrives_only,
        "the {culprit} at {culprit_at} arrives and does not wait: the thread of (2) goes on at once",
        "wait at {culprit_at} with bar.sync of the same id and count",
    ),
    (
        _CTA + _ENGINES,
        _passed_by,
        "{absent} does not come to the {culprit} at {culprit_at} in between",
        "let the threads of both sides pass the {culprit} at {culprit_at}, or put {cta_barrier} after {first_at} and before {second_at}",
    ),
    (
        _CTA + _ENGINES,
        _too_few,
        "the {culprit} at {culprit_at} joins {threads} threads at a time, and those of (1) and (2) passed it in different rounds",
        "let the barrier at {culprit_at} count all threads of both sides: {cta_barrier}, or a larger thread count",
    ),
    (
        _CTA + _ENGINES,
        _in_branch,
        "the {culprit} at {culprit_at} is in a branch, and the threads of (1) and (2) did not both pass it in between",
        "move the {culprit} at {culprit_at} out of its branch, so that all threads pass it after {first_at} and before {second_at}",
    ),
    (
        ("no-barrier", "no-warp-sync"),
        _relaxed("after_first", _is_arrival),
        "the {culprit} at {culprit_at} is relaxed: what came before it is not released",
        "write .release (the default) instead of .relaxed on the arrival at {culprit_at}",
    ),
    (
        ("no-barrier", "no-warp-sync"),
        _relaxed("before_second", _is_phase_wait),
        "the {culprit} at {culprit_at} is relaxed: what comes after it acquires nothing",
        "write .acquire (the default) instead of .relaxed on the wait at {culprit_at}",
    ),
    (
        ("cluster",),
        _relaxed("after_first", lambda point: point.family == "cluster-barrier" and "arrive" in point.parts),
        "the {culprit} at {culprit_at} is relaxed: what came before it is not released",
        "write barrier.cluster.arrive.release (the default) at {culprit_at}",
    ),
    (
        ("no-barrier",),
        _orders_nothing("fence"),
        "the {culprit} at {culprit_at} is a fence: it makes no thread wait for another",
        "put {cta_barrier} beside the {culprit} at {culprit_at}, or in its place",
    ),
    (
        ("no-warp-sync",),
        _orders_nothing("warp-collective"),
        "the {culprit} at {culprit_at} exchanges registers and orders no memory",
        "put {warp_barrier} beside the {culprit} at {culprit_at}: after {first_at} and before {second_at}",
    ),
    (
        ("no-barrier", "refilled-too-early"),
        _released_early,
        "the {culprit} at {culprit_at} gives the bytes back before the {reader_role} at {reader_at}",
        "move the {culprit} at {culprit_at} after the {reader_role} at {reader_at}, the last one of the stage",
    ),
    (
        ("no-barrier",),
        _published_early,
        "the {culprit} at {culprit_at} comes before the {first_role} at {first_at}, and publishes only what came before it",
        "move the {culprit} at {culprit_at} after the {first_role} at {first_at}",
    ),
    (
        ("no-barrier",),
        _other_arrival,
        "the {culprit} at {culprit_at} is not for the phase that the {the_arrival} at {arrival_at} is part of",
        "wait at {culprit_at} on the mbarrier of {arrival_at}, with the parity of the phase that this arrival completes",
    ),
)
_WAITS: Final = (
    (
        _GROUPS,
        _leaves,
        "the {culprit} at {culprit_at} leaves {group} in flight",
        "wait with {wait} ({wait_cpp}) at {culprit_at} instead of {number}",
    ),
    (
        ("not-committed", "global-not-committed", "not-waited"),
        _commit_after_wait,
        "the {culprit} at {culprit_at} comes after the {the_wait} at {wait_at}, which waits for committed groups only",
        "move the {culprit} at {culprit_at} before the {the_wait} at {wait_at}",
    ),
    (
        ("not-committed", "global-not-committed"),
        _never_committed,
        "the {culprit} at {culprit_at} waits for committed groups only",
        "put {commit} after {first_at} and before the {culprit} at {culprit_at}",
    ),
    (
        ("not-waited", "source-overwritten", "global-not-waited"),
        _not_by_issuer,
        "{issuer}, which executed {first_at}, does not come to the {culprit} at {culprit_at}: it waits for its own thread's groups only",
        "execute the {culprit} at {culprit_at} in every thread that executes {first_at}",
    ),
    (
        ("waited-no-barrier",),
        _relaxed("before_second", _is_phase_wait),
        "the {culprit} at {culprit_at} is relaxed: what comes after it acquires nothing",
        "write .acquire (the default) instead of .relaxed on the wait at {culprit_at}",
    ),
    (
        ("waited-no-barrier", "global-waited-no-barrier"),
        _barrier_before_wait,
        "the {culprit} at {culprit_at} comes before the {the_wait} at {wait_at}, and no barrier comes after it",
        "move the {culprit} at {culprit_at} after the {the_wait} at {wait_at}",
    ),
    (
        ("waited-no-barrier", "global-waited-no-barrier"),
        _wait_of_another,
        "{absent} does not come to the {culprit} at {culprit_at}, and no barrier comes after it",
        "put {cta_barrier} after the {culprit} at {culprit_at} and before {second_at}, or let all threads wait there",
    ),
    (
        ("global-read-wait-only",),
        _source_only,
        "the {culprit} at {culprit_at} waits until the source has been read, not until the result is written",
        "write cp.async.bulk.wait_group without .read at {culprit_at}, in the thread that issued the copy, and {cta_barrier} after it",
    ),
    (
        ("other-issuer", "global-other-issuer"),
        _foreign_wait,
        "the {culprit} at {culprit_at} waits for the groups of the threads that execute it only",
        "execute the {culprit} at {culprit_at} in the thread that executed {first_at}, then {cta_barrier}, before {second_at}",
    ),
    (
        ("not-waited",),
        _other_phase,
        "the {culprit} at {culprit_at} does not wait for {group}: its parity or its mbarrier is another one",
        "wait at {culprit_at} for {group}, which has parity {parity}",
    ),
    (
        ("refilled",),
        _released_early,
        "the {culprit} at {culprit_at} gives the bytes back before the {reader_role} at {reader_at}",
        "move the {culprit} at {culprit_at} after the {reader_role} at {reader_at}, the last one of the stage",
    ),
)
_FENCES: Final = (
    (
        ("no-proxy-fence", "global-no-proxy-fence"),
        _of_other_space,
        "the {culprit} at {culprit_at} is for {space} memory, and the bytes are in {own} memory",
        "write fence.proxy.async without a space, or that of {own} memory, at {culprit_at}",
    ),
    (
        ("no-proxy-fence", "global-no-proxy-fence"),
        _fence_of_some,
        "the {culprit} at {culprit_at} is in a branch or loop, and neither the thread of (1) nor that of (2) executed it in between",
        "move the {culprit} at {culprit_at} out of its branch or loop, before the barrier: every thread that executes {first_at} needs it",
    ),
    (
        ("no-proxy-fence", "global-no-proxy-fence"),
        _fence_before,
        "the {culprit} at {culprit_at} comes before the {first_role} at {first_at}, not after it",
        "move the {culprit} at {culprit_at} after the {first_role} at {first_at}, before the barrier that orders {second_at}",
    ),
    (
        ("no-proxy-fence", "global-no-proxy-fence"),
        _thread_fence,
        "the {culprit} at {culprit_at} is for the generic proxy only",
        "put fence.proxy.async beside the {culprit} at {culprit_at}, in every thread that writes",
    ),
    (
        ("writer-no-fence",),
        _fence_after_barrier,
        "the {culprit} at {culprit_at} comes after the {the_barrier} at {barrier_at}",
        "move the {culprit} at {culprit_at} before the {the_barrier} at {barrier_at}, into every thread that writes",
    ),
)
_SCOPES: Final = (
    (
        ("arrive-scope",),
        _of_cta_scope("after_first", _is_arrival),
        "the {culprit} at {culprit_at} releases at .cta scope",
        "write mbarrier.arrive.release.cluster.shared::cluster at {culprit_at}, and .acquire.cluster on the wait",
    ),
    (
        ("wait-scope",),
        _of_cta_scope("before_second", _is_phase_wait),
        "the {culprit} at {culprit_at} acquires at .cta scope",
        "write .acquire.cluster on the wait at {culprit_at}",
    ),
)
_RULES: Final = tuple(
    Rule(kind, *row)
    for kind, rows in (("data-race", _RACES), ("missing-wait", _WAITS), ("missing-proxy-fence", _FENCES), ("scope", _SCOPES))
    for row in rows
)
