"""Runs CUDA C++ under a session of its own, on either device, with arrays in device memory.

A `Bench` is one session and the buffers of one test. A finding is described by kind and by the marked source lines
(`/*@name*/`) that its accesses stand at, so that a test can say which two statements it expects.
"""

from __future__ import annotations

import functools
import re
import struct
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from twin_file import MINIMAL

from consan.instrument.runtime import Variant
from consan.reports.model import Finding, Report
from consan.session.modules.prepared import Prepared
from consan.session.planning.options import SessionOptions
from consan.session.session import Session
from consan.toolchain.nvrtc import compile_ptx

Array = npt.NDArray[Any]
MiB = 1 << 20
ROOM = {"cpu": 16 * MiB, "gpu": 2048 * MiB}  # a GPU has thousands of CTAs resident, the machine some hundreds
ARCH = "sm_90a"
_MARKER = re.compile(r"/\*@(\w+)\*/")


@functools.cache
def compiled(source: str, name: str = "kernel.cu", defines: tuple[str, ...] = ()) -> str:
    """PTX of CUDA C++."""
    return compile_ptx(source, name=name, arch=ARCH, defines=dict.fromkeys(defines, "1"), options=MINIMAL).ptx


def markers(source: str) -> dict[int, str]:
    """Names of the marked lines."""
    return {number: found[1] for number, line in enumerate(source.splitlines(), 1) if (found := _MARKER.search(line))}


class Bench:
    """One session. Buffers are NumPy arrays by name of the address that `buffer` returns."""

    opened: ClassVar[list[Bench]] = []
    closed: ClassVar[int] = 0  # since the last collection

    def __init__(
        self, device: str, source: str = "", *,
        defines: tuple[str, ...] = (), arena: int | None = None, variant: Variant | None = None, cta_limit: int = 0, **options: Any,
    ) -> None:  # fmt: skip
        self.source = source
        given = {"engine": "inline", **options}  # the tests look at called hooks, unless they say another engine
        chosen = SessionOptions.of({"device": device, "shadow_memory": arena or ROOM[device], **given})
        self.session = Session(chosen, private=True, variant=variant, cta_limit=cta_limit)
        self.opened.append(self)
        self.backend = self.session.backend
        self.prepared: Prepared | None = self.session.prepare(compiled(source, defines=defines)) if source else None

    @property
    def on_cpu(self) -> bool:
        """Whether the virtual machine runs the kernels."""
        return bool(self.backend.device_name == "cpu")

    def buffer(self, values: Any) -> int:
        """A device copy of an array."""
        array = np.ascontiguousarray(values)
        address = int(self.backend.alloc(array.nbytes))
        self.backend.write(address, array)
        return address

    def zeros(self, count: int, dtype: Any = np.uint32) -> int:
        """A zeroed buffer."""
        return self.buffer(np.zeros(count, dtype))

    def array(self, address: int, count: int, dtype: Any = np.uint32) -> Array:
        """What a buffer holds after all work."""
        self.backend.synchronize()
        return np.frombuffer(self.backend.read(address, count * np.dtype(dtype).itemsize), dtype)

    def launch(self, entry: str, grid: int, block: int, *args: Any, prepared: Prepared | None = None, **more: Any) -> None:
        """Launch with integer, float (f32) or bytes arguments, which take the sizes that the kernel declares."""
        module = prepared or self.prepared
        assert module is not None
        sizes = parameter_sizes(module.plain, entry)
        values = [encoded(value, size) for value, size in zip(args, sizes, strict=True)]
        self.session.launch(module, entry, (grid, 1, 1), (block, 1, 1), values, **more)

    def report(self) -> Report:
        """The session's report."""
        return self.session.report()

    def counters(self) -> Any:
        """The device's counters now."""
        return self.session.shadow.drain().counters

    def close(self) -> None:
        """Free the shadow memory of a GPU; the machine's goes with its object."""
        if not self.on_cpu:
            self.session.close()


@functools.cache
def parameter_sizes(ptx: str, entry: str) -> tuple[int, ...]:
    """Bytes of each parameter of a kernel."""
    from consan.instrument.ptx import parse

    (function,) = [f for f in parse(ptx).functions if f.name == entry and f.kind == "entry"]
    return tuple(parameter.nbytes for parameter in function.params)


def encoded(value: Any, size: int) -> bytes:
    """One argument's bytes."""
    if isinstance(value, bytes):
        return value
    if isinstance(value, float):
        return struct.pack("<f", value)
    return int(value).to_bytes(size, "little", signed=value < 0)


def places(finding: Finding, source: str) -> tuple[str, ...]:
    """Kind, then the sorted markers (or line numbers) of the accesses."""
    names = markers(source)
    return (finding.kind, *sorted(names.get(access.line, str(access.line)) for access in finding.pair))


def found(report: Report, source: str, kernel: str | None = None) -> set[tuple[str, ...]]:
    """All findings of a report (of one kernel), described by `places`."""
    return {places(finding, source) for finding in report.findings if kernel in (None, finding.kernel)}


def launches(report: Report) -> dict[str, int]:
    """How often each kernel was launched."""
    return {kernel.name: kernel.launches for kernel in report.kernels}
