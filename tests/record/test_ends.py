"""The end of a program waits for all kernels, but not for ever: also for those that run as they are, on streams that nobody has named."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest
from armed_support import bench_launch
from leaving_support import slow_clock
from streams_support import Streams
from test_background import Framework

from consan.backends.base import DeviceLost
from consan.backends.cuda import CudaBackend
from consan.backends.driver import Driver
from consan.session.executing import time_limit, watch


class Hanging:
    """A driver whose context waits until the test says so, and then gives a status."""

    def __init__(self, library: bench_launch.NullLibrary, status: int = 0) -> None:
        self._library, self.status, self.end = library, status, threading.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._library, name)

    def cuCtxSynchronize(self) -> int:
        self.end.wait(20)
        return self.status


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> bench_launch.NullLibrary:
    return bench_launch.NullLibrary(str(tmp_path_factory.mktemp("driver")))


@pytest.mark.parametrize("timeout", [0.2, None])
def test_a_stream_that_nobody_has_named_is_waited_for(timeout: float | None, library: bench_launch.NullLibrary) -> None:
    hanging = Hanging(library)
    backend = CudaBackend(driver=Driver(hanging))
    began = time.monotonic()
    assert not backend.ends(timeout, 0.2)
    assert time.monotonic() - began < 10
    hanging.end.set()
    assert backend.ends(timeout, 0.2)


def test_its_fault_is_seen(library: bench_launch.NullLibrary) -> None:
    hanging = Hanging(library, 700)
    hanging.end.set()
    with pytest.raises(DeviceLost):
        CudaBackend(driver=Driver(hanging)).ends(3.0, 3.0)


@pytest.mark.parametrize("timeout", [0.2, None])
def test_a_kernel_that_runs_as_it_is_and_hangs_ends_the_wait(timeout: float | None, monkeypatch: pytest.MonkeyPatch) -> None:
    slow_clock(monkeypatch)
    monkeypatch.setattr(time_limit, "LOOK_EVERY", 60.0)
    backend = Streams()
    framework = Framework(backend, timeout=timeout)
    framework.launch()
    backend.synchronize()
    framework.session.frameworks.background.settle()
    backend.hung, backend.told = backend.made, False
    backend.launch(framework.module, "waits", (2, 1, 1), (96, 1, 1), [framework.out.to_bytes(8, "little"), bytes(4)])
    monkeypatch.setattr(backend, "poke", lambda address, data: None)
    monkeypatch.setattr(watch, "LONGEST", 0.2)
    monkeypatch.setattr(watch, "LEAVING", 0.1)
    report = framework.session.report()
    assert report.verdict == "incomplete"
    assert any(why.startswith("a kernel did not run to its end: stopped after 0.2 s") for why in report.incomplete), report.incomplete
