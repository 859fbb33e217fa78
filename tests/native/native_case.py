"""Runs a small program under `consan run`'s server against a driver that is made up (`fake_cuda.c`).

The driver runs no kernel. A launch with hooks leaves what hooks have found on the virtual machine, and a recorded one the record that the
virtual machine makes of the same text.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import os
import struct
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from consan.backends.virtual import VirtualBackend
from consan.checker.judging.collected import LaunchedKernel
from consan.checker.judging.starting import start
from consan.checker.logs.launch import Launch
from consan.checker.logs.memory import LogMemory
from consan.instrument.abi import records
from consan.instrument.record import Recorded
from consan.instrument.record.analyses.launch_inputs import SLOT
from consan.instrument.record.text import text
from consan.instrument.record.text.templates import LINE_BYTES
from consan.native.build import INTERPOSER
from consan.native.program import NativeProgram
from consan.native.run import run_native
from consan.reports.model import Report
from consan.session.executing.loading import Modules
from consan.session.modules.prepared import Prepared
from consan.session.planning.options import SessionOptions
from consan.session.session import Session
from consan.toolchain.host_library import C, HostLibrary
from consan.toolchain.nvrtc import compile_ptx

HERE = Path(__file__).parent
FATBINS = HERE.parent / "unit" / "native" / "data"
STATUS = 12  # of the program
GRID, BLOCK, WARPS = (4, 1, 1), (256, 1, 1), 32  # of each launch
SHARED = 1024  # bytes of dynamic shared memory
CODE_AT = 40  # in a cubin: how many bytes of it the driver looks at


def options(**given: object) -> SessionOptions:
    """The options of `consan run`."""
    return SessionOptions.of(given)


@dataclass(frozen=True)
class Case:
    """What the tests share: the driver, the programs, the kernel's PTX, and the ring that a launch of it leaves."""

    folder: Path
    environment: dict[str, str]

    def image(self, *names: str) -> str:
        """The files that the program loads: `ptx` with a race, `clean`, or fat binaries."""
        texts = {"ptx": "sums.ptx", "clean": "clean.ptx"}
        return ",".join(str(self.folder / texts[name] if name in texts else FATBINS / f"{name}.fatbin") for name in names)

    def run(self, *words: str, given: argparse.Namespace | None = None, **more: str) -> tuple[int, Report, list[str]]:
        """The program's status, the report, and what the driver was handed."""
        log, program = self.folder / "log", "linked" if words[0] in ("direct", "linked") else "program"
        log.unlink(missing_ok=True)
        with environment(self.environment | {"FAKE_CUDA_LOG": str(log)} | more):
            status, report, _ = run_native(NativeProgram(str(self.folder / program), (program, *words)), given or options())
        return status, report, log.read_text().splitlines() if log.exists() else []


@contextlib.contextmanager
def environment(more: dict[str, str]) -> Iterator[None]:
    """Inside the block, these variables are set."""
    before = dict(os.environ)
    os.environ.update(more)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


@contextlib.contextmanager
def recordings(folder: Path) -> Iterator[None]:
    """Inside the block each module that is assembled to be recorded has its record in the folder."""
    instrument, known = Modules.instrument, set[bytes]()

    def recorded(self: Modules, *words: Any, **how: Any) -> Prepared:
        prepared = instrument(self, *words, **how)
        if prepared.recorded is None or prepared.code.cubin is None or "sums" not in prepared.entries:
            return prepared
        if prepared.code.cubin not in known:
            known.add(prepared.code.cubin)
            looked_at = prepared.code.cubin[: int.from_bytes(prepared.code.cubin[CODE_AT : CODE_AT + 8], "little")]
            path = folder / f"{_sum(looked_at):016x}"
            if not path.exists():
                path.write_bytes(_record(prepared.recorded))
        return prepared

    Modules.instrument = recorded  # type: ignore[method-assign]
    try:
        yield
    finally:
        Modules.instrument = instrument  # type: ignore[method-assign]


def _sum(data: bytes) -> int:
    found = 1
    for byte in data:
        found = (found * 31 + byte) & (1 << 64) - 1
    return found


def _record(recorded: Recorded) -> bytes:
    """What a launch of `sums` leaves: sizes, results, hashes, ends, and the logs of all warps. Zeros if it records nothing."""
    if recorded.kernel("sums").silent:
        return bytes(32)
    backend = VirtualBackend()
    handle = backend.load(recorded.ptx)
    launched = LaunchedKernel(0, 0, GRID, BLOCK, (1, 1, 1))
    launch = start(LogMemory(backend), handle, recorded, launched, 1 << 28, machine=VirtualBackend)
    assert isinstance(launch, Launch)
    backend.launch(handle, "sums", GRID, BLOCK, _buffers(backend), shared=SHARED)
    places, threads = launch.places(), math.prod(GRID) * math.prod(BLOCK)
    counts = launch.compact is not None and launch.compact.counts
    arena, hashes, ends = (int.from_bytes(places[at : at + 8], "little") for at in (text.ARENA, text.HASHES, text.ENDS))
    results = text.RESULT_BYTES + (SLOT * len(launch.compact.constants) if launch.compact is not None else 0)
    parts = [(launch.address, results), (hashes, threads * text.HASH_BYTES), (ends, threads * text.END_BYTES * counts)]
    stride = launch.lines * LINE_BYTES
    logs = [np.frombuffer(backend.read(arena + warp * stride, stride), "<u4") for warp in range(WARPS)]
    used = max(int(np.flatnonzero(log).max(initial=-1)) // (LINE_BYTES // 4) + 1 for log in logs)
    data = b"".join([*(backend.read(*part) for part in parts), *(log.tobytes()[: used * LINE_BYTES] for log in logs)])
    return struct.pack("<4Q", *(size for _, size in parts), used) + data


def _buffers(backend: Any) -> list[bytes]:
    return [backend.alloc(4096).to_bytes(8, "little"), backend.alloc(16).to_bytes(8, "little")]


def build(folder: Path) -> Case:
    """Compile the driver and the programs, and run the racy kernel once, on the virtual machine."""
    cc = C.compiler()
    assert cc is not None
    flags = ["-std=gnu11", "-O1", "-Wall", "-Werror", "-Wno-strict-prototypes"]
    driver, source = folder / "libcuda.so.1", HERE / "program.c"
    subprocess.run([*cc, *flags, "-shared", "-fPIC", "-o", str(driver), str(HERE / "fake_cuda.c")], check=True)
    subprocess.run([*cc, *flags, "-o", str(folder / "program"), str(source), "-ldl", "-lpthread"], check=True)
    subprocess.run([*cc, *flags, "-shared", "-fPIC", "-o", str(folder / "libcupti.so"), str(HERE / "fake_cupti.c"), "-ldl"], check=True)
    subprocess.run([*cc, *flags, "-shared", "-fPIC", "-o", str(folder / "plugin.so"), str(HERE / "plugin.c")], check=True)
    subprocess.run([*cc, *flags, "-DPTXAS", "-o", str(folder / "ptxas"), str(HERE / "plugin.c")], check=True)
    linked = ["-DLINKED", "-o", str(folder / "linked"), str(source), str(driver), "-ldl", "-lpthread"]
    subprocess.run([*cc, *flags, *linked], check=True)
    for name, defines in (("clean", {}), ("sums", {"RACY": None})):
        ptx = compile_ptx((HERE / "sums.cu").read_text(), name=str(HERE / "sums.cu"), defines=defines).ptx
        (folder / f"{name}.ptx").write_text(ptx)
    (folder / "ring").write_bytes(_ring(ptx))
    at = records.offsets(records.RUNTIME)
    given = {"FAKE_CUDA_RUNTIME": f"{at['launches']},{at['ring']}", "FAKE_CUDA_RING": str(folder / "ring")}
    given["FAKE_CUDA_RECORDS"] = str(folder)
    return Case(folder, {"LD_LIBRARY_PATH": str(folder)} | given)


def _ring(ptx: str) -> bytes:
    session = Session(SessionOptions(device="cpu", engine="inline"), private=True)
    prepared, backend = session.prepare(ptx), session.backend
    session.launch(prepared, "sums", GRID, BLOCK, _buffers(backend))
    return session.shadow.ring.tobytes()


def break_interposer(planted: pytest.MonkeyPatch, old: str, new: str, file: str = "unasked.h") -> None:
    """Plant a fault in a source of the interposer."""
    files = INTERPOSER.sources()
    assert files[file].count(old) == 1, old
    data, built = HostLibrary.data, INTERPOSER.compiled(files | {file: files[file].replace(old, new)})
    planted.setattr(HostLibrary, "data", lambda library: built if library is INTERPOSER else data(library))
