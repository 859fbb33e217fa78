"""Faults planted in how threads leave a stopped launch (leaving.py), and in what their record proves (waiting.hpp), change the report."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from leaving_support import launched, slow_clock
from planted import break_checker, quick

from consan.checker.compiled import build, replay
from consan.instrument.record import leaving, module

# What is replaced by what in waiting.hpp, and a launch of leaving_support.py whose report tells.
RULES = {
    "who does not wait": ("        free_ |= !polls;\n", "", "mixed", 300),
    "a thread that goes on is no deadlock": ("return !free_ && !waiters_.empty();", "return !waiters_.empty();", "mixed", 300),
    "waiters are told": ("            findings_.add(each);\n", "", "mixed", 0),
    "one finding, the others are its waiters": ("&each == &waiters_.front() ? DEADLOCK : WAITER", "DEADLOCK", "mixed", 0),
    "a waiter for each barrier": ("each.other_site != found.other_site || ", "", "mixed", 0),
    "a waiter for each place": ("found.other_site = mbarrier ? found.place & PLACES", "found.other_site = mbarrier ? 0", "mixed", 0),
    "how many wait": ("            ++each.threads;\n", "", "waits", 1),
    "which lanes wait": ("each.lanes |= found.lanes;", "(void)0;", "waits", 1),
    "where threads wait": ("note_position(thread, AT_SITE | found.site);", "(void)0;", "mixed", 300),
    "where threads have left": ("if (left) note_position(thread, mark - LEFT);", "", "counts", 300),
}  # fmt: skip
QUICK = ("a thread that goes on is no deadlock",)
for rule in QUICK:
    quick("waiting.hpp", *RULES[rule][:2])


def _gives(value: Any) -> Callable[[Any], Any]:
    return lambda old: lambda *_, **__: value


# An attribute of leaving.py, or of its class, its replacement by the old one, and a launch. All of them end on the virtual machine.
RECORDER: dict[str, tuple[Any, str, Callable[[Any], Any], str, int]] = {
    "loops do not look": (leaving.Leaving, "_at_loop", _gives(""), "counts", 300),
    "the switch is never on": (leaving, "_look", _gives("setp.ne.u32 %__consan_q, 0, 0;\n"), "counts", 300),
    "the switch is always on": (leaving, "_look", _gives("setp.eq.u32 %__consan_q, 0, 0;\n"), "waits", 0),
    "no mark": (leaving, "LEFT", lambda old: 0, "counts", 300),
    "nobody leaves behind a wait": (leaving.Leaving, "behind_wait", _gives(""), "waits", 1),
    "nobody leaves behind a barrier": (leaving.Leaving, "behind_barrier", _gives(""), "differ", 3),
    "barriers with a count are not filled": (leaving, "_count_of", _gives(None), "counted", 1),
}
FILLS = ("nobody leaves behind a wait",)  # the log, which takes a minute


def _outcome(monkeypatch: pytest.MonkeyPatch, entry: str, number: int) -> tuple[Any, ...]:
    device = slow_clock(monkeypatch)
    device.hangs = entry != "waits" or number > 0
    if entry == "differ":
        monkeypatch.setattr(leaving, "LONG", 1)
        monkeypatch.setattr(leaving, "ITERATIONS", 0xFFFFFFFF)  # loops never look
    report, out = launched(device, entry, number, block=64 if entry == "counted" else 96, owned=False)
    found = [(one.kind, one.count, one.waiters, one.barrier) for one in report.findings]
    return report.verdict, found, report.notes, report.incomplete, device.launches, out.tolist()


def test_each_fault_changes_text_that_is_there() -> None:
    text = build.sources()["waiting.hpp"]
    assert [rule for rule, (old, *_) in RULES.items() if text.count(old) != 1] == []


@pytest.mark.parametrize("rule", [pytest.param(rule, marks=[] if rule in QUICK else pytest.mark.slow) for rule in RULES])
def test_a_fault_in_what_is_proven(rule: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    old, new, entry, number = RULES[rule]
    right = _outcome(monkeypatch, entry, number)
    break_checker(monkeypatch, tmp_path, (replay,), "waiting.hpp", old, new)
    assert _outcome(monkeypatch, entry, number) != right


@pytest.mark.parametrize("fault", [pytest.param(each, marks=[pytest.mark.slow] if each in FILLS else []) for each in RECORDER])
def test_a_fault_in_how_threads_leave(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    owner, attribute, change, entry, number = RECORDER[fault]
    monkeypatch.setattr(module, "COMPACT", fault not in FILLS)  # a compact log would never be full
    right = _outcome(monkeypatch, entry, number)
    monkeypatch.setattr(owner, attribute, change(getattr(owner, attribute)))
    assert _outcome(monkeypatch, entry, number) != right
