"""The numbers that all threads of a launch have in a register: a part that follows from the CTA, and a part that follows from the thread.

A register holds the sum of both parts, modulo 2 to the power of its bits. So a grid of a million CTAs takes an array of a million numbers
and one of a thousand. Numbers of one part alone go through the operations of the virtual machine, which are exact. Sums go through
additions, products with a number that all threads share, extensions that cannot wrap, and bit operations whose parts share no bit.

A value that is no such sum raises `Fork`, with sets of CTAs. In each set it is one: the walk goes on in each of them.

A pointer among the parameters is no number: it is the base of what is added to it. So one proof serves all values of the pointer. What
needs its number raises `Valued`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from consan.backends.cpu.semantics.ops_base import DTYPES, Op, bits_of
from consan.dataclass import dataclass

Words = npt.NDArray[np.uint64]
Signed = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
MOST_SINGLE = 64  # CTAs that a path goes on with one by one
_ZERO = np.zeros(1, np.uint64)
_WHOLE = 64  # bits of the numbers of parts
_LARGEST = 1 << 62  # of exact parts: sums of two stay in 64 bits
_MASKS: dict[int, np.uint64] = {bits: np.uint64((1 << bits) - 1) for bits in range(65)}
_SMALL, _MOST_SEEN = 2048, 1 << 12  # arrays of up to so many numbers are remembered, and how many arrays


class Unknown(Exception):  # noqa: N818
    """A value that arithmetic does not give."""


class Fork(Exception):  # noqa: N818
    """A value that is known in each of these sets of CTAs, or of threads, by itself."""

    def __init__(self, sets: Sequence[Mask], *, of_threads: bool = False) -> None:
        self.sets, self.of_threads = [each for each in sets if each.any()], of_threads


class Valued(Exception):  # noqa: N818
    """Something follows from the numbers of these pointers, and not only from what is added to them."""

    def __init__(self, bases: Sequence[int]) -> None:
        self.bases = bases


@dataclass(frozen=True, slots=True)
class SpreadValue:
    """A register. Each part has one number for all, or one for each CTA or thread of a path. A predicate is 0 or 1, and of one part.

    `base`: the pointer that the value is added to. None: it is a number.
    """

    of_cta: Words
    of_thread: Words
    base: int | None = None

    @classmethod
    def same(cls, number: int) -> SpreadValue:
        """A number that all threads have."""
        return cls(np.array([number & (1 << 64) - 1], np.uint64), _ZERO)

    @property
    def varies(self) -> tuple[bool, bool]:
        """Whether it differs between CTAs, and between threads."""
        return self.of_cta.size > 1, self.of_thread.size > 1

    @property
    def is_zero(self) -> bool:
        """Whether it is zero in all threads."""
        return self.base is None and not any(self.varies) and not self.of_cta[0] + self.of_thread[0]

    def whole(self, bits: int) -> Words:
        """The numbers of a value of one part."""
        if self.base is not None:
            raise Valued([self.base])
        return np.asarray((self.of_cta + self.of_thread) & _mask(bits))

    def kept(self, mask: Mask, *, of_threads: bool) -> SpreadValue:
        """The value in a set of CTAs, or of threads."""
        if of_threads:
            return self if self.of_thread.size == 1 else SpreadValue(self.of_cta, self.of_thread[mask], self.base).collapsed()
        return self if self.of_cta.size == 1 else SpreadValue(self.of_cta[mask], self.of_thread, self.base).collapsed()

    def equals(self, other: SpreadValue) -> bool:
        """Whether the parts are the same."""
        parts = (self.of_cta, other.of_cta), (self.of_thread, other.of_thread)
        return self is other or (self.base == other.base and all(np.array_equal(one, another) for one, another in parts))

    def on(self, base: int | None) -> SpreadValue:
        """The same parts, added to a pointer or to none."""
        return SpreadValue(self.of_cta, self.of_thread, base)

    def collapsed(self) -> SpreadValue:
        """The same with one number for all where there is but one."""
        return SpreadValue(_collapsed(self.of_cta), _collapsed(self.of_thread), self.base)


def _collapsed(numbers: Words) -> Words:
    return numbers[:1] if numbers.size > 1 and numbers[0] == numbers[-1] and (numbers == numbers[0]).all() else numbers


def _mask(bits: int) -> np.uint64:
    return _MASKS[bits]


def of_part(numbers: Words, *, of_threads: bool) -> SpreadValue:
    """Numbers of one part."""
    return SpreadValue(_ZERO, numbers) if of_threads else SpreadValue(numbers, _ZERO)


def single(ctas: int) -> Fork | Unknown:
    """The error where a value is no sum: each CTA by itself has one, if they are few."""
    return Fork(list(np.eye(ctas, dtype=np.bool_))) if 1 < ctas <= MOST_SINGLE else Unknown()


def computed(op: Op, sources: Sequence[SpreadValue], bits: Sequence[int]) -> list[SpreadValue]:
    """The results of an operation on values of one and the same part. `bits`: of the registers that it writes."""
    threads = any(each.varies[1] for each in sources)
    numbers = [_typed(each.whole(_WHOLE), word) for each, word in zip(sources, op.sources, strict=True)]
    size = max((each.size for each in numbers), default=1)
    results = op.fn(*(_of_size(each, size) for each in numbers))
    found = results if isinstance(results, tuple) else (results,)
    pairs = zip(found, op.dests, bits, strict=True)
    numbers_of = (_untyped(_of_size(np.atleast_1d(each), size), word, width) for each, word, width in pairs)
    return [of_part(numbers, of_threads=threads).collapsed() for numbers in numbers_of]


def _of_size(numbers: npt.NDArray[Any], size: int) -> npt.NDArray[Any]:
    return numbers if numbers.size == size else np.full(size, numbers[0], numbers.dtype)


_UNSIGNED = {word: np.dtype(f"u{kind.itemsize}") for word, kind in DTYPES.items()}


def _typed(numbers: Words, word: str) -> npt.NDArray[Any]:
    if word == "pred":
        return np.asarray(numbers != 0)
    return np.asarray(numbers.astype(_UNSIGNED[word]).view(DTYPES[word]))


def _untyped(numbers: npt.NDArray[Any], word: str, bits: int) -> Words:
    """A result in its register: signed numbers are extended by their sign, others by zeros."""
    if word == "pred":
        return numbers.astype(np.uint64)
    typed = np.ascontiguousarray(numbers, dtype=DTYPES[word])
    if word.startswith("s"):
        return np.asarray(typed.astype(np.int64).view(np.uint64) & _mask(bits))
    return typed.view(_UNSIGNED[word]).astype(np.uint64)


# -- sums ------------------------------------------------------------------------------------------------------------------------


def exact(value: SpreadValue, bits: int, *, signed: bool) -> tuple[Signed, Signed]:
    """Parts whose sum, without a wrap, is the number that the register holds, or what it adds to its base. Raises `Unknown`."""
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    for cta in _readings(value.of_cta, bits):
        for thread in _readings(value.of_thread, bits):
            if low <= cta.least + thread.least and cta.most + thread.most <= min(high, _LARGEST):
                return cta.numbers, thread.numbers
    raise Unknown


@dataclass(frozen=True, slots=True)
class _Reading:
    """Numbers with a sign, and the least and the largest of them."""

    numbers: Signed
    least: int
    most: int


_SEEN: dict[tuple[int, int], tuple[Words, list[_Reading]]] = {}  # by the array, which stays alive with its entry, and the bits


def _readings(numbers: Words, bits: int) -> list[_Reading]:
    """Numbers as those of a type with a sign, and of one without, if they are not too large. Those of a small array are remembered."""
    if numbers.size == 1:
        return _one(int(numbers[0]) & (1 << bits) - 1, bits)
    if numbers.size > _SMALL:
        return _read(numbers, bits)
    key = id(numbers), bits
    found = _SEEN.get(key)
    if found is None:
        if len(_SEEN) >= _MOST_SEEN:
            _SEEN.clear()
        found = _SEEN[key] = numbers, _read(numbers, bits)
    return found[1]


def forget_readings() -> None:
    """A walk is over: its arrays need not stay alive."""
    _SEEN.clear()


def _one(number: int, bits: int) -> list[_Reading]:
    """The readings of a single number."""
    readings = (number - (1 << bits), number) if number >> bits - 1 else (number,)
    return [_Reading(np.array([each]), each, each) for each in readings if abs(each) < _LARGEST]


def _read(numbers: Words, bits: int) -> list[_Reading]:
    plain = numbers & _mask(bits)
    negative = plain >> np.uint64(bits - 1) != 0
    if not negative.any():
        found = [plain.view(np.int64)]
    else:
        signed = (plain | (np.where(negative, ~_mask(bits), np.uint64(0)))).view(np.int64)
        found = [signed] if bits == 64 else [signed, plain.view(np.int64)]
    readings = (_Reading(each, int(each.min()), int(each.max())) for each in found)
    return [each for each in readings if max(abs(each.least), abs(each.most)) < _LARGEST]


def extended(value: SpreadValue, bits: int, *, signed: bool) -> SpreadValue:
    """A value as one of 64 bits."""
    of_cta, of_thread = exact(value, bits, signed=signed)
    return SpreadValue(of_cta.view(np.uint64), of_thread.view(np.uint64))


def added(one: SpreadValue, other: SpreadValue, bits: int) -> SpreadValue:
    """The sum. Parts of it are sums of parts, modulo 2 to the power of the bits."""
    return SpreadValue(_plus(one.of_cta, other.of_cta, bits), _plus(one.of_thread, other.of_thread, bits))


def _plus(one: Words, other: Words, bits: int) -> Words:
    """The sum of parts. With zero it is the same array if it can be: what is known of it stays known."""
    if bits == _WHOLE and other.size == 1 and not other[0]:
        return one
    if bits == _WHOLE and one.size == 1 and not one[0]:
        return other
    total = one + other if bits == _WHOLE else (one + other) & _MASKS[bits]
    return _collapsed(total) if one.size > 1 and other.size > 1 else total


def scaled(value: SpreadValue, factor: SpreadValue, bits: int) -> SpreadValue:
    """The product with a number that all threads share."""
    number = factor.whole(64)
    return SpreadValue((value.of_cta * number) & _mask(bits), (value.of_thread * number) & _mask(bits))


def negated(value: SpreadValue, bits: int) -> SpreadValue:
    """The number that is added to subtract a value."""
    return scaled(value, SpreadValue.same(-1), bits)


def divided(value: SpreadValue, by: int, bits: int, *, signed: bool) -> tuple[SpreadValue, SpreadValue]:
    """The quotient and the remainder of numbers from zero on, where all threads of a CTA have one quotient. Raises `Unknown`."""
    of_cta, of_thread = exact(value, bits, signed=signed)
    if by <= 0 or int(of_cta.min()) + int(of_thread.min()) < 0:
        raise Unknown
    quotient = (of_cta + of_thread.min()) // by
    if (quotient != (of_cta + of_thread.max()) // by).any():
        raise Unknown
    rest = (of_cta - quotient * by).view(np.uint64) & _mask(bits)
    return of_part(quotient.astype(np.uint64), of_threads=False), SpreadValue(rest, of_thread.view(np.uint64) & _mask(bits))


def bitwise(value: SpreadValue, bits: int, part: Callable[[Words], Words]) -> SpreadValue:
    """An operation that treats each bit alike, on a sum whose parts share no bit. Raises `Unknown`."""
    of_cta, of_thread = value.of_cta & _mask(bits), value.of_thread & _mask(bits)
    if int(np.bitwise_or.reduce(of_cta)) & int(np.bitwise_or.reduce(of_thread)):
        raise Unknown
    return SpreadValue(part(of_cta), part(of_thread))


def united(one: SpreadValue, other: SpreadValue, bits: int) -> SpreadValue:
    """`or`, or `xor`, of values none of whose parts share a bit: their sum. Raises `Unknown`."""
    seen = 0
    for part in (one.of_cta, one.of_thread, other.of_cta, other.of_thread):
        own = int(np.bitwise_or.reduce(part & _mask(bits)))
        if seen & own:
            raise Unknown
        seen |= own
    return added(one, other, bits)


SIGNS: dict[str, tuple[bool, bool, bool]] = {  # whether it holds where the difference is below zero, zero, above
    "eq": (False, True, False), "ne": (True, False, True), "lt": (True, False, False),
    "le": (True, True, False), "gt": (False, False, True), "ge": (False, True, True),
}  # fmt: skip
SIGNS |= {"lo": SIGNS["lt"], "ls": SIGNS["le"], "hi": SIGNS["gt"], "hs": SIGNS["ge"]}


def compared(how: str, one: SpreadValue, other: SpreadValue, bits: int, *, signed: bool) -> SpreadValue:
    """A comparison, where each CTA decides it for all of its threads. Raises `Fork` with the CTAs that do, and the others one by one."""
    (of_cta, of_thread), (less_cta, less_thread) = (exact(each, bits, signed=signed) for each in (one, other))
    ctas, threads = of_cta - less_cta, of_thread - less_thread
    least, most = ctas + threads.min(), ctas + threads.max()
    below, equal, above = SIGNS[how]
    holds = np.where(most < 0, below, np.where(least > 0, above, equal))
    decided = (most < 0) | (least > 0) | ((least == 0) & (most == 0))
    if below == equal:
        decided |= most <= 0
        holds = np.where(most <= 0, below, holds)
    if above == equal:
        decided |= least >= 0
        holds = np.where(least >= 0, above, holds)
    if decided.all():
        return of_part(holds.astype(np.uint64), of_threads=False).collapsed()
    if int(ctas.min()) == int(ctas.max()):
        sums = ctas[:1] + threads
        whole = np.where(sums < 0, below, np.where(sums > 0, above, equal))
        return of_part(whole.astype(np.uint64), of_threads=True).collapsed()
    open_ = np.flatnonzero(~decided)
    if len(open_) > MOST_SINGLE:
        raise Unknown
    raise Fork([decided, *(np.arange(len(decided)) == each for each in open_)])


def is_integer(word: str) -> bool:
    """Whether a type is one of whole numbers."""
    return word in DTYPES and word[0] in "usb" and word[1:].isdecimal()


def width(word: str) -> int:
    """The bits of a type."""
    return bits_of(word)
