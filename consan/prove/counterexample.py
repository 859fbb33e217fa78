"""A launch in which two threads meet: the least one that the solver finds, as the arguments of a run."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any, Final

from consan.dataclass import dataclass
from consan.instrument.ptx import Function
from consan.prove.environment import Environment
from consan.prove.proof import PossibleRace
from consan.prove.solver import Formula

_LIMITS: Final = ((2, 64), (4, 1024), (64, 1 << 16))  # of the grid along an axis, and of parameters
_SECONDS: Final = 5.0
_BUFFER: Final = 1 << 22  # bytes: more than launches of these sizes reach
_UNUSED: Final = 64  # the value of a parameter that does not matter


@dataclass(frozen=True)
class RacyLaunch:
    """A grid, and an argument for each parameter, as `consan check` takes them."""

    grid: tuple[int, int, int]
    arguments: tuple[str, ...]
    lines: tuple[int, ...]


def launches(conflicts: list[PossibleRace], function: Function, most: int) -> Iterator[RacyLaunch]:
    """Launches in which two threads meet, without repetition."""
    seen = set[tuple[Any, ...]]()
    for conflict in conflicts[:most]:
        found = _launch(conflict, function)
        if found is not None and (found.grid, found.arguments) not in seen:
            seen.add((found.grid, found.arguments))
            yield found


def _launch(conflict: PossibleRace, function: Function) -> RacyLaunch | None:
    environment, pair = conflict.environment, conflict.pair
    for (ctas, values), more in product(_LIMITS, _differing(conflict)):
        model = conflict.questions.model(pair, _SECONDS, [*_small(environment, ctas, values), *more])
        if model:
            arguments = [_argument(function, place, environment, model) for place in range(len(function.params))]
            if None in arguments:
                return None
            grid = tuple(_value(each.term, model, each.range[0]) for each in environment.grid)
            lines = tuple(sorted({pair.first.line, pair.second.line}))
            return RacyLaunch((grid[0], grid[1], grid[2]), tuple(each for each in arguments if each is not None), lines)
    return None


def _differing(conflict: PossibleRace) -> list[list[Formula]]:
    """The preferred condition on the threads of two CTAs, then none."""
    return [[]] if conflict.pair.one_cta else [[conflict.questions.other_places(conflict.pair)], []]


def _small(environment: Environment, ctas: int, values: int) -> Iterator[Formula]:
    for each in environment.grid:
        if each.constant is None:
            yield each.term <= ctas
    for each in environment.parameters.values():
        if each.constant is None:
            yield from (each.term >= 0, each.term <= values)


def _value(term: Formula, model: Any, otherwise: int) -> int:
    found = model.eval(term)
    return int(found.as_long()) if hasattr(found, "as_long") else otherwise


def _argument(function: Function, place: int, environment: Environment, model: Any) -> str | None:
    parameter = function.params[place]
    if parameter.size is not None or parameter.vector > 1:
        return None
    bits = 8 * parameter.nbytes
    if parameter.type[0] == "f":
        return f"f{bits}=1"
    found = environment.parameter(parameter.name, 0, bits)
    if found is not None and found.base is not None:
        return f"u8[{_BUFFER}]=zeros"
    value = _UNUSED if found is None else _value(found.term, model, _UNUSED)
    return f"{'u' if value >> bits - 1 else 'i'}{bits}={value}"
