"""The Python API: compile a kernel, launch it sanitized, get a report (tutorials/guide/python.md).

`launch` takes NumPy arrays and, on the GPU, objects with `__cuda_array_interface__`. NumPy arrays are copied to the device and back, so
kernels change them in place; device arrays are used in place. An array given twice is one buffer. A `TensorMap` is passed by value.
Scalars take the type of the kernel's parameter. `check` sanitizes all kernels that the adapters see inside a `with` block.

Bad input raises `UsageError`: a bad argument, a source that does not compile, a missing library. A kernel's behaviour never raises.
"""

from __future__ import annotations

import contextlib
import operator
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from consan import adapters, late
from consan._errors import UsageError
from consan.api.blocks import CHECKS, OBSERVERS, CheckBlock, LiveReport, block_of, observed, together
from consan.api.kernel import Kernel
from consan.api.one_launch import OneLaunch, one_launch
from consan.backends.base import Dim3
from consan.instrument.ptx.extents import three_extents
from consan.launching.placement import Multicast, Placement, Symmetric
from consan.reports.model import Report
from consan.reports.verdict.combination import combine
from consan.reports.verdict.suppression import Rule
from consan.session.comparing.launch_memory import Copied, LaunchShape, Memory
from consan.session.comparing.streams import Stream
from consan.session.modules.prepared import Prepared
from consan.session.planning.options import SessionOptions
from consan.session.session import Session
from consan.suppressions import finish
from consan.tensormap.argument import TensorMap
from consan.textures.argument import Texture

__all__ = [
    "OBSERVERS",
    "Kernel",
    "LiveReport",
    "Multicast",
    "Shape",
    "Stream",
    "Symmetric",
    "TensorMap",
    "Texture",
    "check",
    "dim3",
    "launch",
    "together",
]

Shape = int | Sequence[int]
Kinds = str | Sequence[str]


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
    a `Texture`; or a number, which takes the type of the parameter. `device`: "auto" (in a block of `check()` its device), "gpu" or "cpu".
    `smem`: dynamic shared memory in bytes. `seed`: the schedule of the virtual machine. `timeout`, `explore`: seconds, as `--timeout`, and
    `--explore` (0 if not given).
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
    block_of_checks, rules = block_of(stream, programmatic), _rules(skip, checks, suppress)
    checking: dict[str, Any] = {"policy": policy, "assembly": assembly, "shadow_memory": shadow_memory, "trace_memory": trace_memory}
    recording: dict[str, Any] = {"engine": engine, "exhaustive": exhaustive, "sample": sample, "keep_histories": keep_histories}
    limits: dict[str, Any] = {"timeout": timeout, "explore": explore, "global_memory": global_memory}
    device = block_of_checks.device if device == "auto" else device
    options = SessionOptions.of({"device": device, "seed": seed, **limits, **checking, **recording})
    shape = dim3(grid), dim3(block), dim3(cluster)
    made, args = one_launch(kernel, shape, smem, cooperative, args, ranks, options, stream)
    report = _without(_reported(made, options, args, block_of_checks, stream, programmatic), rules)
    block_of_checks.take(report)
    return report


def _reported(made: OneLaunch, options: SessionOptions, args: Any, block: CheckBlock, stream: Stream | None, programmatic: bool) -> Report:
    """The report of a launch, which is compared with others of its block if it has a stream."""
    session, kernel = Session(options), made.kernel

    def compare(prepared: Prepared, placement: Placement) -> None:
        variables = () if stream is None else [(begin, size) for _, begin, size in prepared.variables(session.backend, "global")]
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


def _check_kernel(kernel: Kernel, smem: int) -> None:
    if not isinstance(kernel, Kernel):
        raise UsageError(f"{kernel!r} is no consan.Kernel")
    if not isinstance(smem, int) or smem < 0:
        raise UsageError(f"smem={smem!r}: expected a number of bytes")


def _memory(placement: Placement, variables: Sequence[tuple[int, int]]) -> Memory:
    """The memory that the parameters of a launch refer to, and its module's variables, for a comparison with other launches."""
    return Memory([Copied(*each) for each in placement.copies], shared=not placement.owns_all, variables=variables)


def dim3(shape: Shape) -> Dim3:
    """A grid, block or cluster as three numbers, x first. Raises `UsageError` for what is none."""
    try:
        values = tuple(map(operator.index, shape)) if isinstance(shape, Iterable) else (operator.index(shape),)
    except TypeError:
        values = ()
    if not 1 <= len(values) <= 3:
        raise UsageError(f"{shape!r} is not a grid, block or cluster: expected one to three numbers")
    return three_extents(values)


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
    live, block = LiveReport(), CheckBlock(device)
    with session.turn():
        adapters.install(session)
        CHECKS.append(block)
        try:
            yield live
        finally:
            CHECKS.pop()
            adapters.remove()
            live.become(_without(together(block.reports, finish(session.report())), rules))
            observed(live.report)
