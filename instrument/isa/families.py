"""Groups of families: what the passes and the virtual machine ask of a row besides its own columns."""

from __future__ import annotations

from typing import Final

__all__ = ["BARRIERS", "COPIES", "FENCES", "SYNCHRONISING"]

BARRIERS: Final = frozenset({"barrier", "warp-barrier", "cluster-barrier"})
"""Barriers of a CTA, a warp or a cluster, with their arrivals and waits."""

FENCES: Final = frozenset({"fence", "proxy-fence", "mbarrier-fence"})
"""Fences order accesses of the executing thread."""

SYNCHRONISING: Final = BARRIERS | FENCES | {"mbarrier"}
"""All that may order accesses of two threads, except strong accesses."""

COPIES: Final = frozenset({"cp.async", "cp.async.commit", "cp.async.wait", "bulk", "tensor"})
"""Asynchronous copies, the commits of their groups, and the waits for groups."""
