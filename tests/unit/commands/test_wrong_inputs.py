"""What a user may get wrong: one line that names the place, and the status of bad input. Nothing is written."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from consan.__main__ import main

GRID = ("--grid", "1", "--block", "32", "--device", "cpu")
ARGS = ("--arg", "u32[32]=zeros", "--arg", "i32=1")
CHECK = ("check", "ok.ptx", *GRID, *ARGS)
PTX = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 a, .param .u32 n)
{
.reg .b32 %r<8>;
mov.u32 %r2, %tid.x;
ret;
}
"""
FILES = {
    "ok.ptx": PTX,
    "broken.ptx": PTX.replace("%r2, %tid", "%r2 %tid"),
    "odd.ptx": PTX.replace("mov.u32", "frob.u32"),
    "empty.ptx": "",
    "empty.cu": "",
    "later.json": '{"schema": "consan.report/2"}',
    "partial.json": '{"schema": "consan.report/1"}',
    "campaign.json": '{"schema": "consan.stress/1"}',
    "other.json": '{"a": 1}',
    "cut.json": '{"schema": "consan.report/1", "verdict"',
    "syntax.py": "x = 1\ndef f(:\n",
    "empty.py": "",
}
BINARY = {"garbage.ptx": b"\x00\xff\x01" * 99, "damaged.histories": b"PK\3\4garbage", "odd.npy": b"\x93NUMPYxx"}
WRONG = [
    (("check", "none.ptx", *GRID), "cannot read none.ptx: No such file"),
    (("check", "folder", *GRID), "folder: expected a .cu or a .ptx file"),
    (("check", "broken.ptx", *GRID), "broken.ptx:7:13: expected ',' or ';'"),
    (("check", "odd.ptx", *GRID), "odd.ptx:7:1: "),
    (("check", "empty.ptx", *GRID), "empty.ptx:1:1: expected .version"),
    (("check", "garbage.ptx", *GRID), "garbage.ptx is not a text file"),
    (("check", "ok.ptx", *GRID), "k takes 2 arguments (8, 4 bytes), 0 given with --arg"),
    (("check", "ok.ptx", *GRID, "--arg", "u33[32]=zeros"), "--arg 1 'u33[32]=zeros': unknown type 'u33'"),
    (("check", "ok.ptx", *GRID, "--arg", "u32[32]=none.npy", "--arg", "i32=1"), "--arg 1 'u32[32]=none.npy': cannot read none.npy"),
    (("check", "ok.ptx", *GRID, "--arg", "u32[32]=odd.npy", "--arg", "i32=1"), "--arg 1 'u32[32]=odd.npy': cannot read odd.npy"),
    (("check", "ok.ptx", *GRID, "--arg", "i32=1", "--arg", "i32=1"), "--arg 1 'i32=1': is 4 bytes, k expects 8 there"),
    (("check", "ok.ptx", "--grid", "0", "--block", "32"), "--grid: expected X[,Y[,Z]]"),
    (("check", "ok.ptx", "--grid", "1", "--block", "2000"), "--block: 2000,1,1 is beyond the limit"),
    ((*CHECK, "--entry", "nope"), "--entry: ok.ptx has no kernel called 'nope'; its kernels: k"),
    ((*CHECK, "--gird", "2"), "unrecognized arguments: --gird 2; did you mean --grid?"),
    ((*CHECK, "--timeout", "0"), "--timeout: expected a time in seconds above zero"),
    ((*CHECK, "--baseline", "other.json"), 'other.json is not a stored run: it has no "schema"'),
    ((*CHECK, "--baseline", "later.json"), "found 'consan.report/2'"),
    ((*CHECK, "--baseline", "folder"), "cannot read folder: Is a directory"),
    ((*CHECK, "--suppress", "ok.ptx"), "cannot read ok.ptx: "),
    ((*CHECK, "--skip", "data-rase"), "--skip: there is no kind 'data-rase'; did you mean data-race?"),
    ((*CHECK, "--checks", ","), "--checks: expected KIND[,KIND], got ','"),
    ((*CHECK, "--kernel-name", "k"), "--kernel-name: expected kns=TEXT or regex=PATTERN"),
    (("report", "cut.json"), "cut.json is not JSON: "),
    (("report", "partial.json"), "partial.json is not a valid consan.report/1: 'verdict' is missing"),
    (("report", "garbage.ptx"), "garbage.ptx is not a text file"),
    (("reduce", "other.json"), "other.json is not a file of consan stress or consan reduce"),
    (("reduce", "campaign.json"), "campaign.json is not a valid consan.stress/1: "),
    (("replay", "campaign.json"), "campaign.json is not a valid consan.stress/1: "),
    (("report", "campaign.json"), "campaign.json is not a valid consan.stress/1: "),
    (("replay", "later.json"), "later.json holds consan.report/2, expected consan.stress/1 or consan.schedule/1"),
    (("replay", "damaged.histories"), "damaged.histories is damaged, or no file of recorded histories: "),
    (("stress",), "expected what to run: FILE.cu, FILE.ptx, script.py"),
    (("stress", "none.cu", *GRID), "cannot read none.cu: No such file"),
    (("stress", "--seeds", "5..1", "ok.ptx", *GRID), "--seeds: expected N or A..B"),
    (("ptx", "broken.ptx"), "broken.ptx:7:13: "),
    (("ptx", "ok.ptx", "--show", "all"), "--show: expected one of sites"),
    (("explain", "data-rase"), "there is no kind 'data-rase'; did you mean data-race?"),
    (("audit", "folder"), "no .cu, .py or .ptx file in folder"),
    (("advise", *CHECK[1:], "--device", "gpu"), "--device gpu: consan advise counts on the virtual machine"),
    (("run",), "expected a program to run: script.py"),
    (("run", "none.py"), "cannot read none.py: No such file"),
    (("run", "folder"), "folder is a folder without __main__.py"),
    (("run", "ok.ptx"), "ok.ptx holds kernels, and no Python program"),
    (("run", "--device", "cpu", "syntax.py"), "syntax.py:2: invalid syntax"),
    (("run", "-m", "nosuchmodule"), "-m: there is no module 'nosuchmodule'"),
    (("run", "--ranks", "99", "--device", "cpu", "empty.py"), "--ranks: expected 1 to 16, got 99"),
    (("frobnicate",), "there is no command 'frobnicate'"),
]


@pytest.fixture(autouse=True)
def _files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("folder").mkdir()
    for name, text in FILES.items():
        Path(name).write_text(text)
    for name, data in BINARY.items():
        Path(name).write_bytes(data)


@pytest.mark.parametrize(("words", "message"), WRONG, ids=[" ".join(words)[:60] for words, _ in WRONG])
def test_one_line_names_the_place(words: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    before = sorted(os.listdir())
    assert main(words) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("consan: error: ")
    assert message in printed.err
    assert printed.err.count("\n") == 1
    assert "Error" not in printed.err  # no name of an exception of Python
    assert sorted(os.listdir()) == before


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads every file")
def test_a_file_that_may_not_be_read(capsys: pytest.CaptureFixture[str]) -> None:
    Path("ok.ptx").chmod(0)
    assert main(CHECK) == 2
    assert capsys.readouterr().err == "consan: error: cannot read ok.ptx: Permission denied\n"


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("CONSAN_SEED", "x", "CONSAN_SEED: expected a whole number, got 'x'"),
        ("CONSAN_OPTIONS", "--frob", "CONSAN_OPTIONS: unrecognized arguments: --frob"),
    ],
)
def test_a_setting_of_the_environment(
    name: str, text: str, message: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(name, text)
    assert main(CHECK) == 2
    assert capsys.readouterr().err == f"consan: error: {message}\n"


def test_a_project_whose_settings_cannot_be_read(capsys: pytest.CaptureFixture[str]) -> None:
    Path("pyproject.toml").write_text("[tool.consan\n")
    assert main(CHECK) == 2
    error = capsys.readouterr().err
    assert error.startswith("consan: error: cannot read ")
    assert "pyproject.toml: Expected ']'" in error
