"""Launches of different ranks that wait for each other by flags in memory (R-RK8): each pair with its faults.

Ranks run one after the other here. What another rank stores into a flag, the test stores before the launch that waits for it.
"""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest
import test_other_contexts as gpus
from planted import Plant, break_checker, plant, quick
from test_processes import Clock, Rank, compared

from consan.checker.compiled import replay
from consan.checker.judging import grid
from consan.session.comparing import peer_flags, process_log
from consan.session.comparing.pairs import flagged_launches
from consan.toolchain.nvrtc import compile_ptx

KERNELS = """
#define FLAG (out + 384)
__device__ unsigned acquired(unsigned *flag) {
    unsigned seen;
    asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(seen) : "l"(flag) : "memory");
    return seen;
}
__device__ void release(unsigned *flag, unsigned value) {
    asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(flag), "r"(value) : "memory");
}
__device__ unsigned own() { return blockIdx.x * blockDim.x + threadIdx.x; }
__device__ void put(unsigned *out) { out[own()] = 1; }
__device__ void take(unsigned *out, unsigned *from) { from[own()] = out[own()]; }
__device__ void raise(unsigned *flag, unsigned value) { if (!threadIdx.x) release(flag, value); }
__device__ void await(unsigned *flag, unsigned value) { if (!threadIdx.x) while (acquired(flag) != value) { } __syncthreads(); }
extern "C" __global__ void raises(unsigned* out, unsigned* from, int value) { put(out); __syncthreads(); raise(FLAG + blockIdx.x, value); }
extern "C" __global__ void raises_early(unsigned* out, unsigned* from, int value) { raise(FLAG + blockIdx.x, value); put(out); }
extern "C" __global__ void raises_alone(unsigned* out, unsigned* from, int value) { put(out); raise(FLAG + blockIdx.x, value); }
extern "C" __global__ void raises_often(unsigned* out, unsigned* from, int value) {
    put(out);
    __syncthreads();
    for (int each = 1; each <= value; ++each) raise(FLAG + blockIdx.x, each);
}
extern "C" __global__ void fences(unsigned* out, unsigned* from, int value) {
    put(out);
    __syncthreads();
    if (threadIdx.x) return;
    __threadfence_system();
    asm volatile("st.relaxed.sys.global.u32 [%0], %1;" ::"l"(FLAG + blockIdx.x), "r"(value) : "memory");
}
extern "C" __global__ void fences_in_gpu(unsigned* out, unsigned* from, int value) {
    put(out);
    __syncthreads();
    if (threadIdx.x) return;
    __threadfence();
    asm volatile("st.relaxed.sys.global.u32 [%0], %1;" ::"l"(FLAG + blockIdx.x), "r"(value) : "memory");
}
extern "C" __global__ void raises_in_gpu(unsigned* out, unsigned* from, int value) {
    put(out);
    __syncthreads();
    if (!threadIdx.x) asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(FLAG + blockIdx.x), "r"(value) : "memory");
}
extern "C" __global__ void awaits_in_gpu(unsigned* out, unsigned* from, int value) {
    unsigned seen = 0;
    if (!threadIdx.x)
        while (seen != value) asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(FLAG + blockIdx.x) : "memory");
    __syncthreads();
    take(out, from);
}
extern "C" __global__ void relaxes(unsigned* out, unsigned* from, int value) {
    if (threadIdx.x == 1) __threadfence_system();  // of another thread, and too early
    put(out);
    __syncthreads();
    if (!threadIdx.x) asm volatile("st.relaxed.sys.global.u32 [%0], %1;" ::"l"(FLAG + blockIdx.x), "r"(value) : "memory");
}
extern "C" __global__ void all_fence(unsigned* out, unsigned* from, int value) {
    put(out);
    __threadfence_system();
    __syncthreads();
    if (!threadIdx.x) asm volatile("st.relaxed.sys.global.u32 [%0], %1;" ::"l"(FLAG + blockIdx.x), "r"(value) : "memory");
}
extern "C" __global__ void fences_beside(unsigned* out, unsigned* from, int value) {
    put(out);
    __threadfence_system();  // no barrier: those of other threads may come after the flag
    if (threadIdx.x == blockDim.x - 1) asm volatile("st.relaxed.sys.global.u32 [%0], %1;" ::"l"(FLAG + blockIdx.x), "r"(value) : "memory");
}
extern "C" __global__ void awaits_and_all_fence(unsigned* out, unsigned* from, int value) {
    unsigned seen = 0;
    if (!threadIdx.x)
        while (seen != value) asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(seen) : "l"(FLAG + blockIdx.x) : "memory");
    __syncthreads();
    __threadfence_system();
    take(out, from);
}
extern "C" __global__ void awaits(unsigned* out, unsigned* from, int value) { await(FLAG + blockIdx.x, value); take(out, from); }
extern "C" __global__ void awaits_behind(unsigned* out, unsigned* from, int value) { take(out, from); await(FLAG + blockIdx.x, value); }
extern "C" __global__ void awaits_other(unsigned* out, unsigned* from, int value) { await(FLAG + 1 - blockIdx.x, value); take(out, from); }
extern "C" __global__ void awaits_relaxed(unsigned* out, unsigned* from, int value) {
    unsigned seen = 0;
    while (seen != value) asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(seen) : "l"(FLAG + blockIdx.x) : "memory");
    if (value < 0) __threadfence_system();
    __syncthreads();
    take(out, from);
}
extern "C" __global__ void awaits_and_fences(unsigned* out, unsigned* from, int value) {
    unsigned seen = 0;
    if (!threadIdx.x) {
        while (seen != value) asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(seen) : "l"(FLAG + blockIdx.x) : "memory");
        __threadfence_system();
    }
    __syncthreads();
    take(out, from);
}
extern "C" __global__ void hands_on(unsigned* out, unsigned* from, int value) {
    await(FLAG + blockIdx.x, value);
    raise(FLAG + 2 + blockIdx.x, value);
}
extern "C" __global__ void awaits_second(unsigned* out, unsigned* from, int value) { await(FLAG + 2 + blockIdx.x, value); take(out, from); }
__device__ void exchange(unsigned *out, int value) {
    raise(FLAG + 2 * (value & 1) + blockIdx.x, value >> 1);
    await(FLAG + 2 * (1 - (value & 1)) + blockIdx.x, value >> 1);
}
extern "C" __global__ void exchanges(unsigned* out, unsigned* from, int value) {
    out[128 * (value & 1) + own()] = value;
    __syncthreads();
    exchange(out, value);
    from[own()] = out[128 * (1 - (value & 1)) + own()];
}
extern "C" __global__ void exchanges_first(unsigned* out, unsigned* from, int value) {
    exchange(out, value);
    out[128 * (value & 1) + own()] = value;
}
extern "C" __global__ void awaits_second_and_looks(unsigned* out, unsigned* from, int value) {
    await(FLAG + 2 + blockIdx.x, value);
    take(out, from);
    if (!threadIdx.x) from[own()] += acquired(FLAG + blockIdx.x);
}
extern "C" __global__ void looks(unsigned* out, unsigned* from, int value) {
    __shared__ unsigned seen;
    if (!threadIdx.x) seen = acquired(FLAG + blockIdx.x);
    __syncthreads();
    if (seen == value) take(out, from);
}
extern "C" __global__ void takes(unsigned* out, unsigned* from, int value) { take(out, from); }
extern "C" __global__ void swaps(unsigned* out, unsigned* from, int value) {
    put(out);
    __syncthreads();
    if (!threadIdx.x) {
        __threadfence_system();
        while (atomicCAS_system(FLAG + blockIdx.x, 0, 1)) { }
    }
}
extern "C" __global__ void swaps_back(unsigned* out, unsigned* from, int value) {
    if (!threadIdx.x) {
        while (atomicCAS_system(FLAG + blockIdx.x, 1, 0) != 1) { }
        __threadfence_system();
    }
    __syncthreads();
    take(out, from);
}
"""


def only(*entries: str) -> str:
    """The source with these kernels alone: a session prepares all of a module."""
    parts = re.split(r'^(?=extern "C"|__device__)', KERNELS, flags=re.MULTILINE)
    return "".join(part for part in parts if not part.startswith("extern") or re.findall(r"(\w+)\(unsigned", part)[0] in entries)


class Member(Rank):
    """A rank with these kernels. `holds`: what the flags have before a launch."""

    def __init__(self, rank: int, clock: Clock, kernels: str = KERNELS) -> None:
        super().__init__(rank, clock, kernels)

    def made(self, entry: str, *, holds: int = 0, value: int = 1, at: float = 0) -> None:
        flags = holds.to_bytes(4, "little") * 4
        self.framework.backend.write(self.framework.out + 384 * 4, flags)
        self.launch(entry, value, at=at)


@pytest.fixture
def members(monkeypatch: pytest.MonkeyPatch) -> list[Member]:
    monkeypatch.setattr(process_log, "now", clock := Clock())
    return [Member(rank, clock) for rank in range(2)]


def judged(members: list[Member], folder: Path) -> tuple[list[str], list[str]]:
    """The hazards and the reasons."""
    findings, reasons = compared(members, folder)  # type: ignore[arg-type]
    return [finding.hazard for finding in findings], [reason.rpartition("and ")[2] for reason in reasons]


FENCES_OF_ALL = quick("peer_order.hpp", "is_before(at / threads_, each.thread, each.time, access.cluster, access.thread)", "true")
NUMBERS_OF_RELEASES = quick("peer_order.hpp", "covers(releases_[number - 1], row, time)", "covers(releases_[(number - 1) & 31], row, time)")
ONE_PARAMETER = (", unsigned* from, int value) {", ") { unsigned *from = out + 192; int value = 1;")
LATER = 0.05  # behind the begin of a launch of another rank, and before its end
UNCERTAIN = "they may synchronise through memory: they were not judged"
PAIRS = {
    ("raises", "awaits"): [],
    ("fences", "awaits"): [],
    ("raises", "awaits_and_fences"): [],
    ("swaps", "swaps_back"): [],
    ("all_fence", "awaits"): [],
    ("all_fence", "awaits_and_all_fence"): [],
    ("fences_in_gpu", "awaits"): ["RAW"],
    ("raises_in_gpu", "awaits"): ["RAW", "RAW"],  # the flag, too
    ("raises", "awaits_in_gpu"): ["RAW", "RAW"],
    ("raises_early", "awaits"): ["RAW"],
    ("relaxes", "awaits"): ["RAW"],
    ("fences_beside", "awaits"): ["RAW"],
    ("raises_alone", "awaits"): ["RAW"],
    ("raises", "looks"): [],
    ("raises_early", "looks"): ["RAW"],
    ("raises", "awaits_behind"): ["RAW"],
    ("raises", "awaits_other"): ["RAW"],
    ("raises", "awaits_relaxed"): ["RAW"],
}


@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_two_launches(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, pair: tuple[str, str]) -> None:
    monkeypatch.setattr(process_log, "now", clock := Clock())
    members = [Member(rank, clock, only(*pair)) for rank in range(2)]
    members[0].made(pair[0])
    members[1].made(pair[1], holds=1)
    assert judged(members, tmp_path) == (PAIRS[pair], [])


def test_a_later_launch_is_behind_the_flag(members: list[Member], tmp_path: Path) -> None:
    members[0].made("raises")
    members[1].made("hands_on", holds=1)
    members[1].launch("takes")
    assert judged(members, tmp_path) == ([], [])


def test_flags_that_are_used_again(members: list[Member], tmp_path: Path) -> None:
    """The second wait cannot have read the first value: that was taken."""
    for _ in range(2):
        members[0].made("swaps")
        members[1].made("swaps_back", holds=1)
    hazards, _ = judged(members, tmp_path)
    assert hazards == ["RAW"]  # the second round writes while the first one may read: nothing signals back


def rounds(members: list[Member], *kernels: str) -> None:
    """Rounds in which each rank signals the other one; the value of a flag is that of the round."""
    for number, kernel in enumerate(kernels, 1):
        for rank, member in enumerate(members):
            member.made(kernel, holds=number, value=2 * number + rank)


@pytest.mark.parametrize(("second", "hazards"), [("exchanges", {"RAW", "WAR"}), ("exchanges_first", set())])
def test_the_second_round_writes_what_the_first_one_reads(members: list[Member], tmp_path: Path, second: str, hazards: set[str]) -> None:
    """A barrier at the begin alone: the other rank's signal of the second round comes behind its reads, but also behind the store."""
    rounds(members, "exchanges", second)
    found, reasons = judged(members, tmp_path)
    assert (set(found), reasons) == (hazards, [])


def handed_on(members: list[Member], last: str) -> None:
    """A third rank waits for a signal of the second one."""
    for rank, entry in enumerate(("raises", "hands_on", last)):
        members[rank].made(entry, holds=min(rank, 1))


def test_a_fault_in_what_may_be_ordered(members: list[Member], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, peer_flags, "bool(self._may[ends] & begins)", "bool(self._may[ends])")
    rounds(members, "exchanges", "exchanges")
    assert UNCERTAIN in judged(members, tmp_path)[1]


def test_a_fault_in_the_ways_by_a_third(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(process_log, "now", clock := Clock())
    plant(monkeypatch, peer_flags, "new = {edge.second for edge in more} - reached", "new = set()")
    handed_on(members := [Member(rank, clock) for rank in range(3)], "awaits_second_and_looks")
    assert judged(members, tmp_path) == (["RAW"], [])


def test_a_value_that_two_launches_have_stored(members: list[Member], tmp_path: Path) -> None:
    for _ in range(2):
        members[0].made("raises")
    members[1].made("awaits", holds=1)
    hazards, reasons = judged(members, tmp_path)
    assert (set(hazards), set(reasons)) <= ({"WAR"}, {UNCERTAIN})
    assert UNCERTAIN in reasons


@pytest.mark.parametrize("last", ["awaits_second", "awaits_second_and_looks"])
def test_a_signal_that_is_handed_on_is_no_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, last: str) -> None:
    monkeypatch.setattr(process_log, "now", clock := Clock())
    handed_on(members := [Member(rank, clock) for rank in range(3)], last)
    assert judged(members, tmp_path) == ([], [UNCERTAIN])


@pytest.mark.parametrize(("second", "hazards"), [("awaits", []), ("awaits_behind", ["RAW"]), ("awaits_other", ["RAW"])])
def test_a_launch_with_many_releases(members: list[Member], tmp_path: Path, second: str, hazards: list[str]) -> None:
    """Two CTAs release 40 times each."""
    members[0].made("raises_often", value=40)
    members[1].made(second, holds=40, value=40)
    assert judged(members, tmp_path) == (hazards, [])


@pytest.mark.parametrize("limit", ["MOST_PEER_FLAGS", "MOST_PEER_WORDS"])
def test_more_releases_than_there_is_room_for(members: list[Member], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str) -> None:
    monkeypatch.setattr(grid, limit, 8)
    members[0].made("raises_often", value=40)
    members[1].made("awaits", holds=40, value=40)
    assert judged(members, tmp_path) == ([], [UNCERTAIN])


@pytest.mark.parametrize("pair", [("raises", "looks"), ("raises_early", "looks")], ids="-".join)
def test_two_gpus_of_one_process(monkeypatch: pytest.MonkeyPatch, pair: tuple[str, str]) -> None:
    process = gpus.Process(monkeypatch)
    process.text = compile_ptx(KERNELS.replace(*ONE_PARAMETER), arch="sm_90a").ptx
    process.calls.call("cuCtxEnablePeerAccess", context=2)
    streams = process.calls.given("cuStreamCreate", 1), process.calls.given("cuStreamCreate", 1, context=2)
    process.backends[2].write(process.shared + 384 * 4, (1).to_bytes(4, "little") * 2)
    for number, entry in enumerate(pair):
        process.launch(entry, number + 1, stream=streams[number], at=process.shared, peer=number == 1)
    report = process.report()
    assert [finding.hazard for finding in report.findings] == PAIRS[pair], report.incomplete
    assert report.verdict == ("violations" if PAIRS[pair] else "clean"), report.incomplete


@pytest.mark.slow  # it compiles the checker
@pytest.mark.parametrize(
    ("decision", "holds"), [("Edge::PEER_ACQUIRE", False), ("Edge::PEER_RELEASE", False), ("Edge::PEER_RELEASE", True)]
)
def test_a_fault_in_the_checker(
    members: list[Member], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, decision: str, *, holds: bool
) -> None:
    Plant(monkeypatch, (replay, grid)).decides(decision, holds)
    pair = ("relaxes", "awaits") if holds else ("raises", "awaits")
    members[0].made(pair[0])
    members[1].made(pair[1], holds=1)
    assert judged(members, tmp_path) != (PAIRS[pair], [])


@pytest.mark.slow  # it compiles the checker
def test_a_fault_in_the_fences_of_other_threads(members: list[Member], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    break_checker(monkeypatch, tmp_path, (replay, grid), *FENCES_OF_ALL)
    members[0].made("fences_beside")
    members[1].made("awaits", holds=1)
    assert judged(members, tmp_path) == ([], [])


@pytest.mark.slow  # it compiles the checker
def test_a_fault_in_the_numbers_of_releases(members: list[Member], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    break_checker(monkeypatch, tmp_path, (replay, grid), *NUMBERS_OF_RELEASES)
    members[0].made("raises_often", value=40)
    members[1].made("awaits", holds=40, value=40)
    assert judged(members, tmp_path) != ([], [])


# By fault of the comparison: the text, what comes in its place, and a pair whose report differs then.
MUTANTS = {
    "the releases behind an access": ("if ends >> release & 1", "if True", ("raises_early", "awaits")),
    "the acquires before an access": ("bool(self._reached[ends] & begins)", "bool(self._reached[ends])", ("raises", "awaits_behind")),
    "the place of a flag": ("return self.address, self.bytes", "return 0, 0", ("raises", "awaits_other")),
    "a value": ("value not in (None, access.old)", "False", ("raises", "awaits")),
    "who may have waited": ("any(flags.may_be_waited_for", "any(False and flags.may_be_waited_for", ("raises", "takes")),
    "who has waited with a narrow scope": ("or _touch(reads, place)", "", ("raises", "awaits_in_gpu")),
}


@pytest.mark.parametrize("mutant", [pytest.param(each, marks=pytest.mark.slow if number else ()) for number, each in enumerate(MUTANTS)])
def test_a_fault_in_the_comparison(members: list[Member], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mutant: str) -> None:
    old, new, pair = MUTANTS[mutant]
    plant(monkeypatch, flagged_launches if old in inspect.getsource(flagged_launches) else peer_flags, old, new)
    members[0].made(pair[0])
    members[1].made(pair[1], holds=1, at=LATER)
    assert judged(members, tmp_path) != (PAIRS.get(pair, []), [] if pair in PAIRS else [UNCERTAIN])
