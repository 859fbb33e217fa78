"""Decoding of mbarrier instructions and of cp.async.mbarrier.arrive (PTX ISA, "mbarrier").

try_wait ends a block, since it parks its lanes; the others are steps. Semantics, scopes and suspend-time hints have no effect: memory is
coherent here and a parked lane costs nothing. A schedule lets try_wait give up at once now and then, as its time limit allows.

A wait, init or inval of another CTA's object is undefined behaviour, and a fault here.

Not handled: objects outside shared memory (a fault).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from consan.backends.cpu.decode.address import Locator
from consan.backends.cpu.decode.operands import DecodeContext, Steps
from consan.backends.cpu.decode.steps import Selection, Step, selective
from consan.backends.cpu.state.barriers import WaitingLanes
from consan.backends.cpu.state.copies import PendingOperation
from consan.backends.cpu.state.faults import LaneError, StepSite
from consan.backends.cpu.state.groups import LaneGroup
from consan.backends.cpu.state.mbarriers import MBarriers, pending_of
from consan.backends.cpu.state.memory import RANK_SHIFT
from consan.instrument.ptx import Operand

from .access import locator

if TYPE_CHECKING:
    from consan.backends.cpu.engine.code import BoundBlock
    from consan.backends.cpu.engine.scheduler import Scheduler

Array = npt.NDArray[Any]
Lanes = npt.NDArray[np.intp]


def barrier_locator(context: DecodeContext, operand: Operand) -> Locator:
    """A function that finds the mbarrier of an address operand in the instruction's state space."""
    modifiers = context.modifiers
    shared = any(modifiers.get(name, "").startswith("shared") for name in ("ss", "dst"))
    return locator(context, "shared" if shared else "generic", operand, 8, "rmw")


def units_of(found: Locator, lanes: Any) -> Array:
    """The objects of the selected lanes, as 8-byte items of the arena."""
    wave = found.wave
    view, index = found.part(lanes)
    start = wave.windows.shared >> 3
    outside = (index < start) | (index >= start + (wave.windows.stride * wave.shape.ctas >> 3))
    if view is not wave.arena.views[3] or outside.any():
        lane = int(wave.ids[lanes][outside.argmax() if view is wave.arena.views[3] else 0])
        raise found.fault("out-of-bounds", lane, int(found.base[lane]) + found.offset if found.base is not None else 0, "shared")
    return index


def local_units_of(found: Locator, lanes: Any, kind: str) -> Array:
    """As `units_of`, for instructions that take only objects of their own CTA."""
    units, wave = units_of(found, lanes), found.wave
    if wave.cluster_size == 1:
        return units
    ctas = (units * 8 - wave.windows.shared) // wave.windows.stride
    wrong = (ctas != wave.cta_of[lanes]).nonzero()[0]
    if len(wrong):
        lane, unit = int(wave.ids[lanes][wrong[0]]), int(units[wrong[0]])
        rank, inside = (
            int(ctas[wrong[0]]) % wave.cluster_size,
            (unit * 8 - wave.windows.shared) % wave.windows.stride + wave.windows.reserved,
        )
        message = f"the mbarrier belongs to CTA {rank} of the cluster, and only that CTA may do this"
        raise LaneError(
            kind, lane, found.site, address=rank << RANK_SHIFT | inside, nbytes=8, space="shared", access=found.access, message=message
        )  # fmt: skip
    return units


def per_lane(source: Array | None, lanes: Array, default: int = 1) -> Array:
    """A source of the selected lanes as 64-bit integers."""
    if source is None or source.ndim == 0:
        return np.full(len(lanes), default if source is None else int(source), np.int64)
    return source[lanes].astype(np.int64)


def _init(context: DecodeContext) -> Step:
    barriers = context.function.plan.mbarriers
    address, count = context.instruction.operands
    found, counts, ids = barrier_locator(context, address), context.source(count, "u32"), context.wave.ids
    return selective(lambda sel: barriers.init(local_units_of(found, sel, "remote-init"), per_lane(counts, ids[sel])))


def _inval(context: DecodeContext) -> Step:
    """The word stays: what a later operation on it meets is undefined."""
    found = barrier_locator(context, context.instruction.operands[0])

    def inval(sel: Selection) -> None:
        local_units_of(found, sel, "remote-init")

    return selective(inval)


def _transactions(context: DecodeContext) -> Step:
    """expect_tx and complete_tx."""
    barriers = context.function.plan.mbarriers
    address, count = context.instruction.operands
    found, counts, ids = barrier_locator(context, address), context.source(count, "u32"), context.wave.ids
    sign = 1 if context.action == "expect_tx" else -1
    return selective(lambda sel: barriers.transact(units_of(found, sel), sign * per_lane(counts, ids[sel])))


def _arrive(context: DecodeContext) -> Step:
    """arrive and arrive_drop."""
    barriers = context.function.plan.mbarriers
    destination, address, *rest = context.instruction.operands
    found, ids = barrier_locator(context, address), context.wave.ids
    target = context.target(destination, "b64")
    operand = context.source(rest[0], "u32") if rest else None
    expects, drop = "expect_tx" in context.modifiers, context.action == "arrive_drop"

    def part(sel: Any) -> None:
        units, lanes = units_of(found, sel), ids[sel]
        given = per_lane(operand, lanes)
        tx = given if expects else None
        states = barriers.arrive(units, np.ones_like(given) if expects else given, tx, drop=drop)
        target.write(sel, states)

    return selective(part)


def _test(context: DecodeContext, barriers: MBarriers) -> tuple[Locator, Callable[[Array, Lanes], Array]]:
    """The object's locator, and the test of units for lanes."""
    address, phase = context.instruction.operands[1:3]
    found = barrier_locator(context, address)
    if "parity" in context.modifiers:
        parity = context.source(phase, "u32")
        return found, lambda units, lanes: barriers.complete_by_parity(units, parity[lanes] if parity.ndim else parity)
    state = context.source(phase, "b64")
    return found, lambda units, lanes: barriers.complete_by_state(units, state[lanes] if state.ndim else state)


def _test_wait(context: DecodeContext) -> Step:
    found, test = _test(context, context.function.plan.mbarriers)
    target, ids = context.target(context.instruction.operands[0], "pred"), context.wave.ids
    return selective(lambda sel: target.write(sel, test(local_units_of(found, sel, "remote-wait"), ids[sel])))


def _pending_count(context: DecodeContext) -> Step:
    destination, state = context.instruction.operands
    target, states = context.target(destination, "u32"), context.source(state, "b64")
    return selective(lambda sel: target.write(sel, pending_of(states[sel] if states.ndim else states).astype(np.uint32)))


class TryWait:
    """mbarrier.try_wait: the end of a block."""

    def __init__(self, context: DecodeContext, following: BoundBlock) -> None:
        self.plan = context.function.plan
        self.found, self.test = _test(context, self.plan.mbarriers)
        self.target = context.target(context.instruction.operands[0], "pred")
        self.site = context.site
        self.following = following

    def __call__(self, scheduler: Scheduler, group: LaneGroup) -> BoundBlock | None:
        """Lanes whose phase is complete go on; the others are parked, each until its own object's phase completes."""
        lanes = group.lanes
        units = local_units_of(self.found, lanes, "remote-wait")
        complete = self.test(units, lanes)
        self.target.write(lanes, complete)
        if complete.all():
            return self.following
        stay = scheduler.schedule.stay(group, ~complete)
        if not stay.any():
            return self.following
        waiter = WaitingLanes(lanes[stay], group.stack, self.following, group.round, self.site, None)
        self.plan.mbarriers.park(waiter, units[stay], self.target)
        if stay.all():
            return None
        group.set_lanes(lanes[~stay])
        return self.following


class ArriveOn(PendingOperation):
    """The arrive-on of a cp.async.mbarrier.arrive: it lands after the earlier cp.async operations of its threads."""

    after = "async"

    def __init__(self, lanes: Lanes, barriers: MBarriers, units: Array, site: StepSite | None = None) -> None:
        super().__init__(lanes)
        self.site = site
        self.barriers = barriers
        self.units = units
        self.signals = frozenset(units.tolist())

    def land(self) -> None:  # noqa: D102 - as in PendingOperation
        self.barriers.arrive(self.units, np.ones(len(self.units), np.int64))


def decode_arrive_on(context: DecodeContext) -> Step:
    """cp.async.mbarrier.arrive: without .noinc one more arrival is pending from now until it lands."""
    plan, ids = context.function.plan, context.wave.ids
    found = barrier_locator(context, context.instruction.operands[0])
    counts = "noinc" not in context.modifiers

    def part(sel: Any) -> None:
        units, lanes = units_of(found, sel), ids[sel]
        if counts:
            for unit in units.tolist():
                plan.mbarriers.signal(unit, arrivals=-1)
        plan.copies.issue(ArriveOn(lanes, plan.mbarriers, units, context.site))

    return selective(part)


STEPS: Steps = {
    "mbarrier.init": _init,
    "mbarrier.inval": _inval,
    "mbarrier.expect_tx": _transactions,
    "mbarrier.complete_tx": _transactions,
    "mbarrier.arrive": _arrive,
    "mbarrier.arrive_drop": _arrive,
    "mbarrier.test_wait": _test_wait,
    "mbarrier.pending_count": _pending_count,
    "cp.async.mbarrier.arrive": decode_arrive_on,
}
