"""`consan run`: the program sees what python would give it, and the run ends with the right status, file and report."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import cli_fakes
import pytest
import report_samples as samples

from consan.__main__ import main
from consan.reports.formats.json_format import loads
from consan.reports.model import Report
from consan.reports.verdict.conclusion import with_gaps

Run = Callable[..., int]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def consan(monkeypatch: pytest.MonkeyPatch, *words: str, result: Callable[[], Report] = samples.clean) -> int:
    with cli_fakes.fake_session(monkeypatch, result):
        return main(["run", *words])


def stored(folder: Path, pattern: str = ".consan/*.json") -> Report:
    (file,) = folder.glob(pattern)
    return loads(file.read_text())


PROBE = """
import sys, json, pathlib
pathlib.Path("seen").write_text(json.dumps({
    "argv": sys.argv, "path": sys.path[0], "name": __name__, "file": globals().get("__file__"),
    "package": globals().get("__package__"), "main": sys.modules["__main__"].__dict__ is globals(),
}))
"""


def seen_by_python(here: Path, *words: str) -> object:
    subprocess.run([sys.executable, *words], check=True, cwd=here)
    return json.loads((here / "seen").read_text())


@pytest.mark.parametrize(
    "words",
    [
        ["script.py", "a", "--strict", "-o", "x"],
        ["sub/script.py"],
        ["-c", PROBE, "a", "-m"],
        ["-m", "module", "--b", "c"],
        ["-m", "package", "d"],
        ["-m", "package.inner"],
        ["folder", "e"],
    ],
    ids=lambda words: " ".join(words)[:20],
)
def test_the_program_sees_what_python_gives_it(words: list[str], here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("script.py", "sub/script.py", "module.py", "package/__main__.py", "package/inner.py", "folder/__main__.py"):
        (here / name).parent.mkdir(exist_ok=True)
        (here / name).write_text(PROBE)
    (here / "package/__init__.py").write_text("")
    expected = seen_by_python(here, *words)
    for name in ("package", "package.__main__", "package.inner"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    assert consan(monkeypatch, *words) == 0
    seen = json.loads((here / "seen").read_text())
    assert isinstance(expected, dict)
    assert seen == expected


def test_the_state_of_the_interpreter_is_restored(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "p.py").write_text("import sys\nsys.path.insert(0, 'x')\nsys.argv.append('y')\n")
    before = sys.argv[:], sys.path[:], sys.modules["__main__"]
    assert consan(monkeypatch, "p.py") == 0
    assert (sys.argv, sys.path, sys.modules["__main__"]) == before


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("pass", 0),
        ("raise SystemExit", 0),
        ("raise SystemExit(0)", 0),
        ("import sys; sys.exit(5)", 5),
        ("raise SystemExit(256 + 7)", 7),
        ("raise SystemExit(-1)", 255),
        ("raise SystemExit('gone')", 1),
        ("1 / 0", 1),
        ("raise KeyboardInterrupt", 130),
    ],
)
def test_the_status_of_the_program_is_kept(code: str, status: int, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "p.py").write_text(code)
    assert consan(monkeypatch, "-o", "out.json", "p.py") == status
    found = stored(here, "out.json")
    assert (found.exit, found.status) == (status, status)


def test_violations_win_over_the_status_of_the_program(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "p.py").write_text("raise SystemExit(5)")
    assert consan(monkeypatch, "p.py", result=samples.violations) == 66
    assert (stored(here).exit, stored(here).status) == (5, 66)
    assert stored(here).verdict == "violations"


@pytest.mark.parametrize(("own", "flags", "status"), [(5, [], 5), (5, ["--strict"], 5), (0, [], 67), (0, ["--allow-incomplete"], 0)])
def test_an_incomplete_run(own: int, flags: list[str], status: int, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "p.py").write_text(f"raise SystemExit({own})")
    assert consan(monkeypatch, *flags, "p.py", result=samples.incomplete) == status
    assert (stored(here).exit, stored(here).status) == (own, status)


@pytest.mark.parametrize(("flags", "kept"), [([], 0), (["-o", "out.json"], 1)])
def test_a_run_with_nothing_to_show_is_stored_only_where_o_asks(
    flags: list[str], kept: int, here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert consan(monkeypatch, *flags, "-c", "pass") == 0
    assert len(list(here.glob("*.json"))) == kept
    assert not (here / ".consan").exists()
    assert ("stored run" in capsys.readouterr().out) == bool(kept)


def test_a_run_with_a_warning_or_a_suppressed_finding_is_stored(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert consan(monkeypatch, "-c", "pass", result=lambda: replace(samples.clean(), findings=(samples.WARP,))) == 0
    assert stored(here).status == 0


def test_kinds_that_are_left_out_do_not_count(here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def race() -> Report:
        return with_gaps(samples.clean(), (), findings=(samples.RACE,))

    assert consan(monkeypatch, "-c", "pass", result=race) == 66
    assert consan(monkeypatch, "--checks", "missing-wait,scope", "-c", "pass", result=race) == 0
    capsys.readouterr()
    assert consan(monkeypatch, "--skip", "data-race", "-c", "pass", result=race) == 0
    assert "data-race: excluded by the user" in capsys.readouterr().out


def test_quiet_prints_findings_and_the_verdict(here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert consan(monkeypatch, "-q", "-c", "pass", result=samples.violations) == 66
    out, err = capsys.readouterr()
    assert out.splitlines()[-1].startswith("== verdict: violations ==")
    assert "error[data-race]" in out
    assert "fix:" in out
    assert "reproduce" not in out
    assert err == ""


@pytest.mark.parametrize(("flags", "status"), [([], 0), (["--strict"], 66)])
def test_warnings_count_under_strict(flags: list[str], status: int, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "p.py").write_text("")
    warned = replace(samples.clean(), findings=(samples.WARP,))
    assert consan(monkeypatch, *flags, "p.py", result=lambda: warned) == status


def test_a_traceback_has_no_frames_of_ours(here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "p.py").write_text("def f():\n    raise ValueError('mine')\n\nf()\n")
    assert consan(monkeypatch, "p.py") == 1
    err = capsys.readouterr().err
    assert "ValueError: mine" in err
    assert f'File "{here / "p.py"}", line 4' in err
    assert err.count("File ") == 2


def test_an_error_of_ours_inside_the_program_is_one_line_with_its_place(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "p.py").write_text("from consan._errors import NotSupported\nraise NotSupported('no sparse arrays')\n")
    assert consan(monkeypatch, "-o", "out.json", "p.py") == 2
    assert capsys.readouterr().err == f"consan: error: {here / 'p.py'}:2: no sparse arrays\n"
    report = stored(here, "out.json")
    assert (report.exit, report.verdict) == (2, "incomplete")
    assert report.incomplete == (f"consan ended the program: {here / 'p.py'}:2: no sparse arrays",)


CAUGHT = "from consan._errors import NotSupported\ntry:\n    raise NotSupported('no sparse arrays')\nexcept Exception as error: "
OURS = "consan ended the program: no sparse arrays"


@pytest.mark.parametrize(
    ("device", "text", "reasons"),
    [
        ("FakeGPU 0", CAUGHT + "raise ValueError from error", [OURS]),
        ("FakeGPU 0", CAUGHT + "undefined", [OURS]),
        ("FakeGPU 0", CAUGHT + "pass", []),
        ("FakeGPU 0", "undefined", []),
        ("cpu", "undefined", ["the program ended by NameError, and consan stands in for its GPU"]),
        ("cpu", "raise SystemExit(1)", []),
    ],
)
def test_a_program_that_an_error_of_ours_may_have_ended_is_not_clean(
    here: Path, monkeypatch: pytest.MonkeyPatch, device: str, text: str, reasons: list[str]
) -> None:
    (here / "p.py").write_text(text)
    status = consan(monkeypatch, "-o", "out.json", "p.py", result=lambda: replace(samples.clean(), device=device))
    assert status == (0 if text.endswith("pass") else 1)
    report = stored(here, "out.json")
    assert (report.verdict, list(report.incomplete)) == ("incomplete" if reasons else "clean", reasons)


IN_THREAD = """import threading
from consan._errors import NotSupported
def one():
    {body}
thread = threading.Thread(target=one)
thread.start()
thread.join()
"""
OF_THREAD = "consan ended a thread of the program: {file}:4: no sparse arrays"


@pytest.mark.parametrize(
    ("device", "body", "reasons"),
    [
        ("FakeGPU 0", "raise NotSupported('no sparse arrays')", [OF_THREAD]),
        ("FakeGPU 0", "undefined", []),
        ("FakeGPU 0", "raise SystemExit(3)", []),
        ("cpu", "undefined", ["a thread of the program ended by NameError, and consan stands in for its GPU"]),
        ("cpu", "raise SystemExit(3)", []),
    ],
)
def test_a_program_with_a_thread_that_an_error_of_ours_may_have_ended_is_not_clean(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], device: str, body: str, reasons: list[str]
) -> None:
    (here / "p.py").write_text(IN_THREAD.format(body=body))
    before = threading.excepthook
    monkeypatch.setattr(threading, "excepthook", threading.__excepthook__)  # not that of pytest, which fails the test
    consan(monkeypatch, "-o", "out.json", "p.py", result=lambda: replace(samples.clean(), device=device))
    assert threading.excepthook is threading.__excepthook__ is not before
    report = stored(here, "out.json")
    assert list(report.incomplete) == [each.format(file=here / "p.py") for each in reasons]
    err = capsys.readouterr().err
    assert ("Traceback" in err) == (body == "undefined")
    assert ("consan: error: " in err) == body.startswith("raise NotSupported")


DAEMON = """import threading, time
from consan._errors import InternalError
def one():
    try:
        time.sleep(0.3)
    finally:
        raise InternalError("used after its session ended")
threading.Thread(target=one, daemon=True).start()
"""


def test_a_daemon_thread_ends_in_silence_behind_the_program(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "p.py").write_text(DAEMON)
    monkeypatch.setattr(threading, "excepthook", threading.__excepthook__)

    def result() -> Report:
        time.sleep(0.6)
        return samples.clean()

    assert consan(monkeypatch, "p.py", result=result) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("closes", ["sys.stdout.close()", "os.close(1)"])
def test_a_program_that_closes_its_output_has_its_report(here: Path, closes: str) -> None:
    (here / "p.py").write_text(f"import os, sys\n{closes}")
    done = subprocess.run(
        [sys.executable, "-m", "consan", "run", "--device", "cpu", "p.py"], cwd=here, capture_output=True, text=True, check=False
    )
    assert "verdict" in done.stderr
    assert "internal error" not in done.stderr


def test_threads_are_waited_for(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "p.py").write_text(
        textwrap.dedent("""
            import threading, time, pathlib
            def late():
                time.sleep(0.2)
                pathlib.Path("late").write_text("")
            threading.Thread(target=late).start()
        """)
    )

    def result() -> Report:
        assert (here / "late").exists()
        return samples.clean()

    assert consan(monkeypatch, "p.py", result=result) == 0


def test_the_report_and_the_stored_run_are_named_after_the_programs_own_output(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "p.py").write_text("print('own output')")
    assert consan(monkeypatch, "--seed", "7", "p.py", "x y", result=samples.violations) == 66
    (file,) = here.glob(".consan/p-*.json")
    out = capsys.readouterr().out
    assert out.startswith("own output\n")
    assert "verdict: violations" in out
    assert f"consan report .consan/{file.name} --details\n" in out
    assert "consan run --seed 7 p.py 'x y'" in out


@pytest.mark.parametrize(("mark", "place"), [(None, "sub/.consan"), ("pyproject.toml", ".consan"), (".git", ".consan")])
def test_runs_are_stored_in_one_folder_of_the_project(
    mark: str | None, place: str, here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if mark:
        (here / mark).touch()
    (here / "sub").mkdir()
    monkeypatch.chdir(here / "sub")
    assert consan(monkeypatch, "-c", "pass", result=samples.violations) == 66
    (file,) = (here / place).glob("*.json")
    named = os.path.relpath(file)
    assert f"consan report {named} --details\n" in capsys.readouterr().out
    assert sorted(path.name for path in file.parent.iterdir()) == [".gitignore", file.name]
    assert main(["report", named]) == 0


@pytest.mark.parametrize("words", [[], ["-o", "out.json"], ["-o", "out.html"]])
def test_a_program_that_changes_the_working_directory(words: list[str], here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "sub").mkdir()
    assert consan(monkeypatch, *words, "-c", "import os; os.chdir('sub')", result=samples.violations) == 66
    assert not list((here / "sub").iterdir())
    assert (here / words[1]).exists() if words else stored(here).verdict == "violations"


def test_o_names_the_stored_run_and_format_what_is_printed(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert consan(monkeypatch, "--format", "json", "-o", "out.json", "-c", "pass") == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["schema"] == "consan.report/1"
    assert "consan report out.json" in err
    assert stored(here, "out.json") == loads(out)
    assert not (here / ".consan").exists()


def test_o_with_the_suffix_of_another_format_writes_that_form_too(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert consan(monkeypatch, "-o", "page.html", "-c", "pass") == 0
    assert "verdict: clean" in capsys.readouterr().out
    assert (here / "page.html").read_text().startswith("<!doctype html>")
    assert not [*here.glob("*.json"), *here.glob(".consan")]


def test_the_output_of_the_program_stays_out_of_a_report_for_programs(here: Path) -> None:
    """Its processes' too, and where the program ends outside of Python, so that the supervisor reports."""
    for ending in ("", "; os._exit(3)"):
        code = f"import os, subprocess; print('own', flush=True); subprocess.run(['echo', 'child']){ending}"
        words = [sys.executable, "-m", "consan", "run", "--device", "cpu", "--format", "json", "-c", code]
        done = subprocess.run(words, cwd=here, capture_output=True, text=True, check=False)
        assert json.loads(done.stdout)["schema"] == "consan.report/1"
        assert done.stderr.startswith("own\nchild\n")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["none.py"], "cannot read none.py: No such file or directory"),
        (["-m", "no_such_module_here"], "-m: there is no module 'no_such_module_here' that can be run"),
        (["-m", "no_such_package.inner"], "-m: No module named 'no_such_package'"),
        (["-m", "sys"], "-m: there is no module 'sys' that can be run"),
        (["-c", "1 +"], "<string>:1: invalid syntax"),
        (["bad.py"], "bad.py:2: invalid syntax"),
        (
            ["-o", "no/such/folder/x.json", "-c", "open('ran', 'w')"],
            "cannot write no/such/folder/x.json: there is no folder no/such/folder",
        ),
        (["-o", ".", "-c", "open('ran', 'w')"], "cannot write .: it is a folder"),
        (
            ["-o", "r.htmx", "-c", "open('ran', 'w')"],
            "r.htmx: no format has the suffix '.htmx'; use one of .json, .sarif, .html, .htm, .txt, .log, or say --format"
            "; did you mean .htm?",
        ),
        (["k.cu"], "k.cu holds kernels, and no Python program; launch one with consan check k.cu"),
        (["k.ptx", "x"], "k.ptx holds kernels, and no Python program; launch one with consan check k.ptx"),
        (["empty"], "empty is a folder without __main__.py; name a script in it, or a module with -m"),
        (["--device", "cpu", "program", "x"], "cannot run program: Permission denied"),
        (["program"], "cannot run program: Permission denied"),
        (["program.exe"], "program.exe is no Python program: of those, consan run takes programs for Linux, on a GPU"),
        (
            ["--device", "cpu", "python3", "bad.py"],
            "python3 is an interpreter, and consan is one itself: leave it out, as in consan run script.py",
        ),
    ],
)
def test_what_cannot_be_run(
    words: list[str], message: str, here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "executable", "/another/python3")
    (here / "bad.py").write_text("\nx = = 1\n")
    (here / "empty").mkdir()
    (here / "program").write_bytes(b"\x7fELF\x02\x01")
    (here / "program.exe").write_bytes(b"MZ\x90\x00")
    assert consan(monkeypatch, *words) == 2
    assert capsys.readouterr().err.replace(f"{here}/", "") == f"consan: error: {message}\n"
    assert not (here / "ran").exists()


@pytest.mark.parametrize(
    "words", [["script.py", "1"], ["-m", "script", "1"], ["-c", "import sys; print(sys.argv[-1])", "1"]], ids=["script", "-m", "-c"]
)
@pytest.mark.parametrize("option", [[], ["--"]], ids=["", "dashes"])
def test_the_word_python_is_no_program(
    words: list[str], option: list[str], here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`consan run python script.py`, as users of other tools write it, where it is the Python that runs consan."""
    (here / "bin").mkdir()
    (here / "bin" / "python3").symlink_to(os.path.realpath(sys.executable))
    monkeypatch.setenv("PATH", str(here / "bin"))
    monkeypatch.setattr(sys, "executable", str(here / "bin" / "python3"))
    (here / "script.py").write_text("import sys; print(sys.argv[-1])")
    assert consan(monkeypatch, "--device", "cpu", *option, "python3", *words) == 0
    assert capsys.readouterr().out.startswith("1\n")
