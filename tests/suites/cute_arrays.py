"""Memory of the driver for programs of CuTe DSL that bring no tensors of a framework."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from cuda.bindings import driver

Array = npt.NDArray[Any]


def answer(result: Any) -> Any:
    """What a call of cuda.bindings gives, if it succeeds."""
    assert int(result[0]) == 0, result
    return result[1] if len(result) == 2 else result[1:]


def begin() -> None:
    """A context is current."""
    answer(driver.cuInit(0))
    answer(driver.cuCtxSetCurrent(answer(driver.cuDevicePrimaryCtxRetain(0))))


def on_device(array: Array) -> int:
    """The address of a copy."""
    address = answer(driver.cuMemAlloc(array.nbytes))
    answer(driver.cuMemcpyHtoD(address, array.ctypes.data, array.nbytes))
    return int(address)


def from_device(address: int, like: Array) -> Array:
    """What is there now."""
    found = np.empty_like(like)
    answer(driver.cuMemcpyDtoH(found.ctypes.data, address, found.nbytes))
    return found
