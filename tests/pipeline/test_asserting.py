"""`consan.assert_clean`: it returns a clean report, and raises for every other verdict that is not allowed."""

from __future__ import annotations

import pipeline_kernels as kernels
import pytest

import consan


def kernel(entry: str) -> consan.Kernel:
    return consan.Kernel(kernels.MODULE, entry=entry)


def test_only_clean_launches_pass() -> None:
    import numpy as np

    given = [np.zeros(64, np.uint32), 5]
    assert consan.assert_clean(kernel("clean"), 1, 64, given, device="cpu").verdict == "clean"
    with pytest.raises(consan.RacyKernelError, match="verdict violations"):
        consan.assert_clean(kernel("racy"), 1, 64, given, device="cpu")


def test_gaps_fail_unless_they_are_allowed() -> None:
    with pytest.raises(consan.RacyKernelError, match="verdict incomplete"):
        consan.assert_clean(kernel("unmodelled"), 1, 1, device="cpu")
    assert consan.assert_clean(kernel("unmodelled"), 1, 1, device="cpu", allow_incomplete=True).verdict == "incomplete"
