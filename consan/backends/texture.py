"""Texture objects of a program on a GPU, as the driver knows them (CUDA driver API, "Texture Object Management")."""

from __future__ import annotations

import ctypes
import struct
from contextlib import AbstractContextManager
from typing import Final

from consan._errors import UsageError
from consan.backends.driver import Driver
from consan.textures.description import TextureInfo, TextureMemory

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


class DriverTextures:
    """The part of a backend on a GPU that knows texture objects."""

    _driver: Driver

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
