"""The CUDA driver API through ctypes: loading, calling, errors, the structures of a launch.

Maps a `CUresult` to an exception: an error that breaks the context is `DeviceLost`, one that the user's launch caused is a
`UsageError`, lack of memory or of a usable driver is an `EnvironmentFailure`, the rest is `InternalError`. Numbers and structures
follow `cuda.h`, whose ABI NVIDIA keeps stable. Importing this module needs no driver.

Not handled: Windows, and entry points newer than CUDA 12.0 unless the caller checks with `has`.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import threading
from collections.abc import Callable, Iterator
from typing import Any, Final

from consan._errors import ConsanError, EnvironmentFailure, InternalError, UsageError
from consan.backends.base import DeviceLost

LIBRARIES: Final = ("libcuda.so.1", "libcuda.so", "/usr/lib/wsl/lib/libcuda.so.1")
NOT_READY = 600

# Errors after which every call on the context fails: the kernel (or the hardware) broke it.
_STICKY = frozenset({214, 220, 226, 700, 702, 709, 710, 714, 715, 716, 717, 718, 719, 721})
_USAGE = {
    701: "the launch needs more registers or threads than a multiprocessor has",
    720: "a cooperative launch needs every CTA resident at once, and they do not fit",
    912: "the device cannot run clusters of this size",
}
_ENVIRONMENT = {
    2: "out of device memory",
    3: "the driver is shutting down",
    34: "a stub driver library was loaded",
    100: "no CUDA device was found",
    209: "the cubin does not fit the device or its driver",
    222: "the driver is older than the PTX",
    802: "the system is not ready yet",
    803: "the driver library and the kernel driver differ",
    804: "this device cannot use the compatibility driver",
}


class LaunchAttributeValue(ctypes.Union):
    """`CUlaunchAttributeValue` with the members that consan sets or reads."""

    _fields_ = (
        ("pad", ctypes.c_char * 64),
        ("cooperative", ctypes.c_int),
        ("programmatic", ctypes.c_int),
        ("cluster", ctypes.c_uint * 3),
    )


class LaunchAttribute(ctypes.Structure):
    """`CUlaunchAttribute`."""

    _fields_ = (("id", ctypes.c_int), ("pad", ctypes.c_char * 4), ("value", LaunchAttributeValue))


class LaunchConfig(ctypes.Structure):
    """`CUlaunchConfig`."""

    _fields_ = (
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("shared", ctypes.c_uint),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.POINTER(LaunchAttribute)),
        ("count", ctypes.c_uint),
    )


# CUdevice_attribute
DEVICE_ATTRIBUTES = {
    "sm_count": 16,
    "major": 75,
    "minor": 76,
    "shared_per_sm": 81,
    "cooperative": 95,
    "shared_per_cta": 97,
    "clusters": 120,
}
# CUlaunchAttributeID
ATTRIBUTE_COOPERATIVE = 2
ATTRIBUTE_CLUSTER = 4
ATTRIBUTE_PROGRAMMATIC = 6
ATTRIBUTE_EVENTS = frozenset((7, 12))  # programmatic and launch completion events


class _Cell(threading.local):
    count: ctypes.c_int | None = None
    source: object = None


class CallsOfThreads:
    """For each thread: how many calls of a kind it is in."""

    def __init__(self) -> None:
        self._source: Callable[[], int | None] | None = None
        self._cell = _Cell()

    def count_in(self, source: Callable[[], int | None]) -> None:
        """Count where a function of C says, for the calling thread: so C knows it, too."""
        self._source = source

    @property
    def count(self) -> ctypes.c_int:
        """The number of this thread."""
        cell = self._cell
        if cell.count is None or cell.source is not self._source:
            place = None if self._source is None else self._source()
            cell.count, cell.source = ctypes.c_int() if place is None else ctypes.c_int.from_address(place), self._source
        return cell.count

    @property
    def depth(self) -> int:
        """Whether this thread is in such a call."""
        return self.count.value

    @contextlib.contextmanager
    def inside(self) -> Iterator[None]:
        """Inside the block this thread makes such calls."""
        count = self.count
        count.value += 1
        try:
            yield
        finally:
            count.value -= 1


OWN = CallsOfThreads()
"""For each thread: whether it makes calls for consan itself, which are no part of the program (callbacks.py)."""
MADE = CallsOfThreads()
"""For each thread: whether it makes a launch of a framework that a session knows of (`FrameworkModules`, `RepeatedLaunch`)."""
QUIET = CallsOfThreads()
"""Whether a thread makes one whose call nobody needs (`RepeatedLaunch`)."""


def own_calls() -> contextlib.AbstractContextManager[None]:
    """Inside the block this thread's calls are consan's own, though a framework makes them."""
    return OWN.inside()


class Driver:
    """The driver library. `call` raises for every result except success."""

    def __init__(self, library: Any) -> None:
        self._library = library

    def has(self, function: str) -> bool:
        """Whether this driver offers a function."""
        return hasattr(self._library, function)

    def function(self, name: str) -> Any:
        """A function, for C to call."""
        return getattr(self._library, name)

    def status(self, function: str, *arguments: Any) -> int:
        """Call a function and return its `CUresult`. Raises for a kernel's fatal error."""
        count = OWN.count
        count.value += 1
        try:
            code = int(getattr(self._library, function)(*arguments))
        finally:
            count.value -= 1
        if code in _STICKY:
            raise self.error(code, function)
        return code

    def call(self, function: str, *arguments: Any) -> None:
        """Call a function that must succeed."""
        code = self.status(function, *arguments)
        if code:
            raise self.error(code, function)

    def create(self, function: str, flags: int) -> ctypes.c_void_p:
        """Make a stream or an event."""
        made = ctypes.c_void_p()
        self.call(function, ctypes.byref(made), flags)
        return made

    def integer(self, function: str, *arguments: Any) -> int:
        """Call a function whose first argument receives an int."""
        value = ctypes.c_int()
        self.call(function, ctypes.byref(value), *arguments)
        return value.value

    def error(self, code: int, function: str) -> ConsanError:
        """The exception that a `CUresult` stands for."""
        name, text = self._text("cuGetErrorName", code), self._text("cuGetErrorString", code)
        message = f"{name}: {text}"
        if code in _STICKY:
            return DeviceLost(message, code=code, name=name)
        if code in _USAGE:
            return UsageError(f"{_USAGE[code]} ({message})")
        if code in _ENVIRONMENT:
            return EnvironmentFailure(f"{_ENVIRONMENT[code]} ({message})")
        return InternalError(f"{function} failed: {message}")

    def _text(self, function: str, code: int) -> str:
        text = ctypes.c_char_p()
        if getattr(self._library, function)(code, ctypes.byref(text)) or text.value is None:
            return f"CUDA error {code}"
        return text.value.decode()


def _opened(name: str) -> ctypes.CDLL | None:
    """A driver; None: there is none by this name, or it is the stand-in over the virtual machine (consan/libcuda)."""
    try:
        found = ctypes.CDLL(name)
    except OSError:
        return None
    return None if hasattr(found, "consan_serve") else found


@functools.lru_cache(maxsize=1)
def driver() -> Driver:
    """The initialised driver. Raises with one clear line if there is none."""
    found = next(filter(None, map(_opened, LIBRARIES)), None)
    if found is None:
        raise EnvironmentFailure("no NVIDIA driver was found (libcuda.so.1); use --device cpu")
    loaded = Driver(found)
    loaded.call("cuInit", 0)
    return loaded


def why_unavailable() -> str | None:
    """Why no GPU is usable, in one line; None if one is."""
    try:
        return None if driver().integer("cuDeviceGetCount") else "the driver reports no CUDA device"
    except ConsanError as error:
        return str(error)
