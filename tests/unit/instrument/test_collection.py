"""The search for cycles is held back within all blocks, and goes on behind the last one only if it was on before."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterator

import pytest
from planted import plant

from consan.instrument import collection
from consan.instrument.collection import HELD, MANY, no_collection


def test_blocks_within_each_other() -> None:
    assert gc.isenabled()
    with no_collection():
        with no_collection():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()


def test_a_block_that_fails_ends() -> None:
    @no_collection()
    def fails() -> None:
        assert not gc.isenabled()
        raise ValueError(0)

    with pytest.raises(ValueError, match="0"):
        fails()
    assert gc.isenabled()


def test_a_program_without_it_stays_without_it() -> None:
    gc.disable()
    try:
        with no_collection():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


class Made:
    """An object in a cycle, beside many others."""

    def __init__(self) -> None:
        self.itself = self


@pytest.fixture
def frozen(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """All that was there before the program. The tests put it apart, too."""
    monkeypatch.setattr(HELD, "frozen", -1)
    monkeypatch.setattr(HELD, "of_program", False)
    gc.collect()
    gc.freeze()
    yield gc.get_freeze_count()
    gc.collect()
    gc.freeze()


def is_young(thing: object) -> bool:
    return any(each is thing for generation in (0, 1) for each in gc.get_objects(generation))


def many(frozen: int) -> None:
    """The next search does not go through them. A cycle among them is found by a search of all."""
    with no_collection():
        some = [[number] for number in range(2 * MANY)]
        made = Made()
    assert not is_young(some[0])
    assert gc.get_freeze_count() < frozen
    gone = weakref.ref(made)
    del made
    gc.collect()
    assert gone() is None


def few(frozen: int) -> None:
    with no_collection():
        some = [[]]
    assert is_young(some[0])
    assert gc.get_freeze_count() > frozen // 2


def of_program(frozen: int) -> None:
    """The program puts more apart."""
    with no_collection():
        pass
    more = [[number] for number in range(MANY)]
    gc.freeze()
    some = list[list[int]]()
    for _ in range(2):
        with no_collection():
            some += [[number] for number in range(2 * MANY)]
    assert gc.get_freeze_count() > frozen
    assert len(some) > len(more)


def counted_once(_frozen: int) -> None:
    """Once the program has put objects apart, nobody counts them again."""
    with no_collection():
        pass
    more = [[number] for number in range(MANY)]
    gc.freeze()
    some = list[list[int]]()
    with pytest.MonkeyPatch.context() as patch:
        counts = list[int]()
        count = gc.get_freeze_count
        patch.setattr(gc, "get_freeze_count", lambda: counts.append(1) or count())
        for _ in range(3):
            with no_collection():
                some += [[number] for number in range(2 * MANY)]
    assert len(counts) == 1
    assert len(some) > len(more)


CASES = [many, few, of_program, counted_once]
FAULTS = {
    "never": ("gc.get_count()[0] > MANY", "False", many),
    "for ever": ("                    gc.unfreeze()", "                    pass", many),
    "always": ("gc.get_count()[0] > MANY and", "True and", few),
    "the program's": (" and not self._has_frozen()", "", of_program),
    "again and again": ("self.of_program or gc.get_freeze_count()", "gc.get_freeze_count()", counted_once),
}


@pytest.mark.parametrize("case", CASES)
def test_new_objects(case: Callable[[int], None], frozen: int) -> None:
    case(frozen)


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault(name: str, frozen: int, monkeypatch: pytest.MonkeyPatch) -> None:
    old, new, case = FAULTS[name]
    monkeypatch.setattr(HELD, "frozen", -1)
    plant(monkeypatch, collection, old, new)
    with pytest.raises(AssertionError):
        case(frozen)
