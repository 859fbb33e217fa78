"""Proofs that leave the numbers of pointers open, against all threads one by one: random arithmetic, and pointers near to each other."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any

import pytest

from consan.instrument.ptx import parse
from consan.ranges import LaunchExtents, NotProven, Slice, operations, prove, slices
from consan.ranges.proof import PlacedExtent
from consan.session.planning import proofs
from consan.session.planning.proofs import Proofs

CTAS, THREADS = 3, 4
SHAPE = LaunchExtents((CTAS, 1, 1), (THREADS, 1, 1))
WORD = (1 << 64) - 1
HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k({params}) {{\n"
HEAD += ".reg .b32 %r<9>; .reg .b64 %d<40>; .reg .pred %p<4>;\n"
IDS = "mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mad.lo.s32 %r3, %r2, 4, %r1; cvt.u64.u32 %d1, %r1; cvt.u64.u32 %d2, %r2;\n"
# An instruction on registers x, y, z with a number, and what it computes.
OPERATIONS: dict[str, Any] = {
    "add.s64 {d}, {x}, {y};": lambda x, y, z, n: x + y,
    "add.u64 {d}, {x}, {n};": lambda x, y, z, n: x + n,
    "sub.s64 {d}, {x}, {y};": lambda x, y, z, n: x - y,
    "sub.s64 {d}, {n}, {x};": lambda x, y, z, n: n - x,
    "mul.lo.s64 {d}, {x}, {n};": lambda x, y, z, n: x * n,
    "mad.lo.s64 {d}, {x}, {n}, {y};": lambda x, y, z, n: x * n + y,
    "mad.lo.s64 {d}, {n}, {n}, {x};": lambda x, y, z, n: n * n + x,
    "shl.b64 {d}, {x}, 1;": lambda x, y, z, n: x << 1,
    "and.b64 {d}, {x}, 15;": lambda x, y, z, n: x & 15,
    "or.b64 {d}, {x}, {n};": lambda x, y, z, n: x | n,
    "mov.u64 {d}, {x};": lambda x, y, z, n: x,
    "cvta.to.global.u64 {d}, {x};": lambda x, y, z, n: x,
    "cvt.u64.u64 {d}, {x};": lambda x, y, z, n: x,
    "min.u64 {d}, {x}, {y};": lambda x, y, z, n: min(x, y),
    "setp.lt.u64 %p1, {z}, {n}; selp.b64 {d}, {x}, {y}, %p1;": lambda x, y, z, n: x if z < n else y,
    "setp.eq.s64 %p2, {x}, {y}; selp.b64 {d}, {y}, {z}, %p2;": lambda x, y, z, n: y if x == y else z,
}


def _program(rng: random.Random) -> tuple[str, list[tuple[Any, int, int, int, int]]]:
    """A kernel that stores a byte at an address that some arithmetic on three words gives, and the arithmetic."""
    text = HEAD.format(params=".param .u64 a, .param .u64 b, .param .u64 s") + IDS
    text += "ld.param.u64 %d3, [a]; ld.param.u64 %d4, [b]; ld.param.u64 %d5, [s];\n"
    made, latest = [], 3
    for number in range(6, 6 + rng.randrange(2, 6)):
        form = rng.choice(list(OPERATIONS))
        x, y, z = latest, *(rng.choice((1, 2, 3, 4, 5)) for _ in range(2))
        if rng.random() < 0.2:
            x, y = y, x
        n, latest = rng.choice((1, 2, 3, 4, 12, 64)), number
        text += form.format(d=f"%d{number}", x=f"%d{x}", y=f"%d{y}", z=f"%d{z}", n=n) + "\n"
        made.append((OPERATIONS[form], x, y, z, n))
    return text + f"mad.lo.s64 %d39, %d1, 8, %d{latest}; st.global.u8 [%d39], %r1; ret; }}", made


def _addresses(made: list[tuple[Any, int, int, int, int]], values: tuple[int, ...]) -> list[int]:
    found = []
    for thread in range(CTAS * THREADS):
        words = [0, thread % THREADS, thread // THREADS, *values]
        for compute, x, y, z, n in made:
            words.append(compute(words[x], words[y], words[z], n) & WORD)
        found.append((thread % THREADS * 8 + words[-1]) & WORD)
    return found


def _check_arithmetic(seeds: range) -> int:
    """Compare the bytes that a proof names with those of all threads, of launches that may share it. Returns how many were shared."""
    shared = 0
    for seed in seeds:
        rng = random.Random(seed)
        text, made = _program(rng)
        kernel = Slice(parse(text).functions[0])
        known: dict[tuple[bytes, ...], Any] = {}
        for _ in range(4):
            values = (*(rng.choice((0x7F0000000000, 0x7F0000001000, 0x7F0000001003, 0)) for _ in range(2)), rng.choice((0, 3, 64, 1 << 40)))
            args = tuple(each.to_bytes(8, "little") for each in values)
            addresses = _addresses(made, values)
            try:
                proof = known.get(kernel.numbers(args))
                shared += proof is not None
                proof = proof or prove(kernel, args, SHAPE)
                known[kernel.numbers(args)] = proof
                apart = not proof.together(kernel.pointers(args))
            except NotProven:
                continue
            pointers: dict[int | None, int] = {None: 0, **kernel.pointers(args)}
            begin = min(pointers[base] + extent.begin for base, extent in proof.ranges.items())
            end = max(pointers[base] + extent.end for base, extent in proof.ranges.items())
            assert (begin, end) == (min(addresses), max(addresses) + 1), (seed, text)
            assert proof.count == len(addresses), (seed, text)
            assert not apart or len(set(addresses)) == len(addresses), (seed, text)
    return shared


def test_arithmetic_on_pointers_names_the_bytes_of_all_threads() -> None:
    assert _check_arithmetic(range(120)) > 25


# A part, a fault in it: the arithmetic above finds it.
FAULTS: dict[str, tuple[Any, str, Any]] = {
    "a number less a pointer": (operations, "LEAVES", {**operations.LEAVES, "sub": (0, 1)}),
    "a multiple of a pointer": (operations, "LEAVES", {**operations.LEAVES, "mul": (0,)}),
    "a pointer as a factor": (operations, "LEAVES", {**operations.LEAVES, "mad": (0, 1, 2)}),
    "bits of a pointer": (operations, "LEAVES", {**operations.LEAVES, "and": (0,), "or": (0,), "shl": (0,)}),
    "the least of two": (operations, "LEAVES", {**operations.LEAVES, "min": (0, 1)}),
    "numbers that a proof follows from": (Slice, "numbers", lambda *_: ()),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_in_the_arithmetic(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    owner, name, broken = FAULTS[fault]
    monkeypatch.setattr(owner, name, broken)
    with pytest.raises((AssertionError, KeyError)):
        _check_arithmetic(range(400))


# -- pointers that are near to each other ----------------------------------------------------------------------------------------


def _two(written: str, read: str, params: str = ".param .u64 a, .param .u64 b", loads: str = "") -> Any:
    """A module whose kernel stores a word of `a` and loads one of `b`: at multiples of the thread's number, and numbers."""
    loads = loads or "ld.param.u64 %d3, [a]; ld.param.u64 %d4, [b];"
    text = HEAD.format(params=params) + IDS + loads
    text += f"mul.wide.s32 %d5, %r3, {written.partition('+')[0]}; add.s64 %d6, %d3, %d5;\n"
    text += f"mul.wide.s32 %d7, %r3, {read.partition('+')[0]}; add.s64 %d8, %d4, %d7;\n"
    text += f"ld.global.u32 %r4, [%d8+{read.partition('+')[2]}]; st.global.u32 [%d6+{written.partition('+')[2]}], %r4; ret; }}"
    return _module(text)


def _module(text: str) -> Any:
    return SimpleNamespace(number=0, plain=text, instrumented=SimpleNamespace(module=parse(text)))


def _races(writes: list[range], reads: list[range]) -> bool:
    """Whether a thread accesses a byte that another one writes."""
    owners: dict[int, int] = {}
    for thread, bytes_ in enumerate(writes):
        for byte in bytes_:
            if owners.setdefault(byte, thread) != thread:
                return True
    return any(owners.get(byte, thread) != thread for thread, bytes_ in enumerate(reads) for byte in bytes_)


def _strided(at: int, stride: int, offset: int) -> list[range]:
    begins = [at + offset + thread * stride for thread in range(CTAS * THREADS)]
    return [range(begin, begin + 4) for begin in begins]


def _check_near(seeds: range) -> tuple[int, int]:
    """Launches with pointers at all distances. Returns how many have a proof, and how many have no race."""
    proven = clean = 0
    for seed in seeds:
        rng = random.Random(seed)
        (stride, offset), (step, shift) = ((rng.choice((0, 4, 4, 4, 8, -4, 12, 3)), rng.choice((0, 0, 4, -8))) for _ in range(2))
        module, known = _two(f"{stride}+{offset}", f"{step}+{shift}"), Proofs()
        for _ in range(6):
            a = rng.choice((0x7F0000000000, 4096, 0x7F0000000400))
            b = a + rng.choice((0, 0, 4, -4, 2, 44, 48, 52, -48, 1 << 20))
            count = known.accesses(module, "k", [each.to_bytes(8, "little") for each in (a, b)], SHAPE)
            races = _races(_strided(a, stride, offset), _strided(b, step, shift))
            assert count in (0, 2 * CTAS * THREADS)
            assert not (count and races), (seed, a, b, stride, offset, step, shift)
            proven, clean = proven + (count > 0), clean + (not races)
    return proven, clean


def test_pointers_at_all_distances() -> None:
    proven, clean = _check_near(range(80))
    assert clean > 80
    assert proven > clean * 9 // 10


NEAR_FAULTS: dict[str, tuple[Any, str, Any]] = {
    "pointers are compared": (PlacedExtent, "meets", lambda *_: False),
    "both directions": (PlacedExtent, "meets", lambda one, other: one.writes_in(other)),
    "their distance": (proofs, "prove", lambda kernel, args, shape, places: prove(kernel, args, shape, dict.fromkeys(places, (0, 0)))),
    "the end of a range": (
        PlacedExtent,
        "of",
        classmethod(lambda cls, base, of, at: cls(of.begin + at, of.begin + at, base, 0, 0)),
    ),
}


@pytest.mark.parametrize("fault", NEAR_FAULTS)
def test_a_fault_in_the_comparison(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    owner, name, broken = NEAR_FAULTS[fault]
    monkeypatch.setattr(owner, name, broken)
    with pytest.raises(AssertionError):
        _check_near(range(150))


FAR, NEXT = 0x7F0000100000, 48


def _args(*values: int) -> list[bytes]:
    return [each.to_bytes(8, "little") for each in values]


def test_a_proof_serves_other_pointers(monkeypatch: pytest.MonkeyPatch) -> None:
    """One walk for all pointers that are apart, one for those that are the same, and one for each other distance."""
    made = list[Any]()
    monkeypatch.setattr(proofs, "prove", lambda *args: made.append(args[3]) or prove(*args))
    module, known = _two("4+0", "4+0"), Proofs()
    launches = [(a, a + distance) for a in (4096, 8192, FAR) for distance in (NEXT, 1 << 20, 0, 4, -NEXT)]
    counts = [known.accesses(module, "k", _args(*each), SHAPE) for each in launches]
    assert counts == [24, 24, 24, 0, 24] * 3
    assert made == [{}, {1: (0, 0)}, {1: (0, 4)}]


STRUCTURES = {
    "words of a structure": (".param .align 8 .b8 s[16]", "ld.param.u64 %d3, [s]; ld.param.u64 %d4, [s+8];"),
    "a vector": (".param .align 16 .b8 s[16]", "ld.param.v2.u64 {%d3, %d4}, [s];"),
}


@pytest.mark.parametrize("name", STRUCTURES)
def test_pointers_in_a_structure(name: str) -> None:
    module, known = _two("4+0", "4+0", *STRUCTURES[name]), Proofs()
    for a, b, apart in ((FAR, 4096, True), (FAR, FAR + NEXT - 4, False), (FAR, FAR, True), (FAR + 64, 4096, True)):
        assert (known.accesses(module, "k", [b"".join(_args(a, b))], SHAPE) > 0) is apart


# Reads of the number of `b`, and a pointer whose number is zero there, and one whose is not.
NUMBERS = {
    "the lower half": ("ld.param.u32 %r8, [b]; setp.ne.s32 %p1, %r8, 0;", 1 << 33, FAR + 4),
    "the upper half": ("ld.param.u32 %r8, [b+4]; setp.ne.s32 %p1, %r8, 0;", 4096, FAR),
    "a comparison": ("ld.param.u64 %d30, [b]; setp.ne.s64 %p1, %d30, 0;", 0, FAR),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_a_pointer_whose_number_is_read(name: str) -> None:
    """All threads store at one place unless the number is zero. No launch with another number shares the proof."""
    again, zero, other = NUMBERS[name]
    text = HEAD.format(params=".param .u64 a, .param .u64 b") + IDS + f"ld.param.u64 %d3, [a]; ld.param.u64 %d4, [b]; {again}"
    text += "mul.wide.s32 %d5, %r3, 4; @%p1 mov.u64 %d5, 0; add.s64 %d6, %d3, %d5;"
    text += "st.global.u32 [%d6], %r1; ld.global.u32 %r7, [%d4]; ret; }"
    module, known = _module(text), Proofs()
    counts = [known.accesses(module, "k", _args(4096 + (1 << 20), b), SHAPE) for b in (zero, other, zero)]
    assert [count > 0 for count in counts] == [True, False, True]


def test_addresses_that_wrap_have_no_proof() -> None:
    module, known = _two("-4+0", "4+0"), Proofs()
    wanted = {(64, FAR): True, (16, FAR): False, (WORD, FAR): False, (FAR, WORD - 8): False}
    for pair, apart in wanted.items():
        assert (known.accesses(module, "k", _args(*pair), SHAPE) > 0) is apart


def test_words_that_overlap_are_numbers() -> None:
    text = HEAD.format(params=".param .align 8 .b8 s[16]") + "ld.param.u64 %d3, [s]; ld.param.u64 %d4, [s+4]; add.s64 %d5, %d3, %d4;"
    text += "st.global.u8 [%d5], 0; ret; }"
    assert not Slice(parse(text).functions[0]).bases
    assert slices.ParameterWord(0, 0, 8).overlaps(slices.ParameterWord(0, 4, 12))
