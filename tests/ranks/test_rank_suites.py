"""The scripts that run public kernels of several ranks: a program is checked, and an edit of a copy is what runs."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent.parent / "suites"))
import rank_deepep
import rank_kernels
import rank_triton

from consan.toolchain.nvrtc import compile_ptx

SUM = """
extern "C" __global__ void sum(float **peers, float *out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    for (int k = 4 * i; k < 4 * i + 4; k++) out[k] = peers[0][k] + peers[1][k];
}
"""


@pytest.fixture(scope="module")
def ptx() -> str:
    return compile_ptx(rank_kernels.FILL + SUM).ptx


@pytest.mark.parametrize(("meets", "found"), [(True, []), (False, ["global-race (no-rank-edge)"])], ids=["a barrier", "no barrier"])
def test_a_program_of_the_script_is_checked(meets: bool, found: list[str], ptx: str) -> None:
    def program(rank: rank_kernels.Rank) -> None:
        rank.fill()
        if meets:
            rank.meet()
        rank.send("sum", [("u64", rank.table), ("*fp32", rank.out)])
        rank.meet()

    report, right = rank_kernels.checked(program, ptx, 0)
    assert (list(rank_kernels.pairs(report)), report.verdict == "clean", right) == (found, meets, True), str(report)


def test_what_runs_is_an_edit_of_a_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "kernel.py").write_text("scope = 'sys'\n")
    ran: list[tuple[str, int, str]] = []

    def run(program: str, folder: Path, seed: int) -> tuple[int, str]:
        ran.append((program, seed, (folder / "kernel.py").read_text()))
        return 66 * seed, "a race"

    monkeypatch.setattr(rank_triton, "run_once", run)
    rank_triton.show_row("a fault", "program", tmp_path, (("kernel.py", "'sys'", "'gpu'"),), 2)
    assert ran == [("program", 0, "scope = 'gpu'\n"), ("program", 1, "scope = 'gpu'\n")]
    assert (tmp_path / "kernel.py").read_text() == "scope = 'sys'\n"
    assert capsys.readouterr().out.splitlines()[1] == "a race"
    with pytest.raises(SystemExit, match="no 'cta'"):
        rank_triton.show_row("a fault", "program", tmp_path, (("kernel.py", "cta", "gpu"),), 1)


def test_faults_of_deepep_are_planted_in_the_mended_text() -> None:
    for row, edits in {**rank_deepep.FAULTS, **rank_deepep.COMBINE_FAULTS}.items():
        whole = rank_deepep.ROWS[row]
        assert whole[: -len(edits)] == rank_deepep.ROWS["mended"]
        assert whole[-len(edits) :] == edits
