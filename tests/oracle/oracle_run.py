"""Both verdicts of a kernel: the oracle's over a plain run, and consan's over an instrumented one."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from types import SimpleNamespace
from typing import Any

from oracle_lanes import ALL, WARP, Ways, came_to, divergent_points, is_point, lines_of
from oracle_passes import check
from oracle_trace import Trace, recording
from oracle_verdict import Verdict

from consan import api
from consan.backends.cpu import LaunchStats
from consan.backends.cpu.state.faults import Blocked
from consan.backends.cpu.state.wave import Wave
from consan.backends.virtual import VirtualBackend
from consan.instrument.rewriting.ranked import ranked
from consan.launching.entries import choose_entry
from consan.launching.placement import placed
from consan.launching.values import arguments


def with_endings(verdict: Verdict, stats: LaunchStats) -> Verdict:
    """The verdict with what stopped the machine; a deadlock is one of its own."""
    if stats.deadlocked:
        verdict.kinds.add("deadlock")
    verdict.kinds |= {fault.kind for fault in stats.faults}
    return verdict


def with_divergence(verdict: Verdict, trace: Trace, stats: LaunchStats) -> Verdict:
    """The verdict with the points that some lanes of a warp do not reach."""
    for number, ((wave, _), ways) in enumerate(zip(trace.waves, trace.ways, strict=True)):
        if ways.code is None:
            continue
        last = number == len(trace.waves) - 1
        _note_parked(wave, ways, stats.blocked if last else ())
        for cta in range(wave.shape.ctas):
            lanes = range(cta * wave.shape.threads, (cta + 1) * wave.shape.threads)
            found = divergent_points(ways, lanes)
            if found:
                verdict.divergences.append(found)
                verdict.undefined |= lines_of(ways, lanes).union(*found)
    return verdict


def _note_parked(wave: Wave, ways: Ways, blocked: Iterable[Blocked]) -> None:
    """Lanes that wait for others before an instruction have come to it, and did not run it."""
    assert ways.code is not None
    instructions = {one.line: one for one in ways.code.instructions}
    for each in blocked:
        if each.why == "warp-collective" and is_point(instructions[each.ptx_line]):
            first = next(lane for lane in range(0, wave.lanes, wave.shape.threads) if wave.ctaid_of(lane) == each.ctaid) + WARP * each.warp
            for lane in (first + k for k in range(WARP) if each.lanes >> k & 1):
                mask = ways.masks.get((lane, each.ptx_line), ALL)
                if (came := came_to(instructions[each.ptx_line], mask)) is not None:
                    ways.points.setdefault(lane, []).append(came)


def parameters(placement: Any, kernel: Any, args: Sequence[Any]) -> Any:
    """The parameters of a launch, with arrays in the machine's memory."""
    return placement.parameters(arguments(kernel.function, args), "argument")


def start(
    handle: Any, kernel: Any, grid: Any, block: Any, args: Sequence[Any], *, backend: VirtualBackend, smem: int = 0, seed: int = 0
) -> LaunchStats:
    """Run a loaded kernel as it is."""
    holder: Any = SimpleNamespace(backend=backend, device_lost=False)
    with placed(holder) as placement:
        values = parameters(placement, kernel, args)
        return backend.launch(handle, kernel.entry, api.dim3(grid), api.dim3(block), values, shared=smem, seed=seed, timeout=60)


def recorded(
    kernel: Any, grid: Any, block: Any, args: Sequence[Any] = (), *, smem: int = 0, seed: int = 0, global_memory: bool = False
) -> tuple[Trace, LaunchStats]:
    """Run the plain kernel: its events, and how it ended."""
    backend = VirtualBackend()
    with recording(global_memory=global_memory) as trace:
        return trace, start(backend.load(kernel.module.text), kernel, grid, block, args, backend=backend, smem=smem, seed=seed)


def oracle(
    kernel: Any, grid: Any, block: Any, args: Sequence[Any] = (), *, smem: int = 0, seed: int = 0, global_memory: bool = False,
    ranks: int = 1,
) -> Verdict:  # fmt: skip
    """Run the plain kernel and judge its events; `global_memory`: those in global memory too; `ranks`: with arguments for each."""
    if ranks > 1:
        kernel, grid, args = copy.copy(kernel), (grid, 1, ranks), [value for each in args for value in each]
        kernel.module = ranked(kernel.module, kernel.entry, ranks, (grid[0], 1, 1))
        kernel.function = choose_entry(kernel.module, kernel.entry, kernel.name)
    trace, stats = recorded(kernel, grid, block, args, smem=smem, seed=seed, global_memory=global_memory)
    trace.ranks = ranks
    return with_endings(with_divergence(check(trace), trace, stats), stats)
