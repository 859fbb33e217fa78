"""What a launch that repeats costs the host: consan's Python over a driver that does nothing (null_driver.c), no GPU needed.

    python tests/bench/bench_launch.py [cupy triton core] [--kernel picks|waits|turns|adds] [--global off] [--apart] [--rounds N]
                                       [--profile]

`cupy`: through the functions that CuPy calls; `triton`: through the launcher that Triton calls; `core`: through `launch` of cuda.core,
which a stand-in plays. Microseconds of processor time of a launch, the least of the rounds, less those of the same call without consan.
`picks` has a log, `waits` until it is known what it does, `turns` the same for each `n`; `adds` records nothing. `--apart`: Triton's
arrays are two, and the first launch has a proof. A CPU has no driver: on a GPU its calls come on top (`calls`: how many).
"""

from __future__ import annotations

import argparse
import cProfile
import ctypes
import pstats
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

from consan.adapters.buffers import buffers
from consan.adapters.core_launch import CoreLaunches
from consan.adapters.cupy import CupyAdapter
from consan.adapters.triton.gpu import TritonAdapter, recorded_run
from consan.backends.cuda import CudaBackend
from consan.backends.driver import Driver
from consan.checker.judging.checked import Checked
from consan.session.executing.judging import Examined, Judge
from consan.session.modules.device import Device
from consan.session.planning.options import SessionOptions
from consan.session.session import Session
from consan.toolchain.nvrtc import compile_ptx

HERE = Path(__file__).parent
SOURCE = """
extern "C" __global__ void waits(unsigned* out, unsigned* from, int n) {
    __shared__ unsigned values[64];
    values[threadIdx.x] = from[threadIdx.x];
    __syncthreads();
    out[blockIdx.x * 64 + threadIdx.x] = values[63 - threadIdx.x] + n;
}
extern "C" __global__ void picks(unsigned* out, unsigned* from, int n) {
    __shared__ unsigned values[64];
    values[threadIdx.x] = threadIdx.x;
    __syncthreads();
    out[blockIdx.x * 64 + threadIdx.x] = values[from[threadIdx.x] & 63] + n;
}
extern "C" __global__ void turns(unsigned* out, unsigned* from, int n) {
    __shared__ unsigned values[64];
    values[threadIdx.x] = from[threadIdx.x];
    __syncthreads();
    out[blockIdx.x * 64 + threadIdx.x] = values[(threadIdx.x + n) & 63];
}
extern "C" __global__ void sums(unsigned* out, unsigned* from, int n) {
    __shared__ unsigned values[64];
    values[threadIdx.x] = from[threadIdx.x];
    __syncthreads();
    unsigned sum = 0;
    for (int i = 0; i < n; ++i) sum += from[i];
    out[blockIdx.x * 64 + threadIdx.x] = values[63 - threadIdx.x] + sum;
}
extern "C" __global__ void adds(unsigned* out, unsigned* from, int n) { out[blockIdx.x * 64 + threadIdx.x] = from[threadIdx.x] + n; }
"""
EXAMINED = Judge.examined
LAUNCHES, GRID, BLOCK = 2000, (8, 1, 1), (64, 1, 1)
EARLY = 4  # launches that are shown each by itself: those of a first program are the cold ones


OF_CORE = ("cuda", "cuda.core", "cuda.core._kernel_arg_handler", "cuda.bindings", "cuda.bindings.driver")  # modules that a program replaces


class NullLibrary:
    """The driver. Functions that are not written do nothing."""

    def __init__(self, folder: str) -> None:
        path = Path(folder, "null.so")
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", str(path), str(HERE / "null_driver.c")], check=True)
        self._library = ctypes.CDLL(str(path))

    def __getattr__(self, name: str) -> Any:
        try:
            found = getattr(self._library, name)
        except AttributeError:
            found = self._library["null_ok"]
        setattr(self, name, found)
        return found

    def set(self, name: str, value: int) -> None:
        """Set a variable of the driver."""
        ctypes.c_int.in_dll(self._library, name).value = value

    def get(self, name: str) -> int:
        """The value of a variable."""
        return ctypes.c_int.in_dll(self._library, name).value

    @property
    def function(self) -> int:
        """The kernel that was launched last, but for those of consan."""
        return ctypes.c_uint64.in_dll(self._library, "null_function").value

    @property
    def calls(self) -> int:
        """Calls so far, of those that a launch makes."""
        return ctypes.c_uint64.in_dll(self._library, "null_calls").value


class Program:
    """A session and a module that a framework has loaded."""

    def __init__(self, library: NullLibrary, kernel: str, global_memory: str, stream: int = 0, calls: Any = None, **more: Any) -> None:
        self.library, self.kernel, self.stream, self.launches = library, kernel, stream, library.null_ok
        self.function = 0  # that Triton has launched
        self.backend = CudaBackend(driver=Driver(library))
        self.backend.calls = calls
        options = SessionOptions.of({"device": "gpu", "global_memory": global_memory, **more})
        self.session = Session(options, on=Device(self.backend, arena_bytes=1 << 20))
        self.prepared = self.session.instrument_for_framework(compile_ptx(SOURCE, arch="sm_90a").ptx)
        checked = _checked(kernel)
        Judge.examined = lambda *_: Examined(checked, {})  # type: ignore[method-assign]
        self.values = [ctypes.c_uint64(0x7F0000000000), ctypes.c_uint64(0x7F0000100000), ctypes.c_int(3)]
        self.params = (ctypes.c_void_p * 3)(*map(ctypes.addressof, self.values))
        self.adapters: list[CupyAdapter | TritonAdapter] = []
        self.second = 0x7F0000000000  # Triton's second array; elsewhere than the first one accesses are proven apart

    def close(self) -> None:
        """No framework has an adapter any more."""
        for adapter in self.adapters:
            adapter.remove()
        self.session.close()

    def sees(self, ours: Callable[..., int]) -> Callable[..., int]:
        """The function for launches that C does not make."""
        return ours

    def cupy(self) -> tuple[Callable[[], object], Callable[[], object]]:
        """A launch as CuPy makes it: alone, and under consan."""
        adapter = CupyAdapter()
        self.adapters.append(adapter)
        adapter.install(self.session)  # type: ignore[arg-type]
        adapter.recorded.add(self.session, self.prepared, 77)  # type: ignore[arg-type]
        adapter.driver.kernels[7] = 77, self.kernel
        kind = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, *(ctypes.c_uint,) * 7, *(ctypes.c_void_p,) * 3)
        real = ctypes.cast(self.library.cuLaunchKernel, kind)
        ours = adapter.driver.in_c(real, kind(self.sees(adapter.driver.ours(real))))
        address = ctypes.addressof(self.params)
        shape = (*GRID, *BLOCK, 0, self.stream or None, address, None)
        return lambda: real(7, *shape), lambda: ours(7, *shape)

    def triton(self) -> tuple[Callable[[], object], Callable[[], object]]:
        """The same for Triton."""
        adapter = TritonAdapter()
        self.adapters.append(adapter)
        adapter.install(self.session)  # type: ignore[arg-type]
        adapter.recorded.add(self.session, self.prepared, 77)  # type: ignore[arg-type]

        def launcher(x: int, y: int, z: int, stream: int, function: int, *rest: Any) -> None:
            self.function = function
            self.launches()

        metadata = SimpleNamespace(name=self.kernel, num_ctas=1, num_warps=2, shared=0, global_scratch_size=0, profile_scratch_size=0)
        source = SimpleNamespace(signature={"out": "*u32", "from": "*u32", "n": "i32"})
        run = recorded_run(adapter, adapter.recorded.loaded(77), SimpleNamespace(_run=launcher, metadata=metadata, src=source))
        arrays = (SimpleNamespace(device=SimpleNamespace(type="cuda"), data_ptr=lambda at=at: at) for at in (0x7F0000000000, self.second))
        given, number = (*GRID, self.stream, 7, None, None, None, None, *arrays), self.values[2]
        return lambda: launcher(*given, number.value), lambda: run(*given, number.value)

    def core(self) -> tuple[Callable[[], object], Callable[[], object]]:
        """The same for cuda.core."""
        _core(self)
        launches = CoreLaunches()
        launches.add(self.session, self.prepared, 5)  # type: ignore[arg-type]
        stream = SimpleNamespace(__cuda_stream__=lambda: (0, self.stream))
        config = SimpleNamespace(grid=GRID, cluster=None, block=BLOCK, shmem_size=0)
        kernel = SimpleNamespace(handle=7)

        def launch(stream: Any, config: Any, kernel: Any, *args: Any) -> None:
            self.launches()

        return lambda: launch(stream, config, kernel, 1, 2, 3), lambda: launches.launch(
            self.session, lambda: buffers, launch, stream, config, kernel, 1, 2, 3
        )


def _checked(kernel: str) -> Checked:
    """What a launch on the virtual machine shows: the device that does nothing leaves an empty record."""
    Judge.examined = EXAMINED  # type: ignore[method-assign]
    found: list[Checked] = []
    session = Session(SessionOptions.of({"device": "cpu", "global_memory": "off"}), private=True)
    session.recording.asker = lambda prepared, started, checked: found.append(checked)
    memory = session.backend.alloc(4096)
    values = [memory.to_bytes(8, "little"), memory.to_bytes(8, "little"), bytes(4)]
    session.launch(session.prepare(compile_ptx(SOURCE, arch="sm_90a").ptx), kernel, GRID, BLOCK, values)
    return found[0]


def _core(program: Program) -> None:
    """The modules of cuda.core and of its driver, as far as a launch needs them."""
    answers = {"cuLibraryGetModule": 77, "cuKernelGetLibrary": 5, "cuKernelGetName": program.kernel.encode()}
    made = {name: ModuleType(name) for name in OF_CORE}
    for name, value in answers.items():
        setattr(made["cuda.bindings.driver"], name, lambda handle, value=value: (0, value))
    holder = SimpleNamespace(ptr=ctypes.addressof(program.params))
    made["cuda.core._kernel_arg_handler"].ParamHolder = lambda args: holder  # type: ignore[attr-defined]
    sys.modules.update(made)


def microseconds(launch: Callable[[], object], times: int = LAUNCHES) -> float:
    """Processor time of a launch in this thread."""
    began = time.thread_time()
    for _ in range(times):
        launch()
    return 1e6 * (time.thread_time() - began) / times


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("ways", nargs="*")
    parser.add_argument("--kernel", default="picks")
    parser.add_argument("--global", dest="global_memory", default="auto")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--apart", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        library = NullLibrary(folder)
        for way in given.ways or ("cupy", "triton", "core"):
            program = Program(library, given.kernel, given.global_memory)
            program.second += (1 << 30) * given.apart
            plain, checked = getattr(program, way)()
            print(f"{way}: launches 1 to {EARLY} {', '.join(f'{microseconds(checked, 1):.0f}' for _ in range(EARLY))} us")
            microseconds(checked, 50)
            time.sleep(1)  # for the thread that checks
            microseconds(checked, 200)
            before = library.calls
            rounds = [(microseconds(plain), microseconds(checked)) for _ in range(given.rounds)]
            calls = (library.calls - before) / len(rounds) / LAUNCHES
            alone, under = (min(each) for each in zip(*rounds, strict=True))
            print(f"{way}: {under - alone:.1f} us more than {alone:.1f} us, {calls - 1:.1f} calls of the driver more", flush=True)
            if given.profile:
                profile = cProfile.Profile()
                profile.runcall(microseconds, checked)
                pstats.Stats(profile).sort_stats("tottime").print_stats(40)
            report = program.session.report()
            print(f"  {report.verdict}: {sum(kernel.launches for kernel in report.kernels)} launches {report.incomplete}")


if __name__ == "__main__":
    main()
