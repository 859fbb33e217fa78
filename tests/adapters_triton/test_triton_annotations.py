"""Annotations in Triton kernels: an order that no rule sees, and a race that is meant. Skipped without Triton."""

from __future__ import annotations

import numpy as np
import pytest

import consan.triton

pytest.importorskip("triton", reason="Triton is not installed")
import annotated_kernels as kernels

pytestmark = pytest.mark.filterwarnings("ignore:TRITON_DEFAULT_FP_FUSION")  # Triton 3.9 warns unless it is set


@pytest.mark.parametrize(("annotated", "verdict"), [(False, "violations"), (True, "clean")])
def test_a_handover_by_annotations(annotated: bool, verdict: str) -> None:
    data, out, flag = np.zeros(64, np.int32), np.zeros(64, np.int32), np.zeros(1, np.int32)
    with consan.triton.cpu() as report:
        kernels.hand_over[(2,)](data, out, flag, ANNOTATED=annotated, num_warps=1)
    assert report.verdict == verdict
    assert bool(report.kernels[0].annotations) == annotated


@pytest.mark.parametrize(("annotated", "verdict"), [(False, "violations"), (True, "clean")])
def test_a_race_that_is_meant(annotated: bool, verdict: str) -> None:
    with consan.triton.cpu() as report:
        kernels.set_hint[(4,)](np.zeros(1, np.int32), ANNOTATED=annotated, num_warps=1)
    assert report.verdict == verdict
