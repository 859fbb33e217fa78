"""tests/bench/triton_sanitizer.py: what it hears a test expect, and how it judges; on a file shaped like Triton's, without Triton."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

SCRIPT = Path(__file__).with_name("triton_sanitizer.py")

LIKE_TRITONS = """
import launches
import pytest

@pytest.fixture
def run_wrapper():
    return True

@pytest.fixture(params=[1, 2])
def num_ctas(request):
    return request.param

def run_in_process(client, args):
    raise RuntimeError("nobody starts a process")

@pytest.mark.parametrize("FAILURE", [True, False])
def test_in_a_process(FAILURE, device, run_wrapper, monkeypatch, num_ctas):
    if run_wrapper:
        result = run_in_process(test_in_a_process, (FAILURE, device, False, monkeypatch, num_ctas))
        if FAILURE:
            assert "device-side assert" in str(result.exc)
            assert any(text in result.driver_stderr_output for text in ["outstanding writes", "outstanding reads"])
        else:
            assert result.exc is None
            assert result.driver_stderr_output == ""
        return
    launches.launch("data-race" if FAILURE else None)

@pytest.mark.parametrize("WAIT", [False, True], ids=["deadlock", "fine"])
def test_fine_one_in_this_process(WAIT, run_wrapper):
    if not WAIT and run_wrapper:
        result = run_in_process(test_fine_one_in_this_process, (WAIT, False))
        assert result.exc is not None
        assert "Deadlock detected" in result.driver_stderr_output
        return
    launches.launch(None if WAIT else "data-race")
    assert not WAIT, "results differ"

def test_compiler_fails():
    raise ValueError("no such layout")

@pytest.mark.xfail(True, reason="Requires blackwell", run=False)
def test_other_chip():
    launches.launch(None)

def test_skips(num_ctas):
    if num_ctas == 1:
        pytest.skip("Need at least 2 CTAs")
    launches.launch("data-race")

def test_consan_uses_profile_scratch():
    assert False
"""


@pytest.fixture(scope="module")
def script() -> Iterator[ModuleType]:
    spec = importlib.util.spec_from_file_location("triton_sanitizer", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["triton_sanitizer"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["triton_sanitizer"]


def finding(kind: str) -> SimpleNamespace:
    return SimpleNamespace(kind=kind, severity="error", hazard="RAW", message="", accesses=(), count=1)


@pytest.fixture
def yardstick(script: ModuleType, monkeypatch: pytest.MonkeyPatch) -> Any:
    open_reports: list[SimpleNamespace] = []

    @contextlib.contextmanager
    def session() -> Iterator[SimpleNamespace]:
        open_reports.append(SimpleNamespace(findings=[], kernels=[], incomplete=(), verdict="clean"))
        yield open_reports[-1]
        open_reports.pop()

    def launch(kind: str | None) -> None:
        report = open_reports[-1]
        report.kernels.append(SimpleNamespace(launches=1))
        if kind:
            report.findings.append(finding(kind))
            report.verdict = "violations"

    monkeypatch.setitem(sys.modules, "launches", SimpleNamespace(launch=launch))
    return script.Yardstick(session)


def test_every_variant_of_a_file(script: ModuleType, yardstick: Any, tmp_path: Path) -> None:
    file = tmp_path / "test_like_tritons.py"
    file.write_text(LIKE_TRITONS)
    script.run(file, yardstick)
    outstanding, process, here = ("outstanding writes", "outstanding reads"), "test_in_a_process", "test_fine_one_in_this_process"
    told = [(row.test, row.variant, row.ctas, row.expects, row.verdict, row.outcome, row.remark) for row in script.merged(yardstick.rows)]
    assert script.by_test([row for row in yardstick.rows if row.test == process]).splitlines()[2:] == [
        "| test_in_a_process | 1 2 | 2 of 2 | data-race | 2 of 2 |"
    ]
    assert process not in script.differing(yardstick.rows)
    rows = tmp_path / "rows.json"
    rows.write_text(json.dumps([asdict(row) for row in yardstick.rows]))
    assert script.stored([rows, rows]) == list({(row.test, row.variant, row.ctas): row for row in yardstick.rows}.values())
    assert sorted(told) == sorted(
        [
            (process, "FAILURE=True", "1 2", outstanding, "violations", "agree", ""),
            (process, "FAILURE=False", "1 2", (), "clean", "agree", ""),
            (here, "WAIT=False", "1", ("Deadlock detected",), "violations", "kind", ""),
            (here, "WAIT=True", "1", (), "clean", "agree", "AssertionError: results differ"),
            ("test_compiler_fails", "", "1", (), "", "not run", "ValueError: no such layout"),
            ("test_other_chip", "", "", (), "", "not modelled", "[NOTRUN] Requires blackwell"),
            ("test_skips", "", "1", (), "", "skipped", "Need at least 2 CTAs"),
            ("test_skips", "", "2", (), "violations", "disagree", ""),
            ("test_consan_uses_profile_scratch", "", "", (), "", "no verdict", next(iter(script.NOT_VERDICTS.values()))),
        ]
    )


@pytest.mark.parametrize(
    ("expects", "verdict", "kinds", "outcome"),
    [
        ([], "clean", [], "agree"),
        ([], "incomplete", [], "incomplete"),
        ([], "violations", ["uninitialized-read"], "disagree"),
        (["Buffer being accessed has outstanding reads"], "clean", [], "disagree"),
        (["Buffer being accessed has outstanding reads"], "incomplete", [], "disagree"),
        (["Buffer being accessed has outstanding reads"], "violations", ["uninitialized-read"], "kind"),
        (["Accessing buffer with pending access. Pending access type: x"], "violations", ["missing-wait", "data-race"], "agree"),
        (["Accessing buffer with pending access. Pending access type: x"], "violations", ["data-race"], "kind"),
        (["Barrier arrive underflow"], "violations", ["barrier-misuse"], "agree"),
        (["Deadlock detected", "outstanding"], "violations", ["data-race"], "agree"),
        (["a failure"], "violations", ["data-race"], "agree"),
        (["a failure"], "clean", [], "disagree"),
        (["words that nobody knows"], "violations", ["data-race"], "kind"),
    ],
)
def test_judgement(script: ModuleType, expects: list[str], verdict: str, kinds: list[str], outcome: str) -> None:
    assert script.judge(expects, verdict, kinds) == outcome
