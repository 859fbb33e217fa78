"""Operands of tcgen05.mma for the tests of the virtual machine: small numbers and their bytes, where they lie, text of instructions."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import tcgen05_reference as reference
from tcgen05_support import BASE
from wgmma_reference import ENCODE, NBYTES

Array = np.ndarray[Any, Any]
DEPTH = {"f16": 16, "tf32": 8, "f8f6f4": 32, "i8": 32, "mxf8f6f4": 32, "mxf4": 64, "mxf4nvf4": 64}
SIZE = 16 << 10  # of the region of an operand


@dataclass
class Operand:
    """A matrix [rows, K] of one type: its numbers and its bytes in memory."""

    word: str
    numbers: Array
    octets: Array  # [rows, K, size], or [rows, bytes of a row, 1]
    size: int

    @classmethod
    def random(cls, rng: np.random.Generator, word: str, shape: tuple[int, int], *, packed: bool = False) -> Operand:
        """Small numbers; all codes of the narrow types."""
        if word in reference.NARROW:
            width = reference.NARROW[word]
            codes = rng.integers(0, 1 << width, shape)
            octets = reference.bits_of(codes, 4) if packed else reference.padded(codes, width)
            return cls(word, reference.values(word, codes), octets[..., None], 1)
        numbers = rng.integers(0 if word == "u8" else -4, 5, shape)
        octets = np.ascontiguousarray(ENCODE[word](numbers)).view(np.uint8).reshape(*shape, NBYTES[word])
        return cls(word, numbers.astype(np.float64), octets, NBYTES[word])


@dataclass
class Image:
    """The shared memory of one CTA."""

    raw: Array = field(default_factory=lambda: np.full(4 * SIZE, 0xEE, np.uint8))

    def place(self, region: int, operand: Operand, mode: int, mn_major: bool = False, step: int = 0) -> int:
        """Put an operand into a region; returns its descriptor. `step`: how many steps of K lie before it in a swizzled row."""
        rows, depth = operand.octets.shape[:2]
        layout, end = reference.tile(BASE + region * SIZE, operand.size, mode, mn_major, rows, depth)
        assert end <= BASE + (region + 1) * SIZE
        before = np.zeros((rows, depth * step, operand.size), np.uint8)
        reference.put(self.raw, layout, np.concatenate([before, operand.octets], axis=1), BASE)
        return layout.descriptor + (32 * step >> 4)


def load(a: int, b: int, idesc: int) -> str:
    return f"mov.b64 %rd10, {a}; mov.b64 %rd11, {b}; mov.b32 %r31, {idesc};"


def mma(opcode: str, *, a: str = "%rd10", d: str = "%t", meta: str = "", keep: str = "%keep", tail: str = "") -> str:
    return f"@%first tcgen05.mma{opcode} [{d}], {a}, %rd11, {meta}%r31, {keep}{tail};"


def words_of(d: str, numbers: Array) -> Array:
    if d == "f16":
        return numbers.astype(np.float16).view(np.uint16).astype(np.uint32)
    return numbers.astype(np.float32 if d == "f32" else np.int32).view(np.uint32)


def numbers_of(d: str, words: Array) -> Array:
    if d == "f16":
        assert not (words >> 16).any()
        return words.astype(np.uint16).view(np.float16).astype(np.float64)
    return words.view(np.float32 if d == "f32" else np.int32).astype(np.float64)


def gather(cells: Array, m: int, n: int, group: int = 1, **how: bool) -> Array:
    """D as [M, N] words from cells [CTAs, 128, columns]."""
    return np.array([[cells[reference.d_cell((m, n), i, j, group, **how)] for j in range(n)] for i in range(m)], np.uint32)


def store_columns(name: str, columns: int, at: int) -> str:
    """Words [128, columns] of shared memory at `at` into tensor memory at register `name`, by four warps."""
    names = ", ".join(f"%d{i}" for i in range(columns))
    loads = "".join(f"ld.shared.b32 %d{i}, [%r25+{4 * i}];" for i in range(columns))
    return f"""mul.lo.u32 %r25, %thread, {4 * columns}; add.u32 %r25, %r25, %smem; add.u32 %r25, %r25, {at}; {loads}
tcgen05.st.sync.aligned.32x32b.x{columns}.b32 [{name}], {{{names}}}; tcgen05.wait::st.sync.aligned;
tcgen05.fence::before_thread_sync; bar.sync 0; tcgen05.fence::after_thread_sync;"""
