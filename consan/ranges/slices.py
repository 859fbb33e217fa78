"""The part of a kernel that its accesses to global memory follow from, read once: the walk (walk.py) goes through it for each launch.

A parameter that is read as one word of 64 bits, and only so, may be a pointer. The walk takes it as one until it needs its number.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from consan.instrument.control_flow import BasicBlock, Graph, Key, PathStep, definitions, graph_of, key_of, read, written
from consan.instrument.control_flow.dataflow import read_later
from consan.instrument.control_flow.slices import backward_slice
from consan.instrument.isa import MemoryAccess, Row, converts, elects, is_exact, is_noncoherent, lookup, row_of, takes_from_lane
from consan.instrument.ptx import Address, Function, Immediate, Instruction, Negated, Operand, Register, Symbol, Vector
from consan.instrument.ptx.operands import flatten
from consan.instrument.rewriting.emit import Unsupported, address_parts, register_bits
from consan.ranges.copies import BULK_COPIES, TENSOR_COPIES, ParameterMaps, check_mode, coordinates
from consan.ranges.deciding import deciding, regions
from consan.ranges.forms import AccessForm, NotProven, Opposite, ParameterForm, ParameterWord, SliceStep, Source
from consan.ranges.operations import SpreadOperation
from consan.ranges.together import together
from consan.ranges.values import SpreadValue, Unknown

_WIDE: Final = 64
NOTHING_STORED: Final[Mapping[int, int]] = MappingProxyType({})
_ALL_LANES: Final = (-1, (1 << 32) - 1)  # of a member mask


class Slice:
    """The part of a kernel that accesses follow from. Raises `NotProven` if it has something that is not followed.

    `stored`: the words of its log, by node. If they are given it is the part that decides how often each of these is passed. `ranks`: that
    a launch has.
    """

    def __init__(self, function: Function, stored: Mapping[int, int] | None = None, *, ranks: int = 1) -> None:
        if function.body is None:
            raise NotProven("it has no body", never=True)
        self.function, self._together = function, functools.partial(together, function, ranks=ranks)
        self.parameters = tuple((parameter.name, parameter.nbytes) for parameter in function.params)
        self.stored = stored or NOTHING_STORED
        for instruction in function.instructions():
            _check(instruction, accesses=not self.stored)
        graph = graph_of(function)
        self.nodes, self._made = graph.nodes, definitions(function)
        self.after = graph.post_dominators.immediate
        self._maps = ParameterMaps(self._made, self.parameters)
        outer = [each for each in function.instructions() if self._outer(each)]
        addresses = [key for each in outer for key in _keys_of_operands(each)]  # a guard may: then it is taken to hold
        if any(map(self._brings, backward_slice(self._made, addresses, _keys))):
            raise NotProven("an address follows from loaded values", never=True)
        self.deciding = deciding(regions(graph, self.after), lambda branches: self._busy(branches, outer)[0])
        wanted = self._busy(self.deciding, outer)[1]
        self.steps = [[self._step(each) for each in node.steps if self._matters(each.instruction, wanted)] for node in graph.nodes]
        self.later = read_later(graph.successors, *zip(*map(self._reads, range(len(graph.nodes))), strict=True))
        loads = [load for steps in self.steps for step in steps for load in step.loads]
        boxes = [access.box for steps in self.steps for step in steps for access in step.accesses if access.box is not None]
        read_words = (*(load.place for load in loads), *(word for box in boxes for word in (box.address, box.rest)))
        self.words = tuple(dict.fromkeys(read_words))
        self.widths = {key: bits for steps in self.steps for step in steps for key, bits in step.widths()}
        self.repeated = self._repeated(graph)
        narrow = {load.place for load in loads if load.bits != _WIDE}
        self.bases = {each: number for number, each in enumerate(self.words) if each not in narrow and self._may_be_base(each)}

    @functools.cached_property
    def _places(self) -> dict[str, int]:
        return {name: number for number, (name, _) in enumerate(self.parameters)}

    def _busy(self, branches: Iterable[int], outer: Sequence[Instruction]) -> tuple[set[int], set[Key]]:
        """The nodes with instructions that matter, given branches that do, and the registers that matter."""
        seeds = [*outer, *(self.nodes[each].steps[-1].instruction for each in branches)]
        wanted = {key for each in (*seeds, *self._sources(seeds)) for key in _keys(each)}
        return {number for number, node in enumerate(self.nodes) if self._is_busy(node, wanted)} | self.stored.keys(), wanted

    def _outer(self, instruction: Instruction) -> tuple[MemoryAccess, ...]:
        return () if self.stored else _outer(instruction)

    def _is_busy(self, node: BasicBlock, wanted: set[Key]) -> bool:
        return any(self._matters(step.instruction, wanted) for step in node.steps)

    def _repeated(self, graph: Graph) -> set[int]:
        """The nodes in a loop with a copy that writes: it is another write each time."""
        onward = [graph.behind(number) for number in range(len(graph.nodes))]
        copies = {number for number, steps in enumerate(self.steps) if any(step.repeats for step in steps)}
        return {number for number, nodes in enumerate(onward) for copy in nodes & copies if number in onward[copy]}

    def _reads(self, number: int) -> tuple[set[Key], set[Key]]:
        """The registers that a node reads before it writes them, and those that it writes in any case."""
        uses, makes = set[Key](), set[Key]()
        for step in self.steps[number]:
            uses |= set(step.reads()) - makes
            makes |= set(step.written) if step.guard is None else set()
        guard = self.nodes[number].guard
        if guard is not None and number in self.deciding:
            uses |= {guard.register} - makes
        return uses, makes

    def _may_be_base(self, place: ParameterWord) -> bool:
        """Whether a word may be a pointer, by its place alone."""
        whole = place.end - place.begin == _WIDE // 8 and place.end <= self.parameters[place.parameter][1]
        return whole and not any(each.overlaps(place) for each in self.words if each != place)

    def demand(self, bases: Sequence[int], parameters: Sequence[bytes]) -> None:
        """Take a pointer as a number from now on: the least of some, because a number is added to a pointer where both are."""
        words = [self.words[each] for each in bases]
        del self.bases[min(words, key=lambda place: int.from_bytes(place.of(parameters), "little"))]

    def numbers(self, parameters: Sequence[bytes]) -> tuple[bytes, ...]:
        """The parameters that a proof follows from: all that are read but the pointers."""
        return tuple(b"" if each in self.bases else each.of(parameters) for each in self.words)

    def pointers(self, parameters: Sequence[bytes]) -> dict[int, int]:
        """The numbers of the pointers."""
        return {number: int.from_bytes(place.of(parameters), "little") for place, number in self.bases.items()}

    def _sources(self, instructions: Iterable[Instruction]) -> list[Instruction]:
        """The instructions that what some instructions read follows from: of an access, its address and its guard."""
        return backward_slice(self._made, [key for each in instructions for key in _keys(each)], _keys)

    def _brings(self, instruction: Instruction) -> bool:
        """Whether an instruction brings a value from memory, or from other threads that may have another one."""
        return _brings(instruction) and not elects(instruction) and not self._shares(instruction)

    def _shares(self, instruction: Instruction) -> bool:
        """Whether an instruction brings all lanes of a warp a value that follows from the numbers of the thread and the CTA alone."""
        if not takes_from_lane(instruction) or not self._of_all_lanes(instruction) or len(written(instruction)) != 1:
            return False
        made = self._sources([instruction])
        keys = [key for each in (instruction, *made) for key in _keys(each)]
        alike = all(len({(each.parts, each.operands, each.scope) for each in self._made.get(key, ())}) == 1 for key in keys)
        return alike and not any(each.predicate or _brings(each) for each in made)

    def _of_all_lanes(self, instruction: Instruction) -> bool:
        """Whether all lanes of a warp execute a collective instruction, and take from lane 0 if they take (ISA "shfl.sync")."""
        first = instruction.operands[2:3] if takes_from_lane(instruction) else ()
        return self._is(instruction, instruction.operands[-1], _ALL_LANES) and all(self._is(instruction, each, (0,)) for each in first)

    def _is(self, instruction: Instruction, operand: Operand, numbers: Sequence[int]) -> bool:
        """Whether an operand is one of some numbers: in the text, or in a register that gets no other one."""
        if isinstance(operand, Register) and instruction.scope.is_register(operand.name):
            made = self._made.get(key_of(instruction.scope, operand.name), ())
            plain = all(row_of(each).moves and isinstance(each.operands[1], Immediate) for each in made)
            return bool(made) and plain and all(self._is(each, each.operands[1], numbers) for each in made)
        return isinstance(operand, Immediate) and operand.value in numbers

    def _step(self, step: PathStep) -> SliceStep:
        instruction, row = step.instruction, lookup(step.instruction.parts)
        assert row is not None
        own = row.is_ordinary and not is_noncoherent(instruction)
        accesses = tuple(self._form(instruction, each, own) for each in self._outer(instruction))
        loads = tuple(_parameters(instruction, row, self._places)) if row.is_load else ()
        operation, sources = (None, ()) if row.is_load else _operation(instruction)
        collective = "elect" if elects(instruction) and self._of_all_lanes(instruction) else "shfl" if self._shares(instruction) else ""
        if collective == "shfl":
            sources = (_source(instruction, instruction.operands[1]),)
        return SliceStep(step.guard, accesses, _reads_something(instruction), written(instruction), loads, operation, sources, collective)

    def _form(self, instruction: Instruction, access: MemoryAccess, own: bool) -> AccessForm:
        base, offset = _base(access)
        source = None if base is None else _source(instruction, base)
        if isinstance(base, Register) and register_bits(base.name, instruction.scope) != _WIDE:
            source = None
        return AccessForm(
            *(source, offset, access.total_bytes, access.writes, own, instruction.line, instruction.opcode, access.is_strong),
            access.is_asynchronous,
            None if access.size is None else _source(instruction, access.size),
            self._maps.box(instruction, access, lambda operand: _source(instruction, operand)),
            self._together(instruction, access),
        )

    def _matters(self, instruction: Instruction, wanted: set[Key]) -> bool:
        return not row_of(instruction).turns and (bool(self._outer(instruction)) or not wanted.isdisjoint(written(instruction)))


def _check(instruction: Instruction, *, accesses: bool) -> None:
    """Raise `NotProven` if an instruction is not followed. `accesses`: nor what it accesses."""
    row = lookup(instruction.parts)
    if row is None or row.reaches_elsewhere or row.breaks:
        raise NotProven(f"{instruction.opcode} is not followed", never=True)
    try:
        outer = _outer(instruction)
        read(instruction), written(instruction)
    except ValueError:
        raise NotProven(f"the operands of {instruction.opcode} do not fit", never=True) from None
    if not accesses:
        return
    followed = row.is_ordinary or row.is_copy or row.name in BULK_COPIES
    if outer and not followed:
        raise NotProven(f"{instruction.opcode} is not followed", never=True)
    if row.name in TENSOR_COPIES:
        check_mode(instruction, row)


def _base(access: MemoryAccess) -> tuple[Operand | None, int]:
    """The base of an address, and its offset; nothing where it has another form."""
    try:
        return (None, 0) if access.address is None else address_parts(access.address)
    except Unsupported:
        return None, 0


def _amount(instruction: Instruction) -> Operand | None:
    """The bytes that a copy reads, where that is an operand of its own (ISA "cp.async"): nothing is read if they are zero."""
    row = row_of(instruction)
    operands = row.event(instruction).operands if row.is_copy else ()
    return next((operand for role, operand in operands if role == "src-size"), None)


def _reads_something(instruction: Instruction) -> Source:
    """A number that is 0 where a copy reads nothing. `ignore-src` is a predicate in the place of `src-size`."""
    amount = _amount(instruction)
    source = None if amount is None else _source(instruction, amount)
    if isinstance(source, Opposite):
        return source.register
    ignores = isinstance(amount, Register) and isinstance(source, tuple) and register_bits(amount.name, instruction.scope) == 1
    return Opposite(source) if ignores and isinstance(source, tuple) else source


def _brings(instruction: Instruction) -> bool:
    """Whether an instruction brings a value from memory, or from other threads."""
    row = row_of(instruction)
    loads = row.is_load and row.describe(instruction).is_parameter
    return not (loads or row.is_arithmetic or row.is_of_addresses)


def _outer(instruction: Instruction) -> tuple[MemoryAccess, ...]:
    return instruction.once(_accesses)


def _accesses(instruction: Instruction) -> tuple[MemoryAccess, ...]:
    row = lookup(instruction.parts)
    return () if row is None else tuple(each for each in row.accesses(instruction) if each.may_be_global)


def _keys(instruction: Instruction) -> Iterator[Key]:
    """The registers that matter of those that an instruction reads: for an access those of its address, and always its guard."""
    yield from _keys_of_operands(instruction)
    guard = instruction.predicate
    if guard is not None and instruction.scope.is_register(guard.register):
        yield key_of(instruction.scope, guard.register)


def _keys_of_operands(instruction: Instruction) -> Iterator[Key]:
    names = read(instruction)
    if outer := _outer(instruction):
        bases = [_base(access)[0] for access in outer]
        others = [_amount(instruction), *(each.size for each in outer), *(each for access in outer for each in coordinates(access))]
        names = tuple(base.name for base in (*bases, *others) if isinstance(base, (Register, Symbol)))
    for name in names:
        if instruction.scope.is_register(name):
            yield key_of(instruction.scope, name)


def _operation(instruction: Instruction) -> tuple[SpreadOperation | None, tuple[Source, ...]]:
    """How the registers that an instruction writes are computed, if they are."""
    to_global = converts(instruction, "global")
    flat = [inner for operand in instruction.operands for inner in flatten(operand)]
    count = len(written(instruction))
    registers = [each for each in flat[:count] if isinstance(each, Register)]
    if not (is_exact(instruction) or to_global) or len(flat) <= count or len(registers) < count:
        return None, ()
    sources = tuple(_source(instruction, each) for each in flat[count:])
    bits = [register_bits(each.name, instruction.scope) for each in registers]
    try:
        return (None, ()) if None in sources else (SpreadOperation(instruction, len(sources), bits, converts=to_global), sources)
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
    if not access.is_parameter or not isinstance(base, Symbol) or base.name not in places:
        return
    target, signed = instruction.operands[0], instruction.parts[-1].startswith("s")
    for number, element in enumerate(target.elements if isinstance(target, Vector) else (target,)):
        begin = offset + number * access.width_bytes
        if isinstance(element, Register):
            place = ParameterWord(places[base.name], begin, begin + access.width_bytes)
            yield ParameterForm(key_of(instruction.scope, element.name), place, signed, register_bits(element.name, instruction.scope))
