"""The finding of a deadlock from who waits for what: proven by the virtual machine's scheduler, or by the kernel itself on a GPU.

Decides what the message names, what is said to be missing, and which situation of the catalogue that makes likely. What is known of
an mbarrier are its counts at that moment (SEMANTICS 2.7). In a cluster each mbarrier is told with the rank of its CTA, whose threads
alone can wait for it; what the CTAs of one cluster wait for is one deadlock, of equal ones in several clusters one is told.

The virtual machine also proves that loops never end (`Poll`): what they poll is then named with its value.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from consan.reports.kinds import describe
from consan.reports.model import Finding, plural

NAMED: Final = 3  # barriers that the message names; the waiters list them all
SPIN, LOOP = "spin", "loop"  # `why` of threads in a loop that never ends: it polls memory, or it reads none


@dataclass(frozen=True, order=True)
class Phase:
    """A phase that threads wait for: of which mbarrier (offset in the CTA's shared memory), and what it still needs to complete."""

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
        """For a report, the offset under `key`."""
        counts = {"pending": self.pending, "expected": self.expected, "tx": self.tx}
        owner = {} if self.cluster_rank is None else {"cluster_rank": self.cluster_rank}
        named = {"name": self.variable} if self.variable else {}
        return {key: self.offset, **named, **owner, "phase": self.phase, "parity": self.phase & 1, **counts}


def mbarrier(offset: int, variable: str = "", cluster_rank: int | None = None) -> str:
    """What a sentence calls an mbarrier."""
    owner = "" if cluster_rank is None else f" of the CTA of rank {cluster_rank}"
    named = f"at {variable}" if variable.startswith("byte") else variable  # `bytes 8..15 of dynamic shared memory`
    what = f"{named} (shared offset {offset})" if variable else f"at shared offset {offset}"
    return f"the mbarrier {what}{owner}"


@dataclass(frozen=True, order=True)
class Poll:
    """Memory that a loop polls: in words, with the value that stays there. `lock`: it is an exchange or a compare-and-swap."""

    text: str
    lock: bool = False


def deadlock(
    kernel: str,
    waiters: Iterable[dict[str, Any]],
    phases: Iterable[Phase],
    numbers: Iterable[int],
    ranks: Iterable[int] = (),
    polls: Iterable[Poll] = (),
) -> Finding:
    """The finding; `numbers` are the barriers of the CTA that are waited for, `ranks` the CTAs that wait for the cluster's barrier."""
    states, barriers = sorted(set(phases), key=lambda state: (state.cluster_rank or 0, state)), sorted(set(numbers))
    barrier = states[0].as_dict("offset") if len(states) == 1 else None
    finding = Finding(kind="deadlock", kernel=kernel, waiters=tuple(waiters), barrier=barrier)
    looped = _loops(finding.waiters, sorted(set(polls))) if not states else None
    if looped is not None:
        return describe(finding, looped[0], barrier=looped[1])
    cause = _cause(states) if states and not barriers else None
    return describe(finding, cause, barrier=_named(states, barriers, sorted(set(ranks)), sorted(set(polls))), lacking=_lacking(states))


def _loops(waiters: Sequence[dict[str, Any]], polls: Sequence[Poll]) -> tuple[str, str] | None:
    """The situation of loops that never end, and what they poll: whoever waits at a barrier waits for them."""
    if polls:
        return "lock" if all(poll.lock for poll in polls) else "polled", _first_of([poll.text for poll in polls])
    return ("loop", "") if any(waiter.get("why") == LOOP for waiter in waiters) else None


def _named(states: Sequence[Phase], barriers: Sequence[int], ranks: Sequence[int], polls: Sequence[Poll]) -> str:
    """`barrier 1 and phase 0 of the mbarrier at shared offset 8`; of many only the first ones, but each CTA of a cluster."""
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
    """One phase of each CTA first, so that no CTA that waits goes unnamed for another's barriers."""
    first = {state.cluster_rank: state for state in reversed(states)}
    return [*reversed(first.values()), *(state for state in states if state is not first[state.cluster_rank])]


def _ctas(ranks: Sequence[int]) -> str:
    return f"the CTA{'s' * (len(ranks) > 1)} of rank {', '.join(map(str, ranks))}"


def _lack(state: Phase) -> str:
    """`1 of 2 arrivals and 64 bytes`: what a phase needs to complete."""
    arrivals = f"{state.pending} of {plural(state.expected, 'arrival')}" if state.pending else ""
    short = " and ".join(filter(None, (arrivals, plural(state.tx, "byte") if state.tx > 0 else "")))
    over = f"{plural(-state.tx, 'byte')} too many" if state.tx < 0 else ""
    return ", but ".join(filter(None, (short, over))) or "nothing"


def _lacking(states: Sequence[Phase]) -> str:
    """What the first of the awaited phases lack, one after the other; what is waited for stands in the message."""
    lacks = [f"{_lack(state)} ({state.name}, phase {state.phase})" for state in states[:NAMED]]
    return "; ".join(lacks)


def _cause(states: Sequence[Phase]) -> str:
    """The situation in the catalogue that all awaited mbarriers together make likely."""
    if any(state.tx < 0 and state.pending and state.cluster_rank is not None for state in states):
        return "unannounced"
    if any(state.tx < 0 for state in states):
        return "excess"
    lacking = {(state.pending > 0, state.tx > 0) for state in states}
    causes = {(True, False): "arrivals", (False, True): "bytes", (False, False): "nothing-missing"}
    return causes.get(next(iter(lacking)), "both") if len(lacking) == 1 else "both"
