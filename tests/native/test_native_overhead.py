"""Native programs: `--overhead`, and the time that consan takes in the threads of the program."""

from __future__ import annotations

import itertools
import mmap
import os
import time
from collections.abc import Hashable
from types import ModuleType

import pytest
from native_case import Case, options
from planted import plant
from test_unasked import Questions, break_interposer

from consan._errors import NotSupported
from consan.backends.cost import COST, CostMeter, ServedProcess
from consan.native import client, counts
from consan.native.images import Links
from consan.native.run import check_native
from consan.native.wire import SPENT
from consan.reports.verdict.coverage import by_kernel
from consan.session import spared_launches
from consan.session.planning import budget
from consan.session.planning.budget import FIRST, OverheadBudget
from consan.toolchain.host_library import C
from consan.toolchain.nvrtc import compile_ptx

pytestmark = pytest.mark.skipif(C.compiler() is None, reason="no C compiler")
PICKS = """
extern "C" __global__ void sums(const float *x, float *out) {
    __shared__ float values[256];
    values[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    int from = (int)values[255 - threadIdx.x] & 255;
    if (threadIdx.x == 0) out[blockIdx.x] = values[from];
}
"""
LAUNCHES = 40
HOW = ("linked", "cuModuleLoadData")


@pytest.fixture(scope="module")
def picks(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A kernel of whose launches nothing is known before they are made."""
    path = tmp_path_factory.mktemp("picks") / "picks.ptx"
    path.write_text(compile_ptx(PICKS).ptx)
    return str(path)


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each look at the clock takes a second, and the program computes for none."""
    seconds = itertools.count()
    monkeypatch.setattr(COST, "now", lambda: float(next(seconds)))
    monkeypatch.setattr(ServedProcess, "seconds", 0.0)
    COST.restart()
    monkeypatch.setattr(budget, "LOOK_EVERY", 60.0)


def sampled(case: Case, image: str, share: float) -> str:
    """The coverage of a kernel's barriers."""
    _, report, handed = case.run(
        *HOW, image, "cuLaunchKernel", *["again"] * (LAUNCHES - 1), given=options(overhead=share, global_memory="off")
    )
    assert handed.count("cuLaunchKernel sums") == LAUNCHES
    assert sum(kernel.launches for kernel in report.kernels) == LAUNCHES
    assert report.verdict == "clean", report.incomplete
    return by_kernel(report)["sums"]["barriers"]


def test_the_first_launches_are_looked_at(case: Case, picks: str, slow: None) -> None:
    assert sampled(case, picks, 0.05) == f"sampled ({FIRST} of {LAUNCHES})"


def test_all_are_looked_at_where_there_is_time(case: Case, picks: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ServedProcess, "seconds", 1e9)
    assert sampled(case, picks, 0.05) == "checked"


def test_what_is_known_takes_no_time(case: Case, slow: None) -> None:
    assert sampled(case, case.image("clean"), 0.05) == "checked"


def test_launches_for_which_there_is_no_time_ask_nobody(case: Case, picks: str, slow: None, monkeypatch: pytest.MonkeyPatch) -> None:
    questions = Questions(case, monkeypatch)
    sampled(case, picks, 0.05)
    assert questions.asked < 8


def looked_at_again(case: Case, picks: str, monkeypatch: pytest.MonkeyPatch) -> tuple[str, int]:
    """The coverage of a program for which there is time again when it loads its file once more, and the questions of its launches."""
    budgets, affords, may_know = list[OverheadBudget](), OverheadBudget.affords, Links.may_know

    def asked(each: OverheadBudget, shape: Hashable) -> bool:
        budgets.append(each)
        return affords(each, shape)

    def loads(links: Links, image: bytes) -> bool:
        for each in budgets[-1:]:
            each.share = 1e9
            assert each.look()
        return may_know(links, image)

    monkeypatch.setattr(OverheadBudget, "affords", asked)
    monkeypatch.setattr(Links, "may_know", loads)
    questions = Questions(case, monkeypatch)
    words = (*HOW, picks, "cuLaunchKernel", *["again"] * 20, picks, *["again"] * 4)
    _, report, _ = case.run(*words, given=options(overhead=0.05, global_memory="off"))
    return by_kernel(report)["sums"]["barriers"], questions.asked


def test_they_are_looked_at_once_there_is_time(case: Case, picks: str, slow: None, monkeypatch: pytest.MonkeyPatch) -> None:
    coverage, asked = looked_at_again(case, picks, monkeypatch)
    assert coverage == f"sampled ({FIRST + 4} of 25)"
    assert asked < 12


@pytest.mark.parametrize(
    ("module", "old", "new"),
    [
        (spared_launches, "self.selection.budget.once_there_is_time(then)", "pass"),
        (budget, "            each()", "            pass"),
    ],
)
def test_planted(module: ModuleType, old: str, new: str, case: Case, picks: str, slow: None, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, module, old, new)
    assert looked_at_again(case, picks, monkeypatch)[0] != f"sampled ({FIRST + 4} of 25)"


class Spent:
    """The time in the interposer. The server takes none."""

    def __init__(self, case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
        self.case, self.asked, self.unasked = case, 0, 0
        monkeypatch.setattr(COST, "now", lambda: 0.0)
        monkeypatch.setattr(counts, "SPENT", self)
        self.size = SPENT.size

    def unpack_from(self, table: mmap.mmap, at: int) -> tuple[int, ...]:
        self.asked, self.unasked = SPENT.unpack_from(table, at)
        return self.asked, self.unasked

    def of(self, steps: int) -> float:
        _, report, _ = self.case.run("linked", "cuModuleLoadData", self.case.image("clean"), "cuLaunchKernel", *["again"] * steps)
        assert report.cost is not None
        return report.cost.seconds


def test_the_time_in_the_interposer_is_counted(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    spent = Spent(case, monkeypatch)
    assert spent.of(steps=2) == pytest.approx((spent.asked + spent.unasked) / 1e9, abs=1e-5)
    assert spent.asked > 1_000_000, "to prepare a module takes long"
    assert spent.unasked == 0
    assert spent.of(steps=300) == pytest.approx((spent.asked + spent.unasked) / 1e9, abs=1e-5)
    assert 0 < spent.unasked < spent.asked


def test_without_the_interposer_it_is_not(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, client, "        if more > 0:", "        if False:")
    spent = Spent(case, monkeypatch)
    assert 10 * spent.of(steps=2) < spent.asked / 1e9


def test_without_a_sample_it_is_less(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    break_interposer(monkeypatch, "++looks % SAMPLE == 0", "false", "launches.h")
    spent = Spent(case, monkeypatch)
    spent.of(steps=300)
    assert spent.unasked == 0


def test_the_time_of_another_process() -> None:
    meter = CostMeter()
    assert meter.busy <= meter.elapsed
    child = os.fork()
    if not child:
        until = time.process_time() + 0.2
        while time.process_time() < until:
            pass
        time.sleep(30)
        os._exit(0)
    try:
        meter.serves(child)
        until = time.monotonic() + 20
        while meter.busy < 0.1 and time.monotonic() < until:
            time.sleep(0.01)
        assert 0.1 <= meter.busy < 5
    finally:
        os.kill(child, 9)
        os.waitpid(child, 0)
    assert meter.busy >= 0.1, "it has ended"


def test_without_a_gpu_it_is_refused() -> None:
    with pytest.raises(NotSupported, match="--device cpu"):
        check_native(options(overhead=0.05, device="cpu"))
