"""The Python API: compile a kernel, launch it sanitized, get a report (tutorials/guide/python.md).

`launch` takes NumPy arrays and, on the GPU, objects with `__cuda_array_interface__`. NumPy arrays are copied to the device and back, so
kernels change them in place; device arrays are used in place. An array given twice is one buffer. A `TensorMap` is passed by value.
Scalars take the type of the kernel's parameter. `check` sanitizes all kernels that the adapters see inside a `with` block.

Bad input raises `UsageError`: a bad argument, a source that does not compile, a missing library. A kernel's behaviour never raises.
"""

from __future__ import annotations

import contextlib
import copy
import math
import operator
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from consan import adapters, late
from consan._errors import UsageError
from consan.backends.base import Dim3
from consan.files import read_file
from consan.instrument.ptx.extents import three_extents
from consan.launching import AGAIN
from consan.launching.entries import choose_entry
from consan.launching.of_ranks import module_of_ranks, of_all_ranks, place_windows, unordered_puts, with_counters
from consan.launching.placement import Multicast, Placement, Symmetric, placed
from consan.launching.source import CUDA_SUFFIXES, compile_for, read_module
from consan.launching.values import arguments, may_point
from consan.reports.model import Report
from consan.reports.verdict.combination import combine
from consan.reports.verdict.suppression import Rule
from consan.session.asking.results import PlainRuns
from consan.session.comparing.concurrent_launches import ConcurrentLaunches, Copied, LaunchShape, Memory
from consan.session.comparing.streams import Stream
from consan.session.modules.layouts import name_addresses
from consan.session.modules.prepared import Prepared
from consan.session.planning.options import SessionOptions
from consan.session.planning.schedules import by_seed
from consan.session.session import Session
from consan.suppressions import finish
from consan.tensormap.argument import TensorMap
from consan.textures.argument import Texture

__all__ = ["Kernel", "Multicast", "Stream", "Symmetric", "TensorMap", "Texture", "check", "launch"]

Shape = int | Sequence[int]
Kinds = str | Sequence[str]
_PTX = re.compile(r"^[ \t]*\.version\b", re.MULTILINE)
_TEXT = re.compile(r"\n|\{|\b__global__\b|^\s*\.version\b")  # what hardly any path has


class Kernel:
    """One kernel, from CUDA C++ or PTX.

    `source` is a path (`.cu`, `.ptx`) or source text (PTX if it has a `.version` directive). `entry` names the kernel, plain or
    mangled; it may be omitted if there is only one. `rev<float, 128>` instantiates a CUDA C++ template. The rest is for CUDA C++:
    `arch` (default "sm_90a"), `defines` (macros and their values; None: defined without one), `include_dirs`, `std` (the dialect).

    Raises `UsageError` if the source is missing or does not compile, or if no kernel has this name.
    """

    def __init__(
        self,
        source: str | Path,
        entry: str | None = None,
        arch: str | None = None,
        defines: Mapping[str, Any] | None = None,
        *,
        include_dirs: Sequence[str] = (),
        std: str = "c++17",
    ) -> None:
        text, self.name = _read(source)
        suffix = Path(self.name).suffix.lower()
        is_ptx = suffix == ".ptx" or (suffix not in CUDA_SUFFIXES and _PTX.search(text) is not None)
        if is_ptx:
            self.ptx = text
        else:
            self.ptx, entry = _compile(text, entry, self.name, arch or "sm_90a", defines or {}, include_dirs, std)
        self.module = read_module(self.ptx, self.name)
        self.function = choose_entry(self.module, entry, self.name)

    @property
    def entry(self) -> str:
        """Name of the kernel in the PTX (mangled for C++)."""
        return self.function.name


def _read(source: str | Path) -> tuple[str, str]:
    if isinstance(source, str) and _TEXT.search(source) and not os.path.isfile(source):
        return source, "kernel.ptx" if _PTX.search(source) else "kernel.cu"
    if not isinstance(source, (str, os.PathLike)) or source == "":
        raise UsageError(f"{source!r} is no kernel: expected a path, or the text of CUDA C++ or PTX")
    return read_file(os.fspath(source)), os.fspath(source)


def _compile(
    text: str, entry: str | None, name: str, arch: str, defines: Mapping[str, Any], include_dirs: Sequence[str], std: str
) -> tuple[str, str | None]:
    """The PTX, and the kernel's name in it."""
    values = {macro: None if value is None else str(value) for macro, value in defines.items()}
    result, symbol = compile_for(text, entry, name=name, arch=arch, std=std, defines=values, include_dirs=tuple(include_dirs))
    return result.ptx, symbol


@dataclass
class _Block:
    """The launches inside of a `check()`: their reports, and the launches that may run at the same time as later ones."""

    reports: list[Report] = field(default_factory=list)
    concurrent: ConcurrentLaunches = field(default_factory=ConcurrentLaunches)

    def take(self, report: Report) -> None:
        """A launch was made. If it is in no block, its caller gets the report at once."""
        self.reports.append(report)
        if not _CHECKS:
            _observed(report)


_CHECKS: list[_Block] = []
"""Those that are open: `launch` belongs to the innermost one."""

OBSERVERS: list[Callable[[Report], None]] = []
"""Called with each report that a caller gets from `launch` or `check`: pytest counts what tests judge by themselves."""


def _observed(report: Report) -> None:
    for observer in OBSERVERS:
        observer(report)


def launch(
    kernel: Kernel,
    grid: Shape,
    block: Shape,
    args: Sequence[Any] = (),
    *,
    cluster: Shape = 1,
    smem: int = 0,
    device: str = "auto",
    seed: int = 0,
    timeout: float | None = None,
    explore: float | None = None,
    policy: str = "default",
    cooperative: bool = False,
    shadow_memory: int | None = None,
    assembly: str = "best",
    engine: str = "auto",
    trace_memory: int | None = None,
    exhaustive: bool = False,
    sample: int | None = None,
    keep_histories: bool = False,
    global_memory: str = "auto",
    skip: Kinds = (),
    checks: Kinds = (),
    suppress: str | Path | None = None,
    stream: Stream | None = None,
    programmatic: bool = False,
    ranks: int = 1,
) -> Report:
    """Launch `kernel` once, sanitized, and return the report of this launch.

    `grid` (CTAs), `block` (threads), `cluster` (CTAs): an int or up to three, x first. `args`: one value for each parameter: a NumPy
    array of any shape, which is copied to the device and back; an array in device memory (`__cuda_array_interface__`); a `TensorMap`;
    a `Texture`; or a number, which takes the type of the parameter. `device`: "auto", "gpu" or "cpu". `smem`: dynamic shared memory in
    bytes. `seed`: the schedule of the virtual machine. `timeout`, `explore`: seconds, as `--timeout`, and `--explore` (0 if not given).
    `policy`: "default" or "isa". `cooperative`: a grid-wide barrier may be used.
    `shadow_memory`: limit on shadow cells in bytes. `assembly`: "fast" assembles sooner; the code may run slower (GPU only).
    `engine`, `global_memory`: as `--engine` and `--global`. `trace_memory`: limit on the logs of a recorded launch in bytes.
    `exhaustive`: CTAs that did the same are checked one by one (engine "record"). `sample`: how many CTAs are replayed at most.
    `keep_histories`: write a file for `consan replay`. `skip`, `checks`: kinds of findings that are not reported, or the only ones that
    are: text with commas, or a sequence of names. `suppress`: a file of suppressions. Inside of `check()` its rules hold, too.
    `ranks`: so many GPUs run the launch at the same time, each with `args` of its own: a list of these, or a function of the rank.
    `stream`, `programmatic`: only inside of `check()` (session/comparing/streams.py); without a stream the launch comes after all others.

    Raises `UsageError` for bad arguments. Findings do not raise: see `Report.raise_if_racy`.
    """
    _check_kernel(kernel, smem)
    block_of_checks, rules = _block_of(stream, programmatic), _rules(skip, checks, suppress)
    checking: dict[str, Any] = {"policy": policy, "assembly": assembly, "shadow_memory": shadow_memory, "trace_memory": trace_memory}
    recording: dict[str, Any] = {"engine": engine, "exhaustive": exhaustive, "sample": sample, "keep_histories": keep_histories}
    limits: dict[str, Any] = {"timeout": timeout, "explore": explore, "global_memory": global_memory}
    options = SessionOptions.of({"device": device, "seed": seed, **limits, **checking, **recording})
    made, args = _made(kernel, (_dim3(grid), _dim3(block), _dim3(cluster)), smem, cooperative, args, ranks, options, stream)
    report = _without(_reported(made, options, args, block_of_checks, stream, programmatic), rules)
    block_of_checks.take(report)
    return report


def _reported(made: _Made, options: SessionOptions, args: Any, block: _Block, stream: Stream | None, programmatic: bool) -> Report:
    """The report of a launch, which is compared with others of its block if it has a stream."""
    session, kernel = Session(options), made.kernel

    def compare(prepared: Prepared, placement: Placement) -> None:
        variables = () if stream is None else prepared.variables(session.backend)
        shape = LaunchShape(kernel.entry, made.grid, made.block, _memory(placement, variables))
        block.concurrent.launched(session.comparisons, prepared, shape, stream, programmatic=programmatic)

    session.recording.accesses.wanted = stream is not None
    report, known = made.on(session, args, compare)
    if session.record_lost and known:
        report = combine([report, made.on_machine(options, args)])
    return report


def _rules(skip: Kinds, checks: Kinds, suppress: str | Path | None) -> tuple[Rule, ...]:
    """The rules for findings that a caller does not want. Raises `UsageError` for a kind that is none, and a file without suppressions."""
    texts = (kinds if isinstance(kinds, str) else ",".join(kinds) for kinds in (skip, checks))
    given = SimpleNamespace(skip=next(texts) or None, checks=next(texts) or None, suppress=suppress and os.fspath(suppress))
    return late.config.rules_of(late.config.Config({}), given)


def _without(report: Report, rules: tuple[Rule, ...]) -> Report:
    return finish(report, rules) if rules else report


@dataclass(frozen=True)
class _Made:
    """A launch but for its arguments and the session that it is made in."""

    kernel: Kernel
    grid: Dim3
    block: Dim3
    cluster: Dim3
    smem: int
    cooperative: bool
    ranks: int = 1

    def on(
        self, session: Session, args: Sequence[Any], compare: Callable[[Prepared, Placement], None] = lambda prepared, placement: None
    ) -> tuple[Report, bool]:
        """The report, and whether all memory that the arguments refer to is known here."""
        kernel = self.kernel
        with session.turn():
            prepared = session.prepare(kernel.module, name=kernel.name, cluster=math.prod(self.cluster))
            with placed(session) as placement:
                values = self._values(placement, args)
                session.address_name = name_addresses(prepared, kernel.entry, placement.buffers)
                placement.owns_all &= not any(map(may_point, args))
                how: dict[str, Any] = {"shared": self.smem, "cluster": self.cluster, "cooperative": self.cooperative}
                launch = (kernel.entry, self.grid, self.block, values)
                session.launch(prepared, *launch, restore=placement.restore, **how)
                for why in unordered_puts(kernel.module):
                    session.recording.kernels.lacks_comparison(prepared, kernel.entry, why)
                compare(prepared, placement)
                report = finish(session.report())
                if session.backend.simulates and placement.owns_all:
                    with by_seed(session.backend):
                        report = PlainRuns(session.backend, placement, launch, how).compared(report, kernel.module.text)
                return report, placement.owns_all

    def on_machine(self, options: SessionOptions, args: Sequence[Any]) -> Report:
        """The report of the virtual machine, where a GPU has left none."""
        machine = Session(replace(options, device="cpu", timeout=min(options.timeout or AGAIN, AGAIN)))
        machine.note(f"{self.kernel.entry}: the GPU left no log, so the launch was checked again on the virtual machine")
        return self.on(machine, copy.deepcopy(list(args)))[0]

    def _values(self, placement: Placement, args: Sequence[Any]) -> list[bytes]:
        """The bytes of each parameter."""
        placing = place_windows(placement, args, self.ranks, self.kernel.module)
        values, each = arguments(self.kernel.function, placing), len(args) // self.ranks
        names = [f"rank {rank}, argument" if self.ranks > 1 else "argument" for rank in range(self.ranks)]
        own = [value for rank, name in enumerate(names) for value in placement.parameters(values[rank * each :][:each], name)]
        return [*own, *(placement.parameter(value, "counters", "NVSHMEM's barriers") for value in values[self.ranks * each :])]


def _made(
    kernel: Kernel, shape: tuple[Dim3, Dim3, Dim3], smem: int, cooperative: bool,
    args: Any, ranks: int, options: SessionOptions, stream: Stream | None,
) -> tuple[_Made, Sequence[Any]]:  # fmt: skip
    """The launch with its arguments: those of all ranks, if there are several."""
    made = _Made(kernel, *shape, smem, cooperative)
    if ranks == 1:
        return made, args
    _check_ranks(ranks, options, stream)
    return _of_ranks(made, ranks, args)


def _of_ranks(made: _Made, ranks: int, args: Any) -> tuple[_Made, Sequence[Any]]:
    """A launch for all ranks, and the arguments of all. Its CTAs must all run at once: ranks wait for each other."""
    kernel, (x, y, z) = copy.copy(made.kernel), made.grid
    if made.cooperative:
        raise UsageError("cooperative=True: the grid-wide barrier of a rank is not supported with ranks")
    given = with_counters(kernel.module, ranks, of_all_ranks(args, ranks, len(made.kernel.function.params)))
    kernel.module = module_of_ranks(kernel.module, kernel.entry, ranks, made.grid, given)
    kernel.function = choose_entry(kernel.module, kernel.entry, kernel.name)
    whole = replace(made, kernel=kernel, grid=(x, y, z * ranks), cooperative=True, ranks=ranks)
    return whole, given


def _check_ranks(ranks: int, options: SessionOptions, stream: Stream | None) -> None:
    if not isinstance(ranks, int) or not options.records:
        raise UsageError(f"ranks={ranks!r}: expected a number, and a recorded launch: called hooks (engine='inline') know one GPU")
    if stream is not None:
        raise UsageError("stream: a launch of several ranks is not compared with others")


def _check_kernel(kernel: Kernel, smem: int) -> None:
    if not isinstance(kernel, Kernel):
        raise UsageError(f"{kernel!r} is no consan.Kernel")
    if not isinstance(smem, int) or smem < 0:
        raise UsageError(f"smem={smem!r}: expected a number of bytes")


def _memory(placement: Placement, variables: Sequence[tuple[int, int]]) -> Memory:
    """The memory that the parameters of a launch refer to, and its module's variables, for a comparison with other launches."""
    return Memory([Copied(*each) for each in placement.copies], shared=not placement.owns_all, variables=variables)


def _block_of(stream: Stream | None, programmatic: bool) -> _Block:
    """The block of `check()` that a launch is in; one of its own if it is in none."""
    if stream is not None and not isinstance(stream, Stream):
        raise UsageError(f"stream={stream!r}: expected a consan.Stream")
    if programmatic and stream is None:
        raise UsageError("programmatic=True: needs a stream, in which another launch comes before")
    if stream is not None and not _CHECKS:
        raise UsageError("stream=...: launches are compared inside of a block of consan.check()")
    block = _CHECKS[-1] if _CHECKS else _Block()
    block.concurrent.place(stream, programmatic=programmatic)
    return block


def _dim3(shape: Shape) -> Dim3:
    try:
        values = tuple(map(operator.index, shape)) if isinstance(shape, Iterable) else (operator.index(shape),)
    except TypeError:
        values = ()
    if not 1 <= len(values) <= 3:
        raise UsageError(f"{shape!r} is not a grid, block or cluster: expected one to three numbers")
    return three_extents(values)


class LiveReport:
    """The report of a `check()` block. It is empty inside the block: reading it there raises AttributeError."""

    def __init__(self) -> None:
        self._report: Report | None = None

    @property
    def report(self) -> Report:
        """The report. Raises AttributeError while the block runs."""
        if self._report is None:
            raise AttributeError("the report is there once the block of consan.check() has ended")
        return self._report

    def become(self, report: Report) -> None:
        """The block has ended with this report."""
        self._report = report

    def __getattr__(self, name: str) -> Any:
        if self._report is None:
            raise AttributeError(f"{name}: the report is there once the block of consan.check() has ended")
        return getattr(self._report, name)

    def __str__(self) -> str:
        return "consan: still checking" if self._report is None else str(self._report)


def together(launched: list[Report], rest: Report) -> Report:
    """The reports of a block as one: those of `launch`, and that of the adapters if they saw a kernel."""
    if not launched:
        return rest
    through_adapters = rest.uninstrumented or any(kernel.launches for kernel in rest.kernels)
    return combine([*launched, rest] if through_adapters else launched, seed=rest.seed, policy=rest.policy)


@contextlib.contextmanager
def check(
    *,
    device: str = "auto",
    seed: int = 0,
    policy: str = "default",
    skip: Kinds = (),
    checks: Kinds = (),
    suppress: str | Path | None = None,
    **options: Any,
) -> Iterator[LiveReport]:
    """Sanitize every kernel launched inside the block, through any adapter or by `launch`.

    The yielded report is complete when the block ends. `device`, `seed`, `policy`, `skip`, `checks`, `suppress` and `options` are those of
    `launch`, all but its shapes and arguments. Raises `UsageError` for an unknown device, policy or option.
    """
    session = Session(SessionOptions.of({"device": device, "seed": seed, "policy": policy, **options}))
    rules = _rules(skip, checks, suppress)
    live, block = LiveReport(), _Block()
    with session.turn():
        adapters.install(session)
        _CHECKS.append(block)
        try:
            yield live
        finally:
            _CHECKS.pop()
            adapters.remove()
            live.become(_without(together(block.reports, finish(session.report())), rules))
            _observed(live.report)
