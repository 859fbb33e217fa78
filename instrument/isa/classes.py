"""Modifier classes that several instructions of the PTX ISA share, under the names that their Syntax blocks use.

A row adds its own classes to these or replaces them (`.type`, `.op` and `.shape` differ from instruction to instruction). The
state-space lists of the memory instructions are in `memory.py`, where they decide the status of a row.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["COMMON", "INTEGERS", "SCALARS", "SELECTABLE", "TYPE_BYTES", "type_bytes", "words"]


def words(text: str) -> tuple[str, ...]:
    """The words of a class from one line of text."""
    return tuple(text.split())


INTEGERS = words("u16 u32 u64 s16 s32 s64")
SCALARS = words("b8 b16 b32 b64 b128 u8 u16 u32 u64 s8 s16 s32 s64 f32 f64")
SELECTABLE = words("b16 b32 b64 u16 u32 u64 s16 s32 s64 f32 f64")

_COMMON_LINES = {
    "level1::eviction_priority": "L1::evict_normal L1::evict_unchanged L1::evict_first L1::evict_last L1::no_allocate",
    "level2::eviction_priority": "L2::evict_normal L2::evict_first L2::evict_last",
    "level::cache_hint": "L2::cache_hint",
    "level::prefetch_size": "L2::64B L2::128B L2::256B",
    "scope": "cta cluster gpu sys",
    "vec": "v2 v4 v8",
    "rnd": "rn rz rm rp",
    "CmpOp": "eq ne lt le gt ge lo ls hi hs equ neu ltu leu gtu geu num nan",
    "BoolOp": "and or xor",
    "multicast": "multicast::cluster",
    "cta_group": "cta_group::1 cta_group::2",
    "dim": "1d 2d 3d 4d 5d",
}
COMMON: dict[str, tuple[str, ...]] = {name: words(line) for name, line in _COMMON_LINES.items()}
_BYTES = {1: "b8 u8 s8 e4m3 e5m2", 2: "b16 u16 s16 f16 bf16 e4m3x2 e5m2x2", 4: "b32 u32 s32 f32 tf32 f16x2 bf16x2 e4m3x4 e5m2x4"}
_BYTES |= {8: "b64 u64 s64 f64", 16: "b128"}
TYPE_BYTES = {word: size for size, line in _BYTES.items() for word in line.split()}


def type_bytes(modifiers: Mapping[str, str], operands: Mapping[str, Any]) -> int:
    """The bytes of the type that an opcode ends with (an attribute of effects)."""
    return TYPE_BYTES[tuple(modifiers.values())[-1]]
