"""Tables of records: how they are read, and the offsets, sizes and NumPy dtypes that follow.

A line of a table is `type name meaning`. A type is a scalar, the name of a record, or `*` before one of these: its address. `*` is
constant for C++, `*mut:` is not. Fields have no hidden padding.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from consan.dataclass import dataclass

SCALARS = {"u64": "<u8", "u32": "<u4", "i32": "<i4"}
_ADDRESS = "u64"


@dataclass(frozen=True)
class Field:
    """One member: its type, name, number of elements ("": a scalar), whether only clusters have it, and what it means."""

    type: str
    name: str
    count: str
    cluster: bool
    meaning: str
    record: Record | None = None  # that it contains

    @property
    def scalar(self) -> str:
        """The scalar that it is stored as; of a record: the widest that it may contain."""
        return self.type if self.type in SCALARS else _ADDRESS


def _no_counts(ctas: int) -> Mapping[str, int]:
    return {}


@dataclass(frozen=True)
class Record:
    """A record. `counts`: the numbers of elements that have names, for clusters of so many CTAs."""

    name: str
    meaning: str
    fields: tuple[Field, ...]
    counts: Callable[[int], Mapping[str, int]] = field(default=_no_counts, compare=False)

    def members(self, ctas: int = 1) -> Iterator[tuple[Field, int]]:
        """The members that a variant has, each with its number of elements (0: a scalar)."""
        for each in self.fields:
            if ctas > 1 or not each.cluster:
                yield each, self._product(each.count, ctas) if each.count else 0

    def _product(self, text: str, ctas: int) -> int:
        return math.prod(int(part) if part.isdigit() else self.counts(ctas)[part] for part in text.split("*"))


class Records(dict[str, Record]):
    """Records by name, in an order in which each comes after those it contains."""

    def __init__(self, counts: Callable[[int], Mapping[str, int]] = _no_counts) -> None:
        super().__init__()
        self._counts = counts

    def record(self, name: str, meaning: str, table: str) -> Record:
        """Read a table."""
        made = self[name] = Record(name, meaning, tuple(map(self._field, table.strip().splitlines())), self._counts)
        return made

    def _field(self, line: str) -> Field:
        line = line.strip()
        cluster = line.startswith("cluster ")
        kind, name, meaning = line.removeprefix("cluster ").split(None, 2)
        base, _, count = name.partition("[")
        contained = None if kind in SCALARS or kind.startswith("*") else self[kind]
        return Field(kind, base, count.rstrip("]"), cluster, meaning, contained)


def _bytes(member: Field, ctas: int) -> int:
    return size(member.record, ctas) if member.record else np.dtype(SCALARS[member.scalar]).itemsize


@cache
def offsets(record: Record, ctas: int = 1) -> dict[str, int]:
    """Byte offset of each member; of its end, under ""."""
    result, position = {}, 0
    for each, count in record.members(ctas):
        if position % np.dtype(SCALARS[each.scalar]).itemsize:
            raise ValueError(f"{record.name}.{each.name} is not naturally aligned (offset {position})")
        result[each.name] = position
        position += _bytes(each, ctas) * max(count, 1)
    return result | {"": position}


def size(record: Record, ctas: int = 1) -> int:
    """Size in bytes."""
    return offsets(record, ctas)[""]


@cache
def dtype(record: Record, ctas: int = 1) -> np.dtype[np.void]:
    """The NumPy dtype of one record. An address is a number of 64 bits."""
    members: list[tuple[str, npt.DTypeLike] | tuple[str, npt.DTypeLike, tuple[int, ...]]] = []
    for each, count in record.members(ctas):
        kind: npt.DTypeLike = dtype(each.record, ctas) if each.record else SCALARS[each.scalar]
        members.append((each.name, kind, (count,)) if count else (each.name, kind))
    result: np.dtype[np.void] = np.dtype(members)
    return result


def integers(record: Any, *names: str) -> dict[str, Any]:
    """Fields of one record by name."""
    return {name: int(record[name]) for name in names}
