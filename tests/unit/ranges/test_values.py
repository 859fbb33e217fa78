"""Sums of a part of the CTA and a part of the thread, against the virtual machine's operations on all threads."""

from __future__ import annotations

import random

import numpy as np
import numpy.typing as npt
import pytest

from consan.backends.cpu.semantics.ops import semantics
from consan.instrument.ptx import parse
from consan.ranges import values
from consan.ranges.operations import SpreadOperation
from consan.ranges.values import Fork, SpreadValue, Unknown

Words = npt.NDArray[np.uint64]
CTAS, THREADS = 5, 8
OPCODES = (
    *("add.s32", "sub.u32", "mul.lo.s32", "mul.wide.s32", "mul.wide.u32", "mad.lo.u32", "mad.wide.s32", "shl.b32", "shr.u32", "shr.s32"),
    *("and.b32", "or.b32", "xor.b32", "cvt.u64.u32", "cvt.s64.s32", "cvt.u32.u64", "mov.u32", "add.s64", "setp.lt.s32", "setp.ge.u32"),
    *("setp.eq.s32", "setp.ne.u32", "min.s32", "max.u32", "rem.u32", "rem.s32", "div.s32", "div.u32"),
)
BITS = {"pred": 1}


def _part(rng: random.Random, size: int) -> Words:
    """Multiples of a power of two, small numbers, negative ones, one number for all."""
    unit = 1 << rng.choice((0, 0, 3, 8, 20, 29))
    start = rng.choice((0, 0, 1, -3, 1 << 31, (1 << 32) - 2))
    numbers = [(start + unit * each * rng.choice((0, 1, 1))) & (1 << 64) - 1 for each in range(size)]
    return np.array(numbers if rng.random() < 0.7 else numbers[:1], np.uint64)


def _bits(word: str) -> int:
    return BITS.get(word) or values.width(word)


@pytest.mark.parametrize("opcode", OPCODES)
def test_sums_are_what_the_machine_computes(opcode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(values, "MOST_SINGLE", 0)
    op = semantics(tuple(opcode.split(".")))
    assert op is not None
    names = ", ".join(f"%r{number}" for number in range(len(op.sources) + 1))
    text = f".version 8.0\n.target sm_80\n.address_size 64\n.entry k() {{ .reg .b64 %r<9>; {opcode} {names}; }}"
    (instruction,) = parse(text).functions[0].instructions()
    known = 0
    for seed in range(400):
        rng = random.Random(seed)
        masks = [np.uint64((1 << _bits(word)) - 1) for word in op.sources]
        sources = [SpreadValue(_part(rng, CTAS) & mask, _part(rng, THREADS) & mask) for mask in masks]
        if rng.random() < 0.7:
            sources[1:2] = [SpreadValue.same(rng.choice((1, 2, 3, 5, 7, 12, -3)) & int(masks[1])) for _ in sources[1:2]]
        bits = [_bits(word) for word in op.dests]
        try:
            with np.errstate(divide="ignore"):
                (found,) = SpreadOperation(instruction, len(sources), bits).results(sources, CTAS)
        except (Unknown, Fork):
            continue
        known += 1
        whole = [_whole(each, mask) for each, mask in zip(sources, masks, strict=True)]
        types = [values.DTYPES[word] for word in op.sources]
        typed = [each.astype(f"u{kind.itemsize}").view(kind) for each, kind in zip(whole, types, strict=True)]
        with np.errstate(divide="ignore"):
            made = np.asarray(op.fn(*typed))
        wanted = made.view(np.bool_ if bits[0] == 1 else np.dtype(f"u{bits[0] // 8}")).astype(np.uint64)
        assert (_whole(found, np.uint64((1 << bits[0]) - 1)) == wanted).all(), (seed, sources)
    assert known > 20


def _whole(value: SpreadValue, mask: np.uint64) -> Words:
    """The numbers of all threads."""
    of_cta, of_thread = np.broadcast_to(value.of_cta, CTAS), np.broadcast_to(value.of_thread, THREADS)
    return ((of_cta[:, None] + of_thread[None, :]) & mask).ravel()


def test_a_comparison_names_the_ctas_that_do_not_decide_it() -> None:
    value = SpreadValue(np.arange(4, dtype=np.uint64) * np.uint64(8), np.arange(8, dtype=np.uint64))
    with pytest.raises(Fork) as fork:
        values.compared("lt", value, SpreadValue.same(19), 32, signed=True)
    assert [each.tolist() for each in fork.value.sets] == [[True, True, False, True], [False, False, True, False]]


def test_numbers_that_wrap_are_no_sum() -> None:
    value = SpreadValue(np.array([0, 1 << 31], np.uint64), np.array([0, 1 << 31], np.uint64))
    with pytest.raises(Unknown):
        values.extended(value, 32, signed=False)
