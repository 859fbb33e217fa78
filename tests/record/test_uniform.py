"""Values that one lane hands to all lanes, which have them anyway, are no words of a compact log
(instrument/record/analyses/uniform.py)."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from compact_support import Work, compared
from test_compact import STORE, work_with
from test_deduplication import SOURCE

from consan.instrument.record.analyses import uniform

SPREADS = {
    "the number of the warp": "int w = HAND(t >> 5, 0); for (int i = 0; i < 3; ++i) sum += tile[2 * w + (t & 1) + i];",
    "a mask": "sum = tile[HAND(t & ~31, 3) + 1];",
    "what follows from it": "sum = tile[HAND(((t >> 5) * 12 ^ gridDim.x) & 63, 1)];",
}
OTHERS = {
    "half a warp": "sum = tile[HAND(t >> 4, 17)];",
    "a mask with a lane's bit": "sum = tile[HAND(t & 48, 17)];",
    "a loaded value": "sum = tile[HAND(out[t >> 5] & 63, 5)];",
    "a value of the round": "int w = t >> 5; for (int i = 0; i < (out[t] & 3); ++i) w += 2; sum = tile[HAND(w, 9)];",
    "the next lane": "sum = tile[__shfl_down_sync(-1, t >> 5, 1)];",
}


# As Triton writes it.
HAND = """
#define HAND(value, lane) ([](int v) { int r; \\
    asm volatile("shfl.sync.idx.b32 %0, %1, " #lane ", 31, -1;" : "=r"(r) : "r"(v)); return r; })(value)
"""


def _work_of(body: str) -> Work:
    return work_with(body, source=HAND + SOURCE)


def _ptx(body: str, line: str) -> str:
    return re.sub(r"\)\s*\{", f")\n{line}\n{{", _work_of(body).ptx, count=1)


def _words(body: str, line: str = ".reqntid 64") -> int:
    """The words that the text stores, and those of branches and loaded addresses aside it stores one for a value that a lane hands out."""
    work = replace(_work_of(body), ptx=_ptx(body, line))
    assert compared(work) == ""
    return work.recorded(compact=True).ptx.count(STORE)


@pytest.mark.parametrize("name", SPREADS)
def test_what_all_lanes_have_is_not_stored(name: str) -> None:
    assert _words(SPREADS[name]) == 0
    assert _words(SPREADS[name], ".maxntid 64, 1, 1") == 1, "the block may have two dimensions"


@pytest.mark.parametrize("name", OTHERS)
def test_what_a_lane_may_not_have_is_stored(name: str) -> None:
    assert _words(OTHERS[name]) >= 1


@pytest.mark.parametrize("name", ["half a warp", "a mask with a lane's bit"])
def test_planted_fault(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bits of the lane that are taken for those of the warp."""
    monkeypatch.setattr(uniform, "LANE_BITS", 4)
    assert compared(replace(_work_of(OTHERS[name]), ptx=_ptx(OTHERS[name], ".reqntid 64"))) != ""
