"""The threads of a wave: which lane is which thread of which CTA, who is still alive, and where its memory windows lie.

A wave is as many CTAs as run together, in whole clusters: the CTAs of one cluster follow each other by rank. Lanes are
numbered CTA by CTA in order of %tid without padding, so that the arrays hold threads only; `Warps.slots` maps warps to lanes for
the instructions that work on whole warps.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import numpy.typing as npt

from consan.dataclass import dataclass

from .faults import Dim3
from .memory import RANK_SHIFT, RESERVED_SHARED, Arena

Array = npt.NDArray[Any]
WARP = 32


@dataclass(frozen=True)
class Shape:
    """Waves with equal keys share decoded code: the key has everything that arrays are sized or indexed by."""

    block: Dim3
    ctas: int
    shared_bytes: int  # without the reserved KiB
    local_bytes: int  # per thread
    cluster: Dim3 = (1, 1, 1)

    @property
    def threads(self) -> int:
        """Threads of one CTA."""
        return self.block[0] * self.block[1] * self.block[2]

    @functools.cached_property
    def cluster_size(self) -> int:
        """CTAs of one cluster."""
        return self.cluster[0] * self.cluster[1] * self.cluster[2]

    @property
    def clusters(self) -> int:
        """Clusters of the wave."""
        return self.ctas // self.cluster_size


def _coordinates(linear: Array, extent: Dim3) -> tuple[Array, Array, Array]:
    x = linear % extent[0]
    rest = linear // extent[0]
    return x.astype(np.uint32), (rest % extent[1]).astype(np.uint32), (rest // extent[1]).astype(np.uint32)


class Warps:
    """The lanes as warps. `slots`: warps x 32, the lane of each thread; where a warp has fewer threads, `present` is false."""

    def __init__(self, threads: int, ctas: int) -> None:
        lanes = np.arange(threads * ctas)
        linear = lanes % threads
        self.per_cta = -(-threads // WARP)
        self.count = self.per_cta * ctas
        self.lane = (linear % WARP).astype(np.uint32)
        self.in_cta = (linear // WARP).astype(np.uint32)
        self.of_lane = lanes // threads * self.per_cta + self.in_cta
        self.aligned = threads % WARP == 0
        self.slot_of = self.of_lane * WARP + self.lane
        self.slots, self.present = (np.zeros((self.count, WARP), kind) for kind in (np.intp, np.bool_))
        self.slots.reshape(-1)[self.slot_of] = lanes
        self.present.reshape(-1)[self.slot_of] = True
        self.start()

    def start(self) -> None:
        """All threads are alive. `live`: how many are, of each warp; `live_in_ctas`: in how many warps of each CTA some are."""
        self.live = np.bincount(self.of_lane, minlength=self.count)
        self.live_in_ctas = np.full(self.count // self.per_cta, self.per_cta)

    def retire(self, lanes: npt.NDArray[np.intp]) -> None:
        """The threads of `lanes` have exited."""
        self.live -= np.bincount(self.of_lane[lanes], minlength=self.count)
        self.live_in_ctas = (self.live.reshape(-1, self.per_cta) > 0).sum(1)

    def masks(self, lanes: npt.NDArray[np.intp]) -> npt.NDArray[np.uint32]:
        """For each warp, the mask of its lanes that are among `lanes`."""
        flags = np.zeros(self.count * WARP, np.bool_)
        flags[self.slot_of[lanes]] = True
        return np.packbits(flags, bitorder="little").view(np.uint32)


class Windows:
    """The shared memory of the CTAs, `stride` bytes apart, and the local memory of the threads: from `shared` and `local` on in the arena.

    `shared_units`, `local_units`: the start of each lane's window in units of 1, 2, 4, 8 and 16 bytes; the shared one begins after the
    reserved KiB. `rank_bits`: of the rank, in an address of the CTA's own shared memory.
    """

    def __init__(self, arena: Arena, shape: Shape, cta_of: npt.NDArray[np.intp]) -> None:
        self._arena, self.reserved = arena, RESERVED_SHARED
        self.rank_bits = (cta_of % shape.cluster_size).astype(np.uint32) << np.uint32(RANK_SHIFT)
        self.stride = -(-(shape.shared_bytes + 16) // 128) * 128
        self._shared_bytes = self.stride * shape.ctas
        self.shared = arena.reserve(self._shared_bytes)
        local = -(-shape.local_bytes // 16) * 16
        self.local = arena.reserve(max(local, 16) * len(cta_of))
        shared_start, local_start = self.shared + cta_of * self.stride, self.local + np.arange(len(cta_of)) * local
        self.shared_units, self.local_units = ([start >> k for k in range(5)] for start in (shared_start, local_start))

    def cta_at(self, offset: int) -> int:
        """The CTA of the wave whose shared memory holds the arena's byte at `offset`."""
        return (offset - self.shared) // self.stride

    def start(self) -> None:
        """Zero shared memory: it is the same on every run."""
        self._arena.raw[self.shared : self.shared + self._shared_bytes] = 0

    def release(self) -> None:
        """Give the windows back to the arena."""
        self._arena.release(self.shared)
        self._arena.release(self.local)


class Scratch:
    """Arrays of an item for each lane: zeros, which nobody changes, and those that hold something for the time of one step."""

    def __init__(self, lanes: int) -> None:
        self._lanes = lanes
        self.zeros64, self.items64 = np.zeros(lanes, np.uint64), np.zeros(lanes, np.uint64)
        self.zeros32, self.items32 = np.zeros(lanes, np.uint32), np.zeros(lanes, np.uint32)
        self.index = np.zeros(lanes, np.int64)
        self._temporaries: dict[np.dtype[Any], Array] = {}

    def temporary(self, dtype: np.dtype[Any]) -> Array:
        """An array of this type."""
        if dtype not in self._temporaries:
            self._temporaries[dtype] = np.empty(self._lanes, dtype)
        return self._temporaries[dtype]


class Registers:
    """The special registers that say where each lane is, in three dimensions but for `smid`."""

    def __init__(self, shape: Shape, cta_of: npt.NDArray[np.intp]) -> None:
        self._shape, self._cta_of = shape, cta_of
        self.tid = _coordinates(np.arange(len(cta_of)) % shape.threads, shape.block)
        self.cluster_ctaid = _coordinates(cta_of % shape.cluster_size, shape.cluster)
        self.clusterid, self.ctaid = (tuple(np.zeros(len(cta_of), np.uint32) for _ in range(3)) for _ in range(2))
        self.smid = np.zeros(len(cta_of), np.uint32)

    def start(self, first_cta: int, grid: Dim3, sm_count: int) -> None:
        """The lanes become the threads of the CTAs from `first_cta` on."""
        cluster, ctas = self._shape.cluster, self._cta_of + first_cta
        x, y, z = (extent // ctas_along for extent, ctas_along in zip(grid, cluster, strict=True))
        for axis, of_axis in enumerate(_coordinates(ctas // self._shape.cluster_size, (x, y, z))):
            self.clusterid[axis][...] = of_axis
            self.ctaid[axis][...] = of_axis * np.uint32(cluster[axis]) + self.cluster_ctaid[axis]
        self.smid[...] = ctas % sm_count


class Wave:
    """The lanes of one wave: geometry, liveness and windows.

    `sp`: the top of each thread's dynamic local stack. `changed`: whether an atomic of the kernel has changed memory since somebody asked
    (by setting it to False); None while nobody asks.
    """

    def __init__(self, arena: Arena, shape: Shape) -> None:
        self.arena, self.shape = arena, shape
        self.lanes = shape.threads * shape.ctas
        self.ids: npt.NDArray[np.intp] = np.arange(self.lanes)
        self.cta_of = self.ids // shape.threads
        self.cluster_of = self.cta_of // shape.cluster_size
        self.rank = (self.cta_of % shape.cluster_size).astype(np.uint32)
        self.warps = Warps(shape.threads, shape.ctas)
        self.windows = Windows(arena, shape, self.cta_of)
        self.scratch = Scratch(self.lanes)
        self.registers = Registers(shape, self.cta_of)
        self.sp = np.zeros(self.lanes, np.uint32)
        self.changed: bool | None = None
        self.live, self.alive = np.ones(self.lanes, np.bool_), self.lanes
        self.start(0, shape.cluster, 1)

    @property
    def cluster_size(self) -> int:
        """CTAs of one cluster."""
        return self.shape.cluster_size

    def start(self, first_cta: int, grid: Dim3, sm_count: int) -> None:
        """Make the lanes the threads of the CTAs from `first_cta` on, all alive."""
        self.registers.start(first_cta, grid, sm_count)
        self.warps.start()
        self.windows.start()
        self.live, self.alive = np.ones(self.lanes, np.bool_), self.lanes
        self.changed = None
        self.sp[...] = 0

    def retire(self, lanes: npt.NDArray[np.intp]) -> None:
        """The threads of `lanes` have exited."""
        self.live[lanes] = False
        self.alive -= len(lanes)
        if self.alive:
            self.warps.retire(lanes)

    def live_masks(self) -> npt.NDArray[np.uint32]:
        """For each warp, the mask of its threads that have not exited."""
        return self.warps.masks(self.live.nonzero()[0])

    def ctaid_of(self, lane: int) -> Dim3:
        """%ctaid of a lane."""
        x, y, z = (int(axis[lane]) for axis in self.registers.ctaid)
        return x, y, z

    def tid_of(self, lane: int) -> Dim3:
        """%tid of a lane."""
        x, y, z = (int(axis[lane]) for axis in self.registers.tid)
        return x, y, z
