"""Kernels on which consan and the oracle once differed: each must be agreed upon, in several schedules, and have the right verdict.

A file says how it is launched (`// launch: grid=1 block=64 verdict=violations`) and, while it is not repaired, why (`// xfail: REASON`).
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from measure import arguments
from oracle_compare import compare
from oracle_run import oracle

import consan

FILES = sorted((Path(__file__).parent / "regressions").glob("*.ptx"))
QUICK = 8  # one in so many of those that are not recorded is quick


def _header(path: Path, key: str) -> str | None:
    found = re.search(rf"^// {key}: (.*)$", path.read_text(), re.M)
    return found and found[1]


def _case(number: int, path: Path) -> object:
    reason = _header(path, "xfail")
    marks = [pytest.mark.xfail(reason=reason, strict=True)] if reason else []
    of_grid = "global=on" in (_header(path, "launch") or "")  # recorded; the others have called hooks
    return pytest.param(path, id=path.stem, marks=marks if of_grid or number % QUICK == 0 else [*marks, pytest.mark.slow])


def _agrees(path: Path, seeds: range) -> None:
    words = dict(word.split("=") for word in (_header(path, "launch") or "").split())
    grid, block = int(words["grid"]), int(words["block"])
    of_grid = words.get("global") == "on"
    how = {"engine": "record", "global_memory": "on"} if of_grid else {"engine": "inline"}
    kernel = consan.Kernel(path)
    for seed in seeds:
        verdict = oracle(kernel, grid, block, arguments(), seed=seed, global_memory=of_grid)
        report = consan.launch(kernel, grid, block, arguments(), device="cpu", seed=seed, **how)
        assert compare(verdict, report).wrong == []
        assert report.verdict == words["verdict"]
        assert verdict.clean == (words["verdict"] == "clean")


@pytest.mark.parametrize("path", [_case(number, path) for number, path in enumerate(FILES)])
def test_regression(path: Path) -> None:
    _agrees(path, range(2) if _header(path, "xfail") else range(1))


@pytest.mark.slow
@pytest.mark.parametrize("path", [path for path in FILES if not _header(path, "xfail")], ids=lambda path: path.stem)
def test_in_another_schedule(path: Path) -> None:
    _agrees(path, range(1, 2))
