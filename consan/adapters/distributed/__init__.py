"""`torch.distributed` and its symmetric memory for the ranks of `consan run --ranks N` (consan/ranks), with torch or without it.

Where torch is installed, functions of its modules are replaced; else `tensors.py` stands in for the little of torch that a program needs
which launches Triton kernels. Collectives take tensors on the CPU, and orders all ranks.

Not handled: other collectives than those of `collectives.py`, other functions of `torch.ops.symm_mem` than those of `symmetric_ops.py`, and
these or NVSHMEM for groups of some ranks.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import sys
from types import ModuleType
from typing import Any

from consan.adapters.base import SessionLike
from consan.adapters.distributed import tensors
from consan.adapters.distributed.collectives import Collectives
from consan.adapters.distributed.nvshmem import NvshmemCalls
from consan.adapters.distributed.operations import HostOperations
from consan.adapters.distributed.order import begin_order
from consan.adapters.distributed.symmetric import SymmetricCalls, Tensors
from consan.adapters.distributed.symmetric_ops import SymmetricOps
from consan.adapters.distributed.torch_streams import stream_functions
from consan.adapters.seam import Seam
from consan.ranks.crew import current
from consan.ranks.memory import SymmetricMemory

_OF_TORCH = frozenset(("ReduceOp",))  # torch's own where it is installed: torch.compile and custom operators ask for its parts
_DISTRIBUTED, _SYMMETRIC = "torch.distributed", "torch.distributed._symmetric_memory"


class DistributedStandIn(Seam):
    """Armed only while the ranks of a program run."""

    name = "torch.distributed"
    title = "torch.distributed"
    package = "torch"
    distribution = "torch"
    covers = "with --ranks: collectives and symmetric memory between the ranks of one process"

    def available(self) -> bool:
        """Always: without torch there is a replacement."""
        return True

    def describe(self) -> str:
        """One line for `consan doctor`."""
        torch = self.version()
        return f"{self.title} ({f'torch {torch}' if torch else 'a replacement: torch is not installed'}): {self.covers}"

    def install(self, session: SessionLike) -> None:
        """Replace the functions, or put the replacement of torch where imports find it."""
        crew = current()
        if crew is None:
            return
        crew.memory = SymmetricMemory()
        begin_order(crew, session)
        if self._session is not None:
            self.remove()
        self._session = session
        if "torch" in sys.modules or importlib.util.find_spec("torch") is not None:
            self._when("torch", self._begin)  # whole: it imports torch.distributed before it has all that symmetric memory needs
            return
        made = tensors.modules()
        vars(made["torch.cuda"]).update(stream_functions(session.streams))
        self._fill(made["torch"], made[_DISTRIBUTED], made[_SYMMETRIC], Tensors(tensors.empty, tensors.from_bytes))
        sys.modules.update(made)
        self._undo.append(functools.partial(_take_away, tuple(made)))

    def _begin(self, torch: Any) -> None:
        def from_bytes(found: Any, dtype: Any) -> Any:
            return torch.from_numpy(found).view(dtype)

        if importlib.util.find_spec("triton") is not None:
            importlib.import_module("triton")  # its adapter hears of torch's operations: of those before a program imports it, too
        distributed, symmetric = (importlib.import_module(each) for each in (_DISTRIBUTED, _SYMMETRIC))
        self._fill(torch, distributed, symmetric, Tensors(torch.empty, from_bytes, torch.get_default_dtype()))

    def _fill(self, torch: Any, distributed: ModuleType, symmetric: ModuleType, makes: Tensors) -> None:
        crew = current()
        assert crew is not None
        assert self._session is not None
        operations, calls = HostOperations(crew, self._session), SymmetricCalls(crew, makes, self._session.streams)
        crew.operations, collectives = operations, Collectives(crew, operations)
        if hasattr(torch, "cuda"):
            self._patches.set(torch.cuda, "synchronize", lambda device=None: crew.synchronize())
        self._patches.set(torch.ops, "symm_mem", SymmetricOps(crew, collectives.world, calls, operations))
        made = NvshmemCalls(crew, calls, self._session, operations).modules()
        sys.modules.update(made)
        self._undo.append(functools.partial(_take_away, tuple(made)))
        for owner, functions in ((distributed, collectives.functions()), (symmetric, calls.functions())):
            for name, value in functions.items():
                if not (name in _OF_TORCH and name in vars(owner)):
                    self._patches.set(owner, name, value)


def _take_away(names: tuple[str, ...]) -> None:
    for name in names:
        sys.modules.pop(name, None)
