"""Kernels that have no race in any launch (`--prove`): proven once, kept on disk, and used for the launches that the proof covers.

The assumptions of a proof are checked before each launch (consan/prove/launched/conditions.py): the extents of the grid, relations of the
parameters that the first launch has shown, that integers do not overflow, that each array has an allocation of its own, and, where text and
parameters determine the bytes that the launch touches, that they are in these allocations. A launch for which that is not known is recorded
as if there were no proof.

Not handled: kernels in which a thread sees by strong accesses what others have done, since a proof does not judge their order, and modules
whose variables keep state: each form would have variables of its own.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import field
from typing import Final

from consan.backends.base import Dim3
from consan.dataclass import dataclass
from consan.instrument.ptx import Function
from consan.instrument.stored import fingerprint
from consan.prove.environment import pointers_of
from consan.prove.kernel import sees_others
from consan.prove.launched.conditions import LaunchConditions, conditions_of
from consan.prove.launched.relations import prove_as_launched, same_pointers
from consan.prove.launched.repeats import deciding_parameters
from consan.prove.solver import require
from consan.reports.model import AllLaunchesProof
from consan.session.modules.prepared import Prepared
from consan.session.modules.variables import keeps_state
from consan.session.planning.proofs import LaunchBytes
from consan.toolchain.cache import Cache, key

Extent = tuple[int, int]
"""Begin and bytes of an allocation."""
_OfShape = tuple[str, str, Dim3, tuple[tuple[int, int], ...]]
"""A kernel: its text, its name, the shape of its blocks, and its pointers that are equal."""
_MOST_KNOWN: Final = 1024  # answers about overflows
_STRONG: Final = "the order of strong accesses that it sees is not part of a proof"


@dataclass(frozen=True)
class ProvedLaunch:
    """A launch that is about to be made. `touched`: the bytes that it touches; None: they are not known."""

    entry: str
    grid: Dim3
    block: Dim3
    parameters: Sequence[bytes]
    touched: Callable[[], LaunchBytes | None]


@dataclass
class LaunchProofs:
    """The proofs of one session. `seconds`: that are left for them. `note`: adds a line to the notes of the report.

    `allocation`: the one that an address of the device lies in.
    """

    seconds: float
    note: Callable[[str], None]
    allocation: Callable[[int], Extent | None]
    _of_kernels: dict[tuple[str, str], tuple[int, ...]] = field(default_factory=dict)
    _known: dict[_OfShape, LaunchConditions | None] = field(default_factory=dict)
    _covered: dict[tuple[_OfShape, Dim3, tuple[bytes, ...], tuple[Extent | None, ...]], str] = field(default_factory=dict)
    _overflows: dict[tuple[_OfShape, tuple[int, ...]], str] = field(default_factory=dict)
    _deciding: dict[tuple[str, str], tuple[int, ...] | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Raise `EnvironmentFailure` without a solver."""
        require()

    def of(self, prepared: Prepared, launch: ProvedLaunch) -> AllLaunchesProof | None:
        """The proof that a launch has no race, like all of its kernel; None: there is none, or it does not cover the launch."""
        pointers = self._pointers(prepared, launch.entry)
        kernel = prepared.plain, launch.entry, launch.block, tuple(sorted(same_pointers(pointers, launch.parameters).items()))
        if kernel not in self._known:
            self._known[kernel] = self._conditions(prepared, launch, kernel)
        conditions = self._known[kernel]
        if conditions is None:
            return None
        extents = [self.allocation(address) for each in conditions.arrays if (address := each.value(launch.parameters))]
        case = kernel, launch.grid, tuple(launch.parameters), tuple(extents)
        if case not in self._covered:
            if len(self._covered) >= _MOST_KNOWN:
                self._covered.clear()
            self._covered[case] = self._refusal(kernel, conditions, launch)
        if why := self._covered[case]:
            self.note(f"{launch.entry}: a launch was recorded though a proof holds for all that fit its assumptions: {why}")
            return None
        return AllLaunchesProof(launch.block, conditions.assumed(), whole=True, checked=True, relations=conditions.related)

    def like(self, prepared: Prepared, launch: ProvedLaunch) -> Hashable:
        """The key of launches that do the same but for races (launched/repeats.py). None: data may decide what they do."""
        kernel = prepared.plain, launch.entry
        if kernel not in self._deciding:
            self._deciding[kernel] = deciding_parameters(_function(prepared, launch.entry))
        places = self._deciding[kernel]
        return None if places is None else (*kernel, launch.grid, launch.block, tuple(launch.parameters[each] for each in places))

    def _pointers(self, prepared: Prepared, entry: str) -> tuple[int, ...]:
        """The parameters of a kernel that are pointers."""
        if (prepared.plain, entry) not in self._of_kernels:
            self._of_kernels[prepared.plain, entry] = tuple(pointers_of(_function(prepared, entry)))
        return self._of_kernels[prepared.plain, entry]

    def _conditions(self, prepared: Prepared, launch: ProvedLaunch, kernel: _OfShape) -> LaunchConditions | None:
        """The assumptions of a proof about each launch of a kernel; None: there is no proof."""
        text = Cache().get(name := key("all launches", prepared.plain, launch.entry, repr(kernel[2:]), fingerprint("consan.prove")))
        stored = None if text is None else LaunchConditions.restored(text.decode())
        if stored is not None and not (stored.relations and stored.refuses(launch.grid, launch.parameters) and self.seconds > 0):
            return stored
        found, why = self._proven(prepared, launch) if self.seconds > 0 else (None, "the time for proofs was over (--prove)")
        if found is None:
            self.note(f"{launch.entry}: not proven for all launches: {why}")
            return None
        Cache().put(name, found.stored().encode())
        return found

    def _proven(self, prepared: Prepared, launch: ProvedLaunch) -> tuple[LaunchConditions | None, str]:
        module, began = prepared.instrumented.module, time.monotonic()
        function = _function(prepared, launch.entry)
        if sees_others(function):
            return None, _STRONG
        if state := keeps_state(prepared.plain):
            return None, f"its module has a variable ({state}), and each form would have one of its own"
        pointers = self._pointers(prepared, launch.entry)
        try:
            proof = prove_as_launched(function, module, launch.block, pointers, launch.parameters, self.seconds)
        finally:
            self.seconds -= time.monotonic() - began
        return conditions_of(proof), next((each.why for each in proof.reasons), "a launch does not show whether what it assumes holds")

    def _refusal(self, kernel: _OfShape, conditions: LaunchConditions, launch: ProvedLaunch) -> str:
        """Why a proof does not cover a launch; empty if it does."""
        return (
            conditions.refuses(launch.grid, launch.parameters)
            or next(self._overlaps(conditions, launch), "")
            or self._overflow(kernel, conditions, launch)
        )

    def _overflow(self, kernel: _OfShape, conditions: LaunchConditions, launch: ProvedLaunch) -> str:
        case = kernel, conditions.key(launch.grid, launch.parameters)
        if case not in self._overflows:
            if len(self._overflows) >= _MOST_KNOWN:
                self._overflows.clear()
            self._overflows[case] = conditions.overflow(launch.grid, launch.parameters)
        return self._overflows[case]

    def _overlaps(self, conditions: LaunchConditions, launch: ProvedLaunch) -> Iterator[str]:
        """Why arrays may overlap, or an access may leave its array."""
        found, touched = list[tuple[Extent, int, bool]](), launch.touched()
        spans = None if touched is None else _spans(touched)
        for each in conditions.arrays:
            if (address := each.value(launch.parameters)) == 0:
                continue  # no access through it is valid
            if (allocation := self.allocation(address)) is None:
                yield f"the allocation of parameter {each.place + 1} is not known"
                return
            found.append((allocation, address, each.written))
        for number, (one, address, writes) in enumerate(found):
            for other, start, others in found[:number]:
                if (writes or others) and _share(one, other) and (spans is None or _meet(spans, address, start)):
                    yield "two arrays are in one allocation"
        if touched is not None and not all(map(self._stays, _runs(touched))):
            yield "an access leaves its array"

    def _stays(self, run: tuple[int, int, int]) -> bool:
        pointer, begin, end = run
        allocation = self.allocation(pointer or begin)
        return allocation is not None and allocation[0] <= begin and end <= sum(allocation)


def _runs(touched: LaunchBytes) -> Iterator[tuple[int, int, int]]:
    """For each instruction of a launch that touches bytes: the pointer, and its first and last byte."""
    for each, start in zip(touched.touched, touched.begins(), strict=True):
        if len(each.begin):
            yield start, start + int(each.begin.min()), start + int(each.end.max())


def _spans(touched: LaunchBytes) -> dict[int, Extent] | None:
    """The begin and the bytes of what a launch touches through each pointer, from its least byte to its largest; None: not known."""
    found: dict[int, Extent] = {}
    for pointer, begin, end in _runs(touched):
        if pointer == 0:
            return None
        low, nbytes = found.get(pointer, (begin, 0))
        last = max(low + nbytes, end)
        low = min(low, begin)
        found[pointer] = low, last - low
    return found


def _meet(spans: dict[int, Extent], one: int, other: int) -> bool:
    """Whether what a launch touches through two pointers may have bytes in common."""
    return one in spans and other in spans and (one == other or _share(spans[one], spans[other]))


def _function(prepared: Prepared, entry: str) -> Function:
    return next(each for each in prepared.instrumented.module.functions if each.name == entry and each.body is not None)


def _share(one: Extent, other: Extent) -> bool:
    return one[0] < sum(other) and other[0] < sum(one)
