"""Groups of families: what the passes and the virtual machine ask of a row besides its own columns."""

from __future__ import annotations

from typing import Final

__all__ = ["ACTING", "BARRIERS", "COPIES", "ELSEWHERE", "HARMLESS", "QUIET", "STEADY", "SYNCHRONISING", "UNRECORDED"]

BARRIERS: Final = frozenset({"barrier", "warp-barrier", "cluster-barrier"})
"""Barriers of a CTA, a warp or a cluster, with their arrivals and waits."""

FENCES: Final = frozenset({"fence", "proxy-fence", "mbarrier-fence"})
"""Fences order accesses of the executing thread."""

SYNCHRONISING: Final = BARRIERS | FENCES | {"mbarrier"}
"""All that may order accesses of two threads, except strong accesses."""

_ADDRESSES: Final = frozenset({"arithmetic", "address"})

HARMLESS: Final = _ADDRESSES | {"load", "warp-collective", "cluster-address", "fence"}
"""No other thread notices that a thread has executed them."""

UNRECORDED: Final = _ADDRESSES | {"fence", "special"}
"""They leave nothing in a log."""

QUIET: Final = _ADDRESSES | FENCES | {"control", "load", "cluster-address", "special"}
"""A thread alone may repeat them in a loop that waits."""

STEADY: Final = QUIET | {"ldmatrix", "warp-collective", "mma", "cache"}
"""They change no memory."""

ELSEWHERE: Final = frozenset({"texture", "surface", "multimem", "wmma", "call"})
"""They reach memory in ways that the text does not show."""

COPIES: Final = frozenset({"cp.async", "cp.async.commit", "cp.async.wait", "bulk", "tensor"})
"""Asynchronous copies, the commits of their groups, and the waits for groups."""

_WRITES: Final = frozenset({"store", "atomic", "reduction", "stmatrix", "wmma", "multimem", "surface"})
ACTING: Final = _WRITES | BARRIERS | COPIES | {"call", "wgmma", "tcgen05", "mbarrier"}
"""Effects that others may notice: writes, synchronisation, asynchronous operations."""
