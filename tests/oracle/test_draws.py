"""A seed makes the same random programs with every version of Python and every seed of its hashes."""

from __future__ import annotations

import hashlib

import pytest
from draws import SearchStrategy, booleans, builds, examples, integers, lists, one_of, permutations
from oracle_strategies import OF_GRIDS, OF_RANKS, STRATEGIES, batches

DIGESTS = {
    "synchronous": "374e9b9d075b",
    "with_copies": "02f221690fd2",
    "asynchronous": "bec9ff2a8099",
    "divergent": "76380f6905cb",
    "lanes": "38aa5cc37018",
    "ending": "c6822fee75f1",
    "matrix": "c96ae897dfe2",
    "clusters": "81a76df4be0f",
    "cluster_ending": "9f6e9577b3d6",
    "global": "173b7ef9201a",
    "ranks": "bb3fe6c14a6c",
    "three_ranks": "2bc772914d24",
    "four_ranks": "19d1642a1451",
    "multimem": "13cbd1fa65d1",
    "multimem_of_three": "5b741d47468a",
}


@pytest.mark.parametrize("strategy", [*STRATEGIES, *OF_GRIDS, *OF_RANKS])
def test_a_seed_makes_the_same_programs_everywhere(strategy: str) -> None:
    """Who changes a strategy writes the new digests here: seeds named in READMEs then mean other programs."""
    made = [batch.ptx for batch in examples(batches(strategy, 2), 5, 20)]
    assert len(set(made)) == 20
    assert hashlib.sha256("".join(made).encode()).hexdigest()[:12] == DIGESTS[strategy]


def test_more_examples_begin_with_the_same_ones() -> None:
    few, more = ([batch.ptx for batch in examples(batches("global", 2), 1, count)] for count in (3, 5))
    assert few == more[:3]


@pytest.mark.parametrize(
    ("strategy", "values"),
    [
        (integers(2, 4), {2, 3, 4}),
        (booleans().map(int), {0, 1}),
        (one_of(integers(1, 1), integers(5, 6)).filter(lambda value: value != 6), {1, 5}),
        (lists(integers(7, 7), max_size=2).map(tuple), {(), (7,), (7, 7)}),
        (permutations(range(3)).map(tuple), {(0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)}),
        (builds(divmod, integers(8, 9), integers(5, 5)), {(1, 3), (1, 4)}),
    ],
)
def test_every_value_comes(strategy: SearchStrategy[object], values: set[object]) -> None:
    assert set(examples(strategy, 1, 100)) == values
