"""Frameworks whose kernels consan cannot check, and says so.

cuTile (cuda.tile) compiles a bytecode of its own to machine code, never PTX. Its launches are listed, and a note names it.
JAX, CuTe DSL, tilelang, Warp and numba-cuda-mlir assemble or launch in machine code of their own: in a program that `consan run` has not
given to the interposer (consan/native/python) what they launch is listed, and a note says how it can be run.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, Final, NamedTuple, TypeAlias

from consan.adapters.seam import Seam, lacking


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

# CuTe DSL's languages, as its variables of the environment name them: the second is `cutlass.cute.experimental`.
CUTE_DSLS: Final = ("CUTE_DSL", "CUTE_EXPERIMENTAL_DSL")


def cute_keeps(folder: Path) -> dict[str, str]:
    """The variables by which CuTe DSL leaves its PTX, with the lines of the program, in a folder."""
    wanted = {"KEEP": "ptx,cubin", "DUMP_DIR": str(folder), "LINEINFO": "1", "NO_CACHE": "1"}
    return {f"{dsl}_{name}": value for dsl in CUTE_DSLS for name, value in wanted.items()}


_ELSEWHERE: Final = (
    "{} launches its kernels itself, and consan does not see them here: run a script that imports it (consan run script.py), or the"
    " interpreter by its path (consan run /path/to/python ...); or without a GPU (--device cpu)"
)


Call: TypeAlias = Callable[..., Any]


def loading_by(call: Call, original: Call, runtime: Any, path: str) -> Any:
    """Warp's `Runtime.load_dll`. Its library loads modules by `call`, which gets the library's own function first."""
    loaded = original(runtime, path)
    if hasattr(loaded, "wp_cuda_load_module"):
        loaded.wp_cuda_load_module = _Typed(loaded.wp_cuda_load_module, call)
    return loaded


class _Typed:
    """A function of ctypes within another one: its types are set on the inner one."""

    function: Any
    call: Call

    def __init__(self, function: Any, call: Call) -> None:
        vars(self).update(function=function, call=call)

    def __call__(self, *args: Any) -> Any:
        """Call the outer function with the inner one."""
        return self.call(self.function, *args)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self.function, name, value)


def _each(call: Call, original: Call, *args: Any, **kwargs: Any) -> Any:
    return call(original, *args, **kwargs)


def _backend_by(call: Call, original: Call, platform: str, *args: Any, **kwargs: Any) -> Any:
    """JAX's `_init_backend`, of a GPU or not."""
    if platform in ("cuda", "gpu"):
        return call(original, platform, *args, **kwargs)
    return original(platform, *args, **kwargs)


class Framework(NamedTuple):
    """A row: a framework, and its function that is called once a program uses the GPU by it."""

    name: str
    title: str
    distribution: str
    package: str  # the module that has the function
    function: str  # with a class before it
    within: Call = _each  # what counts as a use: gets a function to call it by, the original and its arguments


FRAMEWORKS: Final = (
    Framework("jax", "JAX", "jax", "jax._src.xla_bridge", "_init_backend", _backend_by),
    Framework("cute", "CuTe DSL", "nvidia-cutlass-dsl", "cutlass.base_dsl.jit_executor", "JitFunctionArtifacts.__post_init__"),
    Framework("tilelang", "tilelang", "tilelang", "tilelang.jit.kernel", "JITKernel.__call__"),
    Framework("warp", "Warp", "warp-lang", "warp._src.context", "Runtime.load_dll", loading_by),
    Framework("numba-cuda-mlir", "numba-cuda-mlir", "numba-cuda-mlir", "numba_cuda_mlir.numba_cuda.cudadrv.driver", "_Linker.complete"),
)


class UnseenFramework(Seam):
    """On a GPU, in the process of consan: says that the kernels of a framework are not seen, once a program uses it there."""

    covers = "programs that import it run as programs that are not Python (consan run script.py, -m, -c, pytest)"

    def __init__(self, framework: Framework) -> None:
        super().__init__()
        self.name, self.title, self.distribution, self.package, self._function, self._within = framework

    def _begin(self, module: ModuleType) -> None:
        if lacking(module, self._function):
            return self._used()
        owner, _, name = self._function.rpartition(".")
        return self._wrap(getattr(module, owner) if owner else module, name, self._within, self._calling)

    def _used(self) -> None:
        self._open.uninstrumented(f"what {self.title} launches")
        self._open.note(_ELSEWHERE.format(self.title))

    def _calling(self, original: Call, *args: Any, **kwargs: Any) -> Any:
        self._used()
        return original(*args, **kwargs)
