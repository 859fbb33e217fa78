"""The memory of this machine that is free."""

from __future__ import annotations

import contextlib
from pathlib import Path

MEMORY, GROUP = Path("/proc/meminfo"), Path("/sys/fs/cgroup")


def available_bytes() -> int | None:
    """The memory that this process can take: the smaller of the machine's and its control group's. None if it is not known."""
    try:
        lines = dict(line.split(":", 1) for line in MEMORY.read_text().splitlines())
        found = [int(lines["MemAvailable"].split()[0]) << 10]
    except (OSError, KeyError, ValueError):
        found = []
    with contextlib.suppress(OSError, ValueError):  # no such file, or `max`
        found.append(int((GROUP / "memory.max").read_text()) - int((GROUP / "memory.current").read_text()))
    return max(0, min(found)) if found else None
