"""Launches of different ranks, one after the other, that nothing but the program orders: races between two of them (R-RK5)."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
from crew_support import MEET, Compiled, crew_of, run
from planted import Plant, plant

from consan.adapters.distributed import collectives, order
from consan.checker.compiled import replay
from consan.checker.judging import grid
from consan.ranks.crew import current
from consan.reports.model import Report
from consan.session.comparing import rank_launches, streams

# Each launch has a BODY. `meet`: all ranks, once more.
KERNEL = (
    MEET
    + """extern "C" __global__ void one_shot(float *mine, float *values, u64 *buffers, u64 *signals) {
    u32 i = threadIdx.x, peer = (RANK + 1) % WORLD;
    BODY
}
"""
)
FILL, MEET = "mine[i] = values[i];", "meet(signals, 1);"
TAKE, PUT = "values[i] = ((float *)buffers[peer])[i];", "((float *)buffers[peer])[i] = values[i];"
# Each rank has a signal to the other, by a read-modify-write, and a wait for its own.
START = """
if (i == 0) {
    u32 old;
    do asm volatile("atom.global.SEMANTICS.sys.cas.b32 %0, [%1], 0, 1;" : "=r"(old) : "l"(signals[peer]) : "memory"); while (old);
    do asm volatile("atom.global.acquire.sys.cas.b32 %0, [%1], 1, 0;" : "=r"(old) : "l"(signals[RANK]) : "memory"); while (!old);
}
__syncthreads();
"""
WRITE = "values[i] = 0;"
NOTHING = "if (i > 99) mine[i] = 0;"
OF_0, OF_1 = "/* of rank 0 alone */", "/* of rank 1 alone */"
RACE = ("global-race", "no-rank-edge")


def launches(
    *steps: str,
    count: int = 2,
    scope: str = "sys",
    more: Callable[[Any, Any, Any], dict[str, Callable[[], Any]]] | None = None,
    dependent: tuple[str, ...] = (),
    **options: Any,
) -> Report:
    """The report of a program: each step is the body of a launch, or what the host does.

    `dependent`: steps that are programmatic dependent launches.
    A step for one rank alone begins with OF_0 or OF_1.
    `more`: gives other steps of the host, for torch, the rank's buffer and the handle.
    """

    def body() -> None:
        import torch
        import torch.distributed as dist
        import torch.distributed._symmetric_memory as symm_mem

        rank = dist.get_rank()
        data = symm_mem.empty(32, dtype=torch.float32)
        handle = symm_mem.rendezvous(data, dist.group.WORLD)
        values, works = torch.full((32,), float(rank), dtype=torch.float32), list[Any]()
        host: dict[str, Callable[[], Any]] = {
            "barrier": handle.barrier,
            "all_reduce": lambda: dist.all_reduce(torch.zeros(1)),
            "rendezvous": lambda: symm_mem.rendezvous(data, dist.group.WORLD),
            "rendezvous of another buffer": lambda: symm_mem.rendezvous(symm_mem.empty(4, dtype=torch.float32), dist.group.WORLD),
            "op": lambda: torch.ops.symm_mem.one_shot_all_reduce(data, "sum", "0"),
            "put": lambda: handle.put_signal((rank + 1) % count),
            "wait": lambda: handle.wait_signal((rank - 1) % count),
            "begin": lambda: works.append(dist.all_reduce(torch.zeros(1), async_op=True)),
            "end": lambda: works.pop().wait(),
            "begin all_reduce of values": lambda: works.append(dist.all_reduce(values, async_op=True)),
            "begin broadcast of values": lambda: works.append(dist.broadcast(values, 0, async_op=True)),
            "begin send of values": lambda: works.append(dist.isend(values, (rank - 1) % count)),
            "receive values": lambda: dist.recv(torch.zeros(32), (rank + 1) % count),
            "send values": lambda: dist.send(values, (rank - 1) % count),
            "begin receive into values": lambda: works.append(dist.irecv(values, (rank + 1) % count)),
            "begin send of mine": lambda: works.append(dist.isend(data, (rank - 1) % count)),
            "begin all_reduce of mine": lambda: works.append(dist.all_reduce(data, async_op=True)),
            "fill values": lambda: values.fill_(3),
            "read values": lambda: values + 1,
            "other values": lambda: torch.zeros(32).fill_(1),
            "synchronize": torch.cuda.synchronize,
            "broadcast from 0": lambda: dist.broadcast(torch.zeros(1), 0),
            "broadcast from 1": lambda: dist.broadcast(torch.zeros(1), 1),
            "reduce to 0": lambda: dist.reduce(torch.zeros(1), 0),
            "a signal from 0": lambda: handle.wait_signal(0) if rank else handle.put_signal(1),
            "send": lambda: dist.send(torch.zeros(1), (rank - 1) % count),
            "receive": lambda: dist.recv(torch.zeros(1), (rank + 1) % count),
            "receive later": lambda: works.append(dist.irecv(torch.zeros(1), (rank + 1) % count)),
            "pair": lambda: dist.barrier(group=dist.new_group([0, 1])),
            "other pairs": lambda: [dist.barrier(group=group) for group in (dist.new_group([1, 2]), dist.new_group([0, 2]))],
        }
        host |= {} if more is None else more(torch, data, handle)
        for step in steps:
            if step in host:
                host[step]()
            elif f"of rank {1 - rank} alone" not in step:
                source = KERNEL.replace("BODY", step).replace("SCOPE", scope)
                kernel = Compiled(session, {"RANK": rank, "WORLD": count}, source, step in dependent)
                kernel(data, values, handle.buffer_ptrs_dev, handle.signal_pad_ptrs_dev)

    with crew_of(count, **options) as (crew, session):
        assert run(crew, body) == [None] * count
        return session.report()


def situations(report: Report) -> set[tuple[str, str]]:
    return {(finding.kind, finding.situation) for finding in report.findings}


# By program: whether it is right. Each ends with a barrier.
PROGRAMS: dict[str, tuple[bool, tuple[str, ...]]] = {
    "no barrier": (False, (FILL, TAKE)),
    "a barrier": (True, (FILL, "barrier", TAKE)),
    "a collective": (True, (FILL, "all_reduce", TAKE)),
    "a rendezvous once more": (False, (FILL, "rendezvous", TAKE)),
    "a rendezvous of another buffer": (False, (FILL, "rendezvous of another buffer", TAKE)),
    "a rendezvous behind a wait for the device": (True, (FILL, "synchronize", "rendezvous of another buffer", TAKE)),
    "a wait for the device behind a rendezvous": (False, (FILL, "rendezvous of another buffer", "synchronize", TAKE)),
    "a start that releases": (True, (FILL, START.replace("SEMANTICS", "release") + TAKE)),
    "a start that is relaxed": (False, (FILL, START.replace("SEMANTICS", "relaxed") + TAKE)),
    "a barrier too early": (False, ("barrier", FILL, TAKE)),
    "the first ends with a barrier": (True, (FILL + MEET, TAKE)),
    "the first ends with a barrier that comes too early": (False, (MEET + FILL, TAKE)),
    "the second begins with a barrier": (True, (FILL, MEET + TAKE)),
    "the second begins with a barrier that comes too late": (False, (FILL, TAKE + MEET)),
    "a barrier in a launch between the two": (True, (FILL, MEET, TAKE)),
    "a launch between the two": (False, (FILL, NOTHING, TAKE)),
    "a buffer used again": (False, (FILL + MEET + TAKE, FILL)),
    "signals of the host": (True, (FILL, "put", "wait", PUT)),
    "signals of the host before the launch": (False, ("put", "wait", FILL, PUT)),
    "a collective that nobody waits for": (False, (FILL, "begin", TAKE)),
    "a collective that is waited for": (True, (FILL, "begin", "end", TAKE)),
    "a collective that the device waits for": (True, (FILL, "begin", "synchronize", TAKE)),
    "a device that waits before": (False, (FILL, "synchronize", "begin", TAKE)),
    "a broadcast": (False, (FILL, "broadcast from 0", TAKE)),
    "broadcasts of both": (True, (FILL, "broadcast from 0", "broadcast from 1", TAKE)),
    "a reduction to one": (False, (FILL, "reduce to 0", TAKE)),
    "reductions to and from one": (True, (FILL, "reduce to 0", "broadcast from 0", TAKE)),
    "messages": (True, (FILL, "send", "receive", TAKE)),
    "messages before": (False, ("send", FILL, "receive", TAKE)),
    "messages that nobody waits for": (False, (FILL, "send", "receive later", TAKE)),
    "messages that are waited for": (True, (FILL, "send", "receive later", "end", TAKE)),
}
ENDS, BEGINS, BETWEEN = "the first ends with a barrier", "the second begins with a barrier", "a barrier in a launch between the two"
QUICK = (
    "no barrier",
    "a barrier",
    ENDS,
    BEGINS,
    BETWEEN,
    "a rendezvous once more",
    "a rendezvous of another buffer",
    "a start that is relaxed",
    "a collective that nobody waits for",
    "a collective that is waited for",
    "a collective that the device waits for",
    "a broadcast",
    "messages",
    "messages before",
)


@pytest.mark.parametrize("program", [pytest.param(each, marks=() if each in QUICK else pytest.mark.slow) for each in PROGRAMS])
def test_two_launches(program: str) -> None:
    right, steps = PROGRAMS[program]
    report = launches(*steps, "barrier")
    assert situations(report) == (set() if right else {RACE}), str(report)
    assert report.verdict == ("clean" if right else "violations"), str(report)


WAIT, OWN = 'asm volatile("griddepcontrol.wait;" ::: "memory");', "values[i] = mine[i];"
NO_WAIT, NO_CHAIN = ("global-race", "no-grid-wait"), ("global-race", "no-chained-wait")
# Of each program: the launch before, programmatic dependent launches, and what is found.
DEPENDENTS: dict[str, tuple[str, tuple[str, ...], set[tuple[str, str]]]] = {
    "a wait": (FILL, (WAIT + OWN,), set()),
    "a wait too late": (FILL, (OWN + WAIT,), {NO_WAIT}),
    "no wait": (FILL, (OWN,), {NO_WAIT}),
    "a write without a wait": (OWN, (FILL,), {NO_WAIT}),
    "all wait, then meet": (FILL, (WAIT + MEET + TAKE,), set()),
    "one thread of each waits, then they meet": (FILL, ("if (i == 3) " + WAIT + MEET + TAKE + OWN,), set()),
    "they meet, then wait": (FILL, (MEET + WAIT + TAKE,), {RACE}),
    "one rank waits": (FILL, ("if (RANK == 0) " + WAIT + MEET + OWN,), {NO_WAIT}),
    "the other rank's wait": (FILL, ("if (RANK == 0) " + WAIT + MEET + "if (RANK == 0)" + OWN,), set()),
    "a chain": (FILL, (WAIT + NOTHING, WAIT + OWN), set()),
    "a chain without a wait": (FILL, (NOTHING, WAIT + OWN), {NO_CHAIN}),
    "a chain to the peer": (FILL, (WAIT + MEET, WAIT + TAKE), set()),
    "a chain that meets before it waits": (FILL, (MEET + WAIT, WAIT + TAKE), {RACE}),
}


@pytest.mark.parametrize("program", DEPENDENTS)
def test_programmatic_dependent_launches(program: str) -> None:
    first, later, found = DEPENDENTS[program]
    report = launches(first, *later, "barrier", dependent=later)
    assert situations(report) == found, str(report)
    assert report.verdict == ("violations" if found else "clean"), str(report)


def test_a_launch_behind_a_barrier_depends_on_none() -> None:
    assert launches(FILL, "barrier", OWN, "barrier", dependent=(OWN,)).verdict == "clean"


def test_a_launch_that_all_know_to_be_over_is_kept_for_its_dependent() -> None:
    """Rank 1 comes behind it by a signal, rank 0 launches the dependent."""
    steps = (OF_0 + FILL, "a signal from 0", OF_1 + OWN, "rendezvous of another buffer", OF_0 + OWN, "barrier")
    assert launches(*steps).verdict == "clean"
    assert situations(launches(*steps, dependent=(OF_0 + OWN,))) == {NO_WAIT}


WAITED = {
    "a wait is that of all ranks": ("_ranks(waits) if rank in later.places", "later.places", "_Made.waited_for", "one rank waits"),
    "an end without its waits": ("_ranks(before >> RankSets.WAITED)", "()", "RankLaunches._add", "a chain"),
    "an end with all waits": ("_ranks(before >> RankSets.WAITED)", "made.places", "RankLaunches._add", "a chain without a wait"),
    "launches in turn": ("programmatic=rank in dependents", "programmatic=False", "RankLaunches._add", "no wait"),
    "no access is behind a wait": ("begins >> RankSets.WAITED", "0", "RankLaunches._races", "all wait, then meet"),
}


@pytest.mark.parametrize("fault", WAITED)
def test_planted_waits(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    old, new, where, program = WAITED[fault]
    plant(monkeypatch, rank_launches, old, new, where)
    with pytest.raises(AssertionError):
        test_programmatic_dependent_launches(program)


def test_planted_launches_that_are_kept_for_dependents(monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, streams, "each.before_dependent", "each.before", "all_behind")
    monkeypatch.setattr(rank_launches, "all_behind", streams.all_behind)
    with pytest.raises(AssertionError):
        test_a_launch_that_all_know_to_be_over_is_kept_for_its_dependent()


# A rank uses its memory before an operation that it has begun is over. By program: whether it is right.
BEGUN_WRITE = "a launch that writes what is reduced"
BEGUN: dict[str, tuple[bool, tuple[str, ...]]] = {
    BEGUN_WRITE: (False, ("begin all_reduce of values", WRITE, "end")),
    "a launch that reads what is reduced": (False, ("begin all_reduce of values", FILL, "end")),
    "a launch behind the wait": (True, ("begin all_reduce of values", "end", WRITE, FILL)),
    "a launch before": (True, (WRITE, "begin all_reduce of values", "end")),
    "a launch behind a wait for the device": (True, ("begin all_reduce of values", "synchronize", WRITE, "end")),
    "another operation of the same stream": (True, ("begin all_reduce of values", "begin all_reduce of values", "end", "end", NOTHING)),
    "an operation of torch that writes": (False, ("begin all_reduce of values", "fill values", "end")),
    "an operation of torch that reads": (False, ("begin all_reduce of values", "read values", "end")),
    "an operation of torch on other memory": (True, ("begin all_reduce of values", "other values", "end", NOTHING)),
    "a launch on other memory": (True, ("begin all_reduce of values", NOTHING, "end")),
    "the target of a broadcast": (False, ("begin broadcast of values", FILL, "end")),
    "a launch that writes what is sent": (False, ("begin send of values", WRITE, "receive values", "end")),
    "a launch that reads what is sent": (True, ("begin send of values", FILL, "receive values", "end")),
    "what is sent at once": (True, ("send values", WRITE, "receive values")),
    "a launch that reads what is received": (False, ("send values", "begin receive into values", FILL, "end")),
    "the same behind the wait": (True, ("send values", "begin receive into values", "end", FILL)),
    "symmetric memory that is reduced twice": (True, ("begin all_reduce of mine", "begin all_reduce of mine", "end", "end", NOTHING)),
    "symmetric memory that is reduced": (False, ("begin all_reduce of mine", "mine[i] = 0;", "end")),
    "symmetric memory that is sent": (False, ("begin send of mine", "mine[i] = 0;", "receive values", "end")),
}  # fmt: skip
FIRST = (
    BEGUN_WRITE, "a launch behind the wait", "an operation of torch that writes",
    "a launch that reads what is sent",
)  # fmt: skip


@pytest.mark.parametrize("program", [pytest.param(each, marks=() if each in FIRST else pytest.mark.slow) for each in BEGUN])
def test_memory_of_operations_that_are_not_over(program: str) -> None:
    right, steps = BEGUN[program]
    report = launches(*steps, "barrier")
    assert situations(report) == (set() if right else {("global-race", "no-stream-edge")}), str(report)
    assert report.verdict == ("clean" if right else "violations"), str(report)


@pytest.mark.parametrize(("steps", "right"), [(("pair",), False), (("pair", "other pairs"), True)])
def test_groups_of_some_ranks(steps: tuple[str, ...], *, right: bool) -> None:
    """Each rank takes from the next one."""
    assert situations(launches(FILL, *steps, TAKE, "barrier", count=3)) == (set() if right else {RACE})


def test_a_barrier_of_one_gpu_orders_no_ranks() -> None:
    assert RACE in situations(launches(FILL + MEET, TAKE, "barrier", scope="gpu"))


def test_the_report_names_ranks_and_the_buffer() -> None:
    report = launches(FILL, TAKE, "barrier")
    first, second = report.findings[0].pair
    assert {first.rank, second.rank} == {0, 1}
    assert first.block == second.block == (0, 0, 0)
    assert 'symmetric buffer "data", rank' in str(report)
    assert "does not wait for rank" in report.findings[0].message
    assert "a barrier of all ranks" in report.findings[0].fix


@pytest.mark.parametrize(
    ("steps", "said"),
    [
        ((FILL + MEET + TAKE,), True),
        ((FILL + MEET + TAKE, "barrier"), False),
        ((FILL + MEET + TAKE + "meet(signals, 2);",), False),
    ],
)
def test_a_rank_that_ends_while_others_use_its_memory(steps: tuple[str, ...], *, said: bool) -> None:
    report = launches(*steps)
    assert situations(report) == ({("global-race", "rank-ended")} if said else set()), str(report)
    assert {finding.severity for finding in report.findings} <= {"warning"}


@pytest.mark.parametrize(("wait", "few"), [(("end",), True), ((), False)])
def test_launches_that_all_come_behind_are_forgotten(wait: tuple[str, ...], *, few: bool) -> None:
    counts: list[int] = []

    def count() -> None:
        made = getattr(current(), "order", None)
        assert isinstance(made, rank_launches.RankLaunches)
        counts.append(made.running)

    launches(*(NOTHING, "begin", *wait) * 10, "count", "barrier", more=lambda *_: {"count": count})
    assert (counts[-1] < 20) is few  # of the rank that comes last; each of the ten works has operations of its own


def test_a_wait_for_the_device_waits_for_no_message_again(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[object] = []
    monkeypatch.setattr(collectives.BegunWork, "wait", lambda work, wait=collectives.BegunWork.wait: waits.append(work) or wait(work))
    launches("send values", "begin receive into values", "synchronize", "synchronize", "barrier")
    assert len(waits) == 2 * 2  # each rank sends, and receives once


@pytest.mark.slow  # it compiles the checker
@pytest.mark.parametrize(
    ("edge", "holds", "program"),
    [
        ("Edge::RANK_BEGIN", False, "the second begins with a barrier"),
        ("Edge::RANK_END", False, "the first ends with a barrier"),
        ("Edge::RANK_END", True, "the first ends with a barrier that comes too early"),
    ],
)
def test_a_fault_in_the_checker(edge: str, holds: bool, program: str, monkeypatch: pytest.MonkeyPatch) -> None:
    right, steps = PROGRAMS[program]
    Plant(monkeypatch, (replay, grid)).decides(edge, holds)
    assert (situations(launches(*steps, "barrier")) == set()) is not right


# By fault: the module, the text, what comes in its place, and a program whose report differs then.
MUTANTS: dict[str, tuple[ModuleType, str, str, str]] = {
    "a launch hands nothing on": (rank_launches, "behind, place.start", "[], place.start", "a barrier in a launch between the two"),
    "all of a rank is over": (rank_launches, "if ordered else first", "if True else first", "no barrier"),
    "a launch is over for nobody": (rank_launches, "made.streams[rank].launched(number, place)", "pass", "a launch before"),
    "a collective orders nothing": (order, "stream.wait(sent)", "pass", "a collective"),
    "two streams of a rank are in order": (rank_launches, "if any(each.of_one", "if same or any(each.of_one", BEGUN_WRITE),
    "a collective is in the current stream": (collectives, "if alone else", "if True else", BEGUN_WRITE),
    "what some come behind is forgotten": (rank_launches, "known >= Numbers(", "known & Numbers(", "a broadcast"),
    "a message is a word alone": (collectives, "stream.wait(sent)", "pass", "messages"),
}


@pytest.mark.parametrize("mutant", [pytest.param(each, marks=pytest.mark.slow if number else ()) for number, each in enumerate(MUTANTS)])
def test_a_fault_in_the_comparison(mutant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module, old, new, program = MUTANTS[mutant]
    plant(monkeypatch, module, old, new)
    right, steps = {**PROGRAMS, **BEGUN}[program]
    assert (situations(launches(*steps, "barrier")) == set()) is not right
