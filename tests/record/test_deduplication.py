"""CTAs with one history are replayed once, and a CTA that differs in anything is replayed by itself: of many, one has the race."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import consan
from consan._errors import UsageError
from consan.backends.cpu.state.memory import Arena
from consan.checker.compiled.layouts import Status
from consan.checker.compiled.replay import replay
from consan.checker.judging import recorder
from consan.checker.logs.grouping import grouped
from consan.checker.logs.memory import SMALLER
from consan.checker.logs.names import sums_of
from consan.instrument.record.text import text
from consan.session.planning.options import SessionOptions
from consan.session.session import Session

CTAS, THREADS, ODD = 300, 64, 217
SOURCE = """
extern "C" __global__ void kernel(int* out, int odd) {
    __shared__ int tile[128];
    int t = threadIdx.x, mine = blockIdx.x == odd;
    tile[t] = t; tile[64 + t] = t;
    __syncthreads();
    int sum = 0;
    BODY
    out[blockIdx.x * 64 + t] = sum;
}
"""
# Each body is clean but in the odd CTA, where threads read what others write.
BODIES = {
    "one address": "for (int i = 0; i < 4; ++i) { tile[t] += i; sum += tile[mine && i == 1 ? (t ^ 32) : t]; }",
    "last iteration": "for (int i = 0; i < 100; ++i) { tile[t] += i; sum += tile[mine && i == 99 ? (t ^ 32) : t]; }",
    "one lane": "tile[t] += 1; sum = tile[mine && t == 33 ? 5 : t];",
    "two lanes swapped": "tile[t] += 1; sum = tile[mine && t >> 1 == 16 ? 65 - t : t];",
    "a branch": "tile[t] += 1; if (mine && t == 40) tile[3] = 7;",
    "a barrier less": "tile[t] += 1; if (!mine) __syncthreads(); sum = tile[63 - t];",
    "two words of a block": "tile[t] += 1; int j = mine ? t ^ 63 : t; sum = tile[j] + tile[64 + j]; tile[64 + t] = sum;",
}


def _launch(body: str, odd: int, **options: Any) -> Any:
    kernel = consan.Kernel(SOURCE.replace("BODY", body), entry="kernel", arch="sm_80")
    out = np.zeros(CTAS * THREADS, np.int32)
    return consan.launch(kernel, CTAS, THREADS, [out, np.int32(odd)], device="cpu", engine="record", **options)


@pytest.mark.parametrize("body", BODIES.values(), ids=list(BODIES))
def test_one_cta_of_many_differs(body: str) -> None:
    report = _launch(body, ODD)
    (kernel,) = report.kernels
    assert (kernel.engine, kernel.ctas, kernel.histories) == ("record", CTAS, 2)
    assert report.findings
    assert {finding.ctas for finding in report.findings} == {1}
    assert {access.block for finding in report.findings for access in finding.pair} == {(ODD, 0, 0)}


COPY = """
extern "C" __global__ void kernel(float4* x, int odd) {
    __shared__ alignas(16) float4 tile[64];
    int t = threadIdx.x, i = blockIdx.x * 64 + t;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"((unsigned)__cvta_generic_to_shared(tile + t)), "l"(x + i) : "memory");
    asm volatile("cp.async.commit_group;" ::: "memory");
    BEFORE
    x[i + (blockIdx.x == odd ? 0 : CTAS * 64)] = make_float4(0, 0, 0, 0);
    asm volatile("cp.async.wait_group 0;" ::: "memory");
}
"""


def _copy(before: str, **options: Any) -> Any:
    kernel = consan.Kernel(COPY.replace("CTAS", "20").replace("BEFORE", before), entry="kernel", arch="sm_80")
    x = np.zeros(2 * 20 * 64 * 4, np.float32)
    return consan.launch(kernel, 20, 64, [x, np.int32(7)], device="cpu", engine="record", **options)


def test_the_cta_that_overwrites_the_source_of_a_copy_is_named() -> None:
    report = _copy("")
    assert (report.kernels[0].engine, report.kernels[0].histories, report.verdict) == ("record", 1, "violations")
    assert {(finding.kind, finding.ctas) for finding in report.findings} == {("missing-wait", 1)}
    assert {access.block for finding in report.findings for access in finding.pair} == {(7, 0, 0)}


def test_where_no_copy_is_in_flight_they_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    replayed = []
    monkeypatch.setattr(recorder, "replay", lambda *given, **how: replayed.append(1) or replay(*given, **how))
    assert _copy('asm volatile("cp.async.wait_group 0;" ::: "memory"); __syncthreads();').verdict == "clean"
    assert len(replayed) == 2


def test_equal_ctas_are_one_history() -> None:
    report = _launch(BODIES["one lane"], -1)
    assert (report.verdict, report.kernels[0].ctas, report.kernels[0].histories) == ("clean", CTAS, 1)
    assert f"{CTAS} CTAs in 1 launch of 1 kernel, 1 distinct history replayed" in consan.reports.render(report, details=True)


def test_exhaustive_replays_each_cta(monkeypatch: pytest.MonkeyPatch) -> None:
    replayed = []
    monkeypatch.setattr(recorder, "replay", lambda *given, **how: replayed.append(1) or replay(*given, **how))
    report = _launch(BODIES["one lane"], ODD, exhaustive=True)
    assert len(replayed) > CTAS  # each once, and the odd one in the other order too
    assert {finding.ctas for finding in report.findings} == {1}


@pytest.mark.parametrize(("sample", "verdict"), [(3, "incomplete"), (CTAS, "violations")])
def test_a_sample_leaves_out_what_no_cta_of_it_did(sample: int, verdict: str) -> None:
    """CTA 217 alone has the race: a sample of 3 takes the CTAs 0, 100 and 200."""
    report = _launch(BODIES["one lane"], ODD, sample=sample, global_memory="off")
    assert (report.verdict, report.kernels[0].histories) == (verdict, 1 + (sample == CTAS))
    told = ["kernel: 1 CTA did what no CTA of the sample did: not checked (--sample 3)"] if sample == 3 else []
    assert list(report.incomplete) == told


def test_a_sample_of_equal_ctas_is_clean() -> None:
    report = _launch(BODIES["one lane"], -1, sample=2, global_memory="off")
    assert (report.verdict, report.kernels[0].ctas, report.kernels[0].histories) == ("clean", CTAS, 1)


@pytest.mark.parametrize(("sample", "found"), [(2, ()), (14, ("missing-wait",))])
def test_global_memory_is_compared_in_the_sample(sample: int, found: tuple[str, ...]) -> None:
    """The source of the copy that CTA 7 overwrites is in global memory. A sample of 2 takes CTAs 0 and 10, one of 14 takes CTA 7."""
    report = _copy("", sample=sample)
    assert tuple(finding.kind for finding in report.findings) == found
    assert _coverage(report) == f"sampled ({sample} of 20)"
    compared = f"{sample} of the 20 CTAs of a launch were compared, as --sample asks"
    assert report.not_checked == (f"global-memory: races are not looked for in kernel: {compared}",)
    assert "global-memory" not in report.checked


@pytest.mark.parametrize("sample", [1, 3, 8])
def test_a_race_of_ctas_in_global_memory_is_found_in_a_sample(sample: int) -> None:
    """A single CTA would meet no other."""
    code = 'extern "C" __global__ void kernel(int* out) { out[threadIdx.x] = blockIdx.x; }'
    made = consan.Kernel(code, entry="kernel", arch="sm_80")
    report = consan.launch(made, 8, 32, [np.zeros(32, np.int32)], device="cpu", engine="record", sample=sample)
    assert (report.verdict, [finding.kind for finding in report.findings]) == ("violations", ["global-race"])
    assert _coverage(report) == ("checked" if sample == 8 else f"sampled ({max(sample, 2)} of 8)")


def test_a_launch_whose_ctas_wait_for_one_another_is_replayed_whole() -> None:
    code = """extern "C" __global__ void kernel(unsigned* x) {
        if (threadIdx.x) return;
        x[1 + blockIdx.x] = 1;
        __threadfence();
        if (atomicAdd(x, 1) == gridDim.x - 1) { __threadfence(); for (int i = 0; i < gridDim.x; ++i) x[1 + i] += 1; }
    }"""
    made = consan.Kernel(code, entry="kernel", arch="sm_80")
    report = consan.launch(made, 8, 32, [np.zeros(9, np.uint32)], device="cpu", engine="record", sample=2)
    assert (report.verdict, _coverage(report)) == ("clean", "checked")


def _coverage(report: Any) -> str:
    (kernel,) = json.loads(report.to_json())["kernels"]
    return str(kernel["coverage"]["global-memory"])


@pytest.mark.parametrize("given", [{"sample": 0}, {"sample": 2, "exhaustive": True}, {"sample": 2, "global_memory": "on"}], ids=str)
def test_samples_that_make_no_sense(given: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="sample"):
        Session(SessionOptions.of({"device": "cpu", "engine": "auto", **given}))


def test_a_launch_that_brings_nothing_new_is_not_replayed(monkeypatch: pytest.MonkeyPatch) -> None:
    session = Session(SessionOptions(device="cpu", engine="record"))
    kernel = consan.Kernel(SOURCE.replace("BODY", "tile[t] = 1; sum = tile[63 - t];"), entry="kernel", arch="sm_80")
    prepared, out = session.prepare(kernel.ptx), session.backend.alloc(4 * CTAS * THREADS)
    values = [out.to_bytes(8, "little"), bytes(4)]
    session.launch(prepared, "kernel", (CTAS, 1, 1), (THREADS, 1, 1), values)
    monkeypatch.setattr(recorder, "replay", None)
    session.launch(prepared, "kernel", (CTAS // 2, 1, 1), (THREADS, 1, 1), values)
    report = session.report()
    (summary,) = report.kernels
    assert (summary.launches, summary.ctas, summary.histories) == (2, CTAS + CTAS // 2, 1)
    assert {finding.count for finding in report.findings} == {THREADS * (CTAS + CTAS // 2)}


def test_stored_values_make_no_history() -> None:
    report = _launch("tile[t] = blockIdx.x; sum = tile[t];", -1)
    assert (report.verdict, report.kernels[0].histories) == ("clean", 1)


def test_counts_speak_for_all_ctas() -> None:
    report = _launch("tile[t] = 1; sum = tile[63 - t];", -1)
    assert {finding.ctas for finding in report.findings} == {CTAS}


def _hashes(words: list[int]) -> tuple[int, int]:
    """The two mixers of a thread, as instrument/record/text/text.py writes them."""
    most, first, second = (1 << 64) - 1, 1, 2
    for word in words:
        first = (first * text.MULTIPLIER_1 + word) & most
        second = ((second & 0xFFFFFFFF) ^ word) * text.MULTIPLIER_2 + (second >> 32)
    return first, second


@pytest.mark.parametrize("mixer", [0, 1])
def test_words_that_flip_the_same_bit_do_not_cancel(mixer: int) -> None:
    words = [0] * 12
    seen = {_hashes(words)[mixer]}
    for bit in range(32):
        for first, second in itertools.combinations(range(len(words)), 2):
            changed = [word ^ (1 << bit) * (place in (first, second)) for place, word in enumerate(words)]
            seen.add(_hashes(changed)[mixer])
    assert len(seen) == 1 + 32 * 66


@pytest.mark.parametrize("change", ["swap", "bit"])
def test_hashes_of_threads_are_mixed_with_their_numbers(change: str) -> None:
    hashes = np.random.default_rng(0).integers(1, 1 << 63, (2, 1, THREADS), dtype=np.uint64).repeat(2, axis=1)
    clusters = np.array([[0], [1]])
    assert len(grouped(sums_of(hashes), clusters).groups) == 1
    if change == "swap":
        hashes[:, 1, [3, 4]] = hashes[:, 1, [4, 3]]
    else:
        hashes[0, 1, 7] ^= np.uint64(1 << 63)
        hashes[0, 1, 8] ^= np.uint64(1 << 63)
    assert len(grouped(sums_of(hashes), clusters).groups) == 2


@pytest.mark.parametrize("ctas", [3, CTAS])
def test_a_log_without_room_is_incomplete_where_fewer_ctas_have_none_either(ctas: int) -> None:
    loop = '_Pragma("unroll 1") for (int i = 0; i < 60; ++i) atomicAdd(&tile[(t + i) & 63], i);'
    report = _launch(loop, -1, trace_memory=ctas * 2 * 128 * 100)
    assert report.verdict == ("incomplete" if ctas == 3 else "clean")
    assert ("ran out of room" in " ".join(report.incomplete)) is (ctas == 3)


@pytest.mark.parametrize(
    ("status", "why"),
    [
        (Status.STUCK, "could not be replayed to their end"),
        (Status.CORRUPT, "left a log that does not fit the kernel"),
        (Status.TOO_MANY, "had more findings than are kept"),
        (Status.SEAL_FAILED, "met at barriers in another way"),
    ],
)
def test_a_replay_that_cannot_go_on_is_incomplete(status: Status, why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorder, "replay", lambda *given, **how: replace(replay(*given, **how), status=status))
    report = _launch(BODIES["one lane"], -1)
    assert report.verdict == "incomplete"
    (line,) = report.incomplete
    assert f"kernel: {CTAS} CTAs {why}" in line


def test_a_launch_beyond_the_trace_memory_is_not_recorded_and_says_so() -> None:
    report = _launch("tile[t] = 1;", -1, trace_memory=1 << 10)
    assert ({kernel.engine for kernel in report.kernels if kernel.launches}, report.verdict) == ({"record"}, "incomplete")
    assert "could not be recorded" in " ".join(report.incomplete)
    assert "trace memory" in " ".join(report.incomplete)


@pytest.mark.parametrize("polls", [True, False])
def test_the_reason_is_the_room_that_a_user_has_given(polls: bool) -> None:
    """A module that polls memory is not recorded without global memory either: that is not why it is not recorded."""
    loop = "while (!*(volatile int*)(out + 1)) {}" if polls else ""
    source = f'extern "C" __global__ void kernel(int* out) {{ if (threadIdx.x) {{ {loop} return; }} atomicExch(out + 1, 1); }}'
    kernel = consan.Kernel(source, entry="kernel", arch="sm_80")
    report = consan.launch(kernel, 2, 64, [np.zeros(2, np.int32)], device="cpu", trace_memory=1 << 10)
    said = " ".join(report.incomplete)
    assert f"2 CTAs of 64 threads do not fit the trace memory ({SMALLER}); --engine inline checks it with called hooks" in said
    assert "polls" not in said


@pytest.mark.parametrize("before_its_end", range(1, 9))
def test_a_full_log_across_a_multiple_of_4_gib(monkeypatch: pytest.MonkeyPatch, before_its_end: int) -> None:
    """The limit of a log is the lower half of an address; a cursor past the multiple has another upper half than the limit."""
    room, boundary = 100 * text.LINE_BYTES, 1 << 32
    reserve, places = Arena.reserve_separate, list[int]()

    def across(self: Arena, nbytes: int, align: int = 256) -> int:
        if nbytes != room or places:
            return reserve(self, nbytes, align)
        places.append(boundary - nbytes + before_its_end * text.LINE_BYTES)
        start, size = self._free.pop()
        self._free += [(start, places[0] - start), (places[0] + nbytes, start + size - places[0] - nbytes)]
        self._reserved[places[0]] = nbytes
        return places[0]

    monkeypatch.setattr(Arena, "reserve_separate", across)
    loop = '_Pragma("unroll 1") for (int i = 0; i < 60; ++i) atomicAdd(&tile[(t + i) & 63], i);'
    kernel = consan.Kernel(SOURCE.replace("BODY", loop), entry="kernel", arch="sm_80")
    out = np.zeros(THREADS, np.int32)
    report = consan.launch(kernel, 1, 32, [out, np.int32(-1)], device="cpu", engine="record", trace_memory=room)
    assert places
    assert report.verdict == "incomplete"
    assert "ran out of room" in " ".join(report.incomplete)
