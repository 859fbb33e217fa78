"""Words of a sentence that follow from others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def update_words(facts: Mapping[str, Any], atomic_add: str, store: str) -> dict[str, str]:
    """The right form of an update by several threads. `recomputed`: no atomic operation makes its value of the one that was loaded."""
    if facts.get("extreme"):
        largest, smallest = (atomic_add.replace("Add", f"M{word}").replace("add", f"m{word}") for word in ("ax", "in"))
        return {
            "an_update": "an atomic update",
            "one_update": f"make the update one atomic operation ({largest} for a maximum, {smallest} for a minimum)",
        }
    if not facts.get("recomputed"):
        return {"an_update": "an atomic update", "one_update": f"make the update one atomic operation ({atomic_add} for a sum)"}
    return {
        "an_update": "one thread that updates the bytes",
        "one_update": f"let one thread do the update at {store}, or give each thread bytes of its own: no atomic operation does it",
    }


def flag_words(written: str, read: str) -> dict[str, str]:
    """A flag's two places, or the one place of an atomic operation that does both."""
    if written == read:
        return {"flag_at": f"that is updated at {written}", "flag_places": written}
    return {"flag_at": f"that is written at {written} and read at {read}", "flag_places": f"{written} and {read}"}
