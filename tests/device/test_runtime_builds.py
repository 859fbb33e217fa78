"""The generated layout and every variant of the shadow runtime: it compiles with NVRTC and assembles for each architecture, and its
hooks neither spill nor grow.
"""

from __future__ import annotations

import functools
import itertools
import re
from pathlib import Path

import pytest

from consan._errors import UsageError
from consan.instrument import instrument, layout
from consan.instrument.runtime import RuntimeLibrary, Variant, load, source
from consan.session import compile_runtime, library_for
from consan.toolchain.assemble import assemble
from consan.toolchain.nvrtc import compile_ptx

ARCHITECTURES = ("sm_80", "sm_90a", "sm_100a")
VARIANTS = [
    *itertools.starmap(Variant, itertools.product((1, 2, 4), (False, True), (False, True))),
    Variant(partial=True, asynchronous=True, flags=True, engine=True),
]
CLUSTERS = [Variant(partial=True, asynchronous=True, flags=True, engine=True, cluster=ctas) for ctas in (2, 4, 8, 16)]
MOST_REGISTERS = 64  # what lets a CTA of 1,024 threads start


def name_of(variant: Variant) -> str:
    words = [word for word in ("partial", "asynchronous", "engine") if getattr(variant, word)]
    return "-".join([str(variant.granule), *words, *([f"cluster{variant.cluster}"] if variant.cluster else [])])


@functools.cache
def library(variant: Variant, target: str) -> RuntimeLibrary:
    return load(variant, target, compile_runtime)


# -- layout ---------------------------------------------------------------------------------------------------------------------


def test_the_header_compiles_and_its_assertions_hold() -> None:
    text = layout.header() + 'extern "C" __global__ void k(Slot* s, Thread* t) { t->state = s->state; }'
    assert ".entry k" in compile_ptx(text, arch="sm_80").ptx


@pytest.mark.parametrize("struct", [*layout.structs(), *layout.structs(16)], ids=lambda struct: f"{struct.name}-{layout.size(struct)}")
def test_a_moved_member_does_not_compile(struct: layout.Struct) -> None:
    """The assertions are real: a second member before the first one breaks them."""
    header = layout.header(1 if struct in layout.structs() else 16)
    text = header.replace(f"struct {struct.name} {{", f"struct {struct.name} {{\n    u64 added;")
    with pytest.raises(UsageError, match="static assertion failed"):
        compile_ptx(text, arch="sm_80")


@pytest.mark.parametrize("struct", [*layout.structs(), *layout.structs(16)], ids=lambda struct: f"{struct.name}-{layout.size(struct)}")
def test_numpy_and_cpp_agree_on_the_layout(struct: layout.Struct) -> None:
    """NumPy's own offsets against those that the C++ side asserts; records start on 8 bytes."""
    dtype = layout.dtype(struct)
    assert dtype.fields is not None
    assert {name: place[1] for name, place in dtype.fields.items()} == layout.offsets(struct)
    assert dtype.itemsize == layout.size(struct)
    assert layout.size(struct) % 8 == 0


def test_fields_that_are_not_aligned_are_refused() -> None:
    with pytest.raises(ValueError, match=r"Bad\.wide"):
        layout.offsets(layout._struct("Bad", "u32 narrow; u64 wide"))


def test_counts_fit_their_bits() -> None:
    assert layout.SITE_LIMIT < 1 << 16
    assert layout.READ_SITE_LIMIT < 1 << 12
    assert max(layout.Kind) < 1 << 5
    assert max(layout.Reason) < 1 << 8
    assert layout.DIRECTORY_ENTRIES & (layout.DIRECTORY_ENTRIES - 1) == 0


def test_every_constant_of_the_host_reaches_the_device() -> None:
    text = layout.header()
    assert "#define MAX_CTAS 4u" in layout.header(4)
    for name in ("MAX_WARPS", "COPY_RANGES", "RING_ENTRIES", "TABLE_ENTRIES", "WAIT_HISTORY"):
        assert f"#define {name} {getattr(layout, name)}u" in text
    for kind in layout.Kind:
        assert f"#define KIND_{kind.name} {int(kind)}u" in text


# -- variants -------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("variant", [*VARIANTS, CLUSTERS[0], CLUSTERS[-1]], ids=name_of)
def test_every_variant_compiles_and_is_cut_into_functions(variant: Variant) -> None:
    found = library(variant, "sm_90a").functions
    hooks = {f"__consan_{kind}{width}" for kind in ("read", "write", "atomic") for width in (1, 2, 4, 8, 16) if width >= variant.granule}
    hooks |= {"__consan_enter", "__consan_exit", "__consan_find", "__consan_poll", "__consan_stands", "__consan_count", "__consan_scrub"}
    hooks |= {"__consan_barrier_before", "__consan_barrier_after", "__consan_warp_sync"} if variant.partial else set()
    hooks |= {"__consan_copy4", "__consan_copy16", "__consan_copy_commit", "__consan_copy_wait"} if variant.asynchronous else set()
    assert hooks <= set(found)


TINY = [Variant(epoch_bits=(4, 6), epoch_limit=200), Variant(partial=True, epoch_bits=(6, 10), epoch_limit=99)]


@pytest.mark.parametrize("variant", TINY)
def test_tiny_widths_compile(variant: Variant) -> None:
    assert library(variant, "sm_90a").functions


def test_only_what_is_called_is_pasted() -> None:
    text = library(Variant(), "sm_90a").paste(["__consan_poll"])
    assert "__consan_poll" in text
    assert "__consan_read4" not in text


def test_callees_come_before_their_callers() -> None:
    found = library(Variant(partial=True, asynchronous=True), "sm_90a")
    text = found.paste(sorted(found.functions))
    places = {name: text.index(body) for name, body in found.functions.items()}
    assert all(places[callee] < places[name] for name, callees in found.callees.items() for callee in callees)


def test_the_runtime_takes_no_shared_memory_and_no_barrier() -> None:
    """consan takes no byte of the kernel's shared memory and adds no barrier of the CTA."""
    for variant in (*VARIANTS, CLUSTERS[0]):
        for name, body in library(variant, "sm_90a").functions.items():
            assert ".shared" not in body.replace("isspacep.shared", ""), name
            assert "bar.sync" not in body, name
            assert "barrier.sync" not in body, name


def test_no_weak_load_reads_shadow_state() -> None:
    """Weak loads are for what does not change while a CTA runs: the helper that says so, and nothing else."""
    weak = [line for line in source().splitlines() if "ld.global" in line]
    assert [line.split("(")[0].split()[-1] for line in weak] == ["constant_pair", "weak32"]


_WAITS_FOR_LANES = re.compile(r"(?:\.sync\.\S+ .*|bar\.warp\.sync\s+)(%r\d+);")


def test_no_mask_that_ptxas_takes_for_uniform_is_waited_for() -> None:
    """What activemask or a ballot gives differs between lanes that hardware has brought together, and ptxas waits for one lane's mask."""
    for variant in (*VARIANTS, *CLUSTERS):
        for name, body in library(variant, "sm_90a").functions.items():
            uniform = set(re.findall(r"(?:activemask\.b32|vote\.sync\.ballot\.b32)\s+(%r\d+)", body))
            assert not uniform & set(_WAITS_FOR_LANES.findall(body)), name


def module_of(variant: Variant, target: str) -> str:
    """A module of nothing but the runtime, with a kernel that calls no hook."""
    found = library(variant, target)
    pasted = found.paste(sorted(found.functions)).replace("\n.func", "\n.visible .func")
    if pasted.startswith(".func"):
        pasted = ".visible " + pasted
    return f".version 8.7\n.target {target}\n.address_size 64\n.visible .entry k() {{ ret; }}\n{pasted}\n"


def _assembles(variant: Variant, target: str) -> None:
    done = assemble(module_of(variant, target), target)
    assert done.cubin
    assert done.warnings == ()


FEW = [Variant(), Variant(partial=True), Variant(granule=1, partial=True, asynchronous=True)]


@pytest.mark.parametrize("target", ARCHITECTURES)
@pytest.mark.parametrize("variant", FEW, ids=name_of)
def test_the_runtime_assembles(variant: Variant, target: str) -> None:
    _assembles(variant, target)


@pytest.mark.parametrize("variant", CLUSTERS[:1], ids=name_of)
def test_the_runtime_for_clusters_assembles(variant: Variant) -> None:
    _assembles(variant, "sm_90a")


@pytest.mark.slow
@pytest.mark.parametrize("variant", CLUSTERS[1:], ids=name_of)
def test_the_runtime_for_larger_clusters_assembles(variant: Variant) -> None:
    _assembles(variant, "sm_90a")


@pytest.mark.slow
@pytest.mark.parametrize("target", ARCHITECTURES)
@pytest.mark.parametrize("variant", [v for v in VARIANTS if v not in FEW], ids=name_of)
def test_every_variant_assembles(variant: Variant, target: str) -> None:
    _assembles(variant, target)


# -- what the hooks cost in a kernel --------------------------------------------------------------------------------------------

KERNEL = """
extern "C" __global__ void tile(const float4* x, float* out, int n) {
    __shared__ float4 wide[64];
    __shared__ float narrow[256];
    const int t = threadIdx.x;
    float sum = 0;
    for (int k = 0; k < n; k++) {
        wide[t] = x[k * 64 + t];
        narrow[t] = x[t].x;
        __syncthreads();
        sum += wide[63 - t].y * narrow[64 + t % 8] + narrow[t ^ 1];
        __syncthreads();
    }
    out[t] = sum;
}
"""
_PROPERTIES = re.compile(r"Function properties for (__consan_\w+)\n.* bytes stack frame, (\d+) bytes spill stores")


@pytest.mark.parametrize("target", ARCHITECTURES)
def test_hooks_of_a_tiled_kernel_do_not_spill(target: str) -> None:
    """At the cap that lets 1,024 threads start; a hook that spills runs at the speed of local memory."""
    done = instrument(compile_ptx(KERNEL, arch=target).ptx, library=library_for)
    assembled = assemble(done.ptx, target, options=(f"--maxrregcount={MOST_REGISTERS}",))
    costs = {name: int(stores) for name, stores in _PROPERTIES.findall(assembled.log)}
    assert {"__consan_read4", "__consan_write16", "__consan_enter"} <= set(costs)
    assert {name: stores for name, stores in costs.items() if stores > 32} == {}  # a few words around a call of the cold path
    assert assembled.warnings == ()


RING = Path(__file__).parents[1] / "kernels" / "clean" / "wgmma_tma_ring.cu"
_FUNCTIONS = re.compile(r"Function properties for (\w+)\n.* bytes stack frame, (\d+) bytes spill stores")


@pytest.mark.parametrize("base", [Variant(), Variant(isa=True)], ids=["default", "isa"])
def test_hooks_of_the_asynchronous_engines_do_not_spill(base: Variant) -> None:
    """At the cap that lets 512 threads start, of which such kernels rarely have more."""
    ptx = compile_ptx(RING.read_text(), name=str(RING), arch="sm_90a").ptx
    assembled = assemble(instrument(ptx, base=base, library=library_for).ptx, "sm_90a", options=("--maxrregcount=128",))
    costs = {name: int(stores) for name, stores in _FUNCTIONS.findall(assembled.log) if name != "kernel"}
    assert {"__consan_bulk_load", "__consan_tensor_store", "__consan_matrix_operand", "__consan_mbarrier_arrive"} <= set(costs)
    # Some words: sixteen ranges of the list of operations are on their way at once, which costs registers.
    assert {name: stores for name, stores in costs.items() if stores > 72} == {}


KERNELS = Path(__file__).parents[1] / "kernels" / "clean"
HOOKS = {
    "bulk_results": {"__consan_result", "__consan_result_wait", "__consan_global_access"},
    "tensor_results": {"__consan_tensor_result"},
    "global_stores_fenced": {"__consan_global_written", "__consan_global_fence", "__consan_fetch"},
    "tensormap_reused": {"__consan_tensor_fetch", "__consan_map_use", "__consan_map_change", "__consan_map_fence"},
}


@pytest.mark.parametrize("name", [next(iter(HOOKS)), *(pytest.param(name, marks=pytest.mark.slow) for name in list(HOOKS)[1:])])
def test_hooks_of_the_sides_in_global_memory_do_not_spill(name: str) -> None:
    path = KERNELS / f"{name}.cu"
    ptx = compile_ptx(path.read_text(), name=str(path), arch="sm_90a").ptx
    assembled = assemble(instrument(ptx, library=library_for).ptx, "sm_90a", options=("--maxrregcount=128",))
    costs = {function: int(stores) for function, stores in _FUNCTIONS.findall(assembled.log)}
    assert HOOKS[name] <= set(costs)
    # A box has twenty numbers, sorted in registers.
    assert {hook: costs[hook] for hook in HOOKS[name] if costs[hook] > (96 if "tensor" in hook else 16)} == {}
    assert assembled.warnings == ()
