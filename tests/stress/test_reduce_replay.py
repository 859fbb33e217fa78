"""From a campaign to the one delay that a failure needs, and from the file back to the failure."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from stress_support import FLAKY, LAUNCH, PROGRAM, consan, reduce, stress, write_kernel

CAMPAIGN, SCHEDULE = Path("s.json"), Path("r.json")
LATE_COPY = """extern "C" __global__ void k(const int* in, int* out) {
    __shared__ alignas(16) int s[64];
    int t = threadIdx.x;
    unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(s + t));
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" :: "r"(to), "l"(in + t) : "memory");
    __syncthreads();
    out[t] = s[t];
    asm volatile("cp.async.wait_all;" ::: "memory");
}
"""


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_kernel(tmp_path)
    np.save("right.npy", np.arange(64, dtype=np.int32) ^ 32)


def _campaign(*words: str, seeds: str = "8") -> Any:
    return stress("--seeds", seeds, "--confirm", "1", *(words or ("--expect", "2=right.npy", "flaky.cu", *LAUNCH)), out=CAMPAIGN)


def test_a_race_comes_down_to_one_warp_that_is_held_back(capfd: pytest.CaptureFixture[str]) -> None:
    document = _campaign()
    schedule = reduce("s.json", out=SCHEDULE)
    (decision,) = schedule["decisions"]
    assert decision["kind"] == "hold"
    assert len({(tuple(who["block"]), who["warp"]) for who in decision["who"]}) == 1
    assert "is held back before flaky.cu:" in decision["words"]
    assert "until warp" in decision["words"]
    wrong = next(row for row in document["results"] if row["wrong"])
    assert schedule["seed"] == wrong["seeds"][0]
    capfd.readouterr()
    assert consan("replay", "r.json") == 66
    out = capfd.readouterr().out
    assert decision["words"].split(" until ")[0] in out.replace("\n", " ")
    assert "error[data-race]" in out
    assert "reproduced: 3 of 3 times" in out


def test_another_process_repeats_it(tmp_path: Path) -> None:
    """With another seed for hashes, from another folder, whatever ran before."""
    _campaign()
    reduce("s.json", out=SCHEDULE)
    Path("elsewhere").mkdir()
    for seed in ("1", "2"):
        words = [sys.executable, "-m", "consan", "replay", "../r.json", "--confirm", "1", "-o", "report.json"]
        done = subprocess.run(
            words, cwd="elsewhere", env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, text=True, check=False
        )
        assert done.returncode == 66, done.stdout + done.stderr
        assert json.loads(Path("elsewhere/report.json").read_text())["findings"][0]["kind"] == "data-race"


def test_the_search_does_not_depend_on_the_workers() -> None:
    _campaign()
    alone = reduce("s.json", out=SCHEDULE)
    shared = reduce("s.json", out=Path("r2.json"), workers="2")
    assert alone["decisions"] == shared["decisions"]
    assert alone["outcome"] == shared["outcome"]


def test_a_copy_that_is_not_waited_for_comes_down_to_its_delay() -> None:
    write_kernel(Path(), "late.cu", LATE_COPY)
    launch = ["late.cu", "--grid", "2", "--block", "64", "--arg", "i32[64]=ones", "--arg", "i32[64]=zeros"]
    np.save("ones.npy", np.ones(64, np.int32))  # most runs are wrong: what most of them agree on is not what is right
    document = _campaign("--expect", "2=ones.npy", *launch, seeds="12")
    seeds = [seed for row in document["results"] if row["wrong"] for seed in row["seeds"]]
    # In some seeds a warp is held back, too, and the copy is late for it only: of the first few, one is late for nothing else.
    schedules = (reduce("s.json", "--seed", str(seed), out=SCHEDULE) for seed in seeds[:6])
    schedule = next(one for one in schedules if len(one["decisions"]) == 1)
    assert schedule["baseline"]["name"] == "prompt"
    (decision,) = schedule["decisions"]
    assert decision["kind"] == "land"
    assert decision["words"].startswith("the cp.async.ca.shared at late.cu:5, issued by warp ")
    assert len(decision["who"]) == 1, "of the copies of all warps those of one suffice"
    assert consan("replay", "r.json") == 66


def test_a_finding_that_is_in_every_run_needs_no_delay(capfd: pytest.CaptureFixture[str]) -> None:
    _campaign()
    schedule = reduce("s.json", "--finding", "1", out=SCHEDULE)
    assert schedule["failure"]["what"] == "finding"
    assert schedule["decisions"] == []
    assert "no delay is needed: it fails as it is" in capfd.readouterr().out
    assert consan("replay", "r.json", "--confirm", "1") == 66


def test_a_seed_of_a_campaign_is_replayed(capfd: pytest.CaptureFixture[str]) -> None:
    document = _campaign()
    seed = next(row for row in document["results"] if row["wrong"])["seeds"][0]
    assert consan("replay", "s.json", "--seed", str(seed), "--confirm", "2") == 66
    assert "reproduced: 2 of 2 times" in capfd.readouterr().out
    right = next(row for row in document["results"] if not row["wrong"])["seeds"][0]
    assert consan("replay", "s.json", "--seed", str(right), "--confirm", "1") == 1
    assert "NOT reproduced: 0 of 1 times" in capfd.readouterr().out


@pytest.mark.slow
def test_a_program() -> None:
    Path("flaky.py").write_text(PROGRAM)
    document = stress("--seeds", "1..4", "--confirm", "0", "flaky.py", out=CAMPAIGN)
    assert document["runs"]["wrong"]["runs"] > 0
    schedule = reduce("s.json", out=SCHEDULE, workers="2")
    assert [decision["kind"] for decision in schedule["decisions"]] == ["hold"]
    assert consan("replay", "r.json", "--confirm", "1") == 66
    Path("flaky.py").write_text(PROGRAM + "\n")
    assert consan("replay", "r.json") == 2


def test_a_changed_source_is_one_clear_error(capfd: pytest.CaptureFixture[str]) -> None:
    _campaign()
    reduce("s.json", out=SCHEDULE)
    write_kernel(Path(), text=FLAKY + "\n")
    for command in (["replay", "r.json"], ["reduce", "s.json"], ["replay", "s.json"]):
        capfd.readouterr()
        assert consan(*command) == 2
        error = capfd.readouterr().err
        assert error.count("\n") == 1
        assert f"flaky.cu has changed since {command[1]} was written" in error
    Path("flaky.cu").unlink()
    assert consan("replay", "r.json") == 2
    assert "cannot read flaky.cu: No such file" in capfd.readouterr().err


def _changed(name: str, **keys: Any) -> str:
    data = json.loads(Path(name).read_text())
    data.update(keys)
    Path("x.json").write_text(json.dumps(data))
    return "x.json"


def test_files_that_are_not_ours_are_refused(capfd: pytest.CaptureFixture[str]) -> None:
    _campaign()
    reduce("s.json", out=SCHEDULE)
    Path("t.json").write_text("no")
    Path("y.json").write_text(json.dumps({**json.loads(Path("s.json").read_text()), "kernels": ["0"]}))
    schedule = json.loads(Path("r.json").read_text())
    wrong = [
        (["replay", "none.json"], "cannot read none.json"),
        (["replay", "t.json"], "t.json is not JSON"),
        (["reduce", "r.json"], "expected consan.stress/1"),
        (["replay", _changed("r.json", schema="consan.report/1")], "x.json holds consan.report/1"),
        (["reduce", "s.json", "--finding", "9"], "--finding: there are 1, got 9"),
        (["reduce", "s.json", "--finding", "x"], "--finding: expected a whole number, got 'x'"),
        (["replay", "r.json", "--confirm", "0"], "--confirm: expected a number above zero, got '0'"),
        (["reduce", "y.json", "--workers", "0"], "the kernels that ran are not those of the campaign"),
        (["replay", "r.json", "--seed", "1"], "--seed: is for a file of consan stress"),
        (["replay", "s.json", "--seed", "777"], "does not list the result of seed 777"),
    ]
    for words, message in wrong:
        if "x.json" in words:
            _changed("r.json", schema="consan.report/1")
        assert consan(*words) == 2
        error = capfd.readouterr().err
        assert message in error
        assert error.count("\n") == 1
    for keys, message in (
        ({"decisions": [{}]}, "not a valid consan.schedule/1: "),
        ({"baseline": {"name": "odd"}}, "not a valid consan.schedule/1: a baseline"),
        ({"subject": {"type": "odd"}}, "not a valid consan.schedule/1"),
        ({"kernels": ["0"]}, "the kernels that ran are not those of the stored schedule"),
        ({"subject": {**schedule["subject"], "ptx_hash": ""}}, "compiles to another PTX"),
        ({"subject": {**schedule["subject"], "folder": "/nowhere"}}, "was written in /nowhere: No such file"),
    ):
        assert consan("replay", _changed("r.json", **keys)) == 2
        error = capfd.readouterr().err
        assert message in error
        assert error.count("\n") == 1


def test_a_seed_that_does_not_fail_is_refused(capfd: pytest.CaptureFixture[str]) -> None:
    document = _campaign()
    right = next(row for row in document["results"] if not row["wrong"])["seeds"][0]
    assert consan("reduce", "s.json", "--seed", str(right), "--workers", "0") == 2
    assert f"seed {right} does not fail here" in capfd.readouterr().err
