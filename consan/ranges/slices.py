"""The part of a kernel that its accesses to global memory follow from, read once: the walk (walk.py) goes through it for each launch.

Of the parameters, what is read as one word of 64 bits, and only so, may be a pointer. The walk takes it as one until it needs its number.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from consan.backends.cpu.decode.operands import flatten
from consan.instrument.isa import MemoryAccess, Row, flow_of, is_exact, lookup
from consan.instrument.passes.emit import Unsupported, address_parts, register_bits
from consan.instrument.passes.flow import CONTROL, Graph, Guard, Key, PathStep, definitions, graph_of, key_of, read, written
from consan.instrument.ptx import Address, Function, Immediate, Instruction, Negated, Operand, Register, Symbol, Vector
from consan.ranges.operations import SpreadOperation
from consan.ranges.values import SpreadValue, Unknown

_ORDINARY: Final = frozenset({"load", "store", "atomic", "reduction"})
_UNSEEN: Final = frozenset({"texture", "surface", "multimem", "call"})  # families that reach memory in ways that are not followed
_WIDE: Final = 64


class NotProven(Exception):  # noqa: N818
    """There is no proof: why. `never`: nor for any other launch of the kernel."""

    def __init__(self, why: str, *, never: bool = False) -> None:
        super().__init__(why)
        self.never = never


@dataclass(frozen=True, order=True, slots=True)
class ParameterWord:
    """A word of the parameters: the number of the parameter, and its bytes."""

    parameter: int
    begin: int
    end: int

    def overlaps(self, other: ParameterWord) -> bool:
        """Whether they share bytes."""
        return self.parameter == other.parameter and self.begin < other.end and other.begin < self.end


@dataclass(frozen=True, slots=True)
class Opposite:
    """A predicate that is negated."""

    register: Key


Source = Key | SpreadValue | str | Opposite | None
"""Where a value is: a register, a number, the name of a special register, a negated predicate; None: it is not known."""


@dataclass(frozen=True, slots=True)
class AccessForm:
    """An access of an instruction, at a line of the PTX. `own`: a thread may meet its own writes. `strong`: other threads may, as well."""

    base: Source
    offset: int
    nbytes: int
    writes: bool
    own: bool
    line: int
    opcode: str
    strong: bool


@dataclass(frozen=True, slots=True)
class ParameterForm:
    """A register that a load from the parameters writes."""

    register: Key
    place: ParameterWord
    signed: bool
    bits: int


@dataclass(frozen=True, slots=True)
class SliceStep:
    """An instruction. `amount`: the bytes that a copy reads; `operation`: of `sources`, if its results can be known."""

    guard: Guard | None
    accesses: tuple[AccessForm, ...]
    amount: Source
    written: tuple[Key, ...]
    loads: tuple[ParameterForm, ...]
    operation: SpreadOperation | None
    sources: tuple[Source, ...]

    def widths(self) -> Iterator[tuple[Key, int]]:
        """The bits of the registers that have values."""
        yield from ((load.register, load.bits) for load in self.loads)
        yield from zip(self.written, () if self.operation is None else self.operation.bits, strict=self.operation is not None)


class Slice:
    """The part of a kernel that accesses follow from. Raises `NotProven` if it has something that is not followed."""

    def __init__(self, function: Function) -> None:
        if function.body is None:
            raise NotProven("it has no body", never=True)
        self.function = function
        self.parameters = tuple((parameter.name, parameter.nbytes) for parameter in function.params)
        for instruction in function.instructions():
            _check(instruction)
        graph: Graph = graph_of(function)
        self.nodes, self._made = graph.nodes, definitions(function)
        outer = [each for each in function.instructions() if _outer(each)]
        if any(map(_brings, self._sources(outer))):
            raise NotProven("an address follows from loaded values", never=True)
        ends = [each for each in function.instructions() if flow_of(each) in CONTROL]
        wanted = {key for each in (*outer, *ends) for key in _keys(each)}
        wanted |= {key for each in self._sources((*outer, *ends)) for key in _keys(each)}
        places = {name: number for number, (name, _) in enumerate(self.parameters)}
        self.steps = [[_step(each, places) for each in node.steps if self._matters(each.instruction, wanted)] for node in graph.nodes]
        loads = [load for steps in self.steps for step in steps for load in step.loads]
        self.words = tuple(dict.fromkeys(load.place for load in loads))
        self.widths = {key: bits for steps in self.steps for step in steps for key, bits in step.widths()}
        self._narrow = {load.place for load in loads if load.bits != _WIDE}
        self.bases = {each: number for number, each in enumerate(self.words) if self._may_be_base(each)}

    def _may_be_base(self, place: ParameterWord) -> bool:
        """Whether a word may be a pointer, of which nothing but the whole is read."""
        whole = place.end - place.begin == _WIDE // 8 and place.end <= self.parameters[place.parameter][1]
        return whole and place not in self._narrow and not any(each.overlaps(place) for each in self.words if each != place)

    def demand(self, bases: Sequence[int], parameters: Sequence[bytes]) -> None:
        """Take a pointer as a number from now on: the least of some, because a number is added to a pointer where both are."""
        words = [self.words[each] for each in bases]
        del self.bases[min(words, key=lambda place: int.from_bytes(word_of(place, parameters), "little"))]

    def numbers(self, parameters: Sequence[bytes]) -> tuple[bytes, ...]:
        """What a proof follows from of the parameters: all that is read but the pointers."""
        return tuple(b"" if each in self.bases else word_of(each, parameters) for each in self.words)

    def pointers(self, parameters: Sequence[bytes]) -> dict[int, int]:
        """The numbers of the pointers."""
        return {number: int.from_bytes(word_of(place, parameters), "little") for place, number in self.bases.items()}

    def _sources(self, instructions: Iterable[Instruction]) -> list[Instruction]:
        """The instructions that what some instructions read follows from: of an access, its address and its guard."""
        pending, seen, found = [key for each in instructions for key in _keys(each)], set[Key](), list[Instruction]()
        while pending:
            key = pending.pop()
            if key not in seen:
                seen.add(key)
                found += self._made.get(key, ())
                pending += (source for each in self._made.get(key, ()) for source in _keys(each))
        return found

    def _matters(self, instruction: Instruction, wanted: set[Key]) -> bool:
        return flow_of(instruction) not in CONTROL and (bool(_outer(instruction)) or not wanted.isdisjoint(written(instruction)))


def _check(instruction: Instruction) -> None:
    row = lookup(instruction.parts)
    if row is None or row.family in _UNSEEN or row.flow in ("table", "break"):
        raise NotProven(f"{instruction.opcode} is not followed", never=True)
    try:
        outer = _outer(instruction)
        read(instruction), written(instruction)
    except ValueError:
        raise NotProven(f"the operands of {instruction.opcode} do not fit", never=True) from None
    followed = row.family in _ORDINARY or (row.family == "cp.async" and row.action == "async")
    if outer and not followed:
        raise NotProven(f"{instruction.opcode} is not followed", never=True)


def _base(access: MemoryAccess) -> tuple[Operand | None, int]:
    """The base of an address, and its offset; nothing where it has another form."""
    try:
        return (None, 0) if access.address is None else address_parts(access.address)
    except Unsupported:
        return None, 0


def _amount(instruction: Instruction) -> Operand | None:
    """The bytes that a copy reads, where that is an operand of its own (ISA "cp.async"): nothing is read if they are zero."""
    row = lookup(instruction.parts)
    operands = row.event(instruction).operands if row is not None and row.family == "cp.async" else ()
    return next((operand for role, operand in operands if role == "src-size"), None)


def _brings(instruction: Instruction) -> bool:
    """Whether an instruction brings a value from memory, or from other threads."""
    row = lookup(instruction.parts)
    loads = row is not None and row.family == "load" and row.describe(instruction).space == "param"
    return not loads and (row is None or row.family not in ("arithmetic", "address"))


def _outer(instruction: Instruction) -> tuple[MemoryAccess, ...]:
    return instruction.once(_accesses)


def _accesses(instruction: Instruction) -> tuple[MemoryAccess, ...]:
    row = lookup(instruction.parts)
    return () if row is None else tuple(each for each in row.accesses(instruction) if each.space in ("global", "generic"))


def _keys(instruction: Instruction) -> Iterator[Key]:
    """The registers that matter of those that an instruction reads: for an access those of its address, and always its guard."""
    names = read(instruction)
    if outer := _outer(instruction):
        bases = [_base(access)[0] for access in outer]
        names = tuple(base.name for base in (*bases, _amount(instruction)) if isinstance(base, (Register, Symbol)))
    guard = instruction.predicate
    for name in (*names, *((guard.register,) if guard is not None else ())):
        if instruction.scope.is_register(name):
            yield key_of(instruction.scope, name)


def word_of(place: ParameterWord, parameters: Sequence[bytes]) -> bytes:
    """The bytes of a word of the parameters."""
    return parameters[place.parameter][place.begin : place.end]


def _step(step: PathStep, places: dict[str, int]) -> SliceStep:
    instruction, row = step.instruction, lookup(step.instruction.parts)
    assert row is not None
    own = row.family in _ORDINARY and "nc" not in row.modifiers(instruction.parts)
    accesses = tuple(_form(instruction, each, own) for each in _outer(instruction))
    amount = _amount(instruction)
    loads = tuple(_parameters(instruction, row, places)) if row.family == "load" else ()
    operation, sources = (None, ()) if row.family == "load" else _operation(instruction, row)
    taken = None if amount is None else _source(instruction, amount)
    return SliceStep(step.guard, accesses, taken, written(instruction), loads, operation, sources)


def _form(instruction: Instruction, access: MemoryAccess, own: bool) -> AccessForm:
    base, offset = _base(access)
    source = None if base is None else _source(instruction, base)
    if isinstance(base, Register) and register_bits(base.name, instruction.scope) != _WIDE:
        source = None
    writes, strong = access.access != "read", access.is_strong
    return AccessForm(source, offset, access.total_bytes, writes, own, instruction.line, instruction.opcode, strong)


def _operation(instruction: Instruction, row: Row) -> tuple[SpreadOperation | None, tuple[Source, ...]]:
    """How the registers that an instruction writes are computed, if they are."""
    converts = row.family == "address" and row.action == "convert" and "global" in instruction.parts
    flat = [inner for operand in instruction.operands for inner in flatten(operand)]
    count = len(written(instruction))
    registers = [each for each in flat[:count] if isinstance(each, Register)]
    if not (is_exact(instruction) or converts) or len(flat) <= count or len(registers) < count:
        return None, ()
    sources = tuple(_source(instruction, each) for each in flat[count:])
    bits = [register_bits(each.name, instruction.scope) for each in registers]
    try:
        return (None, ()) if None in sources else (SpreadOperation(instruction, len(sources), bits, converts=converts), sources)
    except Unknown:
        return None, ()


def _source(instruction: Instruction, operand: Operand) -> Source:
    if isinstance(operand, Negated):
        inner = operand.operand
        known = isinstance(inner, Register) and instruction.scope.is_register(inner.name)
        return Opposite(key_of(instruction.scope, inner.name)) if known and isinstance(inner, Register) else None
    if isinstance(operand, Immediate):
        return SpreadValue.same(int(operand.value)) if operand.kind == "int" else None
    if not isinstance(operand, Register):
        return None
    return key_of(instruction.scope, operand.name) if instruction.scope.is_register(operand.name) else operand.name


def _parameters(instruction: Instruction, row: Row, places: dict[str, int]) -> Iterator[ParameterForm]:
    """The registers that a load from the parameters writes."""
    access = row.describe(instruction)
    address = access.address
    base, offset = (address.base, address.offset) if isinstance(address, Address) and address.index is None else (address, 0)
    if access.space != "param" or not isinstance(base, Symbol) or base.name not in places:
        return
    target, signed = instruction.operands[0], instruction.parts[-1].startswith("s")
    for number, element in enumerate(target.elements if isinstance(target, Vector) else (target,)):
        begin = offset + number * access.width_bytes
        if isinstance(element, Register):
            place = ParameterWord(places[base.name], begin, begin + access.width_bytes)
            yield ParameterForm(key_of(instruction.scope, element.name), place, signed, register_bits(element.name, instruction.scope))
