"""Kernels as they are, with called hooks (inline) and recorded, side by side: time of the kernel, and time until the verdict.

    PYTHONPATH=tests:tests/real python tests/bench/bench_record.py [NAME ...]     on a GPU: medians of CUDA events
    PYTHONPATH=tests:tests/real python tests/bench/bench_record.py --device cpu   on the virtual machine: processor time

Recorded launches are measured without global memory (`--global off`).

`record` is what a session does: compact logs where that can be. `full` is the same with a log of every word.
The recorded launch must leave the same bytes as the plain one. `verdict` is the time to read the hashes, to replay each distinct history in
both orders, and to decode: it comes once for each launch. `compile` is the time to parse, record and assemble over that of assembling the
plain text, nothing from a cache; `room` the time to allocate and clear the logs. A kernel that the recording engine does not take says why.
`--assemble` only fills the cache with the text that calls hooks, which takes long.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from consan.instrument import cluster_tier
from consan.instrument.called_hooks import instrument
from consan.instrument.ptx import parse
from consan.instrument.record import module, record
from consan.instrument.runtime import Variant
from consan.session.modules.runtime import library_for
from consan.session.planning.options import SessionOptions
from consan.session.planning.plan import PlannedLaunch, log_of
from consan.session.session import Session
from consan.toolchain.assemble import assemble
from consan.toolchain.nvrtc import compile_ptx
from consan.toolchain.registers import assemble_with_hooks

HERE = Path(__file__).parent
TRITON = ("softmax", "layer_norm", "matmul")
CHIP = (*(f"triton/{name}" for name in TRITON), "nvrtc/block_reduce", "nvrtc/cp_async_pipeline", "cupy/cub_sum")
UNLIKE = ("numba/histogram", "nvrtc/block_radix_sort")  # no two CTAs do the same
MACHINE = tuple(f"nvrtc/{name}" for name in ("sgemm_tiled", "cp_async_pipeline", "block_reduce", "block_radix_sort"))
HOPPER = (
    *(f"triton_hopper/matmul_{name}" for name in ("3_stages", "4_stages", "host_tma", "host_tma_4_stages", "specialised")),
    *(f"triton_hopper/attention{form}" for form in ("", "_tma", "_specialised")),
    *("gluon_hopper/matmul_specialised", "gluon_hopper/matmul_specialised_8_warps", "nvrtc/tma_gemm", "nvrtc/bulk_pipeline"),
    *("cutlass/gemm_cooperative", "cutlass/gemm_pingpong", "cutlass/gemm_cooperative_cluster"),
)
HEAD = "| kernel | plain | inline | full | record | registers | verdict | room | compile | PTX | CTAs, histories, lane events | result |"


@dataclass
class Case:
    """One kernel with its launch, and what its buffers hold before it; `scratch` is left out of the comparison."""

    name: str
    ptx: str
    entry: str
    launch: dict[str, Any]
    args: list[bytes]
    buffers: list[tuple[int, npt.NDArray[Any]]]
    scratch: Any = None

    def refill(self, backend: Any) -> None:
        """Put the buffers back to what they were."""
        for address, array in self.buffers:
            backend.write(address, np.ascontiguousarray(array))

    def results(self, backend: Any) -> list[bytes]:
        """What the buffers hold."""
        return [bytes(backend.read(address, array.nbytes)) for address, array in self.buffers if array is not self.scratch]

    def free(self, backend: Any) -> None:
        """Free the buffers."""
        for address, _ in self.buffers:
            backend.free(address)


def sgemm(backend: Any, n: int) -> Case:
    """The 32x32-tile sgemm."""
    ptx = compile_ptx((HERE / "sgemm.cu").read_text(), name=str(HERE / "sgemm.cu"), arch=backend.arch).ptx
    rng = np.random.default_rng(0)
    arrays = rng.random((n, n), np.float32), rng.random((n, n), np.float32), np.zeros((n, n), np.float32)
    buffers = [(int(backend.alloc(array.nbytes)), array) for array in arrays]
    args = [place.to_bytes(8, "little") for place, _ in buffers] + [np.int32(n).tobytes()]
    case = Case(f"sgemm {n}", ptx, "sgemm", {"grid": (n // 32, n // 32, 1), "block": (32, 32, 1)}, args, buffers)
    case.refill(backend)
    return case


def rolled(backend: Any, rounds: int) -> Case:
    """One shared access an iteration, at addresses that never repeat."""
    ptx = compile_ptx((HERE / "rolled.cu").read_text(), name=str(HERE / "rolled.cu"), arch=backend.arch).ptx
    ctas = 1056 if not backend.simulates else 2
    arrays = np.random.default_rng(0).integers(0, 1 << 31, ctas * 256).astype(np.int32), np.zeros(ctas * 256, np.int32)
    buffers = [(int(backend.alloc(array.nbytes)), array) for array in arrays]
    args = [place.to_bytes(8, "little") for place, _ in buffers] + [np.int32(rounds).tobytes()]
    case = Case(f"rolled loop, {rounds}", ptx, "rolled", {"grid": (ctas, 1, 1), "block": (256, 1, 1)}, args, buffers)
    case.refill(backend)
    return case


def of_corpus(backend: Any, name: str, arch: str, size: Any = "full") -> Case:
    """A kernel of the corpus."""
    from real_run import entry_of

    found, ptx = _corpus_case(name, arch)
    launch = found.launch(size, 0)
    buffers = [(int(backend.alloc(array.nbytes)), array) for array in {id(each): each for each in launch.buffers()}.values()]
    places = {id(array): address for address, array in buffers}
    config: dict[str, Any] = {"grid": launch.grid, "block": launch.block, "shared": launch.shared}
    config |= {"cluster": launch.cluster, "cooperative": launch.cooperative}
    case = Case(f"{name} {arch}", ptx, entry_of(ptx, launch), config, [], buffers, launch.scratch)
    case.refill(backend)
    case.args = launch.pack(lambda array: places[id(array)])
    return case


def _corpus_case(name: str, arch: str) -> tuple[Any, str]:
    """A case and its text, as it should be: a finding in each round would be timed, too."""
    import corpus
    from hopper_cases import CLUSTER_CASES, HOPPER_CASES, SCOPED
    from real_cases import CASES

    entry = corpus.get(f"{name}/{arch}")
    if entry.skip:
        raise LookupError(f"{name}: {entry.skip}")
    case = next(case for case in (*CASES, *HOPPER_CASES, *CLUSTER_CASES) if case.name == name)
    return case, entry.make().replace(*SCOPED.get(name, ("", "")))


def median_ms(backend: Any, launch: Callable[[], Any], repeats: int) -> float:
    """Milliseconds of one launch: by events on a GPU, processor time on the virtual machine."""
    launch()
    backend.synchronize()
    return statistics.median([_once(backend, launch) for _ in range(repeats)])


def _once(backend: Any, launch: Callable[[], Any]) -> float:
    if backend.device_name == "cpu":
        begin = time.process_time()
        launch()
        return 1e3 * (time.process_time() - begin)
    import cupy

    begin, end = cupy.cuda.Event(), cupy.cuda.Event()
    begin.record()
    launch()
    end.record()
    end.synchronize()
    return float(cupy.cuda.get_elapsed_time(begin, end))


def timed(backend: Any, case: Case, handle: Any, repeats: int) -> tuple[float, int]:
    """Milliseconds of a launch of a loaded module, and its registers."""
    case.refill(backend)
    ms = median_ms(backend, lambda: backend.launch(handle, case.entry, args=case.args, **case.launch), repeats)
    return ms, backend.resources(handle, case.entry).registers


def rows(case: Case, sessions: dict[str, Session], repeats: int) -> Iterator[str]:
    """The cells of the table's row."""
    backend, plain_cells = sessions["plain"].backend, len(HEAD.split("|")) - 2
    plain, registers = timed(backend, case, backend.load(case.ptx), repeats)
    wanted = case.results(backend)
    yield f"{plain:.3f} ms"
    ctas = math.prod(case.launch.get("cluster", (1,)))
    if "inline" in sessions:
        prepared = sessions["inline"].prepare(case.ptx, name=case.name, cluster=ctas)
        yield f"{timed(backend, case, prepared.loaded, repeats)[0] / plain:.2f}x"
    else:
        yield ""
    session = sessions["record"]
    yield full(case, session, ctas, repeats, plain)
    prepared = session.prepare(case.ptx, name=case.name, cluster=ctas)
    if prepared.recorded is None:
        yield f"not recorded: {prepared.refusal}" + " |" * (plain_cells - 5)
        return
    begin = time.perf_counter()
    shape = case.launch["grid"], case.launch["block"], case.launch.get("cluster", (1, 1, 1))
    started = session.recording.start(session.device.logs, prepared, log_of(prepared, case.entry, PlannedLaunch(*shape), session.options))
    backend.synchronize()
    room = time.perf_counter() - begin
    ms, used = timed(backend, case, prepared.loaded, repeats)
    same = case.results(backend) == wanted
    yield f"{ms / plain:.2f}x" + ("" if prepared.recorded.compact else " (full)")
    yield f"{registers} -> {used}"
    begin = time.perf_counter()
    checked = started.check()
    yield f"{time.perf_counter() - begin:.3f} s"
    yield f"{room:.3f} s"
    yield _compiled(case.ptx, backend.arch) if backend.assembles else ""
    yield f"{len(prepared.instrumented.ptx) / len(case.ptx):.1f}x"
    tally = checked.tally
    yield f"{tally.ctas:,}, {tally.histories}, {tally.events:,}" + (f"; gaps {checked.gaps}" if checked.gaps else "")
    yield f"same bytes: {same}, findings: {len(checked.found)}"
    started.free()


def full(case: Case, session: Session, ctas: int, repeats: int, plain: float) -> str:
    """The time of the recorded launch with a log of every word, in a session of its own."""
    if session.backend.simulates:
        return ""
    compact, module.COMPACT = module.COMPACT, False
    try:
        own = SessionOptions(device="gpu", engine="record", global_memory="off")
        apart = Session(own, private=True)  # sessions of one device share modules
        prepared = apart.prepare(case.ptx, name=case.name, cluster=ctas)
        if prepared.recorded is None:
            return ""
        shape = case.launch["grid"], case.launch["block"], case.launch.get("cluster", (1, 1, 1))
        started = apart.recording.start(apart.device.logs, prepared, log_of(prepared, case.entry, PlannedLaunch(*shape), apart.options))
        ms, _ = timed(apart.backend, case, prepared.loaded, repeats)
        started.free()
        return f"{ms / plain:.2f}x"
    finally:
        module.COMPACT = compact


def _compiled(ptx: str, arch: str) -> str:
    """Seconds to parse, record and assemble, over the seconds to assemble the plain text."""
    times = [time.perf_counter()]
    assemble(ptx, arch)
    times.append(time.perf_counter())
    assemble(record(ptx, leaves=True).ptx, arch)
    times.append(time.perf_counter())
    return f"{times[2] - times[1]:.2f} s / {times[1] - times[0]:.2f} s"


def row(make: Callable[[], Case], sessions: dict[str, Session], repeats: int) -> str:
    """The row of a case; a bench reports what it could not do and goes on."""
    try:
        case = make()
        with contextlib.ExitStack() as after:
            after.callback(case.free, sessions["plain"].backend)
            return f"| {case.name} | {' | '.join(rows(case, sessions, repeats))} |"
    except Exception as error:
        return f"| failed: {type(error).__name__}: {str(error)[:200]} |"


def fill_cache(name: str, arch: str) -> None:
    """Assemble the text that calls hooks."""
    case, ptx = _corpus_case(name, arch)
    launch = case.launch("full", 0)
    base = Variant(cluster=cluster_tier(math.prod(launch.cluster)))
    begin = time.perf_counter()
    assemble_with_hooks(ptx, instrument(parse(ptx), base=base, library=library_for, inline=True), "sm_90a")
    print(f"{name}: {time.perf_counter() - begin:.1f} s", flush=True)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="part of a kernel's name")
    parser.add_argument("--device", choices=("gpu", "cpu"), default="gpu")
    parser.add_argument("--no-inline", action="store_true", help="without called hooks")
    parser.add_argument("--full", type=int, help="M, N and K of the products of Hopper's kernels (2048)")
    parser.add_argument("--assemble", action="store_true", help="only fill the cache of assembled text with hooks")
    options = parser.parse_args()
    gpu = options.device == "gpu"
    if options.full:
        import hopper_cases

        hopper_cases.FULL = options.full
    kernels = [*((name, "sm_80") for name in (CHIP if gpu else MACHINE)), *((name, "sm_90a") for name in (HOPPER if gpu else ()))]
    kernels += [(name, "sm_80") for name in (UNLIKE if gpu else ())]
    kernels = [(name, arch) for name, arch in kernels if not options.names or any(part in name for part in options.names)]
    if options.assemble:
        for name, arch in kernels:
            fill_cache(name, arch)
        return
    engines = {"plain": "inline", "inline": "inline", "record": "record"}
    sessions = {
        name: Session(SessionOptions(device=options.device, engine=engine, global_memory="off")) for name, engine in engines.items()
    }
    if options.no_inline:
        del sessions["inline"]
    backend = sessions["plain"].backend
    print(f"{backend.device_name}\n{HEAD}\n{'|---' * (len(HEAD.split('|')) - 2)}|")
    cases: list[Callable[[], Case]] = []
    if not options.names or "sgemm" in options.names:
        cases += [lambda n=n: sgemm(backend, n) for n in ((512, 1024, 2048) if gpu else (128, 256))]
    if not options.names or "rolled" in options.names:
        cases.append(lambda: rolled(backend, 2000))
    size = "full" if gpu else "small"
    cases += [lambda name=name, arch=arch: of_corpus(backend, name, arch, size) for name, arch in kernels]
    for make in cases:
        print(row(make, sessions, 10 if gpu else 5), flush=True)


if __name__ == "__main__":
    main()
