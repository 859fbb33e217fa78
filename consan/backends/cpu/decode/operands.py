"""Operands of decoded instructions as arrays: registers, special registers, immediates, addresses of variables.

PTX ISA, "Operands" and "Operand Size Exceeding Instruction-Type Size". An immediate is an array of no dimension. A
destination wider than the instruction's type is sign- or zero-extended.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from consan.backends.cpu.state.faults import StepSite, UnsupportedInstruction
from consan.backends.cpu.state.memory import RESERVED_SHARED
from consan.backends.cpu.state.registers import RAW_DTYPES, SIGNED, WORD_DTYPES, typed
from consan.dataclass import dataclass
from consan.instrument.isa import lookup
from consan.instrument.ptx import (
    Address,
    Function,
    Immediate,
    Instruction,
    Negated,
    Operand,
    Register,
    Symbol,
    SymbolOffset,
    Underscore,
)

from .program import MemoryVariable, ParamVariable, RegisterVariable
from .reach import HOOKS
from .special import CLOCKS
from .steps import Step

if TYPE_CHECKING:
    from consan.backends.cpu.engine.code import BoundFunction

Array = npt.NDArray[Any]


@dataclass(slots=True, eq=False)
class Target:
    """A destination: `array` takes values of `dtype`, extending them where `exact` is false. None is the sink `_`."""

    array: Array | None
    dtype: np.dtype[Any]
    exact: bool

    def prepare(self, values: Array) -> Array:
        """Values in a form that plain assignment to `array` extends as the type says."""
        if self.exact or values.dtype.kind != "f":
            return values
        return np.asarray(values.view(RAW_DTYPES[values.dtype.itemsize]))

    def write(self, sel: Any, values: Any) -> None:
        """Assign to the selected lanes."""
        if self.array is not None:
            self.array[sel] = self.prepare(np.asarray(values))


@dataclass(slots=True)
class DecodedAddress:
    """An address operand: a register's array (None: only a constant), a constant, and the parameter that it names, if any."""

    base: Array | None
    offset: int
    param: ParamVariable | None = None
    space: str | None = None  # of the variable that it names


#: A decoder's error if operands do not fit the form. Decoders rely on what assemblers accept and do not check the rest, so each of
#: these becomes an error that names the instruction (CONSAN_DEBUG=1 shows the traceback).
MALFORMED = (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError)


class DecodeContext:
    """One instruction being decoded for one bound function."""

    def __init__(self, function: BoundFunction, instruction: Instruction) -> None:
        self.function = function
        self.wave = function.plan.wave
        self.instruction = instruction
        self.row = lookup(instruction.parts)

    @cached_property
    def site(self) -> StepSite:
        """The instruction in the words of a fault."""
        code = self.function.code
        return StepSite(self.instruction.opcode, code.line(self.instruction), code.name)

    @property
    def modifiers(self) -> Mapping[str, str]:
        """The modifiers of the opcode by their class in the table's row."""
        return {} if self.row is None else self.row.modifiers(self.instruction.parts)

    @property
    def words(self) -> tuple[str, ...]:
        """The modifiers of the opcode, in the manual's order."""
        return tuple(self.modifiers.values())

    @property
    def action(self) -> str:
        """The action of its row, which distinguishes it from others of its family."""
        return "" if self.row is None else self.row.action

    def unsupported(self, detail: str = "") -> UnsupportedInstruction:
        """The error that names this instruction."""
        return UnsupportedInstruction(self.instruction.opcode, self.site.line, detail)

    def malformed(self, error: Exception) -> UnsupportedInstruction:
        """As `unsupported`, for operands on which the decoder failed with `error`."""
        refusal = self.unsupported("its operands are not those of the form")
        refusal.__cause__ = error
        return refusal

    def resolve(self, name: str) -> Any:
        """The variable or function that a name means here."""
        return self.function.code.resolve(self.instruction.scope, name)

    def raw(self, name: str) -> Array:
        """The array of a register or special register."""
        where = id(self.instruction.scope), name
        known = self.function.arrays.get(where)
        if known is not None:
            return known
        found = self.resolve(name)
        if isinstance(found, RegisterVariable):
            return self.function.arrays.setdefault(where, self.function.register(found))
        special = self.function.plan.specials.get(name)
        if special is None:
            raise self.unsupported(f"unknown register {name}")
        return special

    def predicate(self, name: str) -> Array:
        """The array of a predicate register."""
        return self.source_register(name, np.dtype(np.bool_))

    def source_register(self, name: str, dtype: np.dtype[Any]) -> Array:
        """A register read as `dtype`."""
        try:
            return typed(self.raw(name), dtype)
        except ValueError as error:
            raise self.unsupported(f"{name}: {error}") from None

    def source(self, operand: Operand, word: str) -> Array:
        """A source operand as an array of the word's dtype."""
        return self.source_as(operand, WORD_DTYPES[word])

    def source_as(self, operand: Operand, dtype: np.dtype[Any]) -> Array:
        """A source operand as an array of `dtype`."""
        if isinstance(operand, Register):
            return self.source_register(operand.name, dtype)
        if isinstance(operand, Immediate):
            return immediate(operand, dtype)
        if isinstance(operand, Negated):
            raise self.unsupported("negated operand")
        place = self.place(operand)
        if place.param is not None and not place.param.of_entry:
            raise self.unsupported(f"{operand.text}: the address of a function's parameter")
        if place.base is not None and place.space == "shared":
            return np.asarray((place.base.astype(np.uint64) + np.uint64(place.offset)).astype(dtype))
        if place.base is not None:
            raise self.unsupported(f"{operand.text}: the address differs from call to call")  # mov alone takes it
        return bit_constant(place.offset, dtype)

    def target(self, operand: Operand, word: str) -> Target:
        """A destination operand for values of the word's dtype."""
        dtype = WORD_DTYPES[word]
        if isinstance(operand, Underscore):
            return Target(None, dtype, True)
        if not isinstance(operand, Register):
            raise self.unsupported(f"destination {operand.text}")
        raw = self.raw(operand.name)
        if raw.dtype.itemsize == dtype.itemsize or ((raw.dtype == np.bool_) == (dtype == np.bool_) and raw.dtype.itemsize < dtype.itemsize):
            return Target(self.source_register(operand.name, dtype), dtype, True)
        wide = RAW_DTYPES[raw.dtype.itemsize]
        return Target(raw.view(np.dtype(f"i{wide.itemsize}")) if word in SIGNED else raw, dtype, False)

    def place(self, operand: Operand) -> DecodedAddress:
        """An address operand, or a variable's address used as a value."""
        if isinstance(operand, (Address, SymbolOffset)):
            inner = self.place(operand.base)
            if isinstance(operand, Address) and operand.index is not None:
                return self._indexed(operand, inner)
            return DecodedAddress(inner.base, inner.offset + operand.offset, inner.param, inner.space)
        if isinstance(operand, Immediate):
            return DecodedAddress(None, int(operand.value))
        if isinstance(operand, Register):
            return DecodedAddress(self._address_register(operand.name), 0)
        if isinstance(operand, Symbol):
            return self._symbol(operand.name)
        raise self.unsupported(f"address {operand.text}")

    def _indexed(self, operand: Address, inner: DecodedAddress) -> DecodedAddress:
        if isinstance(operand.index, Immediate) and isinstance(operand.base, Symbol):
            found = self.resolve(operand.base.name)
            if isinstance(found, MemoryVariable):
                scale = found.nbytes // max(1, found.node.names[0].elements)
                return DecodedAddress(inner.base, inner.offset + int(operand.index.value) * scale, inner.param, inner.space)
        raise self.unsupported(f"indexed address {operand.text}")

    def _address_register(self, name: str) -> Array:
        raw = self.raw(name)
        if raw.dtype.itemsize not in (4, 8):
            raise self.unsupported(f"{name} cannot hold an address")
        return raw

    def _symbol(self, name: str) -> DecodedAddress:
        found, plan = self.resolve(name), self.function.plan
        if isinstance(found, ParamVariable):
            return DecodedAddress(None, plan.param_address + found.offset if found.of_entry else 0, found, "param")
        if isinstance(found, Function):
            return DecodedAddress(None, plan.function_address(name))
        if isinstance(found, MemoryVariable):
            return self._variable(found)
        raise self.unsupported(f"unknown name {name}")

    def _variable(self, variable: MemoryVariable) -> DecodedAddress:
        function = self.function
        if variable.in_shared:
            # As on sm_90 the address is good in the whole cluster.
            base = self.wave.windows.rank_bits if self.wave.cluster_size > 1 else None
            return DecodedAddress(base, function.plan.reach.shared[variable] + RESERVED_SHARED, None, "shared")
        if variable.space == "local":
            return DecodedAddress(function.frame_base, function.local_offset(variable), None, "local")
        return DecodedAddress(None, function.plan.module_address(variable), None, variable.space)


Steps = Mapping[str, Callable[[DecodeContext], Step]]
"""The form of a row of the instruction table, or the name that several rows share -> what decodes an instruction of it."""


def immediate(operand: Immediate, dtype: np.dtype[Any]) -> Array:
    """A constant as an array of no dimension."""
    value = operand.value
    if dtype == np.bool_:
        return np.array(bool(value))
    if operand.kind == "int" and dtype.kind != "f":
        return bit_constant(int(value), dtype)
    bits = float_bits(operand)
    if bits is not None and (dtype.kind != "f" or bits[1] == dtype.itemsize):
        # 1.0 is a double; an operation on the bits of an .f32 takes the float nearest to it.
        narrow = dtype.kind != "f" and dtype.itemsize in (2, 4) and bits[1] == 8
        return np.array(value, f"f{dtype.itemsize}").view(dtype) if narrow else bit_constant(bits[0], dtype)
    return np.array(value, dtype)


def bit_constant(bits: int, dtype: np.dtype[Any]) -> Array:
    """The low bits of an integer as an array of no dimension."""
    return np.asarray(np.array(bits & ((1 << 8 * dtype.itemsize) - 1), RAW_DTYPES[dtype.itemsize]).view(dtype))


def float_bits(operand: Immediate) -> tuple[int, int] | None:
    """Exact bits and bytes of a floating-point constant (NaN payloads live only in the text)."""
    text = operand.text.strip()
    if text[:2].lower() in ("0f", "0d"):
        return int(text[2:], 16), (len(text) - 2) // 2
    if operand.kind == "f64":
        return int.from_bytes(struct.pack("<d", operand.value), "little"), 8
    return None


def is_of_hooks(instruction: Instruction) -> bool:
    """Whether an instruction was added to the kernel: it accesses memory by a register of the hooks or the recorder."""
    return any(isinstance(operand, Address) and HOOKS in operand.text for operand in instruction.operands)


def is_clock(operand: Operand) -> bool:
    """Whether reading the operand reads a clock."""
    return isinstance(operand, Register) and operand.name in CLOCKS
