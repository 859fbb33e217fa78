"""`consan check`: from words on the command line to one launch, and back to a report and a status."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import cli_fakes
import numpy as np
import pytest
import report_samples as samples

from consan.__main__ import main
from consan.reports.model import Report

PTX = """.version 8.0
.target sm_90
.address_size 64
.visible .entry scale(.param .u64 scale_0, .param .u32 scale_1) { ret; }
"""
TWO = PTX + ".visible .entry _Z5otherPf(.param .u64 a) { ret; }\n"
LAUNCH = ["--grid", "4,2", "--block", "32"]
ARGS = ["--arg", "f32[8]=arange", "--arg", "i32=8"]


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("k.ptx").write_text(PTX)
    Path("two.ptx").write_text(TWO)


@contextmanager
def fake(monkeypatch: pytest.MonkeyPatch, result: Callable[[], Report] = samples.clean) -> Iterator[type[cli_fakes.FakeSession]]:
    with cli_fakes.fake_session(monkeypatch, result) as session:
        yield session


def test_the_launch_is_what_the_words_say(monkeypatch: pytest.MonkeyPatch) -> None:
    with fake(monkeypatch) as session:
        assert main(["check", "k.ptx", *LAUNCH, *ARGS, "--smem", "1024", "--cluster", "2,1"]) == 0
    ((prepared, entry, grid, block, values, options),) = session.latest.launches
    assert (prepared, entry, grid, block) == ("k.ptx", "scale", (4, 2, 1), (32, 1, 1))
    assert options == {"shared": 1024, "cluster": (2, 1, 1)}
    assert session.latest.prepared == [PTX]
    address, scalar = values
    assert scalar == (8).to_bytes(4, "little")
    assert (session.latest.backend.memory[int.from_bytes(address, "little")] == np.arange(8, dtype="f4")).all()


def test_the_number_of_clusters_to_watch_becomes_a_number_of_ctas(monkeypatch: pytest.MonkeyPatch) -> None:
    with fake(monkeypatch) as session:
        assert main(["check", "k.ptx", *LAUNCH, *ARGS, "--cluster", "2,2", "--ctas", "3"]) == 0
    assert session.latest.options["cta_limit"] == 12


@pytest.mark.parametrize("wanted", ["_Z5otherPf", "other"])
def test_the_entry_by_its_symbol_or_its_name(wanted: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with fake(monkeypatch) as session:
        assert main(["check", "two.ptx", *LAUNCH, "--entry", wanted, "--arg", "f32[1]=zeros"]) == 0
    assert session.latest.launches[0][1] == "_Z5otherPf"


@pytest.mark.parametrize(
    ("result", "flags", "status"),
    [
        (samples.clean, [], 0),
        (samples.clean, ["--strict"], 0),
        (samples.violations, [], 66),
        (samples.incomplete, [], 0),
        (samples.incomplete, ["--strict"], 67),
    ],
)
def test_status(result: Callable[[], Report], flags: list[str], status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    with fake(monkeypatch, result):
        assert main(["check", "k.ptx", *LAUNCH, *ARGS, *flags]) == status


def test_json_on_standard_output(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["check", "k.ptx", *LAUNCH, *ARGS, "--format", "json"]
    with fake(monkeypatch, samples.violations):
        assert main(words) == 66
    data = json.loads(capsys.readouterr().out)
    assert data["verdict"] == "violations"
    assert data["exit"] == 0
    assert data["command"] == ["consan", *words]


@pytest.mark.parametrize(("flags", "start"), [(["-o", "r.json"], "{"), (["-o", "r.txt"], "=="), (["-o", "r.txt", "--format", "json"], "{")])
def test_o_writes_the_report(flags: list[str], start: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    with fake(monkeypatch, samples.violations):
        assert main(["check", "k.ptx", *LAUNCH, *ARGS, *flags]) == 66
    assert Path(flags[1]).read_text().startswith(start)
    assert capsys.readouterr().out.startswith("verdict: violations, 4 findings; ")


def test_the_source_is_stored_with_the_report(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("reduce.cu").write_text(samples.REDUCE)
    with fake(monkeypatch, lambda: Report(verdict="violations", device="cpu", findings=(samples.RACE,))):
        assert main(["check", "k.ptx", *LAUNCH, *ARGS, "-o", "r.json"]) == 66
    assert json.loads(Path("r.json").read_text())["sources"]["reduce.cu"]["5"].strip().startswith("tile[t]")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["none.ptx", *LAUNCH], "cannot read none.ptx: No such file or directory"),
        (["k.ptx", "--grid", "0", "--block", "1"], "--grid: expected X[,Y[,Z]] with numbers above zero, got '0'"),
        (["k.ptx", "--grid", "1", "--block", "2048"], "--block: 2048,1,1 is beyond the limit of 1024,1024,64"),
        (["k.ptx", *LAUNCH, "--cluster", "3"], "--grid: 4,2,1 CTAs is not a whole number of clusters of 3,1,1"),
        (["k.ptx", *LAUNCH, "--smem", "x"], "--smem: expected a whole number, got 'x'"),
        (["k.ptx", *LAUNCH, "--smem", "300000"], "--smem: 300,000 bytes, expected at most 232,448"),
        (["k.ptx", *LAUNCH, "--ctas", "0"], "--ctas: expected a number above zero, got '0'"),
        (["k.ptx", *LAUNCH], "scale takes 2 arguments (8, 4 bytes), 0 given with --arg"),
        (["k.ptx", *LAUNCH, "--arg", "i32=1", "--arg", "i32=2"], "--arg 1 'i32=1': is 4 bytes, scale expects 8 there"),
        (["two.ptx", *LAUNCH], "two.ptx has 2 kernels, choose one with --entry: scale, _Z5otherPf"),
        (["two.ptx", *LAUNCH, "--entry", "x"], "--entry: two.ptx has no kernel called 'x'; its kernels: scale, _Z5otherPf"),
        (["k.ptx", *LAUNCH, "--define", "A=1"], "--define, -I and --std are for .cu files"),
        (["k.cu", *LAUNCH, "--define", "1=A"], "--define: expected NAME=VALUE, got '1=A'"),
        (["k.cu", *LAUNCH, "-I", "nowhere"], "-I: there is no folder nowhere"),
        (["k.txt", *LAUNCH], "k.txt: expected a .cu or a .ptx file"),
        (["k.ptx", *LAUNCH, *ARGS, "-o", "no/r.json"], "cannot write no/r.json: there is no folder no"),
    ],
)
def test_mistakes(words: list[str], message: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    Path("k.cu").write_text("")
    with fake(monkeypatch):
        assert main(["check", *words]) == 2
    assert capsys.readouterr().err == f"consan: error: {message}\n"


def test_broken_ptx_is_one_line_with_its_place(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    Path("bad.ptx").write_text(PTX.replace("ret;", "add.s32 %r1,, %r2;"))
    with fake(monkeypatch):
        assert main(["check", "bad.ptx", *LAUNCH]) == 2
    err = capsys.readouterr().err
    assert err.startswith("consan: error: bad.ptx:4:")
    assert err.count("\n") == 1


def test_notes_are_printed_on_request(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def printed(*flags: str) -> str:
        with fake(monkeypatch, samples.violations):
            assert main(["check", "k.ptx", *LAUNCH, *ARGS, *flags]) == 66
        return capsys.readouterr().out

    assert "1 note (--notes shows it)" in printed()
    assert "note[uninitialized-read]" in printed("--notes")
    assert main(["report", _stored("r.json", printed("--format", "json")), "--notes"]) == 0
    assert "note[uninitialized-read]" in capsys.readouterr().out
    monkeypatch.setenv("CONSAN_NOTES", "1")
    assert "note[uninitialized-read]" in printed()
    monkeypatch.delenv("CONSAN_NOTES")
    Path("pyproject.toml").write_text("[tool.consan]\nnotes = true\n")
    assert "note[uninitialized-read]" in printed()


def _stored(name: str, text: str) -> str:
    Path(name).write_text(text)
    return name


def test_notes_do_not_fail_a_strict_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def noted() -> Report:
        note = replace(samples.UNUSED, severity="note")
        return replace(samples.clean(), findings=(note,))

    with fake(monkeypatch, noted):
        assert main(["check", "k.ptx", *LAUNCH, *ARGS, "--strict"]) == 0
