"""Each later launch of a kernel whose replays take long replays CTAs that no earlier one had time for, until all are known."""

from __future__ import annotations

import pytest
from leaving_support import SHADOW, Background, slow_clock
from planted import plant

from consan.checker.judging import recorder
from consan.session.executing import judging
from consan.session.framework_launch import FrameworkLaunch
from consan.session.modules.device import Device
from consan.session.planning import plan
from consan.session.planning.options import SessionOptions
from consan.session.session import Session
from consan.toolchain.nvrtc import compile_ptx

GRID, BLOCK = (20, 1, 1), (64, 1, 1)
FULL = 1 + -(-GRID[0] // plan.SLOW_SAMPLE)  # launches: the first one replays nothing
SOURCE = """
extern "C" __global__ void shifts(unsigned* out, int racing) {  // no two CTAs touch the same words
    __shared__ unsigned values[128];
    values[threadIdx.x + blockIdx.x] = threadIdx.x;
    if (blockIdx.x != racing) __syncthreads();
    out[blockIdx.x * blockDim.x + threadIdx.x] = values[63 - threadIdx.x + blockIdx.x];
}
"""


@pytest.fixture
def backend(monkeypatch: pytest.MonkeyPatch) -> Background:
    return slow_clock(monkeypatch)


class Program:
    """A framework's launches of one kernel. There is no time for the replays of the first one."""

    def __init__(self, backend: Background, monkeypatch: pytest.MonkeyPatch) -> None:
        self.backend, self.patch = backend, monkeypatch
        monkeypatch.setattr(judging, "SLOW", -1.0)
        monkeypatch.setattr(plan, "LONGEST_CHECK", 0.0)
        self.session = Session(SessionOptions.of({"global_memory": "off"}), on=Device(backend, arena_bytes=SHADOW))
        self.prepared = self.session.instrument_for_framework(compile_ptx(SOURCE, arch="sm_90a").ptx)
        self.module = backend.load(self.prepared.instrumented.ptx)
        self.session.attach(self.prepared, lambda name, data: backend.write(backend.symbol(self.module, name)[0], data))
        self.out = backend.alloc(4 * GRID[0] * BLOCK[0])

    def launch(self, times: int, racing: int = -1) -> tuple[str, list[str]]:
        values = [self.out.to_bytes(8, "little"), racing.to_bytes(4, "little", signed=True)]
        for _ in range(times):
            launch = FrameworkLaunch("shifts", GRID, BLOCK, (1, 1, 1), 0, self.module)
            with self.session.framework_launch(self.prepared, launch):
                self.backend.launch(self.module, "shifts", GRID, BLOCK, values)
            self.patch.setattr(plan, "LONGEST_CHECK", 60.0)
        self.backend.synchronize()
        report = self.session.so_far()
        return report.verdict, list(report.incomplete)


def test_later_launches_replay_what_earlier_ones_left(backend: Background, monkeypatch: pytest.MonkeyPatch) -> None:
    program = Program(backend, monkeypatch)
    assert program.launch(1)[0] == "incomplete"
    for seen in range(plan.SLOW_SAMPLE, GRID[0], plan.SLOW_SAMPLE):
        verdict, why = program.launch(1)
        assert verdict == "incomplete"
        assert why == [f"shifts: {GRID[0] - seen} CTAs did what no CTA of the sample did: not checked (--sample {plan.SLOW_SAMPLE})"]
    assert program.launch(1) == ("clean", [])
    assert program.launch(2) == ("clean", [])


@pytest.mark.parametrize("racing", [0, 13, 19])
def test_a_race_in_one_cta_is_found_by_then(racing: int, backend: Background, monkeypatch: pytest.MonkeyPatch) -> None:
    assert Program(backend, monkeypatch).launch(FULL, racing)[0] == "violations"


def test_a_sample_that_takes_known_histories_never_ends(backend: Background, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, recorder, "return needs_replay(self._name(group), self.histories)", "return True")
    assert Program(backend, monkeypatch).launch(2 * FULL)[0] == "incomplete"
