"""A launch whose results are zero, but not its parameters, has left no record: it is not checked, and no finding is made of it."""

from __future__ import annotations

import pytest
from framework_support import FakeCalls, Framework
from planted import plant

from consan.checker.logs.receipts import Receipt, Slip
from consan.session.executing import in_flight_launch

# Where it reads follows from a parameter.
TURNS = """
extern "C" __global__ void turns(unsigned* out, unsigned* from, int number) {
    __shared__ unsigned values[64];
    values[threadIdx.x] = threadIdx.x;
    __syncthreads();
    out[blockIdx.x * blockDim.x + threadIdx.x] = values[(threadIdx.x + number) % 64];
}
"""
WHY = "turns: a launch was not checked: it has left no record"


def test_results_that_are_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    framework = Framework(TURNS, calls=FakeCalls())
    with monkeypatch.context() as inside:
        inside.setattr(Slip, "read", lambda _, nbytes: Receipt(bytes(16), 0, bytes(nbytes)))
        framework.launch("turns", 3)
        framework.settle()
    report = framework.report()
    assert (report.verdict, report.findings) == ("incomplete", ())
    assert WHY in report.incomplete


def test_other_results_are_checked() -> None:
    framework = Framework(TURNS, calls=FakeCalls())
    framework.launch("turns", 3)
    assert framework.report().verdict == "clean"


def test_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, in_flight_launch, "if self._has_left_nothing:", "if False:")
    with pytest.raises(AssertionError):
        test_results_that_are_zero(monkeypatch)
