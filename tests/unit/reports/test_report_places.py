"""Whose line a report shows: the user's in the kernel's own file, in every format."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from consan.instrument.sites import InlinedCall, Place
from consan.reports.formats import html, json_format, sarif, text
from consan.reports.model import Access, Finding, Report
from consan.reports.source import places
from consan.reports.source.sources import embed
from consan.reports.verdict.conclusion import assemble
from consan.reports.verdict.suppression import make_rule, suppress, to_toml

PACKAGES = "/venv/lib/python3.11/site-packages"
CUB = f"{PACKAGES}/nvidia/cu13/include/cccl/cub/block/block_reduce.cuh"
HELPER = "/home/user/kernels/helper.cuh"
KERNEL = "/home/user/kernels/k.cu"

USERS, VENDORED, LIBRARY = places.USERS, places.VENDORED, places.LIBRARY


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        (KERNEL, USERS),
        ("k.cu", USERS),
        ("/tmp/torchinductor_user/ab/cabc.py", USERS),
        ("/home/user/kernels/cub/k.cu", USERS),
        ("/home/user/cuda/kernel.cu", USERS),
        ("/home/user/cutlass_kernels/gemm.cu", USERS),
        (CUB, LIBRARY),
        ("/usr/local/cuda-13.0/targets/x86_64-linux/include/cooperative_groups.h", LIBRARY),
        ("/usr/local/cuda/include/cuda_pipeline_helpers.h", LIBRARY),
        ("/opt/cccl/libcudacxx/include/cuda/std/barrier", LIBRARY),
        ("/opt/cccl/libcudacxx/include/cuda/__barrier/barrier_block_scope.h", LIBRARY),
        ("/opt/cutlass/include/cute/arch/copy_sm90_tma.hpp", LIBRARY),
        ("/opt/cutlass/include/cutlass/gemm/collective/sm90_mma.hpp", LIBRARY),
        ("/home/user/project/third_party/cutlass/include/cute/tensor.hpp", LIBRARY),
        ("/home/user/project/csrc/cutlass/include/cute/arch/copy_sm80.hpp", LIBRARY),
        ("/home/user/project/cutlass/include/cutlass/pipeline/sm90_pipeline.hpp", LIBRARY),
        ("/home/user/project/cutlass/my_gemm.cuh", USERS),
        (f"{PACKAGES}/triton/language/standard.py", LIBRARY),
        ("/src/triton/python/triton/language/standard.py", LIBRARY),
        (f"{PACKAGES}/torch/include/ATen/cuda/Atomic.cuh", LIBRARY),
        (f"{PACKAGES}/flashinfer/data/csrc/norm.cu", VENDORED),
        ("/home/user/project/third_party/fast/warp.cuh", VENDORED),
        ("cuda_pipeline_helpers.h", LIBRARY),
        ("<built-in>", LIBRARY),
        ("/home/dev/cutlass/include/cute/tensor.hpp", LIBRARY),
        ("C:\\venv\\Lib\\site-packages\\triton\\language\\core.py", LIBRARY),
    ],
)
def test_rank(file: str, expected: int) -> None:
    assert places.rank(file, "/home/user/project") == expected


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        ("/home/dev/cutlass/include/cute/tensor.hpp", USERS),
        ("/home/dev/cutlass/.venv/lib/python3.11/site-packages/nvidia/cu13/include/cuda_pipeline.h", LIBRARY),
        ("/home/dev/cutlass/third_party/cutlass/include/cute/tensor.hpp", LIBRARY),
    ],
)
def test_who_works_on_a_library_sees_its_lines(file: str, expected: int) -> None:
    assert places.rank(file, "/home/dev/cutlass") == expected


def chain(*files: str) -> Place:
    """An instruction in the first of the files, whose function was inlined into the next one, and so on; lines count from 10."""
    frames = tuple(InlinedCall(f"_Z2f{n}v", file, 10 + n, 3) for n, file in enumerate(files[1:], 1))
    return Place(99, "st.shared.u32 [%r1], %r2;", files[0], 10, 3, frames)


@pytest.mark.parametrize(
    ("files", "line", "innermost"),
    [
        ((KERNEL,), 10, False),
        ((HELPER, KERNEL), 11, True),  # a helper beside the kernel: the call in the kernel
        ((KERNEL, KERNEL), 10, False),  # a function in the kernel's file
        ((KERNEL, HELPER, KERNEL), 10, False),  # a lambda that was given to a helper
        ((HELPER,), 10, False),  # a kernel in a header
        ((CUB, KERNEL), 11, True),
        ((CUB, CUB, HELPER, KERNEL), 13, True),
        ((CUB, KERNEL, CUB, KERNEL), 11, True),  # a lambda that was given to a library
        ((HELPER, CUB, KERNEL), 12, True),
        ((CUB, CUB), 10, False),
        ((CUB, f"{PACKAGES}/flashinfer/data/csrc/norm.cu"), 11, True),
        ((CUB, f"{PACKAGES}/flashinfer/data/csrc/norm.cu", KERNEL), 12, True),
    ],
)
def test_the_users_line_in_the_kernels_file(files: tuple[str, ...], line: int, innermost: bool) -> None:
    found = places.located(chain(*files))
    assert (found["file"], found["line"]) == (files[line - 10], line)
    assert (found["innermost"] is not None) == innermost
    assert [frame.function for frame in found["inlined"]] == [f"f{n}" for n in range(1, len(files))]
    assert found["innermost"] is None or (found["innermost"].file, found["innermost"].line) == (files[0], 10)


def test_a_place_without_a_line_stays_one() -> None:
    found = places.located(Place(7, "ret;"))
    assert (found["file"], found["line"], found["ptx_line"], found["innermost"]) == ("", 0, 7, None)


def inlined(*frames: tuple[str, int]) -> Access:
    """An access; its frames from the innermost outwards."""
    (file, line), *calls = frames
    chain = tuple(InlinedCall("f", caller, at, 3) for caller, at in calls)
    return Access(role="write", op="st.shared.u32", **places.located(Place(99, "st.shared.u32 [%r1], %r2;", file, line, 3, chain)))


@pytest.mark.parametrize(
    ("first", "second", "shown"),
    [
        # Two calls of one helper differ by their callers.
        (((HELPER, 41), (KERNEL, 9)), ((HELPER, 41), (KERNEL, 12)), [(KERNEL, 9), (KERNEL, 12)]),
        # Two lines of one call: the helper's lines tell them apart.
        (((HELPER, 41), (KERNEL, 9)), ((HELPER, 44), (KERNEL, 9)), [(HELPER, 41), (HELPER, 44)]),
        # The calls part half-way.
        (
            ((CUB, 5), (HELPER, 41), (HELPER, 60), (KERNEL, 9)),
            ((CUB, 7), (HELPER, 41), (HELPER, 62), (KERNEL, 9)),
            [(HELPER, 60), (HELPER, 62)],
        ),
        # Only a library's lines differ.
        (((CUB, 5), (KERNEL, 9)), ((CUB, 7), (KERNEL, 9)), [(KERNEL, 9), (KERNEL, 9)]),
        # One statement.
        (((HELPER, 41), (KERNEL, 9)), ((HELPER, 41), (KERNEL, 9)), [(KERNEL, 9), (KERNEL, 9)]),
    ],
)
def test_places_of_a_finding_are_told_apart(first: Any, second: Any, shown: list[tuple[str, int]]) -> None:
    both = places.distinct((inlined(*first), inlined(*second)))
    assert [(access.file, access.line) for access in both] == shown
    assert [next(places.steps(access)) for access in both] == shown
    assert all(access.innermost is None or access.innermost.line != access.line for access in both)


# --- every format ------------------------------------------------------------------------------------------------------------------


@pytest.fixture
def report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Report:
    monkeypatch.chdir(tmp_path)
    kernel = tmp_path / "k.cu"
    kernel.write_text("".join(f"line{n}();\n" for n in range(1, 30)))
    first, second = chain(CUB, str(kernel)), replace(chain(CUB, CUB, str(kernel)), ptx_line=120)
    accesses = tuple(Access(role="write", op="st.shared.u32", **places.located(place)) for place in (first, second))
    finding = Finding("data-race", "_Z3revIfLi128EEvPf", hazard="WAW", message="m", accesses=accesses)
    return embed(assemble(device="cpu", findings=[finding]))


def test_text(report: Report) -> None:
    shown = text.render(report, details=True)
    heads = [line.strip() for line in shown.splitlines() if "-->" in line]
    assert heads == ["--> k.cu:11:3 (PTX line 99)", "--> k.cu:12:3 (PTX line 120)"]
    assert "line11();" in shown
    assert "in kernel rev<float, 128>" in shown.splitlines()[0]
    header = "cub/block/block_reduce.cuh"
    outwards = [f"= at {header}:10:3", f"= in f1, inlined at {header}:11:3", "= in f2, inlined at k.cu:12:3"]
    assert [line.strip() for line in shown.splitlines() if " = at" in line or " = in " in line][-3:] == outwards
    assert "_Z3revIfLi128EEvPf" in shown  # what --kernel-name takes


def test_html(report: Report) -> None:
    page = html.render(report)
    assert "k.cu:11:3 (PTX line 99)" in page
    assert page.index("at cub/block/block_reduce.cuh:10:3") < page.index("in f1, inlined at k.cu:11:3")
    assert "<code>rev&lt;float, 128&gt;</code>" in page


def test_sarif(report: Report) -> None:
    (result,) = json.loads(sarif.render(report))["runs"][0]["results"]
    assert [where(place) for place in result["locations"]] == [("k.cu", 11), ("k.cu", 12)]
    flow = result["codeFlows"][0]["threadFlows"][1]["locations"]
    assert [where(step["location"]) for step in flow] == [("k.cu", 12), (f"file://{CUB}", 11), (f"file://{CUB}", 10)]
    assert result["locations"][0]["logicalLocations"][0]["name"] == "_Z3revIfLi128EEvPf"


def where(location: dict[str, Any]) -> tuple[str, int]:
    physical = location["physicalLocation"]
    return physical["artifactLocation"]["uri"], physical["region"]["startLine"]


def test_json_there_and_back(report: Report) -> None:
    data = json_format.to_json(report)
    access = data["findings"][0]["accesses"][1]
    assert (Path(access["file"]).name, access["line"], access["innermost"]["line"]) == ("k.cu", 12, 10)
    assert [frame["function"] for frame in access["inlined"]] == ["f1", "f2"]
    assert json_format.from_json(data) == report


def test_suppressions(report: Report, tmp_path: Path) -> None:
    assert 'source = "k.cu"' in to_toml(report, str(tmp_path))
    rule = make_rule("data-race", "known", "here", source="k.cu")
    assert suppress(report, [rule]).findings[0].suppressed


def test_a_comment_on_the_users_line_suppresses(report: Report, tmp_path: Path) -> None:
    lines = [f"line{n}();" for n in range(1, 30)]
    lines[10] += "  // consan: allow(data-race) known"
    (tmp_path / "k.cu").write_text("\n".join(lines))
    assert suppress(report, []).findings[0].suppressed


def test_findings_at_the_same_lines_of_the_user_are_one(report: Report) -> None:
    (finding,) = report.findings
    moved = [replace(access, innermost=replace(access.innermost, line=77), ptx_line=5) for access in finding.accesses if access.innermost]
    other = replace(finding, accesses=tuple(moved))
    (merged,) = assemble(device="cpu", findings=[finding, other]).findings
    assert merged.count == 2
