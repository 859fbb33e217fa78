"""Runs a small program under `consan run`'s server against a driver that is made up (`fake_cuda.c`)."""

from __future__ import annotations

import argparse
import contextlib
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from consan.instrument.abi import records
from consan.native.build import compiler
from consan.native.program import NativeProgram
from consan.native.run import run_native
from consan.options import RUN, SESSION
from consan.reports.model import Report
from consan.session.session import Session
from consan.toolchain.nvrtc import compile_ptx

HERE = Path(__file__).parent
FATBINS = HERE.parent / "unit" / "native" / "data"
STATUS = 12  # of the program


def options(**given: object) -> argparse.Namespace:
    """The options of `consan run`."""
    return argparse.Namespace(**{option.name: option.default for option in (*SESSION, *RUN)} | given)


@dataclass(frozen=True)
class Case:
    """What the tests share: the driver, the programs, the kernel's PTX, and the ring that a launch of it leaves."""

    folder: Path
    environment: dict[str, str]

    def image(self, *names: str) -> str:
        """The files that the program loads: `ptx`, or fat binaries."""
        return ",".join(str(self.folder / "sums.ptx" if name == "ptx" else FATBINS / f"{name}.fatbin") for name in names)

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


def build(folder: Path) -> Case:
    """Compile the driver and the programs, and run the racy kernel once, on the virtual machine."""
    cc = compiler()
    assert cc is not None
    flags = ["-std=gnu11", "-O1", "-Wall", "-Werror", "-Wno-strict-prototypes"]
    driver, source = folder / "libcuda.so.1", HERE / "program.c"
    subprocess.run([*cc, *flags, "-shared", "-fPIC", "-o", str(driver), str(HERE / "fake_cuda.c")], check=True)
    subprocess.run([*cc, *flags, "-o", str(folder / "program"), str(source), "-ldl", "-lpthread"], check=True)
    subprocess.run([*cc, *flags, "-shared", "-fPIC", "-o", str(folder / "plugin.so"), str(HERE / "plugin.c")], check=True)
    subprocess.run([*cc, *flags, "-DPTXAS", "-o", str(folder / "ptxas"), str(HERE / "plugin.c")], check=True)
    linked = ["-DLINKED", "-o", str(folder / "linked"), str(source), str(driver), "-ldl", "-lpthread"]
    subprocess.run([*cc, *flags, *linked], check=True)
    ptx = compile_ptx((HERE / "sums.cu").read_text(), name=str(HERE / "sums.cu"), defines={"RACY": None}).ptx
    (folder / "sums.ptx").write_text(ptx)
    (folder / "ring").write_bytes(_ring(ptx))
    at = records.offsets(records.RUNTIME)
    given = {"FAKE_CUDA_RUNTIME": f"{at['launches']},{at['ring']}", "FAKE_CUDA_RING": str(folder / "ring")}
    return Case(folder, {"LD_LIBRARY_PATH": str(folder)} | given)


def _ring(ptx: str) -> bytes:
    session = Session(device="cpu", engine="inline", private=True)
    prepared, backend = session.prepare(ptx), session.backend
    buffers = [backend.alloc(4096).to_bytes(8, "little"), backend.alloc(16).to_bytes(8, "little")]
    session.launch(prepared, "sums", (4, 1, 1), (256, 1, 1), buffers)
    return session.shadow.ring.tobytes()
