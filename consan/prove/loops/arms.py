"""Kernels whose threads come to barrier 0 at different instructions: which parts of their lives may be at the same time.

A CTA has one barrier 0, wherever its threads wait at it: the execution number k of one thread meets number k of each other one. So two
threads are followed together. When one of them comes to its next barrier, the other one comes to its own, or has left the kernel.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

FIRST = -1  # in place of a barrier: the begin of the kernel


def at_one_time(behind: Mapping[int, Collection[int]], ends: Collection[int]) -> set[tuple[int, int]]:
    """The pairs of intervals that two threads may be in at one time, each by the barrier that it begins with.

    `behind`: the barriers that an interval ends with. `ends`: the intervals in which a thread may leave.
    """
    seen, pending = set[tuple[int, int]](), [(FIRST, FIRST)]
    left = set[tuple[int, int]]()  # the first thread has left
    while pending:
        one, other = pair = pending.pop()
        if pair not in seen:
            seen.add(pair)
            pending += ((each, its) for each in behind[one] for its in behind[other])
            left |= {(one, other)} if one in ends else set()
            left |= {(other, one)} if other in ends else set()
    return {(min(pair), max(pair)) for pair in seen | set(_alone(left, behind))}


def _alone(left: Collection[tuple[int, int]], behind: Mapping[int, Collection[int]]) -> Iterator[tuple[int, int]]:
    """The pairs that follow when the first thread of a pair leaves."""
    seen, pending = set[tuple[int, int]](), list(left)
    while pending:
        one, other = pair = pending.pop()
        if pair not in seen:
            seen.add(pair)
            yield pair
            pending += ((one, each) for each in behind[other])
