"""What a labelled kernel counts as, and CUB's collectives (slow): consan agrees with their documentation, or the oracle with consan."""

from __future__ import annotations

import collections
import dataclasses
import json
from pathlib import Path

import cub_cases
import pytest
from suite_model import CLEAN, RACY, Case, Outcome, judge, judge_all, read_cases, summary

CASE = Case("reductions", "sum", "sum.cu", "sum", 1, 32, (), RACY)


RACE = "data-race RAW error"


def _outcome(
    label: str = RACY, about: str = "shared memory", verdict: str = "clean", found: int = 0, oracle: str = "", kind: str = RACE
) -> Outcome:
    case = dataclasses.replace(CASE, label=label, about=about)
    return Outcome(case, verdict, collections.Counter({kind: found} if found else {}), oracle)


@pytest.mark.parametrize(
    ("outcome", "column", "strange"),
    [
        (_outcome(verdict="violations", found=2), "TP", False),
        (_outcome(verdict="incomplete", found=1), "TP", False),
        (_outcome(), "FN", True),
        (_outcome(oracle="racy"), "FN", True),
        (_outcome(CLEAN), "TN", False),
        (_outcome(CLEAN, oracle="racy"), "TN", True),
        (_outcome(CLEAN, verdict="violations", found=1), "FP", True),
        (_outcome(CLEAN, verdict="clean", found=1), "FP", True),  # a warning
        (_outcome(CLEAN, verdict="incomplete"), "not judged", True),
        (_outcome(verdict="failed"), "not judged", True),
        (_outcome(kind="uninitialized-read error", verdict="violations", found=1), "FN", True),
        (_outcome(CLEAN, kind="uninitialized-read error", verdict="violations", found=1), "FP", True),
        (_outcome(about="bounds", verdict="violations", found=1), "FN", True),
        (_outcome(about="bounds", kind="out-of-bounds error", verdict="violations", found=1), "TP", False),
        (_outcome(about="global memory"), "FN", True),
        (_outcome(about="global memory", verdict="violations", found=1), "TP", False),
        (_outcome(about="global memory", kind="out-of-bounds error", verdict="violations", found=1), "FN", True),
    ],
)
def test_where_a_case_counts(outcome: Outcome, column: str, strange: bool) -> None:
    assert (outcome.column, outcome.strange) == (column, strange)


def test_summary_counts_by_group() -> None:
    other = dataclasses.replace(CASE, group="scans", label=CLEAN)
    lines = summary([_outcome(), _outcome(verdict="violations", found=1), Outcome(other, "clean")]).splitlines()
    assert lines[2:] == [
        "| reductions | 2 | 1 | 1 | 0 | 0 | 0 |",
        "| scans | 1 | 0 | 0 | 0 | 1 | 0 |",
        "| all | 3 | 1 | 1 | 0 | 1 | 0 |",
    ]


REVERSE = """
extern "C" __global__ void reverse(int* data)
{
    __shared__ int tile[64];
    tile[threadIdx.x] = data[threadIdx.x];
#ifdef BARRIER
    __syncthreads();
#endif
    data[threadIdx.x] = tile[63 - threadIdx.x];
}
"""


def test_a_list_of_cases_is_run(tmp_path: Path) -> None:
    (tmp_path / "reverse.cu").write_text(REVERSE)
    row = {"group": "own", "name": "without", "file": "reverse.cu", "entry": "reverse", "grid": 1, "block": 64, "args": ["i32[64]=arange"]}
    rows = [row | {"label": RACY, "seeds": 2}, row | {"name": "with", "label": CLEAN, "defines": {"BARRIER": "1"}}]
    (tmp_path / "cases.json").write_text(json.dumps(rows))
    racy, clean = judge_all(read_cases(tmp_path / "cases.json"), with_oracle=True)
    assert (racy.column, racy.oracle, list(racy.findings)) == ("TP", RACY, [RACE])
    assert (clean.column, clean.oracle, clean.verdict) == ("TN", CLEAN, "clean")


def test_what_does_not_compile_is_not_judged(tmp_path: Path) -> None:
    (tmp_path / "broken.cu").write_text("nothing")
    outcome = judge(dataclasses.replace(CASE, file=str(tmp_path / "broken.cu")))
    assert (outcome.column, outcome.verdict) == ("not judged", "failed")
    assert outcome.why


@pytest.mark.slow
@pytest.mark.timeout(4 * 3600)
@pytest.mark.parametrize("group", dict.fromkeys(case.group for case in cub_cases.cases()))
def test_cub(group: str) -> None:
    outcomes = list(judge_all([case for case in cub_cases.cases() if case.group == group], with_oracle=True))
    races = {o.case.name for o in outcomes if o.findings or cub_cases.safe(o.case) == cub_cases.UNUSED}
    assert [o.line() for o in outcomes if o.oracle != (RACY if o.case.name in races else CLEAN)] == []
    assert [o.line() for o in outcomes if o.column == "not judged"] == []
    assert {o.case.name for o in outcomes if o.column == "FN"} == {o.case.name for o in outcomes if cub_cases.safe(o.case)}
    past = {o.case.name: set(o.findings) for o in outcomes if o.column == "FP"}
    assert past == {name: {"uninitialized-read error"} for name in past.keys() & set(cub_cases.PAST)}
