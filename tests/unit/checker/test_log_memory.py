"""The memory of logs between launches: it is zeroed, used again, and never more than a little is kept."""

from __future__ import annotations

import itertools

import pytest

from consan._errors import EnvironmentFailure
from consan.backends.virtual import VirtualBackend
from consan.checker.logs import memory
from consan.checker.logs.memory import LogMemory


class Backend(VirtualBackend):
    """A device whose memory is not zeroed, and that counts."""

    allocates_zeros = False

    def __init__(self) -> None:
        super().__init__()
        self.live: set[int] = set()
        self.allocated = 0

    def alloc_separate(self, nbytes: int) -> int:
        self.allocated += 1
        address = super().alloc_separate(nbytes)
        self.live.add(address)
        return address

    def free(self, address: int) -> None:
        self.live.remove(address)
        super().free(address)


def test_memory_is_used_again_and_zeroed() -> None:
    backend = Backend()
    logs = LogMemory(backend)
    for size in (1024, 512, 1024):
        address = logs.take("log", size)
        assert backend.read(address, size) == bytes(size)
        backend.fill(address, 7, size)
        logs.give("log", address)
    assert (backend.allocated, len(backend.live)) == (1, 1)
    logs.close()
    assert not backend.live


def test_what_is_too_small_is_freed_first_where_both_are_too_much() -> None:
    backend = Backend()
    logs = LogMemory(backend)
    for most, live in ((8192, 2), (5000, 1)):
        logs.release()
        logs.most_retained = most
        logs.give("log", logs.take("log", 1024))
        logs.give("log", logs.take("log", 4096))
        assert len(backend.live) == live
    assert backend.allocated == 4


def test_a_large_piece_is_not_taken_for_a_small_need() -> None:
    backend = Backend()
    logs = LogMemory(backend)
    large = logs.take("log", 8 << 20)
    logs.give("log", large)
    assert logs.take("log", 1 << 19) != large
    assert logs.take("log", 4 << 20) == large


def test_what_is_kept_goes_before_an_allocation_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    backend = Backend()
    logs = LogMemory(backend)
    logs.give("log", logs.take("log", 64))
    allocate = backend.alloc_separate

    def little(nbytes: int) -> int:
        if backend.live:
            raise EnvironmentFailure("out of memory")
        return allocate(nbytes)

    monkeypatch.setattr(backend, "alloc_separate", little)
    assert logs.take("log", 128)
    with pytest.raises(EnvironmentFailure):
        logs.take("log", 128)


def test_two_at_a_time_and_only_a_little_is_kept() -> None:
    backend = Backend()
    logs = LogMemory(backend)
    for _ in range(2):
        one, two = logs.take("log", 64), logs.take("log", 64)
        assert one != two
        assert logs.used == 128
        logs.give("log", one)
        logs.give("log", two)
    assert (backend.allocated, backend.live, logs.used) == (2, {one, two}, 0)
    one, two = logs.take("log", 64), logs.take("log", 32)
    logs.most_retained = 100
    logs.give("log", one)
    logs.give("log", two)
    assert backend.live == {two}, "with what was in use, the first would be more than the limit"


def test_the_smallest_piece_that_fits_is_taken() -> None:
    logs = LogMemory(Backend())
    given = {size: logs.take("log", size) for size in (4096, 64, 1024)}
    for address in given.values():
        logs.give("log", address)
    assert [logs.take("log", size) for size in (100, 100)] == [given[1024], given[4096]]


def test_small_pieces_of_many_launches_are_allocated_together() -> None:
    backend = Backend()
    logs = LogMemory(backend)
    taken = [logs.take("log", 1000) for _ in range(64)]
    assert len(set(taken)) == 64
    assert min(b - a for a, b in itertools.pairwise(sorted(taken))) >= 1000
    assert backend.allocated == 7, "as many as are in use: 1, 1, 2, 4, ..."
    for number, address in enumerate(taken):
        backend.fill(address, number, 1000)
    assert [backend.read(address, 1000) for address in taken] == [bytes([number]) * 1000 for number in range(64)]
    for address in taken[:63]:
        logs.give("log", address)
    logs.release()
    assert len(backend.live) == 1, "the last block has a piece that is in use"
    logs.give("log", taken[63])
    logs.close()
    assert not backend.live


def test_many_large_pieces_are_allocated_one_by_one() -> None:
    backend = Backend()
    logs = LogMemory(backend)
    taken = [logs.take("log", 1 << 20) for _ in range(4)]
    assert backend.live == set(taken)


def test_the_device_is_seldom_asked_for_its_free_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, answers, backend = [100.0], iter((1 << 30, 1 << 20)), Backend()
    monkeypatch.setattr(memory.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(backend, "free_bytes", lambda: next(answers))
    logs = LogMemory(backend)
    assert [logs.free_bytes() for _ in range(3)] == [1 << 30] * 3
    clock[0] += 2
    assert logs.free_bytes() == 1 << 20


def test_memory_that_is_zeroed_anyway_is_not_kept() -> None:
    backend = Backend()
    backend.allocates_zeros = True  # type: ignore[misc]
    logs = LogMemory(backend)
    logs.give("log", logs.take("log", 64))
    assert not backend.live


def test_a_result_is_made_once_for_the_same_data(monkeypatch: pytest.MonkeyPatch) -> None:
    logs, made = LogMemory(Backend()), []

    def result(key: str, data: bytes) -> int:
        return logs.groups.of(key, data, lambda: made.append(data) or len(made))

    assert [result("a", b"1"), result("a", b"1"), result("b", b"1"), result("a", b"2"), result("a", b"1")] == [1, 1, 2, 3, 4]
    logs.groups.most = 1
    assert [result("c", b"1"), result("a", b"1")] == [5, 6]
    logs.groups.most_data = 2
    assert [result("c", b"long"), result("c", b"long")] == [7, 8]
