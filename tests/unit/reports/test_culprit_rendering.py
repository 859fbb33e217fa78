"""A finding with a culprit in every format: the pair stays the pair, and (3) is said with its place and without a thread."""

from __future__ import annotations

import json
from dataclasses import replace

import report_samples as samples

from consan.reports.formats import html, sarif, text
from consan.reports.formats.json_format import loads
from consan.reports.model import CULPRIT, Access, Finding, Report
from consan.reports.source.sources import embed, of_texts
from consan.reports.verdict.conclusion import assemble
from consan.reports.verdict.speaking.merging import merge_findings
from consan.reports.verdict.suppression import Rule, suppress, to_toml

BARRIER = Access(CULPRIT, "bar.warp.sync", "none", "reduce.cu", 7, 5, 70, "bar.warp.sync -1;", space="none")
BLAMED = replace(samples.RACE, accesses=(*samples.RACE.accesses, BARRIER))


def report(*findings: Finding) -> Report:
    return embed(assemble(device="cpu", kernels=samples.violations().kernels, findings=findings), of_texts({"reduce.cu": samples.REDUCE}))


def test_the_text_shows_it_as_the_third_without_a_thread() -> None:
    third = text.render(report(BLAMED), details=True).split("(3) culprit  bar.warp.sync")[1].split("missing:")[0]
    assert "--> reduce.cu:7:5 (PTX line 70)" in third
    assert "(3) culprit" in third
    assert "       = " not in third
    assert "memory" not in third


def test_the_page_has_a_third_side() -> None:
    page = html.render(report(BLAMED))
    assert page.count('<section class="side n') == 3
    assert '<span class="mark">(3)</span> culprit' in page


def test_json_reads_back() -> None:
    stored = report(BLAMED)
    assert loads(stored.to_json()) == stored
    assert [access["role"] for access in json.loads(stored.to_json())["findings"][0]["accesses"]][2:] == ["culprit"]


def test_sarif_keeps_two_locations_and_two_threads_and_links_to_the_third() -> None:
    (result,) = json.loads(sarif.render(report(BLAMED)))["runs"][0]["results"]
    assert len(result["locations"]) == 2
    assert len(result["codeFlows"][0]["threadFlows"]) == 2
    assert [place["id"] for place in result["relatedLocations"]] == [1, 2, 3]
    assert result["message"]["text"].endswith(" See [(1)](1), [(2)](2) and [(3)](3).")
    (plain,) = json.loads(sarif.render(report(samples.RACE)))["runs"][0]["results"]
    assert plain["partialFingerprints"] == result["partialFingerprints"]


def test_findings_that_differ_in_the_culprit_are_one() -> None:
    (merged,) = merge_findings([BLAMED, samples.RACE])
    assert (merged.accesses, merged.count) == (BLAMED.accesses, 2 * samples.RACE.count)


def test_suppressions_look_at_the_pair_only() -> None:
    elsewhere = replace(BLAMED, accesses=(*samples.RACE.accesses, replace(BARRIER, file="barrier.cuh")))
    named = suppress(report(elsewhere), [Rule("data-race", "x", "pyproject.toml", source="barrier.cuh")])
    assert named.verdict == "violations"
    assert "barrier.cuh" not in to_toml(report(elsewhere), "/")
