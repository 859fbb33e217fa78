"""Finds the wait for an mbarrier, or the arrival at one, that does not order the two accesses. Part of `finders.py`."""

from __future__ import annotations

from typing import Final

from consan.instrument.relations import SyncPoint
from consan.reports.catalogue.situations import TENSOR_OPERATIONS
from consan.reports.culprits.cases import Case, Culprit, first_of, is_arrival, is_phase_wait, is_release, last_of, named, same
from consan.reports.source.names import variable_name
from consan.reports.words.wording import place_of

_TRACKING: Final = {"cp.async": "cp.async.mbarrier.arrive.noinc"}


def other_phase(case: Case) -> Culprit:
    """The thread of (2) always waits before (2), so it waited for a phase other than that of (1)."""
    wait = _wait_of_reader(case)
    if wait is None or not (case.operation in ("bulk load", "st.async") or _is_of_first(case, wait)) or not case.may_be_of_first(wait):
        return None
    if case.operation in TENSOR_OPERATIONS and case.waited is None:
        return None
    fault = _other_parity(case, wait)
    return (wait, {"other": fault}) if fault else None


def other_mbarrier(case: Case) -> Culprit:
    """The last wait before (2) is for another variable than that which completes (1)."""
    wait = _wait_of_reader(case)
    if wait is None or not case.operation or case.is_of_first(wait) is not False:
        return None
    return wait, {"waited": case.waited.name if case.inside and case.waited is not None else variable_name(case.variable(wait))}


def late_phase_wait(case: Case) -> Culprit:
    """The wait for the mbarrier of (1) comes only after (2) in the thread of (2), at least in the first iteration of a loop."""
    around = case.around
    wait = first_of(around.after_second, lambda point: is_phase_wait(point) and point.always and _is_of_first(case, point))
    earlier = any(is_phase_wait(point) and point.always and _is_of_first(case, point) for point in around.before_second)
    return None if earlier else wait


def late_hand_over(case: Case) -> Culprit:
    """The thread of (1), a write, arrives behind it, and that of (2), a read, waits for this mbarrier only behind (2): as above."""
    around, arrival = case.around, first_of(case.around.after_first, lambda point: is_arrival(point) and point.always)
    if arrival is None or (case.first.role, case.second.role) != ("write", "read"):
        return None
    variable = case.variable(arrival)
    waits = [point for point in around.after_second if is_phase_wait(point) and point.always and case.variable(point) == variable]
    earlier = any(is_phase_wait(point) and point.always and case.variable(point) == variable for point in around.before_second)
    return waits[0] if waits and variable and not earlier else None


def phase_in_loop(case: Case) -> SyncPoint | None:
    """The same, in a loop, at the mbarrier of (1): its parity does not follow the rounds of the mbarrier."""
    wait = _wait_of_reader(case)
    return wait if wait is not None and case.around.repeats and _is_of_first(case, wait) else None


def never_freed(case: Case) -> Culprit:
    """The same, where no thread arrives anywhere between the read and its next wait: what nobody hands back is refilled at any time."""
    wait, around = _wait_of_reader(case), case.around_any()
    if wait is None or around is None or not around.repeats or not case.may_be_of_first(wait):
        return None
    behind = [point for point in around.after_second if same(point, around.before_second)]  # of the loop
    announces = _announces(case)
    if any(_hands_back(point) and point.place.ptx_line not in announces for point in behind):
        return None
    of_cluster = case.first.block != case.second.block
    return wait, {"whole_barrier": case.words["cluster_barrier" if of_cluster else "cta_barrier"]}


def _announces(case: Case) -> set[int]:
    """The lines that announce bytes: arrivals of issuers."""
    return {each.place.ptx_line for each in case.signals if each.verb == "announce"}


def _hands_back(point: SyncPoint) -> bool:
    row = point.row
    return is_arrival(point) or row.is_cta_barrier or row.is_cluster_barrier or row.is_warp_barrier or row.is_atomic or row.is_fence


def passing_wait(case: Case) -> Culprit:
    """The wait of the issuer of a copy in a loop, which has returned too soon, and the arrival of the reader, or of one for its warp."""
    wait, around = last_of(case.around.before_second, is_phase_wait), case.around_any()
    arrival = first_of(around.after_first, is_release) if around is not None else None
    if wait is None or arrival is None or not (wait.always and case.around.repeats) or case.first.block != case.second.block:
        return None
    is_of_wait = case.variable(wait) == case.variable(arrival) and arrival not in case.around.before_second
    if not is_of_wait or case.first.role not in ("read", "operand read"):
        return None
    return wait, {"arrival_at": place_of(arrival.place), "the_arrival": named(arrival, case.words)}


def passing_wait_of_copies(case: Case) -> Culprit:
    """The same between two copies of a ring, where names do not tell its mbarriers apart."""
    wait = last_of(case.around.before_second, is_phase_wait)
    if wait is None or not (wait.always and case.around.repeats and case.inside) or case.finding.hazard != "WAW":
        return None
    announces = _announces(case)
    freeing = (each for each in case.signals if each.verb == "arrive" and each.symbol == case.variable(wait) != "")
    arrival = next((SyncPoint(each.opcode, each.place) for each in freeing if each.place.ptx_line not in announces), None)
    if arrival is None or case.second.asynchronous is None or case.first.block != case.second.block:
        return None
    return wait, {"arrival_at": place_of(arrival.place), "the_arrival": named(arrival, case.words)}


def constant_passing_wait(case: Case) -> Culprit:
    """The same, for one parity in all rounds."""
    found = passing_wait(case)
    return _asked(found[0], of_issuer=True) if isinstance(found, tuple) else None


def constant_parity(case: Case) -> Culprit:
    """The same: a parity that is a constant is that of every second phase."""
    return _asked(phase_in_loop(case))


def constant_parity_of_first(case: Case) -> Culprit:
    """The thread of (1) reads, in a loop, behind a wait for a constant parity, and the copy (2) refills the stage."""
    wait = last_of(case.around.before_first, is_phase_wait)
    copied = {each.symbol for each in case.signals if each.verb == "copy" and each.place.ptx_line == case.second.ptx_line} - {""}
    if wait is None or not wait.always or not case.around.repeats or case.variable(wait) not in copied:
        return None
    return _asked(wait, of_issuer=case.first.asynchronous is not None)


def _asked(wait: SyncPoint | None, *, of_issuer: bool = False) -> Culprit:
    """A constant parity, and which one is right in the first round: what the issuer of copies asks for lets the first one begin."""
    parity = wait.number.of(None) if wait is not None and wait.number else None
    begin = (parity or 0) & 1 if of_issuer else 0
    return None if wait is None or parity is None else (wait, {"asked": str(parity & 1), "begin": str(begin), "other": str(begin ^ 1)})


def _wait_of_reader(case: Case) -> SyncPoint | None:
    """The last wait for an mbarrier before (2), where (2) reads what (1) brings. The wait before a copy is for other threads' reads."""
    wait = last_of(case.around.before_second, is_phase_wait)
    return wait if wait is not None and wait.always and case.finding.hazard != "WAW" else None


def _is_of_first(case: Case, wait: SyncPoint) -> bool:
    """Whether a wait is at the mbarrier that completes (1), or another element of its array."""
    return case.is_of_first(wait) is True


def _other_parity(case: Case, wait: SyncPoint) -> str:
    """The fault of a wait for another phase. Empty if it asks for the right one: then nobody looks at its result, or it gives up."""
    waited, phase = wait.number.of(case.second.thread) if wait.number else None, case.facts.get("phase")
    if waited is not None and phase is not None and waited & 1 != int(phase) & 1:
        return f"it asks for parity {waited & 1}, and in phase {phase} (parity {int(phase) & 1}) such a wait returns at once"
    if (seen := case.waited) is not None and seen.is_wait(wait.place) and case.is_of_first(wait) and phase is not None:
        if seen.phase & 1 != int(phase) & 1:
            return f"it asks for parity {seen.phase & 1}, and in phase {phase} (parity {int(phase) & 1}) such a wait returns at once"
        return f"it has returned at once, since the phases before phase {phase} were not waited for" if seen.phase != phase else ""
    own = (case.finding.barrier or {}).get("name", "") == variable_name(case.variable(wait))
    return "" if own and waited is not None else "its parity or its mbarrier is another one"


def issued_only(case: Case) -> Culprit:
    """The thread of (1) arrives behind it at the mbarrier for which that of (2) waits: (1) has been issued then, and may not have ended."""
    wait = last_of(case.around.before_second, is_phase_wait)
    if wait is None or case.operation not in (*TENSOR_OPERATIONS, "cp.async"):
        return None
    arrivals = (point for point in case.around.after_first if is_release(point) and _ends(case, point, wait))
    arrival = first_of(arrivals, lambda point: point.always or case.waited is not None)
    return (arrival, {"tracking": _TRACKING.get(case.operation, "tcgen05.commit")}) if arrival else None


def freeing(case: Case) -> Culprit:
    """The arrival of the thread of (2) that has let the refill (1) begin, as the run shows it."""
    waited = case.waited if case.second.role in TENSOR_OPERATIONS else None
    signals = [each for each in case.signals if waited is not None and waited.by_second and waited.is_signal(each.place)]
    return SyncPoint(signals[0].opcode, signals[0].place) if signals else None


def _ends(case: Case, arrival: SyncPoint, wait: SyncPoint) -> bool:
    """Whether an arrival of the thread of (1) is what a wait of that of (2) has waited for. The run tells, or the names."""
    if case.waited is not None:
        by_first = case.waited.by_first or arrival.always  # the last of several threads that arrive here ends the phase
        return by_first and case.waited.is_wait(wait.place) and case.waited.is_signal(arrival.place)
    return case.variable(arrival) == case.variable(wait) != ""


_PASSING: Final = (
    "the {culprit} at {culprit_at} has let the copy begin before the {the_arrival} at {arrival_at}, which frees the bytes",
    "wait at {culprit_at} for the phase that the {the_arrival} at {arrival_at} ends: with a parity that changes each time that this"
    " mbarrier comes round again, and not before ((step / stages) & 1 in a ring, the complement where the first wait is to pass), and"
    " with a count of all threads that arrive",
)
# A copy comes too early: its issuer waits at an mbarrier, and readers arrive at one.
REFILLS: Final = (
    (
        ("refilled-too-early",),
        constant_passing_wait,
        "the {culprit} at {culprit_at} asks for parity {asked} in each round, and has let the copy begin before the arrival behind"
        " {first_at}",
        "let the parity of the wait at {culprit_at} change each time that its mbarrier comes round again: {begin} in the first round, then"
        " {other}, and so on",
    ),
    (("refilled-too-early",), passing_wait, *_PASSING),
)
# The same about a wait that is right: the stage was refilled before its reader came to it.
OVERTAKEN_WAITS: Final = (
    (("not-waited",), passing_wait_of_copies, *_PASSING),
    (
        ("not-waited", "refilled"),
        never_freed,
        "the {culprit} at {culprit_at} may be for an earlier copy: nothing behind it signals to the issuer that the bytes are free",
        "let every thread that executes {second_at} arrive behind it ({arrive}), and let the issuer of {first_at} wait for that before the"
        " next copy; or put {whole_barrier} after {second_at}, which both pass in each round",
    ),
)
# The rules about waits that return and are not for (1): situations, finder, sentence, fix.
OTHER_WAITS: Final = (
    (
        tuple(f"{of}{name}" for of in ("", "tensor-") for name in ("not-waited", "waited-no-barrier", "not-committed")),
        issued_only,
        "the {culprit} at {culprit_at}, for which the thread of (2) waits, comes when the {first_role} is issued, not when it is complete",
        "use {tracking} on the same mbarrier in place of the {culprit} at {culprit_at}",
    ),
    (
        ("not-waited", "tensor-not-waited", "tensor-waited-no-barrier"),
        other_phase,
        "the {culprit} at {culprit_at} does not wait for {group}: {other}",
        "wait at {culprit_at} for {group}, which has parity {parity}",
    ),
    (
        ("not-waited", "waited-no-barrier"),
        other_mbarrier,
        "the {culprit} at {culprit_at} waits for another mbarrier, {waited}",
        "wait for {group}, which has parity {parity}, before {second_at}, too; or instead, if {waited} is not meant",
    ),
)
