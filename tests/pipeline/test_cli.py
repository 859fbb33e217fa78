"""The command line on the whole pipeline: every status, each command, and reports that the schema accepts."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pipeline_kernels as kernels
import pytest

from consan.__main__ import main
from consan.reports.formats import json_format

OUT = ["--arg", "u32[64]=zeros", "--arg", "u32=5"]
LAUNCH = ["--device", "cpu", "--grid", "1", "--block", "64"]
VALIDATOR = jsonschema.Draft202012Validator(json_format.schema())

CUDA = """extern "C" __global__ void shift(const float* in, float* out, int n) {
    __shared__ float tile[64];
    int t = threadIdx.x;
    tile[t] = in[t];
#ifdef FIXED
    __syncthreads();
#endif
    if (t < n) out[t] = tile[63 - t];
}
"""
CUDA_ARGS = ["--arg", "f32[64]=arange", "--arg", "f32[64]=zeros", "--arg"]
SCRIPT = """
import sys
import cupy as cp
x, out = cp.arange(64, dtype=cp.float32), cp.zeros(64, dtype=cp.float32)
cp.RawKernel(open("k.cu").read(), "shift", options=tuple(sys.argv[2:]))((1,), (64,), (x, out, 64))
sys.exit(int(sys.argv[1]))
"""


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("k.ptx").write_text(kernels.MODULE)
    Path("k.cu").write_text(CUDA)
    Path("script.py").write_text(SCRIPT)


def check(entry: str, *words: str) -> int:
    return main(["check", "k.ptx", "--entry", entry, *LAUNCH, *words])


def stored(name: str = "r.json") -> dict[str, Any]:
    """A report that the shipped schema accepts."""
    data: dict[str, Any] = json.loads(Path(name).read_text())
    VALIDATOR.validate(data)
    assert json_format.loads(Path(name).read_text()).verdict == data["verdict"]
    return data


@pytest.mark.parametrize(
    ("entry", "words", "status", "verdict"),
    [
        ("clean", OUT, 0, "clean"),
        ("clean", [*OUT, "--strict"], 0, "clean"),
        ("racy", OUT, 66, "violations"),
        ("racy", [*OUT, "--strict"], 66, "violations"),
        ("unmodelled", [], 67, "incomplete"),
        ("unmodelled", ["--allow-incomplete"], 0, "incomplete"),
        ("deadlock", [], 66, "violations"),
        ("spin", ["--timeout", "0.3"], 67, "incomplete"),
        ("spin", ["--timeout", "0.3", "--allow-incomplete"], 0, "incomplete"),
        ("clean", [*OUT, "--engine", "inline", "--timeout", "0.001", "--strict"], 67, "incomplete"),
        ("racy", [*OUT, "--kernel-name", "kns=other", "--strict"], 67, "incomplete"),
    ],
)
def test_status_and_stored_report(entry: str, words: list[str], status: int, verdict: str) -> None:
    assert check(entry, *words, "-o", "r.json") == status
    data = stored()
    assert data["verdict"] == verdict
    assert data["command"][:3] == ["consan", "check", "k.ptx"]
    assert bool(data.get("incomplete")) == (verdict == "incomplete" or bool(data.get("incomplete")))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["check", "none.ptx", *LAUNCH], "cannot read none.ptx: No such file or directory"),
        (["check", "k.ptx", "--entry", "other", *LAUNCH], "--entry: k.ptx has no kernel called 'other'"),
        (["check", "k.ptx", "--entry", "clean", *LAUNCH, "--arg", "u32[64]=zeros"], "clean takes 2 arguments (8, 4 bytes), 1 given"),
        (["check", "k.ptx", "--entry", "clean", *LAUNCH, *OUT[:2], "--arg", "u64=5"], "--arg 2 'u64=5': is 8 bytes, clean expects 4 there"),
        (["check", "k.ptx", "--entry", "clean", *LAUNCH, *OUT[:2], "--arg", "q32=5"], "--arg 2 'q32=5'"),
        (["check", "bad.ptx", *LAUNCH], "bad.ptx:6:"),
        (["check", "k.ptx", "--entry", "not_executed", *LAUNCH], "the PTX virtual machine does not execute 'suq.width"),
        (["run", "--device", "cpu", "none.py"], "none.py"),
        (["report", "none.json"], "cannot read none.json: No such file or directory"),
        (["report", "k.ptx"], "k.ptx is not "),
    ],
)
def test_mistakes_are_one_line_and_status_2(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("bad.ptx").write_text(kernels.HEAD + ".visible .entry k()\n{\n  add.s32 %r1,, %r2;\n  ret;\n}\n")
    assert main(words) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("consan: error: ")
    assert message in err
    assert err.count("\n") == 1


def test_a_ptx_syntax_error_has_line_and_column(capsys: pytest.CaptureFixture[str]) -> None:
    Path("bad.ptx").write_text(kernels.HEAD + ".visible .entry k()\n{\n  add.s32 %r1,, %r2;\n  ret;\n}\n")
    assert main(["check", "bad.ptx", *LAUNCH]) == 2
    assert capsys.readouterr().err.startswith("consan: error: bad.ptx:6:15: ")


@pytest.mark.parametrize(("defines", "status"), [([], 66), (["--define", "FIXED=1"], 0)])
def test_cuda_with_source_lines(defines: list[str], status: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "k.cu", *LAUNCH, *CUDA_ARGS, "i32=64", *defines, "-o", "r.json"]) == status
    races = [finding for finding in stored()["findings"] if finding["kind"] == "data-race"]
    lines = {access["line"] for finding in races for access in finding["accesses"]}
    assert lines == ({4, 8} if status else set())
    shown = {Path(name).name: lines.get("4", "").strip() for name, lines in stored()["sources"].items()}
    assert shown == ({"k.cu": "tile[t] = in[t];"} if status else {})


def test_a_write_past_a_buffer(capsys: pytest.CaptureFixture[str]) -> None:
    args = ["--arg", "f32[64]=arange", "--arg", "f32[32]=zeros", "--arg", "i32=64"]
    assert main(["check", "k.cu", *LAUNCH, *args, "--define", "FIXED=1", "-o", "r.json"]) == 66
    (finding,) = stored()["findings"]
    assert finding["kind"] == "out-of-bounds"
    (access,) = finding["accesses"]
    assert (access["line"], access["role"]) == (8, "write")


def test_a_barrier_of_the_grid_makes_a_cooperative_launch() -> None:
    kernel = """#include <cooperative_groups.h>
    extern "C" __global__ void k(int* a) {
        a[blockIdx.x] = 1;
        cooperative_groups::this_grid().sync();
        a[2 + blockIdx.x] = a[1 - blockIdx.x];
    }"""
    Path("grid.cu").write_text(kernel)
    assert main(["check", "grid.cu", "--device", "cpu", "--grid", "2", "--block", "32", "--arg", "i32[4]=zeros", "--strict"]) == 0


def test_a_stored_report_is_rendered_like_the_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert check("racy", *OUT, "-o", "r.json") == 66
    capsys.readouterr()
    assert main(["report", "r.json"]) == 0
    out = capsys.readouterr().out
    assert "error[data-race]: RAW in kernel racy" in out
    assert "st.shared.u32" in out
    assert main(["report", "r.json", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == stored()


@pytest.mark.parametrize(
    ("suffix", "pieces"),
    [
        ("sarif", ['"version": "2.1.0"', '"ruleId": "data-race"', '"consanAccesses/v1"', '"startLine": 8']),
        ("html", ["<!doctype html>", 'data-kind="data-race"', "in kernel <code>", "&lt;"]),
    ],
)
def test_other_formats_of_a_run(suffix: str, pieces: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "k.cu", *LAUNCH, *CUDA_ARGS, "i32=64", "-o", "r.json"]) == 66
    assert main(["check", "k.cu", *LAUNCH, *CUDA_ARGS, "i32=64", "-o", f"direct.{suffix}"]) == 66
    assert main(["report", "r.json", "-o", f"r.{suffix}"]) == 0
    capsys.readouterr()
    assert main(["report", "r.json", "--format", suffix]) == 0
    printed = capsys.readouterr().out
    assert all(piece in printed for piece in pieces)
    assert Path(f"r.{suffix}").read_text() == printed
    assert "data-race" in Path(f"direct.{suffix}").read_text()


@pytest.mark.parametrize("view", ["sites", "instrumented", "unmodelled", "stats"])
def test_views_of_a_module(view: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ptx", "k.ptx", "--show", view]) == 0
    out = capsys.readouterr().out
    expected = {
        "sites": "st.shared.u32 [%r4], %r6;",
        "instrumented": ".visible .entry racy(",
        "unmodelled": "fence.proxy.alias",
        "stats": "not_executed",
    }
    assert expected[view] in out


def test_doctor_works_here(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor"]) == 0
    assert "backends" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("own", "options", "flags", "status"),
    [
        (0, [], [], 66),
        (0, ["-DFIXED"], [], 0),
        (3, ["-DFIXED"], [], 3),
        (3, [], [], 66),
        (0, ["-DFIXED"], ["--kernel-name", "kns=x"], 67),
        (3, ["-DFIXED"], ["--kernel-name", "kns=x"], 3),
        (0, ["-DFIXED"], ["--kernel-name", "kns=x", "--allow-incomplete"], 0),
    ],
)
def test_a_program(own: int, options: list[str], flags: list[str], status: int) -> None:
    command = [sys.executable, "-m", "consan", "run", "--device", "cpu", *flags, "-o", "r.json", "script.py", str(own), *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == status, done.stderr
    assert stored()["exit"] == own
    assert [(kernel["name"], kernel["launches"]) for kernel in stored()["kernels"]] == [("shift", 1)]


def test_a_script_from_the_command_line_has_its_own_arguments() -> None:
    command = [sys.executable, "-m", "consan", "run", "--device", "cpu", "-o", "r.json", "-c", "import sys; print(sys.argv[1:])", "--x"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 67, done.stderr
    assert "['--x']" in done.stdout
    assert stored()["verdict"] == "incomplete"


def test_shadow_memory_is_told_before_the_run_on_a_terminal(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    words = ["check", "k.cu", *LAUNCH, *CUDA_ARGS, "i32=64", "-D", "FIXED", "--shadow-memory", "16M", "--engine", "inline"]
    main(words)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setattr("consan.progress._PERIOD", 0.0)  # else a fast machine is done before the line is due again
    main([*words, "-q"])
    assert capsys.readouterr().err == ""
    main(words)
    told = "14 KiB for a CTA (56.0 bytes per byte of shared memory)"  # 8 KiB are one word for each of up to 1,024 lanes
    err = capsys.readouterr().err
    assert f"consan: shadow memory: {told}, at most 16 MiB at a time\n" in err
    assert [line for line in err.splitlines() if "running shift" in line]
    main(["run", "--device", "cpu", "--engine", "inline", "--shadow-memory", "32M", "-c", "pass"])
    assert capsys.readouterr().err.startswith("consan: shadow memory: at most 32 MiB at a time\n")


NOTHING = "no instrumented kernel was launched"
SHIFT = "from pathlib import Path; import cupy as cp; x = cp.zeros(64); k = cp.RawKernel(Path('k.cu').read_text(), 'shift'); "


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["check", "k.ptx", "--entry", "clean", *LAUNCH, *OUT, "--kernel-name", "kns=claen"],
         f"{NOTHING}: --kernel-name kns=claen matches none of the kernels that ran: clean (did you mean kns=clean?)"),
        (["run", "--device", "cpu", "--kernel-name", "kns=shfit", "-c", SHIFT + "k((1,), (64,), (x, x, 64))"],
         f"{NOTHING}: --kernel-name kns=shfit matches none of the kernels that ran: shift (did you mean kns=shift?)"),
        (["run", "--device", "cpu", "-c", "import subprocess, sys; subprocess.run([sys.executable, 'script.py', '0'])"],
         f"{NOTHING}: --kernel-name kns=shfit matches none of the kernels that ran: shift (did you mean kns=shift?)"),
        (["run", "--device", "cpu", "-c", SHIFT + "k.compile()"], f"{NOTHING}: these were compiled only: shift"),
        (["run", "--device", "cpu", "-c", "pass"], NOTHING),
    ],
    ids=["check", "run", "child", "not-launched", "no-kernel"],
)  # fmt: skip
def test_where_nothing_was_checked_the_kernels_that_were_there_are_named(
    words: list[str], reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "subprocess" in words[-1]:
        monkeypatch.setenv("CONSAN_KERNEL_NAME", "kns=shfit")
    assert main([words[0], "-o", "r.json", *words[1:]]) == 67
    data = stored()
    assert (data["verdict"], data["incomplete"]) == ("incomplete", [reason])
    (outside,) = data["not_checked"]
    assert outside == "global-memory: races are not looked for (no kernel was checked)"


def test_a_report_says_what_it_does_not_look_for_and_who_wrote_it() -> None:
    assert check("clean", *OUT, "-o", "r.json") == 0
    data = stored()
    assert data["not_checked"] == []
    assert check("clean", *OUT, "--global", "off", "-o", "r.json", "--global", "off") == 0
    data = stored()
    assert data["not_checked"] == ["global-memory: races are not looked for (1 store and 0 atomic instructions in 1 kernel)"]
    assert data["consan"]
    assert {kernel["engine"] for kernel in data["kernels"] if kernel["launches"]} == {"record"}
