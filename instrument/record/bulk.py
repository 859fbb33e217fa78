"""The recording of bulk and tensor copies, their groups, st.async, red.async, st.bulk, and proxy fences (ISA "cp.async.bulk",
"cp.async.bulk.tensor", "st.async", "st.bulk", "fence.proxy").

A copy may reach other CTAs of the cluster: by its address, by a mask, or from this CTA's shared memory. Not taken: tensor copies in
mode im2col::w.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from consan.instrument.isa import MemoryAccess
from consan.instrument.passes.context import FunctionPlan, Work, operand_of
from consan.instrument.passes.emit import Unsupported
from consan.instrument.ptx import Operand
from consan.instrument.record import clusters, tensormaps, tensors
from consan.instrument.record.clusters import flags_of
from consan.instrument.record.sides import global_address
from consan.instrument.record.templates import Event, Flag, TemplateEvent

if TYPE_CHECKING:
    from consan.instrument.record.rewrite import KernelRewrite

FAMILIES = frozenset({"bulk", "tensor", "proxy-fence"})
_COPIES = ("cp.async.bulk", "cp.reduce.async.bulk", "cp.async.bulk.tensor", "cp.reduce.async.bulk.tensor")
_GROUPS = {"cp.async.bulk.commit_group": Event.BULK_COMMIT, "cp.async.bulk.wait_group": Event.BULK_WAIT}
_ELEMENTS = {"f16": 2, "bf16": 2, "f32": 4, "s32": 4, "u32": 4, "b32": 4, "f64": 8, "s64": 8, "u64": 8, "b64": 8}  # bytes, of reductions
_SHARED, _GLOBAL = 1, 2  # memories of a proxy fence
_FENCES = {
    ("async",): _SHARED | _GLOBAL,
    ("async", "global"): _GLOBAL,
    ("async", "shared::cta"): _SHARED,
    ("async", "shared::cluster"): _SHARED,
}


def refused(work: Work) -> bool:
    """Whether an operation of these families is one that is not taken."""
    if work.row.family == "proxy-fence":
        return not _memories(work) and not tensormaps.is_fence(work)
    if work.row.name in _BY_NAME:
        return False
    return work.row.name not in _COPIES or not (_is_load(work) or _is_store(work) or _is_push(work))


def _is_load(work: Work) -> bool:
    return _sides(work) == {("global", "read"), ("shared", "write")} and tensors.is_taken(work)


def _is_store(work: Work) -> bool:
    return _sides(work) in ({("shared", "read"), ("global", "write")}, {("shared", "read"), ("global", "rmw")}) and tensors.is_taken(work)


def _is_push(work: Work) -> bool:
    return _sides(work) in ({("shared", "read"), ("shared", "write")}, {("shared", "read"), ("shared", "rmw")})


def _sides(work: Work) -> set[tuple[str, str]]:
    return {(side.space, side.access) for side in work.event.accesses if side.address is not operand_of(work, "mbar")}


def reads_global(plan: FunctionPlan) -> bool:
    """Whether a function has copies from global memory."""
    return any(work.row.name in _COPIES and _is_load(work) for work in plan.work)


def results(plan: FunctionPlan) -> bool:
    """Whether a function has copies to global memory."""
    return any(work.row.name in _COPIES and _is_store(work) for work in plan.work)


def add(kernel: KernelRewrite, work: Work) -> None:
    """An operation of the families bulk and tensor."""
    _BY_NAME.get(work.row.name, _add_push if _is_push(work) else _add_copy)(kernel, work)


def _add_copy(kernel: KernelRewrite, work: Work) -> None:
    instruction, block, loads = work.instruction, kernel.open_block(), _is_load(work)
    shared, outer = _side(work, "shared"), _side(work, "global")
    if shared.address is None:
        raise Unsupported(f"{instruction.opcode} without an address")
    fields, code = block.address(instruction, shared.address, "shared")
    kernel.pending += code
    fields["site"] = kernel.context.site(kernel.plan, work, shared.access, "shared", 0).number
    flags = flags_of(work, shared) | Flag.ADDS * (outer.access == "rmw")
    if loads:
        fields["b"], fields["b_word"] = _mbarrier(kernel, work)
        if (mask := operand_of(work, "cta-mask")) is not None:
            flags |= Flag.MULTICAST | Flag.PAIR * ("cta_group::2" in work.words)
            fields["c"], fields["c_word"] = kernel.number_of(block, instruction, mask)
    if operand_of(work, "tensor") is not None:
        kind = Event.TENSOR_LOAD if loads else Event.TENSOR_STORE
        fields["value_word"], fields["bytes"] = tensors.add_words(kernel, work)
        flags |= Flag.FOUR_ROWS * tensors.takes_rows(work) | Flag.MAP * tensors.map_in_memory(kernel, work)
    else:
        kind = Event.BULK_LOAD if loads else Event.BULK_STORE
        fields["a"], fields["a_word"] = kernel.number_of(block, instruction, operand_of(work, "size"))
        fields["value_word"] = _outer_address(kernel, work, outer.address)
        fields["bytes"] = _ELEMENTS[work.words[-1]] if outer.access == "rmw" else 0
        if (chosen := operand_of(work, "byte-mask")) is not None:
            flags |= Flag.MASKED
            fields["c"], fields["c_word"] = kernel.number_of(block, instruction, chosen)
    block.add(TemplateEvent(kind, int(flags), **fields))
    kernel.plan.stats.memory_sites += 1


def _add_store(kernel: KernelRewrite, work: Work) -> None:
    """st.async or red.async, by one thread."""
    side = _side(work, "shared")
    if not side.total_bytes:
        raise Unsupported(work.instruction.opcode)
    fields = _shared_place(kernel, work, side)
    fields["b"], fields["b_word"] = _mbarrier(kernel, work)
    flags = flags_of(work, side) | Flag.STRONG * (side.access == "rmw")
    _add(kernel, work, side, TemplateEvent(Event.STORE_ASYNC, int(flags), bytes=side.total_bytes, a=side.width_bytes, **fields))


def _add_fill(kernel: KernelRewrite, work: Work) -> None:
    """st.bulk: a weak store of the thread, of any size."""
    side = next(access for access in work.event.accesses if access.access == "write")
    fields = _shared_place(kernel, work, side)
    fields["b"], fields["b_word"] = kernel.number_of(kernel.open_block(), work.instruction, operand_of(work, "size"))
    _add(kernel, work, side, TemplateEvent(Event.FILL, int(flags_of(work, side)), **fields))


def _add_push(kernel: KernelRewrite, work: Work) -> None:
    """A copy from shared memory to that of a CTA of the cluster, or a reduction: then `bytes` is those of an element."""
    to, source = _to_shared(work), next(side for side in work.event.accesses if side.access == "read")
    adds = to.access == "rmw"
    fields = _shared_place(kernel, work, to)
    fields["a"], fields["a_word"] = kernel.number_of(kernel.open_block(), work.instruction, operand_of(work, "size"))
    fields["b"], fields["b_word"] = _mbarrier(kernel, work)
    given = _shared_place(kernel, work, source)
    fields["c"], fields["c_word"] = given.get("offset", 0), given.get("address_word", -1)
    flags, element = flags_of(work, to) | Flag.ADDS * adds, _ELEMENTS[work.words[-1]] if adds else 0
    _add(kernel, work, to, TemplateEvent(Event.BULK_PUSH, int(flags), bytes=element, **fields))


def _to_shared(work: Work) -> MemoryAccess:
    return next(side for side in work.event.accesses if side.access in ("write", "rmw") and side.address is not operand_of(work, "mbar"))


def _shared_place(kernel: KernelRewrite, work: Work, side: MemoryAccess) -> dict[str, int]:
    """The fields of an event that give an address in shared memory."""
    if side.address is None:
        raise Unsupported(f"{work.instruction.opcode} without an address")
    space = side.space if any(word.startswith("shared") for word in work.words) else "generic"
    fields, code = kernel.open_block().address(work.instruction, side.address, space)
    kernel.pending += code
    return fields


def _add(kernel: KernelRewrite, work: Work, side: MemoryAccess, event: TemplateEvent) -> None:
    site = kernel.context.site(kernel.plan, work, side.access, "shared", side.total_bytes).number
    kernel.open_block().add(replace(event, site=site))
    kernel.plan.stats.memory_sites += 1


def _side(work: Work, space: str) -> MemoryAccess:
    return next(side for side in work.event.accesses if side.space == space and side.address is not operand_of(work, "mbar"))


def _mbarrier(kernel: KernelRewrite, work: Work) -> tuple[int, int]:
    """The mbarrier of a load: a number, and a word to add."""
    access = next(side for side in work.event.accesses if side.address is operand_of(work, "mbar"))
    if access.address is None:
        raise Unsupported(f"{work.instruction.opcode} without an mbarrier")
    fields = _shared_place(kernel, work, access)
    return fields.get("offset", 0), fields.get("address_word", -1)


def _outer_address(kernel: KernelRewrite, work: Work, address: Operand | None) -> int:
    if address is None or operand_of(work, "size") is None:
        raise Unsupported(f"{work.instruction.opcode} without an address")
    return global_address(kernel, work.instruction, address, "global")


def _add_group(kernel: KernelRewrite, work: Work) -> None:
    block, instruction = kernel.open_block(), work.instruction
    guard, kind = kernel.guard(block, instruction), _GROUPS[work.row.name]
    a, a_word = kernel.number_of(block, instruction, instruction.operands[0]) if kind is Event.BULK_WAIT else (0, -1)
    flags, site = Flag.READ_ONLY * ("read" in work.words), kernel.context.site(kernel.plan, work, "none", "none", 0).number
    block.add(TemplateEvent(kind, int(flags), site, guard_word=guard, a=a, a_word=a_word))
    kernel.plan.stats.sync_sites += 1


def _memories(work: Work) -> int:
    """The memories whose accesses a proxy fence orders. One of a direction, .async::generic, is taken for one of both."""
    return _FENCES.get(work.words, _SHARED if "async::generic" in work.words else 0)


def add_fence(kernel: KernelRewrite, work: Work) -> None:
    """A proxy fence. One with a release or an acquire (.async::generic) is a fence of the thread, too."""
    if tensormaps.is_fence(work):
        tensormaps.add_fence(kernel, work)
    elif memories := _memories(work):
        if "acquire" in work.words:
            clusters.add(kernel, work)
        block = kernel.open_block()
        guard = kernel.guard(block, work.instruction)
        flags = Flag.NARROW if "shared::cta" in work.words else Flag(0)
        site = kernel.context.site(kernel.plan, work, "none", "none", 0).number
        block.add(TemplateEvent(Event.PROXY_FENCE, int(flags), site, guard_word=guard, a=memories))
        kernel.plan.stats.sync_sites += 1
        if "release" in work.words:
            clusters.add(kernel, work)


_BY_NAME = dict.fromkeys(_GROUPS, _add_group) | {"st.async": _add_store, "red.async": _add_store, "st.bulk": _add_fill}
HANDLERS = {"bulk": add, "tensor": add, "proxy-fence": add_fence}
