"""JAX on a machine without a GPU: its CUDA plugin runs on consan's stand-in driver, and takes it for a GPU.

Read against jax 0.11.2 and 0.12. XLA compiles each kernel to PTX: those that `jax.jit` makes, and those of Pallas, by way of Mosaic GPU or
of Triton. It has `ptxas` assemble them, as a process, in whose place is a script that gives the PTX back; the driver loads that. Mosaic
assembles by itself, and leaves the PTX in a folder; its kernels get names of their own, by which the driver finds it. The plugin holds a
copy of the CUDA runtime, which is led to consan's (libcuda/source/static_copy.h).

Not handled: what XLA hands to cuBLAS, cuDNN and other libraries (those calls fail), several devices, arrays that outlive a session.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import importlib.util
import itertools
import os
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from consan.adapters.base import SessionLike
from consan.adapters.driven.seam import DrivenSeam
from consan.adapters.seam import lacking
from consan.adapters.without_ptx import BY_PTXAS
from consan.libcuda import library
from consan.libcuda.build import MANAGEMENT, RUNTIMES
from consan.libcuda.texts.places import KernelPlaces

_TRIED: Final = (0, 11), (0, 12)
_PLUGINS: Final = ("jax_plugins.xla_cuda13", "jax_plugins.xla_cuda12")
_FLAGS: Final = (
    f"{BY_PTXAS} --xla_gpu_generate_line_info=true"
    " --xla_gpu_autotune_level=0 --xla_gpu_enable_command_buffer="  # timings mean nothing; no graphs
    " --xla_gpu_triton_gemm_any=true --xla_gpu_cublas_fallback=false"  # kernels of its own, where it has some
    " --xla_gpu_experimental_autotune_backends=-CUBLASLT,-CUBLASLT_FISSION,-CUDNN"  # where cuBLAS is missing, XLA crashes
)
_SINCE: Final = {"0.11.": "", "0.12.": " --xla_gpu_experimental_vmm_disabled=true"}  # by series: memory by cuMemAlloc
_MOSAIC: Final = "jax.experimental.mosaic.gpu.core"
_LOWERINGS: Final = {
    "jax._src.pallas.mosaic_gpu.lowering": "lower_jaxpr_to_module",
    "jax._src.pallas.triton.lowering": "lower_jaxpr_to_triton_module",
}
_FUNCTION: Final = re.compile(r" at (.+):(\d+)$")
_ACCESSES: Final = {
    **dict.fromkeys(("get", "masked_load"), ("loads",)),
    **dict.fromkeys(("swap", "masked_swap"), ("stores",)),
    "addupdate": ("loads", "stores"),
    "atomic_rmw": ("atomics",),
    "atomic_cas": ("compares",),
}
_ASSEMBLER: Final = """#!/bin/sh
# In the place of ptxas: INPUT -o OUTPUT options. JAX 0.11 asks for the newest PTX by a version that there is not.
case "$1" in
--input-as-string) echo "ptxas fatal : Unsupported .version 99.99; current version is '9.0'" >&2; exit 255 ;;
--version) echo "Cuda compilation tools, release 13.0, V13.0.88" ;;
*) { cat "$1"; printf '\\0'; } > "$3" ;;
esac
"""


class JaxStandIn(DrivenSeam):
    """Runs programs of JAX on the virtual machine."""

    name = "jax"
    title = "JAX"
    package = "jax"
    distribution = "jax"
    covers = "each kernel of XLA and Pallas on consan's stand-in driver, with JAX's CUDA plugin; not cuBLAS, cuDNN and other libraries"

    def install(self, session: SessionLike) -> None:
        """JAX reads its variables when it is imported. XLA ends the program for a flag that it does not know."""
        super().install(session)
        flags = next((added for series, added in _SINCE.items() if (self.version() or "").startswith(series)), None)
        if flags is not None:
            folder = self._own_folder() / "bin"
            folder.mkdir()
            for tool, text in (("ptxas", _ASSEMBLER), ("nvlink", _ASSEMBLER), ("nvdisasm", "#!/bin/sh\n")):
                (folder / tool).write_text(text)
                (folder / tool).chmod(0o755)
            self._set(
                PATH=os.pathsep.join((str(folder), os.environ.get("PATH", os.defpath))),
                MOSAIC_GPU_DUMP_TO=str(self._own_folder()),
                XLA_FLAGS=f"{os.environ.get('XLA_FLAGS', '')} {_FLAGS}{flags}",
                XLA_PYTHON_CLIENT_ALLOCATOR="platform",  # an allocation for each array
                JAX_SKIP_CUDA_CONSTRAINTS_CHECK="1",
                TF_CPP_MIN_LOG_LEVEL=os.environ.get("TF_CPP_MIN_LOG_LEVEL", "3"),  # errors are exceptions, too
            )

    def remove(self) -> None:
        """Restore everything. XLA's client goes with the driver that it knows."""
        bridge = sys.modules.get("jax._src.xla_bridge")
        if self._entered and bridge is not None and bridge.backends_are_initialized():
            with contextlib.suppress(Exception):  # the program may be in any state
                sys.modules["jax"].clear_caches()
                bridge._clear_backends()
        super().remove()

    def _begin(self, jax: ModuleType) -> None:
        hardware: Any = importlib.import_module("jax._src.hardware_utils")
        bridge: Any = importlib.import_module("jax._src.xla_bridge")
        missing = [*lacking(hardware, "has_visible_nvidia_gpu"), *lacking(bridge, "_clear_backends", "backends_are_initialized")]
        if not self._known(*_TRIED, missing):
            return
        if self._folder is None:
            self._open.note(f"JAX {self.version()} may not know the flags that consan gives to 0.11 and 0.12: its kernels are not checked")
            return
        if not any(_installed(name) for name in _PLUGINS):
            self._open.note(
                "JAX has no CUDA plugin here: what it compiles are kernels of the CPU, which are not checked"
                " (pip install jax-cuda13-plugin jax-cuda13-pjrt)"
            )
            return
        self._enter()
        library.keep_ptx(self._own_folder())
        MANAGEMENT.load()
        self._wrap(hardware, "has_visible_nvidia_gpu", _yes)
        for plugin in _PLUGINS:
            self._when(plugin, _without_runtime)
        self._when(_MOSAIC, self._mosaic)
        for module, function in _LOWERINGS.items():
            self._when(module, functools.partial(self._names, function))

    def _mosaic(self, core: Any) -> None:
        """Its import sets the variable that says where tools are; it makes what it leaves readable by one."""
        self._set(MOSAIC_GPU_CUDA_ROOT=str(self._own_folder()))
        self._wrap(core, "_lower_as_gpu_kernel", _with_own_name, set[str]())

    def _names(self, function: str, lowering: Any) -> None:
        self._wrap(lowering, function, _named, lowering.mlir.sanitize_name)


def _yes(original: Callable[..., bool]) -> bool:
    return True


def _installed(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ImportError:
        return False


def _without_runtime(plugin: Any) -> None:
    """The plugin's copies of the CUDA runtime are led to consan's. Its extensions have their own: callbacks of the host copy by one."""
    extensions = importlib.util.find_spec(f"jax_{plugin.__name__.rpartition('_')[2]}_plugin")
    folders = (extensions.submodule_search_locations or ()) if extensions is not None else ()
    for path in (str(plugin._get_library_path()), *(str(each) for folder in folders for each in Path(folder).glob("*.so"))):
        with contextlib.suppress(OSError):  # one that wants a library that is not here
            ctypes.CDLL(path)
            RUNTIMES["libcudart.so.13"].load().consan_take_over(path.encode())


def _with_own_name(taken: set[str], original: Callable[..., Any], *args: Any, kernel_name: str, **named: Any) -> Any:
    """`_lower_as_gpu_kernel`: kernels of several shapes have one name, and the driver takes PTX by it."""
    names_to_come = itertools.chain([kernel_name], (f"{kernel_name}_{number}" for number in itertools.count(1)))
    name = next(each for each in names_to_come if each not in taken)
    taken.add(name)
    names = library.driver().parameter_names
    names[f"{name}_mosaic_gpu_kernel"] = names.get(kernel_name, ())
    return original(*args, kernel_name=name, **named)


def _named(sanitized: Callable[[str], str], original: Callable[..., Any], *args: Any, **named: Any) -> Any:
    """A lowering of Pallas: reports name memory by the references that the kernel's function takes."""
    jaxpr = next(each for each in (*args, *named.values()) if hasattr(each, "debug_info"))
    known = jaxpr.debug_info
    name = sanitized(known.func_name)
    library.driver().parameter_names[name] = reference_names(known.arg_names or ())
    if found := places_of(jaxpr):
        library.driver().kept_ptx.places[name] = found
    return original(*args, **named)


def reference_names(names: Sequence[str]) -> tuple[str, ...]:
    """Those of the references of a Pallas kernel. `plgpu.kernel` calls them `refs[0]` and so on, which no program knows: none, then."""
    return tuple(names) if all(map(str.isidentifier, names)) else ()


def places_of(jaxpr: Any) -> KernelPlaces | None:
    """The place of the function of a Pallas kernel, and the lines that access memory. Lines of other files do not count."""
    at = _FUNCTION.search(jaxpr.debug_info.func_src_info or "")
    if at is None:
        return None
    frames: Any = importlib.import_module("jax._src.source_info_util")
    lines: dict[str, set[int]] = defaultdict(set)
    for equation in _equations(jaxpr):
        frame = frames.user_frame(equation.source_info.traceback)
        for kind in _ACCESSES.get(equation.primitive.name, ()):
            lines[kind].add(frame.start_line if frame is not None and frame.file_name == at[1] else 0)
    return KernelPlaces(at[1], int(at[2]), {kind: frozenset(found) for kind, found in lines.items() if 0 not in found})


def _equations(jaxpr: Any) -> Iterator[Any]:
    core: Any = importlib.import_module("jax._src.core")
    yield from jaxpr.eqns
    for inner in core.subjaxprs(jaxpr):
        yield from _equations(inner)
