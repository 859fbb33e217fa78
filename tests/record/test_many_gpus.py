"""Launches of a program that sees several GPUs and uses one repeat as those of a program that sees one, until it uses another one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from armed_support import bench_launch
from planted import plant
from test_early_launches import FIRST, Early

from consan.backends.contexts import PEERS, CudaContexts
from consan.session import frameworks, repeated_launch
from consan.session.comparing import followed_streams, peers

WAYS = ("triton adds", "cupy waits")


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> bench_launch.NullLibrary:
    return bench_launch.NullLibrary(str(tmp_path_factory.mktemp("driver")))


@pytest.fixture
def many(library: bench_launch.NullLibrary, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], Early]]:
    monkeypatch.setattr(CudaContexts, "alone", False)
    made: list[Early] = []

    def begin(given: str) -> Early:
        made.append(Early(given, library, monkeypatch))
        made[-1].program.learn()
        for _ in range(FIRST):
            made[-1].call("cuEventDestroy", 0x900)
        made[-1].program.launch(3)
        return made[-1]

    yield begin
    for each in made:
        each.program.close()


@pytest.mark.parametrize("given", WAYS)
def test_they_repeat(given: str, many: Callable[[str], Early]) -> None:
    one = many(given)
    assert one.program.launch(10) == 10
    assert one.program.counts()[0] == "clean"


@pytest.mark.parametrize("given", WAYS)
def test_where_parameters_show_that_they_reach_none(given: str, many: Callable[[str], Early]) -> None:
    one = many(given)
    one.call(PEERS, 0x66, 0)
    one.program.launch(2)
    assert one.program.repeats(10) == 10


def moves(one: Early, monkeypatch: pytest.MonkeyPatch) -> None:
    """The memory of its parameters is that of another GPU from now on."""
    monkeypatch.setattr(CudaContexts, "holder", lambda *_: "GPU 1")
    one.program.session.frameworks.peers.memory.changes += 1


@pytest.mark.parametrize("given", WAYS)
def test_not_once_memory_of_another_may_be_reached(given: str, many: Callable[[str], Early], monkeypatch: pytest.MonkeyPatch) -> None:
    one = many(given)
    one.call(PEERS, 0x66, 0)
    moves(one, monkeypatch)
    assert one.program.repeats(10) == 0


def uses_another(one: Early) -> None:
    own, one.cupti.context = one.cupti.context, 0x66
    one.call("cuMemsetD8Async", 0x5000, 0, 64, 0)
    one.cupti.context = own


@pytest.mark.parametrize("given", WAYS)
def test_not_once_another_context_was_used(given: str, many: Callable[[str], Early]) -> None:
    one = many(given)
    uses_another(one)
    assert one.program.repeats(10) == 0


@pytest.mark.parametrize("given", WAYS)
def test_not_once_a_launch_was_given_its_memory(given: str, many: Callable[[str], Early], monkeypatch: pytest.MonkeyPatch) -> None:
    one = many(given)
    moves(one, monkeypatch)
    made, word = one.program.session.frameworks, (1 << 40).to_bytes(8, "little")
    assert made.peers.reached(one.program.prepared, one.program.kernel, lambda: (word,))
    made.streams.second()
    assert one.program.repeats(10) == 0


def says_so(one: Early) -> None:
    kernels = one.program.session.recording.kernels
    kernels.lacks_comparison(one.program.prepared, one.program.kernel, "it may reach memory of another GPU")


@pytest.mark.parametrize("given", ["triton adds"])
def test_again_once_the_report_says_so(given: str, many: Callable[[str], Early], monkeypatch: pytest.MonkeyPatch) -> None:
    """A launch adds nothing to a report that is incomplete because of its kernel."""
    one = many(given)
    one.call(PEERS, 0x66, 0)
    moves(one, monkeypatch)
    says_so(one)
    one.program.launch(2)
    assert one.program.repeats(10) == 10
    assert one.program.counts()[0] == "incomplete"


@pytest.mark.parametrize("given", ["triton adds"])
def test_not_of_two_contexts_though_the_report_says_so(given: str, many: Callable[[str], Early]) -> None:
    one = many(given)
    uses_another(one)
    says_so(one)
    assert one.program.repeats(10) == 0


@pytest.mark.parametrize("given", WAYS)
def test_not_once_calls_are_not_followed(given: str, many: Callable[[str], Early]) -> None:
    one = many(given)
    one.program.session.frameworks.streams.stops("something was not understood")
    assert one.program.repeats(10) == 0


def test_not_where_calls_are_not_seen(library: bench_launch.NullLibrary, monkeypatch: pytest.MonkeyPatch) -> None:
    from armed_support import opened

    monkeypatch.setattr(CudaContexts, "alone", False)
    program = opened("triton adds", library, monkeypatch)
    assert program.repeats(10) == 0


FAULTS: dict[str, tuple[Any, str, str, Callable[..., None], str]] = {
    "peers": (peers, " or self.memory.peers", "", test_not_once_memory_of_another_may_be_reached, "triton adds"),
    "contexts, in C": (
        followed_streams,
        "            self._used.add(number)\n            look_where_launches_point()\n",
        "            self._used.add(number)\n",
        test_not_once_another_context_was_used,
        "cupy waits",
    ),
    "contexts": (
        peers,
        " or self.contexts.several or self.streams.several_devices",
        "",
        test_not_once_another_context_was_used,
        "triton adds",
    ),
    "calls that are not followed": (peers, "self.streams.needs_none or ", "", test_not_once_calls_are_not_followed, "triton adds"),
    "calls that are not followed, in C": (
        followed_streams,
        "            self.seen.stops(why)\n            look_where_launches_point()\n",
        "            self.seen.stops(why)\n",
        test_not_once_calls_are_not_followed,
        "cupy waits",
    ),
    "memory": (peers, "self._met = True", "pass", test_not_once_a_launch_was_given_its_memory, "triton adds"),
    "each launch": (
        repeated_launch,
        "looks_where and not known and frameworks.peers",
        "False and frameworks.peers",
        test_not_once_memory_of_another_may_be_reached,
        "triton adds",
    ),
    "what the report says": (
        frameworks,
        "if self.judge.recording.kernels.is_beyond(prepared, entry):",
        "if False:",
        test_again_once_the_report_says_so,
        "triton adds",
    ),
    "several GPUs": (
        frameworks,
        "return self.peers.of_process and self.streams.several_devices",
        "return False",
        test_not_of_two_contexts_though_the_report_says_so,
        "triton adds",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault(fault: str, many: Callable[[str], Early], monkeypatch: pytest.MonkeyPatch) -> None:
    module, old, new, test, given = FAULTS[fault]
    plant(monkeypatch, module, old, new)
    with pytest.raises(AssertionError):
        test(given, many, *[monkeypatch] * (test.__code__.co_argcount - 2))
