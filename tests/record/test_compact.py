"""Compact logs: the host computes of them what full logs hold, word for word, and CTAs are equal by the one if they are by the other."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from compact_support import Hangs, Work, compared, is_steady, of_twin, random_programs
from oracle_strategies import OF_GRIDS, STRATEGIES
from test_deduplication import BODIES, SOURCE

import consan
from consan.backends.cpu.engine.code import BoundBlock
from consan.backends.virtual import VirtualBackend
from consan.checker.compiled.layouts import Status
from consan.checker.compiled.replay import replay
from consan.checker.logs import expand
from consan.checker.logs.expand import VirtualExpander, begin
from consan.checker.logs.launch import NotExpanded
from consan.checker.logs.memory import LogMemory
from consan.checker.logs.program import LogProgram
from consan.instrument.record import rewrite
from consan.instrument.record.analyses import computed
from consan.instrument.record.analyses.computed import Computability, Computed
from consan.instrument.record.text import expansion, words
from consan.instrument.record.text.templates import LEFT, LINE_BYTES

TAKEN = (Path(__file__).parent / "recorded.txt").read_text().split()
# These call recorded functions.
FULL = ("exchange_in_functions", "barrier_in_function", "divergent_syncwarp_in_function", "generic_pointer", "lanes_exit_between_calls")
BY_TEXT = ("reduction_last_levels",)  # with its fault it stores what the schedule says, and schedules count instructions
OTHERS = ("divergent_stmatrix",)  # a value that is not known is told apart by addresses of the log
NAMES = ("war_loop", "block_scan", "cp_async_off_by_one", "mbarrier_pipeline", "bulk_results", "tensor_results", "wgmma_tma_ring")
NAMES += ("converged_elect", "cluster_ring_8", "cluster_gemm_2x2", "early_exit_lanes", "block_3d")
CTAS, ODD = 12, 7
STORE = "st.global.u32 [%__consan_c+"


@pytest.mark.parametrize("name", NAMES)
def test_kernels(name: str) -> None:
    assert compared(of_twin(name)) == ""


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", [name for name in TAKEN if name not in OTHERS])
def test_every_kernel(name: str) -> None:
    wanted = "full" if name in FULL else ""
    assert compared(of_twin(name)) == wanted
    with contextlib.suppress(Hangs):
        racy = of_twin(name, racy=name not in BY_TEXT, seed=3)
        assert compared(racy) == wanted or not is_steady(racy)


def work_with(body: str, odd: int = ODD, *, global_races: bool = False, source: str = SOURCE) -> Work:
    kernel = consan.Kernel(source.replace("BODY", body), entry="kernel", arch="sm_80")
    data = np.arange(CTAS * 64, dtype=np.int32) * 7
    return Work(kernel.ptx, "kernel", (CTAS, 1, 1), (64, 1, 1), [data, np.int32(odd)], global_races=global_races)


MORE = {
    "equal CTAs": "tile[t] += 1; sum = tile[63 - t];",
    "the size of the grid": "sum = tile[(t + gridDim.x) & 63];",
    "an address out of memory": "sum = tile[out[blockIdx.x * 64 + t] & 127];",
    "a branch out of memory": "if (out[blockIdx.x * 64 + t] & 4) sum = tile[t]; else tile[t] = 1;",
    "a count out of memory": "for (int i = 0; i < (out[t] & 7); ++i) sum += tile[(t + i) & 127];",
    "a loop that leaves nothing": "int i = out[t]; while (i & 1023) i = i * 5 + 3; sum = i; tile[t] = 1;",
    "ways that meet at a scope": """int i = out[t]; while (i & 1023) i = i * 5 + 3; sum = i;
                      asm volatile("{ .reg .b32 a; mov.b32 a, 1; st.shared.b32 [%0], a; }"
                      :: "r"((unsigned)__cvta_generic_to_shared(tile + t)) : "memory");""",
    "another value": """int i = t; asm volatile("{ .reg .pred p; setp.lt.s32 p, %1, 8; @p ld.global.u32 %0, [%2]; }"
                      : "+r"(i) : "r"(t), "l"(out + t)); sum = tile[i & 127];""",
    "an address of the CTA": "sum = tile[(t + blockIdx.x) & 63];",
    "a choice of two": "int i = t; if (out[t] & 8) i = 127 - t; for (int k = 0; k < 3; ++k) { sum += tile[i]; __syncthreads(); }",
    "lanes that exit": "if (out[t] & 16) return; sum = tile[t];",
    "a lane of another": "int i = __shfl_sync(-1, t, 3); sum = tile[i] + tile[__shfl_sync(-1, out[t], 5) & 127];",
    "a table of branches": "switch (out[t] & 7) { case 0: tile[t] = 1; break; case 1: sum = tile[t]; break; "
    "case 2: sum = tile[t ^ 1]; break; case 3: tile[t + 1] = 3; break; case 4: sum = tile[t] + tile[t + 2]; break; default: sum = 3; }",
    "two addresses out of memory": "tile[out[t] & 127] = 1; __syncthreads(); sum = tile[out[t + 1] & 127];",
    "the number of the CTA": "tile[(t + blockIdx.x) & 63] = 1; for (int i = 0; i < blockIdx.x; ++i) __syncthreads();",
}


@pytest.mark.parametrize("body", [*BODIES.values(), *MORE.values()], ids=[*BODIES, *MORE])
def test_ctas_are_equal_where_full_logs_are(body: str) -> None:
    assert compared(work_with(body)) == ""


@pytest.mark.parametrize("body", [BODIES["one address"], MORE["a branch out of memory"]], ids=["one address", "a branch"])
def test_with_global_memory(body: str) -> None:
    assert compared(work_with(body, global_races=True)) == ""


def test_many_logs_are_computed_at_once() -> None:
    """They are those that each CTA has by itself, also beside one that cannot be computed."""
    work = work_with(MORE["a count out of memory"])
    launch = work.run(work.recorded(compact=True))
    clusters, one_by_one = [3, 0, 7, 8], [launch.histories([cluster])[0].log for cluster in (3, 0, 7, 8)]
    for log, alone in zip(launch.histories(clusters), one_by_one, strict=True):
        assert np.array_equal(log.log[:, : alone.shape[1] - 1], alone[:, :-1])
        assert not log.log[:, alone.shape[1] - 1 :].any()
    expand = launch.expander.expand
    launch.expander.expand = lambda given, ctas: _refuse() if 7 in ctas else expand(given, ctas)
    assert [int(each.log[0, 0, 0]) == LEFT - 1 for each in launch.histories(clusters)] == [False, False, True, False]


BOUNDED = SOURCE.replace("__global__ void", "__global__ void __launch_bounds__(64)")


def by_the_virtual_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """The compiled machine does not execute any text."""
    monkeypatch.setattr(LogProgram, "whole", False)
    monkeypatch.setattr(VirtualExpander, "computed", lambda *_: None)


@pytest.mark.parametrize("compiled", [True, False], ids=["compiled", "virtual"])
def test_texts_that_are_made_ahead_compute_the_same(compiled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Then the first verdict reads or decodes nothing any more, if the text bounds the block."""
    if not compiled:
        by_the_virtual_machine(monkeypatch)
    work = work_with(MORE["a count out of memory"], source=BOUNDED)
    launches = work.run(work.recorded(compact=True)), work.run(recorded := work.recorded(compact=True))
    wanted = launches[0].histories([0])[0].log
    begin(recorded, VirtualBackend)
    assert [task.exception(60) for task in recorded.expansion.ahead] == [None]
    monkeypatch.setattr(expand, "program_of", None)
    monkeypatch.setattr(BoundBlock, "bind", None)
    assert np.array_equal(launches[1].histories([0])[0].log, wanted)


class Dirty(VirtualBackend):
    """A device whose memory is not zeroed."""

    allocates_zeros = False

    def alloc_separate(self, nbytes: int) -> int:
        address = super().alloc_separate(nbytes)
        self.fill(address, 0xA7, nbytes)
        return address


@pytest.mark.parametrize("body", [MORE["a count out of memory"], MORE["a branch out of memory"]], ids=["loop", "no loop"])
def test_a_compact_log_needs_no_cleared_memory(body: str) -> None:
    work = work_with(body)
    recorded = work.recorded(compact=True)
    clean, dirty = work.run(recorded), work.run(recorded, LogMemory(Dirty()))
    clusters = range(CTAS)
    assert [each.log.tolist() for each in dirty.histories(clusters)] == [each.log.tolist() for each in clean.histories(clusters)]


def test_a_text_that_ends_without_ret_stores_no_counts_of_words() -> None:
    """Its log has no room for them, as no loop stores words."""
    work = work_with(MORE["equal CTAs"])
    ended = work.recorded(compact=True)
    head, _, rest = work.ptx.rpartition("ret;")
    falls = replace(work, ptx=head + rest).recorded(compact=True)
    assert falls.kernels[0].compact == ended.kernels[0].compact
    assert falls.ptx.count("st.global") == ended.ptx.count("st.global")


ROUNDS = "for (int i = 0; i < 600; ++i) sum += tile[(out[i] + t) & 127];"


def test_a_full_compact_log_is_told() -> None:
    """The lines of a warp are as few as a loop needs, and lanes go round it often."""
    work = work_with(ROUNDS)
    recorded = work.recorded(compact=True)
    least = 2 * CTAS * max(64, 2 * recorded.blocks.words) * LINE_BYTES
    tables_of = recorded.blocks.tables
    for backend in (VirtualBackend(), Dirty()):
        launch = work.run(recorded, LogMemory(backend), least)
        assert replay(tables_of, launch.histories([0])[0], descending=False).status is Status.FULL
    assert replay(tables_of, work.run(recorded).histories([0])[0], descending=False).status is Status.OK


def _refuse() -> Any:
    raise NotExpanded


POLL = SOURCE.replace(
    "int sum = 0;", "int sum = 0; __shared__ unsigned long long b; unsigned place = (unsigned)__cvta_generic_to_shared(&b);"
)
POLLS = """if (t == 0) asm volatile("mbarrier.init.shared.b64 [%0], 32;" :: "r"(place) : "memory");
__syncthreads();
if (t >= 32) { for (int i = 0; i < 40; ++i) sum += out[i + t]; tile[t] = sum;
    asm volatile("{ .reg .b64 s; mbarrier.arrive.shared.b64 s, [%0]; }" :: "r"(place) : "memory"); }
int n = 0;
asm volatile("{ .reg .pred p; AGAIN: add.s32 %0, %0, 1; mbarrier.test_wait.parity.shared.b64 p, [%1], 0; @!p bra AGAIN; }"
             : "+r"(n) : "r"(place) : "memory");
sum = tile[n & 127];"""


def test_what_failed_polls_count_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    work = work_with(POLLS, source=POLL)
    assert compared(work) == ""
    stored = work.recorded(compact=True).ptx.count(STORE)
    monkeypatch.setattr(Computed, "blur", lambda *_: set())
    assert work.recorded(compact=True).ptx.count(STORE) == stored - 1


PHASE = """.version 8.0
.target sm_90a
.address_size 64
.extern .shared .align 128 .b8 tile[];
.visible .entry phase(.param .u64 out) {
.reg .pred %p<4>; .reg .b32 %r<14>; .reg .b64 %d<4>; .shared .align 8 .b64 full;
mov.u32 %r1, %tid.x; setp.eq.u32 %p1, %r1, 0; mov.u32 %r2, full;
@%p1 mbarrier.init.shared.b64 [%r2], 1; fence.mbarrier_init.release.cluster; bar.sync 0;
@%p1 mbarrier.arrive.shared.b64 _, [%r2];
mov.b32 %r8, 0;
AGAIN: mbarrier.try_wait.parity.shared.b64 %p2, [%r2], %r8; @!%p2 bra AGAIN;
mov.u32 %r3, tile; shr.u32 %r3, %r3, 4; cvt.u64.u32 %d1, %r3; or.b64 %d1, %d1, 4611686293313683456;
mov.b32 %r9, 0; mov.b32 %r10, 0; mov.b32 %r11, 0;
setp.ne.u32 %p3, 0, 0; wgmma.fence.sync.aligned;
wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%r8, %r9, %r10, %r11}, %d1, %d1, %p3, 1, 1, 0, 0;
wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;
ld.param.u64 %d2, [out]; mul.wide.u32 %d3, %r1, 16; add.s64 %d2, %d2, %d3; st.global.v4.b32 [%d2], {%r8, %r9, %r10, %r11};
ret; }
"""
"""The register of the phase is an accumulator, too (LLVM does so in kernels of Pallas)."""


def test_the_phase_of_a_wait_that_has_passed_is_no_input() -> None:
    out = np.zeros(512, np.float32)
    assert compared(Work(PHASE, "phase", (1, 1, 1), (128, 1, 1), (out,), shared=1 << 14, global_races=True)) == ""


def _always(value: Any) -> Callable[[Any], Any]:
    return lambda old: lambda *_, **__: value


def _no_loads(old: Any) -> Any:
    return lambda instruction: () if instruction.parts[0] == "ld" else old(instruction)


def _unhashed(old: Any) -> Any:
    def level(self: Any, *given: Any, **how: Any) -> Computability:
        found: Computability = old(self, *given, **how)
        return Computability.KNOWN if found is Computability.CTA else found

    return level


def _cta_is_known(old: Any) -> Any:
    return frozenset()


def _one_word(old: Any) -> Any:
    return lambda *given: replace(old(*given), most=1)


def _stays(old: Any) -> Any:
    return lambda self, *, late: "" if self.variant is words.TextVariant.COMPACT else old(self, late=late)


# What is replaced in which object, and a launch that shows it. A word that the log lacks is one that the host would know ("loads are
# known"); words of two rounds of a loop are mixed where the cursor stays.
FAULTS: dict[str, tuple[Any, str, Callable[[Any], Any], str]] = {
    "loads are known": (Computed, "is_pure", _always(True), MORE["an address out of memory"]),
    "a redefinition is forgotten": (computed, "written", _no_loads, MORE["another value"]),
    "no branch matters": (Computed, "reach", _always(None), MORE["a branch out of memory"]),
    "a branch is not recorded": (computed.Computed, "decides", _always(frozenset()), MORE["lanes that exit"]),
    "the number of the CTA is known": (computed, "OF_CTA", _cta_is_known, MORE["the number of the CTA"]),
    "words of the CTA are not hashed": (words.Words, "level", _unhashed, MORE["an address of the CTA"]),
    "threads store one word at most": (rewrite, "Compact", _one_word, MORE["two addresses out of memory"]),
    "the cursor stays": (words.Words, "close", _stays, "for (int i = 0; i < (out[t] & 7); ++i) sum += tile[(out[i] + t) & 127];"),
    "branches of the CTA are not hashed": (expansion, "decision", _always(""), BODIES["a branch"]),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_planted_faults(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    owner, attribute, change, body = FAULTS[fault]
    work = work_with(body)
    monkeypatch.setattr(owner, attribute, change(getattr(owner, attribute)))
    assert compared(work) not in ("", "full")


def test_a_thread_counts_its_words_in_loops_only() -> None:
    for body, counts in (
        (MORE["two addresses out of memory"], False),
        (MORE["a count out of memory"], True),
        (MORE["a choice of two"], False),
    ):
        (kernel,) = work_with(body).recorded(compact=True).kernels
        assert kernel.compact is not None
        assert (kernel.compact.stores, kernel.compact.counts) == (True, counts), body


@pytest.mark.parametrize("strategy", ["with_copies", "asynchronous"])
def test_programs(strategy: str) -> None:
    found = random_programs(strategy, 2, 5)
    assert found.compact
    assert found.different == []


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("strategy", [*STRATEGIES, *OF_GRIDS])
def test_many_programs(strategy: str) -> None:
    """1,000 programs of each kind, four in a kernel."""
    found = random_programs(strategy, 250, 7)
    assert found.different == []
    assert found.compact > 50


def test_texts_share_a_machine_and_are_unloaded_with_their_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process has address space for some hundred machines, and programs have more kernels."""
    by_the_virtual_machine(monkeypatch)
    texts = []
    for _ in range(2):
        work = work_with(MORE["a count out of memory"])
        recorded = work.recorded(compact=True)
        work.run(recorded).histories([0])
        assert recorded.expansion is not None
        texts.append(recorded.expansion.loaded[0])
    assert texts[0][0] is texts[1][0]
    del recorded, work
    gc.collect()
    assert any(module is texts[1][1] for _, module in expand.ENDED)
