"""The table of the calls that are served, and how words become parameters.

A layout has one part for each parameter of a call: `i` and `I` are 32-bit numbers, `Q` is a 64-bit one, a handle or an address, `s` the
address of a string. With `>` in front, it is the address at which a result goes, in the order of the results; NULL where the program does
not want it. Parameters behind the layout mean nothing here. The library has each name (source/calls.h).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

from consan.dataclass import dataclass

SUCCESS: Final = 0
INVALID_VALUE, OUT_OF_MEMORY, DEINITIALIZED = 1, 2, 4
INVALID_DEVICE, INVALID_CONTEXT, NO_BINARY = 101, 201, 209
INVALID_HANDLE, NOT_FOUND, NOT_READY, NOT_SUPPORTED, UNKNOWN = 400, 500, 600, 801, 999
CAPTURE_UNSUPPORTED, CAPTURE_UNMATCHED, CAPTURE_UNJOINED, CAPTURE_ISOLATION, CAPTURED_EVENT = 900, 903, 904, 905, 907
_WORD: Final = (1 << 64) - 1


class CallFailed(Exception):  # noqa: N818 - what a program is answered, not an error of consan
    """A call returns an error of the driver. `why`: a sentence for the user, where the code says too little."""

    def __init__(self, code: int, why: str = "") -> None:
        super().__init__(code, why)
        self.code, self.why = code, why


class ProgramMemory(Protocol):
    """The memory of the program that calls. `is_own`: this process is the program."""

    @property
    def is_own(self) -> bool:
        """As above."""

    def read(self, address: int, nbytes: int) -> bytes:
        """Bytes of it."""

    def write(self, address: int, data: bytes) -> None:
        """Change bytes of it."""

    def string(self, address: int) -> bytes:
        """The bytes up to a zero."""

    def lay(self, address: int, nbytes: int) -> bool:
        """Lay pages of the program there, of zeros. False: something of it lies there."""

    def run(self, number: int, function: int, data: int, shared: Sequence[tuple[int, int]]) -> tuple[bytes, bool]:
        """Let the calling thread run a function of the program.

        Gives what it has touched of shared memory (begin and end of each block), and whether it has given a lock away.
        """


@dataclass(frozen=True)
class ServedCall:
    """A call: the function that serves it, and its layout."""

    function: Callable[..., Any]
    layout: tuple[str, ...]

    def answer(self, driver: Any, memory: ProgramMemory, words: Sequence[int]) -> None:
        """Serve it. Raises CallFailed."""
        given = [_value(kind, word, memory) for kind, word in zip(self.layout, words, strict=False) if kind[0] != ">"]
        results = self.function(driver, *given)
        places = [(kind[1:], word) for kind, word in zip(self.layout, words, strict=False) if kind[0] == ">"]
        values = results if isinstance(results, tuple) else (results,)
        for (kind, place), value in zip(places, values[: len(places)], strict=True):
            if place:
                memory.write(place, struct.pack(f"<{kind}", value))


CALLS: Final[dict[str, ServedCall]] = {}


def serves(layout: str, *names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The decorated function serves these calls; it gets the driver and the parameters that are no results."""

    def keep(function: Callable[..., Any]) -> Callable[..., Any]:
        for name in names:
            CALLS[name] = ServedCall(function, tuple(layout.split()))
        return function

    return keep


def accepted(layout: str, *names: str) -> None:
    """These calls change nothing here, and succeed."""
    serves(layout, *names)(lambda driver, *given: None)


def _value(kind: str, word: int, memory: ProgramMemory) -> Any:
    if kind == "s":
        return memory.string(word).decode(errors="replace") if word else ""
    number = word & (0xFFFFFFFF if kind in "iI" else _WORD)
    return number - (1 << 32) if kind == "i" and number >> 31 else number
