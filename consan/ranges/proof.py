"""Proofs that hold for all numbers of the pointers among the parameters, as long as their ranges of bytes are apart."""

from __future__ import annotations

from collections.abc import Mapping

from consan.dataclass import dataclass
from consan.ranges.forms import NotProven
from consan.ranges.overlaps import PointerExtent, extents, meet
from consan.ranges.slices import Slice
from consan.ranges.values import Valued, forget_readings
from consan.ranges.walk import LaunchExtents, Path, Places, Walk, accesses_of

_NUMBERS = -1  # in place of a pointer: of addresses that are numbers
_MOST_OF_POINTERS = 1 << 63  # no pointer, and nothing that is added to one, comes near


@dataclass(frozen=True)
class Proof:
    """A proof of launches. `count`: accesses of single threads; `ranges`: of bytes that are added to each pointer."""

    count: int
    ranges: Mapping[int | None, PointerExtent]

    def together(self, pointers: Mapping[int, int]) -> Places:
        """How far pointers whose bytes may meet are from one of them. Empty: all are apart. Raises `NotProven`."""
        placed = sorted(PlacedExtent.of(base, extent, 0 if base is None else pointers[base]) for base, extent in self.ranges.items())
        if placed and not (placed[0].begin >= 0 and max(each.end for each in placed) <= _MOST_OF_POINTERS):
            raise NotProven("an address wraps")
        leaders: dict[int, int] = {}
        for number, one in enumerate(placed):
            for other in placed[number + 1 :]:
                if other.begin >= one.end:
                    break
                if one.meets(other):
                    _join(leaders, one.base, other.base)
        at = {**pointers, _NUMBERS: 0}
        pairs = ((base, leader) for base, leader in sorted(leaders.items()) if base != leader)
        return {base: (None if leader == _NUMBERS else leader, at[base] - at[leader]) for base, leader in pairs}


def prove(kernel: Slice, parameters: tuple[bytes, ...], shape: LaunchExtents, places: Places | None = None) -> Proof:
    """The proof of a launch, and of those like it. `places`: of pointers that are not apart. Raises `NotProven`."""
    while (paths := paths_of(kernel, parameters, shape, places or {})) is None:
        if places:
            raise NotProven("what it does follows from the distance of pointers")
    if reason := meet(paths):
        raise NotProven(reason)
    return Proof(sum(path.count for path in paths), extents(paths))


def paths_of(
    kernel: Slice, parameters: tuple[bytes, ...], shape: LaunchExtents, places: Places, walk: type[Walk] = Walk
) -> list[Path] | None:
    """The paths through the kernel. None: they follow from the number of a pointer, which is a number from now on."""
    try:
        return accesses_of(kernel, parameters, shape, places, walk)
    except Valued as wanted:
        kernel.demand(wanted.bases, parameters)
        return None
    finally:
        forget_readings()


def proven(kernel: Slice, parameters: tuple[bytes, ...], shape: LaunchExtents) -> int:
    """How many accesses of single threads of one launch are proven apart. Raises `NotProven`."""
    found = prove(kernel, parameters, shape)
    places = found.together(kernel.pointers(parameters))
    return prove(kernel, parameters, shape, places).count if places else found.count


@dataclass(frozen=True, order=True, slots=True)
class PlacedExtent:
    """The bytes of a pointer with a number."""

    begin: int
    end: int
    base: int
    write_begin: int
    write_end: int

    @classmethod
    def of(cls, base: int | None, extent: PointerExtent, at: int) -> PlacedExtent:
        """Those that are added to a pointer."""
        number = _NUMBERS if base is None else base
        return cls(extent.begin + at, extent.end + at, number, extent.write_begin + at, extent.write_end + at)

    def meets(self, other: PlacedExtent) -> bool:
        """Whether one may write what the other accesses."""
        return self.writes_in(other) or other.writes_in(self)

    def writes_in(self, other: PlacedExtent) -> bool:
        """Whether it may write what the other accesses."""
        return self.write_begin < self.write_end and self.write_begin < other.end and other.begin < self.write_end


def _join(leaders: dict[int, int], one: int, other: int) -> None:
    """Bring two pointers, and all that are with one of them, to the least one of these."""
    old = {leaders.setdefault(each, each) for each in (one, other)}
    leaders |= {base: min(old) for base, leader in leaders.items() if leader in old}
