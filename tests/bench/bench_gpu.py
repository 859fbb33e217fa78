"""Slowdown of instrumented kernels on the GPU, side by side with the plain ones in one process.

    PYTHONPATH=tests:tests/real python tests/bench/bench_gpu.py             figures of called hooks (RESULTS.md)
    PYTHONPATH=tests:tests/real python tests/bench/bench_gpu.py --plain 512 one plain sgemm; run it under
                                                                            `compute-sanitizer --tool racecheck` to compare

Medians of CUDA events on the legacy default stream, after a warm-up. The instrumented run's result must be bit-identical.
"""

from __future__ import annotations

import argparse
import platform
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from consan.session.planning.options import SessionOptions
from consan.session.session import Session
from consan.toolchain.assemble import assemble_cached
from consan.toolchain.nvrtc import compile_ptx

HERE = Path(__file__).parent


def _median_ms(launch: Callable[[], None], repeats: int) -> float:
    """Milliseconds of one launch, by events."""
    import cupy

    launch()
    cupy.cuda.runtime.deviceSynchronize()
    times = []
    for _ in range(repeats):
        begin, end = cupy.cuda.Event(), cupy.cuda.Event()
        begin.record()
        launch()
        end.record()
        end.synchronize()
        times.append(float(cupy.cuda.get_elapsed_time(begin, end)))
    return statistics.median(times)


class Bench:
    """One session; each case loads a module twice, as it is and with hooks."""

    def __init__(self) -> None:
        self.session = Session(SessionOptions(device="gpu"))
        self.backend = self.session.backend

    def upload(self, array: Any) -> int:
        """A copy on the device."""
        address = self.backend.alloc(array.nbytes)
        self.backend.write(address, np.ascontiguousarray(array))
        return int(address)

    def compare(
        self, ptx: str, entry: str, launch: dict[str, Any], args: list[bytes], out: tuple[int, int], repeats: int
    ) -> dict[str, Any]:
        """Times of both versions and whether they left the same bytes."""
        backend = self.backend
        prepared = self.session.prepare(ptx, name=entry)
        plain = backend.load(ptx)
        row: dict[str, Any] = {}
        results = []
        for label, handle in (("plain", plain), ("consan", prepared.loaded)):
            backend.fill(out[0], 0, out[1])
            row[label] = _median_ms(lambda handle=handle: backend.launch(handle, entry, args=args, **launch), repeats)
            results.append(backend.read(*out))
            row[f"{label}_registers"] = backend.resources(handle, entry).registers
        row["identical"] = results[0] == results[1]
        return row


def sgemm_case(bench: Bench, n: int) -> dict[str, Any]:
    """The 32x32-tile sgemm."""
    ptx = compile_ptx((HERE / "sgemm.cu").read_text(), name=str(HERE / "sgemm.cu"), arch=bench.backend.arch).ptx
    rng = np.random.default_rng(0)
    a, b = (bench.upload(rng.random((n, n), np.float32)) for _ in range(2))
    c = bench.backend.alloc(4 * n * n)
    args = [v.to_bytes(8, "little") for v in (a, b, c)] + [np.int32(n).tobytes()]
    launch = {"grid": (n // 32, n // 32, 1), "block": (32, 32, 1)}
    return bench.compare(ptx, "sgemm", launch, args, (c, 4 * n * n), 5)


def corpus_case(bench: Bench, name: str, arch: str) -> dict[str, Any]:
    """A kernel of the corpus at full size."""
    import corpus
    from real_cases import CASES
    from real_run import Buffers, entry_of

    case = next(case for case in CASES if case.name == name)
    ptx = corpus.get(f"{name}/{arch}").make()
    launch = case.launch("full", 0)
    buffers = Buffers(bench.backend, launch)
    last = launch.buffers()[-1] if "matmul" in name else launch.buffers()[0]
    entry = entry_of(ptx, launch)
    config = {"grid": launch.grid, "block": launch.block, "shared": launch.shared, "cooperative": launch.cooperative}
    return bench.compare(ptx, entry, config, launch.pack(buffers.address), (buffers.address(last), last.nbytes), 10)


def build_times(name: str, arch: str) -> dict[str, float]:
    """Seconds to parse and instrument, and to assemble, with the runtime already compiled."""
    import corpus

    from consan.instrument.called_hooks import instrument
    from consan.session.modules.runtime import library_for

    ptx = corpus.get(f"{name}/{arch}").make()
    instrument(ptx, library=library_for, inline=True)
    begin = time.perf_counter()
    done = instrument(ptx, library=library_for, inline=True)
    middle = time.perf_counter()
    from consan.toolchain.assemble import assemble

    assemble(done.ptx, arch)
    end = time.perf_counter()
    assemble(ptx, arch)
    plain = time.perf_counter() - end
    return {"instrument": middle - begin, "assemble": end - middle, "assemble_plain": plain, "growth": len(done.ptx) / len(ptx)}


def plain_sgemm(n: int) -> None:
    """One plain launch, timed by the host: for running under another tool."""
    from consan.backends.cuda import CudaBackend

    backend = CudaBackend()
    ptx = compile_ptx((HERE / "sgemm.cu").read_text(), name="sgemm.cu", arch=backend.arch).ptx
    handle = backend.load(ptx)
    pointers = [backend.alloc(4 * n * n) for _ in range(3)]
    args = [p.to_bytes(8, "little") for p in pointers] + [np.int32(n).tobytes()]
    for _ in range(2):
        begin = time.perf_counter()
        backend.launch(handle, "sgemm", (n // 32, n // 32, 1), (32, 32, 1), args)
        backend.synchronize()
        print(f"plain sgemm n={n}: {1e3 * (time.perf_counter() - begin):.3f} ms")


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plain", type=int, metavar="N", help="one plain sgemm and nothing else")
    options = parser.parse_args()
    if options.plain:
        plain_sgemm(options.plain)
        return
    bench = Bench()
    driver = bench.backend.driver_version
    tools = f"Python {platform.python_version()}, numpy {np.__version__}"
    print(f"{bench.backend.device_name}, driver CUDA {driver}, {tools}")
    print("| kernel | plain ms | consan ms | slowdown | registers | result identical |\n|---|---|---|---|---|---|")
    cases: list[tuple[str, Callable[[], dict[str, Any]]]] = [(f"sgemm {n}", lambda n=n: sgemm_case(bench, n)) for n in (512, 1024, 2048)]
    for name, arch in (("triton/matmul", "sm_80"), ("triton/softmax", "sm_80"), ("triton/layer_norm", "sm_80")):
        cases.append((f"{name} {arch}", lambda name=name, arch=arch: corpus_case(bench, name, arch)))
    for label, run in cases:
        try:
            row = run()
        except Exception as error:  # a bench reports what it could not do and goes on
            print(f"| {label} | failed: {type(error).__name__}: {str(error)[:150]} |")
            continue
        registers = f"{row['plain_registers']} -> {row['consan_registers']}"
        times = f"{row['plain']:.3f} | {row['consan']:.3f} | {row['consan'] / row['plain']:.1f}x"
        print(f"| {label} | {times} | {registers} | {row['identical']} |")
    report = bench.session.report()
    print(f"verdict over all: {report.verdict}; findings: {[f.kind for f in report.findings]}; {list(report.incomplete)}")
    times = build_times("triton/matmul", "sm_80")
    print("triton/matmul sm_80 build:", {k: round(v, 3) for k, v in times.items()}, "s (cached:", bool(assemble_cached), ")")


if __name__ == "__main__":
    main()
