"""Numba-CUDA on the GPU: every kernel that it launches becomes an instrumented one.

Read against numba-cuda 0.30. `CUDACodeLibrary.get_cufunc` gives the loaded function to every launch. It is wrapped: the PTX that the
library gives (`get_asm_strs`, Numba's own compiler, unchanged) is instrumented and assembled, that cubin is loaded through Numba's context
in place of Numba's, and the control block is planted in the module. Numba's own caches, in memory and on disk, never hold an instrumented
kernel; a function that was loaded before the session is replaced at its next launch, and restored after the session.

- Numba launches by cuda.core. If the session records, each launch of a recorded kernel gets a log (core_launch.py).
- `compile_cuda` is asked for line information where the program does not ask for a debug build.
- The cache on disk (`cache=True`) is neither read (its kernels have no lines) nor written.

Listed with their launches instead: kernels that are linked with other code (`link=`, `cuda.declare_device`, grid-wide synchronisation,
Numba's own memory management), because the assembler sees one module, and debug builds of several modules. Not handled: Numba's
simulator (noted), link-time optimisation (the kernel that is checked is compiled without it), `numba-cuda-mlir`.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
import threading
import weakref
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

from consan.adapters.base import PreparedLike, SessionLike, cubin_of, renewed
from consan.adapters.buffers import buffers
from consan.adapters.core_launch import CoreLaunches
from consan.adapters.seam import Seam, lacking
from consan.dataclass import dataclass
from consan.reports.source.variables import Argument
from consan.reports.words.frameworks import NUMBA

_OLDEST = _NEWEST = (0, 30)
_UNSEEN = "this Numba-CUDA does not launch by cuda.core: use numba-cuda 0.30"  # why kernels run as they are
_SEAMS = {
    "numba.cuda.codegen": ("CUDACodeLibrary.get_cufunc", "CUDACodeLibrary.get_asm_strs", "devices.get_context"),
    "numba.cuda.dispatcher": ("_Kernel.launch", "compile_cuda", "CUDACache.load_overload", "CUDACache.save_overload"),
    "numba.cuda.cudadrv.driver": ("host_to_device", "ObjectCode.from_cubin"),
}


class _Made(threading.local):
    """The launch that this thread makes. `buffers`: reads those among its arguments."""

    buffers: Callable[[], Sequence[Argument]] = staticmethod(buffers)


@dataclass
class _Loaded:
    """An instrumented kernel on one device."""

    prepared: PreparedLike
    function: Any
    session: SessionLike


class NumbaAdapter(Seam):
    """Instruments the kernels of the Numba-CUDA that the program imports."""

    name = "numba"
    title = "Numba-CUDA"
    package = "numba.cuda.dispatcher"
    distribution = "numba-cuda"
    covers = "all kernels that it launches from one module of PTX; linked ones are listed"

    def __init__(self) -> None:
        super().__init__()
        # Code library -> device -> what is loaded there; later sessions attach to it again.
        self._loaded: weakref.WeakKeyDictionary[Any, dict[int, _Loaded]] = weakref.WeakKeyDictionary()
        self._launches, self._made = CoreLaunches(), _Made()
        self._records = False  # whether all launches are seen

    def install(self, session: SessionLike) -> None:
        """Take over Numba-CUDA now or when it is imported."""
        super().install(session)
        self._when("numba.cuda.simulator.kernel", self._simulated)

    def _simulated(self, _: ModuleType) -> None:
        if getattr(importlib.import_module("numba.cuda.core.config"), "ENABLE_CUDASIM", False):
            self._open.note("NUMBA_ENABLE_CUDASIM is set: Numba's simulator runs the kernels, and they are not checked")

    def _begin(self, dispatcher: ModuleType) -> None:
        missing = [f"{module}.{name}" for module, names in _SEAMS.items() for name in lacking(importlib.import_module(module), *names)]
        known = self._known(_OLDEST, _NEWEST, missing)
        if hasattr(dispatcher, "_Kernel") and hasattr(dispatcher._Kernel, "launch"):
            self._wrap(dispatcher._Kernel, "launch", self._launch, known)
        if not known:
            return
        self._wrap(importlib.import_module("numba.cuda.codegen").CUDACodeLibrary, "get_cufunc", self._function)
        self._wrap(dispatcher, "compile_cuda", with_lines)
        self._records = hasattr(dispatcher, "launch")
        if self._records:
            self._wrap(dispatcher, "launch", self._launch_kernel)
        self._wrap(dispatcher.CUDACache, "load_overload", nothing)
        self._wrap(dispatcher.CUDACache, "save_overload", nothing)

    # -- replacements ------------------------------------------------------------------------------------------------------------

    def _launch(self, known: bool, original: Callable[..., Any], kernel: Any, *args: Any, **kwargs: Any) -> Any:
        """`_Kernel.launch`: list what runs without hooks, and name the buffers of what runs with them."""
        library: Any = getattr(kernel, "_codelibrary", None)
        reason = unreachable(library) if known else "unknown version of Numba-CUDA"
        if reason:
            self._open.uninstrumented(f"{getattr(kernel, 'entry_name', 'a Numba kernel')} ({reason})")
            return original(kernel, *args, **kwargs)
        library.get_cufunc()  # loads the kernel: a recorded launch is judged at once, with the names of its buffers
        named = functools.partial(buffers, args[0] if args else kwargs.get("args", ()), parameter_names(kernel))
        for loaded in self._loaded.get(library, {}).values():
            if loaded.session is self._session and not loaded.prepared.gets_logs:
                self._open.launched(loaded.prepared, library._entry_name, named())
        self._made.buffers = named
        try:
            return original(kernel, *args, **kwargs)
        finally:
            self._made.buffers = buffers

    def _launch_kernel(self, original: Callable[..., Any], stream: Any, config: Any, kernel: Any, *args: Any) -> Any:
        """cuda.core's `launch`, as `_Kernel.launch` calls it."""
        return self._launches.launch(self._session, lambda: self._made.buffers, original, stream, config, kernel, *args)

    def _function(self, original: Callable[..., Any], library: Any) -> Any:
        """`CUDACodeLibrary.get_cufunc`: the function of the instrumented module."""
        if library._entry_name is None or unreachable(library):
            return original(library)
        context = importlib.import_module("numba.cuda.codegen").devices.get_context()
        kept = self._loaded.setdefault(library, {})
        found = kept.get(context.device.id)
        if found is None or (found.session is not self._session and not self._renew(found)):
            kept[context.device.id] = found = self._load(library, context)
        return found.function

    # -- the work ---------------------------------------------------------------------------------------------------------------

    def _load(self, library: Any, context: Any) -> _Loaded:
        (ptx,) = library.get_asm_strs()
        if ".loc" not in ptx:
            self._open.note(f"{library.name} was compiled before consan was installed: what is found in it has no source lines")
        session, name = self._open, library.name
        prepared = session.instrument_for_framework(ptx, name=name, unseen="" if self._records else _UNSEEN)
        prepared.framework = NUMBA
        image = importlib.import_module("numba.cuda.cudadrv.driver").ObjectCode.from_cubin(cubin_of(prepared), name=library.name)
        module = context.create_module_image(image, library._setup_functions, library._teardown_functions)
        if not module.initialized:
            module.setup()
        self._attach(prepared, module)
        return _Loaded(prepared, module.get_function(library._entry_name), self._open)

    def _attach(self, prepared: PreparedLike, module: Any) -> None:
        self._open.attach(prepared, _symbol_writer(module))
        if prepared.gets_logs:
            self._launches.add(self._open, prepared, module.handle)

    def _renew(self, found: _Loaded) -> bool:
        """Attach what an earlier session loaded to this session, unless it needs other hooks."""
        prepared = renewed(self._open, found.prepared, otherwise="")
        if prepared is None:
            return False
        self._attach(prepared, found.function.module)
        found.prepared, found.session = prepared, self._open
        return True


def parameter_names(kernel: Any) -> tuple[str, ...]:
    """The parameters of a kernel's Python function."""
    code = getattr(getattr(kernel, "py_func", None), "__code__", None)
    return code.co_varnames[: code.co_argcount] if code is not None else ()


def unreachable(library: Any) -> str | None:
    """Why a kernel is not instrumented."""
    if library._linking_files or library.needs_cudadevrt:
        return "linked with other code"
    if "g" in library._nvvm_options and len(library.llvm_strs) > 1:
        return "a debug build of several modules"
    return None


def with_lines(original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """`compile_cuda`, with line information; Numba has it in debug builds already."""
    return original(*args, **kwargs) if kwargs.get("debug") else original(*args, **{**kwargs, "lineinfo": True})


def nothing(original: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
    """A cache that holds nothing."""


def _symbol_writer(module: Any) -> Callable[[str, bytes], None]:
    def write(name: str, data: bytes) -> None:
        memory, _ = module.get_global_symbol(name)
        buffer = ctypes.create_string_buffer(data, len(data))
        importlib.import_module("numba.cuda.cudadrv.driver").host_to_device(memory, ctypes.addressof(buffer), len(data))

    return write
