"""Counterfactual replay: a recorded launch is asked what would be found with a change, and the fixes that this confirms."""

from __future__ import annotations

import json
import math
import operator
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import twin_file
from planted import plant
from sampled import one_in

import consan
from consan.__main__ import main
from consan.checker.judging.checked import Checked
from consan.checker.questions.changes import EventPlaces
from consan.checker.questions.questions import Questions
from consan.checker.repairs.fixes import verified_fixes
from consan.instrument import effects
from consan.instrument.effects import NO_WORD, WordValue
from consan.instrument.effects.model import VALUES, leaves
from consan.instrument.findings import Kind
from consan.instrument.ptx import parse
from consan.instrument.record.analyses.value_dependence import value_depends
from consan.instrument.record.text.templates import Template
from consan.reports.formats.json_format import from_json, to_json
from consan.reports.model import Access, Finding, FixStep, VerifiedFix
from consan.reports.source.patches import fixed
from consan.reports.source.source_patches import patched
from consan.reports.verdict.conclusion import assemble
from consan.reports.words import verified
from consan.reports.words.verified import sentence_of, with_whole_fixes
from consan.session.asking import recorded
from consan.session.asking.reruns import LONGEST, MOST_INSTRUCTIONS, MOST_REPAIRS, Ran, Reruns
from consan.session.executing import recording

TWINS = Path(__file__).parents[1] / "kernels" / "twins"
STILL = lambda: 0.0  # noqa: E731 - the time of a search in which no time passes


def _launch(name: str, racy: bool) -> Any:
    spec = twin_file.read(TWINS / f"{name}.cu")
    values = spec.parameters(spec.fresh_args())
    return consan.launch(twin_file.kernel(spec.path, racy), spec.grid, spec.block, values, smem=spec.smem, device="cpu", policy=spec.policy)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, bool, Callable[[Questions, Checked], Any]], Any]:
    """Asks a question of a launch of a twin while its logs are there."""

    def ask(name: str, racy: bool, question: Callable[[Questions, Checked], Any]) -> Any:
        answers = []

        def ask_it(prepared: Any, started: Any, checked: Checked) -> None:
            answers.append(question(Questions(started.launch, started.recorded, started.launched, started.limit), checked))

        monkeypatch.setattr(recording, "ASKERS", [ask_it])
        _launch(name, racy)
        return answers[0]

    return ask


FOR_THE_LAST = """extern "C" __global__ void k(unsigned* count, unsigned* out) {
    __shared__ unsigned ticket;
    if (threadIdx.x == 0) { __threadfence(); ticket = atomicAdd(count, 1); __threadfence(); }
    __syncthreads();
    if (ticket == gridDim.x - 1) { __syncthreads(); out[threadIdx.x] = ticket; }
}"""


def test_each_cta_is_counted_where_ctas_meet(monkeypatch: pytest.MonkeyPatch) -> None:
    """A launch that is replayed as a whole has no history that stands for several CTAs."""
    found: list[set[tuple[int, ...]]] = []

    def ask(_prepared: Any, started: Any, _checked: Checked) -> None:
        (passes,) = Questions(started.launch, started.recorded, started.launched).passes
        found.append({tuple(each.sum(axis=1)) for each in passes.values()})

    monkeypatch.setattr(recording, "ASKERS", [ask])
    kernel = consan.Kernel(FOR_THE_LAST, entry="k")
    consan.launch(kernel, 3, 32, [np.zeros(1, np.uint32), np.zeros(32, np.uint32)], device="cpu")
    assert (32, 32, 32) in found[0]  # the first barrier, by the threads of each CTA
    assert any(sorted(each) == [0, 0, 32] for each in found[0])  # the second one


def _kinds(questions: Questions, change: Any) -> set[int]:
    answer = questions.ask(change)
    assert not answer.troubles
    return {key[0] for key in answer.found}


LEFT_OUT = [
    ("raw", effects.CtaBarrier, Kind.DATA_RACE),
    ("reduction_last_levels", effects.WarpSync, Kind.DATA_RACE),
    ("cp_async_no_wait", effects.CopyWait, Kind.MISSING_WAIT),
    ("cp_async_never_committed", effects.CopyCommit, Kind.MISSING_WAIT),
    ("bulk_store_no_proxy_fence", effects.ProxyFence, Kind.MISSING_PROXY_FENCE),
    ("bulk_load_not_waited", effects.MbarrierWait, Kind.MISSING_WAIT),
]


@pytest.mark.parametrize(("name", "event", "kind"), LEFT_OUT, ids=[row[0] for row in LEFT_OUT])
def test_what_is_left_out_of_the_repaired_twin_is_missed(name: str, event: type[effects.Effect], kind: Kind, asked: Any) -> None:
    def question(questions: Questions, checked: Checked) -> set[int]:
        assert not checked.found
        assert _kinds(questions, {}) == set()
        places = questions.places
        return _kinds(questions, places.left_out(places.spots(lambda each: isinstance(each, event))))

    assert kind in asked(name, False, question)


def test_operands_change_and_events_move(asked: Any) -> None:
    def tighter(questions: Questions, checked: Checked) -> tuple[set[int], set[int]]:
        places = questions.places
        waits = places.spots(lambda each: isinstance(each, effects.CopyWait))
        loose = places.altered(waits, lambda each: each.changed(pending=each.pending.plus(1)))
        late = places.moved(waits, lambda each: isinstance(each, effects.CtaBarrier), after=True)
        assert late
        return _kinds(questions, loose), _kinds(questions, late)

    assert asked("cp_async_off_by_one", False, tighter) == ({Kind.MISSING_WAIT, Kind.LIFETIME}, {Kind.MISSING_WAIT})


def test_with_the_other_parity_a_wait_is_stale(asked: Any) -> None:
    def flipped(questions: Questions, checked: Checked) -> set[int]:
        places = questions.places
        waits = places.spots(lambda each: isinstance(each, effects.MbarrierWait))
        other = lambda each: each.changed(parity=WordValue(each.parity.number ^ 1, each.parity.word))  # noqa: E731
        return _kinds(questions, places.altered(waits, other))

    assert Kind.MISSING_WAIT in asked("bulk_load_not_waited", False, flipped)


def test_a_change_after_which_threads_wait_for_ever_is_told(asked: Any) -> None:
    def inside(questions: Questions, checked: Checked) -> set[str]:
        places = questions.places
        arrivals = places.spots(lambda each: isinstance(each, effects.MbarrierArrive))
        return set(questions.ask(places.left_out(arrivals)).troubles)

    assert asked("bulk_load_not_waited", False, inside) == {"could not be replayed to their end"}


FIXES = [
    ("raw", "with bar.sync 0 (__syncthreads()) before raw.cu:"),
    ("mbarrier_lane_not_arrived", "with bar.warp.sync 0xffffffff (__syncwarp()) "),
    ("cp_async_off_by_one", "with cp.async.wait_group 1 "),
    ("bulk_store_no_proxy_fence", "with fence.proxy.async after bulk_store_no_proxy_fence.cu:"),
    ("cluster_wait_cta_scope", " of a wider scope (.cluster) at "),
    ("cluster_halo_arrives_early", "with barrier.cluster.arrive.aligned moved after"),
    ("relaxed_message_in_shared", "with fence.acq_rel.cta (__threadfence_block()) before"),
    ("mbarrier_relaxed_arrive", "with mbarrier.arrive.release.cta.shared::cta.b64 at"),
    ("mbarrier_copies_arrive_early", "with cp.async.mbarrier.arrive.noinc.shared::cta.b64 moved after the asynchronous copy at"),
    ("bulk_store_arrive_before_fill", "and with mbarrier.arrive.shared::cta.b64 moved after the write at"),
    ("mbarrier_one_lane_waits", "with bar.warp.sync 0xffffffff (__syncwarp()) before"),
]


@pytest.mark.parametrize(("name", "words"), FIXES, ids=[row[0] for row in FIXES])
def test_the_repair_of_a_racy_twin_is_verified(name: str, words: str) -> None:
    report = _launch(name, True)
    assert report.findings
    for finding in report.findings:
        assert finding.verified is not None
        assert finding.verified.left == 0
        assert words in " ".join(str(report).split())
    assert from_json(to_json(report)) == report
    assert words in to_json(report)["findings"][0]["verified"]["text"]


PATCHED = [
    "raw", "cp_async_no_wait", "bulk_store_no_proxy_fence", "bulk_store_wait_no_barrier", "cp_async_at_exit", "mbarrier_used_after_inval",
    "cp_async_wait_before_commit",
]  # fmt: skip


@pytest.mark.parametrize("name", PATCHED)
def test_the_patch_repairs_the_kernel(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec = twin_file.read(TWINS / f"{name}.cu")
    found = _launch(name, True).findings
    text = patched(spec.path.read_text(), [finding.verified for finding in found], str(spec.path))
    assert text not in ("", spec.path.read_text())
    copy = tmp_path / spec.path.name
    copy.write_text(text.replace('"../', f'"{spec.path.parents[1]}/'))
    kernel = consan.Kernel(copy, entry="kernel", arch=spec.arch, defines={"RACY": 1})
    assert consan.launch(kernel, spec.grid, spec.block, spec.parameters(spec.fresh_args()), smem=spec.smem, device="cpu").verdict == "clean"


@pytest.mark.parametrize("word", [NO_WORD, 1])
def test_only_an_event_without_words_moves_to_another_block(word: int) -> None:
    barrier, arrival = effects.CtaBarrier(), effects.MbarrierArrive(at=WordValue(0, word))
    places = EventPlaces([Template(1, 1, [barrier]), Template(2, 2, [arrival])], [])
    moved = {(1, 0): (arrival, barrier), (2, 0): ()} if word == NO_WORD else {}
    assert places.moved([(2, 0)], lambda event: isinstance(event, effects.CtaBarrier), after=False) == moved


EDITS = [
    "bulk_bytes_expected_twice",  # more bytes announced
    "cluster_wait_cta_scope",  # a wider scope
    "mbarrier_inval_in_flight",  # a wait that no loop has
    "mbarrier_no_complete",  # another form of the opcode
    "mbarrier_released_early",  # moved
    "mbarrier_wrong_parity",  # two steps: another parity, and another count
]


def _again(name: str, ptx: str, seed: int = 0) -> Any:
    spec = twin_file.read(TWINS / f"{name}.cu")
    kernel, values = consan.Kernel(ptx, entry="kernel"), spec.parameters(spec.fresh_args())
    return consan.launch(kernel, spec.grid, spec.block, values, smem=spec.smem, device="cpu", seed=seed, policy=spec.policy)


@pytest.mark.parametrize("name", EDITS)
def test_the_edits_of_the_ptx_repair_the_kernel(name: str) -> None:
    found = _launch(name, True).findings
    ptx = fixed(twin_file.kernel(TWINS / f"{name}.cu", True).ptx, [finding.verified for finding in found])
    for seed in range(3):
        report = _again(name, ptx, seed)
        assert report.verdict == "clean", str(report)


@pytest.mark.parametrize(
    ("name", "suffix", "line"), [("raw", ".cu", "+    __syncthreads();"), ("mbarrier_no_complete", ".ptx", "+\tmbarrier.arrive.shared")]
)
def test_check_writes_a_patch_and_checks_the_patched_kernel(
    name: str, suffix: str, line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = twin_file.read(TWINS / f"{name}.cu")
    text = spec.path.read_text() if suffix == ".cu" else twin_file.kernel(spec.path, True).ptx
    (tmp_path / f"k{suffix}").write_text(text.replace("#ifndef RACY", "#if 0"))
    nbytes = f"f32[{spec.block[0]}]"
    words = ("--grid", "1", "--block", str(spec.block[0]), "--arg", f"{nbytes}=arange", "--arg", f"{nbytes}=zeros", "--device", "cpu")
    assert main(["check", str(tmp_path / f"k{suffix}"), *words, "--patch", str(tmp_path / "fix.diff")]) == 66
    assert line in (tmp_path / "fix.diff").read_text()
    assert "the kernel was checked again: clean, 0 findings" in " ".join(capsys.readouterr().out.split())


def _syncs_lanes(folder: Path) -> bool:
    """Whether the fix for steps of a warp that nothing orders is a barrier of the warp on both sides."""
    twin = str(TWINS / "volatile_warp_synchronous.cu")
    words = ("--define", "RACY=1", "--grid", "1", "--block", "32", "--arg", "f32[32]=arange", "--arg", "f32[1]=zeros", "--device", "cpu")
    assert main(["check", twin, *words, "--format", "json", "-o", str(folder / "report.json")]) == 0
    (finding,) = json.loads((folder / "report.json").read_text())["findings"]
    return [finding["fix"].count(word) for word in ("__syncwarp()", "__syncthreads()")] == [2, 0]


def _moves_the_arrival(folder: Path) -> bool:
    words = (
        "--define",
        "RACY=1",
        "--grid",
        "1",
        "--block",
        "128",
        "--arg",
        "f32[384]=arange",
        "--arg",
        "f32[384]=zeros",
        "--device",
        "cpu",
    )
    out = folder / "report.json"
    assert main(["check", str(TWINS / "named_barrier_turns.cu"), *words, "--format", "json", "-o", str(out)]) == 66
    (finding,) = json.loads(out.read_text())["findings"]
    return [step["action"] for step in finding["verified"]["steps"]] == ["move"] and finding["fix"].startswith("move the bar.arrive at")


def test_an_arrival_that_comes_too_early_is_moved_and_no_barrier_is_added(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert _moves_the_arrival(tmp_path)
    assert not any(finding.verified for finding in _launch("named_barrier_turns", True).findings), "a replay cannot move it"
    plant(monkeypatch, verified, " or _reads_later(fix, finding)", "")
    assert any(finding.verified for finding in _launch("named_barrier_turns", True).findings)


def test_lanes_of_a_warp_that_need_two_barriers_get_those_of_the_warp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert _syncs_lanes(tmp_path)
    plant(monkeypatch, recorded, 'situation.startswith("no-warp-sync")', "False")
    assert not _syncs_lanes(tmp_path)


@pytest.mark.parametrize(
    ("name", "patched_file", "line"),
    [
        ("raw", "k.cu", "+    __syncthreads();"),
        ("vote_is_not_a_barrier", "k.cu", "+    __syncthreads();"),  # before a branch
        ("mbarrier_no_complete", "k.ptx", "mbarrier."),
    ],
)
def test_a_patch_is_one_of_the_source_where_new_lines_are_the_repair(
    name: str, patched_file: str, line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The PTX that the user has not is written beside its patch."""
    monkeypatch.chdir(tmp_path)
    Path("out").mkdir()
    spec = twin_file.read(TWINS / f"{name}.cu")
    Path("k.cu").write_text(spec.path.read_text().replace('"../', f'"{TWINS.parent}/'))
    values = [word for each in spec.args.values() for word in ("--arg", f"{each.dtype.kind}{8 * each.itemsize}[{each.size}]=arange")]
    words = ("--define", "RACY=1", "--arch", spec.arch, "--grid", "1", "--block", str(spec.block[0]), *values, "--device", "cpu")
    assert main(["check", "k.cu", *words, "--patch", "out/fix.diff"]) == 66
    text = Path("out/fix.diff").read_text()
    assert text.startswith(f"--- a/{patched_file}\n")
    assert line in text
    assert Path("out/k.ptx").exists() is patched_file.endswith(".ptx")
    base = Path("k.cu") if patched_file == "k.cu" else Path("out/k.ptx")
    hunks = [each[1:] for each in text.splitlines()[2:] if each[0] in " -"]
    assert set(hunks) <= set(base.read_text().splitlines())


RERUNS = [
    ("generic_pointer", "with bar.sync 0 (__syncthreads())"),  # calls
    ("wgmma_fence_missing", "wgmma.fence.sync.aligned"),  # found in the text
    ("vote_is_not_a_barrier", "with bar.sync 0 (__syncthreads())"),
    ("divergent_shfl", "with shfl.sync.bfly.b32 with the mask 0xffff at"),
    ("divergent_syncwarp", "with bar.warp.sync 0xffff at"),
    ("divergent_barrier_aligned", "without the condition at divergent_barrier_aligned.cu:14"),
    ("histogram_no_atomics", "with red.shared.add.s32 in place of the load, the change and the store at"),
    ("mbarrier_two_warps_init", "with mbarrier.init.shared::cta.b64 by the first thread only at"),
    ("same_value_two_stores", "with bar.sync 0 (__syncthreads()) before the bra at same_value_two_stores.cu:"),
    ("bulk_bytes_never_come", "with 16 bytes less at"),
    ("deadlock_copies_counted_twice", "with cp.async.mbarrier.arrive.noinc"),
    ("named_barrier_deadlock", "with bar."),
    ("deadlock_crossed_barriers", "with mbarrier.arrive.shared::cta.b64 moved before the bra at"),
    ("deadlock_no_drop", "with mbarrier.arrive_drop.shared::cta.b64 after the bra at"),
    ("deadlock_trip_counts", " with 4 in place of 5 at"),
    ("cluster_barrier_of_follower", "with mapa.shared::cluster.u32 of rank 0 at"),
    ("divergent_barrier_one_side", "without the condition at divergent_barrier_one_side.cu:18"),
    ("divergent_stmatrix", "without the condition at divergent_stmatrix.cu:"),
    ("flag_handshake", "with st.release.cta.shared.u32 at"),
    ("tensormap_not_acquired", "with fence.proxy.tensormap::generic.acquire.gpu"),
    ("mbarrier_result_ignored", "with mbarrier.try_wait.parity.shared::cta.b64 in a loop until it returns true at"),
    ("mbarrier_parity_of_step", "with a parity that is 0, and changes after every 4 waits at"),
    ("mbarrier_parity_constant", "with a parity that is 0, and changes after each wait at"),
    ("bulk_loads_one_waited", "with mbarrier.try_wait.parity.shared::cta.b64 for second at"),
    ("mbarrier_phase_lap", "with mbarrier.try_wait of its token in a loop after"),
    ("bulk_bytes_announced_alone", "with mbarrier.arrive.expect_tx.shared::cta.b64 at"),
    ("shuffle_not_in_mask", "with shfl.sync.idx.b32 with the mask 0xffffffff at"),
    ("mbarrier_copies_arrive_is_no_release", "with mbarrier.init.shared::cta.b64 with twice the count at"),
]


@pytest.mark.parametrize("rerun", one_in(3, RERUNS, operator.itemgetter(0)))
def test_what_a_replay_cannot_tell_a_run_of_the_changed_kernel_does(rerun: tuple[str, str]) -> None:
    name, words = rerun
    kernel, report = twin_file.kernel(TWINS / f"{name}.cu", True), _launch(name, True)
    assert all(finding.verified is None for finding in report.findings)
    spec = twin_file.read(TWINS / f"{name}.cu")
    fixed = Reruns(
        kernel.module, lambda ptx, seed: Ran(_again(name, ptx, seed)), spec.block, (1, 1, 1), clock=STILL, works=STILL
    ).confirmed(report)
    for finding in fixed.findings:
        assert finding.verified is not None
        assert finding.verified.rerun
    assert any(words in sentence_of(finding.verified) for finding in fixed.findings)
    assert all("on runs of the changed kernel" in sentence_of(finding.verified) for finding in fixed.findings)
    assert from_json(to_json(fixed)) == fixed


@pytest.mark.parametrize(("cost", "tries"), [(MOST_INSTRUCTIONS // 4, 5), (1, MOST_REPAIRS)])
def test_the_search_ends_when_its_allowance_is_spent(cost: int, tries: int) -> None:
    kernel, report = twin_file.kernel(TWINS / "divergent_shfl.cu", True), _launch("divergent_shfl", True)
    ran: list[int] = []

    def run(ptx: str, seed: int) -> Ran:
        ran.append(seed)
        return Ran(report, executed=cost)  # no repair

    search = Reruns(kernel.module, run, (64, 1, 1), (1, 1, 1), clock=STILL, works=STILL)
    assert search.confirmed(report).findings[0].verified is None
    assert len(ran) == search.tried <= tries
    assert len(ran) == 5 or tries != 5


@pytest.mark.parametrize(("ends", "last"), [(math.inf, LONGEST), (1.0, 1.0)])
def test_no_repair_is_begun_when_the_time_is_over(ends: float, last: float) -> None:
    """A user does not wait for a fix that does not exist; `--timeout` ends the search, too."""
    kernel, report = twin_file.kernel(TWINS / "divergent_shfl.cu", True), _launch("divergent_shfl", True)
    now = [0.0]

    def run(ptx: str, seed: int) -> Ran:
        now[0] += 0.3
        return Ran(report)

    Reruns(kernel.module, run, (64, 1, 1), (1, 1, 1), ends, lambda: now[0], works=lambda: now[0]).confirmed(report)
    assert last <= now[0] < last + 0.3


def test_no_more_is_asked_when_the_time_is_over(asked: Any) -> None:
    def question(questions: Questions, checked: Checked) -> int:
        questions.most_seconds = 1e-9
        verified_fixes(questions, checked, lambda _: False)
        return questions.events // checked.tally.events

    assert asked("raw", True, question) == 1


def test_a_repair_that_some_schedule_refutes_is_none() -> None:
    """With bar.sync in the branch of one warp the copy comes before its map in a few schedules only."""
    kernel, report = twin_file.kernel(TWINS / "tensormap_not_acquired.cu", True), _launch("tensormap_not_acquired", True)
    asked: list[int] = []

    def run(ptx: str, seed: int) -> Ran:
        asked.append(seed)
        return Ran(report if seed == 7 else replace(report, findings=()))

    confirmed = Reruns(kernel.module, run, (64, 1, 1), (1, 1, 1), clock=STILL, works=STILL).confirmed(report)
    assert all(finding.verified is None for finding in confirmed.findings)
    assert max(asked) == 7


@pytest.mark.parametrize(("kind", "verifies"), [("note", True), ("warning", False)])
def test_a_repair_leaves_notes_only(kind: str, verifies: bool) -> None:
    kernel, report = twin_file.kernel(TWINS / "divergent_shfl.cu", True), _launch("divergent_shfl", True)
    other = Finding("data-race", "kernel", severity=kind)
    both = replace(report, findings=(*report.findings, other))
    reruns = Reruns(
        kernel.module, lambda ptx, seed: Ran(replace(report, findings=(other,))), (64, 1, 1), (1, 1, 1), clock=STILL, works=STILL
    )
    assert (reruns.confirmed(both).findings[0].verified is not None) is verifies


@pytest.mark.parametrize(("results", "verifies"), [((b"1", b"1"), True), ((b"1", b"2"), False)])
def test_a_repair_gives_the_same_results_in_all_schedules(results: tuple[bytes, bytes], verifies: bool) -> None:
    kernel, report = twin_file.kernel(TWINS / "divergent_shfl.cu", True), _launch("divergent_shfl", True)
    clean = replace(report, findings=())
    reruns = Reruns(kernel.module, lambda ptx, seed: Ran(clean, results[seed % 2]), (64, 1, 1), (1, 1, 1), clock=STILL, works=STILL)
    assert (reruns.confirmed(report).findings[0].verified is not None) is verifies


ORDERED = """extern "C" __global__ void k(unsigned* sum, unsigned* out) {
    __shared__ unsigned s[64];
    s[threadIdx.x] = threadIdx.x;
    out[threadIdx.x] = s[63 - threadIdx.x];
    UPDATE;
}
"""


@pytest.mark.parametrize(
    ("update", "options", "schedules"),
    [
        ("if (threadIdx.x == 0) *sum = 1", (), 1),
        ("if (threadIdx.x == 0) *sum = 1", ("--global", "off"), 20),  # nobody has looked for races in global memory
        ("if (threadIdx.x == 0) atomicAdd((float*)sum, 1)", (), 20),  # of several, the order may show in the result
    ],
)
def test_a_kernel_whose_threads_observe_nothing_is_repaired_in_one_schedule(
    update: str, options: tuple[str, ...], schedules: int, tmp_path: Path
) -> None:
    """Else in 20, and none may leave other results."""
    (tmp_path / "k.cu").write_text(ORDERED.replace("UPDATE", update))
    words = ["--grid", "1", "--block", "64", "--arg", "u32[1]=zeros", "--arg", "u32[64]=zeros", "--device", "cpu", *options]
    assert main(["check", str(tmp_path / "k.cu"), *words, "-o", str(tmp_path / "r.json")]) == 66
    (found,) = [each for each in json.loads((tmp_path / "r.json").read_text())["findings"] if each["severity"] == "error"]
    assert found["verified"]["schedules"] == schedules


def test_repairs_of_two_findings_are_tried_together() -> None:
    """Each of the two removes one finding, and only both leave none."""
    one, other = (
        Finding("barrier-misuse", "k", situation="divergent", accesses=(Access("wait", "bar.sync", ptx_line=line),)) for line in (11, 13)
    )
    report = assemble(device="cpu", kernels=[], findings=[one, other])
    module = parse(SLICE.replace("BODY", "@%p1 bar.sync 0;\n\n @%p2 bar.sync 0;"))

    def run(ptx: str, seed: int) -> Ran:
        left = [each for each, text in ((one, "@%p1"), (other, "@%p2")) if text in ptx]
        return Ran(replace(report, findings=tuple(left), incomplete=()))

    fixed = Reruns(module, run, (32, 1, 1), (1, 1, 1), clock=STILL, works=STILL).confirmed(report)
    assert [len(each.verified.steps) for each in fixed.findings if each.verified] == [2, 2]


def test_a_fix_of_the_replay_that_runs_refute_is_none() -> None:
    kernel, report = twin_file.kernel(TWINS / "raw.cu", True), _launch("raw", True)
    assert report.findings[0].verified

    def run(ptx: str, seed: int) -> Ran:
        return Ran(report, b"")

    refuted = Reruns(kernel.module, run, (128, 1, 1), (1, 1, 1), clock=STILL, works=STILL).confirmed(report).findings[0]
    assert refuted.verified is None
    assert refuted.fix == (report.findings[0].verified.instead_of or report.findings[0].fix)


def test_no_barrier_verifies_a_lost_update() -> None:
    """A barrier between the load and the store of an update hides the race, and the updates of all threads but one are lost."""
    lost, other = (Finding("global-race", "k", situation=f"no-synchronisation{shape}") for shape in ("@update", ""))
    fix = VerifiedFix((FixStep("add", "bar.sync 0", "before", "", "k.cu", 4, 40),))
    found = with_whole_fixes([replace(other, verified=fix)])
    assert [each.verified and each.verified.steps for each in found] == [fix.steps]
    assert [each.verified for each in with_whole_fixes([replace(lost, verified=fix), replace(other, verified=fix)])] == [None, None]


@pytest.mark.parametrize("name", ["histogram_no_atomics", "out_of_bounds", "uninitialized_halo"])
def test_nothing_is_verified_that_a_replay_cannot_know(name: str) -> None:
    """The address of a shared access follows from a value that a racing access has loaded; no synchronisation repairs the others."""
    report = _launch(name, True)
    assert report.findings
    assert all(finding.verified is None for finding in report.findings)
    assert "verified" not in str(report)


SLICE = """.version 7.8
.target sm_80
.address_size 64
.visible .entry k()
{
    .reg .b32 %r<9>;
    .reg .pred %p<3>;
    .shared .b32 s[64];
    ld.shared.u32 %r1, [s];
    add.u32 %r2, %r1, 1;
    BODY
    ret;
}
"""


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("st.shared.u32 [s+4], %r2;", False),
        ("ld.shared.u32 %r3, [s+4];\n st.shared.u32 [%r3], %r3;", False),  # the value of another load
        ("st.shared.u32 [s+4], %r2;\n ld.shared.u32 %r3, [s+4];\n st.shared.u32 [%r3], %r3;", True),  # through memory
        ("st.shared.u32 [%r2], %r2;", True),
        ("setp.eq.u32 %p1, %r2, 0;\n @%p1 bra done;\n done:", True),
        ("setp.eq.u32 %p1, %r2, 0;\n @%p1 st.shared.u32 [s], %r3;", True),
        ("setp.eq.u32 %p1, %r2, 0;\n @%p1 add.u32 %r3, %r3, 1;", False),
        ("bar.sync %r2;", True),
        ("poll: mbarrier.test_wait.parity.shared.b64 %p1, [s+8], %r3;\n @!%p1 bra poll;", False),
        ("mbarrier.test_wait.parity.shared.b64 %p1, [s+8], %r3;", True),  # a thread that goes on after a wait has failed
    ],
)
def test_the_slice(body: str, expected: bool) -> None:
    module = parse(SLICE.replace("BODY", body))
    load = next(each for each in module.functions[0].instructions() if each.opcode == "ld.shared.u32")
    assert value_depends(module, [load.line], global_races=False) is expected


# What the slice is without a rule, and a body of a kernel that it then judges in another way.
PLANTED: dict[str, tuple[str, Any, str]] = {
    "memory": (
        "record.analyses.value_dependence.touched_spaces",
        lambda *_: set(),
        "st.shared.u32 [s+4], %r2;\n ld.shared.u32 %r3, [s+4];\n st.shared.u32 [%r3], %r3;",
    ),
    "branches": ("record.analyses.value_dependence._DEPARTS", frozenset(), "setp.eq.u32 %p1, %r2, 0;\n @%p1 bra done;\n done:"),
    "addresses": ("record.analyses.value_dependence.deciding_keys", lambda *_: iter(()), "st.shared.u32 [%r2], %r3;"),
    "values that are only stored": ("control_flow.slices._DATA", frozenset(), "st.shared.u32 [s+4], %r2;"),
    "waits that give up": (
        "record.analyses.value_dependence._gives_up",
        lambda _: False,
        "mbarrier.test_wait.parity.shared.b64 %p1, [s+8], %r3;",
    ),
}


@pytest.mark.parametrize("name", PLANTED)
def test_a_fault_planted_in_the_slice_changes_its_answer(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    what, faulty, body = PLANTED[name]
    module = parse(SLICE.replace("BODY", body))
    load = next(each for each in module.functions[0].instructions() if each.opcode == "ld.shared.u32")
    right = value_depends(module, [load.line], global_races=False)
    monkeypatch.setattr(f"consan.instrument.{what}", faulty)
    assert value_depends(module, [load.line], global_races=False) is not right


def _numbers(event: effects.Effect) -> list[WordValue]:
    return [getattr(event, leaf.name) for leaf in leaves(type(event)) if leaf.means in VALUES]


def test_no_template_has_a_number_beside_its_word(asked: Any) -> None:
    """A change adds to a word."""

    def both(questions: Questions, checked: Checked) -> list[Any]:
        places = questions.places
        return [places[spot] for spot in places.spots(lambda each: any(not value.is_known and value.number for value in _numbers(each)))]

    for name in ("cp_async_off_by_one", "bulk_load_not_waited", "cluster_st_async_not_waited"):
        assert asked(name, False, both) == []
