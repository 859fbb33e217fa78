"""The table of an audit has no wrong row: each bug is reported for its kernel, and no right kernel is."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from audit_modules import FOLDER, MODULES, UNREACHED, AuditModule

JOBS = 2


@pytest.fixture(scope="module", params=[3, pytest.param(1, marks=pytest.mark.slow)], ids=["some", "all"])
def audited(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """One run over one module in so many, as the command gives it: by the names of files."""
    folder = tmp_path_factory.mktemp("modules")
    (folder / "harness.h").write_text((FOLDER / "harness.h").read_text())
    for module in MODULES[:: request.param]:
        module.written(folder)
    for path in UNREACHED:
        (folder / path.name).write_text(path.read_text())
    output = folder / "out.json"
    command = [sys.executable, "-m", "consan", "audit", str(folder), "-j", str(JOBS), "-o", str(output)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 66, done.stderr
    return {Path(each["file"]).stem: each for each in json.loads(output.read_text())["files"]}


def _modules(audited: dict[str, Any]) -> list[AuditModule]:
    found = [module for module in MODULES if module.path.stem in audited]
    assert found
    return found


def _kernel(row: dict[str, Any]) -> str:
    return str(row["kernel"]).partition("<")[0]


def test_no_row_of_the_table_is_wrong(audited: dict[str, Any]) -> None:
    """Modules with and without a bug, and those that do not reach all of their kernels: each row, and none besides."""
    wrong = {f"{module.path.stem}_bug": module.expected[0].partition("<")[0] for module in _modules(audited)}
    unreached = {path.stem: expected for path, expected in UNREACHED.items()}
    assert len(audited) == 2 * len(wrong) + len(unreached)
    for stem, result in audited.items():
        found = {_kernel(row): row["verdict"] for row in result["rows"]}
        bug = wrong.get(stem)
        assert found == unreached.get(stem, {name: "violations" if name == bug else "clean" for name in found}), stem
        assert bug is None or bug in found


def test_a_right_module_is_clean(audited: dict[str, Any]) -> None:
    for module in _modules(audited):
        result = audited[module.path.stem]
        assert [(row["kernel"], row["verdict"], row["findings"]) for row in result["rows"] if row["verdict"] != "clean"] == []
        assert all(row["launches"] for row in result["rows"])
        assert result["notes"] == []


def test_a_bug_is_reported_for_its_kernel_alone(audited: dict[str, Any]) -> None:
    for module in _modules(audited):
        kernel, kind = module.expected
        rows = {row["kernel"]: row for row in audited[f"{module.path.stem}_bug"]["rows"]}
        assert [name for name, row in rows.items() if row["verdict"] != "clean"] == [kernel]
        assert rows[kernel]["verdict"] == "violations"
        kinds = {each["kind"] for each in rows[kernel]["findings"]}
        assert kind == "*" or kind in kinds, kinds
        assert all(each["line"] for each in rows[kernel]["findings"])
