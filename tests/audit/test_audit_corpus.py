"""The table of an audit has no wrong row: each bug is reported for its kernel, and no right kernel is."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from audit_modules import FOLDER, MODULES

JOBS = 2


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """One run over all modules, as the command gives it: by the names of files."""
    folder = tmp_path_factory.mktemp("modules")
    (folder / "harness.h").write_text((FOLDER / "harness.h").read_text())
    for module in MODULES:
        module.written(folder)
    output = folder / "out.json"
    command = [sys.executable, "-m", "consan", "audit", str(folder), "-j", str(JOBS), "-o", str(output)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 66, done.stderr
    return {Path(each["file"]).stem: each for each in json.loads(output.read_text())["files"]}


def test_the_corpus_has_thirty_modules(audited: dict[str, Any]) -> None:
    assert len(audited) == 30


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.path.stem)
def test_a_right_module_is_clean(module: Any, audited: dict[str, Any]) -> None:
    result = audited[module.path.stem]
    assert [(row["kernel"], row["verdict"], row["findings"]) for row in result["rows"] if row["verdict"] != "clean"] == []
    assert all(row["launches"] for row in result["rows"])
    assert result["notes"] == []


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.path.stem)
def test_a_bug_is_reported_for_its_kernel_alone(module: Any, audited: dict[str, Any]) -> None:
    kernel, kind = module.expected
    rows = {row["kernel"]: row for row in audited[f"{module.path.stem}_bug"]["rows"]}
    assert [name for name, row in rows.items() if row["verdict"] != "clean"] == [kernel]
    assert rows[kernel]["verdict"] == "violations"
    kinds = {each["kind"] for each in rows[kernel]["findings"]}
    assert kind == "*" or kind in kinds, kinds
    assert all(each["line"] for each in rows[kernel]["findings"])
