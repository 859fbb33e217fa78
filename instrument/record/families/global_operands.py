"""The recording of accesses to global memory, in modules whose asynchronous copies have a side there.

Addresses in global memory are not hashed: they differ in each CTA. Whether they matter follows from what is hashed (consan/checker).
An access to a generic address is in the log also where it is in another space: it meets no copy there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from consan.instrument.effects.kinds import BulkLoad, BulkStore, GlobalAccess, GlobalRead, GlobalWrite, TensorLoad, TensorStore
from consan.instrument.isa import NO_ACCESS, MemoryAccess, row_of, scalar_bytes
from consan.instrument.ptx import Instruction, Operand
from consan.instrument.record.text import surfaces, textures
from consan.instrument.record.text.orders import order_of
from consan.instrument.record.text.words import keys_of
from consan.instrument.rewriting.context import FunctionPlan, Work
from consan.instrument.rewriting.emit import Snippet, Unsupported, wide_address, word

if TYPE_CHECKING:
    from consan.instrument.record.recorder import FunctionRecorder

_NAMES = {surfaces.SURFACE: surfaces.name_of, textures.TEXTURE: textures.name_of}


def writes_global(instruction: Instruction) -> bool:
    """Whether an instruction may write to global memory."""
    return _access_of(instruction, GlobalWrite) is not None


def reads_global(instruction: Instruction) -> bool:
    """Whether an instruction may load from global memory."""
    return _access_of(instruction, GlobalRead) is not None


def _access_of(instruction: Instruction, *kinds: type[GlobalAccess]) -> MemoryAccess | None:
    """The access of the thread itself that may be one of global memory, of an instruction with some effects."""
    row = row_of(instruction)
    access = row.describe(instruction) if row.is_ordinary and row.does(*kinds) else NO_ACCESS
    return access if access.may_be_global else None


def fetches(plan: FunctionPlan) -> bool:
    """Whether a function has asynchronous copies in bulk from global memory."""
    return any(work.row.does(BulkLoad, TensorLoad) for work in plan.work)


def results(plan: FunctionPlan) -> bool:
    """Whether a function has such copies to global memory."""
    return any(work.row.does(BulkStore, TensorStore) for work in plan.work)


def add_access(kernel: FunctionRecorder, instruction: Instruction) -> None:
    """An access to global memory."""
    access = _access_of(instruction, GlobalRead, GlobalWrite)
    if access is None or access.address is None:
        raise Unsupported(f"{instruction.opcode} without an address")
    work, block = Work(instruction, row_of(instruction)), kernel.open_block()
    guard = kernel.guard(block, instruction)
    site = kernel.context.site(kernel.plan, work, access.access, access.space, access.total_bytes).number
    address = global_address(kernel, instruction, access.address, access.space)
    kind = GlobalWrite if access.writes else GlobalRead
    made = kind(
        site=site, guard=guard, bytes=access.total_bytes, address=address,
        strong=access.is_strong, order=order_of(work.event), element=scalar_bytes(work.instruction, access), adds=access.updates,
    )  # fmt: skip
    block.add(made)


def global_guard(kernel: FunctionRecorder, instruction: Instruction, access: MemoryAccess) -> int:
    """The word that says whether an access happens, and is one of global memory."""
    if not access.is_generic or access.address is None:
        return kernel.guard(kernel.open_block(), instruction)
    snippet = Snippet()
    wide = wide_address(snippet, access.address, instruction.scope)
    outside, word = snippet.register("pred"), snippet.register("b32")
    snippet.add(f"isspacep.global {outside}, {wide};")
    if instruction.predicate is not None:
        own = instruction.predicate
        executes = own.register
        if own.negated:
            executes = snippet.register("pred")
            snippet.add(f"not.pred {executes}, {own.register};")
        snippet.add(f"and.pred {outside}, {outside}, {executes};")
    snippet.add(f"selp.b32 {word}, 0, -1, {outside};")
    found, code = kernel.open_block().unhashed([word], snippet)
    kernel.pending += code
    return found


def global_address(kernel: FunctionRecorder, instruction: Instruction, address: Operand, space: str, unread: Sequence[Operand] = ()) -> int:
    """The first of two words with an address in global memory, or with the name of a byte of a surface or an element of a texture.

    `unread`: how many bytes at the beginning and at the end a bulk copy does not read, each below 16. They stand in bits that are zero in
    the address of such a copy: the lowest and the highest four.
    """
    snippet = Snippet()
    if space in _NAMES:
        wide = _NAMES[space](snippet, instruction, address)
    else:
        wide = wide_address(snippet, address, instruction.scope, "" if space == "generic" else space)
        snippet.add(f"cvta.const.u64 {wide}, {wide};" if space == "const" else "")
    low, high = snippet.register("b32"), snippet.register("b32")
    snippet.add(f"mov.b64 {{{low}, {high}}}, {wide};")
    for half, shift, count in zip((low, high), (0, 28), unread, strict=False):
        part = snippet.register("b32")
        snippet.add(f"and.b32 {part}, {word(count, snippet, instruction.scope)}, 15;")
        snippet.add(f"shl.b32 {part}, {part}, {shift}; or.b32 {half}, {half}, {part};")
    first, code = kernel.open_block().unhashed([low, high], snippet, keys_of([address, *unread], instruction.scope))
    kernel.pending += code
    return first
