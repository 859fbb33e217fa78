"""Instructions that the module's target lacks (PTX ISA, ".target", and the target notes).

Many exist only with the suffix `a` or `f`, such as sm_100a: ptxas 13.0 refuses each of them for sm_100 without a suffix. Judged for that:
the targets of CUDA's tensor memory, sm_100, sm_101, sm_103 and sm_110. Other targets have no tcgen05 at all, and those before sm_100 no
cluster launch control. Not handled: what else a target lacks with any suffix.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from consan.instrument.ptx import Instruction, Module

__all__ = ["beyond_the_rules", "known_versions", "missing_target"]

# A later version of the same number before the point adds opcodes, which have no row; what a known opcode means stays.
_OLDEST, _NEWEST = (7, 0), (9,)
_KNOWN = frozenset((50, 52, 53, 60, 61, 62, 70, 72, 75, 80, 86, 87, 88, 89, 90, 100, 101, 103, 110, 120, 121))  # of ".target" in the newest

_TARGETS = frozenset(("sm_100", "sm_101", "sm_103", "sm_110"))
_FIRST = 100
# The targets to name, and whether all from sm_100 on have the instruction.
_BLACKWELL = {"tcgen05": ("sm_100a or sm_100f", False), "clusterlaunchcontrol": ("sm_100 or later", True)}
_NAMES = frozenset(("tcgen05", "setmaxnreg"))
_MODIFIERS = frozenset(
    (
        *("cta_group::1", "cta_group::2", "im2col::w::128", "tile::scatter4", "multicast::cluster::all", "m16n16", "m8n16", "b8x16"),
        *("e2m1x2", "e2m3x2", "e3m2x2", "ue8m0x2", "e4m3x4", "e5m2x4", "e2m1x4", "e2m3x4", "e3m2x4"),
    )
)
_OUTSIDE = frozenset(("tile::gather4", "im2col::w"))  # with a suffix, unless the destination is .shared::cta


def beyond_the_rules(module: Module) -> Iterator[str]:
    """Facts of the module that the rules do not cover: its version, its target. Their meaning there may differ."""
    if module.version < _OLDEST or module.version[:1] > _NEWEST:
        yield f"PTX of version {_number(module.version)} (known are {known_versions()})"
    found = re.fullmatch(r"sm_(\d+)[af]?", module.target)
    if found is None or int(found[1]) not in _KNOWN:
        yield f"PTX for the unknown target {module.target}"


def known_versions() -> str:
    """The versions of the PTX ISA that the rules cover."""
    return f"{_number(_OLDEST)} to {_number(_NEWEST)}.x"


def _number(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))


def missing_target(module: Module) -> tuple[Instruction, str] | None:
    """The first instruction that needs another target, or a suffix of the module's, and what to write; None if there is none."""
    target, lacks = module.target, _without_suffix if module.target in _TARGETS else _elsewhere
    for function in module.functions:
        for instruction in function.instructions():
            wanted = lacks(instruction.parts, target)
            if wanted:
                return instruction, f"'{instruction.opcode}' needs .target {wanted}; the module says {target}"
    return None


def _without_suffix(parts: tuple[str, ...], target: str) -> str:
    return " or ".join(f"{target}{suffix}" for suffix in _suffixes(parts))


def _elsewhere(parts: tuple[str, ...], target: str) -> str:
    """The targets that have an opcode which this one lacks with any suffix; empty if it has it."""
    found = re.match(r"sm_(\d+)", target)
    if found is None or parts[0] not in _BLACKWELL:
        return ""
    first_suffix, later = _BLACKWELL[parts[0]]
    return "" if f"sm_{found[1]}" in _TARGETS or (later and int(found[1]) >= _FIRST) else first_suffix


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
