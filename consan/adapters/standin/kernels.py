"""`cupy.RawKernel` and `cupy.RawModule` of the stand-in.

Sources compile with NVRTC as CuPy would (C++17, flush-to-zero, device code by default), every module goes through the session's
instrumentation, and launches go to the virtual machine. Arguments follow CuPy's rules: arrays pass their address, NumPy scalars and arrays
of one element their bytes, Python ints 64 bits, floats a double; the kernel's PTX says how many of those bytes it takes.

Does NOT handle: binaries (there is no PTX in them), jitify, `translate_cucomplex`, textures.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from consan._errors import NotSupported, UsageError
from consan.adapters import sources
from consan.adapters.standin.array import NotInStandin, ndarray
from consan.adapters.standin.context import MemoryPointer, StandinContext, Window, current, current_stream
from consan.adapters.standin.cuda import CompileException, CUDADriverError
from consan.adapters.standin.names import lower, probes
from consan.dataclass import dataclass
from consan.instrument.ptx import Function, parse
from consan.instrument.ptx.extents import three_extents
from consan.launching.placement import OnDevice, placed, pointer
from consan.session.comparing.launch_memory import LaunchShape, Memory
from consan.session.modules.in_clusters import scaled, unit_of
from consan.session.modules.layouts import name_addresses
from consan.session.without_optimisation import CudaText
from consan.toolchain.nvrtc import CompileError, compile_ptx

_STANDARD = re.compile(r"--?std=(\S+)")
# Given by the stand-in itself, or meaningful to nvcc only.
_GIVEN = r"--?(gpu-)?arch|-lineinfo|--generate-line-info|-default-device|--device-as-default"
_DROPPED = re.compile(_GIVEN + r"|-Xptxas|--ptxas|-Xcompiler|-O\d|-ccbin")
_DEFAULT_DYNAMIC = 49152
_MAX_THREADS = 1024
_UNKNOWN = ("shared_size_bytes", "const_size_bytes", "local_size_bytes", "num_regs", "ptx_version", "binary_version", "cache_mode_ca")
Dim3 = tuple[int, int, int]


@dataclass(frozen=True)
class Entry:
    """The facts about a kernel that a launch needs."""

    sizes: tuple[int, ...]
    cluster: Dim3
    unit: Dim3 = (1, 1, 1)  # of its grid, in CTAs


@dataclass(frozen=True)
class Compiled:
    """A module after instrumentation, and its kernels."""

    context: StandinContext
    prepared: Any
    entries: dict[str, Entry]
    lowered: dict[str, str]

    def entry(self, name: str) -> tuple[str, Entry]:
        """The kernel of this C++ expression or PTX name."""
        lowered = self.lowered.get(name, name)
        if lowered not in self.entries:
            known = ", ".join(self.entries) or "no kernel"
            raise CUDADriverError(f"CUDA_ERROR_NOT_FOUND: named symbol not found: {name} (the module has {known})")
        return lowered, self.entries[lowered]


def _compile(context: StandinContext, code: str, options: tuple[str, ...], expressions: tuple[str, ...]) -> Compiled:
    at = sources.place(code, sources.source_folder(context.session))
    code = at.spread(code)
    arch, began = str(getattr(context.session.backend, "arch", "sm_90")), time.process_time()

    def make(text: str, optimised: bool) -> tuple[str, dict[str, str]]:
        return _ptx_of(at, text, arch, options, expressions, optimised=optimised)

    try:
        ptx, lowered = make(code, True)
    except CompileError as error:
        raise CompileException(str(error), code, at.path, options) from None
    took = time.process_time() - began
    context.session.unoptimised.texts[ptx] = CudaText(at.path, at.line, code, lambda text, optimised: make(text, optimised)[0], took)
    return _prepare(context, ptx, sources.kernel_name(code), lowered)


def _ptx_of(
    at: sources.SourceStart, code: str, arch: str, options: tuple[str, ...], expressions: tuple[str, ...], *, optimised: bool
) -> tuple[str, dict[str, str]]:
    """The PTX of a source that begins in a file, and the names of its kernels there by their C++ expressions."""
    standard = next((match.group(1) for option in options if (match := _STANDARD.fullmatch(option))), "c++17")
    kept = [option for option in options if not _STANDARD.fullmatch(option) and not _DROPPED.match(option)]
    flush = [] if any("ftz" in option or "fast_math" in option for option in kept) else ["-ftz=true"]
    text, given = at.directive() + code + probes(expressions), (*kept, *flush)
    result = compile_ptx(text, name=at.path, arch=arch, std=standard, options=given, optimised=optimised)
    return lower(result.ptx, expressions)


def _load_file(context: StandinContext, path: str) -> Compiled:
    data = Path(path).read_bytes()
    if data.startswith((b"\x7fELF", b"\x50\xed\x55\xba")):
        raise NotSupported(f"{path} is a binary; the CPU's virtual machine runs PTX only")
    return _prepare(context, data.rstrip(b"\0").decode(), path, {})


def _prepare(context: StandinContext, ptx: str, name: str, lowered: dict[str, str]) -> Compiled:
    session: Any = context.session
    device = session.streams.places.here
    module = parse(f"{ptx}\n// of device {device}\n" if device else ptx, name)  # each device has variables of its own
    kernels = {function.name: _entry(function) for function in module.functions if function.kind == "entry"}
    return Compiled(context, session.prepare(module, name=name), kernels, lowered)


def _entry(function: Function) -> Entry:
    sizes = tuple(param.nbytes for param in function.params)
    return Entry(sizes, function.required_cluster, unit_of(function))


def _dim3(extents: Sequence[Any]) -> Dim3:
    return three_extents(max(1, int(extent)) for extent in extents)


def argument(value: Any) -> bytes | OnDevice:
    """The bytes or the array whose address CuPy would give to the driver."""
    if value is None:
        return bytes(8)
    if isinstance(value, ndarray):
        # Only of an array whose bytes follow each other the end is known.
        host = value._host
        return pointer(value.data.ptr, host.nbytes if host.flags.c_contiguous and host.ndim else None, host.itemsize)
    if isinstance(value, MemoryPointer):
        return pointer(value.ptr)
    if isinstance(value, np.ndarray) and value.size != 1:
        raise TypeError(
            f"You are trying to pass a numpy.ndarray of shape {value.shape} as a kernel parameter. Only numpy.ndarrays of size one can be "
            "passed by value. If you meant to pass a pointer to __global__ memory, you need to pass a cupy.ndarray instead."
        )
    if isinstance(value, (np.ndarray, np.generic)):
        return bytes(value.tobytes())
    return _python_scalar(value)


def _python_scalar(value: Any) -> bytes:
    kinds: dict[type, Any] = {bool: np.bool_, float: np.float64, complex: np.complex128}
    if type(value) is int:
        return value.to_bytes(8, "little", signed=value < 1 << 63)
    if type(value) in kinds:
        return bytes(kinds[type(value)](value).tobytes())
    raise TypeError(f"Unsupported type {type(value)}")


def pack(values: Sequence[bytes], sizes: Sequence[int], kernel: str) -> list[bytes]:
    """Cut each argument to its parameter, as the driver does."""
    if len(values) != len(sizes):
        raise UsageError(f"kernel {kernel} has {len(sizes)} parameters and was launched with {len(values)} arguments")
    return [_fit(value, size, index, kernel) for index, (value, size) in enumerate(zip(values, sizes, strict=True), 1)]


def _fit(value: bytes, size: int, index: int, kernel: str) -> bytes:
    if len(value) < size:
        # The driver would read past the argument; it finds zeros most often, and the user has to know.
        what = f"argument {index} of kernel {kernel} has {len(value)} bytes, its parameter {size}"
        current().session.note(f"{what}: the rest was taken as zeros")
    return value[:size].ljust(size, b"\0")


class RawKernel:
    """`cupy.RawKernel`."""

    def __init__(
        self,
        code: str | None,
        name: str,
        options: tuple[str, ...] = (),
        backend: str = "nvrtc",
        *,
        translate_cucomplex: bool = False,
        enable_cooperative_groups: bool = False,
        jitify: bool | None = None,
    ) -> None:
        if translate_cucomplex or jitify:
            raise NotInStandin("RawKernel(translate_cucomplex=True)" if translate_cucomplex else "RawKernel(jitify=True)")
        self.code, self.name, self.options, self.backend = code, name, tuple(options), backend
        self.enable_cooperative_groups = enable_cooperative_groups
        self.file_path: str | None = None
        self.name_expressions: tuple[str, ...] = ()
        self.__name__ = name
        self._dynamic = _DEFAULT_DYNAMIC

    def __call__(self, grid: Any, block: Any, args: Any = (), *, shared_mem: int = 0, stream: Any = None) -> None:
        """Launch, and wait for the end."""
        self.launch(grid, block, [argument(value) for value in args], shared_mem, stream)

    def launch(self, grid: Any, block: Any, values: Sequence[bytes | OnDevice], shared_mem: int = 0, stream: Any = None) -> None:
        """Launch with values as `argument` gives them."""
        compiled = self._compiled()
        name, entry = compiled.entry(self.name)
        threads = _dim3(block)
        if threads[0] * threads[1] * threads[2] > _MAX_THREADS or shared_mem > self._dynamic:
            raise CUDADriverError("CUDA_ERROR_INVALID_VALUE: invalid argument")
        session: Any = compiled.context.session
        ctas = scaled(_dim3(grid), entry.unit)
        with session.streams.lock, placed(session) as placement:
            packed = pack(placement.parameters(values, "argument"), entry.sizes, self.name)
            checked = session.launch(
                compiled.prepared,
                name,
                ctas,
                threads,
                packed,
                shared=int(shared_mem),
                cluster=entry.cluster,
                cooperative=self.enable_cooperative_groups,
                address_name=name_addresses(compiled.prepared, name, placement.buffers),
            )
            if checked:
                shape = LaunchShape(name, ctas, threads, Memory([], shared=True))
                session.streams.launched(compiled.prepared, shape, current_stream() if stream is None else stream.order)

    def compile(self, log_stream: Any = None) -> None:
        """Compile now instead of at the first launch."""
        self._compiled()

    def _compiled(self) -> Compiled:
        return load(self.code, self.file_path, self.options, self.name_expressions)

    @property
    def kernel(self) -> RawKernel:
        """CuPy's `cupy.cuda.Function`; here the kernel itself."""
        return self

    @property
    def max_dynamic_shared_size_bytes(self) -> int:
        """Limit of `shared_mem`; more than 48 KiB must be asked for, as on a GPU."""
        return self._dynamic

    @max_dynamic_shared_size_bytes.setter
    def max_dynamic_shared_size_bytes(self, size: int) -> None:
        self._dynamic = int(size)

    @property
    def attributes(self) -> dict[str, int]:
        """The attributes that do not depend on an assembler; -1 for the rest, as CuPy does for unknown ones."""
        unknown = dict.fromkeys(_UNKNOWN, -1)
        limits = {"max_threads_per_block": _MAX_THREADS, "max_dynamic_shared_size_bytes": self._dynamic}
        return {**limits, **unknown, "preferred_shared_memory_carveout": self.preferred_shared_memory_carveout}

    preferred_shared_memory_carveout = -1
    max_threads_per_block = _MAX_THREADS
    num_regs = -1


def load(code: str | None, path: str | None, options: tuple[str, ...], expressions: tuple[str, ...] = ()) -> Compiled:
    """The module of a source or a file for the current device, compiled once a session."""
    context = current()
    key = (code, path, options, expressions, context.session.streams.places.here)
    if key not in context.modules:
        compiled = _compile(context, code, options, expressions) if code is not None else _load_file(context, str(path))
        context.modules[key] = compiled
    loaded: Compiled = context.modules[key]
    return loaded


class RawModule:
    """`cupy.RawModule`."""

    def __init__(
        self,
        *,
        code: str | None = None,
        path: str | None = None,
        options: tuple[str, ...] = (),
        backend: str = "nvrtc",
        translate_cucomplex: bool = False,
        enable_cooperative_groups: bool = False,
        name_expressions: Sequence[str] | None = None,
        jitify: bool | None = None,
    ) -> None:
        if (code is None) == (path is None):
            raise TypeError("Exactly one of `code` and `path` keyword arguments must be given.")
        self.code, self.file_path, self.options, self.backend = code, path, tuple(options), backend
        self.name_expressions = tuple(name_expressions or ())
        self._flags = {"translate_cucomplex": translate_cucomplex, "jitify": jitify}
        self.enable_cooperative_groups = enable_cooperative_groups

    def compile(self, log_stream: Any = None) -> None:
        """Compile now."""
        self._compiled()

    def _compiled(self) -> Compiled:
        return load(self.code, self.file_path, self.options, self.name_expressions)

    def get_function(self, name: str) -> RawKernel:
        """The kernel of this name or name expression."""
        self._compiled().entry(name)
        flags: dict[str, Any] = {**self._flags, "enable_cooperative_groups": self.enable_cooperative_groups}
        kernel = RawKernel(self.code, name, self.options, self.backend, **flags)
        kernel.file_path, kernel.name_expressions = self.file_path, self.name_expressions
        return kernel

    def get_global(self, name: str) -> MemoryPointer:
        """Pointer to a `__device__` or `__constant__` variable."""
        compiled = self._compiled()
        address, size = compiled.context.session.backend.symbol(compiled.prepared.loaded, name)
        return MemoryPointer(Window(address, size), 0)
