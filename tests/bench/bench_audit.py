"""What the audit of a file costs: processor time of all of its processes, the part of builds, memory of the server.

    python tests/bench/bench_audit.py [--modules N] [--again M]

Takes modules of tests/audit, each with a text of its own, so that no cache has them. `cold`: each file once. `warm`: the same files again,
M times over, whose builds the cache has. `host`, `device`: the same builds alone, by the host's compiler and by NVRTC. Seconds are those of
the processor: on a machine that does other things, too, the wall's say little.
"""

from __future__ import annotations

import argparse
import os
import resource
import secrets
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

from consan.audit.host import building, sources
from consan.audit.host.program import DeviceProgram
from consan.audit.runner import AuditRequest, AuditServer

MODULES = Path(__file__).resolve().parents[1] / "audit" / "modules"


def _texts(count: int) -> dict[str, str]:
    """Sources by their paths. No cache knows one of them."""
    mark = f"// {secrets.token_hex(8)}\n__global__ void only_{secrets.token_hex(4)}() {{}}\n"
    return {str(path): path.read_text() + mark for path in sorted(MODULES.glob("*.cu"))[:count]}


def _processor(process: int) -> float:
    """The seconds of a process and of its children that have ended."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def _memory(process: int) -> float:
    line = next(line for line in Path(f"/proc/{process}/status").read_text().splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) / 1024


def _of(measured: Callable[[], object], who: int) -> float:
    def seconds() -> float:
        used = resource.getrusage(who)
        return used.ru_utime + used.ru_stime

    before = seconds()
    measured()
    return seconds() - before


def _said(name: str, each: list[float]) -> None:
    ordered = sorted(each)
    p90 = ordered[min(len(ordered) - 1, int(0.9 * len(ordered)))]
    print(f"{name:7} files {len(each):4}   median {statistics.median(each):6.2f} s   p90 {p90:6.2f} s   sum {sum(each):7.1f} s")


def main() -> int:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--modules", type=int, default=15)
    parser.add_argument("--again", type=int, default=5)
    given = parser.parse_args()
    texts, server = _texts(given.modules), AuditServer()
    server.result(AuditRequest("first.cu", "__global__ void k() {}\nint main() { k<<<1, 1>>>(); }\n"))
    process = next(int(pid) for pid in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split())

    def audited(files: dict[str, str]) -> list[float]:
        seconds = []
        for path, text in files.items():
            before = _processor(process)
            server.result(AuditRequest(path, text))
            seconds.append(_processor(process) - before)
        return seconds

    started, began = time.monotonic(), _memory(process)
    _said("cold", audited(texts))
    print(f"        wall {time.monotonic() - started:.1f} s; load {os.getloadavg()[0]:.0f}")
    _said("warm", [each for _ in range(given.again) for each in audited(texts)])
    print(
        f"        memory of the server: {began:.0f} MiB at first, {_memory(process):.0f} MiB behind {len(texts) * (1 + given.again)} files"
    )
    server.close()
    host, device = [], []
    for path, text in _texts(given.modules).items():
        source = sources.whole(path, text)
        host.append(_of(lambda source=source: building.built(source), resource.RUSAGE_CHILDREN))
        device.append(_of(lambda source=source: DeviceProgram(source).of(()), resource.RUSAGE_SELF))
    _said("host", host)
    _said("device", device)
    return 0


if __name__ == "__main__":
    sys.exit(main())
