"""Programs that the interposer cannot be loaded into."""

from __future__ import annotations

import os
import stat
import struct
import sys
from pathlib import Path

import pytest

from consan.native.program import out_of_reach


def elf(*kinds: int, count: int | None = None) -> bytes:
    """An ELF file with segments of these kinds."""
    number = len(kinds) if count is None else count
    head = b"\x7fELF\2".ljust(32, b"\0") + struct.pack("<Q14xHH", 64, 56, number)
    return head.ljust(64, b"\0") + b"".join(struct.pack("<I52x", kind) for kind in kinds)


@pytest.mark.parametrize(
    ("data", "why"),
    [(elf(6, 3, 1), ""), (elf(1, 4), "linked statically"), (elf(1, count=60_000), ""), (b"#!/bin/sh\n", ""), (b"", ""), (b"\x7fELF\2", "")],
)
def test_static_programs(data: bytes, why: str, tmp_path: Path) -> None:
    (tmp_path / "app").write_bytes(data)
    assert (why in out_of_reach(str(tmp_path / "app"))) if why else not out_of_reach(str(tmp_path / "app"))


def test_programs_of_this_machine() -> None:
    assert out_of_reach(sys.executable) == ""
    assert out_of_reach("/no/such/program") == ""


@pytest.mark.parametrize("user", [0, 1000])
def test_programs_that_run_as_another_user(user: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app = tmp_path / "app"
    app.write_bytes(elf(3))
    app.chmod(0o755 | stat.S_ISUID)
    monkeypatch.setattr(os, "getuid", lambda: user)
    found = out_of_reach(str(app))
    assert found == ("" if user == 0 else f"{app} is setuid: LD_PRELOAD has no effect there, so what it loads is not seen")
