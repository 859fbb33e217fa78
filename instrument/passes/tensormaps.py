"""Tensor maps built on the device (ISA "tensormap.replace", "tensormap.cp_fenceproxy").

A replacement is a weak operation of the executing thread on the whole map of 128 bytes: accesses of other threads to any of its bytes
must be ordered with it. A copy to global memory is one operation of the warp: its lanes synchronise, and each reads its share of the map.

globals.py handles maps in global memory.
"""

from __future__ import annotations

from consan.instrument.abi.hooks import hook
from consan.instrument.isa import MemoryAccess
from consan.instrument.passes import globals as global_sides
from consan.instrument.ptx import Operand
from consan.instrument.rewriting.context import Context, FunctionPlan, Work
from consan.instrument.rewriting.emit import Snippet, Unsupported, guard_text, narrow_guard, shared_address, wide_address

_MAP_BYTES = 128


def run(context: Context) -> None:
    """Insert a hook before each change of a map, and before each copy of a map from shared memory."""
    for plan in context.instrument(lambda work: _instrument if work.row.changes_map else None):
        plan.stats.memory_sites += 1


def _instrument(context: Context, plan: FunctionPlan, work: Work) -> None:
    access = next((each for each in work.event.accesses if each.may_be_shared), None)
    snippet = Snippet()
    if access is not None:
        _in_shared(context, plan, work, access, snippet)
    global_sides.add_map_change(context, plan, work, snippet)
    context.edits.insert_before(work.instruction, snippet.text())


def _in_shared(context: Context, plan: FunctionPlan, work: Work, access: MemoryAccess, snippet: Snippet) -> None:
    if access.address is None:
        raise Unsupported("no address")
    guard, address = _where(context, snippet, work, access, access.address)
    address = context.located(snippet, address, ranked=access.is_generic)
    site = context.site(plan, work, access.access, access.space, _MAP_BYTES)
    context.call(snippet, hook("map_write" if access.writes else "map_copy", address=address, site=site.number), guard=guard)


def _where(context: Context, snippet: Snippet, work: Work, access: MemoryAccess, operand: Operand) -> tuple[str, str]:
    """The hook's guard and the address of the map. A generic address may also point to a map in global memory."""
    instruction = work.instruction
    if access.in_shared:
        return guard_text(instruction), shared_address(snippet, operand, instruction.scope)
    wide = wide_address(snippet, operand, instruction.scope)
    inside, address = snippet.register("pred"), snippet.register("b32")
    snippet.add(f"isspacep.{context.window} {inside}, {wide};")
    snippet.add(f"cvta.to.{context.window}.u64 {wide}, {wide};")
    snippet.add(f"cvt.u32.u64 {address}, {wide};")
    return narrow_guard(snippet, instruction, inside), address
