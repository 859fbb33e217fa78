"""The mbarriers of a kernel: arrays of them, with the operations on each, who may arrive, and how many arrivals a phase needs.

Operations whose addresses may be the same are on one array. Each mbarrier of it is initialised before all other operations: no
initialisation can be reached from one. Another write to the bytes of an array, or an operation that phases are not followed through,
makes it none.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import field

import numpy as np

from consan.dataclass import dataclass
from consan.instrument.control_flow import Graph, Key
from consan.instrument.control_flow.paths import reached
from consan.prove.numbers import Base, Interval
from consan.prove.phases.counters import PhaseAction, PhaseCounters, action_of
from consan.prove.step import ThreadAccess
from consan.prove.tables import Table, ThreadTables

_BYTES = 8
_MOST = 64  # mbarriers of an array
_COUNTED = {PhaseAction.WAIT: "waits", PhaseAction.ARRIVE: "arrivals", PhaseAction.COPY: "bytes"}


@dataclass(eq=False)
class MbarrierArray:
    """Mbarriers side by side, from a byte of a variable on. `expected`: the bytes of each arrival."""

    base: Base
    low: int
    high: int
    expected: int = 0
    events: dict[PhaseAction, list[ThreadAccess]] = field(default_factory=dict)

    @property
    def objects(self) -> int:
        """How many mbarriers there are."""
        return (self.high - self.low) // _BYTES

    @property
    def count(self) -> int:
        """How many arrivals each phase needs, at least; 0: that is not known."""
        found = [0 if each.measure is None else each.measure.constant or 0 for each in self.of(PhaseAction.INIT)]
        return min(found, default=0)

    def of(self, *actions: PhaseAction) -> list[ThreadAccess]:
        """The operations of some kinds."""
        return [each for action in actions for each in self.events.get(action, ())]

    def key(self, action: PhaseAction) -> Key:
        """The counter of a kind of operation."""
        return -1, f"%{_COUNTED[action]}.{self.base[1]}.{self.low}"

    def meets(self, access: ThreadAccess, tables: ThreadTables) -> bool:
        """Whether an access may be to bytes of these mbarriers, if it is within its variable."""
        low, high = _ends(access, tables)
        return access.base == self.base and low < self.high and self.low < high + access.nbytes


def _ends(access: ThreadAccess, tables: ThreadTables) -> Interval:
    """The least and the largest address, in the threads that may make an access."""
    split = tables.split(access)
    return access.offset.range if split.rest or split.ends is None else split.ends


def arrays_of(accesses: Sequence[ThreadAccess], tables: ThreadTables) -> list[MbarrierArray]:
    """The arrays of mbarriers that some accesses are to; none where an address is not known."""
    found: list[MbarrierArray] = []
    for each in (each for each in accesses if each.is_of_mbarrier):
        low, high = _ends(each, tables)
        if each.base is None or each.base[0] != "shared":
            return []
        new = MbarrierArray(each.base, low, high + _BYTES)
        for other in [other for other in found if other.meets(each, tables)]:
            new.low, new.high = min(new.low, other.low), max(new.high, other.high)
            found.remove(other)
        found.append(new)
    return found


def counters_of(arrays: Collection[MbarrierArray], accesses: Sequence[ThreadAccess], tables: ThreadTables) -> PhaseCounters:
    """The count of each operation."""
    added, waits = dict[int, tuple[Key, int]](), dict[int, Key]()
    for access, array in _placed(arrays, accesses, tables):
        action = action_of(access.instruction)
        if action is PhaseAction.WAIT:
            waits[access.instruction.start] = array.key(action)
        elif action is PhaseAction.ARRIVE:
            added[access.instruction.start] = array.key(action), 1
        elif action is PhaseAction.COPY and access.measure is not None and access.measure.constant is not None:
            added[access.instruction.start] = array.key(action), access.measure.constant
    return PhaseCounters(frozenset(array.key(action) for array in arrays for action in _COUNTED), added, waits)


def with_events(arrays: Collection[MbarrierArray], accesses: Sequence[ThreadAccess], tables: ThreadTables) -> None:
    """Give each array the operations on it."""
    for access, array in _placed(arrays, accesses, tables):
        array.events.setdefault(action_of(access.instruction), []).append(access)
    for array in arrays:
        bytes_of = {each.measure.constant for each in array.of(PhaseAction.ARRIVE) if each.measure is not None}
        array.expected = (bytes_of.pop() or 0) if len(bytes_of) == 1 else 0


def _placed(
    arrays: Collection[MbarrierArray], accesses: Sequence[ThreadAccess], tables: ThreadTables
) -> Iterator[tuple[ThreadAccess, MbarrierArray]]:
    for access in accesses:
        for array in arrays:
            if access.is_of_mbarrier and array.meets(access, tables):
                yield access, array


def is_begun(array: MbarrierArray, graph: Graph, tables: ThreadTables) -> bool:
    """Whether each mbarrier is initialised before all other operations. Initialisations at the same time are races."""
    if array.objects > _MOST:
        return False
    begins = array.of(PhaseAction.INIT)
    others = [each for action, some in array.events.items() if action is not PhaseAction.INIT for each in some]
    places = {each.place[0] for each in begins}
    for each in others:
        node, step = each.place
        after = reached([list(edges) for edges in graph.successors], list(graph.successors[node]))
        if places & after or any(begin.place[0] == node and begin.place[1] > step for begin in begins):
            return False
    return set(range(array.low, array.high, _BYTES)) <= {place for each in begins for place in _places(each, tables)}


def _places(access: ThreadAccess, tables: ThreadTables) -> list[int]:
    """The addresses that threads of a CTA access in any launch."""
    split = tables.split(access)
    certain = not split.rest and all(tables.of(each) is not None for each in tables.conditions(access))
    return [int(each) for each in split.table[split.threads]] if certain else []


def participants(array: MbarrierArray, tables: ThreadTables) -> Table:
    """The threads that may arrive."""
    found = [tables.split(each).threads for each in array.of(PhaseAction.ARRIVE)]
    return np.logical_or.reduce(found) if found else np.zeros(0, bool)
