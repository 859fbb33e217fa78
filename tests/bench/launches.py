"""A program that launches one kernel again and again, by Triton or CuPy: the host's time of a launch, by medians of batches.

    python tests/bench/launches.py [add] [matmul] [cupy]                 the program alone
    consan run tests/bench/launches.py [add] [matmul] [cupy]             sanitized

One line each: the first launch; launches 2 to 150, each by the clock (their median, mean, and the four longest with their numbers: consan
checks the first ones, and the others go on meanwhile); then 20 batches of 50 (their median and least), behind a second without a launch.
Needs torch and Triton, or CuPy, on a GPU. `launches.cu` does the same in a native program.
"""

from __future__ import annotations

import contextlib
import cProfile
import gc
import pstats
import statistics
import sys
import time
from collections.abc import Callable, Iterator

FIRST, BATCHES, BATCH = 150, 20, 50


def add() -> tuple[Callable[[], object], Callable[[], object]]:
    """A launch of Triton's vector addition, 98,432 elements, and a wait for the device."""
    import torch
    import triton
    from kernels_of_launches import added

    x, y = torch.rand(98432, device="cuda"), torch.rand(98432, device="cuda")
    out = torch.empty_like(x)
    grid = (triton.cdiv(x.numel(), 1024),)
    return lambda: added[grid](x, y, out, x.numel(), block=1024), torch.cuda.synchronize


def matmul() -> tuple[Callable[[], object], Callable[[], object]]:
    """A launch of Triton's product of matrices, 512 x 512 x 512, and a wait for the device."""
    import torch
    from kernels_of_launches import product

    size, tile = 512, 64
    a, b = (torch.rand((size, size), device="cuda", dtype=torch.float16) for _ in range(2))
    out = torch.empty((size, size), device="cuda", dtype=torch.float16)
    grid = (size // tile, size // tile)
    return lambda: product[grid](a, b, out, size, size, size, tile=tile, depth=32), torch.cuda.synchronize


def cupy() -> tuple[Callable[[], object], Callable[[], object]]:
    """A launch of a sum in blocks by CuPy, 256 CTAs, and a wait for the device."""
    import cupy
    from kernels_of_launches import SUMS

    kernel = cupy.RawKernel(SUMS, "sums")
    given, out = cupy.ones(256 * 256, cupy.float32), cupy.empty(256, cupy.float32)
    return lambda: kernel((256,), (256,), (given, out)), cupy.cuda.runtime.deviceSynchronize


def microseconds(launch: Callable[[], object], wait: Callable[[], object], times: int) -> float:
    """The host's time of a launch, without the wait behind the last one."""
    began = time.perf_counter()
    for _ in range(times):
        launch()
    took = time.perf_counter() - began
    wait()
    return 1e6 * took / times


@contextlib.contextmanager
def searches_for_cycles() -> Iterator[list[float]]:
    """The milliseconds of each search that Python makes inside the block, in any thread."""
    found, began = list[float](), [0.0]

    def searched(phase: str, _: object) -> None:
        if phase == "start":
            began[0] = time.perf_counter()
        else:
            found.append(1e3 * (time.perf_counter() - began[0]))

    gc.callbacks.append(searched)
    try:
        yield found
    finally:
        gc.callbacks.remove(searched)


def _one(launch: Callable[[], object]) -> float:
    """The host's time of one launch, in microseconds."""
    began = time.perf_counter()
    launch()
    return 1e6 * (time.perf_counter() - began)


def _profiled(launch: Callable[[], object]) -> float:
    """The same, and where it went goes to the standard error."""
    profile = cProfile.Profile(time.perf_counter)
    took = profile.runcall(_one, launch)
    pstats.Stats(profile, stream=sys.stderr).sort_stats("tottime").print_stats(25)
    return took


def main() -> None:
    profiled = {int(each.partition("=")[2]) for each in sys.argv[1:] if each.startswith("--profile=")}
    for name in [each for each in sys.argv[1:] if not each.startswith("-")] or ("add", "matmul"):
        launch, wait = {"add": add, "matmul": matmul, "cupy": cupy}[name]()
        began = time.perf_counter()
        launch()
        wait()
        first = time.perf_counter() - began
        with searches_for_cycles() as searches:
            early = [(_profiled if number in profiled else _one)(launch) for number in range(2, FIRST + 1)]
        wait()
        longest = ", ".join(f"{time:.0f} the {number}th" for time, number in sorted(zip(early, range(2, FIRST + 1), strict=True))[:-5:-1])
        time.sleep(1)  # for the thread that checks
        microseconds(launch, wait, BATCH)
        batches = [microseconds(launch, wait, BATCH) for _ in range(BATCHES)]
        print(
            f"{name}: first launch {first:.3f} s, launches 2 to {FIRST} median {statistics.median(early):.1f}, "
            f"mean {statistics.mean(early):.1f} us (longest {longest}; {len(searches)} searches for cycles, "
            f"{sum(searches):.1f} ms), then {statistics.median(batches):.1f} us "
            f"(least {min(batches):.1f})",
            file=sys.stderr,
            flush=True,
        )


if __name__ == "__main__":
    main()
