"""Buffers that do not fit are refused before their memory is taken."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from consan._errors import UsageError
from consan.launching import room
from consan.launching.arguments import parse_args
from consan.toolchain import host_memory

SPECS = parse_args(["f32[1024,256]=zeros", "i32=5", "tma:f16[64,64]=zeros,box=8x8", "tensor:f64[128]=ones"])
BYTES = 1024 * 256 * 4 + 64 * 64 * 2 + 128 * 8


def backend(*, machine: bool, free: int = 1 << 40) -> Any:
    return SimpleNamespace(allocates_zeros=machine, free_bytes=lambda: free)


def test_buffers_are_counted() -> None:
    assert room.bytes_of(SPECS) == BYTES


@pytest.mark.parametrize(
    ("there", "machine", "free", "fits"),
    [
        (2 * BYTES, True, 1 << 40, True),
        (2 * BYTES - 1, True, 1 << 40, False),
        (BYTES, False, BYTES, True),
        (BYTES - 1, False, 1 << 40, False),
        (1 << 40, False, BYTES - 1, False),
        (None, True, 1 << 40, True),
    ],
)
def test_what_does_not_fit_is_refused(there: int | None, machine: bool, free: int, fits: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "available_bytes", lambda: there)
    if fits:
        room.check_room(SPECS, backend(machine=machine, free=free))
        return
    with pytest.raises(UsageError, match="the buffers take"):
        room.check_room(SPECS, backend(machine=machine, free=free))


def test_the_least_limit_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "meminfo").write_text("MemTotal:  100 kB\nMemAvailable:   64 kB\n")
    monkeypatch.setattr(host_memory, "MEMORY", tmp_path / "meminfo")
    monkeypatch.setattr(host_memory, "GROUP", tmp_path)
    assert host_memory.available_bytes() == 64 << 10
    (tmp_path / "memory.max").write_text("50000\n")
    (tmp_path / "memory.current").write_text("20000\n")
    assert host_memory.available_bytes() == 30000
    (tmp_path / "memory.max").write_text("max\n")
    (tmp_path / "meminfo").unlink()
    assert host_memory.available_bytes() is None
