"""The reads of threads in endless loops: the instruction, the address, and the value that stays there."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from consan.backends.cpu.decode.operands import DecodeContext
from consan.backends.cpu.decode.program import FunctionCode, MemoryVariable
from consan.backends.cpu.semantics.access import SPACES
from consan.backends.cpu.state.faults import GRID_BARRIER, Blocked, Polled
from consan.backends.cpu.state.memory import GLOBAL_BASE, LOCAL_WINDOW, RANK_SHIFT, RESERVED_SHARED, SHARED_WINDOW, WINDOW_SIZE
from consan.backends.cpu.state.registers import WORD_DTYPES
from consan.dataclass import dataclass
from consan.instrument.isa import lookup, polls, row_of, swaps
from consan.instrument.ptx import Address, Instruction, Symbol
from consan.instrument.ptx.mangled import source_name

if TYPE_CHECKING:
    from consan.backends.cpu.state.groups import Activation, LaneGroup

    from .code import BoundBlock, Plan

Lanes = npt.NDArray[np.intp]


@dataclass
class _Read:
    """One instruction and the address of each lane's last run of it; -1: none."""

    instruction: Instruction
    addresses: npt.NDArray[np.int64]


class Polls:
    """The reads of the kernel's own code since `clear`."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.wave = plan.wave
        self.clear()

    def clear(self) -> None:
        """Forget all reads."""
        self.reads: dict[int, _Read] = {}

    # Recording reads -----------------------------------------------------------------------------------------------

    def run(self, group: LaneGroup, block: BoundBlock) -> None:
        """Run a block step by step, and note each read before it executes."""
        code = block.function.code
        inside = code.instructions[block.code.start : block.code.end]
        sel = group.sel
        for step, instruction in zip(block.steps, inside, strict=False):  # the block's last instruction may be its end, which is no step
            self._note(block, instruction, group.lanes)
            step.part(sel)
        if len(inside) > len(block.steps):
            self._note(block, inside[-1], group.lanes)

    def _note(self, block: BoundBlock, instruction: Instruction, lanes: Lanes) -> None:
        operand = _address_of(instruction)
        if operand is None or "__consan_" in operand.text:
            return
        context = DecodeContext(block.function, instruction)
        guard = instruction.predicate
        if guard is not None:
            lanes = lanes[context.predicate(guard.register)[lanes] ^ guard.negated]
        place = context.place(operand)
        if place.param is not None:
            return
        read = self.reads.setdefault(id(instruction), _Read(instruction, np.full(self.wave.lanes, -1, np.int64)))
        base = 0 if place.base is None else place.base[lanes].astype(np.uint64).astype(np.int64)
        read.addresses[lanes] = base + place.offset

    # Reports -------------------------------------------------------------------------------------------------------

    def of(self, blocked: Blocked, lanes: Lanes) -> Blocked:
        """The words that the lanes of one warp poll, for the report."""
        lane = int(lanes[0])
        reads = [read for read in self.reads.values() if read.addresses[lane] >= 0]
        chosen = [read for read in reads if polls(read.instruction)] or reads
        memory = tuple(polled for read in chosen if (polled := self._polled(read, lanes)) is not None)
        blocked = replace(blocked, open=any(self._is_global(read, lanes) for read in reads))
        if not memory:
            return replace(blocked, why="loop")
        first = chosen[0].instruction
        blocked = replace(blocked, why="spin", opcode=first.opcode, ptx_line=first.line, callers=(), polled=memory)
        return self._at_mbarrier(blocked, first, memory[0], lane)

    def _is_global(self, read: _Read, lanes: Lanes) -> bool:
        addresses = np.unique(read.addresses[lanes])
        return any(_space(read.instruction, address)[0] == "global" for address in addresses[addresses >= 0].tolist())

    def _at_mbarrier(self, blocked: Blocked, instruction: Instruction, polled: Polled, lane: int) -> Blocked:
        if not row_of(instruction).is_mbarrier:
            return blocked
        unit = self._offset_of(polled.address + RESERVED_SHARED, lane) >> 3
        return replace(blocked, why="mbarrier", mbarrier=self.plan.mbarriers.state(unit), polled=())

    def _polled(self, read: _Read, lanes: Lanes) -> Polled | None:
        """A read of the warp's first lane; other lanes may read other addresses."""
        addresses = read.addresses[lanes]
        others = len(np.unique(addresses[addresses >= 0])) - 1
        space, address = _space(read.instruction, int(addresses[0]))
        if space == "local":
            return None
        nbytes = _width(read.instruction)
        lock = swaps(read.instruction)
        if space == "shared":
            offset = self._offset_of(address, int(lanes[0]))
            address = (address & ((1 << RANK_SHIFT) - 1)) - RESERVED_SHARED
            name, inside = self._variable_at(address)
        else:
            offset, (name, inside) = address - GLOBAL_BASE, self._global_at(address)
        value = int.from_bytes(self.wave.arena.raw[offset : offset + nbytes].tobytes(), "little")
        return Polled(space, address, nbytes, value, name, inside, lock, others)

    def _offset_of(self, address: int, lane: int) -> int:
        """Offset in the arena of a shared address of a lane, which may name a CTA of its cluster."""
        wave = self.wave
        cta, inside = int(wave.cta_of[lane]), address & ((1 << RANK_SHIFT) - 1)
        if wave.cluster_size > 1:
            cta += (address >> RANK_SHIFT) - int(wave.rank[lane])
        return int(wave.windows.shared + cta * wave.windows.stride + inside - RESERVED_SHARED)

    def _variable_at(self, offset: int) -> tuple[str, int]:
        """The shared variable at an offset, by its source name, and the offset in it."""
        for variable, start in self.plan.reach.shared.items():
            if start <= offset < start + variable.nbytes:
                return source_name(variable.name), offset - start
        return "", offset

    def _global_at(self, address: int) -> tuple[str, int]:
        """The global variable or argument buffer at an address, and the offset in it."""
        found = self.wave.arena.find(address)
        if found is None:
            return "", 0
        if found.name == GRID_BARRIER:
            return found.name, address - found.address
        module = self.plan.module
        if isinstance(module.program.names.get(found.name), MemoryVariable):
            return source_name(found.name), address - found.address
        block, pointer = self.plan.param_address, np.dtype(np.uint64)
        for number, param in enumerate(module.entry(self.plan.reach.entry.name).params, 1):
            if param.nbytes == 8 and int(self.plan.param_field(block + param.offset, pointer)) == found.address:
                return f"argument {number}", address - found.address
        return "", address - found.address


def poll_near(group: LaneGroup) -> tuple[Instruction, Activation] | None:
    """The likely wait of a group: the poll in the innermost loop of the kernel's own code, and its frame."""
    frame: Activation | None = group.stack
    block: BoundBlock | None = group.block
    while frame is not None and block is not None and not frame.function.own:
        block = frame.return_to.following
        frame = frame.parent
    if frame is None or block is None:
        return None
    code = frame.function.code
    loops = [(start, end) for start, end in _loops(code) if start <= block.code.index <= end]
    for start, end in sorted(loops, key=lambda loop: loop[1] - loop[0]):
        inside = code.instructions[code.blocks[start].start : code.blocks[end].end]
        found = next((each for each in inside if polls(each) and "__consan_" not in each.text), None)
        if found is not None:
            return found, frame
    return None


def _loops(code: FunctionCode) -> Iterator[tuple[int, int]]:
    """First and last blocks of each loop, from backward branches."""
    for block in code.blocks:
        last = code.instructions[block.end - 1] if block.end > block.start else None
        target = last.operands[0] if last is not None and row_of(last).branches else None
        if last is not None and isinstance(target, Symbol):
            with contextlib.suppress(KeyError):
                start = code.block_at(last.scope, target.name)
                if start is not None and start <= block.index:
                    yield start, block.index


def _address_of(instruction: Instruction) -> Address | Any | None:
    """The address operand of an instruction that reads memory which other threads may write."""
    row = row_of(instruction)
    if not (row.is_load or row.is_update or row.is_phase_wait):
        return None
    access = row.describe(instruction)
    return access.address if access.is_visible else None


def _modifiers(instruction: Instruction) -> Mapping[str, str]:
    row = lookup(instruction.parts)
    return {} if row is None else row.modifiers(instruction.parts)


def _space(instruction: Instruction, address: int) -> tuple[str, int]:
    """Space of an address, and the address in its window."""
    space = SPACES.get(_modifiers(instruction).get("ss", ""), "generic")
    if row_of(instruction).is_mbarrier and space == "generic" and address < WINDOW_SIZE:
        return "shared", address
    if space != "generic":
        return space, address
    for start, window in ((SHARED_WINDOW, "shared"), (LOCAL_WINDOW, "local")):
        if start <= address < start + WINDOW_SIZE:
            return window, address - start
    return "global", address


def _width(instruction: Instruction) -> int:
    """Bytes of an element."""
    word = _modifiers(instruction).get("type", "")
    return WORD_DTYPES[word].itemsize if word in WORD_DTYPES else 8
