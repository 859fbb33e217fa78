"""Functions of the host in streams and graphs of native programs: they are in order there, and order nothing for the host but by locks."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Final

import pytest
from planted import plant
from test_stand_in import ran

from consan.libcuda import driver, host_calls, memory_calls
from consan.libcuda.build import DRIVER
from consan.native import stand_in

HERE = Path(__file__).parent
CASES: Final = {
    "the host reads": "RAW no-host-wait",
    "a callback": "RAW no-host-wait",
    "a copy": "RAW no-stream-edge",
    "what is before": "WAW no-stream-edge",
    "nodes of a graph": "WAW no-graph-edge",
}
_UNSEEN: Final = "may have shown it, in a way that consan does not see"


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("functions")
    (folder / "libcuda.so").write_bytes(DRIVER.data())
    words = ["cc", "-O1", str(HERE / "host_functions.c"), "-o", "program", "-L.", "-lcuda", "-lpthread"]
    subprocess.run(words, cwd=folder, check=True, env={**os.environ, "LC_ALL": "C"})
    return folder / "program"


def found(program: Path, case: str, *, waits: bool) -> tuple[set[str], bool]:
    """The hazards and situations, and whether something was not judged."""
    status, report = ran(program, case, *(["waits"] if waits else []))
    assert status == 0
    return {f"{each.hazard} {each.situation}" for each in report.findings}, any(_UNSEEN in why for why in report.incomplete)


@pytest.mark.parametrize("what", CASES)
def test_a_function_of_the_host_and_its_twin(program: Path, what: str) -> None:
    assert found(program, what, waits=True) == (set(), False)
    assert found(program, what, waits=False) == ({CASES[what]}, False)


def test_a_variable_may_tell_the_host(program: Path) -> None:
    assert found(program, "a variable", waits=True) == (set(), True)


@pytest.mark.parametrize("what", ["the caller has the lock", "a call inside", "another thread calls"])
def test_functions_that_need_something(program: Path, what: str) -> None:
    assert found(program, what, waits=True) == (set(), False)


# The module, what is replaced by what in it, and the case that is judged wrongly, with its wait or without.
FAULTS: dict[str, tuple[ModuleType, str, str, str, bool]] = {
    "what it touches": (host_calls, "rows_of_touched(touched))", 'rows_of_touched(b""))', "a copy", False),
    "the host meanwhile": (memory_calls, "if not driver.host.held_back else", "if True else", "the host reads", False),
    "the next call": (host_calls, "or not goes_on:", "or True:", "a copy", False),
    "nodes of one launch": (
        host_calls,
        "driver.host.without_locks.append(over)",
        "driver.session.streams.perhaps_over(over)",
        "nodes of a graph",
        False,
    ),
    "a lock": (host_calls, "if over is not None:", "if False:", "what is before", True),
    "what it gives while it runs": (host_calls, "driver.host.over[number] = stream.record()", "None", "another thread calls", True),
    "a variable": (driver, "self.session.streams.perhaps_over(over)", "pass", "a variable", True),
}


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
def test_planted_faults(program: Path, fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module, old, new, case, waits = FAULTS[fault]
    right = (set(), case == "a variable") if waits else ({CASES[case]}, False)
    plant(monkeypatch, module, old, new)
    assert found(program, case, waits=waits) != right


@pytest.mark.slow
def test_a_fault_in_the_library(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A function that runs at once has run before the host makes its next call."""
    old, sources = "if (!added) return 0;", DRIVER.sources()
    assert sources["host_functions.h"].count(old) == 1
    changed = {"host_functions.h": sources["host_functions.h"].replace(old, "free(added);\n        return 0;")}
    monkeypatch.setattr(stand_in, "DRIVER", replace(DRIVER, generated=lambda: changed))
    assert found(program, "a copy", waits=False) == (set(), True)
