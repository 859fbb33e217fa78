"""How much shadow a CTA takes: what the host says before a launch is what the device cuts."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from device_support import Bench, MiB

from consan.instrument.abi import records, sizes
from consan.instrument.abi.geometry import class_bytes, slot_bytes
from consan.instrument.runtime import Variant

KERNEL = """
extern "C" __global__ void k(unsigned* out) {
    extern __shared__ unsigned tile[];
    tile[threadIdx.x] = threadIdx.x;
    out[threadIdx.x] = tile[threadIdx.x];
}
"""
ENGINE = Variant(partial=True, asynchronous=True, flags=True, engine=True)
VARIANTS = [*itertools.starmap(Variant, itertools.product((1, 2, 4), (False, True))), ENGINE]
SHAPES = [(1, 4), (32, 256), (96, 4097), (160, 49152), (384, 200_000), (1024, 227 << 10)]  # threads, bytes of shared memory


def told_and_cut(bench: Bench, threads: int, shared: int, cluster: int = 1) -> tuple[int, int]:
    """What the host says of a slot, and what the device has written there; the slot's room as well."""
    assert bench.prepared is not None
    bench.launch("k", cluster, threads, bench.zeros(1024), shared=shared, cluster=(cluster, 1, 1))
    shadow, variant = bench.session.shadow, bench.session.modules.for_cluster(bench.prepared, cluster).instrumented.variant
    place = shadow._places["arena"] + records.offsets(records.SLOT, variant.ctas)["size"]
    told, cut = slot_bytes(variant, threads, shared, cluster), int(np.frombuffer(bench.backend.read(place, 8), "<u8")[0])
    assert bench.counters().arena_used == class_bytes(told)
    return told, cut


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: f"{variant.granule}-{variant.partial}-{variant.engine}")
@pytest.mark.parametrize(("threads", "shared"), SHAPES)
def test_of_one_cta(variant: Variant, threads: int, shared: int) -> None:
    told, cut = told_and_cut(Bench("cpu", KERNEL, variant=variant, arena=64 * MiB), threads, max(shared, 4 * threads))
    assert told == cut


@pytest.mark.parametrize(
    "ctas", [4, pytest.param(2, marks=pytest.mark.slow), pytest.param(8, marks=pytest.mark.slow), pytest.param(16, marks=pytest.mark.slow)]
)
def test_of_a_cluster(ctas: int) -> None:
    told, cut = told_and_cut(Bench("cpu", KERNEL, arena=256 * MiB), 96, 5000, ctas)
    assert told == cut


def test_slots_are_little_larger_than_what_is_asked_for() -> None:
    for wanted in range(1 << 13, 1 << 24, 9973):
        assert wanted <= class_bytes(wanted) <= 1.25 * wanted
    assert class_bytes(1) == 1 << sizes.CLASS_SHIFT
