"""The static side of a module: functions as lists of basic blocks, names resolved by scope, layout of variables.

Follows PTX ISA "State Spaces, Types, and Variables" and "Functions": labels, registers and variables are local to their
braces; shared variables are laid out for each entry from what it can reach; local variables get static places unless their
function is recursive. Nothing here depends on a launch.

Not handled: texture, surface and sampler references; initialisers of shared or local variables (PTX has none).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from consan.instrument.isa import flow_of, has_action, lookup
from consan.instrument.ptx import Block, Directive, Function, Instruction, Label, Module, Param, Variable
from consan.instrument.ptx.operands import Register, Symbol, Tuple

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


Named = RegisterVariable | ParamVariable | MemoryVariable | Function


@dataclass(eq=False)
class CodeBlock:
    """A basic block: instructions [start, end) of a function.

    `ends`: the last one decides what comes next. `collective`: the first one needs lanes of a warp to be together.
    """

    index: int
    start: int
    end: int
    ends: bool
    collective: bool


def align_up(value: int, alignment: int) -> int:
    """The next multiple of `alignment`."""
    return -(-value // alignment) * alignment


def ends_block(instruction: Instruction) -> bool:
    """Whether control or a group's composition may change after this instruction."""
    row = lookup(instruction.parts)
    return row is not None and (bool(row.flow) or row.suspends or row.family == "barrier")


def is_collective(instruction: Instruction) -> bool:
    """Whether the lanes of a member mask must be together to run it."""
    row = lookup(instruction.parts)
    return row is not None and row.collective


def is_aligned(instruction: Instruction) -> bool:
    """Whether the machine runs it only for a whole warp: ldmatrix, mma and their kin, `bar.arrive`, `barrier.cluster`.

    At a CTA barrier that waits, lanes of a warp may come in several groups; as on a chip, the warp counts when all of them are there.
    """
    row = lookup(instruction.parts)
    if row is None or not row.is_aligned(instruction.parts):
        return False
    return not ends_block(instruction) or row.action == "arrive" or row.family == "cluster-barrier"


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


class FunctionCode:
    """A function with a body, flattened into basic blocks."""

    def __init__(self, function: Function, program: FlattenedModule, ordinal: int) -> None:
        assert function.body is not None
        self.function = function
        self.name = function.name
        self.program = program
        self.ordinal = ordinal
        self.is_entry = function.kind == "entry"
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
        self.recursive = False

    def _flatten(self, block: Block) -> None:
        for statement in block.statements:
            if isinstance(statement, Instruction):
                self.instructions.append(statement)
            elif isinstance(statement, Label):
                self._labels[id(block), statement.name] = len(self.instructions)
            elif isinstance(statement, Variable):
                self._declare(block, statement)
            elif isinstance(statement, Block):
                self._flatten(statement)
            elif statement.label is not None:
                self._tables[id(block), statement.label] = statement

    def _declare(self, block: Block, variable: Variable) -> None:
        if variable.space in ("reg", "param"):
            return
        for memory in memory_variables(variable):
            self._names[id(block), memory.name] = memory
            self.memory.append(memory)

    def _cut(self) -> Iterator[CodeBlock]:
        leaders = {0, *self._labels.values()}
        together = False  # a whole warp that is together stays so up to the end of the block
        for index, instruction in enumerate(self.instructions):
            together = together and index not in leaders
            if ends_block(instruction):
                leaders.add(index + 1)
            if is_collective(instruction) or (is_aligned(instruction) and not together):
                leaders.add(index)
            together = is_aligned(instruction) or (together and index not in leaders)
        total = len(self.instructions)
        ordered = sorted(leader for leader in leaders if leader < total) or [0]
        for number, (start, end) in enumerate(zip(ordered, [*ordered[1:], total], strict=True)):
            self._starts[start] = number
            inside = self.instructions[start:end]
            collective = bool(inside) and (is_collective(inside[0]) or is_aligned(inside[0]))
            yield CodeBlock(number, start, end, bool(inside) and ends_block(inside[-1]), collective)

    def block_at(self, scope: Block, label: str) -> int | None:
        """Number of the block that a label in scope starts; None where it stands at the very end of the body."""
        where: Block | None = scope
        while where is not None:
            index = self._labels.get((id(where), label))
            if index is not None:
                return self._starts.get(index)
            where = where.parent
        raise KeyError(label)

    def table(self, scope: Block, label: str) -> Directive:
        """The `.branchtargets` or `.callprototype` that a label names."""
        where: Block | None = scope
        while where is not None:
            if (id(where), label) in self._tables:
                return self._tables[id(where), label]
            where = where.parent
        raise KeyError(label)

    def resolve(self, scope: Block, name: str) -> Named | None:
        """What a name means in a scope of this function; None for special registers and unknown names."""
        found = scope.lookup(name)
        if found is not None:
            variable, block = found
            key = (id(block), name)
            if key not in self._names:
                self._names[key] = _variable(variable, name)
            return self._names[key]
        return self.params.get(name) or self.returns.get(name) or self.program.names.get(name)

    @cached_property
    def words(self) -> frozenset[str]:
        """Every name in the function's text: a superset of what it refers to."""
        return frozenset(_NAME.findall(self.function.text))

    @cached_property
    def calls(self) -> list[Instruction]:
        """Its call instructions."""
        return [i for i in self.instructions if flow_of(i) == "call"]

    @cached_property
    def single_calls(self) -> frozenset[int]:
        """Ids of the scopes that hold exactly one call."""
        return frozenset(_once([id(i.scope) for i in self.calls]))

    @cached_property
    def local_bytes(self) -> int:
        """Bytes of its local variables."""
        return align_up(self.local_layout()[1], 16)

    def local_layout(self) -> tuple[dict[MemoryVariable, int], int]:
        """Offsets of its local variables within its frame, and the frame's size."""
        return lay_out([v for v in self.memory if v.space == "local"], 0)

    @cached_property
    def uses_alloca(self) -> bool:
        """Whether it allocates on the stack at run time."""
        return any(has_action(i, "special", "alloca", "restore") for i in self.instructions)


def _once(items: list[int]) -> set[int]:
    seen: set[int] = set()
    twice: set[int] = set()
    for item in items:
        (twice if item in seen else seen).add(item)
    return seen - twice


def _variable(variable: Variable, name: str) -> Named:
    if variable.space == "reg":
        return RegisterVariable(name, variable.type)
    item = next(n for n in variable.names if n.name == name)
    return ParamVariable(name, variable.nbytes(item), variable.alignment)


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


@dataclass
class Reach:
    """What an entry can reach: its functions and the layout of its shared and local memory."""

    entry: FunctionCode
    functions: list[FunctionCode]
    shared: dict[MemoryVariable, int] = field(default_factory=dict)  # offsets from the first byte after the reserved KiB
    static_shared: int = 0
    local: dict[FunctionCode, int] = field(default_factory=dict)
    static_local: int = 0
    dynamic_local: int = 0


class FlattenedModule:
    """A parsed module, its functions flattened on demand."""

    DYNAMIC_STACK = 16 << 10

    def __init__(self, module: Module) -> None:
        self.module = module
        self.names: dict[str, MemoryVariable | Function] = {}
        for variable in module.variables:
            for memory in memory_variables(variable):
                if not memory.is_extern or memory.name not in self.names:
                    self.names[memory.name] = memory
        for function in module.functions:
            known = self.names.get(function.name)
            if not isinstance(known, Function) or known.is_declaration:
                self.names[function.name] = function
        # Schedules go by these numbers: they must not depend on the order in which functions are looked at.
        self._ordinals = {name: index for index, name in enumerate(dict.fromkeys(function.name for function in module.functions))}
        self._codes: dict[str, FunctionCode] = {}
        self._reach: dict[str, Reach] = {}

    def code(self, name: str) -> FunctionCode | None:
        """The flattened function of that name; None if the module does not define it."""
        if name not in self._codes:
            function = self.names.get(name)
            if not isinstance(function, Function) or function.is_declaration:
                return None
            self._codes[name] = FunctionCode(function, self, self._ordinals[name])
        return self._codes[name]

    @cached_property
    def defined(self) -> list[str]:
        """Functions (not entries) with a body: what an address may point to."""
        return [f.name for f in self.module.functions if f.kind == "func" and not f.is_declaration]

    def callees(self, code: FunctionCode) -> set[str]:
        """Functions of this module that `code` may call; through a register, any whose address may be taken."""
        names: set[str] = set()
        for call in code.calls:
            _, target, _ = call_parts(call)
            if isinstance(target, Symbol):
                names.add(target.name)
            else:
                names.update(self.defined)
        return {name for name in names if self.code(name) is not None}

    def reach(self, entry: str) -> Reach:
        """Reachable functions and memory layout of an entry."""
        if entry not in self._reach:
            self._reach[entry] = self._explore(entry)
        return self._reach[entry]

    def _explore(self, entry: str) -> Reach:
        edges: dict[str, set[str]] = {}
        pending = [entry]
        while pending:
            name = pending.pop()
            if name not in edges:
                code = self.code(name)
                assert code is not None
                edges[name] = self.callees(code)
                pending += sorted(edges[name])
        functions = [code for name in sorted(edges, key=lambda n: n != entry) if (code := self.code(name)) is not None]
        cyclic = _on_cycles(edges)
        for code in functions:
            code.recursive = code.recursive or code.name in cyclic
        reach = Reach(functions[0], functions)
        self._lay_out_shared(reach)
        _lay_out_local(reach, self.DYNAMIC_STACK)
        return reach

    def _lay_out_shared(self, reach: Reach) -> None:
        used = frozenset().union(*(code.words for code in reach.functions))
        module = [v for v in self.names.values() if isinstance(v, MemoryVariable) and v.space == "shared" and v.name in used]
        inside = [v for code in reach.functions for v in code.memory if v.space == "shared"]
        static = [v for v in (*module, *inside) if v.nbytes]
        dynamic = [v for v in (*module, *inside) if not v.nbytes]
        reach.shared, end = lay_out(static, 0)
        start = align_up(end, max((v.align for v in dynamic), default=1))
        reach.shared.update(dict.fromkeys(dynamic, start))
        reach.static_shared = start if dynamic else end


def _lay_out_local(reach: Reach, stack: int) -> None:
    offset = 0
    for code in reach.functions:
        if not code.recursive:
            reach.local[code] = offset
            offset += code.local_bytes
    reach.static_local = offset
    if any(code.recursive or code.uses_alloca for code in reach.functions):
        reach.dynamic_local = stack


def _on_cycles(edges: dict[str, set[str]]) -> set[str]:
    """Names that can reach themselves."""
    found = set()
    for start in edges:
        seen: set[str] = set()
        pending = list(edges[start])
        while pending:
            name = pending.pop()
            if name not in seen:
                seen.add(name)
                pending += edges[name]
        if start in seen:
            found.add(start)
    return found


def call_parts(call: Instruction) -> tuple[tuple[object, ...], Symbol | Register, tuple[object, ...]]:
    """Return operands, target and argument operands of a call."""
    operands = list(call.operands)
    returns = operands.pop(0).elements if isinstance(operands[0], Tuple) else ()  # type: ignore[union-attr]
    target = operands.pop(0)
    assert isinstance(target, (Symbol, Register))
    arguments = operands[0].elements if operands and isinstance(operands[0], Tuple) else ()
    return returns, target, arguments
