"""Launches of the program that repeat, made by C without the interpreter (source/armed.h).

A program that calls `cuLaunchKernel` by a pointer gets a function of C in its place. Python arms a launch with all that does not change.
The function makes launches that are equal, with the work around them, and looks at the receipts; all else it leaves to Python.
`Armed.take_back` says what was done: until then nobody else touches the memory of its slots.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from consan._errors import EnvironmentFailure
from consan.backends.base import FollowedLaunch
from consan.backends.call_filter import FILTER

MOST_SLOTS: Final = 32  # of armed.h
_NUMBERS: Final = 5  # numbers, and one of each slot
_WORD: Final = ctypes.c_uint64
_ADDRESS: Final = ctypes.c_void_p
_FORMS: Final = {
    "consan_launches": (None, (_ADDRESS, _ADDRESS)),
    "consan_arm": (_ADDRESS, (_ADDRESS, _ADDRESS, _ADDRESS, _WORD, _WORD)),
    "consan_arm_values": (None, (_ADDRESS, _WORD, _ADDRESS, ctypes.c_char_p)),
    "consan_arm_slot": (None, (_ADDRESS, _ADDRESS, _ADDRESS, _WORD)),
    "consan_arm_begin": (None, (_ADDRESS, ctypes.c_char_p, _WORD, _WORD)),
    "consan_take_back": (None, (_ADDRESS, _ADDRESS)),
    "consan_next_number": (_WORD, ()),
}


class ArmedSlot(NamedTuple):
    """The work around a launch, and the slip of its receipt: their addresses. `number`: of the launch that uses it; 0: none."""

    around: int
    slip: int
    number: int


@dataclass(frozen=True)
class MadeLaunches:
    """What was done. `equal`: launches with the receipt; `last`: the slot that was used last; `numbers`: of the launches in the slots."""

    launches: int
    equal: int
    seconds: float
    status: int
    last: int
    numbers: tuple[int, ...]


class Armed:
    """A launch that C makes. `retained`: what C has the addresses of."""

    def __init__(self, functions: ArmedFunctions, handle: int, slots: int, retained: object) -> None:
        self._functions, self._handle, self._slots, self._retained = functions, handle, slots, retained

    def take_back(self) -> MadeLaunches | None:
        """Take it back. None: it was taken back before."""
        handle, self._handle = self._handle, 0
        if not handle:
            return None
        words = (ctypes.c_int64 * (_NUMBERS + self._slots))()
        self._functions.call("consan_take_back", handle, ctypes.addressof(words))
        launches, equal, nanoseconds, status, last, *numbers = words
        return MadeLaunches(launches, equal, nanoseconds * 1e-9, status, last, tuple(numbers))

    def __del__(self) -> None:
        self.take_back()


class ArmedFunctions:
    """The functions of C. Raises `EnvironmentFailure` or `OSError` without C."""

    def __init__(self, library: ctypes.CDLL | None = None) -> None:
        library = library or FILTER.load()
        self._functions: dict[str, Any] = {}
        for name, (result, arguments) in _FORMS.items():
            function = library[name]  # one of its own: `restype` of an attribute is everybody's
            function.restype, function.argtypes = result, arguments
            self._functions[name] = function
        self._launch = ctypes.cast(library.consan_launch, ctypes.c_void_p).value

    def call(self, name: str, *given: Any) -> Any:
        """Call one."""
        return self._functions[name](*given)

    def replaces(self, real: Any, otherwise: Any) -> int:
        """Have C make launches by a function of the driver, and call another one for those that it does not make. Gives the address."""
        self.call("consan_launches", *(ctypes.cast(each, ctypes.c_void_p) for each in (real, otherwise)))
        return self._launch or 0

    def arm(
        self, key: Sequence[int], here: int, values: Sequence[bytes], slots: Sequence[ArmedSlot], receipt: bytes, last: int,
        followed: FollowedLaunch | None,
    ) -> Armed | None:  # fmt: skip
        """Arm launches. None: too many are armed.

        `key`: the parameters of `cuLaunchKernel` up to the stream; `here`: the address of work in its context; `values`: those of the first
        parameters of the kernel; `last`: the slot that was used last.
        """
        words, sizes, together = (_WORD * len(key))(*key), (_WORD * len(values))(*map(len, values)), b"".join(values)
        handle = self.call("consan_arm", ctypes.addressof(words), here, *(followed or (None, 0, 0)))
        if not handle:
            return None
        self.call("consan_arm_values", handle, len(values), ctypes.addressof(sizes), together)
        for slot in slots:
            self.call("consan_arm_slot", handle, *slot)
        self.call("consan_arm_begin", handle, receipt, len(receipt), last)
        return Armed(self, handle, len(slots), (sizes, together, receipt))


@functools.cache
def armed_functions() -> ArmedFunctions | None:
    """The functions of C. None: there is no C here. The process has them once: they share what is armed."""
    try:
        return ArmedFunctions()
    except (EnvironmentFailure, OSError):
        return None


def numbers() -> Callable[[], int] | None:
    """Gives a number that no launch of the process has had; None without C."""
    functions = armed_functions()
    return None if functions is None else lambda: functions.call("consan_next_number")
