"""The parameters of a launch as its caller gives them to the driver: bytes for each, as the kernel declares it.

A launch has them as pointers to their values (`kernelParams`), or as one buffer in which each lies at its alignment (`extra`).
"""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from consan.instrument.ptx import Param

Parameters = tuple[bytes, ...]
Asked = Callable[[], Parameters | None]  # None: they are not known

# Keys of `extra` (cuda.h, CU_LAUNCH_PARAM_*).
_END: Final = 0
_BUFFER: Final = 1
_SIZE: Final = 2
_WORD: Final = ctypes.sizeof(ctypes.c_void_p)


def unknown() -> None:
    """Of a launch whose parameters nobody knows."""
    return


def declared(module: Any, entry: str) -> Sequence[Param]:
    """The parameters that a kernel of a module declares."""
    return next(tuple(each.params) for each in module.functions if each.name == entry and each.body is not None)


def given(params: Sequence[Param], pointers: int | None, extra: int | None = None) -> Parameters | None:
    """The parameters at these addresses; None if they cannot be known."""
    if any(not each.nbytes for each in params):  # of a size that is left open
        return None
    if pointers:
        return _at_pointers(params, pointers)
    if extra:
        return _in_buffer(params, extra)
    return None if params else ()


def fitting(params: Sequence[Param], values: Sequence[bytes]) -> Parameters | None:
    """Values that somebody has computed; None unless they are as many and as long as the kernel declares."""
    return tuple(values) if [each.nbytes for each in params] == [len(value) for value in values] else None


def _at_pointers(params: Sequence[Param], pointers: int) -> Parameters | None:
    found = (ctypes.c_void_p * len(params)).from_address(pointers)
    return tuple(ctypes.string_at(place, each.nbytes) for place, each in zip(found, params, strict=True)) if all(found) else None


def _in_buffer(params: Sequence[Param], extra: int) -> Parameters | None:
    keys, at = dict[int, int](), extra
    while (key := ctypes.c_void_p.from_address(at).value or _END) != _END:
        if key not in (_BUFFER, _SIZE):
            return None
        keys[key], at = ctypes.c_void_p.from_address(at + _WORD).value or 0, at + 2 * _WORD
    if not all(keys.get(key) for key in (_BUFFER, _SIZE)):
        return None
    return packed(params, ctypes.string_at(keys[_BUFFER], ctypes.c_size_t.from_address(keys[_SIZE]).value))


def divided(params: Sequence[Param], data: bytes) -> Parameters | None:
    """The parameters that follow each other."""
    ends = list(itertools.accumulate((each.nbytes for each in params), initial=0))
    return fitting(params, [data[begin:end] for begin, end in itertools.pairwise(ends)]) if len(data) == ends[-1] else None


def packed(params: Sequence[Param], data: bytes) -> Parameters | None:
    """The parameters in a buffer."""
    found, at = list[bytes](), 0
    for each in params:
        at = -(-at // each.alignment) * each.alignment
        found.append(data[at : at + each.nbytes])
        at += each.nbytes
    return fitting(params, found)
