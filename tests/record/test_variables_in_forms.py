"""A module's variables are one, whatever form of it a launch of a framework takes."""

from __future__ import annotations

import numpy as np
import pytest
from framework_support import Framework
from leaving_support import slow_clock

from consan.session.modules.variables import bound, exported
from consan.toolchain.assemble import assemble_cached
from consan.toolchain.nvrtc import compile_ptx

KERNELS = """
__constant__ unsigned scale[4];
static __device__ unsigned count, order[4] = {3, 2, 1, 0};
extern "C" __global__ void counts(unsigned* out, unsigned* from, int number) {
    __shared__ unsigned values[64];
    values[threadIdx.x] = threadIdx.x;
    RACE;
    unsigned other = values[63 - threadIdx.x];
    if (threadIdx.x == 0) atomicAdd(&count, order[number & 3]);
    out[from[threadIdx.x] + blockIdx.x * 64 + threadIdx.x] = other * scale[threadIdx.x & 3];
}
extern "C" __global__ void reads(unsigned* out, unsigned* from, int number) {
    if (threadIdx.x == 0 && blockIdx.x == 0) out[from[0]] = count;
}
"""


@pytest.fixture(autouse=True)
def _slow(monkeypatch: pytest.MonkeyPatch) -> None:
    slow_clock(monkeypatch)


def framework(race: str = "__syncthreads()") -> Framework:
    made = Framework(KERNELS.replace("RACE", race))
    assert made.prepared.recorded is not None
    made.backend.write(made.backend.symbol(made.module, "scale")[0], np.arange(1, 5, dtype=np.uint32))
    return made


def word(made: Framework, at: int = 0) -> int:
    made.backend.synchronize()
    return int(np.frombuffer(made.backend.read(made.out, 4 * (at + 1)), np.uint32)[at])


def test_every_form_uses_the_variables_that_the_program_has() -> None:
    made = framework()
    made.launch("counts", 0)  # the form with global memory
    made.launch("counts", 1)  # the framework's own
    made.capturing.add(0)
    made.launch("counts", 2)  # a node of a graph, with a log of its own
    made.capturing.clear()
    assert word(made, 1) == 62 * 2
    made.launch("reads")
    assert word(made) == 2 * (3 + 2 + 1)
    report = made.report()
    assert made.exchanged == [True, False, True, True]
    assert report.verdict == "clean", report
    assert {kernel.engine for kernel in report.kernels if kernel.launches} == {"record"}


def test_the_plain_form_too() -> None:
    made = framework()
    values = [made.out.to_bytes(8, "little"), made.source.to_bytes(8, "little"), bytes(4)]
    made.backend.launch(made.session.plain(made.prepared, made.module), "counts", (2, 1, 1), (64, 1, 1), values)
    made.launch("reads")
    assert word(made) == 6


def test_each_loaded_module_has_its_own() -> None:
    made = framework()
    first, second = made.module, made.backend.load(made.prepared.instrumented.ptx)
    made.launch("counts")
    made.module = second
    made.launch("counts", ctas=3)  # another shape: the form with global memory, for this module
    made.launch("reads")
    assert (made.exchanged, word(made)) == ([True, True, True], 3 * 3)
    made.module = first
    made.launch("reads")
    assert word(made) == 2 * 3


def test_a_race_is_found_in_each_form() -> None:
    made = framework("")
    made.launch("counts")
    assert [finding.kind for finding in made.report().findings] == ["data-race"]


def test_a_race_on_a_variable_is_found() -> None:
    made = Framework(KERNELS.replace("RACE", "count = threadIdx.x"))
    made.launch("counts")
    assert "global-race" in {finding.kind for finding in made.report().findings}


def test_a_form_with_addresses_is_assembled() -> None:
    ptx = exported(compile_ptx(KERNELS.replace("RACE", "__syncthreads()"), arch="sm_90a").ptx)
    text = bound(ptx, lambda name: 0x7F00_0000_0000 + 256 * len(name))
    assert "ld.global" in text
    assert "ld.const" in ptx
    assert "ld.const" not in text
    assert assemble_cached(text, "sm_90a").cubin
