"""The histories of clusters are read once where they are replayed twice: for shared memory and for global memory."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

import consan
from consan.checker.compiled.replay import History
from consan.checker.judging import recorder
from consan.checker.logs.launch import Launch
from consan.checker.logs.shares import ReadOnce

WORDS = 64


class Reader:
    """Makes histories, and notes which."""

    def __init__(self) -> None:
        self.given: list[int] = []

    def histories(self, clusters: Sequence[int]) -> list[History]:
        self.given += clusters
        return [History(np.full((1, WORDS // 32, 32), each, np.uint32), 32, 0, 0) for each in clusters]


@pytest.mark.parametrize(
    ("most", "read"), [(1 << 20, [1, 0, 2]), (4 * WORDS, [1, 0, 0, 2]), (0, [1, 0, 0, 2, 1])], ids=["room", "room for one", "no room"]
)
def test_clusters_are_read_once_while_there_is_room(most: int, read: list[int]) -> None:
    reader = Reader()
    once = ReadOnce(reader.histories, most)
    found = [int(each.log[0, 0, 0]) for clusters in ([1, 0], [0, 2], [1]) for each in once.read(clusters)]
    assert found == [1, 0, 0, 2, 1]
    assert reader.given == read


SOURCE = """
extern "C" __global__ void last_first(int* out) {
    __shared__ int values[64];
    values[threadIdx.x] = threadIdx.x & 3;
    __syncthreads();
    atomicAdd(out + values[63 - threadIdx.x], 1);
    out[4 + blockIdx.x] = values[0];
}
"""


def test_a_launch_is_read_once_for_both_memories(monkeypatch: pytest.MonkeyPatch) -> None:
    read, histories = list[int](), Launch.histories

    def counted(launch: Launch, clusters: Sequence[int]) -> list[History]:
        read.extend(clusters)
        return histories(launch, clusters)

    def times(room: int) -> int:
        monkeypatch.setattr(recorder, "MOST_READ_ONCE", room)
        kernel = consan.Kernel(SOURCE.replace("last_first", f"keeps_{room}"), entry=f"keeps_{room}", arch="sm_80")
        read.clear()
        assert consan.launch(kernel, 4, 64, [np.zeros(8, np.int32)], device="cpu", engine="record").verdict == "clean"
        return read.count(0)

    monkeypatch.setattr(Launch, "histories", counted)
    assert times(1 << 20) == times(0) - 1


def test_more_short_histories_are_taken_at_a_time() -> None:
    def made(clusters: Sequence[int], lines: int) -> list[History]:
        return [History(np.zeros((1, lines, 32), np.uint32), 32, 0, 0) for _ in clusters]

    once, taken = ReadOnce(lambda clusters: made(clusters, 1 << 14), 0), []  # two MiB each
    for at, some in once.in_turn(range(400)):
        taken.append((at, len(once.read(some))))
    assert taken == [(0, 16), (16, 128), (144, 128), (272, 128)]
    once.histories = lambda clusters: made(clusters, 1 << 18)
    once.read([0])
    assert once.count == 16
