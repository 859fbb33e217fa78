"""The recording of tensor maps that the device builds (ISA "tensormap.replace", "tensormap.cp_fenceproxy", "fence.proxy.tensormap").

A replacement is a weak write of the whole map, in shared or in global memory. A copy of a map to global memory is one operation of the
warp: its lanes synchronise, read the map, and synchronise again; the checker lets the first of them write. Copies that use a map record
its address (tensors.py), and consan/checker/source/maps.hpp has the fences.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from consan.instrument.effects import WordValue
from consan.instrument.effects.kinds import GlobalWrite, MapFence, Read, WarpSync, Write
from consan.instrument.isa import MemoryAccess
from consan.instrument.passes.context import Work, operand_of
from consan.instrument.passes.emit import Unsupported
from consan.instrument.record.lowering import at
from consan.instrument.record.sides import global_address

if TYPE_CHECKING:
    from consan.instrument.record.rewrite import KernelRewrite

MAP_BYTES = 128
_WHOLE_WARP = 0xFFFFFFFF


def is_copy(work: Work | None) -> bool:
    """Whether a map is copied by a warp, whose lanes wait for each other."""
    return work is not None and (work.row.family, work.row.action) == ("tensormap", "cp_fenceproxy")


def add(kernel: KernelRewrite, work: Work) -> None:
    """A replacement in a map, or a copy of one."""
    if is_copy(work):
        _add_meeting(kernel, work)
    for access in work.event.accesses:
        if access.space in ("shared", "generic"):
            _add_in_shared(kernel, work, access)
    for access in work.event.accesses:
        if access.space in ("global", "generic"):
            _add_in_global(kernel, work, access)
    if is_copy(work):
        _add_meeting(kernel, work)
    kernel.plan.stats.memory_sites += 1


def _add_meeting(kernel: KernelRewrite, work: Work) -> None:
    kernel.record(work, WarpSync, counted=False, mask=WordValue(_WHOLE_WARP))


def _add_in_shared(kernel: KernelRewrite, work: Work, access: MemoryAccess) -> None:
    kind, touch = (Read if access.access == "read" else Write), (access.access, access.space, MAP_BYTES)
    ranked = access.space == "generic"
    kernel.record(work, kind, touch, counted=False, at=at(access), bytes=MAP_BYTES, element=MAP_BYTES, ranked=ranked)


def _add_in_global(kernel: KernelRewrite, work: Work, access: MemoryAccess) -> None:
    if access.address is None:
        raise Unsupported(f"{work.instruction.opcode} without an address")
    address = functools.partial(global_address, kernel, work.instruction, access.address, access.space)
    touch = (access.access, access.space, MAP_BYTES)
    kernel.record(work, GlobalWrite, touch, counted=False, address=address, bytes=MAP_BYTES, element=MAP_BYTES, releases=is_copy(work))


def is_fence(work: Work) -> bool:
    """Whether a proxy fence is one for tensor maps."""
    return "tensormap::generic" in work.words


def add_fence(kernel: KernelRewrite, work: Work) -> None:
    """A release fence of the thread, or an acquire fence for a map."""
    if "acquire" not in work.words:
        kernel.record(work, MapFence, releases=True)
        return
    address = operand_of(work, "addr")
    if address is None:
        raise Unsupported(f"{work.instruction.opcode} without an address")
    kernel.record(work, MapFence, map=functools.partial(global_address, kernel, work.instruction, address, "generic"), acquires=True)


HANDLERS = {"tensormap": add}
