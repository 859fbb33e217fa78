"""The solver, which the extra `prove` installs, and one question to it.

z3 decides formulas of integers. A product of two unknowns has no decision procedure: the solver may give up, and then nothing is proven.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from consan._errors import EnvironmentFailure

z3: Any
try:
    import z3
except ImportError:
    z3 = None

Formula = Any
"""A formula or a term of the solver."""

MISSING: Final = "consan prove needs the solver z3: pip install z3-solver (the extra `prove` of consan)"


def require() -> None:
    """Raise `EnvironmentFailure` without a solver."""
    if z3 is None:
        raise EnvironmentFailure(MISSING)


def ask(formulas: Iterable[Formula], seconds: float) -> Any:
    """A model in which all formulas hold; False: there is none; None: the solver gave up."""
    solver = z3.Solver()
    solver.set("timeout", max(1, int(seconds * 1000)))
    solver.add(*formulas)
    found = solver.check()
    return solver.model() if found == z3.sat else False if found == z3.unsat else None


def both(*formulas: Formula) -> Formula:
    """All of some formulas."""
    left = [each for each in formulas if each is not True and not z3.is_true(each)]
    if any(each is False or z3.is_false(each) for each in left):
        return z3.BoolVal(False)
    return z3.BoolVal(True) if not left else left[0] if len(left) == 1 else z3.And(*left)


def either(*formulas: Formula) -> Formula:
    """One of some formulas."""
    if any(each is True or z3.is_true(each) for each in formulas):
        return z3.BoolVal(True)
    left = [each for each in formulas if each is not False and not z3.is_false(each)]
    return z3.BoolVal(False) if not left else left[0] if len(left) == 1 else z3.Or(*left)


def opposite(formula: Formula) -> Formula:
    """The negation of a formula."""
    return formula.arg(0) if z3.is_not(formula) else z3.BoolVal(not z3.is_true(formula)) if _decided(formula) else z3.Not(formula)


def _decided(formula: Formula) -> bool:
    return bool(z3.is_true(formula) or z3.is_false(formula))


def choice(condition: Formula, one: Formula, other: Formula) -> Formula:
    """One of two terms, as a condition says."""
    if one.eq(other):
        return one
    if _decided(condition):
        return one if z3.is_true(condition) else other
    return z3.If(condition, one, other)
