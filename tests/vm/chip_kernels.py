"""One kernel for many opcodes: what the virtual machine computes, held against the chip, instruction by instruction.

`opcodes()` takes a few forms of every grammar row of the machine's semantics; `kernel` makes a module in which each thread applies each
of them to operands of its own, random and special ones from a pool, and stores the results. The same text runs on both backends.

Not covered: instructions of a whole warp, matrix products (test_engine_wgmma, ops_matrix), carries (`.cc`), 128-bit moves.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt
from ops_reference import FORMATS, floats, integers

from consan.backends.cpu.semantics.ops import DTYPES, Op, semantics
from consan.backends.cpu.semantics.ops_registry import FAMILIES
from consan.instrument.isa import ROWS

Array = npt.NDArray[Any]
THREADS = 256
OPERANDS = 5  # of one instruction, at most
_SLOT = 8  # bytes of one operand or result
_PACKED = {"f16x2": "f16", "bf16x2": "bf16", "f32x2": "f32"}


@dataclass(frozen=True)
class Case:
    """One opcode with its semantics."""

    family: str
    opcode: str
    op: Op

    @property
    def approximate(self) -> bool:
        """Whether the ISA gives an error bound and no exact result."""
        return "approx" in self.opcode or self.opcode.startswith(("div.full", "tanh", "ex2"))


def _forms(family: ModuleType) -> Iterator[Case]:
    parts = (parts for row in ROWS if row.form in family.OPERATIONS for parts in row.opcodes())
    return filter(None, (_case(family.__name__, each) for each in parts))


def families() -> list[str]:
    """The names of the families that have cases: without making them all."""
    return sorted(case.family for family in FAMILIES for case in itertools.islice(_forms(family), 1))


@functools.cache
def opcodes(each: int = 6) -> tuple[Case, ...]:
    """Up to `each` forms of every row, spread over all that it has."""
    found = []
    for family in FAMILIES:
        for row in (row for row in ROWS if row.form in family.OPERATIONS):
            forms = [case for parts in row.opcodes() if (case := _case(family.__name__, parts)) is not None]
            step = max(1, len(forms) // each)
            found += forms[::step][:each]
    return tuple({case.opcode: case for case in found}.values())


def _case(family: str, parts: tuple[str, ...]) -> Case | None:
    op = semantics(parts)
    if op is None or op.kind != "lane":
        return None
    if not {*op.sources, *op.dests} <= DTYPES.keys() - {"cc"} or len(op.sources) > OPERANDS:
        return None
    return Case(family.rsplit(".", 1)[-1].removeprefix("ops_"), ".".join(parts), op)


# -- operands -------------------------------------------------------------------------------------------------------------------------


def pool(seed: int = 1) -> dict[tuple[str, int], Array]:
    """Operands by type and position: an array of a value for each thread."""
    rng = np.random.default_rng(seed)
    return {(word, position): _values(word, rng) for word in sorted(DTYPES) if word != "cc" for position in range(OPERANDS)}


def _values(word: str, rng: np.random.Generator) -> Array:
    if word == "pred":
        return rng.integers(0, 2, THREADS).astype(np.bool_)
    if word in _PACKED:
        half = _PACKED[word]
        return np.ascontiguousarray(floats(half, rng, 2 * THREADS)).view(DTYPES[word])
    if word in FORMATS:
        return floats(word, rng, THREADS)
    return integers(f"u{word[1:]}", rng, THREADS).view(DTYPES[word])


def _place(word: str, position: int) -> int:
    """Offset of a thread's first operand in the buffer of operands."""
    return (sorted(DTYPES).index(word) * OPERANDS + position) * THREADS * _SLOT


def operand_buffer(values: dict[tuple[str, int], Array]) -> Array:
    """All operands, each in a slot of 8 bytes."""
    out = np.zeros(len(DTYPES) * OPERANDS * THREADS * _SLOT, np.uint8)
    for (word, position), array in values.items():
        raw = array.view(f"u{array.dtype.itemsize}").astype(np.uint64)
        start = _place(word, position)
        out[start : start + THREADS * _SLOT] = raw.view(np.uint8)
    return out


def immediate(case: Case, position: int) -> int | None:
    """A literal where the ISA wants one: the truth table of lop3."""
    return sum(map(ord, case.opcode)) & 0xFF if case.opcode.startswith("lop3") and position == 3 else None


# The ISA leaves fns open beyond bit 31. Bit fields of 64 bits take position and length modulo 256 there, and all 32 bits on Hopper.
_MASKS = {
    ("fns", "b32", 1): 31,
    **{("bfe", word, position): 255 for word in ("u64", "s64") for position in (1, 2)},
    **{("bfi", "b64", position): 255 for position in (2, 3)},
}


def mask_of(case: Case, position: int) -> int | None:
    """What an operand is cut to."""
    parts = case.opcode.split(".")
    return _MASKS.get((parts[0], parts[-1], position))


# -- the kernel -----------------------------------------------------------------------------------------------------------------------


def kernel(cases: Sequence[Case], *, target: str = "sm_90a") -> str:
    """A module with one entry `k(operands, results)`; the result of case i of thread t is at ((i * 2 + destination) * THREADS + t) * 8."""
    body = [line for number, case in enumerate(cases) for line in _lines(number, case)]
    head = [
        ".version 8.7", f".target {target}", ".address_size 64", ".visible .entry k(.param .u64 operands, .param .u64 results)", "{",
        ".reg .b64 %in, %out, %at; .reg .b32 %t, %wide; .reg .pred %q<8>; .reg .b16 %h<8>; .reg .b32 %r<8>; .reg .b64 %d<8>;",
        "ld.param.u64 %in, [operands]; ld.param.u64 %out, [results];",
        "cvta.to.global.u64 %in, %in; cvta.to.global.u64 %out, %out;",
        f"mov.u32 %t, %tid.x; mul.wide.u32 %at, %t, {_SLOT}; add.u64 %in, %in, %at; add.u64 %out, %out, %at;",
    ]  # fmt: skip
    return "\n".join([*head, *body, "ret;", "}", ""])


_REGISTERS = {1: "h", 2: "h", 4: "r", 8: "d"}


def _register(word: str, index: int) -> str:
    return f"%q{index}" if word == "pred" else f"%{_REGISTERS[DTYPES[word].itemsize]}{index}"


def _lines(number: int, case: Case) -> Iterator[str]:
    names = []
    for position, word in enumerate(case.op.sources):
        literal = immediate(case, position)
        if literal is not None:
            names.append(str(literal))
            continue
        names.append(_register(word, position))
        where = f"[%in+{_place(word, position)}]"
        if word == "pred":
            yield f"ld.global.u32 %wide, {where}; setp.ne.u32 {names[-1]}, %wide, 0;"
        else:
            yield f"ld.global.u{8 * DTYPES[word].itemsize} {names[-1]}, {where};"
        if (mask := mask_of(case, position)) is not None:
            yield f"and.b32 {names[-1]}, {names[-1]}, {mask};"
    results = [_register(word, 6 + place) for place, word in enumerate(case.op.dests)]
    yield f"{case.opcode} {'|'.join(results)}, {', '.join(names)};"
    for place, (word, name) in enumerate(zip(case.op.dests, results, strict=True)):
        where = f"[%out+{(number * 2 + place) * THREADS * _SLOT}]"
        if word == "pred":
            yield f"selp.u32 %wide, 1, 0, {name}; st.global.u32 {where}, %wide;"
        else:
            yield f"st.global.u{8 * DTYPES[word].itemsize} {where}, {name};"


def result_bytes(cases: Sequence[Case]) -> int:
    """Size of the buffer of results."""
    return len(cases) * 2 * THREADS * _SLOT


def result_of(buffer: Array, number: int, place: int, word: str) -> Array:
    """The results of one destination, a value for each thread."""
    start = (number * 2 + place) * THREADS * _SLOT
    raw = buffer[start : start + THREADS * _SLOT].view(np.uint64)
    if word == "pred":
        return raw.astype(np.uint32).astype(np.bool_)
    return raw.astype(f"u{DTYPES[word].itemsize}").view(DTYPES[word])


def _operand(case: Case, position: int, word: str, values: dict[tuple[str, int], Array]) -> Array:
    literal, mask = immediate(case, position), mask_of(case, position)
    if literal is not None:
        return np.asarray(literal, DTYPES[word])
    return values[word, position] if mask is None else values[word, position] & DTYPES[word].type(mask)


def wanted(case: Case, values: dict[tuple[str, int], Array]) -> tuple[Array, ...]:
    """What the semantics say, without the machine."""
    operands = [_operand(case, position, word, values) for position, word in enumerate(case.op.sources)]
    with np.errstate(all="ignore"):
        found = case.op.fn(*operands)
    found = found if isinstance(found, tuple) else (found,)
    return tuple(np.broadcast_to(np.asarray(array), THREADS) for array in found)
