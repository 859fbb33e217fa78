"""Tensor memory on the virtual machine: allocation, loads and stores of all shapes, waits, copies, shifts, commits, what is illegal."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tcgen05_reference as reference
from tcgen05_support import BASE, INIT, SYNC, alloc, commit_and_wait, dealloc, run, save, start, wait

from consan.backends.cpu import LaunchStats

Array = np.ndarray[Any, Any]
POISON = 0xFFFFFFFF
EMPTY = np.zeros(16, np.uint8)
SEEDS = pytest.mark.parametrize("seed", range(4))
ALLOC = "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32"
DEALLOC = "tcgen05.dealloc.cta_group::1.sync.aligned.b32"
FENCED = "tcgen05.fence::before_thread_sync; bar.sync 0; tcgen05.fence::after_thread_sync;"


def names(count: int, first: int = 0) -> str:
    return ", ".join(f"%d{i}" for i in range(first, first + count))


def fault_of(body: str, image: Array = EMPTY, **more: Any) -> tuple[str, str]:
    stats, _ = start(body, image, 1, **more)
    (fault,) = stats.faults
    return fault.kind, fault.message


def blocked(stats: LaunchStats) -> list[tuple[int, str, str]]:
    assert stats.deadlocked
    return [(each.warp, each.why, each.opcode.partition(".cta_group")[0]) for each in stats.blocked]


# Allocation ------------------------------------------------------------------------------------------------------------------


def test_the_first_address_is_base_of_the_image() -> None:
    assert run("@%first st.global.b32 [%rd0], %smem;", EMPTY, 1)[0] == BASE


def test_columns_are_given_out_first_fit_and_again_after_a_dealloc() -> None:
    body = f"""@%warp0 {ALLOC} [tmem], 128; @%warp0 ld.shared.b32 %d0, [tmem]; @%warp0 {ALLOC} [tmem], 64;
@%warp0 ld.shared.b32 %d1, [tmem]; @%warp0 {ALLOC} [tmem], 32; @%warp0 ld.shared.b32 %d2, [tmem];
@%warp0 {DEALLOC} %d1, 64; @%warp0 {ALLOC} [tmem], 32;
@%warp0 ld.shared.b32 %d3, [tmem]; @%first st.global.v4.b32 [%rd0], {{%d0, %d1, %d2, %d3}};"""
    assert run(body, EMPTY, 4).tolist() == [0, 128, 192, 128]


def test_an_alloc_waits_for_room_that_another_warp_makes() -> None:
    """Warp 1 asks while warp 0 has everything, which it gives back only later."""
    body = f"""setp.eq.u32 %p2, %thread, 32; shr.u32 %d4, %thread, 5; setp.eq.u32 %p3, %d4, 1; mov.b32 %d5, 512;
@%warp0 {ALLOC} [tmem], %d5; @%warp0 ld.shared.b32 %t, [tmem]; @%warp0 st.shared.b32 [%smem], 1; bar.sync 0;
@%p3 {ALLOC} [tmem], 256; @%p3 st.shared.b32 [%smem], 2; @%p3 bar.arrive 1, 64; @%warp0 bra FIRST; bra OVER;
FIRST: @%first ld.volatile.shared.b32 %d7, [%smem]; @%first st.global.b32 [%rd0], %d7; {DEALLOC} %t, 512; bar.sync 1, 64;
@%first ld.shared.b32 %d7, [%smem]; @%first st.global.b32 [%rd0+4], %d7;
OVER: """
    assert run(body, EMPTY, 2).tolist() == [1, 2]


def test_an_alloc_that_can_never_be_served_is_a_deadlock() -> None:
    stats, _ = start(f"@%warp0 {ALLOC} [tmem], 512; @%warp0 {ALLOC} [tmem], 32; bar.sync 0;", EMPTY, 1)
    assert (0, "columns", "tcgen05.alloc") in blocked(stats)


def test_a_pair_in_which_one_cta_does_not_allocate_is_a_deadlock() -> None:
    even = "setp.eq.u32 %p2, %rank, 0; and.pred %p2, %p2, %warp0;"
    body = f"{even} @%p2 tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [tmem], 32;"
    stats, _ = start(body + SYNC, EMPTY[:16].repeat(2), 1, grid=2, cluster=2)
    assert (0, "pair", "tcgen05.alloc") in blocked(stats)


@SEEDS
def test_both_ctas_of_a_pair_get_the_same_address(seed: int) -> None:
    body = alloc(64, 2) + "shl.b32 %d0, %rank, 2; cvt.u64.u32 %rd3, %d0; add.u64 %rd3, %rd0, %rd3; @%first st.global.b32 [%rd3], %t;"
    assert run(body + dealloc(64, 2), EMPTY.repeat(2), 2, grid=2, cluster=2, seed=seed).tolist() == [0, 0]


ILLEGAL = [
    (f"mov.b32 %d8, 48; @%warp0 {ALLOC} [tmem], %d8;", "48 columns asked for: it must be a power of two from 32 to 512"),
    (
        f"@%warp0 tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned; @%warp0 {ALLOC} [tmem], 32;",
        "an allocation after tcgen05.relinquish_alloc_permit of the CTA",
    ),
    (f"@%warp0 {ALLOC} [tmem], 64; @%warp0 {DEALLOC} %d9, 32;", "not an allocation of the CTA, which has 64 columns at 0x0"),
    (f"@%warp0 {DEALLOC} %d9, 32;", "32 columns at 0x0 are not an allocation of the CTA, which has nothing"),
    ("@%warp0 tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [tmem], 32;", ".cta_group::2 in clusters of 1"),
]


@pytest.mark.parametrize(("body", "message"), ILLEGAL)
def test_what_the_hardware_traps_on_ends_the_launch(body: str, message: str) -> None:
    kind, found = fault_of(body)
    assert kind == "illegal"
    assert message in found


def test_an_alloc_of_a_part_of_a_warp_is_divergent() -> None:
    assert fault_of(f"@%first {ALLOC} [tmem], 32;")[0] == "divergent"


def test_a_fresh_allocation_reads_as_nan_on_every_run() -> None:
    assert (run(alloc(32) + save(32) + dealloc(32), EMPTY, 128 * 32) == POISON).all()


# Loads and stores ------------------------------------------------------------------------------------------------------------

FILL = f"""mul.lo.u32 %r20, %thread, 65536;
{"".join(f"add.u32 %d{i}, %r20, {i};" for i in range(64))}
tcgen05.st.sync.aligned.32x32b.x64.b32 [%t], {{{names(64)}}}; tcgen05.wait::st.sync.aligned;
"""
"""Each cell holds its own address."""


def show(count: int) -> str:
    stores = "".join(f"st.global.b32 [%rd5+{4 * i}], %d{i};" for i in range(count))
    return f"mul.wide.u32 %rd5, %thread, {4 * count}; add.u64 %rd5, %rd0, %rd5; {stores}"


SHAPES = [("32x32b", 1, 0), ("32x32b", 8, 0), ("16x64b", 4, 0), ("16x128b", 2, 0), ("16x256b", 2, 0), ("16x32bx2", 4, 16)]


PLACES = [(*shape, at) for shape in SHAPES for at in (0, 3, 16 << 16) if at < 4 or shape[0] != "32x32b"]


@pytest.mark.parametrize(("shape", "count", "half", "at"), PLACES)
def test_loads(shape: str, count: int, half: int, at: int) -> None:
    each = count * {"16x128b": 2, "16x256b": 4}.get(shape, 1)
    tail = f", {half}" if half else ""
    body = f"""{alloc(64)} {FILL} mov.b32 %r22, 0;
tcgen05.ld.sync.aligned.{shape}.x{count}.b32 {{{names(each)}}}, [%t + {at}]{tail}; tcgen05.wait::ld.sync.aligned;
{show(each)} {dealloc(64)}"""
    found = run(body, EMPTY, 128 * each).reshape(128, each)
    for thread in range(128):
        for register in range(each):
            row, column = reference.ld_cell(shape, thread % 32, register, half)
            assert found[thread, register] == ((thread // 32 * 32 + row) << 16) + column + at


@pytest.mark.parametrize(("shape", "count", "half"), SHAPES)
def test_stores(shape: str, count: int, half: int) -> None:
    each = count * {"16x128b": 2, "16x256b": 4}.get(shape, 1)
    tail = f", {half}" if half else ""
    values = "".join(f"add.u32 %d{i}, %r20, {i};" for i in range(each))
    body = f"""{alloc(64)} mul.lo.u32 %r20, %thread, 256; {values}
tcgen05.st.sync.aligned.{shape}.x{count}.b32 [%t]{tail}, {{{names(each)}}}; tcgen05.wait::st.sync.aligned; {save(64)} {dealloc(64)}"""
    found = run(body, EMPTY, 128 * 64).reshape(128, 64)
    want = np.full((128, 64), POISON, np.uint32)
    for thread in range(128):
        for register in range(each):
            row, column = reference.ld_cell(shape, thread % 32, register, half)
            want[thread // 32 * 32 + row, column] = 256 * thread + register
    np.testing.assert_array_equal(found, want)


def test_packed_loads_and_unpacking_stores() -> None:
    """A register holds the low halves of two neighbouring columns."""
    body = f"""{alloc(64)} shl.b32 %r20, %thread, 8; {"".join(f"add.u32 %d{i}, %r20, {0x10000 * (i + 100) + i};" for i in range(4))}
tcgen05.st.sync.aligned.32x32b.x4.unpack::16b.b32 [%t], {{{names(4)}}}; tcgen05.wait::st.sync.aligned;
tcgen05.ld.sync.aligned.32x32b.x4.pack::16b.b32 {{{names(4, 8)}}}, [%t]; tcgen05.ld.sync.aligned.32x32b.x4.b32 {{{names(4, 4)}}}, [%t];
tcgen05.wait::ld.sync.aligned; {show(12)} {dealloc(64)}"""
    found = run(body, EMPTY, 128 * 12).reshape(128, 12)
    np.testing.assert_array_equal(found[:, 8:], found[:, :4])
    np.testing.assert_array_equal(found[:, 4], found[:, 0] & 0xFFFF)
    np.testing.assert_array_equal(found[:, 5], found[:, 0] >> 16)
    np.testing.assert_array_equal(found[:, 7], found[:, 1] >> 16)


def test_the_lanes_of_another_quarter_are_out_of_reach() -> None:
    body = f"{alloc(32)} tcgen05.ld.sync.aligned.32x32b.x1.b32 {{%d0}}, [%t + {64 << 16}]; tcgen05.wait::ld.sync.aligned;"
    assert fault_of(body) == ("illegal", "lanes 64 to 95: this warp reaches lanes 0 to 31 only")
    body = f"{alloc(32)} tcgen05.ld.sync.aligned.32x32b.x2.b32 {{%d0, %d1}}, [%t + 511]; tcgen05.wait::ld.sync.aligned;"
    assert fault_of(body) == ("illegal", "columns up to 512: tensor memory has columns 0 to 511")


def test_a_warp_may_name_the_lanes_of_its_own_quarter() -> None:
    body = f"""{alloc(64)} {FILL} shr.u32 %r20, %thread, 5; shl.b32 %r20, %r20, 21; add.u32 %r20, %r20, %t;
tcgen05.ld.sync.aligned.32x32b.x1.b32 {{%d0}}, [%r20]; tcgen05.wait::ld.sync.aligned; {show(1)} {dealloc(64)}"""
    assert run(body, EMPTY, 128).tolist() == [thread << 16 for thread in range(128)]


@pytest.mark.parametrize(
    ("operation", "want"),
    [("max.f32", 4), ("min.f32", -4), ("max.abs.f32", 4), ("min.abs.f32", 1), ("max.s32", None), ("min.NaN.f32", -4)],
)
def test_loads_that_reduce_their_columns(operation: str, want: float | None) -> None:
    columns = np.array([2, -4, 4, 1], np.float32)
    values = "".join(f"mov.b32 %d{i}, {bits};" for i, bits in enumerate(columns.view(np.uint32).tolist()))
    body = f"""{alloc(64)} {values} tcgen05.st.sync.aligned.32x32b.x4.b32 [%t], {{{names(4)}}}; tcgen05.wait::st.sync.aligned;
tcgen05.ld.red.sync.aligned.32x32b.x4.{operation} {{{names(4)}}}, %d4, [%t]; tcgen05.wait::ld.sync.aligned; {show(5)} {dealloc(64)}"""
    found = run(body, EMPTY, 128 * 5, target="sm_103a").reshape(128, 5)
    assert found[7, :4].view(np.float32).tolist() == columns.tolist()
    assert found[7, 4:].view(np.float32)[0] == want if want is not None else found[7, 4] == columns.view(np.int32).max()


# Waits -----------------------------------------------------------------------------------------------------------------------


def over(before: str, after: str, seed: int = 0) -> Array:
    """%d0 is loaded from a column that is stored over: what stands between decides what is read."""
    body = f"""{alloc(64)} {FILL} mov.b32 %d9, 7; tcgen05.ld.sync.aligned.32x32b.x1.b32 {{%d0}}, [%t + 1]; {before}
tcgen05.st.sync.aligned.32x32b.x1.b32 [%t + 1], {{%d9}}; tcgen05.wait::st.sync.aligned; {after} {show(1)} {dealloc(64)}"""
    return run(body, EMPTY, 128, seed=seed)


RIGHT = [(thread << 16) + 1 for thread in range(128)]


@SEEDS
@pytest.mark.parametrize("consumer", ["tcgen05.wait::ld.sync.aligned;", "mov.b32 %d20, %d0;", "st.shared.b32 [%smem], %d0;"])
def test_a_load_is_over_at_its_wait_and_where_its_register_is_named(consumer: str, seed: int) -> None:
    assert over(consumer, "", seed).tolist() == RIGHT


def test_a_load_that_is_not_awaited_reads_what_comes_later() -> None:
    assert over("", "tcgen05.wait::ld.sync.aligned;").tolist() == [7] * 128


def test_a_load_whose_register_is_written_again_loses_against_it() -> None:
    assert over("mov.b32 %d0, 5;", "").tolist() == [5] * 128


def test_a_store_that_is_not_awaited_comes_after_what_follows() -> None:
    body = f"""{alloc(64)} {FILL} mov.b32 %d9, 7; tcgen05.st.sync.aligned.32x32b.x1.b32 [%t + 1], {{%d9}};
tcgen05.ld.sync.aligned.32x32b.x1.b32 {{%d0}}, [%t + 1]; tcgen05.wait::ld.sync.aligned; {show(1)} {dealloc(64)}"""
    assert run(body, EMPTY, 128).tolist() == RIGHT


# Copies and shifts -----------------------------------------------------------------------------------------------------------


def copied(qualifiers: str, rows: int, octets: int, raw: Array | None = None) -> tuple[Array, Array]:
    """Cells [128, 8] after a copy of rows of random bytes, and the rows as words."""
    rng = np.random.default_rng(rows)
    source = rng.integers(0, 256, (rows, octets), np.uint8) if raw is None else raw
    layout, end = reference.tile(BASE, 1, 0, False, -(-rows // 8) * 8, octets)
    image = np.zeros(end - BASE, np.uint8)
    reference.put(image, layout, source[..., None], BASE)
    body = alloc(32) + f"mov.b64 %rd10, {layout.descriptor}; @%first tcgen05.cp.cta_group::1.{qualifiers} [%t + 4], %rd10;"
    found = run(body + commit_and_wait() + save(8, 4) + dealloc(32), image, 128 * 8).reshape(128, 8)
    return found, source


COPIES = ["128x256b", "128x128b", "4x256b", "64x128b.warpx2::02_13", "64x128b.warpx2::01_23", "32x128b.warpx4", "warpx4.32x128b"]


@pytest.mark.parametrize("qualifiers", COPIES)
def test_copies_from_shared_memory(qualifiers: str) -> None:
    shape = "32x128b.warpx4" if qualifiers.startswith("warpx4") else qualifiers
    rows, octets = int(shape.partition("x")[0]), 32 if "256b" in shape else 16
    found, source = copied(qualifiers, rows, octets)
    want = np.full((128, 8), POISON, np.uint32)
    for row in range(rows):
        for lane in reference.cp_lanes(shape, row):
            want[lane, : octets // 4] = source[row].view(np.uint32)
    np.testing.assert_array_equal(found, want)


@pytest.mark.parametrize(("word", "width"), [("b4x16_p64", 4), ("b6x16_p32", 6)])
def test_copies_that_decompress(word: str, width: int) -> None:
    codes = np.random.default_rng(0).integers(0, 1 << width, (128, 32))
    found, _ = copied(f"128x256b.b8x16.{word}", 128, 32, reference.padded(codes, width))
    np.testing.assert_array_equal(found.view(np.uint8).reshape(128, 32), codes << 2 if width == 4 else codes)


def test_a_shift_moves_rows_down() -> None:
    body = alloc(64) + FILL + FENCED + "@%first tcgen05.shift.cta_group::1.down [%t + 8];" + commit_and_wait() + save(64) + dealloc(64)
    found = run(body, EMPTY, 128 * 64).reshape(128, 64)
    want = (np.arange(128, dtype=np.uint32)[:, None] << 16) + np.arange(64, dtype=np.uint32)
    want[:31, 8:16] = want[1:32, 8:16].copy()
    np.testing.assert_array_equal(found, want)


# Commits ---------------------------------------------------------------------------------------------------------------------

LAYOUT, _ = reference.tile(BASE, 1, 0, False, 128, 32)
COPY = f"mov.b64 %rd10, {LAYOUT.descriptor}; @%first tcgen05.cp.cta_group::1.128x256b [%t], %rd10;"
BYTES = np.arange(4096, dtype=np.uint32).view(np.uint8)[:4096]


@SEEDS
@pytest.mark.parametrize("address", ["generic", "widened", "shared"])
def test_a_commit_arrives_when_the_operations_are_done(address: str, seed: int) -> None:
    """Without a state space the address is generic; Triton passes a shared one that it has widened."""
    commit = "@%first tcgen05.commit.cta_group::1.mbarrier::arrive::one.b64 [%rd15];" + wait(0)
    there = "cvt.u64.u32 %rd15, %bar;" + ("cvta.shared.u64 %rd15, %rd15;" if address == "generic" else "")
    body = alloc(32) + COPY + (commit_and_wait() if address == "shared" else there + commit) + save(8) + dealloc(32)
    found = run(body, BYTES, 128 * 8, seed=seed)
    assert not (found == POISON).any()


def test_a_commit_without_operations_and_two_in_a_row_arrive() -> None:
    commit = "@%first tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%bar];"
    body = alloc(32) + commit + wait(0) + COPY + commit + wait(1).replace("WAIT1", "NEXT") + save(8) + dealloc(32)
    assert not (run(body, BYTES, 128 * 8) == POISON).any()


def test_a_commit_by_another_thread_says_nothing() -> None:
    other = "setp.eq.u32 %p5, %thread, 1; @%p5 tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%bar];"
    found = run(alloc(32) + COPY + other + wait(0) + save(8) + dealloc(32), BYTES, 128 * 8)
    assert (found == POISON).any()


def test_a_commit_before_the_operation_says_nothing() -> None:
    commit = "@%first tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%bar];"
    assert (run(alloc(32) + commit + COPY + wait(0) + save(8) + dealloc(32), BYTES, 128 * 8) == POISON).any()


@SEEDS
def test_operations_of_two_threads_with_fences_between_them_stay_in_order(seed: int) -> None:
    """The second thread copies other bytes over those of the first; its commit alone is awaited."""
    second, _ = reference.tile(BASE + 4096, 1, 0, False, 128, 32)
    image = np.concatenate([BYTES, np.full(4096, 9, np.uint8)])
    later = f"mov.b64 %rd10, {second.descriptor}; setp.eq.u32 %p5, %thread, 64; @%p5 tcgen05.cp.cta_group::1.128x256b [%t], %rd10;"
    commit = "@%p5 tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%bar];"
    found = run(alloc(32) + COPY + FENCED + later + commit + wait(0) + save(8) + dealloc(32), image, 128 * 8, seed=seed)
    assert (found == 0x09090909).all()


@SEEDS
def test_a_multicast_commit_arrives_in_each_cta_of_the_mask(seed: int) -> None:
    only = "setp.eq.u32 %p6, %rank, 1; and.pred %p6, %p6, %first; mov.b16 %h0, 5;"
    commit = "@%p6 tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%bar], %h0;"
    even = "and.b32 %d0, %rank, 1; setp.eq.u32 %p7, %d0, 0; @!%p7 bra OVER;"
    mark = "shl.b32 %d0, %rank, 2; cvt.u64.u32 %rd3, %d0; add.u64 %rd3, %rd0, %rd3; @%first st.global.b32 [%rd3], 1; OVER:"
    body = INIT + SYNC + only + commit + even + wait(0) + mark + SYNC
    assert run(body, EMPTY.repeat(4), 4, grid=4, cluster=4, seed=seed).tolist() == [1, 0, 1, 0]


def test_a_mask_that_names_a_cta_outside_the_cluster() -> None:
    commit = "@%first tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%bar], %h0;"
    body = f"{INIT}{SYNC} mov.b16 %h0, 4; {commit}"
    kind, message = fault_of(body, EMPTY.repeat(2), grid=2, cluster=2)
    assert (kind, message) == ("illegal", "the mask of CTAs, 0x4, names rank 2; the cluster has ranks 0 to 1")


# Faults of addresses ---------------------------------------------------------------------------------------------------------


def test_a_descriptor_that_leaves_shared_memory_is_out_of_bounds() -> None:
    descriptor = reference.Layout(0x3FFE0, 4096, 8192, 0, False, 1).descriptor
    body = alloc(32) + f"mov.b64 %rd10, {descriptor}; @%first tcgen05.cp.cta_group::1.128x256b [%t], %rd10;"
    assert fault_of(body)[0] == "out-of-bounds"
