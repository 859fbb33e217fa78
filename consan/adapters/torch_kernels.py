"""`torch.cuda._compile_kernel` on the GPU: the kernels that it compiles are launched instrumented.

Read against torch 2.11 and 2.13. `_compile_kernel` looks up `_nvrtc_compile` and `_cuda_load_module` in `torch.cuda._utils` when it runs:

- `_nvrtc_compile` runs as it is, but with line information, and the NVRTC library that it asks for gives PTX where it wants the cubin;
  the instrumented cubin is returned in its place;
- `_cuda_load_module` plants the control block in what it has loaded, and instruments PTX that a program gives to it;
- `_CudaKernel.__call__` lists launches of modules that are not instrumented (binaries, and kernels that were compiled before the session).

Kernels compiled under an earlier session are attached to the new one. Not handled: ROCm (noted), torch's jiterator, kernels of
extensions (`load_inline`) and of torch itself, which are machine code, and a second device.
"""

from __future__ import annotations

import contextvars
from collections.abc import Callable
from types import ModuleType
from typing import Any

from consan.adapters import sources
from consan.adapters.base import PreparedLike, SessionLike, cubin_of, renewed
from consan.adapters.seam import NeedsGpu, Seam, lacking
from consan.backends.cuda import CudaModule

_OLDEST, _NEWEST = (2, 11), (2, 13)
_SEAMS = ("_nvrtc_compile", "_cuda_load_module", "_get_gpu_rtc_library", "_CudaKernel.__call__")
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

    def install(self, session: SessionLike) -> None:
        """Take over torch now or when it is imported."""
        super().install(session)
        self._watched = set()
        self._attached = [(self._again(prepared, module), module) for prepared, module in self._attached]

    def _begin(self, utils: ModuleType) -> None:
        known = self._known(_OLDEST, _NEWEST, lacking(utils, *_SEAMS))
        if hasattr(utils, "_CudaKernel"):
            self._wrap(utils._CudaKernel, "__call__", self._launch)
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
        source = sources.place(kernel_source, sources.source_folder(self._session)).directive() + kernel_source
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
            self._attach(self._compiled[data], first.value)
            self._attached.append((self._compiled[data], first.value))
        return loaded

    def _launch(self, original: Callable[..., Any], kernel: Any, *args: Any, **kwargs: Any) -> Any:
        if kernel.module.value not in self._watched:
            self._open.uninstrumented("a kernel of torch.cuda._compile_kernel")
        return original(kernel, *args, **kwargs)

    # -- the work ---------------------------------------------------------------------------------------------------------------

    def _instrument(self, text: bytes, name: str) -> bytes:
        prepared = self._open.instrument(text.rstrip(b"\0").decode(), name=name)
        self._compiled[cubin_of(prepared)] = prepared
        return cubin_of(prepared)

    def _attach(self, prepared: PreparedLike, module: int) -> None:
        backend = self._open.backend
        self._open.attach(prepared, lambda name, data: backend.write(backend.symbol(CudaModule(module), name)[0], data))
        self._watched.add(module)

    def _again(self, prepared: PreparedLike, module: int) -> PreparedLike:
        """Give a module that an earlier session loaded to this one; it must have the same hooks."""
        found = renewed(self._open, prepared)
        if found is None:
            return prepared
        self._attach(found, module)
        return found


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
