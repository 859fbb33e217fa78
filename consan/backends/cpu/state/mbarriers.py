"""mbarrier objects: their bits, phases, transactions, and the lanes parked at try_wait (PTX ISA, "mbarrier").

An object is its own 8 bytes of shared memory, and a state token is the whole word, in this machine's layout:

    bits 0-20 tx-count, two's complement | 21-40 pending arrivals | 41-60 expected arrivals | 63 parity of the phase

The highest bit of a token is where the H200 has the parity, and the instrumentation looks for it (instrument/passes/mbarriers.py).

A phase completes as soon as pending and tx-count are both zero, after whichever operation made them so; pending then becomes the
expected count, which arrive_drop has reduced. Nothing here traps: a count that leaves its range wraps within its field, so
one arrival too many leaves 2**20 - 1 pending and the phase does not complete; memory that was never initialised acts as an object
whose counts are zero; inval leaves the word as it is, so that a wait which comes late for it ends, and is in the log. The instrumented
code decides whether any of that is misuse.

An object is named by the number of its 8-byte item in the arena ("unit"), which is unique over all CTAs of the wave.

Not handled: the order of arrivals of one instruction is that of its lanes, whatever the seed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from consan.dataclass import dataclass

from .barriers import WaitingLanes
from .faults import BarrierState
from .memory import RESERVED_SHARED
from .wave import Wave

if TYPE_CHECKING:
    from consan.backends.cpu.decode.operands import Target

Array = npt.NDArray[Any]
Lanes = npt.NDArray[np.intp]

PENDING, EXPECTED, PHASE = 21, 41, 63
TX_MASK, COUNT_MASK, WORD_MASK = (1 << PENDING) - 1, (1 << 20) - 1, (1 << 64) - 1
ROUNDS = 16  # how often parked lanes time out in a row without any change of any object before that is a deadlock


def pending_of(words: Array) -> Array:
    """The pending counts of words or state tokens."""
    return np.asarray((words >> np.uint64(PENDING)) & np.uint64(COUNT_MASK))


def _expected_of(words: Array) -> Array:
    return np.asarray((words >> np.uint64(EXPECTED)) & np.uint64(COUNT_MASK))


def _tx_of(word: int) -> int:
    tx = word & TX_MASK
    return tx - (1 << PENDING) if tx >> (PENDING - 1) else tx


def _advanced(words: Array) -> Array:
    """The words with the phase complete: pending is what is expected, the phase is the next."""
    fresh = (words & np.uint64(WORD_MASK ^ (COUNT_MASK << PENDING))) | (_expected_of(words) << np.uint64(PENDING))
    return np.asarray(fresh ^ np.uint64(1 << PHASE))


def _expecting(words: Array, tx: Array) -> Array:
    """The words with more bytes expected."""
    return np.asarray((words & np.uint64(WORD_MASK ^ TX_MASK)) | ((words + tx) & np.uint64(TX_MASK)))


def _dropping(words: Array, count: Array) -> Array:
    """The words with fewer arrivals expected."""
    left = (_expected_of(words) - count) & np.uint64(COUNT_MASK)
    return np.asarray((words & np.uint64(WORD_MASK ^ (COUNT_MASK << EXPECTED))) | (left << np.uint64(EXPECTED)))


@dataclass(eq=False)
class Parked:
    """Lanes at a try_wait whose phase is not complete."""

    waiter: WaitingLanes
    unit: int
    target: Target  # takes the result


class MBarriers:
    """The mbarrier objects of a wave."""

    def __init__(self, wave: Wave, resume: Callable[[list[WaitingLanes]], None]) -> None:
        self.wave = wave
        self.words: Array = wave.arena.views[3]
        self.resume = resume
        self.reset()

    def reset(self) -> None:
        """A new wave starts."""
        self.parked: dict[int, list[Parked]] = {}
        self.phases: dict[int, int] = {}  # phases completed since init: the word counts modulo 2
        self.rounds = 0

    def init(self, units: Array, counts: Array) -> None:
        """mbarrier.init."""
        count = np.asarray(counts).astype(np.uint64) & np.uint64(COUNT_MASK)
        self.words[units] = (count << np.uint64(EXPECTED)) | (count << np.uint64(PENDING))
        for unit in units.tolist():
            self.phases.pop(unit, None)

    # Signals -------------------------------------------------------------------------------------------------------

    def arrive(self, units: Array, counts: Array, tx: Array | None = None, *, drop: bool = False) -> Array:
        """Arrive-on of each lane in turn, after its expect-tx. Returns the state tokens."""
        if len(counts) and (counts == counts[0]).all():
            states = self._arrive_alike(units, int(counts[0]), tx, drop)
            if states is not None:
                return states
        transactions = [0] * len(units) if tx is None else tx.tolist()
        lanes = zip(units.tolist(), counts.tolist(), transactions, strict=True)
        return np.array([self.signal(unit, arrivals=count, tx=more, drop=drop) for unit, count, more in lanes], np.uint64)

    def _arrive_alike(self, units: Array, count: int, tx: Array | None, drop: bool) -> Array | None:
        """As `arrive`, for the usual case, in which at most the last arrival at each object completes its phase; None otherwise."""
        unique, inverse, number = np.unique(units, return_inverse=True, return_counts=True)
        old = self.words[unique]
        total, pending = number.astype(np.uint64) * np.uint64(count), pending_of(old)
        if (total > pending).any():
            return None
        order, ends = np.argsort(inverse, kind="stable"), np.cumsum(number)
        begin, rank = np.repeat(ends - number, number), np.empty(len(units), np.uint64)
        rank[order] = np.arange(len(units)) - begin
        states, new = old[inverse] - ((rank * np.uint64(count)) << np.uint64(PENDING)), old - (total << np.uint64(PENDING))
        if tx is not None:
            sums = np.concatenate((np.zeros(1, np.uint64), np.cumsum(tx[order], dtype=np.uint64)))
            new, earlier = _expecting(new, sums[ends] - sums[ends - number]), np.empty_like(states)
            earlier[order] = sums[:-1] - sums[begin]
            states = _expecting(states, earlier)
        if drop:
            states, new = _dropping(states, rank * np.uint64(count)), _dropping(new, total)
        done = (pending == total) & ((new & np.uint64(TX_MASK)) == 0)
        self.words[unique] = np.where(done, _advanced(new), new)
        self.rounds = 0
        self._completed(unique[done].tolist())
        return np.asarray(states)

    def signal(self, unit: int, *, arrivals: int = 0, tx: int = 0, drop: bool = False) -> int:
        """Any of expect-tx (tx > 0), complete-tx (tx < 0), arrive-on (arrivals < 0: one more is pending). Returns the word before."""
        old = int(self.words[unit])
        pending = ((old >> PENDING) - arrivals) & COUNT_MASK
        expected = ((old >> EXPECTED) - (arrivals if drop else 0)) & COUNT_MASK
        total = (old + tx) & TX_MASK
        phase = old >> PHASE
        done = pending == 0 and total == 0
        if done:
            pending, phase = expected, phase ^ 1
        self.words[unit] = phase << PHASE | expected << EXPECTED | pending << PENDING | total
        self.rounds = 0
        if done:
            self._completed([unit])
        return old

    def transact(self, units: Array, tx: Array) -> None:
        """expect-tx (positive) or complete-tx (negative) of each lane."""
        for unit, more in zip(units.tolist(), tx.tolist(), strict=True):
            self.signal(unit, tx=more)

    def completion(self, unit: int, nbytes: int, times: int = 1) -> Callable[[], None]:
        """Complete-tx of `nbytes`, `times` one after the other, called by an asynchronous operation when it has landed."""

        def complete() -> None:
            for _ in range(times):
                self.signal(unit, tx=-nbytes)

        return complete

    # Waiting -------------------------------------------------------------------------------------------------------

    def complete_by_state(self, units: Array, states: Array) -> Array:
        """Whether the phase of a state token is over."""
        return np.asarray((self.words[units] ^ states) >> np.uint64(PHASE) != 0)

    def complete_by_parity(self, units: Array, parities: Array) -> Array:
        """Whether the phase of a parity is over."""
        phase = (self.words[units] >> np.uint64(PHASE)).astype(np.uint32)
        return np.asarray(((phase ^ parities) & np.uint32(1)) != 0)

    def park(self, waiter: WaitingLanes, units: Array, target: Target) -> None:
        """Lanes wait until their objects' current phases complete; `target` then gets the result."""
        for unit in np.unique(units).tolist():
            lanes = waiter.lanes[units == unit]
            part = WaitingLanes(lanes, waiter.stack, waiter.resume, waiter.turn, waiter.site, None)
            self.parked.setdefault(unit, []).append(Parked(part, unit, target))

    def awaited(self) -> frozenset[int]:
        """The objects at which lanes are parked."""
        return frozenset(self.parked)

    def time_out(self) -> bool:
        """Nothing can run: parked lanes resume with False, as they would after the time limit. Returns whether there were any.

        A lane that tries only once can then continue. Lanes that merely try again change nothing, and after some rounds without
        change they stay parked.
        """
        if not self.parked or self.rounds >= ROUNDS:
            return False
        self.rounds += 1
        everyone = [parked for there in self.parked.values() for parked in there]
        self.parked.clear()
        self._release(everyone, False)
        return True

    def _completed(self, units: list[int]) -> None:
        for unit in units:
            self.phases[unit] = self.phases.get(unit, 0) + 1
        if self.parked:
            self._release([parked for unit in units for parked in self.parked.pop(unit, ())], True)

    def _release(self, released: list[Parked], result: bool) -> None:
        """Resume lanes, those of one place together."""
        places: dict[tuple[int, int, int], list[Parked]] = {}
        for parked in released:
            waiter = parked.waiter
            parked.target.write(waiter.lanes, result)
            places.setdefault((id(waiter.stack), waiter.resume.position, waiter.turn), []).append(parked)
        for group in places.values():
            first = group[0].waiter
            lanes = np.sort(np.concatenate([parked.waiter.lanes for parked in group]))
            self.resume([WaitingLanes(lanes, first.stack, first.resume, first.turn, first.site, None)])

    def state(self, unit: int) -> BarrierState:
        """The fields of an object, for reports."""
        word, stride = int(self.words[unit]), self.wave.windows.stride
        address = (unit * 8 - self.wave.windows.shared) % stride + RESERVED_SHARED
        phase = self.phases.get(unit, word >> PHASE)
        return BarrierState(address, phase, (word >> PENDING) & COUNT_MASK, (word >> EXPECTED) & COUNT_MASK, _tx_of(word))
