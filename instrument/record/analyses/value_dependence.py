"""Whether what a kernel records may depend on the values that some of its accesses load.

A recorded launch can be asked about a change of its synchronisation as long as its threads would have recorded the same: no address,
guard, branch or operand of an asynchronous operation may follow from a value that the change could alter. A forward slice of the text
finds out. It knows no order of instructions and no places in memory: a load may bring what any store to the same state space has put
there. So a yes may be wrong, a no is certain.

Not followed: values that leave through global memory and come back in a later launch.
"""

from __future__ import annotations

from collections.abc import Iterable

from consan.dataclass import dataclass
from consan.instrument.control_flow import CONTROL, Key, guard_of, written
from consan.instrument.control_flow.slices import deciding_keys, operand_keys, touched_spaces
from consan.instrument.effects import MbarrierWait
from consan.instrument.isa import Row, does, flow_of, is_memory_or_sync, lookup
from consan.instrument.ptx import Function, Instruction, Module
from consan.instrument.waits.waits import pure_waits

_DEPARTS = CONTROL | {"call"}


def value_depends(module: Module, lines: Iterable[int], *, global_races: bool) -> bool:
    """Whether words of the log may depend on what the accesses at PTX lines load, or on memory that they write in another order.

    `global_races`: the log has all accesses to global memory.
    """
    wanted, functions = set(lines), [each for each in module.functions if each.body is not None]
    if any(map(_gives_up, functions)):
        return True
    slices = [_Slice(function, global_races) for function in functions]
    return _reaches(slices, {space for each in slices for space in each.start(wanted)})


@dataclass(frozen=True)
class Start:
    """An instruction whose results may differ. `memory`: and what it leaves in memory."""

    instruction: Instruction
    memory: bool


def value_follows(module: Module, starts: Iterable[Start]) -> bool:
    """Whether a branch, a guard, an address or an operand of an asynchronous operation may follow from what some instructions give."""
    slices, spaces = [_Slice(each, True) for each in module.functions if each.body is not None], set[str]()
    for start in starts:
        for each in slices:
            spaces |= each.begin(start)
    return _reaches(slices, spaces)


def _reaches(slices: list[_Slice], spaces: set[str]) -> bool:
    """Whether something that the log holds follows from the registers of slices, and from the memory in some spaces."""
    while True:
        before = (len(spaces), sum(len(each.registers) for each in slices))
        for each in slices:
            each.follow(spaces)
        if any(each.reached for each in slices):
            return True
        if before == (len(spaces), sum(len(each.registers) for each in slices)):
            return False


def _gives_up(function: Function) -> bool:
    """Whether a thread may go on although a wait at an mbarrier has failed: then the time of each phase decides where it goes."""
    waits = [each for each in function.instructions() if does(each, MbarrierWait)]
    return len(pure_waits(function, waits)) < len(waits)


class _Slice:
    """The part of one function that depends on some loads. `registers`: those that may hold another value."""

    def __init__(self, function: Function, global_races: bool) -> None:
        self._instructions = [(each, lookup(each.parts)) for each in function.instructions()]
        self._global_races = global_races
        self.registers: set[Key] = set()
        self.reached = False  # something that the log holds

    def start(self, lines: set[int]) -> set[str]:
        """Begin at the accesses; returns the state spaces whose contents they may alter."""
        spaces: set[str] = set()
        for instruction, row in self._instructions:
            if instruction.line not in lines or row is None or row.is_mbarrier or not is_memory_or_sync(instruction.parts):
                continue
            loaded = list(written(instruction))
            self.registers.update(loaded)
            if not loaded:
                spaces |= touched_spaces(row, instruction, "write")
        return spaces

    def begin(self, start: Start) -> set[str]:
        """Begin at an instruction; returns the state spaces whose contents it may alter."""
        instruction, row = start.instruction, lookup(start.instruction.parts)
        if not any(each is instruction for each, _ in self._instructions):
            return set()
        self.registers.update(written(instruction))
        return touched_spaces(row, instruction, "write") if start.memory else set()

    def follow(self, spaces: set[str]) -> None:
        """One pass over the text."""
        for instruction, row in self._instructions:
            read = {key for operand in instruction.operands for key in operand_keys(instruction, operand)} & self.registers
            guard = guard_of(instruction)
            guarded = guard is not None and guard.register in self.registers
            if not (read or guarded or (spaces and touched_spaces(row, instruction, "read") & spaces)):
                continue
            self.reached |= self._decides(instruction, row, guarded)
            if row is None or not row.is_mbarrier:  # results of waits end loops; the log holds those that were true
                self.registers.update(written(instruction))
            spaces |= touched_spaces(row, instruction, "write")

    def _decides(self, instruction: Instruction, row: Row | None, guarded: bool) -> bool:
        """Whether an instruction with such an operand alters where its thread goes, or what the log holds of it."""
        if row is None or flow_of(instruction) in _DEPARTS:
            return True
        if not is_memory_or_sync(instruction.parts) or (row.is_load and row.describe(instruction).space in self._unrecorded):
            return False
        wrong = (key for key in deciding_keys(instruction, row) if key in self.registers)
        return guarded or any(wrong)

    @property
    def _unrecorded(self) -> tuple[str, ...]:
        return ("local", "param", "const") if self._global_races else ("local", "param", "const", "global")
