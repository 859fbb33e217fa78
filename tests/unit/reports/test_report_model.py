"""Verdict, exit status and merging: the rules of tutorials/guide/reports.md."""

from __future__ import annotations

from dataclasses import replace

import pytest
import report_samples as samples

from consan.reports.model import Finding, KernelSummary, Uninstrumented, Unmodelled
from consan.reports.verdict.conclusion import assemble, exit_status, verdict_of
from consan.reports.verdict.coverage import of_reasons
from consan.reports.verdict.speaking.merging import merge_findings, sort_findings

ERROR, WARNING, NOTE = (Finding("data-race", "k", severity) for severity in ("error", "warning", "note"))
RAN = KernelSummary("k", launches=1)


@pytest.mark.parametrize(
    ("findings", "reasons", "verdict"),
    [
        ([], [], "clean"),
        ([WARNING, NOTE], [], "clean"),
        ([], ["a gap"], "incomplete"),
        ([WARNING], ["a gap"], "incomplete"),
        ([ERROR], [], "violations"),
        ([ERROR], ["a gap"], "violations"),
    ],
)
def test_verdict(findings: list[Finding], reasons: list[str], verdict: str) -> None:
    assert verdict_of(findings, of_reasons(reasons)) == verdict


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"kernels": []}, "no instrumented kernel was launched"),
        ({"kernels": [KernelSummary("k", launches=0)]}, "no instrumented kernel was launched"),
        ({"kernels": [replace(RAN, unchecked=1)]}, "1 launch of k ran unchecked"),
        ({"kernels": [KernelSummary("k", launches=2, unchecked=1)]}, "1 launch of k ran unchecked"),
        ({"kernels": [replace(RAN, unmodelled=(Unmodelled("x.y", 5, 2),))]}, "k contains x.y, which is not modelled (2 times, PTX line 5)"),
        ({"uninstrumented": [Uninstrumented("lib", named=True)]}, "the filter names lib, which cannot be instrumented"),
        ({"dropped": 2}, "2 findings were dropped: the ring was full"),
        ({"evicted": 1}, "1 access record was evicted too early"),
        ({"unchecked": ["no room"]}, "no room"),
    ],
)
def test_every_gap_makes_the_run_incomplete(changes: dict[str, object], reason: str) -> None:
    report = assemble(**{"device": "cpu", "kernels": [RAN], **changes})  # type: ignore[arg-type]
    assert report.verdict == "incomplete"
    assert reason in report.incomplete


@pytest.mark.parametrize(("launches", "verdict"), [(2, "incomplete"), (3, "clean")])
def test_a_filter_that_leaves_everything_out_does_not_end_in_clean(launches: int, verdict: str) -> None:
    left_out = [Uninstrumented("k", 2, "left out by a filter")]
    assert assemble(device="cpu", kernels=[KernelSummary("k", launches)], uninstrumented=left_out).verdict == verdict


def test_a_kernel_that_is_only_listed_as_uninstrumented_leaves_the_run_clean() -> None:
    assert samples.clean().verdict == "clean"
    assert samples.clean().incomplete == ()


@pytest.mark.parametrize(
    ("findings", "gaps", "program", "strict", "status"),
    [
        ([], 0, 0, False, 0),
        ([], 0, 3, False, 3),
        ([], 0, 3, True, 3),
        ([WARNING], 0, 3, False, 3),
        ([WARNING], 0, 0, True, 66),
        ([NOTE], 0, 0, True, 0),
        ([], 1, 0, False, 67),
        ([], 1, 0, True, 67),
        ([], 1, 3, False, 3),
        ([], 1, 3, True, 3),
        ([WARNING], 1, 0, True, 66),
        ([ERROR], 0, 3, False, 66),
        ([ERROR], 1, 1, True, 66),
    ],
)
def test_exit_status(findings: list[Finding], gaps: int, program: int, strict: bool, status: int) -> None:
    report = assemble(device="cpu", kernels=[RAN], findings=findings, dropped=gaps, exit=program)
    assert exit_status(report, strict=strict) == status
    assert report.exit == program


@pytest.mark.parametrize(("findings", "program", "status"), [([], 0, 0), ([], 3, 3), ([ERROR], 0, 66)])
def test_gaps_may_be_allowed(findings: list[Finding], program: int, status: int) -> None:
    report = assemble(device="cpu", kernels=[RAN], findings=findings, dropped=1, exit=program)
    assert exit_status(report, allow_incomplete=True) == status


def test_findings_of_one_pair_of_sites_merge_whatever_their_order() -> None:
    other = replace(samples.RACE, hazard="WAR", accesses=samples.RACE.accesses[::-1], count=2, ctas=1)
    (merged,) = merge_findings([samples.RACE, other])
    assert merged.count == 1236
    assert merged.ctas == 64
    assert merged.hazard == "RAW"


def test_findings_of_other_kernels_kinds_or_places_stay_apart() -> None:
    elsewhere = replace(samples.RACE, accesses=(samples.WRITE, replace(samples.READ, line=9)))
    variants = [samples.RACE, replace(samples.RACE, kernel="other"), replace(samples.RACE, kind="scope"), elsewhere]
    assert len(merge_findings(variants)) == 4


def test_instructions_of_one_statement_are_one_place_for_each_role() -> None:
    unrolled = replace(samples.RACE, accesses=(samples.WRITE, replace(samples.READ, ptx_line=76)))
    other_role = replace(samples.RACE, accesses=(samples.WRITE, replace(samples.READ, role="write")))
    assert len(merge_findings([samples.RACE, unrolled, other_role])) == 2
    assert (
        len(merge_findings([samples.WAIT, replace(samples.WAIT, accesses=(samples.COPY, replace(samples.WAIT.accesses[1], ptx_line=3)))]))
        == 2
    )


def test_merging_unites_byte_ranges_and_counts_distinct_ctas() -> None:
    assert samples.RACE.buffer is not None
    far = replace(
        samples.RACE,
        buffer=replace(samples.RACE.buffer, offset=700, bytes=8),
        accesses=tuple(replace(access, block=(9, 0, 0)) for access in samples.RACE.accesses),
        ctas=1,
    )
    (merged,) = merge_findings([replace(samples.RACE, ctas=1), far])
    assert merged.buffer is not None
    assert (merged.buffer.offset, merged.buffer.bytes) == (640, 68)
    assert merged.ctas == 2


def test_merging_keeps_the_worst_severity_and_every_waiter_once() -> None:
    one = replace(samples.RACE, severity="warning", waiters=({"warp": 1},))
    two = replace(samples.RACE, severity="error", waiters=({"warp": 1}, {"warp": 2}))
    (merged,) = merge_findings([one, two])
    assert merged.severity == "error"
    assert merged.waiters == ({"warp": 1}, {"warp": 2})


def test_a_misused_barrier_comes_before_what_follows_from_it() -> None:
    race = Finding("data-race", "k", count=9)
    misuse = Finding("barrier-misuse", "k")
    assert sort_findings([race, misuse]) == (misuse, race)
    assert sort_findings([race, replace(misuse, severity="warning")])[0] is race


def test_findings_are_sorted_by_severity_then_count() -> None:
    findings = samples.violations().findings
    assert [finding.severity for finding in findings] == ["error", "error", "warning", "note"]
    assert [finding.kind for finding in findings[:2]] == ["data-race", "missing-wait"]
