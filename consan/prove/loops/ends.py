"""When a loop ends that ends where a number is met exactly: `i != n`, as compilers write the condition of a loop that counts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from consan.prove.numbers import Symbols
from consan.prove.solver import Formula, ask, either, z3

_SECONDS: Final = 0.5
_MOST: Final = 4  # comparisons of a condition that are tried


def last_iterations(count: Formula, again: Formula, symbols: Symbols, mark: int) -> Iterator[Formula]:
    """Facts about the number of an iteration.

    `again`: the condition under which an iteration is followed by another one. Where it compares a number that grows evenly, such as
    `4 * count + 4 != n`, no iteration comes behind the one in which they are equal. If they are equal in none, nothing follows.
    """
    names = [name for name in symbols.closure([again]) if name != str(count)]
    known = [fact for name in names for fact in symbols.facts[name]]
    for difference in list(_differences(again, symbols))[:_MOST]:
        rest = z3.simplify(z3.substitute(difference, (count, z3.IntVal(0))))
        step = z3.simplify(z3.substitute(difference, (count, count + 1)) - difference)
        if not z3.is_int_value(step) or step.as_long() == 0 or symbols.since(mark, symbols.free(rest)):
            continue
        size, goal = abs(step.as_long()), z3.simplify(-rest if step.as_long() > 0 else rest)
        if ask([again, *known, count >= 0, size * count == goal], _SECONDS) is False:
            yield either(goal < 0, goal % size != 0, size * count <= goal)


def _differences(formula: Formula, symbols: Symbols) -> Iterator[Formula]:
    """The differences of the numbers that a formula compares for equality."""
    pending, seen = [formula], set[int]()
    while pending:
        each = pending.pop()
        if each.get_id() not in seen:
            seen.add(each.get_id())
            pending += each.children()
            if (z3.is_eq(each) or z3.is_distinct(each)) and z3.is_int(each.arg(0)):
                one, other = (_in_full(each.arg(place), symbols) for place in (0, 1))
                yield z3.simplify(one - other)


def _in_full(term: Any, symbols: Symbols) -> Formula:
    """The term that a variable stands for where its range is assumed."""
    if not z3.is_const(term) or str(term) not in symbols.assumed:
        return term
    facts = [part for fact in symbols.facts[str(term)] for part in (fact.children() if z3.is_or(fact) else [fact])]
    return next((each.arg(1) for each in facts if z3.is_eq(each) and each.arg(0).eq(term)), term)
