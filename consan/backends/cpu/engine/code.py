"""Functions bound to the arrays of a wave, decoded block by block on first execution.

A `Plan` is what one entry needs on waves of one shape: the wave, register frames of all functions, parameters, decoded
steps. It is kept between waves and launches, because decoding costs far more than running a small kernel.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from consan.backends.cpu.decode.address import GlobalLocator
from consan.backends.cpu.decode.operands import MALFORMED, DecodeContext, is_of_hooks
from consan.backends.cpu.decode.program import (
    CodeBlock,
    FunctionCode,
    MemoryVariable,
    ParamVariable,
    RegisterVariable,
    is_aligned,
    waits_for_warpgroup,
)
from consan.backends.cpu.decode.reach import HOOKS, RUNTIME, Reach
from consan.backends.cpu.decode.special import SpecialRegisters
from consan.backends.cpu.decode.steps import Step
from consan.backends.cpu.semantics.cluster import ClusterBarriers
from consan.backends.cpu.semantics.dispatch import decode, refusal
from consan.backends.cpu.state.barriers import CtaBarriers, WaitingLanes, WarpBarriers
from consan.backends.cpu.state.copies import AsyncCopies
from consan.backends.cpu.state.faults import UnsupportedInstruction
from consan.backends.cpu.state.groups import MAY_WAIT, WRITES
from consan.backends.cpu.state.mbarriers import MBarriers
from consan.backends.cpu.state.queue import LaunchQueue
from consan.backends.cpu.state.registers import Slots, storage
from consan.backends.cpu.state.tensor_memory import TensorMemory
from consan.backends.cpu.state.wave import Wave
from consan.dataclass import dataclass
from consan.instrument.isa import Row, compares_and_swaps, polls, row_of

from . import control

if TYPE_CHECKING:
    from consan.backends.cpu.state.schedule import Schedule
    from consan.instrument.ptx import Instruction

    from .module import LoadedModule
    from .progress import Effects
    from .scheduler import Scheduler

Array = npt.NDArray[Any]

_NEUTRAL_AT_ZERO = frozenset({"add", "or", "xor"})


@dataclass(frozen=True, slots=True)
class Collective:
    """An instruction that lanes execute together, at the start of a block."""

    members: Array  # masks: one for all lanes, or one for each
    masked: bool = False  # an operand names the members
    together: bool = False  # it is one of the whole warpgroup: wgmma.wait_group


class BoundBlock:
    """A basic block on a wave. `end` decides what a group does next; the rest is straight-line steps."""

    __slots__ = (
        *("bound", "code", "collective", "effects", "end", "fulls", "function", "glances", "looks", "polls", "position", "publishes"),
        *("sees", "size", "steps"),
    )

    def __init__(self, function: BoundFunction, code: CodeBlock) -> None:
        self.function = function
        self.code = code
        self.position = (function.code.ordinal << 32) + code.index
        self.size = code.end - code.start
        self.bound = False
        self.polls = 0  # MAY_WAIT, WRITES
        self.publishes = False  # another CTA may wait for what it writes
        self.sees = False  # it may be the last block of a loop that waits for another CTA
        self.looks = False  # it reads what others write, and orders them behind it; or it glances at that
        self.glances = False  # it reads what others write, and does not wait for it
        self.effects: Effects | None = None  # filled in by progress.py
        self.steps: list[Step] = []
        self.fulls: list[Any] = []
        self.end: control.End = control.fall_off
        self.collective: Collective | None = None  # at the start of the block

    def bind(self) -> None:
        """Decode the block."""
        function, code = self.function, self.code
        instructions = function.code.instructions[code.start : code.end]
        straight = instructions[:-1] if code.ends else instructions
        self.steps = []
        for instruction in straight:
            context = DecodeContext(function, instruction)
            try:
                self.steps.append(decode(context))
                if code.collective and instruction is instructions[0]:
                    self.collective = Collective(
                        control.member_masks(context), masked=not is_aligned(instruction), together=waits_for_warpgroup(instruction)
                    )
            except UnsupportedInstruction as error:
                self.steps.append(refusal(error))
            except MALFORMED as error:
                self.steps.append(refusal(context.malformed(error)))
            self._note(instruction)
        self.fulls = [step.full for step in self.steps]
        if code.collective and not straight and row_of(instructions[0]).is_of_tensor_memory:
            self.collective = Collective(control.member_masks(DecodeContext(function, instructions[0])))
        following = function.block(code.index + 1)
        self.end = control.decode_end(function, instructions[-1], following) if code.ends else control.Fall(following)
        self.bound = True

    def _note(self, instruction: Instruction) -> None:
        """Note the properties of an instruction that the scheduler needs."""
        if not self.function.own:
            self.polls |= (MAY_WAIT | WRITES) * polls(instruction)
            return
        self.polls |= MAY_WAIT * polls(instruction)
        row = row_of(instruction)
        if not row.is_ordinary or is_of_hooks(instruction):
            return
        access = row.describe(instruction)
        outer = access.is_strong and access.may_be_global
        self.sees |= outer and polls(instruction)
        if row.is_load:
            if outer and not self.function.code.repeats(self.code):
                self.looks = self.glances = True
            return
        if _only_reads(row, instruction):
            self.looks |= outer
            return
        if not compares_and_swaps(instruction):  # mostly one that fails
            self.polls |= WRITES
        self.publishes |= outer


def _only_reads(row: Row, instruction: Instruction) -> bool:
    """Whether an atomic leaves the value: `atomicAdd(p, 0)` is how CUDA C++ spells a strong load."""
    sources = [operand for role, operand in row.event(instruction).operands if role == "src"]
    neutral = not _NEUTRAL_AT_ZERO.isdisjoint(row.modifiers(instruction.parts).values())
    return row.is_atomic and neutral and len(sources) == 1 and getattr(sources[0], "value", None) == 0


def _is_hook(name: str) -> bool:
    """Whether a function belongs to the shadow runtime."""
    return name.startswith(HOOKS) or RUNTIME in name


class BoundFunction:
    """A function's register frame and blocks on a wave."""

    def __init__(self, plan: Plan, code: FunctionCode) -> None:
        self.plan = plan
        self.code = code
        self.own = not _is_hook(code.name)
        self.arrays: dict[tuple[int, str], Array] = {}  # of registers, by the scope that names them and the name
        self._registers: dict[RegisterVariable, Array] = {}
        self._slots: dict[ParamVariable, Slots] = {}
        self._blocks = [BoundBlock(self, block) for block in code.blocks]
        self.dynamic = code.recursive or code.text.uses_alloca
        self._base: Array | None = None
        self.offsets = code.local_layout()[0]

    def block(self, index: int | None) -> BoundBlock | None:
        """A block by number. None after the last."""
        return self._blocks[index] if index is not None and index < len(self._blocks) else None

    def bind(self) -> None:
        """Decode all blocks."""
        for block in self._blocks:
            if not block.bound:
                block.bind()

    @property
    def entry(self) -> BoundBlock:
        """The block in which execution starts."""
        return self._blocks[0]

    def register(self, variable: RegisterVariable) -> Array:
        """The array of a register."""
        array = self._registers.get(variable)
        if array is None:
            array = self._registers[variable] = np.zeros(self.plan.wave.lanes, storage(variable.word))
        return array

    def slots(self, variable: ParamVariable) -> Slots:
        """The storage of a `.param` variable."""
        slots = self._slots.get(variable)
        if slots is None:
            slots = self._slots[variable] = Slots(variable.nbytes, self.plan.wave.lanes)
        return slots

    def alias(self, variable: ParamVariable, slots: Slots) -> bool:
        """Make a `.param` variable of this function an alias of another function's, unless code already uses its own storage."""
        return self._slots.setdefault(variable, slots) is slots

    def param_field(self, context: DecodeContext, variable: ParamVariable, offset: int, dtype: np.dtype[Any]) -> Array:
        """A field of a `.param` variable, one item per lane."""
        try:
            return self.slots(variable).field(offset, dtype)
        except ValueError as error:
            raise context.unsupported(str(error)) from None

    @property
    def carry(self) -> Array:
        """The carry bit CC.CF of every thread."""
        return self.plan.carry

    @property
    def frame_base(self) -> Array | None:
        """Base of each thread's local memory in a recursive or allocating function. None: a fixed place."""
        if self.dynamic and self._base is None:
            self._base = np.zeros(self.plan.wave.lanes, np.uint32)
        return self._base

    @property
    def frame_bytes(self) -> int:
        """Bytes of local memory that a call takes from the thread's stack."""
        return self.code.local_bytes if self.code.recursive else 0

    def local_offset(self, variable: MemoryVariable) -> int:
        """Offset of a local variable from the frame base, or from the start of local memory."""
        return self.offsets[variable] + self.plan.reach.local.get(self.code, 0)

    def own_arrays(self) -> list[Array]:
        """The kernel's own registers and parameters, without those added for hooks."""
        rows = [row for variable, slots in self._slots.items() if not variable.name.startswith(HOOKS) for row in slots.rows]
        return [*(array for variable, array in self._registers.items() if HOOKS not in variable.name), *rows]

    def storage_arrays(self) -> list[Array]:
        """All storage that a recursive call must save."""
        rows = [row for slots in self._slots.values() for row in slots.rows]
        return [*self._registers.values(), *rows, *([self._base] if self._base is not None else [])]


class Plan:
    """One entry on waves of one shape."""

    def __init__(self, module: LoadedModule, reach: Reach, wave: Wave) -> None:
        self.module = module
        self.reach = reach
        self.wave = wave
        self.specials = SpecialRegisters(wave)
        self.locators: list[GlobalLocator] = []
        self.copies = AsyncCopies(wave)
        self.barriers = CtaBarriers(wave)
        self.warp_barriers = WarpBarriers(wave)
        self.cluster_barriers = ClusterBarriers(wave)
        self.mbarriers = MBarriers(wave, self.resume)
        self.queue = LaunchQueue()  # the clusters that the wave may still cancel
        self.functions: dict[FunctionCode, BoundFunction] = {}
        self.scheduler: Scheduler | None = None
        self.param_address = module.param_block(reach.entry)
        self._arena_version = -1

    @cached_property
    def carry(self) -> Array:
        """The carry bits of the wave."""
        return np.zeros(self.wave.lanes, np.bool_)

    @cached_property
    def tensor_memory(self) -> TensorMemory:
        """The tensor memories of the wave; made for the first tcgen05 instruction that is decoded."""
        return TensorMemory(self.wave)

    @property
    def columns_waiters(self) -> list[tuple[WaitingLanes, str]]:
        """Warps that wait in tcgen05.alloc, and for what."""
        return self.tensor_memory.waiters() if "tensor_memory" in self.__dict__ else []

    @property
    def entry(self) -> BoundFunction:
        """The entry function."""
        return self.function(self.reach.entry)

    def function(self, code: FunctionCode) -> BoundFunction:
        """A function bound to the wave."""
        if code not in self.functions:
            self.functions[code] = BoundFunction(self, code)
        return self.functions[code]

    def function_address(self, name: str) -> int:
        """The address of a function as a value."""
        return self.module.machine.code_address(self.module, name)

    def function_at(self, address: int) -> BoundFunction | None:
        """The function of this module at an address."""
        placed = self.module.code_at(address)
        code = self.reach.entry.program.code(placed.name) if placed is not None else None
        return self.function(code) if code is not None else None

    def module_address(self, variable: MemoryVariable) -> int:
        """Address of a global or constant variable."""
        return self.module.address_of(variable)

    def param_field(self, offset: int, dtype: np.dtype[Any]) -> Array:
        """A field of the launch's parameter block at an address, as an array of no dimension."""
        span = self.module.machine.arena.span(offset, dtype.itemsize)
        return np.asarray(span.view(dtype)).reshape(())

    def renew(self) -> None:
        """Registers read as zero."""
        for array in (array for function in self.functions.values() for array in function.storage_arrays()):
            array[...] = 0
        if "carry" in self.__dict__:
            self.carry[...] = False

    def start_launch(self, version: int) -> None:
        """Reset what may have changed since the last launch."""
        if version != self._arena_version:
            self.forget_allocations()
            self._arena_version = version

    def forget_allocations(self) -> None:
        """Memory has been freed: drop cached locations."""
        for locator in self.locators:
            locator.forget()

    def resume(self, waiters: list[WaitingLanes]) -> None:
        """Resume threads that were released by something other than the end of a block."""
        assert self.scheduler is not None
        self.scheduler.resume(waiters)

    def unblock(self, *, polled: bool = False) -> bool:
        """No thread can run: land an asynchronous operation, or let try_wait time out. Returns whether there was one.

        `polled`: threads run, but one of them is in a loop that may be waiting.
        """
        return self.copies.land_one(self.mbarriers.awaited(), polled=polled) or self.mbarriers.time_out()

    def start_wave(self, schedule: Schedule) -> None:
        """Reset the last wave's barriers and copies."""
        self.copies.reset(schedule)
        self.barriers.reset()
        self.warp_barriers.waiters.clear()
        self.cluster_barriers.reset()
        self.mbarriers.reset()
        if "tensor_memory" in self.__dict__:
            self.tensor_memory.reset()
