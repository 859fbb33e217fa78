"""The recording of cp.async (ISA "cp.async", "cp.async.wait_group / cp.async.wait_all"), and of writes to its sources in global memory.

Addresses in global memory are not hashed: they differ in each CTA. Whether they matter follows from what is hashed (consan/checker).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from consan.instrument.isa import lookup
from consan.instrument.passes.context import Work
from consan.instrument.passes.copies import source_bytes
from consan.instrument.passes.emit import Snippet, Unsupported, wide_address
from consan.instrument.ptx import Immediate, Instruction, Operand
from consan.instrument.record.templates import Event, TemplateEvent

if TYPE_CHECKING:
    from consan.instrument.record.rewrite import KernelRewrite

_WRITERS = frozenset({"store", "atomic", "reduction"})
_GLOBAL = ("global", "generic")


def add_copy(kernel: KernelRewrite, work: Work) -> None:
    """A cp.async at its issue."""
    instruction, block = work.instruction, kernel.open_block()
    written, read = (next(each for each in work.event.accesses if each.access == access) for access in ("write", "read"))
    if written.total_bytes not in (4, 8, 16) or written.address is None or read.address is None:
        raise Unsupported("cp.async size")
    fields, code = block.address(instruction, written.address, "shared")
    kernel.pending += code
    site = kernel.context.site(kernel.plan, work, "write", "shared", written.total_bytes).number
    source = _address(kernel, instruction, read.address, "global")
    size, size_word = _size(kernel, work, written.total_bytes)
    block.add(TemplateEvent(Event.COPY, 0, site, written.total_bytes, **fields, value_word=source, b=size, b_word=size_word))
    kernel.plan.stats.memory_sites += 1


def _size(kernel: KernelRewrite, work: Work, whole: int) -> tuple[int, int]:
    """The bytes that a copy reads: a number, or a word."""
    snippet = Snippet()
    size = source_bytes(work, whole, snippet)
    if size.isdecimal():
        return int(size), -1
    word, code = kernel.open_block().unhashed([size], snippet)
    kernel.pending += code
    return 0, word


def add_commit(kernel: KernelRewrite, work: Work) -> None:
    """A commit of a group."""
    _group(kernel, work, Event.COPY_COMMIT, None)


def add_wait(kernel: KernelRewrite, work: Work) -> None:
    """A wait for groups. wait_all is commit_group and wait_group 0 (ISA "cp.async.wait_all")."""
    if work.row.action == "wait_all":
        _group(kernel, work, Event.COPY_COMMIT, None)
        _group(kernel, work, Event.COPY_WAIT, Immediate("0", 0, "int"))
    else:
        _group(kernel, work, Event.COPY_WAIT, work.instruction.operands[0])


def _group(kernel: KernelRewrite, work: Work, kind: Event, pending: Operand | None) -> None:
    block = kernel.open_block()
    guard = kernel.guard(block, work.instruction)
    a, a_word = (0, -1) if pending is None else kernel.number_of(block, work.instruction, pending)
    block.add(TemplateEvent(kind, guard_word=guard, a=a, a_word=a_word))
    kernel.plan.stats.sync_sites += 1


def writes_global(instruction: Instruction) -> bool:
    """Whether an instruction may write to global memory."""
    row = lookup(instruction.parts)
    return row is not None and row.family in _WRITERS and row.describe(instruction).space in _GLOBAL


def add_write(kernel: KernelRewrite, instruction: Instruction) -> None:
    """A write to global memory. One to a generic address is in the log also where it is in another space: it meets no source there."""
    row = lookup(instruction.parts)
    assert row is not None
    access = next(each for each in row.accesses(instruction) if each.space in _GLOBAL)
    if access.address is None:
        raise Unsupported(f"{instruction.opcode} without an address")
    work, block = Work(instruction, row), kernel.open_block()
    guard = kernel.guard(block, instruction)
    site = kernel.context.site(kernel.plan, work, "write", access.space, access.total_bytes).number
    address = _address(kernel, instruction, access.address, access.space)
    block.add(TemplateEvent(Event.GLOBAL_WRITE, 0, site, access.total_bytes, guard_word=guard, value_word=address))


def _address(kernel: KernelRewrite, instruction: Instruction, address: Operand, space: str) -> int:
    """The first of two words with an address in global memory."""
    snippet = Snippet()
    wide = wide_address(snippet, address, instruction.scope, "global" if space == "global" else "")
    low, high = snippet.register("b32"), snippet.register("b32")
    snippet.add(f"mov.b64 {{{low}, {high}}}, {wide};")
    word, code = kernel.open_block().unhashed([low, high], snippet)
    kernel.pending += code
    return word


HANDLERS = {"cp.async": add_copy, "cp.async.commit": add_commit, "cp.async.wait": add_wait}
