"""The recording of cp.async (ISA "cp.async", "cp.async.wait_group / cp.async.wait_all")."""

from __future__ import annotations

from typing import TYPE_CHECKING

from consan.instrument.passes.context import Work
from consan.instrument.passes.copies import source_bytes
from consan.instrument.passes.emit import Snippet, Unsupported
from consan.instrument.ptx import Immediate, Operand
from consan.instrument.record.sides import global_address
from consan.instrument.record.templates import NO_WORD, Event, TemplateEvent
from consan.instrument.record.words import keys_of

if TYPE_CHECKING:
    from consan.instrument.record.rewrite import KernelRewrite


def add_copy(kernel: KernelRewrite, work: Work) -> None:
    """A cp.async at its issue."""
    instruction, block = work.instruction, kernel.open_block()
    written, read = (next(each for each in work.event.accesses if each.access == access) for access in ("write", "read"))
    if written.total_bytes not in (4, 8, 16) or written.address is None or read.address is None:
        raise Unsupported("cp.async size")
    fields, code = block.address(instruction, written.address, "shared")
    kernel.pending += code
    site = kernel.context.site(kernel.plan, work, "write", "shared", written.total_bytes).number
    source, size, size_word = NO_WORD, written.total_bytes, NO_WORD
    if not kernel.seals:
        source = global_address(kernel, instruction, read.address, "global")
        size, size_word = _size(kernel, work, written.total_bytes)
    block.add(TemplateEvent(Event.COPY, 0, site, written.total_bytes, **fields, value_word=source, b=size, b_word=size_word))
    kernel.plan.stats.memory_sites += 1


def _size(kernel: KernelRewrite, work: Work, whole: int) -> tuple[int, int]:
    """The bytes that a copy reads: a number, or a word."""
    snippet = Snippet()
    size = source_bytes(work, whole, snippet)
    if size.isdecimal():
        return int(size), -1
    word, code = kernel.open_block().unhashed([size], snippet, keys_of(work.instruction.operands, work.instruction.scope))
    kernel.pending += code
    return 0, word


def add_commit(kernel: KernelRewrite, work: Work) -> None:
    """A commit of a group."""
    _group(kernel, work, Event.COPY_COMMIT, None)


def add_wait(kernel: KernelRewrite, work: Work) -> None:
    """A wait for groups. wait_all is commit_group and wait_group 0 (ISA "cp.async.wait_all")."""
    if work.row.action == "wait_all":
        _group(kernel, work, Event.COPY_COMMIT, None)
        kernel.plan.stats.sync_sites -= 1  # it is one instruction
        _group(kernel, work, Event.COPY_WAIT, Immediate("0", 0, "int"))
    else:
        _group(kernel, work, Event.COPY_WAIT, work.instruction.operands[0])


def _group(kernel: KernelRewrite, work: Work, kind: Event, pending: Operand | None) -> None:
    block = kernel.open_block()
    guard = kernel.guard(block, work.instruction)
    a, a_word = (0, -1) if pending is None else kernel.number_of(block, work.instruction, pending)
    site = kernel.context.site(kernel.plan, work, "none", "none", 0).number
    block.add(TemplateEvent(kind, site=site, guard_word=guard, a=a, a_word=a_word))
    kernel.plan.stats.sync_sites += 1


HANDLERS = {"cp.async": add_copy, "cp.async.commit": add_commit, "cp.async.wait": add_wait}
