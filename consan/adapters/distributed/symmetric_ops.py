"""`torch.ops.symm_mem` between the ranks of one process: torch's own kernels on symmetric memory, as torch documents them.

Each of them is a collective: it begins behind what all ranks did before, and what they do next comes behind it. The kernels themselves are
not checked. A sum has the type of its terms.

Not handled: names that are missing here. Each is an error with the name.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Sequence
from typing import Any, Final

from consan._errors import NotSupported, UsageError
from consan.adapters.distributed.collectives import REDUCTIONS, RankGroup
from consan.adapters.distributed.operations import HostOperations
from consan.adapters.distributed.order import meets
from consan.adapters.distributed.symmetric import SymmetricCalls
from consan.ranks.crew import Crew


class SymmetricOp:
    """One of them. `default` is its only overload."""

    def __init__(self, name: str, function: Callable[..., Any] | None, operations: HostOperations) -> None:
        self._name, self._function, self._operations = name, function, operations

    def __call__(self, *args: Any, **how: Any) -> Any:
        """Call it."""
        if self._function is None:
            raise NotSupported(f"torch.ops.symm_mem.{self._name} is not supported with --ranks; supported are {', '.join(_NAMES)}")
        with self._operations.part_of(self._name, seen=False):
            return self._function(*args, **how)

    @property
    def default(self) -> SymmetricOp:
        """The overload."""
        return self


class SymmetricOps:
    """The namespace `torch.ops.symm_mem`."""

    def __init__(self, crew: Crew, world: RankGroup, symmetric: SymmetricCalls, operations: HostOperations) -> None:
        self._crew, self._world, self._symmetric, self._operations = crew, world, symmetric, operations

    def __getattr__(self, name: str) -> SymmetricOp:
        if name.startswith("__"):
            raise AttributeError(name)
        return SymmetricOp(name, getattr(self, f"_op_{name}") if name in _NAMES else None, self._operations)

    # -- what they have in common --------------------------------------------------------------------------------------------------------

    def gathered(self, name: str, group_name: str, given: Any, symmetric: Any = None) -> list[Any]:
        """The arguments of all ranks. `symmetric`: an argument that has to be symmetric memory."""
        if group_name != self._world.group_name:
            raise NotSupported(f"torch.ops.symm_mem.{name}: with --ranks there is one group, of all ranks, and not {group_name!r}")
        if symmetric is not None:
            self._symmetric.rendezvous(symmetric)  # as torch's kernels do; refuses other memory
        return meets(self._crew, self._operations.stream, f"torch.ops.symm_mem.{name}", given.clone())

    def _reduced(self, name: str, group_name: str, reduce_op: str, given: Any, symmetric: Any = None) -> Any:
        if reduce_op not in ("sum", "avg"):
            raise UsageError(f"torch.ops.symm_mem.{name}: {reduce_op!r} is neither 'sum' nor 'avg'")
        total = functools.reduce(REDUCTIONS["SUM"], self.gathered(name, group_name, given, symmetric))
        return total / self._crew.count if reduce_op == "avg" else total

    def _part(self, whole: Any, dim: int) -> Any:
        """The part of a tensor that belongs to the rank that runs."""
        size = whole.shape[dim] // self._crew.count
        places = [slice(None)] * len(whole.shape)
        places[dim] = slice(self._crew.rank * size, (self._crew.rank + 1) * size)
        return whole[tuple(places)].clone()

    # -- the operations -------------------------------------------------------------------------------------------------------------------

    def _op_one_shot_all_reduce(self, input: Any, reduce_op: str, group_name: str) -> Any:  # noqa: A002 - torch's name
        return self._reduced("one_shot_all_reduce", group_name, reduce_op, input, input)

    def _op_one_shot_all_reduce_out(self, input: Any, reduce_op: str, group_name: str, out: Any) -> Any:  # noqa: A002 - torch's name
        return out.copy_(self._reduced("one_shot_all_reduce_out", group_name, reduce_op, input, input))

    def _op_one_shot_all_reduce_copy(self, symm_buffer: Any, local_input: Any, reduce_op: str, group_name: str) -> Any:
        with self._operations.part_of("torch.ops.symm_mem.one_shot_all_reduce_copy"):  # before it waits for others
            symm_buffer.reshape(-1)[: local_input.numel()] = local_input.reshape(-1)
        return self._reduced("one_shot_all_reduce_copy", group_name, reduce_op, local_input, symm_buffer)

    def _op_one_shot_all_reduce_copy_out(self, symm_buffer: Any, local_input: Any, reduce_op: str, group_name: str, out: Any) -> Any:
        return out.copy_(self._op_one_shot_all_reduce_copy(symm_buffer, local_input, reduce_op, group_name))

    def _op_two_shot_all_reduce_(self, input: Any, reduce_op: str, group_name: str) -> Any:  # noqa: A002 - torch's name
        return input.copy_(self._reduced("two_shot_all_reduce_", group_name, reduce_op, input, input))

    def _op_two_shot_all_reduce_out(self, input: Any, reduce_op: str, group_name: str, output: Any) -> Any:  # noqa: A002 - torch's name
        return output.copy_(self._reduced("two_shot_all_reduce_out", group_name, reduce_op, input, input))

    def _op_multimem_one_shot_reduce_out(self, input: Any, reduce_op: str, root: int, group_name: str, out: Any) -> Any:  # noqa: A002
        total = self._reduced("multimem_one_shot_reduce_out", group_name, reduce_op, input, input)
        return out.copy_(total) if self._crew.rank == root else out

    def _op_multimem_all_gather_out(self, input: Any, group_name: str, out: Any) -> Any:  # noqa: A002 - torch's name
        parts = out.reshape(self._crew.count, -1)
        for rank, given in enumerate(self.gathered("multimem_all_gather_out", group_name, input, out)):
            parts[rank] = given.reshape(-1)
        return out

    def _op_reduce_scatter_out(self, input: Any, group_name: str, split_last_dim: bool, output: Any) -> Any:  # noqa: A002
        total = self._reduced("reduce_scatter_out", group_name, "sum", input, input)
        return output.copy_(self._part(total, len(total.shape) - 1 if split_last_dim else 0).reshape(output.shape))

    def _op_get_remote_tensors(self, x: Any, group_name: str) -> list[Any]:
        if group_name != self._world.group_name:
            raise NotSupported(f"torch.ops.symm_mem.get_remote_tensors: with --ranks there is no group {group_name!r}")
        return [self._symmetric.part_of(x, rank) for rank in range(self._crew.count)]

    def _op_fused_all_gather_matmul(
        self,
        A: Any,  # noqa: N803 - torch's name
        Bs: Sequence[Any],  # noqa: N803 - torch's name
        gather_dim: int,
        group_name: str,
        *,
        return_A: bool = True,  # noqa: N803 - torch's name
    ) -> tuple[Any, list[Any]]:
        whole = sys.modules["torch"].cat(self.gathered("fused_all_gather_matmul", group_name, A), gather_dim)
        return whole if return_A else None, [whole @ each for each in Bs]

    def _op_fused_matmul_reduce_scatter(self, A: Any, B: Any, reduce_op: str, scatter_dim: int, group_name: str) -> Any:  # noqa: N803
        return self._part(self._reduced("fused_matmul_reduce_scatter", group_name, reduce_op, A @ B), scatter_dim)

    _op_multimem_all_reduce_ = _op_two_shot_all_reduce_
    _op_multimem_one_shot_all_reduce = _op_one_shot_all_reduce
    _op_multimem_one_shot_all_reduce_out = _op_one_shot_all_reduce_out


_NAMES: Final = tuple(name.removeprefix("_op_") for name in vars(SymmetricOps) if name.startswith("_op_"))
