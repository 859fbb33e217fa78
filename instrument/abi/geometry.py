"""The geometry of a slot: its parts in order, and how many bytes a CTA or cluster takes before it runs.

A part is a line of the table: name, alignment, variants that have it, bytes, meaning. The bytes are an expression in C++ whose divisions
are those of integers. Its names are those of sizes.py, of `numbers` and of FORMULAS. The parts of `TABLES` also depend on the launch:
`warps` in the table of threads, `rows` of read entries, `cells` (granules). The device computes the places by the same lines (header.py).
"""

from __future__ import annotations

import ast
import operator
from functools import cache, partial
from typing import Any, Final

from consan.dataclass import dataclass
from consan.instrument.abi.records import RECORDS, THREAD, offsets, size
from consan.instrument.abi.sizes import CLASS_COUNT, CLASS_SHIFT, NAMED_BARRIERS, sizes
from consan.instrument.abi.variant import Variant

SLOT_ALIGNMENT = 256


@dataclass(frozen=True)
class Part:
    """A part of a slot."""

    name: str
    alignment: int
    needs: str
    bytes: str
    meaning: str

    def is_in(self, variant: Variant) -> bool:
        """Whether slots of a variant have it."""
        return self.needs == "-" or bool(getattr(variant, self.needs))


def _parts(table: str) -> tuple[Part, ...]:
    rows = ([cell.strip() for cell in line.split("|")] for line in table.strip().splitlines())
    return tuple(Part(name, int(alignment), needs, text, meaning) for name, alignment, needs, text, meaning in rows)


# The coarse table has blocks of 128 bytes, and superblocks of 16 blocks.
# Per block: last operation listed, its place if it begins here, whether the whole block was found written, and the words that
# generic writes have reached (8 bytes). Per superblock: start of the interval of the last generic read, epoch of the last generic write.
# Per warp and block, and per warp and superblock: last read, last write, group of the last cp.async.
# CTA_CELLS: granules of a CTA's shared memory, rounded up so that similar launches share slots.
FORMULAS = {
    "ALIGN_UP(value, to)": "((value) + (to) - 1) / (to) * (to)",
    "CTA_CELLS(shared)": "ALIGN_UP(max(shared, 1), max(CELLS_STEP, POWER_OF_TWO(shared) / 8)) / GRANULE",
    "COARSE_ROW(bytes)": "((bytes) / BLOCK_BYTES + 3) / 4 * 16",
    "SUPER_ROW(row)": "((row) / 64 + 4) / 4 * 16",
    "COARSE_BYTES(bytes, rows)": "ALIGN_UP(COARSE_ROW(bytes) * (7 + 3 * (rows)) + SUPER_ROW(COARSE_ROW(bytes)) * (3 * (rows)), 128)",
}
# Parts of one size.
HEAD = _parts("""
    slot       | 128 | -      | sizeof(Slot)                             | the head
    engine     | 128 | engine | sizeof(Engine)                           | record Engine: mbarriers and asynchronous operations
    mbarriers  |   8 | engine | MBARRIERS * sizeof(MBarrier)             | tracked mbarriers
    clocks     |   8 | engine | MBARRIERS * MBARRIER_CLOCKS * CLOCK * 4  | one per mbarrier and parity; in clusters also of other CTAs
    observed   |   8 | engine | MAX_WARPS * MBARRIERS * 4                | epoch at which a warp observed an mbarrier's last phase
    operations |   8 | engine | OPERATIONS * sizeof(OperationRecord)     | the list of operations
    ranges     |   8 | engine | OPERATIONS * 8                           | a copy of their ranges, stored contiguously for searches
    globals    |   8 | engine | sizeof(Globals)                          | the global sides of copies
    tables     | 128 | engine | sizeof(GlobalTables)                     | their tables
""")
# Parts whose size depends on the launch.
TABLES = _parts("""
    threads    | 128 | -       | warps * 32 * THREAD_BYTES                          | records of threads, transposed word by word
    vectors    |   8 | partial | VECTOR_ROWS * VECTOR * 4                           | clocks of the warps
    deposits   |   8 | partial | DEPOSIT_PLACES * BARRIER_GENERATIONS * VECTOR * 8  | clocks left at barriers
    flags      |   8 | partial | FLAG_CELLS * FLAG_SETS * VECTOR * 4                | clocks left by releases
    coarse     |   8 | engine  | COARSE_BYTES(cells * GRANULE, rows)                | the coarse table of blocks
    writes     |   8 | -       | cells * 8                                          | write records
    reads      |   8 | -       | cells * 4 * (rows + 1)                             | read entries, and a row of intervals
""")


@cache
def numbers(variant: Variant) -> dict[str, int]:
    """Numbers that follow from the variant, beside those of sizes.py."""
    ctas, known = variant.ctas, sizes(variant.ctas)
    return {
        "GRANULE": variant.granule,
        "CELLS_STEP": 2048 if variant.cluster else 256,  # bytes; in clusters a block of the coarse table must not span two CTAs
        "THREAD_BYTES": thread_bytes(variant),  # of a thread's record that the variant uses
        # Entries of a clock. With asynchronous engines: epochs of the warps, epochs that have passed a proxy fence, phases of mbarriers.
        "VECTOR": known["CLOCK"] if variant.engine else known["MAX_WARPS"],
        # With asynchronous engines two rows per warp: what all its lanes have observed, and what some lanes have observed.
        "VECTOR_ROWS": (2 if variant.engine else 1) * known["MAX_WARPS"],
        "MBARRIER_CLOCKS": 4 if variant.cluster else 2,
        # Barriers with deposited clocks: those with a thread count, and the barrier of the cluster.
        "DEPOSIT_PLACES": variant.named + 1 if variant.engine and not variant.cluster else NAMED_BARRIERS * ctas,
        "FLAG_SETS": ctas + 1 if ctas > 1 else 1,  # in clusters: one set for all CTAs, and one per CTA
    }


@cache
def places(variant: Variant) -> dict[str, int]:
    """The offset at which each part of HEAD begins or would begin, and that of the tables."""
    found, at = {}, 0
    for part in HEAD:
        at = found[part.name] = _up(at, part.alignment)
        at += _bytes(part, variant, {}) if part.is_in(variant) else 0
    return found | {"threads": _up(at, TABLES[0].alignment)}


def slot_bytes(variant: Variant, threads: int, shared: int, ctas: int = 1) -> int:
    """Bytes for one CTA with `threads` threads and `shared` bytes of shared memory, or for one cluster of `ctas` such CTAs."""
    warps = -(-threads // 32)
    warps = ctas << max(2, _log2(warps)) if variant.cluster else 1 << _log2(warps)
    rows = warps if variant.cluster else min(warps, -(-threads // 64) * 2)
    launch = {"warps": warps, "rows": rows, "cells": _cells(variant, shared) * (ctas if variant.cluster else 1)}
    tables = sum(_bytes(part, variant, launch) for part in TABLES if part.is_in(variant))
    return _up(places(variant)["threads"] + tables, SLOT_ALIGNMENT)


def thread_bytes(variant: Variant) -> int:
    """Bytes of a thread's record that a variant of the runtime uses."""
    ends = {"engine": "", "asynchronous": "bulk_commits", "partial": "commits"}
    end = next((end for part, end in ends.items() if getattr(variant, part)), "full_barriers")
    return offsets(THREAD, variant.ctas)[end]


def class_bytes(wanted: int) -> int:
    """The size of the slot that is cut for a request of `wanted` bytes."""
    classes = ((4 + index % 4) << CLASS_SHIFT - 2 + index // 4 for index in range(CLASS_COUNT))
    return next((size for size in classes if size >= wanted), 0)


def _known(variant: Variant) -> dict[str, Any]:
    """The names in the expressions, but for those of a launch."""
    known: dict[str, Any] = {"sizeof": lambda record: size(record, variant.ctas), **RECORDS, **sizes(variant.ctas), **numbers(variant)}
    known["POWER_OF_TWO"] = lambda value: 1 << _log2(max(value, 1))
    known["max"] = max
    for formula, text in FORMULAS.items():
        name, _, parameters = formula.rstrip(")").partition("(")
        known[name] = partial(_formula, text, parameters.split(", "), known)
    return known


def _formula(text: str, parameters: list[str], known: dict[str, Any], *values: int) -> int:
    result: int = _value(_parsed(text), known | dict(zip(parameters, values, strict=True)))
    return result


def _bytes(part: Part, variant: Variant, launch: dict[str, int]) -> int:
    result: int = _value(_parsed(part.bytes), _known(variant) | launch)
    return result


_OPERATIONS: Final = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.floordiv}


@cache
def _parsed(text: str) -> ast.expr:
    """An expression in C++: its grammar is that of Python, too."""
    return ast.parse(text, mode="eval").body


def _value(node: ast.expr, known: dict[str, Any]) -> Any:
    """The value of an expression of numbers, names, calls and the operations above; divisions are those of integers."""
    match node:
        case ast.Constant(value=int(number)):
            return number
        case ast.Name(id=name):
            return known[name]
        case ast.BinOp(left=left, op=operation, right=right):
            return _OPERATIONS[type(operation)](_value(left, known), _value(right, known))
        case ast.Call(func=ast.Name(id=name), args=arguments):
            return known[name](*(_value(each, known) for each in arguments))
    raise ValueError(f"no expression of a size: {ast.unparse(node)}")


def _cells(variant: Variant, shared: int) -> int:
    result: int = _known(variant)["CTA_CELLS"](shared)
    return result


def _log2(count: int) -> int:
    """The logarithm of the next power of two."""
    return (count - 1).bit_length()


def _up(value: int, to: int) -> int:
    return -(-value // to) * to
