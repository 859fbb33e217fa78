"""PTX of the cases, and runs of it with and without hooks on one device."""

from __future__ import annotations

import functools
from typing import Any

import corpus
import numpy as np
import pytest
from real_cases import Array, Launch

from consan._errors import ConsanError
from consan.instrument import Instrumented
from consan.instrument.called_hooks import instrument
from consan.instrument.ptx import parse
from consan.reports.model import Report
from consan.session.modules.runtime import library_for
from consan.session.planning.options import SessionOptions
from consan.session.session import Session


@functools.cache
def ptx_of(name: str, arch: str) -> str:
    """A corpus entry's PTX; skips the test where this machine cannot make it."""
    entry = corpus.get(f"{name}/{arch}")
    if entry.skip:
        pytest.skip(entry.skip)
    try:
        return entry.make()
    except ConsanError as error:
        if name.startswith("nvrtc/"):
            raise
        # Somebody else's compiler that does not work with what else is installed here is not a finding about consan.
        pytest.skip(f"{name}: its compiler failed: {str(error).splitlines()[-1]}")


@functools.cache
def instrumented(name: str, arch: str, inline: bool = False) -> Instrumented:
    """A corpus entry with hooks; `inline` as for a GPU."""
    return instrument(ptx_of(name, arch), library=library_for, name=name, inline=inline)


def session_with_inline_hooks(seed: int) -> Session:
    """A session whose virtual machine runs the text that a GPU would."""
    session = Session(SessionOptions(device="cpu", seed=seed, shadow_memory=64 << 20, engine="inline"), private=True)
    session.modules.inline = True
    return session


@functools.lru_cache(maxsize=4)
def _entries(ptx: str) -> list[str]:
    return [f.name for f in parse(ptx).functions if f.kind == "entry"]


def entry_of(ptx: str, launch: Launch) -> str:
    """The kernel to launch: the one that is named, or else the module's only one."""
    names = _entries(ptx)
    assert launch.entry in names or len(names) == 1, names
    return launch.entry or names[0]


class Buffers:
    """A launch's arrays on a device; fetched back into the same arrays."""

    def __init__(self, backend: Any, launch: Launch) -> None:
        self._backend = backend
        self._scratch = launch.scratch
        self._places = {id(array): (backend.alloc(array.nbytes), array) for array in launch.buffers()}
        for address, array in self._places.values():
            backend.write(address, np.ascontiguousarray(array))

    def address(self, array: Array) -> int:
        """Where an array is."""
        return int(self._places[id(array)][0])

    def fetch(self) -> list[bytes]:
        """Copy everything back, and free it; the results among it."""
        results = []
        for address, array in self._places.values():
            data = bytes(self._backend.read(address, array.nbytes))
            array[...] = np.frombuffer(data, array.dtype).reshape(array.shape)
            self._backend.free(address)
            if array is not self._scratch:
                results.append(data)
        return results

    def free(self) -> None:
        """Free everything, and leave the arrays as they are."""
        for address, _ in self._places.values():
            self._backend.free(address)


def start_plain(handle: Any, ptx: str, launch: Launch, backend: Any, seed: int) -> tuple[Buffers, Any]:
    """Launch a loaded kernel as it is: its buffers, and what the backend says."""
    buffers = Buffers(backend, launch)
    stats = backend.launch(
        handle,
        entry_of(ptx, launch),
        launch.grid,
        launch.block,
        launch.pack(buffers.address),
        shared=launch.shared,
        cluster=launch.cluster,
        cooperative=launch.cooperative,
        seed=seed,
    )
    return buffers, stats


def run_plain(ptx: str, launch: Launch, backend: Any, *, seed: int = 0) -> list[bytes]:
    """The kernel as it is: what it left in each buffer."""
    buffers, stats = start_plain(backend.load(ptx), ptx, launch, backend, seed)
    assert stats is None or not stats.ending, stats
    assert backend.synchronize(120)
    return buffers.fetch()


def run_checked(ptx: str, launch: Launch, session: Session) -> tuple[list[bytes], Report]:
    """The kernel with hooks: what it left in each buffer, and the session's report."""
    prepared = session.prepare(ptx)
    buffers = Buffers(session.backend, launch)
    session.launch(
        prepared,
        entry_of(ptx, launch),
        launch.grid,
        launch.block,
        launch.pack(buffers.address),
        shared=launch.shared,
        cluster=launch.cluster,
        cooperative=launch.cooperative,
    )
    report = session.report()
    return buffers.fetch(), report
