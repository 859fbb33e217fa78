"""Launches whose accesses to global memory are proven apart before they run (consan/ranges): they are recorded without global memory.

A proof depends on the parameters, the grid and the block, so there is one for each launch; equal launches share it. Where there is none,
the launch is recorded in full.

A module whose variables keep state has none: the two forms would each have their own.

Not handled: launches of frameworks, whose parameters the session does not see, and launches that are compared with others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from consan.ranges import LaunchExtents, NotProven, Slice, proven
from consan.session.prepared import Prepared
from consan.session.variables import keeps_state

PROVES = True  # tests look at records
_MOST_KNOWN: Final = 256  # launches
_OfModule = tuple[int, str]


@dataclass
class Proofs:
    """What is proven of the launches of a session."""

    _slices: dict[_OfModule, Slice | None] = field(default_factory=dict)  # None: no launch of the kernel has a proof
    _known: dict[tuple[_OfModule, tuple[bytes, ...], LaunchExtents], int] = field(default_factory=dict)

    def accesses(self, prepared: Prepared, entry: str, args: Sequence[bytes], shape: LaunchExtents) -> int:
        """How many accesses of single threads are proven apart; 0: there is no proof, or nothing to prove."""
        kernel = prepared.number, entry
        if kernel not in self._slices:
            self._slices[kernel] = _slice(prepared, entry)
        found = self._slices[kernel]
        if found is None or not PROVES:
            return 0
        launch = kernel, tuple(args), shape
        if launch not in self._known:
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            try:
                self._known[launch] = proven(found, tuple(args), shape)
            except NotProven as reason:
                self._known[launch] = 0
                if reason.never:
                    self._slices[kernel] = None
        return self._known[launch]


def _slice(prepared: Prepared, entry: str) -> Slice | None:
    if keeps_state(prepared.plain):
        return None
    module = prepared.instrumented.module
    function = next(each for each in module.functions if each.name == entry and each.body is not None)
    try:
        return Slice(function)
    except NotProven:
        return None
