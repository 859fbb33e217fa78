"""Launches that are kept: the parts of a launch that `check` has read, written to a file and read again.

The file is a zip archive. `histories.json` describes modules and launches; each launch has an array with the group of each cluster
(-1: its threads have not all exited), and one with the names of the groups; each cluster that was replayed has its log.
A launch that only repeats known histories has no log: the launch before it that was replayed has it.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import zipfile
from collections.abc import Sequence
from dataclasses import astuple, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from consan._errors import UsageError
from consan.checker.compiled.replay import History, Tables
from consan.checker.logs.grouping import Grouped
from consan.checker.logs.recorded_launch import MemoryBefore, RecordedLaunch
from consan.dataclass import dataclass
from consan.instrument.effects import LANES
from consan.textures.description import TextureMemory

SCHEMA: Final = "consan.histories/4"
MOST_BYTES: Final = 1 << 30  # of one file, compressed
_INDEX: Final = "histories.json"
_SEAL: Final = b"consan.sha256:"  # before the digest of the archive, which ends the file
_NAME_BYTES: Final = 16  # of a group
_MOST_PENDING: Final = 32 << 20  # bytes, before they are compressed
_EMPTY: Final = b"PK\5\6" + bytes(18)  # an archive without members


class Watched:
    """A launch, and the histories that `check` has read of it."""

    def __init__(self, launch: RecordedLaunch) -> None:
        self._launch = launch
        self.grouped_as: Grouped | None = None
        self.read: dict[int, History] = {}  # by cluster
        self.textures: dict[int, TextureMemory | None] = {}  # by handle

    def grouped(self, limit: int) -> Grouped:
        """The clusters by history."""
        self.grouped_as = self._launch.grouped(limit)
        return self.grouped_as

    def window(self) -> tuple[int, int]:
        """The address of the first byte of a CTA's shared memory, and how many there are."""
        return self._launch.window()

    def histories(self, clusters: Sequence[int]) -> list[History]:
        """The histories of some clusters."""
        found = self._launch.histories(clusters)
        self.read |= dict(zip(clusters, found, strict=True))
        return found

    def has(self, cluster: int) -> bool:
        """Whether the cluster's history can be read."""
        return self._launch.has(cluster)

    @property
    def memory_before(self) -> Sequence[MemoryBefore]:
        """The bytes in memory before the launch, where they are known."""
        return self._launch.memory_before

    def texture_memory(self, handle: int) -> TextureMemory | None:
        """The bytes of a texture object that have addresses; None: they are not known."""
        self.textures[handle] = self._launch.texture_memory(handle)
        return self.textures[handle]

    def free(self) -> None:
        """Free the launch's memory."""
        self._launch.free()


@dataclass(frozen=True)
class RetainedLaunch:
    """A launch out of a file; `check` takes it as it takes a launch. `about`: what the writer said of it."""

    about: dict[str, Any]
    groups: Grouped
    read: dict[int, History]  # by cluster
    shared: tuple[int, int]  # the first byte of a CTA's shared memory, and how many there are
    textures: dict[int, TextureMemory] = field(default_factory=dict)  # by handle

    def grouped(self, limit: int) -> Grouped:
        """The clusters by history: those that the run has looked at."""
        return self.groups

    def window(self) -> tuple[int, int]:
        """The address of the first byte of a CTA's shared memory, and how many there are."""
        return self.shared

    def histories(self, clusters: Sequence[int]) -> list[History]:
        """The histories of some clusters. UsageError if a log is not in the file."""
        if missing := [cluster for cluster in clusters if cluster not in self.read]:
            raise UsageError(f"the log of CTA {missing[0]} is not in the file")
        return [self.read[cluster] for cluster in clusters]

    def has(self, cluster: int) -> bool:
        """Whether the cluster's log is in the file."""
        return cluster in self.read

    @property
    def memory_before(self) -> Sequence[MemoryBefore]:
        """The file does not say."""
        return ()

    def texture_memory(self, handle: int) -> TextureMemory | None:
        """The bytes of a texture object that had addresses; None: the file does not say."""
        return self.textures.get(handle)

    def free(self) -> None:
        """A launch out of a file has no memory on a device."""


class Archive:
    """Collects launches for a file. A forked process has a copy of its own."""

    def __init__(self) -> None:
        self.left_out = 0  # launches that had no room
        self._bytes = _EMPTY
        self._pending: dict[str, npt.NDArray[Any]] = {}
        self._pending_bytes = 0
        self._launches: list[dict[str, Any]] = []

    def __len__(self) -> int:
        return len(self._launches) + self.left_out

    def add(self, watched: Watched, about: dict[str, Any]) -> None:
        """Keep a launch that was checked. `about`: its place, as JSON."""
        if watched.grouped_as is None or len(self._bytes) > MOST_BYTES:
            self.left_out += 1
            return
        number = len(self._launches)
        logs = {_log(number, cluster): history.log for cluster, history in watched.read.items()}
        arrays: dict[str, npt.NDArray[Any]] = {f"launch-{number}/groups": watched.grouped_as.by_cluster(), **logs}
        arrays[f"launch-{number}/names"] = _names_of(watched.grouped_as)
        self._pending |= arrays
        self._pending_bytes += sum(values.nbytes for values in arrays.values())
        self._launches.append({**about, "window": watched.window(), "logs": list(watched.read), "textures": _described(watched)})
        if self._pending_bytes > _MOST_PENDING:
            self._pack()

    def contents(self, about: dict[str, Any]) -> bytes:
        """The file's bytes. `about`: modules and run, as JSON. More launches may be added afterwards."""
        self._pack()
        index = {"schema": SCHEMA, **about, "launches": self._launches, "left_out": self.left_out}
        return sealed(_appended(self._bytes, {_INDEX: json.dumps(index).encode()}))

    def _pack(self) -> None:
        self._bytes = _appended(self._bytes, {f"{name}.npy": _npy(values) for name, values in self._pending.items()})
        self._pending.clear()
        self._pending_bytes = 0


@dataclass(frozen=True)
class Contents:
    """A file that was read: what the writer said of the run, and its launches."""

    about: dict[str, Any]
    launches: tuple[RetainedLaunch, ...]


def read(name: str, data: bytes) -> Contents:
    """The contents of a file. UsageError with one line if it is damaged, cut, or of another version."""
    try:
        with zipfile.ZipFile(io.BytesIO(_unsealed(data))) as file:
            about = json.loads(file.read(_INDEX))
            if about.get("schema") != SCHEMA:
                raise UsageError(f"{name} holds {about.get('schema')}, expected {SCHEMA}")
            return Contents(about, tuple(_launch(file, number, each) for number, each in enumerate(about["launches"])))
    except UsageError:
        raise
    except Exception as error:
        raise UsageError(f"{name} is damaged, or no file of recorded histories: {error}") from None


def sealed(archive: bytes) -> bytes:
    """The archive with its checksum."""
    return archive + _SEAL + hashlib.sha256(archive).digest()


def _unsealed(data: bytes) -> bytes:
    """The archive before the seal. ValueError if a byte of it has changed: the archive's own sums do not cover its directory."""
    archive, _, digest = data.rpartition(_SEAL)
    if hashlib.sha256(archive).digest() != digest:
        raise ValueError("its checksum does not fit")
    return archive


def _launch(file: zipfile.ZipFile, number: int, about: dict[str, Any]) -> RetainedLaunch:
    by_cluster, names = _array(file, f"launch-{number}/groups", 1, "<i4"), _array(file, f"launch-{number}/names", 2, "|u1")
    logs = {int(cluster): _array(file, _log(number, cluster), 3, "<u4") for cluster in about["logs"]}
    grid, block, ctas = about["grid"], about["block"], math.prod(about["cluster"])
    if min(*grid, *block, *about["cluster"]) < 1 or by_cluster.size * ctas > math.prod(grid):
        raise ValueError(f"launch {number}: the CTAs do not fit the grid")
    if any(log.shape[::2] != (ctas * -(-math.prod(block) // LANES), LANES) for log in logs.values()):
        raise ValueError(f"launch {number}: a log does not fit the block")
    window, nbytes = map(int, about["window"])
    histories = {cluster: History(log, math.prod(block), window, nbytes, ctas) for cluster, log in logs.items()}
    textures = {int(handle): TextureMemory(*values) for handle, values in about.get("textures", {}).items()}
    return RetainedLaunch(about, Grouped.from_clusters(by_cluster, [row.tobytes() for row in names]), histories, (window, nbytes), textures)


def _described(watched: Watched) -> dict[int, tuple[Any, ...]]:
    return {handle: astuple(memory) for handle, memory in watched.textures.items() if memory is not None}


def _array(file: zipfile.ZipFile, name: str, dimensions: int, dtype: str) -> npt.NDArray[Any]:
    found = np.lib.format.read_array(io.BytesIO(file.read(f"{name}.npy")), allow_pickle=False)
    if (found.ndim, found.dtype) != (dimensions, np.dtype(dtype)):
        raise ValueError(f"{name} is an array of {found.ndim} dimensions of {found.dtype}")
    return np.asarray(found)


def _log(launch: int, cluster: int) -> str:
    return f"launch-{launch}/log-{cluster}"


def _names_of(grouped: Grouped) -> npt.NDArray[np.uint8]:
    """The groups' names: groups x bytes."""
    return np.frombuffer(b"".join(group.name for group in grouped.groups), np.uint8).reshape(-1, _NAME_BYTES)


def _npy(values: npt.NDArray[Any]) -> bytes:
    file = io.BytesIO()
    np.lib.format.write_array(file, np.ascontiguousarray(values), allow_pickle=False)
    return file.getvalue()


def _appended(archive: bytes, members: dict[str, bytes]) -> bytes:
    """A zip archive with more members."""
    buffer = io.BytesIO(archive)
    with zipfile.ZipFile(buffer, "a", zipfile.ZIP_DEFLATED) as file:
        for name, content in members.items():
            file.writestr(name, content)
    return buffer.getvalue()


def fingerprint(tables: Tables) -> str:
    """Names the templates of a module: a log can be read with these only."""
    return hashlib.sha256(b"".join(table.tobytes() for table in tables)).hexdigest()[:16]
