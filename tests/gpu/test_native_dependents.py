"""Programmatic dependent launches of native programs on a GPU: in a stream, as nodes of a graph, behind an event of a launch."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from test_native import build

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("gpu")]
SOURCE = Path(__file__).parents[1] / "native" / "dependents_program.cu"
EARLY, CHAIN = "no-grid-wait", "no-chained-wait"


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("dependents"), "-std=c++17", source=SOURCE.read_text())


def ran(program: Path, folder: Path, steps: str) -> tuple[int, dict[str, Any]]:
    output = folder / "report.json"
    command = [sys.executable, "-m", "consan", "run", "--device", "gpu", "-o", str(output), str(program), *steps.split()]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=280, check=False)
    assert output.exists(), done.stdout + done.stderr
    report: dict[str, Any] = json.loads(output.read_text())
    print(done.returncode, report["verdict"], report["incomplete"], [(each["kind"], each["situation"]) for each in report["findings"]])
    return done.returncode, report


# A graph in which a pair runs that was compared before is compared no more than any other graph.
@pytest.mark.parametrize(
    ("steps", "situation"),
    [
        ("first chained-second", ""),
        ("first chained-early", EARLY),
        ("first early", ""),
        ("first chained-between chained-second", ""),
        ("first chained-hasty chained-second", CHAIN),
        ("first chained-second capture first chained-second launch", ""),
        ("first chained-early capture first chained-early launch", EARLY),
    ],
)
def test_dependents_in_a_stream(program: Path, tmp_path: Path, steps: str, situation: str) -> None:
    status, report = ran(program, tmp_path, steps)
    assert {each["situation"] for each in report["findings"]} == ({situation} if situation else set()), report
    assert status == (66 if situation else 0), report["incomplete"]


@pytest.mark.parametrize("pair", ["first chained-second", "first chained-early", "first chained-hasty chained-second"])
def test_dependents_in_a_graph_alone(program: Path, tmp_path: Path, pair: str) -> None:
    """Nodes of a graph are not recorded: a pair that was compared nowhere else is no clean one."""
    status, report = ran(program, tmp_path, f"capture {pair} launch")
    if status != 66 or pair == "first chained-second":
        assert (status, report["verdict"]) == (67, "incomplete"), report
        assert any("it was not compared with what may run at the same time" in why for why in report["incomplete"]), report["incomplete"]


@pytest.mark.parametrize("event", ["event", "begun"])
def test_an_event_of_a_launch_is_not_followed(program: Path, tmp_path: Path, event: str) -> None:
    status, report = ran(program, tmp_path, f"first+{event} wait second")
    assert status in (66, 67), report
    assert any("records an event by an attribute" in why for why in report["incomplete"]), report["incomplete"]
