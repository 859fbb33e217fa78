"""Programmatic dependent launches of frameworks on a GPU: the driver's calls say which they are."""

from __future__ import annotations

import ctypes

import pytest
from framework_support import FakeCalls, Framework
from leaving_support import slow_clock
from planted import plant

from consan.backends import driver as api
from consan.backends.callbacks import is_programmatic
from consan.session.comparing import concurrent_launches, driver_calls

KERNELS = """
extern "C" __global__ void primary(unsigned* out, unsigned* from, int early) {
    unsigned at = blockIdx.x * blockDim.x + threadIdx.x;
    if (early) asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
    out[at] = from[at] + 1;
}
extern "C" __global__ void secondary(unsigned* out, unsigned* from, int waits) {
    unsigned at = blockIdx.x * blockDim.x + threadIdx.x;
    if (waits) asm volatile("griddepcontrol.wait;" ::: "memory");
    from[at + 256] = out[at];
}
extern "C" __global__ void unrelated(unsigned* out, unsigned* from, int waits) {
    if (waits) asm volatile("griddepcontrol.wait;" ::: "memory");
    from[blockIdx.x * blockDim.x + threadIdx.x + 384] = 1;
}
"""


@pytest.fixture
def framework(monkeypatch: pytest.MonkeyPatch) -> Framework:
    slow_clock(monkeypatch)
    made = Framework(KERNELS, calls=FakeCalls())
    made.session.alone = False
    made.session.instrument_for_framework(made.prepared.plain)  # as an adapter does in a program
    return made


@pytest.mark.parametrize(
    ("waits", "chained", "races"), [(0, True, ["no-grid-wait"]), (1, True, []), (0, False, [])], ids=["no wait", "a wait", "no attribute"]
)
def test_a_secondary_kernel_waits_for_the_primary(framework: Framework, waits: int, chained: bool, races: list[str]) -> None:
    framework.launch("primary", 1)
    framework.launch("secondary", waits, chained=chained)
    report = framework.report()
    assert [finding.situation for finding in report.findings] == races
    assert not any(area.startswith("launches: races between") for area in report.not_checked), report.not_checked


@pytest.mark.parametrize("waits", [0, 1])
def test_a_third_kernel_needs_a_wait_in_the_second(framework: Framework, waits: int) -> None:
    framework.launch("primary", 1)
    framework.launch("unrelated", waits, chained=True)
    framework.launch("secondary", 1, chained=True)
    assert [finding.situation for finding in framework.report().findings] == ["no-chained-wait"] * (not waits)


@pytest.mark.parametrize("before", [False, True], ids=["in a graph alone", "compared before"])
def test_dependents_in_a_graph(framework: Framework, before: bool) -> None:
    """The nodes' accesses are not known: behind a wait the text says nothing of them."""
    calls, stream = framework.calls, framework.calls.stream()
    if before:
        framework.launch("primary", 1)
        framework.launch("secondary", 1, chained=True)
    calls.call("cuStreamBeginCapture", stream, 0)
    framework.capturing.add(stream)
    framework.launch("primary", 1, stream=stream)
    framework.launch("secondary", 1, stream=stream, chained=True)
    calls.call("cuStreamEndCapture", stream, 0)
    framework.capturing.clear()
    report = framework.report()
    assert (report.verdict, not report.findings) == ("clean" if before else "incomplete", True)
    assert before or all("it was not compared with what may run at the same time" in reason for reason in report.incomplete)


def test_planted_dependents(framework: Framework, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, concurrent_launches, "lost |= pair.waited and", "lost |= False and", "ConcurrentLaunches._tell_unknown")
    with pytest.raises(AssertionError):
        test_dependents_in_a_graph(framework, False)


def test_where_the_calls_do_not_say(monkeypatch: pytest.MonkeyPatch) -> None:
    slow_clock(monkeypatch)
    monkeypatch.setattr(FakeCalls, "reads_attributes", False)
    made = Framework(KERNELS, calls=FakeCalls())
    made.session.alone = False
    made.session.instrument_for_framework(made.prepared.plain)
    made.launch("secondary", 1)
    assert any(area.startswith("launches: races between") for area in made.report().not_checked)


def test_an_event_that_a_launch_records(framework: Framework) -> None:
    """The program's own kernel, by the driver's call, and one that the session makes."""
    framework.calls.call("cuLaunchKernelEx", 0, 1, 0, 0, records=True)
    assert any("a launch records an event by an attribute" in why for why in framework.report().incomplete)


def test_planted_events_of_launches(framework: Framework, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, driver_calls, "if call.records:", "if False:", "_Launches.__call__")
    with pytest.raises(AssertionError):
        test_an_event_that_a_launch_records(framework)


@pytest.mark.parametrize(("number", "value", "wanted"), [(6, 1, True), (6, 0, False), (4, 1, False)])
def test_the_attributes_of_a_call(number: int, value: int, wanted: bool) -> None:
    """`CUlaunchConfig` as the driver gets it: the first parameter points to it."""
    attribute = (api.LaunchAttribute * 1)()
    attribute[0].id, attribute[0].value.programmatic = number, value
    config = api.LaunchConfig(attributes=attribute, count=1)
    params = (ctypes.c_void_p * 1)(ctypes.addressof(config))
    assert is_programmatic(ctypes.addressof(params)) is wanted
