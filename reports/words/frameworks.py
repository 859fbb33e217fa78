"""How each framework spells the repairs: one table, which fills the placeholders of the catalogue.

A row is a word, a column a framework; `{leave}`, `{parity}` and `{barrier}` come from the finding. Sentences write the PTX
and put the framework's word in parentheses: "wait with {wait} ({wait_cpp})". If a framework has no spelling, the word is empty
and `tidy` removes the parentheses. Words that stand alone in a sentence always have a spelling that includes the PTX.

Names are those of CUDA 13 (libcu++ `cuda::ptx`, `<cuda_pipeline.h>`), CUTLASS 3 and 4, CuTe DSL 4.8, Triton and Gluon 3.6, Numba-CUDA
0.30, Warp 1.19, tilelang 0.1.15, Helion 1.5 (`hl` is helion.language), Pallas of JAX 0.12 (`plgpu` is jax.experimental.pallas.mosaic_gpu).
Users of Triton write no waits or fences, because the compiler does; a last sentence says what they can do instead.
"""

from __future__ import annotations

import re
from typing import Final

from consan.reports.catalogue.catalogue import KINDS
from consan.reports.words.by_pallas import by_pallas

CUDA: Final = "cuda"
CUTE: Final = "cute"
CUTE_DSL: Final = "cute-dsl"
TRITON: Final = "triton"
GLUON: Final = "gluon"
NUMBA: Final = "numba"
WARP: Final = "warp"
TILELANG: Final = "tilelang"
PALLAS: Final = "pallas"
HELION: Final = "helion"
PALLAS_TRITON: Final = "pallas-triton"  # kernels of Pallas that Triton compiles: no column, but Triton's by other names
PTX: Final = "ptx"
FRAMEWORKS: Final = (CUDA, CUTE, CUTE_DSL, TRITON, GLUON, NUMBA, WARP, TILELANG, PALLAS, HELION, PTX)

_Spellings = dict[str, str]


def _row(
    cuda: str = "",
    cute: str = "",
    gluon: str = "",
    numba: str = "",
    triton: str = "",
    ptx: str = "",
    *,
    dsl: str = "",
    warp: str = "",
    tile: str = "",
    pallas: str = "",
    helion: str = "",
) -> _Spellings:
    """The spellings of a row. Those that are named have the PTX where they are left out, Warp has CUDA C++, and Helion has Triton's."""
    named = {CUTE_DSL: dsl or ptx, WARP: warp or cuda, TILELANG: tile or ptx, PALLAS: pallas or ptx, HELION: helion or triton}
    return {CUDA: cuda, CUTE: cute, GLUON: gluon, NUMBA: numba, TRITON: triton, PTX: ptx, **named}


def _fence(scope: str, cuda: str, triton: str = "") -> _Spellings:
    """A fence. `triton`: how its users write the PTX."""
    ptx = f"fence.acq_rel.{scope}"
    return _row(cuda, cuda, ptx, f"cuda.{cuda[2:]} ({ptx})", ptx + triton, ptx, dsl=f"cute.arch.fence_acq_rel_{scope}() ({ptx})")


# The wait for an asynchronous operation, by kind. The PTX is in `situations.WAITS`.
_MBARRIER_WAIT = _row(
    "wait on the cuda::barrier, or cuda::ptx::mbarrier_try_wait_parity",
    "ClusterBarrier::wait({parity})",
    "mbarrier.wait",
    dsl="pipeline.consumer_wait(), or cute.arch.mbarrier_wait with parity {parity}",
    tile="T.barrier_wait with parity {parity}",
    pallas="plgpu.barrier_wait",
)
WAITS: Final[dict[str, _Spellings]] = {
    "cp.async": _row(
        "__pipeline_wait_prior({leave})",
        "cp_async_wait<{leave}>()",
        "async_copy.wait_group({leave})",
        dsl="cute.arch.cp_async_wait_group({leave})",
        tile="T.ptx_wait_group({leave})",
    ),
    "bulk load": _MBARRIER_WAIT,
    "st.async": _MBARRIER_WAIT,
    "try_cancel": _MBARRIER_WAIT,
    "bulk store": _row(
        "cuda::ptx::cp_async_bulk_wait_group_read",
        "tma_store_wait<{leave}>()",
        "tma.store_wait({leave})",
        dsl="cute.arch.cp_async_bulk_wait_group({leave}, read=True)",
        tile="T.tma_store_wait({leave})",
        pallas="plgpu.wait_smem_to_gmem({leave})",
    ),
    "wgmma": _row(
        "CUTLASS warpgroup_wait<{leave}>()",
        "warpgroup_wait<{leave}>()",
        "warpgroup_mma_wait({leave})",
        dsl="warpgroup.wait_group({leave})",
        tile="T.wait_wgmma({leave})",
        pallas="plgpu.wgmma_wait({leave})",
    ),
    **dict.fromkeys(
        ("tcgen05.mma", "tcgen05.cp", "tcgen05.shift"),
        _MBARRIER_WAIT | dict.fromkeys((CUDA, WARP), "cuda::ptx::mbarrier_try_wait_parity"),
    ),
    "tcgen05.ld": _row("cuda::ptx::tcgen05_wait_ld", "cutlass::arch::fence_view_async_tmem_load()"),
    "tcgen05.st": _row("cuda::ptx::tcgen05_wait_st", "cutlass::arch::fence_view_async_tmem_store()"),
}
COMMITS: Final[dict[str, _Spellings]] = {
    "cp.async": _row(
        "__pipeline_commit()",
        "cp_async_fence()",
        "async_copy.commit_group()",
        dsl="cute.arch.cp_async_commit_group()",
        tile="T.ptx_commit_group()",
    ),
    "bulk store": _row(
        "cuda::ptx::cp_async_bulk_commit_group",
        "tma_store_arrive()",
        dsl="cute.arch.cp_async_bulk_commit_group()",
        tile="T.tma_store_arrive()",
        pallas="plgpu.commit_smem_to_gmem_group()",
    ),
    "wgmma": _row(
        "CUTLASS warpgroup_commit_batch()", "warpgroup_commit_batch()", dsl="warpgroup.commit_group()", tile="T.warpgroup_commit_batch()"
    ),
    **dict.fromkeys(
        ("tcgen05.mma", "tcgen05.cp", "tcgen05.shift"),
        _row(
            "cuda::ptx::tcgen05_commit",
            "cutlass::arch::umma_arrive()",
            "tcgen05_commit",
            dsl="tcgen05.commit",
            tile="T.tcgen05_mma_arrive",
            pallas="plgpu.tcgen05_commit_arrive",
        ),
    ),
}

_PINNED: Final = (
    "nothing has to change for today's ptxas; to keep to the ISA, pin the accumulators between the statement that sets them and the"
    " wgmma.fence{fence_at}, so that the compiler cannot move the write below the fence: CUTLASS warpgroup_fence_operand, or"
    ' asm volatile("" : "+f"(x) :: "memory") for each accumulator x'
)
_ATOMIC_ADD: Final = ("atomicAdd", "atomicAdd", "atom.add", "cuda.atomic.add", "tl.atomic_add", "atom.add")
_COMPARE_AND_SWAP: Final = ("atomicCAS", "atomicCAS", "atom.cas", "cuda.atomic.cas", "tl.atomic_cas", "atom.cas")
_ORDERED: Final = "ptxas orders these writes by itself: there is nothing to change in the source"
_PINS: Final = (_PINNED, _PINNED, _ORDERED, _ORDERED, _ORDERED, "move the writes above the wgmma.fence")

# Words that stand alone, never empty.
_ALONE: Final[dict[str, _Spellings]] = {
    "cta_barrier": _row(
        "__syncthreads()",
        "__syncthreads()",
        "gl.barrier() (gl.thread_barrier() in older versions; bar.sync 0)",
        "cuda.syncthreads() (bar.sync 0)",
        "tl.debug_barrier() (bar.sync 0)",
        "bar.sync 0",
        dsl="cute.arch.sync_threads() (bar.sync 0)",
        warp="a barrier of the block",
        tile="T.sync_threads() (bar.sync 0)",
        pallas="plgpu.barrier_arrive and plgpu.barrier_wait of a plgpu.Barrier (bar.sync 0)",
    ),
    "warp_barrier": _row(
        "__syncwarp()",
        "__syncwarp()",
        "bar.warp.sync",
        "cuda.syncwarp() (bar.warp.sync)",
        "bar.warp.sync",
        "bar.warp.sync",
        dsl="cute.arch.sync_warp() (bar.warp.sync)",
        warp="a barrier of the warp",
        tile="T.sync_warp() (bar.warp.sync)",
    ),
    "cluster_barrier": _row(
        "cluster.sync()",
        *("cute::cluster_sync()", "cluster.arrive() and cluster.wait()"),
        *["a barrier of the cluster (barrier.cluster.arrive and barrier.cluster.wait)"] * 3,
        dsl="cute.arch.cluster_arrive() and cute.arch.cluster_wait()",
        tile="T.cluster_arrive() and T.cluster_wait()",
        pallas="a plgpu.ClusterBarrier (plgpu.barrier_arrive, plgpu.barrier_wait)",
    ),
    "arrive": _row(
        "mbarrier.arrive; cuda::ptx::mbarrier_arrive",
        "mbarrier.arrive; consumer_release",
        "mbarrier.arrive",
        *["mbarrier.arrive"] * 3,
        dsl="mbarrier.arrive; pipeline.consumer_release(), or cute.arch.mbarrier_arrive",
        tile="mbarrier.arrive; T.barrier_arrive",
        pallas="mbarrier.arrive; plgpu.barrier_arrive",
    ),
    "acquire": _row(
        "mbarrier.try_wait.parity; cuda::ptx::mbarrier_try_wait_parity",
        "mbarrier.try_wait.parity; producer_acquire",
        "mbarrier.wait; mbarrier.try_wait.parity",
        *["mbarrier.try_wait.parity"] * 3,
        dsl="mbarrier.try_wait.parity; pipeline.producer_acquire(), or cute.arch.mbarrier_wait",
        tile="mbarrier.try_wait.parity; T.barrier_wait",
        pallas="mbarrier.try_wait.parity; plgpu.barrier_wait",
    ),
    "init": _row(
        "mbarrier.init; cuda::ptx::mbarrier_init",
        "mbarrier.init; ClusterBarrier::init(count)",
        "mbarrier.init",
        *["mbarrier.init"] * 3,
        dsl="mbarrier.init; cute.arch.mbarrier_init",
        tile="mbarrier.init; T.alloc_barrier(arrive_count)",
        pallas="mbarrier.init; plgpu.Barrier(num_arrivals)",
    ),
    "grid_wait": _row(
        "griddepcontrol.wait (cudaGridDependencySynchronize())",
        "griddepcontrol.wait (cutlass::arch::wait_on_dependent_grids())",
        "griddepcontrol.wait",
        "griddepcontrol.wait",
        "griddepcontrol.wait (tl.extra.cuda.gdc_wait())",
        "griddepcontrol.wait",
        dsl="griddepcontrol.wait (cute.arch.griddepcontrol_wait())",
        tile="griddepcontrol.wait (T.pdl_sync())",
    ),
    "named_barrier": _row(
        "bar.sync 1, 128",
        "bar.sync 1, 128; cutlass::arch::NamedBarrier::sync(128, 1)",
        *["bar.sync 1, 128"] * 4,
        dsl="bar.sync 1, 128; cute.arch.barrier(barrier_id=1, number_of_threads=128)",
    ),
    "atomic_add": _row(
        *_ATOMIC_ADD,
        dsl="cute.arch.atomic_add",
        warp="wp.atomic_add",
        tile="T.atomic_add",
        pallas="plgpu.atomic_add",
        helion="hl.atomic_add",
    ),
    "compare_and_swap": _row(*_COMPARE_AND_SWAP, dsl="cute.arch.atomic_cas", warp="wp.atomic_cas"),
    "grid_barrier": dict.fromkeys(FRAMEWORKS, "a barrier of the grid between the two (cooperative launch)")
    | {HELION: "hl.barrier() between the two loops over tiles", TILELANG: "T.sync_grid() between the two (cooperative launch)"}
    | {PALLAS: "a semaphore between the two (pl.semaphore_signal, pl.semaphore_wait)"}
    | {NUMBA: "cuda.cg.this_grid().sync() between the two"},
    "gpu_fence": _fence("gpu", "__threadfence()", " (through tl.inline_asm_elementwise)"),
    "cta_fence": _fence("cta", "__threadfence_block()"),
    "sys_fence": _fence("sys", "__threadfence_system()"),
    "flag_release": _row(
        **dict.fromkeys(("cuda", "cute"), "cuda::atomic_ref with cuda::memory_order_release"),
        **dict.fromkeys(("gluon", "numba"), "atom.release"),
        triton='tl.atomic_xchg or tl.atomic_add with sem="release"',
        ptx="st.release or atom.release",
        dsl='cute.arch.atomic_exch or cute.arch.atomic_add with sem="release"',
        pallas="pl.semaphore_signal; st.release or atom.release",
        helion='hl.atomic_xchg or hl.atomic_add with sem="release"',
    ),
    "flag_acquire": _row(
        **dict.fromkeys(("cuda", "cute"), "cuda::atomic_ref with cuda::memory_order_acquire"),
        **dict.fromkeys(("gluon", "numba"), "atom.acquire"),
        triton='tl.atomic_add or tl.atomic_cas with sem="acquire"',
        ptx="ld.acquire or atom.acquire",
        dsl='cute.arch.atomic_add or cute.arch.atomic_cas with sem="acquire"',
        pallas="pl.semaphore_wait; ld.acquire or atom.acquire",
        helion='hl.atomic_add or hl.atomic_cas with sem="acquire"',
    ),
    "plain_load": _row(
        **dict.fromkeys(("cuda", "cute"), "use a plain load: no __ldg, no const __restrict__ on the pointer, no texture"),
        **dict.fromkeys(("gluon", "numba", "triton", "ptx"), "use a plain load (ld.global)"),
    ),
    "gpu_scope": _row(
        **dict.fromkeys(("cuda", "cute"), ".gpu (cuda::thread_scope_device; an atomic function without _block)"),
        **dict.fromkeys(("gluon", "numba", "ptx"), ".gpu"),
        **dict.fromkeys(("triton", "dsl"), '.gpu (scope="gpu")'),
    ),
    "strong_access": _row(
        **dict.fromkeys(("cuda", "cute"), "an atomic operation, volatile or cuda::atomic_ref"),
        **dict.fromkeys(("gluon", "numba", "ptx"), "an atomic operation, .volatile or .relaxed.gpu"),
        triton="tl.atomic_xchg, tl.atomic_add or tl.load(..., volatile=True)",
        helion="hl.atomic_xchg or hl.atomic_add",
        warp="wp.atomic_exch or wp.atomic_add",
    ),
    "one_thread": _row(
        **dict.fromkeys(("cuda", "cute"), "if (threadIdx.x == 0), elect.sync"),
        **dict.fromkeys(("gluon", "triton", "ptx"), "elect.sync"),
        numba="if cuda.threadIdx.x == 0",
        dsl="with cute.arch.elect_one() in one warp (elect.sync)",
        tile="if T.shuffle_elect(0) (elect.sync)",
    ),
    "one_lane": _row(
        **dict.fromkeys(("cuda", "cute"), "elect.sync, if (threadIdx.x % 32 == 0)"),
        **dict.fromkeys(("gluon", "triton", "ptx"), "elect.sync"),
        numba="if cuda.threadIdx.x % 32 == 0",
        dsl="with cute.arch.elect_one() (elect.sync)",
        tile="if T.shuffle_elect(32) (elect.sync)",
    ),
    "pin": _row(*_PINS, dsl=_ORDERED, tile=_ORDERED, pallas=_ORDERED),
}
# The PTX behind words whose CUDA C++ spelling does not name it.
_PTX_BEHIND: Final = {
    "cta_barrier": "bar.sync 0",
    "warp_barrier": "bar.warp.sync",
    "cluster_barrier": "barrier.cluster.arrive and barrier.cluster.wait",
}
BY_TRITON: Final = (TRITON, GLUON, PALLAS_TRITON, HELION)  # whose kernels Triton compiles
GROUPS_BY_COMPILER: Final = (*BY_TRITON, PALLAS)  # whose named barriers are not the user's
_SUMMED: Final = (TRITON, PALLAS, TILELANG, HELION)  # whose users add up by an atomic operation
# Words in parentheses after the PTX.
_BEHIND: Final[dict[str, _Spellings]] = {
    "wgmma_fence": _row("CUTLASS warpgroup_arrive()", "warpgroup_arrive()", dsl="warpgroup.fence()", tile="T.warpgroup_arrive()"),
    "proxy_fence": _row(
        "cuda::ptx::fence_proxy_async(cuda::ptx::space_shared)",
        "cutlass::arch::fence_view_async_shared() or tma_store_fence()",
        "fence_async_shared()",
        dsl='cute.arch.fence_proxy("async.shared", space="cta")',
        tile="T.fence_proxy_async()",
        pallas="plgpu.commit_smem()",
    ),
    "before_sync": _row(
        "cuda::ptx::tcgen05_fence_before_thread_sync", "cutlass::arch::tcgen05_before_thread_sync()", tile="T.tcgen05_before_thread_sync()"
    ),
    "after_sync": _row(
        "cuda::ptx::tcgen05_fence_after_thread_sync", "cutlass::arch::tcgen05_after_thread_sync()", tile="T.tcgen05_after_thread_sync()"
    ),
    "global_proxy_fence": _row("cuda::ptx::fence_proxy_async()", "cuda::ptx::fence_proxy_async()"),
    "map_acquire": _row(
        "cuda::ptx::fence_proxy_tensormap_generic", "cute::tma_descriptor_fence_acquire", dsl="cpasync.fence_tma_desc_acquire"
    ),
    "by_an_atomic": {name: f"for a sum: {word}" * (name in _SUMMED) for name, word in _ALONE["atomic_add"].items()},
    "repeated": _row(cute="hand its result to consumer_wait", dsl="hand its result to pipeline.consumer_wait or producer_acquire"),
    "mbarrier_wait": _row(
        "cuda::ptx::mbarrier_try_wait_parity",
        "producer_acquire, consumer_wait",
        "mbarrier.wait",
        dsl="pipeline.producer_acquire, pipeline.consumer_wait",
        tile="T.barrier_wait",
        pallas="plgpu.barrier_wait",
    ),
}
_READ_FORM: Final = _row(
    "; cuda::ptx::cp_async_bulk_wait_group, not cuda::ptx::cp_async_bulk_wait_group_read",
    "; cute::tma_store_wait is the .read form and does not serve",
    pallas="; plgpu.wait_smem_to_gmem({leave}) without wait_read_only",
)
_OF_THE_GROUP: Final = "in the warpgroup that issued the copy (a barrier of the warpgroup is part of it)"

# Advice for users who do not write the missing instruction themselves.
_COMPILED: Final = "the compiler places it: try another num_stages, and report it to Triton with this reproduction"
_BUILT_IN: Final = (
    "Warp has no barrier of its own: use wp.atomic_add or its relatives for a shared result, tiles for shared memory, or a barrier in a"
    " wp.func_native snippet"
)
_ORDERED_BY_TILELANG: Final = (
    "tilelang's compiler places what orders T.copy and T.gemm, except between roles (T.ws) and with T.tma_copy and barriers of the program"
)
_COMPILED_TWICE: Final = "Helion and Triton place it: try another configuration, and report it to Helion with this reproduction"
_ADVICE: Final = {
    HELION: (_COMPILED_TWICE, tuple(each.id for each in KINDS.values() if each.by_compiler)),
    TRITON: (_COMPILED, tuple(each.id for each in KINDS.values() if each.by_compiler)),
    PALLAS_TRITON: (_COMPILED.replace("to Triton", "to JAX"), tuple(each.id for each in KINDS.values() if each.by_compiler)),
    WARP: (_BUILT_IN, ("data-race", "missing-order")),
    PALLAS: ("plgpu.barrier_arrive has no scope of its own: report a .cta scope between CTAs to JAX, with this reproduction", ("scope",)),
    TILELANG: (_ORDERED_BY_TILELANG, tuple(each.id for each in KINDS.values() if each.by_compiler)),
}


def words_of(framework: str, operation: str) -> dict[str, str]:
    """Every word of a framework for an operation (`cp.async`, `bulk load`, ...). Placeholders in them are not filled in."""
    if framework == PALLAS_TRITON:
        return {name: by_pallas(word) for name, word in words_of(TRITON, operation).items()}
    column = framework if framework in FRAMEWORKS else CUDA
    wait = WAITS.get(operation, WAITS["cp.async"])[column]
    words = {name: row[column] for name, row in (*_ALONE.items(), *_BEHIND.items())}
    words |= {f"{name}_ptx": _with_ptx(words[name], ptx) for name, ptx in _PTX_BEHIND.items()}
    return {
        **words,
        "wait_cpp": wait,
        "wait_all_cpp": _all(operation, column, wait),
        "commit_cpp": COMMITS.get(operation, _row())[column],
        "read_form": _READ_FORM[column],
        "by_issuer": _OF_THE_GROUP if column == PALLAS else f"in the thread that issued the copy, then {words['cta_barrier']}",
    }


def _with_ptx(word: str, ptx: str) -> str:
    return word if ptx in word else f"{word} ({ptx})"


def _all(operation: str, column: str, wait: str) -> str:
    """The wait that leaves nothing in flight. A cp.async may be uncommitted."""
    commit = f"{COMMITS['cp.async'][column]}, then " if wait and operation == "cp.async" else ""
    return commit + wait.replace("{leave}", "0")


def advice(framework: str, kind: str, *, in_global: bool = False) -> str:
    """The sentence after the fix, if the user does not write the missing instruction; else empty. `in_global`: about global memory."""
    said, kinds = _ADVICE.get(framework, ("", ()))
    users = in_global and framework in BY_TRITON  # flags and order there are the user's, whatever the compiler places
    return f"; {said}" if kind in kinds and not users else ""


def advice_in(text: str) -> str:
    """The sentence of `advice` at the end of a fix; else empty."""
    return next((f"; {said}" for said, _ in _ADVICE.values() if text.endswith(said)), "")


def tidy(text: str) -> str:
    """Remove the parentheses of empty words, the first of two sides at one place, and the second of two articles."""
    text = re.sub(r"\b(one|the|a) an? (?=barrier\b)", r"\1 ", text.replace(" ()", ""))
    return re.sub(r"after (\S+:\d+) and before \1\b", r"before \1", text)
