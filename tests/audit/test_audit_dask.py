"""`consan audit` on a Dask cluster gives the table that one machine gives."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from audit_modules import FOLDER, MODULES

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]  # warnings of Dask's own


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    distributed = pytest.importorskip("distributed", reason="Dask is not installed: pip install consan[dask]")
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, host="127.0.0.1") as found:
        yield found


def _audited(folder: Path, *more: str) -> list[Any]:
    output = folder / "out.json"
    command = [sys.executable, "-m", "consan", "audit", *map(str, sorted(folder.glob("*.cu"))), *more, "-o", str(output)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 66, done.stderr
    return [[{**row, "seconds": 0} for row in each["rows"]] for each in json.loads(output.read_text())["files"]]


def test_a_cluster_gives_the_same_rows(tmp_path: Path, cluster: Any) -> None:
    (tmp_path / "harness.h").write_text((FOLDER / "harness.h").read_text())
    for module in MODULES[:3]:
        module.written(tmp_path)
    address = cluster.scheduler_address.replace("tcp://", "dask://")
    assert _audited(tmp_path, "--executor", address) == _audited(tmp_path)
