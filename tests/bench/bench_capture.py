"""The cost of a launch into a graph that is captured, on the host: consan's Python over a driver that does nothing (null_driver.c).

    python tests/bench/bench_capture.py [--profile] [--launches N]

Microseconds by the clock of a captured launch of Triton, the mean of N, less those of the same call without consan. `known`: a launch with
its parameters was checked before; `beside`: its check is under way; `recorded`: each node has a log (`picks` of bench_launch.py).
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import tempfile
import time
from collections.abc import Callable

from bench_launch import NullLibrary, Program

STREAM = 0x70


def captured(program: Program, wait: float) -> tuple[Callable[[], object], Callable[[], object]]:
    """A launch alone and under consan, behind one like it. `wait`: seconds for the check of that one."""
    plain, checked = program.triton()
    checked()
    if wait:
        time.sleep(wait)
        checked()
        time.sleep(wait)
    program.backend.capturing = lambda stream: stream == STREAM  # type: ignore[method-assign]
    return plain, checked


def microseconds(launch: Callable[[], object], times: int) -> float:
    """By the clock."""
    began = time.perf_counter()
    for _ in range(times):
        launch()
    return 1e6 * (time.perf_counter() - began) / times


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--launches", type=int, default=100)
    parser.add_argument("--profile", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        library = NullLibrary(folder)
        for name, kernel, wait in (("known", "waits", 0.5), ("beside", "waits", 0.0), ("recorded", "picks", 0.5)):
            program = Program(library, kernel, "off", STREAM)
            plain, checked = captured(program, wait)
            alone, first = microseconds(plain, given.launches), microseconds(checked, 1)
            profile, before = cProfile.Profile(), library.calls
            under = profile.runcall(microseconds, checked, given.launches) if given.profile else microseconds(checked, given.launches)
            calls = (library.calls - before) / given.launches
            print(f"{name}: the first {first - alone:.0f} us more, then {under - alone:.0f}, {calls:.1f} calls of the driver", flush=True)
            if given.profile:
                pstats.Stats(profile).sort_stats("tottime").print_stats(30)
            program.close()


if __name__ == "__main__":
    main()
