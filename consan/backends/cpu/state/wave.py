"""The threads of a wave: which lane is which thread of which CTA, who is still alive, and where its memory windows lie.

A wave is as many CTAs as run together, in whole clusters: the CTAs of one cluster follow each other by rank. Lanes are
numbered CTA by CTA in order of %tid without padding, so that the arrays hold live threads only; `slots` maps warps to lanes for
the instructions that work on whole warps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

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

    @property
    def cluster_size(self) -> int:
        """CTAs of one cluster."""
        return self.cluster[0] * self.cluster[1] * self.cluster[2]


def _coordinates(linear: Array, extent: Dim3) -> tuple[Array, Array, Array]:
    x = linear % extent[0]
    rest = linear // extent[0]
    return x.astype(np.uint32), (rest % extent[1]).astype(np.uint32), (rest // extent[1]).astype(np.uint32)


class Wave:
    """Geometry, liveness and windows of the lanes of one wave."""

    def __init__(self, arena: Arena, shape: Shape) -> None:
        self.arena = arena
        self.shape = shape
        threads, ctas = shape.threads, shape.ctas
        self.lanes = threads * ctas
        self.warps_per_cta = -(-threads // WARP)
        self.warps = self.warps_per_cta * ctas
        self.ids: npt.NDArray[np.intp] = np.arange(self.lanes)
        linear = self.ids % threads
        self.cta_of = self.ids // threads
        self.tid = _coordinates(linear, shape.block)
        self.lane_in_warp = (linear % WARP).astype(np.uint32)
        self.warp_in_cta = (linear // WARP).astype(np.uint32)
        self.warp_of = self.cta_of * self.warps_per_cta + self.warp_in_cta
        self.aligned = threads % WARP == 0
        self.slot_of = self.warp_of * WARP + self.lane_in_warp
        self._lay_out_slots()
        self._lay_out_clusters()
        self._lay_out_windows()
        self.zeros64 = np.zeros(self.lanes, np.uint64)
        self.zeros32 = np.zeros(self.lanes, np.uint32)
        self.scratch64 = np.zeros(self.lanes, np.uint64)
        self.scratch32 = np.zeros(self.lanes, np.uint32)
        self.scratch_index = np.zeros(self.lanes, np.int64)
        self._temporaries: dict[np.dtype[Any], Array] = {}
        self.sp = np.zeros(self.lanes, np.uint32)  # top of each thread's dynamic local stack
        self.clusterid = tuple(np.zeros(self.lanes, np.uint32) for _ in range(3))
        self.ctaid = tuple(np.zeros(self.lanes, np.uint32) for _ in range(3))
        self.smid = np.zeros(self.lanes, np.uint32)
        self.watched = self.changed = False  # while `watched`, `changed` notes that an atomic of the kernel has changed memory
        self.start(0, shape.cluster, 1)

    def _lay_out_slots(self) -> None:
        slots = np.zeros(self.warps * WARP, np.intp)
        slots[self.slot_of] = self.ids
        self.slots = slots.reshape(self.warps, WARP)
        present = np.zeros(self.warps * WARP, np.bool_)
        present[self.slot_of] = True
        self.present = present.reshape(self.warps, WARP)

    def _lay_out_clusters(self) -> None:
        size = self.cluster_size = self.shape.cluster_size
        rank = self.cta_of % size
        self.rank = rank.astype(np.uint32)
        self.rank_bits = self.rank << np.uint32(RANK_SHIFT)  # the rank's bits in an address of the CTA's own shared memory
        self.cluster_of = self.cta_of // size
        self.clusters = self.shape.ctas // size
        self.cluster_ctaid = _coordinates(rank, self.shape.cluster)

    def _lay_out_windows(self) -> None:
        shape, arena = self.shape, self.arena
        stride = -(-(shape.shared_bytes + 16) // 128) * 128
        self.shared_stride = stride
        self.shared_offset = arena.reserve(stride * shape.ctas)
        local = -(-shape.local_bytes // 16) * 16
        self.local_offset = arena.reserve(max(local, 16) * self.lanes)
        shared_start = self.shared_offset + self.cta_of * stride
        local_start = self.local_offset + self.ids * local
        # The start of each lane's window in units of 1, 2, 4, 8 and 16 bytes; the shared one begins after the reserved KiB.
        self.shared_units = [shared_start >> k for k in range(5)]
        self.local_units = [local_start >> k for k in range(5)]
        self.reserved = RESERVED_SHARED

    def temporary(self, dtype: np.dtype[Any]) -> Array:
        """An array of an item for each lane, for the time of one step."""
        if dtype not in self._temporaries:
            self._temporaries[dtype] = np.empty(self.lanes, dtype)
        return self._temporaries[dtype]

    def release(self) -> None:
        """Give the windows back to the arena."""
        self.arena.release(self.shared_offset)
        self.arena.release(self.local_offset)

    def start(self, first_cta: int, grid: Dim3, sm_count: int) -> None:
        """Make the lanes the threads of the CTAs from `first_cta` on, all alive."""
        x, y, z = self.shape.cluster
        clusters = _coordinates(self.cluster_of + first_cta // self.cluster_size, (grid[0] // x, grid[1] // y, grid[2] // z))
        for axis, (cluster, inside) in enumerate(zip(clusters, self.cluster_ctaid, strict=True)):
            self.clusterid[axis][...] = cluster
            self.ctaid[axis][...] = cluster * np.uint32(self.shape.cluster[axis]) + inside
        self.smid[...] = (self.cta_of + first_cta) % sm_count
        self.live = np.ones(self.lanes, np.bool_)
        self.watched = False
        self.alive = self.lanes
        self.warp_live = np.bincount(self.warp_of, minlength=self.warps)
        self.cta_live_warps = np.full(self.shape.ctas, self.warps_per_cta)
        self.sp[...] = 0
        self.arena.raw[self.shared_offset : self.shared_offset + self.shared_stride * self.shape.ctas] = 0  # the same on every run

    def cta_at(self, offset: int) -> int:
        """The CTA of the wave whose shared memory holds the arena's byte at `offset`."""
        return (offset - self.shared_offset) // self.shared_stride

    def retire(self, lanes: npt.NDArray[np.intp]) -> None:
        """The threads of `lanes` have exited."""
        self.live[lanes] = False
        self.alive -= len(lanes)
        if self.alive == 0:
            return
        self.warp_live -= np.bincount(self.warp_of[lanes], minlength=self.warps)
        self.cta_live_warps = (self.warp_live.reshape(-1, self.warps_per_cta) > 0).sum(1)

    def warp_masks(self, lanes: npt.NDArray[np.intp]) -> npt.NDArray[np.uint32]:
        """For each warp of the wave, the mask of its lanes that are among `lanes`."""
        flags = np.zeros(self.warps * WARP, np.bool_)
        flags[self.slot_of[lanes]] = True
        return np.packbits(flags, bitorder="little").view(np.uint32)

    def live_masks(self) -> npt.NDArray[np.uint32]:
        """For each warp, the mask of its threads that have not exited."""
        return self.warp_masks(self.live.nonzero()[0])

    def ctaid_of(self, lane: int) -> Dim3:
        """%ctaid of a lane."""
        x, y, z = (int(axis[lane]) for axis in self.ctaid)
        return x, y, z

    def tid_of(self, lane: int) -> Dim3:
        """%tid of a lane."""
        x, y, z = (int(axis[lane]) for axis in self.tid)
        return x, y, z
