"""Flags of random launches of several GPUs (R-RK8): each read that is decided has read from the write that it has read from.

The accesses happen in some order, which keeps that of each thread and of the launches of a GPU. Only their values are shown.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pytest
from planted import plant

from consan.checker.compiled.concurrent_launches import PeerFlagKind, RetainedFlags
from consan.checker.compiled.layouts import PEER_FLAG, RETAINED
from consan.instrument.layouts.records import dtype
from consan.session.comparing.pairs import flagged_launches
from consan.session.comparing.pairs.flagged_launches import FlaggedLaunch
from consan.session.comparing.peer_flags import PeerFlags

LD, ST, EXCH, ADD, CAS = 1, 2, 3, 4, 5
_OBSERVES, _WRITES, _UPDATES = PeerFlagKind.OBSERVES, PeerFlagKind.WRITES, PeerFlagKind.UPDATES
KINDS = {LD: _OBSERVES, ST: _WRITES, EXCH: _OBSERVES | _WRITES | _UPDATES, ADD: _OBSERVES | _WRITES | _UPDATES}
Number = tuple[int, int, int]  # of an access: its GPU, its launch, and its place among the flags


@dataclass
class Program:
    """Launches of each GPU, one after the other. `sources`: what each read has read from; None: what was there at first."""

    launches: dict[tuple[int, int], list[tuple[int, ...]]] = field(default_factory=dict)
    sources: dict[Number, Number | None] = field(default_factory=dict)

    def flagged(self) -> dict[tuple[int, int], FlaggedLaunch]:
        found = {}
        for (rank, number), rows in self.launches.items():
            flags = np.zeros(len(rows), dtype(PEER_FLAG))
            for at, row in enumerate(rows):
                for name, value in zip(("thread", "operation", "old", "first", "second", "flags", "address"), row, strict=True):
                    flags[name][at] = value
            flags["bytes"] = 4
            found[rank, number] = FlaggedLaunch(rank, np.zeros(0, dtype(RETAINED)), RetainedFlags(flags, np.zeros(1, np.uint32)))
        return found


def made(choice: random.Random) -> Program:
    """A random program of two or three GPUs."""
    program, places = Program(), choice.randint(1, 2)
    held: dict[int, tuple[int, Number | None]] = dict.fromkeys(range(places), (0, None))
    queues = [
        [(number, thread) for number in range(choice.randint(1, 2)) for thread in _threads(choice)] for _ in range(choice.randint(2, 3))
    ]
    while any(queues):
        rank = choice.choice([at for at, queue in enumerate(queues) if queue])
        number, thread = queues[rank].pop(0)
        rows, place = program.launches.setdefault((rank, number), []), choice.randrange(places)
        (value, source), me = held[place], (rank, number, len(rows))
        operation, first, second = choice.choice((LD, LD, ST, EXCH, ADD, CAS)), choice.randint(0, 2), choice.randint(0, 2)
        kind = KINDS.get(operation, _OBSERVES | _UPDATES | (_WRITES if value == first else 0))
        after = {LD: value, ADD: value + first, CAS: second if value == first else value}.get(operation, first)
        if kind & _UPDATES and after == value:
            kind &= ~_WRITES  # it only reads, as the checker has it
        rows.append((thread, operation, value if kind & _OBSERVES else 0, first, second, int(kind), 64 * place))
        if kind & _OBSERVES:
            program.sources[me] = source
        if kind & _WRITES:
            held[place] = after, me
    return program


def _threads(choice: random.Random) -> Iterator[int]:
    """The threads of a launch, in the order of their accesses."""
    return (choice.randint(0, 1) for _ in range(choice.randint(1, 4)))


def wrong(program: Program) -> tuple[int, int]:
    """How many reads are decided, and how many of these for another write."""
    launches = program.flagged()
    names = {launch: name for name, launch in launches.items()}
    flags = PeerFlags(
        list(launches.values()), lambda one, other: names[one][0] == names[other][0] and names[one][1] < names[other][1], {(0, 4): {0}}
    )
    decided = {
        (*names[read.launch], read.at): None if source is None else (*names[source.launch], source.at)
        for read, source in flags.sources.items()
    }
    return len(decided), sum(program.sources[read] != source for read, source in decided.items())


@pytest.mark.parametrize("piece", [0, *(pytest.param(each, marks=pytest.mark.slow) for each in range(1, 20))])
def test_what_is_decided_is_right(piece: int) -> None:
    results = [wrong(made(random.Random(seed))) for seed in range(500 * piece, 500 * (piece + 1))]
    assert not any(each for _, each in results)
    assert sum(decided for decided, _ in results) > 500  # not all are undecided


def test_a_fault_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Any of the writes that fit is taken."""
    plant(monkeypatch, flagged_launches, "if len(each) == 1", "if each")
    assert any(bad for _, bad in (wrong(made(random.Random(seed))) for seed in range(100)))
