"""Triton on the GPU: every kernel that Triton loads becomes an instrumented one.

Read against Triton 3.6 and 3.9. `CompiledKernel._init_handles` loads a compiled kernel into the driver on first use. It is
wrapped: the PTX that Triton keeps beside the cubin is instrumented and assembled, that cubin is loaded in place of Triton's, and the
control block is written in the module. This covers kernels of `@triton.jit`, Gluon, autotuners, `triton.compile` and TorchInductor,
whose workers compile in their own processes, while this process loads. Only TorchInductor's own loader, which reads cubins from
files, is turned off for the session, through torch's public `config.patch`.

- No cache ever holds an instrumented kernel.
- `Autotuner.run` runs the first configuration that compiles and fits, and the report says which: times with hooks mean nothing, and each
  configuration would be assembled with hooks.
- The driver's device number has the real value but is equal to no plain number. Triton caches kernels by it, so kernels of a session
  and others are never mixed.
- Where the session records, the kernel's launcher (`CompiledKernel._run`) is replaced: each launch gets a log.
- A launch of a kernel that was loaded before the session is listed (`launch_enter_hook`).

Kernels loaded under an earlier session are attached to the new one. Not handled: AMD, AOTInductor and TorchInductor's C++ wrappers
(their own code loads cubins: noted where torch says so), kernels that `triton.tools` compiled ahead of
time, and torch's own kernels, which are machine code (noted).
"""

from __future__ import annotations

import functools
import math
import sys
import weakref
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

from consan.adapters.base import PreparedLike, SessionLike, cubin_of, renewed
from consan.adapters.buffers import buffers
from consan.adapters.recorded import FrameworkModules
from consan.adapters.triton import harness
from consan.adapters.triton.code import framework_of_source, ptx_of
from consan.adapters.triton.parameters import SCRATCHES, identities, kinds_in_c, on_gpu
from consan.adapters.triton.seam import TritonSeam
from consan.backends.armed import MOST_PACKED, armed_functions
from consan.backends.cuda import CudaModule
from consan.session.framework_launch import FrameworkLaunch
from consan.session.modules.parameters import Parameters
from consan.session.repeated_launch import NOT_REPEATED

_EDGE = " (second.wait_stream(first))"  # how a program lets one stream wait for another
_FUNCTION = 4  # the place of the handle of the kernel
_BEFORE_ARGUMENTS = 4  # behind the handle of the kernel: two pieces of metadata, two hooks
UNHEARD = object()  # metadata of a launch that no hook but consan's gets


class CheckedDevice(int):
    """A device number as key of instrumented kernels. It equals no plain number, and no number for other hooks."""

    hooks: str
    __hash__ = int.__hash__  # no Python for each launch

    def __new__(cls, number: int, hooks: str) -> CheckedDevice:
        """The device `number`, for one set of hooks."""
        made = super().__new__(cls, number)
        made.hooks = hooks
        return made

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CheckedDevice) and int(self) == int(other) and self.hooks == other.hooks

    def __ne__(self, other: object) -> bool:
        return not self == other


class _Devices(dict[int, CheckedDevice]):
    """The devices by their numbers."""

    def __init__(self, hooks: str) -> None:
        self._hooks = hooks

    def __missing__(self, number: int) -> CheckedDevice:
        return self.setdefault(number, CheckedDevice(number, self._hooks))


class CheckedDriver:
    """Triton's current driver with another device number. Created on Triton's first request."""

    def __init__(self, config: Any, active: Any, hooks: str) -> None:
        self._config, self._given = config, active
        self._devices = _Devices(hooks)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._given if self._given is not None else self._config.default, name)

    def get_current_device(self) -> int:
        """The device's number, as a separate key. Triton asks before each launch, and finds an object that it has seen at once."""
        real = self._given if self._given is not None else self._config.default
        # Each launch calls both: no function of Python is between Triton and the driver from now on.
        self.get_current_stream = real.get_current_stream
        device: Callable[[], CheckedDevice] = functools.partial(next, map(self._devices.__getitem__, iter(real.get_current_device, None)))
        self.get_current_device = device  # type: ignore[method-assign]
        return device()


class RecordedRun:
    """Stands for the launcher of one recorded kernel (`CompiledKernel.run`): makes the launches that C does not (`recorded_run`)."""

    def __init__(self, adapter: TritonAdapter, module: CudaModule, kernel: Any) -> None:
        run = kernel._run
        self.plain: Callable[..., Any] = run.plain if is_recorded(run) else run
        self._adapter, self._module, self._metadata = adapter, module, kernel.metadata
        self._names = argument_names(kernel)
        signature = getattr(getattr(kernel, "src", None), "signature", None)
        self.types = tuple(signature.values()) if isinstance(signature, dict) else None
        self._last: tuple[Any, Parameters | None] = (None, None)  # what the last arguments were, and their parameters

    def __getattr__(self, name: str) -> Any:
        return getattr(self.plain, name)

    def __call__(self, x: int, y: int, z: int, stream: int, function: int, packed: Any, metadata: Any, *rest: Any) -> Any:
        """Launch, as Triton's launcher, which takes two hooks and the arguments of the kernel behind these."""
        recorded, session = self._adapter.recorded, self._adapter._session
        key = function, x, y, z, 0, 0, 0, 0, stream  # as launcher.h has it
        rest = (packed, metadata, *rest) if metadata is not UNHEARD else (packed, None, None, None, *rest[2:])
        args = functools.partial(self._parameters, rest[_BEFORE_ARGUMENTS:])
        result = recorded.repeat(session, key, args, self.plain, (x, y, z, stream, function, *rest), at=_FUNCTION, words=key)
        if result is not NOT_REPEATED:
            return result
        known = self._metadata
        ctas = int(getattr(known, "num_ctas", 1))
        cluster, block = (ctas, 1, 1), (known.num_warps * 32, 1, 1)
        named = functools.partial(buffers, rest[_BEFORE_ARGUMENTS:], self._names)
        launch = FrameworkLaunch(
            known.name, (x * ctas, y, z), block, cluster, stream or 0, self._module, known.shared, args, _EDGE, named, replaceable=True
        )
        with recorded.launching(session, launch, key) as other:
            return self.plain(x, y, z, stream, other or function, *rest)

    def failed(self, error: BaseException, given: tuple[Any, ...]) -> None:
        """A launch that C has made has raised an error, with these arguments."""
        known = self._metadata
        with self._adapter.recorded.failing(self._module.handle, known.name, math.prod(given[:3]) * known.num_warps * 32):
            raise error

    def _parameters(self, values: Sequence[Any], _: FrameworkLaunch | None = None) -> Parameters | None:
        """The parameters for these arguments; None where they cannot be known."""
        if self.types is None:
            return None
        found = identities(values)
        if found is None or found != self._last[0]:
            declared = self._adapter.recorded.declared(self._module.handle, self._metadata.name)
            self._last = found, on_gpu(self.types, values, self._metadata, declared)
        return self._last[1]


def is_recorded(run: Any) -> bool:
    """Whether a kernel's launcher is one of consan's."""
    return isinstance(run, RecordedRun)  # that of C says that it is one, too


def recorded_run(adapter: TritonAdapter, module: CudaModule, kernel: Any) -> Any:
    """The launcher of a recorded kernel: of C, which leaves launches that it does not know to Python; or of Python, without C."""
    run, functions = RecordedRun(adapter, module, kernel), armed_functions()
    kinds = None if run.types is None else kinds_in_c(run.types)
    if functions is None or kinds is None or len(kinds) > MOST_PACKED or any(getattr(kernel.metadata, name, 0) for name in SCRATCHES):
        return run
    return functions.before(run, run.plain, UNHEARD, kinds)


def argument_names(kernel: Any) -> Sequence[str]:
    """The names of the arguments of a compiled kernel; none where its source is not known."""
    names: Sequence[str] = getattr(getattr(getattr(kernel, "src", None), "fn", None), "arg_names", ())
    return names


class TritonAdapter(TritonSeam):
    """Instruments the kernels of the Triton that the program imports."""

    covers = "all kernels that it loads, Gluon's and TorchInductor's with them"

    def __init__(self) -> None:
        super().__init__()
        # Every instrumented kernel in use: a later session attaches to it again.
        self._attached: list[tuple[PreparedLike, weakref.ref[Any]]] = []
        self._functions: set[Any] = set()  # handles of the kernels attached to this session
        self.recorded = FrameworkModules()

    def install(self, session: SessionLike) -> None:
        """Patch Triton now or when it is imported."""
        super().install(session)
        self._functions = set()
        alive = [(prepared, kernel) for prepared, reference in self._attached if (kernel := reference()) is not None]
        self._attached = [(self._again(prepared, kernel), weakref.ref(kernel)) for prepared, kernel in alive]

    def remove(self) -> None:
        """Restore Triton's driver and functions. Loaded kernels stay as they are."""
        cuda = getattr(sys.modules.get("torch"), "cuda", None)
        if self._session is not None and cuda is not None and cuda.is_initialized():
            self._session.note("torch's own kernels (ATen, cuBLAS and so on) come as machine code: they are neither checked nor counted")
        self.recorded.forget()
        super().remove()

    def _patch(self, triton: ModuleType) -> None:
        config = triton.runtime.driver
        policy = self._open.options.policy  # decides what is watched
        self._patches.set(config, "_active", CheckedDriver(config, config._active, policy))  # as `set_active` does
        self._wrap(sys.modules["triton.compiler.compiler"].CompiledKernel, "_init_handles", self._load)
        self._wrap(sys.modules["triton.runtime.autotuner"].Autotuner, "run", harness.first_that_fits, self._open)
        chain, count = triton.knobs.runtime.launch_enter_hook, self._count
        chain.add(count)
        self._undo.append(lambda: chain.remove(count))
        compiled = sys.modules["triton.compiler.compiler"].CompiledKernel
        self._patches.set(compiled, "launch_metadata", self._described(compiled.launch_metadata, triton.knobs.runtime, count))
        if self._open.options.skip_benchmarks:
            self._when("triton.testing", self._skip_benchmarks)
        self._when("torch._inductor.config", self._patch_inductor)

    def _patch_inductor(self, config: ModuleType) -> None:
        wanted = {"use_static_cuda_launcher": False, "autotune_local_cache": False, "autotune_remote_cache": False}
        context = config.patch({name: value for name, value in wanted.items() if hasattr(config, name)})
        context.__enter__()
        self._undo.append(lambda: context.__exit__(None, None, None))
        if getattr(config, "cpp_wrapper", False):
            self._open.note("TorchInductor's cpp_wrapper is on: it loads Triton kernels itself, and those are not checked")

    # -- the work ---------------------------------------------------------------------------------------------------------------

    def _load(self, original: Callable[..., None], kernel: Any) -> None:
        """Wraps `CompiledKernel._init_handles`: loads the instrumented cubin."""
        if kernel.module is not None:
            return original(kernel)
        prepared = self._open.instrument_for_framework(ptx_of(kernel), name=kernel.name)
        prepared.framework = framework_of_source(getattr(kernel, "src", None))
        binary, kernel.kernel = kernel.kernel, cubin_of(prepared)
        try:
            original(kernel)
        finally:
            kernel.kernel = binary
        self._attached.append((prepared, weakref.ref(kernel)))
        self._attach(prepared, kernel)
        return None

    def _attach(self, prepared: PreparedLike, kernel: Any) -> None:
        backend = self._open.backend
        module = CudaModule(int(kernel.module))
        self._open.attach(prepared, lambda name, data: backend.write(backend.symbol(module, name)[0], data))
        self._functions.add(kernel.function)
        if prepared.recorded is not None:
            self.recorded.add(self._open, prepared, module.handle)
            kernel._run = recorded_run(self, self.recorded.loaded(module.handle), kernel)

    def _again(self, prepared: PreparedLike, kernel: Any) -> PreparedLike:
        """Attach a kernel loaded by an earlier session to this one, if its hooks are the same."""
        found = renewed(self._open, prepared, "where it is still in use, it is not checked in this session")
        if found is None:
            return prepared
        self._attach(found, kernel)
        return found

    def _described(self, original: Callable[..., Any], knobs: Any, count: Any) -> Callable[..., Any]:
        """Stands for `CompiledKernel.launch_metadata`, which each launch calls with its arguments: the text for hooks of launches.

        `count`: consan's own hook, which wants no text of a recorded kernel. Such a launch names its buffers itself.
        """

        ours = [count]

        def launch_metadata(kernel: Any, grid: Any, stream: Any, *args: Any) -> Any:
            if kernel._run.__class__ is RecordedRun and kernel.function in self._functions:
                alone = getattr(knobs.launch_enter_hook, "calls", None) == ours and getattr(knobs.launch_exit_hook, "calls", None) == []
                return UNHEARD if alone else original(kernel, grid, stream, *args)
            result = original(kernel, grid, stream, *args)  # loads the kernel
            if not is_recorded(kernel._run):
                self._name(kernel, args)
            return result

        return launch_metadata

    def _name(self, kernel: Any, args: Sequence[Any]) -> None:
        """Name the buffers of a launch with hooks."""
        prepared = next((prepared for prepared, reference in self._attached if reference() is kernel), None)
        if prepared is not None:
            self._open.launched(prepared, kernel.name, buffers(args, argument_names(kernel)))

    def _count(self, metadata: Any) -> None:
        """Wraps `launch_enter_hook`: lists kernels without hooks."""
        known = getattr(metadata, "data", None)
        if known is not None and known.get("function") not in self._functions:
            self._open.uninstrumented(str(known.get("name")))
