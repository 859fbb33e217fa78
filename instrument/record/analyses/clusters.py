"""The facts of a module about clusters and fences (ISA "barrier.cluster", "membar, fence").

A fence has an event only in modules with relaxed arrivals or waits, or whose threads may synchronise through memory (global_memory.py). An
address in shared::cluster, and a generic one, names a CTA (consan/checker/source/basis/shape.hpp).
"""

from __future__ import annotations

from collections.abc import Iterable

from consan.instrument.ptx import Module
from consan.instrument.rewriting.context import FunctionPlan

_NEWEST = (7, 8)  # of isspacep.shared::cluster
Shape = tuple[int, int, int]


def relaxes(plans: Iterable[FunctionPlan]) -> bool:
    """Whether a module has arrivals or waits that order nothing without a fence, and would without the word."""
    works = (work for plan in plans for work in plan.work)
    return any(work.row.attributes(made, work.instruction).get("relaxed") for work in works for made in work.row.makes)


def required(plan: FunctionPlan) -> Shape:
    """The cluster that a kernel requires; (1, 1, 1) if the launch decides."""
    return plan.function.required_cluster


def window(module: Module) -> str:
    """The window that a generic address of shared memory is in."""
    return "shared::cluster" if target_number(module) >= 90 and module.version >= _NEWEST else "shared"


def target_number(module: Module) -> int:
    """The number of the architecture: 90 of "sm_90a"."""
    return int("".join(filter(str.isdigit, module.target)) or 0)
