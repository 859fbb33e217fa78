"""The findings that follow from the text alone: they hold for each launch of their kernels, with either engine."""

from __future__ import annotations

from consan.instrument.hazards.registers import find_register_hazards, kernels_reaching
from consan.instrument.isa import row_of
from consan.instrument.ptx import Function, Instruction, Module
from consan.instrument.rewriting.context import place_of
from consan.instrument.sites import StaticFinding
from consan.instrument.waits.ignored import ignored_waits


def static_findings(module: Module, families: set[str]) -> tuple[StaticFinding, ...]:
    """Registers of matrix products, and waits whose results are ignored. `families`: of the instructions of the module."""
    registers = find_register_hazards(module) if "wgmma" in families else ()
    return (*registers, *(find_ignored_waits(module) if "mbarrier" in families else ()))


def find_ignored_waits(module: Module) -> tuple[StaticFinding, ...]:
    """The waits of a module whose results are ignored, in text order.

    A compiler copies the statements of a loop: one whose result another copy uses looks ahead, and the last copy's result is not needed.
    """
    found = {function: [wait for wait in ignored_waits(function) if row_of(wait).is_blocking_phase_wait] for function in module.functions}
    return tuple(
        _finding(module, function, wait) for function, waits in found.items() for wait in _of_whole_statements(module, function, waits)
    )


def _of_whole_statements(module: Module, function: Function, ignored: list[Instruction]) -> list[Instruction]:
    """Those whose results no copy uses."""
    if not ignored:
        return []
    lines = {id(wait): at for wait in function.instructions() if row_of(wait).is_phase_wait and (at := _statement(module, wait))}
    used = {at for wait, at in lines.items() if wait not in set(map(id, ignored))}
    return [wait for wait in ignored if lines.get(id(wait)) not in used]


def _statement(module: Module, wait: Instruction) -> tuple[object, ...]:
    """The place in the source; empty if it is not known."""
    place = place_of(module, wait)
    return (place.file, place.line, place.column, place.inlined) if place.line else ()


def _finding(module: Module, function: Function, wait: Instruction) -> StaticFinding:
    place = place_of(module, wait)
    return StaticFinding(
        reason="result-ignored",
        hazard="",
        first=place,
        second=place,
        first_role="wait",
        second_role="wait",
        registers=(wait.operands[0].text,),
        leave=0,
        function=function.name,
        kernels=kernels_reaching(module, function.name),
        kind="barrier-misuse",
    )
