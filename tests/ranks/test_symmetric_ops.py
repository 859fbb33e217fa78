"""`torch.ops.symm_mem` with --ranks: each operation gives what torch documents, and is a collective between launches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import test_launches_of_ranks as programs
from crew_support import crew_of, run

from consan._errors import NotSupported, UsageError
from consan.adapters.distributed import symmetric_ops

COUNT = 2


def results(operation: Callable[[Any, Any, int], Any]) -> list[Any]:
    """The result of each rank, of an operation on `(torch.ops.symm_mem, buffer, rank)`, whose buffer has 4 rows of 2: 10 rank + row."""

    def body() -> Any:
        import torch
        import torch.distributed as dist
        import torch.distributed._symmetric_memory as symm_mem

        rank = dist.get_rank()
        data = symm_mem.empty(4, 2, dtype=torch.float32)
        data[...] = torch.arange(8, dtype=torch.float32).reshape(4, 2) // 2 + 10 * rank
        found = operation(torch.ops.symm_mem, data, rank)
        return found if isinstance(found, (list, tuple)) else found.tolist()

    with crew_of(COUNT) as (crew, _):
        return run(crew, body)


ALL = [[10 + 2 * row] * 2 for row in range(4)]
ROWS = [[[10 * rank + row] * 2 for row in range(4)] for rank in range(COUNT)]


def _out(like: Any) -> Any:
    import torch

    return torch.zeros_like(like)


def _gathered(ops: Any, data: Any, rank: int) -> Any:
    import torch
    import torch.distributed._symmetric_memory as symm_mem

    return ops.multimem_all_gather_out(data, "0", symm_mem.empty(8, 2, dtype=torch.float32))


# The operation, and what the ranks get.
OPERATIONS: dict[str, tuple[Callable[[Any, Any, int], Any], list[Any]]] = {
    "one_shot_all_reduce": (lambda ops, data, rank: ops.one_shot_all_reduce(data, "sum", "0"), [ALL] * 2),
    "the average": (
        lambda ops, data, rank: ops.one_shot_all_reduce.default(data, "avg", "0"),
        [[[each / 2 for each in row] for row in ALL]] * 2,
    ),
    "one_shot_all_reduce_out": (lambda ops, data, rank: ops.one_shot_all_reduce_out(data, "sum", "0", _out(data)), [ALL] * 2),
    "one_shot_all_reduce_copy": (
        lambda ops, data, rank: ops.one_shot_all_reduce_copy(data, data + 1, "sum", "0")[0].reshape(1, 2),
        [[[12, 12]]] * 2,
    ),
    "two_shot_all_reduce_": (lambda ops, data, rank: (ops.two_shot_all_reduce_(data, "sum", "0"), data.tolist())[1], [ALL] * 2),
    "multimem_all_reduce_": (lambda ops, data, rank: (ops.multimem_all_reduce_(data, "sum", "0"), data.tolist())[1], [ALL] * 2),
    "multimem_one_shot_reduce_out": (
        lambda ops, data, rank: ops.multimem_one_shot_reduce_out(data, "sum", 1, "0", _out(data)),
        [[[0, 0]] * 4, ALL],
    ),
    "multimem_all_gather_out": (_gathered, [[*ROWS[0], *ROWS[1]]] * 2),
    "reduce_scatter_out": (lambda ops, data, rank: ops.reduce_scatter_out(data, "0", False, _out(data[:2])), [ALL[:2], ALL[2:]]),
    "get_remote_tensors": (lambda ops, data, rank: [each.tolist() for each in ops.get_remote_tensors(_shared(data), "0")], [ROWS] * 2),
    "fused_all_gather_matmul": (
        lambda ops, data, rank: ops.fused_all_gather_matmul(data, [_ones()], 0, "0")[1][0].tolist(),
        [[[2 * row[0]] for rank in ROWS for row in rank]] * 2,
    ),
    "fused_matmul_reduce_scatter": (
        lambda ops, data, rank: ops.fused_matmul_reduce_scatter(data, _ones(), "sum", 0, "0"),
        [[[2 * row[0]] for row in half] for half in (ALL[:2], ALL[2:])],
    ),
}


def _ones() -> Any:
    import torch

    return torch.ones(2, 1)


def _shared(data: Any) -> Any:
    import torch.distributed as dist
    import torch.distributed._symmetric_memory as symm_mem

    symm_mem.rendezvous(data, dist.group.WORLD)
    return data


@pytest.mark.parametrize("name", OPERATIONS)
def test_what_the_ranks_get(name: str) -> None:
    operation, expected = OPERATIONS[name]
    assert results(operation) == expected


REFUSED: dict[str, tuple[Callable[[Any, Any, int], Any], type[Exception], str]] = {
    "another name": (
        lambda ops, data, rank: ops.all_to_all_vdev(data),
        NotSupported,
        r"torch\.ops\.symm_mem\.all_to_all_vdev is not supported",
    ),
    "another group": (lambda ops, data, rank: ops.two_shot_all_reduce_(data, "sum", "7"), NotSupported, "not '7'"),
    "another reduction": (lambda ops, data, rank: ops.two_shot_all_reduce_(data, "max", "0"), UsageError, "neither 'sum' nor 'avg'"),
    "other memory": (lambda ops, data, rank: ops.one_shot_all_reduce(_ones(), "sum", "0"), UsageError, "not of symmetric memory"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name: str) -> None:
    operation, error, message = REFUSED[name]
    for found in results(operation):
        assert isinstance(found, error)
        with pytest.raises(error, match=message):
            raise found


def test_an_operation_is_a_collective_between_launches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the meeting the second launch races with the first one, of another rank."""
    steps = (programs.FILL, "op", programs.TAKE, "barrier")
    assert programs.launches(*steps).verdict == "clean"
    monkeypatch.setattr(symmetric_ops.SymmetricOps, "gathered", lambda ops, name, group, given, symmetric=None: [given] * COUNT)
    assert programs.situations(programs.launches(*steps)) == {programs.RACE}
