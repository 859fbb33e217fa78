"""The cost of a subscriber of CUPTI for a launch of Triton, without consan: for sets of callbacks, with an empty function in C.

    python tests/bench/bench_cupti.py [--rounds N]

`plain`: no subscriber; `none`: one without callbacks; `launches`: the calls that launch a kernel; `waits`: the other calls that consan
follows; `followed`: all of these (driver_calls.py, and allocations, whose failures it needs); `all`: every call of the driver,
which shows those that a launch makes. Each in a process of its own, in turn. Needs torch and Triton on a GPU.
"""

from __future__ import annotations

import argparse
import ctypes
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from launches import BATCH, add, matmul, microseconds

from consan.backends.call_filter import MOST_CALLBACKS
from consan.backends.callbacks import ALLOCATES, libraries
from consan.session.comparing.driver_calls import matters

DOMAIN: Final = 1  # CUPTI_CB_DOMAIN_DRIVER_API
SOURCE = """
unsigned counts[%d];
void called(void *with, int domain, unsigned number, const int *data) { counts[number] += data[0] == 0; }
"""


def followed(name: str) -> bool:
    """Whether consan enables a call, by its name without the version."""
    return matters(name) or ALLOCATES.match(name) is not None


SETS: dict[str, Callable[[str], bool]] = {
    "none": lambda name: False,
    "launches": lambda name: name.startswith("cuLaunch"),
    "waits": lambda name: not name.startswith("cuLaunch") and followed(name),
    "followed": followed,
    "all": lambda name: True,
}


class Subscriber:
    """A subscriber of CUPTI whose function counts."""

    def __init__(self, wanted: Callable[[str], bool]) -> None:
        with tempfile.TemporaryDirectory() as folder:
            source, made = Path(folder, "called.c"), Path(folder, "called.so")
            source.write_text(SOURCE % MOST_CALLBACKS)
            subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", str(made), str(source)], check=True)
            self._code = ctypes.CDLL(str(made))
        self.counts = (ctypes.c_uint * MOST_CALLBACKS).in_dll(self._code, "counts")
        self.names: dict[int, str] = {}
        for path in libraries():
            try:
                self._cupti = ctypes.CDLL(path)
            except OSError:
                continue
            break
        subscriber, name = ctypes.c_void_p(), ctypes.c_char_p()
        status = self._cupti.cuptiSubscribe(ctypes.byref(subscriber), self._code.called, None)
        assert not status, f"cuptiSubscribe: {status}"
        for number in range(1, MOST_CALLBACKS):
            if self._cupti.cuptiGetCallbackName(DOMAIN, number, ctypes.byref(name)):
                break
            self.names[number] = (name.value or b"").decode()
            if wanted(self.names[number].partition("_")[0]):
                self._cupti.cuptiEnableCallback(1, subscriber, DOMAIN, number)


def measured(way: str, rounds: int) -> str:
    """The medians of a way, for both kernels."""
    launches = {"add": add(), "matmul": matmul()}
    for launch, wait in launches.values():
        microseconds(launch, wait, BATCH)
    subscriber = Subscriber(SETS[way]) if way in SETS else None
    lines = []
    for name, (launch, wait) in launches.items():
        microseconds(launch, wait, BATCH)
        if subscriber is not None:
            ctypes.memset(subscriber.counts, 0, ctypes.sizeof(subscriber.counts))
        times = [microseconds(launch, wait, BATCH) for _ in range(rounds)]
        calls = "" if subscriber is None else _calls(subscriber, rounds)
        lines.append(f"{name} {statistics.median(times):.1f} us (least {min(times):.1f}){calls}")
    return f"{way}: {'; '.join(lines)}"


def _calls(subscriber: Subscriber, rounds: int) -> str:
    per_launch = {subscriber.names[number]: count / rounds / BATCH for number, count in enumerate(subscriber.counts) if count}
    return f" { ({name: round(count, 2) for name, count in per_launch.items() if count >= 0.02}) }"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--way")
    given = parser.parse_args()
    if given.way:
        print(measured(given.way, given.rounds), flush=True)
        return
    began = time.perf_counter()
    for way in ("plain", *SETS, "plain"):
        subprocess.run([sys.executable, __file__, "--way", way, "--rounds", str(given.rounds)], check=True)
    print(f"{time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    main()
