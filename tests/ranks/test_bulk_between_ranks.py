"""Bulk copies between the memory of two ranks: what their completion, a proxy fence and a signal order."""

from __future__ import annotations

import numpy as np
import pytest
from ranks_support import FOLDER, THREADS

import consan

# By the macros of a program: the kinds of its errors.
PROGRAMS: dict[tuple[str, ...], set[str]] = {
    (): set(),
    ("NO_START",): {"global-race"},
    ("READ",): {"missing-wait"},
    ("FROM",): set(),
    ("FROM", "NO_PROXY_FENCE"): {"missing-proxy-fence"},
}


@pytest.mark.parametrize("macros", PROGRAMS, ids=lambda macros: " ".join(macros) or "as it is")
def test_bulk_copies_between_ranks(macros: tuple[str, ...]) -> None:
    data, out = ([np.zeros(THREADS, np.float32) for _ in range(2)] for _ in range(2))
    signals = [np.zeros(2, np.uint32) for _ in range(2)]
    given = consan.Kernel(FOLDER / "bulk_to_peer.cu", "kernel", defines=dict.fromkeys(macros, 1), include_dirs=[str(FOLDER)])
    report = consan.launch(given, 1, THREADS, lambda rank: [*data, *signals, out[rank], rank], ranks=2, device="cpu")
    errors = [finding for finding in report.findings if finding.severity == "error"]
    assert {finding.kind for finding in errors} == PROGRAMS[macros], str(report)
    assert report.verdict == ("violations" if errors else "clean"), str(report)
    if not errors:
        assert [each.tolist() for each in out] == [[float(1 - rank + t) for t in range(THREADS)] for rank in range(2)]
