"""The first thread of a CTA: its numbers are 0, and what only it knows is one value for the CTA."""

from __future__ import annotations

from typing import Final

from consan.prove.environment import Environment
from consan.prove.numbers import Number
from consan.prove.solver import Formula, ask, both, opposite, z3

_SECONDS: Final = 1.0


class FirstThread:
    """Speaks of the first thread in a kernel's formulas."""

    def __init__(self, environment: Environment) -> None:
        self._symbols = environment.symbols
        self._zero = {str(each.term): z3.IntVal(0) for each in environment.tid if each.constant is None}
        self._twins = dict[str, Formula]()
        self._held = dict[int, tuple[Formula, bool]]()

    def of(self, formula: Formula) -> Formula:
        """The same formula of the first thread."""
        symbols = self._symbols
        names = [name for name in symbols.closure([formula]) if name[0] == "t"]
        new = [name for name in names if name not in self._twins and name not in self._zero]
        for name in new:
            self._twins[name] = symbols.variable("u", "first", boolean=z3.is_bool(symbols.variables[name]))
            if name in symbols.ranges:
                symbols.ranges[str(self._twins[name])] = symbols.ranges[name]
            if name in symbols.assumed:
                symbols.assumed[str(self._twins[name])] = symbols.assumed[name]
        for name in new:
            symbols.facts[str(self._twins[name])] += [self._exchanged(fact) for fact in symbols.facts[name]]
        return self._exchanged(formula)

    def at_barrier(self, condition: Formula) -> Formula:
        """The condition of the first thread at a barrier, with what it knows of values that all threads of its CTA have there."""
        own, facts = self.of(condition), self._symbols.facts
        shared = [name for name in self._symbols.closure([own]) if name[0] == "u"]
        return both(own, *(self.of(fact) for name in shared for fact in list(facts[name])))

    def is_the_first(self, path: Formula) -> bool:
        """Whether only the first thread can be under a condition."""
        return self._never([path, *self._known([path]), z3.Or(*(self._symbols.variables[name] != 0 for name in self._zero))])

    def holds(self, condition: Formula) -> bool:
        """Whether a condition holds of the first thread, whatever the launch."""
        if condition.get_id() not in self._held:
            own = self.of(condition)
            self._held[condition.get_id()] = condition, self._never([opposite(own), *self._known([own])])
        return self._held[condition.get_id()][1]

    def value(self, number: Number) -> Number | None:
        """The value of a number in the first thread; None: it follows from more than a choice that is known."""
        if number.base is not None:
            return None
        term = number.term
        while z3.is_app_of(term, z3.Z3_OP_ITE):
            condition, one, other = term.children()
            if self.holds(condition):
                term = one
            elif self.holds(opposite(condition)):
                term = other
            else:
                break
        return Number(self.of(term), number.range, number.small)

    def _known(self, formulas: list[Formula]) -> list[Formula]:
        return [fact for name in self._symbols.closure(formulas) for fact in self._symbols.facts[name]]

    def _never(self, formulas: list[Formula]) -> bool:
        return ask(formulas, _SECONDS) is False

    def _exchanged(self, formula: Formula) -> Formula:
        names = self._symbols.free(formula)
        known = [(name, each) for name, each in (*self._zero.items(), *self._twins.items()) if name in names]
        return z3.substitute(formula, *((self._symbols.variables[name], each) for name, each in known)) if known else formula
