"""Rows of mbarriers: PTX ISA 9.7.13.15."""

from __future__ import annotations

from consan.instrument.effects import (
    MbarrierArrive,
    MbarrierInit,
    MbarrierInval,
    MbarrierTransaction,
    MbarrierWait,
)
from consan.instrument.effects.makes import makes
from consan.instrument.isa.model import Row
from consan.instrument.isa.rows.build import rows

__all__ = ["ROWS"]

_SYNC = "Parallel Synchronization and Communication Instructions: "
_LOCAL = {"ss": "shared shared::cta"}
_ANY = {"ss": "shared shared::cta shared::cluster", "scope": "cta cluster"}
_INIT = makes(MbarrierInit, count="count", at="mbar")
_TRANSACTION = makes(MbarrierTransaction, size="tx-count", at="mbar", complete=".complete_tx")
_ARRIVE = makes(
    MbarrierArrive, count="count", expected="tx-count", at="mbar", drop=".arrive_drop", no_complete=".noComplete", relaxed=".relaxed"
)


def _mbarrier(word: str, block: str, access: str, **columns: object) -> list[Row]:
    return rows(
        f"{_SYNC}mbarrier.{word}",
        "mbarrier",
        block,
        name=f"mbarrier.{word}",
        status="checked",
        touch=f"{access} mbar ss 8",
        completion="mbarrier",
        **columns,
    )


ROWS: list[Row] = [
    *_mbarrier("init", "mbarrier.init{.ss}.b64 [mbar], count", "write", classes=_LOCAL, makes=_INIT),
    *_mbarrier("inval", "mbarrier.inval{.ss}.b64 [mbar]", "write", classes=_LOCAL, makes=makes(MbarrierInval, at="mbar")),
    *(
        row
        for word in ("expect_tx", "complete_tx")
        for row in _mbarrier(
            word,
            f"mbarrier.{word}{{.sem.scope}}{{.ss}}.b64 [mbar], tx-count",
            "rmw",
            sem="relaxed",
            classes={**_ANY, "sem": "relaxed"},
            makes=_TRANSACTION,
        )
    ),
    *(
        row
        for word in ("arrive", "arrive_drop")
        for row in _mbarrier(
            word,
            f"""
            mbarrier.{word}{{.sem.scope}}{{.ss}}.b64 dst, [mbar]{{, count}}
            mbarrier.{word}.expect_tx{{.sem.scope}}{{.ss}}.b64 dst, [mbar], tx-count
            mbarrier.{word}.noComplete{{.sem.scope}}{{.ss}}.b64 dst, [mbar], count
            """,
            "rmw",
            sem="release",
            scope="cta",
            ordering=("release", "relaxed"),
            classes={**_ANY, "sem": "release relaxed"},
            makes=_ARRIVE,
        )
    ),
    *(
        row
        for word, hint in (("test_wait", ""), ("try_wait", "{, time-hint}"))
        for row in _mbarrier(
            word,
            f"""
            mbarrier.{word}{{.sem.scope}}{{.ss}}.b64 dst, [mbar], state{hint}
            mbarrier.{word}.parity{{.sem.scope}}{{.ss}}.b64 dst, [mbar], parity{hint}
            """,
            "read",
            sem="acquire",
            scope="cta",
            ordering=("acquire", "relaxed"),
            makes=makes(MbarrierWait, parity="parity", at="mbar", relaxed=".relaxed"),
            classes={**_LOCAL, "scope": "cta cluster", "sem": "acquire relaxed"},
        )
    ),
    *rows(
        _SYNC + "mbarrier.pending_count",
        "mbarrier",
        "mbarrier.pending_count.b64 dst, state",
        name="mbarrier.pending_count",
        status="checked",
    ),
]
