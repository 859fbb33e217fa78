"""The cost of a call of the stand-in driver, and of a launch through it, beside the same launch without it. No GPU.

    consan run --device cpu tests/bench/bench_driver.py        needs cuda.bindings

Processor time, the middle of the rounds: a call that only answers; a launch of a kernel of one warp that does nothing, the first time
and later; one in which each of 64 threads stores a number; and `consan.launch` of that one, with its arrays.
"""

from __future__ import annotations

import ctypes
import statistics
import time
from collections.abc import Callable

import numpy as np
from cuda.bindings import driver

import consan

ROUNDS = 50
HEAD = ".version 8.0\n.target sm_90\n.address_size 64\n"
EMPTY = ".visible .entry empty()\n{\n    ret;\n}\n"
STORE = """.visible .entry store(.param .u64 out)
{
    .reg .b32 %r<3>;
    .reg .b64 %d<4>;
    ld.param.u64 %d1, [out];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %d2, %r1, 4;
    add.u64 %d3, %d1, %d2;
    st.global.u32 [%d3], %r1;
    ret;
}
"""


def done(result: tuple[object, ...]) -> object:
    assert not result[0], result
    return result[1] if len(result) > 1 else None


def middle(call: Callable[[], object]) -> float:
    """Microseconds of the processor."""
    taken = []
    for _ in range(ROUNDS):
        began = time.process_time()
        call()
        taken.append(time.process_time() - began)
    return 1e6 * statistics.median(taken)


def main() -> None:
    done(driver.cuInit(0))
    done(driver.cuCtxSetCurrent(done(driver.cuDevicePrimaryCtxRetain(done(driver.cuDeviceGet(0))))))
    module = done(driver.cuModuleLoadData((HEAD + EMPTY + STORE).encode() + b"\0"))
    empty, store = (done(driver.cuModuleGetFunction(module, name)) for name in (b"empty", b"store"))
    out = done(driver.cuMemAlloc(256))
    given = ((int(out),), (ctypes.c_void_p,))

    def launch(function: object, threads: int, parameters: object) -> None:
        done(driver.cuLaunchKernel(function, 1, 1, 1, threads, 1, 1, 0, 0, parameters, 0))

    began = time.process_time()
    launch(empty, 32, 0)
    first = 1e6 * (time.process_time() - began)
    print(f"a call that only answers {middle(lambda: done(driver.cuCtxGetDevice())):.0f} us")
    print(f"an empty kernel, first {first:.0f} us, later {middle(lambda: launch(empty, 32, 0)):.0f} us")
    print(f"64 stores, later {middle(lambda: launch(store, 64, given)):.0f} us")
    kernel, array = consan.Kernel(HEAD + STORE, entry="store"), np.zeros(64, np.int32)
    print(f"64 stores by consan.launch, later {middle(lambda: consan.launch(kernel, 1, 64, [array], device='cpu')):.0f} us")


if __name__ == "__main__":
    main()
