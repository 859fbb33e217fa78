"""The order of launches of many processes, and of launches that go on and on: what is kept of them, and what is compared."""

from __future__ import annotations

import contextlib
import itertools
import random
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.append(str(Path(__file__).parents[2] / "record"))
from planted import plant
from test_processes import Clock, Rank, compared

from consan.session.comparing import array_rows, concurrent_launches, followed_streams, launch_memory, process_log, processes
from consan.session.comparing.processes import EarlierOnes


@pytest.fixture
def ranks(monkeypatch: pytest.MonkeyPatch) -> list[Rank]:
    clock = Clock()
    monkeypatch.setattr(process_log, "now", clock)
    return [Rank(rank, clock) for rank in (0, 1)]


def sets(made: random.Random) -> tuple[EarlierOnes, set[int]]:
    """A set, both ways."""
    number = made.randrange(24)
    beside = {each for each in range(number) if made.random() < 0.3}
    more = made.randrange(24)
    return EarlierOnes.than(number, beside).plus(more), set(range(number)) - beside | {more}


@pytest.mark.parametrize("seed", range(40))
def test_sets_of_earlier_ones(seed: int) -> None:
    made = random.Random(seed)
    (one, first), (other, second) = sets(made), sets(made)
    joined = one.joined(other)
    assert {each for each in range(60) if each in joined} == first | second
    assert joined.end == max(first | second) + 1
    assert joined.below == next(each for each in itertools.count() if each not in first | second)


def history(made: random.Random, ranks: int) -> list[list[dict[str, Any]]]:
    """The launches of each rank, and the exchanges of some ranks, in a possible order."""
    done: list[list[dict[str, Any]]] = [[] for _ in range(ranks)]

    def adds(rank: int, **what: Any) -> None:
        number = len(done[rank])
        chosen = [each for each in done[rank] if made.random() < 0.6]
        before = {one for each in chosen for one in (each["number"], *(set(range(each["number"])) - set(each["concurrent"])))}
        done[rank].append({"number": number, "concurrent": sorted(set(range(number)) - before), **what})

    for at in range(24):
        if made.random() < 0.5:
            adds(made.randrange(ranks))
            continue
        some = made.sample(range(ranks), made.randrange(2, ranks + 1))
        senders = {each for each in some if made.random() < 0.7}
        for rank in some:
            adds(rank, key=f"meeting {at}", sends=rank in senders, receives=rank not in senders or made.random() < 0.5)
    return done


def brute(done: list[list[dict[str, Any]]]) -> set[tuple[tuple[int, int], tuple[int, int]]]:
    """The pairs of launches of two ranks without an order, by the closure of all orders. A meeting is two points: it gives, and it gets."""
    before: dict[tuple[int, int, int], set[tuple[int, int, int]]] = {}
    for rank, own in enumerate(done):
        for each in own:
            earlier = {(rank, one, 1) for one in range(each["number"]) if one not in each["concurrent"]}
            before[rank, each["number"], 0], before[rank, each["number"], 1] = earlier, {(rank, each["number"], 0)}
            if each.get("receives"):
                given = [
                    (other, one["number"], 0)
                    for other, more in enumerate(done)
                    for one in more
                    if one.get("key") == each["key"] and one["sends"]
                ]
                before[rank, each["number"], 1] |= set(given)
    changed = True
    while changed:
        changed = False
        for known in before.values():
            size = len(known)
            known |= set().union(*(before[each] for each in known))
            changed |= len(known) > size
    launches = [(rank, each["number"]) for rank, own in enumerate(done) for each in own if "key" not in each]
    return {
        (one, other)
        for one, other in itertools.combinations(launches, 2)
        if one[0] != other[0] and (*one, 1) not in before[(*other, 0)] and (*other, 1) not in before[(*one, 0)]
    }


def unordered(done: list[list[dict[str, Any]]]) -> set[tuple[tuple[int, int], tuple[int, int]]]:
    """The same, as the product finds them."""
    logs = []
    for rank, own in enumerate(done):
        placed = [{**each, "before": EarlierOnes.than(each["number"], each["concurrent"])} for each in own]
        launches = [
            processes.LoggedLaunch(rank, None, None, each["number"], each["before"], {}, ("", 0)) for each in placed if "key" not in each
        ]
        logs.append(processes.LoggedProcess({"rank": rank}, launches, [each for each in placed if "key" in each]))
    pairs = processes.unordered_pairs(logs, processes.Knowledge(logs))
    return {((one.rank, one.number), (other.rank, other.number)) for one, other in pairs}


@pytest.mark.parametrize("seed", range(60))
def test_the_launches_without_an_order(seed: int) -> None:
    done = history(made := random.Random(seed), made.randrange(2, 5))
    assert unordered(done) == brute(done)


ORDER = {
    "none stands behind": ("if from_here[at] > made.number:", "if from_here[at] >= made.number:", "_unordered"),
    "those beside": ("numbers[at] not in known and ", "", "_unordered"),
    "known there": (" and made.number not in know[at]", "", "_unordered"),
    "what a meeting knows": ('_join(known, given.get(exchange["key"], {}))', "pass", "Knowledge.__init__"),
    "handed on": ("{**known, rank: with_it}", "{rank: with_it}", "Knowledge.__init__"),
    "the last meeting alone": ("if number < seen.below:", "if seen.end:", "Knowledge.of"),
    "a gap": ("self._with(self.bits | 1 << number - self.below)", "EarlierOnes(max(number + 1, self.end))", "EarlierOnes.plus"),
    "no gap": ("(~bits & bits + 1).bit_length() - 1", "0", "EarlierOnes._with"),
}


@pytest.mark.parametrize("fault", ORDER)
def test_a_fault_of_the_order(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    old, new, where = ORDER[fault]
    plant(monkeypatch, processes, old, new, where)
    monkeypatch.setattr(sys.modules[__name__], "EarlierOnes", processes.EarlierOnes)
    for seed in range(60):
        with contextlib.suppress(AssertionError):
            test_sets_of_earlier_ones(seed)
            test_the_launches_without_an_order(seed)
            continue
        return
    pytest.fail("nothing shows it")


def goes_on(ranks: list[Rank], *, turns: int = 40, waits: bool = True, misses: bool = False) -> None:
    """Rank 0 writes in each turn what rank 1 reads behind a meeting. `misses`: not behind the last one. `waits`: the hosts do."""
    for at in range(turns):
        last = misses and at == turns - 1
        for rank, entry in zip(ranks, ("fills", "reads"), strict=True):
            if rank.rank and not last:
                rank.meets(key="written", waits=False, sends=False)
            rank.launch(entry, at=10 * at)
            if not rank.rank and not last:
                rank.meets(key="written", waits=False, receives=False)
            rank.meets(key="turn", waits=False)
            if waits:
                rank.framework.calls.call("cuCtxSynchronize")


def test_launches_that_go_on_are_compared(ranks: list[Rank], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many there are: only those without an order are pairs."""
    monkeypatch.setattr(processes, "MOST_PAIRS", 4)
    goes_on(ranks)
    assert compared(ranks, tmp_path) == ([], [])


def test_the_last_of_many_launches(ranks: list[Rank], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "MOST_PAIRS", 4)
    goes_on(ranks, turns=30, misses=True)
    (finding,), reasons = compared(ranks, tmp_path)
    assert (finding.kind, finding.hazard, finding.count, reasons) == ("global-race", "RAW", 128, [])


def late(ranks: list[Rank], folder: Path, monkeypatch: pytest.MonkeyPatch, most: int) -> tuple[int, list[str]]:
    monkeypatch.setattr(launch_memory, "MOST_WAITED", most)
    goes_on(ranks, turns=20, misses=True)
    findings, reasons = compared(ranks, folder)
    return len(findings), reasons


@pytest.mark.parametrize(("most", "count"), [(64, 1), (4, 0)])
def test_a_race_behind_the_launches_that_are_waited_for_is_named(
    ranks: list[Rank], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int, count: int
) -> None:
    """When they began is not known, so another process may have waited for them: the report is incomplete."""
    found, reasons = late(ranks, tmp_path, monkeypatch, most)
    assert (found, [("no order between them was seen" in each) for each in reasons]) == (count, [True] * (not count))


def test_more_launches_than_are_kept(ranks: list[Rank], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_log, "MOST_ENTRIES", 40)
    goes_on(ranks)
    assert compared(ranks, tmp_path)[1] == ["there were more accesses to symmetric memory, or launches that touch it, than are compared"]


def works_between(ranks: list[Rank]) -> None:
    """Launches that repeat, with small copies and fills between them, each of which has accesses of its own."""
    for at in range(12):
        ranks[0].launch("fills", at=10 * at)
        for number in range(20):
            ranks[0].framework.calls.call("cuMemsetD8", (1 << 50) + number, 0, 4)


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The bytes of accesses of which the log has made a digest."""
    made: list[int] = []
    before = process_log.hashlib.blake2b
    monkeypatch.setattr(process_log.hashlib, "blake2b", lambda data=b"", **how: (made.append(len(data)), before(data, **how))[1])
    return made


def test_a_launch_is_not_forgotten_between_small_operations(ranks: list[Rank], looks: list[int]) -> None:
    works_between(ranks)
    assert looks.count(128 * array_rows.ROWS.itemsize) == 2, (
        looks
    )  # of the first launch with the values that it stores, of the later ones without


def test_a_launch_that_is_forgotten_shows(ranks: list[Rank], looks: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, array_rows, "if len(rows) > self._few:", "if True:", "ByRows.of")
    with pytest.raises(AssertionError):
        test_a_launch_is_not_forgotten_between_small_operations(ranks, looks)


def test_what_was_used_last_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    kept, made = array_rows.ByRows[int](), list[int]()
    rows = [np.zeros(1, array_rows.ROWS) for _ in range(100)]
    for each in rows[1:]:
        for one in (rows[0], each):
            kept.of(one, (), lambda one=one: made.append(int(one is rows[0])) or 1)
    assert sum(made) == 1


def test_what_was_used_last_is_forgotten_if_it_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, array_rows, "self._made.insert(0, self._made.pop(at))", "pass", "ByRows.of")
    with pytest.raises(AssertionError):
        test_what_was_used_last_is_kept(monkeypatch)


@pytest.mark.parametrize("other", [None, "a new stream", "a stream that waits"])
def test_a_program_whose_host_waits_for_nothing(
    ranks: list[Rank], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, other: str | None
) -> None:
    """The report leaves out no launch that all streams come behind. A new launch may run beside them."""
    monkeypatch.setattr(concurrent_launches, "MOST_OF_PROGRAM", 8)
    calls, early = ranks[0].framework.calls, 0
    if other == "a stream that waits":
        early = calls.stream()
        ranks[0].launch("fills", 256, stream=early)
    for _ in range(12):
        goes_on(ranks, turns=1, waits=False)
        if early:
            calls.edge(0, early)
    if other == "a new stream":
        ranks[0].launch("fills", 256, stream=calls.stream())
    reports = [rank.end(tmp_path) for rank in ranks]
    assert processes.compared(tmp_path) == ([], [])
    told = [any("all accesses of what all streams did before are not known" in each for each in report.incomplete) for report in reports]
    assert told == [other == "a new stream", False], reports[0].incomplete
    assert [bool(report.incomplete) for report in reports] == told


HOSTS = {
    "nothing is passed": (followed_streams, "FollowedStreams._is_early", "place.capture is None:", "False:", None),
    "none stands for them": (
        concurrent_launches,
        "ConcurrentLaunches.pass_by",
        "if len(over) > 1:",
        "self.timeline.host_waits(over)\n        if False:",
        "a new stream",
    ),
}


@pytest.mark.parametrize("fault", HOSTS)
def test_a_fault_of_what_is_passed(fault: str, ranks: list[Rank], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module, where, old, new, other = HOSTS[fault]
    plant(monkeypatch, module, old, new, where)
    with pytest.raises(AssertionError):
        test_a_program_whose_host_waits_for_nothing(ranks, tmp_path, monkeypatch, other)
