"""Launches whose accesses to global memory are proven apart before they run (consan/ranges): they are recorded without global memory.

A proof depends on the grid, the block and those parameters that are no pointers. Launches that are equal in these share it, as long as
their pointers are far enough apart, which is compared each time. Where there is no proof, the launch is recorded in full.

A module whose variables keep state has no proofs: each of its two forms would have variables of its own.

The same text and parameters tell which bytes a launch touches, for a comparison with launches of other streams (followed_streams.py).

Not handled: launches whose parameters are not known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from consan.ranges import LaunchExtents, NotProven, Proof, Slice, Touched, footprint, prove
from consan.session.prepared import Prepared
from consan.session.variables import keeps_state

PROVES = True  # tests look at records
_MOST_KNOWN: Final = 1024  # proofs
_MOST_FOOTPRINTS: Final = 256
_OfModule = tuple[int, str]
_Near = tuple[tuple[int, int | None, int], ...]  # pointers that are not apart, and their distances
_Launches = tuple[_OfModule, LaunchExtents, tuple[bytes, ...], _Near]
_APART: Final[_Near] = ()


@dataclass(frozen=True)
class LaunchBytes:
    """The bytes that one launch touches: those that are added to its pointers."""

    touched: tuple[Touched, ...]
    pointers: Mapping[int, int]

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
        kernel = prepared.number, entry
        if kernel not in self._slices:
            self._slices[kernel] = _slice(prepared, entry)
        found = self._slices[kernel]
        if found is None or not PROVES:
            return 0
        parameters = tuple(args)
        try:
            proof = self._of(kernel, found, parameters, shape, _APART)
            if proof is not None and (places := proof.together(found.pointers(parameters))):
                near = tuple((base, *place) for base, place in places.items())
                proof = self._of(kernel, found, parameters, shape, near)
        except NotProven:
            return 0
        return 0 if proof is None else proof.count

    def touched(self, prepared: Prepared, entry: str, args: Sequence[bytes] | None, shape: LaunchExtents) -> LaunchBytes | None:
        """The bytes that a launch touches. None: its text and its parameters do not tell."""
        if args is None or not PROVES:
            return None
        kernel, parameters = (prepared.number, entry), tuple(args)
        if kernel not in self._slices:
            self._slices[kernel] = _slice(prepared, entry)
        found = self._slices[kernel]
        if found is None:
            return None
        key = kernel, shape, found.numbers(parameters)
        if key not in self._touched:
            if len(self._touched) >= _MOST_FOOTPRINTS:
                self._touched.clear()
            try:
                touched = footprint(found, parameters, shape)
            except NotProven:
                touched = None
            key = kernel, shape, found.numbers(parameters)  # it may have found that it needs the number of a pointer
            self._touched[key] = touched
        touched = self._touched[key]
        return None if touched is None else LaunchBytes(touched, found.pointers(parameters))

    def may_prove(self, prepared: Prepared, entry: str) -> bool:
        """Whether a launch of a kernel may have a proof."""
        return self._slices.get((prepared.number, entry), ...) is not None

    def _of(self, kernel: _OfModule, found: Slice, parameters: tuple[bytes, ...], shape: LaunchExtents, near: _Near) -> Proof | None:
        """The proof for pointers of which some are near to each other; None: there is none."""
        key = kernel, shape, found.numbers(parameters), near
        if key in self._known:
            return self._known[key]
        if len(self._known) >= _MOST_KNOWN:
            self._known.clear()
        proof: Proof | None = None
        try:
            proof = prove(found, parameters, shape, {base: (leader, distance) for base, leader, distance in near})
        except NotProven as reason:
            if reason.never:
                self._slices[kernel] = None
        key = kernel, shape, found.numbers(parameters), near  # the proof may have found that it needs the number of a pointer
        self._known[key] = proof
        return proof


def _slice(prepared: Prepared, entry: str) -> Slice | None:
    if keeps_state(prepared.plain):
        return None
    module = prepared.instrumented.module
    function = next(each for each in module.functions if each.name == entry and each.body is not None)
    try:
        return Slice(function)
    except NotProven:
        return None
