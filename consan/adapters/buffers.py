"""The buffers among the arguments of a launch that a framework makes itself, so that findings name global memory by them.

An argument counts if it tells its device address and size: a tensor of torch (`data_ptr()`), a buffer of cuda.core (`handle`, `size`), or
anything with `__cuda_array_interface__` (CuPy, Numba). Views with gaps are left out, as are arrays of the host, which the framework copies.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from consan.reports.variables import Argument


def buffers(args: Iterable[Any], names: Sequence[str] = ()) -> tuple[Argument, ...]:
    """The buffers, numbered from 1 as the caller passes them; `names` are the parameters' names, if they are known."""
    found = []
    for number, value in enumerate(args, 1):
        begin, size = _extent(value)
        if begin and size:
            found.append(Argument(f"argument {number}", begin, size, names[number - 1] if number <= len(names) else ""))
    return tuple(found)


def _extent(value: Any) -> tuple[int, int]:
    """Address and bytes; zeros if it is no buffer."""
    if callable(getattr(value, "data_ptr", None)):
        return _of_tensor(value)
    interface = getattr(value, "__cuda_array_interface__", None)
    if isinstance(interface, dict):
        contiguous = interface.get("strides") is None
        size = math.prod(interface["shape"]) * int(interface["typestr"][2:])
        return (int(interface["data"][0]), size) if contiguous else (0, 0)
    return (int(value.handle), int(value.size)) if hasattr(value, "handle") and hasattr(value, "size") else (0, 0)


def _of_tensor(tensor: Any) -> tuple[int, int]:
    known = all(hasattr(tensor, name) for name in ("numel", "element_size", "is_contiguous"))
    if not known or not getattr(tensor, "is_cuda", True) or not tensor.is_contiguous():
        return 0, 0
    return int(tensor.data_ptr()), int(tensor.numel()) * int(tensor.element_size())
