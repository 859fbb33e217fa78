"""Host calls of NVSHMEM for Python between the ranks of a program: results, order, and names that are not served."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from crew_support import Compiled, crew_of, run

from consan._errors import NotSupported
from consan.reports.model import Report

READS = 'extern "C" __global__ void one_shot(float *mine, float *values, unsigned long long, unsigned long long) { BODY }'
TAKE = "values[threadIdx.x] = mine[threadIdx.x];"


def of_all(body: Callable[..., Any], ranks: int = 2) -> tuple[list[Any], Report]:
    """What each rank has returned, and the report."""
    with crew_of(ranks) as (crew, session):
        found = run(crew, lambda: body(session))
        return found, session.report()


def test_places_collectives_and_copies() -> None:
    def body(session: Any) -> Any:
        import nvshmem.core as shm
        import torch

        shm.init(device=None)
        me, count = shm.my_pe(), shm.n_pes()
        data = shm.tensor((4,), dtype=torch.float32)
        data.fill_(me + 1)
        shm.barrier(shm.Teams.TEAM_WORLD)
        total, every, given = (torch.zeros(size, dtype=torch.float32) for size in (4, 4 * count, 4))
        shm.reduce(shm.Teams.TEAM_WORLD, total, data, "sum")
        shm.fcollect(shm.Teams.TEAM_WORLD, every, data)
        shm.broadcast(shm.Teams.TEAM_WORLD, given, data, root=1)
        shm.get(given[:2], data[:2], remote_pe=(me + 1) % count)
        peer = shm.get_peer_tensor(data, (me + 1) % count).tolist()
        shm.barrier_all()
        shm.free_tensor(data)
        shm.finalize()
        return total.tolist(), every.tolist(), given.tolist(), peer, shm.team_n_pes(shm.Teams.TEAM_NODE)

    found, report = of_all(body)
    every = [1.0] * 4 + [2.0] * 4
    assert found == [([3.0] * 4, every, [2.0] * 4, [2.0] * 4, 2), ([3.0] * 4, every, [1.0, 1.0, 2.0, 2.0], [1.0] * 4, 2)]
    assert report.findings == ()


# By program: what rank 0 does behind its put, before rank 1 launches a kernel that reads the bytes.
PUTS: dict[str, tuple[bool, Callable[[Any, Any], None]]] = {
    "a signal alone": (False, lambda shm, signal: shm.signal_op(signal, 1, shm.SignalOp.SIGNAL_SET, 1)),
    "quiet, then a signal": (True, lambda shm, signal: (shm.quiet(), shm.signal_op(signal, 1, shm.SignalOp.SIGNAL_ADD, 1))),
    "a signal, then quiet": (False, lambda shm, signal: (shm.signal_op(signal, 1, shm.SignalOp.SIGNAL_SET, 1), shm.quiet())),
}


@pytest.mark.parametrize("program", [*PUTS, "a put with a signal", "a barrier"])
def test_a_put_before_a_kernel_of_another_rank(program: str) -> None:
    right, behind = PUTS.get(program, (True, None))

    def body(session: Any) -> Any:
        import nvshmem.core as shm
        import torch

        data, signal = shm.tensor((32,), dtype=torch.float32), shm.tensor((1,), dtype=torch.int64)
        given = torch.full((32,), 5.0, dtype=torch.float32)
        if shm.my_pe() == 0:
            if program == "a put with a signal":
                shm.put_signal(data, given, signal, 1, shm.SignalOp.SIGNAL_SET, 1)
            else:
                shm.put(data, given, 1)
            if behind is not None:
                behind(shm, signal)
        if program == "a barrier":
            shm.barrier_all()
        if shm.my_pe() == 1:
            if program != "a barrier":
                shm.signal_wait(signal, 1, shm.ComparisonType.CMP_GE)
            Compiled(session, {}, READS.replace("BODY", TAKE))(data, given, 0, 0)
        shm.barrier_all()
        return given.tolist()

    found, report = of_all(body)
    assert found == [[5.0] * 32] * 2
    assert [finding.situation for finding in report.findings] == ([] if right else ["no-rank-edge"]), str(report)
    if not right:
        first, _ = report.findings[0].pair
        assert first.op == "nvshmem put"
        assert "test_nvshmem_host.py" in first.file


def test_what_is_not_served_is_an_error_with_its_name() -> None:
    def body(session: Any) -> Any:
        import nvshmem.core as shm

        with pytest.raises(NotSupported, match="team_split_strided"):
            _ = shm.team_split_strided
        with pytest.raises(NotSupported, match="'pair'"):
            shm.barrier("pair")

    assert of_all(body)[0] == [None, None]


def test_a_wait_for_a_signal_that_nobody_sends_says_so() -> None:
    def body(session: Any) -> Any:
        import nvshmem.core as shm
        import torch

        signal = shm.tensor((1,), dtype=torch.int64)
        shm.signal_wait(signal, 1, shm.ComparisonType.CMP_EQ)

    errors, _ = of_all(body)
    assert all("waits for a signal of nvshmem (1)" in str(error) for error in errors)
