"""Races between Triton programs in global memory: the seven shapes that Triton's GSan tests, and their repairs. Skipped without Triton."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import consan.triton

triton = pytest.importorskip("triton", reason="Triton is not installed")
import global_kernels as kernels  # noqa: E402 - needs Triton

pytestmark = pytest.mark.filterwarnings("ignore:TRITON_DEFAULT_FP_FUSION")  # Triton 3.9 warns unless it is set


def _launch(name: str, arch: str, signal: str, wait: str) -> Any:
    from triton.tools.tensor_descriptor import TensorDescriptor

    def tile(array: Any, block: list[int]) -> Any:
        return TensorDescriptor.from_tensor(array, block)

    data, copy = np.zeros((16, 16), np.int32), np.zeros((16, 16), np.int32)
    out, done = np.zeros(64, np.int32), np.zeros(1, np.int32)
    rows = np.array([5, 7, 9, 10, 1, 3, 11, 13], np.int32)
    with consan.triton.cpu(arch=arch) as report:
        args: dict[str, tuple[Any, ...]] = {
            "read_after_descriptor_store": (tile(data, [16, 16]), data, out),
            "write_after_descriptor_load": (tile(data, [16, 16]), tile(copy, [16, 16]), data),
            "write_after_gather": (rows, tile(data, [1, 8]), data, out),
            "scatter_after_read": (rows, tile(data, [1, 8]), data, out),
        }
        getattr(kernels, name)[(2,)](*args.get(name, (data, out)), done, SIGNAL=signal, WAIT=wait, num_warps=1)
    return report


SHAPES = ("read_after_write", "write_after_read", "write_after_write", "read_after_descriptor_store", "write_after_descriptor_load")
ROWS = ("write_after_gather", "scatter_after_read")  # copies of rows that an index names; they need sm_100


@pytest.mark.parametrize("name", SHAPES)
def test_a_relaxed_signal_orders_nothing(name: str) -> None:
    report = _launch(name, "sm_90", "relaxed", "relaxed")
    assert report.verdict == "violations"
    assert {finding.kind for finding in report.findings} <= {"global-race", "missing-wait"}
    assert {access.block for finding in report.findings for access in finding.accesses} == {(0, 0, 0), (1, 0, 0)}


def test_a_release_does_not_cover_the_result_of_a_store_by_descriptor() -> None:
    """Triton waits for such a store with .read only (ISA "cp.async.bulk.wait_group"): its source was read, its result may come later.

    Triton 3.9 waits for the result.
    """
    if triton.__version__.startswith("3.9"):
        report = _launch("read_after_descriptor_store", "sm_90", "release", "acquire")
        assert (report.verdict, report.findings) == ("clean", ())
        return
    (finding,) = _launch("read_after_descriptor_store", "sm_90", "release", "acquire").findings
    assert (finding.kind, finding.severity) == ("missing-wait", "error")
    assert "only its source has been waited for" in finding.message


@pytest.mark.parametrize("name", ["write_after_write", "read_after_write", "write_after_descriptor_load"])
def test_release_and_acquire_do(name: str) -> None:
    report = _launch(name, "sm_90", "release", "acquire")
    assert (report.verdict, report.findings) == ("clean", ())


def test_values_of_lanes_that_use_none_of_them() -> None:
    """All lanes of Triton's warp load the value, and lane 0 alone stores it and releases: the other loads are no accesses (D26)."""
    report = _launch("write_after_read", "sm_90", "release", "acquire")
    assert (report.verdict, report.findings) == ("clean", ())


@pytest.mark.parametrize(("orders", "verdict"), [(("relaxed", "relaxed"), "violations"), (("release", "acquire"), "clean")])
@pytest.mark.parametrize("name", ROWS)
def test_copies_of_rows(name: str, orders: tuple[str, str], verdict: str) -> None:
    report = _launch(name, "sm_100", *orders)
    assert (report.verdict, {finding.kind for finding in report.findings} - {"global-race", "missing-wait"}) == (verdict, set())
    assert "global-memory" in report.checked
