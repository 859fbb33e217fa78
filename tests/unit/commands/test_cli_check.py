"""`consan check`: from words on the command line to one launch, and back to a report and a status."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import cli_fakes
import numpy as np
import pytest
import report_samples as samples

import consan
from consan.__main__ import main
from consan._errors import UsageError
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
    assert callable(options.pop("restore"))
    assert options == {"shared": 1024, "cluster": (2, 1, 1), "cooperative": False}
    assert session.latest.prepared == [PTX]
    address, scalar = values
    assert scalar == (8).to_bytes(4, "little")
    assert (session.latest.backend.memory[int.from_bytes(address, "little")] == np.arange(8, dtype="f4")).all()


def test_the_number_of_clusters_to_watch_becomes_a_number_of_ctas(monkeypatch: pytest.MonkeyPatch) -> None:
    with fake(monkeypatch) as session:
        assert main(["check", "k.ptx", *LAUNCH, *ARGS, "--cluster", "2,2", "--ctas", "3"]) == 0
    assert session.latest.cta_limit == 12
    assert not session.latest.notes  # the grid has 8 CTAs


def test_ctas_that_are_left_unchecked_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    with fake(monkeypatch) as session:
        assert main(["check", "k.ptx", *LAUNCH, *ARGS, "--cluster", "2,1", "--ctas", "3"]) == 0
    assert session.latest.notes == ["--ctas 3: 6 of 8 CTAs were checked"]


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
        (samples.incomplete, [], 67),
        (samples.incomplete, ["--strict"], 67),
        (samples.incomplete, ["--allow-incomplete"], 0),
        (samples.violations, ["--allow-incomplete"], 66),
    ],
)
def test_status(result: Callable[[], Report], flags: list[str], status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    with fake(monkeypatch, result):
        assert main(["check", "k.ptx", *LAUNCH, *ARGS, *flags]) == status


def test_strict_says_which_warnings_give_the_status(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    with fake(monkeypatch, lambda: replace(samples.clean(), findings=(samples.WARP,))):
        assert main(["check", "k.ptx", *LAUNCH, *ARGS, "--strict"]) == 66
        assert "66, because --strict counts warnings: warning[data-race] in kernel " in " ".join(capsys.readouterr().out.split())
        assert main(["check", "k.ptx", *LAUNCH, *ARGS]) == 0
    assert "  status:" not in capsys.readouterr().out


def test_an_incomplete_verdict_says_how_to_allow_it(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    with fake(monkeypatch, samples.incomplete):
        assert main(["check", "k.ptx", *LAUNCH, *ARGS]) == 67
    assert "67, because the verdict is incomplete (--allow-incomplete gives 0)" in " ".join(capsys.readouterr().out.split())


def test_json_on_standard_output(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["check", "k.ptx", *LAUNCH, *ARGS, "--format", "json"]
    with fake(monkeypatch, samples.violations):
        assert main(words) == 66
    data = json.loads(capsys.readouterr().out)
    assert data["verdict"] == "violations"
    assert data["exit"] == 0
    assert data["status"] == 66
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
        (["k.ptx", *LAUNCH, "--smem", "x"], "--smem: expected a size, such as 49152 or 64K, got 'x'"),
        (["k.ptx", *LAUNCH, "--smem", "64KB"], "--smem: expected a size, such as 49152 or 64K, got '64KB'"),
        (["k.ptx", *LAUNCH, "--smem", "-1"], "--smem: expected a size, such as 49152 or 64K, got '-1'"),
        (["k.ptx", *LAUNCH, "--smem", "1G"], "--smem: 1,073,741,824 bytes, expected at most 232,448"),
        (
            ["two.ptx", *LAUNCH, "--entry", "othr"],
            "--entry: two.ptx has no kernel called 'othr'; its kernels: scale, _Z5otherPf; did you mean other?",
        ),
        (
            ["two.ptx", *LAUNCH, "--entry", "scale<float>"],
            "--entry: two.ptx has no kernel called 'scale<float>'; its kernels: scale, _Z5otherPf; did you mean scale?",
        ),
        (
            ["k.ptx", *LAUNCH, *ARGS, "-o", "r.csv"],
            "r.csv: no format has the suffix '.csv'; use one of .json, .sarif, .html, .htm, .txt, .log, or say --format",
        ),
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


# --- without a launch --------------------------------------------------------------------------------------------------------

SOURCE = """
struct Shape { int rows; char rest[12]; };
extern "C" __global__ void __launch_bounds__(64) fill(float* out, const unsigned int* __restrict__ in, Shape shape, int n) {
    extern __shared__ float tile[];
    int unused;
    tile[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    out[threadIdx.x] = tile[63 - threadIdx.x] + shape.rows + n;
}
"""
TEMPLATE = """
template <class T, int N> __global__ void rev(T* data) {
    __shared__ T tile[N];
    tile[threadIdx.x] = data[threadIdx.x];
    __syncthreads();
    data[threadIdx.x] = tile[N - 1 - threadIdx.x];
}
"""


def run_words(words: Iterable[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    status = main(list(words))
    return (status, *capsys.readouterr())


def test_without_a_launch_the_kernels_are_shown_and_nothing_is_called_checked(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = run_words(["check", "two.ptx"], capsys)
    assert status == 2
    assert out.splitlines() == [
        "kernel scale",
        "  --arg 1: .u64  (8 bytes)",
        "  --arg 2: .u32  (4 bytes)",
        "  consan check two.ptx --entry scale --grid 1 --block 128 --arg 'f32[4096]=random' --arg i32=1",
        "kernel other (_Z5otherPf)",
        "  --arg 1: .u64  (8 bytes)",
        "  consan check two.ptx --entry _Z5otherPf --grid 1 --block 128 --arg 'f32[4096]=random'",
    ]
    assert err == "consan: error: two.ptx: nothing was checked; say how to launch a kernel, with --grid and --block\n"


def test_the_command_to_start_from_has_the_types_of_the_source_and_works(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("k.cu").write_text(SOURCE + TEMPLATE)
    _, out, _ = run_words(["check", "k.cu"], capsys)
    assert "  --arg 2: const unsigned int* __restrict__ in  (8 bytes)" in out
    assert "  --arg 3: Shape shape  (16 bytes)" in out
    assert "template rev(T* data): name an instance to compile it, such as --entry 'rev<...>'" in out
    (command,) = (line.strip() for line in out.splitlines() if line.startswith("  consan"))
    assert "--block 64 --smem 48K --arg 'f32[4096]=zeros' --arg 'u32[4096]=random' --arg bytes=0000" in command
    assert main([*shlex.split(command)[1:], "--device", "cpu"]) == 0


def test_a_template_is_instantiated_by_its_name(capsys: pytest.CaptureFixture[str]) -> None:
    Path("t.cu").write_text(TEMPLATE)
    words = ["check", "t.cu", "--entry", "rev<float, 128>", "--grid", "1", "--block", "128", "--device", "cpu", "--arg", "f32[128]=random"]
    status, out, err = run_words(words, capsys)
    assert (status, err) == (0, "")
    assert "1 kernel, 1 launch" in out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "t.cu has no kernel; an instance of a template has to be named, such as --entry 'rev<...>'"),
        (["--entry", "rev<float>"], """--entry 'rev<float>': cannot determine which instance of function template "rev" is intended"""),
        (["--entry", "rev<no,1>"], """--entry 'rev<no,1>': identifier "no" is undefined"""),
        (["--entry", "rev<"], "--entry 'rev<': expected an expression"),
        (
            ["--entry", "rev<float,\n1>;"],
            "--entry 'rev<float, 1>;': Extra tokens found after parsing name expression for lowered name lookup",
        ),
        (["--entry", "rew<float,1>"], """--entry 'rew<float,1>': identifier "rew" is undefined; did you mean rev?"""),
    ],
)
@pytest.mark.parametrize("launch", [[], [*LAUNCH, "--device", "cpu"]])
def test_mistakes_about_templates(launch: list[str], words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("t.cu").write_text(TEMPLATE)
    assert run_words(["check", "t.cu", *launch, *words], capsys) == (2, "", f"consan: error: {message}\n")


def test_the_python_api_instantiates_templates() -> None:
    kernel = consan.Kernel(TEMPLATE, entry="rev<float, 32>")
    data = np.arange(32, dtype="f4")
    assert consan.launch(kernel, 1, 32, [data], device="cpu").verdict == "clean"
    assert kernel.entry == "_Z3revIfLi32EEvPT_"
    assert data[0] == 31
    with pytest.raises(UsageError, match="did you mean rev"):
        consan.Kernel(TEMPLATE, entry="rex<float, 32>")


def test_stress_runs_an_instance_of_a_template(capfd: pytest.CaptureFixture[str]) -> None:
    Path("t.cu").write_text(TEMPLATE.replace("__syncthreads();", ""))
    words = ["stress", "t.cu", "--entry", "rev<float, 64>", "--grid", "1", "--block", "64", "--device", "cpu", "--arg", "f32[64]=random"]
    assert main([*words, "--seeds", "2", "--workers", "0", "-o", "s.json"]) == 66, capfd.readouterr().err
    assert json.loads(Path("s.json").read_text())["findings"]


def test_a_template_in_a_namespace(capsys: pytest.CaptureFixture[str]) -> None:
    Path("t.cu").write_text(f"namespace deep {{ {TEMPLATE} }}")
    assert "is rev in a namespace? Then name that, too\n" in run_words(["check", "t.cu", "--entry", "rev<int, 4>"], capsys)[2]
    assert "kernel rev (_ZN4deep3revIiLi4EEEvPT_)\n" in run_words(["check", "t.cu", "--entry", "deep::rev<int, 4>"], capsys)[1]


def test_warnings_of_the_compiler_are_shown_when_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    Path("k.cu").write_text(SOURCE)
    assert "unused" not in run_words(["check", "k.cu"], capsys)[2]
    assert 'k.cu:5: warning #177-D: variable "unused"' in run_words(["check", "k.cu", "-v"], capsys)[2]
    Path("k.cu").write_text(SOURCE.replace("+ n", "+ m"))
    err = run_words(["check", "k.cu"], capsys)[2]
    assert 'error: identifier "m" is undefined' in err
    assert 'variable "unused"' in err


@pytest.mark.parametrize("header", ["vector", "iostream", "unordered_map", "sys/time.h"])
def test_a_header_of_the_host_leads_to_nvcc(header: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("k.cu").write_text(f"#include <{header}>\n{SOURCE}")
    status, _, err = run_words(["ptx", "k.cu", "--arch", "sm_80"], capsys)
    assert status == 2
    assert f"note: <{header}> is a header of the host" in err
    assert err.endswith("nvcc -ptx -lineinfo -arch=sm_80 -o k.ptx k.cu && consan check k.ptx\n")
