"""Shadow memory of a CTA, by byte of its shared memory, for the kernels of the corpus.

Usage: python tests/bench/bench_memory.py [NAME ...]

Nothing runs: the slot's size follows from the threads, the shared memory and what the kernel uses (consan/instrument/abi/geometry.py, which
the tests hold to what the device cuts). Where it goes: a word for each write and each warp's read of a granule (`cells`), the state of
each thread, and what mbarriers, copies and named barriers need, whatever the size of the shared memory (`fixed`).
"""

from __future__ import annotations

import math
import statistics
import sys
from pathlib import Path

TESTS = Path(__file__).parents[1]
sys.path[:0] = [str(TESTS), str(TESTS / "real")]

import corpus  # noqa: E402
from hopper_cases import CLUSTER_CASES, HOPPER_CASES  # noqa: E402
from real_cases import CASES, Case  # noqa: E402
from real_run import entry_of  # noqa: E402

from consan._errors import ConsanError  # noqa: E402
from consan.instrument.abi.geometry import slot_bytes, thread_bytes  # noqa: E402
from consan.session.planning.options import SessionOptions  # noqa: E402
from consan.session.session import Session  # noqa: E402


def row(case: Case, arch: str) -> tuple[int, int, int, int, int]:
    """Threads, bytes of shared memory, of the slot, of threads' states, and of a slot for next to no shared memory."""
    entry = corpus.get(f"{case.name}/{arch}")
    if entry.skip:
        raise LookupError(entry.skip)
    ptx, launch = entry.make(), case.launch("small", 1)
    session = Session(SessionOptions(device="cpu"))
    prepared = session.prepare(ptx, cluster=math.prod(launch.cluster))
    room = session.room(prepared, entry_of(ptx, launch), launch.block, launch.shared, launch.cluster)
    variant, threads = prepared.instrumented.variant, math.prod(launch.block)
    least = slot_bytes(variant, threads, 1, room.ctas)
    return threads * room.ctas, room.shared, room.slot, threads * room.ctas * thread_bytes(variant), least


def main(names: list[str]) -> None:
    """Print the table, and the medians."""
    shares: list[tuple[int, float]] = []
    print(f"{'kernel':36}{'threads':>8}{'shared':>9}{'shadow KiB':>12}{'per byte':>10}{'fixed KiB':>11}{'of threads':>11}")
    for arch, cases in (("sm_80", CASES), ("sm_90a", (*HOPPER_CASES, *CLUSTER_CASES))):
        for case in cases:
            if names and not any(name in case.name for name in names):
                continue
            try:
                threads, shared, slot, own, least = row(case, arch)
            except (LookupError, ConsanError) as error:
                print(f"{case.name:36}left out: {str(error).splitlines()[0]}")
                continue
            if shared:
                shares.append((shared, slot / shared))
            share = f"{slot / shared:10.1f}" if shared else f"{'-':>10}"
            print(f"{case.name:36}{threads:8}{shared:9}{slot / 1024:12,.0f}{share}{least / 1024:11,.0f}{own / 1024:11,.0f}", flush=True)
    for floor in (1, 16 << 10, 64 << 10):
        chosen = [share for shared, share in shares if shared >= floor]
        if chosen:
            print(f"median of {len(chosen)} kernels with {floor:,} bytes and more: {statistics.median(chosen):.1f}")


if __name__ == "__main__":
    main(sys.argv[1:])
