"""Calls of the driver by the callbacks of CUPTI, which is made up: parameters, names, consan's own calls, and where it does not work."""

from __future__ import annotations

import ctypes
import threading
from types import SimpleNamespace

import pytest
from cupti_support import Cupti as Library

from consan.backends import call_filter, callbacks
from consan.backends.call_filter import MOST_NOTED
from consan.backends.callbacks import NO_LIBRARY, TAKEN, DriverCall, DriverCalls
from consan.backends.driver import LaunchAttribute, LaunchConfig, own_calls
from consan.session.comparing import driver_calls

NAMES = (
    *(
        "cuInit",
        "cuGraphLaunch",
        "cuEventRecord_ptsz",
        "cuStreamCreate",
        "cuLaunchKernelEx",
        "cuStreamEndCapture_v2",
        "cuStreamWaitValue32_v2_ptsz",
    ),
    *("cuLaunchKernel", "cuLaunchKernel_ptsz", "cuMemAlloc_v2", "cuMemAllocAsync", "cuMemFree_v2", "cuEventRecord"),
    *("cuMemsetD8Async", "cuMemcpyAsync", "cuEventQuery", "cuCtxSynchronize"),
)
LAYOUTS = {"cuEventRecord": "PS", "cuStreamCreate": "OI", "cuStreamEndCapture": "PO", "cuMemFree": "P", "cuEventQuery": "P"}
LAYOUTS |= {"cuMemsetD8Async": "PBNS", "cuMemcpyAsync": "PPNS"}
LAYOUTS |= {"cuLaunchKernel": "P7ISPP", "cuLaunchKernelEx": "CPPP", "cuGraphLaunch": "PS"}


class Cupti(Library):
    """With the functions of these tests."""

    def __init__(self, status: int = 0, names: tuple[str, ...] = NAMES) -> None:
        super().__init__(status, names)


class Heard:
    """A listener."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
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
    handle, config = ctypes.c_uint64(0x77), (ctypes.c_uint64 * 8)(*range(5), 0, 0, 0)  # its attributes: none
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


@pytest.mark.parametrize("notes", [False, True])
@pytest.mark.parametrize(("attribute", "records"), [(7, True), (12, True), (6, False), (4, False)])
def test_launches_that_record_an_event_are_reported(attribute: int, records: bool, notes: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever else C keeps from Python."""
    cupti = Cupti()
    _, heard, calls = followed(monkeypatch, cupti)
    calls.note(0x55) if notes else calls.pass_over(0, 0x55)
    given = (LaunchAttribute * 2)()
    given[0].id, given[1].id = 2, attribute
    config = LaunchConfig(attributes=given, count=2)
    cupti.called("cuLaunchKernelEx", ctypes.addressof(config), 9, 0, 0)
    assert [call.records for call in heard.calls] == [True] * records


def test_launches_of_a_graph_that_are_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    cupti = Cupti()
    _, heard, calls = followed(monkeypatch, cupti)
    calls.pass_over(0x77, 0x55, 0x1000)
    for _ in range(3):
        cupti.called("cuGraphLaunch", 0x1000, 0x77)
    assert not heard.calls
    for executable, stream in ((0x1010, 0x77), (0x1000, 0x77), (0x1000, 0x78)):  # the first one makes an end of it
        cupti.called("cuGraphLaunch", executable, stream)
    assert [call.values for call in heard.calls] == [(0x1010, 0x77), (0x1000, 0x77), (0x1000, 0x78)]
    calls.pass_over(0x77, 0x55, 0x1000)
    _launch(cupti, "cuLaunchKernel", 0x77)
    calls.pass_over(0x77, 0x55)
    cupti.called("cuGraphLaunch", 0x1000, 0x77)
    assert len(heard.calls) == 5


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
    monkeypatch.setattr(callbacks, "filter_of", lambda *_: None)
    cupti = Cupti()
    _, heard, calls = followed(monkeypatch, cupti)
    calls.pass_over(0x77, 0x55)
    _launch(cupti, "cuLaunchKernel", 0x77)
    assert len(heard.calls) == 1


MEMSET = ("cuMemsetD8Async", 0x1000, 0, 64)


def _names(heard: Heard) -> list[str]:
    return [call.name for call in heard.calls]


def _noting(monkeypatch: pytest.MonkeyPatch, pageable: int = 0) -> tuple[Cupti, Heard, DriverCalls]:
    """Calls of context 0x55 are noted. `pageable`: an address of such memory."""
    attribute = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int, ctypes.c_uint64)(lambda _, __, at: int(at == pageable))
    monkeypatch.setattr(callbacks, "attribute_function", lambda: attribute)
    cupti = Cupti()
    _, heard, calls = followed(monkeypatch, cupti)
    calls.note(0x55)
    assert calls.notes
    return cupti, heard, calls


def test_noted_calls_are_told_in_their_order_before_the_next_one(monkeypatch: pytest.MonkeyPatch) -> None:
    cupti, heard, _ = _noting(monkeypatch)
    for _ in range(3):
        _launch(cupti, "cuLaunchKernel", 0)
        _launch(cupti, "cuLaunchKernelEx", 1)
    cupti.called(*MEMSET, 0)
    cupti.called("cuEventRecord", 3, 0)
    _launch(cupti, "cuLaunchKernel", 0)
    cupti.called("cuEventRecord", 4, 0, status=1)
    with own_calls():
        cupti.called(*MEMSET, 0)
    assert not heard.calls
    cupti.called("cuEventRecord", 5, 0x77)
    assert _names(heard) == ["cuLaunchKernel", "cuMemsetD8Async", "cuEventRecord", "cuLaunchKernel", "cuEventRecord"]
    assert [call.noted for call in heard.calls] == [True] * 4 + [False]
    assert heard.calls[0].values == (9, *(0,) * 10)
    assert heard.calls[1].values == (0x1000, 0, 64, 0)
    assert {call.context for call in heard.calls} == {0x55}


def test_what_the_host_has_waited_for_is_forgotten_but_for_events(monkeypatch: pytest.MonkeyPatch) -> None:
    cupti, heard, calls = _noting(monkeypatch)
    for _ in range(2000):
        cupti.called(*MEMSET, 0)
        cupti.called("cuMemFree_v2", 0x1000)
        cupti.called("cuMemFree_v2", 0)
    assert not heard.calls
    calls.read_noted()
    assert _names(heard) == ["cuMemFree"]
    heard.calls.clear()
    cupti.called("cuEventRecord", 3, 0)
    cupti.called("cuCtxSynchronize")
    cupti.called("cuEventQuery", 3)
    calls.read_noted()
    assert _names(heard) == ["cuEventRecord", "cuCtxSynchronize", "cuEventQuery"]


def test_a_copy_of_pageable_memory_is_one_that_the_host_waits_for(monkeypatch: pytest.MonkeyPatch) -> None:
    cupti, heard, calls = _noting(monkeypatch, pageable=0x2000)
    cupti.called("cuMemcpyAsync", 0x1000, 0x3000, 64, 0)
    cupti.called("cuMemcpyAsync", 0x1000, 0x2000, 64, 0)
    cupti.called("cuMemcpyAsync", 0x1000, 0x3000, 64, 0)
    calls.read_noted()
    assert [call.waited for call in heard.calls] == [True, False]


def test_many_operations_end_in_one_launch_that_stands_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    cupti, heard, calls = _noting(monkeypatch)
    for _ in range(100):
        cupti.called(*MEMSET, 0)
    calls.read_noted()
    assert _names(heard) == ["cuLaunchKernel", *["cuMemsetD8Async"] * 35]


def test_where_there_is_no_room_all_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    cupti, heard, calls = _noting(monkeypatch)
    for event in range(MOST_NOTED + 500):
        cupti.called("cuEventRecord", event, 0)
    assert len(heard.calls) == MOST_NOTED + 1
    calls.note(None)
    assert [call.values[0] for call in heard.calls] == list(range(MOST_NOTED + 500))
    cupti.called("cuEventRecord", 0, 0)
    assert len(heard.calls) == MOST_NOTED + 501


def test_threads_lose_no_call_and_keep_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some calls are noted, one of ten is heard at once, and another thread reads meanwhile."""
    cupti, heard, calls = _noting(monkeypatch)
    streams = [0x100, 0x200, 0x300]
    calls.note(0x55, streams)

    def make(stream: int) -> None:
        for event in range(2000):
            cupti.called("cuEventRecord" if event % 10 else "cuEventRecord_ptsz", event, stream)

    threads = [threading.Thread(target=make, args=(stream,)) for stream in streams]
    for each in threads:
        each.start()
    while any(each.is_alive() for each in threads):
        calls.read_noted()
    calls.read_noted()
    for stream in streams:
        assert [call.values[0] for call in heard.calls if call.values[1] == stream] == list(range(2000))
    assert sum(not call.noted for call in heard.calls) == 3 * 200


@pytest.mark.parametrize(
    ("name", "words"), [("cuMemsetD8Async", (1, 0, 1, 2)), ("cuStreamWaitValue32_v2_ptsz", (5,)), ("cuEventRecord", (3, 2))]
)
def test_calls_that_are_not_noted(name: str, words: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """Those for another stream, and those whose meaning is not known to C."""
    cupti, heard, calls = _noting(monkeypatch)
    cupti.called(name, *words)
    assert len(heard.calls) == 1
    calls.note(0x66)  # another context
    cupti.called(*MEMSET, 0)
    assert len(heard.calls) == 2


def test_several_listeners_need_all_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    cupti = Cupti()
    _, heard, calls = followed(monkeypatch, cupti)
    calls.note(0x55)
    cupti.called(*MEMSET, 0)
    other = Heard()
    calls.follow(other, lambda name: True, LAYOUTS)
    assert (len(heard.calls), len(other.calls), calls.notes) == (1, 0, False)
    calls.note(0x55)
    assert not calls.notes
    cupti.called(*MEMSET, 0)
    assert (len(heard.calls), len(other.calls)) == (2, 1)


def test_the_kinds_of_calls_fit_their_layouts() -> None:
    """A call that is noted has few parameters, and a stream among them is marked."""
    for name, kind in call_filter.KINDS.items():
        form = callbacks.CallForm.of(name, False, driver_calls.LAYOUTS[name])
        assert kind is call_filter.CallKind.LAUNCH or form.nbytes <= 32
        assert (form.stream is not None) == (name in IN_STREAM or name.endswith("Async")), name


IN_STREAM = {"cuLaunchKernel", "cuLaunchKernelEx", "cuLaunchCooperativeKernel", "cuGraphLaunch"}
IN_STREAM |= {"cuStreamSynchronize", "cuStreamQuery", "cuEventRecord", "cuEventRecordWithFlags", "cuStreamWaitEvent"}
