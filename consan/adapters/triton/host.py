"""Host arrays as kernel arguments: the interface that Triton needs, and their copies on the virtual machine.

Triton asks an argument for `data_ptr()` and `dtype`. torch's tensors have both; `HostArray` adds them to a NumPy array. For a launch, each
block of host memory that an argument points into (the whole storage of a tensor) is copied to the device and back. So views
of one storage share memory, and an access beyond the storage is beyond the allocation.

Not handled: tensors on other devices, pointers given as numbers (the size of their memory is unknown), and pointers that a
kernel reads from memory: those are host addresses.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
import numpy.typing as npt

from consan._errors import UsageError
from consan.dataclass import dataclass
from consan.launching.placement import Placement

Array = npt.NDArray[Any]
_ALIGNMENT = 16  # what Triton specialises pointers on: a copy keeps it


@dataclass(frozen=True)
class HostType:
    """A NumPy type as Triton reads types of torch: by its text."""

    name: str
    itemsize: int
    is_floating_point: bool

    def __str__(self) -> str:
        return self.name


class HostArray:
    """A NumPy array with the methods of a tensor that Triton and its descriptors call."""

    def __init__(self, array: Array) -> None:
        self.array = array
        self.dtype = HostType(array.dtype.name, array.dtype.itemsize, array.dtype.kind not in "biu")
        self.shape = array.shape

    def data_ptr(self) -> int:
        """Address of the first element."""
        return int(self.array.__array_interface__["data"][0])

    def stride(self, dim: int | None = None) -> Any:
        """Strides in elements."""
        strides = tuple(step // self.array.itemsize for step in self.array.strides)
        return strides if dim is None else strides[dim]

    def element_size(self) -> int:
        """Bytes of an element."""
        return self.array.itemsize

    def numel(self) -> int:
        """Number of elements."""
        return self.array.size


def wrapped(value: Any) -> Any:
    """The value, with a tensor's methods added to NumPy arrays in it."""
    if isinstance(value, np.ndarray):
        return HostArray(value)
    if isinstance(value, tuple) and any(isinstance(item, (np.ndarray, tuple)) for item in value):
        items = [wrapped(item) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    return value


@dataclass
class HostBlock:
    """Host memory from `start` on."""

    start: int
    end: int
    writeable: bool

    def meets(self, other: HostBlock) -> bool:
        """Whether the two have bytes in common."""
        return self.start < other.end and other.start < self.end

    def bytes(self) -> npt.NDArray[np.uint8]:
        """The host memory as an array."""
        array = np.ctypeslib.as_array((ctypes.c_uint8 * (self.end - self.start)).from_address(self.start))
        array.flags.writeable = self.writeable
        return array


def without_modes() -> AbstractContextManager[Any]:
    """Inside, tensors of torch are what they are: on the CPU, at addresses of the host (torch_device.py)."""
    torch: Any = sys.modules.get("torch")
    return nullcontext() if torch is None else torch._C.DisableTorchFunction()


def block_of(value: Any, label: str) -> HostBlock | None:
    """The memory that a pointer argument points into; None for a null pointer. UsageError if it is not host memory."""
    if value is None or (isinstance(value, int) and value == 0):
        return None
    if isinstance(value, int):
        raise UsageError(f"{label}: a pointer given as a number ({value:#x}); pass the array or tensor instead")
    if type(value).__name__ == "TensorWrapper":  # triton.reinterpret
        return block_of(value.base, label)
    if isinstance(value, HostArray):
        return _of_array(value.array)
    return _of_tensor(value, label)


def _of_array(array: Array) -> HostBlock | None:
    owner = array
    while isinstance(owner.base, np.ndarray):
        owner = owner.base
    start = int(owner.__array_interface__["data"][0])
    low = sum(step * (extent - 1) for step, extent in zip(owner.strides, owner.shape, strict=True) if step < 0 and extent)
    reach = sum(abs(step) * (extent - 1) for step, extent in zip(owner.strides, owner.shape, strict=True)) + owner.itemsize
    return HostBlock(start + low, start + low + reach, owner.flags.writeable) if owner.size else None


def _of_tensor(value: Any, label: str) -> HostBlock | None:
    device = getattr(getattr(value, "device", None), "type", None)
    if not hasattr(value, "untyped_storage") or device is None:
        raise UsageError(f"{label}: expected a NumPy array or a torch tensor on the CPU, got {type(value).__name__}")
    if device != "cpu":
        raise UsageError(f"{label}: a tensor on '{value.device}'; with --device cpu kernels take tensors on the CPU")
    storage = value.untyped_storage()
    return HostBlock(storage.data_ptr(), storage.data_ptr() + storage.nbytes(), True) if storage.nbytes() else None


class HostMemory:
    """The device addresses of the host memory that a launch may touch."""

    def __init__(self, placement: Placement, blocks: Iterable[HostBlock], known: Sequence[tuple[HostBlock, int]] = ()) -> None:
        """`known`: blocks that have their copies, each with its address."""
        others = [block for block in _merged(blocks) if not any(block.meets(each) for each, _ in known)]
        self._placed = [*known, *((block, placement.address(block.bytes(), _ALIGNMENT)) for block in others)]

    def address(self, host: int) -> int:
        """Device address of the copy of a host byte; 0 for a null pointer."""
        return next((device + host - block.start for block, device in self._placed if block.start <= host < block.end), 0)


def _merged(blocks: Iterable[HostBlock]) -> list[HostBlock]:
    merged: list[HostBlock] = []
    for block in sorted(blocks, key=lambda each: each.start):
        if merged and block.start < merged[-1].end:
            last = merged[-1]
            last.end, last.writeable = max(last.end, block.end), last.writeable and block.writeable
        else:
            merged.append(HostBlock(block.start, block.end, block.writeable))
    return merged
