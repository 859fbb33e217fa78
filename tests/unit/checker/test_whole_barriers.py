"""A barrier for the warps that pass a place: which, and where there is none."""

from __future__ import annotations

import numpy as np
import pytest
from planted import plant

import consan
from consan.checker.questions.changes import EventPlaces
from consan.checker.questions.pieces import BARRIER, CLUSTER, words_of
from consan.checker.repairs import whole_barriers
from consan.checker.repairs.forms import Repair, RepairStep
from consan.checker.repairs.text_paths import is_for_all
from consan.checker.repairs.whole_barriers import are_whole, for_some_warps, own_barrier, own_barriers_in_text
from consan.instrument import effects
from consan.instrument.effects import WordValue
from consan.instrument.ptx import parse
from consan.instrument.record.text.templates import Template

WRITE = effects.Write(site=1)
OWN = effects.CtaBarrier(site=2, id=WordValue(1), threads=WordValue(64), waits=True)
PLACES = EventPlaces([Template(1, 1, [WRITE]), Template(2, 1, [OWN])], [])
STEP = RepairStep("add", "bar.sync 0", "after", 1)
REPAIR = Repair((STEP,), {(1, 0): (WRITE, *BARRIER)})

WARPS = np.repeat([[3, 0, 3, 0]], 32, axis=1).reshape(1, 128)
OTHERS = np.repeat([[3, 0, 0, 0]], 32, axis=1).reshape(1, 128)
NOBODY = np.zeros((1, 128), np.int64)
PARTS = {
    "some lanes of a warp": np.arange(128)[None] < 48,
    "warps that pass more often": np.repeat([[3, 1, 0, 0]], 32, axis=1).reshape(1, 128),
    "another number in another CTA": np.concatenate([WARPS, OTHERS]),
    "nobody": NOBODY,
}


def test_a_barrier_counts_the_warps_that_pass_and_has_a_free_number() -> None:
    found = for_some_warps(REPAIR, PLACES, [{1: np.concatenate([WARPS, NOBODY])}, {2: OTHERS}])
    assert found is not None
    assert found.steps[0].instruction == "bar.sync 2, 64"
    (events,) = found.change.values()
    assert events[0] == WRITE
    assert (events[1].id, events[1].threads) == (WordValue(2), WordValue(64))
    assert words_of(BARRIER[0]) == "bar.sync 0"
    assert BARRIER[0].threads == effects.ALL_THREADS


@pytest.mark.parametrize("passes", PARTS.values(), ids=PARTS)
def test_there_is_none_for(passes: np.ndarray) -> None:
    assert for_some_warps(REPAIR, PLACES, [{1: passes.astype(np.int64)}]) is None


def test_there_is_none_at_two_places_or_beside_barriers_whose_number_is_computed() -> None:
    assert for_some_warps(Repair((STEP, STEP), REPAIR.change), PLACES, [{1: WARPS}]) is None
    computed = EventPlaces([Template(2, 1, [effects.CtaBarrier(site=2, id=WordValue(0, 1))])], [])
    assert for_some_warps(REPAIR, computed, [{1: WARPS}]) is None


def _of_two_ctas(first: int, second: int) -> bool:
    """Whether a barrier of the cluster may be where the threads of two CTAs pass so often."""
    return are_whole({(1, 0): (WRITE, *CLUSTER)}, PLACES, [{1: np.repeat([[first], [second]], 64, axis=1)}])


def test_a_barrier_of_the_cluster_is_for_all_its_ctas() -> None:
    """A CTA that has exited counts as arrived, so that the launch ends all the same."""
    assert _of_two_ctas(2, 2)
    assert not _of_two_ctas(2, 0)


def test_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, whole_barriers, "and not (number in of_clusters and np.ptp(each[number]))", "")
    assert _of_two_ctas(2, 0)


WARP = "bar.warp.sync 0xffffffff"
TURNS = """extern "C" __global__ void turns() {
    for (int turn = 0; turn < 2; ++turn) {
        if (threadIdx.x % 2 == turn) asm volatile("ADDED;" ::: "memory");
        __syncwarp();
    }
}"""


@pytest.mark.parametrize("own", [False, True])
def test_lanes_that_wait_at_an_added_barrier_of_the_warp_meet_there_alone(own: bool) -> None:
    """Each lane passes it once and the other one twice, so all lanes could go on; but not together."""
    added = own_barrier(WARP, own, iter(()))
    ((_, _, text),) = own_barriers_in_text([(5, 5 if own else 6, f"{WARP};")], "", (32, 1, 1))
    assert f"{added};" == text
    report = consan.launch(consan.Kernel(TURNS.replace("ADDED", added)), 1, 32, [], device="cpu")
    assert report.verdict == ("violations" if own else "clean"), str(report)


TEXT = """
.version 8.0
.target sm_90
.address_size 64
.visible .entry k()
{
    .reg .pred %p<3>;
    .reg .b32 %r<3>;
    mov.u32 %r1, %cluster_ctarank;
    setp.eq.u32 %p1, %r1, 0;
    @%p1 ret;
    mov.u32 %r2, 1;
    @%p1 bra $a;
    mov.u32 %r2, 2;
$a:
    mov.u32 %r2, 3;
    ret;
}
"""


def test_a_place_in_the_text_is_for_all_outside_of_branches() -> None:
    found = [is_for_all(parse(TEXT), TEXT.index(f"mov.u32 %r2, {number}")) for number in (1, 2, 3)]
    assert found == [True, False, True]
