"""Triton's GSan tests of several GPUs, as ranks on the virtual machine: a line for each.

    .venv-triton/bin/python tests/suites/triton_gsan_ranks.py TEST          needs torch (CPU), pytest and Triton 3.9

TEST is `python/test/gsan/test_symmetric_memory.py` of triton-lang/triton. `consan run --ranks` runs the function of a test in each rank;
torch's symmetric memory stands in for that of GSan. Nothing of the tests is in this repository.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import subprocess
import sys
import types
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

_INSTRUMENTED: Final = 'triton.knobs.compilation.instrumentation_mode = "gsan"'
_MEMORY: Final = "triton.experimental.gsan.symmetric_memory"
_WORKER, _PORT = "_distributed_worker", 0
# By test (test_gsan_symmetric_memory_...): how many ranks, the function of a rank, and its arguments behind the rank and their count.
TESTS: Final[dict[str, tuple[int, str, tuple[Any, ...]]]] = {
    "rendezvous": (2, _WORKER, (_PORT, False)),
    "rendezvous_subgroup_without_global_zero": (3, _WORKER, (_PORT, True)),
    "rendezvous_multi_node_simulated": (4, f"{_WORKER}_multi_node_simulated", (_PORT, 2)),
    "single_cta_atomic_sync": (2, f"{_WORKER}_single_cta_atomic_sync", (_PORT,)),
    "single_cta_no_atomic_sync_fails": (2, "_run_single_cta_no_atomic_sync_check", ()),
}


@dataclass
class Handle:
    """A handle of torch's, with what GSan's has besides."""

    of: Any
    group: Any
    closed: bool = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self.of, name)

    def get_buffer(self, rank: int, shape: Any, dtype: Any, storage_offset: int = 0) -> Any:
        """The memory of a rank."""
        if self.closed:
            raise RuntimeError("closed")
        return self.of.get_buffer(rank, tuple(shape), dtype, storage_offset)

    def close(self) -> None:
        """Forget the buffers."""
        self.closed = True


class _Memory(types.ModuleType):
    """GSan's symmetric memory."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.handles: dict[int, Handle] = {}

    @staticmethod
    def configure(*_: Any, **__: Any) -> None:
        """It configures GSan's clocks."""

    @staticmethod
    def empty(shape: Any, dtype: Any, device: Any) -> Any:
        """A symmetric buffer."""
        import torch.distributed._symmetric_memory as memory

        return memory.empty(*shape, dtype=dtype, device=device)

    def rendezvous(self, buffer: Any, group: Any) -> Handle:
        """The handle of a buffer, the same until it is closed."""
        import torch.distributed._symmetric_memory as memory

        found = self.handles.get(buffer.data_ptr())
        if found is None or found.closed:
            found = self.handles[buffer.data_ptr()] = Handle(memory.rendezvous(buffer, group), group)
        return found


def _cell(address: int, device_index: int) -> Any:
    """The state of a byte; here its value."""
    value = ctypes.c_ubyte.from_address(address).value
    return types.SimpleNamespace(value=value, write_clock=types.SimpleNamespace(epoch=value))


def _without_gsan(count: int) -> None:
    """Its modules, and a machine with so many GPUs."""
    import torch
    from triton.experimental.gsan import _testing_utils as tools

    state = vars(tools).setdefault("state_of_ranks", {})  # one for all
    sys.modules[_MEMORY] = memory = _Memory(_MEMORY)
    sys.modules[_MEMORY.rpartition(".")[0]].symmetric_memory = memory  # type: ignore[attr-defined]
    tools.shadow_cell_from_address = _cell
    tools.shadow_tensor_for = lambda buffer: state.setdefault(buffer.data_ptr(), torch.zeros(64, dtype=torch.uint8))
    torch.cuda.device_count = lambda: count
    tools.SHADOW_GRANULARITY_BYTES = 4


def _run_as_rank(path: Path, test: str) -> None:
    """The function that a test spawns, in this rank."""
    count, worker, args = TESTS[test]
    rank = int(os.environ["RANK"])
    _without_gsan(count)
    module: Any = types.ModuleType(f"{path.stem}_{rank}")
    module.__file__ = str(path)
    sys.modules[module.__name__] = module
    exec(compile(path.read_text().replace(_INSTRUMENTED, "pass"), str(path), "exec"), module.__dict__)
    module._assert_barrier_synchronizes_stream_clocks = lambda *_: None
    vars(module)[worker](rank, count, *args)


def main() -> None:
    """Run all tests, or one as a rank."""
    parser = argparse.ArgumentParser(description="Triton's GSan tests of several GPUs")
    parser.add_argument("test", type=Path)
    parser.add_argument("--rank", choices=TESTS, help="run this test in a rank")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--full", action="store_true", help="the report of the first seed")
    given = parser.parse_args()
    if given.rank:
        return _run_as_rank(given.test, given.rank)
    for name, (count, *_) in TESTS.items():
        for seed in range(given.seeds):
            command = [sys.executable, "-m", "consan", "run", "--ranks", str(count), "--device", "cpu", "--seed", str(seed)]
            done = subprocess.run([*command, __file__, str(given.test), "--rank", name], capture_output=True, text=True, check=False)
            print(f"{name} ({count} ranks), seed {seed}: {done.returncode}", flush=True)
            if given.full and not seed:
                print(done.stdout + done.stderr, flush=True)
    return None


if __name__ == "__main__":
    main()
