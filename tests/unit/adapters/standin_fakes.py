"""A machine and a session without a virtual machine: memory is real, launches are recorded or played by a Python function."""

from __future__ import annotations

import bisect
import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np

from consan.session.comparing.comparisons import LaunchAccesses
from consan.session.comparing.program_streams import ProgramStreams
from consan.session.planning.options import SessionOptions

_BASE = 0x7F00_0000_0000


class FakeMachine:
    """Blocks in one array; a view of an address that is not allocated fails."""

    def __init__(self) -> None:
        self.arena = np.zeros(8 << 20, np.uint8)
        self.blocks: dict[int, int] = {}
        self.next = _BASE + 256

    def alloc(self, nbytes: int) -> int:
        address, self.next = self.next, self.next + (nbytes + 511) // 256 * 256
        self.blocks[address] = nbytes
        return address

    def free(self, addr: int) -> None:
        del self.blocks[addr]

    def view(self, addr: int, dtype: Any, count: int) -> Any:
        starts = sorted(self.blocks)
        start = starts[bisect.bisect_right(starts, addr) - 1]
        nbytes = count * np.dtype(dtype).itemsize
        assert start <= addr <= addr + nbytes <= start + self.blocks[start], "outside of an allocation"
        return self.arena[addr - _BASE : addr - _BASE + nbytes].view(dtype)


@dataclass
class FakeSession:
    """What the stand-in sees of a session; `play` stands for the kernel."""

    source_dir: Path
    options: SessionOptions = field(default_factory=lambda: SessionOptions(global_memory="off"))
    machine: FakeMachine = field(default_factory=FakeMachine)
    notes: list[str] = field(default_factory=list)
    prepared: list[tuple[str, str]] = field(default_factory=list)
    launches: list[SimpleNamespace] = field(default_factory=list)
    play: Callable[[SimpleNamespace], None] | None = None
    device_lost = False
    unoptimised = SimpleNamespace(texts={})

    @functools.cached_property
    def streams(self) -> ProgramStreams:
        return ProgramStreams(cast("Any", SimpleNamespace(accesses=LaunchAccesses())), self.options.looks_at_global)

    @property
    def backend(self) -> Any:
        symbols = {"table": (self.machine.alloc(16), 16)} if not hasattr(self, "_symbols") else self._symbols
        self._symbols = symbols
        return SimpleNamespace(choice="cpu", arch="sm_90", sm_count=4, machine=self.machine, symbol=lambda handle, name: symbols[name])

    def note(self, text: str) -> None:
        self.notes.append(text)

    def prepare(self, ptx: Any, *, name: str = "<ptx>") -> Any:
        self.prepared.append((name, getattr(ptx, "text", ptx)))
        return SimpleNamespace(loaded="handle", number=1)

    def launch(self, prepared: Any, entry: str, grid: Any, block: Any, args: list[bytes], **options: Any) -> None:
        launch = SimpleNamespace(entry=entry, grid=grid, block=block, args=args, **options)
        self.launches.append(launch)
        if self.play is not None:
            self.play(launch)
