"""Bulk and tensor copies, their groups, st.async, red.async and st.bulk (ISA "cp.async.bulk", "cp.async.bulk.tensor").

A copy is recorded at issue. The size of a tensor copy is in its tensor map, which the device reads at the instruction; tiled stores
exclude what lies outside the tensor. Hooks of commits and waits come after the instruction.

globals.py handles the sides in global memory.

A copy may reach other CTAs of the cluster: by its address, by a mask, or from this CTA's shared memory (runtime/cluster.cuh).

Not handled: stores in im2col mode, scattered, or from interleaved tensors count as reading their whole box.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from consan.instrument.isa import Access
from consan.instrument.layout import Operation
from consan.instrument.passes import globals as global_sides
from consan.instrument.passes.context import Context, FunctionPlan, Work, caller_arguments, operand_of
from consan.instrument.passes.emit import SELF, SLOT, STATE, Snippet, Unsupported, guard_text, is_ranked, shared_operand, word
from consan.instrument.passes.mbarriers import barrier_address
from consan.instrument.passes.tensor_operands import is_tile, map_address, map_and_place
from consan.instrument.ptx import Operand

_GATHERED = 4  # rows of tile::gather4 and tile::scatter4

_ADDS = 0x400  # in an operation's kind: ADDS of runtime/operation.cuh
_ASYNC_KINDS = {"st.async": int(Operation.STORE_ASYNC), "red.async": Operation.STORE_ASYNC | _ADDS}

_GUARD = re.compile(r"@!?\S+\s+")


def run(context: Context) -> None:
    """Insert hooks at every bulk operation."""
    for plan in context.plans.values():
        for work in plan.work:
            if work.row.family in ("bulk", "tensor"):
                try:
                    _handler(work)(context, plan, work)
                except Unsupported:
                    context.unmodelled(plan, work.instruction)


def _handler(work: Work) -> Callable[[Context, FunctionPlan, Work], None]:
    name = work.row.name
    if name == "cp.async.bulk.commit_group":
        return _commit
    if name == "cp.async.bulk.wait_group":
        return _wait
    if name == "st.bulk":
        return _fill
    return _copy


def _shared_side(work: Work, access: str) -> Access | None:
    found = (
        a
        for a in work.row.accesses(work.instruction)
        if a.space == "shared" and a.access in access and a.address is not operand_of(work, "mbar")
    )
    return next(found, None)


def _copy(context: Context, plan: FunctionPlan, work: Work) -> None:
    written, read = _shared_side(work, "write rmw"), _shared_side(work, "read")
    side = written or read
    if side is None or side.address is None:
        raise Unsupported("no side in shared memory")
    snippet = Snippet()
    address = _place(context, work, side, snippet, ranked=written is not None)
    site = context.site(plan, work, side.access, "shared", 0)
    arguments = [*caller_arguments(), ("b32", address), ("b32", str(site.number | context.source(site) << 16))]
    hook = "__consan_bulk_load" if written is not None else "__consan_bulk_store"
    mbarrier = barrier_address(context, work, snippet) if written is not None else "0"
    global_sides.add_side(context, work, site, mbarrier, snippet)
    if written is not None:
        kind = _ASYNC_KINDS.get(work.row.name, int(Operation.BULK_LOAD))
        arguments += [("b32", _bytes(context, work, side, snippet)), ("b32", mbarrier)]
        hook, more = _load_of(context, work, read, snippet, kind)
        arguments += more
    elif is_tile(work):
        hook = "__consan_tensor_store"
        arguments += map_and_place(work, snippet)
    else:
        arguments.append(("b32", _bytes(context, work, side, snippet)))
    snippet.call(context.hook(hook), arguments)
    plan.stats.memory_sites += 1
    _in_one_region(context, work, snippet.text())


def _place(context: Context, work: Work, side: Access, snippet: Snippet, *, ranked: bool) -> str:
    """The address of a side. Only a written side can be in another CTA (ISA "cp.async.bulk": sources are .shared::cta)."""
    assert side.address is not None
    address = shared_operand(snippet, side.address, side.space, work.instruction.scope, context.window)
    return context.located(snippet, address, ranked=ranked and is_ranked(work.instruction, side.space))


def _load_of(context: Context, work: Work, read: Access | None, snippet: Snippet, kind: int) -> tuple[str, list[tuple[str, str]]]:
    """The hook of a copy into shared memory, and its last arguments."""
    mask = operand_of(work, "cta-mask")
    if mask is None and read is None:
        return "__consan_bulk_load", [("b32", str(kind))]
    if not context.variant.cluster:
        raise Unsupported("other CTAs of a cluster")
    if read is not None:
        return "__consan_bulk_push", [("b32", _place(context, work, read, snippet, ranked=False))]
    assert mask is not None
    pairs = str(int("cta_group::2" in work.instruction.parts))
    return "__consan_bulk_multicast", [("b32", str(kind)), ("b32", word(mask, snippet, work.instruction.scope)), ("b32", pairs)]


def _in_one_region(context: Context, work: Work, text: str) -> None:
    """Put the hook before a copy, and the copy, under one branch on their common guard.

    A copy executes on the warp's uniform path. If its guard comes from `elect.sync`, the assembler drops the guard, because it assumes a
    converged warp. After a guarded call the warp need not be converged, and lanes that were not elected would copy too.
    """
    instruction, guard = work.instruction, work.instruction.predicate
    if guard is None:
        context.edits.insert_before(instruction, text)
        return
    label = f"$__consan_copy{instruction.start}"
    context.edits.insert_before(instruction, f"@{'' if guard.negated else '!'}{guard.register} bra {label};\n{text}")
    context.edits.replace(instruction, _GUARD.sub("", instruction.text, count=1))
    context.edits.insert_after(instruction, f"\n{label}:\n")


def _bytes(context: Context, work: Work, side: Access, snippet: Snippet) -> str:
    tensor = operand_of(work, "tensor")
    if tensor is not None:
        return _box_bytes(context, work, tensor, snippet)
    size = operand_of(work, "size")
    if size is not None:
        return word(size, snippet, work.instruction.scope)
    if not side.total_bytes:
        raise Unsupported("size")
    return str(side.total_bytes)


def _box_bytes(context: Context, work: Work, tensor: Operand, snippet: Snippet) -> str:
    target, instruction = snippet.register("b32"), work.instruction
    times = _GATHERED if any(part in instruction.parts for part in ("tile::gather4", "tile::scatter4")) else 1
    arguments = [("b64", map_address(work, tensor, snippet)), ("b32", str(times))]
    snippet.call(context.hook("__consan_tensor_bytes"), arguments, result=("b32", target))
    return target


def _fill(context: Context, plan: FunctionPlan, work: Work) -> None:
    """st.bulk is a weak store of the executing thread, of any size. A generic address must also be in shared memory (ISA "st.bulk")."""
    instruction, size, snippet = work.instruction, operand_of(work, "size"), Snippet()
    side = next((access for access in work.row.accesses(instruction) if access.access == "write"), None)
    if side is None or side.address is None or size is None:
        raise Unsupported("st.bulk")
    address = _place(context, work, side, snippet, ranked=True)
    site = context.site(plan, work, "write", "shared", 0)
    arguments = [*caller_arguments(), ("b32", address), ("b32", str(site.number)), ("b32", word(size, snippet, instruction.scope))]
    snippet.call(context.hook("__consan_fill"), arguments, guard=guard_text(instruction))
    plan.stats.memory_sites += 1
    context.edits.insert_before(instruction, snippet.text())


def _commit(context: Context, plan: FunctionPlan, work: Work) -> None:
    snippet = Snippet()
    snippet.call(context.hook("__consan_bulk_commit"), [("b64", SLOT), ("b64", STATE), ("b32", SELF)], guard=guard_text(work.instruction))
    context.edits.insert_after(work.instruction, "\n" + snippet.text())
    plan.stats.sync_sites += 1


def _wait(context: Context, plan: FunctionPlan, work: Work) -> None:
    snippet = Snippet()
    pending = word(work.instruction.operands[0], snippet, work.instruction.scope)
    only = str(int("read" in work.instruction.parts))
    global_sides.add_wait(context, work, pending, snippet)
    arguments = [("b64", SLOT), ("b64", STATE), ("b32", SELF), ("b32", pending), ("b32", only)]
    snippet.call(context.hook("__consan_bulk_wait"), arguments, guard=guard_text(work.instruction))
    context.edits.insert_after(work.instruction, "\n" + snippet.text())
    plan.stats.sync_sites += 1
