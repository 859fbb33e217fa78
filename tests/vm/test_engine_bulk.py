"""Bulk asynchronous copies and reductions, bulk groups, st.async, red.async, st.bulk: values, schedules, faults."""

from __future__ import annotations

import numpy as np
import pytest
from engine_support import Device, kernel, run

U32 = np.uint32
SEEDS = pytest.mark.parametrize("seed", range(5))
SHARED = ".shared .align 8 .b64 bar; .shared .align 128 .b8 s[4096];"
FIRST = "setp.eq.u32 %p9, %r0, 0;"
INIT = f"{FIRST} @%p9 mbarrier.init.shared.b64 [bar], 1; bar.sync 0;"
WAIT = "W: mbarrier.try_wait.parity.shared.b64 %p1, [bar], 0; @!%p1 bra W;"
SLOT = "mov.u32 %r5, s; shl.b32 %r6, %r0, 2; add.u32 %r6, %r5, %r6;"
SHOW = "ld.shared.u32 %r8, [%r6]; st.global.u32 [%rd3], %r8;"
FILL = "ld.global.u32 %r8, [%rd4]; st.shared.u32 [%r6], %r8; bar.sync 0;"
LOAD = "cp.async.bulk.{to}.global.mbarrier::complete_tx::bytes{more} [{target}], [{source}], {size}, [{bar}]{rest};"


def load(size: str = "256", *, to: str = "shared::cluster", more: str = "", rest: str = "", target: str = "s", source: str = "%rd1") -> str:
    return LOAD.format(to=to, more=more, target=target, source=source, size=size, bar="bar", rest=rest)


def store(size: str = "256", *, more: str = "", rest: str = "", target: str = "%rd0", source: str = "s") -> str:
    return f"cp.async.bulk.global.shared::cta.bulk_group{more} [{target}], [{source}], {size}{rest};"


@SEEDS
@pytest.mark.parametrize(
    "copy",
    [
        load(),
        load(to="shared::cta"),
        "mov.u32 %r9, 256;" + load("%r9", more=".L2::cache_hint", rest=", %rd9"),
        "mov.u16 %h1, 1;" + load(more=".multicast::cluster", rest=", %h1"),
        "mov.u16 %h1, 1;" + load(more=".multicast::cluster.L2::cache_hint", rest=", %h1, %rd9"),
        load("128") + load("128", target="s+128", source="%rd1+128"),
        "cp.async.bulk.prefetch.L2.global [%rd1], 256;" + load(to="shared::cta", target="s+0"),
    ],
)
def test_loads_complete_their_barrier(copy: str, seed: int) -> None:
    body = f"""{SLOT} {INIT} @!%p9 bra N; mbarrier.arrive.expect_tx.shared.b64 _, [bar], 256; {copy} N: {WAIT} {SHOW}"""
    data = np.arange(5, 69, dtype=U32)
    np.testing.assert_array_equal(run(kernel(body, SHARED), data, block=64, seed=seed), data)


@SEEDS
def test_bytes_may_arrive_before_they_are_expected(seed: int) -> None:
    body = f"""{SLOT} {INIT} @%p9 {load()} bar.sync 0; @%p9 mbarrier.arrive.expect_tx.shared.b64 _, [bar], 256; {WAIT} {SHOW}"""
    data = np.arange(5, 69, dtype=U32)
    np.testing.assert_array_equal(run(kernel(body, SHARED), data, block=64, seed=seed), data)


def test_without_the_wait_the_schedule_decides() -> None:
    body = f"""{SLOT} {INIT} @%p9 mbarrier.arrive.expect_tx.shared.b64 _, [bar], 256; @%p9 {load()} bar.sync 0; bar.sync 0; {SHOW}"""
    data = np.arange(5, 69, dtype=U32)
    found = {seed: run(kernel(body, SHARED), data, block=64, seed=seed).tobytes() for seed in range(12)}
    assert found[0] == bytes(256), "seed 0 lands a load as late as is legal"
    assert len(set(found.values())) > 1


@SEEDS
def test_each_lane_copies_for_itself(seed: int) -> None:
    """Lanes 0 to 3 copy ranges of different sizes, all under one barrier."""
    body = f"""{SLOT} {INIT} @%p9 mbarrier.arrive.expect_tx.shared.b64 _, [bar], 160; setp.ge.u32 %p2, %r0, 4; @%p2 bra N;
    add.u32 %r9, %r0, 1; shl.b32 %r9, %r9, 4; mul.lo.u32 %r10, %r0, %r9; shr.u32 %r10, %r10, 1; add.u32 %r11, %r5, %r10;
    cvt.u64.u32 %rd5, %r10;
    add.u64 %rd5, %rd1, %rd5; {load("%r9", target="%r11", source="%rd5")} N: {WAIT} {SHOW}"""
    data = np.arange(5, 69, dtype=U32)
    expected = np.where(np.arange(64) < 40, data, 0)
    np.testing.assert_array_equal(run(kernel(body, SHARED), data, block=64, seed=seed), expected)


@SEEDS
@pytest.mark.parametrize("read", ["", ".read"])
def test_stores_wait_for_their_bulk_groups(read: str, seed: int) -> None:
    """After wait_group.read the source may be used again, whatever the schedule; at the kernel's end everything has landed."""
    body = f"""{SLOT} {FILL} @!%p9 bra N; {store("128")} cp.async.bulk.commit_group; {store("128", target="%rd0+128", source="s+128")}
    cp.async.bulk.commit_group; cp.async.bulk.wait_group{read} 0; N: bar.sync 0; mov.u32 %r9, 9; st.shared.u32 [%r6], %r9;"""
    data = np.arange(5, 69, dtype=U32)
    np.testing.assert_array_equal(run(kernel(FIRST + body, SHARED), data, block=64, seed=seed), data)


def test_a_missing_read_wait_and_groups_not_covered() -> None:
    """The second group is not covered by wait_group 1, nor is a store that was not committed: seed 0 lands them last."""
    for between in ("cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 1;", "cp.async.bulk.wait_group 0;"):
        body = f"""{SLOT} {FILL} @!%p9 bra N; {store("128")} cp.async.bulk.commit_group; {store("128", target="%rd0+128", source="s+128")}
        {between} N: bar.sync 0; mov.u32 %r9, 9; st.shared.u32 [%r6], %r9;"""
        data = np.arange(5, 69, dtype=U32)
        found = {seed: run(kernel(FIRST + body, SHARED), data, block=64, seed=seed) for seed in range(8)}
        np.testing.assert_array_equal(found[0], [*data[:32], *[9] * 32])
        assert all((values[:32] == data[:32]).all() for values in found.values())
        assert len({values.tobytes() for values in found.values()}) > 1


def test_bulk_groups_and_those_of_cp_async_are_separate() -> None:
    body = f"""{SLOT} {FILL} @!%p9 bra N; {store()} cp.async.bulk.commit_group; cp.async.commit_group; cp.async.wait_all; N: bar.sync 0;
    mov.u32 %r9, 9; st.shared.u32 [%r6], %r9;"""
    assert (run(kernel(FIRST + body, SHARED), np.arange(64, dtype=U32), block=64) == 9).all()


@SEEDS
def test_a_store_through_a_byte_mask(seed: int) -> None:
    body = f"""{SLOT} {FILL} mov.u16 %h1, 0x8421; @%p9 {store(more=".L2::cache_hint.cp_mask", rest=", %rd9, %h1")}
    @%p9 cp.async.bulk.commit_group; @%p9 cp.async.bulk.wait_group 0;"""
    data = np.full(64, 0xFFFFFFFF, U32)
    found = run(kernel(FIRST + body, SHARED), data, block=64, seed=seed)
    np.testing.assert_array_equal(found.view(np.uint8), np.tile([255, 0, 0, 0, 0, 255, 0, 0, 0, 0, 255, 0, 0, 0, 0, 255], 16))


DTYPES = {
    "u32": U32, "s32": np.int32, "b32": U32, "u64": np.uint64, "s64": np.int64, "b64": np.uint64,
    "f16": np.float16, "f32": np.float32, "f64": np.float64,
}  # fmt: skip
CALCULATED = {
    "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor, "add": np.add, "min": np.minimum, "max": np.maximum,
    "inc": lambda old, b: np.where(old >= b, 0, old + 1), "dec": lambda old, b: np.where((old == 0) | (old > b), b, old - 1),
}  # fmt: skip


@pytest.mark.parametrize(
    ("operation", "word"),
    [
        *((op, word) for op in ("and", "or", "xor") for word in ("b32", "b64")),
        *(("add", word) for word in ("u32", "s32", "u64", "f16", "f32", "f64")),
        *((op, word) for op in ("min", "max") for word in ("u32", "s32", "u64", "s64", "f16")),
        ("inc", "u32"),
        ("dec", "u32"),
    ],
)
def test_reductions_to_global_memory(operation: str, word: str) -> None:
    """Two CTAs reduce into one array."""
    dtype = np.dtype(DTYPES[word])
    rng = np.random.default_rng(4)
    data = rng.integers(0, 9, (3, 256 // dtype.itemsize)).astype(dtype)
    noftz = ".noftz" if (operation, word) == ("add", "f16") else ""
    body = f"""{SLOT} mul.lo.u32 %r9, %r1, 256; cvt.u64.u32 %rd5, %r9; add.u64 %rd5, %rd1, %rd5; mul.wide.u32 %rd6, %r0, 4;
    add.u64 %rd5, %rd5, %rd6;
    ld.global.u32 %r8, [%rd5]; st.shared.u32 [%r6], %r8; bar.sync 0; @!%p9 exit;
    cp.reduce.async.bulk.global.shared::cta.bulk_group.{operation}{noftz}.{word} [%rd0], [s], 256; cp.async.bulk.commit_group;
    cp.async.bulk.wait_group 0;"""
    device = Device(kernel(FIRST + body, SHARED))
    out = device.buffer(data[2])
    stats = device.launch("k", 2, 64, out, device.buffer(data[:2]))
    assert stats.completed, stats
    expected = CALCULATED[operation](CALCULATED[operation](data[2], data[0]), data[1])
    np.testing.assert_array_equal(device.machine.view(out, dtype, data.shape[1]), expected)


@SEEDS
def test_copies_and_reductions_between_shared_memories(seed: int) -> None:
    body = f"""{SLOT} {INIT} {FILL} @!%p9 bra N; mbarrier.arrive.expect_tx.shared.b64 _, [bar], 512;
    cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [s+1024], [s], 256, [bar];
    cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.add.u32 [s+2048], [s], 256, [bar];
    N: {WAIT} ld.shared.u32 %r8, [%r6+1024]; ld.shared.u32 %r9, [%r6+2048]; mad.lo.u32 %r8, %r8, 100, %r9; st.global.u32 [%rd3], %r8;"""
    data = np.arange(64, dtype=U32)
    np.testing.assert_array_equal(run(kernel(body, SHARED), data, block=64, seed=seed), 101 * data)


@SEEDS
def test_st_async_and_red_async(seed: int) -> None:
    """Each thread sends its value to a slot of another one, and 1 to a common counter."""
    body = f"""{SLOT} {INIT} @%p9 mbarrier.arrive.expect_tx.shared.b64 _, [bar], 1280; xor.b32 %r7, %r0, 21; shl.b32 %r7, %r7, 3;
    add.u32 %r7, %r5, %r7;
    st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.u32 [%r7], {{%r0, %r3}}, [bar];
    cvta.shared::cluster.u64 %rd8, bar; cvta.shared.u64 %rd9, s; cvt.u64.u32 %rd10, %r0; shl.b64 %rd10, %rd10, 3; add.u64 %rd9, %rd9, %rd10;
    st.async.mbarrier::complete_tx::bytes.b64 [%rd9+1024], %rd10, [%rd8];
    red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [s+2048], 1, [bar];
    mov.u32 %r0, 99; {WAIT} mov.u32 %r0, %tid.x; shl.b32 %r9, %r0, 3; add.u32 %r9, %r5, %r9; ld.shared.u32 %r10, [%r9];
    ld.shared.u32 %r11, [s+2048];
    ld.shared.u64 %rd11, [%r9+1024]; cvt.u32.u64 %r12, %rd11; mad.lo.u32 %r10, %r10, 1000, %r11; mad.lo.u32 %r10, %r12, 1000000, %r10;
    st.global.u32 [%rd3], %r10;"""
    found = run(kernel(body, SHARED), block=64, seed=seed)
    lane = np.arange(64)
    np.testing.assert_array_equal(found, lane * 8_000_000 + (lane ^ 21) * 1000 + 64)


@SEEDS
def test_asynchronous_stores_to_global_memory_have_landed_at_the_end(seed: int) -> None:
    body = "st.async.release.gpu.global.u32 [%rd3], %r0; red.async.release.sys.global.add.u32 [%rd0+256], 2;"
    found = run(kernel(body), block=64, out=65, seed=seed)
    np.testing.assert_array_equal(found, [*range(64), 128])


def test_st_bulk_clears_shared_memory() -> None:
    body = f"""{SLOT} {FILL} @%p9 st.bulk.weak.shared::cta [s+16], 24, 0; cvta.shared.u64 %rd8, s; mov.u64 %rd9, 8;
    @%p9 st.bulk.weak [%rd8+64], %rd9, 0; mov.u32 %r9, 16; @%p9 st.bulk [%rd8+80], %r9, 0; bar.sync 0; {SHOW}"""
    expected = np.arange(5, 69)
    expected[[*range(4, 10), 16, 17, *range(20, 24)]] = 0
    np.testing.assert_array_equal(run(kernel(FIRST + body, SHARED), np.arange(5, 69, dtype=U32), block=64), expected)


@pytest.mark.parametrize(
    ("instruction", "kind", "what"),
    [
        (load("40"), "misaligned", "size"),
        (load(target="s+8"), "misaligned", "address"),
        (load(source="%rd1+4"), "misaligned", "address"),
        (load("512"), "out-of-bounds", ""),
        (load(target="s+4000"), "out-of-bounds", ""),
        (store("512"), "out-of-bounds", ""),
        ("mov.u16 %h1, 5;" + load(more=".multicast::cluster", rest=", %h1"), "out-of-bounds", "ranks"),
        ("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%rd0+4], [s], 16;", "misaligned", "address"),
        ("st.bulk.weak.shared::cta [s], 12, 0;", "misaligned", "size"),
        ("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b64 [s+4], %rd0, [bar];", "misaligned", ""),
        (LOAD.format(to="shared::cta", more="", target="s", source="%rd1", size=16, bar="s+4096", rest=""), "out-of-bounds", ""),
    ],
)
def test_faults_name_the_instruction_that_issues(instruction: str, kind: str, what: str) -> None:
    device = Device(kernel(f"{INIT} {instruction}", SHARED))
    buffer = device.buffer(np.zeros(64, U32))
    (fault,) = device.launch("k", 1, 32, buffer, buffer).faults
    assert fault.kind == kind
    assert what in fault.message
    assert fault.opcode in instruction
    assert fault.tid == (0, 0, 0)


@pytest.mark.parametrize("seed", range(8))
def test_a_pipeline_of_bulk_loads_with_stores_of_the_results(seed: int) -> None:
    """Three stages; one thread loads tiles and stores what the others have made of them."""
    inits = "".join(f"@%p9 mbarrier.init.shared.b64 [bars+{8 * k}], {1 if k < 3 else 64};" for k in range(6))
    body = f"""{FIRST} {inits} bar.sync 0; mov.u32 %r20, 0; mov.u32 %r21, 0; mov.u32 %r22, 0; mov.u32 %r5, s; mov.u32 %r6, bars;
    setp.ge.u32 %p2, %r0, 64; @%p2 bra LOADER;
    LOOP: mad.lo.u32 %r7, %r21, 8, %r6; C: mbarrier.try_wait.parity.shared.b64 %p1, [%r7], %r22; @!%p1 bra C;
    mad.lo.u32 %r8, %r21, 256, %r5; mad.lo.u32 %r8, %r0, 4, %r8; ld.shared.u32 %r9, [%r8]; mad.lo.u32 %r9, %r9, 3, %r0;
    st.shared.u32 [%r8], %r9;
    fence.proxy.async.shared::cta; mbarrier.arrive.shared.b64 _, [%r7+24];
    add.u32 %r21, %r21, 1; setp.eq.u32 %p3, %r21, 3; @%p3 mov.u32 %r21, 0; @%p3 xor.b32 %r22, %r22, 1;
    add.u32 %r20, %r20, 1; setp.lt.u32 %p3, %r20, 10; @%p3 bra LOOP; exit;
    LOADER: setp.ne.u32 %p2, %r0, 64; @%p2 exit;
    FIRST: mad.lo.u32 %r7, %r20, 8, %r6; mad.lo.u32 %r8, %r20, 256, %r5; mbarrier.arrive.expect_tx.shared.b64 _, [%r7], 256;
    cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r8], [%rd1], 256, [%r7]; add.u64 %rd1, %rd1, 256;
    add.u32 %r20, %r20, 1; setp.lt.u32 %p3, %r20, 3; @%p3 bra FIRST; mov.u32 %r20, 0;
    NEXT: mad.lo.u32 %r7, %r21, 8, %r6; mad.lo.u32 %r8, %r21, 256, %r5;
    E: mbarrier.try_wait.parity.shared.b64 %p1, [%r7+24], %r22; @!%p1 bra E;
    cp.async.bulk.global.shared::cta.bulk_group [%rd0], [%r8], 256; cp.async.bulk.commit_group; add.u64 %rd0, %rd0, 256;
    setp.ge.u32 %p4, %r20, 7; @%p4 bra AHEAD; cp.async.bulk.wait_group.read 0; mbarrier.arrive.expect_tx.shared.b64 _, [%r7], 256;
    cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r8], [%rd1], 256, [%r7]; add.u64 %rd1, %rd1, 256;
    AHEAD: add.u32 %r21, %r21, 1; setp.eq.u32 %p3, %r21, 3; @%p3 mov.u32 %r21, 0; @%p3 xor.b32 %r22, %r22, 1;
    add.u32 %r20, %r20, 1; setp.lt.u32 %p3, %r20, 10; @%p3 bra NEXT; cp.async.bulk.wait_group 0;"""
    data = np.random.default_rng(7).integers(0, 1 << 28, (10, 64)).astype(U32)
    found = run(kernel(body, SHARED + ".shared .align 8 .b64 bars[6];"), data, block=96, out=640, seed=seed, timeout=60)
    np.testing.assert_array_equal(found.reshape(10, 64), data * 3 + np.arange(64, dtype=U32))


def test_st_async_of_128_bits() -> None:
    body = f"""{SLOT} {INIT} @%p9 mbarrier.arrive.expect_tx.shared.b64 _, [bar], 1024; cvt.u64.u32 %rd10, %r0; mov.b128 %q1, {{%rd10, 7}};
    shl.b32 %r7, %r0, 4; add.u32 %r7, %r7, s; st.async.shared::cluster.mbarrier::complete_tx::bytes.b128 [%r7], %q1, [bar];
    {WAIT} ld.shared.v2.u64 {{%rd11, %rd12}}, [%r7]; cvt.u32.u64 %r8, %rd11; cvt.u32.u64 %r9, %rd12; mad.lo.u32 %r8, %r9, 1000, %r8;
    st.global.u32 [%rd3], %r8;"""
    np.testing.assert_array_equal(run(kernel(body, SHARED), block=64), 7000 + np.arange(64))
