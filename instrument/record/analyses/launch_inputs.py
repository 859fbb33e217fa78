"""Inputs of a kernel that its launch gives: parameters, and the addresses of shared variables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field

from consan.dataclass import dataclass
from consan.instrument.control_flow import Key, definitions, guard_of, key_of, read
from consan.instrument.isa import adds, lookup, row_of
from consan.instrument.ptx import Address, Block, Immediate, Instruction, Register, Symbol
from consan.instrument.rewriting.context import FunctionPlan
from consan.instrument.rewriting.tensor_operands import gives_parameter

SLOT = 16  # bytes for a constant


@dataclass(frozen=True)
class LaunchConstant:
    """A value that the first thread of a launch stores for the host: bytes of a parameter, or the address of a shared variable."""

    name: str
    offset: int  # in the parameter
    nbytes: int
    symbol: bool = False


LEADER = LaunchConstant("", 0, 4)  # the lane that is elected among all


@dataclass
class LaunchConstants:
    """The constants that the first thread of a launch stores, in the order of their places."""

    hashed: dict[LaunchConstant, bool] = field(default_factory=dict)  # whether a hash depends on each
    of_grid: bool = False  # a hash depends on the size of the grid

    def add(self, constant: LaunchConstant, *, hashed: bool) -> None:
        """Have the first thread store a constant."""
        self.hashed[constant] = self.hashed.get(constant, False) or hashed

    def deciding(self, parameters: Sequence[str]) -> Iterator[tuple[int, int, int, int]]:
        """The place of each hashed constant, the number of its parameter, and its bytes there. Bytes alike in all launches are left out."""
        for constant, hashed in self.hashed.items():
            if hashed and constant != LEADER:
                yield self.slot(constant), parameters.index(constant.name), constant.offset, constant.nbytes

    def slot(self, constant: LaunchConstant) -> int:
        """The offset of a constant among those of the kernel."""
        return SLOT * list(self.hashed).index(constant)


@dataclass(frozen=True)
class LaunchInputs:
    """The operands of a kernel's instructions, and which of them the launch gives."""

    made: dict[Key, list[Instruction]]  # the instructions that write each register
    parameters: dict[str, int]  # bytes
    symbols: set[str]  # of shared variables

    @classmethod
    def of(cls, plan: FunctionPlan) -> LaunchInputs:
        """Those of one kernel."""
        parameters = {parameter.name: parameter.nbytes for parameter in plan.function.params}
        return cls(definitions(plan.function), parameters, {variable.symbol for variable in plan.stats.shared})

    def parameter(self, instruction: Instruction) -> LaunchConstant | None:
        """The bytes of a kernel parameter that an instruction loads."""
        row = lookup(instruction.parts)
        if row is None or not row.is_load or not row.describe(instruction).is_parameter:
            return None
        access = row.describe(instruction)
        address = access.address
        indexed = isinstance(address, Address) and address.index is not None
        base, within = (address.base, address.offset) if isinstance(address, Address) else (address, 0)
        name, offset = parameter_place(self.made, base, instruction.scope)
        if indexed or name not in self.parameters:
            return None
        return LaunchConstant(name, offset + within, access.total_bytes)

    def sources(self, instruction: Instruction) -> Iterator[Key]:
        """The registers that an instruction reads."""
        if self.parameter(instruction) is not None:  # its place among the parameters is in the text
            guard = guard_of(instruction)
            return iter(() if guard is None else (guard.register,))
        return (key_of(instruction.scope, name) for name in read(instruction) if instruction.scope.is_register(name))

    def others(self, instruction: Instruction) -> Iterator[str]:
        """The operands that an instruction reads besides registers of the kernel."""
        if self.parameter(instruction) is not None:
            return
        special = {each.name.partition(".")[0]: each.name for each in instruction.operands if isinstance(each, Register)}
        for name in read(instruction):
            if not instruction.scope.is_register(name):
                yield special.get(name, name)


def parameter_place(made: dict[Key, list[Instruction]], base: object, scope: Block) -> tuple[str, int]:
    """The name of the kernel parameter that an address is in, and where in it; an empty name if that is not certain."""
    offset = 0
    while isinstance(base, (Register, Symbol)) and scope.is_register(base.name):
        definitions_of = made.get(key_of(scope, base.name), [])
        if len(definitions_of) != 1 or definitions_of[0].predicate is not None:
            return "", 0
        (definition,) = definitions_of
        base, scope = definition.operands[-1], definition.scope
        if adds(definition) and isinstance(base, Immediate):
            offset += int(base.value)
            base = definition.operands[1]
        elif not (row_of(definition).moves or gives_parameter(definition)):
            return "", 0
    return (base.name, offset) if isinstance(base, Symbol) else ("", 0)
