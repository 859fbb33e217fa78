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

NAMES = (
    *("cuInit", "cuEventRecord_ptsz", "cuStreamCreate", "cuLaunchKernelEx", "cuStreamEndCapture_v2", "cuStreamWaitValue32_v2_ptsz"),
    *("cuLaunchKernel", "cuLaunchKernel_ptsz", "cuMemAlloc_v2", "cuMemAllocAsync", "cuMemFree_v2"),
)
LAYOUTS = {"cuEventRecord": "PP", "cuStreamCreate": "OI", "cuStreamEndCapture": "PO"}
LAYOUTS |= {"cuLaunchKernel": "P7ISPP", "cuLaunchKernelEx": "CPPP"}


class Cupti:
    """The library."""

    def __init__(self, status: int = 0, names: tuple[str, ...] = NAMES) -> None:
        self.status, self.names, self.enabled = status, names, set[str]()
        self.callback: Callable[..., None] | None = None
        self.unsubscribed = False

    def cuptiSubscribe(self, subscriber: Any, callback: Any, user: Any) -> int:
        self.callback, self.user = callback, user
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
        self.callback(self.user, 1, self.names.index(name) + 1, ctypes.byref(data))


class Heard:
    """A listener."""

    def __init__(self) -> None:
        self.calls: list[DriverCall] = []
        self.lacking = 0
        self.missing: list[str] = []
        self.fails = False

    def called(self, call: DriverCall) -> None:
        if self.fails:
            raise ValueError("no row")
        self.calls.append(call)

    def missed(self, why: str) -> None:
        self.missing.append(why)

    def lacks_memory(self) -> None:
        self.lacking += 1


def followed(monkeypatch: pytest.MonkeyPatch, *libraries: Cupti | None) -> tuple[str, Heard, DriverCalls]:
    places = {str(number): library for number, library in enumerate(libraries)}
    monkeypatch.setattr(callbacks, "libraries", lambda: list(places))
    monkeypatch.setattr(callbacks, "ctypes", SimpleNamespace(**{**vars(ctypes), "CDLL": lambda path: places[path] or _fails()}))
    calls, heard = DriverCalls(), Heard()
    return calls.follow(heard, lambda name: name not in ("cuInit", "cuMemAlloc"), LAYOUTS), heard, calls


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


def test_an_allocation_that_fails_for_want_of_memory_is_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Others are not, nor is another failure."""
    cupti = Cupti()
    _, heard, _ = followed(monkeypatch, cupti)
    for name, status in (("cuMemAlloc_v2", 0), ("cuMemAlloc_v2", 1), ("cuMemFree_v2", 2)):
        cupti.called(name, 0, 64, status=status)
    assert (heard.lacking, heard.calls) == (0, [])
    for name in ("cuMemAlloc_v2", "cuMemAllocAsync"):
        cupti.called(name, 0, 64, 0, status=2)
    with own_calls():
        cupti.called("cuMemAlloc_v2", 0, 64, status=2)  # consan asks for less then
    assert (heard.lacking, heard.calls) == (2, [])


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


def _launch(cupti: Cupti, name: str, stream: int) -> None:
    configuration = (ctypes.c_uint64 * 8)(0, 0, 0, 0, stream)
    words = {"cuLaunchKernelEx": [ctypes.addressof(configuration), 9, 0, 0]}
    cupti.called(name, *words.get(name, [9, 0, 0, 0, 0, stream, 0, 0]))


LAUNCHES = ("cuLaunchKernel", "cuLaunchKernelEx")


@pytest.mark.parametrize("name", LAUNCHES)
def test_launches_that_are_passed_over(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """They do not come to Python, up to the next call that does."""
    cupti = Cupti()
    _, heard, calls = followed(monkeypatch, cupti)
    calls.pass_over(0x77, 0x55)
    for _ in range(3):
        _launch(cupti, name, 0x77)
    assert not heard.calls
    cupti.called("cuEventRecord_ptsz", 3, 0x77)
    _launch(cupti, name, 0x77)
    assert [call.name for call in heard.calls] == ["cuEventRecord", name]


@pytest.mark.parametrize(
    ("name", "stream", "passed"),
    [
        *((name, 0x78, (0x77, 0x55)) for name in LAUNCHES),  # another stream
        *((name, 0x77, (0x77, 0x66)) for name in LAUNCHES),  # another context
        ("cuLaunchKernel_ptsz", 0, (0, 0x55)),  # the default stream of a thread
        ("cuEventRecord_ptsz", 0x77, (0x77, 0x55)),  # no launch
    ],
)
def test_calls_that_are_not_passed_over(name: str, stream: int, passed: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    cupti = Cupti()
    _, heard, calls = followed(monkeypatch, cupti)
    calls.pass_over(*passed)
    _launch(cupti, name, stream)
    assert len(heard.calls) == 1
    calls.pass_over(0x77, 0x55)
    calls.tell_all()
    _launch(cupti, "cuLaunchKernel", 0x77)
    assert len(heard.calls) == 2


def test_several_listeners_hear_all(monkeypatch: pytest.MonkeyPatch) -> None:
    cupti = Cupti()
    _, heard, calls = followed(monkeypatch, cupti)
    other = Heard()
    calls.follow(other, lambda name: True, LAYOUTS)
    calls.pass_over(0x77, 0x55)
    _launch(cupti, "cuLaunchKernel", 0x77)
    assert len(heard.calls) == len(other.calls) == 1


def test_without_a_compiler_all_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(callbacks, "filter_of", lambda tell: None)
    cupti = Cupti()
    _, heard, calls = followed(monkeypatch, cupti)
    calls.pass_over(0x77, 0x55)
    _launch(cupti, "cuLaunchKernel", 0x77)
    assert len(heard.calls) == 1
