"""The CUDA backend: modules, memory and launches through the driver API, on the device's primary context.

The primary context is the one that CuPy and PyTorch use, so pointers are valid on both sides. It is pushed for each
operation and popped after it, so a framework's current context never changes. Launches use
`cuLaunchKernelEx`, which clusters require. Memory: cuda_memory.py.

Not handled: other contexts (second_context.py).
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import math
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field

from consan._errors import ConsanError, EnvironmentFailure, UsageError
from consan.backends import driver as api
from consan.backends.base import DEFAULT_STREAMS, CallSource, DeviceLost, Dim3, EntryResources, StreamWork
from consan.backends.callbacks import CALLS
from consan.backends.contexts import CudaContexts
from consan.backends.cuda_memory import CudaMemory
from consan.backends.driver_values import (
    check_arguments,
    launch_attributes,
    launch_config,
    parameter_sizes,
    parameters,
)
from consan.backends.streams import Streams
from consan.backends.work import CudaWork
from consan.dataclass import dataclass
from consan.toolchain.assemble import Assembled, assemble_cached

# CUfunction_attribute
_STATIC_SHARED, _REGISTERS, _DYNAMIC_SHARED, _NON_PORTABLE_CLUSTER = 1, 4, 8, 14
_STREAM_NON_BLOCKING, _PORTABLE_CLUSTER = 1, 8
_LEAST = 1.0  # seconds to find out that nothing runs
_REQUIRED_CLUSTER = (11, 12, 13)  # width, height, depth; 0 if the launch decides


@dataclass(eq=False)
class CudaModule:
    """A loaded module, its functions (looked up on first use), and its assembler output (None for a foreign cubin)."""

    handle: int
    assembled: Assembled | None = None
    functions: dict[str, _Function] = field(default_factory=dict)
    symbols: dict[str, tuple[int, int]] = field(default_factory=dict)  # address and size of each variable that was asked for


@dataclass
class _Function:
    handle: int
    parameters: tuple[int, ...] | None  # bytes of each; None before driver 12.4, which cannot say
    dynamic_shared: int = 0  # limit set so far; the default depends on the static size, so every request sets it
    required_cluster: int | None = None  # CTAs, fixed at compile time; 0 if the launch decides
    large_clusters: bool = False


class CudaBackend(CudaMemory):
    """One GPU through its primary context."""

    choice = "gpu"
    simulates = seeded = survives_fork = allocates_zeros = False
    assembles = True
    modules_kept: int | None = None
    ordered_streams: tuple[int, ...] = DEFAULT_STREAMS

    def __init__(self, ordinal: int = 0, *, driver: api.Driver | None = None) -> None:
        self._driver = driver or api.driver()
        self._device, self.context = self._open(ordinal)
        self.attributes = {name: self._attribute(number) for name, number in api.DEVICE_ATTRIBUTES.items()}
        self._streams, self.contexts = Streams(self._driver), CudaContexts(self._driver, self._device, self.context)
        self.work: StreamWork | None = CudaWork(self, self._driver)
        self.calls: CallSource | None = CALLS
        with self.current():
            self._control = self._driver.create("cuStreamCreate", _STREAM_NON_BLOCKING)

    def _open(self, ordinal: int) -> tuple[int, ctypes.c_void_p]:
        """The device and its primary context."""
        device, context = self._driver.integer("cuDeviceGet", ordinal), ctypes.c_void_p()
        self._driver.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        return device, context

    # -- what the device is ------------------------------------------------------------------------------------------------------

    @property
    def device_name(self) -> str:
        """The device's marketing name."""
        buffer = ctypes.create_string_buffer(256)
        self._driver.call("cuDeviceGetName", buffer, len(buffer), self._device)
        return buffer.value.decode()

    @property
    def arch(self) -> str:
        """The architecture to assemble for. From 9.0 on with the "a" features, which also accept plain PTX."""
        major, minor = self.attributes["major"], self.attributes["minor"]
        return f"sm_{major}{minor}{'a' if major >= 9 else ''}"

    @property
    def sm_count(self) -> int:
        """Number of multiprocessors."""
        return self.attributes["sm_count"]

    @functools.cached_property
    def memory_bytes(self) -> int:
        """Total device memory."""
        size = ctypes.c_size_t()
        self._driver.call("cuDeviceTotalMem_v2", ctypes.byref(size), self._device)
        return size.value

    @property
    def driver_version(self) -> str:
        """CUDA version that the driver supports, e.g. "13.0"."""
        number = self._driver.integer("cuDriverGetVersion")
        return f"{number // 1000}.{number % 1000 // 10}"

    def free_bytes(self) -> int:
        """Device memory that is free now."""
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        with self.current():
            self._driver.call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
        return free.value

    # -- modules -----------------------------------------------------------------------------------------------------------------

    def load(self, ptx: str, *, name: str = "<ptx>", options: Sequence[str] = ()) -> CudaModule:
        """Assemble PTX for this device and load it."""
        assembled = assemble_cached(ptx, self.arch, name=name, options=options)
        module = self.load_cubin(assembled.cubin)
        module.assembled = assembled
        return module

    def load_cubin(self, cubin: bytes) -> CudaModule:
        """Load machine code."""
        handle = ctypes.c_void_p()
        with self.current():
            code = self._driver.status("cuModuleLoadDataEx", ctypes.byref(handle), cubin, 0, None, None)
        if code in (200, 209):
            raise EnvironmentFailure(
                f"the driver (CUDA {self.driver_version}) does not load this cubin for {self.arch}; if the assembler is newer than the "
                f"driver, install an nvidia-nvjitlink of the driver's major version"
            )
        if code:
            raise self._driver.error(code, "cuModuleLoadDataEx")
        return CudaModule(handle.value or 0)

    def unload(self, module: CudaModule) -> None:
        """Unload a module with its functions and globals."""
        with self.current():
            self._driver.call("cuModuleUnload", ctypes.c_void_p(module.handle))

    def symbol(self, handle: CudaModule, name: str) -> tuple[int, int]:
        """Address and size of a global variable."""
        if name in handle.symbols:
            return handle.symbols[name]
        address, size = ctypes.c_uint64(), ctypes.c_size_t()
        with self.current():
            arguments = (ctypes.byref(address), ctypes.byref(size), ctypes.c_void_p(handle.handle), name.encode())
            code = self._driver.status("cuModuleGetGlobal_v2", *arguments)
        if code == 500:
            raise UsageError(f"the module has no global variable '{name}'")
        if code:
            raise self._driver.error(code, "cuModuleGetGlobal")
        return handle.symbols.setdefault(name, (address.value, size.value))

    def resources(self, handle: CudaModule, entry: str) -> EntryResources:
        """Registers and shared memory of an entry, as loaded."""
        function = self._function(handle, entry)
        with self.current():
            return EntryResources(self._function_attribute(function, _REGISTERS), self._function_attribute(function, _STATIC_SHARED))

    def shared_offsets(self, handle: CudaModule, entry: str) -> None:
        """The assembler places shared variables, and a cubin does not say where."""

    def resident_ctas(self, handle: CudaModule, entry: str, threads: int, shared: int = 0) -> int:
        """CTAs of an entry that fit on the device at once: the limit of a cooperative launch."""
        function = self._function(handle, entry)
        with self.current():
            self._allow_shared(function, shared)
            arguments = ctypes.c_void_p(function.handle), threads, ctypes.c_size_t(shared)
            return self.sm_count * self._driver.integer("cuOccupancyMaxActiveBlocksPerMultiprocessor", *arguments)

    # -- launches ----------------------------------------------------------------------------------------------------------------

    def launch(
        self,
        handle: CudaModule,
        entry: str,
        grid: Dim3,
        block: Dim3,
        args: Sequence[bytes],
        *,
        shared: int = 0,
        cluster: Dim3 = (1, 1, 1),
        cooperative: bool = False,
        seed: int = 0,
        timeout: float | None = None,
        stream: int | None = None,
    ) -> None:
        """Start a launch. The GPU's schedule takes no seed; `synchronize` applies the timeout."""
        del seed, timeout
        check_arguments(entry, self._function(handle, entry).parameters, args)
        function = self.function(handle, entry, shared, cluster)
        config = launch_config(grid, block, shared, stream or 0, launch_attributes(cluster, cooperative))
        with self.current():
            self._driver.call("cuLaunchKernelEx", ctypes.byref(config), ctypes.c_void_p(function), parameters(args), None)
            self._streams.watch(stream or 0)

    def function(self, handle: CudaModule, entry: str, shared: int, cluster: Dim3) -> int:
        """The driver's handle of a kernel, once it may be launched with so much dynamic shared memory and clusters of this shape."""
        function = self._function(handle, entry)
        with self.current():
            self._allow_shared(function, shared)
            if self.attributes["clusters"]:
                self._allow_clusters(function, cluster)
        return function.handle

    def watch(self, stream: int) -> None:
        """Make `synchronize` also wait for the work queued so far on a stream that somebody else uses."""
        with self.current():
            self._streams.watch(stream)

    def synchronize(self, timeout: float | None = None) -> bool:
        """Wait for all work. With a timeout, False if it is not over in time. Fatal kernel errors raise `DeviceLost`."""
        with self.current():
            self._streams.watch(0)
            if not self._streams.over(math.inf if timeout is None else time.monotonic() + timeout):
                return False
            if timeout is None:  # includes unknown streams; poll first, because Ctrl-C does not interrupt this call
                self._driver.call("cuCtxSynchronize")
            return True

    def ends(self, timeout: float | None, longest: float) -> bool:
        """Nothing limits the wait for streams that nobody has named: a thread waits for them, and is left to it."""
        deadline, ends = time.monotonic() + (longest if timeout is None else timeout), list[ConsanError | None]()

        def wait() -> None:
            try:
                with self.outside_captures(), self.current():
                    self._driver.call("cuCtxSynchronize")
            except ConsanError as error:
                ends.append(error)
            else:
                ends.append(None)

        if not self.synchronize(deadline - time.monotonic()):
            return False
        waits = threading.Thread(target=wait, daemon=True, name="consan-end")
        waits.start()
        waits.join(max(_LEAST, deadline - time.monotonic()))
        if ends and ends[0] is not None:
            raise ends[0]
        return bool(ends)

    def on_ctas(self, tell: Callable[[int, int], None]) -> None:
        """How far a launch is, is not known."""

    def restart(self) -> None:
        """The driver numbers launches."""

    def renew(self) -> None:
        """Not here: what a launch leaves behind is the framework's."""
        raise NotImplementedError

    def close(self) -> None:
        """Release the context. Rings stay readable."""
        with contextlib.suppress(DeviceLost):
            self._streams.close()
            self._driver.call("cuDevicePrimaryCtxRelease_v2", self._device)

    def capturing(self, stream: int | None) -> bool:
        """Whether launches on a stream become nodes of a graph."""
        with contextlib.nullcontext() if (stream or 0) in DEFAULT_STREAMS else self.current():
            return self._streams.capturing(stream or 0)

    def outside_captures(self) -> contextlib.AbstractContextManager[None]:
        """Inside the block this thread may allocate and load modules while a stream is captured."""
        return self._streams.outside_captures()

    @contextlib.contextmanager
    def current(self) -> Iterator[None]:
        """Its context is the calling thread's current one."""
        self._driver.call("cuCtxPushCurrent_v2", self.context)
        try:
            yield
        finally:
            self._driver.status("cuCtxPopCurrent_v2", ctypes.byref(ctypes.c_void_p()))

    # -- inside ------------------------------------------------------------------------------------------------------------------

    def _attribute(self, number: int) -> int:
        return self._driver.integer("cuDeviceGetAttribute", number, self._device)

    def _function(self, module: CudaModule, entry: str) -> _Function:
        if entry not in module.functions:
            module.functions[entry] = self._find_function(module, entry)
        return module.functions[entry]

    def _find_function(self, module: CudaModule, entry: str) -> _Function:
        handle = ctypes.c_void_p()
        with self.current():
            code = self._driver.status("cuModuleGetFunction", ctypes.byref(handle), ctypes.c_void_p(module.handle), entry.encode())
            if code == 500:
                raise UsageError(f"the module has no kernel '{entry}'")
            if code:
                raise self._driver.error(code, "cuModuleGetFunction")
            return _Function(handle.value or 0, parameter_sizes(self._driver, handle))

    def _function_attribute(self, function: _Function, number: int) -> int:
        return self._driver.integer("cuFuncGetAttribute", number, ctypes.c_void_p(function.handle))

    def _allow_shared(self, function: _Function, shared: int) -> None:
        if shared > function.dynamic_shared:
            limit = self.attributes["shared_per_cta"] - self._function_attribute(function, _STATIC_SHARED)
            if shared > limit:
                raise UsageError(f"{shared} bytes of dynamic shared memory: {self.device_name} has {limit} left for this kernel")
            self._driver.call("cuFuncSetAttribute", ctypes.c_void_p(function.handle), _DYNAMIC_SHARED, shared)
            function.dynamic_shared = shared

    def _allow_clusters(self, function: _Function, cluster: Dim3) -> None:
        if function.required_cluster is None:  # a kernel with its own cluster size is launched without the attribute
            function.required_cluster = math.prod(self._function_attribute(function, number) for number in _REQUIRED_CLUSTER)
        if max(math.prod(cluster), function.required_cluster) > _PORTABLE_CLUSTER and not function.large_clusters:
            self._driver.call("cuFuncSetAttribute", ctypes.c_void_p(function.handle), _NON_PORTABLE_CLUSTER, 1)
            function.large_clusters = True
