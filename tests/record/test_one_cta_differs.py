"""One of many CTAs differs, in what only some kernels have: mbarriers, barriers of an id, tensor maps, stored values, locks. It is found.

Each kernel runs on the virtual machine, and its compact log is compared with the full one, as a GPU has it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from compact_support import Work, compared
from planted import break_checker
from record_support import KERNELS

import consan
from consan.checker.compiled import replay

CTAS, ODD = 24, 17
HEAD = """#include "hopper.cuh"
#include "mbarrier.cuh"
extern "C" __global__ void kernel(const __grid_constant__ TensorMap half, const __grid_constant__ TensorMap whole, int* out, int odd) {
    __shared__ alignas(128) float tile[256];
    __shared__ u64 full;
    u32 t = threadIdx.x;
    bool mine = blockIdx.x == odd;
    int sum = 0;
    if (t == 0) init(full, COUNT);
    fence_async_shared();
    __syncthreads();
    BODY
    out[blockIdx.x * 64 + t] = sum;
}
"""
# The count of the mbarrier, the body, and what is found in the odd CTA alone.
BODIES: dict[str, tuple[int, str, str]] = {
    "a barrier's id": (
        1,
        """if (t >= 32) { tile[t] = 1; bar_arrive(1); tile[t + 32] = 1; bar_arrive(2); }
        else { u32 id = mine ? 1 : 2; bar_sync(id); sum = tile[t + 64]; bar_sync(3 - id); }""",
        "data-race",
    ),
    "a stale parity": (
        1,
        """if (t == 0) { expect(full, 512); tensor_load(tile, half, 0, 0, full); }
        wait(full, mine); sum = tile[t]; wait(full, 0);""",
        "missing-wait",
    ),
    "two arrivals on a count of one": (
        1,
        "if (t == 0) { arrive(full); if (mine) { wait(full, 0); arrive_twice(full); } }",
        "barrier-misuse",
    ),
    "a tensor map's box": (
        1,
        """if (t == 0) { expect(full, 512); tensor_load(tile, mine ? whole : half, 0, 0, full); }
        wait(full, 0); sum = tile[t];""",
        "deadlock",
    ),
    "two guards": (
        1,
        """tile[t] = t; __syncthreads();
        asm volatile("{ .reg .pred p; .reg .b32 a, b; setp.ne.u32 p, %1, 0; @p ld.shared.u32 a, [%0]; @p st.shared.u32 [%0+128], a; }"
                     ::"r"(shared(tile + t)), "r"((u32)(mine && t == 8)) : "memory");
        sum = tile[t];""",
        "data-race",
    ),
    "a value stored": (1, "tile[5] = mine ? t : odd; __syncthreads(); sum = tile[5];", "data-race"),
}
HELPERS = """
INLINE void bar_arrive(u32 id) { asm volatile("bar.arrive %0, 64;" ::"r"(id) : "memory"); }
INLINE void bar_sync(u32 id) { asm volatile("bar.sync %0, 64;" ::"r"(id) : "memory"); }
INLINE void arrive_twice(u64& barrier) { asm volatile("mbarrier.arrive.shared.b64 _, [%0], 2;" ::"r"(shared(&barrier)) : "memory"); }
"""


def _kernel(name: str) -> consan.Kernel:
    count, body, _ = BODIES[name]
    text = HEAD.replace("COUNT", str(count)).replace("BODY", body).replace('extern "C"', HELPERS + 'extern "C"')
    return consan.Kernel(text, "kernel", arch="sm_90a", include_dirs=[str(KERNELS)])


def _args(odd: int) -> list[Any]:
    image = np.arange(8 * 32, dtype=np.float32).reshape(8, 32)
    maps = [consan.TensorMap(image, box=box) for box in ((4, 32), (8, 32))]
    return [*maps, np.zeros(CTAS * 64, np.int32), np.int32(odd)]


@pytest.mark.parametrize("name", BODIES)
def test_it_is_found(name: str) -> None:
    report = consan.launch(_kernel(name), CTAS, 64, _args(ODD), device="cpu", engine="record", global_memory="off")
    errors = [each for each in report.findings if each.severity == "error"]
    assert ({each.engine for each in report.kernels}, report.verdict) == ({"record"}, "violations")
    assert BODIES[name][2] in {each.kind for each in errors}
    assert {access.block for each in errors for access in each.pair} <= {(ODD, 0, 0)}
    assert report.kernels[0].histories == 1 + ("value" not in name)  # stored values are not hashed


@pytest.mark.slow
def test_values_of_the_other_ctas_are_compared(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    break_checker(monkeypatch, tmp_path, (replay,), "races.hpp", "by_value_ |= found.flags", "by_value_ |= false && found.flags")
    report = consan.launch(_kernel("a value stored"), CTAS, 64, _args(ODD), device="cpu", engine="record", global_memory="off")
    assert report.verdict == "clean"


@pytest.mark.parametrize("name", BODIES)
def test_without_it_all_are_equal(name: str) -> None:
    report = consan.launch(_kernel(name), CTAS, 64, _args(-1), device="cpu", engine="record", global_memory="off")
    assert (report.verdict, report.kernels[0].ctas, report.kernels[0].histories) == ("clean", CTAS, 1)


@pytest.mark.parametrize("name", BODIES)
def test_compact_logs_tell_it_too(name: str) -> None:
    """A choice of two maps has no compact log, and a launch that hangs ends both in the same way."""
    wanted = "full" if "map" in name else ""
    assert compared(Work(_kernel(name).ptx, "kernel", (CTAS, 1, 1), (64, 1, 1), _args(ODD))) == wanted
