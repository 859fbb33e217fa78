"""Numba-CUDA and numba-cuda-mlir on a machine without a GPU: the stand-in driver loads what they compile (driver.py puts it in front).

Read against numba-cuda 0.30 and numba-cuda-mlir 0.6. Both end in `_Linker.complete`, which makes machine code of PTX or of code to be
optimised at link time; here it gives PTX, which the driver takes as well. They are asked for line information, and their caches on disk,
which hold machine code, are neither read nor written.

Of the device runtime, the barrier of the grid is there (grid_barriers.py). Not handled: kernels that are linked with other machine code,
and Numba's simulator.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from types import ModuleType
from typing import Any

from consan._errors import NotSupported
from consan.adapters.buffers import buffers
from consan.adapters.driven.grid_barriers import with_grid_barriers
from consan.adapters.numba import nothing, parameter_names, with_lines
from consan.adapters.seam import Seam, lacking
from consan.libcuda import library

_LINKER = ("_Linker.complete", "_Linker.get_linked_ptx", "ObjectCode.from_ptx")
_COVERS = "kernels on consan's stand-in driver; not those that are linked with machine code"


class NumbaStandIn(Seam):
    """Runs programs of Numba-CUDA on the virtual machine."""

    name = "numba"
    title = "Numba-CUDA"
    package = "numba.cuda.dispatcher"
    distribution = "numba-cuda"
    covers = _COVERS
    _tried = (0, 30)
    driver = "numba.cuda.cudadrv.driver"
    _needs: tuple[str, ...] = ("compile_cuda", "_Kernel.launch", "CUDACache.load_overload", "CUDACache.save_overload")

    def _begin(self, module: ModuleType) -> None:
        driver: Any = importlib.import_module(self.driver)
        if self._known(self._tried, self._tried, [*lacking(module, *self._needs), *lacking(driver, *_LINKER)]):
            self._wrap(driver._Linker, "complete", as_ptx, driver.ObjectCode)
            self._ask(module)

    def _ask(self, dispatcher: Any) -> None:
        """For lines, and no caches."""
        self._wrap(dispatcher, "compile_cuda", with_lines)
        self._wrap(dispatcher._Kernel, "launch", _named)
        self._wrap(dispatcher.CUDACache, "load_overload", nothing)
        self._wrap(dispatcher.CUDACache, "save_overload", nothing)


class NumbaMlirStandIn(NumbaStandIn):
    """Runs programs of numba-cuda-mlir on the virtual machine."""

    name = "numba-cuda-mlir"
    title = "numba-cuda-mlir"
    package = "numba_cuda_mlir.descriptor"
    distribution = "numba-cuda-mlir"
    _tried = (0, 6)
    driver = "numba_cuda_mlir.numba_cuda.cudadrv.driver"
    _needs = ("MLIRDispatcher.enable_caching",)

    def _ask(self, descriptor: Any) -> None:
        self._wrap(descriptor.MLIRDispatcher, "__init__", dispatcher_with_lines)
        self._wrap(descriptor.MLIRDispatcher, "enable_caching", nothing)


def as_ptx(code: Any, original: Callable[..., Any], linker: Any) -> Any:
    """`_Linker.complete`: PTX in place of machine code. Raises NotSupported where there is some already other than the device runtime."""
    given = linker._object_codes = [each for each in linker._object_codes if not _is_device_runtime(each)]
    kinds = {each.code_type for each in given}
    if kinds == {"ptx"} and len(given) == 1:
        linker.linker, linker._complete, linker._info_log, linker._error_log = linker, True, "", ""
        ptx = given[0].code
    elif kinds == {"ltoir"}:
        linker.lineinfo = True
        ptx = linker.get_linked_ptx()
    else:
        raise NotSupported(f"the kernel is linked with {' and '.join(sorted(kinds))}, which the virtual machine cannot do: it needs a GPU")
    return code.from_ptx(with_grid_barriers(bytes(ptx).decode()).encode(), name=given[0].name)


def _is_device_runtime(code: Any) -> bool:
    return code.code_type == "library" and "cudadevrt" in str(code.name)


def _named(original: Callable[..., Any], kernel: Any, args: Any, *others: Any, **named: Any) -> Any:
    """`_Kernel.launch`: reports name memory by the arguments."""
    with library.launching(buffers(args, parameter_names(kernel))):
        return original(kernel, args, *others, **named)


def dispatcher_with_lines(original: Callable[..., Any], dispatcher: Any, function: Any, targetoptions: Any = None) -> None:
    """`MLIRDispatcher.__init__`, with line information; builds for debugging have it."""
    options = {} if targetoptions is None else targetoptions  # the decorator goes on to change them
    options.setdefault("debug", False)
    if not options["debug"]:
        options["lineinfo"] = True
    original(dispatcher, function, options)
