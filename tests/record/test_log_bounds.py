"""The words that a launch may store, by its text and its parameters (consan/ranges/words.py): never fewer than it stores."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from compact_support import Hangs, Work, of_twin
from planted import plant
from test_compact import MORE, OTHERS, TAKEN, work_with
from test_deduplication import BODIES

from consan.backends.virtual import VirtualBackend
from consan.instrument.ptx import parse
from consan.instrument.record import rewrite
from consan.launching.placement import Placement
from consan.ranges import LaunchExtents, NotProven, Slice
from consan.ranges.words import most_words

NAMES = ("war_loop", "cluster_multicast_own_empty", "mbarrier_lane_not_arrived", "wgmma_epilogue_over_operand", "cluster_expect_remote")
OPEN = ("barrier_token_not_waited", "mbarrier_poll")  # a loop waits as often as other threads let it


def bound(work: Work) -> int | None:
    """The most words of a thread. None: its text has it, or there is no compact log. Raises `NotProven`."""
    recorded = work.recorded(compact=True)
    compact = recorded.kernel(work.entry).compact if work.entry not in recorded.refused else None
    if compact is None or not compact.in_nodes:
        return None
    function = next(each for each in parse(work.ptx).functions if each.name == work.entry and each.body is not None)
    given = [each.tobytes() if isinstance(each, np.generic) else each for each in work.args]
    values = tuple(Placement(VirtualBackend()).parameters(given, "argument"))
    return most_words(Slice(function, compact.in_nodes), values, LaunchExtents(work.grid, work.block))


def used(work: Work) -> int:
    """The words that it stores."""
    return work.run(work.recorded(compact=True)).used_lines()


def holds(work: Work) -> bool:
    """Whether there is a bound, and the launch keeps it."""
    try:
        most = bound(work)
        stored = 0 if most is None else used(work)
    except (NotProven, Hangs):
        return False
    assert most is None or stored <= most
    return most is not None


@pytest.mark.parametrize("name", NAMES)
def test_kernels(name: str) -> None:
    assert holds(replace(of_twin(name), global_races=True))


def test_a_node_without_its_words_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, rewrite, "words.in_nodes.items() if count}", "words.in_nodes.items() if count > 1}")
    with pytest.raises(AssertionError):
        holds(replace(of_twin("mbarrier_lane_not_arrived"), global_races=True))


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", [name for name in TAKEN if name not in OTHERS])
def test_every_kernel(name: str) -> None:
    for global_races in (False, True):
        for racy in (False, True):
            holds(replace(of_twin(name, racy), global_races=global_races))


@pytest.mark.parametrize("name", OPEN)
def test_waits_have_no_bound(name: str) -> None:
    with pytest.raises(NotProven):
        bound(replace(of_twin(name), global_races=True))


@pytest.mark.parametrize("body", [*BODIES.values(), *MORE.values()], ids=[*BODIES, *MORE])
def test_bodies(body: str) -> None:
    holds(work_with(body, global_races=True))
