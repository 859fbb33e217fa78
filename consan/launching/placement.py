"""Places the arguments of a launch: the one way from a value to the bytes of its parameter."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from consan.backends.base import Backend
from consan.tensormap.argument import TensorMap

Array = npt.NDArray[Any]


class Placement:
    """Copies of host arrays on a device. An array that is given twice has one copy."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._copies: list[tuple[int, Array]] = []

    def parameter(self, value: bytes | Array | TensorMap) -> bytes:
        """The bytes of a parameter: a value unchanged, an array as the address of its copy, a tensor map of such a copy."""
        if isinstance(value, bytes):
            return value
        if isinstance(value, TensorMap):
            return self._backend.tensor_map(value.info if value.on_device else value.at(self.address(value.array)))
        return self.address(value).to_bytes(8, "little")

    def address(self, array: Array) -> int:
        """Where the array's copy is; it is made on the first request."""
        for address, other in self._copies:
            if other is array:
                return address
        address = self._backend.alloc(array.nbytes)
        self._copies.append((address, array))
        self._backend.write(address, np.ascontiguousarray(array))
        return address

    def read(self, array: Array) -> Array:
        """What a kernel has made of the array."""
        return np.frombuffer(self._backend.read(self.address(array), array.nbytes), array.dtype).reshape(array.shape)

    def refresh(self) -> None:
        """Give all copies the contents of their arrays."""
        for address, array in self._copies:
            self._backend.write(address, np.ascontiguousarray(array))

    def copy_back(self) -> None:
        """Give the arrays what a kernel has made of them, but for those that must not be written."""
        for _, array in self._copies:
            if array.flags.writeable:
                array[...] = self.read(array)

    def free(self) -> None:
        """Free the copies."""
        for address, _ in self._copies:
            self._backend.free(address)
        self._copies.clear()
