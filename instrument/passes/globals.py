"""Accesses to global memory against asynchronous copies of the same CTA (ISA "Asynchronous Operations", "cp.async.bulk.wait_group").

Decides which accesses to global memory are sites: those that can meet the global side of a copy. Where the module stores in bulk,
every load, store, atomic and reduction of global or generic memory can meet a result that is not complete yet; where it has cp.async,
stores can overwrite a source. In other modules no access to global memory is touched. The first test stands in line: whether the address
lies within the interval of what is in flight, which the slot keeps. What comes after it is runtime/globals.cuh's business.

Not handled: tensor copies in im2col mode, scattered or of interleaved tensors; loads through the read-only path (`ld.global.nc`);
accesses of other CTAs.
"""

from __future__ import annotations

from collections.abc import Iterator

from consan.instrument.isa import Access, lookup
from consan.instrument.layout import SLOT as SLOT_LAYOUT
from consan.instrument.layout import offsets
from consan.instrument.passes.analyse import propagate
from consan.instrument.passes.context import Context, FunctionPlan, GlobalSides, Work, caller_arguments
from consan.instrument.passes.emit import SELF, SLOT, STATE, Snippet, Unsupported, guard_text, narrow_guard, wide_address, word
from consan.instrument.passes.mbarriers import operand_of
from consan.instrument.passes.tensor_operands import is_tile, map_and_place
from consan.instrument.sites import Site

FAMILIES = ("load", "store", "atomic", "reduction")
_WRITES, _RMW, _EDGES = 1, 2, 64  # Access and GLOBAL_EDGES of the runtime
_REDUCES = 1
_OFFSETS = offsets(SLOT_LAYOUT)


def add_accesses(plans: dict[str, FunctionPlan], communicates: bool) -> GlobalSides:
    """Find the sides in global memory, and plan the accesses that can meet them."""
    works = [work for plan in plans.values() for work in plan.work]
    sides = GlobalSides(
        results=any(_result(work) is not None for work in works),
        copies=any(work.row.family == "cp.async" for work in works),
        elsewhere=communicates,
    )
    families = FAMILIES if sides.results else FAMILIES[1:] if sides.copies else ()
    families = FAMILIES if sides.results else FAMILIES[1:] if sides.copies else ()
    for plan in plans.values():
        extra = list(_accesses(plan, families))
        plan.work += extra
        plan.stats.private -= len(extra)
        plan.needs_slot = plan.needs_slot or bool(extra)
    propagate(plans)
    return sides


def _accesses(plan: FunctionPlan, families: tuple[str, ...]) -> Iterator[Work]:
    assert plan.function.body is not None
    for instruction in plan.function.body.instructions() if families else ():
        row = lookup(instruction.parts)
        if row is None or row.status != "checked" or row.family not in families:
            continue
        if row.describe(instruction).space == "global":
            yield Work(instruction, row)


def _side(work: Work, access: str) -> Access | None:
    """The side of a bulk copy in global memory that is read or written, if it is one of shared memory's."""
    if work.row.family not in ("bulk", "tensor") or work.row.name.startswith("multimem"):
        return None
    sides = work.row.accesses(work.instruction)
    shared = any(side.space == "shared" and side.address is not operand_of(work, "mbar") for side in sides)
    return next((side for side in sides if shared and side.space == "global" and side.access in access), None)


def _result(work: Work) -> Access | None:
    side = _side(work, "write rmw")
    return side if operand_of(work, "tensor") is None or is_tile(work) else None


# ---- copies -----------------------------------------------------------------------------------------------------------------------------


def add_side(context: Context, work: Work, site: Site, snippet: Snippet) -> None:
    """The hook for the global side of a bulk copy, beside that for its shared side."""
    side = _result(work)
    if side is None or not context.sides.results:
        return
    flags = _REDUCES if side.access == "rmw" else 0
    if is_tile(work):
        arguments = [*caller_arguments(), ("b32", str(site.number | flags << 16)), *map_and_place(work, snippet)]
        snippet.call(context.hook("__consan_tensor_result"), arguments)
        return
    size = operand_of(work, "size")
    if side.address is None or size is None:
        raise Unsupported("no size")
    address = wide_address(snippet, side.address, work.instruction.scope, "global")
    arguments = [*caller_arguments(), ("b64", address), ("b32", str(site.number)), ("b32", word(size, snippet, work.instruction.scope))]
    snippet.call(context.hook("__consan_result"), [*arguments, ("b32", str(flags))])


def add_wait(context: Context, work: Work, pending: str, snippet: Snippet) -> None:
    """The hook for a wait that covers results too: one without .read."""
    if context.sides.results and "read" not in work.instruction.parts:
        arguments = [("b64", SLOT), ("b64", STATE), ("b32", SELF), ("b32", pending)]
        snippet.call(context.hook("__consan_result_wait"), arguments, guard=guard_text(work.instruction))


# ---- generic accesses ----------------------------------------------------------------------------------------------------------------


def add_access(context: Context, work: Work, access: Access, site: Site, snippet: Snippet) -> None:
    """What an access to global memory, or perhaps to global memory, is held against."""
    if access.address is None:
        raise Unsupported("no address")
    address = wide_address(snippet, access.address, work.instruction.scope, "global" if access.space == "global" else "")
    arguments = [*caller_arguments(), ("b64", address), ("b32", str(site.number)), ("b32", str(access.total_bytes))]
    writes = access.access != "read"
    if context.sides.copies and writes and access.space == "global":
        snippet.call(context.hook("__consan_global_write"), arguments, guard=guard_text(work.instruction))
    if context.sides.results:
        flags = _RMW if access.access == "rmw" else _WRITES * writes
        guard = _within(context, work, "flight_low" if writes else "result_low", address, access.total_bytes, snippet)
        arguments.append(("b32", str(flags | _EDGES * context.sides.elsewhere)))
        snippet.call(context.hook("__consan_global_access"), arguments, guard=guard)


def _within(context: Context, work: Work, field: str, address: str, nbytes: int, snippet: Snippet) -> str:
    """A guard that holds where the instruction's does and the bytes overlap an interval of the slot."""
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
