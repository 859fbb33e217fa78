"""CuPy on the GPU: every kernel that CuPy compiles becomes an instrumented one.

Read against CuPy 14.2 (the same names exist since 13.0). RawKernel, RawModule, ElementwiseKernel, ReductionKernel, CUB block reductions,
fusion, `cupyx.jit` and CuPy's own routines all end in `cupy.cuda.compiler._compile_module_with_cache`, which compiles through
`_compile_using_nvrtc_no_warning` (13: `compile_using_nvrtc`) or `compile_using_nvcc` and loads what they return. So:

- the compile functions are wrapped: CuPy's own code compiles, but to PTX with `-lineinfo` (its architecture helper says so for
  this call only), a `#line` names readable source, and the instrumented cubin is returned in place of CuPy's;
- `_compile_module_with_cache` is wrapped: after the load the control block is planted;
- `cupy._core.raw._get_raw_module` is wrapped for `RawModule(path=...)`: PTX files are instrumented, binaries are listed;
- where the session records, CuPy's launches go through functions of ours (cupy_driver.py): each gets a log;
- the kernel cache is bypassed: the user's never sees an instrumented cubin, and a cached plain cubin is never taken;
- launches of library kernels that exist as SASS only (cuRAND, cuBLAS, Thrust, CUB's device-wide algorithms) are counted and listed.

Modules run as they are if their kernels may launch others, or if CuPy has called the driver before the first session.

Kernels compiled under an earlier session are attached to the new one. Not handled: kernels compiled before the first install (noted),
LTO callbacks of cuFFT and nvcc with `-rdc` (listed), HIP, and direct use of
`compile_using_nvrtc` by the program (listed: consan does not see the load).
"""

from __future__ import annotations

import contextlib
import contextvars
import ctypes
import functools
import hashlib
import importlib
import importlib.util
import itertools
import re
import sys
import time
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import Any

from consan._errors import NotSupported, UsageError
from consan.adapters import sources
from consan.adapters.base import PreparedLike, SessionLike, cubin_of, renewed
from consan.adapters.cupy_driver import CupyDriver, CupyLaunch
from consan.adapters.recorded import FrameworkModules
from consan.adapters.seam import Seam
from consan.backends.base import DeviceLost
from consan.session.framework_launch import FrameworkLaunch
from consan.session.without_optimisation import CudaText
from consan.toolchain.nvrtc import UNOPTIMISED

_OLDEST = (13, 0)
_OWN = "cupy_"  # how CuPy's own kernels are called
# The name of the function that turns source into bytes, newest CuPy first.
_COMPILERS = ("_compile_using_nvrtc_no_warning", "compile_using_nvrtc")
_CHOOSES_ARCH = "_get_arch_for_options_for_nvrtc"
_REQUIRED = ("_compile_module_with_cache", _CHOOSES_ARCH, "_get_arch", "compile_using_nvcc")
_LINE_INFO = ("-lineinfo", "--generate-line-info", "-G", "--device-debug")
_EDGE = " (second.wait_event(first.record()))"  # how a program lets one stream wait for another
# Why kernels run as they are.
_LAUNCH = "its kernels may launch others (-rdc=true or -dc): compile it without"
_CALLED = "CuPy had called the driver before consan was installed: import it later"
_ELF, _FATBIN = b"\x7fELF", b"\x50\xed\x55\xba"

# Functions of Python-visible modules that launch precompiled kernels; each call is one listed launch.
_LIBRARIES: dict[str, tuple[str, re.Pattern[str]]] = {
    "cupy_backends.cuda.libs.curand": ("cuRAND", re.compile(r"generate(?!Seeds)")),
    "cupy_backends.cuda.libs.cublas": ("cuBLAS", re.compile(r"[isdcz]+[a-z]+\d?(Strided|Batched|Ex)*$|gemm\w*Ex$")),
    "cupy.cuda.thrust": ("Thrust", re.compile(r"(lex|arg)?sort$")),
    "cupy.cuda.cub": ("CUB", re.compile(r"device_")),
}
_NOT_LAUNCHES = re.compile(r"_|[gs]et[A-Z]|create|destroy|check|available")

# Modules instrumented while one `_compile_module_with_cache` runs; None outside of it.
_produced: contextvars.ContextVar[list[PreparedLike] | None] = contextvars.ContextVar("consan_cupy_produced", default=None)
_to_ptx: contextvars.ContextVar[bool] = contextvars.ContextVar("consan_cupy_to_ptx", default=False)


class _NoCache:
    """A kernel cache that holds nothing (the interface of CuPy's KernelCacheBackend)."""

    def load(self, name: str) -> bytes | None:
        return None

    def save(self, name: str, cubin: bytes, source: str) -> None:
        """Keep nothing."""


class CupyAdapter(Seam):
    """Instruments the kernels of the CuPy that the program imports."""

    name = package = "cupy"
    title = "CuPy"
    covers = "all kernels that it compiles; PTX files through RawModule(path=)"

    def __init__(self) -> None:
        super().__init__()
        # Every instrumented module, kept loaded: a later session attaches to it again.
        self._attached: list[tuple[PreparedLike, Any]] = []
        self.recorded, self.driver = FrameworkModules(), CupyDriver(self._launched, self._repeats)
        self._sees_launches = False

    def available(self) -> bool:
        """Tell whether CuPy is installed."""
        return importlib.util.find_spec("cupy") is not None

    def describe(self) -> str:
        """One line for `consan doctor`."""
        if not self.available():
            return "CuPy is not installed"
        versions = (f"{dist.name} {dist.version}" for dist in metadata.distributions() if (dist.name or "").startswith("cupy"))
        return f"{next(versions, self.title)}: {self.covers}"

    def install(self, session: SessionLike) -> None:
        """Patch CuPy now or when it is imported."""
        if "cupy" in sys.modules and not self._attached:
            session.note("CuPy was imported before consan was installed: kernels that it had already compiled are not checked")
        super().install(session)
        for library in _LIBRARIES:
            self._when(library, self._count_launches)
        self._attached = [(self._again(prepared, module), module) for prepared, module in self._attached]

    # -- what is replaced -------------------------------------------------------------------------------------------------------

    def _begin(self, cupy: ModuleType) -> None:
        compiler = importlib.import_module("cupy.cuda.compiler")
        raw = importlib.import_module("cupy._core.raw")
        _check_version(cupy, compiler, raw)
        name = next(name for name in _COMPILERS if hasattr(compiler, name))
        self._wrap(compiler, name, self._compile_nvrtc)
        self._wrap(compiler, "compile_using_nvcc", self._compile_nvcc)
        self._wrap(compiler, _CHOOSES_ARCH, _choose_arch, compiler)
        self._wrap(compiler, "_compile_module_with_cache", self._compile_module)
        self._wrap(raw, "_get_raw_module", self._raw_module)
        self._bypass_cache(compiler)
        self._sees_launches = self.driver.take_over()

    def _bypass_cache(self, compiler: ModuleType) -> None:
        if hasattr(compiler, "_kernel_cache_backend"):
            self._patches.set(compiler, "_kernel_cache_backend", _NoCache())
            return
        # Before 14.1: a folder per compilation is never hit, so a module never comes from a cache unseen.
        counter = itertools.count()
        self._patches.set(compiler, "get_cache_dir", lambda: str(self._folder() / "cupy-cache" / str(next(counter))))

    def _folder(self) -> Path:
        return sources.source_folder(self._session)

    # -- replacements; each gets the original first ----------------------------------------------------------------------------------

    def _compile_module(self, original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        token = _produced.set([])
        try:
            module = original(*args, **kwargs)
            for prepared in _produced.get() or ():
                self._attach(prepared, module)
        finally:
            _produced.reset(token)
        return module

    def _compile_nvrtc(self, original: Callable[..., Any], source: Any, options: tuple[str, ...] = (), *args: Any, **kwargs: Any) -> Any:
        text = source.decode() if isinstance(source, bytes) else source
        unseen = _produced.get() is None
        if unseen or _is_lto(args, kwargs):
            self._list(f"{sources.kernel_name(text)} ({'compile_using_nvrtc called directly' if unseen else 'LTO'})")
            return original(source, options, *args, **kwargs)
        at, began = sources.place(text, self._folder()), time.process_time()
        text = at.spread(text)

        def compiled(text: str, *more: str) -> tuple[bytes, Any]:
            with _made_to_ptx():
                made: tuple[bytes, Any] = original(at.directive() + text, (*_with_line_info(options), *more), *args, **kwargs)
            return made

        ptx, mapping = compiled(text)
        took = time.process_time() - began
        name, known = sources.kernel_name(text), None
        if not name.startswith(_OWN):
            again = lambda text, optimised: _compiled_again(compiled, text, optimised=optimised)  # noqa: E731
            known = CudaText(at.path, at.line, text, again, took)
        return self._instrument(ptx, name, relocatable=_is_relocatable(options), source=known), mapping

    def _compile_nvcc(
        self,
        original: Callable[..., Any],
        source: str,
        options: tuple[str, ...] = (),
        arch: Any = None,
        filename: str = "kern.cu",
        code_type: str = "cubin",
        separate_compilation: bool = False,
        log_stream: Any = None,
    ) -> Any:
        rest = (arch, filename)
        if _produced.get() is None or code_type != "cubin" or separate_compilation:
            if code_type == "cubin":
                self._list(f"{sources.kernel_name(source)} (compiled by nvcc)")
            return original(source, options, *rest, code_type, separate_compilation, log_stream)
        ptx = original(self._with_line(source), _with_line_info(options), *rest, "ptx", False, log_stream)
        return self._instrument(ptx, sources.kernel_name(source))

    def _raw_module(self, original: Callable[..., Any], code: Any, path: Any, *args: Any) -> Any:
        if path is None:
            return original(code, path, *args)
        prepared, replacement = self._instrument_file(str(path))
        module = original(code, replacement, *args)
        if prepared is not None and not any(known is module for _, known in self._attached):
            self._attach(prepared, module)
        return module

    # -- the work ---------------------------------------------------------------------------------------------------------------

    def _with_line(self, source: str) -> str:
        at = sources.place(source, self._folder())
        return at.directive() + at.spread(source)

    def _instrument(self, ptx: bytes, name: str, *, relocatable: bool = False, source: CudaText | None = None) -> bytes:
        prepared = self._prepared(ptx, name, launches=relocatable)
        if source is not None:
            self._open.unoptimised.texts[prepared.plain] = source
        produced = _produced.get()
        if produced is not None:
            produced.append(prepared)
        if relocatable:  # CuPy links it with the device runtime library: the linker takes PTX
            text: str = prepared.instrumented.ptx
            return text.encode() + b"\0"
        return cubin_of(prepared)

    def _prepared(self, ptx: bytes, name: str, *, launches: bool = False) -> PreparedLike:
        """`launches`: its kernels may launch others."""
        unseen = _LAUNCH if launches else "" if self._sees_launches else _CALLED
        return self._open.instrument_for_framework(ptx.rstrip(b"\0").decode(), name=name, unseen=unseen)

    def _instrument_file(self, path: str) -> tuple[PreparedLike | None, str]:
        """Instrument a PTX file; a binary is listed and loaded as it is."""
        data = Path(path).read_bytes()
        if data.startswith((_ELF, _FATBIN)):
            self._list(f"{path} (a binary: no PTX to instrument)")
            return None, path
        prepared = self._prepared(data, path)
        # The name depends on the contents: CuPy remembers modules by path.
        cubin = cubin_of(prepared)
        target = self._folder() / f"{Path(path).stem}-{hashlib.sha256(cubin).hexdigest()[:12]}.cubin"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(cubin)
        return prepared, str(target)

    def _attach(self, prepared: PreparedLike, module: Any) -> None:
        self._attached.append((prepared, module))
        self._attach_to_session(prepared, module)

    def _attach_to_session(self, prepared: PreparedLike, module: Any) -> None:
        self._open.attach(prepared, _symbol_writer(module))
        if prepared.gets_logs:
            self.recorded.add(self._open, prepared, module.ptr)

    def _again(self, prepared: PreparedLike, module: Any) -> PreparedLike:
        """Give a module that an earlier session loaded to this one; it must have the same hooks."""
        found = renewed(self._open, prepared)
        if found is None:
            self._list(prepared.name)
            return prepared
        self._attach_to_session(found, module)
        return found

    def _launched(self, made: CupyLaunch) -> int:
        """Make a launch; returns the status of the driver."""
        module, entry = self.driver.kernels.get(made.function, (0, ""))
        if module not in self.recorded:
            return made.make(made.function)
        status = 0
        args = functools.partial(self.recorded.parameters, module, entry, made.params, made.extra)
        launch = FrameworkLaunch(
            entry, made.grid, made.block, (1, 1, 1), made.stream, self.recorded.loaded(module), made.shared, args, _EDGE, replaceable=True
        )
        try:
            with self.recorded.launching(self._session, launch, made.key) as other:
                status = made.make(other or made.function)
                if status:
                    raise UsageError("the driver has refused the launch")
        except DeviceLost as error:  # as every call of a broken context ends
            return error.code
        except UsageError:
            if not status:
                raise
        return status

    def _repeats(self, real: Callable[..., int], key: tuple[Any, ...], given: tuple[Any, ...]) -> Any:
        """Make a launch that was made before; returns the status of the driver, or `NOT_REPEATED`."""
        asked = functools.partial(self.recorded.parameters_of, given[len(key) :])
        return self.recorded.repeat(
            self._session, key, asked, real, given, gives_status=True, words=key if self.driver.is_in_c(real) else ()
        )

    def _list(self, name: str) -> None:
        if self._session is not None:
            self._session.uninstrumented(name)

    def _count_launches(self, library: ModuleType) -> None:
        label, pattern = _LIBRARIES[library.__name__]
        for name in dir(library):
            if pattern.match(name) and not _NOT_LAUNCHES.match(name) and callable(getattr(library, name)):
                self._wrap(library, name, self._library_call, f"{label} {name}")

    def _library_call(self, label: str, original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        self._list(label)
        return original(*args, **kwargs)


def _check_version(cupy: ModuleType, compiler: ModuleType, raw: ModuleType) -> None:
    found = f"CuPy {cupy.__version__}"
    if getattr(compiler.runtime, "is_hip", False):
        raise NotSupported(f"{found} is built for ROCm; consan instruments NVIDIA PTX only")
    missing = [name for name in _REQUIRED if not hasattr(compiler, name)]
    missing += [] if any(hasattr(compiler, name) for name in _COMPILERS) else [_COMPILERS[0]]
    missing += [] if hasattr(raw, "_get_raw_module") else ["_get_raw_module"]
    numbers = tuple(int(number) for number in re.findall(r"\d+", cupy.__version__)[:2])
    if missing or numbers < _OLDEST:
        what = f"; it lacks {', '.join(missing)}" if missing else ""
        raise NotSupported(f"{found} is not supported by consan's adapter, which needs CuPy {'.'.join(map(str, _OLDEST))} or newer{what}")


def _choose_arch(compiler: ModuleType, original: Callable[..., Any], arch: Any = None) -> Any:
    if not _to_ptx.get():
        return original(arch)
    return f"-arch=compute_{arch if arch is not None else compiler._get_arch()}", "ptx"


@contextlib.contextmanager
def _made_to_ptx() -> Iterator[None]:
    """Inside the block CuPy compiles to PTX, also when the session is over and nothing of CuPy is replaced."""
    compiler: Any = importlib.import_module("cupy.cuda.compiler")
    before, token = getattr(compiler, _CHOOSES_ARCH), _to_ptx.set(True)
    setattr(compiler, _CHOOSES_ARCH, functools.partial(_choose_arch, compiler, before))
    try:
        yield
    finally:
        setattr(compiler, _CHOOSES_ARCH, before)
        _to_ptx.reset(token)


def _compiled_again(compiled: Callable[..., tuple[bytes, Any]], text: str, *, optimised: bool) -> str:
    try:
        return compiled(text, *(() if optimised else UNOPTIMISED))[0].rstrip(b"\0").decode()
    except Exception as error:  # as CuPy raises it
        raise UsageError(str(error)) from None


def _is_lto(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    return "lto" in args or kwargs.get("method") == "lto"


def _is_relocatable(options: tuple[str, ...]) -> bool:
    return any(option in ("--device-c", "-dc", "-rdc=true", "--relocatable-device-code=true") for option in options)


def _with_line_info(options: tuple[str, ...]) -> tuple[str, ...]:
    return options if any(option in _LINE_INFO for option in options) else (*options, "-lineinfo")


def _symbol_writer(module: Any) -> Callable[[str, bytes], None]:
    def write(name: str, data: bytes) -> None:
        runtime = importlib.import_module("cupy.cuda.runtime")
        buffer = ctypes.create_string_buffer(data, len(data))
        runtime.memcpy(module.get_global_var(name), ctypes.addressof(buffer), len(data), runtime.memcpyHostToDevice)

    return write
