"""The speed of the checker alone: one replay of one CTA or cluster, in lane events a second of processor time, best of several.

Twice: with all rounds of loops replayed, and with rounds that repeat replayed once.

PYTHONPATH=tests:tests/real python tests/bench/bench_checker.py
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from bench_record import HERE, MACHINE, Case, of_corpus, sgemm

from consan.checker.compiled.replay import History, Tables, replay
from consan.session.planning.options import SessionOptions
from consan.session.planning.plan import PlannedLaunch, log_of
from consan.session.session import Session
from consan.toolchain.nvrtc import compile_ptx

REPEATS = 20
HOPPER = ("nvrtc/tma_gemm", "nvrtc/bulk_pipeline")  # without the compilers of frameworks


def recorded(session: Session, case: Case) -> tuple[Tables, History]:
    """The templates of a kernel, and the history of its first CTA."""
    prepared = session.prepare(case.ptx, name=case.name)
    assert prepared.recorded is not None
    started = session.recording.start(
        session.device.logs,
        prepared,
        log_of(
            prepared,
            case.entry,
            PlannedLaunch(case.launch["grid"], case.launch["block"], case.launch.get("cluster", (1, 1, 1))),
            session.options,
        ),
    )
    session.backend.launch(prepared.loaded, case.entry, args=case.args, **case.launch)
    return prepared.recorded.blocks.tables, started.launch.histories([0])[0]


def cluster(session: Session, ctas: int, rounds: int = 8) -> Case:
    """One cluster of so many CTAs, which hand tiles on."""
    ptx = compile_ptx((HERE / "cluster.cu").read_text(), name=str(HERE / "cluster.cu"), arch="sm_90a").ptx
    out = int(session.backend.alloc(ctas * 512))
    launch = {"grid": (ctas, 1, 1), "block": (128, 1, 1), "cluster": (ctas, 1, 1)}
    return Case(f"cluster of {ctas}", ptx, "rounds", launch, [out.to_bytes(8, "little"), np.int32(rounds).tobytes()], [])


def seconds(templates: Tables, history: History, *, every: bool) -> float:
    """Processor time of one replay; the best of several."""
    times = list[float]()
    for _ in range(REPEATS):
        begin = time.process_time()
        replay(templates, history, descending=False, every=every)
        times.append(time.process_time() - begin)
    return min(times)


def main() -> None:
    """Print a line for each kernel."""
    session = Session(SessionOptions(device="cpu", engine="record"))
    cases: list[Callable[[], Case]] = [lambda: sgemm(session.backend, 128), lambda: sgemm(session.backend, 256)]
    kernels = [*((name, "sm_80") for name in MACHINE), *((name, "sm_90a") for name in HOPPER)]
    cases += [lambda name=name, arch=arch: of_corpus(session.backend, name, arch, "small") for name, arch in kernels]  # type: ignore[misc]
    cases += [lambda ctas=ctas: cluster(session, ctas) for ctas in (2, 4, 8, 16)]  # type: ignore[misc]
    for make in cases:
        case = make()
        templates, history = recorded(session, case)
        events = replay(templates, history, descending=False).events
        every, once = (seconds(templates, history, every=each) for each in (True, False))
        rate = f"{events:,} lane events in {1e3 * every:.1f} ms, {events / every / 1e6:.1f} million a second"
        print(f"{case.name}: {rate}; {1e3 * once:.1f} ms with rounds that repeat replayed once", flush=True)


if __name__ == "__main__":
    main()
