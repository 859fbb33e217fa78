"""Faults planted in R-RK6 and R-RK7 change what is found in programs of several GPUs, and of several processes.

Whether a launch may synchronise at all (`may_signal`, `releases`) chooses those that R-RK8 judges, by the same scopes
(test_peer_flags.py). It decides by itself where a launch has more flags than there is room for.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import test_other_contexts as gpus
import test_processes as members
from planted import plant

from consan.checker.compiled import concurrent_launches as checked
from consan.checker.judging import grid
from consan.session.comparing import concurrent_launches, followed_streams, process_log, processes
from consan.session.comparing.pairs import pair

Program = Callable[[pytest.MonkeyPatch, Path], Any]


def _of_gpus(between: gpus.Between, **how: Any) -> Program:
    def ran(monkeypatch: pytest.MonkeyPatch, _folder: Path) -> Any:
        report = gpus.two_launches(gpus.Process(monkeypatch), between, **how)
        return sorted(finding.situation for finding in report.findings), report.incomplete

    return ran


def _of_processes(first: str, second: str, between: members.Between, number: int = 0, at: float = 10) -> Program:
    def ran(monkeypatch: pytest.MonkeyPatch, folder: Path) -> Any:
        clock = members.Clock()
        monkeypatch.setattr(process_log, "now", clock)
        ranks = [members.Rank(rank, clock) for rank in (0, 1)]
        ranks[0].launch(first)
        for rank in ranks:
            between(rank)
        ranks[1].launch(second, number, at=at)
        findings, reasons = members.compared(ranks, folder)
        return [finding.hazard for finding in findings], reasons

    return ran


def _with_later(between: str) -> Program:
    def ran(monkeypatch: pytest.MonkeyPatch, folder: Path) -> Any:
        clock = members.Clock()
        monkeypatch.setattr(process_log, "now", clock)
        ranks = [members.Rank(rank, clock) for rank in (0, 1)]
        findings, reasons = members.later(ranks, folder, members.HOST_MAY_KNOW.get(between, lambda _rank: None))
        return [finding.hazard for finding in findings], reasons

    return ran


def _without_flags(program: Program) -> Program:
    """No launch's flags of other GPUs are known."""

    def ran(monkeypatch: pytest.MonkeyPatch, folder: Path) -> Any:
        monkeypatch.setattr(grid, "MOST_PEER_FLAGS", 0)
        return program(monkeypatch, folder)

    return ran


def _handed_on(monkeypatch: pytest.MonkeyPatch, folder: Path) -> Any:
    monkeypatch.setattr(process_log, "now", clock := members.Clock())
    return members.handed_on(folder, clock)


def _alike(monkeypatch: pytest.MonkeyPatch, folder: Path) -> Any:
    monkeypatch.setattr(process_log, "now", clock := members.Clock())
    findings, reasons = members.alike([members.Rank(rank, clock) for rank in (0, 1)], folder)
    return [finding.hazard for finding in findings], reasons


def _nothing(_rank: members.Rank) -> None:
    """They do not meet."""


_APART = gpus.NO_ORDERS["nothing"]
# The function that changes, what is replaced by what in it, and the program that shows it.
FAULTS: dict[str, tuple[ModuleType, str, str, str, Program]] = {
    "GPUs: the scope of accesses": (
        *(pair, "LaunchPair.scope", "SYS_SCOPE if self.on_two_devices else GPU_SCOPE", "GPU_SCOPE"),
        _of_gpus(_APART, entry="adds"),
    ),
    "GPUs: signals": (checked, "_may_meet", "return bool(", "return False and bool(", _without_flags(_of_gpus(_APART, entry="signals"))),
    "GPUs: the scope of fences": (
        *(checked, "_orders", "fences >= scope", "fences >= 0"),
        _without_flags(_of_gpus(_APART, entry="signals_in_gpu")),
    ),
    "GPUs: releases and acquires": (
        *(checked, "_orders", "fences >= scope", "True"),
        _without_flags(_of_gpus(_APART, entry="signals_relaxed")),
    ),
    "GPUs: default streams": (
        *(followed_streams, "FollowedStreams.key", "self.context << 2 | _LEGACY if self.context and handle in DEFAULT_STREAMS else handle"),
        *("handle", _of_gpus(_APART, default=True)),
    ),
    "GPUs: a wait for another context": (
        *(followed_streams, "FollowedStreams.synchronize", "stream.context == self.context", "True"),
        _of_gpus(gpus.NO_ORDERS["the other context"]),
    ),
    "GPUs: a wait for a context": (
        *(followed_streams, "FollowedStreams.synchronize", "stream.context == self.context", "False"),
        _of_gpus(gpus.ORDERS["context"]),
    ),
    "GPUs: the words": (
        *(concurrent_launches, "ConcurrentLaunches._races", "words.NO_DEVICE_EDGE if pair.on_two_devices else ", ""),
        _of_gpus(_APART),
    ),
    "processes: the scope of accesses": (
        *(processes, "_Races.of", "scope=SYS_SCOPE", "scope=2"),
        _of_processes("adds_in_gpu", "adds_in_gpu", _nothing, at=0),
    ),
    "processes: signals": (
        *(processes, "_judge", 'first.about["signals"] or second.about["signals"]', "False"),
        _of_processes("raises", "reads", _nothing, at=0.05),
    ),
    "processes: the scope of signals": (
        *(process_log, "ProcessLog._kept", "releases(rows, done.fences, SYS_SCOPE)", "releases(rows, done.fences, 2)"),
        _without_flags(_of_processes("raises_in_gpu", "reads", _nothing, at=0)),
    ),
    "processes: the scope of what is signalled": (
        *(checked, "_strong", ' & (rows["scope"] >= scope)', ""),
        _without_flags(_of_processes("raises_narrow", "reads", _nothing, at=0)),
    ),
    "processes: what ran at other times": (
        *(processes, "_judge", "not _overlap(first, second)", "False"),
        _of_processes("fills", "reads", _nothing),
    ),
    "processes: ends that no host knows": (
        *(process_log, "ProcessLog.add", 'entry["ended"] = max(entry["ended"], began)', "pass"),
        _with_later("nothing"),
    ),
    "processes: hosts that have waited": (*(process_log, "ProcessLog.add", " and each in unwaited", ""), _with_later("it waited")),
    "processes: work that may signal": (
        *(process_log, "ProcessLog.add", "done.rows is not None and each in", "each in"),
        _with_later("by work of unknown accesses"),
    ),
    "processes: meetings": (
        *(processes, "Knowledge.before", "self.of(made.rank, made.before)", "{}"),
        _of_processes("fills", "reads", members.ORDERS["a collective"]),
    ),
    "processes: who sends": (
        *(processes, "Knowledge.__init__", 'if exchange["sends"]:', "if True:"),
        _of_processes("fills", "reads", lambda rank: rank.meets(sends=bool(rank.rank), receives=bool(rank.rank))),
    ),
    "processes: who receives": (
        *(processes, "Knowledge.__init__", 'if exchange["receives"]:', "if True:"),
        _of_processes("fills", "reads", lambda rank: rank.meets(sends=not rank.rank, receives=not rank.rank)),
    ),
    "processes: knowledge handed on": (processes, "Knowledge.__init__", "{**known, rank:", "{rank:", _handed_on),
    "processes: streams of meetings": (
        *(concurrent_launches, "ConcurrentLaunches.met", "concurrent = self.timeline.everything - place.start", "concurrent = frozenset()"),
        _of_processes("fills", "reads", lambda rank: rank.meets(0 if rank.rank else rank.framework.calls.stream(), waits=False)),
    ),
    "processes: hosts that meet": (
        *(
            concurrent_launches,
            "ConcurrentLaunches.met",
            "StreamPlace(NONE, NONE)",
            "StreamPlace(*[self.timeline.everything] * 2)",
        ),
        _of_processes("fills", "reads", members.NO_ORDERS["hosts that have not waited"]),
    ),
    "processes: launches that are alike": (process_log, "ProcessLog._kept", "digest.digest(), number", 'b"", number', _alike),
    "processes: windows of ranks": (
        *(processes, "_place", "(each.key, each.rank)", "(each.key, 0)"),
        _of_processes("fills", "fills", _nothing, 256),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("rule", FAULTS)
def test_a_fault(rule: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    module, name, old, new, program = FAULTS[rule]
    folders = tmp_path / "right", tmp_path / "wrong"
    for folder in folders:
        folder.mkdir()
    right = program(monkeypatch, folders[0])
    plant(monkeypatch, module, old, new, name)
    assert program(monkeypatch, folders[1]) != right
