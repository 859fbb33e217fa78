"""numba-cuda-mlir under `consan run` on the GPU: its programs run with the interposer."""

from __future__ import annotations

from pathlib import Path

import pytest
from programs import marked, run

pytest.importorskip("numba_cuda_mlir")
pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("gpu")]

PROGRAM = Path(__file__).parents[1] / "frameworks/programs/numba_mlir_reverse.py"


@pytest.mark.parametrize(("racy", "status", "verdict"), [(False, 0, "clean"), (True, 66, "violations")])
def test_a_kernel_is_checked_on_its_lines(tmp_path: Path, racy: bool, status: int, verdict: str) -> None:
    script = PROGRAM.read_text().replace('"racy" in sys.argv', str(racy))
    found, report = run(tmp_path, script)
    assert (found, report["verdict"]) == (status, verdict), report
    assert sum(kernel["launches"] for kernel in report["kernels"]) == 1
    lines = {access["line"] for finding in report["findings"] for access in finding["accesses"]}
    assert marked(tmp_path, "# reader") <= lines or not racy
