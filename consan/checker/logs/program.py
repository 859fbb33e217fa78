"""The text for the host as a program for the compiled machine (source/expansion/expansion.hpp).

One row for each form of an instruction. At a form without a row, as all arithmetic of floats, the program ends; then the
virtual machine runs the text.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from consan.checker.compiled.expanding import StepCode, StepSlot, StepType
from consan.checker.compiled.layouts import EXPAND_STEP
from consan.dataclass import dataclass
from consan.instrument.layouts.records import dtype
from consan.instrument.ptx import Address, Block, Function, Immediate, Instruction, Label, Negated, Operand, Register, Symbol, Vector
from consan.instrument.record.text import expansion, text
from consan.instrument.rewriting.emit import Unsupported, register_bits

_ALL: Final = (1 << 64) - 1
_TYPES: Final = {
    f"{sign}{bits}": StepType[f"{as_}{bits}"] for bits in (8, 16, 32, 64) for sign, as_ in (("u", "U"), ("s", "S"), ("b", "U"))
}
_MOVED: Final = _TYPES | {"f16": StepType.U16, "f32": StepType.U32, "f64": StepType.U64, "pred": StepType.U8}  # a move looks at no value
_LOGIC: Final = _TYPES | {"pred": StepType.U8}
_BITS: Final = {each: int(each.name[1:]) for each in StepType}
_NARROW: Final = 32  # bits of a count of bits

# The parts of an opcode before its type -> its code, and bits of the result (0: those of the type; 2: twice as many).
SIMPLE: Final[dict[tuple[str, ...], tuple[StepCode, int]]] = {
    ("add",): (StepCode.ADD, 0), ("sub",): (StepCode.SUB, 0), ("mul", "lo"): (StepCode.MUL, 0), ("mul", "hi"): (StepCode.MUL_HIGH, 0),
    ("mul", "wide"): (StepCode.MUL_WIDE, 2), ("mad", "lo"): (StepCode.MAD, 0), ("mad", "hi"): (StepCode.MAD_HIGH, 0),
    ("mad", "wide"): (StepCode.MAD_WIDE, 2), ("div",): (StepCode.DIV, 0), ("rem",): (StepCode.REM, 0), ("min",): (StepCode.MIN, 0),
    ("max",): (StepCode.MAX, 0), ("abs",): (StepCode.ABS, 0), ("shl",): (StepCode.LEFT_SHIFT, 0), ("shr",): (StepCode.RIGHT_SHIFT, 0),
    ("bfe",): (StepCode.FIELD, 0), ("bfi",): (StepCode.INSERT, 0), ("lop3",): (StepCode.LOOK_UP, 0), ("prmt",): (StepCode.PERMUTE, 0),
    ("popc",): (StepCode.ONES, _NARROW), ("clz",): (StepCode.LEADING_ZEROS, _NARROW), ("brev",): (StepCode.REVERSE, 0),
}  # fmt: skip
OF_BITS: Final[dict[tuple[str, ...], StepCode]] = {
    ("and",): StepCode.AND,
    ("or",): StepCode.OR,
    ("xor",): StepCode.XOR,
    ("not",): StepCode.NOT,
}
_FUNNELS: Final = {"l": StepCode.FUNNEL_LEFT, "r": StepCode.FUNNEL_RIGHT}
# The comparison -> its code, and whether the operands change places.
COMPARED: Final = {
    "eq": (StepCode.EQUAL, False), "ne": (StepCode.UNEQUAL, False), "lt": (StepCode.LESS, False), "le": (StepCode.AT_MOST, False),
    "gt": (StepCode.LESS, True), "ge": (StepCode.AT_MOST, True), "lo": (StepCode.LESS, False), "ls": (StepCode.AT_MOST, False),
    "hi": (StepCode.LESS, True), "hs": (StepCode.AT_MOST, True),
}  # fmt: skip
_SPECIAL: Final = dict(zip(("%tid.x", "%tid.y", "%tid.z", "%laneid", "%ctaid.x"), StepSlot, strict=False))
# Values that each launch gives: the same for all threads.
OF_LAUNCH: Final = frozenset((
    expansion.GIVEN, text.PLACES, text.LAUNCH, *(f"%{name}.{axis}" for name in ("ntid", "nctaid") for axis in "xyz"),
    "%ctaid.y", "%ctaid.z", "%reserved_smem_offset_begin", "%reserved_smem_offset_cap", "%total_smem_size",
))  # fmt: skip
_SPACES: Final = ("global", "const")
_VECTORS: Final = {"v2": 2, "v4": 4}


@dataclass(frozen=True)
class LogProgram:
    """The steps of a kernel, the first values of its registers, and the registers of what each launch gives (OF_LAUNCH)."""

    steps: npt.NDArray[np.void]
    values: npt.NDArray[np.uint64]
    given: Mapping[str, int]
    used: list[int] = field(default_factory=list, repr=False)  # lines of the longest log so far, or nothing

    @functools.cached_property
    def whole(self) -> bool:
        """Whether the machine executes each step."""
        return bool((self.steps["code"] != StepCode.UNKNOWN).all())

    def values_with(self, given: Mapping[str, int]) -> npt.NDArray[np.uint64]:
        """The first values for one launch."""
        values: npt.NDArray[np.uint64] = self.values.copy()
        for name, slot in self.given.items():
            values[slot] = given[name]
        return values


@dataclass
class _Writer:
    """The steps so far. `labels`: the steps that follow labels, by scope and name."""

    steps: list[dict[str, int]] = field(default_factory=list)
    slots: dict[tuple[Any, ...], int] = field(default_factory=dict)
    values: list[int] = field(default_factory=lambda: [0] * StepSlot.COUNT)
    given: dict[str, int] = field(default_factory=dict)
    labels: dict[tuple[int, str], int] = field(default_factory=dict)
    jumps: list[tuple[int, Block, str]] = field(default_factory=list)

    def add(self, instruction: Instruction) -> None:
        """The steps of an instruction, or the one at which the program ends."""
        guard: dict[str, int] = {}
        before, jumps = len(self.steps), len(self.jumps)
        try:
            if (named := instruction.predicate) is not None:
                guard = {"guard": self.register(named.register, instruction.scope), "negated": int(named.negated)}
            row = _ROWS.get(instruction.parts[0])
            if row is None:
                raise Unsupported(instruction.opcode)
            for step in row(self, instruction):
                self.steps.append(step | guard)
        except Unsupported:
            del self.steps[before:], self.jumps[jumps:]
            self.steps.append({"code": StepCode.UNKNOWN, "type": StepType.U32} | guard)

    def register(self, name: str, scope: Block) -> int:
        """The slot of a register. Raises `Unsupported`."""
        found = scope.lookup(name)
        if found is None or found[0].space != "reg":
            raise Unsupported(name)
        return self._slot((found[1].start, name))

    def temporary(self, number: int = 0) -> int:
        """A slot that lives for one instruction."""
        return self._slot(("temporary", number))

    def constant(self, value: int) -> int:
        """The slot of a constant."""
        return self._slot(("constant", value & _ALL), value & _ALL)

    def of_launch(self, name: str) -> int:
        """The slot of what a launch gives. Raises `Unsupported`."""
        if name not in OF_LAUNCH:
            raise Unsupported(name)
        slot = self._slot(("given", name))
        self.given[name] = slot
        return slot

    def source(self, operand: Operand, scope: Block) -> int:
        """The slot of an operand that is read. Raises `Unsupported`."""
        if isinstance(operand, Immediate):
            return self.constant(_bits_of(operand))
        if isinstance(operand, Register):
            if (special := _SPECIAL.get(operand.name)) is not None:
                return special
            return self.register(operand.name, scope) if scope.lookup(operand.name) is not None else self.of_launch(operand.name)
        raise Unsupported(type(operand).__name__)

    def target(self, operand: Operand, scope: Block) -> tuple[int, int]:
        """The slot of an operand that is written, and its bits. Raises `Unsupported`."""
        if not isinstance(operand, Register):
            raise Unsupported(type(operand).__name__)
        return self.register(operand.name, scope), register_bits(operand.name, scope)

    def _slot(self, key: tuple[Any, ...], value: int = 0) -> int:
        if key not in self.slots:
            self.slots[key] = len(self.values)
            self.values.append(value)
        return self.slots[key]

    def resolve_jumps(self) -> None:
        """Set the targets of jumps: a label is that of the nearest scope."""
        for number, scope, name in self.jumps:
            within: Block | None = scope
            while within is not None and (id(within), name) not in self.labels:
                within = within.parent
            step = self.steps[number]
            if within is None:
                step["code"] = StepCode.UNKNOWN
            else:
                step["target"] = self.labels[id(within), name]


def program_of(kernel: Function) -> LogProgram:
    """The program of a kernel of a text for the host. Raises `Unsupported`."""
    writer = _Writer()
    if kernel.body is None:
        raise Unsupported("no body")
    scopes = [kernel.body]
    for statement in kernel.body.walk():
        if isinstance(statement, Block):
            scopes.append(statement)
        elif isinstance(statement, Label):
            scope = next(each for each in reversed(scopes) if each.start <= statement.start < each.end)
            writer.labels[id(scope), statement.name] = len(writer.steps)
        elif isinstance(statement, Instruction):
            writer.add(statement)
    writer.steps.append({"code": StepCode.LEAVE})
    writer.resolve_jumps()
    kind = dtype(EXPAND_STEP)
    names = kind.names or ()
    steps = np.array([tuple(step.get(name, 0) for name in names) for step in writer.steps], kind)
    return LogProgram(steps, np.array(writer.values, "<u8"), writer.given)


def _bits_of(operand: Immediate) -> int:
    if operand.kind == "int":
        return int(operand.value)
    if not operand.text.lower().startswith(("0f", "0d")):
        raise Unsupported(operand.text)
    return int(operand.text[2:], 16)


def _type(name: str, types: Mapping[str, StepType] = _TYPES) -> StepType:
    if name not in types:
        raise Unsupported(name)
    return types[name]


_Steps = Iterator[dict[str, int]]


def _computed(writer: _Writer, instruction: Instruction, code: StepCode, kind: StepType, bits: int) -> dict[str, int]:
    into, *sources = instruction.operands
    if len(sources) > 4:
        raise Unsupported(instruction.opcode)
    read = {name: writer.source(each, instruction.scope) for name, each in zip("abcd", sources, strict=False)}
    return {"code": code, "type": kind, "bits": bits, "into": writer.target(into, instruction.scope)[0], **read}


def _simple(writer: _Writer, instruction: Instruction) -> _Steps:
    *form, name = instruction.parts
    if tuple(form) not in SIMPLE:
        raise Unsupported(instruction.opcode)
    code, bits = SIMPLE[tuple(form)]
    kind = _type(name)
    yield _computed(writer, instruction, code, kind, bits if bits == _NARROW else _BITS[kind] * (bits or 1))


def _of_bits(writer: _Writer, instruction: Instruction) -> _Steps:
    *form, name = instruction.parts
    if tuple(form) not in OF_BITS:
        raise Unsupported(instruction.opcode)
    kind = _type(name, _LOGIC)
    yield _computed(writer, instruction, OF_BITS[tuple(form)], kind, 1 if name == "pred" else _BITS[kind])


def _negative(writer: _Writer, instruction: Instruction) -> _Steps:
    _, name = _exactly(instruction, 2)
    kind, (into, source) = _type(name), instruction.operands
    target = writer.target(into, instruction.scope)[0]
    read = {"a": writer.constant(0), "b": writer.source(source, instruction.scope)}
    yield {"code": StepCode.SUB, "type": kind, "bits": _BITS[kind], "into": target, **read}


def _funnel(writer: _Writer, instruction: Instruction) -> _Steps:
    _, side, mode, name = _exactly(instruction, 4)
    if side not in _FUNNELS or mode not in ("wrap", "clamp") or name != "b32":
        raise Unsupported(instruction.opcode)
    yield _computed(writer, instruction, _FUNNELS[side], StepType.U32, 32) | {"d": writer.constant(int(mode == "wrap"))}


def _selected(writer: _Writer, instruction: Instruction) -> _Steps:
    kind = _type(_exactly(instruction, 2)[1], _MOVED)
    yield _computed(writer, instruction, StepCode.SELECT, kind, _BITS[kind])


def _compared(writer: _Writer, instruction: Instruction) -> _Steps:
    _, relation, *logic, name = instruction.parts
    into, one, other, *more = instruction.operands
    if relation not in COMPARED or len(logic) > 1 or len(more) != len(logic):
        raise Unsupported(instruction.opcode)
    (code, changed), scope = COMPARED[relation], instruction.scope
    a, b = writer.source(one, scope), writer.source(other, scope)
    target = writer.target(into, scope)[0]
    compared = {"code": code, "type": _type(name), "bits": 1, "a": b if changed else a, "b": a if changed else b}
    if not logic:
        yield compared | {"into": target}
        return
    if (logic[0],) not in OF_BITS:
        raise Unsupported(instruction.opcode)
    yield compared | {"into": writer.temporary()}
    with_ = more[0].operand if isinstance(more[0], Negated) else more[0]
    also = writer.source(with_, scope)
    if isinstance(more[0], Negated):
        yield {"code": StepCode.NOT, "type": StepType.U8, "bits": 1, "into": writer.temporary(1), "a": also}
        also = writer.temporary(1)
    yield {"code": OF_BITS[(logic[0],)], "type": StepType.U8, "bits": 1, "into": target, "a": writer.temporary(), "b": also}


def _converted(writer: _Writer, instruction: Instruction) -> _Steps:
    _, name, source = _exactly(instruction, 3)
    into, operand = instruction.operands
    target, bits = writer.target(into, instruction.scope)
    if bits != _BITS[_type(name)]:
        raise Unsupported(instruction.opcode)
    yield {"code": StepCode.MOVE, "type": _type(source), "bits": bits, "into": target, "a": writer.source(operand, instruction.scope)}


def _address(writer: _Writer, instruction: Instruction) -> _Steps:
    space = instruction.parts[2] if instruction.parts[1] == "to" else instruction.parts[1]
    if space not in _SPACES:
        raise Unsupported(instruction.opcode)
    yield _computed(writer, instruction, StepCode.MOVE, StepType.U64, 64)


def _moved(writer: _Writer, instruction: Instruction) -> _Steps:
    _, name = _exactly(instruction, 2)
    kind, scope, (into, source) = _type(name, _MOVED), instruction.scope, instruction.operands
    if isinstance(source, Vector):
        yield from _packed(writer, scope, into, source, _BITS[kind])
    elif isinstance(into, Vector):
        yield from _unpacked(writer, scope, into, source, _BITS[kind])
    else:
        target, bits = writer.target(into, scope)
        yield {"code": StepCode.MOVE, "type": kind, "bits": min(bits, _BITS[kind]), "into": target, "a": writer.source(source, scope)}


def _packed(writer: _Writer, scope: Block, into: Operand, source: Vector, bits: int) -> _Steps:
    """The first element is lowest (ISA "mov")."""
    each, (target, _), word, other = bits // len(source.elements), writer.target(into, scope), writer.temporary(), writer.temporary(1)
    parts = [packed_element(writer, element, scope, each) for element in source.elements]
    whole = {"type": StepType.U64, "bits": bits}
    yield {**whole, "code": StepCode.MOVE, "into": word, "a": parts[0]}
    for number, part in enumerate(parts[1:], 1):
        yield {**whole, "code": StepCode.LEFT_SHIFT, "into": other, "a": part, "b": writer.constant(number * each)}
        last = number == len(parts) - 1
        yield {**whole, "code": StepCode.OR, "into": target if last else word, "a": word, "b": other}


def packed_element(writer: _Writer, operand: Operand, scope: Block, bits: int) -> int:
    """The slot of an element that is packed: a constant has no bits beyond it."""
    return writer.constant(_bits_of(operand) & (1 << bits) - 1) if isinstance(operand, Immediate) else writer.source(operand, scope)


def _unpacked(writer: _Writer, scope: Block, into: Vector, source: Operand, bits: int) -> _Steps:
    each, whole = bits // len(into.elements), writer.temporary()
    yield {"code": StepCode.MOVE, "type": StepType.U64, "bits": bits, "into": whole, "a": writer.source(source, scope)}
    for number, element in enumerate(into.elements):
        if isinstance(element, Register):
            shifted = {"a": whole, "b": writer.constant(number * each)}
            yield {"code": StepCode.RIGHT_SHIFT, "type": StepType.U64, "bits": each, "into": writer.target(element, scope)[0], **shifted}


def _accessed(writer: _Writer, instruction: Instruction) -> _Steps:
    """A load or store of one element or of several."""
    access, space, *vector, name = instruction.parts
    loads = access == "ld"
    place, kind, scope = instruction.operands[1 if loads else 0], _type(name, _MOVED), instruction.scope
    if space not in _SPACES or len(vector) > 1 or (vector and vector[0] not in _VECTORS) or not isinstance(place, Address) or place.index:
        raise Unsupported(instruction.opcode)
    value = instruction.operands[0 if loads else 1]
    elements = value.elements if isinstance(value, Vector) else (value,)
    base, code = place.base, StepCode.LOAD if loads else StepCode.STORE
    address = writer.of_launch(base.name) if isinstance(base, Symbol) else writer.source(base, scope)
    if loads and len(elements) > 1:  # the first element may be the address
        yield {"code": StepCode.MOVE, "type": StepType.U64, "bits": 64, "into": writer.temporary(), "a": address}
        address = writer.temporary()
    for number, element in enumerate(elements):
        step = {"code": code, "type": kind, "a": address, "offset": place.offset + number * _BITS[kind] // 8}
        if not -(1 << 31) <= step["offset"] < 1 << 31:
            raise Unsupported(instruction.opcode)
        if loads:
            target, bits = writer.target(element, scope)
            yield step | {"into": target, "bits": bits}
        else:
            yield step | {"b": writer.source(element, scope)}


def _jump(writer: _Writer, instruction: Instruction) -> _Steps:
    (place,) = instruction.operands
    if instruction.parts[1:] not in ((), ("uni",)) or not isinstance(place, Symbol):
        raise Unsupported(instruction.opcode)
    writer.jumps.append((len(writer.steps), instruction.scope, place.name))
    yield {"code": StepCode.JUMP}


def _leave(_writer: _Writer, _instruction: Instruction) -> _Steps:
    yield {"code": StepCode.LEAVE}


def _exactly(instruction: Instruction, count: int) -> tuple[str, ...]:
    if len(instruction.parts) != count:
        raise Unsupported(instruction.opcode)
    return instruction.parts


_ROWS: Final[dict[str, Callable[[_Writer, Instruction], _Steps]]] = {
    **{form[0]: _simple for form in SIMPLE}, **{form[0]: _of_bits for form in OF_BITS},
    "neg": _negative, "shf": _funnel, "selp": _selected, "setp": _compared, "cvt": _converted, "cvta": _address, "mov": _moved,
    "ld": _accessed, "st": _accessed, "bra": _jump, "exit": _leave, "ret": _leave,
}  # fmt: skip
