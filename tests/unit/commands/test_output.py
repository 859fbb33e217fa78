"""`-o FILE` and `--format`, alike for all commands: where they are, what is refused, and what is printed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import report_samples as samples

from consan import options
from consan.__main__ import main
from consan.commands import COMMANDS
from consan.reports.formats.json_format import dumps

NAMES = [entry.name for entry in COMMANDS]
LAUNCH = ("k.ptx", "--grid", "1", "--block", "32", "--device", "cpu")
# The least that each command needs, in a folder without any of these files: a wrong output is refused before they are read.
WORDS = {
    "run": ("-c", "open('ran', 'w')"),
    **dict.fromkeys(("check", "advise", "stress"), LAUNCH),
    **dict.fromkeys(("prove", "audit", "report", "reduce", "replay", "ptx"), ("k.ptx",)),
    **dict.fromkeys(("explain", "doctor", "cache"), ()),
}
DOCUMENT = ["text", "json"]
WRITES = {
    **{name: list(options.FORMATS) for name in ("run", "check", "report", "replay")},
    **dict.fromkeys(("prove", "audit", "stress"), DOCUMENT),
    **{name: ["text"] for name in ("doctor", "cache", "ptx")},
    "advise": [*DOCUMENT, "html"],
    "explain": ["text", "markdown"],
    "reduce": ["json"],
}
WRONG = {"stress": ".html", "reduce": ".txt", "explain": ".json", "advise": ".sarif"}


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def _refused(name: str, *words: str, capsys: pytest.CaptureFixture[str]) -> str:
    """What a command says to a wrong output. Nothing has run."""
    before = WORDS[name] if name not in ("run", "stress") else ()
    assert main([name, *before, *words, *(WORDS[name] if not before else ())]) == 2
    assert not Path("ran").exists()
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    return error


def test_each_command_is_named_here() -> None:
    assert sorted(WORDS) == sorted(WRITES) == sorted(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_each_command_has_output_and_only_formats_that_it_writes(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main([name, "--help"])
    shown = capsys.readouterr().out
    assert "\n  -o FILE, --output FILE\n" in shown
    formats = ["text", "json"] if name == "stress" else WRITES[name]
    assert (f"  --format {'|'.join(formats)}" in shown) == (len(formats) > 1)
    assert "--format" in shown or len(formats) == 1
    assert "--json" not in shown


@pytest.mark.parametrize("name", NAMES)
def test_a_file_that_cannot_be_written_is_refused_before_anything_runs(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert _refused(name, "-o", "no/x", capsys=capsys) == "consan: error: cannot write no/x: there is no folder no\n"
    assert _refused(name, "-o", ".", capsys=capsys) == "consan: error: cannot write .: it is a folder\n"


@pytest.mark.parametrize("name", [name for name in NAMES if WRITES[name] != list(options.FORMATS)])
def test_a_suffix_of_a_format_that_a_command_does_not_write_is_refused(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    error = _refused(name, "-o", f"x{WRONG.get(name, '.html')}", capsys=capsys)
    assert error.startswith(f"consan: error: x{WRONG.get(name, '.html')}: consan {name}")
    assert " writes " in error


@pytest.mark.parametrize("name", [name for name in NAMES if len(WRITES[name]) > 1])
def test_a_format_that_there_is_not_is_refused_by_name(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    error = _refused(name, "--format", "jsonn", capsys=capsys)
    assert error.startswith("consan: error: --format: ")
    assert "jsonn" in error


@pytest.mark.parametrize("name", [name for name in NAMES if WRITES[name] == list(options.FORMATS)])
def test_an_unknown_suffix_is_refused(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert "x.htmx: no format has the suffix '.htmx'" in _refused(name, "-o", "x.htmx", capsys=capsys)


@pytest.mark.parametrize("name", ["explain", "doctor", "cache"])
def test_a_page_is_the_same_in_a_file(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    status = main([name])
    printed = capsys.readouterr().out
    assert main([name, "-o", "page"]) == status
    assert capsys.readouterr().out == "written: page\n"
    assert [line for line in Path("page").read_text().splitlines() if "size" not in line] == [
        line for line in printed.splitlines() if "size" not in line
    ]


def test_a_suffix_chooses_the_format(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "data-race", "-o", "page.md"]) == 0
    assert Path("page.md").read_text().startswith("## data-race")
    Path("run.json").write_text(dumps(samples.violations()))
    assert main(["report", "run.json", "-o", "again.json"]) == 0
    assert json.loads(Path("again.json").read_text())["schema"] == "consan.report/1"


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("run", "check", "report")])
def test_settings_of_reports_are_not_for_other_commands(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """An answer of another sort would overwrite the run that CONSAN_OUTPUT names."""
    monkeypatch.setenv("CONSAN_OUTPUT", "no/run.json")
    monkeypatch.setenv("CONSAN_FORMAT", "sarif")
    main([name, *WORDS[name]])
    shown = capsys.readouterr().err
    assert "no/run.json" not in shown
    assert "sarif" not in shown
