"""The catalogue's row for strong accesses in no order: no race, but timing decides what the read gives (SEMANTICS 12, R-MO1, R-MO2)."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from consan.reports.catalogue.global_races import FLAG_SIDES, GLOBAL_RACE, SCOPES, WITHIN_A_CTA
from consan.reports.catalogue.races import DATA_RACE, EXCHANGED
from consan.reports.catalogue.situations import GENERAL, CatalogueEntry, Situation

_OLD_VALUE: Final = ". Strong accesses are no race, but the read may still give the old value"
_TIMING: Final = ". Strong accesses are no race, but timing decides which value the read gives"
_MESSAGE: Final = "the {first_role} at {first_at} and the {second_role} at {second_at} touch the same bytes in no order"
OF_ONE_CTA: Final = "cta"  # before the name of a flag's side: both threads are of one CTA
_BETWEEN_THREADS: Final = ("no-warp-sync", "other-lanes", "other-lane-released", "cluster", EXCHANGED)
_BETWEEN_CTAS: Final = ("no-synchronisation", "no-cluster-barrier", "other-threads")


# A sequence lock (R-MO3): {flag_write_at} begins a round of the writer, {flag_read_at} is the second look of the reader.
_TORN: Final = "the second look at the sequence, at {{flag_read_at}}, may miss that the data has changed between: {}"
_READER: Final = (
    "a fence or an acquire between the load of the data and the second look at {flag_read_at}",
    "{gpu_fence} between the load of the data and {flag_read_at}",
    "nothing lets it come after the load of the data",
)
_WRITER: Final = (
    "a fence or a release between the sequence at {flag_write_at} and the store of the data",
    "{gpu_fence} between {flag_write_at} and the store of the data",
    "the store of the data may come before that to the sequence at {flag_write_at}",
)
_SEQUENCE: Final = {
    "reader": tuple((part,) for part in _READER),
    "writer": tuple((part,) for part in _WRITER),
    "both": tuple(zip(_READER, _WRITER, strict=True)),
}


def _by_timing(rows: dict[str, Situation]) -> dict[str, Situation]:
    return {name: replace(row, message=(row.message or _MESSAGE) + _TIMING, severity="warning") for name, row in rows.items()}


def _old(rows: dict[str, Situation], prefix: str = "") -> dict[str, Situation]:
    return {prefix + name: replace(row, message=row.message + _OLD_VALUE) for name, row in rows.items()}


def _chosen(rows: dict[str, Situation], *names: str) -> dict[str, Situation]:
    """The rows of some situations, with all their positions and hazards of a read and a write."""
    of_stores = ("WAW", "one-store", "looped-store")
    wanted = (name for name in rows if name.split("@")[0].split("/")[0] in names)
    return {name: rows[name] for name in wanted if not any(each in name for each in of_stores)}


MISSING_ORDER: Final = CatalogueEntry(
    "missing-order",
    "missing order of strong accesses",
    "warning",
    _MESSAGE + _TIMING,
    {
        **_old({name: GLOBAL_RACE.situations[name] for name in FLAG_SIDES}),
        **_old(dict(WITHIN_A_CTA), f"{OF_ONE_CTA}-"),
        **_old({name: SCOPES[name] for name in ("release-scope", "acquire-scope")}),
        **_by_timing(_chosen(DATA_RACE.situations, "no-barrier", *_BETWEEN_THREADS)),
        **_by_timing(_chosen(GLOBAL_RACE.situations, *_BETWEEN_CTAS)),
        "crossed-stores": Situation(
            "a fence.sc between the store and the load, in both threads: a release and an acquire order no store before a later load",
            "put fence.sc ({gpu_fence}) between the store of the thread's own flag and the load of the other's, in both threads",
            "two threads each store a flag of their own and then load the other's, at {first_at} and {second_at}, and not both have a"
            " fence.sc in between: both loads may give the old value",
        ),
        **{
            f"sequence-{name}": Situation(
                " and ".join(missing),
                "put " + ", and ".join(fix),
                _TORN.format(" and ".join(why)),
            )
            for name, (missing, fix, why) in _SEQUENCE.items()
        },
        GENERAL: GLOBAL_RACE.situations[GENERAL],
    },
    caption="No order is needed to make (1) and (2) legal, and none makes (2) see what (1) has written.",
)
