"""The order of the accesses of a flag, from their values and from numbers that overlap, as on a GPU (source/order/flag_order.hpp).

Accesses are made up: they happen in some order, and each reads a clock before and after. Writes advance the clock by each reading, loads
do not.
"""

from __future__ import annotations

import itertools
import random
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from consan.checker.compiled import build
from consan.toolchain.host_library import CXX

MAIN = """
#include <cstdio>
#include "flag_order.hpp"
int main() {
    unsigned count;
    while (std::scanf("%u", &count) == 1) {
        std::vector<FlagAccess> all(count);
        std::vector<u32> places;
        for (u32 i = 0; i < count; ++i) {
            unsigned operation, observes, writes, updates;
            unsigned long long before, after, old, first, second;
            if (std::scanf("%llu %llu %u %u %u %u %llu %llu %llu", &before, &after, &operation, &observes, &writes,
                           &updates, &old, &first, &second) != 9) return 1;
            all[i].before = before, all[i].after = after;
            all[i].bytes = 4, all[i].operation = operation, all[i].observes = observes, all[i].writes = writes, all[i].updates = updates;
            all[i].old = old, all[i].first = first, all[i].second = second, all[i].from = all[i].next = -1;
            places.push_back(i);
        }
        FlagOrder order(all, places);
        std::printf("%d", order.find(0) ? 0 : (int)order.guess(0));
        for (const FlagAccess &each : all) std::printf(" %d", each.from);
        std::printf("\\n");
    }
}
"""
LD, ST, EXCH, ADD, CAS = 1, 2, 3, 4, 5


@dataclass
class Access:
    """One access: what it does, what it has read, and its two numbers."""

    operation: int
    first: int = 0
    second: int = 0
    observes: bool = True
    old: int = 0
    before: int = 0
    after: int = 0

    @property
    def fails(self) -> bool:
        """A compare-and-swap that finds another value reads only."""
        return self.operation == CAS and self.old != self.first

    def result(self, now: int) -> int:
        """What it leaves."""
        values = {LD: now, ST: self.first, EXCH: self.first, ADD: now + self.first, CAS: self.second if now == self.first else now}
        return values[self.operation]

    def line(self) -> str:
        """Its words for the program."""
        writes = self.operation != LD and not self.fails
        updates = writes and self.operation != ST
        words = (self.before, self.after, self.operation, self.observes, writes, updates, self.old, self.first, self.second)
        return " ".join(str(int(word)) for word in words)


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Reads accesses and prints, for each list, the contradictions and what each access has read from."""
    return compiled(tmp_path_factory.mktemp("flag_order"))


def compiled(folder: Path, old: str = "", new: str = "") -> Path:
    for name, text in build.sources().items():
        (folder / name).write_text(text.replace(old, new) if old and name == "flag_order.hpp" else text)
    (folder / "main.cpp").write_text(MAIN)
    command = CXX.compiler()
    assert command is not None
    subprocess.run([*command, "-O0", "-std=c++17", "main.cpp", "-o", "order"], cwd=folder, check=True)
    return folder / "order"


def _ordered(program: Path, lists: list[list[Access]]) -> list[list[int]]:
    text = "\n".join(f"{len(each)}\n" + "\n".join(access.line() for access in each) for each in lists)
    done = subprocess.run([program], input=text, capture_output=True, text=True, check=True, timeout=60)
    return [[int(word) for word in line.split()] for line in done.stdout.splitlines()]


def _made_up(seed: int, count: int = 24, wide: int = 8) -> list[Access]:
    """Accesses in the order of their first numbers. They have happened in another: each at some time between its two."""
    rng = random.Random(seed)
    now, found, drawn = 0, [], []
    for place in range(count):
        operation = rng.choice((LD, LD, ST, EXCH, ADD, CAS))
        observes = operation in (LD, EXCH, CAS) or (operation == ADD and rng.random() < 0.5)
        made = Access(operation, rng.randrange(4), rng.randrange(4), observes, old=now if observes else 0)
        now = made.result(now)
        found.append(made)
        drawn += [(place - wide * rng.random(), place, "before"), (place + wide * rng.random(), place, "after")]
    numbers = 0
    for _, place, name in sorted(drawn):
        draws = found[place].operation != LD
        setattr(found[place], name, 2 * numbers + draws)
        numbers += draws
    return sorted(found, key=lambda made: made.before)


def _value(found: list[Access], number: int, reads_from: list[int]) -> int:
    """What an access leaves, by what it has read from."""
    made = found[number]
    if made.operation in (ST, EXCH) or made.observes:
        return made.result(made.old)
    source = reads_from[number]
    return made.result(0 if source < 0 else _value(found, source, reads_from))


def test_overlapping_numbers_are_decided_by_values(program: Path) -> None:
    lists = [_made_up(seed) for seed in range(300)]
    for found, (wrong, *reads_from) in zip(lists, _ordered(program, lists), strict=True):
        assert wrong == 0
        for made, source in zip(found, reads_from, strict=True):
            if made.observes:
                assert made.old == (0 if source < 0 else _value(found, source, reads_from))
                assert source < 0 or found[source].before < made.after


def test_a_store_whose_value_is_read_later_comes_last(program: Path) -> None:
    """The values of two stores that overlap are decided by a load that begins when both have ended."""
    stores = [Access(ST, 3, observes=False, before=1, after=9), Access(ST, 4, observes=False, before=2, after=10)]
    for value in (3, 4):
        assert _ordered(program, [[*stores, Access(LD, old=value, before=11, after=12)]]) == [[0, -1, -1, value - 3]]


def test_the_lock_that_was_free_first_is_taken_first(program: Path) -> None:
    """Both have found the lock free. The one that ended early, and whose owner has given it back, was the first."""
    late, early = Access(CAS, 0, 1, before=1, after=10), Access(CAS, 0, 1, before=2, after=3)
    back = Access(EXCH, 0, observes=False, before=4, after=5)
    assert _ordered(program, [[late, early, back]]) == [[0, 2, -1, 1]]


# A store overlaps two loads that saw the same number: one came before it, and one behind it.
BESIDE = [Access(ST, 5, observes=False, before=1, after=7), Access(LD, old=5, before=2, after=2), Access(LD, old=0, before=2, after=2)]
STRICT = ".before <= end", ".before < end"


def test_loads_with_equal_readings_are_in_no_order(program: Path, tmp_path: Path) -> None:
    lists = [[BESIDE[0], *order] for order in itertools.permutations(BESIDE[1:])]
    assert [wrong for wrong, *_ in _ordered(program, lists)] == [0, 0]
    assert STRICT[0] in build.sources()["flag_order.hpp"]
    assert [wrong for wrong, *_ in _ordered(compiled(tmp_path, *STRICT), lists)] == [1, 0]


def test_a_load_ends_before_a_store_whose_number_was_drawn_later(program: Path) -> None:
    """The place holds what both the first load and the store say. The load looked before the store drew: it has not read from the store."""
    early = Access(LD, old=5, before=2, after=2)
    assert _ordered(program, [[Access(ST, 5, observes=False, before=1, after=3), early]]) == [[0, -1, 0]]
    found = _ordered(program, [[early, Access(ST, 5, observes=False, before=3, after=5), Access(LD, old=5, before=6, after=6)]])
    assert found[0][2:] == [-1, 1]


def test_values_that_no_order_gives_are_contradictions(program: Path) -> None:
    assert _ordered(program, [[Access(ST, 3, observes=False, before=1, after=2), Access(LD, old=4, before=3, after=4)]]) == [[1, -1, -1]]
