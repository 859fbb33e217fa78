"""The cost of a call of the driver in a program of two streams: CUPTI is made up, and its calls come from C, as torch makes them.

    python tests/bench/bench_calls.py [--steps N] [--profile]

A step is like one of a training program with 16 all-reduces: kernels that nobody records in one stream, those of NCCL in another, events
between them. `graphs`: a step launches 20 graphs in turn. Microseconds of a call by the clock and on a processor: alone, and beside a
thread of Python. `heard`: calls that Python gets at once. No launch is compared, so Python reads what is noted where there is no more
room, and at the end.
"""

from __future__ import annotations

import argparse
import cProfile
import ctypes
import pstats
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from bench_launch import NullLibrary

from consan.backends import callbacks
from consan.backends.callbacks import DriverCalls
from consan.backends.cuda import CudaBackend
from consan.backends.driver import Driver
from consan.session.comparing.driver_calls import LAYOUTS, ProgramOrder
from consan.session.modules.device import Device
from consan.session.planning.options import SessionOptions
from consan.session.session import Session

sys.path.append(str(Path(__file__).parents[1]))
from cupti_support import Cupti

SOURCE = """
#include <stdint.h>
struct Data { int site; const char *name; const void *parameters; const int *status; const char *symbol; void *context; };
struct Call { uint64_t number, words[8]; };
typedef void Called(void *, int, uint32_t, const struct Data *);
void make(Called *called, void *user, const struct Call *calls, uint64_t count, uint64_t times) {
    static const int status;
    while (times--)
        for (const struct Call *each = calls; each < calls + count; each++) {
            struct Data data = {1, "", each->words, &status, "", (void *)0x55};
            called(user, 1, (uint32_t)each->number, &data);
        }
}
"""
COMPUTES, TALKS = 0x100, 0x200  # streams
REDUCTIONS, KERNELS = 16, 8
GRAPHS, NODES = 20, 5


class Calls(DriverCalls):
    """Those of a driver that answers at once."""

    def is_captured(self, stream: int) -> bool:
        return False

    def blocks(self, stream: int) -> bool:
        """All streams are of this kind."""
        return False

    def is_registered(self, address: int) -> bool:
        """There is no pageable memory."""
        return True

    def kernel(self, function: int) -> str:
        """All have one name."""
        return "fast"


class Program:
    """A program that makes the calls of a step."""

    def __init__(self, folder: str) -> None:
        path = Path(folder, "make.so")
        Path(folder, "make.c").write_text(SOURCE)
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", str(path), str(path.with_suffix(".c"))], check=True)
        self._make, self.cupti = ctypes.CDLL(str(path)).make, Cupti(names=tuple(LAYOUTS))
        callbacks.libraries = lambda: iter(["cupti"])
        callbacks.ctypes = SimpleNamespace(**{**vars(ctypes), "CDLL": lambda _: self.cupti})  # type: ignore[assignment]
        self.calls, backend = Calls(), CudaBackend(driver=Driver(NullLibrary(folder)))
        backend.calls = self.calls
        self.session = Session(SessionOptions.of({"device": "gpu"}), on=Device(backend, arena_bytes=1 << 20))
        assert self.session.followed is not None
        self.heard, known = 0, ProgramOrder.called

        def called(order: ProgramOrder, call: callbacks.DriverCall) -> None:
            self.heard += not call.noted
            known(order, call)

        ProgramOrder.called = called  # type: ignore[method-assign]
        for stream in (COMPUTES, TALKS):
            handle = ctypes.c_uint64(stream)
            self.cupti.called("cuStreamCreate", ctypes.addressof(handle), 1)
        self._step = list[tuple[int, ...]]()

    def trains(self) -> None:
        """A step is one of training."""
        for number in range(REDUCTIONS):
            self._reduction(number)
        for number in range(REDUCTIONS):
            self._call("cuEventQuery", 0x2000 + number)
        self._call("cuStreamSynchronize", COMPUTES)
        self._made()

    def replays(self) -> None:
        """A step launches graphs in turn."""
        for number in range(GRAPHS):
            made, executable = ctypes.c_uint64(0x5000 + number), ctypes.c_uint64(0x6000 + number)
            self.cupti.called("cuStreamBeginCapture", TALKS, 0)
            for kernel in range(NODES):
                self.cupti.called("cuLaunchKernel", 0x9000 + 16 * kernel, 0, 0, 0, 0, TALKS, 0, 0)
            self.cupti.called("cuStreamEndCapture", TALKS, ctypes.addressof(made))
            self.cupti.called("cuGraphInstantiateWithFlags", ctypes.addressof(executable), made.value, 0)
            self._call("cuGraphLaunch", executable.value, COMPUTES)
        self._made()

    def _made(self) -> None:
        self.count = len(self._step)
        self._data = (ctypes.c_uint64 * (9 * self.count))(*(word for each in self._step for word in each))
        self._step.clear()

    def _call(self, name: str, *words: int) -> None:
        self._step.append((self.cupti.names.index(name) + 1, *words, *(0,) * (8 - len(words))))

    def _reduction(self, number: int) -> None:
        for kernel in range(KERNELS):
            self._call("cuLaunchKernel", 0x9000 + 16 * kernel, 0, 0, 0, 0, COMPUTES)
        self._call("cuEventRecord", 0x1000 + number, COMPUTES)
        self._call("cuStreamWaitEvent", TALKS, 0x1000 + number)
        self._call("cuLaunchKernel", 0x8000, 0, 0, 0, 0, TALKS)
        self._call("cuEventRecord", 0x2000 + number, TALKS)
        self._call("cuStreamWaitEvent", COMPUTES, 0x2000 + number)

    def steps(self, times: int) -> None:
        """Make the calls of so many steps."""
        self._make(self.cupti.callback, self.cupti.user, self._data, ctypes.c_uint64(self.count), ctypes.c_uint64(times))

    def measured(self, steps: int) -> str:
        """Microseconds of a call, and the calls that Python hears."""
        self.heard, clock, began = 0, time.perf_counter(), time.thread_time()
        self.steps(steps)
        self.calls.read_noted()
        scale = 1e6 / steps / self.count
        spent, on = (time.perf_counter() - clock) * scale, (time.thread_time() - began) * scale
        return f"{spent:.2f} us a call, {on:.2f} on a processor; heard {self.heard / steps:.1f} of {self.count} a step"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--profile", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        program, over = Program(folder), threading.Event()
        program.replays()
        program.steps(20)
        print("graphs:", *(program.measured(given.steps) for _ in range(3)), sep="\n  ")
        program.trains()
        program.steps(5)
        print("alone:", *(program.measured(given.steps) for _ in range(3)), sep="\n  ")

        def compute() -> None:
            while not over.is_set():
                sum(range(1000))

        thread = threading.Thread(target=compute, daemon=True)
        thread.start()
        print("beside a thread of Python:", program.measured(max(given.steps // 50, 2)), sep="\n  ", flush=True)
        over.set()
        thread.join()
        if given.profile:
            profile: Any = cProfile.Profile()
            profile.runcall(program.steps, given.steps)
            pstats.Stats(profile).sort_stats("tottime").print_stats(25)


if __name__ == "__main__":
    main()
