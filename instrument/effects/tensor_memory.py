"""The instructions of tcgen05."""

from __future__ import annotations

from consan.dataclass import dataclass
from consan.instrument.effects.model import NO_WORD, ONE, ZERO, AtShared, InFlight, Number, Place, When, Words


@dataclass(frozen=True, kw_only=True)
class TensorMemoryEffect(InFlight):
    """An instruction of tcgen05."""

    tensor_memory = True
    pair: bool = False
    single: bool = False


@dataclass(frozen=True, kw_only=True)
class TensorAllocRequest(TensorMemoryEffect):
    """`alloc`, before it: it may wait for ever."""

    columns: Number = ZERO


@dataclass(frozen=True, kw_only=True)
class TensorAlloc(TensorMemoryEffect):
    """`alloc`, once it has been served: the word that got the address, and the address."""

    access = "write"
    recorded = When.BEHIND
    at: Place = ZERO
    columns: Number = ZERO
    cells: Number = ZERO


@dataclass(frozen=True, kw_only=True)
class TensorDealloc(TensorMemoryEffect):
    """`dealloc`."""

    columns: Number = ZERO
    cells: Number = ZERO


class TensorRelinquish(TensorMemoryEffect):
    """`relinquish_alloc_permit`."""


@dataclass(frozen=True, kw_only=True)
class TensorMove(TensorMemoryEffect):
    """Columns of so many lanes; with `distance`, as many again so many less one behind. `load`: its number
    (record/analyses/consumed.py)."""

    at: Place = ZERO
    columns: int = 0
    lanes: int = 0
    distance: int = 0
    load: int = 0


class TensorLd(TensorMove):
    """`tcgen05.ld`."""

    access = "read"


class TensorSt(TensorMove):
    """`tcgen05.st`."""

    access = "write"


@dataclass(frozen=True, kw_only=True)
class TensorWait(TensorMemoryEffect):
    """`wait::ld` (1), `wait::st` (2), or the first use of what the load of a number gave (3)."""

    what: int = 0
    load: int = 0


@dataclass(frozen=True, kw_only=True)
class TensorMma(TensorMemoryEffect):
    """`mma`. `factors`, `form`: numbers of record/families/tensor_memory.py; `disabled`: words with lanes; `collector`: a buffer and its
    usage."""

    access = "write"
    at: Place = ZERO
    operands: Words = NO_WORD
    factors: int = 0
    form: int = 0
    disabled: int = 0
    collector: int = 0


@dataclass(frozen=True, kw_only=True)
class TensorCp(TensorMemoryEffect):
    """`cp`: rows of so many bytes to columns."""

    access = "write"
    at: Place = ZERO
    operands: Words = NO_WORD
    rows: int = 0
    row_bytes: int = 0
    columns: int = 0


@dataclass(frozen=True, kw_only=True)
class TensorShift(TensorMemoryEffect):
    """`shift`."""

    access = "write"
    at: Place = ZERO


@dataclass(frozen=True, kw_only=True)
class TensorCommit(TensorMemoryEffect, AtShared):
    """`commit`: the mbarrier that it arrives at, in the CTAs of a mask."""

    ctas: Number = ONE
    multicast: bool = False


@dataclass(frozen=True, kw_only=True)
class TensorFence(TensorMemoryEffect):
    """`fence`; `after`: behind synchronisation."""

    after: int = 0
