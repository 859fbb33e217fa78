"""CuTe DSL on a machine without a GPU: its host code links consan's stand-in driver in place of its runtime library.

The compiler is asked for PTX with the lines of the program, and not to use its cache, which has machine code only (`cute_keeps`); nor are
quack's and FlashAttention-4's. A loaded cubin is taken for the PTX of the same kernels.
CuTe DSL 4.8 gives its atomics and stores to its arrays the line behind the kernel, where it is launched: they get that of their statement.
Reports name memory as the program does (cute_names.py).
Tensors of torch and arrays of NumPy, by DLPack or given to functions compiled with TVM-FFI, are on the device (host_tensors.py).

A kernel that is compiled ahead of time gets its PTX beside the object, where a later program finds it.

Not handled: objects of other programs without their PTX, several devices.
"""

from __future__ import annotations

import functools
import importlib
import os
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, Final

from consan.adapters.base import SessionLike
from consan.adapters.driven.cute_names import CuteNames
from consan.adapters.driven.host_tensors import HostTensors
from consan.adapters.driven.seam import DrivenSeam
from consan.adapters.seam import lacking
from consan.adapters.triton import torch_device
from consan.adapters.triton.driver import VirtualDriver
from consan.adapters.without_ptx import CUTE_DSLS, cute_keeps
from consan.libcuda import library

_OLDEST = _NEWEST = (4, 8)
_EXECUTOR: Final = "cutlass.cutlass_dsl.cuda_jit_executor"
_COMPILED: Final = "cutlass.base_dsl.jit_executor"
_TVM_FFI: Final = "cutlass.cutlass_dsl.tvm_ffi_provider"
_ARRAYS: Final = "cutlass.base_dsl.array"
_TRACED: Final = "cutlass.base_dsl.dsl"
ATOMICS: Final = "cutlass.cute.arch.nvvm_wrappers"


class CuteStandIn(DrivenSeam):
    """Runs programs of CuTe DSL on the virtual machine."""

    name = "cute"
    title = "CuTe DSL"
    package = "cutlass"
    distribution = "nvidia-cutlass-dsl"
    covers = "every kernel that a program compiles; tensors of torch on the CPU, arrays, memory of cuda.bindings or cuda.core"

    def __init__(self) -> None:
        super().__init__()
        self._tensors: HostTensors | None = None
        self._torch: VirtualDriver | None = None
        self._names: CuteNames | None = None

    def install(self, session: SessionLike) -> None:
        """The compiler reads its variables when it is imported."""
        super().install(session)
        if self.available():
            self._set(**cute_keeps(self._own_folder()))
            for dsl in CUTE_DSLS:
                self._set(**{f"{dsl}_LIBS": library.file(), f"{dsl}_ARCH": os.environ.get(f"{dsl}_ARCH", session.options.chip)})
            self._set(QUACK_CACHE_ENABLED="0", FLASH_ATTENTION_CUTE_DSL_CACHE_ENABLED="0")
            self._names = CuteNames(self._own_folder())
            self._when(_EXECUTOR, self._without_runtime)
            self._when(_COMPILED, self._executes)
            self._when(_TVM_FFI, self._calls)
            self._when(ATOMICS, keep_lines)
            self._when(_ARRAYS, keep_lines_of_stores)
            self._when(_TRACED, self._traces)
            self._when("cutlass.memory.smem", self._allocates)
            self._when("cutlass.cute.runtime", self._converts)

    def remove(self) -> None:
        """Restore everything."""
        super().remove()
        self._tensors = self._torch = self._names = None

    def _begin(self, module: ModuleType) -> None:
        """All is done where the executor is imported."""

    def _without_runtime(self, executor: Any) -> None:
        """The binding of the CUDA runtime has a driver of its own; what the executor asks it is known."""
        if not self._known(_OLDEST, _NEWEST, lacking(executor, "cuda_runtime.cudaGetDeviceCount", "cuda_runtime.cudaLibraryUnload")):
            return
        self._enter()
        self._tensors = HostTensors(library.driver())
        self._torch = VirtualDriver(self._open, self._open.options.triton_arch)
        self._when("torch", self._redirect)
        runtime = executor.cuda_runtime
        success = runtime.cudaError_t.cudaSuccess
        known = {"cudaGetDeviceCount": lambda: (success, 1), "cudaLibraryUnload": lambda handle: (success,)}
        self._patches.set(executor, "cuda_runtime", SimpleNamespace(**{**vars(runtime), **known}))

    def _executes(self, executor: Any) -> None:
        self._wrap(executor.JitFunctionArtifacts, "__post_init__", self._keep)
        self._wrap(executor.JitExecutor, "run_compiled_program", self._run)
        self._wrap(executor.JitCompiledFunction, "export_to_c", _leave_ptx)

    def _run(self, original: Callable[..., Any], executor: Any, *args: Any, **named: Any) -> Any:
        """`JitExecutor.run_compiled_program`: host code, which may read and write tensors by their addresses on the device."""
        if self._tensors is None:
            return original(executor, *args, **named)
        with self._tensors.driver.having_managed():
            return original(executor, *args, **named)

    def _keep(self, original: Callable[..., None], artifacts: Any) -> None:
        """`JitFunctionArtifacts.__post_init__` reads what a compilation has left: kernels of several may have one name."""
        original(artifacts)
        if self._tensors is not None and self._names is not None and isinstance(artifacts.PTX, str) and isinstance(artifacts.CUBIN, bytes):
            self._tensors.driver.parameter_names.update(self._names.parameters_of(artifacts.PTX))
            artifacts.PTX = self._names.named(artifacts.PTX)
            library.keep_ptx_of(artifacts.CUBIN, artifacts.PTX)

    def _traces(self, dsl: Any) -> None:
        if self._names is not None:
            self._wrap(dsl.BaseDSL, "generate_execution_arguments", self._names.trace)
            self._wrap(dsl.BaseDSL, "_generate_execution_arguments_for_known_types", self._names.parameter)
            diagnostics: Any = importlib.import_module("cutlass.base_dsl.diagnostics")
            self._wrap(diagnostics.CompilerDiagnosticSession, "__init__", self._names.ask)

    def _allocates(self, smem: Any) -> None:
        if self._names is not None:
            self._wrap(smem.SmemAllocator, "_smem_alloca", self._names.allocate)

    def _redirect(self, torch: Any) -> None:
        assert self._torch is not None
        assert self._tensors is not None
        self._undo.append(torch_device.redirect(self._open, self._torch, self._patches, torch, self._tensors.address))

    def _converts(self, runtime: Any) -> None:
        self._wrap(runtime._Tensor, "__init__", self._from_dlpack)
        self._wrap(runtime, "load_module", self._load)

    def _load(self, original: Callable[..., Any], file_path: str, *args: Any, **named: Any) -> Any:
        """`load_module`: the PTX of what was compiled ahead of time lies beside it."""
        if self._tensors is not None:
            library.keep_ptx(Path(file_path).parent)
        return original(file_path, *args, **named)

    def _from_dlpack(self, original: Callable[..., None], tensor: Any, source: Any, *args: Any, **named: Any) -> None:
        """`_Tensor.__init__`, behind `from_dlpack`."""
        original(tensor, source if self._tensors is None else self._tensors.on_device(source), *args, **named)

    def _calls(self, provider: Any) -> None:
        self._wrap(provider.TVMFFIJitCompiledFunction, "__call__", self._call, provider.tvm_ffi)
        self._wrap(provider.TVMFFIJitCompiledFunctionWithKwargs, "__call__", self._call, provider.tvm_ffi)

    def _call(self, tvm_ffi: Any, original: Callable[..., Any], function: Any, *args: Any, **named: Any) -> Any:
        """A function compiled with TVM-FFI, called with tensors of torch, in torch's stream."""
        if self._tensors is None or self._torch is None:
            return original(function, *args, **named)
        on_device = functools.partial(_on_device, tvm_ffi, self._tensors)
        with tvm_ffi.use_raw_stream(tvm_ffi.device("cuda", 0), self._torch.now.get().handle):
            return original(function, *map(on_device, args), **{name: on_device(value) for name, value in named.items()})


def keep_lines(wrappers: Any) -> None:
    """The atomics of CuTe DSL as its other operations: with the line of the statement that calls them."""
    decorated = getattr(wrappers, "dsl_user_op", None)
    if decorated is None:
        return
    for name in [name for name in vars(wrappers) if name.startswith("atomic_")]:
        function = getattr(wrappers, name)
        if not hasattr(function, "__wrapped__"):
            setattr(wrappers, name, decorated(function))


def keep_lines_of_stores(arrays: Any) -> None:
    """The same for `array[place] = value`: it names no line, and a store would get the last one of the kernel."""
    decorated, operations = getattr(arrays, "dsl_user_op", None), getattr(arrays, "llvm", None)
    if decorated is not None and operations is not None and hasattr(operations, "store"):
        arrays.llvm = SimpleNamespace(**{**vars(operations), "store": decorated(operations.store)})


def _leave_ptx(original: Callable[..., Any], function: Any, file_path: str, file_name: str, *args: Any, **named: Any) -> Any:
    """`JitCompiledFunction.export_to_c`: the object has machine code only."""
    made = original(function, file_path, file_name, *args, **named)
    if isinstance(function.__ptx__, str):
        Path(file_path, f"{file_name}.ptx").write_text(function.__ptx__)
    return made


def _on_device(tvm_ffi: Any, tensors: HostTensors, value: Any) -> Any:
    """An argument, in which tensors of torch are on the device."""
    if isinstance(value, (tuple, list)):
        items = [_on_device(tvm_ffi, tensors, each) for each in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    found = tensors.on_device(value)
    return value if found is value else tvm_ffi.from_dlpack(found)
