"""Pallas kernels of JAX (Mosaic GPU) on a machine without a GPU: JAX runs on the CPU, and its kernels on consan's stand-in driver.

Read against jax 0.12. For a kernel that a program calls, Pallas makes the module that it makes for a GPU. The compiler in JAX's CUDA
plugin (`MosaicGpuCompile`) gives host code, which encodes tensor maps, loads the kernel and launches it by the driver, and leaves the
kernel's PTX in a folder. XLA's program for the CPU has a callback in that place, which copies the arrays and calls the host code.

Not handled: kernels that XLA makes itself (with `jax.jit` they are what it makes for a CPU), Pallas by way of Triton, several devices,
Mosaic's profiler.
"""

from __future__ import annotations

import ctypes
import importlib
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, Final

import numpy as np

from consan._errors import NotSupported
from consan.adapters.base import SessionLike
from consan.adapters.seam import Seam, lacking
from consan.libcuda import library
from consan.reports.source.variables import Argument

_TRIED: Final = (0, 12)
_MOSAIC: Final = "jax.experimental.mosaic.gpu.core"
_PLUGINS: Final = ("jax_plugins.xla_cuda13", "jax_plugins.xla_cuda12")
_NEEDS: Final = ("_mosaic_gpu_lowering_rule", "mlir.custom_call", "mlir.lower_fun")
_FALLBACK, _FOR_GPU = "_mpmd_map_fallback_lowering", "_mpmd_map_mgpu_lowering"
_CALL: Final = "mosaic_gpu_v2"


class PallasStandIn(Seam):
    """Runs Pallas kernels on the virtual machine."""

    name = "pallas"
    title = "JAX Pallas"
    package = "jax"
    distribution = "jax"
    covers = (
        "kernels of Mosaic GPU on consan's stand-in driver, with JAX's CUDA plugin; what XLA compiles runs on the CPU, and is not checked"
    )

    def __init__(self) -> None:
        super().__init__()
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    def install(self, session: SessionLike) -> None:
        """JAX reads its variables when it is imported; what it dumps is made readable by a tool that may be missing, and is not needed."""
        super().install(session)
        if self.available():
            self._folder = tempfile.TemporaryDirectory(prefix="consan-pallas-")
            tool = Path(self._folder.name, "bin", "nvdisasm")
            tool.parent.mkdir()
            tool.write_text("#!/bin/sh\n")
            tool.chmod(0o755)
            self._set(JAX_PLATFORMS="cpu", MOSAIC_GPU_DUMP_TO=self._folder.name)

    def remove(self) -> None:
        """Restore everything."""
        if self._patches:
            library.leave()
        super().remove()
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    def _begin(self, jax: ModuleType) -> None:
        self._when(_MOSAIC, self._lower)

    def _lower(self, core: Any) -> None:
        """Kernels are lowered as for a GPU, and XLA's program for the CPU calls them."""
        mpmd: Any = importlib.import_module("jax._src.pallas.mpmd")
        if not self._known(_TRIED, _TRIED, [*lacking(core, *_NEEDS), *lacking(mpmd, _FALLBACK, _FOR_GPU)]):
            return
        assert self._folder is not None, "JAX is here"
        self._set(MOSAIC_GPU_CUDA_ROOT=self._folder.name)
        library.enter(self._open)
        library.keep_ptx(Path(self._folder.name))
        self._wrap(mpmd, _FALLBACK, _as_for_cuda, mpmd)
        self._wrap(core, "_mosaic_gpu_lowering_rule", _called_back, core.mlir, Path(self._folder.name))


def _as_for_cuda(mpmd: Any, original: Callable[..., Any], context: Any, *args: Any, **named: Any) -> Any:
    """`_mpmd_map_fallback_lowering`: on a CPU, kernels for Mosaic GPU run in its interpreter only."""
    return (original if named.get("interpret") else mpmd._mpmd_map_mgpu_lowering)(context, *args, **named)


def _called_back(mlir: Any, folder: Path, original: Callable[..., Any], context: Any, *args: Any, **named: Any) -> Any:
    """`_mosaic_gpu_lowering_rule`: a callback in the place of the custom call that it makes."""
    jax, made, call = importlib.import_module("jax"), dict[str, Any](), mlir.custom_call
    mlir.custom_call = lambda **given: made.update(given) or SimpleNamespace(results=())
    try:
        original(context, *args, **named)
    finally:
        mlir.custom_call = call
    if made["call_target_name"] != _CALL:
        raise NotSupported(f"Pallas calls {made['call_target_name']}, which consan does not know")
    results = [jax.ShapeDtypeStruct(each.shape, each.dtype) for each in context.avals_out]
    aliases = {out: given for given, out in made["operand_output_aliases"].items()}
    kernel = _MosaicKernel(made["backend_config"]["module"].value_bytes, folder, results, aliases)
    return mlir.lower_fun(lambda *given: jax.pure_callback(kernel, results, *given), multiple_results=True)(context, *args)


@dataclass(eq=False)
class _MosaicKernel:
    """A kernel: the bytes of its module, the folder for its PTX, its results, and which of them are arguments, by number."""

    module: bytes
    folder: Path
    results: list[Any]
    aliases: dict[int, int]
    _compiled: list[Any] = field(default_factory=list)

    def __call__(self, *args: Any) -> list[Any]:
        """Run it on copies of the arrays."""
        driver = library.driver()
        with driver.lock:
            if not driver.stack:  # XLA calls from threads of its own
                driver.stack.append(driver.primary)
            given = [np.ascontiguousarray(each) for each in args]
            places = [_allocated(driver, each.nbytes) for each in given]
            for place, each in zip(places, given, strict=True):
                driver.view(place, each.nbytes)[...] = np.frombuffer(each.tobytes(), np.uint8)
            sizes = [_nbytes(each) for each in self.results]
            made = [places[self.aliases[at]] if at in self.aliases else _allocated(driver, size) for at, size in enumerate(sizes)]
            with library.launching(_named([*given, *self.results], [*places, *made])):
                self._launch([*places, *made])
            found = [driver.view(place, size).tobytes() for place, size in zip(made, sizes, strict=True)]
            for place in {*places, *made}:
                driver.free(place)
            return [np.frombuffer(data, each.dtype).reshape(each.shape) for data, each in zip(found, self.results, strict=True)]

    def _launch(self, buffers: list[int]) -> None:
        """Call the host code: kernel, function, stream, the addresses of the buffers, device."""
        if not self._compiled:
            self._compiled = _compiled(self.module, self.folder)
        function, code, kernel = self._compiled
        pointers = (ctypes.c_void_p * len(buffers))(*buffers)
        ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 4, ctypes.c_int)(code)(kernel, function, None, pointers, 0)


def _allocated(driver: Any, nbytes: int) -> int:
    address: int = driver.allocate(max(nbytes, 1))
    return address


def _named(arrays: list[Any], places: list[int]) -> list[Argument]:
    """The buffers of a launch, for names in reports."""
    return [
        Argument(f"argument {number}", place, _nbytes(each), "", np.dtype(each.dtype).itemsize)
        for number, (place, each) in enumerate(zip(places, arrays, strict=True), 1)
    ]


def _nbytes(array: Any) -> int:
    """The size of an array, or of one that is described."""
    nbytes: int = int(np.prod(array.shape)) * np.dtype(array.dtype).itemsize
    return nbytes


def _compiled(module: bytes, folder: Path) -> list[Any]:
    """Function, host code and kernel of a module. Raises NotSupported."""
    plugin = next((found for name in _PLUGINS if (found := _imported(name)) is not None), None)
    if plugin is None:
        raise NotSupported("Pallas kernels are compiled by JAX's CUDA plugin: pip install jax-cuda13-plugin jax-cuda13-pjrt")
    for other in folder.glob("*.ptx"):  # kernels of several shapes have one name, and the driver takes PTX by it
        other.unlink()
    compiler = ctypes.CDLL(plugin._get_library_path()).MosaicGpuCompile
    compiler.restype = ctypes.POINTER(ctypes.c_void_p)
    made = compiler(ctypes.c_char_p(module), ctypes.c_int(len(module)))
    if not made:
        raise NotSupported("MosaicGpuCompile does not compile the kernel, and does not say why")
    parts: list[Any] = made[:3]
    return parts


def _imported(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        return None
