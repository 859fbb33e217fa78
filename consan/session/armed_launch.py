"""Launches that repeat and that C makes (consan/backends/armed.py): what the session learns when it takes them back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

from consan.backends.armed import Armed, ArmedFunctions, ArmedSlot
from consan.backends.base import FollowedLaunch
from consan.backends.cost import COST

if TYPE_CHECKING:
    from consan.session.executing.in_flight import Repeats, Slot


class Counter(Protocol):
    """Counts launches."""

    def counts(self, launches: int) -> None:
        """So many more were made."""


class Arming(NamedTuple):
    """The facts by which C makes launches.

    `key`: the parameters of the driver's function, up to the stream; `values`: parameters of the kernel.
    `here`: the address of work in the session's context; `followed`: how the launch is noted. None: nobody follows calls.
    """

    functions: ArmedFunctions
    key: Sequence[int]
    values: Sequence[bytes]
    here: int
    followed: FollowedLaunch | None
    counter: Counter

    def armed(
        self, repeats: Repeats | None = None, slots: Sequence[Slot] = (), numbers: Sequence[int] = (), last: int = 0
    ) -> ArmedLaunch | None:
        """Arm launches. None: too many are armed.

        `repeats`: whose slots have the logs; None: the kernel records nothing. `numbers`: of the launches that use the slots; 0: none.
        """
        places = [ArmedSlot(slot.around.address, slot.slip.host_address, number) for slot, number in zip(slots, numbers, strict=True)]
        receipt = b"" if repeats is None else repeats.receipt
        armed = self.functions.arm(self.key, self.here, self.values, places, receipt, last, self.followed)
        return None if armed is None else ArmedLaunch(armed, self.counter, repeats, slots)


@dataclass(eq=False)
class ArmedLaunch:
    """Launches that C makes until they are taken back. `repeats`: whose slots they use."""

    armed: Armed
    counter: Counter
    repeats: Repeats | None = None
    slots: Sequence[Slot] = ()

    def take_back(self) -> None:
        """Count what was made, and give the slots back. The caller holds the lock of the launches in flight."""
        made = self.armed.take_back()
        if made is None:
            return
        COST.add(made.seconds)
        self.counter.counts(made.launches)
        if self.repeats is not None:
            self.repeats.taken_back(self.slots, made)
