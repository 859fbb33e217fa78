"""`torch.cuda._compile_kernel` on the GPU: the kernels that it compiles are launched instrumented.

Read against torch 2.11, 2.13, 2.14 and 2.15. `_compile_kernel` looks up `_nvrtc_compile` and `_cuda_load_module` in `torch.cuda._utils`
when it runs:

- `_nvrtc_compile` runs as it is, but with line information, and the NVRTC library that it asks for gives PTX where it wants the cubin;
  the instrumented cubin is returned in its place;
- `_cuda_load_module` plants the control block in what it has loaded, and instruments PTX that a program gives to it;
- `_CudaKernel.__call__` gives each launch of a recorded kernel a log and waits for it. It lists launches of modules that are not
  instrumented (binaries, and kernels that were compiled before the session).

Kernels compiled under an earlier session are attached to the new one. Not handled: ROCm
(noted), torch's jiterator, kernels of extensions (`load_inline`) and of torch itself, which are machine code.
"""

from __future__ import annotations

import contextvars
import ctypes
import functools
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

from consan._errors import NotSupported
from consan.adapters import sources
from consan.adapters.base import Patches, PreparedLike, SessionLike, cubin_of, renewed
from consan.adapters.recorded import FrameworkModules
from consan.adapters.seam import NeedsGpu, Seam, lacking
from consan.backends.cuda import CudaModule
from consan.session.framework_launch import FrameworkLaunch
from consan.session.modules.parameters import Parameters

_OLDEST, _NEWEST = (2, 11), (2, 15)
_SEAMS = ("_nvrtc_compile", "_cuda_load_module", "_get_gpu_rtc_library", "_CudaKernel.__call__")
_EDGE = " (second.wait_stream(first))"  # how a program lets one stream wait for another
_INSTEAD = {"nvrtcGetCUBINSize": "nvrtcGetPTXSize", "nvrtcGetCUBIN": "nvrtcGetPTX"}
_LINE_INFO = ("-lineinfo", "--generate-line-info", "-G", "--device-debug")

_to_ptx: contextvars.ContextVar[bool] = contextvars.ContextVar("consan_torch_to_ptx", default=False)


class _PtxLibrary:
    """NVRTC, but a request for a cubin returns PTX."""

    def __init__(self, library: Any) -> None:
        self._library = library

    def __getattr__(self, name: str) -> Any:
        return getattr(self._library, _INSTEAD.get(name, name))


class TorchKernelAdapter(Seam):
    """Instruments the kernels that the program gives to torch as source."""

    name = "torch"
    title = "torch.cuda._compile_kernel"
    package = "torch.cuda._utils"
    distribution = "torch"
    covers = "kernels that it compiles; torch's own are machine code"

    def __init__(self) -> None:
        super().__init__()
        self._compiled: dict[bytes, PreparedLike] = {}  # by the cubin that torch is about to load
        self._attached: list[tuple[PreparedLike, int]] = []  # kept: torch unloads no module
        self._watched: set[int] = set()  # handles of modules that record for this session
        self._recorded = FrameworkModules()
        self._kernels: dict[int, dict[str, Any]] = {}  # of recorded modules, by name
        self._calls = Patches()

    def install(self, session: SessionLike) -> None:
        """Take over torch now or when it is imported."""
        super().install(session)
        self._watched = set()
        self._attached = [(self._again(prepared, module), module) for prepared, module in self._attached]

    def remove(self) -> None:
        """Restore torch. Recorded kernels that it has loaded need their calls to come here, which launch their plain forms from now on."""
        super().remove()
        if not self._recorded:
            self._calls.undo()

    def _begin(self, utils: ModuleType) -> None:
        known = self._known(_OLDEST, _NEWEST, lacking(utils, *_SEAMS))
        if hasattr(utils, "_CudaKernel") and not self._calls:
            self._calls.set(utils._CudaKernel, "__call__", self._wrapped(utils._CudaKernel.__call__, self._launch))
        if known:
            self._wrap(utils, "_get_gpu_rtc_library", _library)
            self._wrap(utils, "_nvrtc_compile", self._compile)
            self._wrap(utils, "_cuda_load_module", self._load)

    # -- replacements ------------------------------------------------------------------------------------------------------------

    def _compile(
        self,
        original: Callable[..., tuple[bytes, str]],
        kernel_source: str,
        kernel_name: str,
        compute_capability: str | None = None,
        cuda_include_dirs: Any = None,
        nvcc_options: Any = None,
        *rest: Any,
        **others: Any,
    ) -> tuple[bytes, str]:
        flags = list(nvcc_options or ())
        flags += [] if any(flag in _LINE_INFO for flag in flags) else ["-lineinfo"]
        at = sources.place(kernel_source, sources.source_folder(self._session))
        source = at.directive() + at.spread(kernel_source)
        token = _to_ptx.set(True)
        try:
            text, mangled = original(source, kernel_name, compute_capability, cuda_include_dirs, flags, *rest, **others)
        finally:
            _to_ptx.reset(token)
        return self._instrument(text, kernel_name), mangled

    def _load(self, original: Callable[..., Any], ptx: Any, *args: Any, **kwargs: Any) -> Any:
        data = ptx.encode() if isinstance(ptx, str) else bytes(ptx)
        if data not in self._compiled and not data.startswith((b"\x7fELF", b"\x50\xed\x55\xba")):
            data = self._instrument(data, "<ptx>")
        loaded = original(data if data in self._compiled else ptx, *args, **kwargs)
        if data in self._compiled:
            first = next(iter(loaded.values())).module if isinstance(loaded, dict) else loaded._module
            self._kernels[first.value] = loaded if isinstance(loaded, dict) else vars(loaded).get("_kernels", {})
            self._attach(self._compiled[data], first.value)
            self._attached.append((self._compiled[data], first.value))
        return loaded

    def _launch(self, original: Callable[..., Any], kernel: Any, *args: Any, **kwargs: Any) -> Any:
        module = kernel.module.value
        if module not in self._watched and self._session is not None:
            self._session.uninstrumented("a kernel of torch.cuda._compile_kernel")
        if module not in self._recorded:
            return original(kernel, *args, **kwargs)
        with self._recorded.launching(self._session, self._described(kernel, module, *args, **kwargs)) as other:
            own, kernel.func = kernel.func, ctypes.c_void_p(other) if other else kernel.func
            try:
                return original(kernel, *args, **kwargs)
            finally:
                kernel.func = own

    def _described(
        self,
        kernel: Any,
        module: int,
        grid: Any = (1, 1, 1),
        block: Any = (1, 1, 1),
        args: Any = None,
        shared_mem: int = 0,
        stream: Any = None,
    ) -> FrameworkLaunch:
        """A launch, by the arguments of a call of `_CudaKernel`."""
        name = next((name for name, known in self._kernels[module].items() if known.func.value == kernel.func.value), None)
        if name is None:
            raise NotSupported("torch.cuda._compile_kernel: a kernel that was not looked up by torch cannot be recorded")
        stream = sys.modules["torch.cuda"].current_stream() if stream is None else stream
        loaded, given = self._recorded.loaded(module), functools.partial(self._parameters, module, name, args or ())
        return FrameworkLaunch(name, tuple(grid), tuple(block), (1, 1, 1), int(stream.cuda_stream), loaded, shared_mem, given, _EDGE)

    def _parameters(self, module: int, entry: str, args: Sequence[Any]) -> Parameters | None:
        values = [_parameter(value) for value in args]
        known = [value for value in values if value is not None]
        return self._recorded.declared(module, entry).fitting(known) if len(known) == len(values) else None

    # -- the work ---------------------------------------------------------------------------------------------------------------

    def _instrument(self, text: bytes, name: str) -> bytes:
        prepared = self._open.instrument_for_framework(text.rstrip(b"\0").decode(), name=name)
        self._compiled[cubin_of(prepared)] = prepared
        return cubin_of(prepared)

    def _attach(self, prepared: PreparedLike, module: int) -> None:
        backend = self._open.backend
        self._open.attach(prepared, lambda name, data: backend.write(backend.symbol(CudaModule(module), name)[0], data))
        self._watched.add(module)
        if prepared.recorded is not None:
            self._recorded.add(self._open, prepared, module)

    def _again(self, prepared: PreparedLike, module: int) -> PreparedLike:
        """Give a module that an earlier session loaded to this one; it must have the same hooks."""
        found = renewed(self._open, prepared)
        if found is None:
            return prepared
        self._attach(found, module)
        return found


def _parameter(value: Any) -> bytes | None:
    """The bytes that torch passes for an argument; None if they are not known. Torch gives the address of pinned memory as it is."""
    if isinstance(value, int):
        return bytes(ctypes.c_int(value))
    if isinstance(value, float):
        return bytes(ctypes.c_double(value))
    return bytes(ctypes.c_uint64(value.data_ptr())) if getattr(value, "is_cuda", False) else None


class TorchKernelRefused(NeedsGpu):
    """With `--device cpu`: compiling a kernel raises with one sentence."""

    name = "torch"
    title = "torch.cuda._compile_kernel"
    package = "torch.cuda._utils"
    distribution = "torch"
    covers = "needs a GPU (one sentence says so)"

    def _entries(self, module: ModuleType) -> list[tuple[Any, str]]:
        return [(module, "_nvrtc_compile")] if hasattr(module, "_nvrtc_compile") else []


def _library(original: Callable[[], Any]) -> Any:
    return _PtxLibrary(original()) if _to_ptx.get() else original()
