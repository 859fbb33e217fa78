"""`consan stress`, `reduce` and `replay` with programs of several ranks, and other schedules of their launches."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import consan
from consan.__main__ import main

# Rank 1 reads the data only if the flag is set, which no release precedes: most schedules do not show it.
HANDED_ON = """
extern "C" __global__ void kernel(unsigned *data, unsigned *flag, unsigned *out, int rank) {
    unsigned seen;
    if (rank == 0) {
        data[0] = 5;
        asm volatile("st.relaxed.sys.global.u32 [%0], 1;" ::"l"(flag) : "memory");
    } else {
        asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(seen) : "l"(flag) : "memory");
        if (seen) out[0] = data[0];
    }
}
"""
PROGRAM = f'''
import numpy as np
import consan
data, flag, out = (np.zeros(4, np.uint32) for _ in range(3))
consan.launch(consan.Kernel("""{HANDED_ON}"""), 1, 1, lambda rank: [data, flag, out, rank], ranks=2, device="cpu")
'''
WORLD = "import sys, torch.distributed as dist; dist.init_process_group('nccl'); sys.exit(dist.get_world_size())"
RARE = 11  # a seed that shows it


def campaign(tmp_path: Path, status: int, *words: str) -> dict[str, Any]:
    stored = tmp_path / "s.json"
    assert main(["stress", "--device", "cpu", "--workers", "0", "--confirm", "0", "-o", str(stored), *words]) == status
    found: dict[str, Any] = json.loads(stored.read_text())
    return found


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    Path("handed_on.py").write_text(PROGRAM)
    return "handed_on.py"


def launched(**options: Any) -> Any:
    data, flag, out = (np.zeros(4, np.uint32) for _ in range(3))
    return consan.launch(consan.Kernel(HANDED_ON), 1, 1, lambda rank: [data, flag, out, rank], ranks=2, device="cpu", **options)


def test_a_program_of_ranks_is_started_as_so_many_in_each_run(tmp_path: Path) -> None:
    found = campaign(tmp_path, 66, "--ranks", "3", "--seeds", "1", "-c", WORLD)
    assert [row["result"] for row in found["results"]] == ["exit 3"]
    assert " --ranks 3 " in " ".join(("", *found["subject"]["options"], ""))


@pytest.mark.slow
def test_a_race_of_one_schedule_is_found_reduced_and_replayed(program: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    found = campaign(tmp_path, 66, "--seeds", f"{RARE - 1}..{RARE}", program)
    assert [(row["finding"]["kind"], row["seeds"]) for row in found["findings"]] == [("global-race", [RARE])]
    assert main(["reduce", "--workers", "0", "-o", "r.json", "s.json"]) == 66
    (decision,) = json.loads(Path("r.json").read_text())["decisions"]
    assert "of CTA (0, 0, 0) of rank 1 is held back before kernel.cu:" in decision["words"]
    assert "until warp 0 of CTA (0, 0, 0) of rank 0 had come to" in decision["words"]
    capfd.readouterr()
    assert main(["replay", "--confirm", "1", "r.json"]) == 66
    assert "CTA (0,0,0), rank 1" in capfd.readouterr().out


def test_a_seed_shows_what_others_do_not() -> None:
    assert [launched(seed=seed).verdict for seed in (RARE - 1, RARE, RARE)] == ["clean", "violations", "violations"]


def test_other_schedules_of_the_ranks_are_explored() -> None:
    report = launched(explore=20)
    (finding,) = report.findings
    assert (finding.kind, {access.rank for access in finding.pair}) == ("global-race", {0, 1})
    (again,) = launched(seed=finding.seed).findings
    assert (again.kind, again.message) == (finding.kind, finding.message)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--ranks", "2", "k.cu", "--grid", "1", "--block", "1"], "--ranks is for a program"),
        (["--ranks", "17", "-c", "1"], "expected 1 to 16"),
        (["--ranks", "2", "--engine", "inline", "-c", "1"], "know one GPU"),
        (["--ranks", "2", "--", "/bin/true"], "a program that is not Python"),
    ],
)
def test_what_cannot_be_done_is_one_error(words: list[str], said: str, capfd: pytest.CaptureFixture[str]) -> None:
    for command in ("stress", "run") if words[-1] == "/bin/true" else ("stress",):
        assert main([command, "--device", "cpu", *words]) == 2
        (line,) = capfd.readouterr().err.splitlines()
        assert said in line
