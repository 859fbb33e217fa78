"""Calls of the driver by the callbacks of CUPTI, which is made up: parameters, names, consan's own calls, and where it does not work."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from consan.backends import callbacks
from consan.backends.callbacks import NO_LIBRARY, TAKEN, DriverCall, DriverCalls
from consan.backends.driver import own_calls

NAMES = ("cuInit", "cuEventRecord_ptsz", "cuStreamCreate", "cuLaunchKernelEx", "cuStreamEndCapture_v2", "cuStreamWaitValue32_v2_ptsz")
LAYOUTS = {"cuEventRecord": "PP", "cuStreamCreate": "OI", "cuLaunchKernelEx": "CPPP", "cuStreamEndCapture": "PO"}


class Cupti:
    """The library."""

    def __init__(self, status: int = 0, names: tuple[str, ...] = NAMES) -> None:
        self.status, self.names, self.enabled = status, names, set[str]()
        self.callback: Callable[..., None] | None = None
        self.unsubscribed = False

    def cuptiSubscribe(self, subscriber: Any, callback: Any, _: Any) -> int:
        self.callback = callback
        return self.status

    def cuptiGetCallbackName(self, domain: int, number: int, found: Any) -> int:
        if number > len(self.names):
            return 1
        found._obj.value = self.names[number - 1].encode()
        return 0

    def cuptiEnableCallback(self, on: int, subscriber: Any, domain: int, number: int) -> int:
        self.enabled.add(self.names[number - 1])
        return 0

    def cuptiUnsubscribe(self, subscriber: Any) -> int:
        self.unsubscribed = True
        return 0

    def called(self, name: str, *words: int, site: int = 1, status: int = 0) -> None:
        """The driver has been called."""
        params, result = (ctypes.c_uint64 * len(words))(*words), ctypes.c_int(status)
        data = callbacks.CallbackData(site, b"", ctypes.addressof(params), ctypes.pointer(result), b"", 0x55)
        assert self.callback is not None
        self.callback(None, 1, self.names.index(name) + 1, ctypes.byref(data))


class Heard:
    """A listener."""

    def __init__(self) -> None:
        self.calls: list[DriverCall] = []
        self.missing: list[str] = []
        self.fails = False

    def called(self, call: DriverCall) -> None:
        if self.fails:
            raise ValueError("no row")
        self.calls.append(call)

    def missed(self, why: str) -> None:
        self.missing.append(why)


def followed(monkeypatch: pytest.MonkeyPatch, *libraries: Cupti | None) -> tuple[str, Heard, DriverCalls]:
    places = {str(number): library for number, library in enumerate(libraries)}
    monkeypatch.setattr(callbacks, "libraries", lambda: list(places))
    monkeypatch.setattr(callbacks, "ctypes", SimpleNamespace(**{**vars(ctypes), "CDLL": lambda path: places[path] or _fails()}))
    calls, heard = DriverCalls(), Heard()
    return calls.follow(heard, lambda name: name != "cuInit", LAYOUTS), heard, calls


def _fails() -> None:
    raise OSError("no library")


def test_parameters_and_names(monkeypatch: pytest.MonkeyPatch) -> None:
    cupti = Cupti()
    why, heard, _ = followed(monkeypatch, None, cupti)
    assert not why
    assert cupti.enabled == set(NAMES) - {"cuInit"}
    handle, config = ctypes.c_uint64(0x77), (ctypes.c_uint64 * 8)(*range(8))
    cupti.called("cuEventRecord_ptsz", 3, 4)
    cupti.called("cuStreamCreate", ctypes.addressof(handle), 1)
    cupti.called("cuLaunchKernelEx", ctypes.addressof(config), 9, 0, 0)
    cupti.called("cuStreamEndCapture_v2", 5, 0)
    cupti.called("cuStreamWaitValue32_v2_ptsz", 5)
    assert heard.calls == [
        DriverCall("cuEventRecord", (3, 4), per_thread=True, context=0x55),
        DriverCall("cuStreamCreate", (0x77, 1), context=0x55),
        DriverCall("cuLaunchKernelEx", (4, 9, 0, 0), context=0x55),
        DriverCall("cuStreamEndCapture", (5, 0), context=0x55),
        DriverCall("cuStreamWaitValue32", (), per_thread=True, context=0x55),
    ]


def test_calls_that_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """A call that has not been made yet, one that failed, and consan's own."""
    cupti = Cupti()
    _, heard, _ = followed(monkeypatch, cupti)
    cupti.called("cuEventRecord_ptsz", 3, 4, site=0)
    cupti.called("cuEventRecord_ptsz", 3, 4, status=600)
    with own_calls():
        cupti.called("cuEventRecord_ptsz", 3, 4)
    assert not heard.calls


def test_a_listener_that_fails_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    cupti = Cupti()
    _, heard, _ = followed(monkeypatch, cupti)
    heard.fails = True
    cupti.called("cuEventRecord_ptsz", 3, 4)
    assert heard.missing == ["ValueError: no row"]


def test_where_it_does_not_work(monkeypatch: pytest.MonkeyPatch) -> None:
    assert followed(monkeypatch, None)[0] == NO_LIBRARY
    assert followed(monkeypatch, Cupti(39), Cupti())[0] == TAKEN
    assert followed(monkeypatch, Cupti(2), None)[0] == "CUPTI does not work here (error 2)"
    nameless = Cupti(names=("cuInit",))
    why, heard, calls = followed(monkeypatch, nameless)
    assert (why, nameless.unsubscribed) == ("CUPTI does not work here (error 0)", True)
    assert calls.follow(heard, lambda name: True, {}) == why  # nobody asks again
