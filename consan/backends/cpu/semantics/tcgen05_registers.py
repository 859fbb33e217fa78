"""tcgen05.alloc, dealloc, ld, st and wait: what whole warps do with tensor memory (PTX ISA, "Tensor Memory Allocation and Management
Instructions", "Tensor Memory and Register Load/Store Instructions").

ld and st are asynchronous (copies.py): a load reads the cells, and its registers change, when `wait::ld` or an instruction that names
one of them lets it land, or at any moment before that the seed picks; a store lands at `wait::st`. Seed 0 takes the latest moment,
so a program that does not wait gives its cells away too early, and its results show it.

The ISA's table gives each warp the lanes of its quarter. A lane field below 32 in another warp counts from the warp's own quarter, as
DeepGEMM relies on; a lane of another quarter ends the launch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from consan.backends.cpu.decode.operands import DecodeContext, DecodedAddress, Steps
from consan.backends.cpu.decode.program import FunctionCode, RegisterVariable
from consan.backends.cpu.decode.steps import Selection, Step, selective
from consan.backends.cpu.state.barriers import WaitingLanes
from consan.backends.cpu.state.copies import Bools, Lanes, PendingOperation
from consan.backends.cpu.state.faults import LaneError, StepSite
from consan.backends.cpu.state.groups import LaneGroup
from consan.backends.cpu.state.tensor_memory import COLUMNS, LANES, ColumnsRequest
from consan.backends.cpu.state.wave import WARP
from consan.dataclass import dataclass
from consan.instrument.isa import destinations
from consan.instrument.isa.roles import names
from consan.instrument.ptx import Immediate, Operand
from consan.instrument.ptx.operands import flatten

from .access import locator, space_of
from .lanes import active_warps
from .matrix import require_whole_warps
from .mbarrier_steps import per_lane
from .tcgen05_layouts import QUARTER, fragment, registers

if TYPE_CHECKING:
    from consan.backends.cpu.engine.code import BoundBlock
    from consan.backends.cpu.engine.scheduler import Scheduler

Array = npt.NDArray[Any]
LOADS, STORES = "wait::ld", "wait::st"
_TWO = "cta_group::2"


def illegal(context: DecodeContext, lane: int, message: str) -> LaneError:
    """The fault of an operation that the ISA forbids."""
    return LaneError("illegal", lane, context.site, message=message)


def addresses(place: DecodedAddress, lanes: Lanes) -> Array:
    """Tensor memory addresses of an operand, for some lanes."""
    base = np.zeros(len(lanes), np.int64) if place.base is None else place.base[lanes].astype(np.int64)
    return np.asarray(base + place.offset & 0xFFFFFFFF)


def whole_warps(context: DecodeContext, sel: Selection) -> Array:
    """The lanes of the warps that execute an aligned instruction, [warps, 32]."""
    mask, slots = active_warps(context.wave, context.wave.ids[sel])
    require_whole_warps(context, mask, slots)
    return slots


# Allocation ------------------------------------------------------------------------------------------------------------


class Alloc:
    """tcgen05.alloc: the end of a block, since the warp may have to wait."""

    def __init__(self, context: DecodeContext, following: BoundBlock) -> None:
        self.context = context
        self.following = following
        self.memory = context.function.plan.tensor_memory
        address, columns = context.instruction.operands
        self.found = locator(context, space_of(context), address, 4, "write")
        self.columns = context.source(columns, "u32")

    def __call__(self, scheduler: Scheduler, group: LaneGroup) -> BoundBlock | None:  # noqa: D102 - an End
        context, wave = self.context, self.context.wave
        served: list[WaitingLanes] = []
        for slots in whole_warps(context, group.lanes):
            lanes = np.sort(slots)
            view, index = self.found.part(lanes[:1])
            waiter = WaitingLanes(lanes, group.stack, self.following, group.round, context.site, None)
            count = int(per_lane(self.columns, lanes[:1])[0])
            pair = _TWO in context.words
            served += self.memory.ask(ColumnsRequest(int(wave.cta_of[lanes[0]]), count, pair, waiter, _storing(view, index)))
        scheduler.resume(served)
        return None


def _storing(view: Array, index: Array) -> Callable[[int], None]:
    def store(address: int) -> None:
        view[index] = address

    return store


def _dealloc(context: DecodeContext) -> Step:
    plan, wave = context.function.plan, context.wave
    memory = plan.tensor_memory
    address, columns = (context.source(operand, "u32") for operand in context.instruction.operands)

    def part(sel: Selection) -> None:
        leaders = whole_warps(context, sel)[:, 0]
        for lane, start, count in zip(leaders.tolist(), per_lane(address, leaders), per_lane(columns, leaders), strict=True):
            plan.resume(memory.give_back(int(wave.cta_of[lane]), int(start), int(count), lane, context.site))

    return selective(part)


def _relinquish(context: DecodeContext) -> Step:
    wave, memory = context.wave, context.function.plan.tensor_memory
    return selective(lambda sel: memory.relinquished.update(wave.cta_of[sel].tolist()))


# Loads and stores --------------------------------------------------------------------------------------------------------


@dataclass(eq=False)
class Move(PendingOperation):
    """A ld or st of some warps: the cells of each lane's registers, [lanes, registers] (or two for each, if packed)."""

    lanes: Lanes  # whole warps
    cells: Array  # of all CTAs, flat
    index: Array
    packed: bool
    site: StepSite | None = None

    def subset(self, chosen: Bools) -> Move:  # noqa: D102 - as in PendingOperation
        part = self._of(chosen)
        part.group, part.due = self.group[chosen], self.due
        return part

    def _of(self, chosen: Bools) -> Move:
        raise NotImplementedError

    def land_some(self, due: Bools) -> PendingOperation | None:  # noqa: D102 - as in PendingOperation
        warps = np.repeat(due.reshape(-1, WARP).any(1), WARP)
        self.subset(warps).land()
        return self.subset(~warps) if not warps.all() else None


@dataclass(eq=False)
class Load(Move):
    """tcgen05.ld; `reduce` gives what `.red` leaves in the last target."""

    targets: list[Array | None] = field(default_factory=list)
    reduce: Callable[[Array], Array] | None = None
    family = LOADS

    def _of(self, chosen: Bools) -> Load:
        return Load(self.lanes[chosen], self.cells, self.index[chosen], self.packed, self.site, self.targets, self.reduce)

    def land(self) -> None:  # noqa: D102 - as in PendingOperation
        words = self.cells[self.index]
        if self.packed:
            words = words[..., 0] & np.uint32(0xFFFF) | words[..., 1] << np.uint32(16)
        columns = list(words.T)
        if self.reduce is not None:
            columns.append(self.reduce(words))
        for target, values in zip(self.targets, columns, strict=True):
            if target is not None:
                target[self.lanes] = values


@dataclass(eq=False)
class Store(Move):
    """tcgen05.st: registers are read at issue."""

    words: Array = field(default_factory=lambda: np.zeros(0, np.uint32))
    family = STORES

    def _of(self, chosen: Bools) -> Store:
        return Store(self.lanes[chosen], self.cells, self.index[chosen], self.packed, self.site, self.words[chosen])

    def land(self) -> None:  # noqa: D102 - as in PendingOperation
        if self.packed:
            self.cells[self.index] = np.stack([self.words & np.uint32(0xFFFF), self.words >> np.uint32(16)], -1)
        else:
            self.cells[self.index] = self.words


class _Reach:
    """The cells that the lanes of warps reach by a ld or st."""

    def __init__(self, context: DecodeContext, address: Operand, half: Operand | None) -> None:
        self.context = context
        modifiers = context.modifiers
        shape = next(word for name, word in modifiers.items() if name.startswith("shape"))
        count = int(modifiers["num"][1:])
        if registers(shape, count) > 128:
            raise context.unsupported(f"{shape} with .x{count}")
        self.rows, self.columns = fragment(shape, count)
        self.packed = "pack::16b" in modifiers or "unpack::16b" in modifiers
        self.place = context.place(address)
        self.half = int(half.value) if isinstance(half, Immediate) else 0
        self.height = int(self.rows.max()) + 1

    def index(self, slots: Array) -> Array:
        """Indices into the cells of all CTAs: [lanes, registers] (, 2 if packed)."""
        wave, leaders = self.context.wave, slots[:, 0]
        taddr = addresses(self.place, leaders)
        first = self._lanes(taddr, leaders)
        column = (taddr & 0xFFFF)[:, None, None] + self._packing(self.columns)
        lane = first[:, None, None] + self.rows
        if self.half:
            upper = taddr + self.half
            other = self._lanes(upper, leaders)[:, None, None] + self.rows, (upper & 0xFFFF)[:, None, None] + self._packing(self.columns)
            second = np.arange(WARP)[:, None] >= 16
            lane, column = np.where(second, other[0], lane), np.where(second, other[1], column)
        width = 2 if self.packed else 1
        if int(column.max()) + width > COLUMNS:
            worst, last = int(leaders[int(column.max((1, 2)).argmax())]), int(column.max()) + width - 1
            raise illegal(self.context, worst, f"columns up to {last}: tensor memory has columns 0 to {COLUMNS - 1}")
        cta = wave.cta_of[leaders][:, None, None]
        flat = ((cta * LANES + lane) * COLUMNS + column).reshape(-1, column.shape[-1])
        return np.asarray(flat if not self.packed else flat[..., None] + np.arange(2))

    def _packing(self, columns: Array) -> Array:
        return columns * 2 if self.packed else columns

    def _lanes(self, taddr: Array, leaders: Lanes) -> Array:
        """The first lane of each warp."""
        quarter = self.context.wave.warps.in_cta[leaders].astype(np.int64) % 4 * QUARTER
        given = taddr >> 16
        first = np.where(given < QUARTER, quarter + given, given)
        wrong = ((first < quarter) | (first + self.height > quarter + QUARTER)).nonzero()[0]
        if len(wrong):
            k = int(wrong[0])
            own, asked = int(quarter[k]), int(first[k])
            message = f"lanes {asked} to {asked + self.height - 1}: this warp reaches lanes {own} to {own + QUARTER - 1} only"
            raise illegal(self.context, int(leaders[k]), message)
        return np.asarray(first)


def _load(context: DecodeContext) -> Step:
    plan = context.function.plan
    operands = list(context.instruction.operands)
    targets = [context.target(register, "b32").array for register in flatten(operands.pop(0))]
    reduce = None
    if "redOp" in context.modifiers:
        targets.append(context.target(operands.pop(0), "b32").array)
        reduce = _reduction(context)
    reach = _Reach(context, operands[0], operands[1] if len(operands) > 1 else None)
    if len(targets) != reach.rows.shape[1] + (reduce is not None):
        raise context.unsupported(f"{len(targets)} registers, {reach.rows.shape[1]} expected")
    cells = plan.tensor_memory.cells.reshape(-1)

    def part(sel: Selection) -> None:
        slots = whole_warps(context, sel)
        plan.copies.issue(Load(slots.reshape(-1), cells, reach.index(slots), reach.packed, context.site, targets, reduce))

    return selective(part)


def _reduction(context: DecodeContext) -> Callable[[Array], Array]:
    """The reduction of `.red`, over the words [lanes, registers] of each lane."""
    operation, word = context.modifiers["redOp"], context.modifiers.get("type", "f32")
    dtype = np.dtype({"u32": np.uint32, "s32": np.int32, "f32": np.float32}[word])
    absolute, nan = "abs" in context.modifiers, "NaN" in context.modifiers
    function = {("min", False): np.fmin, ("max", False): np.fmax, ("min", True): np.minimum, ("max", True): np.maximum}[operation, nan]

    def reduce(words: Array) -> Array:
        values = np.ascontiguousarray(words).view(dtype)
        return np.asarray(function.reduce(np.abs(values) if absolute else values, axis=1)).view(np.uint32)

    return reduce


def _store(context: DecodeContext) -> Step:
    plan = context.function.plan
    address, *rest = context.instruction.operands
    sources = [context.source(register, "b32") for register in flatten(rest.pop())]
    reach = _Reach(context, address, rest[0] if rest else None)
    if len(sources) != reach.rows.shape[1]:
        raise context.unsupported(f"{len(sources)} registers, {reach.rows.shape[1]} expected")
    cells = plan.tensor_memory.cells.reshape(-1)

    def part(sel: Selection) -> None:
        slots = whole_warps(context, sel)
        lanes = slots.reshape(-1)
        words = np.stack([source[lanes] if source.ndim else np.full(len(lanes), source) for source in sources], -1)
        plan.copies.issue(Store(lanes, cells, reach.index(slots), reach.packed, context.site, words))

    return selective(part)


def _wait(context: DecodeContext) -> Step:
    plan, ids, family = context.function.plan, context.wave.ids, context.action
    return selective(lambda sel: plan.copies.wait(ids[sel], None, family))


# Registers that a load has yet to write ------------------------------------------------------------------------------------

_loaded: WeakKeyDictionary[FunctionCode, frozenset[RegisterVariable]] = WeakKeyDictionary()


def loaded(code: FunctionCode) -> frozenset[RegisterVariable]:
    """The registers that loads of tensor memory write."""
    if code not in _loaded:
        named = (code.resolve(load.scope, name) for load in code.text.tensor_loads for name in destinations(load))
        _loaded[code] = frozenset(found for found in named if isinstance(found, RegisterVariable))
    return _loaded[code]


def after_loads(context: DecodeContext, step: Step) -> Step:
    """The step, after the loads in flight whose registers the instruction names have landed (ISA, "Register dependencies")."""
    code = context.function.code
    if not code.text.tensor_loads:
        return step
    wanted, instruction = loaded(code), context.instruction
    named = {name for operand in instruction.operands for name in names(operand)}
    mine = {id(context.raw(name)) for name in named if code.resolve(instruction.scope, name) in wanted}
    if not mine:
        return step
    copies, ids = context.function.plan.copies, context.wave.ids

    def writes(operation: PendingOperation) -> bool:
        return isinstance(operation, Load) and any(target is not None and _origin(target) in mine for target in operation.targets)

    def part(sel: Selection) -> None:
        copies.land_those(ids[sel], writes)
        step.part(sel)

    def full() -> None:
        copies.land_those(ids, writes)
        step.full()

    def masked(mask: Bools) -> None:
        copies.land_those(mask.nonzero()[0], writes)
        step.masked(mask)

    return Step(full, part, masked, step.pure)


def _origin(target: Array) -> int:
    """The identity of the register that an array is, or is a view of."""
    return id(target if target.base is None else target.base)


STEPS: Steps = {
    "tcgen05.dealloc": _dealloc,
    "tcgen05.relinquish_alloc_permit": _relinquish,
    "tcgen05.ld": _load,
    "tcgen05.st": _store,
    "tcgen05.wait::ld": _wait,
    "tcgen05.wait::st": _wait,
}
