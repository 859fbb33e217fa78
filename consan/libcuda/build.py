"""The libraries in C. Their SONAMEs are NVIDIA's: who asks the loader for libcuda.so.1 later gets the one that is loaded already."""

from __future__ import annotations

from typing import Final

from consan.toolchain.host_library import C, HostLibrary

_OPTIONS: Final = ("-std=gnu11", "-O2", "-shared", "-fPIC", "-fvisibility=hidden")
_NEED: Final = "a program that calls the CUDA driver, without a GPU,"
_SOURCES: Final = "consan.libcuda"


def _runtime(major: int) -> HostLibrary:
    """The CUDA runtime: programs ask for its calls by their version, which is its SONAME."""
    name, versions = f"libcudart.so.{major}", f"cudart_{major}.map"
    options = (*_OPTIONS, f"-Wl,-soname,{name}", f"-Wl,--version-script={versions}")
    made = {versions: f"{name} {{ global: cuda*; __cuda*; consan_*; local: *; }};\n"}
    return HostLibrary(f"libcudart-{major}", _NEED, C, _SOURCES, "cudart.c", options, ("-ldl",), lambda: made)


DRIVER: Final = HostLibrary("libcuda", _NEED, C, _SOURCES, "libcuda.c", (*_OPTIONS, "-Wl,-soname,libcuda.so.1"), ("-lpthread", "-ldl"))
RUNTIMES: Final = {f"libcudart.so.{major}": _runtime(major) for major in (12, 13)}
MANAGEMENT: Final = HostLibrary("libnvidia-ml", _NEED, C, _SOURCES, "nvml.c", (*_OPTIONS, "-Wl,-soname,libnvidia-ml.so.1"))
