"""Numbers of a thread as terms over integers, and what is known of their variables.

A register of n bits has the value of its term modulo 2 to the power of n: sums, differences and products need nothing more. An instruction
that reads the value itself (a comparison, a conversion to more bits, a quotient) asks for it as a signed or an unsigned number. If the
term's range says that it is in range, it is the value. If it would be for all small launches (parameters, grids and iterations up to
`SMALL`), that it is in range becomes an assumption of the proof, with its line. Else the value is the remainder, exactly.

The first letter of a variable's name says who shares it: "p" all threads of the grid, "c" the threads of a CTA, "u" those of a CTA between
two barriers, "t" nobody. Facts about a variable go with it into each question that names it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import field, replace
from functools import reduce
from typing import Any, Final

from consan.dataclass import dataclass
from consan.prove.solver import Formula, choice, either, once_each, opposite, z3

SMALL: Final = 64
_WORD, _SHORT = 32, 16
_FAR: Final = 1 << 200
MOST: Final = 1 << 62  # iterations of a loop, at most
Interval = tuple[int, int]
Base = tuple[str, str]
"""The base of an address: ("param", "2+0"), ("shared", NAME) or ("global", NAME)."""


@dataclass
class AssumedRange:
    """A term that is in an interval under a condition, as a proof assumes. `tried`: only where a loop was tried (walk.py).

    `degree`: of the term.
    """

    path: Formula
    term: Formula
    interval: Interval
    tried: bool
    degree: int


@dataclass(frozen=True)
class Number:
    """A term, with the interval that it is in, and the one in all small launches. With a base: what is added to an address."""

    term: Formula
    range: Interval
    small: Interval
    base: Base | None = None

    @property
    def constant(self) -> int | None:
        """The number, if it is one number."""
        return self.range[0] if self.range[0] == self.range[1] and self.base is None else None

    def on(self, base: Base | None) -> Number:
        """The same with another base."""
        return self if base == self.base else replace(self, base=base)


def number(value: int) -> Number:
    """A constant."""
    return Number(z3.IntVal(value), (value, value), (value, value))


def limits(bits: int, *, signed: bool) -> Interval:
    """The least and the largest number of a width."""
    return (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)


def within(inner: Interval, outer: Interval) -> bool:
    """Whether an interval is in another one."""
    return outer[0] <= inner[0] and inner[1] <= outer[1]


def hull(*parts: Interval) -> Interval:
    """The least interval with some intervals."""
    return min(part[0] for part in parts), max(part[1] for part in parts)


def _clipped(interval: Interval) -> Interval:
    return max(interval[0], -_FAR), min(interval[1], _FAR)


def _sum(one: Interval, other: Interval) -> Interval:
    return _clipped((one[0] + other[0], one[1] + other[1]))


def _product(one: Interval, other: Interval) -> Interval:
    ends = [a * b for a in one for b in other]
    return _clipped((min(ends), max(ends)))


def plus(one: Number, other: Number) -> Number:
    """The sum; at most one of them has a base."""
    base = one.base or other.base
    if other.range == (0, 0):
        return one.on(base)
    if one.range == (0, 0):
        return other.on(base)
    small, whole = _sum(one.small, other.small), _sum(one.range, other.range)
    return Number(z3.IntVal(whole[0]) if whole[0] == whole[1] else one.term + other.term, whole, small, base)


def times(one: Number, other: Number) -> Number:
    """The product of two numbers."""
    whole, small = _product(one.range, other.range), _product(one.small, other.small)
    if whole[0] == whole[1]:
        return number(whole[0])
    if one.constant == 1 or other.constant == 1:
        return other if one.constant == 1 else one
    return Number(one.term * other.term, whole, small)


def grown(count: Number, step: Number) -> Number:
    """As many steps as a count. Where the step is a choice, so is what it makes."""
    if not z3.is_app_of(step.term, z3.Z3_OP_ITE):
        return times(count, step)
    condition, *cases = step.term.children()
    one, other = (grown(count, number(case.as_long()) if z3.is_int_value(case) else Number(case, step.range, step.small)) for case in cases)
    return chosen(condition, one, other)


def minus(one: Number, other: Number) -> Number:
    """The difference; of two numbers with one base it has none."""
    if one.base is not None and one.base == other.base:
        one, other = one.on(None), other.on(None)
    negative = Number(-other.term, (-other.range[1], -other.range[0]), (-other.small[1], -other.small[0]))
    return plus(one, number(-other.range[0]) if other.constant is not None else negative)


def chosen(condition: Formula, one: Number, other: Number) -> Number:
    """One of two numbers, which have one base."""
    assert one.base == other.base
    if one.term.eq(other.term):
        return one
    return Number(choice(condition, one.term, other.term), hull(one.range, other.range), hull(one.small, other.small), one.base)


def larger(one: Number, other: Number) -> Number:
    """The larger one of two numbers."""
    whole, small = ((max(a[0], b[0]), max(a[1], b[1])) for a, b in ((one.range, other.range), (one.small, other.small)))
    return Number(choice(one.term >= other.term, one.term, other.term), whole, small)


@dataclass
class SharedMemory:
    """Alignments of variables; what a proof assumes of a launch, and of where variables begin, in words; and words that begin at 0."""

    aligned: dict[str, int] = field(default_factory=dict)
    premises: dict[str, None] = field(default_factory=dict)
    begins: dict[str, None] = field(default_factory=dict)
    zeros: set[Base] = field(default_factory=set)


class Symbols:
    """The variables of a proof. `facts`: what is known of each; `assumed`: those whose range is assumed, with their lines of the PTX.

    `quotients`: those that are a term divided by a number. `factors`: powers of two that divide a variable. `fits`: what is assumed of
    those that stand for a term. `derived`: those that follow from variables in what is known of them. `trials`: loops that are being tried.
    """

    def __init__(self) -> None:
        self.facts: dict[str, list[Formula]] = {}
        self.variables: dict[str, Formula] = {}
        self.order: dict[str, int] = {}
        self.assumed: dict[str, int] = {}
        self.quotients: dict[str, tuple[Formula, int]] = {}
        self._quotients: dict[tuple[int, int], tuple[Formula, Number]] = {}
        self.path: Formula = z3.BoolVal(True)  # the condition under which the current instruction executes
        self.fits: dict[str, AssumedRange] = {}
        self.derived = set[str]()
        self.factors: dict[str, int] = {}
        self.trials = 0
        self._fitted: dict[tuple[int, int], list[tuple[frozenset[int], Any, Number]]] = {}
        self.ranges: dict[str, tuple[Interval, Interval]] = {}
        self.shared = SharedMemory()
        self._free: dict[int, tuple[Formula, frozenset[str]]] = {}

    @property
    def mark(self) -> int:
        """How many variables there are."""
        return len(self.order)

    def since(self, mark: int, names: Iterable[str]) -> list[str]:
        """Those of some variables that have been made since a mark."""
        return [name for name in names if self.order[name] >= mark]

    def variable(self, kind: str, hint: str, *, boolean: bool = False) -> Formula:
        """A new variable."""
        name = f"{kind}.{hint}!{len(self.order)}"
        self.order[name] = len(self.order)
        self.variables[name] = z3.Bool(name) if boolean else z3.Int(name)
        self.facts[name] = []
        return self.variables[name]

    def fresh(self, kind: str, hint: str, whole: Interval, small: Interval | None = None) -> Number:
        """A new number in an interval."""
        variable = self.variable(kind, hint)
        self.facts[str(variable)] += [variable >= whole[0], variable <= whole[1]]
        self.ranges[str(variable)] = whole, whole if small is None else small
        return Number(variable, *self.ranges[str(variable)])

    def intervals(self, term: Formula) -> tuple[Interval, Interval]:
        """The interval of a sum of products, and the one in all small launches."""
        return once_each(self._intervals, term)

    def _intervals(self, term: Formula, of: Callable[[Formula], tuple[Interval, Interval]]) -> tuple[Interval, Interval]:
        if z3.is_int_value(term):
            return ((value := term.as_long()), value), (value, value)
        if z3.is_const(term) and str(term) in self.ranges:
            return self.ranges[str(term)]
        if z3.is_add(term) or z3.is_mul(term):
            make = _sum if z3.is_add(term) else _product
            parts = [of(each) for each in term.children()]
            return reduce(make, (part[0] for part in parts)), reduce(make, (part[1] for part in parts))
        if z3.is_app_of(term, z3.Z3_OP_ITE):
            (one, small), (other, other_small) = map(of, term.children()[1:])
            return hull(one, other), hull(small, other_small)
        return (-_FAR, _FAR), (-_FAR, _FAR)

    def unknown(self, kind: str, hint: str, bits: int) -> Number:
        """Any number of a width."""
        return self.fresh(kind, hint, limits(bits, signed=True))

    def free(self, term: Formula) -> frozenset[str]:
        """The variables in a term: those of its parts, each looked at once."""
        pending = [term]
        while pending:
            each = pending[-1]
            if (key := each.get_id()) in self._free:
                pending.pop()
                continue
            parts = each.children()
            new = [part for part in parts if part.get_id() not in self._free]
            if new:
                pending += new
                continue
            found = frozenset[str]().union(*(self._free[part.get_id()][1] for part in parts))
            if not parts and z3.is_const(each) and each.decl().kind() == z3.Z3_OP_UNINTERPRETED:
                found = frozenset((each.decl().name(),))
            self._free[key] = each, found
        return self._free[term.get_id()][1]

    def degree(self, term: Formula) -> int:
        """The most factors of a product in a term that are not known, with those of what its variables stand for."""
        return once_each(self._degree, term)

    def _degree(self, term: Formula, of: Callable[[Formula], int]) -> int:
        if z3.is_const(term) and str(term) in self.fits:
            return self.fits[str(term)].degree
        parts = list(map(of, term.children()))
        return sum(parts) if z3.is_mul(term) else max(parts, default=0 if z3.is_int_value(term) else 1)

    def closure(self, terms: Iterable[Formula]) -> list[str]:
        """The variables in some terms, and in what is known of them, in the order in which they were made."""
        pending, seen = {name for term in terms for name in self.free(term)}, set[str]()
        while pending:
            name = pending.pop()
            seen.add(name)
            pending |= {other for fact in self.facts[name] for other in self.free(fact)} - seen
        return sorted(seen, key=self.order.__getitem__)

    def kind_of(self, term: Formula) -> str:
        """The threads that share a value that follows from a term."""
        return next((kind for kind in "tuc" if any(name[0] == kind for name in self.free(term))), "p")

    def factor(self, term: Formula) -> int:
        """A power of two that divides a term."""
        return once_each(self._factor, term)

    def _factor(self, term: Formula, of: Callable[[Formula], int]) -> int:
        if z3.is_int_value(term):
            return (value := term.as_long()) & -value or 1 << 64
        if z3.is_mul(term):
            return min(math.prod(map(of, term.children())), 1 << 64)
        if z3.is_add(term) or z3.is_sub(term) or z3.is_app_of(term, z3.Z3_OP_UMINUS):
            return min(map(of, term.children()))
        if z3.is_app_of(term, z3.Z3_OP_ITE):
            return min(map(of, term.children()[1:]))
        return self.factors.get(str(term), 1) if z3.is_const(term) else 1

    def quotient(self, value: Number, by: int) -> Number:
        """The quotient by a constant, rounded down."""
        if by == 1:
            return value
        whole, small = ((each[0] // by, each[1] // by) for each in (value.range, value.small))
        if whole[0] == whole[1]:
            return number(whole[0])
        key = value.term.get_id(), by
        if key not in self._quotients:
            found = self.fresh(self.kind_of(value.term), "quotient", whole, small)
            rest = value.term - by * found.term
            self.facts[str(found.term)] += [rest >= 0, rest < by]
            self._quotients[key] = value.term, found
            self.derived.add(str(found.term))
            self.quotients[str(found.term)] = value.term, by
        return self._quotients[key][1]

    def remainder(self, value: Number, by: int) -> Number:
        """The remainder of a division by a constant; it is not negative."""
        for each in (value, self._without_multiples(value, by)):
            if each.range[0] // by == each.range[1] // by:
                return plus(each, number(-(each.range[0] // by) * by))
        value = self._without_multiples(value, by)
        quotient = self.quotient(value, by)
        found = minus(value, times(quotient, number(by)))
        small = value.small if value.small[0] >= 0 and value.small[1] < by else (0, by - 1)
        return Number(found.term, (0, by - 1), small)

    def _without_multiples(self, value: Number, by: int) -> Number:
        """A number with the same remainder: the parts of the sum that a constant divides are left out."""
        parts = list(value.term.children()) if z3.is_add(value.term) else [value.term]
        left = [each for each in parts if self.factor(each) % by]
        if len(left) == len(parts):
            return value
        rest = z3.Sum(left) if len(left) > 1 else left[0] if left else z3.IntVal(0)
        return Number(rest, *self.intervals(rest))

    def signed(self, value: Number, bits: int, line: int) -> Number:
        """The value of a register as a signed number. Numbers of 8 and 16 bits, also as the upper ones, are cut on purpose."""
        low, high = limits(bits, signed=True)
        if within(value.range, (low, high)):
            return value
        cut = bits < _WORD or self.factor(value.term) % (1 << bits - _SHORT) == 0
        if not cut and within(value.small, (low, high)) and not within(value.range, limits(bits, signed=False)):
            return self._assumed(value, (low, high), line)
        return self.wrapped(value, bits)

    def wrapped(self, value: Number, bits: int) -> Number:
        """The signed number of a width with the same bits."""
        low, _ = limits(bits, signed=True)
        rest = self.remainder(plus(value, number(-low)), 1 << bits)
        return plus(rest, number(low))

    def unsigned(self, value: Number, bits: int, line: int) -> Number:
        """The value of a register as an unsigned number."""
        if within(value.range, limits(bits, signed=False)):
            return value
        value = self.signed(value, bits, line)
        if value.range[0] >= 0:
            return value
        wrapped = choice(value.term < 0, value.term + (1 << bits), value.term)
        return Number(wrapped, limits(bits, signed=False), value.small if value.small[0] >= 0 else limits(bits, signed=False))

    def of_iteration_before(self, names: Iterable[str], number: Formula, count: Number) -> list[tuple[Formula, Formula]]:
        """The terms that replace some variables of an iteration, to say the same of the one before the iteration `count`.

        `number`: what stands for the number of their iteration.
        """
        exchanged, new = [(number, count.term - 1)], dict[str, Formula]()
        for name in names:
            old = self.variables[name]
            new[name] = self.variable(name[0], "before", boolean=z3.is_bool(old))
            exchanged.append((old, new[name]))
        for name, variable in new.items():
            facts = (z3.substitute(fact, *exchanged) for fact in self.facts[name])
            self.facts[str(variable)] += [either(count.term == 0, fact) for fact in facts]  # the first iteration has none before it
            if name in self.assumed:
                self.assumed[str(variable)] = self.assumed[name]
            if name in self.derived:
                self.derived.add(str(variable))
        return exchanged

    def assuming(self, value: Number, lines: Iterable[int]) -> Number:
        """The same number, which holds where the results of some lines are assumed not to overflow."""
        for line in lines:
            found = self.fresh(self.kind_of(value.term), "assuming", value.range, value.small)
            self.facts[str(found.term)].append(found.term == value.term)
            self.assumed[str(found.term)] = line
            value = found
        return value

    def _assumed(self, value: Number, interval: Interval, line: int) -> Number:
        """The value, where the instruction executes, in an interval that the proof assumes."""
        known = self._fitted.setdefault((value.term.get_id(), interval[1]), [])
        here = _parts(self.path)
        for path, _, found in known:
            if path <= here:  # it is assumed where this instruction executes
                self.fits[str(found.term)].tried &= self.trials > 0
                return found
        whole = max(interval[0], value.range[0]), min(interval[1], value.range[1])
        found = self.fresh(self.kind_of(value.term), "fits", whole, value.small)
        self.facts[str(found.term)].append(either(opposite(self.path), found.term == value.term))
        self.assumed[str(found.term)], self.factors[str(found.term)] = line, self.factor(value.term)
        self.derived.add(str(found.term))
        self.fits[str(found.term)] = AssumedRange(self.path, value.term, interval, self.trials > 0, self.degree(value.term))
        known.append((here, (value.term, self.path), found))
        return found


def _parts(path: Formula) -> frozenset[int]:
    """The parts of a condition that all hold, by their numbers."""
    if z3.is_true(path):
        return frozenset()
    return frozenset().union(*map(_parts, path.children())) if z3.is_and(path) else frozenset({path.get_id()})
