"""Branches, predicates, calls of every kind, traps, special registers, output, unknown instructions."""

from __future__ import annotations

import numpy as np
import pytest
from engine_support import HEADER, Device, cuda, kernel, run

from consan.backends.cpu import UnsupportedInstruction

U32 = np.uint32
T = np.arange(64)


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("block", [32, 50, 64])
def test_divergent_loops(block: int, seed: int) -> None:
    body = """mov.u32 %r5, 0; mov.u32 %r6, 0; and.b32 %r7, %r0, 15;
    LOOP: setp.ge.u32 %p1, %r6, %r7; @%p1 bra DONE; and.b32 %r8, %r6, 1; setp.eq.u32 %p2, %r8, 0; @%p2 bra EVEN;
    add.u32 %r5, %r5, 100; bra NEXT; EVEN: add.u32 %r5, %r5, 1; NEXT: add.u32 %r6, %r6, 1; bra LOOP;
    DONE: st.global.u32 [%rd3], %r5;"""
    expected = [(t % 16 + 1) // 2 + t % 16 // 2 * 100 for t in range(block)]
    np.testing.assert_array_equal(run(kernel(body), block=block, grid=3, seed=seed), expected * 3)


def test_lanes_meet_again_after_a_branch() -> None:
    """activemask shows who runs together: all of the warp, after the shorter side waited."""
    body = """setp.lt.u32 %p1, %r0, 5; @%p1 bra A; mov.u32 %r5, 1; mov.u32 %r5, 2; bra B; A: activemask.b32 %r6;
    st.global.u32 [%rd0+128], %r6;
    B: activemask.b32 %r5; st.global.u32 [%rd3], %r5;"""
    found = run(kernel(body), out=33)
    assert found[32] == 31
    assert set(found[:32].tolist()) == {0xFFFFFFFF}


def test_predicated_instructions_in_wide_and_narrow_groups() -> None:
    body = """and.b32 %r5, %r3, 3; setp.eq.u32 %p1, %r5, 0; mov.u32 %r6, 7; @%p1 add.u32 %r6, %r6, %r3; @!%p1 mov.u32 %r6, %r1;
    setp.lt.u32 %p2, %r0, 2; @%p2 st.global.u32 [%rd3], %r6; @!%p2 st.global.u32 [%rd3], %r5;"""
    index = np.arange(128)
    value = np.where(index % 4 == 0, index + 7, index // 64)
    np.testing.assert_array_equal(run(kernel(body), grid=2, block=64), np.where(index % 64 < 2, value, index % 4))


FUNCTIONS = """
.func (.param .b32 r) scaled(.param .b32 a, .param .align 8 .b8 s[12]) { .reg .b32 %r<5>;
  ld.param.b32 %r1, [a]; ld.param.v2.b32 {%r2, %r3}, [s]; mad.lo.s32 %r1, %r1, %r2, %r3; ld.param.b32 %r4, [s+8]; add.s32 %r1, %r1, %r4;
  st.param.b32 [r], %r1; ret; }
.func (.reg .u32 r) twice(.reg .u32 a) { add.u32 r, a, a; ret; }
.func (.reg .u32 r) thrice(.reg .u32 a) { .reg .u32 t; call (t), twice, (a); add.u32 r, a, t; ret.uni; }
.func nothing() { ret; }
"""


def test_calls_with_param_and_register_arguments() -> None:
    body = """{ .param .b32 x; .param .align 8 .b8 y[12]; .param .b32 z; st.param.b32 [x], %r3; st.param.v2.b32 [y], {%r0, 5};
    st.param.b32 [y+8], %r1;
    call.uni (z), scaled, (x, y); ld.param.b32 %r5, [z]; }
    call nothing; call (%r6), thrice, (%r5); setp.lt.u32 %p1, %r0, 9; @%p1 call (%r6), twice, (%r6); st.global.u32 [%rd3], %r6;"""
    index = np.arange(64)
    value = 3 * (index * (index % 32) + 5 + index // 32)
    np.testing.assert_array_equal(run(kernel(body, FUNCTIONS), grid=2), np.where(index % 32 < 9, 2 * value, value))


RECURSION = """
__device__ __noinline__ int odd(int n);
__device__ __noinline__ int even(int n) { volatile int here = n; int r = n == 0 ? 1 : odd(n - 1); return here == n ? r : -1; }
__device__ __noinline__ int odd(int n) { volatile int here = n; int r = n == 0 ? 0 : even(n - 1); return here == n ? r : -1; }
__device__ __noinline__ int fib(int n) { int a[3]; a[n % 3] = n; return n < 2 ? n : fib(n - 1) + fib(n - 2) + a[n % 3] - n; }
extern "C" __global__ void k(int* out, int* in) { int t = threadIdx.x; out[t] = fib(t % 11) * 10 + even(t % 7); }
"""


@pytest.mark.parametrize("seed", [0, 3])
def test_recursion_keeps_registers_and_local_memory(seed: int) -> None:
    fib = [0, 1]
    while len(fib) < 11:
        fib.append(fib[-1] + fib[-2])
    np.testing.assert_array_equal(run(cuda(RECURSION), block=64, seed=seed), [fib[t % 11] * 10 + (t % 7 + 1) % 2 for t in T])


def test_endless_recursion_is_a_fault() -> None:
    source = """__device__ __noinline__ int f(int n) { volatile int a[64]; a[n & 63] = n; return f(n + 1) + a[n & 63]; }
    extern "C" __global__ void k(int* out, int* in) { out[0] = f(1); }"""
    device = Device(cuda(source))
    (fault,) = device.launch("k", 1, 1, 0, 0).faults
    assert (fault.kind, fault.space) == ("out-of-bounds", "local")


INDIRECT = """
typedef int (*fn)(int);
__device__ __noinline__ int f1(int x) { return x + 1; }
__device__ __noinline__ int f2(int x) { return x * 2; }
__device__ __noinline__ int f3(int x) { return x * x; }
__device__ fn table[3] = {f1, f2, f3};
extern "C" __global__ void k(int* out, int* in) { out[threadIdx.x] = table[threadIdx.x % 3](threadIdx.x); }
"""


def test_indirect_calls() -> None:
    np.testing.assert_array_equal(run(cuda(INDIRECT), block=64), [(t + 1, 2 * t, t * t)[t % 3] for t in T])


def test_call_of_an_address_that_is_no_function_traps() -> None:
    body = "{ .param .b32 z; p: .callprototype (.param .b32 _) _ (); mov.u64 %rd5, 12345; call (z), %rd5, (), p; }"
    (fault,) = Device(kernel(body)).launch("k", 1, 32, 0, 0).faults
    assert (fault.kind, fault.address) == ("trap", 12345)


def test_branch_tables() -> None:
    body = """rem.u32 %r5, %r0, 3; ts: .branchtargets L2, L0, L1; brx.idx %r5, ts;
    L0: mov.u32 %r6, 10; bra END; L1: mov.u32 %r6, 11; bra END; L2: mov.u32 %r6, 12; END: st.global.u32 [%rd3], %r6;"""
    np.testing.assert_array_equal(run(kernel(body)), [(12, 10, 11)[t % 3] for t in range(32)])


ALLOCA = """
.func (.reg .u32 r) use(.reg .u32 n) { .reg .u32 size, i; .reg .u64 p, q; .reg .pred c, d;
  shl.b32 size, n, 2; cvt.u64.u32 p, size; alloca.u64 p, p, 16; mov.u64 q, p; mov.u32 i, 0; mov.u32 r, 0;
  A: setp.ge.u32 c, i, n; @c bra B; st.local.u32 [q], i; add.u64 q, q, 4; add.u32 i, i, 1; bra A;
  B: mov.u32 i, 0; mov.u64 q, p;
  C: setp.ge.u32 d, i, n; @d bra E; ld.local.u32 size, [q]; add.u32 r, r, size; add.u64 q, q, 4; add.u32 i, i, 1; bra C; E: ret; }
"""


def test_alloca_is_freed_on_return() -> None:
    body = """mov.u32 %r5, 0; L: add.u32 %r6, %r0, 1; call (%r7), use, (%r6); add.u32 %r5, %r5, 1; setp.lt.u32 %p1, %r5, 200; @%p1 bra L;
    st.global.u32 [%rd3], %r7;"""
    np.testing.assert_array_equal(run(kernel(body, ALLOCA), block=64), T * (T + 1) // 2)


def test_early_exits_and_predicated_ret() -> None:
    body = """setp.gt.u32 %p1, %r0, 40; @%p1 exit; st.global.u32 [%rd3], 1; bar.sync 0; setp.gt.u32 %p2, %r0, 19; @%p2 ret;
    mov.u32 %r5, 2; shfl.sync.bfly.b32 %r6, %r0, 1, 31, 0xfffff; st.global.u32 [%rd3], %r6;"""
    found = run(kernel(body), block=64)
    np.testing.assert_array_equal(found, [t ^ 1 if t < 20 else int(t <= 40) for t in T])


def test_trap_and_brkpt() -> None:
    for word in ("trap", "brkpt"):
        (fault,) = Device(kernel(f"setp.eq.u32 %p1, %r3, 40; @%p1 {word};")).launch("k", 2, 32, 0, 0).faults
        assert (fault.kind, fault.ctaid, fault.tid, fault.opcode) == ("trap", (1, 0, 0), (8, 0, 0), word)


def test_assert_names_the_expression_and_the_thread() -> None:
    source = '#include <cassert>\nextern "C" __global__ void k(int n) { assert(threadIdx.x < n && "small"); }'
    (fault,) = Device(cuda(source)).launch("k", 1, 64, 50).faults
    assert (fault.kind, fault.tid) == ("assert", (50, 0, 0))
    assert 'threadIdx.x < n && "small"' in fault.message


def test_printf(capsys: pytest.CaptureFixture[str]) -> None:
    source = r"""extern "C" __global__ void k(int a, double d, int* out) {
      out[0] = printf("%d|%5d|%-4u|%x|%#llx|%c|%s|%.2f|%e|%%|%*d|%p\n", a, a, 7u, 255, 1ull << 40, 'z', "text", d, d, 4, 9, (void*)16); }"""
    device = Device(cuda("#include <cstdio>\n" + source))
    out = device.buffer(np.zeros(1, U32))
    assert device.launch("k", 1, 2, -3 & 0xFFFFFFFF, np.float64(1.5).tobytes(), out).completed
    line = "-3|   -3|7   |ff|0x10000000000|z|text|1.50|1.500000e+00|%|   9|0x10\n"
    assert capsys.readouterr().out == 2 * line
    assert device.machine.view(out, U32, 1)[0] == 11


def test_device_heap() -> None:
    source = """extern "C" __global__ void k(unsigned* out, int* in) { unsigned* p = (unsigned*)malloc(8 + threadIdx.x); p[1] = threadIdx.x;
      out[threadIdx.x] = p[1] + p[0]; free(p); }"""
    np.testing.assert_array_equal(run(cuda(source)), np.arange(32))


def test_geometry_registers() -> None:
    source = """extern "C" __global__ void k(uint4* out) {
      int t = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
      int b = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
      unsigned lane, warp, lt, gt; asm("mov.u32 %0, %laneid;" : "=r"(lane)); asm("mov.u32 %0, %warpid;" : "=r"(warp));
      asm("mov.u32 %0, %lanemask_lt;" : "=r"(lt)); asm("mov.u32 %0, %lanemask_gt;" : "=r"(gt));
      out[b * 60 + t] = make_uint4(t, lane + 100 * warp, lt, gt); }"""
    device = Device(cuda(source.replace("uint4* out", "uint4* out")))
    out = device.buffer(np.zeros((2 * 3 * 2 * 60, 4), U32))
    params = np.array([out], np.uint64).tobytes()
    assert device.machine.launch(device.module, "k", (2, 3, 2), (5, 4, 3), params).completed
    found = device.machine.view(out, U32, 12 * 60 * 4).reshape(12, 60, 4)
    t = np.arange(60)
    lane = t % 32
    expected = np.stack([t, lane + 100 * (t // 32), (1 << lane) - 1, 0xFFFFFFFF ^ ((2 << lane) - 1)], axis=1)
    np.testing.assert_array_equal(found, np.broadcast_to(expected, (12, 60, 4)))


def test_size_and_grid_registers() -> None:
    body = """mov.u32 %r5, %dynamic_smem_size; mov.u32 %r6, %total_smem_size; mov.u32 %r7, %aggr_smem_size;
    mov.u32 %r8, %reserved_smem_offset_begin;
    mov.u32 %r9, %reserved_smem_offset_end; mov.u64 %rd5, %gridid; mov.u32 %r10, s;
    st.global.v4.u32 [%rd0], {%r5, %r6, %r7, %r8}; st.global.v2.u32 [%rd0+16], {%r9, %r10}; st.global.u64 [%rd0+24], %rd5;"""
    device = Device(kernel(body, ".shared .align 4 .b8 s[100];"))
    grids = []
    for _ in range(2):
        out = device.buffer(np.zeros(8, U32))
        assert device.launch("k", 1, 1, out, out, shared=60).completed
        values = device.machine.view(out, U32, 8).tolist()
        assert values[:6] == [60, 160, 1184, 0, 1024, 1024]
        grids.append(values[6])
    assert grids[0] != grids[1]


def test_clocks_advance() -> None:
    body = """mov.u64 %rd5, %clock64; mov.u64 %rd6, %globaltimer; mov.u32 %r5, %clock; nanosleep.u32 100; mov.u64 %rd7, %clock64;
    mov.u64 %rd8, %globaltimer;
    setp.gt.u64 %p1, %rd7, %rd5; setp.ge.u64 %p2, %rd8, %rd6; selp.u32 %r6, 1, 0, %p1; selp.u32 %r7, 2, 0, %p2; add.u32 %r6, %r6, %r7;
    st.global.u32 [%rd3], %r6;"""
    assert set(run(kernel(body)).tolist()) == {3}


def test_carry_chains() -> None:
    body = """ld.global.u32 %r5, [%rd4]; add.cc.u32 %r6, %r5, 0xffffffff; addc.u32 %r7, 0, 0; st.global.u32 [%rd3], %r7;"""
    np.testing.assert_array_equal(run(kernel(body), np.arange(32, dtype=U32)), [0] + [1] * 31)


def test_unknown_instructions_raise_only_where_they_run() -> None:
    unknown = "suq.width.b32 %r1, [%rd3];"
    body = f"setp.gt.u32 %p1, %r0, 1000; @%p1 bra L; st.global.u32 [%rd3], 1; bra E;\nL: {unknown} E:"
    assert set(run(kernel(body)).tolist()) == {1}
    body = f"st.global.u32 [%rd3], 1;\n{unknown}"
    device = Device(kernel(body))
    out = device.buffer(np.zeros(32, U32))
    with pytest.raises(UnsupportedInstruction, match=r"suq\.width") as error:
        device.launch("k", 1, 32, out, out)
    assert error.value.opcode == "suq.width.b32"
    assert error.value.line == kernel(body)[: kernel(body).index("\nsuq") + 1].count("\n") + 1


@pytest.mark.parametrize(
    "instruction",
    [
        "red.async.relaxed.cluster.global.mbarrier::complete_tx::bytes.shared::cluster.inc.u32 [%rd0], 1, [%rd1];",
        "ld.global.made_up.u32 %r5, [%rd0];",
        "st.async.weak.shared::cta.mbarrier::complete_tx::bytes.u32 [%r5], 1, [%r6];",
        "fence.proxy.made_up;",
        "mbarrier.test_wait.parity.made_up.shared.b64 %p1, [%r5], 0;",
        "mbarrier.made_up.shared.b64 [%r5];",
        "barrier.cluster.made_up;",
        "cp.async.bulk.shared::cta.global.bulk_group [%r5], [%rd0], 16;",
        "cp.async.bulk.global.shared::cta.bulk_group.made_up [%rd0], [%r5], 16;",
        "cp.reduce.async.bulk.global.shared::cta.bulk_group.min.f32 [%rd0], [%r5], 16;",
    ],
)
def test_unknown_forms_of_known_instructions_are_refused(instruction: str) -> None:
    device = Device(kernel(instruction))
    with pytest.raises(UnsupportedInstruction):
        device.launch("k", 1, 32, 0, 0)


def test_call_of_an_undefined_function_is_unsupported() -> None:
    ptx = HEADER + ".extern .func other(); .entry k() { call other; ret; }"
    with pytest.raises(UnsupportedInstruction, match="other"):
        Device(ptx).launch("k", 1, 32)
