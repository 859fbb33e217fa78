"""Sentences of a deadlock's report about the instructions that could have ended the wait: their lines, their numbers, and the repair.

The proof of the deadlock says what an awaited phase lacks. The kernel's text says which instructions signal that barrier or write the
polled variable (`instrument/between/signals.py`). The instructions join the finding as accesses of role `culprit`.

Nothing is added for a barrier without a name, or if the address of some signal is unknown, because that signal may be the missing one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, Final

from consan.dataclass import dataclass
from consan.instrument.relations import Relations, Signal
from consan.reports.counts import plural
from consan.reports.culprits.cases import access_of
from consan.reports.model import Finding
from consan.reports.source.names import name_without_element, variable_name
from consan.reports.words.wording import place_of, place_of_waiter

SHOWN: Final = 3  # culprits with their source


@dataclass(frozen=True)
class Lack:
    """An awaited phase: the mbarrier's variable and what is pending."""

    variable: str
    phase: int
    pending: int
    expected: int
    tx: int
    rank: int | None = None  # of the CTA that has the mbarrier

    @property
    def came(self) -> int:
        """Arrivals of this phase."""
        return self.expected - self.pending


@dataclass(frozen=True)
class SignalAdvice:
    """The words, and the instructions that they name. Empty words leave those of the catalogue."""

    culprits: Sequence[Signal]
    fix: str = ""
    missing: str = ""
    reason: str = ""  # follows the message
    ended: bool = False  # the arrivals completed all earlier phases, and none came in the awaited one


def by_mask(signals: Iterable[Signal]) -> bool:
    """Whether commits with a mask signal: one that lacks a CTA makes that CTA wait, and the others wait for it at the cluster's barrier."""
    return any(_is_commit(signal) and "multicast::cluster" in signal.opcode.split(".") for signal in signals)


def explained(finding: Finding, lacks: Iterable[Lack], numbers: Sequence[int], polled: Sequence[str], relations: Relations) -> Finding:
    """The deadlock with its culprits and its repair. `numbers`: awaited named barriers. `polled`: polled variables."""
    awaited, signals = set(lacks), relations.signals(finding.kernel)
    explanation = None
    if finding.situation == "grid":  # the threads at a barrier of their CTA wait for the one that polls
        return finding
    if finding.situation == "polled":
        explanation = _of_variable(finding, polled[0], signals, relations) if len(set(polled)) == 1 else None
    elif len(awaited) == 1 and not numbers:
        explanation = _of_mbarrier(finding, awaited.pop(), signals, relations)
    elif len(set(numbers)) == 1 and not awaited:
        explanation = _of_named_barrier(finding, numbers[0], signals)
    elif awaited:
        explanation = _of_begin(finding, awaited, signals, relations) or _of_copies(awaited, signals)
        explanation = explanation or _of_missing_some(finding, awaited, signals, relations)
    if explanation is None:
        return finding
    accesses = tuple(map(access_of, _once(explanation.culprits)))[:SHOWN]
    message = f"{finding.message}; {explanation.reason}" if explanation.reason else finding.message
    return replace(
        finding, accesses=accesses, message=message, fix=explanation.fix or finding.fix, missing=explanation.missing or finding.missing
    )


# --- mbarriers ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Sites:
    """The signals of one mbarrier."""

    inits: Sequence[Signal]
    arrivals: Sequence[Signal]
    announcements: Sequence[Signal]
    copies: Sequence[Signal]


def _of_mbarrier(finding: Finding, lack: Lack, signals: Sequence[Signal], relations: Relations) -> SignalAdvice | None:
    inside = lack.variable.startswith("bytes ")  # of a structure: the text does not tell which mbarrier in it an instruction is for
    sites = None if inside else _sites(name_without_element(lack.variable), signals)
    rule = _RULES.get(finding.situation)
    explanation = rule(lack, sites) if rule is not None and sites is not None else None
    return _with_loops(finding, lack, explanation, relations) if explanation is not None and explanation.ended else explanation


def _of_begin(finding: Finding, lacks: Iterable[Lack], signals: Sequence[Signal], relations: Relations) -> SignalAdvice | None:
    """Both sides of a ring wait for phase 0, and nothing has come: who fills the stages is to find them free in the first round."""
    names = {name_without_element(lack.variable) for lack in lacks if not lack.phase}  # the waits for later phases follow
    known = {name: found for name in names if (found := _sites(name, signals)) is not None}
    sites = {name: found.announcements for name, found in known.items() if found.announcements}
    sites = sites or {name: commits for name, found in known.items() if (commits := [*filter(_is_commit, found.arrivals)])}
    if len(names) != 2 or len(sites) != 1 or any((lack.came or lack.tx) and not lack.phase for lack in lacks):
        return None
    ((full, filled),), (empty,) = sites.items(), names - sites.keys()
    here = [waiter for waiter in finding.waiters if name_without_element(waiter.get("name", "")) == empty]
    lines = {int(waiter.get("ptx_line") or 0) for waiter in here}
    fills = [each.place.ptx_line for each in filled]
    if not lines or not all(any(relations.follows(finding.kernel, line, fill) for fill in fills) for line in lines):
        return None
    waits = [signal for signal in signals if signal.verb == "wait" and signal.place.ptx_line in lines]
    at = _once_each(map(place_of_waiter, here))
    return SignalAdvice(
        waits,
        f"let the wait at {at} begin with parity 1, which passes on a new mbarrier, then 0, 1, and so on",
        f"a first wait for {empty} that passes: its phase 0 ends only behind the wait for {full}, which is filled behind {at}",
    )


def _of_copies(lacks: Iterable[Lack], signals: Sequence[Signal]) -> SignalAdvice | None:
    """The first phase of one mbarrier at which only copies arrive, each counted twice: the waits at others follow."""
    found = [(lack, _sites(name_without_element(lack.variable), signals)) for lack in lacks]
    advice = [each for lack, sites in found if sites is not None and not lack.phase and (each := _counted_twice(lack, sites))]
    return advice[0] if len(advice) == 1 else None


def _of_missing_some(finding: Finding, lacks: Iterable[Lack], signals: Sequence[Signal], relations: Relations) -> SignalAdvice | None:
    """One phase got some of its arrivals, and no thread that waits elsewhere can come to another one: the other waits follow."""
    some = [lack for lack in lacks if lack.came and lack.pending > 0]
    sites = _sites(name_without_element(some[0].variable), signals) if len(some) == 1 else None
    if sites is None or not sites.arrivals:
        return None
    elsewhere = (int(waiter.get("ptx_line") or 0) for waiter in finding.waiters if waiter.get("name") != some[0].variable)
    pairs = ((line, each.place.ptx_line) for line in elsewhere for each in sites.arrivals)
    if any(relations.follows(finding.kernel, *pair) is not False for pair in pairs):
        return None
    return _arrivals(some[0], sites)


def _with_loops(finding: Finding, lack: Lack, explanation: SignalAdvice, relations: Relations) -> SignalAdvice:
    """The words with the lines of the two loops, if each side has one."""
    ended = _loops(finding.kernel, (signal.place.ptx_line for signal in explanation.culprits), relations)
    waiting = _loops(finding.kernel, (int(waiter.get("ptx_line") or 0) for waiter in finding.waiters if "mbarrier" in waiter), relations)
    if len(ended) != 1 or len(waiting) != 1:
        return explanation
    (one, at), (other, wait_at) = (next(iter(found.items())) for found in (ended, waiting))
    phases = plural(lack.phase, "phase")
    fix = (
        f"the loop at {one} completed {phases} and then ended, while the loop at {other} waits for one more, phase {lack.phase}:"
        f" end the loop at {other} after {phases}, or let the loop at {one} go on"
    )
    return replace(explanation, culprits=[*explanation.culprits, at, wait_at], fix=fix)


def _loops(kernel: str, lines: Iterable[int], relations: Relations) -> dict[str, Signal]:
    """The loops around some instructions, by place; empty if one is in no loop."""
    found = [relations.loop(kernel, line) for line in lines]
    loops = [Signal("loop", "bra", branch) for branch in found if branch is not None]
    return {place_of(loop.place): loop for loop in loops} if len(loops) == len(found) else {}


def _sites(variable: str, signals: Sequence[Signal]) -> _Sites | None:
    """None if the variable is unknown or a signal may be on it or on another one."""
    known = [signal for signal in signals if signal.verb in ("initialise", "announce", "copy", "arrive") and signal.barrier is None]
    if not variable or any(not signal.symbol for signal in known):
        return None
    own = [signal for signal in known if variable_name(signal.symbol) == variable]
    arrivals = [signal for signal in own if "arrive" in signal.opcode.split(".") or _is_commit(signal)]
    return _Sites(*(_of_verb(own, "initialise"), arrivals, _of_verb(own, "announce"), _of_verb(own, "copy")))


def _of_verb(signals: Iterable[Signal], verb: str) -> list[Signal]:
    return [signal for signal in signals if signal.verb == verb]


def _arrivals(lack: Lack, sites: _Sites) -> SignalAdvice | None:
    """Some arrivals of the phase did not come."""
    name, at = lack.variable, _places(sites.arrivals)
    if not sites.inits:
        return None
    if not lack.came and (masked := [signal for signal in sites.arrivals if by_mask([signal])]):
        return _of_mask(lack, masked)
    if not sites.arrivals:
        return SignalAdvice(
            sites.inits, f"let the thread that signals arrive on {name} (mbarrier.arrive): no instruction of this kernel does"
        )
    if (advice := _counted_twice(lack, sites)) is not None:
        return advice
    if lack.came and not lack.phase:
        fix = (
            f"if the {plural(lack.came, 'arrival')} at {at} are all that one phase should get, initialise {name} with {lack.came:,}"
            f" at {_places(sites.inits)}; else let {lack.pending:,} more arrive at {at}"
        )
        missing = f"{lack.pending:,} of the {lack.expected:,} arrivals that mbarrier.init counts at {_places(sites.inits)}"
        return SignalAdvice([*sites.inits, *sites.arrivals], fix, missing)
    if lack.came:
        fix = (
            f"{_earlier(lack)} got all arrivals, phase {lack.phase} only {lack.came:,}: let every counted thread go on arriving at {at},"
            " or leave with mbarrier.arrive_drop"
        )
        return SignalAdvice([*sites.arrivals, *sites.inits], fix)
    if lack.phase:
        fix = (
            f"the arrivals at {at} completed {_earlier(lack)} and then ended, while this wait is for phase {lack.phase}:"
            " give both sides the same number of iterations"
        )
        return SignalAdvice(
            sites.arrivals, fix, f"{plural(lack.expected, 'arrival')} for phase {lack.phase} of {name}: none came", ended=True
        )
    return SignalAdvice(sites.arrivals, f"let the threads that arrive at {at} do so before they wait or exit")


def _counted_twice(lack: Lack, sites: _Sites) -> SignalAdvice | None:
    counting = [signal for signal in sites.arrivals if signal.verb == "arrive" and _adds_itself(signal)]
    if not counting or lack.came or len(counting) != len(sites.arrivals):  # libcu++ has an ordinary arrival behind it
        return None
    why = "without .noinc the instruction first raises the pending count by its own arrival"
    return SignalAdvice(counting, f"use cp.async.mbarrier.arrive.noinc at {_places(counting)}: {why}")


def _is_commit(signal: Signal) -> bool:
    """Whether it is `tcgen05.commit`, which arrives once."""
    return signal.opcode.startswith("tcgen05.commit.")


def _of_mask(lack: Lack, commits: Sequence[Signal]) -> SignalAdvice:
    """A commit with a mask arrives in the CTAs of its mask only."""
    at, rank = _places(commits), "" if lack.rank is None else f" of rank {lack.rank}"
    bit = "its bit" if lack.rank is None else f"bit {lack.rank}"
    return SignalAdvice(
        commits,
        f"set {bit} in the mask of the tcgen05.commit at {at}; or, if the CTA{rank} is in it, let the commit come in each phase",
        f"an arrival in the CTA{rank}: the tcgen05.commit at {at} arrives in the CTAs of its mask, by their ranks",
    )


def _adds_itself(signal: Signal) -> bool:
    """Whether it is a `cp.async.mbarrier.arrive` whose arrival the count of the barrier does not include (ISA)."""
    parts = signal.opcode.split(".")
    return parts[0] == "cp" and "noinc" not in parts


def _bytes(lack: Lack, sites: _Sites) -> SignalAdvice | None:
    """All arrivals came; announced bytes did not."""
    at, short = _places(sites.announcements), plural(lack.tx, "byte")
    if not sites.announcements:
        return None
    if not sites.copies:
        return SignalAdvice(
            sites.announcements, f"issue the copy that {at} announces, on {lack.variable}: no instruction copies to this mbarrier"
        )
    some, copies = _brought(lack, sites), _places(sites.copies)
    when = f" for phase {lack.phase}" if lack.phase else ""
    fewer = f"announce {short} fewer{when} at {at}"
    if lack.phase and not some:
        late = f"{_earlier(lack)} got all bytes, phase {lack.phase} lacks {short}: issue the copy at {copies} in each phase"
        fix = late if some == 0 else f"{late}; or, if the copy of that phase is smaller, {fewer}"
        return SignalAdvice([*sites.copies, *sites.announcements], fix)
    fix = f"{fewer}; or, if the destination has room, let the copies at {copies} bring {short} more"
    return SignalAdvice([*sites.announcements, *sites.copies], fix, f"{short}: {_numbers(sites)}" if _numbers(sites) else "")


def _brought(lack: Lack, sites: _Sites) -> int | None:
    """How many of the announced bytes of the phase have come; None: not known."""
    announced = {signal.number for signal in sites.announcements}
    (total,) = announced if len(announced) == 1 else (None,)
    return None if total is None or total < lack.tx else total - lack.tx


def _numbers(sites: _Sites) -> str:
    """`mbarrier.expect_tx announced 272, the copy brought 256`, if each is one instruction with a constant."""
    counts = [signals[0].number for signals in (sites.announcements, sites.copies) if len(signals) == 1]
    return f"expect_tx announced {counts[0]:,}, the copy brought {counts[1]:,}" if len(counts) == 2 and None not in counts else ""


def _both(lack: Lack, sites: _Sites) -> SignalAdvice:
    """Arrivals and bytes lack: the instructions are shown, the words stay."""
    return SignalAdvice([*sites.arrivals, *sites.copies])


_RULES: Final[dict[str, Callable[[Lack, _Sites], SignalAdvice | None]]] = {"arrivals": _arrivals, "bytes": _bytes, "both": _both}


def _earlier(lack: Lack) -> str:
    return "phase 0" if lack.phase == 1 else f"phases 0 to {lack.phase - 1}"


# --- named barriers ----------------------------------------------------------------------------------------------------


def _of_named_barrier(finding: Finding, number: int, signals: Sequence[Signal]) -> SignalAdvice | None:
    here = [signal for signal in signals if signal.barrier == number]
    elsewhere = [signal for signal in signals if signal.verb == "arrive" and signal.barrier not in (None, number)]
    expected, arrived = _counted(finding, number, here)
    if expected is None or arrived is None or arrived >= expected:
        return None
    missing = f"{expected - arrived:,} of the {plural(expected, 'thread')} that barrier {number} counts; {arrived:,} have arrived"
    own = [signal for signal in here if signal.verb == "arrive"]
    fewer = f"or make the count at {_places(here)} the number of threads that reach it in one round"
    if own:
        more = f"{expected - arrived:,} more threads"
        fix = f"its arrivals are at {_places(own)}: let {more} come there, as often as others wait for barrier {number}, {fewer}"
        return SignalAdvice(own, fix, missing)
    if elsewhere:
        others = " and ".join(sorted({f"barrier {signal.barrier}" for signal in elsewhere}))
        fix = f"the arrival at {_places(elsewhere)} is on {others}: if it is meant for barrier {number}, give it the number {number}"
        return SignalAdvice(elsewhere, fix, missing)
    return SignalAdvice([], f"let {expected - arrived:,} more threads reach barrier {number}, {fewer}", missing)


def _counted(finding: Finding, number: int, here: Sequence[Signal]) -> tuple[int | None, int | None]:
    """How many threads the barrier counts, and how many have come. None: not known."""
    waiters = [waiter for waiter in finding.waiters if waiter.get("barrier") == number]
    waiters = [waiter for waiter in waiters if waiter.get("block") == waiters[0].get("block")]
    if not waiters:
        return None, None
    if "expected" in waiters[0]:
        return int(waiters[0]["expected"]), int(waiters[0]["arrived"])
    counts = {signal.number for signal in here}
    early = any(signal.verb == "arrive" for signal in here)  # may have come and gone on
    known = counts.pop() if len(counts) == 1 else None
    return known, None if early else sum(_lanes(waiter) for waiter in waiters)


def _lanes(waiter: dict[str, Any]) -> int:
    return int(waiter.get("lanes", 0)).bit_count()


# --- polled variables --------------------------------------------------------------------------------------------------


def _of_variable(finding: Finding, polled: str, signals: Sequence[Signal], relations: Relations) -> SignalAdvice | None:
    """The stores to a polled variable. The polling instruction itself may be an atomic, which does not count."""
    polling = {waiter.get("ptx_line") for waiter in finding.waiters if waiter.get("polls")}
    name = name_without_element(polled)
    stores = [signal for signal in signals if signal.verb == "write" and signal.symbol and variable_name(signal.symbol) == name]
    stores = [signal for signal in stores if signal.place.ptx_line not in polling]
    if not stores:
        return None
    kernel = finding.kernel
    pairs = [(wait, store) for wait in finding.waiters for store in stores if _is_behind(wait, store, relations, kernel)]
    late = [(wait, store) for wait, store in pairs if not wait.get("polls")]
    if late:
        return _behind_a_wait(name, late)
    if pairs:
        loops, writes = _once_each(place_of_waiter(wait) for wait, _ in pairs), _writes([store for _, store in pairs])
        fix = f"move {writes} before the loop at {loops}, or let a thread write that does not enter the loop"
        return SignalAdvice([store for _, store in pairs], fix, reason=f"{writes} can come only after that loop")
    fix = f"{name} is written at {_places(stores)}, where no thread that is left can come: let a thread write it before it waits or exits"
    return SignalAdvice(stores, fix)


def _is_behind(waiter: dict[str, Any], store: Signal, relations: Relations, kernel: str) -> bool:
    """Whether a store can come after a wait, and the wait not after the store, as in a loop."""
    wait, line = int(waiter.get("ptx_line") or 0), store.place.ptx_line
    return relations.follows(kernel, wait, line) is True and relations.follows(kernel, line, wait) is False


def _behind_a_wait(name: str, late: Sequence[tuple[dict[str, Any], Signal]]) -> SignalAdvice:
    """The stores come only after a barrier or an mbarrier, which waits for the threads that poll."""
    stores = [store for _, store in late]
    waits = _once_each(place_of_waiter(waiter) for waiter, _ in late)
    kind = "barrier" if all("barrier" in waiter for waiter, _ in late) else "wait"
    wait = f"the {kind} at {waits}"
    return SignalAdvice(
        stores,
        f"move {_writes(stores)} before {wait}",
        f"a write of {name} that comes before {wait}",
        f"{_writes(stores)} comes only after {wait}, and that {kind} waits for the threads that poll {name}",
    )


def _writes(stores: Sequence[Signal]) -> str:
    """`the write at k.cu:8`."""
    places = _places(stores)
    return f"the write{'s' * (' and ' in places)} at {places}"


# --- words -------------------------------------------------------------------------------------------------------------


def _once(signals: Iterable[Signal]) -> list[Signal]:
    """One signal for each source place: an unrolled loop has several."""
    found = {(signal.opcode, signal.place.file, signal.place.line, signal.place.inlined): signal for signal in signals}
    return list(found.values())


def _places(signals: Sequence[Signal]) -> str:
    return _once_each(place_of(signal.place) for signal in signals)


def _once_each(places: Iterable[str]) -> str:
    return " and ".join(dict.fromkeys(filter(None, places)))
