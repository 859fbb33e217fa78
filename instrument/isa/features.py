"""Instructions that only a target with the suffix `a` or `f` has, such as sm_100a (PTX ISA, ".target", and the target notes).

ptxas 13.0 refuses each of them for sm_100 without a suffix. Judged: the targets of CUDA's tensor memory, sm_100, sm_101, sm_103 and sm_110.
Not handled: features that a target lacks with any suffix.
"""

from __future__ import annotations

from consan.instrument.ptx import Instruction, Module

__all__ = ["missing_suffix"]

_TARGETS = frozenset(("sm_100", "sm_101", "sm_103", "sm_110"))
_NAMES = frozenset(("tcgen05", "setmaxnreg"))
_MODIFIERS = frozenset(
    (
        *("cta_group::1", "cta_group::2", "im2col::w::128", "tile::scatter4", "multicast::cluster::all", "m16n16", "m8n16", "b8x16"),
        *("e2m1x2", "e2m3x2", "e3m2x2", "ue8m0x2", "e4m3x4", "e5m2x4", "e2m1x4", "e2m3x4", "e3m2x4"),
    )
)
_OUTSIDE = frozenset(("tile::gather4", "im2col::w"))  # with a suffix, unless the destination is .shared::cta


def missing_suffix(module: Module) -> tuple[Instruction, str] | None:
    """The first instruction that needs a suffix of the module's target, and what to write; None if there is none."""
    target = module.target
    if target not in _TARGETS:
        return None
    for function in module.functions:
        for instruction in function.instructions():
            suffixes = _suffixes(instruction.parts)
            if suffixes:
                wanted = " or ".join(f"{target}{suffix}" for suffix in suffixes)
                return instruction, f"'{instruction.opcode}' needs .target {wanted}; the module says {target}"
    return None


def _suffixes(parts: tuple[str, ...]) -> str:
    """The suffixes with which a target has the opcode; empty where it needs none."""
    words = set(parts)
    if parts[0] == "cvt" and "rs" in words:
        return "a"
    if parts[0] in _NAMES or words & _MODIFIERS:
        return "af"
    if words & _OUTSIDE and "shared::cta" not in words:
        return "af"
    return "af" if parts[0] == "redux" and "f32" in words else ""
