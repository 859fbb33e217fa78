"""The tutorials do what they say: every command of their READMEs runs, exercises report violations, solutions are clean.

The commands are taken from the READMEs' `console` blocks, so that what a reader types is what is tested.
"""

from __future__ import annotations

import difflib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2] / "tutorials"
FOLDERS = sorted({path.parent for path in ROOT.glob("*/exercise.*")})  # 04_pytest has a test of its own

# What each exercise must be found guilty of: the kind, and a piece of each of the two source lines.
FINDINGS = {
    "01_missing_syncthreads": ("data-race", {"float right = row[t + 1]", "row[t] = 0.5f"}),
    "02_missing_cp_async_wait": ("missing-wait", {"copy16(&ring[stage][0]", "tile[out_row + x][out_col] = sum[x]"}),
    "05_mbarrier_pipeline": ("missing-wait", {"cp.async.bulk.shared::cluster", "sum += ring[stage][thread]"}),
    "06_flaky_multicast": ("missing-wait", {"multicast(scales, scale, &ready)", "sum * scales[t] * (rank + 1)"}),
    "07_split_k": ("global-race", {"parts[blockIdx.x * THREADS + t] = sum", "total += parts[i * THREADS + t]"}),
    "08_cute_program": ("missing-wait", {"copy(copies, mine.partition_S(from)", "= tile(column, row)"}),
    "10_two_cta_gemm": ("data-race", {"*reinterpret_cast<uint4*>(tile", "multiply(d, tile_a, tile_b"}),
    "12_cute_dsl": ("missing-wait", {"cute.copy(atom, source[None, tile]", "total += ring[row, thread"}),
    "13_one_shot_all_reduce": ("global-race", {"tl.store(mine + i, total)", "total += tl.load(buffers[peer] + i)"}),
    "14_pallas": ("missing-wait", {"plgpu.copy_smem_to_gmem(result", "result[...] = tile[...] * 2"}),
    "03_triton": ("missing-wait", {"start_copy(ring.index(ahead % STAGES)", "total += ring.index(row % STAGES)"}),
}


BESIDE = {"12_cute_dsl": {"lifetime", "barrier-misuse"}}  # what follows: loads are in flight at the kernel's end, and at the next load
NEEDS = {"03_triton": "triton", "13_one_shot_all_reduce": "triton", "12_cute_dsl": "nvidia_cutlass_dsl", "14_pallas": "jax jax_plugins"}
CUTLASS = os.environ.get("CUTLASS", "")  # a checkout, which tutorial 8 needs
IN_CUDA = [folder for folder in FOLDERS if (folder / "exercise.cu").exists()]


@pytest.fixture(autouse=True)
def _needs(request: pytest.FixtureRequest) -> None:
    folder = request.node.callspec.params.get("folder") if hasattr(request.node, "callspec") else None
    for module in NEEDS.get(folder.name, "").split() if folder is not None else ():
        pytest.importorskip(module, reason=f"{module} is not installed")
    if folder is not None and folder.name.startswith("08") and "differ" not in request.node.name and not CUTLASS:
        pytest.skip("CUTLASS names no checkout of it")


def _copy(folder: Path, into: Path) -> Path:
    """A copy of a tutorial, with CUTLASS beside it if there is one."""
    copy = shutil.copytree(folder, into / folder.name)
    if CUTLASS:
        (copy / "cutlass").symlink_to(CUTLASS)
    return copy


def _commands(folder: Path) -> list[str]:
    blocks = re.findall(r"```console\n(.*?)```", (folder / "README.md").read_text(), re.DOTALL)
    lines = [line[2:] for block in blocks for line in block.splitlines() if line.startswith("$ ")]
    return [line for line in lines if line.startswith("consan ")]


def _run(command: str, folder: Path, *more: str) -> subprocess.CompletedProcess[str]:
    words = shlex.split(command)[1:]
    # Options of `run` stand before the script: what follows it belongs to the script.
    line = [sys.executable, "-m", "consan", words[0], *more, *words[1:]]
    return subprocess.run(line, cwd=folder, capture_output=True, text=True, timeout=240, check=False)


def _check_of(folder: Path) -> str:
    """The README's first command that checks the exercise."""
    wanted = "check exercise" if folder in IN_CUDA else "exercise.py"
    return next(command for command in _commands(folder) if wanted in command)


TRIAGE = ("stress", "reduce", "replay")  # each takes the file that the one before it stored
COMMANDS = [
    pytest.param(folder, command, id=f"{folder.name[:2]}-{i}")
    for folder in FOLDERS
    for i, command in enumerate(_commands(folder))
    if command.split()[1] not in TRIAGE and command != _check_of(folder)
]


@pytest.mark.parametrize(("folder", "command"), COMMANDS)
def test_command_of_the_readme(folder: Path, command: str, tmp_path: Path) -> None:
    copy = _copy(folder, tmp_path)  # `consan run` stores its report in the working directory
    done = _run(command, copy)
    expected = 66 if "exercise" in command else 0
    assert done.returncode == expected, done.stdout + done.stderr
    if "solution.py" in command:
        assert re.search(r"^0 of \d+ numbers are wrong", done.stdout, re.MULTILINE), done.stdout


def test_the_wait_is_missing_for_some_sizes_only(tmp_path: Path) -> None:
    """Tutorial 2 with k = 64: the late copies go where the epilogue does not write. They are still in flight at the end."""
    folder = next(folder for folder in FOLDERS if folder.name.startswith("02"))
    command = _check_of(folder).replace("i32=96", "i32=64").replace("f32[3072]", "f32[2048]")
    copy, out = _copy(folder, tmp_path), tmp_path / "report.json"
    assert _run(command, copy, "--format", "json", "-o", str(out)).returncode == 66
    assert [finding["kind"] for finding in json.loads(out.read_text())["findings"]] == ["lifetime"]
    assert _run(command.replace("exercise", "solution"), copy).returncode == 0


@pytest.mark.slow
@pytest.mark.timeout(1200)  # a minute on an idle machine of two cores
def test_triage_walks_to_the_missing_wait(tmp_path: Path) -> None:
    """The commands of tutorial 6, one after another: rare wrong results, findings in all runs, one delay, and the same again."""
    folder = shutil.copytree(ROOT / "06_flaky_multicast", tmp_path / "tutorial")
    commands = [command for command in _commands(folder) if command.split()[1] in TRIAGE]
    assert [command.split()[1] for command in commands] == [*TRIAGE, "stress"]
    shown = [_run(command, folder) for command in commands]
    assert [done.returncode for done in shown] == [66, 66, 66, 0], shown
    document = json.loads((folder / "flaky.json").read_text())
    assert 0 < document["runs"]["wrong"]["runs"] < 20
    assert document["runs"]["with_errors"]["runs"] == document["runs"]["ok"] == 40
    schedule = json.loads((folder / "flaky.schedule.json").read_text())
    (decision,) = schedule["decisions"]
    copied = (folder / "exercise.cu").read_text().splitlines()[int(decision["where"]["call"].partition(":")[2]) - 1]
    assert "multicast(scales, scale, &ready)" in copied
    assert (decision["kind"], decision["receiver"][1:]) == ("land", [0, 0])
    assert decision["words"].split(" for ")[0] in (folder / "README.md").read_text(), "the README quotes it"
    assert "reproduced: 3 of 3 times" in shown[2].stdout


@pytest.mark.slow
def test_the_product_of_two_ctas_is_rarely_wrong_and_always_reported(tmp_path: Path) -> None:
    folder = shutil.copytree(ROOT / "10_two_cta_gemm", tmp_path / "tutorial")
    (stress,) = (command for command in _commands(folder) if command.split()[1] == "stress")
    assert _run(stress, folder).returncode == 66
    runs = json.loads((folder / "flaky.json").read_text())["runs"]
    assert 0 < runs["wrong"]["runs"] < 15
    assert runs["with_errors"]["runs"] == runs["ok"] == 100


def _source_lines(access: dict[str, object], source: list[str]) -> set[str]:
    chain = access.get("inlined") or []
    assert isinstance(chain, list)
    return {source[place["line"] - 1] for place in [access, *chain] if place.get("line") and Path(str(place["file"])).stem == "exercise"}


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_exercise_is_reported_at_both_lines(folder: Path, tmp_path: Path) -> None:
    kind, pieces = FINDINGS[folder.name]
    out = tmp_path / "report.json"
    source_file = folder / ("exercise.cu" if folder in IN_CUDA else "exercise.py")
    done = _run(_check_of(folder), _copy(folder, tmp_path), "--format", "json", "-o", str(out))
    assert done.returncode == 66, done.stdout + done.stderr
    report = json.loads(out.read_text())
    source = source_file.read_text().splitlines()
    shown = [[_source_lines(access, source) for access in finding["accesses"]] for finding in report["findings"]]
    assert {finding["kind"] for finding in report["findings"]} - BESIDE.get(folder.name, set()) == {kind}
    assert any(all(any(piece in line for lines in access for line in lines) for piece in pieces) for access in shown), shown


@pytest.mark.parametrize("folder", IN_CUDA, ids=lambda folder: folder.name)
def test_exercise_and_solution_differ_by_one_line(folder: Path) -> None:
    exercise = (folder / "exercise.cu").read_text().splitlines()
    solution = (folder / "solution.cu").read_text().splitlines()
    changes = [line[:2] for line in difflib.ndiff(exercise, solution) if line[:2] in ("+ ", "- ")]
    assert sorted(changes) in (["+ "], ["+ ", "- "])  # a line added, or moved


def test_the_solution_for_cute_dsl_changes_one_line() -> None:
    exercise, solution = ((ROOT / "12_cute_dsl" / name).read_text().splitlines() for name in ("exercise.py", "solution.py"))
    changed = [(old.strip(), new.strip()) for old, new in zip(exercise, solution, strict=True) if old != new]
    assert changed == [("phase = tile % STAGES", "phase = tile // STAGES % 2")]


def test_the_solution_for_triton_moves_one_line() -> None:
    exercise, solution = ((ROOT / "03_triton" / name).read_text().splitlines() for name in ("exercise.py", "solution.py"))
    changed = [(old, new) for old, new in zip(exercise, solution, strict=True) if old != new]
    assert [(old.strip(), new.strip()) for old, new in changed] == [("async_copy.commit_group()",) * 2]
