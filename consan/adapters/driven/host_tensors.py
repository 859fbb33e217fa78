"""Arrays of the host as tensors of the device, for frameworks that take tensors by DLPack.

On the virtual machine a tensor of torch on "cuda" lies in memory of the host (consan/adapters/triton/torch_device.py). The first time that
a tensor is handed over, its whole storage gets device memory, and the driver copies it there and back around each operation. So views of
one storage share memory, and an object that keeps the address may be used again and again.

Not handled: addresses of the host that a program stores into device memory, storages that torch resizes, and what torch does to a tensor in
one stream while a kernel runs in another (a note says so).
"""

from __future__ import annotations

import ctypes
import importlib
import sys
import weakref
from collections.abc import Callable
from dataclasses import field
from typing import Any, Final

import numpy as np

from consan.adapters.triton.host import HostArray, HostBlock, block_of
from consan.dataclass import dataclass
from consan.libcuda.driver import StandInDriver

_CUDA: Final = 2  # DLDeviceType
_UNCOMPARED: Final = "what torch does to tensors in one stream is not compared with kernels of CuTe DSL in another"


@dataclass
class _Shared:
    """A block of the host, its device memory, and whether the host has it still."""

    block: HostBlock
    address: int
    lives: Callable[[], bool]


@dataclass
class HostTensors:
    """The arrays of the host that a driver has device memory for."""

    driver: StandInDriver
    _shared: dict[int, _Shared] = field(default_factory=dict)  # by the begin of the block

    def on_device(self, value: Any) -> Any:
        """An object that hands the array or tensor over as one of the device; other values are given back."""
        return _Exported(self, value) if isinstance(value, np.ndarray) or _is_tensor(value) else value

    def address(self, tensor: Any) -> int:
        """The address of a tensor's first element on the device; 0 if it is empty. UsageError if it is not in memory of the host."""
        host = int(tensor.data_ptr())
        return host + self.above(tensor) if host else 0

    def above(self, value: Any) -> int:
        """How far the device memory of an array or tensor is above it, in bytes. UsageError if it is not in memory of the host."""
        is_array = isinstance(value, np.ndarray)
        block = block_of(HostArray(value) if is_array else value, "a tensor")
        if block is None:
            return 0
        if self.driver.session.streams.compares:
            self.driver.session.note(_UNCOMPARED)
        known = self._shared.get(block.start)
        if known is None or not known.lives() or known.block.end < block.end:
            known = self._share(block, _life_of_array(value) if is_array else _life_of_tensor(value))
        return known.address - known.block.start

    def _share(self, block: HostBlock, lives: Callable[[], bool]) -> _Shared:
        for start, each in list(self._shared.items()):
            if not each.lives() or each.block.meets(block):
                self.driver.free(self._shared.pop(start).address)
        address = self.driver.allocate(block.end - block.start)
        self.driver.special.managed[address], self.driver.special.lives[address] = block.start, lives
        self._shared[block.start] = found = _Shared(block, address, lives)
        return found


class _Exported:
    """An array or tensor whose DLPack says that it is on the device."""

    def __init__(self, tensors: HostTensors, value: Any) -> None:
        self._tensors, self._value = tensors, value

    def __dlpack_device__(self) -> tuple[int, int]:
        return _CUDA, 0

    def __dlpack__(self, **options: Any) -> Any:
        value = self._value
        capsule = value.__dlpack__() if isinstance(value, np.ndarray) else value.detach().__dlpack__()
        pointer = ctypes.pythonapi.PyCapsule_GetPointer
        pointer.restype, pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
        words = (ctypes.c_uint64 * 2).from_address(pointer(capsule, b"dltensor"))  # a DLTensor begins: address; device's type, number
        words[1] = _CUDA
        if words[0]:
            words[0] += self._tensors.above(value)
        return capsule


def _is_tensor(value: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor) and value.device.type == "cpu"


def _life_of_array(array: Any) -> Callable[[], bool]:
    while isinstance(array.base, np.ndarray):
        array = array.base
    alive = weakref.ref(array)
    return lambda: alive() is not None


def _life_of_tensor(tensor: Any) -> Callable[[], bool]:
    weak = importlib.import_module("torch.multiprocessing.reductions").StorageWeakRef(tensor.untyped_storage())
    return lambda: not weak.expired()
