"""A session: all modules instrumented and launched on one device, from its creation to `report()`.

It prepares modules (instrument, assemble, load, write the control block), launches them, and turns the device's records into
one report. Instrumented text is cached by content: a kernel that is compiled twice is prepared once.

Not handled: several devices, and kernels that exist only as machine code (listed as uninstrumented).
"""

from __future__ import annotations

import contextlib
import functools
import math
import threading
import weakref
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from consan import faults
from consan._errors import EnvironmentFailure, NotSupported, UsageError
from consan.backends.base import DeviceLost, Dim3
from consan.instrument import CONTROL, SEED, Instrumented, cluster_tier, instrument
from consan.instrument.between import TextRelations
from consan.instrument.ptx import PtxSyntaxError
from consan.instrument.runtime import RuntimeLibrary, Variant, load, runtime_architecture
from consan.instrument.slots import class_bytes, slot_bytes
from consan.instrument.stored import dump, fingerprint, restore
from consan.layouts import AddressName, layout_of
from consan.options import ASSEMBLIES, DEVICES, POLICIES
from consan.producers import framework_of
from consan.progress import SILENT, Progress
from consan.registers import assemble_with_hooks
from consan.reports import model
from consan.reports.decode import ModuleSites, decode
from consan.reports.divergence import blame_divergence
from consan.reports.frameworks import CUDA
from consan.reports.positions import unfinished
from consan.reports.static import static_findings
from consan.reports.variables import Layout
from consan.shadow import Counters, Drained, Room, Shadow, arena_bytes_of
from consan.standing import stands
from consan.toolchain.cache import Cache, key
from consan.unmatched import Launches, why_nothing

if TYPE_CHECKING:
    from consan.options import KernelFilter

CHECKED = (
    *("shared-memory", "barriers", "warp-barriers", "cp.async", "uninitialized-shared-memory", "shared-memory-bounds"),
    *("mbarriers", "bulk-copies", "matrix-operands", "matrix-registers", "proxies", "clusters"),
)
_MERGE_FROM = 512  # findings that did not come from the device's tables, which merge by themselves
_NAMED_LAUNCHES = 64  # of one kernel: after more no address is told by arguments
_KEPT = 48  # modules that the virtual machine keeps beyond those in use: a decoded one takes up to 50 MB


@dataclass
class Prepared:
    """One module: its text, the instrumented text, and the loaded form. `number` and `counter` place it in the shadow's tables."""

    name: str
    plain: str
    instrumented: Instrumented
    number: int
    counter: int
    cubin: bytes | None = None
    notes: tuple[str, ...] = ()  # notes of the assembler for the report
    loaded: Any = None
    plain_loaded: Any = None
    launched: bool = False
    delayed: bool = False  # whether it was assembled with seeded delays
    framework: str = CUDA  # the framework whose words the fixes use
    layout: Callable[[str], Layout] = lambda entry: Layout()  # of a kernel's shared memory, where known
    address_name: Callable[[int, int], str] = lambda begin, end: ""  # names bytes of global memory

    @property
    def entries(self) -> tuple[str, ...]:
        """Names of the kernels."""
        return self.instrumented.entries


def open_backend(device: str) -> Any:
    """The backend for `--device`. `auto` takes the GPU if there is one."""
    from consan.backends.virtual import VirtualBackend

    if device == "cpu":
        return VirtualBackend()
    try:
        from consan.backends.cuda import CudaBackend

        return CudaBackend()
    except (EnvironmentFailure, OSError) as error:
        if device == "gpu":
            raise EnvironmentFailure(f"--device gpu: {error}") from None
        return VirtualBackend()


_Wanted = tuple[str, Variant, bool]  # a module's text, its variant, and whether it is assembled fast


class Device:
    """One device of this process: its backend, its shadow and its prepared modules. Successive sessions share it."""

    def __init__(self, backend: Any, *, arena_bytes: int | None = None) -> None:
        self.backend = backend
        self.modules: OrderedDict[_Wanted, Prepared] = OrderedDict()  # least recently used first
        self._alive: weakref.WeakValueDictionary[int, Prepared] = weakref.WeakValueDictionary()  # kept modules, and those in use
        self._unused: deque[Any] = deque()  # loaded modules that nobody holds any more
        self.lost = False
        self.delay_seed: int | None = None  # seed of the delays in assembled code; None: no delays
        self._owner: weakref.ref[Session] | None = None
        self.lock = threading.RLock()  # host threads prepare modules, and choose and count launches, one at a time
        self._arena_bytes = arena_bytes

    @functools.cached_property
    def shadow(self) -> Shadow:
        """The shadow tables. Created with the first module."""
        return Shadow(self.backend, arena_bytes=self.most_shadow)

    @property
    def most_shadow(self) -> int:
        """Limit on the bytes of shadow cells."""
        return self._arena_bytes or arena_bytes_of(self.backend)

    @property
    def owner(self) -> Session | None:
        """The session that the shadow records for."""
        return self._owner() if self._owner is not None else None

    def hand_to(self, session: Session | None) -> None:
        """Let the shadow record for this session. The previous one keeps its own records."""
        with self.lock:
            before = self.owner
            if session is None or session is before:
                return
            if before is not None:
                before.harvest()
            if not self.lost:
                self.shadow.reset(cta_limit=session.cta_limit)
            self._owner = weakref.ref(session)

    def renew(self) -> None:
        """Reset what earlier launches left behind (virtual machine only), so that the next launch runs as a first one."""
        self._owner = None
        self.backend.machine.renew()
        if "shadow" in self.__dict__:
            self.shadow.renew()
            for prepared in self.prepared():
                self.plant(prepared)

    def recall(self, wanted: _Wanted) -> Prepared | None:
        """A prepared module from the cache, or None."""
        found = self.modules.get(wanted)
        if found is not None:
            self.modules.move_to_end(wanted)
        return found

    def keep(self, wanted: _Wanted, prepared: Prepared) -> Prepared:
        """Keep a module by its content. The virtual machine drops the least recently used, and unloads them when nobody holds them."""
        self.modules[wanted] = self._alive[prepared.number] = prepared
        while self.backend.device_name == "cpu" and len(self.modules) > _KEPT:
            self.modules.popitem(last=False)
        while self._unused:
            self.backend.unload(self._unused.popleft())
        return prepared

    def prepared(self) -> list[Prepared]:
        """All modules that can still be launched."""
        return list(self._alive.values())

    def unload_with(self, prepared: Prepared, loaded: Any) -> None:
        """Unload a module after it is freed (virtual machine only), at the next `keep`: no launch is running then."""
        if self.backend.device_name == "cpu":
            weakref.finalize(prepared, self._unused.append, loaded).atexit = False

    def plant(self, prepared: Prepared) -> None:
        """Write the control block of a loaded module."""
        if prepared.loaded is not None:
            address, _ = self.backend.symbol(prepared.loaded, CONTROL)
            self.backend.write(address, self.shadow.control_block(prepared.number, prepared.counter))
            if prepared.delayed:
                self.backend.write(self.backend.symbol(prepared.loaded, SEED)[0], self.delay_bytes())

    def delay(self, seed: int) -> None:
        """Delay warps at synchronising instructions, by this seed. The first call must come before any module is prepared."""
        self.delay_seed = seed
        for prepared in self.prepared():
            self.plant(prepared)

    def delay_bytes(self) -> bytes:
        """The bytes of a module's SEED."""
        return ((self.delay_seed or 0) & 0xFFFFFFFF).to_bytes(4, "little")

    def close(self) -> None:
        """Free the shadow, if it exists and the context is alive."""
        shadow = self.__dict__.pop("shadow", None)
        if shadow is not None and not self.lost:
            self.modules.clear()
            shadow.close()


_DEVICES: dict[tuple[str, int | None], Device] = {}
_DEVICES_LOCK = threading.Lock()


def new_device(name: str, shadow_memory: int | None = None) -> Device:
    """A device that nobody else uses."""
    return Device(open_backend(name), arena_bytes=shadow_memory)


def shared_device(name: str, shadow_memory: int | None = None) -> Device:
    """The process's device of this kind, with this limit on shadow cells. A lost GPU is not reused."""
    with _DEVICES_LOCK:
        found = _DEVICES.get((name, shadow_memory))
        if found is None or found.lost:
            found = new_device(name, shadow_memory)
            _DEVICES[name, shadow_memory] = found
            _DEVICES.setdefault(("cpu" if found.backend.device_name == "cpu" else "gpu", shadow_memory), found)
        return found


@functools.cache
def runtime_library(variant: Variant, architecture: str) -> RuntimeLibrary:
    """The shadow runtime of one variant: compiled once, cached on disk."""
    return load(variant, architecture, compile_runtime)


def compile_runtime(source: str, architecture: str, defines: dict[str, str]) -> str:
    """Compile the shadow runtime, through the disk cache. Implements `instrument.runtime.Compiler`."""
    from consan.toolchain.nvrtc import compile_ptx

    def compile_now() -> str:
        options = ("-rdc=true",)
        return compile_ptx(source, name="consan_runtime.cu", arch=architecture, defines=dict(defines), options=options).ptx

    return Cache().fetch_text(key("runtime", source, architecture, *sorted(f"{k}={v}" for k, v in defines.items())), compile_now)


def _check_choices(
    device: str, seed: int, policy: str, assembly: str, timeout: float | None, shadow_memory: int | None
) -> None:
    """A misspelt device or policy must not select another one."""
    for name, value, known in (("device", device, DEVICES), ("policy", policy, POLICIES), ("assembly", assembly, ASSEMBLIES)):
        if value not in known:
            raise UsageError(f"{name}={value!r}: expected {' or '.join(map(repr, known))}")
    if not isinstance(seed, int):
        raise UsageError(f"seed={seed!r}: expected a whole number")
    if shadow_memory is not None and not (isinstance(shadow_memory, int) and shadow_memory > 0):
        raise UsageError(f"shadow_memory={shadow_memory!r}: expected a number of bytes above zero")
    if timeout is not None and not (isinstance(timeout, (int, float)) and 0 < timeout < math.inf):
        raise UsageError(f"timeout={timeout!r}: expected a time in seconds above zero")


class Session:
    """What is checked, and how; the options are those of `consan check`. Call `report()` when the work is done."""

    def __init__(
        self,
        *,
        device: str = "auto",
        seed: int = 0,
        strict: bool = False,
        policy: str = "default",
        kernel_filter: KernelFilter | None = None,
        launch_skip: int = 0,
        launch_count: int | None = None,
        timeout: float | None = None,
        cta_limit: int = 0,
        shadow_memory: int | None = None,
        private: bool = False,
        assembly: str = "best",
        variant: Variant | None = None,
        triton_arch: str = "sm_90",
        skip_benchmarks: bool = False,
    ) -> None:
        _check_choices(device, seed, policy, assembly, timeout, shadow_memory)
        private = private or variant is not None
        make = new_device if private else shared_device
        self.device = make(device, shadow_memory)
        self._finish = weakref.finalize(self, self.device.close) if private else None
        self.backend = self.device.backend
        self.seed = seed
        self.strict = strict
        self.policy = policy
        self._fast = assembly == "fast"
        self.timeout = timeout
        self.alone = True  # whether nothing runs beside a launch: no host code or other launch writes what it reads
        self.source_dir: Path | None = None  # where adapters keep copies of sources; default: a folder of the process
        self.triton_arch = triton_arch  # the target of Triton on the virtual machine
        self.skip_benchmarks = skip_benchmarks
        self.progress = SILENT
        self._filter = kernel_filter
        self._skip, self._limit = launch_skip, launch_count
        self._base = replace(variant or Variant(), isa=policy == "isa" or (variant is not None and variant.isa))
        self._inline = self.backend.device_name != "cpu"
        self.cta_limit = cta_limit
        self.endings: dict[str, None] = {}  # how launches ended early: "timeout", "deadlock", "fault", in the order of their first
        self.address_name: Callable[[int, int], str] = lambda begin, end: ""  # of bytes of global memory: whoever knows the buffers sets it
        self._address_names: dict[tuple[int, str], dict[AddressName, None]] = {}  # of the launches of a module's kernels
        self._launches = 0
        self._ever_launched = False  # `take` does not reset it
        self._used: dict[int, Prepared] = {}
        self._unchecked: dict[tuple[int, str], int] = {}
        self._uninstrumented: dict[str, int] = {}
        self._notes: dict[str, None] = {}
        self._reasons: dict[str, None] = {}
        self._findings: list[model.Finding] = []
        self._found: list[model.Finding] = []
        self._drained: Drained | None = None

    @property
    def shadow(self) -> Shadow:
        """The device's shadow tables, recording for this session from now on."""
        self.device.hand_to(self)
        return self.device.shadow

    @contextlib.contextmanager
    def turn(self) -> Iterator[None]:
        """Inside the block the device is this session's; then it returns to its former owner. Sessions nest."""
        before = self.device.owner
        try:
            yield
        finally:
            self.device.hand_to(before)

    def show(self, progress: Progress) -> None:
        """Show progress. Only for a command, whose device serves one session."""
        self.progress = progress
        if self.backend.device_name == "cpu":
            self.backend.machine.on_ctas = progress.ctas

    # -- modules ---------------------------------------------------------------------------------------------------------

    def instrument(self, ptx: str, *, name: str = "<ptx>", cluster: int = 1) -> Prepared:
        """Instrument a module, and assemble it if the device needs that. It is not loaded yet. Cached by content.

        `cluster`: the CTAs per cluster of the launch, if the module does not fix them.
        """
        base = replace(self._base, cluster=cluster_tier(cluster))
        with self.device.lock:
            _ = self.shadow
            wanted = (ptx, base, self._fast)
            found = self.device.recall(wanted)
            if found is None:
                found = self.device.keep(wanted, self._instrument(ptx, name, base))
            self._used[found.number] = found
            return found

    def _instrument(self, ptx: str, name: str, base: Variant) -> Prepared:
        with self.progress.module(name):
            done = self._rewritten(ptx, name, base)
            number, counter = self.device.shadow.register(len(done.entries), sum(len(each.told) for each in done.functions))
            delayed = self.device.delay_seed is not None
            prepared = Prepared(name, ptx, done, number, counter, delayed=delayed, framework=framework_of(ptx))
            prepared.layout = functools.cache(functools.partial(layout_of, self.device, prepared))
            if self.backend.device_name != "cpu":
                prepared.cubin, prepared.notes = assemble_with_hooks(ptx, done, self.backend.arch, fast=self._fast)
            return prepared

    def _rewritten(self, ptx: str, name: str, base: Variant) -> Instrumented:
        """The module with hooks: made once, cached on disk."""
        made: list[Instrumented] = []
        delays = self.device.delay_seed is not None

        def make() -> str:
            try:
                made.append(instrument(ptx, base=base, library=library_for, name=name, inline=self._inline, delays=delays))
            except PtxSyntaxError as error:
                raise UsageError(str(error)) from None
            return dump(made[0])

        text = Cache().fetch_text(key("instrumented", ptx, repr(base), f"{self._inline} {delays}", fingerprint()), make)
        return made[0] if made else restore(text, ptx, name)

    def attach(self, prepared: Prepared, set_symbol: Callable[[str, bytes], None]) -> None:
        """Write the control block of a module that somebody else loaded."""
        set_symbol(CONTROL, self.shadow.control_block(prepared.number, prepared.counter))
        if prepared.delayed:
            set_symbol(SEED, self.device.delay_bytes())

    def prepare(self, ptx: str, *, name: str = "<ptx>", cluster: int = 1) -> Prepared:
        """Instrument and load a module, ready for `launch`."""
        with self.device.lock:
            prepared = self.instrument(ptx, name=name, cluster=cluster)
            if prepared.loaded is None:
                self._load(prepared, name)
            return prepared

    def _load(self, prepared: Prepared, name: str) -> None:
        backend, cubin, text = self.backend, prepared.cubin, prepared.instrumented.ptx
        prepared.loaded = backend.load(text, name=name) if cubin is None else backend.load_cubin(cubin)
        self.device.unload_with(prepared, prepared.loaded)
        self.device.plant(prepared)

    # -- launches --------------------------------------------------------------------------------------------------------

    def room(self, prepared: Prepared, entry: str, block: Dim3, shared: int = 0, cluster: Dim3 = (1, 1, 1)) -> Room:
        """The shadow memory that one CTA or cluster of such a launch takes."""
        variant = self._for_cluster(prepared, math.prod(cluster)).instrumented.variant
        ctas = math.prod(cluster) if math.prod(cluster) > 1 else max(variant.cluster, 1)  # the module may fix the cluster size
        bytes_ = self.backend.resources(prepared.loaded, entry).static_shared + shared
        return Room(class_bytes(slot_bytes(variant, math.prod(block), bytes_, ctas)), ctas * bytes_, ctas, self.device.most_shadow)

    def launch(
        self,
        prepared: Prepared,
        entry: str,
        grid: Dim3,
        block: Dim3,
        args: Sequence[bytes],
        *,
        shared: int = 0,
        cluster: Dim3 = (1, 1, 1),
        cooperative: bool = False,
        stream: int | None = None,
        address_name: AddressName | None = None,
    ) -> None:
        """Launch a kernel of a prepared module, checked unless the filters leave it out.

        `address_name` names global memory by this launch's arguments; without it the session's does.
        """
        # Held to the end: what another thread's session launches meanwhile would be counted as this one's, or forgotten by it.
        with self.device.lock:
            self.device.hand_to(self)
            prepared = self._for_cluster(prepared, math.prod(cluster))
            prepared.address_name = address_name or self.address_name
            self._note_names(prepared, entry)
            handle = self._choose(prepared, entry)
            self._ever_launched = True
            prepared.launched |= handle is prepared.loaded
            if cooperative:
                self._check_residency(handle, entry, grid, block, shared)
            threads = math.prod(grid) * math.prod(block)
            with self.progress.launch(entry), self._ending(prepared, entry, handle, threads):
                result = self.backend.launch(
                    handle,
                    entry,
                    grid,
                    block,
                    args,
                    shared=shared,
                    cluster=cluster,
                    cooperative=cooperative,
                    seed=self.seed,
                    timeout=self.timeout,
                    stream=stream,
                )
                self._after_launch(prepared, entry, result, threads)

    def _note_names(self, prepared: Prepared, entry: str) -> None:
        names = self._address_names.setdefault((prepared.number, entry), {})
        if len(names) <= _NAMED_LAUNCHES:
            names[prepared.address_name] = None

    def _address_name(self, number: int, entry: str, begin: int, end: int) -> str:
        """What all launches of a kernel call these bytes: a record does not tell which launch it is from."""
        names = self._address_names.get((number, entry), {})
        told = {name(begin, end) for name in names} if len(names) <= _NAMED_LAUNCHES else set()
        return told.pop() if len(told) == 1 else ""

    @contextlib.contextmanager
    def _ending(self, prepared: Prepared, entry: str, handle: Any, threads: int) -> Iterator[None]:
        """A launch that does not get to its end is in the report, also where the program goes on after the error.

        A launch that the device refuses (`UsageError`) is not reported: it fails without consan too.
        """
        try:
            yield
        except DeviceLost as error:
            self._device_lost(entry, error)
        except NotSupported as error:
            told = faults.located(error, prepared) if handle is prepared.loaded else error
            self._unfinished(entry, str(told))
            raise told from None
        except MemoryError:
            self._unfinished(entry, "there was not enough memory")
            raise EnvironmentFailure(f"launch of {entry}: there is not enough memory for the virtual machine to run it") from None
        except KeyboardInterrupt as error:
            if hasattr(error, faults.STOOD):  # the virtual machine has ended the launch, and tells where it stood
                self._reasons[faults.interrupted(error, prepared, entry)] = None
            else:
                self._end_running(entry, "interrupted", 0.0, threads)
            raise
        except BaseException as error:
            if type(error) is not UsageError:
                self._unfinished(entry, str(error) or type(error).__name__)
            raise

    def _unfinished(self, entry: str, why: str) -> None:
        self._reasons[unfinished(entry, why)] = None

    def _for_cluster(self, prepared: Prepared, ctas: int) -> Prepared:
        """The module for launches with this cluster size. It is instrumented again if it was not made for it."""
        if ctas <= max(1, prepared.instrumented.variant.cluster):
            return prepared
        if not prepared.launched:
            self._used.pop(prepared.number, None)
        again = self.prepare(prepared.plain, name=prepared.name, cluster=ctas)
        again.framework = prepared.framework
        return again

    def _choose(self, prepared: Prepared, entry: str) -> Any:
        """The instrumented module, or the plain one if the filters exclude this launch."""
        if self._selected(entry):
            return prepared.loaded
        place = (prepared.number, entry)
        self._unchecked[place] = self._unchecked.get(place, 0) + 1
        return self._plain(prepared)

    def _selected(self, entry: str) -> bool:
        if self._filter is not None and not self._filter.matches(entry):
            return False
        self._launches += 1
        index = self._launches - 1 - self._skip
        return index >= 0 and (self._limit is None or index < self._limit)

    def _plain(self, prepared: Prepared) -> Any:
        if prepared.plain_loaded is None:
            prepared.plain_loaded = self.backend.load(prepared.plain, name=prepared.name)
            self.device.unload_with(prepared, prepared.plain_loaded)
        return prepared.plain_loaded

    def _check_residency(self, handle: Any, entry: str, grid: Dim3, block: Dim3, shared: int) -> None:
        resident = getattr(self.backend, "resident_ctas", None)
        if resident is None:
            return
        room = resident(handle, entry, math.prod(block), shared)
        if math.prod(grid) > room:
            raise UsageError(f"{entry}: a cooperative launch of {math.prod(grid)} CTAs does not fit the device with hooks ({room} do)")

    def _after_launch(self, prepared: Prepared, entry: str, result: Any, threads: int) -> None:
        if result is not None:  # the virtual machine tells at once how it ended
            result = faults.settled(result, alone=self.alone)
            self.endings |= {result.ending: None} if result.ending else {}
            self._findings += faults.findings_of(result, prepared, entry)
            if len(self._findings) > _MERGE_FROM:  # a program may have one finding in each of a million launches
                self._findings = list(model.merge_findings(self._findings))
            self._reasons |= dict.fromkeys(faults.endings_of(result, prepared, entry, self.timeout))
        elif self.timeout is not None and not self.backend.synchronize(self.timeout):
            self._stop(entry, threads)

    def _stop(self, entry: str, threads: int = 0) -> None:
        """The launch is over time: tell its threads to leave at their next loop back-edge."""
        assert self.timeout is not None
        self.endings["timeout"] = None
        self._end_running(entry, faults.over_time(self.timeout), self.timeout, threads)

    def _end_running(self, entry: str, why: str, patience: float, threads: int = 0) -> None:
        """End what the device runs in the background; the report gets the reason and the places.

        `entry` was launched last, with so many `threads`, if it is known which launch it is.
        """
        left = self._abort(patience)
        records, over = self.shadow.take_stands(lost=not left)
        for kernel, waiters in (stands(records, self._used, entry) or {entry: []}).items():
            self._reasons[unfinished(kernel, why, waiters, over, threads if kernel == entry else 0)] = None
        if not left:
            self._reasons[f"{entry} did not react to the request to stop; the device was left to it"] = None

    def _abort(self, patience: float) -> bool:
        """Tell what runs to leave, and wait for it; False if it does not, and then the device is lost."""
        self.shadow.set_abort(True)
        if self.backend.synchronize(max(2.0, patience)):
            self.shadow.set_abort(False)
            return True
        self.device.lost = True
        return False

    def _device_lost(self, entry: str, error: DeviceLost) -> None:
        self.device.lost = True
        self._reasons[f"{entry} ended with {error.name}: the launches after it did not run, and counts are lower bounds"] = None

    def close(self) -> None:
        """Free the shadow of a session with its own device. Afterwards the session is read-only."""
        if self._finish is not None:
            self._finish()

    @property
    def device_lost(self) -> bool:
        """Whether the device's context is lost: nothing can be read back or freed."""
        return self.device.lost

    # --- other events ---------------------------------------------------------------------------------------------------

    def uninstrumented(self, name: str, launches: int = 1) -> None:
        """List a kernel that runs without instrumentation."""
        self._uninstrumented[name] = self._uninstrumented.get(name, 0) + launches

    def note(self, text: str) -> None:
        """Add a line to the report's notes, once."""
        self._notes[text] = None

    # -- the report --------------------------------------------------------------------------------------------------------

    def report(self) -> model.Report:
        """Wait for the device, read the tables, and compute the verdict."""
        found, drained = self._collect()
        counters = drained.counters if drained else None
        return model.assemble(
            device=self.backend.device_name,
            kernels=self._summaries(drained),
            findings=blame_divergence([*self._findings, *found, *self._static(drained)]),
            checked=CHECKED,
            uninstrumented=self._listed(),
            dropped=counters.dropped_findings if counters else 0,
            evicted=counters.evicted if counters else 0,
            unchecked=[*self._reasons, *self._gaps(drained), *_dropped(counters)],
            why_nothing=self._why_nothing(drained),
            notes=tuple({**self._notes, **{note: None for used in self._used.values() for note in used.notes}}),
            seed=self.seed,
            policy=self.policy,
        )

    def _why_nothing(self, drained: Drained | None) -> str:
        left_out: dict[str, int] = {}
        for (_, name), launches in self._unchecked.items():
            left_out[name] = left_out.get(name, 0) + launches
        idle = [name for used in self._used.values() for name in used.entries if not self._ever_launched]
        any_launch = drained is not None and any(self._launched(used, drained) for used in self._used.values())
        return "" if any_launch else why_nothing(Launches(self._filter, self._skip, self._launches, left_out, idle))

    def places(self, report: model.Report) -> set[tuple[str, int]]:
        """Source lines that were watched: instructions with hooks that launched kernels can reach, and inlined calls."""
        launched = {kernel.name for kernel in report.kernels if kernel.launches}
        found = set[tuple[str, int]]()
        for prepared in self._used.values():
            reached = {f.name for name in launched.intersection(prepared.entries) for f in prepared.instrumented.reachable(name)}
            for site in (site for site in prepared.instrumented.sites if site.function in reached):
                steps = ((site.file, site.line), *((frame.file, frame.line) for frame in site.inlined))
                found |= {(file, line) for file, line in steps if file and line}
        return found

    def _launched(self, prepared: Prepared, drained: Drained | None) -> dict[str, int]:
        """Checked launches per kernel of a module, without kernels that had none."""
        counts = {name: int(drained.launches[prepared.counter + i]) if drained else 0 for i, name in enumerate(prepared.entries)}
        return {name: count for name, count in counts.items() if count}

    def _static(self, drained: Drained | None) -> list[model.Finding]:
        """Hazards found in the text of launched kernels: counted once per launch, with no CTA."""
        found = []
        for prepared in self._used.values():
            launches = self._launched(prepared, drained) if prepared.instrumented.hazards else {}
            findings = static_findings(prepared.instrumented.hazards, launches, prepared.framework)
            found += [replace(finding, count=launches[finding.kernel], ctas=0) for finding in findings]
        return found

    def _gaps(self, drained: Drained | None) -> list[str]:
        """Gaps: register hazards are not checked in debug builds with matrix products."""
        return [
            f"{name} is a debug build: the registers of its matrix products were not checked"
            for prepared in self._used.values()
            if prepared.instrumented.debug
            for name in self._launched(prepared, drained)
            if any("wgmma" in function.families for function in prepared.instrumented.reachable(name))
        ]

    def harvest(self) -> None:
        """Store what the device has recorded for this session, before another session uses the tables."""
        self._found, self._drained = self._collect()

    def _collect(self) -> tuple[list[model.Finding], Drained | None]:
        """Stored records, and the tables if they record for this session. Waits for the device."""
        with self.device.lock:
            if self.device.owner is not self:
                return self._found, self._drained
            if not self.device.lost:
                self._synchronize()
            drained = self.device.shadow.drain(lost=self.device.lost)
            modules = {p.number: self._sites_of(p) for p in self._used.values()}
            found = decode(drained.records, drained.table, modules)
            return [*self._found, *found], drained if self._drained is None else self._drained.plus(drained)

    def _sites_of(self, prepared: Prepared) -> ModuleSites:
        """The module's sites for the report. The text is parsed only if there is something to report."""
        relations = TextRelations.of(prepared.plain, prepared.name)
        sites, entries = prepared.instrumented.sites, prepared.entries
        names = functools.partial(self._address_name, prepared.number)
        return ModuleSites(sites, entries, prepared.framework, prepared.layout, names, relations)

    def take(self) -> model.Report | None:
        """The report since the last `take`, and a fresh start. None if nothing was launched."""
        if not self._used and not self._uninstrumented:
            return None
        report = self.report()
        ran = tuple(kernel for kernel in report.kernels if kernel.launches)
        self._ever_launched |= bool(ran)
        for kept in (self._unchecked, self._uninstrumented, self._notes, self._reasons):
            kept.clear()
        self._findings, self._found, self._drained, self._launches = [], [], None, 0
        if self.device.owner is self and not self.device.lost:
            self.device.shadow.reset(cta_limit=self.cta_limit)
        return replace(report, kernels=ran) if ran or report.uninstrumented else None

    def _synchronize(self) -> None:
        try:
            if not self.backend.synchronize(self.timeout):
                self._stop("a kernel")
        except DeviceLost as error:
            self._device_lost("a kernel", error)
        except KeyboardInterrupt:
            self._end_running("a kernel", "interrupted", 0.0)
            raise

    def _summaries(self, drained: Drained | None) -> list[model.KernelSummary]:
        return [self._summary(p, i, name, drained) for p in self._used.values() for i, name in enumerate(p.entries)]

    def _summary(self, prepared: Prepared, index: int, name: str, drained: Drained | None) -> model.KernelSummary:
        reached = prepared.instrumented.reachable(name)
        counts: dict[tuple[str, int], int] = {}
        for each in (u for f in reached for u in f.unmodelled):
            counts[each.opcode, each.ptx_line] = counts.get((each.opcode, each.ptx_line), 0) + 1
        external = [model.Unmodelled(f"call {called}", 0) for called in prepared.instrumented.external]
        skipped = self._unchecked.get((prepared.number, name), 0)
        launches = int(drained.launches[prepared.counter + index]) if drained else 0
        return model.KernelSummary(
            name=name,
            launches=launches + skipped,
            memory_sites=sum(f.memory_sites for f in reached),
            sync_sites=sum(f.sync_sites for f in reached),
            global_stores=sum(f.global_stores for f in reached),
            global_atomics=sum(f.global_atomics for f in reached),
            generic_writes=sum(f.generic_writes for f in reached),
            open_points=sum(f.open_points for f in reached),
            unmodelled=tuple(model.Unmodelled(opcode, line, count) for (opcode, line), count in counts.items()) + tuple(external),
        )

    def _listed(self) -> list[model.Uninstrumented]:
        listed = [model.Uninstrumented(name, count) for name, count in self._uninstrumented.items()]
        listed = [replace(u, named=self._filter is not None and self._filter.matches(u.name)) for u in listed]
        skipped = [model.Uninstrumented(name, n, reason="left out by a filter") for (_, name), n in self._unchecked.items()]
        return listed + skipped


def library_for(variant: Variant, target: str) -> RuntimeLibrary:
    """The runtime library for a module's variant and target."""
    return runtime_library(variant, runtime_architecture(target))


def _dropped(counters: Counters | None) -> list[str]:
    """CTAs that ran unchecked, and why."""
    why = {"the shadow memory was full": "dropped_ctas", "in clusters that their module was not instrumented for": "foreign_ctas"}
    counts = {reason: getattr(counters, name, 0) for reason, name in why.items()}
    return [f"{model.plural(ctas, 'CTA')} ran unchecked: {reason}" for reason, ctas in counts.items() if ctas]
