"""Registers of a loop that go round: the number of a stage, or the parity of a phase.

Behind each iteration such a register is one more, or zero again. The solver decides whether that is so for each number that it can have.
Then its value follows from the number of the iteration.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from consan.prove.numbers import Number, Symbols, chosen, number, plus
from consan.prove.solver import Formula, ask, choice, z3

_MOST: Final = 64  # numbers of a register that goes round
_SECONDS: Final = 1.0


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
            yield from (size for size in (each.as_long(), each.as_long() + 1) if 2 <= size <= _MOST)
