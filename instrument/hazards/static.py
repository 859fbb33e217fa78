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
    """The waits of a module whose results are ignored, in text order."""
    found = ((function, wait) for function in module.functions for wait in ignored_waits(function))
    return tuple(_finding(module, function, wait) for function, wait in found if row_of(wait).is_blocking_phase_wait)


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
