"""Functions that device code may call without defining them: vprintf, __assertfail, malloc, free (CUDA C++ Programming Guide,
"Formatted Output", "Assertion", "Dynamic Global Memory Allocation").

printf goes to standard output at once, thread by thread; its arguments lie in a buffer with the natural alignment that the
CUDA ABI gives them. Not handled: %n, wide characters.
"""

from __future__ import annotations

import re
import struct
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from consan.backends.cpu.state.faults import LaneError
from consan.backends.cpu.state.memory import GLOBAL_BASE, LOCAL_WINDOW, RANK_SHIFT, SHARED_WINDOW, WINDOW_SIZE

if TYPE_CHECKING:
    from consan.backends.cpu.decode.operands import DecodeContext

Array = npt.NDArray[Any]
Builtin = Callable[["DecodeContext", Array, list[Array]], Any]

_CONVERSION = re.compile(rb"%([-+ #0]*)(\*|\d+)?(?:\.(\*|\d*))?(hh|h|ll|l|j|z|t|L)?([diouxXeEfFgGaAcsp%])")
_LONG = frozenset((b"l", b"ll", b"j", b"z", b"t"))
_LONGEST = 1 << 16


def memory_of(context: DecodeContext, lane: int, address: int) -> npt.NDArray[np.uint8]:
    """The bytes from a generic address of a thread to the end of the memory that it may read there."""
    wave = context.wave
    for start, units, size in (
        (SHARED_WINDOW, wave.windows.shared_units, wave.shape.shared_bytes + wave.windows.reserved),
        (LOCAL_WINDOW, wave.windows.local_units, wave.shape.local_bytes),
    ):
        if start <= address < start + WINDOW_SIZE:
            begin, inside = int(units[0][lane]), address - start
            if start == SHARED_WINDOW:
                rank, inside = divmod(inside, 1 << RANK_SHIFT)
                if rank >= wave.cluster_size:
                    raise LaneError("out-of-bounds", lane, context.site, address=address, nbytes=1, space="shared", access="read")
                begin += (rank - int(wave.rank[lane])) * wave.windows.stride - wave.windows.reserved
            return wave.arena.raw[begin + inside : begin + size]
    allocation = wave.arena.find(address)
    if allocation is None:
        raise LaneError("out-of-bounds", lane, context.site, address=address, nbytes=1, space="global", access="read")
    return wave.arena.raw[address - GLOBAL_BASE : allocation.end - GLOBAL_BASE]


def string_at(context: DecodeContext, lane: int, address: int) -> bytes:
    """A C string in device memory."""
    return bytes(memory_of(context, lane, address)[:_LONGEST]).partition(b"\0")[0]


class _Arguments:
    """Reads the argument buffer of one thread."""

    def __init__(self, context: DecodeContext, lane: int, address: int) -> None:
        self.context = context
        self.lane = lane
        self.address = address

    def take(self, code: str) -> Any:
        """The next argument, of a struct code."""
        size = struct.calcsize(code)
        self.address = -(-self.address // size) * size
        data = bytes(memory_of(self.context, self.lane, self.address)[:size])
        self.address += size
        return struct.unpack("<" + code, data)[0]


def _pieces(template: bytes, arguments: _Arguments) -> Iterator[bytes]:
    position = 0
    for match in _CONVERSION.finditer(template):
        yield template[position : match.start()]
        position = match.end()
        yield b"%" if match[5] == b"%" else _convert(match, arguments)
    yield template[position:]


# Letters of a conversion: struct codes of its argument (plain, with a long modifier) and what Python's % calls it.
_INTEGERS: dict[str, tuple[str, str, str]] = {
    "d": ("i", "q", "d"), "i": ("i", "q", "d"), "u": ("I", "Q", "d"), "o": ("I", "Q", "o"), "x": ("I", "Q", "x"), "X": ("I", "Q", "X"),
}  # fmt: skip


def _convert(match: re.Match[bytes], arguments: _Arguments) -> bytes:
    flags, width, precision, length, kind = match.groups()
    options = flags.decode()
    options += str(arguments.take("i")) if width == b"*" else (width or b"").decode()
    if precision is not None:
        options += "." + (str(arguments.take("i")) if precision == b"*" else precision.decode())
    letter = kind.decode()
    if letter in _INTEGERS:
        short, long, letter = _INTEGERS[letter]
        return _formatted(options + letter, arguments.take(long if length in _LONG else short))
    if letter == "c":
        return bytes([arguments.take("i") & 0xFF])
    if letter == "p":
        return f"{arguments.take('Q'):#x}".encode()
    if letter == "s":
        return _formatted(options + "s", string_at(arguments.context, arguments.lane, arguments.take("Q")).decode(errors="replace"))
    value = float(arguments.take("d"))
    return value.hex().encode() if letter in "aA" else _formatted(options + letter, value)


def _formatted(conversion: str, value: object) -> bytes:
    return ("%" + conversion).__mod__((value,)).encode()


def _vprintf(context: DecodeContext, lanes: Array, values: list[Array]) -> Any:
    counts = []
    for lane, template, buffer in zip(lanes.tolist(), values[0].tolist(), values[1].tolist(), strict=True):
        form = string_at(context, lane, template)
        sys.stdout.write(b"".join(_pieces(form, _Arguments(context, lane, buffer))).decode(errors="replace"))
        counts.append(sum(match[5] != b"%" for match in _CONVERSION.finditer(form)))  # CUDA returns the number of arguments
    sys.stdout.flush()
    return np.array(counts, np.uint32)


def _assertfail(context: DecodeContext, lanes: Array, values: list[Array]) -> Any:
    lane = int(lanes[0])
    message, file, line, function = (int(array[0]) for array in values[:4])
    texts = [string_at(context, lane, address).decode(errors="replace") for address in (file, function, message)]
    raise LaneError("assert", lane, context.site, message=f"{texts[0]}:{line & 0xFFFFFFFF}: {texts[1]}: assertion `{texts[2]}' failed")


def _malloc(context: DecodeContext, lanes: Array, values: list[Array]) -> Any:
    arena = context.wave.arena
    return np.array([arena.alloc(size, name="malloc").address for size in values[0].tolist()], np.uint64)


def _free(context: DecodeContext, lanes: Array, values: list[Array]) -> Any:
    for address in values[0].tolist():
        if address:
            context.wave.arena.free(address)
    context.function.plan.forget_allocations()


BUILTINS: dict[str, Builtin] = {"vprintf": _vprintf, "__assertfail": _assertfail, "malloc": _malloc, "free": _free}
