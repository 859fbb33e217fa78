"""Loads whose values go into stores only: no access of a thread that executes none of these stores (SEMANTICS.md, D26).

From the condition of a store counts what follows from the number of the thread alone, so that it holds in all rounds of a loop.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from consan.dataclass import dataclass
from consan.instrument.ptx import Function
from consan.instrument.record.analyses.stored_values import stores_of_values
from consan.prove.solver import Formula, both, either
from consan.prove.step import ThreadAccess
from consan.prove.tables import ThreadTables


@dataclass(frozen=True)
class StoredValues:
    """`masks`: the bits of loads and stores, by their starts. `executed`: whether a thread may execute the store of a bit."""

    masks: dict[int, int]
    executed: dict[int, Formula]

    @classmethod
    def of(cls, function: Function, whole: Iterable[ThreadAccess], tables: ThreadTables) -> StoredValues:
        """`whole`: the accesses of a thread's life."""
        masks, executed = stores_of_values(function), dict[int, Formula]()
        for each in whole:
            bit = masks.get(each.instruction.start, 0)
            if each.writes and bit:
                here = both(*(part for part in tables.conditions(each) if tables.of(part) is not None))
                executed[bit] = either(executed[bit], here) if bit in executed else here
        return cls(masks, executed)

    def used(self, accesses: Iterable[ThreadAccess]) -> list[ThreadAccess]:
        """The accesses, each load under the condition that its value may be stored."""
        return [self._used(each) for each in accesses]

    def _used(self, access: ThreadAccess) -> ThreadAccess:
        mask = 0 if access.writes else self.masks.get(access.instruction.start, 0)
        if not mask:
            return access
        return replace(access, path=both(access.path, either(*(held for bit, held in self.executed.items() if bit & mask))))
