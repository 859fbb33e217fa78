"""Records of a launch: those that others speak for, and those that shipped code may do."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from consan.instrument.findings import Completion, FindingFlags, FindingRecord, Geometry, Kind, Operation, Reason
from consan.reports.model import Access, AsyncInfo, Finding
from consan.reports.records.finding_records import ModuleSites
from consan.reports.verdict.speaking.merging import sort_findings
from consan.reports.verdict.speaking.records import reported
from consan.reports.verdict.tolerance import with_tolerance

MODULE = ModuleSites((), ("k",))
PLACE: dict[str, Any] = {"site": 1, "other_site": 2, "thread": 0, "offset": 0, "bytes": 4, "geometry": Geometry((0, 0, 0), (64, 1, 1), 64)}


def record(kind: Kind, reason: Reason = Reason.NONE, **more: Any) -> FindingRecord:
    return FindingRecord(kind, reason, **{"flags": FindingFlags(0), "module": 0, "entry": 0, "index": 0, **PLACE, **more})


READS, EXPLAINED = record(Kind.UNINITIALIZED_READ, count=3), record(Kind.READ_EXPLAINED, count=2)


@pytest.mark.parametrize(("others", "stays"), [([EXPLAINED], True), ([EXPLAINED, EXPLAINED], False), ([replace(EXPLAINED, site=9)], True)])
def test_a_race_speaks_for_the_reads_that_it_explains(others: list[FindingRecord], stays: bool) -> None:
    race = record(Kind.DATA_RACE, Reason.NO_BARRIER)
    assert list(reported([READS, race, *others], {0: MODULE})) == [READS] * stays + [race]


DONE = Completion(group=3, commits=4, retired=2)
STORE = record(Kind.LIFETIME, Reason.EXIT, own_operation=Operation.BULK_STORE, completion=DONE)
SCOPE = record(Kind.SCOPE, Reason.ARRIVE_SCOPE)
COPY, READ, WRITE = (
    Access("bulk load", "cp", asynchronous=AsyncInfo("bulk load")),
    Access("read", "ld", cluster_rank=0),
    Access("write", "st"),
)
TOLERATED = {
    "a pipeline ends": (STORE, Finding("lifetime", "k", accesses=(COPY,)), "shipped pipelines end like this"),
    "an operation is over": (SCOPE, Finding("scope", "k", accesses=(COPY, READ)), "the operation is over"),
    "a read of its own memory": (SCOPE, Finding("scope", "k", hazard="WAR", accesses=(READ, WRITE)), "the read of its own CTA's memory"),
}


@pytest.mark.parametrize(("found", "finding", "why"), TOLERATED.values(), ids=TOLERATED)
def test_what_hardware_goes_on_with_is_a_warning_that_says_why(found: FindingRecord, finding: Finding, why: str) -> None:
    made = with_tolerance(finding, found, MODULE)
    assert (made.severity, why in made.message) == ("warning", True)


@pytest.mark.parametrize(
    ("found", "finding"),
    [
        (replace(STORE, completion=replace(DONE, retired=0)), Finding("lifetime", "k", accesses=(COPY,))),
        (replace(STORE, own_operation=Operation.BULK_LOAD), Finding("lifetime", "k", accesses=(COPY,))),
        (replace(SCOPE, reason=Reason.WAIT_SCOPE), Finding("scope", "k", accesses=(COPY, READ))),
        (SCOPE, Finding("scope", "k", hazard="RAW", accesses=(READ, WRITE))),
        (SCOPE, Finding("scope", "k", hazard="WAR", accesses=(replace(READ, cluster_rank=1), WRITE))),
        (replace(SCOPE, flags=FindingFlags.GLOBAL), Finding("scope", "k", hazard="WAR", accesses=(READ, WRITE))),
    ],
    ids=["waits for nothing", "a load", "an acquire", "a write first", "a read of a peer's memory", "of global memory"],
)
def test_others_are_errors(found: FindingRecord, finding: Finding) -> None:
    assert with_tolerance(finding, found, MODULE) == finding


def test_an_mbarrier_that_goes_on_comes_behind_other_findings() -> None:
    lapped = Finding("barrier-misuse", "k", situation="phase-lapped", count=9)
    fence = Finding("missing-proxy-fence", "k", accesses=(READ, WRITE))
    assert sort_findings([lapped, fence, replace(lapped, situation="count-range")])[1:] == (fence, lapped)
