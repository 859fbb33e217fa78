"""Launches whose logs have no room are looked at in slices (consan/checker/logs/slices.py): which are, and in how many.

Not divided: launches whose CTAs may synchronise through memory, or may cancel each other's launch; clusters whose CTAs are no neighbours in
the grid; launches of several ranks, into graphs, with `--sample` or `--keep-histories`, and those of which more is asked than findings.
"""

from __future__ import annotations

import math
from typing import Final

from consan.checker.logs.log_lines import USUAL_ROOM
from consan.checker.logs.memory import LogMemory
from consan.checker.logs.pieces import LogForm
from consan.checker.logs.slices import Slices
from consan.instrument.record.families.global_memory import Mode
from consan.instrument.record.text.templates import LINE_BYTES
from consan.instrument.rewriting.ranked import ranks_of
from consan.session.executing.launch_check import LaunchCheck
from consan.session.executing.recording import Recording
from consan.session.modules.prepared import LogShape, Prepared
from consan.session.planning.launch_sizes import warps_of
from consan.session.planning.plan import LogPlan, PlannedLaunch

MOST_SLICES: Final = 64  # of a launch; of pairs of sets the number grows with the square of the sets
MOST_REPEATED: Final = 1 << 10  # of one that can be repeated
LONGEST_REPEATED: Final = 180.0  # seconds for the slices of a launch that is repeated
_MORE: Final = 2  # times as long as the last one, if the log of a loop was full


def begin_slice(recording: Recording, memory: LogMemory, prepared: Prepared, log: LogPlan, *, repeatable: bool) -> None:
    """A launch is to have a log. It has no slices where there is much more room by now."""
    shape = log.kernel, log.grid, log.block, log.cluster
    slices = prepared.logs.slices.get(shape)
    if slices is not None and recording.most_bytes(memory, roomy=True) >= 2 * slices.most_bytes:
        del prepared.logs.slices[shape]
    elif slices is not None and repeatable:
        slices.begins()


def divide(recording: Recording, memory: LogMemory, prepared: Prepared, log: LogPlan, launch: PlannedLaunch) -> bool:
    """The logs of a launch have no room. Returns whether launches of its shape are looked at in slices from now on."""
    shape = log.kernel, log.grid, log.block, log.cluster
    return _divided(recording, memory, prepared, shape, launch.divides, 0)


def divide_more(recording: Recording, memory: LogMemory, prepared: Prepared, started: LaunchCheck) -> bool:
    """The log of a launch was full. Returns whether those of later launches of its shape are longer, and of fewer CTAs."""
    launched, lines = started.launched, 0 if started.memory is None else started.memory.lines
    shape = launched.entry, launched.grid, launched.block, launched.cluster
    return lines > 0 and _divided(recording, memory, prepared, shape, started.divides, lines)


def _divided(recording: Recording, memory: LogMemory, prepared: Prepared, shape: LogShape, most_slices: int, before: int) -> bool:
    """`before`: lines that did not suffice; 0: the fewest that serve have no room."""
    recorded, (kernel, grid, block, cluster), options = prepared.recorded, shape, recording.options
    assert recorded is not None
    form, ctas = LogForm.of(recorded, kernel), math.prod(grid)
    neighbours = cluster[1:] == (1, 1)
    if form.mode is Mode.SYNCED or form.silent or recorded.takes_clusters or not neighbours or ranks_of(prepared.plain) > 1:
        return False
    if not most_slices or options.sample or options.keep_histories or recording.asked:
        return False
    most, line = recording.most_bytes(memory, roomy=True), warps_of(1, math.prod(block)) * LINE_BYTES
    longest, least = form.needs(line, USUAL_ROOM, zeros=memory.backend.allocates_zeros).lines(most)
    if before >= longest:
        return False
    lines = _MORE * before or least
    unit = max(1, cluster[0])
    shortest = before + 1 if before else least
    lines = max(shortest, min(lines, longest, most // (line * (2 * unit + 1))))
    slices = Slices.fitting(ctas, unit, most // (line * lines), pairs=form.mode is Mode.ALONE, most_bytes=most)
    known = prepared.logs.slices.get(shape)
    if slices is None or not 1 < slices.number <= most_slices or (known is not None and slices.count >= known.count):
        return False
    prepared.logs.slices[shape] = slices
    recording.sliced.append(slices)
    return True
