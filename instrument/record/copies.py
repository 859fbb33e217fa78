"""The recording of cp.async (ISA "cp.async", "cp.async.wait_group / cp.async.wait_all")."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from consan.instrument.effects import WordValue
from consan.instrument.effects.kinds import CopyCommit, CopyIssue, CopyWait
from consan.instrument.passes.context import Work
from consan.instrument.passes.copies import source_bytes
from consan.instrument.passes.emit import Snippet, Unsupported
from consan.instrument.record import lowering
from consan.instrument.record.lowering import at
from consan.instrument.record.words import keys_of

if TYPE_CHECKING:
    from consan.instrument.record.rewrite import KernelRewrite


def add_copy(kernel: KernelRewrite, work: Work) -> None:
    """A cp.async at its issue."""
    written, read = (next(each for each in work.event.accesses if each.access == access) for access in ("write", "read"))
    if written.total_bytes not in (4, 8, 16) or written.address is None or read.address is None:
        raise Unsupported("cp.async size")
    touch, place = ("write", "shared", written.total_bytes), at(written, "shared")
    if kernel.seals:
        kernel.record(work, CopyIssue, touch, at=place, bytes=written.total_bytes, reads=WordValue(written.total_bytes))
        return
    size = functools.partial(_size, kernel, work, written.total_bytes)
    kernel.record(work, CopyIssue, touch, at=place, bytes=written.total_bytes, source=read.address, reads=size)


def _size(kernel: KernelRewrite, work: Work, whole: int) -> WordValue:
    """The bytes that a copy reads."""
    snippet = Snippet()
    size = source_bytes(work, whole, snippet)
    if size.isdecimal():
        return WordValue(int(size))
    word, code = kernel.open_block().unhashed([size], snippet, keys_of(work.instruction.operands, work.instruction.scope))
    kernel.pending += code
    return WordValue(0, word)


def add_wait(kernel: KernelRewrite, work: Work) -> None:
    """A wait for groups. wait_all is commit_group and wait_group 0 (ISA "cp.async.wait_all")."""
    if work.row.makes is not None:
        lowering.add(kernel, work)
        return
    kernel.record(work, CopyCommit)
    kernel.record(work, CopyWait, counted=False, pending=WordValue())


HANDLERS = {"cp.async": add_copy, "cp.async.commit": lowering.add, "cp.async.wait": add_wait}
