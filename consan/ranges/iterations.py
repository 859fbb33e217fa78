"""Many iterations of a loop at once: each CTA is copied once for each iteration, and all copies go through the loop together.

The registers at the begin of each iteration are guessed: each one grows by what it has grown by in the iteration before. One walk
through the loop with all these numbers checks the guess: an iteration must leave what the next one begins with. By induction
these are then the iterations of the loop, with the accesses that the walk notes. Nothing is assumed of the instructions: those whose
results do not grow so, as where a number wraps, fail the comparison. A register that fails it may not be read before it is written.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import field
from typing import Any

import numpy as np

from consan.dataclass import dataclass
from consan.instrument.control_flow import Key
from consan.ranges.values import SpreadValue, Words

Registers = Mapping[Key, SpreadValue]
FEWEST = 8  # iterations that are worth it
_FIRST, _FASTER, _MOST = 16, 4, 1 << 20
_MOST_TRIES = 4


class Lost(Exception):  # noqa: N818
    """An iteration reads a register whose value at its begin is not known, and the loop itself knows it."""


class KnownRegisters(dict[Key, SpreadValue]):
    """Registers in iterations. `lost`: those that the loop knows, and the iterations do not until they have written them."""

    def __init__(self, registers: Registers, lost: Collection[Key]) -> None:
        super().__init__(registers)
        self._lost = frozenset(lost)

    def get(self, key: Key, default: Any = None) -> Any:
        """A register that is known, or unknown to the loop too."""
        if key not in self and key in self._lost:
            raise Lost
        return super().get(key, default)


@dataclass
class LoopHead:
    """The node at which the iterations of a loop begin. `due`: the visit at which iterations are tried next; `iterations`: how many are."""

    registers: Registers = field(default_factory=dict)  # at the visit before
    visits: int = 0
    due: int = 6
    iterations: int = _FIRST

    def visited(self, registers: Registers) -> Registers | None:
        """Note a visit. Returns the registers of the one before if iterations are to be tried."""
        before, self.registers = self.registers, dict(registers)
        self.visits += 1
        return before if self.visits >= self.due else None

    def failed(self) -> bool:
        """Try fewer. Returns whether that is worth it; if not, the next visits go iteration by iteration."""
        self.iterations //= _FASTER
        if self.iterations >= FEWEST:
            return True
        self.due, self.iterations = self.visits + max(FEWEST, self.visits // 2), _FIRST
        return False

    def went(self) -> None:
        """Try more."""
        self.iterations = min(self.iterations * _FASTER, _MOST)


@dataclass
class Growth:
    """The growth of registers in an iteration, for each CTA or for all. `ctas`: how many there are; `widths`: the bits of registers."""

    begin: Registers
    steps: dict[Key, Words]
    ctas: int
    widths: Mapping[Key, int]

    @classmethod
    def between(cls, before: Registers, now: Registers, ctas: int, widths: Mapping[Key, int]) -> Growth:
        """The growth from one iteration to the next, of those registers that have one."""
        steps = {key: difference(before[key], value) for key, value in now.items() if key in before}
        return cls(now, {key: step for key, step in steps.items() if step is not None}, ctas, widths)

    def iterations(self, count: int, through: Callable[[dict[Key, SpreadValue]], Registers | None]) -> Registers | None:
        """The registers behind some iterations. `through`: goes through all of them. None: these iterations are not known."""
        for _ in range(_MOST_TRIES):
            given = {key: self._in_iterations(key, count) for key in self.steps}
            left = through(dict(given))
            if left is None:
                return None
            wrong = [key for key in given if not self._follows(key, given[key], left.get(key), count)]
            if not wrong:
                return {key: _last(value, count) for key, value in left.items()}
            for key in wrong:
                del self.steps[key]
        return None

    def _in_iterations(self, key: Key, count: int) -> SpreadValue:
        """A register at the begin of each iteration: the iterations of a CTA one after the other."""
        value, step = self.begin[key], self.steps[key]
        if not step.any():
            return value if value.of_cta.size == 1 else SpreadValue(np.repeat(value.of_cta, count), value.of_thread, value.base)
        of_cta = (value.of_cta[:, None] + step[:, None] * np.arange(count, dtype=np.uint64)) & self._mask(key)
        return SpreadValue(np.broadcast_to(of_cta, (self.ctas, count)).ravel(), value.of_thread, value.base)

    def _follows(self, key: Key, given: SpreadValue, left: SpreadValue | None, count: int) -> bool:
        """Whether what each iteration leaves is what the next one begins with."""
        if left is given and not self.steps[key].any():
            return True
        if left is None or left.base != given.base or left.of_thread.size != given.of_thread.size:
            return False
        distance = (left.of_thread - given.of_thread) & self._mask(key)
        if (distance != distance[0]).any():
            return False
        size = max(given.of_cta.size, left.of_cta.size, self.ctas * count)
        found, wanted = (np.broadcast_to(each.of_cta, size).reshape(-1, count) for each in (left, given))
        return not ((found[:, :-1] + distance[0] - wanted[:, 1:]) & self._mask(key)).any()

    def _mask(self, key: Key) -> np.uint64:
        mask: np.uint64 = np.uint64((1 << self.widths.get(key, 64)) - 1)
        return mask


def difference(before: SpreadValue, now: SpreadValue) -> Words | None:
    """The growth of a register. None: it differs between threads."""
    if before is now:
        return np.zeros(1, np.uint64)
    if before.base != now.base or before.of_thread.size != now.of_thread.size:
        return None
    of_thread = now.of_thread - before.of_thread
    return None if (of_thread != of_thread[0]).any() else np.asarray(now.of_cta - before.of_cta + of_thread[0])


def _last(value: SpreadValue, count: int) -> SpreadValue:
    """A register behind the last iteration."""
    if value.of_cta.size == 1:
        return value
    return SpreadValue(value.of_cta.reshape(-1, count)[:, -1].copy(), value.of_thread, value.base).collapsed()
