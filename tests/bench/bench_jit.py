"""The time that consan adds to a launch of a kernel of Triton that repeats, from the call in the program to the driver, which does nothing.

    python tests/bench/bench_jit.py [--global off] [--rounds N] [--profile]

All of Triton's own work for a launch is in it (specialisation, hooks), but not its launcher in C. No GPU is needed. Microseconds of
processor time of a launch, the least of the rounds; then calls of Python's functions, by whose they are.
"""

from __future__ import annotations

import argparse
import cProfile
import gc
import pstats
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType, SimpleNamespace
from typing import Any

import triton
import triton.language as tl
from bench_launch import EXAMINED, NullLibrary, microseconds

from consan.adapters.triton.gpu import TritonAdapter
from consan.backends.cuda import CudaBackend
from consan.backends.driver import Driver
from consan.checker.judging.checked import Checked
from consan.session.executing.judging import Examined, Judge
from consan.session.modules.device import Device
from consan.session.planning.options import SessionOptions
from consan.session.session import Session

CONSAN = str(Path(__file__).parents[2])
PACKAGES = ("consan", "instrument", "reports")
GRID, THREADS, SHARED = (8, 1, 1), (128, 1, 1), 1024


@triton.jit
def total(x, y, out, rows, columns, depth, step_x, step_y, step_out, block: tl.constexpr):  # type: ignore[no-untyped-def]
    """As many arguments as a product of matrices; its sum goes through shared memory, so it is known what a launch does."""
    at = tl.arange(0, block)
    values = tl.load(x + at * step_x) + tl.load(y + at * step_y)
    tl.store(out + tl.program_id(0) * step_out, tl.sum(values) + rows + columns + depth)


class NullTriton:
    """Triton's driver for CUDA. `launches`: the driver's function behind it; `heard`: the hooks and their metadata of the last launch."""

    def __init__(self, launches: Callable[[], object]) -> None:
        self.launches, self.heard = launches, [None, None, None]
        self.utils = SimpleNamespace(
            load_binary=lambda *_: (77, 7, 32, 0, 1024), unload_module=lambda _: None,
            get_device_properties=lambda _: {"max_shared_mem": 232448},
        )  # fmt: skip

    def get_current_target(self) -> Any:
        return triton.backends.compiler.GPUTarget("cuda", 90, 32)

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, device: int) -> int:
        return 0

    def launcher_cls(self, src: Any, metadata: Any) -> Callable[..., None]:
        def launch(x: int, y: int, z: int, stream: int, function: int, packed: Any, given: Any, enter: Any, leave: Any, *args: Any) -> None:
            self.heard[:] = given, enter, leave
            if enter is not None:
                enter(given)
            self.launches()
            if leave is not None:
                leave(given)

        return launch


class OnGpu:
    """An array of a GPU."""

    device, dtype = SimpleNamespace(type="cuda"), "fp32"

    def __init__(self, address: int) -> None:
        self.data_ptr = lambda: address


class JitProgram:
    """A program that launches `total`. `begin`: the session begins."""

    def __init__(self, library: NullLibrary) -> None:
        self.library, self.driver, self.checked = library, NullTriton(library.null_ok), list[Checked]()
        self.arrays = [OnGpu(0x7F0000000000 + 0x100000 * number) for number in range(3)]
        self._before = triton.runtime.driver._active
        triton.runtime.driver._active = self.driver
        total.device_caches.clear()
        self.adapter = TritonAdapter()

    def launch(self) -> None:
        """The launch that the program repeats."""
        total[GRID](*self.arrays, 100, 512, 768, 1, 1, 1, block=256)

    def begin(self, global_memory: str = "auto") -> Session:
        """A session whose device leaves an empty record: what a launch does is looked up on the virtual machine."""
        backend = CudaBackend(driver=Driver(self.library))
        backend.calls = None
        self.session = Session(
            SessionOptions.of({"device": "gpu", "global_memory": global_memory}), on=Device(backend, arena_bytes=1 << 20)
        )
        instrument = self.session.instrument_for_framework
        self.session.instrument_for_framework = lambda ptx, name: self._tried(ptx, name) or instrument(ptx, name=name)  # type: ignore[method-assign]
        self.adapter.install(self.session)  # type: ignore[arg-type]
        return self.session

    def _tried(self, ptx: str, name: str) -> None:
        Judge.examined = EXAMINED  # type: ignore[method-assign]
        session = Session(SessionOptions.of({"device": "cpu", "global_memory": "off"}), private=True)
        session.recording.asker = lambda prepared, started, checked: self.checked.append(checked)
        memory, prepared = session.backend.alloc(1 << 16), session.prepare(ptx)
        sizes = [each.nbytes for each in prepared.loaded.entry(name).params]
        values = [(memory if nbytes == 8 else 1).to_bytes(nbytes, "little") for nbytes in sizes]
        session.launch(prepared, name, GRID, THREADS, values, shared=SHARED)
        Judge.examined = lambda *_: Examined(self.checked[0], {})  # type: ignore[method-assign]

    def close(self) -> None:
        """All is as it was."""
        self.adapter.remove()
        self.session.close()
        total.device_caches.clear()
        gc.collect()  # a kernel of Triton 3.9 is unloaded by the driver that is active when it goes
        triton.runtime.driver._active = self._before
        Judge.examined = EXAMINED  # type: ignore[method-assign]


def calls(launch: Callable[[], object], times: int = 100) -> Counter[str]:
    """How many functions of Python a launch calls: of consan, and of others."""
    found: Counter[str] = Counter()

    def called(frame: FrameType, event: str, given: object) -> None:
        path = frame.f_code.co_filename.removeprefix(f"{CONSAN}/")
        found["consan" if path.startswith(PACKAGES) else "others"] += event == "call"

    sys.setprofile(called)
    try:
        for _ in range(times):
            launch()
    finally:
        sys.setprofile(None)
    return Counter({whose: count // times for whose, count in found.items()})


def settled(launch: Callable[[], object]) -> None:
    """Launch until it is known what a launch does."""
    microseconds(launch, 50)
    time.sleep(1)  # for the thread that checks
    microseconds(launch, 200)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--global", dest="global_memory", default="auto")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--profile", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        program = JitProgram(NullLibrary(folder))
        settled(program.launch)
        alone, calls_alone = min(microseconds(program.launch) for _ in range(given.rounds)), calls(program.launch)
        session = program.begin(given.global_memory)
        settled(program.launch)
        under, calls_under = min(microseconds(program.launch) for _ in range(given.rounds)), calls(program.launch)
        print(f"{under - alone:.1f} us more than {alone:.1f} us; calls of Python: {dict(calls_under)}, alone {dict(calls_alone)}")
        if given.profile:
            profile = cProfile.Profile()
            profile.runcall(microseconds, program.launch)
            pstats.Stats(profile).sort_stats("tottime").print_stats(40)
        report = session.report()
        print(f"  {report.verdict}: {sum(kernel.launches for kernel in report.kernels)} launches {report.incomplete}")
        program.close()


if __name__ == "__main__":
    main()
