"""An instrumented module as text, so that the next process need not parse and rewrite the same PTX again.

The format is a line of JSON (nested lists in the order of the dataclasses' fields), a line of numbers (`Instrumented.lines`), and the PTX.
`fingerprint` identifies the code that made it and must be part of the cache key. A module is mostly read only to be loaded, so the numbers
are read on demand, and `Instrumented.places` from the plain PTX.

Not handled: damaged text (the digest of the cache detects it) and other versions of this code (the key excludes them).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import astuple, fields
from functools import cache, cached_property
from importlib.resources import files
from typing import Any, overload

from consan.instrument import Instrumented, Places
from consan.instrument.abi.variant import Variant
from consan.instrument.ptx import Module
from consan.instrument.sites import (
    FunctionStats,
    GlobalWrites,
    InlinedCall,
    Place,
    SharedVariable,
    Site,
    StaticFinding,
    UnmodelledInstruction,
)

_BY_THEMSELVES = ("ptx", "lines", "places")


class _Numbers(Sequence[int]):
    """Whole numbers in a text, which is read when somebody asks for one."""

    def __init__(self, text: str) -> None:
        self._text = text

    @cached_property
    def _read(self) -> tuple[int, ...]:
        return tuple(map(int, self._text.split()))

    @overload
    def __getitem__(self, at: int) -> int: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[int]: ...
    def __getitem__(self, at: int | slice) -> int | Sequence[int]:
        return self._read[at]

    def __len__(self) -> int:
        return len(self._read)


@cache
def fingerprint(package: str = __package__) -> str:
    """A hash of the source of a package: of this one, on which an instrumented module depends besides its PTX and its variant."""
    digest = hashlib.sha256()
    for file in sorted(_contents(files(package)), key=str):
        digest.update(file.name.encode() + file.read_bytes())
    return digest.hexdigest()


def _contents(folder: Any) -> Iterator[Any]:
    for item in folder.iterdir():
        if item.is_dir():
            yield from _contents(item)
        elif item.name.endswith((".py", ".cuh")):
            yield item


def dump(done: Instrumented) -> str:
    """Everything but the places."""
    values = {field.name: getattr(done, field.name) for field in fields(done) if field.name not in _BY_THEMSELVES}
    plain = values | {
        "sites": [astuple(site) for site in done.sites],
        "functions": [_stats(function) for function in done.functions],
        "variant": astuple(done.variant),
        "hazards": [astuple(hazard) for hazard in done.hazards],
    }
    return "\n".join((json.dumps(plain, separators=(",", ":")), " ".join(map(str, done.lines)), done.ptx))


def _stats(function: FunctionStats) -> list[Any]:
    unmodelled = [astuple(each) for each in function.unmodelled]
    shared = [astuple(variable) for variable in function.shared]
    sites = (function.memory_sites, function.sync_sites, function.private)
    counts = (*sites, astuple(function.writes))
    seen = (function.open_points, function.grid_controls)
    named = (function.annotations, *map(sorted, (function.calls, function.fence_scopes, function.families)))
    return [function.name, function.kind, *counts, *seen, unmodelled, *named, shared, function.placed]


def restore(text: str, plain: Callable[[], Module]) -> Instrumented:
    """The stored module. `plain` gives the PTX that it was made from: it is called at most once, when somebody asks."""
    first, numbers, ptx = text.split("\n", 2)
    values = json.loads(first)
    made = {
        "ptx": ptx,
        "lines": _Numbers(numbers),
        "sites": tuple(_site(site) for site in values["sites"]),
        "functions": tuple(_function(function) for function in values["functions"]),
        "entries": tuple(values["entries"]),
        "external": tuple(values["external"]),
        "variant": _variant(values["variant"]),
        "hazards": tuple(_hazard(hazard) for hazard in values["hazards"]),
        "places": Places(plain),
    }
    return Instrumented(**(values | made))


def _frames(values: list[list[Any]]) -> tuple[InlinedCall, ...]:
    return tuple(InlinedCall(*frame) for frame in values)


def _named(record: type[Any], values: list[Any]) -> dict[str, Any]:
    return dict(zip((field.name for field in fields(record)), values, strict=True))


def _site(values: list[Any]) -> Site:
    return Site(*values[:-1], *[_frames(values[-1])])


def _place(values: list[Any]) -> Place:
    return Place(*values[:-1], *[_frames(values[-1])])


def _variant(values: list[Any]) -> Variant:
    found = _named(Variant, values)
    low, high = found["epoch_bits"]
    return Variant(**(found | {"epoch_bits": (low, high)}))


def _function(values: list[Any]) -> FunctionStats:
    found = _named(FunctionStats, values)
    unmodelled = [UnmodelledInstruction(*each) for each in found["unmodelled"]]
    sets = {name: set(found[name]) for name in ("calls", "fence_scopes", "families")}
    shared = tuple(SharedVariable(*each) for each in found["shared"])
    made = {
        "annotations": tuple(found["annotations"]),
        "unmodelled": unmodelled,
        "shared": shared,
        "writes": GlobalWrites(*found["writes"]),
    }
    return FunctionStats(**(found | made | sets))


def _hazard(values: list[Any]) -> StaticFinding:
    found = _named(StaticFinding, values)
    for key in ("first", "second", "third"):
        found[key] = None if found[key] is None else _place(found[key])
    for key in ("registers", "kernels"):
        found[key] = tuple(found[key])
    return StaticFinding(**found)
