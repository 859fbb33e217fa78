"""A recorded kernel that the program launches by the driver, and not by its framework, is counted: the report is incomplete."""

from __future__ import annotations

import contextlib
import ctypes

import pytest
from test_noted_calls import Program

from consan.adapters.recorded import FrameworkModules
from consan.backends import call_filter
from consan.backends.driver import own_calls
from consan.session.framework_launch import FrameworkLaunch

KERNEL, OF_LIBRARY, FOREIGN = 0x7F0010, 0x7F0050, 0x9000


class Loaded:
    """A framework that has loaded its module, whose kernels have these handles."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, note: bool = False) -> None:
        self.program = Program(monkeypatch, note=note)
        framework = self.program.framework
        number = {entry: at for at, entry in enumerate(framework.prepared.entries)}
        framework.backend.function = lambda module, entry, *_: KERNEL + 0x100 * number[entry]  # type: ignore[attr-defined]
        self.modules = FrameworkModules()
        self.modules.add(framework.session, framework.prepared, 7, lambda entry: (OF_LIBRARY + 0x100 * number[entry],))

    def call(self, handle: int, name: str = "cuLaunchKernel") -> None:
        """Call the driver: it launches the kernel with a handle, or makes a node of a graph of it."""
        node, configuration = (ctypes.c_uint64 * 16)(handle), (ctypes.c_uint64 * 8)()
        kernel, any_node = (ctypes.c_uint64 * 16)(*[0] * 7, handle), (ctypes.c_uint64 * 16)(0, 0, handle)
        words = {
            "cuGraphKernelNodeSetParams": (0, ctypes.addressof(kernel)),
            "cuGraphAddNode": (0, 0, 0, 0, ctypes.addressof(any_node)),
            "cuGraphAddNode_v2": (0, 0, 0, 0, 0, ctypes.addressof(any_node)),
            "cuGraphNodeSetParams": (0, ctypes.addressof(any_node)),
            "cuGraphExecNodeSetParams": (0, 0, ctypes.addressof(any_node)),
            "cuLaunchKernelEx": (ctypes.addressof(configuration), handle, 0, 0),
            "cuGraphAddKernelNode": (0, 0, 0, 0, ctypes.addressof(node)),
        }
        self.program.call(name, *words.get(name, (handle, 0, 0, 0, 0, 0, 0, 0)))

    def reasons(self) -> list[str]:
        report = self.program.framework.session.report()
        return [each.partition(":")[0] for each in report.incomplete if "recorded: " in each]


LAUNCHES = ("cuLaunchKernel", "cuLaunchCooperativeKernel", "cuLaunchKernelEx", "cuGraphAddKernelNode", "cuGraphKernelNodeSetParams")
NODES = ("cuGraphAddNode", "cuGraphAddNode_v2", "cuGraphNodeSetParams", "cuGraphExecNodeSetParams")


@pytest.mark.parametrize("name", [*LAUNCHES, *NODES])
@pytest.mark.parametrize("handle", [KERNEL, OF_LIBRARY])
def test_a_launch_by_the_driver_is_named(name: str, handle: int, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = Loaded(monkeypatch)
    loaded.program.framework.launch("fills")
    for _ in range(2):
        loaded.call(handle, name)
    assert loaded.reasons() == ["2 launches of fills could not be recorded"]


@pytest.mark.parametrize("note", [True, False])
def test_it_is_counted_wherever_calls_go(note: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Launches that are noted, and those that are passed over, do not come to Python."""
    loaded = Loaded(monkeypatch, note=note)
    loaded.call(FOREIGN)
    loaded.call(FOREIGN)
    loaded.call(KERNEL + 0x100)
    assert loaded.reasons() == ["1 launch of scatters could not be recorded"]
    loaded.call(KERNEL + 0x100)
    assert loaded.reasons() == ["2 launches of scatters could not be recorded"]


def test_launches_that_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of the framework, those of consan, those of other kernels, and one that the driver refuses."""
    loaded = Loaded(monkeypatch)
    framework = loaded.program.framework
    launch = FrameworkLaunch("fills", (2, 1, 1), (64, 1, 1), (1, 1, 1), 0, loaded.modules.loaded(7))
    monkeypatch.setattr(type(framework.session), "framework_launch", lambda *_: contextlib.nullcontext())
    with loaded.modules.launching(framework.session, launch):
        loaded.call(KERNEL)
    with own_calls():
        loaded.call(KERNEL)
    loaded.call(FOREIGN)
    loaded.program.cupti.called("cuLaunchKernel", KERNEL, 0, 0, 0, 0, 0, 0, 0, status=1)
    framework.launch("fills")
    assert loaded.reasons() == []


@pytest.mark.parametrize("name", NODES)
def test_without_its_place_a_node_is_not_seen(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "consan.backends.call_filter.KERNELS", {other: place for other, place in call_filter.KERNELS.items() if other != name}
    )
    loaded = Loaded(monkeypatch)
    loaded.program.framework.launch("fills")
    loaded.call(KERNEL, name)
    assert loaded.reasons() == []


def test_without_the_count_it_is_not_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fault: where calls name no kernel, the report is clean."""
    monkeypatch.setattr("consan.backends.call_filter.KERNELS", {})
    loaded = Loaded(monkeypatch)
    loaded.program.framework.launch("fills")
    loaded.call(KERNEL)
    assert loaded.reasons() == []
