"""Launches by cuda.core's `launch` of recorded kernels: those of its own users, and those of Numba.

cuda.core loads libraries, which have one module in each context.
"""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Callable, Sequence
from typing import Any

from consan._errors import EnvironmentFailure
from consan.adapters.base import PreparedLike, SessionLike
from consan.adapters.recorded import FrameworkModules
from consan.backends.base import Dim3
from consan.instrument.ptx.extents import three_extents
from consan.reports.source.variables import Argument
from consan.session.framework_launch import FrameworkLaunch
from consan.session.modules.in_clusters import scaled
from consan.session.modules.parameters import Parameters
from consan.session.repeated_launch import NOT_REPEATED

_ONE = (1, 1, 1)
_ARGUMENTS = "cuda.core._kernel_arg_handler"
_EDGE = " (second.wait(first.record()))"  # how a program lets one stream wait for another
Buffers = Callable[[], Sequence[Argument]]


class CoreLaunches:
    """The recorded modules of one adapter, and their launches."""

    def __init__(self) -> None:
        self._modules = FrameworkModules()
        self._of_libraries: dict[int, int] = {}  # the module of a library

    def __bool__(self) -> bool:
        return bool(self._of_libraries)

    def add(self, session: SessionLike, prepared: PreparedLike, library: Any) -> None:
        """A recorded library is loaded in the current context, or attached to another session."""
        module = int(checked(driver().cuLibraryGetModule(library)))
        self._modules.add(session, prepared, module, functools.partial(_handles, library))
        self._of_libraries[int(library)] = module

    def launch(
        self, session: SessionLike | None, new: Callable[[], Buffers], original: Callable[..., Any],
        stream: Any, config: Any, kernel: Any, *args: Any,
    ) -> Any:  # fmt: skip
        """cuda.core's `launch`. `new`: called for one that is unlike those before it, gives what reads the buffers among its arguments."""
        config = _core().LaunchConfig(**config) if isinstance(config, dict) else config

        def asked(like: FrameworkLaunch) -> Parameters | None:
            return self._parameters(like.module.handle, like.entry, args)

        given = stream, config, kernel, *args
        result = self._modules.repeat(session, _key(stream, config, kernel), asked, original, given) if self else NOT_REPEATED
        if result is not NOT_REPEATED:
            return result
        named = new()  # it may attach the module
        module = self._module_of(library_of(kernel)) if self else None
        if module is None:
            return original(*given)
        _, grid, block, cluster, shared, handle = key = _key(stream, config, kernel)
        entry, loaded = kernel_name(kernel), self._modules.loaded(module)
        read = functools.partial(self._parameters, module, entry, args)
        grid = scaled(grid, cluster)  # a grid of clusters
        launch = FrameworkLaunch(entry, grid, block, cluster, handle, loaded, shared, read, _EDGE, named)
        with self._modules.launching(session, launch, key) as other:
            return original(stream, config, _core().Kernel.from_handle(other) if other else kernel, *args)

    def _module_of(self, library: int) -> int | None:
        """The module of a library in the current context; None if it is not recorded."""
        module = self._of_libraries.get(library)
        if module is None or not self._modules.is_elsewhere(module):
            return module
        there = int(checked(driver().cuLibraryGetModule(library)))
        self._modules.also(module, there)
        return there

    def _parameters(self, module: int, entry: str, args: tuple[Any, ...]) -> Parameters | None:
        """The parameters, as cuda.core makes them from the arguments."""
        try:
            holder = _holder_of()(args)
        except (ImportError, AttributeError, TypeError):  # another version, or `launch` refuses the arguments
            return None
        return self._modules.parameters(module, entry, holder.ptr)


def _holder_of() -> Any:
    """The class of cuda.core that makes parameters of arguments."""
    module = sys.modules.get(_ARGUMENTS) or importlib.import_module(_ARGUMENTS)
    return module.ParamHolder


def _core() -> Any:
    return importlib.import_module("cuda.core")


def _key(stream: Any, config: Any, kernel: Any) -> tuple[Any, Dim3, Dim3, Dim3, int, int]:
    """Kernel, grid, block, cluster, bytes of dynamic shared memory, stream."""
    grid, block, cluster = _three(config.grid), _three(config.block), _three(config.cluster or _ONE)
    return kernel.handle, grid, block, cluster, int(config.shmem_size or 0), _handle(stream)


def _three(extents: Any) -> Dim3:
    if type(extents) is tuple and len(extents) == 3:  # as cuda.core keeps them
        return extents
    return three_extents(map(int, extents if isinstance(extents, (tuple, list)) else (extents,)))


def _handle(stream: Any) -> int:
    """The handle of a stream, or of the stream of a graph builder."""
    source = stream if hasattr(stream, "__cuda_stream__") else stream.stream
    return int(source.__cuda_stream__()[1])


def _handles(library: Any, entry: str) -> tuple[int, ...]:
    """The handle of a kernel in its library."""
    return (int(checked(driver().cuLibraryGetKernel(library, entry.encode()))),)


def driver() -> Any:
    """The driver, as cuda.core calls it."""
    return importlib.import_module("cuda.bindings.driver")


def checked(answer: Any) -> Any:
    """The result of a driver call; raises if the call failed."""
    error, *values = answer
    if int(error):
        raise EnvironmentFailure(f"the CUDA driver says {getattr(error, 'name', error)}")
    return values[0] if len(values) == 1 else values


def library_of(kernel: Any) -> int:
    """The handle of the library of a kernel."""
    return int(checked(driver().cuKernelGetLibrary(kernel.handle)))


def kernel_name(kernel: Any) -> str:
    """The name of a kernel in its module."""
    name = checked(driver().cuKernelGetName(kernel.handle))
    return name.decode() if isinstance(name, bytes) else str(name)
