"""Results of instructions, as terms. An instruction without a rule here gives numbers that are not known.

PTX ISA, "Integer Arithmetic Instructions", "Logic and Shift Instructions", "Comparison and Selection Instructions", "cvt".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, reduce
from operator import or_
from typing import Any, Final

from consan.prove.numbers import Number, Symbols, chosen, minus, number, plus, times
from consan.prove.phases.products import MATRIX, WINDOW, fields_of, masked, shifted
from consan.prove.solver import Formula, both, choice, either, once_each, opposite, z3

Value = Any
"""A `Number`, a formula (of a predicate), or None: not known."""


class NoRule(Exception):  # noqa: N818
    """There is no rule: the result may be any number."""


class TermOperation:
    """One instruction: its words, its type, and the variables of the proof."""

    def __init__(self, parts: tuple[str, ...], line: int, symbols: Symbols) -> None:
        self.parts, self.line, self.symbols = parts, line, symbols
        self.type = parts[-1]
        if not (self.type[0] in "usb" and self.type[1:].isdecimal()):
            raise NoRule
        self.bits, self.is_signed = int(self.type[1:]), self.type[0] == "s"

    def value(self, each: Number, bits: int = 0, *, signed: bool | None = None) -> Number:
        """The value of a source, as the type of the instruction reads it."""
        if each.base is not None:
            raise NoRule
        read = self.symbols.signed if (self.is_signed if signed is None else signed) else self.symbols.unsigned
        return read(each, bits or self.bits, self.line)

    def plain(self, *numbers: Number) -> None:
        """Raise `NoRule` where a number is added to an address."""
        if any(each.base is not None for each in numbers):
            raise NoRule


def _add(op: TermOperation, one: Number, other: Number) -> Number:
    if one.base is not None and other.base is not None:
        raise NoRule
    return plus(one, other)


def _subtract(op: TermOperation, one: Number, other: Number) -> Number:
    if other.base is not None and other.base != one.base:
        raise NoRule
    return minus(one, other)


_MOST_FACTORS: Final = 16  # of a product: the solver multiplies sums out, and its limits of time do not end that


def _multiply(op: TermOperation, one: Number, other: Number) -> Number:
    op.plain(one, other)
    if None is one.constant is other.constant and op.symbols.degree(one.term) + op.symbols.degree(other.term) > _MOST_FACTORS:
        raise NoRule
    if "wide" in op.parts:
        return times(op.value(one), op.value(other))
    if "hi" in op.parts:
        return op.symbols.quotient(times(op.value(one), op.value(other)), 1 << op.bits)
    return times(one, other)


def _multiply_add(op: TermOperation, one: Number, other: Number, more: Number) -> Number:
    return plus(_multiply(op, one, other), more)


def _shift_left(op: TermOperation, one: Number, amount: Number) -> Number:
    op.plain(one)
    if amount.constant is None:
        raise NoRule
    return times(one, number(1 << amount.constant)) if 0 <= amount.constant < op.bits else number(0)


def _shift_right(op: TermOperation, one: Number, amount: Number) -> Number:
    if one.base is not None and amount.constant is not None:
        return _known(shifted(one, amount.constant, op.symbols))
    value = op.value(one)
    if amount.constant is None or not 0 <= amount.constant < op.bits:
        if value.range[0] < 0:
            raise NoRule
        return op.symbols.fresh("t", "shifted", (0, value.range[1]), (0, value.small[1]))
    return op.symbols.quotient(value, 1 << amount.constant)


def _runs(mask: int) -> list[tuple[int, int]]:
    """The runs of ones of a mask: the first bit of each, and the bit behind it."""
    runs, at = [], 0
    while mask >> at:
        if mask >> at & 1:
            begin = at
            while mask >> at & 1:
                at += 1
            runs.append((begin, at))
        else:
            at += 1
    return runs


def _masked(op: TermOperation, one: Number, mask: int) -> Number:
    """The bits of a number that a mask has: exact for any term of the register."""
    found = number(0)
    for begin, end in _runs(mask & ((1 << op.bits) - 1)):
        upper = one if end == op.bits else op.symbols.remainder(one, 1 << end)
        piece = times(op.symbols.quotient(upper, 1 << begin), number(1 << begin))
        top = (1 << end) - (1 << begin)
        if end < op.bits:
            piece = Number(
                piece.term, (max(0, piece.range[0]), min(top, piece.range[1])), (max(0, piece.small[0]), min(top, piece.small[1]))
            )
        found = plus(found, piece)
    return found


_BITWISE: Final = {"and": 0, "or": 1, "xor": 2}
_MOST_BITS: Final = 12


def _known(found: Number | None) -> Number:
    if found is None:
        raise NoRule
    return found


def _bits_of_address(op: TermOperation, address: Number, bits: Number) -> Number:
    """An address without some bits, or with those of a descriptor above it."""
    if address.base is None or bits.constant is None:
        raise NoRule
    if op.parts[0] == "and":
        return _known(masked(address.base, address, bits.constant, op.symbols))
    if op.parts[0] == "xor" or address.base[0] != MATRIX or bits.constant & ((1 << 16) - 1 | fields_of(address)):
        raise NoRule
    return plus(address, bits)


def _and_or_xor(op: TermOperation, one: Number, other: Number) -> Number:
    if one.constant is not None:
        one, other = other, one
    if one.base is not None:
        return _bits_of_address(op, one, other)
    op.plain(one, other)
    how = op.parts[0]
    if one.constant is not None and other.constant is not None:
        a, b = (each & ((1 << op.bits) - 1) for each in (one.constant, other.constant))
        return number({"and": a & b, "or": a | b, "xor": a ^ b}[how])
    common = _masked(op, one, other.constant) if other.constant is not None else _common(op, one, other)
    if how == "and":
        return common
    found = minus(plus(one, other), times(number(_BITWISE[how]), common))
    if min(one.range[0], other.range[0], one.small[0], other.small[0]) < 0:
        return found
    whole, small = ((1 << max(a[1], b[1]).bit_length()) - 1 for a, b in ((one.range, other.range), (one.small, other.small)))
    return Number(found.term, (0, whole), (0, small)) if found.constant is None else found


def _common(op: TermOperation, one: Number, other: Number) -> Number:
    """The bits that two numbers from zero on share. Raises `NoRule` for large ones."""
    symbols = op.symbols
    if _are_disjoint(op, one, other):
        return number(0)
    for small, large in ((one, other), (other, one)):
        top = small.range[1].bit_length()
        if small.range[0] >= 0 and symbols.remainder(large, 1 << top).constant == 0:
            return number(0)
    if min(one.range[0], other.range[0]) < 0 or min(one.range[1], other.range[1]) >> _MOST_BITS:
        raise NoRule
    found = number(0)
    for bit in range(min(one.range[1], other.range[1]).bit_length()):
        first, second = (symbols.remainder(symbols.quotient(each, 1 << bit), 2) for each in (one, other))
        if 0 in (first.constant, second.constant):
            continue
        together = choice(both(first.term == 1, second.term == 1), z3.IntVal(1 << bit), z3.IntVal(0))
        found = plus(found, Number(together, (0, 1 << bit), (0, 1 << bit)))
    return found


def _are_disjoint(op: TermOperation, one: Number, other: Number) -> bool:
    """Whether all bits of one number are below those of the other, or no bit may be one in both."""
    pairs = ((one, other), (other, one))
    if any(low.range[0] >= 0 and low.range[1] < op.symbols.factor(high.term) for low, high in pairs):
        return True
    bits, others = (once_each(partial(_ones, op.symbols), each.term) for each in (one, other))
    return bits is not None and others is not None and not bits & others


def _ones(symbols: Symbols, term: Formula, of: Callable[[Formula], int | None]) -> int | None:
    """The bits of a term that may be one; None: it may be negative, or they are not known."""
    if z3.is_const(term):
        low, high = symbols.intervals(term)[0] if z3.is_int(term) else (-1, 0)
        return None if low < 0 else low if low == high else (1 << high.bit_length()) - 1
    is_choice, factors = z3.is_app_of(term, z3.Z3_OP_ITE), [each.as_long() for each in term.children() if z3.is_int_value(each)]
    known = [bits for each in term.children()[is_choice:] if (bits := of(each)) is not None]
    if len(known) < term.num_args() - is_choice:
        return None
    if z3.is_mul(term):
        return known[0] * known[1] if len(known) == 2 and any(each.bit_count() == 1 for each in factors) else None
    together = reduce(or_, known)
    return together if is_choice or (z3.is_add(term) and sum(known) == together) else None


def _divide(op: TermOperation, one: Number, other: Number) -> Number:
    value, by = op.value(one), other.constant
    if by is not None and by < 0 and not op.is_signed:
        by += 1 << op.bits
    if by is not None and by > 0:
        return _divide_by_constant(op, value, by)
    if value.range[0] < 0 or by is not None:
        raise NoRule
    return _divide_by_number(op, value, op.value(other))


def _divide_by_constant(op: TermOperation, value: Number, by: int) -> Number:
    """A quotient, rounded towards zero, or what it leaves."""
    found = op.symbols.quotient(value, by)
    if value.range[0] < 0:
        found = chosen(value.term >= 0, found, minus(number(0), op.symbols.quotient(minus(number(0), value), by)))
    if op.parts[0] == "div":
        return found
    rest = minus(value, times(found, number(by)))
    low, top = (0 if value.range[0] >= 0 else 1 - by), by - 1
    return Number(rest.term, (low, top), (0 if value.small[0] >= 0 else low, top))


def _divide_by_number(op: TermOperation, value: Number, by: Number) -> Number:
    """A quotient or a remainder by a number above zero that is not known; by others it may be any number."""
    symbols = op.symbols
    kind = symbols.kind_of(z3.And(value.term >= 0, by.term >= 0))
    whole, small = (0, value.range[1]), (0, value.small[1])
    found, rest = symbols.fresh(kind, "quotient", whole, small), symbols.fresh(kind, "rest", whole, small)
    fact = both(value.term == found.term * by.term + rest.term, rest.term < by.term)
    for each, more in ((found, rest), (rest, found)):
        symbols.facts[str(each.term)] += [either(by.term <= 0, fact), more.term >= 0]
    result = found if op.parts[0] == "div" else rest
    if by.range[0] > 0:
        return result
    return chosen(by.term > 0, result, symbols.unknown("t", "undefined", op.bits))


def _least_or_largest(op: TermOperation, one: Number, other: Number) -> Number:
    one, other = op.value(one), op.value(other)
    least = op.parts[0] == "min"
    pick = min if least else max
    term = choice(one.term <= other.term if least else one.term >= other.term, one.term, other.term)
    whole, small = ((pick(a[0], b[0]), pick(a[1], b[1])) for a, b in ((one.range, other.range), (one.small, other.small)))
    return Number(term, whole, small)


def _absolute(op: TermOperation, one: Number) -> Number:
    value = op.value(one, signed=True)
    return value if value.range[0] >= 0 else chosen(value.term >= 0, value, minus(number(0), value))


def _negate(op: TermOperation, one: Number) -> Number:
    op.plain(one)
    return minus(number(0), one)


def _invert(op: TermOperation, one: Number) -> Number:
    op.plain(one)
    return minus(number(-1), one)


def _extract(op: TermOperation, one: Number, position: Number, length: Number) -> Number:
    """ISA "bfe"; of signed numbers only within the register."""
    if position.constant is None or length.constant is None:
        raise NoRule
    first, count = position.constant & 255, length.constant & 255
    if one.base is not None:
        return _field_of_address(op, one, first, count)
    op.plain(one)
    if op.is_signed:
        if not count or first + count > op.bits:
            raise NoRule
        field = op.symbols.quotient(op.symbols.remainder(one, 1 << first + count), 1 << first)
        low, high = -(1 << count - 1), (1 << count - 1) - 1
        return Number(choice(field.term > high, field.term - (1 << count), field.term), (low, high), (low, high))
    if first + count >= op.bits:
        return op.symbols.quotient(op.value(one), 1 << first) if first < op.bits else number(0)
    return op.symbols.quotient(op.symbols.remainder(one, 1 << first + count), 1 << first)


def _field_of_address(op: TermOperation, address: Number, first: int, count: int) -> Number:
    found = _known(shifted(address, first, op.symbols))
    assert found.base is not None
    return _known(masked(found.base, found, (1 << count) - 1, op.symbols))


def _insert(op: TermOperation, one: Number, other: Number, position: Number, length: Number) -> Number:
    """ISA "bfi": the lowest bits of the first number in place of some of the second one."""
    if position.constant is None or length.constant is None:
        raise NoRule
    first, count = position.constant & 255, length.constant & 255
    op.plain(one, other)
    if first >= op.bits or not count:
        return other
    count = min(count, op.bits - first)
    field = times(one if first + count == op.bits else op.symbols.remainder(one, 1 << count), number(1 << first))
    return plus(_masked(op, other, ~((1 << count) - 1 << first)), field)


def _convert(op: TermOperation, one: Number) -> Number:
    """ISA "cvt" of integers: to more bits by the value, to fewer by what is left of it."""
    given, target = op.type, op.parts[-2]
    if target[0] not in "us" or not target[1:].isdecimal() or "sat" in op.parts:
        raise NoRule
    bits, given_bits = int(target[1:]), int(given[1:])
    if one.base is not None:
        least = given_bits if one.base[0] == MATRIX else 32  # bits of an address of shared memory
        if bits == given_bits or (bits >= least and one.base[0] in ("shared", WINDOW, MATRIX)):
            return one
        raise NoRule
    return one if bits == given_bits or (bits < given_bits) else op.value(one, given_bits, signed=given[0] == "s")


def _move(op: TermOperation, one: Number) -> Number:
    return one


def _select(op: TermOperation, one: Number, other: Number, condition: Formula) -> Number:
    if one.base != other.base:
        raise NoRule
    return chosen(condition, one, other)


RULES: Final[dict[str, Callable[..., Number]]] = {
    "add": _add, "sub": _subtract, "mul": _multiply, "mad": _multiply_add, "mul24": _multiply, "shl": _shift_left, "shr": _shift_right,
    "and": _and_or_xor, "or": _and_or_xor, "xor": _and_or_xor, "div": _divide, "rem": _divide, "min": _least_or_largest,
    "max": _least_or_largest, "abs": _absolute, "neg": _negate, "not": _invert, "bfe": _extract, "bfi": _insert, "cvt": _convert,
    "mov": _move, "cvta": _move, "selp": _select,
}  # fmt: skip
_OTHER: Final = frozenset({"mul24", "sat", "cc", "relu"})
"""Words of an instruction that computes something else."""


def computed(parts: tuple[str, ...], line: int, symbols: Symbols, sources: Sequence[Value]) -> Number:
    """The result of an instruction that computes an integer. Raises `NoRule`."""
    rule = RULES.get(parts[0])
    if rule is None or not _OTHER.isdisjoint(parts) or (parts[0] in ("mad", "mul") and _is_odd(parts)):
        raise NoRule
    return rule(TermOperation(parts, line, symbols), *sources)


def _is_odd(parts: tuple[str, ...]) -> bool:
    return not {"lo", "wide", "hi"} & set(parts) or (parts[0] == "mad" and "hi" in parts)


_COMPARED: Final[dict[str, Callable[[Formula, Formula], Formula]]] = {
    "eq": lambda a, b: a == b, "ne": lambda a, b: a != b, "lt": lambda a, b: a < b, "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b,
}  # fmt: skip
_COMPARED.update({"lo": _COMPARED["lt"], "ls": _COMPARED["le"], "hi": _COMPARED["gt"], "hs": _COMPARED["ge"]})


def compared(parts: tuple[str, ...], line: int, symbols: Symbols, one: Number, other: Number) -> Formula:
    """A comparison of integers (ISA "setp"). Raises `NoRule`."""
    how = _COMPARED.get(parts[1])
    op = TermOperation(parts, line, symbols)
    if how is None or one.base != other.base:
        raise NoRule
    signed = op.is_signed or (op.type[0] == "b" and parts[1] in ("eq", "ne"))
    if one.base is not None:  # two addresses in one array: their order is that of their distances
        one, other = one.on(None), other.on(None)
        return how(one.term, other.term)
    one, other = (op.value(each, signed=signed) for each in (one, other))
    if one.constant is not None and other.constant is not None:
        return z3.BoolVal(bool(how(one.constant, other.constant)))
    return how(one.term, other.term)


def combined(how: str, one: Formula, other: Formula) -> Formula:
    """Two predicates as one (ISA "and", "or", "xor")."""
    if how == "xor":
        return z3.Xor(one, other)
    return both(one, other) if how == "and" else either(one, other)


def logic(parts: tuple[str, ...], sources: Sequence[Formula]) -> Formula:
    """A predicate that follows from others (ISA "and", "or", "xor", "not", "mov"). Raises `NoRule`."""
    if parts[0] in ("and", "or", "xor"):
        return combined(parts[0], *sources)
    if parts[0] not in ("not", "mov"):
        raise NoRule
    return opposite(sources[0]) if parts[0] == "not" else sources[0]


def result_type(parts: tuple[str, ...]) -> tuple[int, bool]:
    """The bits of a result, and whether a wider register gets it as a signed number."""
    kind = parts[-2] if parts[0] == "cvt" else parts[-1]
    return int(kind[1:]) * (2 if "wide" in parts else 1), kind[0] == "s"
