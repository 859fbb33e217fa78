"""The static side of a module: functions as lists of basic blocks, names resolved by scope, layout of variables.

Follows PTX ISA "State Spaces, Types, and Variables" and "Functions": labels, registers and variables are local to their
braces; shared variables are laid out for each entry from what it can reach; local variables get static places unless their
function is recursive. Nothing here depends on a launch.

Not handled: texture, surface and sampler references; initialisers of shared or local variables (PTX has none).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from copy import copy
from functools import cached_property
from typing import TYPE_CHECKING

from consan.dataclass import dataclass
from consan.instrument.control_flow.labels import visible
from consan.instrument.isa import lookup, row_of
from consan.instrument.ptx import Block, Directive, Function, Instruction, Label, Param, Variable
from consan.instrument.ptx.operands import Register, Symbol, Tuple

if TYPE_CHECKING:
    from .reach import FlattenedModule

_NAME = re.compile(r"[%\w$]+")


@dataclass(eq=False)
class RegisterVariable:
    """A register; `word` is its declared type."""

    name: str
    word: str


@dataclass(eq=False)
class ParamVariable:
    """A `.param` variable: parameter or return value of a function, or an argument list's element in a caller."""

    name: str
    nbytes: int
    align: int
    of_entry: bool = False
    offset: int = 0  # in the entry's parameter block


@dataclass(eq=False)
class MemoryVariable:
    """A variable in global, const, shared or local memory."""

    name: str
    space: str
    nbytes: int
    align: int
    node: Variable
    initializer: str | None = None
    is_extern: bool = False

    @property
    def in_shared(self) -> bool:
        """Whether each CTA has it in its shared memory."""
        return self.node.in_shared

    @property
    def is_module_scope(self) -> bool:
        """Whether all CTAs have it, in global or constant memory."""
        return self.node.is_module_scope


Named = RegisterVariable | ParamVariable | MemoryVariable | Function


@dataclass(eq=False)
class CodeBlock:
    """A basic block: instructions [start, end) of a function.

    `ends`: the last one decides what comes next. `collective`: the first one needs lanes of a warp to be together. `event`: before the
    first one a schedule may delay warps.
    """

    index: int
    start: int
    end: int
    ends: bool
    collective: bool
    event: bool = False


def align_up(value: int, alignment: int) -> int:
    """The next multiple of `alignment`."""
    return -(-value // alignment) * alignment


def ends_block(instruction: Instruction) -> bool:
    """Whether control or a group's composition may change after this instruction."""
    row = row_of(instruction)
    return bool(row.flow) or row.suspends or row.is_cta_barrier


def is_collective(instruction: Instruction) -> bool:
    """Whether the lanes of a member mask must be together to run it."""
    return row_of(instruction).collective


def is_aligned(instruction: Instruction) -> bool:
    """Whether the machine runs it only for a whole warp: ldmatrix, mma and their kin, `bar.arrive`, `barrier.cluster`.

    At a CTA barrier that waits, lanes of a warp may come in several groups; as on a chip, the warp counts when all of them are there.
    """
    row = lookup(instruction.parts)
    if row is None or not row.is_aligned(instruction.parts):
        return False
    return not ends_block(instruction) or row.arrives_only or row.is_cluster_barrier or row.is_of_tensor_memory


def waits_for_warpgroup(instruction: Instruction) -> bool:
    """Whether a warp stays here until the other warps of its warpgroup have committed what it waits for."""
    return row_of(instruction).awaits_products


def param_variables(params: list[Param], of_entry: bool) -> dict[str, ParamVariable | RegisterVariable]:
    """Variables of a parameter list, laid out one after the other."""
    found: dict[str, ParamVariable | RegisterVariable] = {}
    offset = 0
    for param in params:
        if param.space == "reg":
            found[param.name] = RegisterVariable(param.name, param.type)
            continue
        offset = align_up(offset, param.alignment)
        found[param.name] = ParamVariable(param.name, param.nbytes, param.alignment, of_entry, offset)
        offset += param.nbytes
    return found


@dataclass(frozen=True)
class BodyText:
    """The facts of a function that follow from its text alone, whatever the module."""

    words: frozenset[str]  # every name: a superset of what it refers to
    calls: list[Instruction]
    tensor_loads: list[Instruction]
    uses_alloca: bool
    takes_clusters: bool

    @classmethod
    def of(cls, function: Function) -> BodyText:
        """Read a function."""
        rows = [(instruction, row_of(instruction)) for instruction in function.instructions()]
        return cls(
            words=frozenset(_NAME.findall(function.text)),
            calls=[instruction for instruction, row in rows if row.calls],
            tensor_loads=[instruction for instruction, row in rows if row.loads_tensor_memory],
            uses_alloca=any(row.moves_stack for _, row in rows),
            takes_clusters=any(row.takes_cluster for _, row in rows),
        )


class FunctionCode:
    """A function with a body, flattened into basic blocks. Modules that hold the same function share all but what `placed` sets."""

    program: FlattenedModule
    ordinal: int

    def __init__(self, function: Function) -> None:
        assert function.body is not None
        self.function = function
        self.above = 0  # lines of the module above the text that the function was read from
        self.params = param_variables(function.params, self.is_entry)
        self.returns = param_variables(function.returns, False)
        self.instructions: list[Instruction] = []
        self.memory: list[MemoryVariable] = []  # shared, global, const and local variables declared inside
        self._labels: dict[tuple[int, str], int] = {}
        self._names: dict[tuple[int, str], Named] = {}
        self._tables: dict[tuple[int, str], Directive] = {}
        self._flatten(function.body)
        self._starts: dict[int, int] = {}
        self.blocks = list(self._cut())
        self.text = BodyText.of(function)
        self.recursive = False

    @property
    def name(self) -> str:
        """Its name."""
        return self.function.name

    @property
    def is_entry(self) -> bool:
        """Whether it is a kernel."""
        return self.function.kind == "entry"

    def placed(self, program: FlattenedModule, ordinal: int, above: int = 0) -> FunctionCode:
        """The function in a module: with the names, the number and the lines that it has there."""
        code = copy(self)
        code.program, code.ordinal, code.above = program, ordinal, above
        return code

    def cut_at(self, event: Callable[[Instruction], bool]) -> FunctionCode:
        """The function with a block more before each event."""
        code = copy(self)
        code.__dict__.pop("_loops", None)
        code._starts = {}
        code.blocks = list(code._cut(event))
        return code

    def line(self, instruction: Instruction) -> int:
        """The line of one of its instructions in the module's text."""
        return self.above + instruction.line

    def _flatten(self, block: Block) -> None:
        for statement in block.statements:
            if isinstance(statement, Instruction):
                self.instructions.append(statement)
            elif isinstance(statement, Label):
                self._labels[block.start, statement.name] = len(self.instructions)
            elif isinstance(statement, Variable):
                self._declare(block, statement)
            elif isinstance(statement, Block):
                self._flatten(statement)
            elif statement.label is not None:
                self._tables[block.start, statement.label] = statement

    def _declare(self, block: Block, variable: Variable) -> None:
        if variable.space in ("reg", "param"):
            return
        for memory in memory_variables(variable):
            self._names[id(block), memory.name] = memory
            self.memory.append(memory)

    def _cut(self, event: Callable[[Instruction], bool] | None = None) -> Iterator[CodeBlock]:
        leaders = {0, *self._labels.values()}
        events = {index for index, instruction in enumerate(self.instructions) if event(instruction)} if event is not None else set()
        leaders |= events
        together = False  # a whole warp that is together stays so up to the end of the block
        for index, instruction in enumerate(self.instructions):
            together = together and index not in leaders
            if ends_block(instruction):
                leaders.add(index + 1)
            if is_collective(instruction) or waits_for_warpgroup(instruction) or (is_aligned(instruction) and not together):
                leaders.add(index)
            together = is_aligned(instruction) or (together and index not in leaders)
        total = len(self.instructions)
        ordered = sorted(leader for leader in leaders if leader < total) or [0]
        for number, (start, end) in enumerate(zip(ordered, [*ordered[1:], total], strict=True)):
            self._starts[start] = number
            inside = self.instructions[start:end]
            collective = bool(inside) and (is_collective(inside[0]) or is_aligned(inside[0]))
            yield CodeBlock(number, start, end, bool(inside) and ends_block(inside[-1]), collective, start in events)

    def block_at(self, scope: Block, label: str) -> int | None:
        """Number of the block that a label in scope starts; None where it stands at the very end of the body."""
        index = visible(scope, label, self._labels)
        if index is None:
            raise KeyError(label)
        return self._starts.get(index)

    def repeats(self, block: CodeBlock) -> bool:
        """Whether a block lies in a loop."""
        return any(first is not None and first <= block.index <= last for first, last in self._loops)

    @cached_property
    def _loops(self) -> list[tuple[int | None, int]]:
        """The blocks that branches lead to, and those that the branches end."""
        ends = [(block.index, self.instructions[block.end - 1]) for block in self.blocks if block.ends]
        return [(self.block_at(last.scope, last.operands[-1].text), index) for index, last in ends if row_of(last).branches]

    def table(self, scope: Block, label: str) -> Directive:
        """The `.branchtargets` or `.callprototype` that a label names."""
        found = visible(scope, label, self._tables)
        if found is None:
            raise KeyError(label)
        return found

    def resolve(self, scope: Block, name: str) -> Named | None:
        """The object that a name denotes in a scope of this function; None for special registers and unknown names."""
        here = id(scope), name
        known = self._names.get(here)
        if known is not None:
            return known
        if (found := scope.lookup(name)) is not None:
            variable, block = found
            if (made := self._names.get((id(block), name)) or _variable(variable, name)) is None:
                return None
            there = self._names.setdefault((id(block), name), made)
            return self._names.setdefault(here, there)  # threads may share the function: they must not get two variables
        return self.params.get(name) or self.returns.get(name) or self.program.names.get(name)

    @cached_property
    def single_calls(self) -> frozenset[int]:
        """Ids of the scopes that hold exactly one call."""
        return frozenset(_once([id(i.scope) for i in self.text.calls]))

    @cached_property
    def local_bytes(self) -> int:
        """Bytes of its local variables."""
        return align_up(self.local_layout()[1], 16)

    def local_layout(self) -> tuple[dict[MemoryVariable, int], int]:
        """Offsets of its local variables within its frame, and the frame's size."""
        return lay_out([v for v in self.memory if v.space == "local"], 0)


def _once(items: list[int]) -> set[int]:
    seen: set[int] = set()
    twice: set[int] = set()
    for item in items:
        (twice if item in seen else seen).add(item)
    return seen - twice


def _variable(variable: Variable, name: str) -> Named | None:
    """None: one of a range of parameters, which no compiler writes."""
    if variable.space == "reg":
        return RegisterVariable(name, variable.type)
    item = next((n for n in variable.names if n.name == name), None)
    return None if item is None else ParamVariable(name, variable.nbytes(item), variable.alignment)


def memory_variables(variable: Variable) -> Iterator[MemoryVariable]:
    """The memory variables that a declaration makes."""
    for item in variable.names:
        extern = variable.linkage == "extern"
        yield MemoryVariable(item.name, variable.space, variable.nbytes(item), variable.alignment, variable, item.initializer, extern)


def lay_out(variables: list[MemoryVariable], start: int) -> tuple[dict[MemoryVariable, int], int]:
    """Offsets of variables one after the other, and the end."""
    offsets: dict[MemoryVariable, int] = {}
    for variable in variables:
        start = align_up(start, variable.align)
        offsets[variable] = start
        start += variable.nbytes
    return offsets, start


def call_parts(call: Instruction) -> tuple[tuple[object, ...], Symbol | Register, tuple[object, ...]]:
    """Return operands, target and argument operands of a call."""
    operands = list(call.operands)
    returns = operands.pop(0).elements if isinstance(operands[0], Tuple) else ()  # type: ignore[union-attr]
    target = operands.pop(0)
    assert isinstance(target, (Symbol, Register))
    arguments = operands[0].elements if operands and isinstance(operands[0], Tuple) else ()
    return returns, target, arguments
