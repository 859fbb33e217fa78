"""Ends of basic blocks: branches, exits, waits (PTX ISA, "Control Flow Instructions", "barrier", "bar.warp.sync").

An end takes the group that has run the block and returns its next block, or None if its lanes are
queued elsewhere, waiting, or gone. Calls are in calls.py, mbarrier.try_wait in mbarrier_steps.py,
barrier.cluster.wait in cluster.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from consan.backends.cpu.decode.operands import MALFORMED, DecodeContext, Target
from consan.backends.cpu.decode.program import is_aligned
from consan.backends.cpu.semantics.cluster import ClusterWait
from consan.backends.cpu.semantics.mbarrier_steps import TryWait
from consan.backends.cpu.semantics.tcgen05_registers import Alloc
from consan.backends.cpu.state.barriers import ALL, WaitingLanes
from consan.backends.cpu.state.faults import LaneError, UnsupportedInstruction
from consan.backends.cpu.state.groups import LaneGroup
from consan.instrument.isa import row_of
from consan.instrument.ptx import Instruction, Negated, Operand, Register, Symbol

from .calls import decode_call

if TYPE_CHECKING:
    from .code import BoundBlock, BoundFunction
    from .scheduler import Scheduler

Array = npt.NDArray[Any]
End = Callable[["Scheduler", LaneGroup], "BoundBlock | None"]


def member_masks(context: DecodeContext) -> Array:
    """The member masks of a collective: its last operand (one item, or one per lane), or all for an aligned instruction."""
    if is_aligned(context.instruction):
        return np.array(0xFFFFFFFF, np.uint32)
    return context.source(context.instruction.operands[-1], "u32")


def fall_off(scheduler: Scheduler, group: LaneGroup) -> BoundBlock | None:
    """The end of a body without ret: the threads return."""
    return leave(scheduler, group)


class Fall:
    """Into the next block."""

    def __init__(self, following: BoundBlock | None) -> None:
        self.following = following

    def __call__(self, scheduler: Scheduler, group: LaneGroup) -> BoundBlock | None:  # noqa: D102 - an End
        return self.following if self.following is not None else leave(scheduler, group)


class Branch:
    """bra."""

    def __init__(self, target: BoundBlock | None) -> None:
        self.target = target

    def __call__(self, scheduler: Scheduler, group: LaneGroup) -> BoundBlock | None:  # noqa: D102 - an End
        return self.target if self.target is not None else leave(scheduler, group)


class Guarded:
    """Any end under a guard predicate: lanes whose guard is false fall through."""

    def __init__(self, inner: End, predicate: Array, negated: bool, following: End) -> None:
        self.inner = inner
        self.predicate = predicate
        self.negated = negated
        self.following = following

    def __call__(self, scheduler: Scheduler, group: LaneGroup) -> BoundBlock | None:  # noqa: D102 - an End
        predicate = self.predicate
        whole = group.count == len(predicate)
        taken = np.count_nonzero(predicate if whole else predicate[group.sel])
        if self.negated:
            taken = group.count - taken
        if taken == group.count:
            return self.inner(scheduler, group)
        if not taken:
            return self.following(scheduler, group)
        chosen = predicate[group.lanes] ^ self.negated
        rest = LaneGroup(group.lanes[~chosen], group.stack, group.block, group.round)
        rest.spins, rest.polls = group.spins, group.polls
        group.set_lanes(group.lanes[chosen])
        block = self.inner(scheduler, group)
        scheduler.proceed(rest, self.following(scheduler, rest))
        return block


def leave(scheduler: Scheduler, group: LaneGroup) -> BoundBlock | None:
    """ret: return to the caller, or end the thread."""
    frame = group.stack
    if frame.parent is None:
        scheduler.exit(group)
        return None
    block: BoundBlock | None = frame.return_to.finish(scheduler, group, frame)
    return block


def exit_threads(scheduler: Scheduler, group: LaneGroup) -> None:
    """exit."""
    scheduler.exit(group)


def _trap(context: DecodeContext) -> End:
    def trap(_scheduler: Scheduler, group: LaneGroup) -> BoundBlock | None:
        raise LaneError("trap", int(group.lanes[0]), context.site, message=context.instruction.opcode)

    return trap


class BranchTable:
    """brx.idx."""

    def __init__(self, index: Array, targets: list[BoundBlock | None]) -> None:
        self.index = index
        self.targets = targets

    def __call__(self, scheduler: Scheduler, group: LaneGroup) -> BoundBlock | None:  # noqa: D102 - an End
        values = self.index[group.lanes] if self.index.ndim else np.broadcast_to(self.index, group.count)
        lanes = group.lanes
        for value in np.unique(values).tolist():
            part = LaneGroup(lanes[values == value], group.stack, group.block, group.round)
            part.spins, part.polls = group.spins, group.polls
            target = self.targets[value] if value < len(self.targets) else None
            scheduler.proceed(part, target if target is not None else leave(scheduler, part))
        return None


class Barrier:
    """bar and barrier: sync, arrive and red."""

    def __init__(self, context: DecodeContext, following: BoundBlock) -> None:
        self.wave = context.wave
        self.barriers = context.function.plan.barriers
        self.site = context.site
        self.following = following
        self.waits = not row_of(context.instruction).arrives_only
        operands = list(context.instruction.operands)
        self.reduction: tuple[str, Target] | None = None
        self.vote: Callable[[], Array] | None = None
        if row_of(context.instruction).reduces:
            self.reduction, self.vote = self._reduction(context, operands)
        self.id = context.source(operands.pop(0), "u32")
        self.count = context.source(operands.pop(0), "u32") if operands else None

    @staticmethod
    def _reduction(context: DecodeContext, operands: list[Operand]) -> tuple[tuple[str, Target], Callable[[], Array]]:
        kind = next(word for word in ("popc", "and", "or") if word in context.words)
        target = context.target(operands.pop(0), "u32" if kind == "popc" else "pred")
        last = operands.pop()
        negated = isinstance(last, Negated)
        source = context.source(last.operand if isinstance(last, Negated) else last, "pred")
        full = np.broadcast_to(source, (context.wave.lanes,))
        return (kind, target), (lambda: ~full) if negated else (lambda: full)

    def __call__(self, scheduler: Scheduler, group: LaneGroup) -> BoundBlock | None:
        """Fast path: all live threads arrive at once and nobody waits. Otherwise count arrivals."""
        wave = self.wave
        everyone = group.count == wave.alive and self.count is None and self.id.ndim == 0 and self.reduction is None
        if everyone and not self.barriers.in_use:
            return self.following
        ids, counts = self._of(self.id, group, 0), self._of(self.count, group, ALL)
        vote = self.vote() if self.vote is not None else None
        released: list[WaitingLanes] = []
        for barrier, count in sorted(set(zip(ids.tolist(), counts.tolist(), strict=True))):
            lanes = group.lanes[(ids == barrier) & (counts == count)]
            if barrier >= 16 or (count != ALL and (count % 32 or not count)):
                raise LaneError("trap", int(lanes[0]), self.site, message=f"barrier {barrier} with a thread count of {count}")
            where = (group.stack, self.following, group.round, self.site)
            waiter = WaitingLanes(lanes, *where, barrier, self.reduction, group.spins, group.polls) if self.waits else None
            released += self.barriers.arrive(barrier, lanes, count, waiter, vote)
        scheduler.resume(released)
        return None if self.waits else self.following

    @staticmethod
    def _of(source: Array | None, group: LaneGroup, default: int) -> Array:
        if source is None:
            return np.full(group.count, default, np.int64)
        return (source[group.lanes] if source.ndim else np.broadcast_to(source, group.count)).astype(np.int64)


class WarpBarrier:
    """bar.warp.sync."""

    def __init__(self, context: DecodeContext, following: BoundBlock) -> None:
        self.barriers = context.function.plan.warp_barriers
        self.members = context.source(context.instruction.operands[0], "u32")
        self.site = context.site
        self.following = following
        self.wave = context.wave

    def __call__(self, scheduler: Scheduler, group: LaneGroup) -> BoundBlock | None:  # noqa: D102 - an End
        if group.count == self.wave.alive:
            return self.following
        members = self.members[group.lanes] if self.members.ndim else np.broadcast_to(self.members, group.count)
        waiter = WaitingLanes(group.lanes, group.stack, self.following, group.round, self.site, None, None, group.spins, group.polls)
        released = self.barriers.arrive(waiter, members)
        if len(released) == 1 and len(released[0].lanes) == group.count and not self.barriers.waiters:
            return self.following
        scheduler.resume(released)
        return None


def _following(context: DecodeContext, following: BoundBlock | None) -> BoundBlock:
    if following is None:
        raise context.unsupported("at the end of a body without ret")
    return following


def _bra(context: DecodeContext, _following: BoundBlock | None) -> End:
    (target,) = context.instruction.operands
    if not isinstance(target, (Symbol, Register)):
        raise context.unsupported(target.text)
    return Branch(_label(context, target.name))


def _label(context: DecodeContext, name: str) -> BoundBlock | None:
    function = context.function
    try:
        return function.block(function.code.block_at(context.instruction.scope, name))
    except KeyError:
        raise context.unsupported(f"unknown label {name}") from None


def _brx(context: DecodeContext, _following: BoundBlock | None) -> End:
    index, table = context.instruction.operands[:2]
    assert isinstance(table, (Symbol, Register))
    try:
        names = context.function.code.table(context.instruction.scope, table.name).targets
    except KeyError:
        raise context.unsupported(f"unknown .branchtargets {table.name}") from None
    return BranchTable(context.source(index, "u32"), [_label(context, name) for name in names])


def _call(context: DecodeContext, following: BoundBlock | None) -> End:
    return decode_call(context, _following(context, following))


ENDS: dict[str, Callable[[DecodeContext, BoundBlock | None], End]] = {
    "branch": _bra,
    "table": _brx,
    "return": lambda context, following: leave,
    "exit": lambda context, following: exit_threads,
    "trap": lambda context, following: _trap(context),
    "break": lambda context, following: _trap(context),
    "call": _call,
    "barrier": lambda context, following: Barrier(context, _following(context, following)),
    "warp-barrier": lambda context, following: WarpBarrier(context, _following(context, following)),
    "cluster-barrier": lambda context, following: ClusterWait(context, _following(context, following)),
    "mbarrier": lambda context, following: TryWait(context, _following(context, following)),
    "tcgen05": lambda context, following: Alloc(context, _following(context, following)),
}
"""By the flow of a row of the instruction table, or by the family of one that may suspend the thread."""


def decode_end(function: BoundFunction, instruction: Instruction, following: BoundBlock | None) -> End:
    """Decode the end of a block, from its last instruction."""
    context = DecodeContext(function, instruction)
    try:
        assert context.row is not None
        end = ENDS[context.row.flow or context.row.family](context, following)
        guard = instruction.predicate
        return end if guard is None else Guarded(end, context.predicate(guard.register), guard.negated, Fall(following))
    except UnsupportedInstruction as error:
        return _refuse(error)
    except MALFORMED as error:
        return _refuse(context.malformed(error))


def _refuse(error: UnsupportedInstruction) -> End:
    def refuse(_scheduler: Scheduler, _group: LaneGroup) -> BoundBlock | None:
        raise error

    return refuse
