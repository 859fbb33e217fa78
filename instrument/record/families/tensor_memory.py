"""The recording of what the text does not say of tcgen05: the address that an allocation gives, and which uses complete a load.

consan/checker/source/tensor_memory/tensor_memory.hpp computes from events which cells and bytes an operation touches. An allocation has two
events: before it what was asked for, because it may wait for ever; behind it the address that was given, read from where it was stored.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from consan.instrument.effects import TensorLd, TensorWait, WordValue
from consan.instrument.effects.makes import Makes
from consan.instrument.record.analyses.consumed import consumed
from consan.instrument.record.families.lowering import put
from consan.instrument.rewriting.context import Work
from consan.instrument.rewriting.emit import Snippet, guard_text, shared_address, wide_address

if TYPE_CHECKING:
    from consan.instrument.record.rewrite import KernelRewrite

_LOADS, _CONSUMED = 1, 3  # TensorWait.what


def completions(kernel: KernelRewrite) -> dict[int, list[int]]:
    """The numbers of the loads that an instruction completes by its use of their registers, by its start."""
    works = [work for work in kernel.plan.work if work.row.does(TensorLd) or _waits_for_loads(work)]
    waits = {work.instruction.start for work in works if _waits_for_loads(work)}
    kernel.loads = {work.instruction.start: number for number, work in enumerate(works) if work.row.does(TensorLd)}
    return consumed(kernel.graph, kernel.loads, waits) if kernel.loads else {}


def _waits_for_loads(work: Work) -> bool:
    return any(made.kind is TensorWait and made.numbers["what"] == _LOADS for made in work.row.makes)


def add_completed(kernel: KernelRewrite, load: int) -> None:
    """The registers of a load have been used."""
    kernel.open_block().add(TensorWait(what=_CONSUMED, load=load))


def add_load(kernel: KernelRewrite, work: Work, made: Makes) -> None:
    """A load, with its number."""
    put(kernel, work, made, load=kernel.loads[work.instruction.start])


def add_allocated(kernel: KernelRewrite, work: Work, made: Makes) -> None:
    """An allocation that has been served."""
    put(kernel, work, made, cells=lambda: _given(kernel, work))


def _given(kernel: KernelRewrite, work: Work) -> WordValue:
    """The address in tensor memory that an allocation has stored."""
    instruction, access, snippet = work.instruction, work.event.first, Snippet()
    given = snippet.register("b32")
    guard, shared = guard_text(instruction), not access.is_generic
    assert access.address is not None
    place = (shared_address if shared else wide_address)(snippet, access.address, instruction.scope)
    snippet.add(f"mov.b32 {given}, 0;")
    snippet.add(f"{guard}ld{'.shared' if shared else ''}.u32 {given}, [{place}];")
    position, code = kernel.open_block().hashed(given, snippet)
    kernel.pending += code
    return WordValue(0, position)
