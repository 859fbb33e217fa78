"""Races that follow from a store that may come behind a later look at another word (SEMANTICS 12, R-MO2), in words."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from consan.reports.model import Finding
from consan.reports.words.wording import place

CROSSED: Final = "crossed-stores"


def behind_a_look(race: Finding, crossed: Finding) -> Finding:
    """A race of a run in which the store of a finding `crossed` comes behind the look of its thread."""
    store, look = crossed.pair
    why = (
        f"{race.message}. It is so where the store of a flag at {place(store)} is performed behind the load of the other thread's flag at"
        f" {place(look)}, which nothing forbids: then both threads find the other's flag as it was before"
    )
    return replace(race, message=why, missing=crossed.missing, fix=crossed.fix, situation=CROSSED, verified=None, seed=None)
