"""How many lines of PTX the reader takes in a second on one core.

Usage: python tests/bench/bench_parse.py [FILE.ptx ...]

Without files it reads PTX that NVRTC makes of CUB's block radix sort, repeated; debug sections are cut off first, because lines
that are stepped over whole would flatter the figure. The best of five runs counts. "operands" adds reading every operand.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

from consan.instrument.ptx import Section, parse, print_module

SOURCE = """
#include <cub/block/block_radix_sort.cuh>
extern "C" __global__ void sort(int* data) {
  using Sort = cub::BlockRadixSort<int, 128, 16>;
  __shared__ typename Sort::TempStorage storage;
  int keys[16];
  for (int i = 0; i < 16; i++) keys[i] = data[threadIdx.x * 16 + i];
  Sort(storage).Sort(keys);
  for (int i = 0; i < 16; i++) data[threadIdx.x * 16 + i] = keys[i];
}
"""
GOAL = 100_000


def main(paths: list[str]) -> int:
    texts = {path: Path(path).read_text() for path in paths} or compiled()
    slowest = min(measure(name, without_sections(text)) for name, text in texts.items())
    print(f"slowest {slowest:,.0f} lines/s, goal {GOAL:,}")
    return 0 if slowest >= GOAL else 1


def compiled() -> dict[str, str]:
    from consan.toolchain.find import include_dirs
    from consan.toolchain.nvrtc import compile_ptx

    return {
        f"radix sort, {name}": compile_ptx(SOURCE, arch="sm_90a", include_dirs=include_dirs(), options=options).ptx
        for name, options in {"line info": (), "debug": ("--device-debug",)}.items()
    }


def without_sections(text: str) -> str:
    for section in reversed([item for item in parse(text).items if isinstance(item, Section)]):
        text = text[: section.start] + text[section.end :]
    return text


def best(run: Callable[[], object]) -> float:
    times = []
    for _ in range(5):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)


def read_operands(text: str) -> None:
    for function in parse(text).functions:
        for instruction in function.instructions():
            _ = instruction.operands


def measure(name: str, text: str) -> float:
    assert print_module(parse(text)) == text
    lines = text.count("\n")
    speed, with_operands = lines / best(lambda: parse(text)), lines / best(lambda: read_operands(text))
    print(f"{name}: {lines:,} lines, parse {speed:,.0f} lines/s, parse and operands {with_operands:,.0f} lines/s")
    return speed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
