"""tcgen05 with .cta_group::2 on the virtual machine: products over the memories of both CTAs, copies, commits to both."""

from __future__ import annotations

import numpy as np
import pytest
import tcgen05_reference as reference
from tcgen05_operands import DEPTH, Image, Operand, gather, load, mma, numbers_of, store_columns
from tcgen05_support import BASE, SYNC, alloc, dealloc, run, save, start, wait

SEEDS = pytest.mark.parametrize("seed", range(3))
LEADER = "setp.eq.u32 %p8, %rank, 0; and.pred %first, %first, %p8;"
COMMIT = "mov.b16 %h0, 3; @%first tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%bar], %h0;"
PAIR = {"grid": 2, "cluster": 2}


def issued(text: str, columns: int, columns_saved: int) -> str:
    """The even CTA issues; both wait for the commit and save."""
    return alloc(columns, 2) + LEADER + text + COMMIT + wait(0) + save(columns_saved) + dealloc(columns, 2)


def halves(operand: Operand, region: int, images: list[Image], mode: int) -> int:
    """Half of the rows in each CTA, at the same place; returns the descriptor."""
    parts = np.split(operand.octets, 2)
    both = [Operand(operand.word, operand.numbers, part, operand.size) for part in parts]
    (descriptor,) = {image.place(region, part, mode) for image, part in zip(images, both, strict=True)}
    return descriptor


@SEEDS
@pytest.mark.parametrize(
    ("kind", "word", "d", "m", "n"), [("f16", "f16", "f32", 256, 128), ("f16", "bf16", "f32", 128, 64), ("i8", "s8", "s32", 128, 96)]
)
def test_products_of_a_pair(kind: str, word: str, d: str, m: int, n: int, seed: int) -> None:
    rng = np.random.default_rng(m)
    a, b = Operand.random(rng, word, (m, DEPTH[kind])), Operand.random(rng, word, (n, DEPTH[kind]))
    images = [Image(), Image()]
    descs = halves(a, 0, images, 2), halves(b, 1, images, 4)
    text = load(*descs, reference.plain(d, word, word, m, n)) + mma(f".cta_group::2.kind::{kind}")
    raw = np.concatenate([image.raw for image in images])
    found = run(issued(text, 128, 128), raw, 2 * 128 * 128, seed=seed, **PAIR).reshape(2, 128, 128)
    np.testing.assert_array_equal(numbers_of(d, gather(found, m, n, 2)), a.numbers @ b.numbers.T)


@pytest.mark.parametrize("m", [128, 256])
def test_a_in_the_tensor_memories_of_both(m: int) -> None:
    """M = 128: each half of the lanes needs a copy of A."""
    n, rng = 32, np.random.default_rng(m)
    a, b = Operand.random(rng, "f16", (m, 16)), Operand.random(rng, "f16", (n, 16))
    images = [Image(), Image()]
    descriptor = halves(b, 1, images, 2)
    cells = np.zeros((2, 128, 8), np.uint32)
    for row in range(m):
        for column in (0, n - 1):
            cta, lane, _ = reference.d_cell((m, n), row, column, 2)
            cells[cta, lane] = a.octets[row].reshape(-1).view(np.uint32)
    for image, words in zip(images, cells, strict=True):
        image.raw[:4096] = words.reshape(-1).view(np.uint8)
    text = "add.u32 %r50, %t, 64;" + store_columns("%r50", 8, 0) + SYNC + load(0, descriptor, reference.plain("f32", "f16", "f16", m, n))
    body = issued(text + mma(".cta_group::2.kind::f16", a="[%r50]"), 128, 32)
    found = run(body, np.concatenate([image.raw for image in images]), 2 * 128 * 32, **PAIR).reshape(2, 128, 32)
    np.testing.assert_array_equal(numbers_of("f32", gather(found, m, n, 2)), a.numbers @ b.numbers.T)


def test_disabled_lanes_of_both() -> None:
    """Words 4 to 7 are about the odd CTA."""
    rng = np.random.default_rng(0)
    a, b = Operand.random(rng, "f16", (256, 16)), Operand.random(rng, "f16", (32, 16))
    images = [Image(), Image()]
    descs = halves(a, 0, images, 2), halves(b, 1, images, 2)
    words = [1, 0, 0, 0, 0, 0, 0, 1 << 31]
    masks = "".join(f"mov.b32 %r{40 + i}, {word};" for i, word in enumerate(words))
    keep = "{" + ", ".join(f"%r{40 + i}" for i in range(8)) + "}, %keep"
    text = load(*descs, reference.plain("f32", "f16", "f16", 256, 32)) + masks + mma(".cta_group::2.kind::f16", keep=keep)
    found = run(issued(text, 32, 32), np.concatenate([image.raw for image in images]), 2 * 128 * 32, **PAIR).reshape(256, 32)
    want = a.numbers @ b.numbers.T
    off = np.isin(np.arange(256), [0, 255])
    np.testing.assert_array_equal(found.view(np.float32)[~off], want[~off])
    assert (found[off] == 0xFFFFFFFF).all()


def test_a_copy_of_a_pair_takes_each_ctas_own_bytes() -> None:
    layout, _ = reference.tile(BASE, 1, 0, False, 128, 32)
    images = [np.full(4096, 17 * (cta + 1), np.uint8) for cta in range(2)]
    text = f"mov.b64 %rd10, {layout.descriptor}; @%first tcgen05.cp.cta_group::2.128x256b [%t], %rd10;"
    found = run(issued(text, 32, 8), np.concatenate(images), 2 * 128 * 8, **PAIR).reshape(2, -1)
    assert [set(cta.tolist()) for cta in found] == [{0x11111111}, {0x22222222}]


def test_a_commit_to_one_cta_leaves_the_other_waiting() -> None:
    commit = "@%first tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.b64 [%bar];"
    stats, _ = start(alloc(32, 2) + LEADER + commit + wait(0) + dealloc(32, 2), np.zeros(32, np.uint8), 1, **PAIR)
    assert stats.deadlocked
    assert {each.cluster_rank for each in stats.blocked if each.why == "mbarrier"} == {1}
