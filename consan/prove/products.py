"""Facts on products of unknowns, with which a solver of linear formulas decides the usual questions: rows of a matrix do not overlap.

For whole numbers a < b and y >= 0: a * y + y <= b * y. Two elements `row * n + column` with `column < n` are in one row then. Each fact
holds for all numbers, so none can make a wrong "no".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import combinations
from typing import Final

from consan.prove.solver import Formula, z3

_MOST: Final = 8  # products with one factor that are compared


def facts(formulas: Iterable[Formula]) -> list[Formula]:
    """Facts about the products in some formulas."""
    groups: dict[int, tuple[Formula, dict[int, tuple[Formula, Formula]]]] = {}
    for product in _products(formulas):
        factors = product.children()
        for place, factor in enumerate(factors):
            if not z3.is_int_value(factor):
                rest = factors[:place] + factors[place + 1 :]
                other = rest[0] if len(rest) == 1 else z3.Product(*rest)
                groups.setdefault(factor.get_id(), (factor, {0: (z3.IntVal(0), z3.IntVal(0))}))[1][product.get_id()] = other, product
    found: list[Formula] = []
    for factor, products in groups.values():
        for one, other in combinations(list(products.values())[:_MOST], 2):
            found += _ordered(factor, *one, *other)
            found += _ordered(factor, *other, *one)
    return found


def _products(formulas: Iterable[Formula]) -> Iterator[Formula]:
    """The products of two unknowns, each once."""
    pending, seen = list(formulas), set[int]()
    while pending:
        each = pending.pop()
        if each.get_id() not in seen:
            seen.add(each.get_id())
            pending += each.children()
            if z3.is_mul(each) and sum(not z3.is_int_value(factor) for factor in each.children()) > 1:
                yield each


def _ordered(factor: Formula, less: Formula, low: Formula, more: Formula, high: Formula) -> Iterator[Formula]:
    yield z3.Implies(z3.And(less < more, factor >= 0), low + factor <= high)
    yield z3.Implies(z3.And(less < more, factor <= 0), low + factor >= high)
