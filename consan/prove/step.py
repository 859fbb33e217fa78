"""One instruction: the registers that it writes, and its accesses to memory that other threads may access."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import field, replace
from typing import Final

from consan.dataclass import dataclass
from consan.instrument.control_flow import Guard, Key, PathStep, key_of, written
from consan.instrument.isa import MemoryAccess, Row, chooses, compares, is_exact, is_noncoherent, row_of, scalar_bytes
from consan.instrument.ptx import Function, Immediate, Instruction, Negated, Operand, Pair, Register, Symbol, SymbolOffset
from consan.instrument.rewriting.emit import Unsupported, address_parts, register_bits
from consan.instrument.rewriting.matrix_operands import operands_in_memory
from consan.prove.atomics.first import FirstThread
from consan.prove.environment import Environment
from consan.prove.kernel import ProvedKernel, Unproven, is_observed, is_strong
from consan.prove.numbers import Base, Number, chosen, larger, limits, number, plus, within
from consan.prove.operations import NoRule, Value, combined, compared, computed, logic, result_type
from consan.prove.phases.counters import PhaseCounters, committed, completed, is_bulk_store, is_followed, is_tensor_load, measure_of
from consan.prove.phases.products import operand_of
from consan.prove.solver import Formula, both, choice, is_over, opposite, shallow, z3

_SPACES = frozenset({"shared", "shared::cta", "global", "generic"})
_ADDRESSES = limits(64, signed=True)
NO_TIME: Final = "there was no time to follow the kernel"
_STRONG = frozenset({"volatile", "relaxed", "acquire", "release", "acq_rel", "sc"})


@dataclass(frozen=True, eq=False)
class ThreadAccess:
    """An access of a thread under a condition: `offset` is added to `base`. None: the address is not known.

    `element`: the bytes of an element of a vector; 0: several accesses of adjacent bytes stand as one (loops/unrolled.py). `strong`: the
    scope of a strong operation, else empty. `own`: others of the warp access the bytes too, or the thread itself may not see its own
    writes. `place`: the node and the number of the step there. `rounds`: the numbers of the iterations of the loops around it, the
    outermost one first. `counts`: the counters of its thread before it. `measure`: the parity, arrivals or bytes of an operation on an
    mbarrier, if they are known. `late`: a bulk copy or a product makes it.
    """

    instruction: Instruction
    path: Formula
    base: Base | None
    offset: Number
    nbytes: int
    element: int
    writes: bool
    strong: str
    own: bool
    space: str
    place: tuple[int, int] = (0, 0)
    rounds: tuple[Formula, ...] = ()
    counts: Mapping[Key, Number] = field(default_factory=dict)
    measure: Number | None = None
    late: bool = False

    @property
    def is_aligned(self) -> bool:
        """Whether its address is a multiple of its size: not of several accesses that stand as one, nor of a bulk copy."""
        return self.element != 0 and not self.late

    @property
    def is_copy(self) -> bool:
        """Whether a copy makes it, at some time until it is waited for."""
        return self.late or row_of(self.instruction).is_copy

    @property
    def is_bulk_store(self) -> bool:
        """Whether a bulk copy to global memory makes it."""
        return self.late and is_bulk_store(self.instruction)

    @property
    def is_operand(self) -> bool:
        """Whether a product reads it."""
        return row_of(self.instruction).is_product

    @property
    def flight(self) -> tuple[int, int, bool]:
        """One side of a copy: the place of its issue, and whether it is the side that the copy writes."""
        return (*self.place, self.writes)

    @property
    def is_of_mbarrier(self) -> bool:
        """Whether it is an operation on an mbarrier."""
        row = row_of(self.instruction)
        return row.is_mbarrier or (row.is_bulk and not self.late)

    @property
    def line(self) -> int:
        """The line of the PTX."""
        return self.instruction.line


@dataclass(frozen=True, eq=False)
class StrongThreadAccess(ThreadAccess):
    """A strong access of global memory. `given`: its operands behind the address; `seen`: its result."""

    given: tuple[Number | None, ...] = ()
    seen: Number | None = None


def _spread(store: Instruction) -> Key:
    """The key of the value of a store in the first thread, among registers."""
    return -1, f"spread {store.start}"


class SymbolicSteps:
    """Executes the instructions of a kernel one by one."""

    def __init__(self, kernel: ProvedKernel, function: Function, environment: Environment) -> None:
        self.symbols, self.environment, self._kernel = environment.symbols, environment, kernel
        self.counters = PhaseCounters()
        self.uniform_loads: Collection[int] = ()
        self.boxes: Mapping[int, int] = {}  # the bytes of tensor copies
        self.repeats = False  # whether threads may be in different iterations
        self.first = FirstThread(environment)
        self.spread = {store.start: _spread(store) for store in kernel.broadcasts.values()}
        self._seen = dict[int, Number]()  # the results of strong accesses
        self.results = dict[str, tuple[int, Formula]]()  # the variables of all of these: the start of the instruction, and the address
        self.observes = any(map(is_observed, function.instructions()))
        self._widths: dict[Key, int] = {}
        for instruction in function.instructions():
            for key in written(instruction):
                self._widths[key] = self._width(instruction, key)

    def _width(self, instruction: Instruction, key: Key) -> int:
        try:
            return register_bits(key[1], instruction.scope)
        except Unsupported:
            return 64

    def width(self, key: Key) -> int:
        """The bits of a register."""
        return self._widths.get(key, 64)

    def condition(self, guard: Guard | None, registers: dict[Key, Value]) -> Formula:
        """Whether a guard holds."""
        if guard is None:
            return z3.BoolVal(True)
        held = self.predicate(guard.register, registers)
        return held if guard.value else opposite(held)

    def predicate(self, key: Key, registers: dict[Key, Value]) -> Formula:
        """The value of a predicate. One that is not known becomes a variable when it is read."""
        found = registers.get(key)
        if found is None or isinstance(found, Number):
            found = registers[key] = self.symbols.variable("t", "predicate", boolean=True)
        return found

    def execute(self, step: PathStep, path: Formula, registers: dict[Key, Value]) -> list[ThreadAccess]:
        """Execute one instruction under a condition. Changes the registers."""
        instruction, row = step.instruction, row_of(step.instruction)
        if is_over():
            raise Unproven(NO_TIME, instruction.line)
        held = self.condition(step.guard, registers)
        self.symbols.path = both(path, held)
        accesses = (
            [] if row.turns else [each for touch in row.accesses(instruction) for each in self._access(instruction, touch, registers)]
        )
        accesses += self._operands(instruction, registers) if row.is_product else []
        if instruction.start in self.counters.added:
            counter, amount = self.counters.added[instruction.start]
            registers[counter] = self._guarded(held, plus(registers[counter], number(amount)), registers[counter])
        if (wait := self.counters.groups.get(instruction.start)) is not None:
            counter = completed(wait.commit)
            most = larger(registers[counter], plus(registers[committed(wait.commit)], number(-wait.left)))
            registers[counter] = self._guarded(held, most, registers[counter])
        if instruction.start in self.spread:
            value = self._source(instruction, instruction.operands[1], registers)
            known = isinstance(value, Number) and self.first.holds(held)
            registers[self.spread[instruction.start]] = self.first.value(value) if known else None
        wanted = [key for key in written(instruction) if key in self._kernel.needed]
        if wanted and not row.turns:
            for key, value in zip(wanted, self._results(instruction, row, wanted, registers), strict=True):
                old = registers.get(key)
                if old is None and step.guard is not None and is_strong(instruction):
                    old = self.symbols.unknown("t", "kept", self.width(key))  # the store that hands it on has a value then
                registers[key] = value if step.guard is None else self._guarded(held, value, old)
        return accesses

    def _guarded(self, held: Formula, new: Value, old: Value) -> Value:
        if new is None or old is None or isinstance(new, Number) != isinstance(old, Number):
            return None
        if not isinstance(new, Number):
            return choice(held, new, old)
        if new.base != old.base:
            return None
        return chosen(held, new, old)

    # -- values ------------------------------------------------------------------------------------------------------------

    def value(self, instruction: Instruction, registers: dict[Key, Value]) -> Value:
        """The result of an instruction that writes one register; None: it is not known."""
        return self._results(instruction, row_of(instruction), written(instruction), registers)[0]

    def _results(self, instruction: Instruction, row: Row, wanted: Sequence[Key], registers: dict[Key, Value]) -> list[Value]:
        """The values of the registers that an instruction writes; None: not known."""
        unknown: list[Value] = [None] * len(wanted)
        if row.is_load and (store := self._kernel.broadcasts.get(instruction.start)) is not None:
            value = registers.get(_spread(store))
            if value is not None:
                return [value]
        if instruction.start in self._seen:
            return [self._seen.pop(instruction.start)]
        if row.is_load:
            if instruction.start in self.uniform_loads and not self.repeats:
                return [self.symbols.unknown("u", "loaded", self.width(key)) for key in wanted]
            words = self.environment.words(instruction)
            return [self._parameter(instruction, words[key], key) if key in words else None for key in wanted]
        if not (row.is_arithmetic or row.is_of_addresses):
            return unknown
        try:
            if self.width(wanted[0]) == 1:
                return self._predicates(instruction, wanted, registers)
            return [self._number(instruction, row, wanted[0], registers)] if len(written(instruction)) == 1 else unknown
        except NoRule:
            return unknown

    def _parameter(self, instruction: Instruction, word: tuple[str, int], key: Key) -> Value:
        """A word of the parameters in a register."""
        kind, width = instruction.parts[-1], self.width(key)
        bits = int("".join(filter(str.isdigit, kind)))
        found = self.environment.parameter(*word, bits) if kind[0] in "usb" and kind[1:].isdecimal() else None
        if found is None or bits >= width or found.base is not None:
            return found
        read = self.symbols.signed if kind[0] == "s" else self.symbols.unsigned
        return read(found, bits, instruction.line)

    def _predicates(self, instruction: Instruction, wanted: Sequence[Key], registers: dict[Key, Value]) -> list[Value]:
        """ISA "setp", and logic of predicates. The second register of a pair gets the opposite comparison, combined in the same way."""
        parts, operands = instruction.parts, instruction.operands
        if not compares(instruction):
            return [logic(parts, [self._formula(instruction, each, registers) for each in operands[1:]])]
        sources = [self._source(instruction, each, registers) for each in operands[1:3]]
        if not all(isinstance(each, Number) for each in sources):
            raise NoRule
        found = compared(parts, instruction.line, self.symbols, *sources)
        pair = operands[0]
        if isinstance(pair, Pair):
            both_ways = {pair.first: found, pair.second: opposite(found)}
            values = {key_of(instruction.scope, each.name): value for each, value in both_ways.items() if isinstance(each, Register)}
        else:
            values = {wanted[0]: found}
        if len(operands) > 3:
            other = self._formula(instruction, operands[3], registers)
            values = {key: combined(parts[2], value, other) for key, value in values.items()}
        return [values.get(key) for key in wanted]

    def _formula(self, instruction: Instruction, operand: Operand, registers: dict[Key, Value]) -> Formula:
        if isinstance(operand, Negated):
            return opposite(self._formula(instruction, operand.operand, registers))
        if isinstance(operand, Immediate):
            return z3.BoolVal(bool(operand.value))
        if not isinstance(operand, Register) or not instruction.scope.is_register(operand.name):
            raise NoRule
        return self.predicate(key_of(instruction.scope, operand.name), registers)

    def _number(self, instruction: Instruction, row: Row, key: Key, registers: dict[Key, Value]) -> Number:
        """The integer that an instruction computes."""
        if not (is_exact(instruction) or row.is_of_addresses):
            raise NoRule
        operands = list(instruction.operands[1:])
        last = self._formula(instruction, operands.pop(), registers) if chooses(instruction) else None
        sources = [self._source(instruction, each, registers) for each in operands]
        if not all(isinstance(each, Number) for each in sources):
            raise NoRule
        if row.is_of_addresses:
            if not row.converts_address:
                raise NoRule
            converted: Number = sources[0]
            return converted
        found = computed(instruction.parts, instruction.line, self.symbols, sources if last is None else [*sources, last])
        found = self._stored(instruction, found, self.width(key))
        term = shallow(found.term)
        if term is None:
            raise NoRule
        return found if term is found.term else replace(found, term=term)

    def _stored(self, instruction: Instruction, value: Number, width: int) -> Number:
        """A result in a register that may be wider."""
        bits, signed = result_type(instruction.parts)
        if value.base is not None:
            return value
        if value.constant is not None:
            value = self.symbols.wrapped(value, min(bits, width))  # the rules compare constants with limits
        if bits >= width:
            return value
        return (self.symbols.signed if signed else self.symbols.unsigned)(value, bits, instruction.line)

    def _source(self, instruction: Instruction, operand: Operand, registers: dict[Key, Value]) -> Value:
        """The value of an operand. A register that is not known becomes a variable when it is read."""
        if isinstance(operand, Immediate):
            return number(int(operand.value)) if operand.kind == "int" else None
        if isinstance(operand, SymbolOffset):
            base = self.environment.variable(operand.base.name)
            return None if base is None else plus(base, number(operand.offset))
        if isinstance(operand, Symbol):
            return self.environment.variable(operand.name)
        if not isinstance(operand, Register):
            return None
        if not instruction.scope.is_register(operand.name):
            found = self.environment.special(operand.name)
            return self.symbols.unknown("t", "special", 64) if found is None else found
        key = key_of(instruction.scope, operand.name)
        found = registers.get(key)
        if found is None:
            found = registers[key] = self.symbols.unknown("t", "value", self.width(key))
        return found if isinstance(found, Number) else None

    # -- accesses ----------------------------------------------------------------------------------------------------------

    def _access(self, instruction: Instruction, touch: MemoryAccess, registers: dict[Key, Value]) -> list[ThreadAccess]:
        if not touch.is_visible or (is_tensor_load(instruction) and not touch.in_shared):
            return []
        row, line = row_of(instruction), instruction.line
        late = touch.proxy == "async"
        measure = self._measure(instruction, registers) if row.is_mbarrier or row.is_bulk else None
        box = self.boxes.get(instruction.start, 1) if is_tensor_load(instruction) else 0  # one byte until it is known
        measure = number(box) if box else measure
        size = measure.constant if late and measure is not None else touch.total_bytes
        followed = is_followed(instruction) or is_bulk_store(instruction)
        elsewhere = (touch.proxy != "generic" or touch.qualified_space not in _SPACES) and not followed
        sized = late or touch.size is None or isinstance(touch.size, Immediate)
        if elsewhere or not sized or not size or touch.sem == "mmio":
            raise Unproven(f"{instruction.opcode} is not modelled", line)
        base, offset = self._address(instruction, touch, registers)
        if base is not None and touch.in_shared != (base[0] == "shared") and not touch.is_generic:
            raise Unproven("the address is not of the state space of the access", line)
        if base is not None and base[0] == "shared":
            offset = self.symbols.unsigned(offset, 32, line)
        elif not within(offset.small, _ADDRESSES):  # others are assumed not to wrap
            offset = self.symbols.wrapped(offset, 64)
        strong = touch.scope if touch.is_strong and touch.sem in _STRONG else ""
        if (row.is_mbarrier and not (row.begins_mbarrier or row.ends_mbarrier)) or (row.is_bulk and not late):
            strong = "cta"  # operations on one mbarrier are in an order
        own = row.is_matrix_access or is_noncoherent(instruction)
        path = self.symbols.path
        if row.is_matrix_access and row.address_lanes(instruction.parts) < 32:
            path = both(path, self.environment.lane.term < row.address_lanes(instruction.parts))
        counts = {key: registers[key] for key in self.counters.keys}
        element = size if late else scalar_bytes(instruction, touch)
        words = instruction, path, base, offset, size, element, touch.writes, strong, own, touch.space
        if touch.is_strong and not touch.in_shared and touch.address in instruction.operands:
            given, seen = self._strongly(instruction, touch, offset, registers)
            return [StrongThreadAccess(*words, counts=counts, measure=measure, late=late, given=given, seen=seen)]
        return [ThreadAccess(*words, counts=counts, measure=measure, late=late)]

    def _strongly(
        self, instruction: Instruction, touch: MemoryAccess, offset: Number, registers: dict[Key, Value]
    ) -> tuple[tuple[Number | None, ...], Number | None]:
        """The operands behind the address of a strong access of global memory, and its result."""
        place = instruction.operands.index(touch.address)
        operands = [each for operand in instruction.operands[place + 1 :] for each in getattr(operand, "elements", (operand,))]
        values = [self._source(instruction, each, registers) for each in operands]
        made = [key for key in written(instruction) if key in self._kernel.needed]
        seen = None
        if len(written(instruction)) == len(made) == 1 and self.width(made[0]) > 1 and instruction.start not in self.uniform_loads:
            seen = self._seen[instruction.start] = self.symbols.unknown("t", "seen", self.width(made[0]))
            self.results[str(seen.term)] = instruction.start, offset.term
        return tuple(each if isinstance(each, Number) else None for each in values), seen

    def _operands(self, instruction: Instruction, registers: dict[Key, Value]) -> list[ThreadAccess]:
        """The reads of a product."""
        found, path = list[ThreadAccess](), both(self.symbols.path, self.environment.lane.term == 0)
        for form in operands_in_memory(instruction):
            descriptor = self._source(instruction, form.descriptor, registers)
            operand = operand_of(form, descriptor, self.symbols) if isinstance(descriptor, Number) else None
            if operand is None:
                raise Unproven("the operand of a product does not follow from its descriptor", instruction.line)
            base, size, counts = ("shared", operand.name), operand.nbytes, {key: registers[key] for key in self.counters.keys}
            words = instruction, path, base, operand.low, size, size, False, "", False, "shared"
            found.append(ThreadAccess(*words, counts=counts, late=True))
        return found

    def _measure(self, instruction: Instruction, registers: dict[Key, Value]) -> Number | None:
        operand = measure_of(instruction)
        found = None if operand is None else self._source(instruction, operand, registers)
        return found if isinstance(found, Number) and found.base is None else None

    def _address(self, instruction: Instruction, touch: MemoryAccess, registers: dict[Key, Value]) -> tuple[Base | None, Number]:
        nowhere = None, number(0)
        try:
            operand, more = (None, 0) if touch.address is None else address_parts(touch.address)
        except Unsupported:
            return nowhere
        value = None if operand is None or isinstance(operand, Immediate) else self._source(instruction, operand, registers)
        if not isinstance(value, Number) or value.base is None:
            return nowhere
        return value.base, plus(value.on(None), number(more))
