"""Groups of families: what the passes and the virtual machine ask of a row besides its own columns."""

from __future__ import annotations

from typing import Final

__all__ = ["BARRIERS", "COPIES", "FENCES", "SYNCHRONISING"]

BARRIERS: Final = frozenset({"barrier", "warp-barrier", "cluster-barrier"})
"""Threads meet there, or arrive for a meeting."""

FENCES: Final = frozenset({"fence", "proxy-fence", "mbarrier-fence"})
"""They order what the thread itself does."""

SYNCHRONISING: Final = BARRIERS | FENCES | {"mbarrier"}
"""Whatever may order accesses of two threads, but for accesses that are strong themselves."""

COPIES: Final = frozenset({"cp.async", "cp.async.commit", "cp.async.wait", "bulk", "tensor"})
"""Asynchronous copies, their groups and the waits for these."""
