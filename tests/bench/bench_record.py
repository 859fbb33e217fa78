"""Kernels as they are, with called hooks (inline) and recorded, side by side: time of the kernel, and time until the verdict.

    PYTHONPATH=tests:tests/real python tests/bench/bench_record.py             on a GPU: medians of CUDA events
    PYTHONPATH=tests:tests/real python tests/bench/bench_record.py --device cpu   on the virtual machine: wall time

Recorded launches are measured twice: without global memory (`--global off`) and with it.

The recorded launch must leave the same bytes as the plain one. `verdict` is the time to read the hashes, to replay each distinct history in
both orders, and to decode: it comes once for each launch. A kernel that the recording engine does not take says why.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from consan.session.session import Session
from consan.toolchain.nvrtc import compile_ptx

HERE = Path(__file__).parent
CORPUS = (("triton/softmax", "sm_80"), ("triton/layer_norm", "sm_80"), ("triton/matmul", "sm_80"))
MACHINE = tuple((f"nvrtc/{name}", "sm_80") for name in ("sgemm_tiled", "cp_async_pipeline", "block_reduce", "block_radix_sort"))


@dataclass
class Case:
    """One kernel with its launch; `out`: address and size of its result."""

    name: str
    ptx: str
    entry: str
    launch: dict[str, Any]
    args: list[bytes]
    out: tuple[int, int]


def sgemm(backend: Any, n: int) -> Case:
    """The 32x32-tile sgemm."""
    ptx = compile_ptx((HERE / "sgemm.cu").read_text(), name=str(HERE / "sgemm.cu"), arch=backend.arch).ptx
    rng, places = np.random.default_rng(0), []
    for array in (rng.random((n, n), np.float32), rng.random((n, n), np.float32), np.zeros((n, n), np.float32)):
        places.append(int(backend.alloc(array.nbytes)))
        backend.write(places[-1], array)
    args = [place.to_bytes(8, "little") for place in places] + [np.int32(n).tobytes()]
    launch = {"grid": (n // 32, n // 32, 1), "block": (32, 32, 1)}
    return Case(f"sgemm {n}", ptx, "sgemm", launch, args, (places[-1], 4 * n * n))


def of_corpus(backend: Any, name: str, arch: str, size: Any = "full") -> Case:
    """A kernel of the corpus."""
    import corpus
    from real_cases import CASES
    from real_run import Buffers, entry_of

    ptx = corpus.get(f"{name}/{arch}").make()
    launch = next(case for case in CASES if case.name == name).launch(size, 0)
    buffers = Buffers(backend, launch)
    last = launch.buffers()[-1] if "matmul" in name else launch.buffers()[0]
    config = {"grid": launch.grid, "block": launch.block, "shared": launch.shared}
    place = (buffers.address(last), last.nbytes)
    return Case(f"{name} {arch}", ptx, entry_of(ptx, launch), config, launch.pack(buffers.address), place)


def median_ms(backend: Any, launch: Callable[[], Any], repeats: int) -> float:
    """Milliseconds of one launch: by events on a GPU, by the clock on the virtual machine."""
    launch()
    backend.synchronize()
    return statistics.median([_once(backend, launch) for _ in range(repeats)])


def _once(backend: Any, launch: Callable[[], Any]) -> float:
    if backend.device_name == "cpu":
        begin = time.perf_counter()
        launch()
        return 1e3 * (time.perf_counter() - begin)
    import cupy

    begin, end = cupy.cuda.Event(), cupy.cuda.Event()
    begin.record()
    launch()
    end.record()
    end.synchronize()
    return float(cupy.cuda.get_elapsed_time(begin, end))


def rows(case: Case, sessions: dict[str, Session], repeats: int) -> Iterator[str]:
    """The cells of the table's row."""
    results, plain = [], 0.0
    for engine, session in sessions.items():
        prepared = session.prepare(case.ptx, name=case.name)
        records = session.recording.engine == "record"
        if records and prepared.recorded is None:
            yield f"not recorded: {session.recording.refusals[case.ptx]} | |"
            return
        shape = case.launch["grid"], case.launch["block"]
        started = session.recording.start(session.backend, prepared, case.entry, *shape, (1, 1, 1)) if records else None
        handle = session.backend.load(case.ptx) if engine == "plain" else prepared.loaded
        ms, registers = _timed(session.backend, case, handle, repeats)
        results.append(session.backend.read(*case.out))
        plain = plain or ms
        yield f"{ms:.3f} ms ({ms / plain:.2f}x, {registers} registers)"
        if started is not None:
            yield f"{_verdict(started)} | same bytes: {results[0] == results[-1]}"


def _timed(backend: Any, case: Case, handle: Any, repeats: int) -> tuple[float, int]:
    backend.fill(case.out[0], 0, case.out[1])
    ms = median_ms(backend, lambda: backend.launch(handle, case.entry, args=case.args, **case.launch), repeats)
    return ms, backend.resources(handle, case.entry).registers


def _verdict(started: Any) -> str:
    begin = time.perf_counter()
    checked = started.check()
    seconds, tally = time.perf_counter() - begin, checked.tally
    started.free()
    speed = f"{tally.events / seconds / 1e6:.1f} million lane events a second"
    gaps = [*checked.gaps, *checked.outer]
    return f"{seconds:.3f} s ({tally.ctas:,} CTAs, {tally.histories} histories, {tally.events:,} lane events, {speed}, gaps {gaps})"


def row(make: Callable[[], Case], sessions: dict[str, Session], repeats: int) -> str:
    """The row of a case; a bench reports what it could not do and goes on."""
    try:
        case = make()
        return f"| {case.name} | {' | '.join(rows(case, sessions, repeats))} |"
    except Exception as error:
        return f"| failed: {type(error).__name__}: {str(error)[:200]} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("gpu", "cpu"), default="gpu")
    options = parser.parse_args()
    gpu = options.device == "gpu"
    engines = {"plain": ("inline", "off"), "inline": ("inline", "off"), "record": ("record", "off"), "global": ("record", "on")}
    sessions = {name: Session(device=options.device, engine=engine, global_memory=outer) for name, (engine, outer) in engines.items()}
    backend = sessions["plain"].backend
    print(f"{backend.device_name}\n| kernel | plain | inline | record | verdict | result | with global memory | verdict | result |")
    print("|---|---|---|---|---|---|---|---|---|")
    cases: list[Callable[[], Case]] = [lambda n=n: sgemm(backend, n) for n in ((512, 1024, 2048) if gpu else (128, 256))]
    chosen, size = (CORPUS, "full") if gpu else (MACHINE, "small")
    cases += [lambda name=name, arch=arch: of_corpus(backend, name, arch, size) for name, arch in chosen]
    for make in cases:
        print(row(make, sessions, 10 if gpu else 5), flush=True)


if __name__ == "__main__":
    main()
