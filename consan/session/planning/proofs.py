"""Launches whose accesses to global memory are proven apart before they run (consan/ranges): they are recorded without global memory.

A proof depends on the grid, the block and those parameters that are no pointers. Launches that are equal in these share it, as long as
their pointers are far enough apart, which is compared each time. Without a proof the launch is recorded in full.

A module whose variables keep state has no proofs: each of its two forms would have variables of its own.

The same text and parameters tell which bytes a launch touches, for a comparison with launches of other streams (followed_streams.py).

Not handled: launches whose parameters are not known.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any, Final, TypeVar

from consan.dataclass import dataclass
from consan.instrument.ptx import Function
from consan.instrument.rewriting.ranked import ranks_of
from consan.ranges import LaunchExtents, NotProven, Proof, Slice, Touched, footprint, prove
from consan.session.modules.prepared import Prepared
from consan.session.modules.variables import keeps_state

PROVES = True  # tests look at records
_MOST_KNOWN: Final = 1024  # proofs
_MOST_FOOTPRINTS: Final = 256
_OfModule = tuple[int, str]
_Near = tuple[tuple[int, int | None, int], ...]  # pointers that are not apart, and their distances
_Launches = tuple[_OfModule, LaunchExtents, tuple[bytes, ...], _Near]
_SEPARATE: Final[_Near] = ()
_Key = TypeVar("_Key", bound=tuple[Any, ...])
_Value = TypeVar("_Value")


@dataclass(frozen=True)
class LaunchBytes:
    """The bytes that one launch touches: those that are added to its pointers."""

    touched: tuple[Touched, ...]
    pointers: Mapping[int, int]

    @property
    def certain(self) -> bool:
        """Whether the launch touches all of them."""
        return all(each.certain for each in self.touched)

    def begins(self) -> list[int]:
        """The offsets that are added to the bytes of each."""
        return [0 if each.base is None else self.pointers[each.base] for each in self.touched]


@dataclass
class Proofs:
    """The proofs about the launches of a session."""

    _slices: dict[_OfModule, Slice | None] = field(default_factory=dict)  # None: no launch of the kernel has a proof
    _known: dict[_Launches, Proof | None] = field(default_factory=dict)
    _touched: dict[tuple[_OfModule, LaunchExtents, tuple[bytes, ...]], tuple[Touched, ...] | None] = field(default_factory=dict)

    def accesses(self, prepared: Prepared, entry: str, args: Sequence[bytes], shape: LaunchExtents) -> int:
        """How many accesses of single threads are proven apart; 0: there is no proof, or nothing to prove."""
        kernel, found, parameters = (prepared.number, entry), self._slice_of(prepared, entry), tuple(args)
        if found is None:
            return 0
        try:
            proof = self._of(kernel, found, parameters, shape, _SEPARATE)
            if proof is not None and (places := proof.together(found.pointers(parameters))):
                proof = self._of(kernel, found, parameters, shape, tuple((base, *place) for base, place in places.items()))
        except NotProven:
            return 0
        return 0 if proof is None else proof.count

    def touched(self, prepared: Prepared, entry: str, args: Sequence[bytes] | None, shape: LaunchExtents) -> LaunchBytes | None:
        """The bytes that a launch touches. None: its text and its parameters do not determine them."""
        kernel, found = (prepared.number, entry), None if args is None else self._slice_of(prepared, entry)
        if args is None or found is None:
            return None
        parameters = tuple(args)
        touched = self._kept(
            self._touched, _MOST_FOOTPRINTS, lambda: (kernel, shape, found.numbers(parameters)), lambda: footprint(found, parameters, shape)
        )
        return None if touched is None else LaunchBytes(touched, found.pointers(parameters))

    def may_prove(self, prepared: Prepared, entry: str) -> bool:
        """Whether a launch of a kernel may have a proof."""
        return self._slices.get((prepared.number, entry), ...) is not None

    def _slice_of(self, prepared: Prepared, entry: str) -> Slice | None:
        kernel = prepared.number, entry
        if kernel not in self._slices:
            self._slices[kernel] = _slice(prepared, entry)
        return self._slices[kernel] if PROVES else None

    def _of(self, kernel: _OfModule, found: Slice, parameters: tuple[bytes, ...], shape: LaunchExtents, near: _Near) -> Proof | None:
        """The proof for pointers if some of them are near to each other; None: there is none."""
        places = {base: (leader, distance) for base, leader, distance in near}
        return self._kept(
            self._known,
            _MOST_KNOWN,
            lambda: (kernel, shape, found.numbers(parameters), near),
            lambda: prove(found, parameters, shape, places),
        )

    def _kept(
        self, retained: dict[_Key, _Value | None], most: int, key: Callable[[], _Key], find: Callable[[], _Value | None]
    ) -> _Value | None:
        """The result for an equal launch, or else for this one. A key begins with the kernel. None: it is not proven."""
        before, found = key(), None
        if before in retained:
            return retained[before]
        if len(retained) >= most:
            retained.clear()
        try:
            found = find()
        except NotProven as reason:
            if reason.never:
                self._slices[before[0]] = None
        retained[key()] = found  # it may have turned out that the number of a pointer is needed
        return found


def function_of(prepared: Prepared, entry: str) -> Function:
    """A kernel of a module, as its text has it."""
    return next(each for each in prepared.instrumented.module.functions if each.name == entry and each.body is not None)


def _slice(prepared: Prepared, entry: str) -> Slice | None:
    if keeps_state(prepared.plain):
        return None
    try:
        return Slice(function_of(prepared, entry), ranks=ranks_of(prepared.plain))
    except NotProven:
        return None
