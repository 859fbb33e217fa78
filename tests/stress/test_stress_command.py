"""`consan stress` from its words to its document, its table and its status."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from stress_support import FLAKY, LAUNCH, PROGRAM, consan, stress, write_kernel

from consan.triage.show import show_stress

OUT = Path("s.json")


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_kernel(tmp_path)


def stress_text(document: Any) -> str:
    """The tables as plain text."""
    out = io.StringIO()
    show_stress(document, out)
    return "".join(line.rstrip() + "\n" for line in out.getvalue().splitlines())


def test_the_finding_is_there_in_runs_whose_result_was_right() -> None:
    np.save("right.npy", np.arange(64, dtype=np.int32) ^ 32)
    document = stress("--seeds", "30", "--expect", "2=right.npy", "flaky.cu", *LAUNCH, out=OUT, status=66)
    runs = document["runs"]
    assert runs["ok"] == 30
    assert 0 < runs["wrong"]["runs"] < 30
    assert runs["with_errors"]["runs"] == 30, "the race is in every run"
    assert runs["right_with_errors"] == runs["right"] == 30 - runs["wrong"]["runs"]
    (finding,) = document["findings"]
    assert (finding["finding"]["kind"], finding["runs"], finding["of"]) == ("data-race", 30, 30)
    assert finding["interval"][0] > 0.88
    assert finding["confirmed"] == {"same": 3, "runs": 3}
    right, *wrong = document["results"]
    assert not right["wrong"]
    assert [row["wrong"] for row in wrong] == [True] * len(wrong)
    assert all(row["confirmed"] == {"same": 3, "runs": 3} for row in wrong)
    assert "of 64 elements of --arg 2 (the first, [" in wrong[0]["differences"]
    text = stress_text(document)
    assert "error: data-race" in text
    assert "flaky.cu:8 ld.shared.u32" in text
    wrong_runs = runs["wrong"]["runs"]
    assert f"wrong result in {wrong_runs} of 30 runs; an error reported in 30 of 30, also in {30 - wrong_runs}" in text


def test_what_was_stored_is_shown_again(capfd: pytest.CaptureFixture[str]) -> None:
    stress("--seeds", "2", "--confirm", "0", "flaky.cu", *LAUNCH, out=OUT)
    shown = capfd.readouterr().out
    assert consan("report", "s.json") == 0
    assert capfd.readouterr().out.strip() == shown.rpartition("stored: ")[0].strip()


def test_a_seed_of_a_campaign_is_the_seed_of_a_check() -> None:
    """What the campaign says of a seed, `consan check` with that seed says in a process that has run nothing before."""
    document = stress("--seeds", "1..3", "flaky.cu", *LAUNCH, out=OUT)
    (finding,) = document["findings"]
    import subprocess
    import sys

    words = [sys.executable, "-m", "consan", "check", "--device", "cpu", "--seed", "1", "-o", "r.json", "flaky.cu", *LAUNCH]
    assert subprocess.run(words, check=False, capture_output=True).returncode == 66
    (alone,) = json.loads(Path("r.json").read_text())["findings"]
    again, recorded = alone.pop("verified"), finding["finding"].pop("verified")
    assert alone.pop("outcomes")["output"] == "out[0]", "a campaign does not run both orders of a race"
    assert alone == finding["finding"]
    assert (again["rerun"], recorded["rerun"]) == (True, False), "a campaign runs no changed kernels, and asks what was recorded"
    assert all(again[name] == recorded[name] for name in ("steps", "edits", "left"))


def test_a_repaired_kernel_is_clean() -> None:
    document = stress("--seeds", "12", "--define", "FIXED", "flaky.cu", *LAUNCH, out=OUT, status=0)
    assert document["verdict"] == "clean"
    assert document["findings"] == []
    assert [row["runs"] for row in document["results"]] == [12]


def test_options_may_stand_on_both_sides_of_the_file() -> None:
    document = stress("--seeds", "9", *LAUNCH[:6], "flaky.cu", *LAUNCH[6:], "--confirm", "0", "--seeds", "2", out=OUT)
    assert document["seeds"]["asked"] == 2
    assert document["subject"]["args"] == ["i32[64]=arange", "i32[64]=zeros"]
    assert document["subject"]["grid"] == [1, 1, 1]
    assert document["findings"][0]["confirmed"] is None


def test_what_is_expected_decides_what_is_right() -> None:
    np.save("right.npy", np.arange(64, dtype=np.int32) ^ 32)
    np.save("other.npy", np.full(64, 99, np.int32))
    document = stress("--seeds", "12", "--expect", "2=right.npy", "flaky.cu", *LAUNCH, out=OUT)
    assert document["reference"]["from"] == "expected"
    assert 0 < document["runs"]["wrong"]["runs"] < 12
    document = stress("--seeds", "3", "--expect", "2=other.npy", "flaky.cu", *LAUNCH, out=OUT)
    assert document["runs"]["right"] == 0
    assert all(row["differences"].startswith("64 of 64 elements of --arg 2 (the first, [0], is ") for row in document["results"])


DRIFTING = """extern "C" __global__ void k(int* out) {
    __shared__ int turn;
    if (threadIdx.x == 0) turn = 0;
    __syncthreads();
    if (threadIdx.x % 32 == 0)
        for (int n = 0; n < 256; ++n) out[threadIdx.x / 32] += n * atomicAdd(&turn, 1);
}
"""
DRIFTING_LAUNCH = ["drifting.cu", "--grid", "1", "--block", "256", "--arg", "i32[8]=zeros"]


def test_without_a_majority_no_result_is_right_or_wrong() -> None:
    """The order in which eight warps count is open, and no order is a defect: most seeds have one of their own.

    They count long enough for each seed to delay some of them, and each turn is part of the result.
    """
    write_kernel(Path(), "drifting.cu", DRIFTING)
    document = stress("--seeds", "8", "--confirm", "1", *DRIFTING_LAUNCH, out=OUT)
    runs = document["runs"]
    assert len(document["results"]) > 2
    assert {row["wrong"] for row in document["results"]} == {None}
    assert (runs["ok"], runs["right"], runs["wrong"]["runs"], runs["undecided"]) == (8, 0, 0, 8)
    assert document["reference"] == {"from": "none", "result": ""}
    reason = f"no result has a majority: nothing says which of {len(document['results'])} results is right"
    assert (document["verdict"], document["incomplete"]) == ("incomplete", [reason])
    text = stress_text(document)
    assert "results (no result has a majority: nothing says what is right)" in text
    assert "no result has a majority; an error reported in 0 of 8." in text
    assert "WRONG" not in text
    assert " right " not in text.replace("what is right", "").replace("results is right", "")
    stress("--allow-incomplete", "--seeds", "8", "--confirm", "0", *DRIFTING_LAUNCH, out=OUT, status=0)
    assert consan("reduce", str(OUT)) == 2


def test_with_a_file_that_says_it_no_majority_is_needed() -> None:
    write_kernel(Path(), "drifting.cu", DRIFTING)
    np.save("right.npy", np.full(8, 9, np.int32))
    document = stress("--seeds", "8", "--confirm", "0", "--expect", "1=right.npy", *DRIFTING_LAUNCH, out=OUT, status=66)
    assert (document["reference"]["from"], document["runs"]["wrong"]["runs"], document["runs"]["undecided"]) == ("expected", 8, 0)


def test_it_says_what_it_does_not_look_for() -> None:
    assert stress("--seeds", "1", "--confirm", "0", "flaky.cu", *LAUNCH, out=OUT)["not_checked"] == []
    document = stress("--seeds", "1", "--confirm", "0", "--global", "off", "flaky.cu", *LAUNCH, out=OUT)
    assert document["not_checked"] == ["global-memory: races are not looked for (1 store and 0 atomic instructions in 1 kernel)"]


def test_a_launch_that_deadlocks_is_a_result_of_its_own() -> None:
    text = """extern "C" __global__ void k(int* out) {
        if (threadIdx.x < 32) asm volatile("bar.sync 1, 64;" ::: "memory");
        else if (threadIdx.x > 64) asm volatile("bar.sync 1, 64;" ::: "memory");
        out[threadIdx.x] = 1; }"""
    write_kernel(Path(), "stuck.cu", text)
    document = stress("--seeds", "3", "stuck.cu", "--grid", "1", "--block", "64", "--arg", "i32[64]=zeros", out=OUT, status=66)
    assert [(row["ended"], row["wrong"]) for row in document["results"]] == [("deadlock", True)]
    assert document["findings"][0]["finding"]["kind"] == "deadlock"


def test_a_run_that_takes_too_long_is_no_evidence() -> None:
    """A loop that stores is never proven to hang."""
    text = 'extern "C" __global__ void k(volatile int* out) { int n = 0; while (!out[0]) out[1] = ++n; }'
    write_kernel(Path(), "spin.cu", text)
    words = ["--run-timeout", "0.3", "spin.cu", "--grid", "1", "--block", "32", "--arg", "i32[64]=zeros"]
    document = stress("--seeds", "2", *words, out=OUT, status=67)
    assert (document["verdict"], document["findings"], document["results"]) == ("incomplete", [], [])
    (failure,) = document["failures"]
    assert (failure["status"], failure["runs"], failure["seeds"]) == ("timeout", 2, [1, 2])
    assert stress("--allow-incomplete", "--seeds", "1", *words, out=OUT, status=0)["runs"]["failed"] == 1
    assert "timeout" in stress_text(document)


def test_a_loop_that_never_ends_is_a_result_and_not_a_timeout() -> None:
    write_kernel(Path(), "spin.cu", 'extern "C" __global__ void k(volatile int* out) { while (!out[0]) {} }')
    words = ["--seeds", "2", "spin.cu", "--grid", "1", "--block", "32", "--arg", "i32[64]=zeros"]
    document = stress(*words, out=OUT, status=66)
    assert ([row["ended"] for row in document["results"]], document["failures"]) == (["deadlock"], [])
    assert "argument 1 (value 0)" in document["findings"][0]["finding"]["message"]


def test_a_program(capfd: pytest.CaptureFixture[str]) -> None:
    Path("flaky.py").write_text(PROGRAM)
    document = stress("--seeds", "1..5", "--confirm", "1", "flaky.py", "its", "--own", out=OUT, status=66)
    assert document["subject"]["words"] == ["flaky.py", "its", "--own"]
    assert document["runs"]["with_errors"]["runs"] == 5
    assert {row["result"]: row["wrong"] for row in document["results"]} == {"exit 0": False, "exit 1": True}
    assert len(document["kernels"]) == 1
    assert "flaky.py its --own: seeds 1 to 5 on cpu" in capfd.readouterr().out


def test_switches_and_the_engine_reach_each_run() -> None:
    Path("flaky.py").write_text(PROGRAM)
    words = ["--seeds", "1..2", "--confirm", "0", "--engine", "record", "--exhaustive"]
    document = stress(*words, "flaky.py", out=OUT, status=66)
    given = [word for word in document["subject"]["options"] if word not in ("--explore", "0.0")]  # conftest.py asks for it
    assert given[:3] == ["--engine", "record", "--exhaustive"]
    document = stress(*words, "flaky.cu", *LAUNCH, out=OUT, status=66)
    assert (document["subject"]["engine"], document["subject"]["exhaustive"]) == ("record", True)


def test_what_a_program_prints_can_be_its_result() -> None:
    Path("p.py").write_text(PROGRAM.replace("sys.exit(wrong > 0)", "").replace("print(wrong,", "print(wrong > 0,"))
    document = stress("--seeds", "1..5", "--confirm", "0", "--compare-stdout", "p.py", out=OUT)
    assert document["reference"]["from"] == "majority"
    assert {row["wrong"] for row in document["results"]} == {False, True}
    assert all("exit 0, printed " in row["result"] for row in document["results"])


@pytest.mark.parametrize(
    ("text", "status", "detail"),
    [
        ("import os; os.kill(os.getpid(), 11)", "crash", "ended by SIGSEGV"),
        ("import os; os._exit(3)", "crash", "ended with status 3"),
        ("raise MemoryError('too much')", "out-of-memory", "too much"),
        ("import time; time.sleep(60)", "timeout", "did not end within 1 s"),
    ],
)
def test_failures_of_a_programs_process_are_kept_apart(text: str, status: str, detail: str) -> None:
    Path("p.py").write_text(text)
    document = stress("--seeds", "1", "--run-timeout", "1" if status == "timeout" else "60", "p.py", out=OUT, status=67)
    (failure,) = document["failures"]
    assert failure["status"] == status
    assert detail in failure["detail"]
    assert document["results"] == []


GIVEN = "flaky.cu --grid 1 --block 64 --arg i32[64]=zeros --arg i32[64]=zeros"
ERRORS = {
    "what.txt": "cannot read what.txt",
    "flaky.cu": "a kernel needs --grid and --block",
    "--seeds 0 flaky.cu": "--seeds: expected a number above zero",
    "--seeds 5..2 flaky.cu": "--seeds: expected N or A..B",
    "--grid 4 p.py": "--grid is for a kernel's file",
    "--arg i32=1 p.py": "--arg is for a kernel's file",
    f"--workers -1 {GIVEN}": "--workers: expected a number that is not negative",
    f"--executor x://y {GIVEN}": "--executor: expected dask://HOST:PORT",
    f"--expect 3=x.npy {GIVEN}": "cannot read",
    f"--expect 3=f.npy {GIVEN}": "--expect: expected N=FILE.npy, where argument N is a buffer",
    f"--expect 2=f.npy {GIVEN}": "f.npy holds 3 elements of float64, argument 2",
    f"--keep-histories --engine record {GIVEN}": "--keep-histories: stress keeps no histories",
    "--format html flaky.cu": "consan stress writes text and json, not html",
    f"--rtol -1 {GIVEN}": "--rtol: expected a number that is not negative",
    f"--rtol 1e-5 {GIVEN}": "--rtol needs --expect: without it runs are compared with each other, bit for bit",
    "flaky.cu --grid 1 --block 64 --arg i32[64]=zeros": "exchange takes 2 arguments",
    f"{GIVEN} --seed x": "--seed: expected a whole number",
    f"{GIVEN} --kernel-name kns=other": "--kernel-name kns=other leaves out exchange, the only kernel that is launched",
    f"{GIVEN} --launch-skip 1": "--launch-skip 1 leaves out the only launch of exchange",
}


@pytest.mark.parametrize("words", ERRORS)
def test_one_clear_line(words: str, capfd: pytest.CaptureFixture[str]) -> None:
    Path("p.py").write_text("")
    np.save("f.npy", np.zeros(3))
    workers = [] if "--workers" in words else ["--workers", "0"]
    assert consan("stress", "--device", "cpu", *workers, *words.split()) == 2
    captured = capfd.readouterr()
    assert ERRORS[words] in captured.err
    assert captured.err.count("\n") == 1
    assert not Path(".consan").exists()


def test_an_instruction_that_no_run_can_execute_is_said_once(capfd: pytest.CaptureFixture[str]) -> None:
    text = FLAKY.replace("s[t] = in[t];", 's[t] = in[t]; asm volatile("discard.global.L2 [%0], 128;" :: "l"(in));')
    write_kernel(Path(), "odd.cu", text)
    code = consan("stress", "--device", "cpu", "--workers", "0", "--seeds", "2", "odd.cu", *LAUNCH)
    error = capfd.readouterr().err
    assert (code, error.count("\n")) in ((2, 1), (66, 0)), error


def test_tensor_memory_is_recorded_in_each_run() -> None:
    """Called hooks do not know it."""
    Path("t.ptx").write_text("""
.version 8.7
.target sm_100a
.address_size 64
.visible .entry kernel() {
    .shared .align 4 .b32 base;
    .reg .b32 %r1;
    mov.u32 %r1, base;
    tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r1], 32;
    ret;
}
""")
    document = stress("--seeds", "1..2", "--confirm", "0", "t.ptx", "--grid", "1", "--block", "32", out=OUT, status=66)
    assert [(each["finding"]["kind"], each["runs"]) for each in document["findings"]] == [("tcgen05-misuse", 2)]
