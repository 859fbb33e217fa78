"""Bulk and tensor copies, their groups, st.async, red.async and st.bulk (ISA "cp.async.bulk", "cp.async.bulk.tensor").

A copy is recorded at issue. The size of a tensor copy is in its tensor map, which the device reads at the instruction; tiled stores
exclude what lies outside the tensor. Hooks of commits and waits come after the instruction.

globals.py handles the sides in global memory.

A copy may reach other CTAs of the cluster: by its address, by a mask, or from this CTA's shared memory (runtime/cluster.cuh).

Not handled: stores in im2col mode, scattered, or from interleaved tensors count as reading their whole box.
"""

from __future__ import annotations

import re

from consan.instrument.abi.bits import SITES
from consan.instrument.abi.flags import OperationFlags
from consan.instrument.abi.hooks import Value, hook
from consan.instrument.findings import Operation
from consan.instrument.isa import MemoryAccess
from consan.instrument.passes import globals as global_sides
from consan.instrument.passes.mbarriers import barrier_address
from consan.instrument.ptx import Operand
from consan.instrument.rewriting.context import Context, FunctionPlan, Handler, Work, operand_of
from consan.instrument.rewriting.emit import Snippet, Unsupported, is_ranked, shared_operand, word
from consan.instrument.rewriting.tensor_operands import is_tile, map_address, map_and_place

_GATHERED = 4  # rows of tile::gather4 and tile::scatter4

_ASYNC_KINDS = {"st.async": int(Operation.STORE_ASYNC), "red.async": Operation.STORE_ASYNC | OperationFlags.ADDS}

_GUARD = re.compile(r"@!?\S+\s+")


def run(context: Context) -> None:
    """Insert hooks at every bulk operation."""
    context.instrument(lambda work: _HANDLERS.get(work.row.name, _copy) if work.row.is_bulk else None)


def _shared_side(work: Work, access: str) -> MemoryAccess | None:
    found = (a for a in work.event.accesses if a.in_shared and a.access in access and a.address is not operand_of(work, "mbar"))
    return next(found, None)


def _copy(context: Context, plan: FunctionPlan, work: Work) -> None:
    written, read = _shared_side(work, "write rmw"), _shared_side(work, "read")
    side = written or read
    if side is None or side.address is None:
        raise Unsupported("no side in shared memory")
    snippet = Snippet()
    address = _place(context, work, side, snippet, ranked=written is not None)
    site = context.site(plan, work, side.access, "shared", 0)
    values: dict[str, Value] = {"address": address, "sites": SITES.pack({"site": site.number, "source": context.source(site)})}
    mbarrier = barrier_address(context, work, snippet) if written is not None else "0"
    global_sides.add_side(context, work, site, mbarrier, snippet)
    if written is not None:
        kind = _ASYNC_KINDS.get(work.row.name, Operation.BULK_LOAD | OperationFlags.ADDS * written.updates)
        nbytes = _bytes(context, work, side, snippet)
        name, more = _load_of(context, work, read, snippet, kind)
        context.call(snippet, hook(name, **values, bytes=nbytes, mbarrier=mbarrier, **more))
    elif is_tile(work):
        context.call(snippet, hook("tensor_store", **values, **map_and_place(work, snippet)))
    else:
        context.call(snippet, hook("bulk_store", **values, bytes=_bytes(context, work, side, snippet)))
    plan.stats.memory_sites += 1
    _in_one_region(context, work, snippet.text())


def _place(context: Context, work: Work, side: MemoryAccess, snippet: Snippet, *, ranked: bool) -> str:
    """The address of a side. Only a written side can be in another CTA (ISA "cp.async.bulk": sources are .shared::cta)."""
    assert side.address is not None
    address = shared_operand(snippet, side.address, side.space, work.instruction.scope, context.window)
    return context.located(snippet, address, ranked=ranked and is_ranked(side))


def _load_of(context: Context, work: Work, read: MemoryAccess | None, snippet: Snippet, kind: int) -> tuple[str, dict[str, Value]]:
    """The hook of a copy into shared memory, and the arguments that only this hook takes."""
    mask = operand_of(work, "cta-mask")
    if mask is None and read is None:
        return "bulk_load", {"kind": kind}
    if not context.variant.cluster:
        raise Unsupported("other CTAs of a cluster")
    if read is not None:
        return "bulk_push", {"source": _place(context, work, read, snippet, ranked=False), "kind": kind}
    assert mask is not None
    pairs = "cta_group::2" in work.words
    return "bulk_multicast", {"kind": kind, "mask": word(mask, snippet, work.instruction.scope), "pairs": pairs}


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


def _bytes(context: Context, work: Work, side: MemoryAccess, snippet: Snippet) -> str:
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
    target = snippet.register("b32")
    times = _GATHERED if any(part in work.words for part in ("tile::gather4", "tile::scatter4")) else 1
    context.call(snippet, hook("tensor_bytes", map=map_address(work, tensor, snippet), times=times), result=target)
    return target


def _fill(context: Context, plan: FunctionPlan, work: Work) -> None:
    """st.bulk is a weak store of the executing thread, of any size. A generic address must also be in shared memory (ISA "st.bulk")."""
    instruction, size, snippet = work.instruction, operand_of(work, "size"), Snippet()
    side = next((access for access in work.event.accesses if access.writes), None)
    if side is None or side.address is None or size is None:
        raise Unsupported("no address or size")
    address = _place(context, work, side, snippet, ranked=True)
    site = context.site(plan, work, "write", "shared", 0)
    nbytes = word(size, snippet, instruction.scope)
    plan.stats.memory_sites += 1
    context.before(work, snippet, hook("fill", address=address, site=site.number, bytes=nbytes))


def _commit(context: Context, plan: FunctionPlan, work: Work) -> None:
    context.after(work, Snippet(), hook("bulk_commit"))
    plan.stats.sync_sites += 1


def _wait(context: Context, plan: FunctionPlan, work: Work) -> None:
    snippet = Snippet()
    pending = word(work.instruction.operands[0], snippet, work.instruction.scope)
    global_sides.add_wait(context, work, pending, snippet)
    context.after(work, snippet, hook("bulk_wait", pending=pending, read_only=work.flags["read_only"]))
    plan.stats.sync_sites += 1


_HANDLERS: dict[str, Handler] = {
    "cp.async.bulk.commit_group": _commit,
    "cp.async.bulk.wait_group": _wait,
    "st.bulk": _fill,
}
