"""Special registers (PTX ISA, "Special Registers"): read-only arrays, one item per lane, refreshed for every wave.

Without clusters, each CTA is a cluster by itself. %clock and its kin are read when the instruction
runs and are the same for all its lanes. Not handled: %pm counters, and %envreg except the two that
cooperative groups use.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from consan.backends.cpu.state.faults import Dim3
from consan.backends.cpu.state.wave import Wave
from consan.dataclass import dataclass

Array = npt.NDArray[Any]


@dataclass
class LaunchInfo:
    """The special registers that are the same for every thread of a launch."""

    grid: Dim3 = (1, 1, 1)
    block: Dim3 = (1, 1, 1)
    gridid: int = 0
    dynamic_shared: int = 0
    static_shared: int = 0
    reserved_shared: int = 1024
    sm_count: int = 1
    first_cta: int = 0
    explicit_cluster: bool = False
    grid_workspace: int = 0  # address of the grid barrier of a cooperative launch; 0 in other launches


Reader = Callable[[Wave, LaunchInfo], Any]
_ALL = 0xFFFFFFFF


def _axes(name: str, read: Callable[[Wave, LaunchInfo], tuple[Any, ...]]) -> dict[str, Reader]:
    def reader(axis: int) -> Reader:
        return lambda wave, info: read(wave, info)[axis]

    return {f"%{name}.{letter}": reader(axis) for axis, letter in enumerate("xyz")}


def _shifted(wave: Wave) -> Array:
    return np.asarray(np.left_shift(np.uint32(1), wave.warps.lane))


READERS: dict[str, Reader] = {
    **_axes("tid", lambda w, i: w.registers.tid),
    **_axes("ntid", lambda w, i: i.block),
    **_axes("ctaid", lambda w, i: w.registers.ctaid),
    **_axes("nctaid", lambda w, i: i.grid),
    **_axes("clusterid", lambda w, i: w.registers.clusterid),
    **_axes("nclusterid", lambda w, i: tuple(n // c for n, c in zip(i.grid, w.shape.cluster, strict=True))),
    **_axes("cluster_ctaid", lambda w, i: w.registers.cluster_ctaid),
    **_axes("cluster_nctaid", lambda w, i: w.shape.cluster),
    "%cluster_ctarank": lambda w, i: w.rank,
    "%cluster_nctarank": lambda w, i: w.cluster_size,
    "%is_explicit_cluster": lambda w, i: i.explicit_cluster,
    "%laneid": lambda w, i: w.warps.lane,
    "%warpid": lambda w, i: w.warps.in_cta,
    "%nwarpid": lambda w, i: 64,
    "%smid": lambda w, i: w.registers.smid,
    "%nsmid": lambda w, i: i.sm_count,
    "%gridid": lambda w, i: i.gridid,
    "%lanemask_eq": lambda w, i: _shifted(w),
    "%lanemask_lt": lambda w, i: _shifted(w) - np.uint32(1),
    "%lanemask_le": lambda w, i: (_shifted(w) - np.uint32(1)) | _shifted(w),
    "%lanemask_gt": lambda w, i: ~((_shifted(w) - np.uint32(1)) | _shifted(w)),
    "%lanemask_ge": lambda w, i: ~(_shifted(w) - np.uint32(1)),
    "%dynamic_smem_size": lambda w, i: i.dynamic_shared,
    "%total_smem_size": lambda w, i: i.static_shared + i.dynamic_shared,
    "%aggr_smem_size": lambda w, i: i.static_shared + i.dynamic_shared + i.reserved_shared,
    "%reserved_smem_offset_begin": lambda w, i: 0,
    "%reserved_smem_offset_end": lambda w, i: i.reserved_shared,
    "%reserved_smem_offset_cap": lambda w, i: i.reserved_shared,
    "%reserved_smem_offset_0": lambda w, i: 0,
    "%reserved_smem_offset_1": lambda w, i: 0,
    "%current_graph_exec": lambda w, i: 0,
    # The driver's: cooperative groups find the workspace of a grid's barrier in these two.
    "%envreg1": lambda w, i: i.grid_workspace >> 32,
    "%envreg2": lambda w, i: i.grid_workspace & _ALL,
}  # fmt: skip
WIDE = frozenset({"%gridid", "%current_graph_exec"})
PREDICATES = frozenset({"%is_explicit_cluster"})

_START = time.perf_counter_ns()


def _nanoseconds() -> int:
    return time.perf_counter_ns() - _START


CLOCKS: dict[str, Callable[[], int]] = {
    "%clock": lambda: _nanoseconds() & _ALL,
    "%clock_hi": lambda: _nanoseconds() >> 32,
    "%clock64": _nanoseconds,
    "%globaltimer": time.time_ns,
    "%globaltimer_lo": lambda: time.time_ns() & _ALL,
    "%globaltimer_hi": lambda: time.time_ns() >> 32,
}


class SpecialRegisters:
    """The special registers that decoded code uses, as arrays that decoded steps keep."""

    def __init__(self, wave: Wave) -> None:
        self.wave = wave
        self.info = LaunchInfo()
        self.arrays: dict[str, Array] = {}

    def get(self, name: str) -> Array | None:
        """The array of a special register; None if there is no such register."""
        if name not in self.arrays:
            reader = READERS.get(name)
            if reader is None:
                return None
            dtype = np.uint64 if name in WIDE else np.bool_ if name in PREDICATES else np.uint32
            self.arrays[name] = np.zeros(self.wave.lanes, dtype)
            self.arrays[name][...] = reader(self.wave, self.info)
        return self.arrays[name]

    def refresh(self, info: LaunchInfo) -> None:
        """A new wave starts."""
        self.info = info
        for name, array in self.arrays.items():
            array[...] = READERS[name](self.wave, info)
