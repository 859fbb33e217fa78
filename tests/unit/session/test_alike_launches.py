"""Launches whose logs are the same are looked at once, and share their accesses. A pointer out of memory is part of a log."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

sys.path.append(str(Path(__file__).parents[2] / "record"))
from framework_support import BLOCK
from planted import plant
from test_processes import HALF, Clock, Rank, compared

from consan.checker.judging import alike_launches, recorder
from consan.session import frameworks, global_looks, repeated_launch
from consan.session.comparing import array_rows, concurrent_launches, process_log
from consan.session.framework_launch import FrameworkLaunch
from consan.session.repeated_launch import NOT_REPEATED

KERNELS = """
extern "C" __global__ void fills(unsigned* out, unsigned** from, int number) { from[0][blockIdx.x * blockDim.x + threadIdx.x] = number; }
extern "C" __global__ void fills_often(unsigned* out, unsigned** from, int number) {
    for (int at = 0; at < number; ++at) from[0][blockIdx.x * blockDim.x + threadIdx.x] = at;
}
extern "C" __global__ void reads(unsigned* out, unsigned* from, int number) { from[threadIdx.x] = out[threadIdx.x + number]; }
extern "C" __global__ void raises(unsigned* out, unsigned* from, int) {
    out[blockIdx.x * blockDim.x + threadIdx.x] = 1;
    if (blockIdx.x + threadIdx.x == 0) atomicExch_system(out + 300, 1u);
}
extern "C" __global__ void fills_all(unsigned* out, unsigned* from, int) { out[blockIdx.x * blockDim.x + threadIdx.x] = 1; }
extern "C" __global__ void copies(unsigned* out, unsigned* from, int number) {
    unsigned at = blockIdx.x * blockDim.x + threadIdx.x;
    from[at] = out[at + number];
}
extern "C" __global__ void races(unsigned* out, unsigned* from, int number) { out[threadIdx.x] = blockIdx.x; }
"""
ELSEWHERE = HALF // 2


@pytest.fixture
def ranks(monkeypatch: pytest.MonkeyPatch) -> list[Rank]:
    clock = Clock()
    monkeypatch.setattr(process_log, "now", clock)
    return [Rank(rank, clock, KERNELS) for rank in (0, 1)]


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    made: list[Any] = []
    before = recorder.check_grid
    monkeypatch.setattr(recorder, "check_grid", lambda *args, **how: (made.append(1) if how["keep"] else None) or before(*args, **how))
    return made


def points(rank: Rank, offset: int) -> None:
    """Let the pointer in memory be that of a place of the window of rank 0."""
    frame = rank.framework
    frame.backend.write(frame.source, (frame.out + offset).to_bytes(8, "little"))


def follows(ranks: list[Rank], folder: Path) -> list[str]:
    """Rank 0 writes three times through its pointer: at the last time to what rank 1 reads then."""
    for at, offset in ((0, ELSEWHERE), (10, ELSEWHERE), (20, 0)):
        points(ranks[0], offset)
        ranks[0].launch("fills", at=at)
    ranks[1].launch("reads", at=20)
    return [finding.kind for finding in compared(ranks, folder)[0]]


def test_the_logs_decide(ranks: list[Rank], looks: list[Any], tmp_path: Path) -> None:
    assert follows(ranks, tmp_path) == ["global-race"]
    assert len(looks) == 3  # the second launch is not looked at again


def test_logs_whose_length_the_text_does_not_bound(ranks: list[Rank], looks: list[Any]) -> None:
    points(ranks[0], 0)
    for at, times in enumerate((2, 2, 2, 3, 3)):
        ranks[0].launch("fills_often", times, at=10 * at)
    assert len(looks) == 2


def races_again(ranks: list[Rank], folder: Path) -> list[int]:
    for at in (0, 10):
        ranks[0].launch("races", at=at)
    return [finding.count for finding in ranks[0].end(folder).findings]


def test_a_launch_with_a_race_is_looked_at_each_time(ranks: list[Rank], looks: list[Any], tmp_path: Path) -> None:
    assert races_again(ranks, tmp_path) == [128]
    assert len(looks) == 2


def gets_a_window(ranks: list[Rank], folder: Path) -> list[str]:
    """The memory that rank 0 writes to becomes a window after its first launch."""
    rank, other = ranks
    log = rank.streams.log
    assert log is not None
    before, log.windows[:] = list(log.windows), log.windows[1:]
    points(rank, 0)
    rank.launch("fills", at=0)
    log.windows[:] = before
    rank.launch("fills", at=10)
    other.launch("reads", at=10)
    return [finding.kind for finding in compared(ranks, folder)[0]]


def test_a_window_of_later(ranks: list[Rank], tmp_path: Path) -> None:
    assert gets_a_window(ranks, tmp_path) == ["global-race"]


def test_shared_accesses_count_once(ranks: list[Rank], monkeypatch: pytest.MonkeyPatch) -> None:
    points(ranks[0], 0)
    monkeypatch.setattr(concurrent_launches, "MOST_ROWS", 2 * 2 * 128)  # a pointer and an element of each thread
    for _ in range(8):
        ranks[0].launch("fills")
    assert len(list(ranks[0].streams.concurrent.unfinished())) == 8
    assert ranks[0].framework.report().verdict == "clean"


def goes_on(ranks: list[Rank], folder: Path, *, changes: bool = False, other: bool = False) -> str:
    """More launches than are looked at, if what they read were other pointers each time. `other`: a launch with another one is the last."""
    for at in range(6):
        points(ranks[0], 4 * at * changes)
        ranks[0].launch("fills", at=10 * at)
    if other:
        for offset in (64, 128, 192):  # the second one is the first of its shape that is no comparison
            points(ranks[0], offset)
            ranks[0].launch("fills", at=100 + offset)
    return str(ranks[0].framework.report().verdict)


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(global_looks, "MOST_COMPARED", 2)


@pytest.mark.usefixtures("few")
def test_launches_that_are_alike_are_compared_for_longer(ranks: list[Rank], tmp_path: Path) -> None:
    assert goes_on(ranks, tmp_path) == "clean"


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("how", ["changes", "other"])
def test_others_are_not(ranks: list[Rank], tmp_path: Path, how: str) -> None:
    assert goes_on(ranks, tmp_path, **{how: True}) == "incomplete"


@pytest.mark.usefixtures("few")
def test_not_for_ever(ranks: list[Rank], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(global_looks, "LONGEST_ALIKE", 0.0)
    assert goes_on(ranks, tmp_path) == "incomplete"


LOOKS = {
    "all are alike": ("self.judge.recording.accesses.alike:", "True:", {"changes": True}, "incomplete"),
    "alike for ever": ("            self._alike.discard(kernel)\n", "", {"other": True}, "incomplete"),
    "none is": ("self._alike.add(kernel)", "pass", {}, "clean"),
    "none is needed": ("alike = needed and", "alike = not needed and", {}, "clean"),
}


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("name", LOOKS)
def test_a_fault_of_looks(name: str, ranks: list[Rank], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    old, new, how, verdict = LOOKS[name]
    plant(monkeypatch, global_looks, old, new)
    monkeypatch.setattr(global_looks, "MOST_COMPARED", 2)
    assert goes_on(ranks, tmp_path, **how) != verdict


def reads_often(ranks: list[Rank], folder: Path, *, moves: bool = False) -> tuple[list[str], list[str]]:
    """Rank 0 reads the same bytes in six launches, and rank 1 writes beside the last one. `moves`: the last one reads these first."""
    for number in range(6):
        ranks[0].launch("copies", 300 if moves and number < 5 else 0, at=10 * number)
    ranks[1].launch("fills_all", at=50)
    return [finding.kind for finding in compared(ranks, folder)[0]], list(ranks[0].framework.report().incomplete)


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("moves", [False, True])
def test_launches_that_parameters_decide_are_known(
    moves: bool, ranks: list[Rank], looks: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those with the same parameters as an earlier one have no log. All are compared, however long the program runs."""
    monkeypatch.setattr(global_looks, "LONGEST_ALIKE", 0.0)
    kinds, reasons = reads_often(ranks, tmp_path, moves=moves)
    assert (set(kinds), reasons, len(looks)) == ({"global-race"}, [], 3 if moves else 2), looks


def again(rank: Rank, entry: str, number: int = 0, *, at: float = 0) -> bool:
    """A launch like one before it. Returns whether it was made as those that repeat are."""
    frame, rank.clock.now = rank.framework, at
    launch = FrameworkLaunch(entry, (2, 1, 1), BLOCK, (1, 1, 1), 0, frame.module)
    values = (frame.out.to_bytes(8, "little"), frame.source.to_bytes(8, "little"), number.to_bytes(4, "little"))
    repeated = frame.session.frameworks.repeated(frame.prepared, launch)
    make = lambda: frame.backend.launch(frame.module, entry, launch.grid, BLOCK, list(values))  # noqa: E731
    if repeated is not None and repeated.make(lambda: values, make, ()) is not NOT_REPEATED:
        return True
    rank.launch(entry, number, at=at)
    return False


@pytest.mark.parametrize(("number", "kinds"), [(0, ["global-race"]), (300, [])])
def test_known_launches_repeat(ranks: list[Rank], tmp_path: Path, number: int, kinds: list[str]) -> None:
    """Rank 0 reads four times, and rank 1 writes beside the last one. They have their place among the launches of all ranks."""
    assert [again(ranks[0], "copies", number, at=10 * each) for each in range(4)] == [False, False, True, True]
    ranks[1].launch("fills_all", at=30)
    assert [finding.kind for finding in compared(ranks, tmp_path)[0]] == kinds
    assert sum(kernel.launches for kernel in ranks[0].framework.report().kernels) == 4


REPEATED = {
    "no accesses": (global_looks, "recording.accesses.last = look.known.retained", "pass"),
    "no begin": (repeated_launch, "frameworks.begun(placed.look)", "pass"),
    "no place": (frameworks, "self._compare(placed.look", "0 and self._compare(placed.look"),
}


@pytest.mark.parametrize("name", REPEATED)
def test_a_fault_of_launches_that_repeat(name: str, ranks: list[Rank], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    plant(monkeypatch, *REPEATED[name])
    with pytest.raises(AssertionError):
        test_known_launches_repeat(ranks, tmp_path, 0, ["global-race"])


KNOWN = {
    "other parameters": ("launch.cluster, tuple(args)", "launch.cluster", True),
    "an unlimited comparison": ("key is not None and accesses.plain", "False", False),
    "as few as there is room for": ("<= MOST_KNOWN", "< 0", False),
}


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("name", KNOWN)
def test_a_fault_of_known_launches(name: str, ranks: list[Rank], monkeypatch: pytest.MonkeyPatch, looks: list[Any], tmp_path: Path) -> None:
    old, new, moves = KNOWN[name]
    plant(monkeypatch, global_looks, old, new)
    monkeypatch.setattr(global_looks, "MOST_COMPARED", 2)
    with pytest.raises(AssertionError):
        test_launches_that_parameters_decide_are_known(moves, ranks, looks, tmp_path, monkeypatch)


def recorded(ranks: list[Rank], entry: str, monkeypatch: pytest.MonkeyPatch) -> int:
    """How many of three launches have a log."""
    logs, before = [0], recorder.look_once

    def counted(*args: Any) -> Any:
        logs[0] += 1
        return before(*args)

    monkeypatch.setattr(recorder, "look_once", counted)
    for at in range(3):
        ranks[0].launch(entry, at=10 * at)
    return logs[0]


@pytest.mark.parametrize(("entry", "logs"), [("fills_all", 1), ("raises", 3)])
def test_a_launch_with_a_flag_is_not_known(entry: str, logs: int, ranks: list[Rank], monkeypatch: pytest.MonkeyPatch) -> None:
    assert recorded(ranks, entry, monkeypatch) == logs


FAULTS: dict[str, tuple[Any, str, str, str, Callable[..., Any], list[Any]]] = {
    "no logs": (alike_launches, "look_once", "None if key is None else _evidence(launch)", 'b""', follows, ["global-race"]),
    "with findings": (alike_launches, "look_once", "not found.plain", "False", races_again, [128]),
    "findings": (alike_launches, "_looked", "_findings(checked) == known", "True", races_again, [128]),
    "which accesses": (array_rows, "ByRows.of", "each is rows and", "", follows, ["global-race"]),
    "windows": (array_rows, "ByRows.of", "and how == key", "", gets_a_window, ["global-race"]),
    "windows of the log": (process_log, "ProcessLog.add", "(len(self.windows), done.name)", "()", gets_a_window, ["global-race"]),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault(name: str, ranks: list[Rank], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    module, function, old, new, run, right = FAULTS[name]
    plant(monkeypatch, module, old, new, function)
    with pytest.raises((AssertionError, KeyError)):
        assert run(ranks, tmp_path) == right
