"""The parameters of a launch as its caller gives them to the driver: bytes for each, as the kernel declares it.

A launch has them as pointers to their values (`kernelParams`), or as one buffer in which each lies at its alignment (`extra`).
"""

from __future__ import annotations

import ctypes
import itertools
import struct
from collections.abc import Callable, Sequence
from typing import Any, Final

from consan.dataclass import dataclass

Parameters = tuple[bytes, ...]
Asked = Callable[[], Parameters | None]  # None: they are not known

# Keys of `extra` (cuda.h, CU_LAUNCH_PARAM_*).
_END: Final = 0
_BUFFER: Final = 1
_SIZE: Final = 2
_WORD: Final = ctypes.sizeof(ctypes.c_void_p)


def unknown() -> None:
    """The parameters of a launch are not known."""
    return


@dataclass(frozen=True)
class DeclaredSizes:
    """The parameters that a kernel declares: the bytes of each, and its alignment."""

    sizes: tuple[int, ...]
    alignments: tuple[int, ...] = ()

    @classmethod
    def of(cls, module: Any, entry: str) -> DeclaredSizes:
        """Those of a kernel of a module."""
        params = next(each.params for each in module.functions if each.name == entry and each.body is not None)
        return cls(tuple(each.nbytes for each in params), tuple(each.alignment for each in params))

    def given(self, pointers: int | None, extra: int | None = None) -> Parameters | None:
        """The parameters at these addresses; None if they cannot be known."""
        if not all(self.sizes):  # one is left open
            return None
        if pointers:
            return self._at_pointers(pointers)
        if extra:
            return self._in_buffer(extra)
        return None if self.sizes else ()

    def fitting(self, values: Sequence[bytes]) -> Parameters | None:
        """The values that a caller has computed; None unless they are as many and as long as the kernel declares."""
        return tuple(values) if self.sizes == tuple(map(len, values)) else None

    def divided(self, data: bytes) -> Parameters | None:
        """Values that follow each other."""
        ends = list(itertools.accumulate(self.sizes, initial=0))
        return self.fitting([data[begin:end] for begin, end in itertools.pairwise(ends)]) if len(data) == ends[-1] else None

    def packed(self, data: bytes) -> Parameters | None:
        """Values in a buffer."""
        found, at = list[bytes](), 0
        for size, alignment in zip(self.sizes, self.alignments, strict=True):
            at = -(-at // alignment) * alignment
            found.append(data[at : at + size])
            at += size
        return self.fitting(found)

    def _at_pointers(self, pointers: int) -> Parameters | None:
        count = len(self.sizes)
        places = struct.unpack(f"{count}P", ctypes.string_at(pointers, count * _WORD))
        return tuple(map(ctypes.string_at, places, self.sizes)) if all(places) else None

    def _in_buffer(self, extra: int) -> Parameters | None:
        keys, at = dict[int, int](), extra
        while (key := ctypes.c_void_p.from_address(at).value or _END) != _END:
            if key not in (_BUFFER, _SIZE):
                return None
            keys[key], at = ctypes.c_void_p.from_address(at + _WORD).value or 0, at + 2 * _WORD
        if not all(keys.get(key) for key in (_BUFFER, _SIZE)):
            return None
        return self.packed(ctypes.string_at(keys[_BUFFER], ctypes.c_size_t.from_address(keys[_SIZE]).value))
