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
from collections.abc import Callable, Hashable
from types import SimpleNamespace
from typing import Any, Final

from consan.adapters.base import Patches
from consan.backends.armed import armed_functions
from consan.backends.base import Dim3
from consan.dataclass import dataclass
from consan.session.repeated_launch import NOT_REPEATED

_POINTER, _SHAPE = ctypes.c_void_p, (ctypes.c_uint,) * 7  # grid, block, bytes of dynamic shared memory
_LOOK_UP: Final = "cuModuleGetFunction"
_LAUNCHES: Final = {"cuLaunchKernel": (_POINTER, _POINTER), "cuLaunchCooperativeKernel": (_POINTER,)}  # what follows the stream
_KEY: Final = 9  # of the parameters: the kernel's handle, grid, block, bytes of dynamic shared memory, stream
_ARMED: Final = "cuLaunchKernel"
_FAILED: Final = 999  # CUDA_ERROR_UNKNOWN


def _never(*_: Any) -> Any:
    return NOT_REPEATED


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
    key: Hashable = None  # equal for launches that are made alike


class CupyDriver:
    """The functions of ours. `launched` makes each launch and returns the driver's status.

    `repeats` makes one that was made before: by the driver's function, with these parameters. It gives `NOT_REPEATED` where it does not.
    """

    def __init__(
        self, launched: Callable[[CupyLaunch], int], repeats: Callable[[Callable[..., int], tuple[Any, ...], tuple[Any, ...]], Any] = _never
    ) -> None:
        self.kernels: dict[int, tuple[int, str]] = {}  # by their handles: the module's handle and the name
        self.launched, self.repeats = launched, repeats
        self._ours: dict[str, Any] = {}  # CuPy keeps no reference
        self._pending = threading.local()
        self._armed: Any = None  # the driver's function whose launches C may make
        self._otherwise: Any = None  # ours, which C calls

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
            real = kind((name, library))
            ours = kind(self.ours(real))
            self._ours[name] = self.in_c(real, ours) if name == _ARMED else ours
        for name, function in self._ours.items():
            setattr(library, name, function)
        return library

    def in_c(self, real: Any, ours: Any) -> Any:
        """A function of C that makes the launches that are armed, and calls ours for all others. Ours, if there is no C here."""
        functions = armed_functions()
        if functions is None:
            return ours
        self._armed, self._otherwise = real, ours
        return type(ours)(functions.replaces(real, ours))

    def is_in_c(self, real: Callable[..., int]) -> bool:
        """Whether C makes launches by this function of the driver."""
        return real is self._armed

    def _look_up(self, real: Callable[..., int]) -> Callable[..., int]:
        def look_up(found: int, module: int, name: bytes) -> int:
            status = real(found, module, name)
            if not status:
                self.kernels[_POINTER.from_address(found).value or 0] = module, name.decode()
            return status

        return look_up

    def ours(self, real: Callable[..., int]) -> Callable[..., int]:
        """A function that replaces one of the driver that launches."""

        def launch(*given: Any) -> int:
            try:
                key = given[:_KEY]
                status = self.repeats(real, key, given)
                return self.launched(_launch_of(real, given, key)) if status is NOT_REPEATED else status
            except BaseException as error:
                self._pending.error = error
                return _FAILED

        return launch


def _launch_of(real: Callable[..., int], given: tuple[Any, ...], key: Hashable) -> CupyLaunch:
    function, x, y, z, a, b, c, shared, stream, *rest = given
    params, extra, *_ = (*(each or 0 for each in rest), 0)
    return CupyLaunch(function, (x, y, z), (a, b, c), shared, stream or 0, lambda chosen: real(chosen, *given[1:]), params, extra, key)


def _raise_instead(error_class: Any, pending: threading.local) -> None:
    """Have a call of CuPy's class of errors give the exception that is pending in the thread, if one is."""

    def new(cls: Any, *args: Any) -> Any:
        error, pending.error = getattr(pending, "error", None), None
        return RuntimeError.__new__(cls, *args) if error is None else error

    error_class.__new__ = new
