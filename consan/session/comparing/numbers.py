"""Sets of launches by number: a set of hundreds is made for each operation of a program with several streams."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final


class Numbers:
    """Numbers, as the bits of one integer that begins at the least, or below it. Does not change; goes from the least to the greatest."""

    __slots__ = ("_bits", "_first")

    def __init__(self, numbers: Iterable[int] = ()) -> None:
        some = list(numbers)
        self._first = min(some, default=0)
        self._bits = sum(1 << each - self._first for each in set(some))

    def plus(self, number: int) -> Numbers:
        """With one more."""
        if not self._bits or number < self._first:
            return self | Numbers((number,))
        return _of(self._bits | 1 << number - self._first, self._first)

    def __or__(self, other: Numbers) -> Numbers:
        ahead = self._first - other._first
        if not other._bits or (ahead == 0 and self._bits | other._bits == self._bits):
            return self
        if not self._bits:
            return other
        if ahead < 0:
            return _of(self._bits | other._bits << -ahead, self._first)
        return _of(self._bits << ahead | other._bits, other._first)

    def __and__(self, other: Numbers) -> Numbers:
        ahead = self._first - other._first
        if ahead < 0:
            return _trimmed(self._bits >> -ahead & other._bits, other._first)
        return _trimmed(self._bits & other._bits >> ahead, self._first)

    def __sub__(self, other: Numbers) -> Numbers:
        ahead = self._first - other._first
        return _trimmed(self._bits & ~(other._bits >> ahead if ahead >= 0 else other._bits << -ahead), self._first)

    def __le__(self, other: Numbers) -> bool:
        return not self - other

    def __contains__(self, number: object) -> bool:
        return isinstance(number, int) and number >= self._first and bool(self._bits >> number - self._first & 1)

    def __iter__(self) -> Iterator[int]:
        bits = self._bits
        while bits:
            lowest = bits & -bits
            yield self._first + lowest.bit_length() - 1
            bits ^= lowest

    def __len__(self) -> int:
        return self._bits.bit_count()

    def __bool__(self) -> bool:
        return self._bits != 0

    def __repr__(self) -> str:
        return f"Numbers({list(self)})"

    @property
    def least(self) -> int:
        """The least; the set is not empty."""
        return next(iter(self))


def _of(bits: int, first: int) -> Numbers:
    made = Numbers.__new__(Numbers)
    made._bits, made._first = bits, first
    return made


def _trimmed(bits: int, first: int) -> Numbers:
    """Without the bits below the least number: the least grows as a program runs."""
    if not bits:
        return NONE
    below = (bits & -bits).bit_length() - 1
    return _of(bits >> below, first + below)


NONE: Final = Numbers()
