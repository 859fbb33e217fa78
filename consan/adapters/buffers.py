"""The buffers among the arguments of a launch that a framework makes itself, so that findings name global memory by them.

An argument counts if it tells its device address and size: a tensor of torch (`data_ptr()`), a buffer of cuda.core (`handle`, `size`), or
anything with `__cuda_array_interface__` (CuPy, Numba). Views with gaps are left out, as are arrays of the host, which the framework copies.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from consan.reports.source.variables import Argument

_NO_BUFFER = 0, 0, 0


def buffers(args: Iterable[Any] = (), names: Sequence[str] = ()) -> tuple[Argument, ...]:
    """The buffers, numbered from 1 as the caller passes them; `names` are the parameters' names, if they are known."""
    found = []
    for number, value in enumerate(args, 1):
        begin, size, element = _extent(value)
        if begin and size:
            name = names[number - 1] if number <= len(names) else ""
            found.append(Argument(f"argument {number}", begin, size, name, element))
    return tuple(found)


def _extent(value: Any) -> tuple[int, int, int]:
    """Address, bytes, and bytes of an element; zeros if it is no buffer."""
    if callable(getattr(value, "data_ptr", None)):
        return _of_tensor(value)
    interface = _interface(value)
    if isinstance(interface, dict):
        element = int(interface["typestr"][2:])
        size = math.prod(interface["shape"]) * element
        return (int(interface["data"][0]), size, element) if _contiguous(interface, element) else _NO_BUFFER
    return (int(value.handle), int(value.size), 1) if hasattr(value, "handle") and hasattr(value, "size") else _NO_BUFFER


def _interface(value: Any) -> Any:
    """The description that an array gives. The property may fail, as of Warp's arrays of structs: the launch itself does not need it."""
    try:
        return getattr(value, "__cuda_array_interface__", None)
    except Exception:
        return None


def _contiguous(interface: dict[str, Any], element: int) -> bool:
    """Whether an array has no gaps, by rows. Without `strides` it has none."""
    strides, step = interface.get("strides"), element
    for size, stride in zip(reversed(interface["shape"]), reversed(strides or ()), strict=False):
        if size > 1 and stride != step:
            return False
        step *= size
    return True


def _of_tensor(tensor: Any) -> tuple[int, int, int]:
    known = all(hasattr(tensor, name) for name in ("numel", "element_size", "is_contiguous"))
    if not known or not getattr(tensor, "is_cuda", True) or not tensor.is_contiguous():
        return _NO_BUFFER
    element = int(tensor.element_size())
    return int(tensor.data_ptr()), int(tensor.numel()) * element, element
