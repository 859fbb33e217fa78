"""Python frameworks that load and launch by themselves: on a GPU their programs run with the interposer, as those that are not Python do.

The interposer needs the PTX of what the driver is handed, with the lines of the program. The process of consan sets variables, and the
interpreters of the program (consan/process/startup) replace a little of each framework when it is imported:

- CuTe DSL assembles with an nvPTXCompiler of its own: PTX and machine code of each compilation are put into a folder (`Links.kept`);
- tilelang starts nvcc, whose ptxas the interposer follows: the generated code names the lines of the program;
- Warp makes PTX, and assembles it itself where the driver is older than its toolkit: the driver gets the PTX;
- numba-cuda-mlir links PTX in place of machine code, which the driver takes as well;
- XLA starts ptxas if it is asked to; the lines of Pallas' kernels that it compiles by Triton are put into the folder.

No cache of theirs is used. Read against CuTe DSL 4.8, tilelang 0.1.15, Warp 1.19, numba-cuda-mlir 0.6, JAX 0.11 and 0.12.

Not handled: interpreters of other environments than consan's (they get the variables only).
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import json
import os
import sys
from collections.abc import Callable
from importlib import import_module, metadata
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from consan._errors import NotSupported
from consan.adapters.importhook import when_imported
from consan.adapters.numba import nothing
from consan.adapters.sources import SourceStart
from consan.adapters.without_ptx import BY_PTXAS, cute_keeps, loading_by
from consan.native.python.interpreters import followed

_XLA: Final = ("0.11.", "0.12.")  # XLA ends a program for a flag that it does not know
_XLA_FLAGS: Final = f"{BY_PTXAS} --xla_gpu_generate_line_info=true"
_ELF: Final = b"\x7fELF"


def environment(folder: Path) -> dict[str, str]:
    """The variables of a program. `folder`: where CuTe DSL leaves what it has compiled, and where caches are."""
    settings = json.dumps({"native": str(folder), "prefix": os.path.realpath(sys.prefix)})
    return {
        **followed(os.environ, settings),
        **dict.fromkeys(("TILELANG_DISABLE_CACHE", "TILELANG_AUTO_TUNING_DISABLE_CACHE"), "1"),
        **dict.fromkeys(("QUACK_CACHE_ENABLED", "FLASH_ATTENTION_CUTE_DSL_CACHE_ENABLED"), "0"),
        **cute_keeps(folder),
        "TILELANG_CACHE_DIR": str(folder / "tilelang"),
        "WARP_CACHE_PATH": str(folder / "warp"),
    }


# -- in an interpreter of the program ------------------------------------------------------------------------------------------------------


def prepare(name: str) -> None:
    """Replace a little of each framework, once it is imported. `name`: of the folder."""
    folder = Path(name)
    if _version("jax").startswith(_XLA):
        os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {_XLA_FLAGS}".strip()
    for module, replace in _REPLACED.items():
        when_imported(module, functools.partial(replace, folder))


def _version(distribution: str) -> str:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return ""


def _wrap(owner: Any, name: str, replacement: Callable[..., Any], *first: Any) -> None:
    """Replace the original by `replacement(*first, original, ...)`, for good."""
    original = getattr(owner, name, None)
    if original is None:
        print(f"consan: {owner.__name__} has no {name}: not all of its kernels may be checked", file=sys.stderr)
        return

    @functools.wraps(original)
    def wrapper(*args: Any, **named: Any) -> Any:
        return replacement(*first, original, *args, **named)

    setattr(owner, name, wrapper)


def _cute(folder: Path, executor: Any) -> None:
    _wrap(executor.JitFunctionArtifacts, "__post_init__", _keep, folder)


def _keep(folder: Path, original: Callable[..., None], artifacts: Any) -> None:
    """`JitFunctionArtifacts.__post_init__` reads what a compilation has left: the next one of that name would write over it."""
    original(artifacts)
    if isinstance(artifacts.PTX, str) and isinstance(artifacts.CUBIN, bytes):
        name = hashlib.blake2b(artifacts.CUBIN, digest_size=16).hexdigest()
        (folder / f"{name}.ptx").write_text(artifacts.PTX)
        (folder / f"{name}.cubin").write_bytes(artifacts.CUBIN)


def _cute_lines(folder: Path, wrappers: Any) -> None:
    import_module("consan.adapters.driven.cute").keep_lines(wrappers)


def _tilelang(folder: Path, tilelang: ModuleType) -> None:
    lines: Any = import_module("consan.adapters.driven.tilelang")
    lines.keep_lines(tilelang, _wrap)
    _wrap(import_module("tilelang.contrib.nvcc"), "compile_cuda", _with_lines, lines.with_each_line)


def _with_lines(with_each_line: Callable[..., str], original: Callable[..., Any], code: str, *args: Any, **named: Any) -> Any:
    """`compile_cuda` of tilelang's nvcc."""
    return original(with_each_line(code, SourceStart("generated.cu", 1)), *args, **named)


def _pallas(folder: Path, lowering: Any) -> None:
    _wrap(lowering, "lower_jaxpr_to_triton_module", _leave_places, folder, lowering.mlir.sanitize_name)


def _leave_places(folder: Path, sanitized: Callable[[str], str], original: Callable[..., Any], *args: Any, **named: Any) -> Any:
    """A lowering of Pallas: XLA drops the lines, which are left in the folder."""
    jaxpr = next((each for each in (*args, *named.values()) if hasattr(each, "debug_info")), None)
    found = None if jaxpr is None else import_module("consan.adapters.driven.jax").places_of(jaxpr)
    if jaxpr is not None and found is not None:
        (folder / f"{sanitized(jaxpr.debug_info.func_name)}.places").write_text(found.store())
    return original(*args, **named)


def _numba_mlir(folder: Path, descriptor: Any) -> None:
    numba: Any = import_module("consan.adapters.driven.numba")
    driver: Any = import_module(numba.NumbaMlirStandIn.driver)
    _wrap(driver._Linker, "complete", _with_ptx, numba.as_ptx, driver.ObjectCode)
    _wrap(descriptor.MLIRDispatcher, "__init__", numba.dispatcher_with_lines)
    _wrap(descriptor.MLIRDispatcher, "enable_caching", nothing)


def _with_ptx(as_ptx: Callable[..., Any], code: Any, original: Callable[..., Any], linker: Any) -> Any:
    """`_Linker.complete`. A kernel that is linked with machine code has no PTX: the server lists its launches."""
    try:
        return as_ptx(code, original, linker)
    except NotSupported:
        return original(linker)


def _warp_asked(folder: Path, config: Any) -> None:
    config.cuda_output, config.lineinfo, config.kernel_cache_dir = "ptx", True, str(folder / "warp")


def _warp(folder: Path, context: Any) -> None:
    _wrap(context.Runtime, "load_dll", loading_by, _load)


def _load(original: Callable[..., Any], context: int, path: bytes) -> int | None:
    """`wp_cuda_load_module` of Warp's library."""
    image = Path(os.fsdecode(path)).read_bytes()
    found: int | None = (None if image.startswith(_ELF) else _loaded(context, image)) or original(context, path)
    return found


def _loaded(context: int, image: bytes) -> int | None:
    """The driver's module of an image, in a context. None: the driver has not loaded it."""
    driver, module, before = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p(), ctypes.c_void_p()
    if driver.cuCtxPushCurrent_v2(ctypes.c_void_p(context)) != 0:
        return None
    done = driver.cuModuleLoadData(ctypes.byref(module), image)
    driver.cuCtxPopCurrent_v2(ctypes.byref(before))
    return module.value if done == 0 else None


_REPLACED: Final[dict[str, Callable[[Path, Any], None]]] = {
    "cutlass.base_dsl.jit_executor": _cute,
    "cutlass.cute.arch.nvvm_wrappers": _cute_lines,
    "jax._src.pallas.triton.lowering": _pallas,
    "numba_cuda_mlir.descriptor": _numba_mlir,
    "tilelang": _tilelang,
    "warp.config": _warp_asked,
    "warp._src.context": _warp,
}
