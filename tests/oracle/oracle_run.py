"""Both verdicts of a kernel: the oracle's over a plain run, and consan's over an instrumented one."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from oracle_passes import check
from oracle_trace import recording
from oracle_verdict import Verdict

from consan import api
from consan.backends.cpu import LaunchStats
from consan.backends.virtual import VirtualBackend


def with_endings(verdict: Verdict, stats: LaunchStats) -> Verdict:
    """The verdict with what stopped the machine; a deadlock is one of its own."""
    if stats.deadlocked:
        verdict.kinds.add("deadlock")
    verdict.kinds |= {fault.kind for fault in stats.faults}
    return verdict


def start(
    handle: Any, kernel: Any, grid: Any, block: Any, args: Sequence[Any], *, backend: VirtualBackend, smem: int = 0, seed: int = 0
) -> LaunchStats:
    """Run a loaded kernel as it is."""
    holder: Any = SimpleNamespace(backend=backend, device_lost=False)
    with api._arguments(holder, kernel.function, args) as values:
        return backend.launch(handle, kernel.entry, api._dim3(grid), api._dim3(block), values, shared=smem, seed=seed, timeout=60)


def oracle(kernel: Any, grid: Any, block: Any, args: Sequence[Any] = (), *, smem: int = 0, seed: int = 0) -> Verdict:
    """Run the plain kernel and judge its events."""
    backend = VirtualBackend()
    with recording() as trace:
        stats = start(backend.load(kernel.ptx), kernel, grid, block, args, backend=backend, smem=smem, seed=seed)
    return with_endings(check(trace), stats)
