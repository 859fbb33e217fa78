"""Accesses to global memory against asynchronous copies of the same CTA (ISA "Asynchronous Operations", "cp.async.bulk.wait_group").

This pass decides which accesses to global memory are sites: those that can conflict with the global side of a copy. If the module has bulk
stores, every load, store, atomic and reduction of global or generic memory can meet an incomplete result (R-B3). If it has bulk loads or
cp.async, stores can overwrite a source (R-CP4), and a bulk load can read them without a proxy fence (R-PX). If a tensor map may be in
global memory, stores can change it (R-B7). Other modules need no hooks on global memory. The first test is in line: whether the address
lies in the interval that the slot keeps for everything in flight. The runtime does the rest (globals.cuh, written.cuh, fetches.cuh,
maps.cuh).

Not handled: tensor copies in im2col mode, scattered or of interleaved tensors; loads through the read-only path (`ld.global.nc`);
accesses of other CTAs; two copies that conflict.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from consan.instrument.abi.bits import RESULT_SITE
from consan.instrument.abi.flags import GlobalFlags, MapFlags, ResultFlags
from consan.instrument.abi.hooks import Value, hook
from consan.instrument.abi.records import SLOT as SLOT_RECORD, offsets
from consan.instrument.control_flow import Graph, graph_of
from consan.instrument.functions.analyse import propagate
from consan.instrument.isa import MemoryAccess, row_of
from consan.instrument.ptx import Function, Instruction
from consan.instrument.rewriting.context import Context, FunctionPlan, GlobalSides, Work, operand_of
from consan.instrument.rewriting.emit import SLOT, Snippet, Unsupported, guard_text, narrow_guard, wide_address, word
from consan.instrument.rewriting.tensor_operands import has_map, is_tile, map_address, map_and_place
from consan.instrument.sites import Site

_MAP_BYTES = 128
_OFFSETS = offsets(SLOT_RECORD)


def add_accesses(plans: dict[str, FunctionPlan], communicates: bool, isa: bool) -> GlobalSides:
    """Find the sides in global memory, and plan the accesses that can conflict with them."""
    works = [work for plan in plans.values() for work in plan.work]
    found = {name: list(_accesses(plan)) for name, plan in plans.items()}
    accesses = [work for each in found.values() for work in each]
    generic = [work for work in accesses if work.row.is_ordinary]
    writes, loads = any(map(_writes, generic)), any(_fetch(work) is not None for work in works)
    sides = GlobalSides(
        results=bool(generic) and any(_result(work) is not None for work in works),
        fetches=writes and loads,
        polls=isa and loads and any(map(_polls, generic)),
        maps=any(_changes_map(work) for work in (*works, *accesses)) and any(map(has_map, plans.values())),
        copies=writes and any(work.row.is_copy for work in works),
        elsewhere=communicates,
    )
    if writes and (sides.fetches or sides.maps):
        sides = replace(sides, published=frozenset().union(*(published(plan.function) for plan in plans.values())))
    for name, plan in plans.items():
        extra = [work for work in found[name] if work.event.first.in_global and _is_met(sides, work)]
        plan.work += extra
        plan.stats.private -= len(extra)
        plan.needs_slot = plan.needs_slot or bool(extra)
    propagate(plans)
    return sides


def _accesses(plan: FunctionPlan) -> Iterator[Work]:
    """Loads, stores, atomics and reductions that may access global memory, and replacements in tensor maps there."""
    assert plan.function.body is not None
    for instruction in plan.function.body.instructions():
        row = row_of(instruction)
        if row.status == "checked" and (row.is_ordinary or row.changes_map) and row.describe(instruction).may_be_global:
            yield Work(instruction, row)


def _writes(work: Work) -> bool:
    return not work.row.is_load


def _polls(work: Work) -> bool:
    """A strong load, or an acquire atomic. A relaxed atomic counts or distributes work, so it is no poll."""
    access = work.event.first
    return access.is_strong and (work.row.is_load or (work.row.is_atomic and access.acquires))


def _is_met(sides: GlobalSides, work: Work) -> bool:
    if work.row.changes_map:
        return sides.maps
    if sides.results or (sides.polls and _polls(work)):
        return True
    return _writes(work) and (sides.copies or sides.maps or sides.fetches)


def _changes_map(work: Work) -> bool:
    """Whether an instruction may change a tensor map in global memory."""
    if work.row.changes_map:
        return any(access.may_be_global and access.writes for access in work.event.accesses)
    return work.row.is_ordinary and _writes(work)


def published(function: Function) -> set[int]:
    """The `start` of each instruction from which a publishing one is reachable. The end of a device function counts as publishing."""
    graph = graph_of(function)
    publishing = [number for number, node in enumerate(graph.nodes) if any(_publishes(function, step.instruction) for step in node.steps)]
    return set(_before(function, graph, graph.leading_to(publishing)))


def _before(function: Function, graph: Graph, after: set[int]) -> Iterator[int]:
    for node in graph.nodes:
        later = not after.isdisjoint(node.successors)
        for step in reversed(node.steps):
            if later:
                yield step.instruction.start
            later = later or _publishes(function, step.instruction)


def _publishes(function: Function, instruction: Instruction) -> bool:
    """Whether an instruction can order another thread, or a copy by the same thread, after earlier accesses of this thread."""
    row = row_of(instruction)
    if row.calls or row.returns:
        return row.calls or function.kind != "entry"
    if row.is_store:
        return row.describe(instruction).is_strong
    signals = row.is_barrier or row.is_fence or (row.is_mbarrier and not row.ends_mbarrier)
    return signals or row.is_update or (row.is_bulk and not row.is_of_groups)


def _side(work: Work, access: str) -> MemoryAccess | None:
    """The side of a bulk copy in global memory that is read or written; None if the copy has no side in shared memory."""
    if not work.row.is_bulk:
        return None
    sides = work.event.accesses
    shared = any(side.in_shared and side.address is not operand_of(work, "mbar") for side in sides)
    return next((side for side in sides if shared and side.in_global and side.access in access), None)


def _result(work: Work) -> MemoryAccess | None:
    side = _side(work, "write rmw")
    return side if operand_of(work, "tensor") is None or is_tile(work) else None


def _fetch(work: Work) -> MemoryAccess | None:
    side = _side(work, "read")
    return side if operand_of(work, "tensor") is None or is_tile(work) else None


# ---- copies -----------------------------------------------------------------------------------------------------------------------------


def add_side(context: Context, work: Work, site: Site, mbarrier: str, snippet: Snippet) -> None:
    """The hooks for the global side of a bulk copy. They precede those of its shared side, which may complete a phase of the mbarrier."""
    if operand_of(work, "cta-mask") is not None:
        mbarrier = str(0xFFFFFFFF)  # the mbarriers of several CTAs signal completion of a multicast; not followed
    if context.sides.maps and (tensor := operand_of(work, "tensor")) is not None:
        flags = _edges(context) | (GlobalFlags.WRITE if _side(work, "read") is None else GlobalFlags.NONE)
        context.call(snippet, hook("map_use", site=site.number, map=map_address(work, tensor, snippet), mbarrier=mbarrier, flags=flags))
    if (side := _result(work)) is not None and context.sides.results:
        reduces = ResultFlags.REDUCES if side.updates else ResultFlags.NONE
        _call(context, work, side, "result", {"sites": RESULT_SITE.pack({"site": site.number, "flags": reduces})}, snippet)
    if (side := _fetch(work)) is not None and (context.sides.fetches or context.sides.polls):
        _call(context, work, side, "fetch", {"site": site.number, "mbarrier": mbarrier}, snippet)


def _edges(context: Context) -> GlobalFlags:
    return GlobalFlags.EDGES if context.sides.elsewhere else GlobalFlags.NONE


def _call(context: Context, work: Work, side: MemoryAccess, name: str, values: dict[str, Value], snippet: Snippet) -> None:
    """The hook of a side, with the map and the place of a tensor copy, or address and bytes of another copy."""
    if is_tile(work):
        context.call(snippet, hook(f"tensor_{name}", **values, **map_and_place(work, snippet)))
        return
    size = operand_of(work, "size")
    if side.address is None or size is None:
        raise Unsupported("no size")
    address = wide_address(snippet, side.address, work.instruction.scope, "global")
    context.call(snippet, hook(name, **values, address=address, bytes=word(size, snippet, work.instruction.scope)))


def add_fence(context: Context, work: Work, snippet: Snippet) -> None:
    """The hook for a proxy fence that covers global memory. If it covers shared memory too, another hook advances the epoch."""
    if (context.sides.fetches or context.sides.polls) and "global" in work.fenced:
        advances = "shared" not in work.fenced
        context.call(snippet, hook("global_fence", advances=advances), guard=guard_text(work.instruction))


def add_map_fence(context: Context, work: Work, snippet: Snippet) -> None:
    """The hook for fence.proxy.tensormap. An acquire names the map."""
    if context.sides.maps:
        operands = work.instruction.operands
        address = wide_address(snippet, operands[0], work.instruction.scope) if work.event.acquires else "0"
        context.call(snippet, hook("map_fence", map=address), guard=guard_text(work.instruction))


def add_map_change(context: Context, plan: FunctionPlan, work: Work, snippet: Snippet) -> None:
    """The hook for tensormap.replace and tensormap.cp_fenceproxy if they may write global memory."""
    access = next((a for a in work.event.accesses if a.writes and a.may_be_global), None)
    if context.sides.maps and access is not None and access.address is not None:
        site = context.site(plan, work, "write", access.space, _MAP_BYTES)
        flags = MapFlags.RELEASES if work.event.releases else MapFlags.NONE
        flags |= MapFlags.EDGES if context.sides.elsewhere else MapFlags.NONE
        address = wide_address(snippet, access.address, work.instruction.scope, "global" if access.in_global else "")
        context.call(snippet, hook("map_change", site=site.number, map=address, flags=flags), guard=guard_text(work.instruction))


def add_wait(context: Context, work: Work, pending: str, snippet: Snippet) -> None:
    """The hook for a wait that covers results too: one without .read."""
    if context.sides.results and not work.flags["read_only"]:
        context.call(snippet, hook("result_wait", pending=pending), guard=guard_text(work.instruction))


# ---- generic accesses ----------------------------------------------------------------------------------------------------------------


def add_access(context: Context, work: Work, access: MemoryAccess, site: Site, snippet: Snippet) -> None:
    """Check an access that may be to global memory."""
    if access.address is None:
        raise Unsupported("no address")
    address = wide_address(snippet, access.address, work.instruction.scope, "global" if access.in_global else "")
    values: dict[str, Value] = {"address": address, "site": site.number, "bytes": access.total_bytes}
    writes = access.writes
    if context.sides.copies and writes and access.in_global:
        context.call(snippet, hook("global_write", **values), guard=guard_text(work.instruction))
    if context.sides.polls and _polls(work):
        guard = _in_global(work, access, address, snippet)
        context.call(snippet, hook("global_poll", site=site.number), guard=guard)
    if work.instruction.start in context.sides.published and writes:
        guard = _in_global(work, access, address, snippet)
        context.call(snippet, hook("global_written", **values), guard=guard)
    if context.sides.results or ((context.sides.maps or context.sides.fetches) and writes):
        kind = {"rmw": GlobalFlags.RMW, "write": GlobalFlags.WRITE}.get(access.access, GlobalFlags.NONE)
        guard = _within(context, work, "flight_low" if writes else "result_low", address, access.total_bytes, snippet)
        context.call(snippet, hook("global_access", **values, flags=kind | _edges(context)), guard=guard)


def _in_global(work: Work, access: MemoryAccess, address: str, snippet: Snippet) -> str:
    """A guard that is true if the instruction's guard is true and the address is in global memory."""
    if access.in_global:
        return guard_text(work.instruction)
    inside = snippet.register("pred")
    snippet.add(f"isspacep.global {inside}, {address};")
    return narrow_guard(snippet, work.instruction, inside)


def _within(context: Context, work: Work, field: str, address: str, nbytes: int, snippet: Snippet) -> str:
    """A guard that is true if the instruction's guard is true and the bytes overlap an interval of the slot."""
    checked, inside = snippet.register("pred"), snippet.register("pred")
    low, high, end = (snippet.register("b64") for _ in range(3))
    scope = "gpu" if context.variant.cluster else "cta"
    snippet.add(f"setp.ne.u64 {checked}, {SLOT}, 0;")
    snippet.add(f"mov.b64 {low}, -1; mov.b64 {high}, 0;")
    snippet.add(f"@{checked} ld.relaxed.{scope}.global.v2.u64 {{{low}, {high}}}, [{SLOT}+{_OFFSETS[field]}];")
    snippet.add(f"add.s64 {end}, {address}, {nbytes};")
    snippet.add(f"setp.lt.u64 {inside}, {address}, {high};")
    snippet.add(f"setp.gt.and.u64 {inside}, {end}, {low}, {inside};")
    return narrow_guard(snippet, work.instruction, inside)
