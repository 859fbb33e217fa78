"""The recording of what the text does not say of tcgen05: the address that an allocation gives, and which uses complete a load.

consan/checker/source/tensor_memory/tensor_memory.hpp computes from events which cells and bytes an operation touches. An allocation has two
events: before it what was asked for, because it may wait for ever; behind it the address that was given, read from where it was stored.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from consan.instrument.control_flow import Graph
from consan.instrument.effects import TensorLd, TensorWait, WordValue
from consan.instrument.effects.makes import Makes
from consan.instrument.record.analyses.consumed import consumed
from consan.instrument.record.families.lowering import put
from consan.instrument.rewriting.context import FunctionPlan, Work
from consan.instrument.rewriting.emit import Snippet, guard_text, shared_address, wide_address

if TYPE_CHECKING:
    from consan.instrument.record.recorder import FunctionRecorder

_LOADS, _CONSUMED = 1, 3  # TensorWait.what


def numbers_of_loads(plan: FunctionPlan) -> dict[int, int]:
    """The numbers of the loads of a function, by their start. Waits for loads are counted, too."""
    works = (work for work in plan.work if work.row.does(TensorLd) or _waits_for_loads(work))
    return {work.instruction.start: number for number, work in enumerate(works) if work.row.does(TensorLd)}


def completions(plan: FunctionPlan, graph: Graph, loads: dict[int, int]) -> dict[int, list[int]]:
    """The numbers of the loads that an instruction completes by its use of their registers, by its start."""
    waits = {work.instruction.start for work in plan.work if _waits_for_loads(work)}
    return consumed(graph, loads, waits) if loads else {}


def _waits_for_loads(work: Work) -> bool:
    return any(made.kind is TensorWait and made.numbers["what"] == _LOADS for made in work.row.makes)


def add_completed(kernel: FunctionRecorder, load: int) -> None:
    """The registers of a load have been used."""
    kernel.open_block().add(TensorWait(what=_CONSUMED, load=load))


def add_load(kernel: FunctionRecorder, work: Work, made: Makes) -> None:
    """A load, with its number."""
    put(kernel, work, made, load=kernel.facts.loads[work.instruction.start])


def add_allocated(kernel: FunctionRecorder, work: Work, made: Makes) -> None:
    """An allocation that has been served."""
    put(kernel, work, made, cells=lambda: _given(kernel, work))


def _given(kernel: FunctionRecorder, work: Work) -> WordValue:
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
