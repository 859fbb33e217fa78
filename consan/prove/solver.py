"""The solver, which the extra `prove` installs, and one question to it.

z3 decides formulas of integers. A product of two unknowns has no decision procedure: the solver may give up, and then nothing is proven.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final, TypeVar

from consan._errors import EnvironmentFailure

try:
    import z3
except ImportError:
    z3 = None  # what needs it asks `require` first

__all__ = [
    "MISSING",
    "Formula",
    "addends",
    "ask",
    "both",
    "choice",
    "conjuncts",
    "differing",
    "either",
    "is_over",
    "once_each",
    "opposite",
    "require",
    "shallow",
    "until",
    "z3",
]

_Value = TypeVar("_Value")
Formula = Any
"""A formula or a term of the solver."""

MISSING: Final = "consan prove needs the solver z3: pip install z3-solver (the extra `prove` of consan)"


def require() -> None:
    """Raise `EnvironmentFailure` without a solver."""
    if z3 is None:
        raise EnvironmentFailure(MISSING)


_ENDS: ContextVar[float] = ContextVar("_ENDS", default=math.inf)


@contextmanager
def until(ends: float) -> Iterator[None]:
    """Questions end at that time of the clock, or before."""
    before = _ENDS.set(min(ends, _ENDS.get()))
    try:
        yield
    finally:
        _ENDS.reset(before)


def is_over() -> bool:
    """Whether the time that `until` says has come."""
    return time.monotonic() > _ENDS.get()


def ask(formulas: Iterable[Formula], seconds: float) -> Any:
    """A model in which all formulas hold; False: there is none; None: the solver gave up, after what takes `seconds` on an idle machine, or
    at the time that `until` says.

    Bounds of registers make products slow to decide, and are seldom needed: a question without them comes first, whose "no" holds as well.
    """
    whole = list({each.get_id(): each for each in formulas}.values())
    few = [each for each in whole if not _is_bound(each)]
    for asked, tactics, share in ((few, _ELIMINATING, 0.25), (whole, _ELIMINATING, 0.5), (whole, _PLAIN, 0.25)):
        left = _ENDS.get() - time.monotonic()
        if left <= 0:
            return None
        solver = z3.Then(*tactics).solver()
        solver.set("rlimit", max(1, int(seconds * share * _UNITS)))
        solver.set("timeout", max(1, int(min(left, seconds * share * _BUSY) * 1000)))
        solver.add(*asked)
        found = solver.check()
        if found == z3.unsat:
            return False
        if found == z3.sat and asked is whole:
            return solver.model()
    return None


_ELIMINATING: Final = ("simplify", "solve-eqs", "smt")
_PLAIN: Final = ("simplify", "smt")
_UNITS: Final = 10_000_000  # of z3's work in a second of an idle machine: what is proven depends on the work, not on the machine's load
_BUSY: Final = 10  # times as long a question may take where the machine does much else
_FAR: Final = 1 << 30


def _is_bound(formula: Formula) -> bool:
    """Whether a formula compares a term with a large constant."""
    return any(z3.is_int_value(each) and abs(each.as_long()) >= _FAR for each in formula.children())


def both(*formulas: Formula) -> Formula:
    """All of some formulas."""
    left = [each for each in formulas if each is not True and not z3.is_true(each)]
    if any(each is False or z3.is_false(each) for each in left):
        return z3.BoolVal(False)
    return z3.BoolVal(True) if not left else left[0] if len(left) == 1 else z3.And(*left)


def once_each(look: Callable[[Formula, Callable[[Formula], _Value]], _Value], term: Formula) -> _Value:
    """The value that `look` gives a term, by those of its parts: each is looked at once, wherever it stands."""
    known: dict[int, _Value] = {}

    def of(each: Formula) -> _Value:
        key = each.get_id()
        if key not in known:
            known[key] = look(each, of)
        return known[key]

    return of(term)


def shallow(term: Formula) -> Formula | None:
    """A term, or what is the same, of few levels: functions of this package call themselves for each level. None: there is none."""
    if _levels(term) <= _MOST_LEVELS:
        return term
    flat = z3.simplify(term)
    return flat if _levels(flat) <= _MOST_LEVELS else None


def _levels(term: Formula) -> int:
    return int(z3.Z3_get_depth(term.ctx_ref(), term.as_ast()))


_MOST_LEVELS: Final = 100


def conjuncts(formula: Formula) -> dict[int, Formula]:
    """The formulas that all hold where one holds, by their numbers."""
    if z3.is_true(formula):
        return {}
    if not z3.is_and(formula):
        return {formula.get_id(): formula}
    return {key: part for each in formula.children() for key, part in conjuncts(each).items()}


def addends(term: Formula, count: int) -> Iterator[tuple[Formula, int]]:
    """The terms of a sum, each with its factor."""
    parts = term.children()
    if z3.is_add(term):
        for each in parts:
            yield from addends(each, count)
    elif z3.is_app_of(term, z3.Z3_OP_UMINUS):
        yield from addends(parts[0], -count)
    elif z3.is_mul(term) and len(parts) == 2 and any(map(z3.is_int_value, parts)):
        number, other = parts if z3.is_int_value(parts[0]) else parts[::-1]
        yield from addends(other, count * number.as_long())
    else:
        yield term, count


def differing(formulas: Sequence[Formula]) -> list[Formula]:
    """Formulas without what all of them say."""
    parts = [conjuncts(each) for each in formulas]
    common = set(parts[0]).intersection(*parts[1:])
    return [both(*(part for key, part in each.items() if key not in common)) for each in parts]


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
