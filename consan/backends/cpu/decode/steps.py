"""The form in which the engine runs an instruction: a `Step`, decoded once for a wave.

`full` runs it for every lane of the wave with no selection at all: usually one `functools.partial` of a ufunc with its
output array. `part` runs it for the lanes of a selection, a slice or an index array. `pure` steps touch nothing but
registers, so running one for lanes whose registers nobody will read again is harmless; `masked` runs a pure step at full
width but keeps the result only under a mask, which beats gather and scatter once a quarter of the lanes take part.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from consan.dataclass import dataclass

Array = npt.NDArray[Any]
Bools = npt.NDArray[np.bool_]
Lanes = npt.NDArray[np.intp]
Selection = slice | Lanes


@dataclass(slots=True, eq=False)
class Step:
    """One decoded instruction of a wave."""

    full: Callable[[], object]
    part: Callable[[Any], object]
    masked: Callable[[Bools], object]
    pure: bool


def effect(full: Callable[[], object], part: Callable[[Any], object]) -> Step:
    """A step that touches memory or machine state: it must run for its own lanes only."""
    return Step(full, part, lambda mask: part(mask.nonzero()[0]), False)


def selective(part: Callable[[Any], object]) -> Step:
    """An effect with no special full-width form."""
    everything = slice(None)
    return effect(lambda: part(everything), part)


def nothing() -> Step:
    """An instruction without effect in this machine (fences, prefetches, hints)."""
    return Step(_no_full, _no_part, _no_part, True)


def _no_full() -> None:
    return None


def _no_part(_sel: Any) -> None:
    return None


def predicated(step: Step, predicate: Bools, negated: bool, ids: Lanes) -> Step:
    """The same step under a guard predicate (PTX ISA, "Predicated Execution")."""
    width = len(ids)

    def guard() -> Bools:
        return ~predicate if negated else predicate

    def under(mask: Bools) -> None:
        active = np.count_nonzero(mask)
        if step.pure and active * 4 > width:
            step.masked(mask)
        elif active:
            step.part(mask.nonzero()[0])

    def full() -> None:
        mask = guard()
        if np.count_nonzero(mask) == width:
            step.full()
        else:
            under(mask)

    def part(sel: Any) -> None:
        lanes = ids[sel]
        chosen = lanes[predicate[lanes] ^ negated]
        if len(chosen):
            step.part(chosen)

    return Step(full, part, lambda mask: under(mask & guard()), step.pure)
