"""Operations on 32-bit words and predicates, for registers that follow from constants: counters of loops.

Not handled: all others; their results count as not known.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Final

from consan.instrument.ptx import Instruction


def _signed(word: int) -> int:
    return (word ^ 1 << 31) - (1 << 31)


_VALUES: Final[dict[str, Callable[..., int]]] = {
    "mov": lambda a: a,
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "selp": lambda a, b, chosen: a if chosen else b,
}
_TESTS: Final[dict[str, Callable[[int, int], bool]]] = {
    "eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge,
}  # fmt: skip
_RESULTS: Final[dict[tuple[str, ...], Callable[..., int]]] = {
    **{(name, kind): value for name, value in _VALUES.items() for kind in ("b32", "u32", "s32", "pred")},
    **{("setp", name, kind): test for name, test in _TESTS.items() for kind in ("b32", "u32")},
    **{("setp", name, "s32"): lambda a, b, test=test: test(_signed(a), _signed(b)) for name, test in _TESTS.items()},
}


def of_words(instruction: Instruction) -> Callable[..., int] | None:
    """The function of the words that an instruction reads; the lower 32 bits of its result count. None: no such operation."""
    return _RESULTS.get(tuple(instruction.parts))
