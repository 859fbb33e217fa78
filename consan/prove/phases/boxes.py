"""The bytes of tensor copies, which the text does not say: a tensor map is data of the launch.

An arrival expects the bytes of the copies behind it (`arrive.expect_tx`). A copy has the bytes up to the begin of the next one, where
stages follow each other in memory. If these are as many as the arrival expects, they are taken for the bytes of the boxes, and the proof
says so.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence

from consan.prove.numbers import Symbols
from consan.prove.phases.arrays import MbarrierArray
from consan.prove.phases.counters import PhaseAction, action_of, is_tensor_load
from consan.prove.solver import addends, z3
from consan.prove.step import ThreadAccess
from consan.prove.tables import ThreadTables

_Place = tuple[object, int, int]
"""A variable, a distance in it, and the distance between stages; 0: there are none."""


def boxes_of(arrays: Sequence[MbarrierArray], accesses: Sequence[ThreadAccess], tables: ThreadTables, symbols: Symbols) -> dict[int, int]:
    """The bytes of tensor copies, by their starts in the text, as far as the arrivals of their mbarriers say them."""
    groups = list(_groups(arrays, accesses, tables))
    places = {each.instruction.start: _place(each, symbols) for each in accesses if each.late and each.writes}
    found, by_order = dict[int, int](), dict[tuple[int, int], list[int]]()
    for expected, copies in groups:
        sizes = _sizes([places[each] for each in copies], expected)
        if sizes is not None:
            by_order[expected, len(copies)] = sizes
    for expected, copies in groups:
        found |= dict(zip(copies, by_order.get((expected, len(copies)), []), strict=False))
    return found


def _groups(arrays: Sequence[MbarrierArray], accesses: Sequence[ThreadAccess], tables: ThreadTables) -> Iterator[tuple[int, list[int]]]:
    """The bytes that each arrival expects, and the tensor copies of its mbarriers up to the next arrival, in the order of the text."""
    for array in arrays:
        own = [each for each in accesses if each.is_of_mbarrier and array.meets(each, tables)]
        copies = defaultdict[int, list[int]](list)
        arrivals = {each.instruction.start: each for each in own if action_of(each.instruction) is PhaseAction.ARRIVE}
        for each in own:
            if is_tensor_load(each.instruction):
                before = max((start for start in arrivals if start < each.instruction.start), default=-1)
                copies[before].append(each.instruction.start)
        for before, some in copies.items():
            measure = arrivals[before].measure if before in arrivals else None
            if measure is not None and measure.constant:
                yield measure.constant, sorted(some)


def _place(copy: ThreadAccess, symbols: Symbols) -> _Place:
    parts = list(addends(copy.offset.term, 1))
    first = sum(count * each.as_long() for each, count in parts if z3.is_int_value(each))
    steps = (abs(count) * symbols.factor(each) for each, count in parts if not z3.is_int_value(each))
    return copy.base, first, math.gcd(*steps)


def _sizes(places: Sequence[_Place], expected: int) -> list[int] | None:
    """The distances to the next copy, if they are as many bytes as are expected."""
    found = [_distance(each, places) for each in places]
    if found.count(0) == 1:  # nothing follows the last one
        found[found.index(0)] = expected - sum(found)
    return found if all(each > 0 for each in found) and sum(found) == expected else None


def _distance(place: _Place, places: Sequence[_Place]) -> int:
    base, first, step = place
    same = [other for each, other, its in places if each == base and its == step]
    if step:
        return min((other - first) % step or step for other in same)
    return min((other - first for other in same if other > first), default=0)
