"""Device functions are recorded: called in loops, by address and by themselves; those that end threads; and faults planted in a call."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from planted import plant
from record_support import found

import consan
from consan.instrument.record import record
from consan.instrument.record.text import text
from consan.instrument.record.text.templates import LINE_BYTES
from consan.instrument.rewriting import emit

HEAD = """.version 8.0
.target sm_80
.address_size 64
.shared .align 4 .b8 tile[256];
"""
# put(a, v): stores a word. meet(n): a barrier, n times, by itself. leave(): a thread ends here.
FUNCTIONS = """
.func put(.param .b32 to, .param .b32 value)
{
  .reg .b32 %r<3>;
  ld.param.u32 %r1, [to];
  ld.param.u32 %r2, [value];
  st.shared.u32 [%r1], %r2;
  ret;
}
.func meet(.param .b32 n)
{
  .reg .b32 %r<3>;
  .reg .pred %p;
  ld.param.u32 %r1, [n];
  setp.eq.u32 %p, %r1, 0;
  @%p ret;
  bar.sync 0;
  sub.u32 %r2, %r1, 1;
  {
  .param .b32 a;
  st.param.b32 [a], %r2;
  call meet, (a);
  }
  ret;
}
.func leave()
{
  exit;
}
.visible .global .align 8 .u64 table[1] = {put};
"""
# Thread t writes word t ROUNDS times; then, behind a BARRIER, half of the threads leave and the others read the word of the next one.
KERNEL = """
.visible .entry k(.param .u64 out)
{
  .reg .pred %p<4>;
  .reg .b32 %r<12>;
  .reg .b64 %rd<6>;
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, tile;
  shl.b32 %r3, %r1, 2;
  add.u32 %r4, %r2, %r3;
  mov.u32 %r5, 0;
again:
  {
  .param .b32 a;
  .param .b32 b;
  st.param.b32 [a], %r4;
  st.param.b32 [b], %r5;
  PUT
  }
  add.u32 %r5, %r5, 1;
  setp.lt.u32 %p1, %r5, ROUNDS;
  @%p1 bra again;
  BARRIER
  setp.ge.u32 %p2, %r1, 32;
  @%p2 call leave;
  ld.shared.u32 %r6, [%r4+4];
  ld.param.u64 %rd1, [out];
  mul.wide.u32 %rd2, %r1, 4;
  add.u64 %rd3, %rd1, %rd2;
  st.global.u32 [%rd3], %r6;
  ret;
}
"""
DIRECT = "call put, (a, b);"
BY_ADDRESS = "ld.global.u64 %rd5, [table]; kind : .callprototype _ (.param .b32 _, .param .b32 _); call %rd5, (a, b), kind;"
MEET = "{ .param .b32 n; st.param.b32 [n], 2; call meet, (n); }"


def _ptx(put: str, barrier: str, rounds: int = 4) -> str:
    return HEAD + FUNCTIONS + KERNEL.replace("PUT", put).replace("BARRIER", barrier).replace("ROUNDS", str(rounds))


def _launch(ptx: str, engine: str = "record", **options: Any) -> tuple[Any, Any]:
    out = np.zeros(64, np.int32)
    return consan.launch(consan.Kernel(ptx, entry="k"), 1, 64, [out], device="cpu", engine=engine, **options), out


@pytest.mark.parametrize("put", [DIRECT, BY_ADDRESS], ids=["direct", "by-address"])
def test_both_engines_agree(put: str) -> None:
    for barrier, verdict in (("", "violations"), (MEET, "clean")):
        report, out = _launch(_ptx(put, barrier))
        inline, expected = _launch(_ptx(put, barrier), "inline")
        assert [kernel.engine for kernel in (*report.kernels, *inline.kernels)] == ["record", "inline"]
        assert (report.verdict, inline.verdict, found(report)) == (verdict, verdict, found(inline))
        np.testing.assert_array_equal(out, expected)


# The same function with its parameters in registers.
PUT_OF_REGISTERS = ".func put(.reg .b32 to, .reg .b32 value)\n{\n  st.shared.u32 [to], value;\n  ret;\n}\n.func meet"


def _of_registers(barrier: str) -> str:
    before, _, after = _ptx("call put, (%r4, %r5);", barrier).partition(".func put")
    return before + PUT_OF_REGISTERS + after.partition(".func meet")[2]


@pytest.mark.parametrize(("barrier", "verdict"), [("", "violations"), (MEET, "clean")])
def test_parameters_in_registers(barrier: str, verdict: str) -> None:
    report, _ = _launch(_of_registers(barrier))
    assert (report.verdict, report.incomplete) == (verdict, ())


def test_parameters_are_registers_of_their_function(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fault: only what a block declares is known."""
    plant(monkeypatch, emit, "scope.parameter(name) if found is None else found[0]", "found and found[0]")
    assert _launch(_of_registers(MEET) + "// a fault\n")[0].verdict != "clean"


def test_a_function_that_fills_the_log_is_noticed() -> None:
    """The loop in the kernel has no words of its own."""
    report, _ = _launch(_ptx(DIRECT, MEET, rounds=100), trace_memory=2 * 128 * LINE_BYTES)
    assert report.verdict == "incomplete"
    assert "ran out of room" in " ".join(report.incomplete)


# CTA 1 alone reads, in the function, what its neighbour writes.
ODD = """
__shared__ int tile[64];
__device__ __noinline__ int odd(int i) { return tile[i]; }
extern "C" __global__ void k(int* out) {
    tile[threadIdx.x] = 1;
    out[blockIdx.x * 64 + threadIdx.x] = odd(blockIdx.x == 1 ? threadIdx.x ^ 32 : threadIdx.x);
}
"""


def _outcome(fault: str) -> tuple[Any, ...]:
    ptx = consan.Kernel(ODD, entry="k", arch="sm_80").ptx + f"// {fault}\n"  # modules are kept by their text
    report = consan.launch(consan.Kernel(ptx, entry="k"), 3, 64, [np.zeros(192, np.int32)], device="cpu", engine="record")
    return report.verdict, report.kernels[0].histories, len(report.findings)


@pytest.mark.parametrize(
    "loses",
    ["ld.global.u64 %__consan_h, [%__consan_s+8];\n", "ld.global.u64 %__consan_c, [%__consan_s];\n"],
    ids=["cursor", "hashes"],
)
def test_a_fault_in_what_follows_a_call(loses: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert _outcome("none") == ("violations", 2, 1)
    monkeypatch.setattr(text, "resume", lambda: loses)
    assert _outcome(loses[:40]) != ("violations", 2, 1)


def test_tensor_memory_in_a_function_is_refused() -> None:
    body = "\n{\n  .reg .b32 %r;\n  tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r}, [0];\n  ret;\n}\n"
    kernel = ".visible .entry k()\n{\n  call load;\n  ret;\n}\n"
    text = ".version 8.7\n.target sm_100a\n.address_size 64\n.func load()" + body + kernel
    done = record(text + ".visible .entry alone()\n{\n  bar.sync 0;\n  ret;\n}\n")
    assert list(done.refused) == ["k"]
    assert "in a device function" in done.refused["k"]
    assert "in a device function" in record(text).refusal


def test_what_calls_nothing_recorded_stays_as_it_is() -> None:
    plain = HEAD + ".func pure()\n{\n  ret;\n}\n.visible .entry k()\n{\n  call pure;\n  bar.sync 0;\n  ret;\n}\n"
    done = record(plain)
    assert not done.blocks.calls
    assert "\n{\n  ret;\n}" in done.ptx


SPIN_LOCK = """
__device__ __noinline__ void take(int* lock) { while (atomicCAS(lock, 0, 1) != 0) __nanosleep(100); __threadfence(); }
__device__ __noinline__ void give(int* lock) { __threadfence(); atomicExch(lock, 0); }
extern "C" __global__ void kernel(int* lock, int* sum) {
    for (int i = 0; i < 4 && threadIdx.x == 0; ++i) { take(lock); *sum += 1; give(lock); }
}
"""


@pytest.mark.parametrize("seed", range(4))
def test_threads_that_spin_do_not_starve_the_one_that_holds_the_lock(seed: int, tmp_path: Path) -> None:
    path = tmp_path / "lock.cu"
    path.write_text(SPIN_LOCK)
    total = np.zeros(1, np.int32)
    kernel = consan.Kernel(path, entry="kernel", arch="sm_80")
    report = consan.launch(kernel, 3, 64, [np.zeros(1, np.int32), total], device="cpu", seed=seed, timeout=20)
    assert report.verdict == "clean", report.incomplete
    assert total[0] == 12
