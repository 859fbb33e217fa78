"""The registry: unknown opcodes, moves, atomics, and the shape of every Op."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest
from ops_reference import as_words, integers, op_of, run

from consan.backends.cpu.semantics.ops import DTYPES, OPERATIONS, Op, atomic_function, pack, semantics, unpack
from consan.instrument.isa import ROWS

UNKNOWN = [
    "frobnicate.u32",
    "add",
    "add.u8",
    "add.rn.u32",
    "add.u32.u32",
    "add.ftz.f64",
    "mul.u32",
    "mul.wide.u64",
    "fma.f32",
    "setp.u32",
    "setp.lo.s32",
    "setp.lt.b32",
    "cvt.f16.f32",
    "cvt.rn.f32.f16",
    "cvt.s32.f32",
    "cvt.rn.e4m3x2.f32",
    "shfl.sync.b32",
    "mma.sync.aligned.m16n8k16.col.row.f32.f16.f16.f32",
    "mma.sync.aligned.m16n8k16.row.col.f32.tf32.tf32.f32",
    "mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f16",
    "ld.global.u32",
    "bar.sync",
]


@pytest.mark.parametrize("opcode", UNKNOWN)
def test_unknown_is_none(opcode: str) -> None:
    assert semantics(tuple(opcode.split("."))) is None


def every_opcode() -> Iterator[str]:
    for row in ROWS:
        if row.form in OPERATIONS:
            yield from (".".join(parts) for parts in row.opcodes() if semantics(parts) is not None)


def operand(word: str, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    dtype = DTYPES[word]
    raw = rng.integers(0, 2 if dtype == np.bool_ else 256, (*shape, dtype.itemsize), dtype=np.uint8)
    return np.asarray(raw.view(dtype)[..., 0])


def forms(op: Op) -> list[Op]:
    return [op] if op.pair is None or op.pair is op else [op, op.pair]


@pytest.mark.parametrize("step", [10, pytest.param(1, marks=pytest.mark.slow)])
def test_every_opcode_runs_on_random_bits(step: int) -> None:
    """Each opcode of the table takes arrays and scalars of its words and gives its words back; the fast path agrees (see run).

    `step`: one of so many."""
    rng = np.random.default_rng(0)
    opcodes = set(every_opcode())
    assert len(opcodes) > 5000
    for opcode in sorted(opcodes)[::step]:
        for op in forms(op_of(opcode)):
            if "b128" in op.sources:
                continue
            for shape in ((3, 32),) if op.kind == "warp" else ((5,), ()):
                lead = [np.ones(shape, bool)] if op.kind == "warp" else []
                results = run(op, *lead, *(operand(word, shape, rng) for word in op.sources))
                assert all(r.shape == shape or (r.size == 1 and shape == ()) for r in results), opcode


@pytest.mark.parametrize("word", ["b16", "b32", "b64", "u16", "s32", "u64", "f32", "f64"])
def test_mov_keeps_bits(word: str) -> None:
    a = integers(f"u{int(word.lstrip('busf'))}", np.random.default_rng(1))
    assert as_words(run(op_of(f"mov.{word}"), a)[0]) == as_words(a)


def test_mov_pred() -> None:
    assert run(op_of("mov.pred"), np.array([True, False]))[0].tolist() == [True, False]


@pytest.mark.parametrize(("word", "count"), [("b16", 2), ("b32", 2), ("b32", 4), ("b64", 2), ("b64", 4), ("b128", 2), ("b128", 4)])
def test_pack_and_unpack(word: str, count: int) -> None:
    rng = np.random.default_rng(2)
    width = int(word[1:]) // count
    elements = [integers(f"u{width}", rng, 50) for _ in range(count)]
    packer, unpacker = pack(word, count), unpack(word, count)
    assert packer is not None
    assert unpacker is not None
    whole = packer.fn(*elements)
    for lane in range(50):
        parts = np.atleast_1d(whole[lane])
        value = sum(int(part) << (64 * i) for i, part in enumerate(parts))
        assert value == sum(int(x[lane]) << (width * i) for i, x in enumerate(elements))
    assert [x.tolist() for x in unpacker.fn(whole)] == [x.tolist() for x in elements]


def test_pack_with_an_immediate() -> None:
    packer = pack("b64", 2)
    assert packer is not None
    assert packer.fn(np.array(7, np.uint32), np.array([1, 2], np.uint32)).tolist() == [7 + (1 << 32), 7 + (2 << 32)]
    assert pack("b64", 3) is None
    assert unpack("b32", 1) is None


# Atomics -----------------------------------------------------------------------------------------------------------

INTEGER_ATOMICS: dict[str, Callable[[int, int], int]] = {
    "add": lambda r, s: r + s,
    "min": min,
    "max": max,
    "exch": lambda _r, s: s,
}
BIT_ATOMICS: dict[str, Callable[[int, int], int]] = {
    "and": lambda r, s: r & s,
    "or": lambda r, s: r | s,
    "xor": lambda r, s: r ^ s,
    "exch": lambda _r, s: s,
}


def check_atomic(name: str, word: str, python: Callable[[int, int], int]) -> None:
    rng = np.random.default_rng(3)
    typed = word.replace("b", "u")
    old, b = integers(typed, rng), integers(typed, rng)
    fn = atomic_function(name, word)
    assert fn is not None
    with np.errstate(all="ignore"):
        got = fn(old, b, None)
    bits = old.dtype.itemsize * 8
    assert got.dtype == old.dtype
    assert as_words(np.ascontiguousarray(got)) == [python(int(x), int(y)) % (1 << bits) for x, y in zip(old, b, strict=True)]


@pytest.mark.parametrize("word", ["u32", "s32", "u64", "s64"])
@pytest.mark.parametrize("name", INTEGER_ATOMICS)
def test_integer_atomics(name: str, word: str) -> None:
    check_atomic(name, word, INTEGER_ATOMICS[name])


@pytest.mark.parametrize("word", ["b32", "b64"])
@pytest.mark.parametrize("name", BIT_ATOMICS)
def test_bit_atomics(name: str, word: str) -> None:
    check_atomic(name, word, BIT_ATOMICS[name])


def test_inc_dec() -> None:
    check_atomic("inc", "u32", lambda r, s: 0 if r >= s else r + 1)
    check_atomic("dec", "u32", lambda r, s: s if r == 0 or r > s else r - 1)


@pytest.mark.parametrize("word", ["b16", "b32", "b64", "u32"])
def test_cas(word: str) -> None:
    fn = atomic_function("cas", word)
    assert fn is not None
    old, b, c = (np.array(x, DTYPES[word]) for x in ([1, 2, 3], [1, 9, 3], [7, 8, 9]))
    assert fn(old, b, c).tolist() == [7, 2, 9]


def test_float_atomics() -> None:
    tiny = np.array([1e-40], np.float32)
    for name, want in (("add", tiny + tiny), ("add.ftz", np.zeros(1, np.float32))):
        fn = atomic_function(name, "f32")
        assert fn is not None
        assert as_words(fn(tiny, tiny, None)) == as_words(want)
    double = atomic_function("add", "f64")
    half = atomic_function("add.noftz", "f16x2")
    brain = atomic_function("max", "bf16x2")
    assert double is not None
    assert half is not None
    assert brain is not None
    assert double(np.array([1.5]), np.array([2.0]), None).tolist() == [3.5]
    assert as_words(half(np.array([0x3C003C00], np.uint32), np.array([0x40003C00], np.uint32), None)) == [0x42004000]
    assert as_words(brain(np.array([0x3F803F80], np.uint32), np.array([0x40000000], np.uint32), None)) == [0x40003F80]
    assert atomic_function("add", "b32") is None
    assert atomic_function("cas", "b128") is None
