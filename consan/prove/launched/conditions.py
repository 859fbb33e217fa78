"""The assumptions of a proof about a launch, in a form that is checked before each launch and that can be stored.

- Along axes of the grid on which the kernel does not read the number of its CTA there is one CTA.
- Arrays that different parameters point to do not overlap: the caller compares their allocations (`arrays`).
- Pointers that were equal in the launch that was proven are equal, and no others: there is a proof for each such case.
- Relations of the parameters that a launch has shown (relations.py) hold.
- No parameter points to a variable of the module: a session asks only about modules without.
- Integers do not overflow. Each assumed range is a question: may the term leave it, with the parameters and the grid of the launch? In the
  order in which a thread computes them, the ranges before it hold, so a question may use these (`_known`).

Assumed, and said, is what stays: no access leaves its array or is misaligned, shared memory begins where products of matrices need it, and
races that a check calls a note are none.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Final

from consan.dataclass import dataclass
from consan.prove.environment import Environment, Shape
from consan.prove.numbers import AssumedRange, Symbols
from consan.prove.parameters import LaunchWord, ParameterRelation
from consan.prove.proof import PROVEN, KernelProof
from consan.prove.solver import Formula, ask, z3

_SECONDS: Final = 2.0
_AXES: Final = "xyz"
_BEFORE: Final = "before"  # in the name of a variable of the iteration before (walk.py)
STAYS: Final = "no access leaves its array or is misaligned"


@dataclass(frozen=True)
class LaunchConditions:
    """Conditions of each launch that a proof covers. `flat`: axes with one CTA.

    `grid`: the variables of its extents; empty where it does not matter. `overflows`: questions to the solver, which have no answer.
    `relations`: of its parameters. `related`: these and the pointers that are equal, in words. `more`: what is assumed, too.
    """

    block: Shape
    flat: tuple[int, ...]
    arrays: tuple[LaunchWord, ...]
    numbers: tuple[LaunchWord, ...]
    grid: tuple[str, ...]
    overflows: tuple[str, ...]
    relations: tuple[ParameterRelation, ...] = ()
    related: tuple[str, ...] = ()
    more: tuple[str, ...] = ()

    def assumed(self) -> tuple[str, ...]:
        """Assumptions that stay for each launch, in words."""
        return STAYS, *self.more

    def refuses(self, grid: Shape, parameters: Sequence[bytes]) -> str:
        """Why a launch is not covered, by its grid and its parameters; empty if it is."""
        axis = next((axis for axis in self.flat if grid[axis] != 1), None)
        if axis is not None:
            return f"gridDim.{_AXES[axis]} is not 1, and the kernel does not read the number of a CTA there"
        return next((f"not {each}" for each in self.relations if not each.holds(parameters)), "")

    def key(self, grid: Shape, parameters: Sequence[bytes]) -> tuple[int, ...]:
        """The facts that the answers about overflows follow from."""
        return *grid, *(each.value(parameters) for each in self.numbers)

    def overflow(self, grid: Shape, parameters: Sequence[bytes]) -> str:
        """Why integers may overflow; empty if none does."""
        known = dict(zip(self.grid, grid, strict=True)) | {each.name: each.value(parameters) for each in self.numbers}
        given = [z3.Int(name) == value for name, value in known.items() if name]
        for question in self.overflows:
            if ask([*z3.parse_smt2_string(question), *given], _SECONDS) is not False:
                return "an integer may overflow"
        return ""

    def stored(self) -> str:
        """As text."""
        return json.dumps(asdict(self))

    @classmethod
    def restored(cls, text: str) -> LaunchConditions:
        """From that text."""
        given: dict[str, Any] = json.loads(text)
        words: dict[str, Any] = {name: tuple(LaunchWord(**each) for each in given[name]) for name in ("arrays", "numbers")}
        plain: dict[str, Any] = {name: tuple(given[name]) for name in ("block", "flat", "grid", "overflows", "related", "more")}
        return cls(**words, **plain, relations=tuple(map(ParameterRelation.restored, given["relations"])))


def conditions_of(proof: KernelProof) -> LaunchConditions | None:
    """The assumptions of a proof; None where a launch does not show whether they hold."""
    environment = proof.environment
    if proof.answer != PROVEN or environment is None or proof.calls or environment.symbols.shared.premises:
        return None
    overflows = _overflows(environment.symbols)
    if overflows is None:
        return None
    return LaunchConditions(
        block=environment.block,
        flat=tuple(_AXES.index(axis) for axis in environment.flat),
        arrays=tuple(_array(base[1], written) for base, written in proof.bases.items() if base[0] == "param"),
        numbers=tuple(LaunchWord(*key, name=str(each.term)) for key, each in environment.parameters.items()),
        grid=_extents(environment),
        overflows=tuple(overflows),
        relations=proof.relations,
        related=proof.related(),
        more=(*environment.symbols.shared.begins, *dict.fromkeys(each.why for each in proof.alike)),
    )


def _array(name: str, written: bool) -> LaunchWord:
    """The pointer of a base: its place among the parameters, and its offset there."""
    place, _, offset = name.partition("+")
    return LaunchWord(int(place), int(offset), written=written)


def _extents(environment: Environment) -> tuple[str, ...]:
    return tuple("" if each.constant is not None else str(each.term) for each in environment.grid)


def _overflows(symbols: Symbols) -> list[str] | None:
    """A question for each assumed range; None: of one of them no launch shows whether it holds."""
    ranges = {name: each for name, each in symbols.fits.items() if not each.tried}
    lines = {symbols.assumed[name] for name in ranges}
    if not set(symbols.assumed.values()) <= lines:
        return None
    return [_question(symbols, name, each) for name, each in ranges.items()]


def _question(symbols: Symbols, name: str, assumed: AssumedRange) -> str:
    low, high = assumed.interval
    leaves = z3.Or(assumed.term < low, assumed.term > high)
    solver = z3.Solver()
    solver.add(assumed.path, leaves, *_known(symbols, name, [assumed.path, assumed.term]))
    text: str = solver.to_smt2()
    return text


def _known(symbols: Symbols, name: str, terms: Sequence[Formula]) -> list[Formula]:
    """Facts of the variables in some terms, without what is assumed of a variable, or of later ones in the same iteration."""
    own, found = symbols.order[name], []
    for each in symbols.closure(terms):
        later = each in symbols.assumed and symbols.order[each] >= own and f".{_BEFORE}!" not in each
        found += [] if later else symbols.facts[each]
    return found
