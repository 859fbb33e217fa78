"""Every variant of the shadow runtime: it compiles with NVRTC and assembles for each architecture, and its hooks neither spill nor grow."""

from __future__ import annotations

import functools
import itertools
import re
from pathlib import Path

import pytest
from sampled import but, one_in

from consan._errors import UsageError
from consan.instrument.abi import hooks
from consan.instrument.abi.variant import CHOICES, reachable
from consan.instrument.called_hooks import instrument
from consan.instrument.runtime import RuntimeLibrary, Variant, load, source
from consan.session.modules.runtime import compile_runtime, library_for
from consan.toolchain import nvrtc
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
    words = [word for word in ("partial", "asynchronous", "engine", "isa") if getattr(variant, word)]
    numbers = [f"{name}{value}" for name in ("cluster", "named") if (value := getattr(variant, name))]
    return "-".join([str(variant.granule), *words, *numbers])


@functools.cache
def library(variant: Variant, target: str) -> RuntimeLibrary:
    return load(variant, target, compile_runtime)


# -- variants -------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("variant", [*one_in(4, VARIANTS, name_of), *but(CLUSTERS, CLUSTERS[:1])], ids=name_of)
def test_every_variant_compiles_and_is_cut_into_functions(variant: Variant) -> None:
    _has_its_hooks(library(variant, "sm_90a"), variant)


def _has_its_hooks(found: RuntimeLibrary, variant: Variant) -> None:
    wanted = {hook.symbol for hook in hooks.HOOKS.values() if hook.is_in(variant)}
    assert {name for name in found.functions if name.startswith(hooks.PREFIX)} == wanted


def _front_end(variant: Variant) -> str:
    """What the compiler's front end says of a variant; no code is generated, which takes a hundred times as long."""
    options = ("-rdc=true", "--fdevice-syntax-only")
    try:
        compile_ptx(source(variant), name="consan_runtime.cu", arch="sm_90", defines=dict(variant.defines()), options=options)
    except UsageError as error:
        return str(error)
    return ""


REACHABLE = list(reachable())


def _pairs(variant: Variant) -> set[tuple[tuple[str, int], ...]]:
    return set(itertools.combinations([(choice.field, getattr(variant, choice.field)) for choice in CHOICES], 2))


def _in_pairs() -> list[Variant]:
    """Variants in which any two settings occur together that occur together in a reachable one."""
    left, chosen = set().union(*map(_pairs, REACHABLE)), []
    while left:
        chosen.append(max(REACHABLE, key=lambda variant: len(left & _pairs(variant))))
        left -= _pairs(chosen[-1])
    return chosen


def test_variants_that_a_module_can_ask_for() -> None:
    """Three granules with and without partial barriers and cp.async; with the engine, clusters, named barriers and the policy beside."""
    assert len({tuple(variant.defines().items()) for variant in REACHABLE}) == len(REACHABLE) == 3 * 2 * 2 + 3 * 5 * 6 * 2
    assert {*VARIANTS, *CLUSTERS} <= set(REACHABLE)


@pytest.mark.skipif(nvrtc.version() < (13, 0), reason="this NVRTC cannot stop after its front end")
@pytest.mark.parametrize("variant", _in_pairs(), ids=name_of)
def test_each_pair_of_settings_passes_the_front_end(variant: Variant) -> None:
    """Names, types, static asserts and template instances. The slow test below compiles every variant."""
    assert _front_end(variant) == ""


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("variant", REACHABLE, ids=name_of)
def test_every_reachable_variant_compiles(variant: Variant) -> None:
    found = load(variant, "sm_90a", compile_runtime)
    _has_its_hooks(found, variant)
    _waits_for_no_uniform_mask(found)


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
    weak = [line for line in source(Variant()).splitlines() if "ld.global" in line]
    assert [line.split("(")[0].split()[-1] for line in weak] == ["constant_pair", "weak32"]


_WAITS_FOR_LANES = re.compile(r"(?:\.sync\.\S+ .*|bar\.warp\.sync\s+)(%r\d+);")


def test_no_mask_that_ptxas_takes_for_uniform_is_waited_for() -> None:
    """What activemask or a ballot gives differs between lanes that hardware has brought together, and ptxas waits for one lane's mask."""
    for variant in (*VARIANTS, CLUSTERS[0]):
        _waits_for_no_uniform_mask(library(variant, "sm_90a"))


def _waits_for_no_uniform_mask(found: RuntimeLibrary) -> None:
    for name, body in found.functions.items():
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


@pytest.mark.parametrize(
    ("variant", "target"),
    [
        (FEW[0], "sm_90a"),
        (FEW[-1], "sm_100a"),
        *(pytest.param(FEW[at], to, marks=pytest.mark.slow) for at, to in ((1, "sm_90a"), (2, "sm_90a"), (2, "sm_80"))),
    ],
)
def test_the_runtime_assembles(variant: Variant, target: str) -> None:
    _assembles(variant, target)


@pytest.mark.slow
@pytest.mark.parametrize("variant", CLUSTERS, ids=name_of)
def test_the_runtime_for_clusters_assembles(variant: Variant) -> None:
    _assembles(variant, "sm_90a")


@pytest.mark.slow
@pytest.mark.parametrize("target", ARCHITECTURES)
@pytest.mark.parametrize("variant", VARIANTS, ids=name_of)
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


@pytest.mark.slow
@pytest.mark.parametrize("base", [Variant(), Variant(isa=True)], ids=["default", "isa"])
def test_hooks_of_the_asynchronous_engines_do_not_spill(base: Variant) -> None:
    """At the cap that lets 512 threads start: such kernels rarely have more."""
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


@pytest.mark.slow
@pytest.mark.parametrize("name", HOOKS)
def test_hooks_of_the_sides_in_global_memory_do_not_spill(name: str) -> None:
    path = KERNELS / f"{name}.cu"
    ptx = compile_ptx(path.read_text(), name=str(path), arch="sm_90a").ptx
    assembled = assemble(instrument(ptx, library=library_for).ptx, "sm_90a", options=("--maxrregcount=128",))
    costs = {function: int(stores) for function, stores in _FUNCTIONS.findall(assembled.log)}
    assert HOOKS[name] <= set(costs)
    # A box has twenty numbers, sorted in registers.
    assert {hook: costs[hook] for hook in HOOKS[name] if costs[hook] > (96 if "tensor" in hook else 16)} == {}
    assert assembled.warnings == ()
