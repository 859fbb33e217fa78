"""Builds the deadlock finding from who waits for what. The proof comes from the virtual machine's scheduler, or from the kernel on a GPU.

It decides what the message names, what is missing, and which situation of the catalogue is likely. mbarriers are shown with
their counts at that moment. In a cluster an mbarrier is named with the rank of its CTA, the only one whose threads can
wait for it (instrument/SEMANTICS.md, section 6). The waits of one cluster are one deadlock; equal deadlocks are reported once.

The virtual machine also proves that loops never end (`Poll`). The report then names the polled memory and its value.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from consan.dataclass import dataclass
from consan.instrument.relations import Relations
from consan.reports.counts import plural
from consan.reports.model import Finding
from consan.reports.waiting.signals import Lack, by_mask, explained
from consan.reports.words.wording import describe

_IN_ALLOC: Final = {"pair": "the other CTA of the pair", "columns": "columns of tensor memory"}
OF_GRID: Final = "the barrier of the grid"  # of cooperative groups, which is polled memory
_SIGNALS: Final = ("announce", "copy", "arrive")  # of mbarriers: verbs of relations.Signal
NAMED: Final = 3  # barriers in the message; the waiters list all


@dataclass(frozen=True, order=True)
class Phase:
    """An awaited phase: its mbarrier (offset in the CTA's shared memory), and what is pending."""

    offset: int
    phase: int
    pending: int
    expected: int
    tx: int
    cluster_rank: int | None = None
    variable: str = ""

    @property
    def name(self) -> str:
        """`the mbarrier full[0] (shared offset 8) of the CTA of rank 1`."""
        return mbarrier(self.offset, self.variable, self.cluster_rank)

    def as_dict(self, key: str) -> dict[str, Any]:
        """As a dict for the report, the offset under `key`."""
        counts = {"pending": self.pending, "expected": self.expected, "tx": self.tx}
        owner = {} if self.cluster_rank is None else {"cluster_rank": self.cluster_rank}
        named = {"name": self.variable} if self.variable else {}
        return {key: self.offset, **named, **owner, "phase": self.phase, "parity": self.phase & 1, **counts}


def mbarrier(offset: int, variable: str = "", cluster_rank: int | None = None) -> str:
    """The words for an mbarrier in a sentence."""
    owner = "" if cluster_rank is None else f" of the CTA of rank {cluster_rank}"
    named = f"at {variable}" if variable.startswith("byte") else variable  # `bytes 8..15 of dynamic shared memory`
    what = f"{named} (shared offset {offset})" if variable else f"at shared offset {offset}"
    return f"the mbarrier {what}{owner}"


@dataclass(frozen=True, order=True)
class Poll:
    """Memory that a loop polls, in words, with its value. `lock`: the loop uses an exchange or a
    compare-and-swap. `variable`: of shared memory, if known."""

    text: str
    lock: bool = False
    variable: str = ""


def deadlock(
    kernel: str,
    waiters: Iterable[dict[str, Any]],
    phases: Iterable[Phase],
    numbers: Iterable[int],
    ranks: Iterable[int] = (),
    polls: Iterable[Poll] = (),
    relations: Relations | None = None,
) -> Finding:
    """The finding. `numbers`: awaited barriers of the CTA. `ranks`: CTAs that wait at the cluster barrier.

    `relations`: what the kernel's text tells.
    """
    states, barriers = sorted(set(phases), key=lambda state: (state.cluster_rank or 0, state)), sorted(set(numbers))
    polled, owners = sorted(set(polls)), sorted(set(ranks))
    barrier = states[0].as_dict("offset") if len(states) == 1 else None
    finding = Finding(kind="deadlock", kernel=kernel, waiters=tuple(waiters), barrier=barrier)
    looped = _loops(finding.waiters, polled) if not states else None
    if looped is not None:
        described = describe(finding, looped[0], barrier=looped[1])
    else:
        named = _named(states, barriers, owners, polled)
        barriers = [] if states and _only_follow(finding, relations) else barriers
        crossed = "crossed" if any(state.phase == 0 and state.pending == state.expected > 0 for state in states) else None
        cause = crossed if barriers else _cause(states) if states else None
        described = describe(finding, cause, barrier=named, lacking=_lacking(states))
    lacks = [Lack(state.variable, state.phase, state.pending, state.expected, state.tx, state.cluster_rank) for state in states]
    if relations is None or (owners and not by_mask(relations.signals(kernel))):
        return described
    return explained(described, lacks, barriers, [poll.variable for poll in polled], relations)


def _only_follow(finding: Finding, relations: Relations | None) -> bool:
    """Whether the threads at barriers of the CTA signal no mbarrier behind them: those at mbarriers do not wait for these threads."""
    lines = {int(waiter.get("ptx_line") or 0) for waiter in finding.waiters if "barrier" in waiter}
    if relations is None or not lines:
        return False
    signals = [each.place.ptx_line for each in relations.signals(finding.kernel) if each.barrier is None and each.verb in _SIGNALS]
    return all(relations.follows(finding.kernel, line, signal) is False for line in lines for signal in signals)


def _loops(waiters: Sequence[dict[str, Any]], polls: Sequence[Poll]) -> tuple[str, str] | None:
    """The situation of endless loops, and what they poll; of warps in want of columns. Threads at a barrier wait for those."""
    for why, awaited in _IN_ALLOC.items():
        if any(waiter.get("why") == why for waiter in waiters):
            return why, awaited
    if {poll.text for poll in polls} == {OF_GRID}:
        return "grid", OF_GRID
    if polls:
        return "lock" if all(poll.lock for poll in polls) else "polled", _first_of([poll.text for poll in polls])
    return ("loop", "") if any(waiter.get("why") == "loop" for waiter in waiters) else None


def _named(states: Sequence[Phase], barriers: Sequence[int], ranks: Sequence[int], polls: Sequence[Poll]) -> str:
    """`barrier 1 and phase 0 of the mbarrier at shared offset 8`. Only the first few, but at least one for each CTA of a cluster."""
    states = states if not states or states[0].cluster_rank is None else _each_owner(states)
    named = [f"barrier {n}" for n in barriers]
    named += [f"phase {state.phase} of {state.name}" for state in states]
    if ranks:
        named.append(f"the barrier of the cluster (in {_ctas(ranks)})")
    return _first_of(named + [poll.text for poll in polls]) or "each other"


def _first_of(named: Sequence[str]) -> str:
    shown, more = named[:NAMED], len(named) - NAMED
    return " and ".join([*shown, *([f"{more} more"] if more > 0 else [])])


def _each_owner(states: Sequence[Phase]) -> list[Phase]:
    """One phase of each CTA first, so that every waiting CTA is named."""
    first = {state.cluster_rank: state for state in reversed(states)}
    return [*reversed(first.values()), *(state for state in states if state is not first[state.cluster_rank])]


def _ctas(ranks: Sequence[int]) -> str:
    return f"the CTA{'s' * (len(ranks) > 1)} of rank {', '.join(map(str, ranks))}"


def _lack(state: Phase) -> str:
    """`1 of 2 arrivals and 64 bytes`: what a phase needs to complete."""
    arrivals = f"{state.pending} of {plural(state.expected, 'arrival')}" if state.pending > 0 else ""
    short = " and ".join(filter(None, (arrivals, plural(state.tx, "byte") if state.tx > 0 else "")))
    excess = ((-state.pending, "arrival"), (-state.tx, "byte"))
    over = " and ".join(f"{plural(count, what)} too many" for count, what in excess if count > 0)
    return ", but ".join(filter(None, (short, over))) or "nothing"


def _lacking(states: Sequence[Phase]) -> str:
    """The signals that the awaited phases lack: of the first of them, in the order of the message."""
    lacks = [f"{_lack(state)} ({state.name}, phase {state.phase})" for state in states[:NAMED]]
    return "; ".join(lacks)


def _cause(states: Sequence[Phase]) -> str:
    """The likely situation, judged by all awaited mbarriers."""
    if not any(state.expected for state in states):
        return "no-object"
    if any(state.pending < 0 for state in states):
        return "too-many"
    if any(state.tx < 0 and state.pending and state.cluster_rank is not None for state in states):
        return "unannounced"
    if any(state.tx < 0 for state in states):
        return "excess"
    lacking = {(state.pending > 0, state.tx > 0) for state in states}
    causes = {(True, False): "arrivals", (False, True): "bytes", (False, False): "nothing-missing"}
    return causes.get(next(iter(lacking)), "both") if len(lacking) == 1 else "both"
