"""Frameworks whose kernels consan cannot check, and says so.

cuTile (cuda.tile) compiles a bytecode of its own to machine code, never PTX. Its launches are listed, and a note names it.
JAX, CuTe DSL, tilelang, Warp and numba-cuda-mlir assemble or launch in machine code of their own: in a program that `consan run` has not
given to the interposer (consan/native/python) what they launch is listed, and a note says how it can be run.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any, Final

from consan.adapters.seam import Seam


class CuTileAdapter(Seam):
    """Lists the kernels of cuTile."""

    name = "cutile"
    title = "cuTile"
    package = "cuda.tile"
    distribution = "cuda-tile"
    covers = "it makes no PTX: its kernels are listed, not checked"

    def _begin(self, module: ModuleType) -> None:
        self._open.note("cuTile makes no PTX, but machine code of a bytecode of its own: its kernels run as they are, and are not checked")
        if hasattr(module, "launch"):
            self._wrap(module, "launch", self._launch)

    def _launch(self, original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        kernel = args[2] if len(args) > 2 else kwargs.get("kernel")
        function = getattr(kernel, "_pyfunc", kernel)
        self._open.uninstrumented(f"{getattr(function, '__name__', 'a kernel')} (cuTile)")
        return original(*args, **kwargs)


# Flags with which XLA assembles by the process `ptxas`, and in no other way.
BY_PTXAS: Final = "--xla_gpu_enable_libnvptxcompiler=false --xla_gpu_enable_libnvjitlink=false"


_ELSEWHERE: Final = (
    "{} launches its kernels itself, and consan does not see them here: run a script that imports it (consan run script.py), or the"
    " interpreter by its path (consan run /path/to/python ...); or without a GPU (--device cpu)"
)


class UnseenFramework(Seam):
    """On a GPU, in the process of consan: says that the kernels of a framework are not seen, once a program uses it there."""

    @property
    def covers(self) -> str:  # type: ignore[override]
        """For `consan doctor`."""
        return "programs that import it run as programs that are not Python (consan run script.py, -m, -c, pytest)"

    def _used(self) -> None:
        self._open.uninstrumented(f"what {self.title} launches")
        self._open.note(_ELSEWHERE.format(self.title))

    def _calling(self, original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        self._used()
        return original(*args, **kwargs)


class JaxUnseen(UnseenFramework):
    """JAX starts its backend."""

    name = "jax"
    title = "JAX"
    package = "jax._src.xla_bridge"
    distribution = "jax"

    def _begin(self, module: ModuleType) -> None:
        if hasattr(module, "_init_backend"):
            self._wrap(module, "_init_backend", self._started)

    def _started(self, original: Callable[..., Any], platform: str, *args: Any, **kwargs: Any) -> Any:
        if platform in ("cuda", "gpu"):
            self._used()
        return original(platform, *args, **kwargs)


class WarpUnseen(UnseenFramework):
    """Warp loads a module of the GPU."""

    name = "warp"
    title = "Warp"
    package = "warp._src.context"
    distribution = "warp-lang"

    def _begin(self, module: ModuleType) -> None:
        self._wrap(module.Runtime, "load_dll", loading_by, self._calling)


def loading_by(call: Callable[..., Any], original: Callable[..., Any], runtime: Any, path: str) -> Any:
    """Warp's `Runtime.load_dll`. Its library loads modules by `call`, which gets the library's own function first."""
    loaded = original(runtime, path)
    if hasattr(loaded, "wp_cuda_load_module"):
        loaded.wp_cuda_load_module = _Typed(loaded.wp_cuda_load_module, call)
    return loaded


class _Typed:
    """A function of ctypes within another one: its types are set on the inner one."""

    function: Any
    call: Callable[..., Any]

    def __init__(self, function: Any, call: Callable[..., Any]) -> None:
        vars(self).update(function=function, call=call)

    def __call__(self, *args: Any) -> Any:
        """Call the outer function with the inner one."""
        return self.call(self.function, *args)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self.function, name, value)


class NumbaMlirUnseen(UnseenFramework):
    """numba-cuda-mlir links a kernel."""

    name = "numba-cuda-mlir"
    title = "numba-cuda-mlir"
    package = "numba_cuda_mlir.numba_cuda.cudadrv.driver"
    distribution = "numba-cuda-mlir"

    def _begin(self, module: ModuleType) -> None:
        self._wrap(module._Linker, "complete", self._calling)


class CuteUnseen(UnseenFramework):
    """CuTe DSL has compiled a kernel."""

    name = "cute"
    title = "CuTe DSL"
    package = "cutlass.base_dsl.jit_executor"
    distribution = "nvidia-cutlass-dsl"

    def _begin(self, module: ModuleType) -> None:
        self._wrap(module.JitFunctionArtifacts, "__post_init__", self._calling)


class TilelangUnseen(UnseenFramework):
    """tilelang has made a kernel."""

    name = "tilelang"
    title = "tilelang"
    package = "tilelang.jit.kernel"
    distribution = "tilelang"

    def _begin(self, module: ModuleType) -> None:
        self._wrap(module.JITKernel, "__call__", self._calling)
