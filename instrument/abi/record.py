"""Records in device memory: how their tables are read, and the offsets, sizes and NumPy dtypes that follow."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

from consan.instrument.abi.sizes import sizes


@dataclass(frozen=True)
class Field:
    """One member: scalar type or name of a record, name, number of elements ("": a scalar), whether only clusters have it."""

    type: str
    name: str
    count: str
    cluster: bool
    meaning: str


@dataclass(frozen=True)
class Record:
    """A record in device memory."""

    name: str
    meaning: str
    fields: tuple[Field, ...]

    def members(self, ctas: int = 1) -> Iterator[tuple[Field, int]]:
        """The members that a variant has, each with its number of elements (0: a scalar)."""
        for field in self.fields:
            if ctas > 1 or not field.cluster:
                yield field, _product(field.count, ctas) if field.count else 0


_SCALARS = {"u64": 8, "u32": 4}
RECORDS: dict[str, Record] = {}
"""All records by name, in an order in which each comes after those it contains."""


def record(name: str, meaning: str, table: str) -> Record:
    """Read a table."""
    made = RECORDS[name] = Record(name, meaning, tuple(map(_field, table.strip().splitlines())))
    return made


def _field(line: str) -> Field:
    line = line.strip()
    cluster = line.startswith("cluster ")
    kind, name, meaning = line.removeprefix("cluster ").split(None, 2)
    base, _, count = name.partition("[")
    return Field(kind, base, count.rstrip("]"), cluster, meaning)


def _product(text: str, ctas: int) -> int:
    return math.prod(int(part) if part.isdigit() else sizes(ctas)[part] for part in text.split("*"))


def _bytes(kind: str, ctas: int) -> int:
    return _SCALARS.get(kind) or size(RECORDS[kind], ctas)


@cache
def offsets(record: Record, ctas: int = 1) -> dict[str, int]:
    """Byte offset of each member; of its end, under ""."""
    result, position = {}, 0
    for field, count in record.members(ctas):
        if position % _SCALARS.get(field.type, 8):
            raise ValueError(f"{record.name}.{field.name} is not naturally aligned (offset {position})")
        result[field.name] = position
        position += _bytes(field.type, ctas) * max(count, 1)
    return result | {"": position}


def size(record: Record, ctas: int = 1) -> int:
    """Size in bytes."""
    return offsets(record, ctas)[""]


@cache
def dtype(record: Record, ctas: int = 1) -> np.dtype[np.void]:
    """The NumPy dtype of one record."""
    members: list[tuple[str, npt.DTypeLike] | tuple[str, npt.DTypeLike, tuple[int, ...]]] = []
    for field, count in record.members(ctas):
        kind: npt.DTypeLike = f"<u{_SCALARS[field.type]}" if field.type in _SCALARS else dtype(RECORDS[field.type], ctas)
        members.append((field.name, kind, (count,)) if count else (field.name, kind))
    result: np.dtype[np.void] = np.dtype(members)
    return result
