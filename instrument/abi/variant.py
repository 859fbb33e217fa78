"""The variants of the shadow runtime: what a module needs of it, as macros of the C++ text and as widths of packed words."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator
from typing import Any

from consan.dataclass import dataclass

_BARRIERS = 16  # of a CTA
_CTAS = 16  # of the largest cluster


@dataclass(frozen=True)
class Choice:
    """A field of `Variant` that is a macro of the runtime: its values, and the fields that must be set where it is.

    `families`: of the instruction table. A module with an instruction of one of them needs the field.
    """

    field: str
    macro: str
    values: tuple[int, ...]
    meaning: str
    needs: tuple[str, ...] = ()
    families: frozenset[str] = frozenset()


_ENGINES = frozenset({"mbarrier", "bulk", "tensor", "wgmma", "proxy-fence", "mbarrier-fence", "cluster-barrier"})
# The lanes of a warp synchronise to copy a tensor map.
_BY_LANES = frozenset({"warp-barrier", "tensormap"})
CHOICES = (
    Choice("granule", "CONSAN_GRANULE", (1, 2, 4), "bytes of a shadow cell: the narrowest access of the module"),
    Choice("partial", "CONSAN_PARTIAL", (0, 1), "named, counted or warp barriers: vector clocks; without, one counter", (), _BY_LANES),
    Choice("asynchronous", "CONSAN_ASYNC", (0, 1), "cp.async", (), frozenset({"cp.async"})),
    Choice("cluster", "CONSAN_CLUSTER", (0, 2, 4, 8, _CTAS), "CTAs of the largest cluster: they share a slot, in .gpu scope", ("engine",)),
    Choice("engine", "CONSAN_ENGINE", (0, 1), "mbarriers, bulk copies, operands of wgmma, proxies", ("partial", "asynchronous"), _ENGINES),
    Choice("named", "CONSAN_NAMED", (0, 1, 2, 4, 8, _BARRIERS), "upper bound of the ids of barriers with a thread count", ("engine",)),
    Choice("isa", "CONSAN_ISA", (0, 1), "the stricter reading of the ISA (--policy isa)", ("engine",)),
)
"""The parts that a module can request (`passes.analyse.choose_variant`). All combinations that meet the needs are built by the tests."""


def needed(families: Collection[str]) -> set[str]:
    """The fields that a module with instructions of these families needs."""
    found = {choice.field for choice in CHOICES if not choice.families.isdisjoint(families)}
    while more := {need for choice in CHOICES if choice.field in found for need in choice.needs} - found:
        found |= more
    return found


@dataclass(frozen=True)
class Variant:
    """The features of the runtime that a module needs. `CHOICES` lists the macros, their values and needs.

    `epoch_bits` (read, write) and `epoch_limit` shrink the counters for tests that force every wrap.
    """

    granule: int = 4
    partial: bool = False
    asynchronous: bool = False
    flags: bool = False  # fences and strong accesses may synchronise; needs `partial`; no macro
    cluster: int = 0
    engine: bool = False
    named: int = 0
    isa: bool = False
    epoch_bits: tuple[int, int] = (12, 20)
    epoch_limit: int = 1 << 26

    def defines(self) -> dict[str, str]:
        """Preprocessor definitions."""
        return {
            **{choice.macro: str(int(getattr(self, choice.field))) for choice in CHOICES},
            "CONSAN_READ_EPOCH_BITS": str(self.bits["READ_EPOCH_BITS"]),
            "CONSAN_WRITE_EPOCH_BITS": str(self.bits["WRITE_EPOCH_BITS"]),
            "CONSAN_THREAD_BITS": str(self.bits["THREAD_BITS"]),
            "CONSAN_EPOCH_LIMIT": f"{self.epoch_limit}u",
        }

    @property
    def ctas(self) -> int:
        """CTAs of the largest cluster, 1 without clusters."""
        return max(self.cluster, 1)

    @property
    def bits(self) -> dict[str, int]:
        """Widths of fields of packed words (bits.py)."""
        thread = 10 + max(self.cluster - 1, 0).bit_length()
        return {"THREAD_BITS": thread, "READ_EPOCH_BITS": self.epoch_bits[0], "WRITE_EPOCH_BITS": min(self.epoch_bits[1], 30 - thread)}

    @property
    def read_period(self) -> int:
        """Barriers between two scrubs of old read records (a power of two)."""
        return 1 << (self.epoch_bits[0] - 2)


_NUMBERS = {choice.field for choice in CHOICES if choice.values != (0, 1)}


def reachable() -> Iterator[Variant]:
    """Each variant that a module can ask for, once."""
    for values in itertools.product(*(choice.values for choice in CHOICES)):
        chosen = {choice.field: value for choice, value in zip(CHOICES, values, strict=True)}
        if all(chosen[need] for choice in CHOICES if chosen[choice.field] for need in choice.needs):
            fields: dict[str, Any] = {field: value if field in _NUMBERS else bool(value) for field, value in chosen.items()}
            yield Variant(flags=fields["engine"], **fields)
