"""A program whose calls of the driver are reported by CUPTI, which is made up. C notes them, or Python gets each at once."""

from __future__ import annotations

import ctypes
from types import SimpleNamespace
from typing import Any

import pytest
from cupti_support import Cupti
from framework_support import WORDS, Framework, gap

from consan.backends import callbacks
from consan.backends.callbacks import DriverCalls
from consan.backends.driver import MADE
from consan.session.comparing import followed_streams
from consan.session.comparing.driver_calls import LAYOUTS

EVENT = 0x900


class Program:
    """A program whose calls CUPTI reports. `note`: C notes them from the first on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, note: bool) -> None:
        attribute = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int, ctypes.c_uint64)(lambda *_: 0)
        self.cupti = Cupti(names=(*LAYOUTS, "cuGraphAddNode", "cuGraphAddNode_v2"))
        monkeypatch.setattr(callbacks, "libraries", lambda: ["cupti"])
        monkeypatch.setattr(callbacks, "attribute_function", lambda: attribute)
        monkeypatch.setattr(callbacks, "ctypes", SimpleNamespace(**{**vars(ctypes), "CDLL": lambda _: self.cupti}))
        monkeypatch.setattr(followed_streams, "FIRST_CALLS", 0 if note else 1 << 30)
        monkeypatch.setattr(DriverCalls, "is_registered", lambda *_: True)
        monkeypatch.setattr(DriverCalls, "blocks", lambda *_: False)
        monkeypatch.setattr(DriverCalls, "is_captured", lambda *_: False)
        monkeypatch.setattr(DriverCalls, "kernel", lambda *_: "fast")
        self.calls = DriverCalls()
        self.framework = Framework(calls=self.calls)
        self._launches_of_its_own()
        self.call("cuEventDestroy", EVENT + 1)
        assert self.calls.notes is note

    def _launches_of_its_own(self) -> None:
        """They are calls of the driver, too."""
        backend = self.framework.backend
        known = backend.launch

        def launch(*given: Any, stream: int = 0, **options: Any) -> None:
            with MADE.inside():
                self.foreign(stream)
            known(*given, stream=stream, **options)

        backend.launch = launch  # type: ignore[method-assign, assignment]

    def call(self, name: str, *words: int) -> None:
        self.cupti.called(name, *words)

    def stream(self, number: int = 0x770) -> int:
        """The program makes a stream, which is not a blocking one."""
        handle = ctypes.c_uint64(number)
        self.call("cuStreamCreate", ctypes.addressof(handle), 1)
        return number

    def memset(self, stream: int = 0) -> None:
        self.call("cuMemsetD8Async", self.framework.out, 0, 4 * WORDS, stream)

    def foreign(self, stream: int = 0, kernel: int = 9) -> None:
        """A kernel of whose accesses nothing is known."""
        self.call("cuLaunchKernel", kernel, 0, 0, 0, 0, stream, 0, 0)

    def launch(self, stream: int, entry: str = "fills", number: int = 0, out: int = 0) -> None:
        self.framework.launch(entry, number, stream=stream, out=out)
        self.framework.settle()  # what it did is known when the next one is made, in either order
        self.framework.backend.advance(stream)

    def wait(self, event: int, stream: int) -> None:
        self.call("cuStreamWaitEvent", stream, event, 0)

    def outcome(self) -> tuple[object, ...]:
        """All that the report says of the order of streams."""
        report = self.framework.report()
        findings = sorted((each.kind, each.kernel, each.message, each.count) for each in report.findings)
        return report.verdict, findings, gap(report), report.incomplete
