"""Every kernel of global/ with its fault and repaired, and the legal patterns of global/clean, as in test_twins.py: without any option."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import pytest
import twin_file
from sampled import one_in
from test_twins import _check_clean, _check_racy

import consan
from consan.instrument.record import record
from consan.session.modules import rewritten

HERE = Path(__file__).parent
TWINS = sorted((HERE / "global").glob("*.cu"))
CLEAN = sorted((HERE / "global" / "clean").glob("*.cu"))
BY_LUCK = {  # seed 0 shows it, and most others do; the machine ends where a copy meets a map that is half written
    *("data_of_a_sequence_lock", "sequence_lock_tried_once", "grid_barrier_one_too_few", "looked_at_once"),
    *("ring_filled_by_lanes", "ring_freed_by_lanes", "ring_one_slot_too_many", "tensormap_changed_beside_copy"),
    *("peterson_between_ctas", "counted_too_few", "bakery_of_two"),
}


@functools.cache
def _kernel(path: Path, racy: bool) -> Any:
    return twin_file.kernel(path, racy)


def _launch(path: Path, racy: bool, seed: int = 0, device: str = "cpu") -> tuple[Any, dict[str, Any]]:
    spec = twin_file.read(path)
    if device not in spec.backends and path.name.startswith(("surface_", "texture_")):
        pytest.skip("handles are numbers, which only the virtual machine takes")
    if racy and device not in spec.backends:
        pytest.skip(f"the chip's timing decides whether it shows: only on {spec.backends}")
    if device == "gpu" and spec.arch.startswith("sm_10"):
        pytest.skip(f"{spec.arch}: the tests on a GPU run on Hopper")
    args = spec.fresh_args()
    options = {"smem": spec.smem, "device": device, "seed": seed, "policy": spec.policy}
    report = consan.launch(_kernel(path, racy), spec.grid, spec.block, spec.parameters(args), **options)
    assert "global-memory" in report.checked, report.notes
    return report, args


def _name(path: Path) -> str:
    return path.stem


@pytest.mark.parametrize("path", TWINS, ids=_name)
def test_a_race_is_reported(path: Path, backend: str) -> None:
    with twin_file.fixes_of_some(path):
        _check_racy(_launch(path, True, device=backend)[0], twin_file.read(path))


@pytest.mark.parametrize("path", [*one_in(2, TWINS, _name), *one_in(2, CLEAN, _name)])
def test_a_correct_kernel_is_clean(path: Path, backend: str) -> None:
    _check_clean(*_launch(path, False, device=backend), twin_file.read(path))


@pytest.mark.parametrize(("name", "marker"), [("scope_release_cta", 14), ("scope_fence_of_reader_cta", 18)])
def test_the_fix_names_the_fence(name: str, marker: int) -> None:
    (finding,) = _launch(HERE / "global" / f"{name}.cu", True)[0].findings
    assert f"{name}.cu:{marker}" in finding.fix, finding.fix
    assert "__threadfence()" in finding.fix


@pytest.mark.parametrize(
    "name", ["scope_fence_cta", "scope_flag_cta", "mbarrier_arrive_cta_scope", "last_block_no_fence", "last_block_no_fences"]
)
def test_the_fix_is_verified(name: str) -> None:
    findings = _launch(HERE / "global" / f"{name}.cu", True)[0].findings
    assert findings
    assert all(finding.verified and not finding.verified.left for finding in findings), findings


@pytest.mark.parametrize(
    ("name", "situation", "fix"),
    [
        ("weak_flag", "weak-access", "access them at weak_flag.cu:16 too with an atomic operation"),
        ("counter_reset_beside_tickets", "weak-access", "do that in a launch of its own"),
        ("mixed_size_flag", "mixed-sizes", "with one size"),
        ("last_block_no_acquire", "no-acquire", "put __threadfence() after the flag is read at last_block_no_acquire.cu:14"),
        ("last_block_no_fence", "no-release", "put __threadfence() after"),
        (
            "last_block_no_fences",
            "no-release-no-acquire",
            "and __threadfence() after the flag is read at last_block_no_fences.cu:17 and before last_block_no_fences.cu:25",
        ),
        (
            "relaxed_message_no_fences",
            "no-release-no-acquire",
            "and __threadfence() after the flag is read at relaxed_message_no_fences.cu:21",
        ),
        ("consumer_warp_no_acquire", "no-acquire", "after the flag is read at consumer_warp_no_acquire.cu:16"),
        ("producer_warp_no_release", "no-release", "before the flag is written at producer_warp_no_release.cu:16"),
        ("tail_shown_without_fence", "other-threads", "before tail_shown_without_fence.cu:36"),
        ("counter_is_no_barrier", "no-barrier", "put __syncthreads() after"),
        ("bulk_store_shown_by_other", "released-by-other", "put __syncthreads() after the wait of the thread of"),
        ("fence_before_others_store", "released-by-other", "put __syncthreads() after fence_before_others_store.cu:11"),
        ("slot_freed_early", "released-before", "come before the release at slot_freed_early.cu:"),
        ("ring_freed_by_lanes", "released-before", "let the read at ring_freed_by_lanes.cu:29 come before the release at"),
        (
            "counted_too_few",
            "flag-passed",
            "the flag at counted_too_few.cu:23 go on only when it has read what the write at counted_too_few.cu:15",
        ),
        ("cleared_by_last_cta", "no-synchronisation", "give each CTA bytes of its own"),
        ("waits_for_another_flag", "no-synchronisation", "release and acquire a flag at .gpu scope"),
        ("ticket_lock_two_sums", "no-acquire", "put __threadfence() after the flag is read at ticket_lock_two_sums.cu:13"),
        ("grid_barrier_one_too_few", "flag-passed", "the number that it waits for is too low"),
        ("progress_off_by_one", "flag-passed", "go on only when it has read what the write at progress_off_by_one.cu:27 leaves"),
        ("ring_filled_by_lanes", "released-round-before", "it lets ring_filled_by_lanes.cu:25 go on a round too early"),
        ("ring_one_slot_too_many", "released-round-before", "it lets ring_one_slot_too_many.cu:28 go on a round too early"),
        ("relaxed_cluster_barrier", "no-cluster-barrier", "put cluster.sync() between"),
    ],
)
def test_the_fix_is_that_of_what_lacks(name: str, situation: str, fix: str) -> None:
    finding = next(each for each in _launch(HERE / "global" / f"{name}.cu", True)[0].findings if each.situation == situation)
    assert fix in finding.fix


@pytest.mark.parametrize("name", ["weak_flag", "lock_freed_by_store"])
def test_races_behind_a_weak_flag_are_said_to_follow(name: str) -> None:
    text = str(_launch(HERE / "global" / f"{name}.cu", True)[0])
    assert "may follow:  error[global-race]" in text
    assert "is a strong operation" in text.split("may follow:")[0]


@pytest.fixture
def as_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """The text of recorded kernels is that for a GPU, where threads can leave."""
    monkeypatch.setattr(rewritten, "record", lambda *module, **how: record(*module, **how | {"leaves": True}))


@pytest.mark.usefixtures("as_on_a_gpu")
@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, marks=[] if path.stem in ("called_wait_no_fence", "look_back", "slot_freed_early") else pytest.mark.slow)
        for path in [*TWINS, *CLEAN]
    ],
    ids=_name,
)
def test_the_text_for_a_gpu_tells_the_same(path: Path) -> None:
    """Polls of many rounds leave one."""
    _check_clean(*_launch(path, False), twin_file.read(path))
    if path in TWINS and path.stem not in BY_LUCK:
        _check_racy(_launch(path, True)[0], twin_file.read(path))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 20))
@pytest.mark.parametrize("path", [*TWINS, *CLEAN], ids=_name)
def test_each_schedule_tells_the_same(path: Path, seed: int) -> None:
    _check_clean(*_launch(path, False, seed), twin_file.read(path))
    if path in TWINS and path.stem not in BY_LUCK:
        _check_racy(_launch(path, True, seed)[0], twin_file.read(path))


def test_a_flag_before_the_first_write_of_its_data() -> None:
    """The next CTA stores behind its read, too: that is no later round, since nobody has written these bytes before."""
    path = next(each for each in TWINS if each.stem == "look_back_flag_first")
    (finding,) = _launch(path, True)[0].findings
    assert (finding.hazard, finding.situation) == ("RAW", "released-before")
