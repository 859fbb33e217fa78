"""The sets of AUDIT.md: what `fetch` brings of a repository, and what `table` counts."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from audit_compared import FOUND, GONE, LACKS, STILL, UNREAD, compared, listed
from public_audit import HERE, Finding, PublicSet, as_text, fetch, findings, findings_as_text, public_sets, rates, read_results

PROBLEM = "def get_inputs(): pass"
FILES = {
    "solutions/ab12.py": "ModelNew  # __shared__",
    "solutions/cd34.py": "ModelNew",
    "solutions/ef56.py": "ModelNew",
    "problems/l1_p23.py": PROBLEM,
    "problems/l2_p7.py": "another problem",
    "index.json": json.dumps({"Level 1: 23_Softmax": [{"file": "ab12"}], "Level 2: 7_Other": [{"file": "cd34"}]}),
    "runs/level1_run/problem_23_kernel.py": "ModelNew  # __shared__",
    "src/a.cu": "__global__",
    "src/b.cu": "__global__",
    "src/c.cu": "__global__",
    "src/old/d.cu": "__global__",
    "src/a.h": "",
    "docs/large.txt": "",
}


def _git(*arguments: str, at: Path) -> str:
    names = ("-c", "user.name=a", "-c", "user.email=a@b")
    return subprocess.run(["git", "-C", str(at), *names, *arguments], check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture(scope="module")
def mirrors(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("mirrors")
    work = folder / "owner/name"
    for name, text in FILES.items():
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_text(text)
    _git("init", "-q", at=work)
    _git("add", ".", at=work)
    _git("commit", "-q", "-m", "all", at=work)
    return folder


def _set(mirrors: Path, **more: Any) -> PublicSet:
    return PublicSet.of({"name": "set", "repository": "owner/name", "commit": _git("rev-parse", "HEAD", at=mirrors / "owner/name"), **more})


def _listed(folder: Path) -> list[str]:
    return [str(Path(line).relative_to(folder / "set")) for line in (folder / "set.files").read_text().splitlines()]


def test_a_set_has_its_files_and_what_lies_beside_them(mirrors: Path, tmp_path: Path) -> None:
    chosen = _set(mirrors, files=["src/**/*.cu"], beside=["src/*.h"], without=["src/old/*"], every=2)
    assert fetch(chosen, tmp_path, mirrors) == 2
    assert _listed(tmp_path) == ["src/a.cu", "src/c.cu"]
    assert (tmp_path / "set/src/a.h").is_file()
    assert not (tmp_path / "set/docs").exists()


def test_a_source_has_its_launch_file(mirrors: Path, tmp_path: Path) -> None:
    fetch(_set(mirrors, files=["src/a.cu"], launches={"src/a.cu": "flashinfer_topk.toml"}), tmp_path, mirrors)
    assert (tmp_path / "set/src/a.toml").read_text().startswith("# Two rows")


def test_a_source_has_a_module_that_calls_it(mirrors: Path, tmp_path: Path) -> None:
    """The module is audited in place of the sources that the glob names."""
    fetch(_set(mirrors, files=["src/*.cu"], launches={"src/[ab].cu": "vllm.py"}), tmp_path, mirrors)
    assert _listed(tmp_path) == ["src/a.py", "src/b.py", "src/c.cu"]
    assert "load(" in (tmp_path / "set/src/a.py").read_text()


def test_a_set_that_is_there_is_left_as_it_is(mirrors: Path, tmp_path: Path) -> None:
    chosen = _set(mirrors, files=["src/*.cu"])
    fetch(chosen, tmp_path, mirrors)
    (tmp_path / "set/src/b.cu").unlink()
    assert fetch(chosen, tmp_path, mirrors) == 2
    assert _listed(tmp_path) == ["src/a.cu", "src/c.cu"]


def test_a_solution_has_its_problem_by_an_index(mirrors: Path, tmp_path: Path) -> None:
    chosen = _set(mirrors, files=["solutions/*.py"], contains="__shared__", problem="problems/l{}_p{}.py", index="index.json")
    assert fetch(chosen, tmp_path, mirrors) == 1
    assert _listed(tmp_path) == ["solutions/ab12.py"]
    assert (tmp_path / "set/solutions/ab12.py").read_text() == f"{FILES['solutions/ab12.py']}\n\n{PROBLEM}"


def test_a_solution_that_no_index_names_has_no_problem(mirrors: Path, tmp_path: Path) -> None:
    fetch(_set(mirrors, files=["solutions/ef*.py"], problem="problems/l{}_p{}.py", index="index.json"), tmp_path, mirrors)
    assert (tmp_path / "set/solutions/ef56.py").read_text() == FILES["solutions/ef56.py"]


def test_a_solution_has_its_problem_by_its_name(mirrors: Path, tmp_path: Path) -> None:
    fetch(_set(mirrors, files=["runs/**/*.py"], problem="problems/l{}_p{}.py", named=r"level_?(\d+).*problem_(\d+)"), tmp_path, mirrors)
    assert (tmp_path / "set/runs/level1_run/problem_23_kernel.py").read_text().endswith(PROBLEM)


def test_a_repository_without_a_mirror_is_named(mirrors: Path, tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="owner/other: not in"):
        fetch(PublicSet("set", "owner/other", "0" * 40, ("*",)), tmp_path, mirrors)
    assert not (tmp_path / "set").exists()


def _row(kernel: str, verdict: str, *found: str, launches: int = 1, guessed: bool = False) -> dict[str, Any]:
    return {
        "kernel": kernel,
        "verdict": verdict,
        "launches": launches,
        "guessed": guessed,
        "findings": [{"kind": each.removeprefix("?"), "severity": "warning" if each[0] == "?" else "error"} for each in found],
    }


ROWS = [
    _row("a::f<int>", "violations", "data-race"),
    _row("g", "violations", "data-race", "global-race"),
    _row("h", "violations", "data-race"),
    _row("i", "clean"),
    _row("j", "clean", "?data-race"),
    _row("k", "incomplete"),
    _row("l", "warnings (guessed launch)", "?data-race", guessed=True),
    _row("m", "not reached", launches=0),
]
JUDGED = (Finding("set", "a.cu", "f", "true", ""), Finding("set", "a.cu", "g", "benign", "", ("data-race",)))


def test_rates_count_each_kernel_once(tmp_path: Path) -> None:
    timed_out = {"kernel": "", "verdict": "timed out", "launches": 0, "guessed": False, "findings": []}
    results = [
        {"file": str(tmp_path / "set/a.cu"), "rows": [_row(name, "not reached", launches=0) for name in "fm"], "seconds": 0.5},
        {"file": str(tmp_path / "set/a.cu"), "rows": ROWS, "seconds": 0.5},
        {"file": str(tmp_path / "set/b.cu"), "rows": [timed_out], "seconds": 2.0},
    ]
    found, total = rates(results, tmp_path, JUDGED)
    counts = (found.kernels, found.launched, found.clean, found.true, found.benign, found.false, found.unread)
    assert counts == (8, 7, 1, 1, 0, 0, 2)  # of `g` one error has no judgement
    assert (found.warnings, found.incomplete, found.guessed, found.unreached, found.files, found.stopped) == (1, 1, 1, 1, 2, 1)
    assert found.as_dict()["seconds"] == {"median": 1.5, "p90": 2.0, "sum": 3.0}
    assert total.as_dict() == {**found.as_dict(), "set": "all"}
    assert as_text([found]).splitlines()[2].startswith("| set | 2 | 8 | 7 | 1 | 1 | 0 | 0 | 2 |")


def test_results_are_read_from_json_and_from_a_journal(tmp_path: Path) -> None:
    result = {"file": "a.cu", "rows": ROWS, "seconds": 1.0}
    (tmp_path / "a.json").write_text(json.dumps({"files": [result]}, indent=2))
    (tmp_path / "a.journal").write_text(json.dumps({"digest": "1", "result": result}) + '\n{"digest": "2", "res')
    assert read_results([tmp_path / "a.json", tmp_path / "a.journal"]) == [result, result]


def test_the_lists_can_be_read_and_name_each_other() -> None:
    sets = {each.name: each for each in public_sets()}
    assert all(len(each.commit) == 40 and each.files for each in sets.values())
    for each in findings():
        assert each.set in sets, each
        assert each.judgement in ("true", "benign", "false"), each
        assert len(each.why) > 20, each


def test_the_page_has_the_findings() -> None:
    assert findings_as_text(findings()) in (HERE / "AUDIT.md").read_text()


def _reported(kernel: str, *found: tuple[str, str]) -> dict[str, Any]:
    return {
        "kernel": kernel,
        "findings": [{"kind": kind, "severity": each, "lines": [7, 9], "message": "it races"} for kind, each in found],
    }


@pytest.mark.parametrize(
    ("judgement", "found", "said"),
    [
        ("true", [("data-race", "warning")], [FOUND]),
        ("true", [], [LACKS]),
        ("benign", [], [GONE]),
        ("benign", [("data-race", "error")], [FOUND]),
        ("false", [("data-race", "error")], [STILL]),
        ("false", [("data-race", "warning")], [GONE]),
        ("true", [("data-race", "error"), ("fault", "error")], [FOUND, UNREAD]),
    ],
)
def test_findings_are_compared_with_what_was_read(judgement: str, found: list[tuple[str, str]], said: list[str], tmp_path: Path) -> None:
    judged = (Finding("set", "src/a.cu", "k", judgement, "why", ("data-race",), "7, 9"),)
    result = {"file": str(tmp_path / "set/src/a.cu"), "rows": [_reported("n::k<int>", *found)]}
    assert [what for what, _ in compared([result], tmp_path, judged)] == said


def test_files_with_findings_are_listed(tmp_path: Path) -> None:
    (tmp_path / "set").mkdir()
    (tmp_path / "set/a.cu").write_text("")
    judged = tuple(Finding(name, "a.cu", kernel, "true", "why") for name in ("set", "absent") for kernel in ("k", "l"))
    assert listed(judged, tmp_path) == listed(judged, tmp_path, ["set"]) == [tmp_path / "set/a.cu"]
    assert listed(judged, tmp_path, ["absent"]) == []
