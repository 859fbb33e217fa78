"""CuPy's calls of the CUDA driver that launch kernels, made through functions of ours.

All launches of CuPy end in `cuLaunchKernel` or `cuLaunchCooperativeKernel`, called by compiled code. CuPy (13 to 15) looks the driver's
functions up through `ctypes`, at its first call of the driver (`cupy_backends/cuda/_softlink.pyx`). For that look-up, and for it only,
the module gets a `ctypes` whose library gives functions of ours for three names. CuPy keeps them for the rest of the process.

A Python exception cannot pass through compiled code. So a launch returns a status, and CuPy raises the exception in place of its own error.

Not handled: a CuPy that has called the driver before, and one that was built with CUDA Python. Their kernels run as they are.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import threading
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, Final

from consan.adapters.base import Patches
from consan.backends.base import Dim3

_POINTER, _SHAPE = ctypes.c_void_p, (ctypes.c_uint,) * 7  # grid, block, bytes of dynamic shared memory
_LOOK_UP: Final = "cuModuleGetFunction"
_LAUNCHES: Final = {"cuLaunchKernel": (_POINTER, _POINTER), "cuLaunchCooperativeKernel": (_POINTER,)}  # what follows the stream
_FAILED: Final = 999  # CUDA_ERROR_UNKNOWN


@dataclass(frozen=True)
class CupyLaunch:
    """One launch that CuPy makes. `make`: make it, of the kernel with this handle; returns the status of the driver."""

    function: int
    grid: Dim3
    block: Dim3
    shared: int
    stream: int
    make: Callable[[int], int]
    params: int = 0  # the address of `kernelParams`
    extra: int = 0


class CupyDriver:
    """The functions of ours. `launched` makes each launch and returns the driver's status."""

    def __init__(self, launched: Callable[[CupyLaunch], int]) -> None:
        self.kernels: dict[int, tuple[int, str]] = {}  # by their handles: the module's handle and the name
        self.launched = launched
        self._ours: dict[str, Any] = {}  # CuPy keeps no reference
        self._pending = threading.local()

    def take_over(self) -> bool:
        """Have CuPy call functions of ours from now on. Returns whether it does."""
        try:
            softlink, driver = (importlib.import_module(f"cupy_backends.cuda.{name}") for name in ("_softlink", "api.driver"))
        except ImportError:
            return False
        if not self._ours and hasattr(softlink, "ctypes"):
            patches = Patches()
            patches.set(softlink, "ctypes", SimpleNamespace(**{**vars(ctypes), "CDLL": self._opened}))
            try:
                with contextlib.suppress(Exception):  # the call may fail: all functions are looked up before it
                    driver.ctxGetCurrent()
            finally:
                patches.undo()
            _raise_instead(driver.CUDADriverError, self._pending)
        return bool(self._ours)

    def _opened(self, *args: Any, **kwargs: Any) -> ctypes.CDLL:
        """The driver's library, as CuPy opens it."""
        library = ctypes.CDLL(*args, **kwargs)
        kind = ctypes.CFUNCTYPE(ctypes.c_int, _POINTER, _POINTER, ctypes.c_char_p)
        self._ours[_LOOK_UP] = kind(self._look_up(kind((_LOOK_UP, library))))
        for name, rest in _LAUNCHES.items():
            kind = ctypes.CFUNCTYPE(ctypes.c_int, _POINTER, *_SHAPE, _POINTER, *rest)
            self._ours[name] = kind(self._launch(kind((name, library))))
        for name, function in self._ours.items():
            setattr(library, name, function)
        return library

    def _look_up(self, real: Callable[..., int]) -> Callable[..., int]:
        def look_up(found: int, module: int, name: bytes) -> int:
            status = real(found, module, name)
            if not status:
                self.kernels[_POINTER.from_address(found).value or 0] = module, name.decode()
            return status

        return look_up

    def _launch(self, real: Callable[..., int]) -> Callable[..., int]:
        def launch(function: int, x: int, y: int, z: int, a: int, b: int, c: int, shared: int, stream: int | None, *rest: Any) -> int:
            def make(chosen: int) -> int:
                return real(chosen, x, y, z, a, b, c, shared, stream, *rest)

            try:
                return self.launched(CupyLaunch(function, (x, y, z), (a, b, c), shared, stream or 0, make, *(each or 0 for each in rest)))
            except BaseException as error:
                self._pending.error = error
                return _FAILED

        return launch


def _raise_instead(error_class: Any, pending: threading.local) -> None:
    """Have a call of CuPy's class of errors give the exception that is pending in the thread, if one is."""

    def new(cls: Any, *args: Any) -> Any:
        error, pending.error = getattr(pending, "error", None), None
        return RuntimeError.__new__(cls, *args) if error is None else error

    error_class.__new__ = new
