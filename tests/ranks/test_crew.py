"""The ranks of a program in one process: collectives, signals, launches at the same time, and what is said where all wait."""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from crew_support import MEET, Compiled, crew_of, run

import consan
from consan._errors import NotSupported
from consan.reports.model import Report
from consan.session.session import Session


def collectives() -> Any:
    import torch
    import torch.distributed as dist

    dist.init_process_group("nccl")
    rank, world = dist.get_rank(), dist.get_world_size()
    values = torch.full((4,), rank + 1, dtype=torch.int32)
    dist.all_reduce(values)
    parts = [torch.zeros(2, dtype=torch.int32) for _ in range(world)]
    dist.all_gather(parts, torch.full((2,), rank, dtype=torch.int32))
    given = torch.full((1,), rank, dtype=torch.int32)
    dist.broadcast(given, src=1)
    dist.barrier()
    whole = torch.zeros(2 * world, dtype=torch.int32)
    dist.all_gather_into_tensor(whole, torch.full((2,), rank, dtype=torch.int32))
    objects: list[Any] = [None] * world
    dist.all_gather_object(objects, f"rank {rank}")
    return (
        os.environ["RANK"],
        os.environ["WORLD_SIZE"],
        values.tolist(),
        [part.tolist() for part in parts],
        given.item(),
        whole.tolist(),
        objects,
    )


@pytest.mark.parametrize("ranks", [2, 3])
def test_collectives(ranks: int) -> None:
    with crew_of(ranks) as (crew, _):
        found = run(crew, collectives)
    each = list(range(ranks))
    total, parts = sum(each) + ranks, [[rank] * 2 for rank in each]
    assert found == [
        (str(rank), str(ranks), [total] * 4, parts, 1, sum(parts, []), [f"rank {peer}" for peer in each])  # noqa: RUF017 - of three
        for rank in each
    ]


def test_a_module_that_meets_others_while_it_is_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "meets_at_once.py").write_text("import torch.distributed as dist\ndist.barrier()\n")
    (tmp_path / "meets_later.py").write_text(
        "import torch.distributed as dist\ndef meet():\n    dist.barrier()\n    return dist.get_rank()\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))

    def body() -> Any:
        import meets_later  # type: ignore[import-not-found]

        found = meets_later.meet()
        with pytest.raises(NotSupported, match="the module meets_at_once waits for barrier while it is imported"):
            importlib.import_module("meets_at_once")
        return found

    with crew_of(2) as (crew, _):
        assert run(crew, body) == [0, 1]


def test_signals_of_the_host_and_buffers_of_peers() -> None:
    order: list[str] = []

    def body() -> Any:
        import torch
        import torch.distributed as dist
        import torch.distributed._symmetric_memory as symm_mem

        rank = dist.get_rank()
        data = symm_mem.empty((2, 3), dtype=torch.float32)
        handle = symm_mem.rendezvous(data, dist.group.WORLD)
        if rank == 1:
            handle.wait_signal(src_rank=0)
            order.append("taken")
        else:
            handle.get_buffer(1, (2, 3), torch.float32).fill_(5)
            order.append("put")
            handle.put_signal(dst_rank=1)
        handle.barrier()
        return data.sum().item(), handle.get_buffer(1, (3,), torch.float32, 3).tolist()

    with crew_of(2) as (crew, _):
        assert run(crew, body) == [(0.0, [5.0] * 3), (30.0, [5.0] * 3)]
    assert order == ["put", "taken"]
    assert [each.name for each in crew.memory.own] == ["data", "data"]


def test_allocations_of_different_sizes() -> None:
    def body() -> Any:
        import torch
        import torch.distributed as dist
        import torch.distributed._symmetric_memory as symm_mem

        made = [symm_mem.empty(count, dtype=torch.int32) for count in (8, 2, 8)]
        handles = [symm_mem.rendezvous(each, dist.group.WORLD) for each in made]
        again = symm_mem.rendezvous(made[0], dist.group.WORLD)
        return [each.buffer_size for each in handles], again.buffer_ptrs == handles[0].buffer_ptrs != handles[2].buffer_ptrs

    with crew_of(2) as (crew, _):
        assert run(crew, body) == [([32, 8, 32], True)] * 2


def test_ranks_that_wait_for_each_other_are_told_so() -> None:
    def body() -> Any:
        import torch.distributed as dist

        return dist.barrier() if dist.get_rank() == 0 else None

    with crew_of(2) as (crew, _):
        error, nothing = run(crew, body)
    assert str(error) == "the ranks wait for each other: rank 0 waits for barrier; rank 1 has ended"
    assert nothing is None


def test_what_is_not_supported_is_refused() -> None:
    def body() -> Any:
        import torch
        import torch.distributed as dist

        dist.recv(torch.zeros(1))

    with crew_of(2) as (crew, session):
        errors = run(crew, body)
        with pytest.raises(NotSupported, match="only kernels of Triton"):
            session_launch(session)
    assert all("needs the rank that sends" in str(error) for error in errors)


def test_groups_of_some_ranks() -> None:
    def body() -> Any:
        import torch
        import torch.distributed as dist

        rank = dist.get_rank()
        first, last = dist.new_group([0, 1]), dist.new_group([2, 1])
        mine = last if rank == 2 else first
        values, parts = torch.full((2,), rank + 1, dtype=torch.int32), torch.zeros(4, dtype=torch.int32)
        if rank == 1:
            dist.all_reduce(values, group=last)  # before the others come to theirs
        dist.broadcast(values, src=1, group=mine) if rank != 2 else dist.all_reduce(values, group=mine)
        dist.all_gather_into_tensor(parts, torch.full((2,), rank, dtype=torch.int32), first)
        return (
            values.tolist(),
            parts.tolist(),
            dist.get_rank(mine),
            dist.get_world_size(mine),
            dist.get_process_group_ranks(mine),
            dist.get_rank(last),
        )

    with crew_of(3) as (crew, _):
        found = run(crew, body)
    assert found == [
        ([5, 5], [0, 0, 1, 1], 0, 2, [0, 1], -1),
        ([5, 5], [0, 0, 1, 1], 1, 2, [0, 1], 0),
        ([5, 5], [0, 0, 0, 0], 1, 2, [1, 2], 1),
    ]


def test_symmetric_memory_of_a_group() -> None:
    def body() -> Any:
        import torch
        import torch.distributed as dist
        import torch.distributed._symmetric_memory as symm_mem

        group = dist.new_group([0, 2])
        if group == dist.GroupMember.NON_GROUP_MEMBER:
            return None
        data = symm_mem.empty(2, dtype=torch.float32)
        handle = symm_mem.rendezvous(data, group)
        handle.get_buffer(1 - handle.rank, (2,), torch.float32).fill_(dist.get_rank())
        handle.barrier()
        if handle.rank == 0:
            handle.put_signal(1)
        else:
            handle.wait_signal(0)
        return data.tolist(), handle.rank, handle.world_size

    with crew_of(3) as (crew, _):
        assert run(crew, body) == [([2.0, 2.0], 0, 2), None, ([0.0, 0.0], 1, 2)]


def test_messages() -> None:
    """In the order of their tags; each is taken where its work is waited for."""

    def body() -> Any:
        import torch
        import torch.distributed as dist

        rank = dist.get_rank()
        found = [torch.zeros(1, dtype=torch.int32) for _ in range(4)]
        given = [torch.full((1,), 10 * rank + number, dtype=torch.int32) for number in range(4)]
        if rank == 0:
            dist.send(given[0], 1)
            dist.isend(given[1], 1, tag=7).wait()
            dist.send(given[2], 1)
        else:
            works = [dist.irecv(found[0], 0), dist.irecv(found[2], 0)]
            assert dist.recv(found[1], 0, tag=7) == 0
            works[1].wait()
            works[0].wait()
        for work in dist.batch_isend_irecv([dist.P2POp(dist.isend, given[3], 1 - rank), dist.P2POp(dist.irecv, found[3], 1 - rank)]):
            work.wait()
        return [int(each.item()) for each in found]

    with crew_of(2) as (crew, _):
        assert run(crew, body) == [[0, 0, 0, 13], [0, 1, 2, 3]]


def test_more_collectives() -> None:
    def body() -> Any:
        import torch
        import torch.distributed as dist

        rank = dist.get_rank()
        total, part = torch.full((2,), rank + 1, dtype=torch.int32), torch.zeros(2, dtype=torch.int32)
        dist.reduce(total, 1)
        dist.reduce_scatter_tensor(part, torch.arange(4, dtype=torch.int32))
        swapped = torch.zeros(2, dtype=torch.int32)
        dist.all_to_all_single(swapped, torch.full((2,), rank, dtype=torch.int32))
        return total.tolist(), part.tolist(), swapped.tolist()

    with crew_of(2) as (crew, _):
        assert run(crew, body) == [([1, 1], [0, 2], [0, 1]), ([3, 3], [4, 6], [0, 1])]


def session_launch(session: Session) -> None:
    kernel = consan.Kernel('extern "C" __global__ void alone() {}')
    session.launch(session.prepare(kernel.module, name="alone"), "alone", (1, 1, 1), (1, 1, 1), [])


# Each rank has a text of its own, as kernels of Triton have whose rank is a constant.
KERNEL = (
    MEET.replace("SCOPE", "sys")
    + """extern "C" __global__ void one_shot(float *mine, float *values, u64 *buffers, u64 *signals) {
    u32 i = threadIdx.x;
    mine[i] = values[i];
    meet(signals, 1);
    float sum = 0;
    for (u32 peer = 0; peer < WORLD; ++peer) sum += ((float *)buffers[peer])[i];
#if END
    meet(signals, 2);
#endif
    mine[i] = sum;
}
"""
)


MULTIMEM = KERNEL.replace(
    "for (u32 peer = 0; peer < WORLD; ++peer) sum += ((float *)buffers[peer])[i];",
    """asm volatile("multimem.ld_reduce.relaxed.sys.global.add.f32 %0, [%1];" : "=f"(sum) : "l"((float *)buffers + i) : "memory");""",
)


def all_reduce(
    ranks: int, launches: int = 1, end: int = 1, *, alone: bool = False, many: bool = False, **options: Any
) -> tuple[Report, Any]:
    """The report and the sums of a one-shot all-reduce."""

    def body() -> Any:
        import torch
        import torch.distributed as dist
        import torch.distributed._symmetric_memory as symm_mem

        rank = dist.get_rank()
        data = symm_mem.empty(32, dtype=torch.float32)
        handle = symm_mem.rendezvous(data, dist.group.WORLD)
        kernel = Compiled(session, {"RANK": rank, "WORLD": 1 if alone else ranks, "END": end}, MULTIMEM if many else KERNEL)
        buffers = handle.multicast_ptr if many else handle.buffer_ptrs_dev
        for _ in range(launches):
            handle.get_signal_pad(rank, (ranks,), torch.int32).zero_()
            handle.barrier()
            if not alone or rank == 0:
                kernel(data, torch.full((32,), float(rank + 1), dtype=torch.float32), buffers, handle.signal_pad_ptrs_dev)
        handle.barrier()
        return set(data.tolist())

    with crew_of(ranks, **options) as (crew, session):
        sums = run(crew, body)
        return session.report(), sums


@pytest.mark.parametrize(("ranks", "launches", "seed"), [(2, 2, 0), (3, 1, 1), pytest.param(4, 3, 7, marks=pytest.mark.slow)])
def test_launches_of_all_ranks_overlap(ranks: int, launches: int, seed: int) -> None:
    report, sums = all_reduce(ranks, launches, seed=seed)
    assert sums == [{ranks * (ranks + 1) / 2}] * ranks
    assert (report.verdict, report.kernels[0].launches) == ("clean", launches), str(report)


def test_a_missing_barrier_names_ranks_and_the_symmetric_buffer() -> None:
    report, _ = all_reduce(2, end=0)
    (finding,) = report.findings
    assert (finding.kind, {access.rank for access in finding.pair}) == ("global-race", {0, 1})
    (window,) = {access.name for access in finding.pair}
    assert re.fullmatch(r'element 0 of symmetric buffer "data", rank [01]', window), str(report)


@pytest.mark.parametrize(("end", "verdict"), [(1, "clean"), pytest.param(0, "violations", marks=pytest.mark.slow)])
def test_one_address_of_the_memory_of_all_ranks(end: int, verdict: str) -> None:
    report, sums = all_reduce(3, end=end, many=True)
    assert (report.verdict, report.incomplete) == (verdict, ()), str(report)
    assert all(access.name.startswith("element 0 of symmetric buffer") for found in report.findings for access in found.pair)
    assert end == 0 or sums == [{6.0}] * 3


def test_a_rank_may_launch_alone() -> None:
    report, sums = all_reduce(2, alone=True)
    assert sums == [{1.0}, {0.0}]
    assert report.verdict == "clean", str(report)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--ranks", "2"], "needs --device cpu"),
        (["--ranks", "17", "--device", "cpu"], "expected 1 to 16"),
        (["--ranks", "2", "--device", "cpu", "--engine", "inline"], "know one GPU"),
    ],
)
def test_the_command_refuses_what_it_cannot_run(words: list[str], said: str, capfd: pytest.CaptureFixture[str]) -> None:
    from consan.__main__ import main

    assert main(["run", *words, "-c", "print(1)"]) == 2
    assert said in capfd.readouterr().err


def test_the_thread_of_each_rank_makes_a_call_once() -> None:
    calls: list[str] = []

    def body() -> int:
        if crew.rank == 0:
            crew.in_each(lambda: calls.append(threading.current_thread().name))
        before = len(calls)
        crew.meet("one")
        crew.meet("other")
        return before

    with crew_of(3) as (crew, _):
        assert run(crew, body) == [1, 2, 3]
    assert calls == ["rank 0", "rank 1", "rank 2"]


# torch imports torch.distributed before it is complete, and symmetric memory needs the whole.
TORCH = {
    "torch/__init__.py": "import torch.distributed\nempty = None\nget_default_dtype = lambda: None\nclass ops: pass\n",
    "torch/distributed/__init__.py": "",
    "torch/distributed/_symmetric_memory/__init__.py": "from torch import empty\n",
}


def test_torch_may_import_its_part_before_it_is_complete(tmp_path: Path) -> None:
    for name, text in TORCH.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    program = "import torch\nimport torch.distributed as dist\nprint('rank', dist.get_rank(), 'of', dist.get_world_size())"
    command = [sys.executable, "-m", "consan", "run", "--ranks", "2", "--device", "cpu", "-c", program]
    found = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60, env=found, cwd=tmp_path)
    assert sorted(line for line in done.stdout.splitlines() if line.startswith("rank")) == ["rank 0 of 2", "rank 1 of 2"], done.stderr
