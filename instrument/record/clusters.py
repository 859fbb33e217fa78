"""Records the barriers and accesses of a cluster, and fences (ISA "barrier.cluster", "membar, fence").

A fence has an event only in modules with relaxed arrivals or waits, or whose threads may synchronise through memory (global_memory.py). An
address in shared::cluster, and a generic one, names a CTA (consan/checker/source/shape.hpp).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from consan.instrument.isa import MemoryAccess
from consan.instrument.passes.context import FunctionPlan, Work
from consan.instrument.passes.emit import is_ranked
from consan.instrument.record.orders import order_of
from consan.instrument.record.templates import Event, Flag, TemplateEvent

if TYPE_CHECKING:
    from consan.instrument.record.rewrite import KernelRewrite

FAMILIES = frozenset({"cluster-barrier", "fence", "mbarrier-fence"})
_ORDERING = frozenset({"arrive", "arrive_drop", "test_wait", "try_wait"})
_NEWEST = (7, 8)  # of isspacep.shared::cluster
Shape = tuple[int, int, int]


def flags_of(work: Work, access: MemoryAccess) -> int:
    """Which CTA an address names, and whom a strong access or an operation on an mbarrier reaches."""
    narrow = work.event.scope == "cta" and (access.is_strong or work.row.action in _ORDERING)
    return Flag.RANKED * is_ranked(access) | Flag.NARROW * narrow | Flag.RELAXED * is_relaxed(work)


def is_relaxed(work: Work) -> bool:
    """Whether an operation orders nothing without a fence, and would without the word."""
    family, action = work.row.family, work.row.action
    return "relaxed" in work.words and (family == "cluster-barrier" or (family == "mbarrier" and action in _ORDERING))


def relaxes(plans: Iterable[FunctionPlan]) -> bool:
    """Whether a module has relaxed arrivals or waits."""
    return any(is_relaxed(work) for plan in plans for work in plan.work)


def add(kernel: KernelRewrite, work: Work) -> None:
    """A barrier of the cluster, or a fence."""
    if work.row.family == "cluster-barrier":
        _add(kernel, work, Event.CLUSTER_ARRIVE if work.row.action == "arrive" else Event.CLUSTER_WAIT, Flag.RELAXED * is_relaxed(work))
    elif kernel.fences and work.row.family == "mbarrier-fence":
        _add(kernel, work, Event.INITS_FENCE, Flag(0))
    elif kernel.fences:
        orders = work.event.orders
        flags = Flag.ACQUIRES * ("acquire" in orders) | Flag.RELEASES * ("release" in orders) | Flag.NARROW * (work.event.scope == "cta")
        _add(kernel, work, Event.FENCE, flags, order_of(work.event))


def _add(kernel: KernelRewrite, work: Work, kind: Event, flags: int, order: int = 0) -> None:
    block = kernel.open_block()
    guard = kernel.guard(block, work.instruction)
    site = kernel.context.site(kernel.plan, work, "none", "none", 0).number
    block.add(TemplateEvent(kind, int(flags), site, offset=order, guard_word=guard))
    kernel.plan.stats.sync_sites += 1


def required(plan: FunctionPlan) -> Shape:
    """The cluster that a kernel requires; (1, 1, 1) if the launch decides."""
    return plan.function.required_cluster


def window(target: str, version: tuple[int, int]) -> str:
    """The window that a generic address of shared memory is in."""
    number = int("".join(filter(str.isdigit, target)) or 0)
    return "shared::cluster" if number >= 90 and version >= _NEWEST else "shared"


HANDLERS = dict.fromkeys(FAMILIES, add)
