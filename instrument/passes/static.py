"""The findings that follow from the text alone: they hold for each launch of their kernels, with either engine."""

from __future__ import annotations

from consan.instrument.passes.ignored import find_ignored_waits
from consan.instrument.passes.registers import find_register_hazards
from consan.instrument.ptx import Module
from consan.instrument.sites import StaticFinding


def static_findings(module: Module, families: set[str]) -> tuple[StaticFinding, ...]:
    """Registers of matrix products, and waits whose results are ignored. `families`: of the instructions of the module."""
    registers = find_register_hazards(module) if "wgmma" in families else ()
    return (*registers, *(find_ignored_waits(module) if "mbarrier" in families else ()))
