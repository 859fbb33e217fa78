"""Filters, limits, and what happens when the table or the ring of findings is full."""

from __future__ import annotations

import pytest
from device_support import Bench, found, launches

from consan.instrument.abi import records, sizes
from consan.options import read_kernel_filter

SOURCE = """
#define KERNEL(name) extern "C" __global__ void name(unsigned* out) { \\
    __shared__ unsigned tile[64]; \\
    tile[threadIdx.x] = threadIdx.x; \\
    out[threadIdx.x] = tile[63 - threadIdx.x]; }
KERNEL(first)
KERNEL(second)
extern "C" __global__ void late(unsigned* out) {
    __shared__ unsigned tile[64];
    const unsigned t = threadIdx.x;
    tile[t] = t;                                        /*@write*/
    if (blockIdx.x < 5) __syncthreads();
    out[t] = tile[63 - t];                              /*@read*/
}
"""


def _kernels(bench: Bench) -> set[str]:
    return {finding.kernel for finding in bench.report().findings}


def test_a_filter_chooses_kernels(device: str) -> None:
    bench = Bench(device, SOURCE, kernel_name=read_kernel_filter("kns=first"))
    out = bench.zeros(64)
    for name in ("first", "second", "second"):
        bench.launch(name, 1, 64, out)
    assert _kernels(bench) == {"first"}
    assert [(u.name, u.launches) for u in bench.report().uninstrumented] == [("second", 2)]
    assert bench.array(out, 64).tolist() == list(range(63, -1, -1))


def test_a_filter_that_matches_nothing_is_incomplete(device: str) -> None:
    bench = Bench(device, SOURCE, kernel_name=read_kernel_filter("regex=^nothing$"))
    bench.launch("first", 1, 64, bench.zeros(64))
    report = bench.report()
    assert (report.verdict, report.findings) == ("incomplete", ())


CHOICES = [(0, None, {"first", "second"}), (1, None, {"second"}), (0, 1, {"first"}), (2, 1, set()), (1, 1, {"second"})]


@pytest.mark.parametrize(("skip", "count", "checked"), CHOICES)
def test_launch_skip_and_count(device: str, skip: int, count: int | None, checked: set[str]) -> None:
    bench = Bench(device, SOURCE, launch_skip=skip, launch_count=count)
    out = bench.zeros(64)
    bench.launch("first", 1, 64, out)
    bench.launch("second", 1, 64, out)
    report = bench.report()
    assert {finding.kernel for finding in report.findings} == checked
    assert report.verdict == ("violations" if checked else "incomplete")
    assert launches(report) == {"first": 1, "second": 1, "late": 0}


def test_skipped_launches_count_only_those_that_the_filter_names(device: str) -> None:
    bench = Bench(device, SOURCE, kernel_name=read_kernel_filter("kns=second"), launch_skip=1)
    out = bench.zeros(64)
    for name in ("second", "first", "first", "second"):
        bench.launch(name, 1, 64, out)
    (finding,) = bench.report().findings
    assert (finding.kernel, finding.ctas) == ("second", 1)


@pytest.mark.parametrize(("limit", "racy_ctas"), [(0, 7), (5, 0), (6, 1), (9, 4), (100, 7)])
def test_cta_limit(device: str, limit: int, racy_ctas: int) -> None:
    """CTAs 5 to 11 race; only the first `limit` CTAs are recorded."""
    bench = Bench(device, SOURCE, cta_limit=limit)
    bench.launch("late", 12, 64, bench.zeros(64))
    report = bench.report()
    assert sum(finding.ctas for finding in report.findings) == racy_ctas
    assert bench.counters().checked_ctas == (min(limit, 12) if limit else 12)
    assert found(report, SOURCE) == ({("data-race", "read", "write")} if racy_ctas else set())


def _many_pairs(writers: int, readers: int) -> str:
    """Every writer races with every reader: that many distinct findings."""
    stores = "\n".join(f"    if (w == {i}) tile[t & 31] = {i};" for i in range(writers))
    loads = "\n".join(f"    if (r == {i}) sum += tile[(t & 31) ^ 1] * {i + 1};" for i in range(readers))
    return f"""
extern "C" __global__ void pairs(int width, unsigned* out) {{
    __shared__ unsigned tile[32];
    const unsigned t = threadIdx.x;
    const int w = blockIdx.x % width, r = blockIdx.x / width;
    unsigned sum = 0;
    if (t < 32) tile[t] = 0;
    __syncthreads();
    if (t < 32) {{
{stores}
    }} else {{
{loads}
    }}
    out[t] = sum;
}}
"""


@pytest.mark.slow
def test_more_distinct_findings_than_the_table_holds(device: str) -> None:
    side = 70
    assert side * side > sizes.TABLE_ENTRIES
    source = _many_pairs(side, side)
    bench = Bench(device, source)
    bench.launch("pairs", side * side, 64, side, bench.zeros(64))
    report = bench.report()
    assert report.dropped > 0
    assert len(report.findings) >= sizes.RING_ENTRIES // 2
    assert any("dropped" in reason for reason in report.incomplete)
    assert report.verdict == "violations"


def test_a_full_ring_is_never_clean(device: str) -> None:
    """Pretend that the ring is full: what finds no room is counted, and the verdict says that something is missing."""
    bench = Bench(device, SOURCE)
    shadow = bench.session.shadow
    position = shadow.address + records.offsets(records.RUNTIME)["ring_count"]
    bench.backend.write(position, sizes.RING_ENTRIES.to_bytes(4, "little"))
    bench.launch("first", 2, 64, bench.zeros(64))
    report = bench.report()
    assert (report.findings, report.verdict) == ((), "incomplete")
    assert report.dropped > 0


def test_distinct_findings_within_the_table_are_all_kept(device: str) -> None:
    bench = Bench(device, source := _many_pairs(12, 12))
    bench.launch("pairs", 144, 64, 12, bench.zeros(64))
    report = bench.report()
    assert (len(found(report, source)), report.dropped) == (144, 0)
