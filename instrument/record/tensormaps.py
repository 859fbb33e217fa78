"""The recording of tensor maps that the device builds (ISA "tensormap.replace", "tensormap.cp_fenceproxy", "fence.proxy.tensormap").

A replacement is a weak write of the whole map, in shared or in global memory. A copy of a map to global memory is one operation of the
warp: its lanes synchronise, read the map, and synchronise again; the checker lets the first of them write. Copies that use a map record
its address (tensors.py), and consan/checker/source/maps.hpp has the fences.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from consan.instrument.isa import MemoryAccess
from consan.instrument.passes.context import Work, operand_of
from consan.instrument.passes.emit import Unsupported
from consan.instrument.record.sides import global_address
from consan.instrument.record.templates import LANES, Event, Flag, TemplateEvent

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
    block = kernel.open_block()
    site = kernel.context.site(kernel.plan, work, "none", "none", 0).number
    block.add(TemplateEvent(Event.WARP_BARRIER, int(Flag.WAITS), site, guard_word=kernel.guard(block, work.instruction), a=_WHOLE_WARP))


def _add_in_shared(kernel: KernelRewrite, work: Work, access: MemoryAccess) -> None:
    block = kernel.open_block()
    if access.address is None:
        raise Unsupported(f"{work.instruction.opcode} without an address")
    fields, code = block.address(work.instruction, access.address, access.space)
    kernel.pending += code
    kind = Event.READ if access.access == "read" else Event.WRITE
    site = kernel.context.site(kernel.plan, work, access.access, access.space, MAP_BYTES).number
    flags = int(Flag.RANKED) if access.space == "generic" else 0
    block.add(TemplateEvent(kind, flags, site, MAP_BYTES, a=MAP_BYTES, b=LANES, **fields))


def _add_in_global(kernel: KernelRewrite, work: Work, access: MemoryAccess) -> None:
    block = kernel.open_block()
    if access.address is None:
        raise Unsupported(f"{work.instruction.opcode} without an address")
    guard = kernel.guard(block, work.instruction)
    address = global_address(kernel, work.instruction, access.address, access.space)
    site = kernel.context.site(kernel.plan, work, access.access, access.space, MAP_BYTES).number
    flags = int(Flag.RELEASES) if is_copy(work) else 0
    block.add(TemplateEvent(Event.GLOBAL_WRITE, flags, site, MAP_BYTES, guard_word=guard, value_word=address, a=MAP_BYTES))


def is_fence(work: Work) -> bool:
    """Whether a proxy fence is one for tensor maps."""
    return "tensormap::generic" in work.words


def add_fence(kernel: KernelRewrite, work: Work) -> None:
    """A release fence of the thread, or an acquire fence for a map."""
    instruction, block = work.instruction, kernel.open_block()
    guard = kernel.guard(block, instruction)
    fields = {"guard_word": guard, "site": kernel.context.site(kernel.plan, work, "none", "none", 0).number}
    flags = Flag.RELEASES
    if "acquire" in work.words:
        address = operand_of(work, "addr")
        if address is None:
            raise Unsupported(f"{instruction.opcode} without an address")
        flags = Flag.ACQUIRES
        fields["value_word"] = global_address(kernel, instruction, address, "generic")
    block.add(TemplateEvent(Event.MAP_FENCE, int(flags), **fields))
    kernel.plan.stats.sync_sites += 1


HANDLERS = {"tensormap": add}
