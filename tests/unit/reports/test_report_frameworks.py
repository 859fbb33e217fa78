"""Fixes in the words of the framework at hand: the table itself, which framework a module is of, and one racy kernel of each."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from string import Formatter
from types import SimpleNamespace

import numpy as np
import pytest
import report_samples as samples
import twin_file

import consan
from consan.adapters.triton.code import framework_of_source
from consan.libcuda.texts.places import KernelPlaces, with_places
from consan.reports.catalogue.catalogue import KINDS
from consan.reports.catalogue.situations import COMMITS, WAITS, CatalogueEntry
from consan.reports.model import Access, AsyncInfo, Finding
from consan.reports.words import frameworks
from consan.reports.words.wording import describe, words_of
from consan.session.executing import loading
from consan.session.modules.producers import framework_of
from consan.toolchain.nvrtc import compile_ptx

# What is said in one framework only; nothing of it may reach the users of another.
OF_CUDA = re.compile(
    r"__sync|__pipeline|__threadfence|(?<!cuda\.)threadIdx|atomicAdd|cuda::|cluster\.sync\(\)|CUTLASS|cutlass|\bcute\b|warpgroup_wait|tma_store_"
)
OF_GLUON = re.compile(r"gl\.|async_copy\.|warpgroup_mma_wait|fence_async_shared\(\)|(?<![a-z_.])mbarrier\.wait")
OF_TRITON = re.compile(r"tl\.|num_stages")
OF_NUMBA = re.compile(r"cuda\.(sync|atomic|thread)")
OF_CUTE_DSL = re.compile(r"cute\.arch|pipeline\.|warpgroup\.|cpasync\.")
OF_CPP = re.compile(r"__sync|__pipeline|__threadfence|threadIdx|cuda::|cutlass::|cute::|<\{?\d|(?<!T\.)(?:warpgroup_|tma_store_)")
STRANGERS = {
    frameworks.CUTE_DSL: (OF_CPP, OF_GLUON, OF_TRITON, OF_NUMBA),
    frameworks.CUDA: (OF_CUTE_DSL, OF_GLUON, OF_TRITON, OF_NUMBA),
    frameworks.CUTE: (OF_CUTE_DSL, OF_GLUON, OF_TRITON, OF_NUMBA),
    frameworks.TRITON: (OF_CUDA, OF_GLUON, OF_NUMBA),
    frameworks.GLUON: (OF_CUDA, OF_TRITON, OF_NUMBA),
    frameworks.NUMBA: (OF_CUDA, OF_GLUON, OF_TRITON),
    frameworks.WARP: (OF_CUTE_DSL, OF_GLUON, OF_TRITON, OF_NUMBA),
    frameworks.TILELANG: (OF_CPP, OF_CUTE_DSL, OF_GLUON, OF_TRITON, OF_NUMBA),
    frameworks.PALLAS: (OF_CPP, OF_CUTE_DSL, OF_GLUON, OF_TRITON, OF_NUMBA),
    frameworks.HELION: (OF_CUDA, OF_GLUON, OF_NUMBA),
    frameworks.PTX: (OF_CUDA, OF_CUTE_DSL, OF_GLUON, OF_TRITON, OF_NUMBA),
}


def copy(operation: str) -> Access:
    barrier = {"barrier": 8, "phase": 1} if operation in ("bulk load", "st.async") else {"group": 2}
    return dataclasses.replace(samples.COPY, role=operation, asynchronous=AsyncInfo(operation, **barrier))


def texts(kind: CatalogueEntry, name: str, framework: str) -> str:
    """All that one row says to the users of a framework."""
    operation = name.partition(":")[2].partition("/")[0] or "cp.async"
    hazard = name.partition("/")[2] or None
    finding = Finding(kind.id, "k", hazard=hazard, accesses=(copy(operation), samples.READ))
    row = kind.situations[name]
    words = words_of(finding, {"leave": 1, "barrier": "barrier 1"}, framework)
    told = frameworks.tidy(" | ".join(text.format_map(words) for text in (row.message, row.missing, row.fix)))
    return told + frameworks.advice(framework, kind.id)


@pytest.mark.parametrize("framework", frameworks.FRAMEWORKS)
def test_no_row_speaks_in_the_words_of_another_framework(framework: str) -> None:
    for kind in KINDS.values():
        for name in kind.situations:
            told = texts(kind, name, framework)
            assert "{" not in told, (kind.id, name)
            assert " ()" not in told, (kind.id, name, told)
            for strangers in STRANGERS[framework]:
                assert not strangers.search(told), (kind.id, name, told)


@pytest.mark.parametrize("framework", frameworks.FRAMEWORKS)
@pytest.mark.parametrize("operation", WAITS)
def test_every_word_is_filled_in(framework: str, operation: str) -> None:
    words = frameworks.words_of(framework, operation)
    fields = {field for word in words.values() for _, field, _, _ in Formatter().parse(word) if field}
    assert fields <= {"leave", "parity", "barrier", "fence_at"}
    assert all(words[name] for name in frameworks._ALONE)


def test_the_table_has_the_operations_of_the_catalogue() -> None:
    assert set(frameworks.WAITS) == set(WAITS)
    assert set(frameworks.COMMITS) <= set(COMMITS)


RACE = Finding("data-race", "k", hazard="RAW", accesses=(samples.WRITE, samples.READ))


@pytest.mark.parametrize(
    ("framework", "fix"),
    [
        (frameworks.CUDA, "put __syncthreads() after the write at "),
        (frameworks.CUTE, "put __syncthreads() after the write at "),
        (frameworks.CUTE_DSL, "put cute.arch.sync_threads() (bar.sync 0) after the write at "),
        (frameworks.TRITON, "put tl.debug_barrier() (bar.sync 0) after the write at "),
        (frameworks.GLUON, "put gl.barrier() (gl.thread_barrier() in older versions; bar.sync 0) after the write at "),
        (frameworks.NUMBA, "put cuda.syncthreads() (bar.sync 0) after the write at "),
        (frameworks.PTX, "put bar.sync 0 after the write at "),
    ],
)
def test_a_barrier_in_the_words_of_each_framework(framework: str, fix: str) -> None:
    finding = describe(RACE, framework=framework)
    assert finding.fix.startswith(fix)
    assert "bar.sync 0" in finding.missing
    assert ("num_stages" in finding.fix) is (framework == frameworks.TRITON)


@pytest.mark.parametrize(
    ("operation", "spelled"),
    [
        ("cp.async", ("__pipeline_wait_prior(1)", "cp_async_wait<1>()", "async_copy.wait_group(1)")),
        ("bulk load", ("cuda::barrier", "ClusterBarrier::wait(1)", "mbarrier.wait")),
        ("bulk store", ("cuda::ptx::cp_async_bulk_wait_group_read", "tma_store_wait<1>()", "tma.store_wait(1)")),
        ("wgmma", ("warpgroup_wait<1>()", "warpgroup_wait<1>()", "warpgroup_mma_wait(1)")),
    ],
)
def test_a_wait_in_the_words_of_each_framework(operation: str, spelled: tuple[str, str, str]) -> None:
    finding = Finding("missing-wait", "k", hazard="RAW", accesses=(copy(operation), samples.READ))
    told = {name: describe(finding, "not-waited", framework=name, leave=1, parity=1).fix for name in frameworks.FRAMEWORKS}
    for name, word in zip((frameworks.CUDA, frameworks.CUTE, frameworks.GLUON), spelled, strict=True):
        assert word in told[name]
    ptx = WAITS[operation].split()[0]
    assert all(ptx in fix for fix in told.values())
    assert "try another num_stages, and report it to Triton with this reproduction" in told[frameworks.TRITON]


def test_a_proxy_fence_in_the_words_of_each_framework() -> None:
    finding = Finding("missing-proxy-fence", "k", hazard="RAW", accesses=(samples.WRITE, copy("bulk store")))
    told = {name: describe(finding, "no-proxy-fence", framework=name).fix for name in frameworks.FRAMEWORKS}
    assert "(cuda::ptx::fence_proxy_async(cuda::ptx::space_shared))" in told[frameworks.CUDA]
    assert "(cutlass::arch::fence_view_async_shared() or tma_store_fence())" in told[frameworks.CUTE]
    assert "(fence_async_shared())" in told[frameworks.GLUON]
    assert "fence.proxy.async.shared::cta in every thread" in told[frameworks.PTX]


def test_a_note_asks_nothing_of_a_user_of_triton() -> None:
    noted = describe(dataclasses.replace(RACE, hazard="WAW"), "replicated", framework=frameworks.TRITON)
    assert "report it" not in noted.fix


@pytest.mark.parametrize(
    ("framework", "fence", "release"),
    [
        (frameworks.CUDA, "put __threadfence() after ", "cuda::atomic_ref with cuda::memory_order_release"),
        (
            frameworks.TRITON,
            "put fence.acq_rel.gpu (through tl.inline_asm_elementwise) after ",
            'tl.atomic_xchg or tl.atomic_add with sem="release"',
        ),
        (frameworks.NUMBA, "put cuda.threadfence() (fence.acq_rel.gpu) after ", "atom.release"),
        (frameworks.PTX, "put fence.acq_rel.gpu after ", "st.release or atom.release"),
        (
            frameworks.CUTE_DSL,
            "put cute.arch.fence_acq_rel_gpu() (fence.acq_rel.gpu) after ",
            'cute.arch.atomic_exch or cute.arch.atomic_add with sem="release"',
        ),
    ],
)
def test_a_flag_in_the_words_of_each_framework(framework: str, fence: str, release: str) -> None:
    outer = [dataclasses.replace(access, space="global") for access in (samples.WRITE, samples.READ)]
    finding = Finding("global-race", "k", hazard="RAW", accesses=tuple(outer))
    told = describe(finding, "no-release", framework=framework, flag_write_at="k.cu:8", flag_read_at="k.cu:8")
    assert told.fix.startswith(fence), told.fix
    assert told.fix.endswith(f"or make that write a release ({release})"), told.fix
    assert told.message.startswith("the flag that is updated at k.cu:8 comes between ")


@pytest.mark.parametrize("kind", ["data-race", "scope"])
def test_the_order_of_global_memory_is_not_triton_s_business(kind: str) -> None:
    for space, users in (("global", True), ("shared", False)):
        accesses = tuple(dataclasses.replace(access, space=space) for access in (samples.WRITE, samples.READ))
        fix = describe(Finding(kind, "k", hazard="RAW", accesses=accesses), framework=frameworks.TRITON).fix
        assert ("report it to Triton" not in fix) is users, fix


# --- which framework a module is of ----------------------------------------------------------------------------------------------

NVVM = "//\n// Generated by NVIDIA NVVM Compiler\n//\n.version 8.0\n"
LLVM = "//\n// Generated by LLVM NVPTX Back-End\n//\n.version 8.0\n"


@pytest.mark.parametrize(
    ("ptx", "framework"),
    [
        (NVVM, frameworks.CUDA),
        (NVVM + '\t.file\t1 "/src/k.cu"\n', frameworks.CUDA),
        (NVVM + '\t.file\t1 "/src/k.cu"\n\t.file\t2 "/x/include/cute/arch/copy_sm90.hpp"\n', frameworks.CUTE),
        (NVVM + '\t.file 1 "cutlass/arch/barrier.h"\n', frameworks.CUTE),
        (NVVM + '\t.file 1 "/src/execute.cu"\n', frameworks.CUDA),
        (NVVM + '\t.file\t1 "/site/cutlass/pipeline/sm90.py"\n.visible .entry kernel_cutlass_k_0()\n', frameworks.CUTE_DSL),
        (NVVM + '\t.file\t1 "/src/k.py"\n.visible .entry _ZN6cudapy8__main__1kE()\n', frameworks.NUMBA),
        (NVVM + ".common .global .align 8 .u64 _ZN08NumbaEnv8__main__7reverseE;\n", frameworks.NUMBA),
        (NVVM + ".visible .entry _Z3add5ArrayIfLi1E1C7mutable7alignedE()\n", frameworks.NUMBA),
        (NVVM + ".visible .entry add_92443627_cuda_kernel_forward()\n", frameworks.WARP),
        (NVVM + '\t.file\t1 "/x/src/tl_templates/cuda/copy.h"\n\t.file\t2 "/x/include/cute/arch/copy.hpp"\n', frameworks.TILELANG),
        (NVVM + ".visible .entry main_kernel() { ret; }\n// Compiled by tilelang\n", frameworks.TILELANG),
        (NVVM + '\t.file\t1 "/src/cupy_program.py"\n.visible .entry k()\n', frameworks.CUDA),
        (LLVM + '\t.file\t1 "/src/k.py"\n', frameworks.TRITON),
        (LLVM + '\t.file\t1 "/src/k.py"\n.visible .entry scale_mosaic_gpu_kernel()\n', frameworks.PALLAS),
        (LLVM, frameworks.PTX),
        (".version 8.0\n.target sm_80\n", frameworks.PTX),
    ],
)
def test_the_framework_of_a_module(ptx: str, framework: str) -> None:
    assert framework_of(ptx) == framework


def test_the_framework_of_what_triton_compiles() -> None:
    gluon = type("GluonASTSource", (), {"__module__": "triton.experimental.gluon._runtime"})
    plain = type("ASTSource", (), {"__module__": "triton.compiler.compiler"})
    assert [framework_of_source(made()) for made in (gluon, plain, SimpleNamespace)] == ["gluon", "triton", "triton"]


# --- one racy kernel, from each producer -----------------------------------------------------------------------------------------

SOURCE = """extern "C" __global__ void kernel(const float* in, float* out) {
    __shared__ float tile[64];
    tile[threadIdx.x] = in[threadIdx.x];
    out[threadIdx.x] = tile[63 - threadIdx.x];
}
"""


def plain_ptx() -> str:
    """The kernel as if written by hand: no line information, no comment of a compiler."""
    text = compile_ptx(SOURCE, name="k.cu", arch="sm_80").ptx
    kept = [line for line in text.splitlines() if not re.match(r"\s*(//|\.file|\.loc)", line)]
    return "\n".join(kept[: next((i for i, line in enumerate(kept) if ".section" in line), len(kept))]) + "\n"


PRODUCED = {
    frameworks.CUDA: lambda: compile_ptx(SOURCE, name="k.cu", arch="sm_80").ptx,
    frameworks.CUTE: lambda: compile_ptx(f'#line 1 "cute/atom.hpp"\n{SOURCE}', name="k.cu", arch="sm_80").ptx,
    frameworks.TRITON: lambda: LLVM.partition(".version")[0] + re.sub(r'(\.file\s+1\s+)"[^"]*"', r'\1"k.py"', _headless()),
    frameworks.NUMBA: lambda: compile_ptx(f'#line 1 "k.py"\n{SOURCE.replace("kernel", "_ZN6cudapy1kE")}', name="k.cu", arch="sm_80").ptx,
    frameworks.PTX: plain_ptx,
}


def test_cuda_cpp_in_a_python_file_is_told_in_the_words_of_cuda_cpp() -> None:
    assert framework_of(compile_ptx(f'#line 1 "program.py"\n{SOURCE}', name="k.cu", arch="sm_80").ptx) == frameworks.CUDA


def _headless() -> str:
    text = compile_ptx(SOURCE, name="k.cu", arch="sm_80").ptx
    return text[text.index(".version") :]


@pytest.mark.parametrize("framework", PRODUCED)
def test_one_racy_kernel_from_each_producer(framework: str, tmp_path: Path) -> None:
    path = tmp_path / "k.ptx"
    path.write_text(PRODUCED[framework]())
    given = [np.arange(64, dtype=np.float32), np.zeros(64, dtype=np.float32)]
    report = consan.launch(consan.Kernel(path), 1, 64, given, device="cpu")
    (finding,) = report.findings
    assert finding.fix.startswith(f"put {frameworks.words_of(framework, 'copy')['cta_barrier']} after the write at ")
    assert ("__syncthreads()" in str(report)) is (framework in (frameworks.CUDA, frameworks.CUTE))


def test_a_fix_for_warp_names_no_barrier_of_cuda() -> None:
    """Its kernels have none."""
    words = frameworks.words_of(frameworks.WARP, "copy")
    assert (words["cta_barrier"], words["warp_barrier"]) == ("a barrier of the block", "a barrier of the warp")
    assert "wp.func_native" in frameworks.advice(frameworks.WARP, "data-race")


@pytest.mark.parametrize("situation", ["not-waited", "global-not-waited"])
@pytest.mark.parametrize(("framework", "then"), [(frameworks.PALLAS, ""), (frameworks.CUTE_DSL, "cute.arch.sync_threads()")])
def test_the_wait_of_pallas_for_a_store_is_a_barrier_too(framework: str, then: str, situation: str) -> None:
    store = dataclasses.replace(samples.COPY, asynchronous=AsyncInfo("bulk store", group=0))
    finding = Finding("missing-wait", "k", hazard="WAR", accesses=(store, samples.WRITE))
    fix = describe(finding, situation, framework=framework, leave=1).fix
    assert ("a barrier of the warpgroup is part of it" in fix) is (framework == frameworks.PALLAS)
    assert then in fix
    assert "barrier_arrive" not in fix


@pytest.mark.parametrize(
    ("framework", "word"), [(frameworks.CUTE_DSL, " (hand its result to pipeline.consumer_wait or producer_acquire)"), (frameworks.PTX, "")]
)
def test_a_peek_whose_result_is_ignored_belongs_to_the_wait_of_the_pipeline(framework: str, word: str) -> None:
    finding = describe(Finding("barrier-misuse", "k", accesses=(samples.READ,)), "result-ignored", framework=framework)
    assert finding.fix.endswith(f"until it returns true{word}")


def test_warps_that_hand_a_stage_back_before_the_wait_that_covers_it_are_to_wait_for_all() -> None:
    """A repair is tried with the wait that the fix names."""
    product = dataclasses.replace(samples.COPY, asynchronous=AsyncInfo("wgmma", group=0))
    finding = Finding("missing-wait", "k", hazard="WAR", accesses=(product, samples.WRITE))
    fix = describe(finding, "waited-no-barrier", framework=frameworks.PALLAS, leave=1).fix
    assert "arrive after wgmma.wait_group.sync.aligned 1 (plgpu.wgmma_wait(1))" in fix
    assert "wait with wgmma.wait_group.sync.aligned 0 (plgpu.wgmma_wait(0)) before they do" in fix


@pytest.mark.parametrize("operation", WAITS)
def test_kernels_of_pallas_that_triton_compiles_have_its_words_by_names_of_pallas(operation: str) -> None:
    words = frameworks.words_of(frameworks.PALLAS_TRITON, operation)
    assert words["atomic_add"] == "plgpu.atomic_add"
    assert words["flag_release"] == "plgpu.atomic_xchg or plgpu.atomic_add"
    assert not [word for word in words.values() if re.search(r"\btl\.|sem=", word)]
    assert "report it to JAX" in frameworks.advice(frameworks.PALLAS_TRITON, "data-race")


def test_the_mark_of_pallas_comes_with_the_lines() -> None:
    ptx = ".version 8.3\n.target sm_90a\n.address_size 64\n.visible .entry reduce()\n{\nret;\n}\n"
    marked = with_places(ptx, {"reduce": KernelPlaces("/src/k.py", 4)})
    assert (framework_of(ptx), framework_of(marked)) == (frameworks.PTX, frameworks.PALLAS_TRITON)


@pytest.mark.parametrize("framework", [frameworks.CUDA, *frameworks.GROUPS_BY_COMPILER])
def test_named_barriers_that_a_compiler_makes_are_not_blamed(framework: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "framework_of", lambda ptx: framework)
    twin = twin_file.read(Path(__file__).parents[2] / "kernels" / "twins" / "named_barrier_wrong_id.cu")
    compiled = twin_file.kernel(twin.path, True)
    kernel = consan.Kernel(f"{compiled.ptx}// of {framework}\n", compiled.entry)
    report = consan.launch(kernel, twin.grid, twin.block, twin.parameters(twin.fresh_args()), device="cpu")
    races = [each for each in report.findings if each.kind == "data-race"]
    assert races
    assert any("use one barrier id" in each.fix for each in races) is (framework == frameworks.CUDA)
