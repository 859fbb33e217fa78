"""How long the logs of a launch are."""

from __future__ import annotations

from dataclasses import replace

import pytest

from consan.checker.logs.log_lines import LONG_BYTES, MOST_LINES, LogNeeds, LogRoom
from consan.instrument.record.text.templates import LINE_BYTES

_GiB = 1 << 30
LARGE = LogNeeds(65_536 * LINE_BYTES, words=10, loops=True, compact=True)  # 65,536 warps: a line of all is 8 MiB
SMALL = replace(LARGE, line_bytes=16 * LINE_BYTES)


@pytest.mark.parametrize(
    ("needs", "lines"),
    [
        (LARGE, 320),  # all that there is
        (SMALL, LONG_BYTES // SMALL.line_bytes),
        (replace(LARGE, loops=False), 12),
        (replace(LARGE, stores=False), 1),
        (replace(LARGE, bounded=7), 8),
        (replace(LARGE, room=LogRoom(most=20)), 20 + 12),  # no more than that
        (replace(SMALL, room=LogRoom(most=5)), (1 << 22) // SMALL.line_bytes + 12),
        (replace(SMALL, room=LogRoom(used=5, most=1 << 14)), (1 << 22) // SMALL.line_bytes + 12),
        (replace(LARGE, room=LogRoom(used=5)), 16 + 12),  # four times, as far as that is 128 MiB: 16 lines
        (replace(LARGE, room=LogRoom(used=20)), 40 + 12),  # at least twice
        (replace(SMALL, room=LogRoom(used=5)), (1 << 22) // SMALL.line_bytes + 12),  # small logs stay as they are
        (replace(SMALL, room=LogRoom(used=1 << 14)), 4 * (1 << 14) + 12),
    ],
)
def test_lines(needs: LogNeeds, lines: int) -> None:
    found, least = needs.lines(5 * _GiB // 2)
    assert found == lines >= least


def test_logs_of_many_warps_have_room_for_some_hundred_words() -> None:
    """80,000 warps, as of CUB's radix sort, have 300 lines each; those of many more take no more memory."""
    of_each = {warps: replace(LARGE, line_bytes=warps * LINE_BYTES).lines(1 << 36)[0] for warps in (1 << 15, 80_000, 1 << 17, 1 << 20)}
    assert of_each == {1 << 15: 768, 80_000: 512, 1 << 17: 384, 1 << 20: 64}


def test_there_is_no_room() -> None:
    lines, least = LARGE.lines(100 << 20)
    assert lines < least
    lines, least = replace(LARGE, room=LogRoom(used=2)).lines(200 << 20)  # for a shape whose launches use little there is
    assert lines >= least


def test_a_log_that_was_full_has_more() -> None:
    line = MOST_LINES * LINE_BYTES * 2
    usual, roomy = (replace(LARGE, line_bytes=line, room=LogRoom(roomy)).lines(1 << 62)[0] for roomy in (False, True))
    assert roomy > usual
