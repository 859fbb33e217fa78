"""ScoR, Indigo's patterns and Indigo3's kernels, against their labels (slow; skipped where `PUBLIC_SUITES` names no checkout of them)."""

from __future__ import annotations

from pathlib import Path

import pytest
from public_applications import scor_applications
from public_cases import FOLDER, checkout, choices, chosen, hirace, indigo, scor
from public_indigo3 import indigo3
from suite_model import Case, judge_all

PATTERN = """int /*@float@*/ float
a(); /*@persistent@*/ b(); /*@boundsBug@*/ c();
/*@cond@*/ d();
e(); /*@atomicBug@*/ f();"""
_VOLATILE = "volatile data is strong, so that it does not race (8.4.2, 8.7.1)"
_NO_FENCE = "the flag is read and no fence follows, which is no acquire pattern (8.8)"
# The cases that differ from their labels, and why.
AS_THEY_ARE = {
    "norace_interwarp-block_fence-atom_hrd-indirect": ".cta atomics of two CTAs on one word",
    **dict.fromkeys(
        (
            *("race_interblock_blkfence_raw", "race_interblock_fence_rtraw", "race_interblock_lock-blkfence_waw"),
            *("race_interblock_lock-no-stf_waw", "race_interblock_lock-no-tf_waw", "race_interblock_none-atom_waw"),
            *("race_interblock_none-lock_waw", "race_interwarp_blklock-no-stf_waw", "race_interwarp_blklock-no-tf_waw"),
            *("race_interwarp_dev-blklock-no-stf_waw", "race_interwarp_dev-blklock-no-tf_waw", "race_interwarp_none-atom_waw"),
            *("race_interwarp_none-blkatom_waw", "race_interwarp_none-blklock_waw", "race_interwarp_none-lock_waw"),
            "race_interblock_none-lock_rtraw",
        ),
        _VOLATILE,
    ),
}
PLAIN = {
    **dict.fromkeys(("norace_interblock_fence_raw", "norace_interwarp-block_fence_hrf-indirect"), _NO_FENCE),
    **dict.fromkeys(("norace_interwarp_blkfence_raw", "norace_interwarp_fence_raw"), _NO_FENCE),
}
_INPUT = "with this graph, no vertex is the first neighbour of two others: the oracle agrees"
INDIGO = dict.fromkeys(("push_node_neighbor_atomicBug_cond", "push_node_neighbor_atomicBug_cond_persistent"), _INPUT)
HIRACE = dict.fromkeys(("push_node_neighbor_cond_atomicBug", "push_node_neighbor_persistent_cond_atomicBug"), _INPUT)
_FLAG = "the flag in shared memory is cleared for the next round while other threads may still read it"
INDIGO3 = {
    f"{algorithm}_CUDA_V_Data_Pull_{order}_IntType_Persist_Atomic_{unit}_NoNbrBoundsBug_NoBoundsBug_NoFieldBug_NoLivelockBug": _FLAG
    for algorithm in ("CC", "SSSP")
    for order in ("Determ", "NonDeterm")
    for unit in ("Block", "Warp")
}
_UNWRITTEN = "the first warp adds 32 words, and the two warps have written two of them"
INDIGO3 |= {
    f"TC_CUDA_{items}_{unit}_{how}_Reduction_IntType_Atomic_NoSyncBug_{precedence}_NoNbrBoundsBug_{bounds}": _UNWRITTEN
    for items in "EV"
    for unit in ("Block", "Thread", "Warp")
    for how, bounds in (("NonPersist", "NoExcessThreadsBug"), ("Persist", "NoBoundsBug"))
    for precedence in ("NoPrecedenceBug", "PrecedenceBug")
    if precedence == "NoPrecedenceBug" or (unit, how) == ("Warp", "NonPersist")
}
_LANES = "lanes of a warp do not run in step: the tail of the reduction lacks __syncwarp()"
APPLICATIONS = {"red reduceSinglePass": _LANES, "red reduceSinglePass RACEY": _VOLATILE}


def test_a_pattern_with_some_of_its_tags() -> None:
    sets = list(choices(PATTERN))
    assert len(sets) == 3 * 2 * 2
    assert frozenset(("persistent", "atomicBug")) in sets
    text = chosen(PATTERN, frozenset(("persistent", "atomicBug")))
    assert [line.strip() for line in text.splitlines()] == ["int", "b();", "", "f();"]


CHECKOUTS = {
    **dict.fromkeys(("scor", "scor_plain", "applications"), "ScoR"),
    "indigo": "IndigoSuite",
    "indigo3": "Indigo3Suite",
    "hirace": "HiRace-Artifact-SC24",
}


def _cases(suite: str, made: Path) -> list[Case]:
    name = CHECKOUTS[suite]
    if (folder := checkout(name)) is None:
        pytest.skip(f"{FOLDER} names no folder with a checkout of {name}")
    if suite == "indigo3":
        return list(indigo3(folder, made))
    if suite == "hirace":
        return list(hirace(folder, made))
    if suite == "indigo":
        return [case for case in indigo(folder, made) if "boundsBug" not in case.name]
    if suite == "applications":
        return list(scor_applications(folder, made))
    return list(scor(folder, made, volatile=suite == "scor"))


@pytest.mark.slow
@pytest.mark.timeout(4 * 3600)
@pytest.mark.parametrize(
    ("suite", "known"),
    [
        ("scor", AS_THEY_ARE),
        ("scor_plain", PLAIN),
        ("applications", APPLICATIONS),
        ("indigo", INDIGO),
        ("indigo3", INDIGO3),
        ("hirace", HIRACE),
    ],
)
def test_verdicts_agree_with_labels(suite: str, known: dict[str, str], tmp_path: Path) -> None:
    outcomes = list(judge_all(_cases(suite, tmp_path)))
    assert {outcome.case.name for outcome in outcomes if outcome.strange} == known.keys(), [o.line() for o in outcomes if o.strange]
