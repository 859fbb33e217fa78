"""The virtual device: memory, modules, launches.

A launch runs its CTAs in waves of whole clusters, each as one wide SIMT machine (scheduler.py); a cooperative launch is one wave.
A kernel that can cancel clusters before they start (cluster launch control) gets smaller waves (state/queue.py).
A cluster of (1, 1, 1) means that the launch names none: the entry's .reqnctapercluster decides. The device
has no cache and no memory model weaker than sequential consistency: races show in the shadow tables, not in the values.

Not handled: streams (launches run at once, in order).
"""

from __future__ import annotations

import math
import operator
import time
import weakref
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from consan._errors import UsageError
from consan.backends.cpu.decode.special import LaunchInfo
from consan.backends.cpu.state.faults import GRID_BARRIER, Dim3, LaunchStats
from consan.backends.cpu.state.memory import CODE_BASE, RESERVED_SHARED, Arena
from consan.backends.cpu.state.queue import LaunchQueue, resident
from consan.backends.cpu.state.schedule import Schedule
from consan.backends.cpu.state.wave import Shape
from consan.instrument.ptx import Module

from .code import Plan
from .module import LoadedModule
from .scheduler import Scheduler
from .steered import schedule_of

# Wider waves cost more than they save: 64-bit temporaries of 16384 lanes leave the L2 cache, and malloc maps fresh pages for each.
WAVE_LANES = 8192
MAX_SHARED = 227 << 10
MAX_THREADS = 1024
MAX_GRID, MAX_BLOCK = ((1 << 31) - 1, 65535, 65535), (1024, 1024, 64)
MAX_CLUSTER = 16


class Machine:
    """One device whose memory persists across launches."""

    def __init__(self, *, sm: int = 90, sm_count: int = 4, arena: Arena | None = None) -> None:
        self.sm = sm
        self.sm_count = sm_count
        self.arena = arena or Arena()
        self._launches = 0
        self._frees = 0
        self._workspace: int | None = None
        self._last_code = CODE_BASE
        self._code_addresses: dict[tuple[int, str], int] = {}
        self.code_names: dict[int, tuple[LoadedModule, str]] = {}
        self._modules: weakref.WeakSet[LoadedModule] = weakref.WeakSet()
        self.on_ctas: Callable[[int, int], None] = lambda done, total: None  # called as CTAs of a launch end
        self.schedules: Callable[[int], Schedule] = schedule_of  # makes the schedule of a launch from its seed

    # Memory --------------------------------------------------------------------------------------------------------

    def alloc(self, nbytes: int, *, align: int = 256, name: str = "", separate: bool = False) -> int:
        """Allocate device memory; it reads as zero. `separate`: far from all other buffers."""
        return self.arena.alloc(nbytes, align, name, separate=separate).address

    def free(self, address: int) -> None:
        """Free what `alloc` gave."""
        self.arena.free(address)
        self._frees += 1

    def write(self, address: int, data: bytes | bytearray | memoryview | npt.NDArray[Any]) -> None:
        """Copy host bytes to the device."""
        raw = np.ascontiguousarray(data).reshape(-1).view(np.uint8) if isinstance(data, np.ndarray) else np.frombuffer(data, np.uint8)
        if raw.size:
            self.arena.span(address, raw.size)[...] = raw

    def read(self, address: int, nbytes: int) -> bytes:
        """Copy device bytes to the host."""
        return self.arena.span(address, nbytes).tobytes() if nbytes else b""

    def view(self, address: int, dtype: npt.DTypeLike, count: int) -> npt.NDArray[Any]:
        """Device memory as a host array, without a copy."""
        dtype = np.dtype(dtype)
        return self.arena.span(address, dtype.itemsize * count).view(dtype)

    def saved(self, most: int) -> Callable[[], None] | None:
        """Keep the program's memory, and how many launches there were: the result brings them back. None: it is more than `most` bytes."""
        memory, launches = self.arena.saved(most), self._launches

        def restore() -> None:
            assert memory is not None
            memory()
            self._launches = launches

        return None if memory is None else restore

    # Code ----------------------------------------------------------------------------------------------------------

    def load(self, ptx: str | Module, name: str = "<ptx>") -> LoadedModule:
        """Read a module and place its variables."""
        module = LoadedModule(self, ptx, name)
        self._modules.add(module)
        return module

    def renew(self) -> None:
        """Reset what launches and the host have written, so that the next launch runs as on a new machine.

        Allocations and modules stay where they are. Memory reads as zero, variables have their initial values.
        """
        self.arena.wipe()
        self.restart()
        for module in self._modules:
            module.renew()

    def restart(self) -> None:
        """Number launches (%gridid) from 1 again."""
        self._launches = 0

    def code_address(self, module: LoadedModule, name: str) -> int:
        """The address of a function, the same each time."""
        key = (id(module), name)
        if key not in self._code_addresses:
            self._last_code += 16
            address = self._code_addresses[key] = self._last_code
            self.code_names[address] = (module, name)
        return self._code_addresses[key]

    def forget_code(self, module: LoadedModule) -> None:
        """A module is unloaded: its functions have no addresses any more."""
        self.code_names = {address: owner for address, owner in self.code_names.items() if owner[0] is not module}
        self._code_addresses = {key: address for key, address in self._code_addresses.items() if address in self.code_names}

    # Launch --------------------------------------------------------------------------------------------------------

    def launch(
        self,
        module: LoadedModule,
        entry: str,
        grid: Dim3,
        block: Dim3,
        params: bytes,
        *,
        shared: int = 0,
        cluster: Dim3 = (1, 1, 1),
        seed: int = 0,
        timeout: float | None = None,
        cooperative: bool = False,
        first: int = 0,
    ) -> LaunchStats:
        """Run a kernel to its end, its first fault, a deadlock or the time limit. `first`: only so many CTAs start (0: all)."""
        started = time.monotonic()
        cluster = self._cluster(module, entry, grid, cluster)
        self._check(module, entry, grid, block, params, shared)
        self._launches += 1
        self.arena.surfaces.clear()
        stats = LaunchStats()
        deadline = None if timeout is None else started + timeout
        reach = module.reach(entry)
        address = module.param_block(reach.entry)
        self.write(address, params)
        static = reach.static_shared
        info = LaunchInfo(grid, block, self._launches, shared, static, RESERVED_SHARED, self.sm_count)
        info.grid_workspace = self._grid_workspace() if cooperative else 0
        info.explicit_cluster = math.prod(cluster) > 1 or module.entry(entry).explicit_cluster
        with np.errstate(all="ignore"):
            self._run_waves(module, entry, info, cluster, seed, deadline, stats, cooperative, first)
        stats.seconds = time.monotonic() - started
        words = np.frombuffer(params[: len(params) // 8 * 8], np.uint64).tolist()
        freed = [each.space == "global" and self.arena.was_freed(each.address, words) for each in stats.faults]
        stats.faults[:] = [replace(fault, freed=gone) for fault, gone in zip(stats.faults, freed, strict=True)]
        return stats

    def _grid_workspace(self) -> int:
        """Cleared memory for the barrier of a cooperative grid (its layout is cooperative groups' own)."""
        if self._workspace is None:
            self._workspace = self.alloc(64, name=GRID_BARRIER)
        self.write(self._workspace, bytes(64))
        return self._workspace

    @staticmethod
    def _cluster(module: LoadedModule, entry: str, grid: Dim3, cluster: Dim3) -> Dim3:
        """The cluster shape of a launch: its own, or else the one that the entry requires."""
        info = module.entry(entry)
        required = info.required_cluster
        if required is not None and cluster not in (required, (1, 1, 1)):
            raise UsageError(f"launch of {entry}: it requires clusters of {required} CTAs, not {cluster}")
        cluster = required or cluster
        most = min(MAX_CLUSTER, info.maxclusterrank or MAX_CLUSTER)
        if min(cluster) < 1 or math.prod(cluster) > most:
            raise UsageError(f"launch of {entry}: clusters of {cluster} CTAs are not possible, at most {most} CTAs are")
        if any(extent % size for extent, size in zip(grid, cluster, strict=True)):
            raise UsageError(f"launch of {entry}: a grid of {grid} CTAs is not a whole number of clusters of {cluster}")
        return cluster

    def _check(self, module: LoadedModule, entry: str, grid: Dim3, block: Dim3, params: bytes, shared: int) -> None:
        info = module.entry(entry)
        beyond = any(map(operator.gt, (*grid, *block), (*MAX_GRID, *MAX_BLOCK)))
        if beyond or min(grid) < 1 or min(block) < 1 or math.prod(block) > MAX_THREADS:
            raise UsageError(f"launch of {entry}: grid {grid} and block {block} are not possible")
        if info.reqntid and math.prod(block) != math.prod(info.reqntid):
            raise UsageError(f"launch of {entry}: it requires {info.reqntid} threads, not {block}")
        if len(params) < info.param_bytes:
            raise UsageError(f"launch of {entry}: {len(params)} bytes of parameters, it takes {info.param_bytes}")
        if shared < 0 or info.static_shared + shared > MAX_SHARED:
            raise UsageError(f"launch of {entry}: {info.static_shared + shared} bytes of shared memory, at most {MAX_SHARED}")

    def _run_waves(
        self,
        module: LoadedModule,
        entry: str,
        info: LaunchInfo,
        cluster: Dim3,
        seed: int,
        deadline: float | None,
        stats: LaunchStats,
        cooperative: bool,
        first: int,
    ) -> None:
        members = math.prod(cluster)
        whole, threads = math.prod(info.grid) // members, math.prod(info.block) * members
        clusters = min(whole, first // members or whole)
        stats.left_out = (whole - clusters) * members
        schedule, reach = self.schedules(seed), module.reach(entry)
        widest = clusters if cooperative else max(1, WAVE_LANES // threads)
        size = -(-clusters // -(-clusters // widest))
        queue = LaunchQueue(info.grid, cluster, end=clusters)
        while waiting := clusters - queue.first:
            if queue.first and deadline is not None and time.monotonic() > deadline:  # a short wave ends before it looks at the clock
                stats.timed_out, stats.unstarted = True, waiting * members
                return
            started = min(size, resident(seed, waiting) if reach.takes_clusters else waiting)
            local = reach.static_local + reach.dynamic_local
            shape = Shape(info.block, started * members, info.static_shared + info.dynamic_shared, local, cluster)
            plan = module.plan(entry, shape, by_events=schedule.perturbs)
            info.first_cta = queue.first * members
            self.on_ctas(info.first_cta, clusters * members)
            queue.first += started
            ended = self._run_wave(plan, info, schedule, queue, deadline, stats)
            stats.cancelled = queue.cancelled * members
            if not ended:
                stats.unstarted = (clusters - queue.first) * members
                return

    def _run_wave(
        self, plan: Plan, info: LaunchInfo, schedule: Schedule, queue: LaunchQueue, deadline: float | None, stats: LaunchStats
    ) -> bool:
        plan.wave.start(info.first_cta, info.grid, self.sm_count)
        plan.specials.refresh(info)
        plan.start_launch(self._frees)
        plan.start_wave(schedule)
        plan.queue = queue
        return Scheduler(plan, schedule, deadline, stats).run()
