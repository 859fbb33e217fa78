"""The results of an instruction for all threads, whose numbers are sums of two parts (values.py)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from consan.backends.cpu.semantics.ops import Op, semantics
from consan.instrument.ptx import Instruction
from consan.ranges.values import (
    SIGNS,
    Fork,
    SpreadValue,
    Unknown,
    Valued,
    added,
    bitwise,
    compared,
    computed,
    divided,
    extended,
    is_integer,
    negated,
    scaled,
    single,
    united,
    width,
)

Uniform = tuple[int, int]
_POINTER = 64
_MOST_UNIFORM = 1 << 12  # results that are kept of an instruction
# The sources that may be added to a pointer: then the result is the result for what is added, added to the pointer.
LEAVES = {"add": (0, 1), "sub": (0,), "mad": (2,), "mov": (0,), "cvt": (0,)}
_BIT_OPERATIONS = {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}


class SpreadOperation:
    """The result of an instruction. `bits`: of the registers that it writes."""

    def __init__(self, instruction: Instruction, sources: int, bits: Sequence[int], *, converts: bool = False) -> None:
        """`converts`: it makes an address of another state space, with the same number for global memory. Raises `Unknown`."""
        self._parts, self.bits, self._converts = instruction.parts, tuple(bits), converts
        self._uniform: dict[tuple[Uniform, ...], list[SpreadValue]] = {}
        if converts:
            return
        op = semantics(instruction.parts, sources=len(instruction.operands) - 1)
        if op is None or op.kind != "lane" or len(op.sources) != sources or len(op.dests) != len(bits):
            raise Unknown
        self._op: Op = op
        words = (*op.sources, *op.dests)
        self._leaves = self._left()
        self._adds = self._parts[0] in ("add", "sub") and "sat" not in self._parts and all(map(is_integer, words))
        self._adds = self._adds and all(width(word) == bits[0] for word in words)

    def results(self, sources: Sequence[SpreadValue], ctas: int) -> list[SpreadValue]:
        """The values for all threads. Raises `Unknown`, or `Fork` if sets of CTAs have values, or `Valued`."""
        if self._converts:
            return list(sources)
        if any(each.base is not None for each in sources):
            return self._on_base(sources, ctas)
        varies = [each.varies for each in sources]
        of_cta, of_thread = any(each[0] for each in varies), any(each[1] for each in varies)
        if not (of_cta or of_thread):
            return self._of_all(sources)
        if self._adds:
            return [_SUMS[self._parts[0]](self._parts, self._op, sources)]
        if not (of_cta and of_thread):
            return computed(self._op, sources, self.bits)
        try:
            if len(self.bits) != 1:
                raise Unknown
            return [_sum(self._parts, self._op, sources, self.bits[0]).collapsed()]
        except Unknown:
            raise single(ctas) from None

    def absorbed(self, sources: Sequence[SpreadValue | None]) -> list[SpreadValue] | None:
        """The values where one source decides them, whatever the others are: a zero (ISA "and", "setp"). None: none does."""
        if "and" not in self._parts:
            return None
        joined = sources[2:] if self._parts[0] == "setp" else sources
        return [SpreadValue.same(0) for _ in self.bits] if any(each is not None and each.is_zero for each in joined) else None

    def _of_all(self, sources: Sequence[SpreadValue]) -> list[SpreadValue]:
        """The results where all threads have the same numbers. Those of a loop come again in each path."""
        key = tuple((int(each.of_cta[0]), int(each.of_thread[0])) for each in sources)
        if key not in self._uniform:
            if len(self._uniform) >= _MOST_UNIFORM:
                self._uniform.clear()
            self._uniform[key] = computed(self._op, sources, self.bits)
        return self._uniform[key]

    def _on_base(self, sources: Sequence[SpreadValue], ctas: int) -> list[SpreadValue]:
        """The results where a source is added to a pointer: added to the same one, if the operation leaves it as it is."""
        if self._parts[0] == "selp":
            divide(sources[2])
            return [sources[0] if sources[2].whole(1)[0] else sources[1]]
        places = [number for number, each in enumerate(sources) if each.base is not None]
        if len(places) > 1 or places[0] not in self._leaves:
            raise Valued([each.base for each in sources if each.base is not None])
        base = sources[places[0]].base
        return [each.on(base) for each in self.results([each.on(None) for each in sources], ctas)]

    def _left(self) -> tuple[int, ...]:
        """The sources that may be added to a pointer: they and the result have all bits of one."""
        op, places = self._op, LEAVES.get(self._parts[0], ())
        words = [*(op.sources[each] for each in places if each < len(op.sources)), *op.dests]
        whole = all(is_integer(word) and width(word) == _POINTER for word in words) and self.bits == (_POINTER,)
        return places if whole and "sat" not in self._parts else ()


def _sum(parts: tuple[str, ...], op: Op, sources: Sequence[SpreadValue], bits: int) -> SpreadValue:
    """The result for values of both parts. Raises `Unknown` where it is no sum of parts, `Fork` where it is one for sets of CTAs."""
    root, words = parts[0], (*op.sources, *op.dests)
    if "pred" in words:
        return _predicate(parts, op, sources)
    if "sat" in parts or not all(map(is_integer, words)) or width(op.dests[0]) != bits or root not in _SUMS:
        raise Unknown
    return _SUMS[root](parts, op, sources)


def _add(_: tuple[str, ...], op: Op, sources: Sequence[SpreadValue]) -> SpreadValue:
    return added(sources[0], sources[1], width(op.dests[0]))


def _subtract(_: tuple[str, ...], op: Op, sources: Sequence[SpreadValue]) -> SpreadValue:
    bits = width(op.dests[0])
    return added(sources[0], negated(sources[1], bits), bits)


def _multiply(parts: tuple[str, ...], op: Op, sources: Sequence[SpreadValue]) -> SpreadValue:
    """A product, and what is added to it (ISA "mul", "mad"): with a number that all threads share."""
    bits, factors = width(op.dests[0]), list(sources[:2])
    if "wide" in parts:
        factors = [extended(each, width(op.sources[0]), signed=op.sources[0].startswith("s")) for each in factors]
    elif "lo" not in parts:
        raise Unknown
    shared = [each for each in factors if not any(each.varies)]
    if not shared:
        raise Unknown
    other = factors[1] if factors[0] is shared[0] else factors[0]
    product = scaled(other, shared[0], bits)
    return added(product, sources[2], bits) if len(sources) > 2 else product


def _shift_left(_: tuple[str, ...], op: Op, sources: Sequence[SpreadValue]) -> SpreadValue:
    bits, amount = width(op.dests[0]), _number(sources[1])
    return scaled(sources[0], SpreadValue.same(1 << amount if amount < bits else 0), bits)


def _shift_right(_: tuple[str, ...], op: Op, sources: Sequence[SpreadValue]) -> SpreadValue:
    bits, amount = width(op.dests[0]), _number(sources[1])
    if op.sources[0].startswith("s") and _reaches_sign(sources[0], bits):
        raise Unknown
    if amount >= bits:
        return SpreadValue.same(0)
    try:
        return bitwise(sources[0], bits, lambda part: part >> np.uint64(amount))
    except Unknown:
        return divided(sources[0], 1 << amount, bits, signed=False)[0]


def _reaches_sign(value: SpreadValue, bits: int) -> bool:
    return any(int(part.max()) >> bits - 1 & 1 for part in (value.of_cta, value.of_thread))


def _and(_: tuple[str, ...], op: Op, sources: Sequence[SpreadValue]) -> SpreadValue:
    masks = [each for each in sources if not any(each.varies)]
    if not masks:
        raise Unknown
    other = sources[1] if sources[0] is masks[0] else sources[0]
    bits, mask = width(op.dests[0]), masks[0].whole(64)
    try:
        return bitwise(other, bits, lambda part: part & mask)
    except Unknown:
        above = int(mask[0] & np.uint64((1 << bits) - 1)) + 1
        if above & above - 1:
            raise
        return divided(other, above, bits, signed=False)[1]


def _rest(parts: tuple[str, ...], op: Op, sources: Sequence[SpreadValue]) -> SpreadValue:
    """A quotient or a remainder (ISA "div", "rem")."""
    word = op.sources[0]
    found = divided(sources[0], _number(sources[1], word), width(word), signed=word.startswith("s"))
    return found[parts[0] == "rem"]


def _unite(_: tuple[str, ...], op: Op, sources: Sequence[SpreadValue]) -> SpreadValue:
    return united(sources[0], sources[1], width(op.dests[0]))


def _convert(_: tuple[str, ...], op: Op, sources: Sequence[SpreadValue]) -> SpreadValue:
    """A number in another type, or the same (ISA "cvt", "mov"): without a wrap where it becomes wider."""
    given, bits = op.sources[0], width(op.dests[0])
    value = extended(sources[0], width(given), signed=given.startswith("s")) if width(given) < bits else sources[0]
    return added(value, SpreadValue.same(0), bits)


_SUMS: dict[str, Callable[[tuple[str, ...], Op, Sequence[SpreadValue]], SpreadValue]] = {
    "add": _add, "sub": _subtract, "mul": _multiply, "mad": _multiply, "shl": _shift_left, "shr": _shift_right,
    "div": _rest, "rem": _rest, "and": _and, "or": _unite, "xor": _unite, "cvt": _convert, "mov": _convert,
}  # fmt: skip


def _number(value: SpreadValue, word: str = "u32") -> int:
    """A number that all threads share, from zero on."""
    if any(value.varies):
        raise Unknown
    found = int(value.whole(width(word))[0])
    if word.startswith("s") and found >> width(word) - 1:
        raise Unknown
    return found


def _predicate(parts: tuple[str, ...], op: Op, sources: Sequence[SpreadValue]) -> SpreadValue:
    """Comparisons, selections and combinations of predicates (ISA "setp", "selp", "and")."""
    root = parts[0]
    if root == "selp":
        divide(sources[2])
        return sources[0] if sources[2].whole(1)[0] else sources[1]
    if root == "setp" and parts[1] in SIGNS and is_integer(op.sources[0]):
        word = op.sources[0]
        signed = word.startswith("s") or (word.startswith("b") and parts[1] in ("eq", "ne"))
        found = compared(parts[1], sources[0], sources[1], width(word), signed=signed)
        return found if len(sources) == 2 else _combined(parts[2], found, sources[2])
    if root in _BIT_OPERATIONS:
        return _combined(root, sources[0], sources[1])
    raise Unknown


def _combined(how: str, one: SpreadValue, other: SpreadValue) -> SpreadValue:
    """`and`, `or` or `xor` of two predicates. Where one differs between CTAs, and one between threads, CTAs are taken apart."""
    if how not in _BIT_OPERATIONS:
        raise Unknown
    varies = [each.varies for each in (one, other)]
    if (True, False) in varies and (False, True) in varies:
        divide(one if one.varies[0] else other)
    threads = any(each[1] for each in varies)
    numbers = _BIT_OPERATIONS[how](one.whole(1), other.whole(1))
    return SpreadValue(np.zeros(1, np.uint64), numbers) if threads else SpreadValue(numbers, np.zeros(1, np.uint64))


def divide(predicate: SpreadValue) -> None:
    """Raise `Fork` if a predicate differs between CTAs, or between threads."""
    if any(predicate.varies):
        holds = predicate.whole(1) != 0
        raise Fork([holds, ~holds], of_threads=predicate.varies[1])
