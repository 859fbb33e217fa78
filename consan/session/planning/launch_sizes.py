"""Launches that are too large for their global memory to be looked at unasked, and why."""

from __future__ import annotations

import math
from typing import Final

from consan._errors import UsageError
from consan.backends.base import Backend, Dim3, Handle
from consan.instrument.effects import LANES
from consan.instrument.record import Recorded

MOST_WARPS: Final = 1 << 17  # of a launch on a GPU whose global memory is looked at, unless `--global on` asks for more: each has a log
MOST_TOGETHER: Final = 1 << 13  # CTAs that are replayed together, unless `--global on` asks for more
MOST_WARPS_TOGETHER: Final = 1 << 16  # of these: a replay takes about 0.13 ms and 80 KB a warp


def too_many(recorded: Recorded, kernel: int, ctas: int, threads: int) -> str:
    """Why a launch is too large for global memory to be looked at unasked; empty if it is not."""
    if recorded.kernels[kernel].waits_together and (why := too_many_together(ctas, threads)):
        return why
    return too_many_warps(ctas, threads) if recorded.kernels[kernel].has_global and recorded.leaves else ""


def too_many_together(ctas: int, threads: int) -> str:
    """Why CTAs that may synchronise through memory are not replayed together unasked; empty if they are. `threads`: of a CTA."""
    if ctas <= most_together(threads):
        return ""
    what = f"{ctas:,} CTAs" if ctas > MOST_TOGETHER else f"the {warps_of(ctas, threads):,} warps of {ctas:,} CTAs"
    return f"{what} that may synchronise through memory are too many to be replayed together (--global on does)"


def most_together(threads: int) -> int:
    """CTAs that are replayed together unasked. `threads`: of a CTA."""
    return min(MOST_TOGETHER, max(1, MOST_WARPS_TOGETHER // warps_of(1, threads)))


def too_many_warps(ctas: int, threads: int) -> str:
    """Why global memory is not in the logs of a launch on a GPU unasked; empty if it is."""
    warps = warps_of(ctas, threads)
    return f"{warps:,} warps are too many for logs with global memory on a GPU (--global on makes them)" if warps > MOST_WARPS else ""


def warps_of(ctas: int, threads: int) -> int:
    """The warps of a launch. `threads`: of a CTA."""
    return ctas * -(-threads // LANES)


def check_residency(backend: Backend, handle: Handle, entry: str, grid: Dim3, block: Dim3, shared: int) -> None:
    """Refuse a cooperative launch whose CTAs do not fit the device together: UsageError."""
    room = backend.resident_ctas(handle, entry, math.prod(block), shared)
    if room is not None and math.prod(grid) > room:
        raise UsageError(f"{entry}: a cooperative launch of {math.prod(grid)} CTAs does not fit the device with hooks ({room} do)")
