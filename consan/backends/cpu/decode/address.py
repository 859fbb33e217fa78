"""Maps an address operand to items of the arena: bounds, alignment, windows (PTX ISA, "State Spaces", "Generic Addressing").

A locator turns the address registers of lanes into a NumPy view and item indices. The common case costs
one addition, one reduction and one shift: relative to the start of the last allocation that the instruction hit, the OR
of all offsets bounds them all and shows misaligned ones. Only accesses that fail this test get the exact check. In a cluster of
several CTAs the same test finds accesses to the lane's own shared memory.

Faults raise `LaneError` for the first offending lane.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from consan.backends.cpu.state.faults import LaneError, StepSite
from consan.backends.cpu.state.memory import GLOBAL_BASE, LOCAL_WINDOW, RANK_SHIFT, SHARED_WINDOW, WINDOW_SIZE
from consan.backends.cpu.state.wave import Wave

Array = npt.NDArray[Any]
Located = tuple[Array, Array]  # a view of units, and the indices of the units

_or = np.bitwise_or.reduce
_M64 = (1 << 64) - 1


class Locator:
    """The common part: what is accessed, and its width."""

    def __init__(self, wave: Wave, base: Array | None, offset: int, nbytes: int, site: StepSite, access: str) -> None:
        self.wave = wave
        self.base = base
        self.offset = offset
        self.nbytes = nbytes
        self.unit = min(nbytes, 16)  # wider accesses are several units of 16 bytes
        self.shift = self.unit.bit_length() - 1
        self.align_mask = nbytes - 1
        self.site = site
        self.access = access

    def full(self) -> Located:
        """Units accessed by every lane, in lane order."""
        raise NotImplementedError

    def part(self, sel: Any) -> Located:
        """Units accessed by the selected lanes."""
        raise NotImplementedError

    def fault(self, kind: str, lane: int, address: int, space: str) -> LaneError:
        """The fault of `lane` at `address`."""
        return LaneError(kind, lane, self.site, address=address, nbytes=self.nbytes, space=space, access=self.access)

    def lane(self, sel: Any, index: int) -> int:
        """The lane at position `index` of a selection (None: all)."""
        return index if sel is None else int(self.wave.ids[sel][index])

    def check_alignment(self, addresses: Array, sel: Any, space: str) -> None:
        """Raise for the first misaligned address."""
        wrong = (addresses & np.uint64(self.align_mask)).nonzero()[0]
        if len(wrong):
            raise self.fault("misaligned", self.lane(sel, int(wrong[0])), int(addresses[wrong[0]]), space)


class GlobalLocator(Locator):
    """Global and constant memory: absolute addresses, with an inline cache of one allocation."""

    def __init__(self, wave: Wave, base: Array | None, offset: int, nbytes: int, site: StepSite, access: str) -> None:
        super().__init__(wave, wave.scratch.zeros64 if base is None else base, offset, nbytes, site, access)
        assert self.base is not None
        self.source: Array = self.base
        self.t = wave.scratch.items64
        self.ti = self.t.view(np.int64)
        self.count = np.int64(self.shift)
        self.forget()

    def forget(self) -> None:
        """Drop the cached allocation (it may have been freed)."""
        self.start = 0
        self.limit = -1
        self.bias: Any = np.uint64(self.offset & _M64)
        self.view: Array = self.wave.arena.views[self.shift]

    def full(self) -> Located:  # noqa: D102 - as in Locator
        t = self.t
        np.add(self.source, self.bias, t)
        bits = int(_or(t))
        if bits & self.align_mask or bits > self.limit:
            return self.slow(t, None)
        np.right_shift(self.ti, self.count, self.ti)
        return self.view, self.ti

    def part(self, sel: Any) -> Located:  # noqa: D102 - as in Locator
        t = self.source[sel] + self.bias
        bits = int(_or(t))
        if bits & self.align_mask or bits > self.limit:
            return self.slow(t, sel)
        return self.view, t.view(np.int64) >> self.count

    def part_sized(self, sel: Any, sizes: Array) -> Located:
        """Units. Each selected lane reads only the first `sizes` bytes of its unit, so only those must exist."""
        addresses = self.source[sel] + np.uint64(self.offset & _M64)
        self.check_alignment(addresses, sel, "global")
        wrong = (~self.wave.arena.valid(addresses, sizes.astype(np.uint64))).nonzero()[0]
        if len(wrong):
            raise self.fault("out-of-bounds", self.lane(sel, int(wrong[0])), int(addresses[wrong[0]]), "global")
        return self.wave.arena.views[self.shift], (addresses - np.uint64(GLOBAL_BASE)).view(np.int64) >> self.count

    def slow(self, t: Array, sel: Any) -> Located:
        """The exact check. Updates the cache."""
        return self.resolve(t + np.uint64(self.start), sel)

    def resolve(self, addresses: Array, sel: Any) -> Located:
        """Units at absolute `addresses`."""
        self.check_alignment(addresses, sel, "global")
        arena = self.wave.arena
        allocation = arena.find(int(addresses.min()))
        if allocation is not None and int(addresses.max()) + self.nbytes <= allocation.end:
            self.start, self.limit, self.view = allocation.address, allocation.nbytes - self.nbytes, allocation.views[self.shift]
            self.bias = np.uint64((self.offset - self.start) & _M64)
            return self.view, (addresses - np.uint64(self.start)).view(np.int64) >> self.count
        wrong = (~arena.valid(addresses, self.nbytes)).nonzero()[0]
        if len(wrong):
            raise self.fault("out-of-bounds", self.lane(sel, int(wrong[0])), int(addresses[wrong[0]]), "global")
        return arena.views[self.shift], (addresses - np.uint64(GLOBAL_BASE)).view(np.int64) >> self.count


class WindowLocator(Locator):
    """Shared or local memory: offsets in a window. Each lane's window is elsewhere in the arena."""

    def __init__(self, wave: Wave, base: Array | None, offset: int, nbytes: int, site: StepSite, access: str, space: str) -> None:
        super().__init__(wave, wave.scratch.zeros32 if base is None else base, offset, nbytes, site, access)
        assert self.base is not None
        self.source: Array = self.base
        self.space = space
        shared = space == "shared"
        self.start = wave.windows.reserved if shared else 0
        self.limit = (wave.shape.shared_bytes if shared else wave.shape.local_bytes) - nbytes
        self.units = (wave.windows.shared_units if shared else wave.windows.local_units)[self.shift]
        self.view = wave.arena.views[self.shift]
        dtype = self.source.dtype
        self.bias = np.array((offset - self.start) & ((1 << 8 * dtype.itemsize) - 1), dtype)[()]
        self.count = np.array(self.shift, dtype)[()]
        self.t = wave.scratch.items32 if dtype == np.uint32 else wave.scratch.items64
        self.t_index = self.t if dtype == np.uint32 else self.t.view(np.int64)
        self.index = wave.scratch.index

    def full(self) -> Located:  # noqa: D102 - as in Locator
        t = self.t
        np.add(self.source, self.bias, t)
        bits = int(_or(t))
        if bits & self.align_mask or bits > self.limit:
            self.check(t.astype(np.uint64), None)
        np.right_shift(t, self.count, t)
        np.add(self.t_index, self.units, self.index)
        return self.view, self.index

    def part(self, sel: Any) -> Located:  # noqa: D102 - as in Locator
        t = self.source[sel] + self.bias
        bits = int(_or(t))
        if bits & self.align_mask or bits > self.limit:
            self.check(t.astype(np.uint64), sel)
        return self.view, (t >> self.count).astype(np.int64) + self.units[sel]

    def check(self, offsets: Array, sel: Any) -> None:
        """The exact check of offsets from the window's first usable byte."""
        self.check_alignment(offsets, sel, self.space)
        wrong = (offsets > np.uint64(self.limit)).nonzero()[0] if self.limit >= 0 else np.zeros(1, np.intp)
        if len(wrong):
            address = (int(offsets[wrong[0]]) + self.start) & ((1 << 8 * self.source.dtype.itemsize) - 1)
            raise self.fault("out-of-bounds", self.lane(sel, int(wrong[0])), address, self.space)

    def resolve(self, addresses: Array, sel: Any) -> Located:
        """Units at window addresses given as 64-bit integers."""
        offsets = addresses - np.uint64(self.start)
        self.check(offsets, sel)
        units = self.units if sel is None else self.units[sel]
        return self.view, (offsets.view(np.int64) >> np.int64(self.shift)) + units


class ClusterLocator(WindowLocator):
    """Shared memory in a cluster of several CTAs: the rank in the address selects the CTA.

    `ranked` addresses (shared::cluster and generic ones) without a rank mean rank 0. In .shared::cta they mean the
    own CTA, which may also be named by its rank.
    """

    def __init__(self, wave: Wave, base: Array | None, offset: int, nbytes: int, site: StepSite, access: str, *, ranked: bool) -> None:
        super().__init__(wave, base, offset, nbytes, site, access, "shared")
        dtype = self.source.dtype
        self.ranked = ranked
        self.own = wave.rank.astype(np.uint64)
        self.biases = self.bias - wave.windows.rank_bits.astype(dtype)
        self.plus = np.array(offset & ((1 << 8 * dtype.itemsize) - 1), dtype)[()]

    def full(self) -> Located:  # noqa: D102 - as in Locator
        t = self.t
        np.add(self.source, self.biases, t)
        bits = int(_or(t))
        if bits & self.align_mask or bits > self.limit:
            return self.resolve((self.source + self.plus).astype(np.uint64), None)
        np.right_shift(t, self.count, t)
        np.add(self.t_index, self.units, self.index)
        return self.view, self.index

    def part(self, sel: Any) -> Located:  # noqa: D102 - as in Locator
        t = self.source[sel] + self.biases[sel]
        bits = int(_or(t))
        if bits & self.align_mask or bits > self.limit:
            return self.resolve((self.source[sel] + self.plus).astype(np.uint64), sel)
        return self.view, (t >> self.count).astype(np.int64) + self.units[sel]

    def resolve(self, addresses: Array, sel: Any) -> Located:  # noqa: D102 - as in WindowLocator
        self.check_alignment(addresses, sel, self.space)
        lanes = self.wave.ids if sel is None else self.wave.ids[sel]
        valid, start = shared_start(self.wave, lanes, addresses, self.ranked, self.nbytes)
        wrong = (~valid).nonzero()[0]
        if len(wrong):
            raise self.fault("out-of-bounds", int(lanes[wrong[0]]), int(addresses[wrong[0]]), self.space)
        return self.view, start >> np.int64(self.shift)


def shared_start(wave: Wave, lanes: Array, addresses: Array, ranked: bool, nbytes: Any) -> tuple[Array, Array]:
    """For shared addresses of some lanes (64-bit integers without a window): which are in bounds, and their arena offsets."""
    addresses = addresses.view(np.int64)
    rank, inside = addresses >> RANK_SHIFT, (addresses & ((1 << RANK_SHIFT) - 1)) - wave.windows.reserved
    own = wave.rank[lanes].astype(np.int64)
    valid = (rank >= 0) & (rank < wave.cluster_size) if ranked else (rank == 0) | (rank == own)
    valid &= (inside >= 0) & (inside + nbytes <= wave.shape.shared_bytes)
    cta = wave.cta_of[lanes] + (rank - own if ranked else 0)
    return valid, wave.windows.shared + cta * wave.windows.stride + inside


def window_locator(
    wave: Wave, base: Array | None, offset: int, nbytes: int, site: StepSite, access: str, space: str, ranked: bool
) -> WindowLocator:
    """The locator of a window, for a wave with or without clusters."""
    if space == "shared" and wave.cluster_size > 1:
        return ClusterLocator(wave, base, offset, nbytes, site, access, ranked=ranked)
    return WindowLocator(wave, base, offset, nbytes, site, access, space)


class GenericLocator(GlobalLocator):
    """Generic addresses: global memory unless they are in the shared or the local window. Lanes may differ."""

    def __init__(self, wave: Wave, base: Array | None, offset: int, nbytes: int, site: StepSite, access: str) -> None:
        super().__init__(wave, base, offset, nbytes, site, access)
        self.windows = [
            (np.uint64(start), window_locator(wave, wave.scratch.zeros64, 0, nbytes, site, access, space, True))
            for start, space in ((SHARED_WINDOW, "shared"), (LOCAL_WINDOW, "local"))
        ]

    def resolve(self, addresses: Array, sel: Any) -> Located:  # noqa: D102 - as in GlobalLocator
        for start, window in self.windows:
            relative = addresses - start
            inside = relative < np.uint64(WINDOW_SIZE)
            if inside.all():
                return window.resolve(relative, sel)
            if inside.any():
                return self._mixed(addresses, sel)
        return super().resolve(addresses, sel)

    def _mixed(self, addresses: Array, sel: Any) -> Located:
        lanes = self.wave.ids if sel is None else self.wave.ids[sel]
        index = np.empty(len(lanes), np.int64)
        rest = np.ones(len(lanes), np.bool_)
        for start, window in self.windows:
            inside = addresses - start < np.uint64(WINDOW_SIZE)
            rest &= ~inside
            if inside.any():
                index[inside] = window.resolve(addresses[inside] - start, lanes[inside])[1]
        if rest.any():
            index[rest] = self._absolute(addresses[rest], lanes[rest])
        return self.wave.arena.views[self.shift], index

    def _absolute(self, addresses: Array, lanes: Array) -> Array:
        self.check_alignment(addresses, lanes, "global")
        wrong = (~self.wave.arena.valid(addresses, self.nbytes)).nonzero()[0]
        if len(wrong):
            raise self.fault("out-of-bounds", int(lanes[wrong[0]]), int(addresses[wrong[0]]), "global")
        return np.asarray((addresses - np.uint64(GLOBAL_BASE)).view(np.int64) >> self.count)
