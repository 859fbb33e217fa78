"""Atomics held against one lane after another, whatever collides."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from engine_support import Device, kernel, run
from hypothesis import given, settings, strategies as st

from consan.backends.cpu.semantics.atomics import read_modify_write
from consan.backends.cpu.semantics.ops import atomic_function

U32, U64 = np.uint32, np.uint64

SERIAL: dict[str, Callable[[int, int, int], int]] = {
    "add": lambda old, b, c: (old + b) & 0xFFFFFFFF,
    "exch": lambda old, b, c: b,
    "cas": lambda old, b, c: c if old == b else old,
    "inc": lambda old, b, c: 0 if old >= b else old + 1,
    "dec": lambda old, b, c: b if old == 0 or old > b else old - 1,
    "min": lambda old, b, c: min(old, b),
    "max": lambda old, b, c: max(old, b),
    "and": lambda old, b, c: old & b,
    "or": lambda old, b, c: old | b,
    "xor": lambda old, b, c: old ^ b,
}
WORDS = {name: "b32" if name in ("exch", "cas", "and", "or", "xor") else "u32" for name in SERIAL}


def serial(memory: list[int], index: list[int], name: str, b: list[int], c: list[int]) -> tuple[list[int], list[int]]:
    olds = []
    for at, x, y in zip(index, b, c, strict=True):
        olds.append(memory[at])
        memory[at] = SERIAL[name](memory[at], x, y)
    return olds, memory


@settings(max_examples=400, deadline=None)
@given(st.sampled_from(sorted(SERIAL)), st.integers(1, 8), st.data())
def test_colliding_lanes_run_in_lane_order(name: str, cells: int, data: st.DataObject) -> None:
    lanes = data.draw(st.integers(1, 40))
    small = st.integers(0, 4) | st.sampled_from([0xFFFFFFFF, 0x80000000])
    memory, b, c = (data.draw(st.lists(small, min_size=n, max_size=n)) for n in (cells, lanes, lanes))
    index = data.draw(st.lists(st.integers(0, cells - 1), min_size=lanes, max_size=lanes))
    function = atomic_function(name, WORDS[name])
    assert function is not None
    view = np.array(memory, U32)
    extra = np.array(c, U32) if name == "cas" else None
    old = read_modify_write(view, np.array(index), name, function, np.array(b, U32), extra)
    expected = serial(list(memory), index, name, b, c)
    assert (old.tolist(), view.tolist()) == expected


def test_many_lanes_on_many_shared_cells_of_many_ctas() -> None:
    body = """st.shared.u32 [%rs], 0; bar.sync 0; ld.global.u32 %r5, [%rd4]; mov.u32 %r6, s; mad.lo.u32 %r6, %r5, 4, %r6;
    red.shared.add.u32 [%r6], 1; bar.sync 0; setp.lt.u32 %p1, %r0, 64; mad.lo.u32 %r7, %r1, 64, %r0; mul.wide.u32 %rd5, %r7, 4;
    add.u64 %rd5, %rd0, %rd5; ld.shared.u32 %r8, [%rs]; @%p1 st.global.u32 [%rd5], %r8;"""
    inside = ".reg .b32 %rs; mov.u32 %rs, %tid.x; shl.b32 %rs, %rs, 2; add.u32 %rs, %rs, 1024;"
    data = np.random.default_rng(0).integers(0, 64, 40 * 256).astype(U32)
    found = run(kernel(body, ".shared .align 4 .b8 s[1024];", inside), data, grid=40, block=256, out=40 * 64)
    np.testing.assert_array_equal(found.reshape(40, 64), [np.bincount(row, minlength=64) for row in data.reshape(40, 256)])


def test_old_values_of_a_hot_counter_are_a_permutation() -> None:
    found = run(kernel("atom.global.add.u32 %r5, [%rd1], 1; st.global.u32 [%rd3], %r5;"), np.zeros(1, U32), grid=20, block=512)
    np.testing.assert_array_equal(np.sort(found), np.arange(20 * 512))


@pytest.mark.parametrize(
    ("instruction", "start", "expected"),
    [
        ("red.global.add.f32 [%rd0], 0f3F800000;", np.float32(0.5), np.float32(32.5)),
        ("atom.global.add.f64 %fd1, [%rd0], 0d3FF0000000000000;", np.float64(0.5), np.float64(32.5)),
        ("atom.global.add.u64 %rd9, [%rd0], 0x100000000;", U64(5), U64(5 + (32 << 32))),
        ("red.global.add.noftz.f16x2 [%rd0], 0x3C004000;", U32(0), U32(0x50005400)),
        ("red.global.add.noftz.bf16x2 [%rd0], 0x3F804000;", U32(0), U32(0x42004280)),
        ("red.global.max.s32 [%rd0], -3;", np.int32(-7), np.int32(-3)),
        ("red.global.min.s64 [%rd0], -3;", np.int64(7), np.int64(-3)),
        ("atom.relaxed.gpu.global.cas.b64 %rd9, [%rd0], 7, 9;", U64(7), U64(9)),
        ("atom.acq_rel.cta.global.inc.u32 %r9, [%rd0], 9;", U32(0), U32(2)),
        ("atom.global.dec.u32 %r9, [%rd0], 9;", U32(0), U32(8)),
        ("atom.exch.b32 %r9, [%rd0], 77;", U32(0), U32(77)),
        ("atom.global.and.b32 _, [%rd0], 0xF0;", U32(0xFF), U32(0xF0)),
    ],
)
def test_types(instruction: str, start: np.generic, expected: np.generic) -> None:
    device = Device(kernel(instruction))
    out = device.buffer(np.array([start]))
    assert device.launch("k", 1, 32, out, out).completed
    assert device.machine.view(out, start.dtype, 1)[0] == expected


def test_cas_of_16_bits_and_vectors_of_floats() -> None:
    body = """mov.u16 %h1, 0; mov.u16 %h2, 5; atom.global.cas.b16 %h3, [%rd0+2], %h1, %h2;
    mov.f32 %f1, 0f3F800000; mov.f32 %f2, 0f40000000; atom.global.add.v2.f32 {%f3, %f4}, [%rd0+8], {%f1, %f2};
    red.global.add.v4.f32 [%rd0+16], {%f1, %f2, %f1, %f2};"""
    found = run(kernel(body), out=8)
    assert found.view(np.uint16)[:2].tolist() == [0, 5]
    assert found[2:].view(np.float32).tolist() == [32, 64, 32, 64, 32, 64]


def test_b128_exchange_and_compare() -> None:
    body = """cvt.u64.u32 %rd5, %r0; mov.u64 %rd6, 1; mov.b128 %q1, {%rd5, %rd6}; atom.global.exch.b128 %q2, [%rd0], %q1;
    mov.u64 %rd7, 31; mov.b128 %q3, {%rd7, %rd6}; mov.u64 %rd8, 99; mov.b128 %q4, {%rd8, %rd8}; setp.eq.u32 %p1, %r0, 31;
    @%p1 atom.global.cas.b128 %q5, [%rd0], %q3, %q4; mov.b128 {%rd9, %rd10}, %q5; @%p1 st.global.u64 [%rd0+16], %rd9;"""
    found = run(kernel(body), out=8)
    assert found.view(U64)[:3].tolist() == [99, 99, 31]


@pytest.mark.parametrize(("words", "kept"), [("", False), (".noftz", True)])
def test_sums_of_subnormals_in_global_memory(words: str, kept: bool) -> None:
    """`atom.add.f32` flushes them there (ISA "atom"), .noftz does not."""
    small = np.float32(1e-40)
    body = f"red.global.add{words}.f32 [%rd3], 0f{int(small.view(np.uint32)):08X};"
    assert run(kernel(body), dtype=np.float32)[0] == (small if kept else 0)
