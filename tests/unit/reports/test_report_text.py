"""The terminal report: goldens for the plain form, and what a terminal adds."""

from __future__ import annotations

import io
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import golden
import pytest
import report_samples as samples

from consan.reports import FORMATS, FormatError, render
from consan.reports.counts import seen
from consan.reports.formats import levels, look, phrases, text
from consan.reports.model import Finding, Frame, Report, Schedules
from consan.reports.racing_value import Outcomes
from consan.reports.verdict.speaking import causes as causes_of
from consan.reports.verdict.speaking.causes import causes

NAMES = ("clean", "violations", "incomplete", "deadlock", "operations")
UNUSED_MESSAGE = "the loaded value is not used"
REPORTS = {name: getattr(samples, name)() for name in NAMES}


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def __init__(self, encoding: str = "utf-8") -> None:
        super().__init__()
        self._encoding = encoding

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._encoding

    def isatty(self) -> bool:
        return True


@pytest.fixture
def colours(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "COLORTERM"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "110")


@pytest.mark.parametrize("name", REPORTS)
def test_plain(name: str) -> None:
    golden.check(f"report_{name}.txt", text.render(REPORTS[name], stored=f"{name}.json"))


@pytest.mark.parametrize("name", ["violations", "operations"])
def test_plain_in_full(name: str) -> None:
    golden.check(f"report_{name}_details.txt", text.render(REPORTS[name], stored=f"{name}.json", details=True))


@pytest.mark.parametrize("report", REPORTS.values(), ids=REPORTS)
def test_plain_is_ascii_without_colour_and_never_wider_than_the_page(report: Report) -> None:
    out = io.StringIO()
    text.show(report, out)
    assert out.getvalue() == text.render(report) == render(report, "text")
    assert out.getvalue().isascii()
    assert "\x1b" not in out.getvalue()
    body = out.getvalue().split("  reproduce:")[0]  # commands are never broken
    assert max(map(len, body.splitlines())) <= text.PLAIN_WIDTH


def test_commands_are_never_broken() -> None:
    command = ("consan", "run", *[f"argument-{number}" for number in range(30)])
    lines = text.render(replace(samples.clean(), command=command), stored="x.json").splitlines()
    assert sum(line.endswith(" ".join(command)) for line in lines) == 1
    assert lines[-1].endswith("consan report x.json --details")


def test_plain_does_not_depend_on_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = text.render(samples.violations())
    for name, value in (("COLUMNS", "40"), ("FORCE_COLOR", "1"), ("TERM", "xterm")):
        monkeypatch.setenv(name, value)
    assert text.render(samples.violations()) == expected


@pytest.mark.usefixtures("colours")
def test_a_terminal_gets_colour_and_box_characters() -> None:
    out = Terminal()
    text.show(samples.violations(), out)
    assert "\x1b[1;31m" in out.getvalue()
    assert "\u2501" in out.getvalue()
    plain = re.sub(r"\x1b\[[0-9;]*m", "", out.getvalue())
    assert max(map(len, plain.splitlines())) <= 110


@pytest.mark.usefixtures("colours")
def test_a_terminal_that_speaks_no_unicode_gets_ascii() -> None:
    out = Terminal("ascii")
    text.show(samples.violations(), out)
    assert out.getvalue().isascii()
    assert "\x1b[" in out.getvalue()


@pytest.mark.usefixtures("colours")
def test_no_color_is_respected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    out = Terminal()
    text.show(samples.violations(), out)
    assert not re.search(r"\x1b\[[0-9;]*3[0-9]m", out.getvalue())


def test_foreign_characters_keep_the_caret_in_place() -> None:
    report = samples.violations()
    lines = {**report.sources["reduce.cu"], 5: "/* \u00e4\u00f6 */ tile[t] = 1;"}
    finding = replace(report.findings[0], accesses=(replace(samples.WRITE, column=10),))
    shown = text.render(replace(report, findings=(finding,), sources={"reduce.cu": lines}), details=True).splitlines()
    (index,) = [number for number, line in enumerate(shown) if "/* ?? */" in line]
    assert shown[index].index("tile") == shown[index + 1].index("^^^^")


@pytest.mark.parametrize(("encoding", "word"), [("utf-8", "gr\u00f6\u00dfe"), ("latin-1", "gr\u00f6\u00dfe"), ("ascii", "gr??e")])
def test_a_pipe_has_the_characters_that_its_encoding_has(encoding: str, word: str) -> None:
    report = samples.violations()
    lines = {**report.sources["reduce.cu"], 5: "tile[t] = 1;  // gr\u00f6\u00dfe"}
    out = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    text.show(replace(report, sources={"reduce.cu": lines}), out)
    out.seek(0)
    assert f"tile[t] = 1;  // {word}" in out.read()


def test_a_long_source_line_is_cut_not_wrapped() -> None:
    report = samples.violations()
    lines = {**report.sources["reduce.cu"], 5: "    tile[t] = " + "x" * 300 + ";"}
    shown = text.render(replace(report, sources={"reduce.cu": lines})).splitlines()
    assert sum("xxxx" in line for line in shown) == 2  # once in each finding that shows line 5
    assert all(line.endswith("xxx...") and len(line) == text.PLAIN_WIDTH for line in shown if "xxxx" in line)
    assert max(map(len, shown)) <= text.PLAIN_WIDTH


def test_names_paths_and_sentences_are_never_cut() -> None:
    report = samples.violations()
    name, file = "k" * 150, "/far/" + "away/" * 30 + "k.cu"
    finding = replace(report.findings[0], kernel=name, message="word " * 60, accesses=(replace(samples.WRITE, file=file),))
    shown = text.render(replace(report, findings=(finding,)))
    joined = "".join(line.strip() for line in shown.splitlines())
    assert name in joined
    assert f"{file}:5:5" in joined
    assert shown.lower().count("word") == 60


LONG = "/home/user/" + "folder-with-a-long-name/" * 6 + "k.cu"


@pytest.mark.usefixtures("colours")
@pytest.mark.parametrize("details", [False, True])
@pytest.mark.parametrize("stream", [Terminal, io.StringIO], ids=["terminal", "pipe"])
def test_a_place_is_never_broken_across_lines(stream: type[io.StringIO], details: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Terminals and editors follow `file:line:column` only where it is whole: in places, chains, advice and waiters."""
    monkeypatch.setenv("COLUMNS", "70")
    out = stream()
    read = replace(samples.READ, file=LONG, inlined=(Frame("block_sum", LONG, 11, 9),))
    race = replace(samples.RACE, accesses=(replace(samples.WRITE, file=LONG), read), message=f"met {LONG}:21:3", fix=f"wait at {LONG}:31:7")
    waiting = replace(race, kind="deadlock", accesses=(), waiters=({"warp": 0, "file": LONG, "line": 41, "column": 5},))
    text.show(
        Report(verdict="violations", device="cpu", findings=(race, waiting), incomplete=(f"not at {LONG}:51:2",)), out, details=details
    )
    lines = re.sub(r"\x1b\[[0-9;]*m", "", out.getvalue()).splitlines()
    for place in ("5:5", "8:24", "21:3", "31:7", "41:5", "51:2", *(["11:9"] if details else [])):
        assert any(f"{LONG}:{place}" in line for line in lines), place


def _racy_in(kernel: str, **changes: Any) -> Finding:
    return replace(samples.RACE, kernel=kernel, **changes)


def test_findings_of_one_cause_are_shown_once_with_their_kernels_and_tests() -> None:
    """A template's instances share their lines; a finding of another kind, or at another line, is another cause."""
    same = [_racy_in(f"_Z6reduceIfLi{n}EEvPf", count=n, tests=(f"t.py::test_it[{n}]",)) for n in range(12, 0, -1)]
    other = replace(samples.RACE, accesses=(replace(samples.WRITE, line=6), samples.READ))
    report = Report(verdict="violations", device="cpu", findings=(*same, other))
    shown = text.render(report)
    assert re.findall(r" (\d/\d) ==$", shown, re.MULTILINE) == ["1/2", "2/2"]
    assert "in kernel reduce<float, 12> and 11 more kernels =" in shown
    assert "also in:  kernel reduce<float, 11>, 11 times in 64 CTAs\n" in shown
    assert "and 8 more; the JSON report lists them all" in shown
    assert "and 3 more; the JSON report lists them all" in text.render(report, details=True)
    assert "tests:    t.py::test_it[12]\n" in shown
    assert re.search(r"found: +13 errors, which have 2 causes\n", shown)
    assert len(json.loads(render(report, "json"))["findings"]) == 13


@pytest.mark.parametrize(
    "others",
    [
        {"kind": "missing-wait"},
        {"severity": "warning"},
        {"accesses": (samples.READ, replace(samples.READ, role="write"))},
        {"accesses": tuple(replace(access, line=0) for access in samples.RACE.accesses)},
    ],
    ids=["kind", "severity", "place", "no lines"],
)
def test_what_is_another_cause(others: dict[str, Any]) -> None:
    findings = [_racy_in("a", **{k: v for k, v in others.items() if k == "accesses" and not v[0].line}), _racy_in("b", **others)]
    assert [cause.others for cause in causes(findings)] == [(), ()]


@pytest.mark.parametrize(
    ("color", "environ", "out", "colored"),
    [
        ("auto", {}, Terminal(), True),
        ("auto", {}, io.StringIO(), False),
        ("auto", {"NO_COLOR": "1"}, Terminal(), False),
        ("auto", {"FORCE_COLOR": "1"}, io.StringIO(), True),
        ("auto", {"FORCE_COLOR": ""}, io.StringIO(), False),
        ("auto", {"FORCE_COLOR": "1", "NO_COLOR": "1"}, io.StringIO(), False),
        ("auto", {"TERM": "dumb"}, Terminal(), False),
        ("always", {"NO_COLOR": "1"}, io.StringIO(), True),
        ("always", {"NO_COLOR": "1"}, Terminal(), True),
        ("always", {"TERM": "dumb"}, Terminal(), True),
        ("never", {"FORCE_COLOR": "1"}, Terminal(), False),
    ],
)
def test_colour(
    color: str, environ: dict[str, str], out: io.StringIO, colored: bool, monkeypatch: pytest.MonkeyPatch, colours: None
) -> None:
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    out.seek(0)
    out.truncate()
    look.use(look.Look(color))
    try:
        text.show(samples.violations(), out)
    finally:
        look.use(look.Look())
    assert bool(re.search(r"\x1b\[[0-9;]*3[0-9]m", out.getvalue())) == colored
    plain = re.sub(r"\x1b\[[0-9;]*m", "", out.getvalue())
    if not out.isatty():  # colour changes nothing else
        assert "".join(line.rstrip() + "\n" for line in plain.splitlines()) == text.render(samples.violations())


def test_every_finding_shows_both_places_and_what_to_do() -> None:
    shown = text.render(samples.violations())
    for part in ("error[data-race]: RAW in kernel reduce", "(1) write", "(2) read", "missing:", "fix:", "1,234 times in 64 CTAs"):
        assert part in shown
    assert "a wait that covers group 2" in shown
    assert "consan explain missing-wait" in shown


def test_unknown_formats_say_which_there_are() -> None:
    assert set(FORMATS) == {"text", "short", "json", "sarif", "html"}
    with pytest.raises(FormatError, match="'yaml' is unknown; choose from text, short, json, sarif, html"):
        render(samples.clean(), "yaml")


def test_the_comparer_accepts_the_same_and_fails_on_a_difference(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BLESS", raising=False)
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    golden.check("a.txt", "one\ntwo\n", folder=tmp_path, kept=tmp_path / "actual")
    with pytest.raises(AssertionError, match=r"-two\n\+three"):
        golden.check("a.txt", "one\nthree\n", folder=tmp_path, kept=tmp_path / "actual")
    assert (tmp_path / "actual" / "a.txt").read_text() == "one\nthree\n"
    monkeypatch.setenv("BLESS", "1")
    golden.check("a.txt", "one\nthree\n", folder=tmp_path, kept=tmp_path / "actual")
    assert (tmp_path / "a.txt").read_text() == "one\nthree\n"


def test_a_mark_ends_with_the_line_that_was_cut(tmp_path: Path) -> None:
    source = tmp_path / "long.cu"
    source.write_text("    x = " + "a + " * 60 + "b;\n")
    access = replace(samples.RACE.accesses[0], file=str(source), line=1, column=5)
    report = replace(samples.violations(), findings=(replace(samples.RACE, accesses=(access,)),))
    (marked,) = [line for line in text.render(report, details=True).splitlines() if "^^" in line]
    assert marked.endswith(f"^ (1) {access.role}")
    assert len(marked) <= 100


def _rows(shown: str, label: str) -> list[str]:
    """The lines of a label, with those that follow it."""
    found = re.search(rf"^  {label}: .*\n(?:   .*\n)*", shown, re.MULTILINE)
    return [] if found is None else [line.split(":", 1)[-1].strip() for line in found[0].splitlines()]


def test_a_report_fills_a_screen_and_says_how_to_see_all() -> None:
    one = replace(REPORTS["violations"], findings=REPORTS["violations"].findings[:1])
    two = replace(REPORTS["violations"], findings=REPORTS["violations"].findings[:2])
    assert text.render(one).count("\n") <= 28
    assert text.render(two).count("\n") <= 40
    assert "consan report x.json --details\n" in text.render(one, stored="x.json")
    assert "  --details shows the lines around each place, warps and lanes, and what was checked\n" in text.render(one)
    assert "  --consan-details shows " in text.render(replace(one, command=("pytest", "--consan")))
    assert "  print(consan.reports.render(report, details=True))\n" in text.render(replace(one, command=()))
    assert "--details" not in text.render(one, stored="x.json", details=True)


@pytest.mark.parametrize("report", REPORTS.values(), ids=REPORTS)
def test_a_screen_has_all_that_a_reader_must_know(report: Report) -> None:
    """What was not checked, and every word of a finding, stand in both; no line is in the short report only but the compact places."""
    screen, full = text.render(report, notes=True), text.render(report, notes=True, details=True)
    for label in ("found", "not checked", "incomplete", "not instrumented", "note", "status", "program", "suppressed"):
        assert _rows(screen, label) == _rows(full, label), label
    for finding in report.findings:
        flat = " ".join(screen.split())
        assert all(" ".join(part.split()) in flat for part in (finding.missing, finding.fix) if part)
        assert all(f"--> {text.accesses.where(access, levels.SCREEN)}" in flat for access in finding.accesses)


def test_each_part_has_a_level() -> None:
    said = "".join(Path(str(module.__file__)).read_text() for module in (phrases, causes_of))
    labels = re.findall(r'(?:yield |_listed\(|yield from \(\()"([a-z ]+)"', said)
    assert set(labels) == levels.PARTS.keys() - {"why it holds"}


def test_the_output_that_differs_is_on_a_screen() -> None:
    finding = replace(REPORTS["violations"].findings[0], outcomes=Outcomes("y[37]", ("4.0", "2.0"), 2))
    assert "y[37] = 4.0 or 2.0, by the order of (1) and (2)" in text.render(replace(REPORTS["violations"], findings=(finding,)))


def test_whether_the_result_may_depend_on_the_schedule_is_on_a_screen() -> None:
    def of(holds: bool) -> Report:
        kernel = replace(samples.KERNEL, schedules=Schedules(holds, "" if holds else "a thread observes others"))
        return replace(REPORTS["clean"], kernels=(kernel,))

    assert "holds for every schedule\n" in text.render(of(True))
    assert "holds for every schedule: no order, branch or address" in text.render(of(True), details=True)
    assert "may depend on it: a thread observes others" in text.render(of(False))


def test_the_call_that_was_inlined_is_named_where_it_is_another_line() -> None:
    assert text.accesses.where(samples.READ, levels.SCREEN) == "reduce.cu:8:24 (called at reduce.cu:11)"
    assert text.accesses.where(replace(samples.READ, line=11), levels.SCREEN) == "reduce.cu:11:24"
    assert "not known" in text.accesses.where(replace(samples.READ, line=0, ptx_line=0))


def test_notes_are_counted_and_printed_on_request() -> None:
    report = REPORTS["violations"]
    plain, full = text.render(report), text.render(report, notes=True)
    assert " 2 errors, 1 warning, 1 note (--notes shows it)\n" in plain
    assert "note[uninitialized-read]" not in plain
    assert "consan explain uninitialized-read" not in plain
    assert " 3/3 ==" in plain
    assert " 2 errors, 1 warning, 1 note\n" in full
    assert "note[uninitialized-read]" in full
    assert " 4/4 ==" in full
    assert render(report, notes=True) == full
    assert "--notes" not in text.render(REPORTS["clean"])


def test_a_clean_report_says_that_its_warnings_do_not_count() -> None:
    (warning,) = [finding for finding in REPORTS["violations"].findings if finding.severity == "warning"]
    assert " 1 warning, the verdict counts errors only\n" in text.render(replace(REPORTS["clean"], findings=(warning,)))
    assert "counts errors only" not in text.render(REPORTS["violations"])


@pytest.mark.parametrize(("rank", "where"), [(None, "in 4 CTAs"), (1, "in 4 clusters")])
def test_a_kernel_with_clusters_is_counted_in_clusters(rank: int | None, where: str) -> None:
    access = replace(samples.RACE.accesses[0], cluster_rank=rank)
    assert seen(replace(samples.RACE, accesses=(access,), ctas=4)).endswith(where)


@pytest.mark.parametrize("form", ["json", "sarif", "html"])
def test_other_formats_always_have_the_notes(form: str) -> None:
    report = REPORTS["violations"]
    assert render(report, form) == render(report, form, notes=True)
    assert UNUSED_MESSAGE in render(report, form)


def test_under_pytest_the_option_has_its_name_there() -> None:
    assert "(--consan-notes shows it)" in text.render(replace(REPORTS["violations"], command=("pytest", "--consan")))
