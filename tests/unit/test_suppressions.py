"""Suppressions: which findings a rule or a comment covers, what they must say, and what becomes of the report."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import report_samples as samples

from consan import suppressions
from consan._errors import UsageError
from consan.reports import render
from consan.reports.catalogue.catalogue import KINDS
from consan.reports.formats import json_format
from consan.reports.model import Frame, Report, Suppressed
from consan.reports.source.sources import of_texts
from consan.reports.verdict.combination import combine
from consan.reports.verdict.conclusion import exit_status, with_gaps
from consan.reports.verdict.coverage import by_kernel
from consan.reports.verdict.suppression import Lines, Rule, SuppressionError, comment_rules, make_rule, suppress, to_toml
from consan.suppressions import chosen, unused

ALL = Rule("data-race", "seen to", "here")


def racy(file: str = "reduce.cu", line: int = 5) -> Report:
    """One error of kind data-race at two lines of a file, and a gap if asked for."""
    first, second = samples.RACE.accesses
    accesses = (replace(first, file=file, line=line), replace(second, file=file, line=line + 3, inlined=()))
    return replace(samples.violations(), findings=(replace(samples.RACE, accesses=accesses),), sources={}, exit=0)


@pytest.mark.parametrize(
    ("rule", "covered"),
    [
        (ALL, True),
        (replace(ALL, kind="missing-wait"), False),
        (replace(ALL, kernel="redu*"), True),
        (replace(ALL, kernel="*uc"), False),
        (replace(ALL, source="reduce.cu"), True),
        (replace(ALL, source="src/reduce.cu"), True),
        (replace(ALL, source="/home/me/src/*.cu"), True),
        (replace(ALL, source="educe.cu"), False),
        (replace(ALL, source="*.ptx"), False),
        (replace(ALL, source="main.cu"), True),
    ],
)
def test_what_a_rule_covers(rule: Rule, covered: bool) -> None:
    first, second = racy("/home/me/src/reduce.cu").findings[0].accesses
    inlined = replace(second, inlined=(Frame("sum", "/home/me/src/main.cu", 3, 1),))
    assert rule.covers(replace(samples.RACE, accesses=(first, inlined)), Lines()) == covered


def test_a_suppressed_finding_stays_and_does_not_count() -> None:
    before = racy()
    after = suppress(before, [ALL])
    (finding,) = after.findings
    assert finding.suppressed == Suppressed("seen to", "here")
    assert (before.verdict, after.verdict, after.active) == ("violations", "clean", ())
    assert (exit_status(before, strict=True), exit_status(after, strict=True)) == (66, 0)
    after.raise_if_racy()
    assert suppress(replace(before, incomplete=("a gap",)), [ALL]).verdict == "incomplete"
    text = " ".join(render(after).split())
    assert "found: nothing suppressed: data-race in kernel reduce, reduce.cu:5 and reduce.cu:8: seen to (here)" in text


def test_what_counts_comes_first_and_a_suppressed_warning_counts_neither() -> None:
    after = suppress(samples.violations(), [Rule("missing-wait", "seen to", "here")])
    assert [bool(finding.suppressed) for finding in after.findings] == [False, False, False, True]
    assert "1/2 ==" in render(after)  # one of the three is a note
    quiet = suppress(samples.violations(), [ALL, Rule("missing-wait", "r", "here"), Rule("uninitialized-read", "r", "here")])
    assert (quiet.verdict, quiet.count("warning"), exit_status(replace(quiet, exit=0), strict=True)) == ("clean", 0, 0)


def test_the_json_keeps_it() -> None:
    after = suppress(racy(), [replace(ALL, in_source=True)])
    data = json_format.to_json(after)
    assert data["findings"][0]["suppressed"] == {"reason": "seen to", "by": "here", "in_source": True}
    assert json_format.loads(json_format.dumps(after)) == after


@pytest.mark.parametrize(
    ("kind", "reason", "message"),
    [
        ("data-rac", "r", "here: there is no kind 'data-rac'; did you mean data-race?"),
        ("zzz", "r", "here: there is no kind 'zzz'; the kinds are data-race, "),
        ("data-race", " ", "here: suppressing data-race needs a reason"),
    ],
)
def test_a_rule_needs_a_kind_and_a_reason(kind: str, reason: str, message: str) -> None:
    with pytest.raises(SuppressionError) as caught:
        make_rule(kind, reason, "here")
    assert message in str(caught.value)


# --- comments ----------------------------------------------------------------------------------------------------------


def rules_at(text: str, line: int) -> list[tuple[str, str, str]]:
    return [(rule.kind, rule.reason, rule.by) for rule in comment_rules("k.cu", line, Lines(of_texts({"k.cu": text})))]


ON_THE_LINE = "tile[t] = 1;  // consan: allow(data-race) all store 1"
ABOVE = "// consan: allow(data-race, missing-wait): all store 1\n// and more\ntile[t] = 1;\n\nout[t] = 2;"


@pytest.mark.parametrize(
    ("text", "line", "expected"),
    [
        (ON_THE_LINE, 1, [("data-race", "all store 1", "k.cu:1")]),
        (ON_THE_LINE + "\nx = 1;", 2, []),
        (ABOVE, 3, [("data-race", "all store 1", "k.cu:1"), ("missing-wait", "all store 1", "k.cu:1")]),
        (ABOVE, 5, []),
        ("x = y  # consan: allow(deadlock) it ends", 1, [("deadlock", "it ends", "k.cu:1")]),
        ("/* consan: allow(deadlock) it ends */\nwait();", 2, [("deadlock", "it ends", "k.cu:1")]),
        ("f(); // the consan: allow(deadlock) is prose", 1, []),
        ("", 7, []),
    ],
)
def test_comments(text: str, line: int, expected: list[tuple[str, str, str]]) -> None:
    assert rules_at(text, line) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("f(); // consan: allow(data-race)", "k.cu:1: suppressing data-race needs a reason"),
        ("f(); // consan: allow(races) because", "k.cu:1: there is no kind 'races'; did you mean data-race?"),
        ("f(); // consan: allow data-race because", "k.cu:1: expected // consan: allow(KIND) REASON"),
    ],
)
def test_comments_that_are_wrong(text: str, message: str) -> None:
    with pytest.raises(SuppressionError) as caught:
        rules_at(text, 1)
    assert str(caught.value).startswith(message)


def test_a_comment_at_either_line_covers_the_finding_and_one_elsewhere_does_not(tmp_path: Path) -> None:
    file = tmp_path / "k.cu"
    for commented, verdict in ((5, "clean"), (8, "clean"), (6, "violations")):
        lines = [f"line {number};" for number in range(1, 12)]
        lines[commented - 1] += "  // consan: allow(data-race) harmless"
        file.write_text("\n".join(lines))
        after = suppressions.finish(racy(str(file)))
        assert after.verdict == verdict
        if verdict == "clean":
            assert after.findings[0].suppressed == Suppressed("harmless", f"{file}:{commented}", in_source=True)


def test_a_comment_at_an_inlined_call_covers_the_finding(tmp_path: Path) -> None:
    file = tmp_path / "main.cu"
    file.write_text("a();\nb();  // consan: allow(data-race) b is called by one thread\n")
    report = racy()
    first, second = report.findings[0].accesses
    called = replace(second, inlined=(Frame("b", str(file), 2, 1),))
    assert suppressions.finish(replace(report, findings=(replace(samples.RACE, accesses=(first, called)),))).verdict == "clean"


def test_a_wrong_comment_is_the_users_mistake(tmp_path: Path) -> None:
    file = tmp_path / "k.cu"
    file.write_text("\n" * 4 + "x;  // consan: allow(data-race)\n")
    with pytest.raises(UsageError, match="needs a reason"):
        suppressions.finish(racy(str(file)))


def test_unused_rules_are_named(tmp_path: Path) -> None:
    file = tmp_path / "k.cu"
    file.write_text("a;  // consan: allow(data-race) used\nb;  // consan: allow(deadlock, data-race) not used\nc;\n")
    rules = [ALL, Rule("deadlock", "r", "pyproject.toml, suppression 2", kernel="gemm*"), *suppressions.comments_at([(str(file), 2)])]
    after = suppress(racy(), rules)
    assert suppressions.unused(rules, after) == [
        "pyproject.toml, suppression 2: deadlock, kernel 'gemm*': this suppression covered no finding",
        f"{file}:2: deadlock: this suppression covered no finding",
        f"{file}:2: data-race: this suppression covered no finding",
    ]


# --- written for pyproject.toml ------------------------------------------------------------------------------------------


def test_toml_for_the_findings_that_count() -> None:
    text = to_toml(racy("/work/src/reduce.cu"), "/work")
    assert text == (
        '[[tool.consan.suppressions]]\nkind = "data-race"\nkernel = "reduce"\nsource = "src/reduce.cu"\n'
        'reason = ""  # say why: a suppression without a reason is an error\n'
    )
    assert to_toml(suppress(racy(), [ALL]), "/work") == ""


def test_names_that_are_no_globs() -> None:
    report = racy('a[1]"*.cu')
    report = replace(report, findings=(replace(report.findings[0], kernel="k?"),))
    text = to_toml(report, "/")
    assert 'source = "a[[]1]\\"[*].cu"' in text
    assert Rule("data-race", "r", "here", "k[?]", 'a[[]1]"[*].cu').covers(report.findings[0], Lines())
    assert not Rule("data-race", "r", "here", "k[?]").covers(samples.RACE, Lines())


# --- several reports as one ----------------------------------------------------------------------------------------------


def test_reports_are_combined() -> None:
    first, second = replace(racy(), notes=("a",)), replace(racy(), notes=("a", "b"), incomplete=("a gap",), evicted=2)
    both = combine([first, second])
    (finding,) = both.findings
    assert (both.verdict, both.notes, both.incomplete, both.evicted) == ("violations", ("a", "b"), ("a gap",), 2)
    assert finding.count == 2 * samples.RACE.count
    assert [(kernel.name, kernel.launches) for kernel in both.kernels] == [(k.name, 2 * k.launches) for k in first.kernels]


def test_a_suppressed_finding_stays_apart_from_one_that_counts() -> None:
    both = combine([racy(), suppress(racy(), [ALL])])
    assert [bool(finding.suppressed) for finding in both.findings] == [False, True]
    assert both.verdict == "violations"


def test_kinds_that_the_user_excludes_are_dropped_and_said() -> None:
    report = suppress(samples.violations(), chosen("data-race", None))
    left = [finding.kind for finding in samples.violations().findings if finding.kind != "data-race"]
    assert left
    assert [finding.kind for finding in report.findings] == left
    assert "data-race: excluded by the user" in report.not_checked
    assert {areas["data-race"] for areas in by_kernel(report).values()} == {"excluded by the user"}
    assert unused(chosen("data-race", None), report) == []


def test_a_report_of_which_all_kinds_are_excluded_is_clean() -> None:
    race = with_gaps(samples.clean(), (), findings=(samples.RACE,))
    assert race.verdict == "violations"
    assert suppress(race, chosen(None, "missing-wait")).verdict == "clean"
    assert suppress(race, chosen(None, "scope, data-race")).verdict == "violations"


def test_an_end_of_a_launch_cannot_be_excluded() -> None:
    kept = {"deadlock", "fault", "data-race"}
    assert {rule.kind for rule in chosen(None, "data-race")} == KINDS.keys() - kept
    for text, message in (("deadlock", "--skip: deadlock cannot be excluded"), ("data-rase", "did you mean data-race?")):
        with pytest.raises(UsageError, match=message):
            chosen(text, None)
    with pytest.raises(UsageError, match="--checks: there is no kind 'race'"):
        chosen(None, "race")
