"""The library in C. Its SONAME is the driver's: who asks the loader for libcuda.so.1 later gets the one that is loaded already."""

from __future__ import annotations

from typing import Final

from consan.toolchain.host_library import C, HostLibrary

_OPTIONS: Final = ("-std=gnu11", "-O2", "-shared", "-fPIC", "-fvisibility=hidden", "-Wl,-soname,libcuda.so.1")
_NEED: Final = "a program that calls the CUDA driver, without a GPU,"
DRIVER: Final = HostLibrary("libcuda", _NEED, C, "consan.libcuda", "libcuda.c", _OPTIONS, ("-lpthread",))
