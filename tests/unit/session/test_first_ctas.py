"""Launches that start only the first CTAs of their grid: these are checked as parts of the whole grid, and the report is incomplete."""

from __future__ import annotations

import pytest

from consan.instrument.ptx.extents import three_extents
from consan.reports.model import Report
from consan.session.planning.options import SessionOptions
from consan.session.session import Session
from consan.suppressions import finish

KERNEL = """
.version 8.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 out){cluster}
{{
    .shared .align 4 .b8 tile[128];
    .reg .u32 %r<9>; .reg .u64 %rd<5>; .reg .pred %p;
    mov.u32 %r1, %tid.x; shl.b32 %r2, %r1, 2; mov.u32 %r3, tile; add.u32 %r3, %r3, %r2;
    st.shared.u32 [%r3], %r1;
    {wait}
    xor.b32 %r2, %r2, 124; mov.u32 %r3, tile; add.u32 %r3, %r3, %r2; ld.shared.u32 %r4, [%r3];
    mov.u32 %r5, %ctaid.y; mov.u32 %r6, %nctaid.x; mov.u32 %r7, %ctaid.x; mad.lo.u32 %r5, %r5, %r6, %r7;
    ld.param.u64 %rd1, [out]; mul.wide.u32 %rd3, %r5, 4; add.u64 %rd4, %rd1, %rd3;
    setp.eq.u32 %p, %r1, 0;
    @%p st.global.u32 [%rd4], %r6;
    ret;
}}
"""
THREADS = 32


def _launched(grid: tuple[int, ...], *, right: bool = True, cluster: str = "", cooperative: bool = False) -> tuple[Report, list[int]]:
    """A launch with room for three CTAs of 32 threads: the report, and the extent of the grid that each CTA has written."""
    session = Session(SessionOptions(device="cpu"))
    session.recording.first_threads, session.recording.fixes.off = 3 * THREADS, True
    backend = session.device.backend
    count = grid[0] * grid[1]
    out = backend.alloc(4 * count)
    prepared = session.prepare(KERNEL.format(wait="bar.warp.sync -1;" if right else "", cluster=cluster))
    with session.turn():
        session.launch(prepared, "k", three_extents(grid), (THREADS, 1, 1), [out.to_bytes(8, "little")], cooperative=cooperative)
        report = finish(session.report())
    written = backend.read(out, 4 * count)
    backend.free(out)
    return report, [int.from_bytes(written[at : at + 4], "little") for at in range(0, len(written), 4)]


@pytest.mark.parametrize("grid", [(8, 1), (2, 4), (1, 8)])
def test_the_first_ctas_run_in_the_whole_grid(grid: tuple[int, int]) -> None:
    report, written = _launched(grid)
    assert written == [grid[0]] * 3 + [0] * 5
    assert (report.verdict, report.incomplete) == ("incomplete", ("k did not run to its end: 5 CTAs were not to start",))


@pytest.mark.parametrize("grid", [(8, 1), (2, 4), (512, 256)])
def test_a_race_among_them_is_found(grid: tuple[int, int]) -> None:
    report, _ = _launched(grid, right=False)
    assert (report.verdict, {each.kind for each in report.findings}) == ("violations", {"data-race"})


@pytest.mark.parametrize(("grid", "more"), [((3, 1), {}), ((8, 1), {"cooperative": True}), ((8, 1), {"cluster": "\n.reqnctapercluster 2"})])
def test_small_grids_clusters_and_cooperative_launches_are_whole(grid: tuple[int, int], more: dict[str, object]) -> None:
    report, written = _launched(grid, **more)  # type: ignore[arg-type]
    assert (report.verdict, written) == ("clean", [grid[0]] * grid[0])
