"""Kernels of Triton, CUB, CuPy, Numba and CUDA C++, untouched, through the whole pipeline.

With hooks they assemble, compute the same bits as without, and are clean; and no memory or synchronisation instruction of
theirs goes uncounted. On the CPU at a small size, on the GPU at full size.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from real_cases import CASES, Case, Size
from real_run import instrumented, ptx_of, run_checked, run_plain, session_with_inline_hooks
from sampled import but

from consan.instrument import Instrumented
from consan.instrument.isa import ROWS, is_memory_or_sync, lookup
from consan.instrument.ptx import parse
from consan.reports.model import Report
from consan.session.planning.options import SessionOptions
from consan.session.session import Session
from consan.toolchain.assemble import assemble_cached
from consan.toolchain.registers import cap_bounded_kernels

ARCHS = ("sm_80", "sm_90a")
HOPPER = {"triton/matmul"}  # for sm_90 Triton compiles it to wgmma: test_hopper_checked.py
PLACES = [(case, arch) for case in CASES for arch in ARCHS if arch == "sm_80" or case.name not in HOPPER]

QUICK = 8  # with hooks one in so many is quick: most need a runtime of their own, which takes seconds to compile

each_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
each_place = pytest.mark.parametrize(("case", "arch"), PLACES, ids=[f"{case.name}-{arch}" for case, arch in PLACES])


def _marks(number: int) -> Any:
    return () if number % QUICK == 0 else pytest.mark.slow


some_cases = pytest.mark.parametrize("case", [pytest.param(case, marks=_marks(at), id=case.name) for at, case in enumerate(CASES)])
some_places = pytest.mark.parametrize(
    ("case", "arch"), [pytest.param(*place, marks=_marks(at), id=f"{place[0].name}-{place[1]}") for at, place in enumerate(PLACES)]
)


def _assembles_without_warnings(case: Case, arch: str, inline: bool) -> None:
    text = instrumented(case.name, arch, inline)
    done = assemble_cached(text.ptx, arch, name=case.name)
    assert not done.warnings
    assert set(done.info) == set(text.entries)


@some_places
def test_assembles_without_warnings(case: Case, arch: str) -> None:
    """With hooks inline on one architecture, and called on the other."""
    _assembles_without_warnings(case, arch, inline=arch == ARCHS[-1])


@pytest.mark.slow
@each_place
def test_assembles_the_other_way_too(case: Case, arch: str) -> None:
    _assembles_without_warnings(case, arch, inline=arch != ARCHS[-1])


def test_launch_bounds_do_not_lift_the_cap_of_registers() -> None:
    """All CTAs of a cooperative grid must stay resident, so its kernel may not need more registers than before."""
    text, bound = instrumented("nvrtc/cooperative_grid", "sm_80", True).ptx, 40
    options = (f"--maxrregcount={bound}",)
    (free,) = assemble_cached(text, "sm_90a", options=options).info.values()
    (capped,) = assemble_cached(cap_bounded_kernels(parse(text), bound), "sm_90a", options=options).info.values()
    assert capped.registers <= bound < free.registers


def _assert_complete(report: Report) -> None:
    assert report.incomplete == ()
    assert report.uninstrumented == ()
    assert (report.dropped, report.evicted) == (0, 0)
    assert [kernel.unmodelled for kernel in report.kernels] == [()] * len(report.kernels)
    assert sum(kernel.launches for kernel in report.kernels) == 1


def _assert_clean(report: Report, case: Case) -> None:
    _assert_complete(report)
    if case.reads_past is None:
        assert report.findings == ()
        assert report.verdict == "clean"
        return
    assert report.findings
    for finding in report.findings:
        assert finding.kind == "uninitialized-read"
        assert {Path((access.innermost or access).file).name for access in finding.accesses} == {case.reads_past}


def _check(case: Case, arch: str, session: Session, seed: int = 0) -> None:
    size: Size = "small" if session.backend.device_name == "cpu" else "full"
    ptx, alone, checked = ptx_of(case.name, arch), case.launch(size, seed), case.launch(size, seed)
    plain = run_plain(ptx, alone, session.backend, seed=seed)
    alone.check()
    results, report = run_checked(ptx, checked, session)
    assert results == plain
    _assert_clean(report, case)


@each_case
def test_clean_with_the_same_results(case: Case, device: str) -> None:
    _check(case, "sm_80", Session(SessionOptions(device=device, engine="inline")))


# Two architectures at once: the other schedules of sm_80 are slow.
LAST_ARCH = [(case, arch) for case, arch in PLACES if (case, ARCHS[-1]) not in PLACES or arch == ARCHS[-1]]


@pytest.mark.parametrize(("case", "arch"), LAST_ARCH, ids=[f"{case.name}-{arch}" for case, arch in LAST_ARCH])
def test_clean_in_another_schedule_and_recorded(case: Case, arch: str) -> None:
    seed = 0 if case.lockstep else 1
    _check(case, arch, Session(SessionOptions(device="cpu", seed=seed, engine="record")), seed)


@some_cases
def test_clean_with_hooks_as_on_a_gpu(case: Case) -> None:
    seed = 0 if case.lockstep else 2
    _check(case, "sm_80", session_with_inline_hooks(seed), seed)


@pytest.mark.slow
@pytest.mark.parametrize("case", [case for case in CASES if not case.lockstep], ids=lambda case: case.name)
def test_clean_in_many_schedules(case: Case) -> None:
    for seed in range(3, 23):
        _check(case, "sm_80", Session(SessionOptions(device="cpu", seed=seed, engine="inline")), seed)


COUNTED = {
    "nvrtc/cp_async_pipeline": 128,
    "nvrtc/block_radix_sort": 128,
    "nvrtc/sgemm_tiled": 256,
    "triton/matmul_small": 128,
    "triton/softmax": 256,
}


def _with_counted_barriers(name: str, threads: int, seeds: range) -> None:
    """The same kernel, but every barrier names its number of threads, for which warps keep clocks of each other."""
    ptx = re.sub(r"bar\.sync\s+0;", f"bar.sync 0, {threads};", ptx_of(name, "sm_80"))
    case = next(case for case in CASES if case.name == name)
    for seed in seeds:
        launch = case.launch("small", seed)
        _assert_clean(run_checked(ptx, launch, Session(SessionOptions(device="cpu", seed=seed, engine="inline")))[1], case)
        launch.check()


@pytest.mark.parametrize("name", but(["nvrtc/block_radix_sort"], COUNTED))
def test_clean_with_counted_barriers(name: str) -> None:
    _with_counted_barriers(name, COUNTED[name], range(1))


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(("name", "threads"), COUNTED.items(), ids=list(COUNTED))
def test_clean_with_counted_barriers_in_many_schedules(name: str, threads: int) -> None:
    _with_counted_barriers(name, threads, range(1, 203))


_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_WORDS = "ld|ldu|st|atom|red|ldmatrix|stmatrix|cp|bar|barrier|fence|membar|mbarrier|wgmma|wmma.load|wmma.store|multimem|tensormap"
_MEMORY_OR_SYNC = re.compile(rf"(?:^|[;{{}}:\s])(?:{_WORDS})\.[\w.:]*[^;]*;")


def _in_text(ptx: str) -> int:
    """Memory and synchronisation instructions as a plain reader of the text counts them."""
    return len(_MEMORY_OR_SYNC.findall(_COMMENT.sub("", ptx)))


def _in_table(ptx: str) -> int:
    """The same by the opcode table, which must know every one."""
    count = 0
    for function in parse(ptx).functions:
        for instruction in function.body.instructions() if function.body else ():
            found = is_memory_or_sync(instruction.parts)
            assert lookup(instruction.parts) is not None or not found, instruction.text
            count += found
    return count


def _counted(done: Instrumented) -> int:
    return sum(f.memory_sites + f.sync_sites + f.private for f in done.functions)


@each_place
def test_every_instruction_is_counted(case: Case, arch: str) -> None:
    done, ptx = instrumented(case.name, arch), ptx_of(case.name, arch)
    assert [f.unmodelled for f in done.functions] == [[]] * len(done.functions)
    assert done.external == ()
    assert _counted(done) == _in_table(ptx) == _in_text(ptx)
    # A vector load with unused parts has several sites.
    assert len({(site.ptx_line, site.ptx) for site in done.sites if site.bytes > 0}) == sum(f.memory_sites for f in done.functions)


def test_what_the_table_calls_checked_has_a_pass() -> None:
    checked = [row for row in ROWS if row.status == "checked"]
    handled = [row for row in checked if row.is_access or row.changes_map or row.synchronises or row.is_bulk or row.is_of_products]
    assert {row.family for row in checked} - {row.family for row in handled} == {"cp.async.commit", "cp.async.wait"}


# What is not checked yet, in kernels that use it.
UNMODELLED = {
    "nvrtc/wmma_half/sm_80": "wmma",
}


@pytest.mark.parametrize(("place", "word"), UNMODELLED.items(), ids=list(UNMODELLED))
def test_what_is_not_modelled_is_listed(place: str, word: str) -> None:
    name, _, arch = place.rpartition("/")
    done, ptx = instrumented(name, arch), ptx_of(name, arch)
    listed = [u for f in done.functions for u in f.unmodelled]
    assert word in {u.opcode.split(".")[0] for u in listed}
    assert _counted(done) + len(listed) == _in_table(ptx) == _in_text(ptx)
