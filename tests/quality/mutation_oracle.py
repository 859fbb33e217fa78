"""What the independent oracle (tests/oracle) says of a mutant: whether it agrees that nothing is wrong, over many schedules.

Each schedule is run, and its order taken. One that an order covers which has been judged before is not judged again (oracle_order.py).

What the oracle does not see, it does not judge: registers, data in global memory, clusters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from oracle_judge import Judge
from oracle_run import with_endings
from oracle_trace import recording
from oracle_verdict import Verdict
from real_cases import Launch
from real_run import start_plain

from consan.backends.virtual import VirtualBackend


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
    """Whether a mutant is clean but for what the plain kernel has, in so many schedules, and how many verdicts that took."""
    usual = set().union(*map(complaints, verdicts(plain, launch, 1, Judge())))
    judge = Judge()
    for seed, verdict in enumerate(verdicts(mutant, launch, schedules, judge)):
        if found := complaints(verdict) - usual:
            return f"not clean in schedule {seed}: {', '.join(sorted(found))}"
    return f"clean in {schedules:,} of {schedules:,} schedules ({judge.judged:,} CTAs judged)"
