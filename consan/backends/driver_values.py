"""Values as the driver takes them: bytes, pointers, parameters, and how to launch."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from consan._errors import UsageError
from consan.backends import driver as api
from consan.backends.base import Dim3, HostBytes

_Array = npt.NDArray[Any]


def host_bytes(data: bytes | _Array) -> HostBytes:
    """The bytes of an array, or of bytes."""
    if isinstance(data, np.ndarray):
        return np.ascontiguousarray(data).reshape(-1).view(np.uint8)
    return np.frombuffer(data, np.uint8)


def pointer(array: HostBytes) -> ctypes.c_void_p:
    """The address of host bytes."""
    return ctypes.c_void_p(array.ctypes.data)


def parameters(args: Sequence[bytes]) -> Any:
    """Pointers to the bytes of each parameter."""
    # c_char_p would stop at a zero byte only when read back; the driver copies the declared size from the pointer.
    buffers = [ctypes.create_string_buffer(arg, max(len(arg), 1)) for arg in args]
    array = (ctypes.c_void_p * max(len(buffers), 1))(*map(ctypes.addressof, buffers))
    array.keep_alive = buffers  # type: ignore[attr-defined]
    return array


def launch_attributes(cluster: Dim3, cooperative: bool) -> list[api.LaunchAttribute]:
    """The attributes of a launch: its cluster, and whether it is cooperative."""
    attributes = []
    if cluster != (1, 1, 1):
        attributes.append(api.LaunchAttribute(id=api.ATTRIBUTE_CLUSTER))
        attributes[-1].value.cluster[:] = cluster
    if cooperative:
        attributes.append(api.LaunchAttribute(id=api.ATTRIBUTE_COOPERATIVE))
        attributes[-1].value.cooperative = 1
    return attributes


def launch_config(grid: Dim3, block: Dim3, shared: int, stream: int, attributes: Sequence[api.LaunchAttribute]) -> api.LaunchConfig:
    """A `CUlaunchConfig`."""
    array = (api.LaunchAttribute * max(len(attributes), 1))(*attributes)
    triple = ctypes.c_uint * 3
    return api.LaunchConfig(triple(*grid), triple(*block), shared, stream, array, len(attributes))


def check_arguments(entry: str, declared: tuple[int, ...] | None, args: Sequence[bytes]) -> None:
    """Check the sizes: the driver trusts each pointer to hold as many bytes as the kernel declares."""
    given = tuple(map(len, args))
    if declared is not None and given != declared:
        raise UsageError(f"{entry} takes parameters of {_sizes(declared)} bytes, but got {_sizes(given)}")


def _sizes(sizes: Sequence[int]) -> str:
    return ", ".join(map(str, sizes)) or "no"


def parameter_sizes(driver: api.Driver, function: ctypes.c_void_p) -> tuple[int, ...] | None:
    """Bytes of each parameter of a kernel; None if the driver does not give them."""
    if not driver.has("cuFuncGetParamInfo"):
        return None
    sizes: list[int] = []
    offset, size = ctypes.c_size_t(), ctypes.c_size_t()
    arguments = (ctypes.byref(offset), ctypes.byref(size))
    # An index past the last parameter gives CUDA_ERROR_INVALID_VALUE, which shows how many there are.
    while not driver.status("cuFuncGetParamInfo", function, ctypes.c_size_t(len(sizes)), *arguments):
        sizes.append(size.value)
    return tuple(sizes)
