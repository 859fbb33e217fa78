"""CuTe's Blackwell tutorials and CUTLASS GEMMs for sm_100a, launched by their own host code: right alone in several schedules, and
what is found.

The tutorials need a product in one CTA, TMA, multicast over 16 CTAs, and pairs. CUTLASS's GEMMs ask for clusters that have not started. A
minute or two of nvcc for each kernel, once; no chip has run them here.
"""

from __future__ import annotations

import functools
from typing import Any

import corpus
import numpy as np
import pytest
import tensor_maps
from real_cases import Built, Launch
from real_run import ptx_of, run_checked, run_plain

from consan.backends.cpu import Machine
from consan.session.planning.options import SessionOptions
from consan.session.session import Session
from consan.toolchain.assemble import assemble_cached

ARCH = "sm_100a"
CLUSTERS_OF_16 = ("umma_multicast", "umma_pair", "umma_pair_epilogue")
# Name -> M, N and K: of a tutorial whole clusters, of a GEMM several tiles in each direction.
SIZES = {
    **dict.fromkeys(("umma", "umma_tma"), (128, 512, 128)),
    **dict.fromkeys(CLUSTERS_OF_16, (512, 1024, 128)),
    "gemm_sm100": (512, 384, 128),
    "gemm_sm100_pair": (1024, 384, 128),
}

# What is found, in the shipped source (CUTLASS 4.2):
# 01 stores operands with plain stores and has no proxy fence before the product (R-T10). 04 and 05 allocate for a pair right at the start:
# nothing tells a CTA that its peer runs (R-P1; the ISA: "must make sure that peer CTA is launched").
FOUND = {
    "umma": {"missing-proxy-fence"},
    "umma_pair": {"lifetime"},
    "umma_pair_epilogue": {"lifetime"},
}

# Warnings. Without a matrix C, store_tail of the epilogue for sm100 waits for none of its TMA stores (that for sm90 does): the last one may
# still read shared memory when the CTA exits (R-CP5). In pairs, arrivals that release the slots of launch control in the other CTA have the
# default scope .cta (R-SCOPE, as in the GEMMs for Hopper).
WARNINGS = {"gemm_sm100": {"lifetime"}, "gemm_sm100_pair": {"lifetime", "scope"}}

pytestmark = pytest.mark.slow
each_kernel = pytest.mark.parametrize("name", SIZES)


def launch_of(name: str) -> Launch:
    """C = A B^T of integers, as the host code launches it; C is f32 in the tutorials."""
    (m, n, k), rng = SIZES[name], np.random.default_rng(0)
    a, b = (rng.integers(-3, 4, shape).astype(np.float16) for shape in ((m, k), (n, k)))
    c = np.zeros((m, n), np.float16 if name.startswith("gemm") else np.float32)

    @functools.cache
    def recorded(*addresses: int) -> Any:
        x, y, z = addresses
        return corpus.cutlass_launch(f"cutlass/{name}", SIZES[name], (x, y, z), 4, tensor_maps.encode)

    shape = recorded(1 << 20, 1 << 30, 1 << 40)
    arguments = [Built((a, b, c), lambda *at, i=i: recorded(*at).arguments[i]) for i in range(len(shape.arguments))]
    wanted = a.astype(np.float32) @ b.astype(np.float32).T

    def check() -> None:
        np.testing.assert_array_equal(c, wanted)

    return Launch(shape.grid, shape.block, arguments, check, shape.shared, entry=shape.entry, cluster=shape.cluster)


@each_kernel
def test_assembles(name: str) -> None:
    assert assemble_cached(ptx_of(f"cutlass/{name}", ARCH), ARCH, name=name).info


@each_kernel
@pytest.mark.parametrize("seed", range(3))
def test_right_alone(name: str, seed: int) -> None:
    ptx = ptx_of(f"cutlass/{name}", ARCH)
    launch = launch_of(name)
    assert launch.cluster == ((4, 4, 1) if name in CLUSTERS_OF_16 else (2 if "pair" in name else 1, 1, 1))
    run_plain(ptx, launch, Session(SessionOptions(device="cpu")).backend, seed=seed)
    launch.check()


@pytest.mark.parametrize(("seed", "some"), [(0, True), (1, False)])
def test_a_gemm_takes_over_the_work_of_clusters_that_have_not_started(seed: int, some: bool) -> None:
    ptx = ptx_of("cutlass/gemm_sm100", ARCH)
    launch, machine, addresses = launch_of("gemm_sm100"), Machine(), dict[int, int]()
    for array in launch.buffers():
        addresses[id(array)] = machine.alloc(array.nbytes)
        machine.write(addresses[id(array)], array)
    (params,) = launch.pack(lambda array: addresses[id(array)])
    assert launch.entry is not None
    stats = machine.launch(machine.load(ptx), launch.entry, launch.grid, launch.block, params, shared=launch.shared, seed=seed)
    assert stats.completed
    assert (stats.cancelled > 0) == some


@pytest.mark.timeout(1800)
@each_kernel
def test_what_is_found(name: str) -> None:
    ptx = ptx_of(f"cutlass/{name}", ARCH)
    launch = launch_of(name)
    _, report = run_checked(ptx, launch, Session(SessionOptions(device="cpu", engine="record"), private=True))
    launch.check()
    assert ({kernel.engine for kernel in report.kernels}, report.incomplete) == ({"record"}, ())
    for severity, listed in (("error", FOUND), ("warning", WARNINGS)):
        assert {finding.kind for finding in report.findings if finding.severity == severity} == listed.get(name, set())
    assert report.verdict == ("violations" if name in FOUND else "clean")
