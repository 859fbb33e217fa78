"""CUB's single-pass agents: no finding, the right result; and a selection in place that is not meant for it is a race in global memory."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import consan

SOURCE = Path(__file__).parent / "cub_agents.cu"
TILES, THREADS, ITEMS = 4, 64, 4
COUNT = TILES * THREADS * ITEMS - 37
PADDING, INVALID = 32, 99  # of CUB's descriptors of tiles
INPUT = np.random.default_rng(1).integers(0, 100, COUNT).astype(np.int32)
RESULTS = {"scan": np.cumsum(INPUT), "select": INPUT[INPUT % 2 == 1], "select_in_place": INPUT[INPUT % 2 == 1]}


@functools.cache
def _kernel(entry: str) -> Any:
    return consan.Kernel(SOURCE, entry=entry, arch="sm_80")


def _launch(entry: str, seed: int, *, in_place: bool = False, scope: str = "gpu") -> tuple[Any, Any]:
    """`scope`: of the accesses to the descriptors of tiles."""
    given = INPUT.copy()
    out = given if in_place else np.zeros(COUNT, np.int32)
    tiles = np.zeros(PADDING + TILES, np.uint64)
    tiles[PADDING:] = INVALID
    args = [given, out, np.zeros(1, np.int32), tiles, np.int32(COUNT)]
    kernel = _kernel(entry)
    if scope != "gpu":
        kernel = consan.Kernel(kernel.ptx.replace(".gpu.v2.u32", f".{scope}.v2.u32"), entry)
    report = consan.launch(kernel, TILES, THREADS, args, device="cpu", seed=seed, global_memory="on")
    return report, out


SEEDS = [pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 4)]


@pytest.mark.parametrize("seed", [0, *SEEDS])
@pytest.mark.parametrize(
    ("entry", "in_place"),
    [("select_in_place", True), *(pytest.param(entry, False, marks=pytest.mark.slow) for entry in ("scan", "select"))],
)
def test_an_agent_is_clean(entry: str, in_place: bool, seed: int) -> None:
    report, out = _launch(entry, seed, in_place=in_place)
    assert (report.verdict, report.findings, "global-memory" in report.checked) == ("clean", (), True), report
    wanted = RESULTS[entry]
    assert np.array_equal(out[: len(wanted)], wanted)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, *SEEDS])
def test_a_selection_in_place_needs_the_agent_for_it(seed: int) -> None:
    """A tile is written where another CTA may still have to read."""
    report, _ = _launch("select", seed, in_place=True)
    assert {finding.kind for finding in report.findings if finding.severity == "error"} == {"global-race"}


@pytest.mark.parametrize("seed", [0, *SEEDS])
def test_a_scan_whose_descriptors_have_the_scope_of_a_cta(seed: int) -> None:
    """The sums and their states are strong in each CTA alone: other CTAs may not see them."""
    report, _ = _launch("scan", seed, scope="cta")
    assert {finding.kind for finding in report.findings if finding.severity == "error"} == {"scope"}, report
