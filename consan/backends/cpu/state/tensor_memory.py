"""Tensor memory of the CTAs of a wave: cells, allocators, and warps that wait for columns (PTX ISA, "Tensor Memory", "tcgen05.alloc").

A CTA has 128 lanes x 512 columns of 32 bits; an address is lane << 16 | column. Columns are given out first fit, aligned to the number
asked for; the ISA promises no address. A request that finds no room waits until a dealloc of the same CTA makes some, since no two CTAs
share an SM here: a request that can never be served is a deadlock. With .cta_group::2 a warp of each CTA of the pair must ask for the
same number, and both get the same address.

A fresh allocation reads as `POISON`, a NaN in every floating format. As on a chip, each CTA of a pair frees its own columns without waiting
for the other (ptxas 13.0 emits no handshake there), and misuse that the hardware traps on ends the launch: sizes that are no power of two
from 32 to 512, an allocation after the CTA gave up the right to it, a dealloc that names no allocation.

Not decided here: who may access a cell, and in which order (the checker's rules).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from consan.dataclass import dataclass

from .barriers import WaitingLanes
from .faults import LaneError, StepSite
from .wave import Wave

Array = npt.NDArray[Any]
LANES, COLUMNS, UNIT = 128, 512, 32
POISON = np.uint32(0xFFFFFFFF)
SIZES = (32, 64, 128, 256, 512)


@dataclass(eq=False)
class ColumnsRequest:
    """An alloc of one warp. `store` writes the address of the allocation to where the program asked for it."""

    cta: int
    columns: int
    pair: bool
    waiter: WaitingLanes
    store: Callable[[int], None]


class TensorMemory:
    """The tensor memories of a wave."""

    def __init__(self, wave: Wave) -> None:
        self.wave = wave
        self.cells: Array = np.full((wave.shape.ctas, LANES, COLUMNS), POISON, np.uint32)
        self._used = False
        self.reset()

    def reset(self) -> None:
        """A new wave starts."""
        if self._used:
            self.cells[...] = POISON  # the same on every run
        self._used = False
        self.live: list[dict[int, int]] = [{} for _ in range(self.wave.shape.ctas)]  # per CTA: columns by their first
        self.relinquished: set[int] = set()
        self.queue: list[tuple[ColumnsRequest, ...]] = []  # complete requests that wait for room
        self.halves: list[ColumnsRequest] = []  # of pairs, waiting for the other CTA

    # Allocation ----------------------------------------------------------------------------------------------------

    def ask(self, request: ColumnsRequest) -> list[WaitingLanes]:
        """A warp asks for columns. Returns the waiters of all warps that continue now, its own among them if it was served."""
        self._check(request)
        whole = self._complete(request)
        if not whole:
            return []
        self.queue.append(whole)
        return self._serve()

    def _check(self, request: ColumnsRequest) -> None:
        if request.columns not in SIZES:
            raise fault(request.waiter, f"{request.columns} columns asked for: it must be a power of two from 32 to 512")
        if request.cta in self.relinquished:
            raise fault(request.waiter, "an allocation after tcgen05.relinquish_alloc_permit of the CTA")
        if request.pair and self.wave.cluster_size % 2:
            raise fault(request.waiter, f".cta_group::2 in clusters of {self.wave.cluster_size}: a pair needs an even number of CTAs")

    def _complete(self, request: ColumnsRequest) -> tuple[ColumnsRequest, ...]:
        """The requests that are served together; none as long as the other CTA of the pair has not asked."""
        if not request.pair:
            return (request,)
        other = next((half for half in self.halves if half.cta == request.cta ^ 1), None)
        if other is None:
            self.halves.append(request)
            return ()
        if other.columns != request.columns:
            raise fault(request.waiter, f"{request.columns} columns asked for, and {other.columns} by the other CTA of the pair")
        self.halves.remove(other)
        return other, request

    def _serve(self) -> list[WaitingLanes]:
        """Serve what there is room for, in the order of the requests."""
        served: list[WaitingLanes] = []
        left: list[tuple[ColumnsRequest, ...]] = []
        for requests in self.queue:
            base = self._find([request.cta for request in requests], requests[0].columns)
            if base is None:
                left.append(requests)
                continue
            for request in requests:
                self._take(request, base)
                served.append(request.waiter)
        self.queue = left
        return served

    def _find(self, ctas: list[int], columns: int) -> int | None:
        free = np.ones(COLUMNS // UNIT, np.bool_)
        for cta in ctas:
            for base, count in self.live[cta].items():
                free[base // UNIT : (base + count) // UNIT] = False
        fits = (base for base in range(0, COLUMNS, columns) if free[base // UNIT : (base + columns) // UNIT].all())
        return next(fits, None)

    def _take(self, request: ColumnsRequest, base: int) -> None:
        self.live[request.cta][base] = request.columns
        self.cells[request.cta, :, base : base + request.columns] = POISON
        self._used = True
        request.store(base)

    def give_back(self, cta: int, address: int, columns: int, lane: int, site: StepSite) -> list[WaitingLanes]:
        """A dealloc of one CTA. Returns the waiters of requests that it serves."""
        if self.live[cta].get(address) != columns:
            has = ", ".join(f"{count} columns at {base:#x}" for base, count in self.live[cta].items()) or "nothing"
            message = f"{columns} columns at {address:#x} are not an allocation of the CTA, which has {has}"
            raise LaneError("illegal", lane, site, message=message)
        del self.live[cta][address]
        return self._serve()

    def waiters(self) -> list[tuple[WaitingLanes, str]]:
        """Warps that wait for columns, or for the other CTA of their pair, and for which."""
        for_columns = [(request.waiter, "columns") for requests in self.queue for request in requests]
        return for_columns + [(request.waiter, "pair") for request in self.halves]


def fault(waiter: WaitingLanes, message: str) -> LaneError:
    """The error that ends a launch at a tcgen05.alloc."""
    return LaneError("illegal", int(waiter.lanes[0]), waiter.site, message=message)
