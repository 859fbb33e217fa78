"""The checker's records are those of the host; a log that fits no template is said to be broken; and bad input is."""

from __future__ import annotations

import numpy as np
import planted
import pytest

from consan._errors import EnvironmentFailure, UsageError
from consan.checker.compiled import build, layouts
from consan.checker.compiled.layouts import Status
from consan.checker.compiled.replay import History, replay
from consan.checker.logs.grouping import clusters_of
from consan.instrument import effects
from consan.instrument.effects import WordValue
from consan.instrument.findings import Kind, Reason
from consan.instrument.layouts.records import Record, dtype, offsets
from consan.instrument.record.text.templates import END, STOP, Template, tables
from consan.session.planning.options import SessionOptions
from consan.session.session import Session

READ = effects.Read(site=1, at=WordValue(0, 1), bytes=4, element=4)
WRITE = effects.Write(site=2, at=WordValue(0, 1), bytes=4, element=4)
COPY = effects.CopyIssue(site=4, at=WordValue(0, 1), bytes=4, source=2, reads=WordValue(4))
INIT = effects.MbarrierInit(site=5, at=WordValue(0, 1), count=WordValue(2))
ARRIVE = effects.MbarrierArrive(site=6, at=WordValue(0, 1), count=WordValue(1))
BARRIER = effects.CtaBarrier(site=3, waits=True)
FENCE = effects.ProxyFence(memories=1)
STORE = effects.BulkStore(site=7, at=WordValue(0, 1), size=WordValue(16), target=2)
OTHER_WRITE = effects.Write(site=8, at=WordValue(0, 1), bytes=4, element=4)
EXPECT = effects.MbarrierArrive(site=9, at=WordValue(0, 1), count=WordValue(2), expected=WordValue(16))
LOAD = effects.BulkLoad(site=10, at=WordValue(0, 1), mbarrier_at=WordValue(0, 4), size=WordValue(16), source=2)
WAIT = effects.MbarrierWait(site=11, at=WordValue(0, 1), parity=WordValue(0))
TEMPLATES = [(1, 2, WRITE), (2, 2, READ), (3, 1, BARRIER), (4, 4, COPY), (5, 2, INIT), (6, 2, ARRIVE), (7, 1, FENCE), (8, 4, STORE)]
TEMPLATES += [(9, 2, OTHER_WRITE), (10, 2, EXPECT), (11, 5, LOAD), (12, 2, WAIT)]
TABLES = tables([Template(number, words, [event]) for number, words, event in TEMPLATES])


@pytest.mark.parametrize("record", layouts.RECORDS.values(), ids=lambda record: record.name)
def test_numpy_and_cpp_agree_on_a_record(record: Record) -> None:
    """C++ asserts these offsets and the size; it adds no bytes at the end."""
    fields = dtype(record).fields
    assert fields is not None
    assert {name: place[1] for name, place in fields.items()} | {"": dtype(record).itemsize} == offsets(record)
    assert all(field.meaning for field in record.fields)


def test_a_field_in_another_place_does_not_compile() -> None:
    sources = build.sources()
    moved = sources | {"layouts.hpp": sources["layouts.hpp"].replace("i32 first; i32 events;", "i32 events; i32 first;")}
    with pytest.raises(EnvironmentFailure, match="could not compile"):
        planted.compiled(moved, "-fsyntax-only", "-std=c++17")


def test_numbers_beyond_31_bits_are_negative_in_an_event() -> None:
    assert f"IGNORED = {-(1 << 31)}" in layouts.header()


def _history(*lanes: list[int], lines: int = 16) -> History:
    log = np.zeros((-(-len(lanes) // 32), lines, 32), np.uint32)
    for lane, words in enumerate(lanes):
        log[lane // 32, : len(words), lane % 32] = words
    return History(log, len(lanes), 1024, 64)


def _replay(*lanes: list[int], descending: bool = False, lines: int = 16) -> tuple[Status, list[tuple[int, int, int]]]:
    done = replay(TABLES, _history(*lanes, lines=lines), descending=descending)
    return done.status, [(int(one["kind"]), int(one["site"]), int(one["other_site"])) for one in done.records]


def test_a_race_of_two_lanes() -> None:
    assert _replay([1, 1024, END], [2, 1024, END]) == (Status.OK, [(Kind.DATA_RACE, 1, 2)])


def test_the_address_decides() -> None:
    assert _replay([1, 1024, END], [1, 1028, END])[1] == []


def test_a_barrier_orders() -> None:
    assert _replay([1, 1024, 3, END], [3, 2, 1024, END]) == (Status.OK, [])


def test_a_copy_and_what_came_before_it() -> None:
    """Lanes of a warp go as the text does, in both orders: so the read is always first."""
    found = _replay([2, 1024, END], [4, 1024, 0, 0, END])[1]
    assert (Kind.DATA_RACE, 4, 1) in found
    assert (Kind.LIFETIME, 4, 0) in found


def test_an_mbarrier_whose_init_is_not_published() -> None:
    for descending in (False, True):
        found = _replay([5, 1024, END], *[[END]] * 31, [6, 1024, END], descending=descending)
        assert found == (Status.OK, [(Kind.BARRIER_MISUSE, 6, 5)])
    assert _replay([5, 1024, 3, END], [3, 6, 1024, END]) == (Status.OK, [])


def test_counts_that_disagree_name_the_thread_that_arrived_first() -> None:
    first, second = (
        effects.CtaBarrier(site=site, id=WordValue(1), threads=WordValue(count), waits=True) for site, count in ((13, 64), (14, 96))
    )
    both = tables([Template(number, 1, [event]) for number, event in ((1, first), (2, second))])
    for descending, threads in ((False, (32, 0)), (True, (0, 32))):
        done = replay(both, _history(*[[1, END]] * 32, *[[2, END]] * 32), descending=descending)
        one = done.records[0]
        assert (int(one["kind"]), int(one["reason"])) == (Kind.BARRIER_MISUSE, Reason.COUNTS_DISAGREE)
        assert (int(one["thread"]), int(one["other_thread"])) == threads


def test_an_acquire_wait_orders_though_a_relaxed_one_has_seen_the_phase() -> None:
    relaxed = effects.MbarrierWait(site=12, at=WordValue(0, 1), parity=WordValue(0), relaxed=True)
    both = tables([Template(number, words, [event]) for number, words, event in (*TEMPLATES, (13, 2, relaxed))])
    writer = [5, 1024, 3, 1, 1040, 6, 1024, END]
    for waits, races in (([13, 1024], 1), ([13, 1024, 12, 1024], 0)):
        done = replay(both, _history(writer, [3, 6, 1024, *waits, 2, 1040, END]), descending=False)
        assert (done.status, [int(one["kind"]) for one in done.records]) == (Status.OK, [Kind.DATA_RACE] * races)


def _proxies(*lanes: list[int]) -> set[tuple[int, int]]:
    found = [_replay(*lanes, descending=descending, lines=40)[1] for descending in (False, True)]
    return {(site, other) for each in found for kind, site, other in each if kind == Kind.MISSING_PROXY_FENCE}


def test_a_write_matters_to_a_proxy_fence_until_it_is_overwritten() -> None:
    first, second, store = [1, 1024, 3, 3, END], [3, 9, 1024, 3, END], [3, 3, 8, 1024, 0, 0, END]
    assert _proxies(first, second, store) == {(7, 8)}
    assert _proxies(first, [3, 9, 1026, 3, END], store) == {(7, 2), (7, 8)}
    assert _proxies(first, [3, 9, 1024, 7, 3, END], store) == set()


def test_a_write_that_a_copy_has_overwritten_needs_no_second_fence() -> None:
    writer, store = [1, 1024, 5, 1040, 3, END], [3, 12, 1040, 8, 1024, 0, 0, END]
    assert _proxies(writer, [3, 10, 1040, 7, 11, 1024, 0, 0, 1040, END], store) == set()
    assert _proxies(writer, [3, 10, 1040, 7, 11, 1072, 0, 0, 1040, END], store) == {(7, 2)}


def test_a_fence_of_another_thread_covers_the_own_writes() -> None:
    assert _proxies([1, 1024, 3, 3, 8, 1024, 0, 0, END], [3, 7, 3, END]) == set()
    assert _proxies([1, 1024, 3, 3, 8, 1024, 0, 0, END], [3, 3, 7, END]) == {(7, 2)}


def test_lanes_of_a_warp_lack_the_fence_before_the_warp_barrier() -> None:
    store = [8, 1024, 0, 0, END]
    assert _proxies(store, [1, 1024, END]) == {(7, 2)}
    assert _proxies(store, [1, 1024, 7, END]) == set()
    assert _proxies(store, [9, 1024, END]) == set()  # the write stands behind the store in the text


def test_what_did_not_happen_is_no_access() -> None:
    assert _replay([1, 1024, END], [2, 0xFFFFFFFF, END])[1] == []


def test_bytes_that_nobody_writes_and_bytes_outside() -> None:
    assert _replay([2, 1032, END])[1] == [(Kind.UNINITIALIZED_READ, 1, 0)]
    assert _replay([1, 1024 + 62, END])[1] == [(Kind.OUT_OF_BOUNDS, 2, 0)]


@pytest.mark.parametrize(
    ("lanes", "status"),
    [
        (([99, END],), Status.CORRUPT),
        (([1, 1024],), Status.STUCK),
        (([3, STOP], [3, STOP]), Status.STUCK),
        (([1, 1024] * 7 + [0, 12],), Status.FULL),  # the last line says how many nobody has written over
    ],
)
def test_logs_that_cannot_be_replayed(lanes: tuple[list[int], ...], status: Status) -> None:
    assert _replay(*lanes)[0] is status


RACE = (Kind.DATA_RACE, 1, 2)


def _cut(*words: int, kept: int) -> list[int]:
    """The log of a lane without room. Behind the words may be anything; the last line says how many lines nobody has written over."""
    return [*words, *[77] * (15 - len(words)), kept]


@pytest.mark.parametrize("descending", [False, True])
def test_a_log_without_room_is_replayed_as_far_as_it_goes(descending: bool) -> None:
    assert _replay(_cut(1, 1024, kept=2), [2, 1024, END], descending=descending) == (Status.FULL, [RACE])
    assert _replay(_cut(7, 1, 1024, kept=2), [2, 1024, END], descending=descending) == (Status.FULL, [])  # a block across the cut
    assert _replay(_cut(1, 1024, 1, 1028, kept=2), [2, 1028, END], descending=descending) == (Status.FULL, [])


def test_nothing_is_missing_behind_the_place_where_a_log_was_cut() -> None:
    """Another thread waits for a barrier, an mbarrier, or reads what nobody has written yet."""
    assert _replay(_cut(3, kept=1), [3, 2, 1024, END]) == (Status.FULL, [])
    assert _replay(_cut(1, 1024, kept=2), [6, 1032, END]) == (Status.FULL, [])
    assert _replay(_cut(3, 1, 1024, kept=3), [3, 2, 1032, 3, END]) == (Status.FULL, [])


def test_a_log_without_an_end_is_corrupt() -> None:
    assert _replay([1, 1024] * 7)[0] in (Status.CORRUPT, Status.STUCK)


NOTHING = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry none() { ret; }\n"


def test_a_launch_in_clusters_is_recorded() -> None:
    session = Session(SessionOptions(device="cpu", engine="record"))
    prepared = session.prepare(NOTHING, cluster=2)
    session.launch(prepared, "none", (4, 2, 1), (32, 1, 1), [], cluster=(2, 2, 1))
    (summary,) = session.report().kernels
    assert (summary.engine, summary.ctas, summary.histories) == ("record", 8, 1)


def test_a_grid_that_is_no_whole_number_of_clusters_is_an_error() -> None:
    session = Session(SessionOptions(device="cpu", engine="record"))
    with pytest.raises(UsageError, match="whole number of clusters"):
        session.launch(session.prepare(NOTHING), "none", (3, 1, 1), (32, 1, 1), [], cluster=(2, 1, 1))


def test_the_ctas_of_a_cluster_follow_each_other_by_rank() -> None:
    assert clusters_of((4, 2, 1), (2, 2, 1)).tolist() == [[0, 1, 4, 5], [2, 3, 6, 7]]
    assert clusters_of((2, 1, 4), (1, 1, 2)).tolist() == [[0, 2], [1, 3], [4, 6], [5, 7]]


def test_without_a_checker_nothing_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    def library() -> None:
        raise EnvironmentFailure("the recording engine needs a C++ compiler")

    monkeypatch.setattr("consan.session.executing.recording.library", library)
    for engine in ("auto", "record"):
        with pytest.raises(EnvironmentFailure, match="C\\+\\+ compiler"):
            Session(SessionOptions(device="cpu", engine=engine), private=True).prepare(NOTHING)
    assert Session(SessionOptions(device="cpu", engine="inline"), private=True).prepare(NOTHING).recorded is None


def test_a_compiler_that_fails_is_one_line() -> None:
    with pytest.raises(EnvironmentFailure, match="cannot run"):
        build.CHECKER.compile(["/no/such/compiler"], build.sources())
    with pytest.raises(EnvironmentFailure, match="could not compile"):
        planted.compiled({"replay.cpp": "no C++"})


def test_an_unknown_engine() -> None:
    with pytest.raises(UsageError, match="engine='fast'"):
        Session(SessionOptions(device="cpu", engine="fast"))
