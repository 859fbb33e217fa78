"""Launches recorded without and with global memory, and plain: time of the kernel, size of the log, time until the verdict.

    PYTHONPATH=tests:tests/real python tests/bench/bench_global.py [NAME ...]     on a GPU: medians of 10 by CUDA events
    PYTHONPATH=tests:tests/real python tests/bench/bench_global.py --device cpu   on the virtual machine: small sizes, wall time

`log` is what the threads stored (lines of a sample of CTAs, and the hashes) over the bytes of global memory that the kernel writes.
`proof`: how long it took to prove the accesses apart before the launch, where that can be, and for a later one; then it is recorded
without global memory.
The verdict comes from another launch, of a size that is small enough to be replayed together. All works are free of races.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from bench_record import _once, of_corpus

from consan.instrument.record.text import text
from consan.instrument.record.text.templates import LINE_BYTES
from consan.ranges import LaunchExtents
from consan.session.planning.options import SessionOptions
from consan.session.planning.plan import PlannedLaunch, log_of
from consan.session.planning.proofs import Proofs
from consan.session.session import Session
from consan.toolchain.nvrtc import compile_ptx

WORKS = Path(__file__).parent / "global_works.cu"
HEAD = "| work | CTAs | plain | off | on, all recorded | on | log, bytes a byte written | proof | CTAs judged | verdict | found |"
TRACE = 64 << 30  # bytes of logs, at most
AGAIN = 100  # launches like the first
SAMPLE = 8  # CTAs whose logs are measured
INVALID = 99  # state of a tile that nobody has set
Array = npt.NDArray[Any]


@dataclass
class Work:
    """One launch. `inputs`: arrays, or numbers of bytes that are zero; `reset`: the inputs to restore before each launch."""

    entry: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    inputs: list[Array | int]
    written: int
    reset: tuple[int, ...] = ()
    values: tuple[int, ...] = ()
    ptx: str = ""
    places: list[int] = field(default_factory=list)
    config: dict[str, Any] = field(default_factory=dict)
    args: list[bytes] = field(default_factory=list)

    def place(self, backend: Any) -> None:
        """Compile, allocate and fill."""
        self.ptx = compile_ptx(WORKS.read_text(), name=str(WORKS), arch=backend.arch, defines={f"WORK_{self.entry}": None}).ptx
        self.places = [int(backend.alloc(_bytes(each))) for each in self.inputs]
        self.config = {"grid": self.grid, "block": self.block}
        self.args = [place.to_bytes(8, "little") for place in self.places] + [value.to_bytes(4, "little") for value in self.values]
        self.restore(backend, range(len(self.inputs)))

    def restore(self, backend: Any, which: Any = None) -> None:
        """Bring inputs back to what they were."""
        for number in self.reset if which is None else which:
            given = self.inputs[number]
            if isinstance(given, int):
                backend.fill(self.places[number], 0, given)
            else:
                backend.write(self.places[number], given)

    def free(self, backend: Any) -> None:
        """Free the inputs."""
        for place in self.places:
            backend.free(place)


def _bytes(given: Array | int) -> int:
    return given if isinstance(given, int) else given.nbytes


def elementwise(entry: str, width: int, ctas: int) -> Work:
    """A copy, or a product with a number: each thread writes `width` bytes."""
    size = ctas * 256 * width
    return Work(entry, (ctas, 1, 1), (256, 1, 1), [size, size], size)


def histogram(ctas: int, each: int) -> Work:
    """4,096 counters in global memory."""
    values = np.random.default_rng(0).integers(0, 4096, ctas * 256 * each, np.uint32)
    return Work("histogram", (ctas, 1, 1), (256, 1, 1), [values, 4096 * 4], 4096 * 4, (1,), (len(values),))


def product(entry: str, n: int, splits: int) -> Work:
    """A product of n x n, its k split among CTAs."""
    tiles = (n // 32) ** 2
    parts = tiles * (splits if entry == "split_k" else 1)
    inputs = [np.ones((n, n), np.float32), np.ones((n, n), np.float32), 4 * n * n, 4096 * parts, 4 * tiles]
    return Work(entry, (n // 32, n // 32, splits), (32, 32, 1), inputs, 4 * n * n + 4096 * parts + 4 * tiles, (4,), (n,))


def look_back(ctas: int) -> Work:
    """CUB's look-back: a tile of 1,024 values a CTA, whose states begin behind a warp of padding."""
    size = ctas * 256 * 16
    states = np.zeros((32 + ctas, 2), np.uint32)
    states[32:, 0] = INVALID
    return Work("look_back", (ctas, 1, 1), (256, 1, 1), [size, size, states], size + 8 * ctas, (2,))


def graph(entry: str, ctas: int, degree: int = 8) -> Work:
    """A random graph of 256 vertices a CTA; of a search an eighth of the vertices is in the frontier."""
    rng, n = np.random.default_rng(0), ctas * 256
    rows = np.arange(0, n * degree + 1, degree, np.int32)
    columns = rng.integers(0, n, n * degree, np.int32)
    state = np.arange(n, dtype=np.int32) if entry == "components" else np.where(rng.random(n) < 1 / 8, 3, 1 << 20).astype(np.int32)
    values = (n,) if entry == "components" else (3, n)
    return Work(entry, (ctas, 1, 1), (256, 1, 1), [rows, columns, state], 4 * n, (2,), values)


# The work -> the size that is timed on a GPU, and the one that is judged.
CASES: dict[str, tuple[Callable[..., Work], tuple[Any, ...], tuple[Any, ...]]] = {
    "copy, 16 bytes a thread": (elementwise, ("copy16", 16, 1 << 18), ("copy16", 16, 1 << 10)),
    "elementwise, 4 bytes a thread": (elementwise, ("scale4", 4, 1 << 18), ("scale4", 4, 1 << 10)),
    "split-K, 4 splits": (product, ("split_k", 1024, 4), ("split_k", 64, 2)),
    "stream-K, 4 in turn": (product, ("stream_k", 1024, 4), ("stream_k", 64, 2)),
    "look-back of CUB": (look_back, (1 << 14,), (64,)),
    "histogram, global atomics": (histogram, (1056, 64), (16, 4)),
    "BFS, a level": (graph, ("bfs", 1 << 12), ("bfs", 16)),
    "connected components, a round": (graph, ("components", 1 << 12), ("components", 8)),
}


def timed(backend: Any, handle: Any, work: Work, repeats: int) -> float:
    """Milliseconds of a launch, by events or by the clock; the state is restored before each, outside of the time."""

    def launch() -> None:
        backend.launch(handle, work.entry, args=work.args, **work.config)

    times = []
    for _ in range(repeats + 1):
        work.restore(backend)
        backend.synchronize()
        times.append(_once(backend, launch))
    return statistics.median(times[1:])


def stored(started: Any, ctas: int) -> float:
    """Bytes of the log that a launch has used, and of its hashes; of a compact log, what is stored of it."""
    memory = started.memory
    if memory.silent:
        return 0.0
    sample = sorted({number * ctas // SAMPLE for number in range(SAMPLE)})
    if memory.compact is not None:
        logs = [memory.stored([cta])[:, :-1] for cta in sample]
        each = text.END_BYTES + text.HASH_BYTES * memory.compact.hashes
    else:
        logs, each = [memory.histories([cluster])[0].log for cluster in sample], text.HASH_BYTES
    return statistics.mean(int(log.any(axis=-1).sum()) for log in logs) * LINE_BYTES * ctas + each * ctas * memory.threads


@contextlib.contextmanager
def placed(backend: Any, work: Work) -> Iterator[Work]:
    """The work with its inputs on the device."""
    work.place(backend)
    try:
        yield work
    finally:
        work.free(backend)


def speed(sessions: dict[str, Session], work: Work, repeats: int) -> Iterator[str]:
    """Cells: CTAs, plain, off, on without a proof, on, log, proof."""
    backend = sessions["off"].backend
    plain = timed(backend, backend.load(work.ptx), work, repeats)
    yield f"{math.prod(work.grid):,}"
    yield f"{plain:.3f} ms"
    log = proof = ""
    for name, session in [*sessions.items(), ("pruned", sessions["on"])]:
        prepared = session.prepare(work.ptx, name=work.entry)
        if prepared.recorded is None:
            yield f"not recorded: {prepared.refusal}"
            continue
        if name == "pruned":
            prepared, proof = pruned(session, prepared, work)
            if not proof:
                yield "the same"
                continue
        started = session.recording.start(
            session.device.logs, prepared, log_of(prepared, work.entry, PlannedLaunch(work.grid, work.block, (1, 1, 1)), session.options)
        )
        try:
            ms = timed(backend, prepared.loaded, work, repeats)
            yield f"{ms / plain:.2f}x" + (f" ({prepared.recorded.refusal})" if prepared.recorded.refusal else "")
            if name != "off":
                log = f"{stored(started, math.prod(work.grid)) / work.written:.2f}"
        finally:
            started.free()
    yield from (log, proof)


def pruned(session: Session, prepared: Any, work: Work) -> tuple[Any, str]:
    """The form of a module that is launched, and how long the proof took; empty if there is none."""
    proofs, extents = Proofs(), LaunchExtents(work.grid, work.block)
    begin = time.perf_counter()
    if not proofs.accesses(prepared, work.entry, work.args, extents):
        return prepared, ""
    first, begin = time.perf_counter() - begin, time.perf_counter()
    for _ in range(AGAIN):
        proofs.accesses(prepared, work.entry, work.args, extents)
    again = (time.perf_counter() - begin) / AGAIN
    return session.modules.without_global_races(prepared), f"{first * 1e3:.0f} ms, then {again * 1e6:.0f} us"


def judged(session: Session, work: Work) -> Iterator[str]:
    """Cells: CTAs, seconds until the verdict, what was found."""
    backend = session.backend
    prepared = session.prepare(work.ptx, name=work.entry)
    if prepared.recorded is None:
        yield from ("", "", "not recorded")
        return
    prepared, proof = pruned(session, prepared, work)
    started = session.recording.start(
        session.device.logs, prepared, log_of(prepared, work.entry, PlannedLaunch(work.grid, work.block, (1, 1, 1)), session.options)
    )
    try:
        backend.launch(prepared.loaded, work.entry, args=work.args, **work.config)
        backend.synchronize()
        begin = time.perf_counter()
        checked = started.check()
        yield f"{math.prod(work.grid):,}"
        yield f"{time.perf_counter() - begin:.2f} s"
        gaps = "".join(f"; {why}" for why in (*checked.gaps, *checked.global_races))
        yield f"{len(checked.found)}{gaps}" + ("; global memory proven" if proof else "")
    finally:
        started.free()


def row(name: str, sessions: dict[str, Session], repeats: int, *, gpu: bool) -> str:
    """The row of a work; a bench reports what it could not do and goes on."""
    make, large, small = CASES[name]
    cells = []
    backend = sessions["on"].backend
    try:
        with placed(backend, make(*(large if gpu else small))) as work:
            cells += speed(sessions, work, repeats)
        with placed(backend, make(*small)) as work:
            cells += judged(sessions["on"], work)
    except Exception as error:
        cells.append(f"failed: {type(error).__name__}: {str(error)[:200]}")
    return f"| {name} | {' | '.join(cells)} |"


def matmul_row(sessions: dict[str, Session], repeats: int, *, gpu: bool) -> str:
    """Triton's matmul with its epilogue, of the corpus; it is judged at the small size."""
    cells = []
    try:
        for size in ("full", "small") if gpu else ("small", "small"):
            case = of_corpus(sessions["on"].backend, "triton/matmul", "sm_80", size)
            launch = case.launch
            written = case.buffers[-1][1].nbytes
            work = Work(case.entry, launch["grid"], launch["block"], [], written, ptx=case.ptx, config=launch, args=case.args)
            cells += judged(sessions["on"], work) if cells else speed(sessions, work, repeats)
            case.free(sessions["on"].backend)
    except Exception as error:
        cells.append(f"failed: {type(error).__name__}: {str(error)[:200]}")
    return f"| Triton matmul sm_80 | {' | '.join(cells)} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="part of a work's name")
    parser.add_argument("--device", choices=("gpu", "cpu"), default="gpu")
    options = parser.parse_args()
    gpu = options.device == "gpu"
    trace = TRACE if gpu else None
    sessions = {
        name: Session(SessionOptions(device=options.device, engine="record", global_memory=name, trace_memory=trace))
        for name in ("off", "on")
    }
    print(f"{sessions['on'].backend.device_name}\n{HEAD}\n{'|---' * (len(HEAD.split('|')) - 2)}|")
    for name in CASES:
        if not options.names or any(part in name for part in options.names):
            print(row(name, sessions, 10 if gpu else 1, gpu=gpu), flush=True)
    if not options.names or "matmul" in options.names:
        print(matmul_row(sessions, 10 if gpu else 1, gpu=gpu), flush=True)


if __name__ == "__main__":
    main()
