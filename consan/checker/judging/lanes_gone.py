"""Replays note shuffles at which lanes are gone, beside their findings (source/barriers/divergence.hpp)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from consan.instrument.effects import LANES
from consan.instrument.findings import Kind, LanesGone


def parted(orders: Iterable[Iterable[Any]], cta_threads: int) -> tuple[list[list[Any]], frozenset[LanesGone]]:
    """The findings among the records of replays, by replay, and what these have noted."""
    found, noted = list[list[Any]](), set[LanesGone]()
    for records in orders:
        found.append([record for record in records if int(record["kind"]) != Kind.LANES_GONE])
        for record in (record for record in records if int(record["kind"]) == Kind.LANES_GONE):
            rank, thread = divmod(int(record["thread"]), cta_threads)
            noted.add(LanesGone(int(record["site"]), rank, thread // LANES, int(record["came"]), int(record["exited"])))
    return found, frozenset(noted)
