"""What becomes of the value that a race is about, in reports of the kernels in tests/kernels/racing_values.cu, and faults planted there."""

from __future__ import annotations

import functools
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import twin_file
from planted import break_checker, plant

import consan
from consan.__main__ import main
from consan.backends.cpu.engine import ordered
from consan.checker.compiled import replay
from consan.checker.judging import grid
from consan.instrument.between import value_uses
from consan.reports.decoding import racing_values
from consan.reports.formats import json_format
from consan.reports.model import Finding, Report
from consan.reports.racing_value import Outcomes, RacingValue
from consan.reports.verdict.speaking.merging import merge_findings, sort_findings
from consan.reports.verdict.speaking.precedence import roots
from consan.reports.words.values import outcomes_sentence, torn_sentence

LAUNCH = ("--device", "cpu", "--grid", "1", "--block", "64", "--arg", "f32[64]=arange", "--arg", "f32[64]=zeros")
SOURCE = Path(__file__).parents[1] / "kernels" / "racing_values.cu"
ENDS = {
    "dead": "",
    "used_by_last": "store",
    "used_in_second_cta": "store",
    "exchanged": "store",
    "handed_on": "store",
    "put_away": "",
    "branched": "branch",
    "indexed": "address",
    "left_unread": "",
    "left_and_read": "store",
    "looked_at": "",
}


@functools.cache
def _kernel(entry: str, racy: bool) -> consan.Kernel:
    return consan.Kernel(SOURCE, entry=entry, arch="sm_90a", defines={"RACY": "1"} if racy else {})


def _report(entry: str, *, racy: bool = True) -> Report:
    x, y = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    return consan.launch(_kernel(entry, racy), 2 if entry == "used_in_second_cta" else 1, 64, [x, y], device="cpu")


def _end(entry: str) -> Any:
    values = [each.value for each in _report(entry).findings if each.kind == "data-race"]
    assert values
    return [None if each is None else each.end for each in values]


@pytest.mark.parametrize("entry", ENDS)
def test_each_end(entry: str) -> None:
    report = _report(entry)
    assert report.verdict == "violations", str(report)
    assert _end(entry) == [ENDS[entry]]
    assert _report(entry, racy=False).verdict == "clean"


FAULTS = {
    "threads count by themselves": ("dead", value_uses.ValueUses, "_executed", lambda self, *_: set(self._instructions)),
    "lanes exchange nothing": ("exchanged", value_uses, "used", lambda user, key, *, anyone: iter(())),
    "what is written counts as read": ("looked_at", value_uses, "keys_read", value_uses.written),
    "memory keeps nothing": ("handed_on", value_uses.ValueUses, "_read_back", lambda *_: iter(())),
    "variables are not distinguished": ("put_away", value_uses.ValueUses, "_are_disjoint", lambda *_: False),
    "stores leave nothing": ("left_and_read", value_uses, "_left", lambda *_, anyone: iter(())),
    "all threads read": ("dead", racing_values, "readers_of", lambda found: tuple((each, 0, 0) for each in range(64))),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_changes_the_end(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    entry, owner, attribute, broken = FAULTS[name]
    monkeypatch.setattr(owner, attribute, broken)
    assert _end(entry) != [ENDS[entry]]


@pytest.mark.slow
def test_a_fault_in_the_merging_of_readers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    old = "read_by(retained, found, true);\n        retained.flags"
    break_checker(monkeypatch, tmp_path, (replay, grid), "findings.hpp", old, "retained.flags")
    assert _end("used_by_last") == [""]


def _finding(end: str | None, line: int) -> Finding:
    (found,) = (each for each in _report("dead").findings if each.kind == "data-race")
    accesses = tuple(replace(each, line=line) for each in found.accesses)
    return replace(found, accesses=accesses, count=99 - line, value=None if end is None else RacingValue(end))


def test_discarded_values_come_last_in_their_severity() -> None:
    warning = replace(_finding("store", 5), severity="warning")
    found = sort_findings([_finding("", 1), _finding("store", 2), _finding(None, 3), warning])
    assert [each.accesses[0].line for each in found] == [2, 3, 1, 5]


@pytest.mark.parametrize(("ends", "end"), [(("", ""), ""), (("", "store"), "store"), (("", None), None), ((None, "branch"), "branch")])
def test_merged_findings(ends: tuple[str | None, ...], end: str | None) -> None:
    (merged,) = sort_findings(merge_findings([_finding(each, 7) for each in ends]))
    assert (None if merged.value is None else merged.value.end) == end


def _appended() -> Report:
    spec = twin_file.read(SOURCE.parent / "global" / "appended_without_atomic.cu")
    args = spec.parameters(spec.fresh_args())
    return consan.launch(twin_file.kernel(spec.path, racy=True), spec.grid, spec.block, args, device="cpu")


def _causes(report: Report) -> set[tuple[str, ...]]:
    """The accesses of the findings that belong to no other one."""
    follows = roots(report.findings)
    return {tuple(each.role for each in finding.pair) for index, finding in enumerate(report.findings) if index not in follows}


def test_a_race_at_an_address_from_a_race_may_follow_from_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The value of the counter is stored, too, and that is the shorter way. Two warps that read the same store the same."""
    report = _appended()
    assert _causes(report) == {("read", "write")}
    assert json_format.loads(report.to_json()).findings == report.findings
    plant(monkeypatch, value_uses, 'if following == "address":', 'if following == "store":')
    assert _causes(_appended()) == {("read", "write"), ("write", "write")}


def test_a_stored_run_keeps_the_value() -> None:
    report = _report("branched")
    assert json_format.loads(report.to_json()).findings == report.findings
    assert "decides a branch: racing_values.cu:" in consan.reports.render(report, details=True)


# --- both orders ---


def _outcomes(entry: str, tmp_path: Path, *more: str) -> Any:
    stored = tmp_path / "r.json"
    main(["check", str(SOURCE), "--entry", entry, "--define", "RACY=1", *LAUNCH, *more, "-o", str(stored)])
    return [each.outcomes for each in json_format.loads(stored.read_text()).findings if each.kind == "data-race"]


def test_the_output_that_differs_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """s[0] is 0 at first; thread 63 of `used_by_last` reads that, or what thread 0 writes in its place: x[0] is 0 again."""
    values = np.arange(5, 69, dtype=np.float32)
    np.save(tmp_path / "x.npy", values)
    arguments = [*LAUNCH[:-4], "--arg", f"f32[64]={tmp_path / 'x.npy'}", *LAUNCH[-2:]]
    monkeypatch.setattr(f"{__name__}.LAUNCH", tuple(arguments))
    assert _outcomes("used_by_last", tmp_path) == [Outcomes("y[0]", ("22.0", "17.0"), 2)]
    (same,) = _outcomes("branched", tmp_path)
    assert same == Outcomes(schedules=6)
    assert _outcomes("dead", tmp_path) == [None]
    monkeypatch.setattr(ordered.Ordered, "holds", lambda self, group: [])
    assert _outcomes("used_by_last", tmp_path) != [Outcomes("y[0]", ("22.0", "17.0"), 2)]


def test_words_of_outcomes() -> None:
    assert outcomes_sentence(Outcomes("y[37]", ("4.0", "2.0"), 2)) == "y[37] = 4.0 or 2.0, by the order of (1) and (2)"
    assert outcomes_sentence(Outcomes("y[37]", ("4.0", "2.0"), 5)) == "y[37] = 4.0 or 2.0, in two schedules"
    assert outcomes_sentence(Outcomes(schedules=6)) == "no difference in the buffers of 6 schedules"


# --- torn values ---

TORN = {
    ("ld.shared.v4.f32", "st.shared.v4.f32"): "may be torn: 4 parts of 4 bytes come one by one, some before and some behind",
    ("ld.shared.u64", "st.shared.v2.u32"): "may be torn: 2 parts of 4 bytes come one by one, some before and some behind",
    ("ld.shared.u16", "st.shared.v4.u8"): "may be torn: 2 parts of 1 byte come one by one, some before and some behind",
    ("ld.shared.f32", "st.shared.v4.f32"): "",
    ("ld.shared.b64", "st.shared.b64"): "",
    ("ld.shared.v4.f32", "st.shared.f32"): "",
    ("ld.shared.v4.f32", "cp.async.ca.shared.global"): "",
}


@pytest.mark.parametrize("ops", TORN)
@pytest.mark.parametrize("end", ["store", ""])
def test_torn_values(ops: tuple[str, str], end: str) -> None:
    """A value may have parts of both orders. The report names them if a thread uses the value."""
    finding = _finding(end, 7)
    first, second = finding.accesses[:2]
    racing = replace(finding, accesses=(replace(first, op=ops[0]), replace(second, op=ops[1])))
    assert torn_sentence(racing) == (TORN[ops] if end else "")


def test_a_torn_value_is_in_the_report(tmp_path: Path) -> None:
    source = tmp_path / "k.cu"
    source.write_text("""extern "C" __global__ void kernel(int* out) {
    __shared__ alignas(16) int line[256];
    ((int4*)line)[threadIdx.x] = make_int4(1, out[threadIdx.x], 2, 3);
    int4 found = ((int4*)line)[threadIdx.x ^ 32];
    out[threadIdx.x] = found.x + found.y + found.z + found.w;
}""")
    report = consan.launch(consan.Kernel(source), 1, 64, [np.zeros(64, np.int32)], device="cpu")
    assert "may be torn: 4 parts of 4 bytes" in " ".join(consan.reports.render(report, details=True).split())
