"""Loads, stores, state spaces, initialisers, generic addresses, faults of memory."""

from __future__ import annotations

import numpy as np
import pytest
from engine_support import HEADER, Device, cuda, kernel, run

from consan._errors import UsageError
from consan.backends.cpu import Machine

U32 = np.uint32


@pytest.mark.parametrize(("word", "dtype"), [("u8", np.uint8), ("s8", np.int8), ("u16", np.uint16), ("s16", np.int16), ("b32", np.uint32)])
def test_narrow_loads_extend_as_their_type_says(word: str, dtype: type) -> None:
    values = np.array([0, 1, 127, 128, 255] * 8, np.uint64).astype(dtype)[:32]
    size = np.dtype(dtype).itemsize
    body = f"mul.wide.u32 %rd5, %r0, {size}; add.u64 %rd5, %rd1, %rd5; ld.global.{word} %r5, [%rd5]; st.global.u32 [%rd3], %r5;"
    np.testing.assert_array_equal(run(kernel(body), values), values.astype(np.int64).astype(U32))


@pytest.mark.parametrize("block", [32, 33, 128])
@pytest.mark.parametrize(
    ("form", "count", "size"), [("v2.b32", 2, 4), ("v4.b32", 4, 4), ("v2.b64", 2, 8), ("v4.u8", 4, 1), ("v4.b64", 4, 8)]
)
def test_vectors_move_all_their_elements(form: str, count: int, size: int, block: int) -> None:
    register = "%rd" if size == 8 else "%r"
    names = ", ".join(f"{register}{10 + k}" for k in range(count))
    turned = ", ".join(f"{register}{10 + count - 1 - k}" for k in range(count))
    body = f"""mul.wide.u32 %rd5, %r3, {count * size}; add.u64 %rd6, %rd1, %rd5; add.u64 %rd7, %rd0, %rd5;
    ld.global.{form} {{{names}}}, [%rd6]; st.global.{form} [%rd7], {{{turned}}};"""
    data = np.arange(block * count, dtype=f"u{size}")
    found = run(kernel(body), data, block=block, out=data.size, dtype=data.dtype)
    np.testing.assert_array_equal(found, data.reshape(-1, count)[:, ::-1].reshape(-1))


def test_sink_in_a_vector_load() -> None:
    body = "mul.wide.u32 %rd5, %r0, 8; add.u64 %rd5, %rd1, %rd5; ld.global.v2.u32 {_, %r5}, [%rd5]; st.global.u32 [%rd3], %r5;"
    np.testing.assert_array_equal(run(kernel(body), np.arange(64, dtype=U32)), np.arange(1, 64, 2))


def test_b128_moves_loads_and_stores() -> None:
    body = """mul.wide.u32 %rd5, %r0, 16; add.u64 %rd6, %rd1, %rd5; add.u64 %rd7, %rd0, %rd5;
    ld.global.b128 %q1, [%rd6]; mov.b128 {%rd10, %rd11}, %q1; mov.b128 %q2, {%rd11, %rd10}; st.global.b128 [%rd7], %q2;"""
    data = np.arange(64, dtype=np.uint64)
    found = run(kernel(body), data, out=64, dtype=np.uint64)
    np.testing.assert_array_equal(found, data.reshape(-1, 2)[:, ::-1].reshape(-1))


def test_colliding_stores_leave_one_of_the_values() -> None:
    found = run(kernel("st.global.u32 [%rd0], %r0;"), out=1)
    assert found[0] < 32


@pytest.mark.parametrize("move", ["mov.b64 %rd5, in;", "mov.b32 %r5, in; cvt.u64.u32 %rd5, %r5;"])
def test_a_parameter_has_a_generic_address_even_from_its_low_half(move: str) -> None:
    """LLVM with short pointers, as Triton 3.9 uses it, keeps addresses of parameters in 32 bits."""
    body = f"{move} cvta.param.u64 %rd6, %rd5; ld.u64 %rd7, [%rd6]; ld.global.u32 %r6, [%rd7]; st.global.u32 [%rd3], %r6;"
    np.testing.assert_array_equal(run(kernel(body), np.full(32, 77, U32)), np.full(32, 77, U32))


STATIC = """
.global .align 4 .u32 words[2][3] = {{1, 2}, {3, 4, 5}};
.const .align 8 .f64 pi = 0d400921FB54442D18;
.global .u64 place = generic(words);
.global .u64 offset = words+8;
.global .s8 text[4] = {104, 105, -1, 0};
.global .f32 half = 0f3F000000;
"""


def test_initialisers() -> None:
    device = Device(kernel("", STATIC))
    machine, symbol = device.machine, device.module.symbol
    words = symbol("words")
    assert words[1] == 24
    assert machine.view(words[0], U32, 6).tolist() == [1, 2, 0, 3, 4, 5]
    assert machine.view(symbol("pi")[0], np.float64, 1)[0] == np.pi
    assert machine.view(symbol("place")[0], np.uint64, 1)[0] == words[0]
    assert machine.view(symbol("offset")[0], np.uint64, 1)[0] == words[0] + 8
    assert machine.read(*symbol("text")) == b"hi\xff\0"
    assert machine.view(symbol("half")[0], np.float32, 1)[0] == 0.5
    with pytest.raises(UsageError, match="nothing"):
        symbol("nothing")


def test_const_and_global_variables_are_read_and_written() -> None:
    body = """ld.global.u32 %r5, [words+4]; mov.u64 %rd5, words; ld.u32 %r6, [%rd5+12]; ld.const.f64 %fd1, [pi]; cvt.rzi.u32.f64 %r7, %fd1;
    add.u32 %r5, %r5, %r6; add.u32 %r5, %r5, %r7; st.global.u32 [%rd3], %r5; st.global.u32 [words], 9; ld.global.u32 %r8, [words];
    add.u32 %r5, %r5, %r8; st.global.u32 [%rd3], %r5;"""
    assert set(run(kernel(body, STATIC)).tolist()) == {2 + 3 + 3 + 9}


def test_shared_windows_are_apart_and_begin_after_the_reserved_bytes() -> None:
    body = """mov.u32 %r5, s; st.shared.u32 [s], %r1; bar.sync 0; ld.shared.u32 %r6, [%r5]; setp.eq.u32 %p1, %r6, %r1;
    selp.u32 %r7, %r5, 0, %p1; st.global.u32 [%rd3], %r7;"""
    found = run(kernel(body, ".shared .align 4 .u32 s;"), grid=5)
    assert set(found.tolist()) == {1024}


def test_static_and_dynamic_shared_memory() -> None:
    source = """extern "C" __global__ void k(unsigned* out, unsigned* in) {
      extern __shared__ unsigned dyn[]; __shared__ unsigned a[33]; __shared__ unsigned char b[5];
      a[threadIdx.x] = in[threadIdx.x]; dyn[threadIdx.x] = threadIdx.x; if (threadIdx.x < 5) b[threadIdx.x] = 200;
      __syncthreads();
      out[threadIdx.x] = a[31 - threadIdx.x] + dyn[31 - threadIdx.x] + b[threadIdx.x % 5];
    }"""
    data = np.arange(32, dtype=U32) * 7
    found = run(cuda(source), data, shared=128)
    np.testing.assert_array_equal(found, (data + np.arange(32))[::-1] + 200)


def test_static_shared_is_laid_out_per_entry() -> None:
    ptx = (
        HEADER
        + """.shared .align 4 .b8 one[1000]; .shared .align 16 .b8 two[64]; .extern .shared .align 16 .b8 more[];
    .entry a() { .reg .b32 %r; mov.u32 %r, one; ret; } .entry b() { .reg .b32 %r; mov.u32 %r, two; mov.u32 %r, more; ret; }"""
    )
    module = Machine().load(ptx)
    assert [module.entry(name).static_shared for name in ("a", "b")] == [1000, 64]


def test_local_memory_and_its_generic_addresses() -> None:
    body = """mov.u64 %rd10, depot; cvta.local.u64 %rd11, %rd10; st.local.u32 [%rd10+4], %r0; st.u32 [%rd11+8], 5;
    ld.u32 %r5, [%rd11+4]; ld.local.u32 %r6, [%rd10+8]; mad.lo.u32 %r5, %r5, 100, %r6; st.global.u32 [%rd3], %r5;"""
    found = run(kernel(body, inside=".local .align 8 .b8 depot[16];"), grid=2, block=64)
    np.testing.assert_array_equal(found, np.tile(np.arange(64) * 100 + 5, 2))


def test_generic_addresses_of_three_spaces_in_one_instruction() -> None:
    body = """mov.u32 %r5, s; cvt.u64.u32 %rd5, %r5; cvta.shared.u64 %rd10, %rd5; mov.u64 %rd6, depot; cvta.local.u64 %rd11, %rd6;
    st.shared.u32 [%r5], 7; st.local.u32 [%rd6], 8; bar.sync 0;
    rem.u32 %r6, %r0, 3; setp.eq.u32 %p1, %r6, 1; setp.eq.u32 %p2, %r6, 2;
    mov.u64 %rd12, %rd1; selp.b64 %rd12, %rd10, %rd12, %p1; selp.b64 %rd12, %rd11, %rd12, %p2; ld.u32 %r7, [%rd12];
    isspacep.shared %p3, %rd12; isspacep.local %p4, %rd12; isspacep.global %p5, %rd12;
    selp.u32 %r8, 100, 0, %p3; selp.u32 %r9, 200, 0, %p4; selp.u32 %r10, 400, 0, %p5;
    add.u32 %r7, %r7, %r8; add.u32 %r7, %r7, %r9; add.u32 %r7, %r7, %r10; st.global.u32 [%rd3], %r7;"""
    found = run(kernel(body, ".shared .align 4 .u32 s;", ".local .align 8 .b8 depot[8];"), np.array([6], U32))
    np.testing.assert_array_equal(found, [(406, 107, 208)[t % 3] for t in range(32)])


def test_allocations_are_apart_and_free_memory_reads_as_zero() -> None:
    machine = Machine()
    a, b = machine.alloc(100), machine.alloc(100)
    assert abs(a - b) >= 256
    machine.write(a, b"x" * 100)
    machine.free(a)
    with pytest.raises(UsageError):
        machine.read(a, 1)
    assert machine.read(machine.alloc(100), 100) == bytes(100)
    with pytest.raises(UsageError):
        machine.read(b, 101)


def test_freed_memory_is_out_of_bounds_for_code_that_touched_it_before() -> None:
    device = Device(kernel("st.global.u32 [%rd3], %r0;"))
    out = device.buffer(np.zeros(32, U32))
    assert device.launch("k", 1, 32, out, out).completed
    device.machine.free(out)
    assert device.launch("k", 1, 32, out, out).faults[0].kind == "out-of-bounds"


@pytest.mark.parametrize("seed", [0, 1])
def test_out_of_bounds_names_thread_and_address_and_keeps_what_was_written(seed: int) -> None:
    body = "st.global.u32 [%rd3], 5; setp.eq.u32 %p1, %r3, 77; @%p1 add.u64 %rd3, %rd3, 4096; st.global.u32 [%rd3], %r0;"
    device = Device(kernel(body))
    out = device.buffer(np.zeros(128, U32))
    (fault,) = device.launch("k", 2, 64, out, out, seed=seed).faults
    assert (fault.kind, fault.ctaid, fault.tid, fault.access, fault.space) == ("out-of-bounds", (1, 0, 0), (13, 0, 0), "write", "global")
    assert (fault.address, fault.nbytes) == (out + 77 * 4 + 4096, 4)
    assert fault.opcode == "st.global.u32"
    if not seed:
        assert set(device.machine.view(out, U32, 128).tolist()) == {5}
    assert device.launch("k", 1, 64, out, out).completed, "the machine stays usable"


@pytest.mark.parametrize(
    ("access", "kind", "space"),
    [
        ("ld.shared.u32 %r5, [s+8];", "out-of-bounds", "shared"),
        ("mov.u32 %r6, 1020; ld.shared.u32 %r5, [%r6];", "out-of-bounds", "shared"),
        ("ld.shared.u32 %r5, [s+2];", "misaligned", "shared"),
        ("st.local.u32 [depot+16], %r0;", "out-of-bounds", "local"),
        ("add.u64 %rd5, %rd1, 2; ld.global.u32 %r5, [%rd5];", "misaligned", "global"),
        ("mov.u64 %rd5, 0; ld.u32 %r5, [%rd5];", "out-of-bounds", "global"),
        ("atom.global.add.u32 %r5, [%rd1+400000000], 1;", "out-of-bounds", "global"),
    ],
)
def test_faults_of_each_space(access: str, kind: str, space: str) -> None:
    device = Device(kernel(access, ".shared .align 4 .b8 s[8];", ".local .align 8 .b8 depot[16];"))
    (fault,) = device.launch("k", 1, 32, device.buffer(np.zeros(32, U32)), device.buffer(np.zeros(4, U32))).faults
    assert (fault.kind, fault.space, fault.tid) == (kind, space, (0, 0, 0))


def test_parameters_of_all_sizes_at_their_offsets() -> None:
    ptx = (
        HEADER
        + """.visible .entry k(.param .u8 a, .param .f64 b, .param .align 8 .b8 c[12], .param .u16 d, .param .u64 out) {
    .reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .f64 %fd<3>; .reg .b16 %h<3>;
    ld.param.s8 %r1, [a]; ld.param.f64 %fd1, [b]; cvt.rni.s32.f64 %r2, %fd1; ld.param.v2.u32 {%r3, %r4}, [c]; ld.param.u32 %r5, [c+8];
    ld.param.u16 %r6, [d]; mov.b64 %rd1, c; ld.param.u32 %r7, [%rd1+4]; ld.param.u64 %rd2, [out];
    add.s32 %r1, %r1, %r2; add.s32 %r1, %r1, %r3; add.s32 %r1, %r1, %r4; add.s32 %r1, %r1, %r5; add.s32 %r1, %r1, %r6;
    add.s32 %r1, %r1, %r7; st.global.u32 [%rd2], %r1; ret; }"""
    )
    device = Device(ptx)
    info = device.module.entry("k")
    assert [p.offset for p in info.params] == [0, 8, 16, 28, 32]
    assert info.param_bytes == 40
    out = device.buffer(np.zeros(1, U32))
    c = np.array([10, 20, 30], U32).tobytes()
    assert device.launch("k", 1, 1, b"\xff", np.float64(100).tobytes(), c, 1000, out).completed
    assert device.machine.view(out, U32, 1)[0] == -1 + 100 + 60 + 1000 + 20


def test_registers_of_scopes_hide_each_other() -> None:
    body = """mov.u32 %r5, 1; { .reg .u32 %r5; .reg .u32 t; mov.u32 %r5, 50; mov.u32 t, %r5; L: st.global.u32 [%rd3], t; }
    { .reg .u32 t; ld.global.u32 t, [%rd3]; add.u32 t, t, %r5; bra L; L: st.global.u32 [%rd3], t; }"""
    assert set(run(kernel(body)).tolist()) == {51}


def test_wide_grids_run_in_several_waves() -> None:
    found = run(kernel("mov.u32 %r5, %nctaid.x; add.u32 %r5, %r5, %r3; st.global.u32 [%rd3], %r5;"), grid=100, block=512)
    np.testing.assert_array_equal(found, np.arange(51200) + 100)


def test_launch_arguments_are_checked() -> None:
    device = Device(HEADER + ".entry k(.param .u64 a) .reqntid 64 { ret; }")
    for block, params, shared in ((32, bytes(8), 0), (64, bytes(4), 0), (64, bytes(8), 1 << 20)):
        with pytest.raises(UsageError):
            device.machine.launch(device.module, "k", (1, 1, 1), (block, 1, 1), params, shared=shared)
    with pytest.raises(UsageError, match="no entry"):
        device.machine.launch(device.module, "other", (1, 1, 1), (64, 1, 1), bytes(8))


def test_unloading_gives_memory_back() -> None:
    device = Device(kernel("mov.u64 %rd5, f; st.global.u64 [%rd0], %rd5;", ".global .u32 word; .func f() { ret; }"))
    out = device.buffer(np.zeros(2, U32))
    assert device.launch("k", 1, 1, out, out).completed
    address = device.module.symbol("word")[0]
    device.module.unload()
    with pytest.raises(UsageError):
        device.machine.read(address, 4)
    assert not device.machine.code_names


def test_shared_memory_is_the_same_at_every_launch() -> None:
    device = Device(kernel("ld.shared.u32 %r5, [s]; st.global.u32 [%rd3], %r5; st.shared.u32 [s], 7;", ".shared .align 4 .u32 s;"))
    out = device.buffer(np.zeros(1, U32))
    for _ in range(2):
        assert device.launch("k", 1, 1, out, out).completed
        assert device.machine.view(out, U32, 1)[0] == 0


def test_what_was_freed_since_is_not_brought_back() -> None:
    arena = Machine().arena
    kept, gone = arena.alloc(16), arena.alloc(16)
    arena.span(kept.address, 16)[...] = 1
    restore = arena.saved(1 << 20)
    assert restore is not None
    arena.free(gone.address)
    other = arena.alloc(16)
    for each in (kept, other):
        arena.span(each.address, 16)[...] = 2
    restore()
    assert arena.span(kept.address, 16).tolist() == [1] * 16
    assert arena.span(other.address, 16).tolist() == [2] * 16, "it is another allocation, wherever it lies"


@pytest.mark.parametrize(("given", "freed"), [("before", False), ("other", True), ("both", True)])
def test_what_lies_behind_an_array_of_the_launch_was_freed_if_a_parameter_points_there(given: str, freed: bool) -> None:
    arena = Machine().arena
    first, second = arena.alloc(256), arena.alloc(256)
    arena.free(second.address)
    params = {"before": [first.address], "other": [0], "both": [first.address, second.address]}[given]
    assert arena.was_freed(second.address + 8, params) is freed
    assert not arena.was_freed(first.address, params)
    assert not arena.was_freed(second.end, params)


def test_what_lies_behind_an_array_was_not_freed_where_the_array_lies_in_memory_of_an_older_one() -> None:
    arena = Machine().arena
    older = arena.alloc(256)
    arena.free(older.address)
    array = arena.alloc(8)
    assert array.address == older.address
    assert not arena.was_freed(array.end, [array.address])
    assert arena.was_freed(array.end, [])
