"""What kernels for sm_100 need around tcgen05: wide loads and stores, packed arithmetic, small formats. ptxas assembles each kernel."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from engine_support import kernel, run

from consan.toolchain.assemble import assemble

Array = npt.NDArray[Any]
U32, F32 = np.uint32, np.float32
LANES = 64
EIGHT = ", ".join(f"%r{k}" for k in range(10, 18))
FOUR = "%rd5, %rd6, %rd7, %rd8"


@functools.cache
def blackwell(body: str) -> str:
    """The kernel, which ptxas takes for sm_100a."""
    text = kernel(body).replace(".version 8.7\n.target sm_90a", ".version 8.8\n.target sm_100a")
    assemble(text, "sm_100a")
    return text


MOVES = {
    "words": (f"ld.global.v8.b32 {{{EIGHT}}}, [%rd4];", f"st.global.v8.b32 [%rd3], {{{EIGHT}}};"),
    "floats": (f"ld.global.nc.v8.f32 {{{EIGHT}}}, [%rd4];", f"st.global.v8.f32 [%rd3], {{{EIGHT}}};"),
    "pairs": (f"ld.global.v4.b64 {{{FOUR}}}, [%rd4];", f"st.global.v4.u64 [%rd3], {{{FOUR}}};"),
    "generic": (f"ld.v8.b32 {{{EIGHT}}}, [%rd4];", f"st.release.gpu.v8.b32 [%rd3], {{{EIGHT}}};"),
    "hints": (
        f"ld.global.nc.L1::no_allocate.L2::evict_last.v8.b32 {{{EIGHT}}}, [%rd4];",
        f"st.global.L1::evict_last.L2::evict_first.v8.b32 [%rd3], {{{EIGHT}}};",
    ),
    "strong": (f"ld.relaxed.gpu.global.v4.b64 {{{FOUR}}}, [%rd4];", f"st.release.gpu.global.v4.b64 [%rd3], {{{FOUR}}};"),
}


@pytest.mark.parametrize("odd", [False, True])
@pytest.mark.parametrize("move", MOVES)
def test_moves_of_256_bits(move: str, odd: bool) -> None:
    """Each thread moves 32 bytes; also where half of the threads do nothing."""
    load, store = MOVES[move]
    load, store = (text.replace("%r1", "%f1") if ".f32" in text else text for text in (load, store))
    body = f"""mul.wide.u32 %rd2, %r3, 32; add.u64 %rd3, %rd0, %rd2; add.u64 %rd4, %rd1, %rd2; and.b32 %r4, %r0, 1;
    setp.eq.u32 %p1, %r4, 0; {"@%p1 " if odd else ""}bra M; bra E; M: {load} {store} E:"""
    data = np.random.default_rng(1).integers(0, 1 << 32, 8 * LANES).astype(U32)
    wanted = data.reshape(LANES, 8) * (1 - (np.arange(LANES) & 1) * odd)[:, None].astype(U32)
    np.testing.assert_array_equal(run(blackwell(body), data, block=LANES, out=8 * LANES), wanted.reshape(-1))


def test_wide_loads_must_be_aligned() -> None:
    with pytest.raises(AssertionError, match="misaligned"):
        run(blackwell(f"ld.global.v8.b32 {{{EIGHT}}}, [%rd4+16];"), np.zeros(16, U32), block=1)


@pytest.mark.parametrize("operation", ["add", "sub", "mul", "fma"])
@pytest.mark.parametrize("mode", [".rn", ".rz", ".rp.ftz"])
def test_packed_arithmetic(operation: str, mode: str) -> None:
    """Both halves of each result are those of the scalar instruction."""
    last, third = (", %rd7", ", %f5") if operation == "fma" else ("", "")
    load = "mul.wide.u32 %rd2, %r3, 24; add.u64 %rd4, %rd1, %rd2; ld.global.b64 %rd5, [%rd4]; ld.global.b64 %rd6, [%rd4+8]; "
    body = f"""{load} ld.global.b64 %rd7, [%rd4+16]; {operation}{mode}.f32x2 %rd8, %rd5, %rd6{last}; mov.b64 {{%f1, %f2}}, %rd8;
    {"".join(f"ld.global.f32 %f{3 + k}, [%rd4+{8 * k}]; ld.global.f32 %f{6 + k}, [%rd4+{8 * k + 4}]; " for k in range(3))}
    {operation}{mode}.f32 %f9, %f3, %f4{third}; {operation}{mode}.f32 %f10, %f6, %f7{third.replace("5", "8")};
    mul.wide.u32 %rd2, %r3, 16; add.u64 %rd3, %rd0, %rd2; st.global.v4.f32 [%rd3], {{%f1, %f9, %f2, %f10}};"""
    data = np.random.default_rng(2).standard_normal((LANES, 6)).astype(F32)
    data[:4, :2] = [[1e-40, 0], [np.inf, -0.0], [np.nan, 1], [3e38, 3e38]]
    found = run(blackwell(body), data, block=LANES, out=4 * LANES).reshape(-1, 2, 2)
    np.testing.assert_array_equal(found[:, :, 0], found[:, :, 1])
    assert len(np.unique(found[:, 0, 0])) > LANES // 2


# Value of each code, by definition of the formats.
CODES = {"e2m1": [0, 0.5, 1, 1.5, 2, 3, 4, 6], "e3m2": [0, 0.0625, 0.125, 0.1875, 0.25, 0.3125], "e2m3": [0, 0.125, 0.25, 0.375]}


def test_small_formats() -> None:
    """f32 to codes and back, two at a time; e2m1 through a register of 8 bits."""
    body = """mul.wide.u32 %rd2, %r3, 8; add.u64 %rd4, %rd1, %rd2; ld.global.v2.f32 {%f1, %f2}, [%rd4]; { .reg .b8 t;
    cvt.rn.satfinite.e2m1x2.f32 t, %f2, %f1; cvt.u32.u8 %r5, t; cvt.rn.f16x2.e2m1x2 %r8, t; }
    cvt.rn.satfinite.e3m2x2.f32 %h1, %f2, %f1; cvt.u32.u16 %r6, %h1; cvt.rn.f16x2.e3m2x2 %r9, %h1;
    cvt.rn.satfinite.e2m3x2.f32 %h1, %f2, %f1; cvt.u32.u16 %r7, %h1; cvt.rn.f16x2.e2m3x2 %r10, %h1;
    cvt.rp.satfinite.ue8m0x2.f32 %h1, %f2, %f1; cvt.u32.u16 %r11, %h1; cvt.rn.bf16x2.ue8m0x2 %r12, %h1;
    mul.wide.u32 %rd2, %r3, 32; add.u64 %rd3, %rd0, %rd2; st.global.v8.b32 [%rd3], {%r5, %r6, %r7, %r8, %r9, %r10, %r11, %r12};"""
    for name, column, distance in (("e2m1", 0, 4), ("e3m2", 1, 8), ("e2m3", 2, 8)):
        data = np.array([(value, -float(value)) for value in CODES[name]], F32)
        found = run(blackwell(body), data, block=len(data), out=8 * len(data)).reshape(-1, 8)
        sign = 8 if name == "e2m1" else 32
        assert found[:, column].tolist() == [(code | sign) << distance | code for code in range(len(data))]
        np.testing.assert_array_equal(np.ascontiguousarray(found[:, 3 + column]).view(np.float16).reshape(-1, 2), data)
    data = np.array([(1, 3), (0.75, 2.0**-126), (2.0**100, 0)], F32)
    found = run(blackwell(body), data, block=3, out=24).reshape(-1, 8)
    assert found[:, 6].tolist() == [129 << 8 | 127, 1 << 8 | 127, 227]
    assert found[0, 7] == 0x40803F80


def test_hints_around_a_kernel_change_nothing() -> None:
    body = """griddepcontrol.wait; prefetch.tensormap [%rd1]; prefetch.param.tensormap [in];
    setmaxnreg.inc.sync.aligned.u32 160; elect.sync %r5|%p1, -1;
    selp.u32 %r6, 1, 0, %p1; vote.sync.ballot.b32 %r7, %p1, -1; elect.sync %r8|%p2, -1; vote.sync.ballot.b32 %r9, %p2, -1;
    setp.ne.u32 %p3, %r7, %r9; @%p3 trap; popc.b32 %r7, %r7; setp.ne.u32 %p3, %r7, 1; @%p3 trap;
    cvt.rn.f32.u32 %f1, %r0; redux.sync.max.f32 %f2, %f1, -1; setmaxnreg.dec.sync.aligned.u32 24; griddepcontrol.launch_dependents;
    st.global.f32 [%rd3], %f2;"""
    found = run(blackwell(body), block=LANES, dtype=F32)
    np.testing.assert_array_equal(found, np.repeat([31, 63], 32))


# ldmatrix and stmatrix of bytes: each lane stores its row of 16 bytes, and shows what it gets.
ROWS = """.shared .align 16 .b8 s[512];
mov.u32 %r5, s; mad.lo.u32 %r6, %r0, 16, %r5; mul.wide.u32 %rd5, %r0, 16; add.u64 %rd6, %rd1, %rd5; add.u64 %rd7, %rd0, %rd5;
ld.global.v4.u32 {%r10, %r11, %r12, %r13}, [%rd6]; st.shared.v4.u32 [%r6], {%r10, %r11, %r12, %r13}; bar.sync 0;
"""
SHOWN = "st.global.v4.u32 [%rd7], {%r20, %r21, %r22, %r23};"


def _unpacked(rows: np.ndarray, source: str) -> np.ndarray:
    """Rows of 16 elements: 4 bits of a nibble in the middle of a byte, or 6 bits in its lower part."""
    if source == "b8":
        return rows
    bits = np.unpackbits(rows, axis=1, bitorder="little")
    width = 4 if "b4" in source else 6
    codes = np.packbits(bits[:, : 16 * width].reshape(len(rows), 16, width), axis=2, bitorder="little")[..., 0]
    return codes << 2 if width == 4 else codes


@pytest.mark.parametrize("source", ["b8", "b8x16.b4x16_p64", "b8x16.b6x16_p32"])
@pytest.mark.parametrize("count", [1, 2])
def test_ldmatrix_of_transposed_bytes(source: str, count: int) -> None:
    """Thread l has, of rows l / 4 and l / 4 + 8 of the transposed matrix, four columns; each register has two of both."""
    names = ", ".join(f"%r{20 + k}" for k in range(2 * count))
    clear = "mov.u32 %r22, 0; mov.u32 %r23, 0;" if count == 1 else ""
    body = f"{ROWS} {clear} ldmatrix.sync.aligned.m16n16.x{count}.trans.shared.{source} {{{names}}}, [%r6]; {SHOWN}"
    data = np.random.default_rng(3).integers(0, 256, (32, 16)).astype(np.uint8)
    found = run(blackwell(body), data.view(U32).reshape(-1), out=128, block=32).view(np.uint8).reshape(32, 4, 4)
    wanted, matrices = np.zeros((32, 4, 4), np.uint8), _unpacked(data, source).reshape(2, 16, 16).transpose(0, 2, 1)
    for lane in range(32):
        for register in range(2 * count):
            for byte in range(4):
                row, column = lane // 4 + 8 * (byte // 2), 4 * (lane % 4) + 2 * (register % 2) + byte % 2
                wanted[lane, register, byte] = matrices[register // 2, row, column]
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("source", ["b4x16_p64", "b6x16_p32"])
@pytest.mark.parametrize("count", [1, 2, 4])
def test_ldmatrix_of_small_elements(source: str, count: int) -> None:
    names = ", ".join(f"%r{20 + k}" for k in range(count))
    clear = "".join(f"mov.u32 %r{20 + k}, 0;" for k in range(count, 4))
    body = f"{ROWS} {clear} ldmatrix.sync.aligned.m8n16.x{count}.shared.b8x16.{source} {{{names}}}, [%r6]; {SHOWN}"
    data = np.random.default_rng(4).integers(0, 256, (32, 16)).astype(np.uint8)
    found = run(blackwell(body), data.view(U32).reshape(-1), out=128, block=32).view(np.uint8).reshape(32, 4, 4)
    rows = _unpacked(data, source).reshape(4, 8, 4, 4)  # matrix, row, lane of a row, byte
    wanted = np.zeros((32, 4, 4), np.uint8)
    wanted[:, :count] = rows.transpose(1, 2, 0, 3).reshape(32, 4, 4)[:, :count]
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("count", [1, 2, 4])
def test_stmatrix_of_bytes(count: int) -> None:
    """Column j of the 16 x 8 matrix, whose fragments are those of an accumulator of mma, is row j in memory."""
    names = ", ".join(f"%r{10 + k}" for k in range(count))
    load = "ld.global.v4.u32 {%r10, %r11, %r12, %r13}, [%rd6]; mov.u32 %r14, 0; st.shared.v4.u32 [%r6], {%r14, %r14, %r14, %r14};"
    body = f"""{ROWS} {load} bar.sync 0; stmatrix.sync.aligned.m16n8.x{count}.trans.shared.b8 [%r6], {{{names}}}; bar.sync 0;
    ld.shared.v4.u32 {{%r20, %r21, %r22, %r23}}, [%r6]; {SHOWN}"""
    data = np.random.default_rng(5).integers(0, 256, (32, 4, 4)).astype(np.uint8)
    wanted = np.zeros((4, 8, 16), np.uint8)
    for lane in range(32):
        for matrix in range(count):
            for byte in range(4):
                wanted[matrix, 2 * (lane % 4) + byte % 2, lane // 4 + 8 * (byte // 2)] = data[lane, matrix, byte]
    found = run(blackwell(body), data.view(U32).reshape(-1), out=128, block=32).view(np.uint8)
    np.testing.assert_array_equal(found.reshape(4, 8, 16), wanted)
