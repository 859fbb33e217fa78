"""The concrete tree of a module (ISA "Statements", "State Spaces, Types, and Variables", "Directives").

Every node is a range of the module's text, so nothing is lost: only white space and comments lie between two nodes. Nodes compare by
identity. Types are not checked. Nothing is resolved except names of registers (by scope), other names of functions (`.alias`) and source
locations (by the current `.loc`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, TypeVar, Union, cast

from consan.dataclass import dataclass
from consan.instrument.ptx.declared import Declared, Param, VarName, type_bytes
from consan.instrument.ptx.extents import three_extents
from consan.instrument.ptx.operand_parser import parse_operands
from consan.instrument.ptx.operands import Operand, Symbol
from consan.instrument.ptx.source import Source, Span

if TYPE_CHECKING:
    from consan.instrument.ptx.locations import DebugStrings, Loc, LocDirective

_T = TypeVar("_T")
_Self = TypeVar("_Self", bound="Once")
_PARTS: dict[str, tuple[str, ...]] = {}


class Once:
    """Results of functions of a part of the tree, each computed once: a part that has been read does not change."""

    __slots__ = ()
    _once: dict[Callable[[Any], Any], Any]

    def once(self: _Self, make: Callable[[_Self], _T]) -> _T:
        """The result of a function of this part, computed on first use."""
        if make not in self._once:
            self._once[make] = make(self)
        return cast("_T", self._once[make])


class Node:
    """A range of the module's text."""

    __slots__ = ("end", "source", "start")

    def __init__(self, source: Source, start: int, end: int) -> None:
        self.source = source
        self.start = start
        self.end = end

    @property
    def span(self) -> Span:
        """Offsets of the first character and after the last one."""
        return Span(self.start, self.end)

    @property
    def text(self) -> str:
        """The text as written."""
        return self.source.text[self.start : self.end]

    @property
    def line(self) -> int:
        """1-based line of the PTX text."""
        return self.source.position(self.start)[0]

    @property
    def column(self) -> int:
        """1-based column of the PTX text."""
        return self.source.position(self.start)[1]

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.line}:{self.column} {self.text[:60]!r}>"


@dataclass(frozen=True)
class Predicate:
    """The guard of an instruction: `@p` or `@!p`."""

    negated: bool
    register: str


def _parts(opcode: str) -> tuple[str, ...]:
    parts = _PARTS.get(opcode)
    if parts is None:
        parts = _PARTS[opcode] = tuple(opcode.split("."))
    return parts


class Instruction(Once, Node):
    """One instruction, from its guard or opcode to its semicolon. `parts`: the opcode split at its dots; parts with `::` stay whole."""

    __slots__ = ("_arguments", "_guard", "_loc", "_once", "_operands", "opcode", "parts", "scope")

    def __init__(
        self, source: Source, start: int, end: int, guard: str | None, opcode: str, arguments: int, scope: Block, loc: LocDirective | None
    ) -> None:
        self.source = source
        self.start = start
        self.end = end
        self._guard = guard
        self.opcode = opcode
        self.parts = _parts(opcode)
        self._arguments = arguments
        self.scope = scope
        self._loc = loc
        self._operands: tuple[Operand, ...] | None = None
        self._once: dict[Callable[[Instruction], Any], Any] = {}

    @property
    def predicate(self) -> Predicate | None:
        """The guard, if there is one."""
        guard = self._guard
        if guard is None:
            return None
        return Predicate(guard[1] == "!", guard.lstrip("@!"))

    @property
    def operands(self) -> tuple[Operand, ...]:
        """The operands, read on first use."""
        if self._operands is None:
            is_call = self.opcode.partition(".")[0] == "call"
            found = parse_operands(self.source, self._arguments, is_call, self.scope.is_register)[0]
            self._operands = tuple(self._named(each) for each in found) if self.source.aliases else found
        return self._operands

    def _named(self, operand: Operand) -> Operand:
        """An operand, with the function in place of another name of it."""
        return replace(operand, name=self.source.aliases.get(operand.name, operand.name)) if isinstance(operand, Symbol) else operand

    @property
    def loc(self) -> Loc | None:
        """The current source location, with its chain of inlining; None before the function's first `.loc`."""
        return self._loc.loc if self._loc is not None else None


class Label(Node):
    """`name:`."""

    __slots__ = ("name",)

    def __init__(self, source: Source, start: int, end: int, name: str) -> None:
        super().__init__(source, start, end)
        self.name = name


class Directive(Node):
    """A directive that declares no variable or function: `.loc`, `.pragma`, `.file`, `.branchtargets`, ..."""

    __slots__ = ("label", "name")

    def __init__(self, source: Source, start: int, end: int, name: str, label: str | None = None) -> None:
        super().__init__(source, start, end)
        self.name = name
        #: The label that names a `.callprototype`, `.branchtargets` or `.calltargets`.
        self.label = label

    @property
    def targets(self) -> tuple[str, ...]:
        """The names that a `.branchtargets` or `.calltargets` lists, ranges `L<3>` expanded."""
        from consan.instrument.ptx.declarations import parse_targets

        return parse_targets(self.source, self.start) if self.name in (".branchtargets", ".calltargets") else ()


class Section(Node):
    """A debug section, kept raw: `.section .debug_str { ... }`."""

    __slots__ = ("name",)

    def __init__(self, source: Source, start: int, end: int, name: str) -> None:
        super().__init__(source, start, end)
        self.name = name


class Variable(Node):
    """A declaration of variables or registers, through its semicolon."""

    __slots__ = ("align", "attributes", "linkage", "names", "space", "type", "vector")

    def __init__(self, source: Source, start: int, end: int, linkage: str, declared: Declared, names: list[VarName]) -> None:
        super().__init__(source, start, end)
        self.linkage = linkage
        self.space = declared.space
        self.type = declared.type
        self.align = declared.align
        self.vector = declared.vector
        self.attributes = declared.attributes
        self.names = names

    @property
    def in_shared(self) -> bool:
        """Whether each CTA has it in its shared memory."""
        return self.space == "shared"

    @property
    def is_module_scope(self) -> bool:
        """Whether all CTAs have it, in global or constant memory."""
        return self.space in ("global", "const")

    @property
    def alignment(self) -> int:
        """The effective alignment: the declared one, or the natural one."""
        return self.align or type_bytes(self.type) * self.vector

    def nbytes(self, name: VarName) -> int:
        """Bytes of one of the names; 0 for an array whose size is given at launch."""
        return type_bytes(self.type) * self.vector * name.elements


class Block(Node):
    """Statements in braces: a body, or a scope of its own such as inline asm."""

    __slots__ = ("_ranges", "_registers", "owner", "parent", "statements")

    def __init__(self, source: Source, start: int, parent: Block | None) -> None:
        super().__init__(source, start, start)
        self.parent = parent
        self.owner: Function | None = None
        self.statements: list[Statement] = []
        self._registers: dict[str, Variable | None] | None = None
        self._ranges: list[tuple[str, int, Variable]] = []

    @property
    def open(self) -> int:
        """Offset of the opening brace."""
        return self.start

    @property
    def close(self) -> int:
        """Offset of the closing brace."""
        return self.end - 1

    def walk(self) -> Iterator[Statement]:
        """All statements in order; a nested block comes before its contents."""
        stack = [iter(self.statements)]
        while stack:
            for statement in stack[-1]:
                yield statement
                if isinstance(statement, Block):
                    stack.append(iter(statement.statements))
                    break
            else:
                stack.pop()

    def instructions(self) -> Iterator[Instruction]:
        """All instructions in order, including those of nested blocks."""
        return (statement for statement in self.walk() if isinstance(statement, Instruction))

    def _declare(self) -> dict[str, Variable | None]:
        registers: dict[str, Variable | None] = {}
        for statement in self.statements:
            if isinstance(statement, Variable):
                for name in statement.names:
                    if name.count is None:
                        registers[name.name] = statement
                    else:
                        self._ranges.append((name.name, name.count, statement))
        self._registers = registers
        return registers

    def declared(self, name: str) -> Variable | None:
        """The declaration of a name in this block itself."""
        names = self._declare() if self._registers is None else self._registers
        if name not in names:
            names[name] = self._in_a_range(name)
        return names[name]

    def _in_a_range(self, name: str) -> Variable | None:
        for prefix, count, variable in self._ranges:
            number = name[len(prefix) :]
            if name.startswith(prefix) and number.isdecimal() and len(number) < 10 and str(int(number)) == number and int(number) < count:
                return variable
        return None

    def lookup(self, name: str) -> tuple[Variable, Block] | None:
        """The declaration of a name in this block or the nearest enclosing one, and that block."""
        block: Block | None = self
        while block is not None:
            variable = block.declared(name)
            if variable is not None:
                return variable, block
            block = block.parent
        return None

    def is_register(self, name: str) -> bool:
        """Whether a bare name is a register here."""
        found = self.lookup(name)
        if found is not None:
            return found[0].space == "reg"
        parameter = self.parameter(name)
        return parameter is not None and parameter.space == "reg"

    def parameter(self, name: str) -> Param | None:
        """The parameter or return value of the function that has a name."""
        block = self
        while block.parent is not None:
            block = block.parent
        declared = () if block.owner is None else (*block.owner.params, *block.owner.returns)
        return next((each for each in declared if each.name == name), None)


class Function(Once, Node):
    """An `.entry` or a `.func` with its linkage: a definition, or a declaration with its semicolon."""

    __slots__ = ("_once", "attributes", "body", "directives", "kind", "linkage", "name", "params", "returns")

    def __init__(self, source: Source, start: int, linkage: str, kind: str) -> None:
        super().__init__(source, start, start)
        self.linkage = linkage
        self.kind = kind
        self.name = ""
        self.returns: list[Param] = []
        self.params: list[Param] = []
        self.directives: dict[str, tuple[int, ...] | str] = {}
        self.attributes: tuple[str, ...] = ()
        self.body: Block | None = None
        self._once: dict[Callable[[Function], Any], Any] = {}

    @property
    def is_declaration(self) -> bool:
        """Whether it has no body."""
        return self.body is None

    @property
    def required_cluster(self) -> tuple[int, int, int]:
        """The CTAs of a cluster in each dimension as `.reqnctapercluster` fixes them; (1, 1, 1) without it."""
        given = self.directives.get("reqnctapercluster", ())
        return three_extents(given if isinstance(given, tuple) else ())

    def instructions(self) -> Iterator[Instruction]:
        """All instructions of the body in order."""
        return iter(self.sequence)

    @property
    def sequence(self) -> tuple[Instruction, ...]:
        """The same as a sequence."""
        return self.once(_sequence)


def _sequence(function: Function) -> tuple[Instruction, ...]:
    return tuple(function.body.instructions()) if function.body is not None else ()


Statement = Union[Instruction, Label, Directive, Variable, Block]  # noqa: UP007 - used at run time
Item = Union[Directive, Variable, Function, Section]  # noqa: UP007


@dataclass(eq=False, repr=False)
class Module(Once):
    """A whole PTX module."""

    source: Source
    version: tuple[int, int] = (0, 0)
    targets: tuple[str, ...] = ()
    address_size: int = 32
    items: list[Item] = field(default_factory=list)
    files: dict[int, str] = field(default_factory=dict)
    _once: dict[Callable[[Any], Any], Any] = field(default_factory=dict, init=False)

    @property
    def text(self) -> str:
        """The text that was read."""
        return self.source.text

    @property
    def name(self) -> str:
        """The name given to the text when it was read."""
        return self.source.name

    @property
    def target(self) -> str:
        """The architecture: "sm_90a"."""
        return self.targets[0]

    @property
    def functions(self) -> list[Function]:
        """Entries and functions in order, declarations included."""
        return [item for item in self.items if isinstance(item, Function)]

    @property
    def variables(self) -> list[Variable]:
        """The variables of module scope in order."""
        return [item for item in self.items if isinstance(item, Variable)]

    def path(self, file: int) -> str:
        """The file of a `.loc` file index."""
        return self.files.get(file, f"<file {file}>")

    def debug_string(self, label: str) -> str | None:
        """The string of a `.debug_str` label (a `function_name` of `.loc`): the mangled name of an inlined function."""
        return self.once(_debug_strings).get(label)


def _debug_strings(module: Module) -> DebugStrings:
    from consan.instrument.ptx.locations import DebugStrings

    return DebugStrings(item.text for item in module.items if isinstance(item, Section) and item.name == ".debug_str")
