"""What hooks cost on real kernels: time to parse, instrument and assemble, size of the text, and time of a launch with and without.

Usage: python tests/bench/bench_real.py [--device cpu|gpu] [--arch sm_80] [--launches] [--assembly fast] [--n 4096] [NAME ...]

Kernels that this machine cannot make are named and left out (see tests/corpus). The best of several runs counts; nothing is read
from the cache of assembled code, and the shadow runtime is compiled before.
"""

from __future__ import annotations

import argparse
import ctypes
import platform
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

TESTS = Path(__file__).parents[1]
sys.path[:0] = [str(TESTS), str(TESTS / "real")]

import corpus  # noqa: E402
import hopper_cases  # noqa: E402
import numpy as np  # noqa: E402
from hopper_cases import CLUSTER_CASES, HOPPER_CASES, SCOPED  # noqa: E402
from real_cases import CASES, Case, Size  # noqa: E402
from real_run import Buffers, entry_of  # noqa: E402

from consan.backends import driver as api  # noqa: E402
from consan.instrument.called_hooks import instrument  # noqa: E402
from consan.instrument.ptx import parse  # noqa: E402
from consan.options import ASSEMBLIES  # noqa: E402
from consan.session.modules.runtime import library_for  # noqa: E402
from consan.session.planning.options import SessionOptions  # noqa: E402
from consan.session.session import Session  # noqa: E402
from consan.toolchain.assemble import assemble  # noqa: E402

HEAD = (
    f"{'kernel':24}{'lines':>7}{'parse':>8}{'instr.':>8}{'assemble':>9}{'(plain)':>9}"
    f"{'KB':>6}{'(plain)':>8}{'plain':>10}{'hooks':>10}{'ratio':>7}"
)


LONG = 2.0  # seconds: what takes as long is not repeated


def best(run: Callable[[], Any], repeats: int) -> float:
    """Seconds of the fastest run."""
    times: list[float] = []
    while len(times) < repeats and (not times or times[0] < LONG):
        started = time.perf_counter()
        run()
        times.append(time.perf_counter() - started)
    return min(times)


def gpu_seconds(run: Callable[[], None]) -> float:
    """Time on the GPU of what `run` queues on the default stream, between two events."""
    driver = api.driver()
    begin, end, elapsed = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_float()
    for event in (begin, end):
        driver.call("cuEventCreate", ctypes.byref(event), 0)
    driver.call("cuEventRecord", begin, None)
    run()
    driver.call("cuEventRecord", end, None)
    driver.call("cuEventSynchronize", end)
    driver.call("cuEventElapsedTime", ctypes.byref(elapsed), begin, end)
    for event in (begin, end):
        driver.call("cuEventDestroy_v2", event)
    return elapsed.value / 1e3


def launch_times(case: Case, ptx: str, device: str, assembly: str) -> tuple[float, float, str]:
    """Seconds of a launch without and with hooks, the first of each not counted: by events on a GPU, else by the clock.

    And why the second says nothing, if part of the launch was not checked: there may have been no room left for its shadow cells.
    """
    size: Size = "small" if device == "cpu" else "full"
    launch, session = case.launch(size, 0), Session(SessionOptions(device=device, assembly=assembly))
    prepared, buffers = session.prepare(ptx), Buffers(session.backend, launch)
    arguments, entry, shape = launch.pack(buffers.address), entry_of(ptx, launch), (launch.grid, launch.block)
    more: dict[str, Any] = {"shared": launch.shared, "cluster": launch.cluster, "cooperative": launch.cooperative}

    def plain(handle: Any) -> None:
        session.backend.launch(handle, entry, *shape, arguments, **more)

    def checked() -> None:
        session.launch(prepared, entry, *shape, arguments, **more)

    def seconds(run: Callable[[], None]) -> float:
        if device == "cpu":
            return best(run, 5)
        run()
        session.backend.synchronize(None)
        with session.backend.current():
            return min(gpu_seconds(run) for _ in range(5))

    handle = session.backend.load(ptx)
    times = seconds(lambda: plain(handle)), seconds(checked)
    buffers.fetch()
    return *times, "; ".join(session.report().incomplete)


def row(case: Case, arch: str, device: str, assembly: str) -> str:
    """One kernel's line."""
    entry = corpus.get(f"{case.name}/{arch}")
    if entry.skip:
        return f"{case.name:24} {entry.skip}"
    ptx = entry.make()
    inline = device != "cpu"
    done = instrument(ptx, library=library_for, inline=inline)
    parsed = best(lambda: parse(ptx), 5)
    whole = best(lambda: instrument(ptx, library=library_for, inline=inline), 5)
    assembled, alone = best(lambda: assemble(done.ptx, arch, fast=assembly == "fast"), 3), best(lambda: assemble(ptx, arch), 3)
    plain, hooks, unchecked = launch_times(case, ptx, device, assembly)
    return (
        f"{case.name:24}{ptx.count(chr(10)):7}{parsed:8.3f}{whole - parsed:8.3f}{assembled:9.3f}{alone:9.3f}"
        f"{len(done.ptx) // 1000:6}{len(ptx) // 1000:8}{plain * 1e3:10.2f}{hooks * 1e3:10.2f}{hooks / plain:7.1f}  {unchecked}".rstrip()
    )


def launches(case: Case, arch: str, device: str, assembly: str) -> str:
    """One kernel's line, without the compiler's part; what is in the cache of assembled code is used."""
    entry = corpus.get(f"{case.name}/{arch}")
    if entry.skip:
        return f"{case.name:24} {entry.skip}"
    ptx = entry.make()
    if case.name in SCOPED:  # as it should be: a finding in each round would be timed, too
        ptx = ptx.replace(*SCOPED[case.name])
    plain, hooks, unchecked = launch_times(case, ptx, device, assembly)
    return f"{case.name:34}{plain * 1e3:10.3f}{hooks * 1e3:10.3f}{hooks / plain:7.1f}  {unchecked}".rstrip()


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Cost of hooks on real kernels.")
    parser.add_argument("names", nargs="*", help="part of a kernel's name")
    parser.add_argument("--device", choices=("cpu", "gpu"), default="cpu")
    parser.add_argument("--arch", default="sm_80")
    parser.add_argument("--launches", action="store_true", help="times of launches only")
    parser.add_argument("--assembly", choices=ASSEMBLIES, default="best", help="of kernels with hooks")
    parser.add_argument("--n", type=int, default=hopper_cases.FULL, help="M, N and K of Triton's and Gluon's matmuls for Hopper on a GPU")
    options = parser.parse_args()
    hopper_cases.FULL = options.n
    device = Session(SessionOptions(device=options.device)).backend.device_name
    print(f"{device}, Python {platform.python_version()}, NumPy {np.__version__}; compiler times in s, launches in ms")
    print(f"{'kernel':34}{'plain':>10}{'hooks':>10}{'ratio':>7}" if options.launches else HEAD)
    cases = (*HOPPER_CASES, *CLUSTER_CASES) if options.arch == "sm_90a" else CASES
    for case in cases:
        if not options.names or any(name in case.name for name in options.names):
            line = launches if options.launches else row
            print(line(case, options.arch, options.device, options.assembly), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
