"""The values of a loop's registers at the begin of an iteration, where a loop adds no even step to them. The solver decides for each form.

A cycle is one more behind each iteration, or zero again: the number of a stage. A parity turns when a cycle begins anew. A late counter
counts the iterations from a number on: waits that the first rounds do without. A delayed register is what the iteration before has computed
from its number, as pipelines have it: the condition of a load ahead. Each form is its value before the first iteration, and what
an iteration makes of its value is its value in the next one: so it holds in all of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final, Protocol

from consan.dataclass import dataclass
from consan.prove.numbers import MOST, Number, Symbols, chosen, minus, number, plus
from consan.prove.solver import Formula, ask, choice, opposite, z3

_MOST_STAGES: Final = 64  # numbers of a register that goes round
_SECONDS: Final = 1.0


class RegisterForm(Protocol):
    """The values of a register by the number of the iteration."""

    def at(self, count: Number, symbols: Symbols) -> Number:
        """Its value at the begin of an iteration."""


class SearchedForm(RegisterForm, Protocol):
    """One that `FormSearch` finds, and proves as a term."""

    def term(self, count: Formula) -> Formula:
        """The same as a term."""


@dataclass(frozen=True)
class Cycle:
    """A register that begins with `first`, and is then one more modulo `size` than before."""

    first: int
    size: int

    def at(self, count: Number, symbols: Symbols) -> Number:
        """Its value at the begin of an iteration."""
        found = symbols.remainder(plus(count, number(self.first)), self.size)
        return found if 0 <= self.first < self.size else chosen(count.term == 0, number(self.first), found)

    def term(self, count: Formula) -> Formula:
        """The same as a term."""
        return choice(count == 0, z3.IntVal(self.first), (count + self.first) % self.size)


@dataclass(frozen=True)
class Parity:
    """A register of 0 or 1 that is `first`, and turns whenever a cycle begins anew."""

    first: int
    cycle: Cycle

    def at(self, count: Number, symbols: Symbols) -> Number:
        """Its value at the begin of an iteration."""
        turns = symbols.quotient(plus(count, number(self.cycle.first)), self.cycle.size)
        return symbols.remainder(plus(turns, number(self.first)), 2)

    def term(self, count: Formula) -> Formula:
        """The same as a term."""
        return ((count + self.cycle.first) / self.cycle.size + self.first) % 2


@dataclass(frozen=True)
class LateCounter:
    """A register that counts iterations from one on."""

    first: int
    begin: int

    def at(self, count: Number, symbols: Symbols) -> Number:
        """Its value at the begin of an iteration."""
        later = minus(plus(count, number(self.first)), number(self.begin))
        return chosen(count.term < self.begin, number(self.first), Number(later.term, (self.first, MOST), later.small))

    def term(self, count: Formula) -> Formula:
        """The same as a term."""
        return z3.If(count < self.begin, z3.IntVal(self.first), count - self.begin + self.first)


@dataclass(frozen=True)
class Assuming:
    """A form that holds where the results of some lines do not overflow."""

    form: SearchedForm
    lines: tuple[int, ...]

    def at(self, count: Number, symbols: Symbols) -> Number:
        """Its value at the begin of an iteration."""
        return symbols.assuming(self.form.at(count, symbols), self.lines)

    def term(self, count: Formula) -> Formula:
        """The same as a term."""
        return self.form.term(count)


@dataclass(frozen=True)
class Unchanged:
    """A register that keeps its first value."""

    first: int

    def at(self, count: Number, symbols: Symbols) -> Number:
        """Its value at the begin of an iteration."""
        return number(self.first)

    def term(self, count: Formula) -> Formula:
        """The same as a term."""
        return z3.IntVal(self.first)


@dataclass(frozen=True)
class ChosenForm:
    """One of two forms, by a condition that the loop does not change."""

    condition: Formula
    one: SearchedForm
    other: SearchedForm

    def at(self, count: Number, symbols: Symbols) -> Number:
        """Its value at the begin of an iteration."""
        return chosen(self.condition, self.one.at(count, symbols), self.other.at(count, symbols))

    def term(self, count: Formula) -> Formula:
        """The same as a term."""
        return choice(self.condition, self.one.term(count), self.other.term(count))


@dataclass(frozen=True)
class Delayed:
    """A register that is `first`, and then what the iteration before has computed: `after`, of the iteration `number`.

    `names`: the variables of that iteration.
    """

    first: Any
    after: Any
    number: Formula
    names: tuple[str, ...]

    def at(self, count: Number, symbols: Symbols) -> Any:
        """Its value at the begin of an iteration."""
        exchanged = symbols.of_iteration_before(self.names, self.number, count)
        begins = count.term == 0
        if not isinstance(self.after, Number):
            return choice(begins, self.first, z3.substitute(self.after, *exchanged))
        return chosen(begins, self.first, replace(self.after, term=z3.substitute(self.after.term, *exchanged)))


@dataclass(frozen=True)
class FormSearch:
    """Looks for the form of a register.

    `before`: its value in an iteration. `first`: before the first one. `count`: the number of the iteration, which the values of other
    registers follow from. `cycles`: forms of others. `mark`: what is older is the same in all iterations.
    """

    before: Number
    first: int
    count: Number
    cycles: tuple[Cycle, ...]
    symbols: Symbols
    mark: int

    def of(self, after: Formula, given: tuple[Formula, ...] = ()) -> SearchedForm | None:
        """The form, from the register's value behind the iteration, under what is given; None: it has none of these."""
        if after.eq(self.before.term):
            return Unchanged(self.first)
        if z3.is_app_of(after, z3.Z3_OP_ITE):
            condition, *cases = after.children()
            if not self.symbols.since(self.mark, self.symbols.free(condition)):
                exact = [
                    z3.simplify(z3.substitute(case, (condition, z3.BoolVal(held)))) for case, held in zip(cases, (True, False), strict=True)
                ]
                one, other = (self.of(case, (*given, each)) for case, each in zip(exact, (condition, opposite(condition)), strict=True))
                return None if one is None or other is None else ChosenForm(condition, one, other)
        names = [name for name in self.symbols.closure([after]) if name != str(self.before.term)]
        known = [*given, *(fact for name in names for fact in self.symbols.facts[name])]
        parities: list[SearchedForm] = [Parity(self.first, cycle) for cycle in self.cycles if cycle.first >= 0 and self.first in (0, 1)]
        late: list[SearchedForm] = [LateCounter(self.first, begin) for begin in sorted({*_sizes(after), 1})]
        for form in (*parities, *late):
            if self._holds(form, after, known):
                lines = sorted({self.symbols.assumed[name] for name in names if name in self.symbols.assumed})
                return Assuming(form, tuple(lines)) if lines else form
        return None

    def _holds(self, form: SearchedForm, after: Formula, known: list[Formula]) -> bool:
        """Whether an iteration makes of the form's value its value in the next one."""
        value = self.before.term, form.term(self.count.term)
        changed = z3.substitute(after, value) != form.term(self.count.term + 1)
        return ask([self.count.term >= 0, *(z3.substitute(fact, value) for fact in known), changed], _SECONDS) is False


def cycle_of(before: Number, after: Any, entry: Number, symbols: Symbols) -> Cycle | None:
    """How a register goes round, from its value before any iteration, behind it, and before the first one; None: it does not."""
    first = entry.constant
    if first is None or not isinstance(after, Number) or after.base is not None or not z3.is_const(before.term):
        return None
    names = symbols.closure([after.term])
    if str(before.term) not in names or any(name in symbols.assumed for name in names):
        return None
    known = [fact for name in names if name != str(before.term) for fact in symbols.facts[name]]
    count = z3.Int("count")
    for size in sorted(set(_sizes(after.term))):
        cycle = Cycle(first, size)
        asked = [z3.substitute(each, (before.term, cycle.term(count))) for each in (*known, after.term != cycle.term(count + 1))]
        if ask([count >= 0, *asked], _SECONDS) is False:
            return cycle
    return None


def _sizes(term: Formula) -> Iterator[int]:
    """The numbers in a term that may be the size of a cycle, or one less."""
    pending = [term]
    while pending:
        each = pending.pop()
        pending += each.children()
        if z3.is_int_value(each):
            yield from (size for size in (each.as_long(), each.as_long() + 1) if 2 <= size <= _MOST_STAGES)
