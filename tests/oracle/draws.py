"""Random choices that are the same with every version of Python: what random programs are made of.

`random.Random.random` is the one method whose sequence Python promises to keep for a seed, so each choice comes from it alone. A strategy
is what makes a value of such choices; the names are those of Hypothesis. Nothing is reduced here: `measure.reduced` does that, by parts.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from random import Random
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

T = TypeVar("T")
S = TypeVar("S")
P = ParamSpec("P")


def below(source: Random, count: int) -> int:
    """A number from 0 to `count` - 1."""
    return int(source.random() * count)


class SearchStrategy(Generic[T]):
    """What makes a value."""

    def __init__(self, make: Callable[[Random], T]) -> None:
        self.make = make

    def map(self, function: Callable[[T], S]) -> SearchStrategy[S]:
        """What the function makes of the value."""
        return SearchStrategy(lambda source: function(self.make(source)))

    def filter(self, wanted: Callable[[T], bool]) -> SearchStrategy[T]:
        """The first value that is wanted."""
        return SearchStrategy(lambda source: next(filter(wanted, iter(lambda: self.make(source), object()))))


def just(value: T) -> SearchStrategy[T]:
    """This value."""
    return SearchStrategy(lambda _: value)


def sampled_from(values: Iterable[T]) -> SearchStrategy[T]:
    """One of these values. Their order counts, so a set is no good."""
    listed: Sequence[T] = list(values)
    return SearchStrategy(lambda source: listed[below(source, len(listed))])


def integers(least: int, most: int) -> SearchStrategy[int]:
    """A number from `least` to `most`."""
    return SearchStrategy(lambda source: least + below(source, most - least + 1))


def booleans() -> SearchStrategy[bool]:
    """Yes or no."""
    return sampled_from([False, True])


def one_of(*strategies: SearchStrategy[Any]) -> SearchStrategy[Any]:
    """A value of one of these."""
    return SearchStrategy(lambda source: strategies[below(source, len(strategies))].make(source))


def lists(of: SearchStrategy[T], *, min_size: int = 0, max_size: int) -> SearchStrategy[list[T]]:
    """So many values, in their order."""
    size = integers(min_size, max_size)
    return SearchStrategy(lambda source: [of.make(source) for _ in range(size.make(source))])


def permutations(values: Iterable[T]) -> SearchStrategy[list[T]]:
    """The values in another order."""

    def make(source: Random) -> list[T]:
        left = list(values)
        return [left.pop(below(source, len(left))) for _ in range(len(left))]

    return SearchStrategy(make)


def builds(function: Callable[..., T], *arguments: SearchStrategy[Any]) -> SearchStrategy[T]:
    """What the function makes of values of these."""
    return SearchStrategy(lambda source: function(*(each.make(source) for each in arguments)))


def composite(function: Callable[Concatenate[Any, P], T]) -> Callable[P, SearchStrategy[T]]:
    """A function whose first parameter, `draw`, gives it a value of a strategy."""

    @functools.wraps(function)
    def strategy(*args: P.args, **keywords: P.kwargs) -> SearchStrategy[T]:
        return SearchStrategy(lambda source: function(lambda each: each.make(source), *args, **keywords))

    return strategy


def examples(strategy: SearchStrategy[T], number: int, count: int) -> Iterator[T]:
    """So many values. Each depends on `number` and its place alone, so more of them begin with the same ones."""
    for k in range(count):
        yield strategy.make(Random(f"{number}/{k}"))
