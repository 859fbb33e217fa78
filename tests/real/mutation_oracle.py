"""What the independent oracle (tests/oracle) says of a mutant: whether it agrees that nothing is wrong, over many schedules.

Each schedule is run, and its order taken; an order that has been judged before is not judged again (oracle_order.py).

What the oracle does not see, it does not judge: registers, data in global memory, clusters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from oracle_order import Order
from oracle_passes import alone, check, order_of
from oracle_run import with_endings
from oracle_trace import Trace, recording
from oracle_verdict import Pair, Verdict
from real_cases import Launch
from real_run import start_plain

from consan.backends.virtual import VirtualBackend


@dataclass
class Judge:
    """Verdicts on the CTAs of launches of one kernel, by their orders."""

    usual: dict[Pair, set[str]] = field(default_factory=dict)  # errors, by kinds, that nobody asks about
    known: dict[int, list[tuple[Order, Verdict]]] = field(default_factory=dict)
    judged: int = 0  # that no order known before covers

    def verdict(self, trace: Trace) -> Verdict:
        """On a launch."""
        verdict = Verdict()
        for one in alone(trace):
            verdict.merge(self._of_one(one))
        return verdict

    def _of_one(self, trace: Trace) -> Verdict:
        order = order_of(trace)
        before = [] if order is None else self.known.setdefault(order.number, [])
        for other, verdict in before:
            if verdict.clean and other.covers(order):
                return verdict
        self.judged += 1
        found = check(trace, merged=False, but=self.usual)
        if order is not None:
            before[:] = [one for one in before if not (found.clean and order.covers(one[0]))] + [(order, found)]
        return found


def verdicts(ptx: str, launch: Callable[[], Launch], schedules: int, judge: Judge) -> Iterator[Verdict]:
    """Over plain runs in schedule 0 and those that follow."""
    backend, arguments = VirtualBackend(), launch()
    with recording() as trace:
        handle = backend.load(ptx)
        for seed in range(schedules):
            trace.waves.clear()
            buffers, stats = start_plain(handle, ptx, arguments, backend, seed)
            buffers.free()
            yield with_endings(judge.verdict(trace), stats)


def complaints(verdict: Verdict) -> set[str]:
    """All that counts as an error, in words."""
    pairs = (f"{'/'.join(sorted(found.kinds))} at {sorted(pair)}" for pair, found in verdict.pairs.items() if found.severity == "error")
    return {*verdict.kinds, *pairs, *(f"uninitialized-read at [{line}]" for line in verdict.uninitialized)}


def opinion(plain: str, mutant: str, launch: Callable[[], Launch], schedules: int) -> str:
    """Whether a mutant is clean but for what the plain kernel has, and how many schedules, of how many orders, that was seen in."""
    (of_plain,) = verdicts(plain, launch, 1, Judge())
    usual = complaints(of_plain)
    judge = Judge({pair: found.kinds for pair, found in of_plain.pairs.items() if found.severity == "error"})
    for seed, verdict in enumerate(verdicts(mutant, launch, schedules, judge)):
        if found := complaints(verdict) - usual:
            return f"not clean in schedule {seed}: {', '.join(sorted(found))}"
    return f"clean in {schedules:,} of {schedules:,} schedules ({judge.judged} CTAs of different orders judged)"
