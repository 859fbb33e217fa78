"""Every kernel of twins/ with its fault (`-DRACY`) and repaired, and every legal pattern of clean/, on each backend.

The two twins differ by what `RACY` removes or misplaces: the first must be reported with the right kind, severity and both
source lines, and the second must be clean and compute the right result. The expectations are in each file's header. What stands
between the accesses, or should have ended a wait, is named with line and reason: culprit_rows.py.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import twin_file
from culprit_rows import CULPRITS, DEADLOCKS, EARLY, WITHOUT
from sampled import one_in
from twin_file import Expectation, KernelFile

import consan
from consan.reports import render
from consan.reports.model import CULPRIT, Finding

HERE = Path(__file__).parent
TWINS_FOLDER = HERE / "twins"
TWINS = sorted(TWINS_FOLDER.glob("*.cu"))
CLEAN = sorted((HERE / "clean").glob("*.cu"))
SEEDS = range(20)


def _name(path: Path) -> str:
    return path.stem


@functools.cache
def _kernel(path: Path, racy: bool) -> Any:
    return twin_file.kernel(path, racy)


def _launch(spec: KernelFile, racy: bool, backend: str, seed: int = 0) -> tuple[Any, dict[str, Any]]:
    if backend not in spec.backends:
        pytest.skip(f"undefined behaviour on a chip: only on {spec.backends}")
    args = spec.fresh_args()
    kernel, values = _kernel(spec.path, racy), spec.parameters(args)
    report = consan.launch(kernel, spec.grid, spec.block, values, smem=spec.smem, device=backend, seed=seed, policy=spec.policy)
    return report, args


@functools.cache
def _racy(path: Path, backend: str) -> Any:
    """The report on a racy twin: one launch for all tests."""
    with twin_file.fixes_of_some(path):
        return _launch(twin_file.read(path), True, backend)[0]


def _lines(access: Any, path: Path) -> set[int]:
    """The lines of `path` that an access is reported at: its own, and those of the calls it was inlined through."""
    places = [access, *access.inlined]
    return {place.line for place in places if Path(place.file).name == path.name}


def _places(finding: Any, path: Path) -> list[set[int]]:
    waiting = [{waiter["line"]} for waiter in finding.waiters if waiter.get("line")]
    return [_lines(access, path) for access in finding.pair] + waiting


def _covers(places: list[set[int]], markers: tuple[str, ...], spec: KernelFile) -> bool:
    """Whether each marker has a place of its own among `places`, whatever their order."""
    if not markers:
        return True
    first, rest = spec.markers[markers[0]], markers[1:]
    return any(place & first and _covers(places[:i] + places[i + 1 :], rest, spec) for i, place in enumerate(places))


def _same_hazard(expected: str | None, found: str | None) -> bool:
    return expected is None or (expected == "WAW") == (found == "WAW")


def _matches(finding: Any, expectation: Expectation, spec: KernelFile) -> bool:
    return (
        finding.kind in expectation.kinds
        and (finding.kind != "data-race" or _same_hazard(expectation.hazard, finding.hazard))
        and _covers(_places(finding, spec.path), expectation.markers, spec)
    )


def _describe(finding: Any, spec: KernelFile) -> str:
    return f"{finding.kind} {finding.hazard} {finding.severity} at {_places(finding, spec.path)}"


def _check_racy(report: Any, spec: KernelFile) -> None:
    found = [_describe(finding, spec) for finding in report.findings]
    for expectation in spec.expected:
        matching = [finding for finding in report.findings if _matches(finding, expectation, spec)]
        assert matching, f"{expectation} not among {found}; markers {spec.markers}"
        assert expectation.severity in {finding.severity for finding in matching}, f"{expectation}: {found}"
    known = spec.expected + spec.allowed
    others = [_describe(f, spec) for f in report.findings if not any(_matches(f, e, spec) for e in known)]
    assert not others, f"findings that the header does not name: {others}"
    errors = any(expectation.severity == "error" for expectation in spec.expected)
    assert report.verdict == ("violations" if errors else "clean")


def _check_clean(report: Any, args: dict[str, Any], spec: KernelFile) -> None:
    assert [_describe(finding, spec) for finding in report.findings if finding.severity != "note"] == []
    assert report.verdict == "clean"
    assert spec.results, "a clean kernel must be held against a result"
    for name in spec.results:
        expected = spec.reference(name)
        np.testing.assert_array_equal(args[name].reshape(expected.shape), expected, err_msg=f"{spec.path.name}: {name}")


@pytest.mark.parametrize("path", TWINS, ids=_name)
def test_racy_twin_is_reported(path: Path, backend: str) -> None:
    _check_racy(_racy(path, backend), twin_file.read(path))


@pytest.mark.parametrize("path", one_in(2, TWINS, _name))
def test_fixed_twin_is_clean(path: Path, backend: str) -> None:
    spec = twin_file.read(path)
    report, args = _launch(spec, False, backend)
    _check_clean(report, args, spec)


@pytest.mark.parametrize("path", one_in(2, CLEAN, _name))
def test_legal_pattern_is_clean(path: Path, backend: str) -> None:
    spec = twin_file.read(path)
    report, args = _launch(spec, False, backend)
    _check_clean(report, args, spec)


def _source(report: Any, access: Any) -> str:
    return str(report.sources.get(access.file, {}).get(access.line, ""))


def _deadlock(report: Any) -> Any:
    return next(finding for finding in report.findings if finding.kind == "deadlock")


@pytest.mark.parametrize(("name", "source", "sentence", "fix"), CULPRITS, ids=[row[0] for row in CULPRITS])
def test_the_culprit_is_named_with_its_line(name: str, source: str, sentence: str, fix: str) -> None:
    report = _racy(TWINS_FOLDER / f"{name}.cu", "cpu")
    named = [finding for finding in report.findings if finding.accesses and finding.accesses[-1].role == CULPRIT]
    text = render(report, notes=True)
    assert named, text
    finding = named[0]
    assert [access.role == CULPRIT for access in finding.accesses[:3]] == [False, False, True]
    assert source.lower() in _source(report, finding.accesses[2]).lower()
    assert sentence in finding.message
    assert fix in _named(finding)
    assert "  (3) culprit" in text


@pytest.mark.parametrize(("name", "accesses", "source", "sentence", "fix"), EARLY, ids=[row[0] for row in EARLY])
def test_the_fix_uses_what_the_code_has(name: str, accesses: int, source: str, sentence: str, fix: str) -> None:
    report = _racy(TWINS_FOLDER / f"{name}.cu", "cpu")
    finding = next(finding for finding in report.findings if finding.accesses[-1].role == CULPRIT)
    assert len(finding.accesses) == accesses
    assert source in _source(report, finding.accesses[-1])
    assert sentence in finding.message
    assert fix in _named(finding)
    assert "hopper.cuh" not in finding.message + finding.fix


def _named(finding: Finding) -> str:
    """The fix in the catalogue's words, which a verified one may have replaced."""
    return (finding.verified.instead_of if finding.verified else "") or finding.fix


@pytest.mark.parametrize(("name", "lines", "missing", "fix"), DEADLOCKS, ids=[row[0] for row in DEADLOCKS])
def test_the_instructions_that_should_have_ended_the_wait(name: str, lines: tuple[str, ...], missing: str, fix: str) -> None:
    report = _racy(TWINS_FOLDER / f"{name}.cu", "cpu")
    finding = _deadlock(report)
    assert [access.role for access in finding.accesses] == [CULPRIT] * len(lines)
    for access, part in zip(finding.accesses, lines, strict=True):
        assert part in report.sources[access.file][access.line]
    assert missing in finding.missing
    assert fix in finding.fix
    text = render(report)
    assert "waits here" in text
    assert text.index("waits here") < text.find("culprit") or not lines


@pytest.mark.parametrize("name", WITHOUT)
def test_nothing_is_claimed_where_the_text_does_not_tell(name: str) -> None:
    assert not _deadlock(_racy(TWINS_FOLDER / f"{name}.cu", "cpu")).accesses


def _hangs(report: Any, spec: KernelFile) -> bool:
    """Whether threads wait for ever, which the header allows, and come to nothing else."""
    kinds = {finding.kind for finding in report.findings}
    return kinds == {"deadlock"} and any("deadlock" in each.kinds for each in spec.allowed) and bool(report.verdict == "violations")


@pytest.mark.slow
@pytest.mark.parametrize("path", TWINS, ids=_name)
def test_verdict_does_not_depend_on_the_schedule(path: Path) -> None:
    """In each of 20 schedules: the same kinds at the same lines for the racy twin, unless its threads hang; nothing for the fixed one."""
    spec = twin_file.read(path)
    for seed in SEEDS:
        report, _ = _launch(spec, True, "cpu", seed)
        if not _hangs(report, spec):
            _check_racy(report, spec)
        report, args = _launch(spec, False, "cpu", seed)
        _check_clean(report, args, spec)


@pytest.mark.slow
@pytest.mark.gpu
@pytest.mark.parametrize("path", TWINS, ids=_name)
def test_every_gpu_launch_reports(path: Path, gpu: None) -> None:
    spec = twin_file.read(path)
    for _ in range(100):
        report, _args = _launch(spec, True, "gpu")
        _check_racy(report, spec)
