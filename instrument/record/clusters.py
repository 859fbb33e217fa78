"""Records the barriers and accesses of a cluster, and fences (ISA "barrier.cluster", "membar, fence").

A fence has an event only in modules with relaxed arrivals or waits, or whose threads may synchronise through memory (global_memory.py). An
address in shared::cluster, and a generic one, names a CTA (consan/checker/source/shape.hpp).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from consan.instrument.effects.kinds import Fence
from consan.instrument.passes.context import FunctionPlan, Work
from consan.instrument.record import lowering
from consan.instrument.record.orders import ORDERING, order_of

if TYPE_CHECKING:
    from consan.instrument.record.rewrite import KernelRewrite

FAMILIES = frozenset({"cluster-barrier", "fence", "mbarrier-fence"})
_NEWEST = (7, 8)  # of isspacep.shared::cluster
Shape = tuple[int, int, int]


def is_relaxed(work: Work) -> bool:
    """Whether an operation orders nothing without a fence, and would without the word."""
    family, action = work.row.family, work.row.action
    return "relaxed" in work.words and (family == "cluster-barrier" or (family == "mbarrier" and action in ORDERING))


def relaxes(plans: Iterable[FunctionPlan]) -> bool:
    """Whether a module has relaxed arrivals or waits."""
    return any(is_relaxed(work) for plan in plans for work in plan.work)


def add(kernel: KernelRewrite, work: Work) -> None:
    """A barrier of the cluster, or a fence."""
    if work.row.family == "cluster-barrier" or (kernel.fences and work.row.makes is not None):
        lowering.add(kernel, work)
    elif kernel.fences:
        orders, narrow = work.event.orders, work.event.scope == "cta"
        acquires, releases = (word in orders for word in ("acquire", "release"))
        kernel.record(work, Fence, order=order_of(work.event), acquires=acquires, releases=releases, narrow=narrow)


def required(plan: FunctionPlan) -> Shape:
    """The cluster that a kernel requires; (1, 1, 1) if the launch decides."""
    return plan.function.required_cluster


def window(target: str, version: tuple[int, int]) -> str:
    """The window that a generic address of shared memory is in."""
    number = int("".join(filter(str.isdigit, target)) or 0)
    return "shared::cluster" if number >= 90 and version >= _NEWEST else "shared"


HANDLERS = dict.fromkeys(FAMILIES, add)
