"""Memory of a GPU through the driver API: copies, pages that the device maps, texture objects, tensor maps.

The ring for findings is host memory of this process, registered with the driver: it stays readable while a kernel hangs and after a
fatal error.
"""

from __future__ import annotations

import ctypes
import mmap
import struct
from contextlib import AbstractContextManager
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from consan._errors import ConsanError, UsageError
from consan.backends.base import HostBytes
from consan.backends.cost import COST
from consan.backends.driver import Driver
from consan.backends.driver_values import host_bytes, pointer
from consan.backends.tensormap import encode_with_driver
from consan.tensormap.description import TensorMapInfo
from consan.textures.description import TextureInfo, TextureMemory

RING_FLAGS = 3  # CU_MEMHOSTREGISTER_PORTABLE and DEVICEMAP
_Array = npt.NDArray[Any]
# Pages mapped by the driver, by device address. They outlive their backend, whose end does not unregister them.
_PINNED: dict[int, mmap.mmap] = {}
_BYTES: Final = 144  # of a CUDA_RESOURCE_DESC
_LINEAR, _PITCH2D = 2, 3  # CUresourcetype; the others are arrays
_CHANNEL_BYTES: Final = {1: 1, 2: 2, 3: 4, 8: 1, 9: 2, 10: 4, 16: 2, 32: 4}  # by CUarray_format


def texture_memory(driver: Driver, handle: int) -> TextureMemory | None:
    """The bytes of a texture object that have addresses; None if the driver does not know the object, or its format is another one."""
    storage = (ctypes.c_uint8 * _BYTES)()
    if driver.status("cuTexObjectGetResourceDesc", ctypes.byref(storage), ctypes.c_uint64(handle)):
        return None
    kind, address, code, channels, width, height, pitch = struct.unpack_from("<i4xQiIQQQ", bytes(storage))
    if kind not in (_LINEAR, _PITCH2D):
        return TextureMemory(0, 0, 1)
    if code not in _CHANNEL_BYTES:
        return None
    linear = kind == _LINEAR
    return TextureMemory(address, width if linear else height * pitch, channels * _CHANNEL_BYTES[code], linear)


class CudaMemory:
    """The part of a backend on a GPU that knows its memory."""

    _driver: Driver
    _control: ctypes.c_void_p  # a stream for what may not wait for kernels

    def current(self) -> AbstractContextManager[None]:
        """The backend's context is current inside of the block."""
        raise NotImplementedError

    def make_texture(self, info: TextureInfo) -> int:
        """Not made here: a program on a GPU has texture objects of its own."""
        raise UsageError("a consan.Texture is for --device cpu; on a GPU pass the handle of a texture object, such as CuPy's `texture.ptr`")

    def free_texture(self, handle: int) -> None:
        """None was made."""
        raise NotImplementedError

    def texture_memory(self, handle: int) -> TextureMemory | None:
        """The bytes of a texture object that have addresses, as the driver describes it."""
        with self.current():
            return texture_memory(self._driver, handle)

    def alloc(self, nbytes: int) -> int:
        """Allocate device memory (at least one byte, 256-byte aligned)."""
        address = ctypes.c_uint64()
        with self.current():
            self._driver.call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(max(nbytes, 1)))
        return address.value

    def alloc_separate(self, nbytes: int) -> int:
        """The same for consan itself, which counts it: the driver chooses the place."""
        return COST.took(self, self.alloc(nbytes), nbytes)

    def free(self, address: int) -> None:
        """Free what `alloc` gave."""
        COST.gave(self, address)
        with self.current():
            self._driver.call("cuMemFree_v2", ctypes.c_uint64(address))

    def allocation(self, address: int) -> tuple[int, int] | None:
        """Begin and bytes of the allocation that an address lies in, as the driver knows it."""
        begin, nbytes = ctypes.c_uint64(), ctypes.c_size_t()
        with self.current():
            try:
                self._driver.call("cuMemGetAddressRange_v2", ctypes.byref(begin), ctypes.byref(nbytes), ctypes.c_uint64(address))
            except ConsanError:
                return None
        return begin.value, nbytes.value

    def write(self, address: int, data: bytes | _Array) -> None:
        """Copy host bytes to the device, after earlier work on the default stream."""
        source = host_bytes(data)
        if source.size:
            with self.current():
                self._driver.call("cuMemcpyHtoD_v2", ctypes.c_uint64(address), pointer(source), ctypes.c_size_t(source.size))

    def read(self, address: int, nbytes: int) -> bytes:
        """Copy device bytes to the host, after earlier work on the default stream."""
        return self._read(address, nbytes, running=False)

    def read_into(self, target: _Array, address: int, *, running: bool) -> None:
        """The same into an array. `running`: as `peek`."""
        if not target.size:
            return
        given = pointer(target), ctypes.c_uint64(address), ctypes.c_size_t(target.nbytes)
        with self.current():
            if not running:
                self._driver.call("cuMemcpyDtoH_v2", *given)
                return
            self._driver.call("cuMemcpyDtoHAsync_v2", *given, self._control)
            self._driver.call("cuStreamSynchronize", self._control)

    def _read(self, address: int, nbytes: int, *, running: bool) -> bytes:
        target = np.empty(nbytes, np.uint8)
        self.read_into(target, address, running=running)
        return target.tobytes()

    def fill(self, address: int, value: int, nbytes: int) -> None:
        """Set every byte of a range, in order with the default stream."""
        if nbytes:
            with self.current():
                self._driver.call("cuMemsetD8_v2", ctypes.c_uint64(address), ctypes.c_ubyte(value), ctypes.c_size_t(nbytes))

    def tensor_map(self, info: TensorMapInfo) -> bytes:
        """The 128 bytes of a tensor map, as the driver encodes it for this device."""
        with self.current():
            return encode_with_driver(self._driver, info)

    def poke(self, address: int, data: bytes) -> None:
        """Write to device memory while kernels run or hang, on a separate stream that waits for nothing."""
        source = host_bytes(data)
        with self.current():
            size = ctypes.c_size_t(source.size)
            self._driver.call("cuMemcpyHtoDAsync_v2", ctypes.c_uint64(address), pointer(source), size, self._control)
            self._driver.call("cuStreamSynchronize", self._control)

    def peek(self, address: int, nbytes: int) -> bytes:
        """Read device memory while kernels run or hang."""
        return self._read(address, nbytes, running=True)

    def host_ring(self, nbytes: int) -> tuple[int, HostBytes]:
        """Zeroed pages of this process that the device maps: (device address, view)."""
        pages = mmap.mmap(-1, -(-nbytes // mmap.PAGESIZE) * mmap.PAGESIZE)
        view = np.frombuffer(pages, np.uint8)
        address = ctypes.c_uint64()
        with self.current():
            self._driver.call("cuMemHostRegister_v2", pointer(view), ctypes.c_size_t(view.size), RING_FLAGS)
            self._driver.call("cuMemHostGetDevicePointer_v2", ctypes.byref(address), pointer(view), 0)
        _PINNED[address.value] = pages
        return address.value, view[:nbytes]

    def free_ring(self, address: int) -> None:
        """Release a ring's pages. They stay mapped until the driver has dropped them, so that no new memory gets their addresses."""
        pages = _PINNED[address]
        with self.current():
            self._driver.call("cuMemHostUnregister", pointer(np.frombuffer(pages, np.uint8)))
        del _PINNED[address]
