"""Proves, before a launch, that no two of its threads touch a byte of global memory that one of them writes.

The proof is arithmetic on the text, the parameters, the grid and the block: values.py has the numbers of all threads at once, walk.py goes
through the kernel with them, meetings.py compares the ranges of bytes. A launch with a proof needs no record of its global memory: no
address, and no stored value, which would only tell how severe a race is. All other launches are recorded in full.

Not proven: addresses that follow from loaded values, accesses of a kernel whose threads exchange data through global memory, calls, and
all copies but cp.async.
"""

from consan.ranges.meetings import meet
from consan.ranges.walk import LaunchExtents, NotProven, Slice, accesses_of

__all__ = ["LaunchExtents", "NotProven", "Slice", "proven"]


def proven(kernel: Slice, parameters: tuple[bytes, ...], shape: LaunchExtents) -> int:
    """How many accesses of single threads are proven apart. Raises `NotProven`."""
    accesses = accesses_of(kernel, parameters, shape)
    if reason := meet(accesses):
        raise NotProven(reason)
    return sum(access.count for access in accesses)
