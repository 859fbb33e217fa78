"""cp.async in early, random and late schedules; ldmatrix and stmatrix."""

from __future__ import annotations

import numpy as np
import pytest
from engine_support import Device, kernel, run

U32 = np.uint32
SEEDS = pytest.mark.parametrize("seed", range(5))
SHARED = ".shared .align 16 .b8 s[4096];"
PLACE = "mov.u32 %r5, s; mad.lo.u32 %r6, %r0, 16, %r5; mul.wide.u32 %rd5, %r0, 16; add.u64 %rd6, %rd1, %rd5; add.u64 %rd7, %rd0, %rd5;"
SHOW = "ld.shared.v4.u32 {%r10, %r11, %r12, %r13}, [%r6]; st.global.v4.u32 [%rd7], {%r10, %r11, %r12, %r13};"
CLEAR = "mov.u32 %r9, 7; st.shared.v4.u32 [%r6], {%r9, %r9, %r9, %r9};"


def copy(instructions: str, seed: int = 0, block: int = 32) -> np.ndarray:
    data = np.arange(100, 100 + 4 * block, dtype=U32)
    return run(kernel(PLACE + CLEAR + instructions + SHOW, SHARED), data, block=block, out=4 * block, seed=seed).reshape(block, 4)


@SEEDS
@pytest.mark.parametrize("block", [32, 48])
def test_a_wait_makes_copies_visible(seed: int, block: int) -> None:
    expected = np.arange(100, 100 + 4 * block).reshape(block, 4)
    for wait in ("cp.async.commit_group; cp.async.wait_group 0;", "cp.async.wait_all;"):
        np.testing.assert_array_equal(copy(f"cp.async.cg.shared.global [%r6], [%rd6], 16; {wait}", seed, block), expected)


def test_without_a_wait_the_schedule_decides() -> None:
    copied = "cp.async.cg.shared.global [%r6], [%rd6], 16; cp.async.commit_group; cp.async.wait_group 1;"
    found = {copy(copied, seed).tobytes() for seed in range(12)}
    assert (copy(copied, 0) == 7).all(), "seed 0 lands copies as late as is legal"
    assert len(found) > 1


@SEEDS
def test_wait_group_serves_all_but_the_newest_groups(seed: int) -> None:
    body = """cp.async.ca.shared.global [%r6], [%rd6], 8; cp.async.commit_group; cp.async.ca.shared.global [%r6+8], [%rd6+8], 4;
    cp.async.commit_group; cp.async.ca.shared.global [%r6+12], [%rd6+12], 4; cp.async.commit_group; cp.async.wait_group 1;"""
    found = copy(body, seed)
    np.testing.assert_array_equal(found[:, :3], np.arange(100, 228).reshape(32, 4)[:, :3])
    assert seed or (found[:, 3] == 7).all()


@SEEDS
def test_copies_not_committed_are_not_covered_by_wait_group(seed: int) -> None:
    found = copy("cp.async.commit_group; cp.async.ca.shared.global [%r6], [%rd6], 16; cp.async.wait_group 0;", seed)
    assert seed or (found == 7).all()


def test_a_copy_reads_its_source_when_it_lands() -> None:
    body = "cp.async.ca.shared.global [%r6], [%rd6], 16; mov.u32 %r8, 5; st.global.u32 [%rd6], %r8; cp.async.wait_all;"
    assert set(copy(body)[:, 0].tolist()) == {5}


@SEEDS
def test_source_sizes_and_ignored_sources(seed: int) -> None:
    expected = np.arange(100, 228).reshape(32, 4).copy()
    expected[:, 2:] = 0
    np.testing.assert_array_equal(copy("cp.async.cg.shared.global [%r6], [%rd6], 16, 8; cp.async.wait_all;", seed), expected)
    body = """and.b32 %r7, %r0, 1; mul.lo.u32 %r7, %r7, 16; setp.eq.u32 %p1, %r7, 0; @%p1 mov.u64 %rd6, 0;
    cp.async.cg.shared.global.L2::128B [%r6], [%rd6], 16, %r7; cp.async.wait_all;"""
    expected = np.arange(100, 228).reshape(32, 4) * (np.arange(32) % 2)[:, None]
    np.testing.assert_array_equal(copy(body, seed), expected)
    body = "and.b32 %r7, %r0, 1; setp.eq.u32 %p1, %r7, 0; cp.async.ca.shared.global [%r6], [%rd6], 16, %p1; cp.async.wait_all;"
    np.testing.assert_array_equal(copy(body, seed), expected)


@SEEDS
def test_each_thread_waits_for_its_own_copies(seed: int) -> None:
    body = "cp.async.cg.shared.global [%r6], [%rd6], 16; setp.lt.u32 %p1, %r0, 10; @%p1 cp.async.wait_all;"
    found = copy(body, seed)
    np.testing.assert_array_equal(found[:10], np.arange(100, 140).reshape(10, 4))
    assert seed or (found[10:] == 7).all()


@pytest.mark.parametrize(("source", "target"), [("%rd6", "%r20"), ("%rd20", "%r6")])
def test_copies_are_checked_when_they_are_issued(source: str, target: str) -> None:
    body = f"{PLACE} mov.u32 %r20, 100000; mov.u64 %rd20, 64; cp.async.cg.shared.global [{target}], [{source}], 16;"
    device = Device(kernel(body, SHARED))
    (fault,) = device.launch("k", 1, 32, 0, device.buffer(np.zeros(128, U32))).faults
    assert fault.kind == "out-of-bounds"


MATRIX = """mov.u32 %r5, s; mad.lo.u32 %r6, %r0, 16, %r5; mul.wide.u32 %rd5, %r0, 16; add.u64 %rd6, %rd1, %rd5; add.u64 %rd7, %rd0, %rd5;
ld.global.v4.u32 {%r10, %r11, %r12, %r13}, [%rd6]; st.shared.v4.u32 [%r6], {%r10, %r11, %r12, %r13}; bar.sync 0;
"""


def fragments(matrices: np.ndarray, trans: bool) -> np.ndarray:
    """[lane, matrix, 2]: the definition, element by element."""
    out = np.zeros((32, len(matrices), 2), np.uint16)
    for lane in range(32):
        for number, matrix in enumerate(matrices):
            for half in range(2):
                row, column = lane // 4, 2 * (lane % 4) + half
                out[lane, number, half] = matrix[column, row] if trans else matrix[row, column]
    return out


@pytest.mark.parametrize("trans", ["", ".trans"])
@pytest.mark.parametrize("count", [1, 2, 4])
def test_ldmatrix(count: int, trans: str) -> None:
    names = ", ".join(f"%r{20 + k}" for k in range(count))
    body = f"{MATRIX} ldmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16 {{{names}}}, [%r6];"
    body += "".join(f"st.global.u32 [%rd7+{4 * k}], %r{20 + k};" for k in range(count))
    data = np.arange(256, dtype=np.uint16)
    found = run(kernel(body, SHARED), data, out=128).reshape(32, 4)[:, :count]
    np.testing.assert_array_equal(found.view(np.uint16).reshape(32, count, 2), fragments(data.reshape(4, 8, 8)[:count], bool(trans)))


@pytest.mark.parametrize("trans", ["", ".trans"])
def test_stmatrix_undoes_ldmatrix(trans: str) -> None:
    names = "{%r20, %r21, %r22, %r23}"
    body = f"""{MATRIX} ldmatrix.sync.aligned.m8n8.x4{trans}.shared.b16 {names}, [%r6]; bar.sync 0; {CLEAR} bar.sync 0;
    stmatrix.sync.aligned.m8n8.x4{trans}.shared.b16 [%r6], {names}; bar.sync 0; {SHOW}"""
    data = np.arange(128, dtype=U32)
    np.testing.assert_array_equal(run(kernel(body, SHARED), data, out=128), data)
